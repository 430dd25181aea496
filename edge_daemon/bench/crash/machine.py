"""One boot of the rig's computer, and one life of the daemon on it: the product's own composition, in memory."""

import random
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

from edge_daemon.bench.crash.disk_handle import DiskHandle
from edge_daemon.bench.crash.inline_writer import InlineWriter
from edge_daemon.bench.crash.rooms import CAMERA_PX
from edge_daemon.bench.crash.streams import Hands, Wire
from edge_daemon.bench.crash.virtual_clock import sleep
from edge_daemon.boards import Board
from edge_daemon.boards.port import Port
from edge_daemon.cameras import pipe
from edge_daemon.cameras.camera import Camera
from edge_daemon.cameras.capture import CaptureOrder
from edge_daemon.cameras.sources import CameraSource
from edge_daemon.clock import PlaneClock
from edge_daemon.config import BoardSection
from edge_daemon.contract import Refused
from edge_daemon.daemon import Machine, run_rig
from edge_daemon.devices.fleet import Fleet
from edge_daemon.leaves import leaves
from edge_daemon.ledger import Ledger, LedgerError, Retention, open_ledger
from edge_daemon.staff.unattended import Unattended
from edge_daemon.upstream.handshake import Role
from edge_daemon.upstream.server import EdgeIdentity, Server

if TYPE_CHECKING:
    from edge_daemon.bench.crash.world import World

UP_NS = 20_000_000_000
"""What the monotonic clock of a machine shows when its daemon is first started."""
FOREVER_S = 1e6
UNIX_S = 1_767_225_600.0
"""The wall clock at the beginning, if nobody has set it wrong: 2026-01-01."""


@dataclass(frozen=True)
class Boot:
    """One boot of the machine: its id, and when its monotonic clock began, on the world's."""

    number: int
    began_ns: int
    now_ns: Callable[[], int]
    """Of the world."""
    up_ns: int = UP_NS
    """What it shows at `began_ns`."""

    @property
    def zero_ns(self) -> int:
        """When it showed 0."""
        return self.began_ns - self.up_ns

    @property
    def id(self) -> str:
        return f"boot-{self.number}"

    def monotonic_ns(self) -> int:
        return self.now_ns() - self.zero_ns


class Life:
    """One daemon process from its start to its end, however that comes."""

    def __init__(self, world: "World", number: int, boot: Boot) -> None:
        self.number = number
        self.boot = boot
        self.hands = Hands()
        self.ended = trio.Event()
        self.how = ""
        self._world = world
        self._rng = random.Random(f"{world.seed}:life {number}")
        self._handle = DiskHandle(world.disk, self._rng)
        self._scope = trio.CancelScope()
        self._told_to_stop = trio.Event()
        self._wires: list[Wire] = []
        self._server: Server | None = None
        self._doorman: trio.Nursery | None = None
        self._ledger: Ledger | None = None

    # -- from outside ------------------------------------------------------------------------------------------

    def accept(self, role: Role) -> Wire:
        """Raises OSError while nobody listens."""
        if self._server is None or self._doorman is None or self.hands.tied:
            raise ConnectionRefusedError("no daemon listens")
        wire = Wire(self.hands, self._world.points)
        self._wires = [old for old in self._wires if not old.over]
        self._wires.append(wire)
        self._doorman.start_soon(self._server.serve_connection, role, None, wire.edge_end)
        return wire

    def terminate(self) -> None:
        self._told_to_stop.set()

    def die(self, how: str) -> None:
        """At this very moment: whatever its tasks still try has no effect."""
        self.hands.tied = True
        self._handle.cut()
        for wire in self._wires:
            wire.edge_died()
        self._scope.cancel()
        self._end(how)

    def prune(self, keep_newest: int) -> None:
        """Retention lets go everything final and acknowledged but the newest, as if it were old."""
        in_service = self._server is not None and not self.hands.tied
        if in_service and self._doorman is not None and self._ledger is not None:
            self._doorman.start_soon(self._prune, self._ledger, keep_newest)

    async def _prune(self, ledger: Ledger, keep_newest: int) -> None:
        self._world.schedule.pruned_ns.append(self._world.now_ns())
        try:
            removed = await Retention(ledger, 0.0, keep_newest).round()
        except Refused:
            return
        self._world.note(f"{removed} receipts were let go")

    def lose_power(self) -> None:
        for wire in self._wires:
            wire.lose_power()

    # -- the process -------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Never raises: how the process ended stands in `how`."""
        try:
            with self._scope:
                await self._run_rig()
                self._end("stopped")
        except Exception as error:  # noqa: BLE001 - whatever ends a process, the world goes on
            self._end(self._why(error))

    def _why(self, error: Exception) -> str:
        """Only what the ledger refuses at the start is an end that the daemon may come to by itself."""
        found = list(leaves(error)) if isinstance(error, BaseExceptionGroup) else [error]
        if all(isinstance(one, LedgerError) for one in found):
            return f"refused: {'; '.join(map(str, found))}"
        if not self.hands.tied:
            self._world.note("".join(traceback.format_exception(error)))
        return f"crashed: {'; '.join(map(repr, found))}"

    def _end(self, how: str) -> None:
        if not self.ended.is_set():
            self.how = how
            self.hands.tied = True
            self._handle.cut()
            for wire in self._wires:
                wire.edge_died()
            self.ended.set()

    async def _run_rig(self) -> None:
        world, boot = self._world, self.boot
        machine = Machine(
            boot.id,
            boot.monotonic_ns,
            world.wall_s,
            self._rng.getrandbits,
            _at_once,
            self._open_ledger,
            self._make_board,
            self._make_camera,
        )
        await run_rig(world.config, machine, Unattended({}), self._listen, self._told_to_stop.wait)

    async def _listen(
        self, fleet: Fleet, clock: PlaneClock, task_status: trio.TaskStatus[object] = trio.TASK_STATUS_IGNORED
    ) -> None:
        identity = EdgeIdentity(self._world.config.edge.id, self.boot.id)
        async with trio.open_nursery() as self._doorman:
            self._server = Server(
                fleet,
                identity,
                clock,
                monotonic_ns=self.boot.monotonic_ns,
                random_bytes=self._rng.randbytes,
            )
            task_status.started()
            try:
                await trio.sleep_forever()
            finally:
                # Who is in is still served while the doorman leaves; nobody new is let in.
                self._server = None

    @asynccontextmanager
    async def _open_ledger(self, path: Path) -> AsyncIterator[Ledger]:
        world = self._world
        async with open_ledger(
            path,
            self.boot.monotonic_ns,
            boot_id=self.boot.id,
            connect=self._handle.connect,
            files=self._handle.files(),
            new_writer=lambda retry_s: InlineWriter(
                retry_s, rng=self._rng, latency_s=lambda: world.disk_latency_s, sleep=sleep
            ),
        ) as ledger:
            self._ledger = ledger
            yield ledger

    def _make_board(self, name: str, section: BoardSection) -> Board:
        line = self._world.lines[name]

        async def open_port(path: str, baudrate: int) -> Port:
            return await line.open_port(self.hands)

        return Board(
            name,
            section.port,
            section.uid,
            section.kind,
            now_ns=self.boot.monotonic_ns,
            open_port=open_port,
            random_bytes=self._rng.randbytes,
        )

    def _make_camera(self, name: str, source: CameraSource) -> Camera:
        return Camera(
            name,
            source,
            silence_s=FOREVER_S,
            look_every_s=FOREVER_S,
            capture=partial(_one_picture, self.boot.monotonic_ns),
            now_ns=self.boot.monotonic_ns,
            in_thread=_at_once,
        )


async def _at_once(work: Callable[..., Any], *arguments: Any) -> Any:
    """In place of a thread: what blocks for a file in memory does not block."""
    await trio.lowlevel.checkpoint()
    return work(*arguments)


class _OnePicture:
    """A capture process that gives one picture and nothing more: no history looks at any."""

    pid = 0

    def __init__(self, at_ns: int) -> None:
        self._at_ns = at_ns
        self._given = False

    async def receive(self) -> list[tuple[pipe.Header, bytes]] | None:
        await trio.lowlevel.checkpoint()
        if self._given:
            await trio.sleep_forever()
        self._given = True
        width, height = CAMERA_PX
        frame = pipe.Frame(
            sequence=1,
            stamp_ns=self._at_ns,
            exposed_ns=self._at_ns,
            exposed_about_ns=self._at_ns,
            captured_about_ns=self._at_ns,
            received_ns=self._at_ns,
            width=width,
            height=height,
            crc32=0,
            dropped=0,
            broken=0,
            jpeg_bytes=1,
        )
        return [(pipe.Opened(), b""), (frame, b"\xff")]

    async def why_it_ended(self) -> str | None:
        return None


@asynccontextmanager
async def _one_picture(now_ns: Callable[[], int], order: CaptureOrder) -> AsyncIterator[_OnePicture]:
    yield _OnePicture(now_ns())
