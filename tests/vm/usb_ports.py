"""USB serial adapters that come and go in the guest, the boards behind them, and who watches those outside."""

import glob
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import trio

from edge_daemon.boards.port import SerialPort

HOME_PORT = {"ALPHA": 1, "BETA": 2, "OBSERVER": 4}
UID = {"ALPHA": "ed6e0000000000a1", "BETA": "ed6e0000000000b2"}
UDEV_S = 30


def by_id(name: str) -> str:
    return f"/dev/serial/by-id/usb-QEMU_QEMU_USB_SERIAL_{name}-if00-port0"


def by_path(port: int) -> str:
    """The link to whatever is plugged into that USB port now."""
    (link,) = glob.glob(f"/dev/serial/by-path/*-usb-0:{port}:1.0-port0")
    return link


@dataclass
class UsbPorts:
    """Which adapter is in which of the machine's USB ports."""

    plugged: dict[str, int] = field(default_factory=dict)

    async def plug(self, name: str, port: int | None = None) -> None:
        """Returns when udev has the adapter's links."""
        port = HOME_PORT[name] if port is None else port
        await trio.run_process(["vmrig", "plug", name, str(port)])
        await _until(lambda: os.path.exists(by_id(name)), f"{name} did not come")
        self.plugged[name] = port

    async def unplug(self, name: str) -> None:
        """Returns when the links are gone."""
        await trio.run_process(["vmrig", "unplug", name])
        await _until(lambda: not os.path.lexists(by_id(name)), f"{name} did not go")
        del self.plugged[name]

    async def all_home(self) -> None:
        """Every adapter in its own port."""
        for name, port in list(self.plugged.items()):
            if HOME_PORT[name] != port:
                await self.unplug(name)
        for name in HOME_PORT:
            if name not in self.plugged:
                await self.plug(name)


async def _until(is_true: Callable[[], bool], what: str) -> None:
    with trio.move_on_after(UDEV_S):
        while not is_true():
            await trio.sleep(0.01)
        return
    raise AssertionError(f"{what} within {UDEV_S} s: {sorted(glob.glob('/dev/serial/by-id/*'))}")


@dataclass
class BoardReport:
    """What the drives of a board outside did; see outside_boards.py."""

    presses: list[list[int]]
    z_um: int | None
    starts: int

    def count(self, place: tuple[int, int]) -> int:
        return self.presses.count(list(place))


class Observer:
    """Asks the process outside, over a serial line of its own."""

    def __init__(self, port: SerialPort) -> None:
        self._port = port

    async def report(self, name: str) -> BoardReport:
        return await self._ask(f"report {name}")

    async def power_cycle(self, name: str) -> BoardReport:
        return await self._ask(f"power-cycle {name}")

    async def _ask(self, line: str) -> BoardReport:
        await self._port.write(line.encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            answer += await self._port.read()
        return BoardReport(**json.loads(answer))


def holders_name() -> str:
    return Path("/proc/self/comm").read_text().strip()
