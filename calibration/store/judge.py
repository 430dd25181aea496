"""Whether an entry is true of the rig as it stands now, part by part."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from calibration.errors import (
    BoardMismatch,
    CameraMismatch,
    DeviceMismatch,
    Expired,
    FirmwareMismatch,
    Invalidated,
    ScreenMismatch,
    StoreError,
)
from calibration.store.chain import EVERYTHING, WHAT_HAPPENED, Part, named, parts_of
from calibration.store.entries import BoardKey, CameraKey, Conditions, Invalidation, Stamp, StoredCalibration

_NS_PER_DAY = 86_400 * 10**9
_HAND: frozenset[Part] = frozenset({"hand"})
_HID: frozenset[Part] = frozenset({"digitizer", "pointer"})
_CAMERA: frozenset[Part] = frozenset({"camera"})


@dataclass(frozen=True)
class Objection:
    """Why some parts of an entry must not be used."""

    error: StoreError
    lost: frozenset[Part]


@dataclass(frozen=True)
class Usable:
    """What is left of the entry in use: `lost` names its parts that are not true any more, `objections` why.

    notes: sentences on what could not be judged.
    """

    stored: StoredCalibration
    lost: frozenset[Part]
    objections: tuple[StoreError, ...]
    notes: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether every part may be used."""
        return not self.lost


def judge(
    where: str, stored: StoredCalibration, invalidated: tuple[Invalidation, ...], conditions: Conditions
) -> Usable:
    """What is left of an entry under these conditions. where: what messages call it."""
    found = objections(where, stored, invalidated, conditions)
    notes = []
    if stored.expires_after_days is not None and _age_days(stored.measured, conditions.now) is None:
        notes.append(
            f"{where} should expire after {stored.expires_after_days:g} days, but its age is not known: the clock "
            "was not set then or is not set now"
        )
    lost: frozenset[Part] = frozenset()
    return Usable(
        stored=stored,
        lost=lost.union(*(objection.lost for objection in found)),
        objections=tuple(objection.error for objection in found),
        notes=tuple(notes),
    )


def objections(
    where: str, stored: StoredCalibration, invalidated: tuple[Invalidation, ...], conditions: Conditions
) -> list[Objection]:
    """Everything that speaks against a part which the entry has, the most basic first."""
    parts = parts_of(stored.calibration)
    return [
        Objection(objection.error, objection.lost & parts)
        for objection in _objections(where, stored, invalidated, conditions)
        if objection.lost & parts
    ]


def _objections(
    where: str,
    stored: StoredCalibration,
    invalidated: tuple[Invalidation, ...],
    conditions: Conditions,
) -> Iterator[Objection]:
    if stored.device_id != conditions.device_id:
        yield Objection(
            DeviceMismatch(
                f"{where} is for device {stored.device_id}, not {conditions.device_id}; calibrate this one"
            ),
            EVERYTHING,
        )
    screen = stored.calibration.screen
    if screen != conditions.screen:
        now = conditions.screen
        yield Objection(
            ScreenMismatch(
                f"{where} was made for a screen of {screen.width_px} x {screen.height_px} px and "
                f"{screen.width_mm:g} x {screen.height_mm:g} mm, the configuration now says {now.width_px} x "
                f"{now.height_px} px and {now.width_mm:g} x {now.height_mm:g} mm; correct it, or calibrate again"
            ),
            EVERYTHING,
        )
    for lost, kind, then, board in (
        (_HAND, "hand", stored.boards.hand, conditions.hand),
        (_HID, "HID", stored.boards.hid, conditions.hid),
    ):
        error = _board_error(where, kind, then, board)
        if error is not None:
            yield Objection(error, lost)
    model = stored.calibration.camera.model
    wrong_camera = _camera_error(
        where, stored.camera, (model.image_width, model.image_height), conditions.camera
    )
    if wrong_camera is not None:
        yield Objection(wrong_camera, _CAMERA)
    for event in (*stored.already_lost, *invalidated):
        yield Objection(
            Invalidated(
                f"{where}: its {named(event.lost & parts_of(stored.calibration))} is not true since "
                f"{_when(event.at)} ({event.by}: {WHAT_HAPPENED[event.by]}); calibrate again"
            ),
            event.lost,
        )
    limit, age_days = stored.expires_after_days, _age_days(stored.measured, conditions.now)
    if limit is not None and age_days is not None and age_days > limit:
        yield Objection(
            Expired(f"{where} is {age_days:.1f} days old and was to be used for {limit:g}; calibrate again"),
            EVERYTHING,
        )


def _board_error(where: str, kind: str, then: BoardKey | None, board: BoardKey | None) -> StoreError | None:
    """BoardMismatch, FirmwareMismatch (another major) or None. then: of the entry, board: here now."""
    if board is None:
        made_with = f"board {then.uid}" if then is not None else f"a {kind} board"
        return BoardMismatch(f"{where} was made with {made_with}, no {kind} board is here; attach it")
    if then is None:
        return None
    if then.uid != board.uid:
        return BoardMismatch(
            f"{where} was made with {kind} board {then.uid}, the board here is {board.uid}; attach the former, "
            "or calibrate again with this one"
        )
    if then.firmware is not None and board.firmware is not None and _major(then) != _major(board):
        return FirmwareMismatch(
            f"{where} was made with firmware {then.firmware} of {kind} board {then.uid}, it now runs "
            f"{board.firmware}; flash the former, or calibrate again"
        )
    return None


def _camera_error(
    where: str, then: CameraKey | None, size: tuple[int, int], camera: CameraKey | None
) -> StoreError | None:
    """CameraMismatch or None. size: of the pictures that the camera model was made from, width and height."""
    if camera is None:
        made_with = f"camera {then.name}" if then is not None else "a camera"
        return CameraMismatch(f"{where} was made with {made_with}, no camera is here; attach it")
    if then is not None and then.name != camera.name:
        return CameraMismatch(
            f"{where} was made with camera {then.name}, the device now has {camera.name}; configure the former, "
            "or calibrate again"
        )
    if size != (camera.width, camera.height):
        return CameraMismatch(
            f"{where} was made with pictures of {size[0]} x {size[1]} px, camera {camera.name} now gives "
            f"{camera.width} x {camera.height}; set its mode back, or calibrate again"
        )
    return None


def _age_days(then: Stamp | None, now: Stamp) -> float | None:
    """None where it cannot be known. Within one boot the monotonic clock tells, whatever the wall clock says."""
    if then is None:
        return None
    if then.boot_id == now.boot_id:
        return (now.monotonic_ns - then.monotonic_ns) / _NS_PER_DAY
    if not (then.clock_synced and now.clock_synced):
        return None
    passed = datetime.fromisoformat(now.wall_utc) - datetime.fromisoformat(then.wall_utc)
    return passed.total_seconds() / 86_400


def _major(board: BoardKey) -> str:
    return (board.firmware or "").split(".")[0]


def _when(stamp: Stamp) -> str:
    return stamp.wall_utc if stamp.clock_synced else f"{stamp.wall_utc} by a clock that was not set"
