"""The world around a daemon: machine, disk, boards, phones, and who kills, stops and starts the daemon in it."""

import errno
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import trio

from edge_daemon.bench.crash.disk import CARD_BYTES, DiskError, DiskOp, SimDisk, Snapshot
from edge_daemon.bench.crash.disk_file import Keep
from edge_daemon.bench.crash.lines import Line
from edge_daemon.bench.crash.machine import UNIX_S, UP_NS, Boot, Life
from edge_daemon.bench.crash.notes import Notebook, Schedule
from edge_daemon.bench.crash.phones import Phone
from edge_daemon.bench.crash.points import PointKind, Points
from edge_daemon.bench.crash.rooms import boards_of, config_of
from edge_daemon.bench.crash.streams import Wire
from edge_daemon.bench.crash.virtual_clock import running_clock
from edge_daemon.config import Config
from edge_daemon.upstream.handshake import Role

RESTART_S = 0.1
"""From a death to systemd's next start. A real unit waits longer; nothing depends on it."""
REFUSED_RESTART_S = 1.0
POWER_OFF_S = 0.5
DISK_LATENCY_S = 0.0005
"""Of a batch; quicker than a card, so that a history is short."""

_SYNCS = frozenset(("sync", "dirsync"))


@dataclass(frozen=True)
class Copy:
    """Of a card, and when it was made."""

    at_ns: int
    card: Snapshot


class World:
    """Everything but planes and staff. One seed, one world."""

    def __init__(self, seed: str, kinds: Sequence[str], layouts: Sequence[str] = ()) -> None:
        self.seed = seed
        self.rng = random.Random(f"{seed}:world")
        self.config: Config = config_of(tuple(kinds))
        self.points = Points()
        self.now_ns = running_clock().now_ns
        self.schedule = Schedule()
        self.notebook = Notebook()
        self.disk = SimDisk(random.Random(f"{seed}:disk"))
        self.disk.hook = self._before_disk
        self.disk.after_hook = self._behind_disk
        self.disk_latency_s = DISK_LATENCY_S
        self.next_disk_error: int | None = None
        self._disk_fails_until_ns = 0
        self.wall_step_s = 0.0
        self.boards = boards_of(tuple(kinds), tuple(layouts))
        self.phones = {board.device: Phone(board.device, self.now_ns) for board in self.boards}
        self.lines = {
            board.name: Line(board, self.phones[board.device], self.points, self.schedule, self.now_ns, seed)
            for board in self.boards
        }
        self.life: Life | None = None
        self.lives = 0
        self.boot = Boot(1, 0, self.now_ns)
        self.before_next_start: Callable[[], None] | None = None
        """Done while no daemon runs: what somebody does to the card meanwhile."""
        self.stopped_ns: int | None = None
        """When the daemon was last told to stop."""
        self._power_back_ns = 0
        self._switched_on = trio.Event()
        self.nursery: trio.Nursery
        self.at_the_rig = trio.Lock()
        """One person at a time takes devices and screens, and gives them back."""
        self.copies: list[Copy] = []
        """Of the card, from before each start of the daemon."""
        self._busy = 0
        self._idle = trio.Event()

    # -- what is there -----------------------------------------------------------------------------------------

    @property
    def devices(self) -> list[str]:
        return list(self.phones)

    def line_of(self, device: str) -> Line:
        """Of the board that touches."""
        return next(line for line in self.lines.values() if line.place.device == device)

    def has(self, device: str, kind: str) -> bool:
        """Whether the device has a board of this kind."""
        return any(board.device == device and board.kind == kind for board in self.boards)

    @property
    def ledger_path(self) -> Path:
        return self.config.ledger_path

    def connect(self, role: Role) -> Wire:
        """A connection to the daemon. Raises OSError while none listens."""
        if self.life is None:
            raise ConnectionRefusedError("no daemon listens")
        return self.life.accept(role)

    # -- life and death ----------------------------------------------------------------------------------------

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """The world turns until cancelled; the daemon is started whenever it is down, as systemd would.

        Nothing begins before it is switched on, so that whatever is armed until then can strike at the first point.
        """
        async with trio.open_nursery() as self.nursery:
            for line in self.lines.values():
                self.nursery.start_soon(line.run)
            task_status.started()
            await self._switched_on.wait()
            while True:
                pause_s = await self._one_life()
                await trio.sleep(pause_s)
                await trio.sleep(max(0.0, (self._power_back_ns - self.now_ns()) / 1e9))

    def switch_on(self) -> None:
        self._switched_on.set()

    async def _one_life(self) -> float:
        """One start of the daemon and its end; returns how long until the next."""
        if self.before_next_start is not None:
            meanwhile, self.before_next_start = self.before_next_start, None
            meanwhile()
        self.copies.append(self.copy_card())
        self.schedule.boots[self.boot.id] = self.boot.zero_ns
        self.lives += 1
        self.life = life = Life(self, self.lives, self.boot)
        self.note(f"daemon {life.number} starts")
        self.nursery.start_soon(life.run)
        await life.ended.wait()
        self.life = None
        self.note(f"daemon {life.number} ended: {life.how}")
        if life.how.startswith("crashed"):
            self.schedule.crashes.append(life.how)
        return REFUSED_RESTART_S if life.how.startswith("refused") else RESTART_S

    def kill(self) -> None:
        """SIGKILL, at this very moment."""
        life = self.life
        if life is None or life.hands.tied:
            return
        life.die("killed")
        self.schedule.deaths_ns.append(self.now_ns())
        self.disk.process_death()
        for line in self.lines.values():
            line.let_go()

    def cut_power(self, keep: Keep, *, boards: bool = False, up_ns: int = UP_NS) -> None:
        """The machine loses its power, with `boards` all boards too. It comes back with another boot id.

        up_ns: what its monotonic clock shows when its daemon is started again.
        """
        self.note(f"power cut, {keep} kept of what was not synced{', boards too' if boards else ''}")
        self.kill()
        if self.life is not None:
            self.life.lose_power()
        self.disk.power_cut(keep, self.rng)
        self._power_back_ns = self.now_ns() + int(POWER_OFF_S * 1e9)
        self.boot = Boot(self.boot.number + 1, self._power_back_ns, self.now_ns, up_ns)
        if boards:
            for line in self.lines.values():
                line.lose_power(int(POWER_OFF_S * 1000))

    def stop(self) -> None:
        """SIGTERM."""
        self.stopped_ns = self.now_ns()
        if self.life is not None:
            self.life.terminate()

    def wall_s(self) -> float:
        """The machine's wall clock, as the daemon reads it."""
        if self.wall_step_s:
            self.schedule.signs["wrong wall clock read"] += 1
        return UNIX_S + trio.current_time() + self.wall_step_s

    def heal(self) -> None:
        """Nothing is wrong with lines and disk any more."""
        for line in self.lines.values():
            line.heal()
        self.disk.free_bytes = CARD_BYTES
        self.disk_latency_s = DISK_LATENCY_S
        self.next_disk_error = None
        self._disk_fails_until_ns = 0

    def soon(self, act: Callable[..., Awaitable[object]], *arguments: object) -> None:
        """Somebody in the world begins something now."""

        async def begin() -> None:
            try:
                await act(*arguments)
            finally:
                self._busy -= 1
                if not self._busy:
                    self._idle.set()

        if not self._busy:
            self._idle = trio.Event()
        self._busy += 1
        self.nursery.start_soon(begin)

    @property
    def idle(self) -> bool:
        """Nobody who began something is still at it."""
        return not self._busy

    async def wait_idle(self) -> None:
        """Until everybody who began something has finished it."""
        while self._busy:
            await self._idle.wait()

    def later(self, after_ms: int, action: Callable[[], None]) -> None:
        async def wait() -> None:
            await trio.sleep(after_ms / 1000)
            action()

        self.nursery.start_soon(wait)

    # -- the disk ----------------------------------------------------------------------------------------------

    def _before_disk(self, op: DiskOp) -> None:
        self.points.before(_point_of(op))
        error, self.next_disk_error = self.next_disk_error, None
        if error is None and self.now_ns() < self._disk_fails_until_ns:
            error = errno.EIO
        if error is not None:
            self.schedule.signs["disk refused"] += 1
            raise DiskError(error)

    def fail_disk(self, for_ms: int) -> None:
        """Every write and sync fails with an error for a while."""
        self._disk_fails_until_ns = self.now_ns() + for_ms * 1_000_000

    def empty_disk(self) -> None:
        """There is room again."""
        self.disk.free_bytes = CARD_BYTES

    def prune(self, keep_newest: int) -> None:
        """Retention, as if all that is final were old."""
        if self.life is not None:
            self.life.prune(keep_newest)

    def meanwhile(self, action: Callable[[], None]) -> None:
        """While no daemon runs, before its next start."""
        self.before_next_start = action

    def copy_card(self) -> "Copy":
        return Copy(self.now_ns(), self.disk.snapshot())

    def put_back(self, copy: "Copy") -> None:
        """An older copy of the ledger takes the place of its file; the file beside it stays as it is."""
        name = str(self.ledger_path)
        card = {path: content for path, content in self.disk.snapshot().items() if not _is_ledger(path, name)}
        self.disk.restore(
            card | {path: content for path, content in copy.card.items() if _is_ledger(path, name)}
        )
        self.schedule.ledger_lost_ns.append(self.now_ns())
        self.schedule.put_back.append((self.now_ns(), copy.at_ns))
        self.note("an older copy of the ledger was put back")

    def delete_ledger(self) -> None:
        name = str(self.ledger_path)
        card = {path: content for path, content in self.disk.snapshot().items() if not _is_ledger(path, name)}
        self.disk.restore(card)
        self.schedule.ledger_lost_ns.append(self.now_ns())
        self.note("the ledger was deleted")

    def replace_card(self) -> None:
        self.disk.restore({})
        self.schedule.ledger_lost_ns.append(self.now_ns())
        self.note("the card was replaced by an empty one")

    def _behind_disk(self, op: DiskOp) -> None:
        self.points.behind(_point_of(op))

    # -- notes -------------------------------------------------------------------------------------------------

    def note(self, what: str) -> None:
        self.schedule.life.append((self.now_ns(), what))


def _is_ledger(path: str, name: str) -> bool:
    """The ledger and its log, without the witness and the lock beside it."""
    return path in (name, f"{name}-wal", f"{name}-shm")


def _point_of(op: DiskOp) -> PointKind:
    return "disk sync" if op.kind in _SYNCS else "disk write"
