"""The cursor that a relative pointer moves over the phone's screen: AssistiveTouch's circle, Android's arrow."""

from calibration.targets import Turn
from edge_daemon.bench.twin.phone import Phone
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_WIDTH_MM, HidTruth

# A phone has one cursor however many contacts; this number keeps it apart from those of a touch screen.
CURSOR_CONTACT = 1000
# Up to here a report moves the cursor by the scale alone; beyond, the phone speeds it up until FAST_COUNTS.
SLOW_COUNTS, FAST_COUNTS = 16, 127
# Where "right" and "down" of the page as it is read point on the portrait screen.
RIGHT_AND_DOWN: dict[Turn, tuple[tuple[int, int], tuple[int, int]]] = {
    "portrait": ((1, 0), (0, 1)),
    "landscape_left": ((0, 1), (-1, 0)),
    "portrait_upside_down": ((-1, 0), (0, -1)),
    "landscape_right": ((0, -1), (1, 0)),
}


class Cursor:
    """Stays on the screen, presses where it stands. Without AssistiveTouch an iPhone has none."""

    def __init__(self, phone: Phone, works: bool, habits: HidTruth) -> None:
        self._phone = phone
        self.works = works
        self._fast_gain = habits.fast_gain
        self._reboot_gain = habits.reboot_gain
        self.mm_per_count = habits.mm_per_count
        self.x_mm = SCREEN_WIDTH_MM / 2
        self.y_mm = SCREEN_HEIGHT_MM / 2
        self.pressed = False

    def moved(self, dx: int, dy: int, pressed: bool, at_ns: int) -> None:
        """One report: the move comes before the button, as Linux's and iOS's drivers sort them.

        The cursor's right is that of the display as it is read, whichever way it is turned.
        """
        if not self.works:
            return
        scale = self.mm_per_count * self._speed_up(dx, dy)
        right, down = RIGHT_AND_DOWN[self._phone.turn]
        self.x_mm = min(max(self.x_mm + (dx * right[0] + dy * down[0]) * scale, 0.0), SCREEN_WIDTH_MM)
        self.y_mm = min(max(self.y_mm + (dx * right[1] + dy * down[1]) * scale, 0.0), SCREEN_HEIGHT_MM)
        if pressed or self.pressed:
            self._phone.hid_contact(CURSOR_CONTACT, pressed, self.x_mm, self.y_mm, at_ns)
        self.pressed = pressed

    def released(self, at_ns: int) -> None:
        """The pointer is gone; its button counts as released."""
        if self.pressed:
            self.moved(0, 0, False, at_ns)

    def rebooted(self, at_ns: int) -> None:
        """The phone restarts: the cursor stands in the middle, and its scale may be another."""
        self.released(at_ns)
        self.mm_per_count *= self._reboot_gain
        self.x_mm, self.y_mm = SCREEN_WIDTH_MM / 2, SCREEN_HEIGHT_MM / 2

    def _speed_up(self, dx: int, dy: int) -> float:
        """How much more than its scale a report moves the cursor: by its size, as phones do."""
        share = (max(abs(dx), abs(dy)) - SLOW_COUNTS) / (FAST_COUNTS - SLOW_COUNTS)
        return 1.0 + (self._fast_gain - 1.0) * min(max(share, 0.0), 1.0)
