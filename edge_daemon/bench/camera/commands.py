"""What was really sent to the boards and accepted by them, and when: overheard on the serial lines.

The daemon's receipts say when a board accepted an action. This says it without the daemon.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from firmware import wire

ACTIONS = (wire.OP_TAP, wire.OP_SWIPE, wire.OP_KEY, wire.OP_TEXT_GO)
"""The operations that carry out an action of the plane; a hand's approach is a move of its own before it."""
HAND_MOVES = (wire.OP_HOME, wire.OP_PARK, wire.OP_TAP, wire.OP_SWIPE, wire.OP_MOVE, wire.OP_PROBE)


@dataclass(frozen=True)
class Command:
    """One command of a board, CLOCK_MONOTONIC ns.

    sent_ns: its first frame reached the board. accepted_ns, ended_ns: the board's word for it came back.
    """

    op: int
    sent_ns: int
    accepted_ns: int | None = None
    ended_ns: int | None = None


class CommandLog:
    """Hears one board's line. `hear` is called on the world's thread, everything else from any."""

    def __init__(self, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._now_ns = now_ns
        self._lock = threading.Lock()
        self._decoders = {"to_board": wire.Decoder(), "to_host": wire.Decoder()}
        self._commands: dict[int, Command] = {}
        self._opened_ns: list[int] = []

    def hear(self, way: Literal["to_board", "to_host"], data: bytes) -> None:
        """Bytes have arrived at the board, or at the daemon's end."""
        at_ns = self._now_ns()
        with self._lock:
            for frame in self._decoders[way].feed(data):
                self._take(frame, at_ns)

    def commands(self) -> list[Command]:
        """All so far, in the order of their first frames."""
        with self._lock:
            return list(self._commands.values())

    def opened_ns(self) -> list[int]:
        """When the daemon opened a session anew: the board had restarted, or the two had lost each other."""
        with self._lock:
            return list(self._opened_ns)

    def _take(self, frame: wire.Frame, at_ns: int) -> None:
        if frame.type == wire.OPENED:
            self._opened_ns.append(at_ns)
        if frame.type not in (wire.CMD, wire.ACCEPTED, wire.DONE, wire.FAULT):
            return
        fields = wire.unpack_body(frame.type, frame.body)
        cmd_id = fields[0]
        if frame.type == wire.CMD:
            # Sent again, it is the same command; data is no command.
            if fields[1] < wire.OP_DATA_FIRST:
                self._commands.setdefault(cmd_id, Command(fields[1], at_ns))
            return
        known = self._commands.get(cmd_id)
        if known is None:
            return
        accepted_ns = known.accepted_ns if known.accepted_ns is not None else at_ns
        if frame.type == wire.ACCEPTED:
            self._commands[cmd_id] = replace(known, accepted_ns=accepted_ns)
        elif known.ended_ns is None:
            self._commands[cmd_id] = replace(known, accepted_ns=accepted_ns, ended_ns=at_ns)
