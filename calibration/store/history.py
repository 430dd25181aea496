"""One line of a device's history."""

import msgspec

from calibration.acceptance import Verdict
from calibration.store.chain import Cause
from calibration.store.entries import Invalidation, Origin, Stamp, StoredCalibration


class HistoryEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry for a list. problem: why its file cannot be read, "" for a sound one; then the rest is unknown.

    verdict, p95_mm and max_mm are None where nothing touches the device. model_kind: of the hand's model,
    "digitizer", "pointer" or "camera". invalidated_by: without repetition, in the order found.
    """

    number: int
    id: str
    current: bool
    problem: str = ""
    parent_id: str | None = None
    created: Stamp | None = None
    origin: Origin | None = None
    note: str = ""
    verdict: Verdict | None = None
    p95_mm: float | None = None
    max_mm: float | None = None
    model_kind: str | None = None
    invalidated_by: tuple[Cause, ...] = ()


def readable(stored: StoredCalibration, current: bool, invalidated: tuple[Invalidation, ...]) -> HistoryEntry:
    """The line of an entry whose file is sound."""
    acceptance = stored.calibration.acceptance
    causes = [event.by for event in (*stored.already_lost, *invalidated)]
    return HistoryEntry(
        number=stored.number,
        id=stored.id,
        current=current,
        parent_id=stored.parent_id,
        created=stored.created,
        origin=stored.origin,
        note=stored.note,
        verdict=None if acceptance is None else acceptance.verdict,
        p95_mm=None if acceptance is None else acceptance.p95_mm,
        max_mm=None if acceptance is None else acceptance.max_mm,
        model_kind=_kind(stored),
        invalidated_by=tuple(dict.fromkeys(causes)),
    )


def damaged(number: int, entry_id: str, current: bool, problem: str) -> HistoryEntry:
    """The line of an entry that cannot be read."""
    return HistoryEntry(number=number, id=entry_id, current=current, problem=problem)


def _kind(stored: StoredCalibration) -> str:
    calibration = stored.calibration
    if calibration.hand is not None:
        return calibration.hand.model.kind
    if calibration.digitizer is not None:
        return "digitizer"
    return "pointer" if calibration.pointer is not None else "camera"
