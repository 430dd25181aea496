"""Receipts as the devices write them, and what a disk does on a bad day."""

import itertools
import random
import resource
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edge_daemon.bench.crash.disk import SimDisk
from edge_daemon.bench.crash.disk_handle import DiskHandle
from edge_daemon.bench.crash.inline_writer import InlineWriter
from edge_daemon.contract import (
    Action,
    Actor,
    FrameNotes,
    Receipt,
    Tap,
    Timing,
    args_summary,
    canonical,
    receipt_action,
)
from edge_daemon.ledger import Acceptance, CommandRef, Ledger, open_ledger

NS_PER_HOUR = 3_600_000_000_000


class Samples:
    """Builds what a test needs to say and nothing else."""

    tap = Tap(x=512.25, y=733.5)
    command = CommandRef(board_uid="a1b2c3d4e5f60718", board_boot_id=0xDEADBEEF, cmd_id=2**64 - 1)

    def pending(
        self, key: str, device_id: str = "phone-1", action: Action = tap, text_digest: str = ""
    ) -> Receipt:
        return Receipt(
            org_id="org_4f8a1c",
            device_id=device_id,
            idempotency_key=key,
            backend_kind="robot_hand",
            action=receipt_action(action),
            args_summary=args_summary(action, text_digest),
            status="pending",
            requested_at="2025-06-01T12:34:56.789Z",
            boot_id="858466a7-a503-42cc-ad20-9af55d11c9a7",
            requested_ns=123_456_789_012_345,
            clock_synced=True,
            actor=Actor(kind="run", id="run_01HZX3", on_behalf_of="user_42"),
            observed_frame="f-8c1b7e2a-000123",
        )

    def committed(self, receipt: Receipt) -> Receipt:
        return msgspec.structs.replace(
            receipt,
            status="committed",
            committed_at="2025-06-01T12:34:57.612Z",
            finished_ns=123_457_612_012_345,
            frame_notes=FrameNotes(age_ms=412.7, newer_frames=6, edge_moved_since=False, settled=True),
            timing=Timing(queued_ms=0.0, accepted_ms=12.25, contact_ms=402.5, hover_ms=610.1),
        )

    async def accept(
        self,
        ledger: Ledger,
        receipt: Receipt,
        *,
        action: Action = tap,
        token: int = 1,
        epoch: int | None = None,
    ) -> Acceptance:
        return await ledger.accept(receipt, canonical(action), token, self.command, epoch)

    async def finished(self, ledger: Ledger, key: str, *, acknowledged: bool = False) -> Receipt:
        """A whole action: accepted, settled and, if asked for, acknowledged."""
        receipt = self.pending(key)
        await self.accept(ledger, receipt)
        await ledger.settle(self.committed(receipt))
        if acknowledged:
            await ledger.acknowledge(receipt.device_id, key)
        return self.committed(receipt)


@pytest.fixture
def samples() -> Samples:
    return Samples()


@pytest.fixture
def ledger_path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "ledger.db"


@pytest.fixture
def no_file_grows_beyond() -> Callable[[int], AbstractContextManager[None]]:
    """The kernel itself refuses to write further than this into any file of the process (EFBIG)."""

    @contextmanager
    def limited(size: int) -> Iterator[None]:
        usual = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, usual[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, usual)

    return limited


class Connections:
    """A `connect` that hands the test the ledger's own connection, to limit it or to listen to its SQL."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.latest: sqlite3.Connection | None = None

    def __call__(self, path: Path) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode=rw&psow=0",
            uri=True,
            isolation_level=None,
            timeout=0,
            check_same_thread=False,
        )
        connection.set_trace_callback(self.statements.append)
        self.latest = connection
        return connection

    def pragma(self, text: str) -> Any:
        """Between two transactions: SQLite serialises the threads that share a connection."""
        assert self.latest is not None
        return self.latest.execute(f"PRAGMA {text}").fetchone()


@pytest.fixture
def connections() -> Connections:
    return Connections()


class SimulatedLedger:
    """A ledger on a simulated disk, one life of the daemon after the other."""

    path = Path("/state/ledger.db")

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.disk = SimDisk(self.rng)
        self._clock = itertools.count(NS_PER_HOUR, 10_000_000)

    def restart_clock(self) -> None:
        """The machine restarts: its monotonic clock begins lower again."""
        self._clock = itertools.count(NS_PER_HOUR // 3600, 10_000_000)

    def open(self, boot_id: str = "boot", latency_s: float = 0.0) -> AbstractAsyncContextManager[Ledger]:
        """In a new life of the daemon; an earlier one is dead. latency_s: of each batch."""
        self.disk.process_death()
        handle = DiskHandle(self.disk, self.rng)
        return open_ledger(
            self.path,
            self._clock.__next__,
            boot_id=boot_id,
            connect=handle.connect,
            files=handle.files(),
            new_writer=partial(InlineWriter, rng=self.rng, latency_s=lambda: latency_s),
        )


@pytest.fixture
def simulated_ledger() -> Callable[[int], SimulatedLedger]:
    """By its seed; for tests in virtual time."""
    return SimulatedLedger
