"""One run of the capture process, as the daemon sees it: started, read, always killed and reaped."""

import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import trio

from edge_daemon.cameras.capture import CaptureOrder
from edge_daemon.cameras.pipe import Header, RecordReader

READ_BYTES = 256 * 1024
REAP_S = 2.0
"""SIGKILL works at once, except on a process that hangs inside a driver."""
EXIT_S = 1.0
"""From the end of its records to the end of the process: only the interpreter's shutdown."""


class CaptureProcess:
    """Handed out by `capture_process`."""

    def __init__(self, process: trio.Process, stream: trio.SocketStream) -> None:
        self._process = process
        self._stream = stream
        self._reader = RecordReader()

    @property
    def pid(self) -> int:
        return self._process.pid

    async def receive(self) -> list[tuple[Header, bytes]] | None:
        """The next records; empty when only a part of one came; None when the process has closed its end.

        Raises PipeError. Cancelling loses nothing.
        """
        try:
            data = await self._stream.receive_some(READ_BYTES)
        except trio.BrokenResourceError:
            return None
        return self._reader.feed(bytes(data)) if data else None

    async def why_it_ended(self) -> str:
        """In words, from its exit status."""
        with trio.move_on_after(EXIT_S):
            await self._process.wait()
        status = self._process.returncode
        if status is None:
            return "the capture process closed its socket and hangs"
        if status < 0:
            return f"the capture process was ended by {signal.Signals(-status).name}"
        return f"the capture process ended with status {status}; its last words are in the log"


@asynccontextmanager
async def capture_process(order: CaptureOrder) -> AsyncIterator[CaptureProcess]:
    """Start the process and give it its order. Leaving the block, for whatever cause, kills and reaps it.

    Raises OSError when no process can be started.
    """
    here, there = socket.socketpair()
    with here, there:
        process = await trio.lowlevel.open_process(
            [sys.executable, "-m", "edge_daemon.cameras.capture", "--fd", str(there.fileno())],
            stdin=subprocess.PIPE,
            pass_fds=(there.fileno(),),
        )
        there.close()
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(here))
        try:
            await _give(process, order)
            yield CaptureProcess(process, stream)
        finally:
            await _end(process, stream)


async def _give(process: trio.Process, order: CaptureOrder) -> None:
    assert process.stdin is not None
    try:
        await process.stdin.send_all(msgspec.json.encode(order) + b"\n")
    except trio.BrokenResourceError:
        # It died before it read its order; whoever receives from it learns how.
        return


async def _end(process: trio.Process, stream: trio.SocketStream) -> None:
    process.kill()
    # Shielded but bounded: a process stuck in a driver must not keep the daemon from ending. It dies with
    # its next return from the kernel, and the reopening meets "busy" until then, which is said as the
    # reason.
    with trio.CancelScope(shield=True, deadline=trio.current_time() + REAP_S):
        await process.wait()
    with trio.CancelScope(shield=True):
        assert process.stdin is not None
        await trio.aclose_forcefully(process.stdin)
        await trio.aclose_forcefully(stream)
