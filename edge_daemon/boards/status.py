"""The values that a Board hands out: its status, its events, and how a command ended."""

from dataclasses import dataclass
from typing import Literal

from edge_daemon.boards.clock import ClockMap
from edge_daemon.boards.errors import CommandFault, NotExecuted, OutcomeUnknown
from edge_daemon.boards.info import BoardInfo
from edge_daemon.boards.link_events import CommandDone
from firmware import wire

Stage = Literal["accepted", "contact"]
MovedCause = Literal["pushed", "homed", "estop", "restart", "deadman", "unknown"]

_MOVED_CAUSES: dict[int, MovedCause] = {
    wire.MOVED_PUSHED: "pushed",
    wire.MOVED_HOMED: "homed",
    wire.MOVED_ESTOP: "estop",
    wire.MOVED_RESTART: "restart",
    wire.MOVED_DEADMAN: "deadman",
}


@dataclass(frozen=True, slots=True)
class BoardOnline:
    """The board takes commands."""

    info: BoardInfo


@dataclass(frozen=True, slots=True)
class BoardOffline:
    """The board takes no commands; the reason is a sentence for a person."""

    reason: str


BoardStatus = BoardOnline | BoardOffline


@dataclass(frozen=True, slots=True)
class BoardFlags:
    """What the board says of itself with each heartbeat."""

    homed: bool
    moving: bool
    held: bool
    estopped: bool
    usb_ready: bool
    caps_lock: bool


@dataclass(frozen=True, slots=True)
class StatusChanged:
    status: BoardStatus


@dataclass(frozen=True, slots=True)
class FlagsReported:
    flags: BoardFlags


@dataclass(frozen=True, slots=True)
class HandMoved:
    """The hand moved for a reason that is no command of this daemon. ``moved_ns`` is CLOCK_MONOTONIC."""

    cause: MovedCause
    board_us: int
    moved_ns: int


@dataclass(frozen=True, slots=True)
class StopReported:
    """The emergency stop is latched, or has been cleared."""

    latched: bool


BoardEvent = StatusChanged | FlagsReported | HandMoved | StopReported


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has finished: back at hover, everything released.

    The ``_ns`` times are CLOCK_MONOTONIC of this host, right to ``clock_error_ns``; the ``_board_us`` times
    are the board's own. There is no contact where the operation makes none. ``data`` is the operation's.
    """

    accepted_ns: int
    contact_ns: int | None
    done_ns: int
    accepted_board_us: int
    contact_board_us: int | None
    done_board_us: int
    clock_error_ns: int
    data: bytes

    @classmethod
    def of(cls, done: CommandDone, clock: ClockMap) -> "Done":
        """From the link's event and the clock of the same boot."""
        contact_us = done.contact_us
        return cls(
            accepted_ns=clock.to_host_ns(done.accepted_us),
            contact_ns=None if contact_us is None else clock.to_host_ns(contact_us),
            done_ns=clock.to_host_ns(done.done_us),
            accepted_board_us=done.accepted_us,
            contact_board_us=contact_us,
            done_board_us=done.done_us,
            clock_error_ns=clock.error_ns,
            data=done.data,
        )


# What ask() answers; all but Done are what execute() raises in the same case.
BoardAnswer = Done | CommandFault | NotExecuted | OutcomeUnknown


def moved_cause(code: int) -> MovedCause:
    """A MOVED code's name; a code of newer firmware is still a move, of unknown cause."""
    return _MOVED_CAUSES.get(code, "unknown")


def read_flags(flags: int) -> BoardFlags:
    """BoardFlags from the FLAG_ bits of firmware/wire.py."""
    return BoardFlags(
        homed=bool(flags & wire.FLAG_HOMED),
        moving=bool(flags & wire.FLAG_MOVING),
        held=bool(flags & wire.FLAG_HELD),
        estopped=bool(flags & wire.FLAG_ESTOPPED),
        usb_ready=bool(flags & wire.FLAG_USB_READY),
        caps_lock=bool(flags & wire.FLAG_CAPS_LOCK),
    )
