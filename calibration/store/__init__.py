"""Calibrations on disk: a history per device, one of them in use, keyed to board, firmware, camera and screen."""

from calibration.store.chain import LOST, WHAT_HAPPENED, Cause, Part
from calibration.store.diff import CalibrationDiff, diff
from calibration.store.draft import unsaved
from calibration.store.entries import (
    SCHEMA,
    BoardKey,
    BoardKeys,
    CameraKey,
    Conditions,
    Invalidation,
    Origin,
    Stamp,
    StoredCalibration,
)
from calibration.store.history import HistoryEntry
from calibration.store.judge import Usable
from calibration.store.state import LogLine
from calibration.store.store import CalibrationStore

__all__ = [
    "LOST",
    "SCHEMA",
    "WHAT_HAPPENED",
    "BoardKey",
    "BoardKeys",
    "CalibrationDiff",
    "CalibrationStore",
    "CameraKey",
    "Cause",
    "Conditions",
    "HistoryEntry",
    "Invalidation",
    "LogLine",
    "Origin",
    "Part",
    "Stamp",
    "StoredCalibration",
    "Usable",
    "diff",
    "unsaved",
]
