"""Touches by a HID board, for a phone without a hand: by a touch screen of its own, or by a relative pointer."""

from calibration.errors import OutsideModel
from calibration.result import DigitizerPart
from edge_daemon.boards import Board, Done, HidClient
from edge_daemon.contract import Action, LongPress, Orientation, Refused, Swipe, Tap
from edge_daemon.contract.actions import GRID_MAX
from edge_daemon.devices.orders import Order, is_hold
from edge_daemon.devices.orientation import to_portrait
from edge_daemon.devices.pointer import PointerPlace, place_of_counts
from edge_daemon.devices.slot import CalibrationSlot

TAP_DWELL_MS = 60


class HidTouch:
    """Grid → the axes of the board's touch screen, or counts of its pointer, through the device's calibration.

    A touch screen that was never calibrated is taken at its word: its axes are the screen's edges. A pointer is
    not: where a count carries the cursor only a calibration knows.
    """

    def __init__(self, board: Board, hid: HidClient, slot: CalibrationSlot) -> None:
        self.board = board
        self._hid = hid
        self._slot = slot

    def refuse(self, action: Action, orientation: Orientation) -> None:
        if not isinstance(action, Tap | LongPress | Swipe):
            return
        for x, y in _ends(action):
            if self._by_pointer:
                self._counts(x, y, orientation)
            else:
                self._fraction(x, y, orientation)

    @property
    def _by_pointer(self) -> bool:
        profile = self._hid.profile
        return profile is not None and profile.touch == "pointer"

    def _fraction(self, x: float, y: float, orientation: Orientation) -> tuple[float, float]:
        """Grid → fractions of the touch screen's axes."""
        part = self._slot.digitizer()
        if part is None:
            u, v = to_portrait(x, y, orientation)
            return u / GRID_MAX, v / GRID_MAX
        u, v = to_portrait(x, y, self._area_turn(part, orientation))
        try:
            return part.model.reachable_fraction(u, v)
        except OutsideModel as error:
            raise Refused("invalid_argument", str(error), field="action") from error

    def _area_turn(self, part: DigitizerPart, orientation: Orientation) -> Orientation:
        """How the screen is turned as the touch screen's area has it. Raises `Refused` where that is not known."""
        if part.area is None and orientation != part.turn:
            raise Refused(
                "uncalibrated",
                f"its touch screen was calibrated in {part.turn}; whether its area turns with the page was not "
                f"measured, so nothing is touched in {orientation}. Run: edge-daemon calibrate {self._slot.device_id}",
            )
        return part.turn if part.area == "turns" else orientation

    def _counts(self, x: float, y: float, orientation: Orientation) -> PointerPlace:
        """Grid → counts from the corner."""
        u, v = to_portrait(x, y, orientation)
        calibration, part = self._slot.require_pointer()
        screen = calibration.screen
        x_counts, y_counts = part.model.mm_to_counts(
            u / GRID_MAX * screen.width_mm, v / GRID_MAX * screen.height_mm
        )
        if min(x_counts, y_counts) < 0:
            raise Refused(
                "invalid_argument",
                f"that point lies at ({x_counts}, {y_counts}) counts from the corner in which the pointer begins: it "
                "cannot go there",
                field="action",
            )
        return place_of_counts(x_counts, y_counts, part.model.home_counts, part.model.step_counts)

    async def perform(self, order: Order) -> Done:
        if self._by_pointer:
            return await self._by_counts(order)
        return await self._by_fractions(order)

    async def _by_counts(self, order: Order) -> Done:
        (x, y), dwell_ms = _press(order.action)
        place = self._counts(x, y, order.orientation)
        boot_id = order.last_check()
        return await self._hid.pointer_tap(
            order.cmd_id,
            place.x,
            place.y,
            dwell_ms,
            place.scale,
            on_stage=order.on_stage,
            boot_id=boot_id,
        )

    async def _by_fractions(self, order: Order) -> Done:
        action = order.action
        if isinstance(action, Swipe) and not is_hold(action):
            start, end = (self._fraction(x, y, order.orientation) for x, y in _ends(action))
            boot_id = order.last_check()
            return await self._hid.swipe(
                order.cmd_id,
                *start,
                *end,
                duration_ms=action.duration_ms,
                on_stage=order.on_stage,
                boot_id=boot_id,
            )
        (x, y), dwell_ms = _press(action)
        place = self._fraction(x, y, order.orientation)
        boot_id = order.last_check()
        return await self._hid.tap(
            order.cmd_id, *place, dwell_ms=dwell_ms, on_stage=order.on_stage, boot_id=boot_id
        )


def _ends(action: Tap | LongPress | Swipe) -> list[tuple[float, float]]:
    """Every place that the action touches for certain, grid."""
    if isinstance(action, Swipe):
        return [(action.from_x, action.from_y), (action.to_x, action.to_y)]
    return [(action.x, action.y)]


def _press(action: Action) -> tuple[tuple[float, float], int]:
    """Where and how long a contact that stays in its place presses: grid, ms."""
    match action:
        case Tap(x=x, y=y):
            return (x, y), TAP_DWELL_MS
        case LongPress(x=x, y=y, duration_ms=dwell_ms):
            return (x, y), dwell_ms
        case Swipe(from_x=x, from_y=y, duration_ms=dwell_ms):
            return (x, y), dwell_ms
        case _:
            raise TypeError(f"a HID board does not {type(action).__name__} by touch")
