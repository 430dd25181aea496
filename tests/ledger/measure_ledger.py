"""What an accepted and settled action costs, beside two bare SQLite commits on the same disk in the same run.

    python tests/ledger/measure_ledger.py [DIRECTORY]

Figures, no verdict: they belong to the disk and the machine they were taken on.
"""

import os
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import msgspec
import trio

from edge_daemon.contract import Actor, FrameNotes, Receipt, Timing
from edge_daemon.ledger import CommandRef, Ledger, connect_file, open_ledger

ACTIONS = 300
PHONES = 8
KEPT = 10_000


def pending(key: str, device_id: str = "phone-1") -> Receipt:
    return Receipt(
        org_id="org_4f8a1c",
        device_id=device_id,
        idempotency_key=key,
        backend_kind="robot_hand",
        action="tap",
        args_summary={"x": 512.25, "y": 733.5},
        status="pending",
        requested_at="2025-06-01T12:34:56.789Z",
        boot_id="858466a7-a503-42cc-ad20-9af55d11c9a7",
        requested_ns=123_456_789_012_345,
        clock_synced=True,
        actor=Actor(kind="run", id="run_01HZX3", on_behalf_of="user_42"),
        observed_frame="f-8c1b7e2a-000123",
    )


def committed(receipt: Receipt) -> Receipt:
    return msgspec.structs.replace(
        receipt,
        status="committed",
        committed_at="2025-06-01T12:34:57.612Z",
        finished_ns=123_457_612_012_345,
        frame_notes=FrameNotes(age_ms=412.7, newer_frames=6, edge_moved_since=False, settled=True),
        timing=Timing(queued_ms=0.0, accepted_ms=12.25, contact_ms=402.5, hover_ms=610.1),
    )


def bytes_to_disk() -> int:
    """What this process made the kernel write to block devices so far (proc(5), io: write_bytes)."""
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("write_bytes"))


def say(line: str) -> None:
    sys.stdout.write(line + "\n")


async def act(ledger: Ledger, key: str, device_id: str = "phone-1") -> None:
    receipt = pending(key, device_id)
    command = CommandRef(board_uid="a1b2c3d4e5f60718", board_boot_id=1, cmd_id=2**63)
    await ledger.accept(receipt, key.encode("ascii"), 1, command)
    await ledger.settle(committed(receipt))


def bare_table(directory: Path) -> sqlite3.Connection:
    """A table of one row in the ledger's own settings: what durability itself costs here."""
    path = directory / "bare.db"
    path.touch()
    connection = connect_file(path)
    for setting in ("journal_mode = WAL", "synchronous = FULL", "wal_autocheckpoint = 0"):
        connection.execute(f"PRAGMA {setting}").fetchall()
    connection.execute("CREATE TABLE bare (id INTEGER PRIMARY KEY, value BLOB)")
    connection.execute("INSERT INTO bare VALUES (1, ?)", (b"",))
    return connection


def bare_pair_s(connection: sqlite3.Connection, content: bytes) -> float:
    begun = time.perf_counter()
    for _ in range(2):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE bare SET value = ?", (content,))
        connection.execute("COMMIT")
    return time.perf_counter() - begun


async def one_phone(path: Path, directory: Path) -> None:
    connection = bare_table(directory)
    bare_s: list[float] = []
    ledger_s: list[float] = []
    log_bytes: list[int] = []
    disk_bytes = 0
    log = Path(f"{path}-wal")
    async with open_ledger(path) as ledger:
        for number in range(ACTIONS):
            bare_s.append(bare_pair_s(connection, os.urandom(500)))
            log_before, disk_before, begun = log.stat().st_size, bytes_to_disk(), time.perf_counter()
            await act(ledger, f"one-{number}")
            ledger_s.append(time.perf_counter() - begun)
            log_bytes.append(log.stat().st_size - log_before)
            disk_bytes += bytes_to_disk() - disk_before
    connection.close()
    grown = [size for size in log_bytes if size > 0]  # none where the log is used again
    say(
        f"accept + settle, one phone: {median(ledger_s) * 1e3:.2f} ms, two bare commits: "
        f"{median(bare_s) * 1e3:.2f} ms, ratio {median(ledger_s) / median(bare_s):.2f} (medians of {ACTIONS})"
    )
    say(
        f"log per accept + settle: {sum(grown) / len(grown):.0f} B; "
        f"to the device with checkpoints and the file system's journal: {disk_bytes / ACTIONS:.0f} B"
    )


async def many_phones(path: Path) -> None:
    async def phone(ledger: Ledger, name: str) -> None:
        for number in range(ACTIONS // PHONES):
            await act(ledger, f"many-{number}", name)

    disk_before, begun = bytes_to_disk(), time.perf_counter()
    async with open_ledger(path) as ledger:
        async with trio.open_nursery() as nursery:
            for number in range(PHONES):
                nursery.start_soon(phone, ledger, f"phone-{number}")
        taken_s = time.perf_counter() - begun
    count = ACTIONS // PHONES * PHONES
    say(
        f"{PHONES} phones at once: {taken_s / count * 1e3:.2f} ms an action, "
        f"{(bytes_to_disk() - disk_before) / count:.0f} B to the device"
    )


async def opening(path: Path) -> None:
    async with open_ledger(path) as ledger, trio.open_nursery() as nursery:
        for number in range(KEPT):
            nursery.start_soon(act, ledger, f"kept-{number}")
    begun = time.perf_counter()
    async with open_ledger(path):
        taken_s = time.perf_counter() - begun
    say(f"opening with {KEPT} receipts kept ({path.stat().st_size / 2**20:.1f} MiB): {taken_s * 1e3:.0f} ms")


async def measure(directory: Path) -> None:
    say(f"SQLite {sqlite3.sqlite_version}, {directory}")
    await one_phone(directory / "one.db", directory)
    await many_phones(directory / "many.db")
    await opening(directory / "kept.db")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as temporary:
        trio.run(measure, Path(temporary))
