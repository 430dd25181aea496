"""The one command in flight: replies of the board, late and repeated ones too, become its stages in order."""

from dataclasses import dataclass

from edge_daemon.boards.link_events import (
    CommandAccepted,
    CommandDone,
    CommandFaulted,
    ContactMade,
    DataRefused,
    DataTaken,
    LinkEvent,
)
from firmware import wire

# The cmd_id of data operations, which leave no result behind; commands are numbered from 1.
DATA_CMD_ID = 0


@dataclass(slots=True)
class _Command:
    cmd_id: int
    seq: int
    accepted: bool = False
    contact_us: int | None = None
    contact_told: bool = False


class InFlight:
    """At most one command between its first byte and its outcome.

    Each reply method returns the events that follow from it. Accepted is told before contact, and both
    before the outcome, whatever order the line delivered; replies to anything else are counted as late.
    """

    def __init__(self) -> None:
        self._command: _Command | None = None
        self.late_replies = 0

    @property
    def cmd_id(self) -> int | None:
        """The command in flight, None when there is none."""
        return self._command.cmd_id if self._command is not None else None

    @property
    def awaits_acceptance(self) -> bool:
        """Whether the command must still be sent again."""
        return self._command is not None and not self._command.accepted

    def begin(self, cmd_id: int, seq: int) -> None:
        self._command = _Command(cmd_id, seq)

    def accepted(self, cmd_id: int, seq: int, board_us: int) -> list[LinkEvent]:
        command = self._current(cmd_id)
        if command is None:
            return []
        if command.seq != seq:
            self.late_replies += 1
            return []
        if cmd_id == DATA_CMD_ID:
            self._command = None
            return [DataTaken()]
        return self._stages(command, board_us)

    def contact(self, cmd_id: int, board_us: int) -> list[LinkEvent]:
        command = self._current(cmd_id)
        if command is None:
            return []
        command.contact_us = board_us
        return self._contact_stage(command) if command.accepted else []

    def done(self, done: CommandDone) -> list[LinkEvent]:
        command = self._current(done.cmd_id)
        if command is None:
            return []
        self._command = None
        if command.contact_us is None:
            command.contact_us = done.contact_us
        return [*self._stages(command, done.accepted_us), done]

    def fault(self, fault: CommandFaulted) -> list[LinkEvent]:
        command = self._current(fault.cmd_id)
        if command is None:
            return []
        self._command = None
        if fault.cmd_id == DATA_CMD_ID:
            return [DataRefused(fault.code)]
        return [*self._contact_stage(command), fault]

    def _current(self, cmd_id: int) -> _Command | None:
        if self._command is not None and self._command.cmd_id == cmd_id:
            return self._command
        self.late_replies += 1
        return None

    def _stages(self, command: _Command, accepted_us: int) -> list[LinkEvent]:
        first: list[LinkEvent] = [] if command.accepted else [CommandAccepted(command.cmd_id, accepted_us)]
        command.accepted = True
        return first + self._contact_stage(command)

    def _contact_stage(self, command: _Command) -> list[LinkEvent]:
        if command.contact_us is None or command.contact_told:
            return []
        command.contact_told = True
        return [ContactMade(command.cmd_id, command.contact_us)]


def read_done(body: bytes) -> CommandDone:
    """A DONE event's body. Raises BodyError."""
    cmd_id, accepted_us, contact_us, done_us = wire.unpack_body(wire.DONE, body)
    return CommandDone(cmd_id, accepted_us, contact_us or None, done_us, wire.body_tail(wire.DONE, body))


def read_fault(body: bytes) -> CommandFaulted:
    """A FAULT event's body. Raises BodyError."""
    cmd_id, code, flags, board_us = wire.unpack_body(wire.FAULT, body)
    return CommandFaulted(
        cmd_id, code, bool(flags & wire.FAULT_FLAG_REFUSED), bool(flags & wire.FAULT_FLAG_EFFECT), board_us
    )
