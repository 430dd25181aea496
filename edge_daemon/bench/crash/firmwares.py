"""One start of a board: the firmware's own core and link, and what the bench sees of them from outside."""

from collections.abc import Callable
from typing import Protocol

from edge_daemon.bench.crash.phones import Cable, Glass, Phone
from edge_daemon.bench.crash.rooms import BoardPlace, hand_limits
from edge_daemon.bench.link.presses import PressLog
from edge_daemon.bench.link.virtual import BoardStart, LoggedDrives
from firmware import wire
from firmware.hand.core import HandCore
from firmware.hid.core import HidCore
from firmware.link import BoardLink, Core

_LAYOUT_CODES = {"us": wire.LAYOUT_US, "uk": wire.LAYOUT_UK, "de": wire.LAYOUT_DE, "fr": wire.LAYOUT_FR}

NoteBroken = Callable[[int, bool], None]
"""A command (its id) was given up by the board; and whether the phone may have felt it by then."""


class Firmware(Protocol):
    """What the line needs of a board that runs."""

    def turn(self, data: bytes, now_ns: int) -> bytes:
        """One round of the main loop, as the ports turn it."""

    def due_ns(self, now_ns: int) -> int:
        """When a round next does something, if no bytes come before."""

    def served_before(self) -> None:
        """The board has been up for longer than the daemon: its memory is full of what it did."""


class _Link(BoardLink):
    """The firmware's link; its driver may sleep until something is due, and hears what is given up."""

    def __init__(
        self,
        core: Core,
        uid: bytes,
        kind: int,
        boot_id: int,
        cause: int,
        broken: Callable[[int], None],
    ) -> None:
        super().__init__(core, uid, kind, boot_id, cause)
        self._broken = broken

    def served_before(self) -> None:
        """Of both families of ids, each less than any id that a daemon draws after 20 s of uptime."""
        for number in range(2 * wire.RESULTS_KEPT):
            cmd_id = (18_000 + 30 * number) << 24 | (number % 2) << 63
            self._results.finish(self._results.begin(cmd_id, 0), wire.STATE_DONE, b"")

    def due_us(self, now_us: int) -> int:
        """How many µs from now `poll` has something to do of its own."""
        if not self._session:
            return max(0, self._hello_due_us - now_us)
        due = min(self._heartbeat_due_us, self._heard_us + wire.DEADMAN_MS * 1000)
        if self._events.count:
            due = min(due, self._events_due_us)
        return max(0, due - now_us)

    def fault(self, code: int, flags: int, now_us: int) -> None:
        if self._running_slot >= 0:
            self._broken(self._results.cmd_id(self._running_slot))
        super().fault(code, flags, now_us)


class _Start(BoardStart):
    """Sleeps until its core or its link has something to do."""

    def __init__(
        self,
        core: HandCore | HidCore,
        place: BoardPlace,
        boot_id: int,
        cause: int,
        started_ns: int,
        broken: Callable[[int], None],
    ) -> None:
        kind = wire.KIND_HAND if place.kind == "hand" else wire.KIND_HID
        self._core_due_us = core.due_us
        link = _Link(core, place.uid, kind, boot_id, cause, broken)
        self.served_before = link.served_before
        self._link_due_us = link.due_us
        super().__init__(link, started_ns)

    def due_ns(self, now_ns: int) -> int:
        lived_us = self._lived_us(now_ns)
        core_us, link_us = self._core_due_us(lived_us), self._link_due_us(lived_us)
        return now_ns + 1000 * (link_us if core_us < 0 else min(link_us, core_us))


class HandStart(_Start):
    """A hand's board, with drives that hold where they stood."""

    def __init__(
        self,
        place: BoardPlace,
        boot_id: int,
        cause: int,
        started_ns: int,
        note_broken: NoteBroken,
        glass: Glass,
        held: tuple[int, int, int] | None,
    ) -> None:
        self._drives = LoggedDrives(glass, held)
        self._core = _NotedHand(self._drives, hand_limits())
        super().__init__(
            self._core,
            place,
            boot_id,
            cause,
            started_ns,
            lambda cmd_id: note_broken(cmd_id, self._below_hover()),
        )

    @property
    def held(self) -> tuple[int, int, int] | None:
        return self._drives.held

    def _below_hover(self) -> bool:
        """From here on the glass may be touched: over the place, at hover or lower."""
        held, (x_um, y_um, hover_um) = self._drives.held, self._core.goes_down_at
        return held is not None and (held[2] < hover_um or held == (x_um, y_um, hover_um))


NOWHERE = (0, 0, -(2**31))


class _NotedHand(HandCore):
    """Remembers where, and from which height on, the running command may touch."""

    goes_down_at = NOWHERE

    def start(self, op: int, args: bytes | memoryview, now_us: int) -> int:
        if op == wire.OP_TAP:
            x, y, hover, *_ = wire.unpack_args(op, args)
            self.goes_down_at = (x, y, hover)
        elif op == wire.OP_SWIPE:
            x, y, _, _, _, _, hover, _ = wire.unpack_args(op, args)
            self.goes_down_at = (x, y, hover)
        else:
            self.goes_down_at = NOWHERE
        return super().start(op, args, now_us)


class HidStart(_Start):
    """A keyboard's board, plugged into its phone."""

    def __init__(
        self,
        place: BoardPlace,
        boot_id: int,
        cause: int,
        started_ns: int,
        note_broken: NoteBroken,
        phone: Phone,
        pressed: PressLog,
        now_ns: Callable[[], int],
    ) -> None:
        self._cable = Cable(phone, place.layout, now_ns, pressed)
        self._core = _NotedHid(self._cable, wire.PROFILE_ANDROID, _LAYOUT_CODES[place.layout])
        super().__init__(
            self._core,
            place,
            boot_id,
            cause,
            started_ns,
            lambda cmd_id: note_broken(cmd_id, self._cable.presses > self._core.presses_before),
        )

    def turn(self, data: bytes, now_ns: int) -> bytes:
        self._cable.advance()
        return super().turn(data, now_ns)

    def due_ns(self, now_ns: int) -> int:
        due_ns = super().due_ns(now_ns)
        cable_ns = self._cable.due_ns()
        return due_ns if cable_ns is None else min(due_ns, max(now_ns, cable_ns))


class _NotedHid(HidCore):
    """Remembers how often something had been pressed when the running command began."""

    presses_before = 0

    def __init__(self, cable: Cable, profile_id: int, layout_id: int) -> None:
        super().__init__(cable, profile_id, layout_id)
        self._cable = cable

    def start(self, op: int, args: bytes | memoryview, now_us: int) -> int:
        self.presses_before = self._cable.presses
        return super().start(op, args, now_us)
