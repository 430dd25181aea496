"""From a calibration to the entry that would be stored: its keys, its age, and what it takes over from a parent."""

import msgspec

from calibration.errors import AcceptanceFailed, StoreError
from calibration.result import DeviceCalibration
from calibration.store.chain import EVERYTHING, Part, parts_of
from calibration.store.entries import (
    SCHEMA,
    BoardKeys,
    Conditions,
    Invalidation,
    Origin,
    StoredCalibration,
)
from calibration.store.judge import objections

# Which parts are measured anew; what the others rest on comes from the parent.
MEASURED: dict[Origin, frozenset[Part]] = {
    "calibrated": EVERYTHING,
    "camera only": frozenset({"camera"}),
    "solved again": frozenset(),
}


def unsaved(calibration: DeviceCalibration, conditions: Conditions, *, note: str = "") -> StoredCalibration:
    """A calibration with its keys but without a number, not to be stored: for a report on a refused one."""
    return StoredCalibration(
        schema=SCHEMA,
        number=0,
        id="",
        parent_id=None,
        device_id=conditions.device_id,
        boards=BoardKeys(hand=conditions.hand, hid=conditions.hid),
        camera=conditions.camera,
        created=conditions.now,
        measured=conditions.now,
        expires_after_days=None,
        origin="calibrated",
        note=note,
        already_lost=(),
        calibration=calibration,
    )


def drafted(
    calibration: DeviceCalibration,
    conditions: Conditions,
    origin: Origin,
    parent: StoredCalibration | None,
    parent_lost: tuple[Invalidation, ...],
) -> StoredCalibration:
    """The entry without its number. parent_lost: what was found untrue of the parent since it was saved.

    Raises AcceptanceFailed for a calibration that was not accepted, StoreError for a missing parent, and what
    `current` would raise for what was measured now.
    """
    _require_accepted(calibration)
    draft = unsaved(calibration, conditions)
    if origin != "calibrated":
        draft = _taking_over(draft, origin, parent, parent_lost)
    elif parent is not None:
        draft = msgspec.structs.replace(draft, parent_id=parent.id)
    measured = MEASURED[origin]
    fresh = msgspec.structs.replace(draft, already_lost=())
    for objection in objections("this calibration", fresh, (), conditions):
        if objection.lost & measured:
            raise objection.error
    return draft


def _taking_over(
    draft: StoredCalibration,
    origin: Origin,
    parent: StoredCalibration | None,
    parent_lost: tuple[Invalidation, ...],
) -> StoredCalibration:
    kept = parts_of(draft.calibration) - MEASURED[origin]
    if not kept:
        return msgspec.structs.replace(draft, origin=origin, parent_id=None if parent is None else parent.id)
    if parent is None:
        raise StoreError(f'a calibration that is "{origin}" takes measurements over: name its parent')
    lost = tuple(
        msgspec.structs.replace(event, lost=event.lost & kept)
        for event in (*parent.already_lost, *parent_lost)
        if event.lost & kept
    )
    return msgspec.structs.replace(
        draft,
        origin=origin,
        parent_id=parent.id,
        boards=parent.boards,
        camera=draft.camera if "camera" in MEASURED[origin] else parent.camera,
        measured=parent.measured,
        already_lost=lost,
    )


def _require_accepted(calibration: DeviceCalibration) -> None:
    acceptance = calibration.acceptance
    if acceptance is None:
        if parts_of(calibration) != {"camera"}:
            raise AcceptanceFailed("not saved: no held-out touches judged this calibration; calibrate again")
    elif not acceptance.passed:
        raise AcceptanceFailed(
            f"not saved: this calibration was refused ({acceptance.failing}); calibrate again", acceptance
        )
