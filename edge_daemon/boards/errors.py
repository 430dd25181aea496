"""What can go wrong between the daemon and a board, by what it means for the command in hand."""

from firmware import wire


class BoardError(Exception):
    """Base of everything this package raises on purpose."""


# -- the port -----------------------------------------------------------------------------------------


class PortError(BoardError):
    """The serial port cannot be used; the message says which one, why, and what to do."""


class PortMissing(PortError):
    """There is no such device node: unplugged, or not enumerated yet."""


class PortBusy(PortError):
    """Another process has the port; the message names its pid and program where they can be seen."""


class PortDenied(PortError):
    """This user may not open the port."""


class PortUnusable(PortError):
    """The device node is there and is no serial port that could be configured."""


class PortGone(PortError):
    """The port hung up while it was open: unplugged, re-enumerated, or the other end closed."""


# -- a command -----------------------------------------------------------------------------------------


class ArgumentRefused(BoardError, ValueError):
    """An argument that the board could never carry out; nothing was sent."""


class NotSent(BoardError):
    """Nothing of the command ever left this host; it may be given again."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"not sent: {reason}")
        self.reason = reason


class NotExecuted(BoardError):
    """The board, still on the same boot, never received the command; it may be given again."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"not executed: {reason}")
        self.reason = reason


class OutcomeUnknown(BoardError):
    """Bytes of the command left this host and what became of it cannot be said.

    ``final`` is False while the board could not be reached: it may still know, ask() it again. It is True
    when nobody can know any more: the board has restarted, or has forgotten.
    """

    def __init__(self, reason: str, *, final: bool) -> None:
        super().__init__(f"outcome unknown: {reason}")
        self.reason = reason
        self.final = final


class CommandFault(BoardError):
    """The board says that the command was refused, or ended without being done.

    ``refused``: it never started. ``effect``: a contact or a key report may have reached the phone.
    """

    def __init__(self, code: int, *, refused: bool, effect: bool, board_us: int = 0) -> None:
        self.code = code
        self.refused = refused
        self.effect = effect
        self.board_us = board_us
        self.message = FAULT_MESSAGES.get(code, f"the board gave fault {code}, unknown to this daemon")
        super().__init__(self.message)

    @property
    def name(self) -> str:
        """The fault's short name, for records: ``envelope``, ``busy``, …"""
        return FAULT_NAMES.get(self.code, f"fault_{self.code}")


FAULT_NAMES = {
    wire.FAULT_ENVELOPE: "envelope",
    wire.FAULT_DEPTH: "depth",
    wire.FAULT_NOT_HOMED: "not_homed",
    wire.FAULT_BUSY: "busy",
    wire.FAULT_ESTOPPED: "estopped",
    wire.FAULT_HELD: "held",
    wire.FAULT_ABORTED: "aborted",
    wire.FAULT_BAD_ARGS: "bad_args",
    wire.FAULT_UNSUPPORTED: "unsupported",
    wire.FAULT_USB_NOT_READY: "usb_not_ready",
    wire.FAULT_CHARSET: "charset",
    wire.FAULT_TEXT_INCOMPLETE: "text_incomplete",
    wire.FAULT_DRIVE: "drive",
}

FAULT_MESSAGES = {
    wire.FAULT_ENVELOPE: "the place is outside the hand's envelope; move the phone within reach",
    wire.FAULT_DEPTH: "the press goes deeper than the hand allows; calibrate the contact height again",
    wire.FAULT_NOT_HOMED: "the hand has not been homed since it started; home it first",
    wire.FAULT_BUSY: "the board is still carrying out another command",
    wire.FAULT_ESTOPPED: "the emergency stop is latched; clear it first",
    wire.FAULT_HELD: "the board released everything after it lost the host; it needs a new session",
    wire.FAULT_ABORTED: "the board broke the command off because it lost the host, and made itself safe",
    wire.FAULT_BAD_ARGS: "the board could not read the command's arguments; daemon and firmware differ",
    wire.FAULT_UNSUPPORTED: "this board cannot do that operation",
    wire.FAULT_USB_NOT_READY: "the phone has not accepted the board's USB keyboard; check its cable",
    wire.FAULT_CHARSET: "the text has a character that the board's keyboard layout cannot type",
    wire.FAULT_TEXT_INCOMPLETE: "the board's text buffer does not hold the text that was to be typed",
    wire.FAULT_DRIVE: "a drive of the hand does not answer or reports an error; check its power and its bus",
}
