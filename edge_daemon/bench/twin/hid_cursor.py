"""The cursor that a relative pointer moves over the phone's screen: AssistiveTouch's circle, Android's arrow."""

from edge_daemon.bench.twin.phone import Phone
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_WIDTH_MM

# A phone has one cursor however many contacts; this number keeps it apart from those of a touch screen.
CURSOR_CONTACT = 1000
# Tracking speed in its middle. An iPhone that restarts may come back with another.
DEFAULT_MM_PER_COUNT = 0.09


class Cursor:
    """Stays on the screen, presses where it stands. Without AssistiveTouch an iPhone has none."""

    def __init__(self, phone: Phone, works: bool) -> None:
        self._phone = phone
        self.works = works
        self.mm_per_count = DEFAULT_MM_PER_COUNT
        self.x_mm = SCREEN_WIDTH_MM / 2
        self.y_mm = SCREEN_HEIGHT_MM / 2
        self.pressed = False

    def moved(self, dx: int, dy: int, pressed: bool, at_ns: int) -> None:
        """One report: the move comes before the button, as Linux's and iOS's drivers sort them."""
        if not self.works:
            return
        self.x_mm = min(max(self.x_mm + dx * self.mm_per_count, 0.0), SCREEN_WIDTH_MM)
        self.y_mm = min(max(self.y_mm + dy * self.mm_per_count, 0.0), SCREEN_HEIGHT_MM)
        if pressed or self.pressed:
            self._phone.hid_contact(CURSOR_CONTACT, pressed, self.x_mm, self.y_mm, at_ns)
        self.pressed = pressed

    def released(self, at_ns: int) -> None:
        """The pointer is gone; its button counts as released."""
        if self.pressed:
            self.moved(0, 0, False, at_ns)
