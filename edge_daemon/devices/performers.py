"""From an action on the grid to one command for one board.

A performer plans (and refuses) without touching anything, then performs exactly one board command whose
`cmd_id` is known before, so that the board can be asked about it after any crash.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from edge_daemon.boards import (
    ArgumentRefused,
    Board,
    Done,
    HandClient,
    HidClient,
    NotSent,
    OnStage,
    OutcomeUnknown,
)
from edge_daemon.config import MotionSection
from edge_daemon.contract import (
    Action,
    LongPress,
    Orientation,
    PressKey,
    Refused,
    Swipe,
    Tap,
    TypeText,
)
from edge_daemon.contract.actions import GRID_MAX
from edge_daemon.devices.approach import approach
from edge_daemon.devices.orientation import to_portrait
from edge_daemon.devices.slot import CalibrationSlot

LastCheck = Callable[[], int]
"""Called right before the first byte of the action goes to the board; raises `Refused` to stop it.

Returns the boot that was recorded as the one to be asked later: a board that has restarted since must not get
the action, because that boot could not tell of it.
"""

HID_TAP_DWELL_MS = 60


@dataclass(frozen=True)
class Order:
    """One physical execution of one action."""

    action: Action
    orientation: Orientation
    """What the action's coordinates mean."""
    cmd_id: int
    """By which the board can be asked about it."""
    last_check: LastCheck
    on_stage: OnStage


class Performer(Protocol):
    """The part of a device that carries out some kinds of action."""

    board: Board

    def refuse(self, action: Action, orientation: Orientation) -> None:
        """Raises `Refused` when `action` cannot be done; touches nothing."""

    async def perform(self, order: Order) -> Done:
        """Carries it out. Raises what `Board.execute` raises, and `Refused` before anything was sent."""


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
        calibration = self._slot.require()
        x_mm, y_mm = calibration.hand.grid_to_hand(*to_portrait(x, y, orientation))
        return x_mm, y_mm, calibration.contact_z(x_mm, y_mm)

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
        try:
            await approach(self._hand, x_mm, y_mm, hover_z_mm, self._motion.approach_mm)
        except OutcomeUnknown as error:
            raise NotSent(f"the link failed while the hand approached: {error.reason}") from error

    async def perform(self, order: Order) -> Done:
        motion, action = self._motion, order.action
        overtravel_mm = self._slot.require().overtravel_mm
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


class HidTouch:
    """Touches by a HID board for a phone without a hand: by its digitizer.

    A board with a relative pointer instead (iOS) could tap as well, but where a count carries the cursor is not
    measured by any calibration of this daemon yet: its taps are refused as uncalibrated.
    """

    def __init__(self, board: Board, hid: HidClient) -> None:
        self.board = board
        self._hid = hid

    def refuse(self, action: Action, orientation: Orientation) -> None:
        """Every point of the grid can be reported by a digitizer; a pointer has no scale yet."""
        profile = self._hid.profile
        if isinstance(action, Tap | LongPress | Swipe) and profile is not None and profile.touch == "pointer":
            raise Refused(
                "uncalibrated",
                "this phone is touched by a relative pointer, whose scale is not calibrated: nothing is tapped "
                "with a guessed one",
            )

    async def perform(self, order: Order) -> Done:
        def fraction(x: float, y: float) -> tuple[float, float]:
            u, v = to_portrait(x, y, order.orientation)
            return u / GRID_MAX, v / GRID_MAX

        async def hold(x: float, y: float, dwell_ms: int) -> Done:
            return await self._hid.tap(
                order.cmd_id, *fraction(x, y), dwell_ms=dwell_ms, on_stage=order.on_stage, boot_id=boot_id
            )

        boot_id = order.last_check()
        match order.action:
            case Tap(x=x, y=y):
                return await hold(x, y, HID_TAP_DWELL_MS)
            case LongPress(x=x, y=y, duration_ms=dwell_ms):
                return await hold(x, y, dwell_ms)
            case Swipe() as action if is_hold(action):
                return await hold(action.from_x, action.from_y, action.duration_ms)
            case Swipe() as action:
                return await self._hid.swipe(
                    order.cmd_id,
                    *fraction(action.from_x, action.from_y),
                    *fraction(action.to_x, action.to_y),
                    duration_ms=action.duration_ms,
                    on_stage=order.on_stage,
                    boot_id=boot_id,
                )
            case _:
                raise TypeError(f"a digitizer does not {type(order.action).__name__}")


class Keyboard:
    """Keys and text by a HID board."""

    def __init__(self, board: Board, hid: HidClient) -> None:
        self.board = board
        self._hid = hid

    def refuse(self, action: Action, orientation: Orientation) -> None:
        if isinstance(action, PressKey) and action.key not in self._hid.keys:
            raise Refused(
                "capability_unsupported",
                f"this phone's board cannot press {action.key!r}; it can press: {', '.join(self._hid.keys)}",
                field="action.key",
            )
        if isinstance(action, TypeText):
            try:
                self._hid.check_text(action.text)
            except ArgumentRefused as error:
                raise Refused("invalid_argument", str(error), field="action.text") from error

    async def perform(self, order: Order) -> Done:
        match order.action:
            case PressKey(key=key):
                boot_id = order.last_check()
                return await self._hid.key(order.cmd_id, key, on_stage=order.on_stage, boot_id=boot_id)
            case TypeText(text=text):
                # Loading a long text takes seconds; the check belongs behind it.
                return await self._hid.text(
                    order.cmd_id, text, on_stage=order.on_stage, before_go=order.last_check
                )
            case _:
                raise TypeError(f"a keyboard does not {type(order.action).__name__}")


def is_hold(swipe: Swipe) -> bool:
    """A swipe with equal ends is not a swipe: the contact holds still for its duration."""
    return swipe.from_x == swipe.to_x and swipe.from_y == swipe.to_y
