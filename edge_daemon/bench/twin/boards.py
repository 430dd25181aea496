"""The simulated boards' processes: the firmware itself, in MicroPython where there is one."""

import importlib.util
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import trio

import firmware
from edge_daemon.bench.twin.line import SerialLine

Kind = Literal["hand", "hid"]
Runtime = Literal["micropython", "cpython"]
ResetCause = Literal["power_on", "watchdog", "brownout", "soft", "unknown"]

# An ESP32-S3 without PSRAM leaves about this much to MicroPython.
HEAP = "160k"
SOURCE_ROOT = Path(firmware.__path__[0]).parent
ROM_TEXT = (
    b"ESP-ROM:esp32s3-20210327\r\nBuild:Mar 27 2021\r\nrst:0x3 (RTC_SW_SYS_RST),boot:0x8\r\n\xf8\x00\xe6~"
)


class BoardCrashed(RuntimeError):
    """A board's process ended by itself; the message has what it printed."""


def available_runtime() -> Runtime:
    """MicroPython's unix port if it is installed for this interpreter, else CPython."""
    installed = importlib.util.find_spec("micropython_unix") is not None and _micropython().exists()
    return "micropython" if installed else "cpython"


def _micropython() -> Path:
    return Path(sys.executable).parent / "micropython"


@dataclass(frozen=True)
class BoardSpec:
    """What a board is: its uid (16 hex digits) and the options its firmware was built with."""

    kind: Kind
    uid: str
    options: tuple[str, ...] = ()


class BoardProcess:
    """One board that can be started, killed and started again."""

    def __init__(
        self, spec: BoardSpec, line: SerialLine, wire_path: Path, directory: Path, runtime: Runtime
    ) -> None:
        self.spec = spec
        self.line = line
        self._wire_path = wire_path
        self._state_path = directory / f"{spec.kind}.nvs"
        self.log_path = directory / f"{spec.kind}.log"
        self._runtime = runtime
        self._process: trio.Process | None = None

    @property
    def running(self) -> bool:
        return self._process is not None

    async def start(self, end: socket.socket, cause: ResetCause, nursery: trio.Nursery) -> None:
        """Start the firmware with `end` of its serial line. A crash raises BoardCrashed out of the nursery."""
        assert self._process is None
        with end, self.log_path.open("ab") as log:
            process = await trio.lowlevel.open_process(
                self._command(end.fileno(), cause),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(end.fileno(),),
                cwd=SOURCE_ROOT,
                # Ctrl-C at the terminal is for the bench, which then ends its boards; not for the boards.
                start_new_session=True,
            )
        self._process = process
        nursery.start_soon(self._watch, process)

    async def kill(self) -> None:
        """End the process as a power cut does; it is gone when this returns, whatever is cancelled."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()

    def _command(self, fd: int, cause: ResetCause) -> Sequence[str]:
        if self._runtime == "micropython":
            interpreter = [str(_micropython()), "-X", f"heapsize={HEAP}"]
        else:
            interpreter = [sys.executable]
        return [
            *interpreter,
            "firmware/ports/unix/main.py",
            self.spec.kind,
            "--serial",
            str(fd),
            "--wiring",
            str(self._wire_path),
            "--uid",
            self.spec.uid,
            "--state",
            str(self._state_path),
            "--reset-cause",
            cause,
            *self.spec.options,
        ]

    async def _watch(self, process: trio.Process) -> None:
        code = await process.wait()
        if self._process is process:
            self._process = None
            said = self.log_path.read_text(errors="replace")[-2000:].strip() or "nothing"
            raise BoardCrashed(f"the {self.spec.kind} board ended with status {code}; it printed: {said}")
