"""One run of the capture process, as the daemon sees it: started, read, always killed and reaped."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

import msgspec
import trio

from edge_daemon.cameras.capture import CaptureOrder
from edge_daemon.cameras.errors import PipeError
from edge_daemon.cameras.pipe import MAX_HEADER_BYTES, RECEIVE_FLAGS, RIGHTS_BYTES, Header, take_record

REAP_S = 2.0
"""SIGKILL works at once, except on a process that hangs inside a driver."""
EXIT_S = 1.0
"""From the end of its records to the end of the process: only the interpreter's shutdown."""


_KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(32 << 20), "MALLOC_MMAP_THRESHOLD_": str(32 << 20)}
"""glibc would give the memory of each picture back to the system and fetch it again, page by page, for the next."""


_CUT = int(socket.MSG_TRUNC | socket.MSG_CTRUNC)
"""A number, because Python makes a new flag of each operation on flags."""


class Capturing(Protocol):
    """What the daemon knows of one run of a capture process."""

    @property
    def pid(self) -> int: ...

    async def receive(self) -> list[tuple[Header, bytes]] | None: ...

    async def why_it_ended(self) -> str | None: ...


Capture = Callable[[CaptureOrder], AbstractAsyncContextManager[Capturing]]
"""Starts one; leaving the block ends it."""


class CaptureProcess:
    """Handed out by `capture_process`."""

    def __init__(self, process: trio.Process, sock: socket.socket) -> None:
        self._process = process
        self._sock = sock

    @property
    def pid(self) -> int:
        return self._process.pid

    async def receive(self) -> list[tuple[Header, bytes]] | None:
        """The next records, at least one; None when the process has closed its end.

        Raises PipeError. Cancelling loses nothing.
        """
        # Waited for first: between two pictures there is nothing to be had, and to find that out costs as much.
        await trio.lowlevel.wait_readable(self._sock)
        try:
            message, rights, flags, _ = self._sock.recvmsg(MAX_HEADER_BYTES, RIGHTS_BYTES, RECEIVE_FLAGS)
        except OSError:
            return None
        if not message:
            return None
        record = take_record(message, rights)
        if flags & _CUT:
            raise PipeError(f"a record of more than {MAX_HEADER_BYTES} bytes from the capture process")
        return [record]

    async def why_it_ended(self) -> str | None:
        """In words, from its exit status; None when it ended as it should, having said all there is to say."""
        with trio.move_on_after(EXIT_S):
            await self._process.wait()
        status = self._process.returncode
        if status is None:
            return "the capture process closed its socket and hangs"
        if status == 0:
            return None
        if status < 0:
            return f"the capture process was ended by {signal.Signals(-status).name}"
        return f"the capture process ended with status {status}; its last words are in the log"


@asynccontextmanager
async def capture_process(order: CaptureOrder) -> AsyncIterator[CaptureProcess]:
    """Start the process and give it its order. Leaving the block, for whatever cause, kills and reaps it.

    Raises OSError when no process can be started.
    """
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with here, there:
        process = await trio.lowlevel.open_process(
            [sys.executable, "-m", "edge_daemon.cameras.capture", "--fd", str(there.fileno())],
            stdin=subprocess.PIPE,
            pass_fds=(there.fileno(),),
            env=os.environ | _KEEP_MEMORY,
        )
        there.close()
        here.setblocking(False)
        try:
            await _give(process, order)
            yield CaptureProcess(process, here)
        finally:
            await _end(process)


async def _give(process: trio.Process, order: CaptureOrder) -> None:
    assert process.stdin is not None
    try:
        await process.stdin.send_all(msgspec.json.encode(order) + b"\n")
    except trio.BrokenResourceError:
        # It died before it read its order; whoever receives from it learns how.
        return


async def _end(process: trio.Process) -> None:
    process.kill()
    # Shielded but bounded: a process stuck in a driver must not keep the daemon from ending. It dies with
    # its next return from the kernel, and the reopening meets "busy" until then, which is said as the
    # reason.
    with trio.CancelScope(shield=True, deadline=trio.current_time() + REAP_S):
        await process.wait()
    with trio.CancelScope(shield=True):
        assert process.stdin is not None
        await trio.aclose_forcefully(process.stdin)
