"""The daemon as a process of its own, as systemd would run it: started, waited for, killed, started again."""

import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO

import trio

from edge_daemon.bench.undertaker import Undertaker

READY_S = 30.0
"""A cold start on a loaded machine imports OpenCV and NumPy first."""
STOP_S = 20.0


class DaemonFailed(Exception):
    """The daemon did not become ready, or ended on its own; the message carries the end of its log."""


class DaemonProcess:
    """One configuration, started any number of times. Use `running_daemon`.

    undertaker: ends it when the bench itself was killed.
    """

    def __init__(self, config: Path, log: Path, undertaker: Undertaker) -> None:
        self._config = config
        self._log_path = log
        self._undertaker = undertaker
        self._process: trio.Process | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Returns when the daemon has said READY=1. Raises `DaemonFailed`."""
        async with self._spawned() as notify:
            with trio.move_on_after(READY_S):
                async with trio.open_nursery() as nursery:

                    async def ended() -> None:
                        await self._wait()
                        nursery.cancel_scope.cancel()

                    nursery.start_soon(ended)
                    while b"READY=1" not in await notify.recv(4096):
                        pass
                    nursery.cancel_scope.cancel()
                    return
        raise DaemonFailed(f"the daemon did not become ready; end of its log:\n{self.log_tail()}")

    async def start_and_kill(self, life_s: float) -> None:
        """A start that kill -9 cuts short, ready by then or not; returns when nothing of it runs on."""
        async with self._spawned():
            await trio.sleep(life_s)
            await self.kill()

    @asynccontextmanager
    async def _spawned(self) -> AsyncIterator[trio.socket.SocketType]:
        """The process, and the socket on which it says that it is ready."""
        assert self._process is None or self._process.returncode is not None
        notify_path = self._log_path.with_suffix(".notify")
        notify_path.unlink(missing_ok=True)
        with (
            trio.socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify,
            self._log_path.open("ab") as log,
        ):
            await notify.bind(str(notify_path))
            self._process = await self._spawn(log, notify_path)
            yield notify

    async def _spawn(self, log: IO[bytes], notify_path: Path) -> trio.Process:
        command = [sys.executable, "-m", "edge_daemon", "run", "--config", str(self._config)]
        return await trio.lowlevel.open_process(
            self._undertaker.command(command),
            stdin=self._undertaker.fd,
            stdout=log,
            stderr=log,
            env={**os.environ, "NOTIFY_SOCKET": str(notify_path)},
            # Ctrl-C at the terminal is for the bench, which then stops the daemon as systemd would.
            start_new_session=True,
        )

    async def kill(self) -> None:
        """kill -9: nothing of it runs on; returns when it is gone."""
        assert self._process is not None
        self._process.kill()
        await self._wait()

    async def stop(self) -> int:
        """SIGTERM, as systemd stops it; returns its exit status. Killed when it does not end."""
        if self._process is None:
            return 0
        if self._process.returncode is None:
            self._process.terminate()
            with trio.move_on_after(STOP_S):
                await self._wait()
            if self._process.returncode is None:
                await self.kill()
        assert self._process.returncode is not None
        return self._process.returncode

    async def _wait(self) -> None:
        assert self._process is not None
        await self._process.wait()
        self._undertaker.release(self._process.pid)

    def log_tail(self, lines: int = 30) -> str:
        """The last lines of the daemon's log."""
        text = self._log_path.read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-lines:])


@asynccontextmanager
async def running_daemon(config: Path, log: Path) -> AsyncIterator[DaemonProcess]:
    """A started daemon; stopped and reaped on the way out, whatever happens."""
    with Undertaker() as undertaker:
        daemon = DaemonProcess(config, log, undertaker)
        try:
            await daemon.start()
            yield daemon
        finally:
            with trio.CancelScope(shield=True):
                await daemon.stop()
