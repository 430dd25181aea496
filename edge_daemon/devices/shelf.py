"""Keeps a device's slot filled from the store: whenever a part announces itself as something else than before."""

import logging
from collections.abc import Callable, Sequence
from functools import partial

import msgspec
import trio

from calibration.errors import CalibrationError, CalibrationMissing, Invalidated, StoreError
from calibration.store import CalibrationStore, Cause, Conditions, Part, StoredCalibration, Usable
from edge_daemon.cameras.camera import InThread
from edge_daemon.contract import Refused
from edge_daemon.devices.rigfacts import RigReader
from edge_daemon.devices.sight import outline_px
from edge_daemon.devices.slot import CalibrationSlot
from edge_daemon.staff.conditions import conditions_of, stamp_of
from edge_daemon.upstream.service import RigMoment

logger = logging.getLogger(__name__)


class Shelf:
    """One device's folder of calibrations. Verbs may be called from any task; the disk is waited for in a thread."""

    def __init__(
        self, slot: CalibrationSlot, reader: RigReader, in_thread: InThread = trio.to_thread.run_sync
    ) -> None:
        self._slot = slot
        self._in_thread = in_thread
        self._reader = reader
        self._store = CalibrationStore(reader.calibration_root, slot.device_id)
        self._loaded_for: Conditions | None = None
        self._reading = trio.Lock()
        self._stir = trio.Event()
        self.on_filled: Callable[[], None] = lambda: None
        """Called when the slot holds what was read from the store."""

    async def run(self, on_change: Callable[[], None]) -> None:
        """Until cancelled: reads the store again whenever what is attached has changed."""
        while True:
            self._stir = trio.Event()
            if not self.up_to_date():
                await self._load()
                on_change()
            await self._stir.wait()

    def stir(self) -> None:
        """A part announced itself, or went."""
        self._stir.set()

    def up_to_date(self) -> bool:
        """Whether the slot was filled for what is attached now."""
        return self._loaded_for == conditions_of(self._reader.facts(_NO_TIME))

    async def adopt(self) -> None:
        """Reads the store again for staff. Raises `Refused`, the slot untouched, when nothing in there can be used."""
        async with self._reading:
            conditions = self._conditions()
            try:
                usable = await self._in_thread(self._store.usable, conditions)
            except CalibrationError as error:
                raise Refused("uncalibrated", str(error)) from error
            self._fill(conditions, usable)

    async def save(
        self, save: Callable[[CalibrationStore, Conditions], StoredCalibration]
    ) -> StoredCalibration:
        """Has `save` write a calibration, and uses it. Raises what it raises; then the former stays in use."""
        async with self._reading:
            conditions = self._conditions()
            stored: StoredCalibration = await self._in_thread(save, self._store, conditions)
            self._fill(conditions, await self._in_thread(self._store.usable, conditions))
        return stored

    async def invalidate(self, cause: Cause, moved: str | None) -> None:
        """Something was found that makes the calibration untrue: durable first, so that nobody hears of it too early.

        moved: how far camera or phone moved, None for another cause. Where the disk refuses, that is logged, and it
        is refused until the daemon is started again.
        """
        async with self._reading:
            stamp = self._conditions().now
            try:
                await self._in_thread(partial(self._store.invalidate, cause, stamp))
            except StoreError as error:
                logger.error("%s: what was found is not durable: %s", self._slot.device_id, error)
                self._slot.moved = moved or str(error)
                return
        await self._load()
        if moved is not None:
            # The store knows the cause only; how far it was says this run.
            self._slot.moved = moved
            self._watch_screen()

    async def _load(self) -> None:
        async with self._reading:
            conditions = self._conditions()
            try:
                usable = await self._in_thread(self._store.usable, conditions)
            except CalibrationError as error:
                self._loaded_for = _without_time(conditions)
                self._slot.drop(
                    str(error), _moved([error]), none_in_use=isinstance(error, CalibrationMissing)
                )
                self._watch_screen()
                self._tell(f"not calibrated: {error}")
                return
            self._fill(conditions, usable)

    def _fill(self, conditions: Conditions, usable: Usable) -> None:
        self._loaded_for = _without_time(conditions)
        because = "; ".join(str(error) for error in usable.objections)
        refused: dict[Part, str] = dict.fromkeys(usable.lost, because)
        moved = _moved(usable.objections) if "camera" in usable.lost else None
        self._slot.adopt(usable.stored, refused, moved)
        self._watch_screen()
        self.on_filled()
        for sentence in (*map(str, usable.objections), *usable.notes):
            self._tell(sentence)

    def _watch_screen(self) -> None:
        """Tells the camera where the screen is, so that it can say when that is dark."""
        seen = "camera" in self._slot.usable() and self._slot.calibration is not None
        outline = outline_px(self._slot.calibration) if seen and self._slot.calibration is not None else None
        self._reader.camera.watch_screen(self._slot.device_id, outline)

    def _tell(self, sentence: str) -> None:
        # While boards and camera are still coming up, each of them is missing; the device says so itself.
        level = logging.WARNING if self._reader.all_announced() else logging.DEBUG
        logger.log(level, "%s: %s", self._slot.device_id, sentence)

    def _conditions(self) -> Conditions:
        return conditions_of(self._reader.now())


_NO_TIME = RigMoment(wall_utc="1970-01-01T00:00:00Z", clock_synced=False, boot_id="", monotonic_ns=0)
_NO_STAMP = stamp_of(_NO_TIME)


def _without_time(conditions: Conditions) -> Conditions:
    """Only what was attached: time passes, and expiry is looked at when something else changes."""
    return msgspec.structs.replace(conditions, now=_NO_STAMP)


def _moved(errors: Sequence[CalibrationError]) -> str | None:
    """The first thing that was found since the calibration was made, if there is one."""
    return next((str(error) for error in errors if isinstance(error, Invalidated)), None)
