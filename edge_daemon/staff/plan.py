"""Which procedure a device needs, and how its result goes into the store."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from calibration import procedure
from calibration.errors import StoreError
from calibration.options import Options
from calibration.procedure import OnProgress
from calibration.result import DeviceCalibration
from calibration.rig import Rig
from calibration.screen import ScreenGeometry
from calibration.store import CalibrationStore, Conditions, Origin, StoredCalibration
from edge_daemon.contract import Orientation
from edge_daemon.upstream.service import CalibrationKind, RigFacts

Run = Callable[[Rig, ScreenGeometry, Options, OnProgress | None, DeviceCalibration | None], DeviceCalibration]


@dataclass(frozen=True)
class Plan:
    """procedure: blocks for minutes, raises a CalibrationError. origin: what the store is told.

    previous: the entry in use, None where there is none; the store names it as the parent where its parts are kept.
    """

    procedure: Run
    origin: Origin
    previous: StoredCalibration | None

    def run(
        self, rig: Rig, screen: ScreenGeometry, options: Options, on_progress: OnProgress | None
    ) -> DeviceCalibration:
        """Raises a CalibrationError that names what was refused."""
        before = self.previous.calibration if self.previous is not None else None
        return self.procedure(rig, screen, options, on_progress, before)

    def save(
        self, store: CalibrationStore, conditions: Conditions, result: DeviceCalibration, note: str
    ) -> StoredCalibration:
        """Write the result and take it into use. Raises StoreError; the former then stays in use."""
        keeps = self.origin == "camera only" and self.previous is not None
        return store.save(
            result,
            conditions,
            origin=self.origin,
            parent_id=self.previous.id if keeps and self.previous is not None else None,
            note=note,
        )


def plan_for(
    facts: RigFacts,
    kind: CalibrationKind,
    store: CalibrationStore,
    conditions: Conditions,
    *,
    attended: bool,
) -> Plan:
    """Reads the store. Raises StoreError for `camera` when the rest of the calibration is not there or not true.

    attended: somebody is there to turn the phone, so that it can be seen whether a touch screen's area turns with it.
    """
    if kind == "camera":
        return Plan(_camera_only, "camera only", _kept(store, conditions))
    previous = _in_use(store)
    if facts.hand is not None:
        return Plan(procedure.calibrate, "calibrated", previous)
    touch = facts.hid.touch if facts.hid is not None else None
    if touch == "digitizer":
        other: Orientation = "landscape_left" if facts.orientation == "portrait" else "portrait"
        digitizer = partial(
            procedure.calibrate_digitizer,
            turn=facts.orientation,
            compare_with=other if attended else None,
        )
        return Plan(digitizer, "calibrated", previous)
    if touch == "pointer":
        pointer = partial(procedure.calibrate_pointer, turn=facts.orientation)
        return Plan(pointer, "calibrated", previous)
    return Plan(_camera_alone, "calibrated", previous)


def _in_use(store: CalibrationStore) -> StoredCalibration | None:
    try:
        return store.load("current")
    except StoreError:
        # Missing or damaged: this run replaces it.
        return None


def _kept(store: CalibrationStore, conditions: Conditions) -> StoredCalibration:
    """The entry whose camera alone is to be measured anew; everything else of it must be true."""
    usable = store.usable(conditions)
    if usable.lost - {"camera"}:
        raise usable.objections[-1]
    return usable.stored


def _camera_only(
    rig: Rig,
    screen: ScreenGeometry,
    options: Options,
    on_progress: OnProgress | None,
    previous: DeviceCalibration | None,
) -> DeviceCalibration:
    assert previous is not None, "the plan has read it"
    camera = procedure.measure_camera(rig, screen, options, on_progress, previous)
    return procedure.recalibrate_camera(previous, camera)


def _camera_alone(
    rig: Rig,
    screen: ScreenGeometry,
    options: Options,
    on_progress: OnProgress | None,
    previous: DeviceCalibration | None,
) -> DeviceCalibration:
    camera = procedure.measure_camera(rig, screen, options, on_progress, previous)
    return DeviceCalibration(screen=screen, camera=camera)
