"""Ends the processes of a bench that can do so no more: `kill -9` of the bench must not leave a daemon behind.

A process of its own hears from each child who it is, and at the end of its input, which comes with the bench's end
however that came, kills those that are left. Not PR_SET_PDEATHSIG: that follows the thread that forked, and trio
starts processes from threads that end earlier.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import BinaryIO

# The child says who it is before it becomes what it was started for: nobody can die between the two unseen.
_ENROL = 'echo "+$$" >&0; exec "$@" </dev/null'


class Undertaker:
    """`with Undertaker() as undertaker:` – whatever was started through it is gone at the end, or soon after a kill."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Undertaker":
        # Sessions of their own for it and for what it watches: Ctrl-C at the terminal is for the bench alone.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        process, self._process = self._process, None
        assert process is not None
        assert process.stdin is not None
        process.stdin.close()
        process.wait()

    @property
    def fd(self) -> int:
        """To be the standard input of a process that was started with `command`."""
        assert self._process is not None
        assert self._process.stdin is not None
        return self._process.stdin.fileno()

    def command(self, command: Sequence[str]) -> list[str]:
        """The same command, watched. Start it in a session of its own and with `fd` as its standard input; it then
        has the same pid, and nothing on its input."""
        return ["/bin/sh", "-c", _ENROL, "watched", *command]

    def release(self, pid: int) -> None:
        """It has been waited for: its number may be another's soon."""
        # Whoever killed the undertaker has taken what it was for; the bench's own cleaning still stands.
        with contextlib.suppress(BrokenPipeError):
            os.write(self.fd, b"-%d\n" % pid)


def left_at_the_end(lines: Iterable[bytes]) -> list[int]:
    """The process groups that were enrolled and not released."""
    watched: dict[int, None] = {}
    for line in lines:
        pid = int(line[1:])
        if line.startswith(b"+"):
            watched[pid] = None
        else:
            watched.pop(pid, None)
    return list(watched)


def main(lines: BinaryIO) -> None:
    for pid in left_at_the_end(lines):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.stdin.buffer)
