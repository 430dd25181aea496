"""What the host end of the link reports to whoever drives it."""

from dataclasses import dataclass

from edge_daemon.boards.info import BoardInfo


@dataclass(frozen=True, slots=True)
class Online:
    """The session is open: the board takes commands."""

    info: BoardInfo


@dataclass(frozen=True, slots=True)
class Lost:
    """The link is over for good; a new one needs a new session. The reason is a sentence for a person."""

    reason: str


@dataclass(frozen=True, slots=True)
class CommandAccepted:
    """The board has the command. Times are the board's microseconds."""

    cmd_id: int
    board_us: int


@dataclass(frozen=True, slots=True)
class ContactMade:
    cmd_id: int
    board_us: int


@dataclass(frozen=True, slots=True)
class CommandDone:
    """Finished: back at hover, everything released."""

    cmd_id: int
    accepted_us: int
    contact_us: int | None
    done_us: int
    data: bytes


@dataclass(frozen=True, slots=True)
class CommandFaulted:
    """Refused, or ended without being done. ``code`` and the flags are firmware/wire.py's."""

    cmd_id: int
    code: int
    refused: bool
    effect: bool
    board_us: int


@dataclass(frozen=True, slots=True)
class DataTaken:
    """A data operation is in the board's buffer."""


@dataclass(frozen=True, slots=True)
class DataRefused:
    code: int


@dataclass(frozen=True, slots=True)
class QueryAnswered:
    """What the board remembers of a command: a state of firmware/wire.py, and its outcome where it ended."""

    cmd_id: int
    state: int
    outcome: CommandDone | CommandFaulted | None


@dataclass(frozen=True, slots=True)
class MovedByItself:
    """The hand moved for a reason that is no command of this host; ``cause`` is a MOVED_ code."""

    board_us: int
    cause: int


@dataclass(frozen=True, slots=True)
class StopLatched:
    board_us: int


@dataclass(frozen=True, slots=True)
class StopCleared:
    pass


@dataclass(frozen=True, slots=True)
class FlagsChanged:
    """The board's status flags, FLAG_ of firmware/wire.py."""

    flags: int


LinkEvent = (
    Online
    | Lost
    | CommandAccepted
    | ContactMade
    | CommandDone
    | CommandFaulted
    | DataTaken
    | DataRefused
    | QueryAnswered
    | MovedByItself
    | StopLatched
    | StopCleared
    | FlagsChanged
)
