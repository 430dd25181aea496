"""Keys and text by a HID board."""

from edge_daemon.boards import ArgumentRefused, Board, Done, HidClient
from edge_daemon.contract import Action, Orientation, PressKey, Refused, TypeText
from edge_daemon.devices.orders import Order


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
