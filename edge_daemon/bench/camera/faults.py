"""Each trouble of the camera, switched on and off while a plane goes on looking: is it said in time, does any look
wait, how soon is a fresh picture served again?"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import trio

from edge_daemon.bench.camera.player import take_look
from edge_daemon.bench.camera.truth import Witness
from edge_daemon.bench.plane import Message, Plane, PlaneError
from edge_daemon.bench.rigfile import DEVICE
from edge_daemon.bench.twin.camera import Trouble
from edge_daemon.bench.twin.rig import SimulatedRig

HELD_S = 4.5
"""Longer than anything of the daemon's own patience."""
GIVEN_UP_S = 15.0
QUIET_S = 0.05
LOOK_PAUSE_S = 0.1
ALTERNATING_WAITS_MS = (0, 2000)


@dataclass(frozen=True)
class Fault:
    """names: what the device may call it. offline: no picture comes, so the device is offline meanwhile.

    dark: pictures come, and nothing is to be seen on them; then none is marked.
    """

    name: str
    names: tuple[str, ...]
    offline: bool
    begin: Callable[[SimulatedRig], None]
    end: Callable[[SimulatedRig], None]
    dark: bool = False


def _trouble(trouble: Trouble) -> Callable[[SimulatedRig], None]:
    return lambda rig: rig.camera.set_trouble(trouble)


_healed = _trouble(Trouble.NONE)


def _kill(rig: SimulatedRig) -> None:
    rig.camera.kill_server()


def _revive(rig: SimulatedRig) -> None:
    rig.camera.restart_server()


def _screen(brightness: float) -> Callable[[SimulatedRig], None]:
    return lambda rig: rig.phone.set_brightness(brightness)


FAULTS = (
    Fault("unplugged", ("unplugged",), True, _trouble(Trouble.UNPLUGGED), _healed),
    Fault("frozen", ("frozen",), True, _trouble(Trouble.FROZEN), _healed),
    Fault("silent", ("blocked",), True, _trouble(Trouble.SILENT), _healed),
    Fault("server killed", ("server_gone",), True, _kill, _revive),
    Fault("cut pictures", ("broken_stream",), True, _trouble(Trouble.CUT), _healed),
    Fault("wrong clock", ("no_clock",), True, _trouble(Trouble.WRONG_CLOCK), _healed),
    Fault("stuck", ("stuck",), False, _trouble(Trouble.STUCK), _healed),
    Fault("starved", ("starved",), False, _trouble(Trouble.STARVED), _healed),
    Fault("covered", ("black",), False, _trouble(Trouble.COVERED), _healed, dark=True),
    Fault("screen off", ("screen_off",), False, _screen(0.0), _screen(1.0), dark=True),
)
QUICK = ("unplugged", "server killed", "stuck")


@dataclass
class FaultRun:
    """What one trouble did. None: it did not come about within 15 s.

    told_s: from its beginning until the device names it, and is offline where no pictures come. recover_s: from its
    end until a look was served whose picture was exposed after it. cleared_s: until the device no longer names it.
    longest_look_s: of the looks asked for meanwhile. stale: of those served meanwhile, with an older exposure.
    """

    name: str
    told_s: float | None = None
    recover_s: float | None = None
    cleared_s: float | None = None
    longest_look_s: float = 0.0
    looks: int = 0
    served: int = 0
    stale: int = 0
    said: list[str] = field(default_factory=list)


async def run_fault(fault: Fault, rig: SimulatedRig, plane: Plane, witness: Witness) -> FaultRun:
    """Switch it on, watch, switch it off, wait until everything is as before."""
    run = FaultRun(fault.name)
    witness.marking = not fault.dark
    began_s = time.monotonic()
    await _switch(fault.begin, rig)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_keep_looking, run, plane, witness)
        run.told_s = await _until(plane, lambda device: _told(device, fault), began_s, HELD_S)
        await trio.sleep(max(0.0, began_s + HELD_S - time.monotonic()))
        run.said = list(named(plane.devices[DEVICE]))
        nursery.cancel_scope.cancel()
    witness.marking = True
    await _switch(fault.end, rig)
    await _recover(run, fault, plane, witness)
    return run


async def _switch(verb: Callable[[SimulatedRig], None], rig: SimulatedRig) -> None:
    # In a thread: a server that is killed waits for its clients to be gone.
    await trio.to_thread.run_sync(verb, rig)


async def _recover(run: FaultRun, fault: Fault, plane: Plane, witness: Witness) -> None:
    ended_ns = time.monotonic_ns()
    ended_s = ended_ns / 1e9
    while run.recover_s is None and time.monotonic() < ended_s + GIVEN_UP_S:
        try:
            look, _ = await take_look(plane, witness, leased=False, wait_settled_ms=0)
        except PlaneError:
            await trio.sleep(QUIET_S)
            continue
        exposure = witness.history().exposures.get(look.number) if look.number is not None else None
        if exposure is not None and exposure.begin_ns >= ended_ns:
            run.recover_s = look.answered_ns / 1e9 - ended_s
    run.cleared_s = await _until(plane, lambda device: _clear(device, fault), ended_s, GIVEN_UP_S)


async def _keep_looking(run: FaultRun, plane: Plane, witness: Witness) -> None:
    while True:
        wait_ms = ALTERNATING_WAITS_MS[run.looks % 2]
        run.looks += 1
        try:
            with _timed(run):
                look, _ = await take_look(plane, witness, leased=False, wait_settled_ms=wait_ms)
        except PlaneError:
            await trio.sleep(LOOK_PAUSE_S)
            continue
        run.served += 1
        exposure = witness.history().exposures.get(look.number) if look.number is not None else None
        run.stale += exposure is not None and exposure.begin_ns < look.sent_ns


@contextmanager
def _timed(run: FaultRun) -> Iterator[None]:
    """The longest look of a run, also of one that is refused or cut off."""
    sent_s = time.monotonic()
    try:
        yield
    finally:
        run.longest_look_s = max(run.longest_look_s, time.monotonic() - sent_s)


async def _until(
    plane: Plane, holds: Callable[[Message], bool], since_s: float, within_s: float
) -> float | None:
    with trio.move_on_after(max(0.0, since_s + within_s - time.monotonic())):
        await plane.wait_until(lambda: holds(plane.devices[DEVICE]))
        return time.monotonic() - since_s
    return None


def _told(device: Message, fault: Fault) -> bool:
    if fault.offline and device["status"] != "offline":
        return False
    return any(name in fault.names for name in named(device))


def _clear(device: Message, fault: Fault) -> bool:
    return device["status"] == "online" and not any(name in fault.names for name in named(device))


def named(device: Message) -> list[str]:
    """What the device's description says is wrong with its camera, by name."""
    names: list[str] = []
    for part in device.get("metadata", {}).values():
        if isinstance(part, dict):
            names.extend(_names(part))
    return names


def _names(part: dict[str, Any]) -> list[str]:
    fault, degraded = part.get("fault"), part.get("degraded", ())
    return [*([fault] if fault else []), *(one["fault"] for one in degraded if isinstance(one, dict))]
