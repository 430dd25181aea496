"""Who else has a device node open: pid and program, from /proc, for an error that a person can act on."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that has the port; ``program`` is its command name as ps shows it."""

    pid: int
    program: str

    def __str__(self) -> str:
        return f"pid {self.pid} ({self.program})"


def find_holders(path: str) -> list[Holder]:
    """Processes other than this one that have the node open or locked, as far as this user may see them.

    Locks are visible for every process (/proc/locks), open files only for one's own (/proc/PID/fd).
    """
    pids = _lock_owners(path) | _openers(path)
    return [Holder(pid, _program(pid)) for pid in sorted(pids - {os.getpid()})]


def _lock_owners(path: str) -> set[int]:
    try:
        node = os.stat(path)
        lines = Path("/proc/locks").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return set()
    file_id = f"{os.major(node.st_dev):02x}:{os.minor(node.st_dev):02x}:{node.st_ino}"
    # "1: FLOCK  ADVISORY  WRITE 4711 00:05:89 0 EOF"; a process that waits for a lock has "->" in front.
    owners = (line.split() for line in lines if "->" not in line)
    return {
        int(words[4]) for words in owners if len(words) > 5 and words[5] == file_id and words[4].isdigit()
    }


def _openers(path: str) -> set[int]:
    target = os.path.realpath(path)
    return {pid for pid in _all_pids() if _has_open(pid, target)}


def _all_pids() -> list[int]:
    try:
        return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    except OSError:
        return []


def _has_open(pid: int, target: str) -> bool:
    folder = f"/proc/{pid}/fd"
    try:
        return any(os.readlink(f"{folder}/{fd}") == target for fd in os.listdir(folder))
    except OSError:
        # Gone in the meantime, or another user's process.
        return False


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "?"
