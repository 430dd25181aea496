"""Group commit: what waits is written in one transaction, and nobody is answered before it is durable.

No thread and no waiting in here, so that a simulation can drive it step by step.
"""

import logging
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import outcome
import trio

from edge_daemon.ledger.errors import StorageFault, StorageUnavailable, fault_of, fault_of_os

T = TypeVar("T")
JobKind = Literal["read", "write", "owed"]

CHECKPOINT_AFTER_WRITES = 256
"""About 3 MB of log: pages written many times in between reach the file once."""

_log = logging.getLogger("edge_daemon.ledger")


class Job(Generic[T]):
    """Something for the writer to do with the connection, and who waits for it.

    kind: `read` runs after the batch's commit and sees it; `write` fails when its transaction does; `owed` (the
    outcome of an action that has happened) is kept and tried again until the disk takes it.
    publish: called on the trio thread with the value, after it became durable, waited for or not.
    """

    def __init__(
        self, body: Callable[[], T], kind: JobKind, publish: Callable[[T], None] | None = None
    ) -> None:
        self.body = body
        self.kind = kind
        self.publish = publish
        self.result: outcome.Value[T] | outcome.Error | None = None
        self.done = trio.Event()

    def deliver(self) -> None:
        """On the trio thread."""
        if self.publish is not None and isinstance(self.result, outcome.Value):
            self.publish(self.result.value)
        self.done.set()


Jobs = Sequence[Job[Any]]


class GroupCommit:
    """Owns the transaction. `fault` says why the last one failed; None when it did not.

    `trusted` is False from a failing sync until the ledger could be opened anew: what SQLite would read meanwhile may
    not be what it wrote, and what it would commit may stand behind a gap in its log. Nothing is read or written then.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        reopen: Callable[[], sqlite3.Connection] | None = None,
    ) -> None:
        """reopen: gives a connection to trust, or raises sqlite3.Error, OSError or StorageUnavailable.

        None: there is no way back to trust.
        """
        self._sql = connection
        self._path = path
        self._reopen = reopen
        self.trusted = True
        self._owed: list[Job[Any]] = []
        self._writes_since_checkpoint = 0
        self.fault: StorageFault | None = None

    @property
    def owes(self) -> bool:
        return bool(self._owed)

    def regain_trust(self) -> None:
        """Tries to; why it could not, `fault` says."""
        if self.trusted or self._reopen is None:
            return
        try:
            self._sql = self._reopen()
        except sqlite3.Error as error:
            self._note(self._fault(error))
        except StorageUnavailable as error:
            self._note(error.fault)
        except OSError as error:
            self._note(fault_of_os(error, self._path))
        else:
            self.trusted = True

    def process(self, jobs: Jobs) -> list[Job[Any]]:
        """Runs them; gives back those that have their result, owed ones of earlier calls included.

        What is owed goes first and alone: while the disk refuses even that, nothing new is attempted.
        After a failed commit SQLite may have left a complete transaction in its log that was never synced. The next
        transaction overwrites it in place; so a refused acceptance can only come back when the process dies before
        that. It then comes back as pending and undispatched, and its board says so when it is asked.
        """
        self.regain_trust()
        finished = self._write_owed()
        writes = [job for job in jobs if job.kind != "read"]
        if writes and self._owed:
            finished += self._refuse(writes)
        elif writes:
            finished += self._write(writes)
            if self._owed and finished:
                # The batch failed as a whole; without its new acceptances the outcomes may still fit.
                finished += self._write_owed()
        self.regain_trust()
        for job in jobs:
            if job.kind == "read":
                self._read(job)
                finished.append(job)
        return finished

    def give_up(self) -> list[Job[Any]]:
        """The ledger closes: what is still owed fails, and stays pending for the next start."""
        owed, self._owed = self._owed, []
        for job in owed:
            self._fail(job)
        return owed

    def checkpoint_if_due(self) -> None:
        """Moves the log into the file, off every waiter's path. A failure costs log space and nothing else."""
        if self._writes_since_checkpoint < CHECKPOINT_AFTER_WRITES:
            return
        self._writes_since_checkpoint = 0
        try:
            self._sql.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except sqlite3.Error as error:
            self._doubt(error)
            _log.warning("checkpoint failed, the log goes on growing: %s", self._fault(error))

    def _write_owed(self) -> list[Job[Any]]:
        owed, self._owed = self._owed, []
        return self._write(owed) if owed else []

    def _write(self, jobs: Jobs) -> list[Job[Any]]:
        if self.trusted:
            self._note(self._transact(jobs))
        if self.fault is not None:
            return self._refuse(jobs)
        self._writes_since_checkpoint += len(jobs)
        return list(jobs)

    def _refuse(self, jobs: Jobs) -> list[Job[Any]]:
        """Fails them, but for those owed while the disk may still recover."""
        assert self.fault is not None
        kept = [job for job in jobs if job.kind == "owed" and self.fault.kind != "corrupt"]
        refused = [job for job in jobs if job not in kept]
        self._owed += kept
        for job in refused:
            self._fail(job)
        return refused

    def _fail(self, job: Job[Any]) -> None:
        assert self.fault is not None
        job.result = outcome.Error(self.fault.exception())

    def _transact(self, jobs: Jobs) -> StorageFault | None:
        try:
            self._sql.execute("BEGIN IMMEDIATE")
            if len(jobs) == 1:
                # Nobody else's writes to keep: the usual case, and two statements fewer.
                self._sql.execute("COMMIT" if self._run(jobs[0]) else "ROLLBACK")
                return None
            for job in jobs:
                self._sql.execute("SAVEPOINT job")
                if not self._run(job):
                    self._sql.execute("ROLLBACK TO job")
                self._sql.execute("RELEASE job")
            self._sql.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            self._doubt(error)
            return self._fault(error)
        return None

    def _run(self, job: Job[Any]) -> bool:
        """Whether its writes stand. One that is refused, or mistaken, has to take back its own; a failing disk ends
        the batch."""
        job.result = outcome.capture(job.body)
        if isinstance(job.result, outcome.Value):
            return True
        error = job.result.error
        if isinstance(error, sqlite3.Error) and fault_of(error, self._path) is not None:
            raise error
        if isinstance(error, OSError):
            job.result = outcome.Error(fault_of_os(error, self._path).exception())
        return False

    def _read(self, job: Job[Any]) -> None:
        if not self.trusted:
            self._fail(job)
            return
        job.result = outcome.capture(job.body)
        if isinstance(job.result, outcome.Error) and isinstance(job.result.error, sqlite3.Error):
            fault = fault_of(job.result.error, self._path)
            if fault is not None:
                job.result = outcome.Error(fault.exception())

    def _doubt(self, error: sqlite3.Error) -> None:
        if error.sqlite_errorcode == sqlite3.SQLITE_IOERR_FSYNC:
            self.trusted = False
            self._note(self._fault(error))

    def _roll_back(self) -> None:
        if not self._sql.in_transaction:  # SQLite rolls back by itself after some errors
            return
        try:
            self._sql.execute("ROLLBACK")
        except sqlite3.Error as error:
            _log.warning("rollback failed: %s", self._fault(error))

    def _fault(self, error: sqlite3.Error) -> StorageFault:
        return fault_of(error, self._path) or StorageFault("io", self._path, str(error))

    def _note(self, fault: StorageFault | None) -> None:
        if fault is not None and self.fault is None:
            _log.error("%s", fault)
        if fault is None and self.fault is not None:
            _log.warning("ledger %s: the disk takes writes again", self._path)
        self.fault = fault
