"""Touches by a robot hand."""

from edge_daemon.boards import Board, Done, HandClient, NotSent, OutcomeUnknown
from edge_daemon.config import MotionSection
from edge_daemon.contract import Action, LongPress, Orientation, Refused, Swipe, Tap
from edge_daemon.devices.approach import approach
from edge_daemon.devices.orders import Order, is_hold
from edge_daemon.devices.orientation import to_portrait
from edge_daemon.devices.slot import CalibrationSlot


class HandTouch:
    """Touches by a robot hand: grid → hand millimetres through the device's calibration."""

    def __init__(self, board: Board, hand: HandClient, motion: MotionSection, slot: CalibrationSlot) -> None:
        self.board = board
        self._hand = hand
        self._motion = motion
        self._slot = slot

    def refuse(self, action: Action, orientation: Orientation) -> None:
        if isinstance(action, Tap | LongPress):
            self._refuse_outside(self._contact(action.x, action.y, orientation))
        elif isinstance(action, Swipe):
            self._refuse_outside(self._contact(action.from_x, action.from_y, orientation))
            self._refuse_outside(self._contact(action.to_x, action.to_y, orientation))

    def _contact(self, x: float, y: float, orientation: Orientation) -> tuple[float, float, float]:
        """Grid point → hand (x_mm, y_mm, z_mm of the glass there)."""
        part = self._slot.require_hand()
        x_mm, y_mm = part.grid_to_hand(*to_portrait(x, y, orientation))
        return x_mm, y_mm, part.contact_z(x_mm, y_mm)

    def _refuse_outside(self, contact: tuple[float, float, float]) -> None:
        x_mm, y_mm, _ = contact
        limits = self._hand.limits
        if limits is not None and not (
            limits.x_min_mm <= x_mm <= limits.x_max_mm and limits.y_min_mm <= y_mm <= limits.y_max_mm
        ):
            raise Refused(
                "invalid_argument",
                f"that point lies at ({x_mm:.1f}, {y_mm:.1f}) mm, outside the hand's reach: move the phone "
                "within reach and calibrate again",
                field="action",
            )

    async def _approach(self, x_mm: float, y_mm: float, hover_z_mm: float) -> None:
        """Comes to stand above the contact from the side that the calibration used.

        A separate command that cannot touch the glass: however it ends, the action itself was not sent.
        """
        part = self._slot.require_hand()
        # As when it was calibrated, whatever the configuration says now; older calibrations do not tell.
        approach_mm = part.approach_mm if part.approach_mm is not None else self._motion.approach_mm
        try:
            await approach(self._hand, x_mm, y_mm, hover_z_mm, approach_mm)
        except OutcomeUnknown as error:
            raise NotSent(f"the link failed while the hand approached: {error.reason}") from error

    async def perform(self, order: Order) -> Done:
        motion, action = self._motion, order.action
        overtravel_mm = self._slot.require_hand().overtravel_mm
        if isinstance(action, Swipe) and not is_hold(action):
            x0, y0, z0 = self._contact(action.from_x, action.from_y, order.orientation)
            x1, y1, z1 = self._contact(action.to_x, action.to_y, order.orientation)
            hover_z_mm = max(z0, z1) + motion.hover_mm
            await self._approach(x0, y0, hover_z_mm)
            boot_id = order.last_check()
            return await self._hand.swipe(
                order.cmd_id,
                x0,
                y0,
                z0 - overtravel_mm,
                x1,
                y1,
                z1 - overtravel_mm,
                hover_z_mm=hover_z_mm,
                duration_ms=action.duration_ms,
                on_stage=order.on_stage,
                boot_id=boot_id,
            )
        x, y, dwell_ms = self._press(action)
        x_mm, y_mm, z_mm = self._contact(x, y, order.orientation)
        hover_z_mm = z_mm + motion.hover_mm
        await self._approach(x_mm, y_mm, hover_z_mm)
        boot_id = order.last_check()
        return await self._hand.tap(
            order.cmd_id,
            x_mm,
            y_mm,
            hover_z_mm=hover_z_mm,
            press_z_mm=z_mm - overtravel_mm,
            dwell_ms=dwell_ms,
            on_stage=order.on_stage,
            boot_id=boot_id,
        )

    def _press(self, action: Action) -> tuple[float, float, int]:
        match action:
            case Tap(x=x, y=y):
                return x, y, self._motion.dwell_ms
            case LongPress(x=x, y=y, duration_ms=dwell_ms):
                return x, y, dwell_ms
            case Swipe(from_x=x, from_y=y, duration_ms=dwell_ms):
                return x, y, dwell_ms
            case _:
                raise TypeError(f"a hand does not {type(action).__name__}")
