"""The parts of one device: which of them carries out what, and whether all of them are there."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import trio

from edge_daemon.boards import Board, BoardOffline, Done, FlagsReported, StatusChanged
from edge_daemon.cameras.camera import Camera, CameraOffline
from edge_daemon.cameras.status import said as camera_said
from edge_daemon.clock import MonotonicNs
from edge_daemon.contract import (
    Action,
    Capabilities,
    DeviceStatus,
    LongPress,
    OpenApp,
    Orientation,
    PressKey,
    Refused,
    Swipe,
    Tap,
    TypeText,
)
from edge_daemon.devices.capabilities import capabilities_of
from edge_daemon.devices.hand_touch import HandTouch
from edge_daemon.devices.hid_touch import HidTouch
from edge_daemon.devices.history import HandHistory
from edge_daemon.devices.keeper import HandKeeper
from edge_daemon.devices.keyboard import Keyboard
from edge_daemon.devices.orders import Order, Performer, is_hold
from edge_daemon.devices.shelf import Shelf
from edge_daemon.devices.slot import CalibrationSlot
from edge_daemon.ledger import CommandRef


class Parts:
    """A hand and/or a HID board, and a camera."""

    def __init__(
        self,
        device_id: str,
        *,
        touch: HandTouch | HidTouch,
        keyboard: Keyboard | None,
        keeper: HandKeeper | None,
        camera: Camera,
        slot: CalibrationSlot,
        shelf: Shelf,
        monotonic_ns: MonotonicNs,
        on_change: Callable[[], None],
    ) -> None:
        self._device_id = device_id
        self._touch = touch
        self._keyboard = keyboard
        self.keeper = keeper
        self.history = keeper.history if keeper is not None else HandHistory()
        self.camera = camera
        self.slot = slot
        self.shelf = shelf
        self._now_ns = monotonic_ns
        self._on_change = on_change
        self.busy = trio.Lock()
        """Held while an action of the plane is carried out, up to its board's last word, and while staff touch."""

    # -- what is there ------------------------------------------------------------------------------------

    @property
    def acts_on_old_frames(self) -> bool:
        """A hand acts anyway and reports; anything else refuses a frame that is no longer current."""
        return isinstance(self._touch, HandTouch)

    @property
    def boards(self) -> list[Board]:
        boards = [self._touch.board]
        if self._keyboard is not None and self._keyboard.board is not self._touch.board:
            boards.append(self._keyboard.board)
        return boards

    @property
    def hid_board(self) -> Board | None:
        """The board that is keyboard, touch screen or pointer to the phone, if there is one."""
        return self._keyboard.board if self._keyboard is not None else None

    def status(self) -> tuple[DeviceStatus, str | None]:
        """`online`, or `offline` and why, for a person."""
        reasons = [
            f"board {board.name}: {board.status.reason}"
            for board in self.boards
            if isinstance(board.status, BoardOffline)
        ]
        if isinstance(self.camera.status, CameraOffline):
            reasons.append(f"camera {self.camera.name}: {self.camera.status.words}")
        keyboard = self._keyboard.board if self._keyboard is not None else None
        if keyboard is not None and keyboard.flags is not None and not keyboard.flags.usb_ready:
            reasons.append(
                f"board {keyboard.name}: the phone does not take its USB reports: asleep, locked, or "
                "the accessory was not accepted"
            )
        if not reasons and self.keeper is not None and self.keeper.not_ready_reason is not None:
            reasons.append(self.keeper.not_ready_reason)
        if not reasons and not self.shelf.up_to_date():
            reasons.append("its stored calibration is being read")
        return ("offline", "; ".join(reasons)) if reasons else ("online", None)

    def capabilities(self) -> Capabilities:
        has_hand = isinstance(self._touch, HandTouch)
        hid = self._keyboard.board if self._keyboard is not None else None
        return capabilities_of(
            has_hand=has_hand,
            hand=self._touch.board.last_info if has_hand else None,
            hid=hid.last_info if hid is not None else None,
            # What an offline board last was stays said; that it is offline stands in the status.
            hid_ready=hid is None or hid.flags is None or hid.flags.usb_ready,
        )

    @property
    def calibrated(self) -> bool:
        """All of a calibration may be used."""
        return self.slot.why_not() is None

    def metadata(self) -> dict[str, Any]:
        """The boards as they announced themselves and how their lines do, the camera and what is wrong with it, and
        the calibration, for people."""
        camera = {"camera": dict(camera_said(self.camera.name, self.camera.status, self.camera.counters))}
        return self._boards_said() | camera | calibration_said(self.slot)

    def _boards_said(self) -> dict[str, Any]:
        return {
            board.name: {
                "kind": info.kind,
                "uid": info.uid,
                "firmware": info.firmware,
                "bootId": info.boot_id,
                "resetCause": info.reset_cause,
                "line": _line(board),
            }
            for board in self.boards
            if (info := board.last_info) is not None
        }

    # -- what can be done ---------------------------------------------------------------------------------

    def refuse(self, action: Action, orientation: Orientation) -> None:
        """Raises `Refused` when the attached parts cannot carry out `action` now."""
        status, reason = self.status()
        if status != "online":
            # First of all: what a board cannot do is not known before it has announced itself.
            raise Refused("device_offline", f"{self._device_id} is {status}: {reason}")
        self._refuse_unsupported(action)
        for board in self.boards:
            if board.flags is not None and board.flags.estopped:
                raise Refused(
                    "estopped", f"the emergency stop of board {board.name} is latched; staff clear it"
                )
        self.slot.refuse_moved()
        self._performer(action).refuse(action, orientation)

    def _refuse_unsupported(self, action: Action) -> None:
        can = self.capabilities().actions
        match action:
            case Tap():
                able, word = can.tap, "tap"
            case Swipe() if is_hold(action):
                able, word = can.long_press, "hold (a swipe with equal ends)"
            case Swipe():
                able, word = can.swipe, "swipe"
            case LongPress():
                able, word = can.long_press, "long press"
            case TypeText():
                able, word = can.type_text, "type text"
            case PressKey():
                able, word = can.press_key, "press keys"
            case OpenApp():
                able, word = can.open_app, "open an app by its id"
            case _:
                able, word = can.wake, "wake the screen"
        if not able:
            raise Refused("capability_unsupported", f"{self._device_id} cannot {word}", field="action")

    def _performer(self, action: Action) -> Performer:
        if isinstance(action, TypeText | PressKey):
            assert self._keyboard is not None, "the capabilities said so"
            return self._keyboard
        return self._touch

    def command_for(self, action: Action, cmd_id: int) -> CommandRef:
        """Whom to ask about the command later: the board, its present boot, and the command's id.

        Raises `Refused` when the board has never announced itself.
        """
        board = self._performer(action).board
        info = board.last_info
        if info is None:
            raise Refused("device_offline", f"board {board.name} has never announced itself")
        return CommandRef(board_uid=info.uid, board_boot_id=info.boot_id, cmd_id=cmd_id)

    # -- doing --------------------------------------------------------------------------------------------

    async def perform(self, order: Order) -> Done:
        """One physical execution, by the holder of `busy`. Raises `Refused` (nothing was done) or a `BoardError`."""
        performer = self._performer(order.action)
        if self.keeper is None or performer.board is not self.keeper.board:
            return await performer.perform(order)
        async with self.keeper.moving_for_plane():
            return await performer.perform(order)

    @contextmanager
    def touching_at_edge(self) -> Iterator[None]:
        """Around a touch by the HID board that does not come from the plane, by the holder of `busy`."""
        self.history.touched_at_edge(self._now_ns())
        try:
            yield
        finally:
            self.history.touched_at_edge(self._now_ns())

    async def run(self) -> None:
        """Keeps the parts safe to use until cancelled."""
        async with trio.open_nursery() as nursery:
            if self.keeper is not None:
                nursery.start_soon(self.keeper.run, self._on_change)
            nursery.start_soon(self.shelf.run, self._on_change)
            for board in self.boards:
                nursery.start_soon(self._report_board, board)
            nursery.start_soon(self._report_camera)

    async def _report_board(self, board: Board) -> None:
        while True:
            with board.events() as events:
                async for event in events:
                    if isinstance(event, StatusChanged | FlagsReported):
                        self.shelf.stir()
                        self._on_change()

    async def _report_camera(self) -> None:
        status = self.camera.status
        while True:
            status = await self.camera.status_other_than(status)
            self.shelf.stir()
            self._on_change()

    async def rest(self) -> None:
        """Nothing waits in line: the hand leaves the picture."""
        if self.keeper is not None:
            await self.keeper.rest()

    async def leave_safe(self) -> None:
        if self.keeper is not None:
            await self.keeper.leave_safe()


def calibration_said(slot: CalibrationSlot) -> dict[str, Any]:
    """What stands in a device's metadata about its calibration."""
    said: dict[str, Any] = {
        "id": slot.stored.id if slot.stored is not None else None,
        "usable": slot.usable(),
        "why": slot.why_not(),
    }
    if slot.drift is not None:
        said["drift"] = {"verdict": slot.drift.verdict, "message": slot.drift.message}
    return {"calibration": said} | ({"calibrationWarning": slot.warning} if slot.warning is not None else {})


def _line(board: Board) -> dict[str, Any]:
    """Counts since this daemon's start: what a bad cable or a weak supply shows first."""
    counters = board.counters
    return {
        "retransmits": counters.line.retransmits,
        "garbageBytes": counters.line.garbage_bytes,
        "crcErrors": counters.line.crc_errors,
        "reconnects": counters.reconnects,
        "resets": {str(cause): count for cause, count in counters.resets.items()},
    }
