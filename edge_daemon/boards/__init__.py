"""Boards on serial lines: the port, the link, and a client for each kind of board."""

from edge_daemon.boards.board import Board, OnStage
from edge_daemon.boards.counters import BoardCounters, LineCounters
from edge_daemon.boards.errors import (
    ArgumentRefused,
    BoardError,
    CommandFault,
    NotExecuted,
    NotSent,
    OutcomeUnknown,
    PortBusy,
    PortDenied,
    PortError,
    PortGone,
    PortMissing,
    PortUnusable,
)
from edge_daemon.boards.hand import HandClient
from edge_daemon.boards.hid import HidClient
from edge_daemon.boards.info import BoardInfo, BoardKind, HandLimits, HidProfile
from edge_daemon.boards.status import (
    BoardAnswer,
    BoardEvent,
    BoardFlags,
    BoardOffline,
    BoardOnline,
    BoardStatus,
    Done,
    FlagsReported,
    HandMoved,
    MovedCause,
    Stage,
    StatusChanged,
    StopReported,
)

__all__ = [
    "ArgumentRefused",
    "Board",
    "BoardAnswer",
    "BoardCounters",
    "BoardError",
    "BoardEvent",
    "BoardFlags",
    "BoardInfo",
    "BoardKind",
    "BoardOffline",
    "BoardOnline",
    "BoardStatus",
    "CommandFault",
    "Done",
    "FlagsReported",
    "HandClient",
    "HandLimits",
    "HandMoved",
    "HidClient",
    "HidProfile",
    "LineCounters",
    "MovedCause",
    "NotExecuted",
    "NotSent",
    "OnStage",
    "OutcomeUnknown",
    "PortBusy",
    "PortDenied",
    "PortError",
    "PortGone",
    "PortMissing",
    "PortUnusable",
    "Stage",
    "StatusChanged",
    "StopReported",
]
