"""A whole simulated rig: two boards on serial lines, a hand over a phone, a camera above both."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from math import radians
from pathlib import Path
from types import TracebackType
from typing import Literal

import trio

from edge_daemon.bench.twin.boards import (
    ROM_TEXT,
    BoardProcess,
    BoardSpec,
    Kind,
    ResetCause,
    Runtime,
    available_runtime,
)
from edge_daemon.bench.twin.camera import CameraTwin, Trouble
from edge_daemon.bench.twin.frames import HOME
from edge_daemon.bench.twin.hidhost import PLAIN_HABITS, POLL_NS, HidHost, PhoneOs
from edge_daemon.bench.twin.line import SerialLine
from edge_daemon.bench.twin.mechanics import Hand, TipPose
from edge_daemon.bench.twin.phone import Phone
from edge_daemon.bench.twin.physics import Physics
from edge_daemon.bench.twin.truth import Truth

Part = Literal["hand", "hid", "camera"]

# sun_path holds 108 bytes with its final zero; "/hand.wire" is the longest name below the directory.
MAX_SOCKET_PATH = 107


class RigError(RuntimeError):
    """The simulated rig cannot be built or does not come about; the message says why."""


class SimulatedRig:
    """`async with SimulatedRig(seed, directory) as rig:` – every process and thread of it is gone at the end.

    seed: draws the hidden truth. directory: for ports, sockets and logs; must exist and have a short path.
    layout and os: what the phone is set to. boards: which boards are there. runtime: None takes MicroPython
    where it is installed. camera: False leaves the camera out. hid_poll_ns: how often the phone asks the HID board
    for a report. hand_options: more options of the hand's firmware. hidden_hid: the phone maps a HID board's
    coordinates by the truth's margins and scale; without it the whole digitizer is the whole screen.
    """

    def __init__(
        self,
        seed: int,
        directory: Path,
        *,
        layout: str = "us",
        os: PhoneOs = "android",
        boards: tuple[Kind, ...] = ("hand", "hid"),
        camera: bool = True,
        runtime: Runtime | None = None,
        hid_poll_ns: int = POLL_NS,
        hand_options: tuple[str, ...] = (),
        hidden_hid: bool = False,
    ) -> None:
        longest = directory / "hand.wire"
        if len(str(longest).encode()) > MAX_SOCKET_PATH:
            raise RigError(f"{longest} is too long for a unix socket; give a shorter directory")
        self.truth = Truth(seed)
        self.phone = Phone(self.truth)
        self.runtime: Runtime = runtime or available_runtime()
        self.hand_uid = _uid("4a", seed)
        self.hid_uid = _uid("4b", seed)
        self._directory = directory
        self._os = os
        self._layout = layout
        self._kinds = boards
        self._with_camera = camera
        self._hid_poll_ns = hid_poll_ns
        self._hand_options = hand_options
        self._habits = self.truth.hid if hidden_hid else PLAIN_HABITS
        self._placement = HOME
        self._running: AbstractAsyncContextManager[None] | None = None

    async def __aenter__(self) -> "SimulatedRig":
        self._running = self._run()
        await self._running.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        assert self._running is not None
        try:
            return await self._running.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            # The nurseries in here are nobody's business: a lone failure comes out as itself.
            alone = _lone(group)
            if alone is None:
                raise
            if alone is not error:
                raise alone from None
            return False

    # -- how the daemon finds it ---------------------------------------------------------------------

    @property
    def hand_port(self) -> str:
        """The hand's serial port, a stable name as under /dev/serial/by-id."""
        return str(self._lines["hand"].port)

    @property
    def hid_port(self) -> str:
        """The HID board's serial port."""
        return str(self._lines["hid"].port)

    @property
    def camera_url(self) -> str:
        """The camera's stream on loopback, with µStreamer's stamps."""
        return self.camera.url

    def line(self, kind: Kind) -> SerialLine:
        """A board's serial line, to make it a bad one."""
        return self._lines[kind]

    # -- what the bench may know ------------------------------------------------------------------------

    def hand_true_tip(self) -> TipPose:
        """Where the stylus really is: screen mm and height over the glass."""
        return self.hand.pose()

    @property
    def hid_faults(self) -> list[str]:
        """What the phone's kernel did not understand of the HID board, in words."""
        with self._physics.lock:
            return [fault.message for fault in self.hid_host.faults]

    async def wait_for(self, condition: Callable[[], bool], timeout_s: float = 5.0) -> None:
        """Until `condition` holds; it is looked at after everything that happens to phone, hand and HID host.

        Raises RigError after timeout_s. Cancellation leaves nothing behind.
        """
        self._waiting += 1
        try:
            with trio.move_on_after(timeout_s):
                while True:
                    change = self._change
                    if condition():
                        return
                    await change.wait()
        finally:
            self._waiting -= 1
        raise RigError(f"the phone did not come to what was waited for within {timeout_s} s")

    # -- what may go wrong ----------------------------------------------------------------------------------

    async def reset_board(self, kind: Kind, cause: ResetCause = "watchdog") -> None:
        """The chip restarts: its boot ROM babbles on the line, the drives keep their last setpoint."""
        await self._boards[kind].kill()
        await self._start_board(kind, cause)

    async def kill(self, part: Part) -> None:
        """A board loses its power, or the camera's server dies; everything stays plugged in."""
        if part == "camera":
            await trio.to_thread.run_sync(self.camera.kill_server)
            return
        await self._boards[part].kill()
        with self._physics.lock:
            self._lines[part].detach_board()
        self._physics.wake()
        if part == "hand":
            self._physics.power_off_hand()
        else:
            self._physics.unplug_usb()

    async def revive(self, part: Part) -> None:
        """What kill() ended starts again."""
        if part == "camera":
            self.camera.restart_server()
        else:
            await self._start_board(part, "power_on")

    async def unplug(self, part: Part, *, keeps_power: bool = False) -> None:
        """Pull the cable. A board loses its power with it unless it is fed from elsewhere (keeps_power)."""
        if part == "camera":
            self.camera.set_trouble(Trouble.UNPLUGGED)
            return
        if not keeps_power and self._boards[part].running:
            await self.kill(part)
        with self._physics.lock:
            self._lines[part].unplug()
        self._physics.wake()

    async def plug(self, part: Part) -> None:
        """Put the cable back: a new port under the old name; a board without power starts."""
        if part == "camera":
            self.camera.set_trouble(Trouble.NONE)
            return
        with self._physics.lock:
            self._lines[part].plug()
        self._physics.wake()
        if not self._boards[part].running:
            await self._start_board(part, "power_on")

    def push_hand(self, dx_mm: float, dy_mm: float, dz_mm: float) -> None:
        """Somebody shoves the arm."""
        self._physics.push_hand(dx_mm, dy_mm, dz_mm)

    def nudge_phone(self, dx_mm: float, dy_mm: float, turn_deg: float = 0.0) -> None:
        """Somebody shoves the phone on the bed: from hand and camera it lies elsewhere; see frames.Placement."""
        self._placement = self._placement.nudged(dx_mm, dy_mm, radians(turn_deg))
        self._physics.place_phone(self._placement)
        self.camera.place_phone(self._placement)

    def reboot_phone(self) -> None:
        """The phone restarts: HID boards are taken again later, a pointer's scale may have changed."""
        self._physics.reboot_phone()

    def suspend_phone(self, suspended: bool) -> None:
        """The phone's USB host goes to sleep, or wakes: no report is taken in between."""
        self._physics.suspend_usb(suspended)

    def set_caps_lock(self, on: bool) -> None:
        """Another keyboard toggles caps lock on the phone."""
        self._physics.set_caps_lock(on)

    # -- life --------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _run(self) -> AsyncIterator[None]:
        token = trio.lowlevel.current_trio_token()
        self._change = trio.Event()
        self._waiting = 0

        def changed() -> None:
            # Called from any thread; without a waiter it may be after the loop has ended.
            if self._waiting:
                token.run_sync_soon(self._changed)

        self.phone.on_change(changed)
        now_ns = self.phone.started_ns
        self.hand = Hand(self.truth, now_ns)
        self.hid_host = HidHost(
            self.phone, self._layout, self._os, poll_ns=self._hid_poll_ns, habits=self._habits
        )
        self.camera = CameraTwin(self.truth, self.phone, self.hand)
        self._physics = Physics(self.phone, self.hand, self.hid_host, self._directory, changed)
        self._lines = {kind: self._make_line(kind) for kind in self._kinds}
        self._boards = {kind: self._make_board(kind) for kind in self._kinds}
        try:
            async with trio.open_nursery() as world:
                # Threads of the nursery's own, so that a failure in one of them ends the rig loudly.
                world.start_soon(_in_thread, self._physics.run)
                if self._with_camera:
                    self.camera.open()
                    world.start_soon(_in_thread, self.camera.run)
                try:
                    async with self._powered_boards():
                        yield
                finally:
                    self._physics.stop()
                    self.camera.stop()
        finally:
            # Also while being cancelled: what is left open here is found by whoever collects the garbage.
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(self.camera.close)
            self._physics.close()
            for line in self._lines.values():
                line.close()

    @asynccontextmanager
    async def _powered_boards(self) -> AsyncIterator[None]:
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            try:
                for kind in self._kinds:
                    with self._physics.lock:
                        self._lines[kind].plug()
                        self._physics.lines.append(self._lines[kind])
                    await self._start_board(kind, "power_on")
                yield
            finally:
                for board in self._boards.values():
                    await board.kill()
                nursery.cancel_scope.cancel()

    async def _start_board(self, kind: Kind, cause: ResetCause) -> None:
        board = self._boards[kind]
        with self._physics.lock:
            end = board.line.attach_board()
            board.line.send_as_board(ROM_TEXT)
        self._physics.wake()
        await board.start(end, cause, self._nursery)

    def _make_line(self, kind: Kind) -> SerialLine:
        uid = self.hand_uid if kind == "hand" else self.hid_uid
        port = self._directory / "by-id" / f"usb-Twin_{kind}_board_{uid}-if00"
        return SerialLine(port, self.truth.stream(21 if kind == "hand" else 22))

    def _make_board(self, kind: Kind) -> BoardProcess:
        if kind == "hand":
            spec = BoardSpec("hand", self.hand_uid, self._hand_options)
            wire_path = self._physics.hand_wire.path
        else:
            spec = BoardSpec("hid", self.hid_uid, ("--profile", self._os, "--layout", self._layout))
            wire_path = self._physics.hid_wire.path
        return BoardProcess(spec, self._lines[kind], wire_path, self._directory, self.runtime)

    def _changed(self) -> None:
        change, self._change = self._change, trio.Event()
        change.set()


def _lone(error: BaseException) -> BaseException | None:
    """The one exception in nested groups, None where there are several."""
    while isinstance(error, BaseExceptionGroup):
        if len(error.exceptions) != 1:
            return None
        error = error.exceptions[0]
    return error


async def _in_thread(work: Callable[[], None]) -> None:
    await trio.to_thread.run_sync(work, limiter=trio.CapacityLimiter(1))


def _uid(prefix: str, seed: int) -> str:
    return f"{prefix}{seed & (1 << 56) - 1:014x}"
