"""The technician's pages on the phone: the calibration board and the page that keeps dots, each in four turns."""

from calibration.targets import Turn, draw_charuco, draw_dots
from edge_daemon.bench.twin.draw import Image
from edge_daemon.bench.twin.pages import Finger, Page
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_WIDTH_MM
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_PX as HEIGHT
from edge_daemon.bench.twin.truth import SCREEN_WIDTH_PX as WIDTH

Place = tuple[float, float]


class TechnicianPage(Page):
    """A page over the whole screen: no clock, no gestures; it turns with the display."""

    def __init__(self) -> None:
        super().__init__()
        self.turn: Turn = "portrait"

    def turn_to(self, turn: Turn) -> None:
        """The display turns under the page."""
        if turn != self.turn:
            self.turn = turn
            self.revision += 1

    def image(self, clock: str, now_ns: int) -> Image:
        # The clock is hidden and must not make a new picture each minute.
        return super().image("", now_ns)


class CharucoPage(TechnicianPage):
    """The calibration board."""

    name = "charuco"

    def paint(self, clock: str) -> Image:
        return draw_charuco(WIDTH, HEIGHT, self.turn)


class DotsPage(TechnicianPage):
    """A plain page on which a dot stays wherever a finger came down, until it is opened again."""

    name = "dots"

    def __init__(self) -> None:
        super().__init__()
        # On the page as it is read: when the display turns, the dots turn with the page, as in a browser.
        self._read_mm: list[Place] = []

    @property
    def places_mm(self) -> list[Place]:
        """The dots' places in portrait screen mm."""
        return [on_screen_mm(place, self.turn) for place in self._read_mm]

    def opened(self, now_ns: int) -> None:
        self._read_mm = []
        self.revision += 1

    def finger_down(self, finger: Finger) -> None:
        place = (finger.x / WIDTH * SCREEN_WIDTH_MM, finger.y / HEIGHT * SCREEN_HEIGHT_MM)
        self._read_mm.append(as_read_mm(place, self.turn))
        self.revision += 1

    def paint(self, clock: str) -> Image:
        return draw_dots(WIDTH, HEIGHT, SCREEN_WIDTH_MM, SCREEN_HEIGHT_MM, self.places_mm, self.turn)


def on_screen_mm(place: Place, turn: Turn) -> Place:
    """A place on the page as it is read, in portrait screen mm (calibration.targets.turned_points, for one)."""
    x, y = place
    match turn:
        case "portrait":
            return x, y
        case "landscape_left":
            return SCREEN_WIDTH_MM - y, x
        case "portrait_upside_down":
            return SCREEN_WIDTH_MM - x, SCREEN_HEIGHT_MM - y
        case "landscape_right":
            return y, SCREEN_HEIGHT_MM - x


def as_read_mm(place: Place, turn: Turn) -> Place:
    """The inverse of on_screen_mm."""
    x, y = place
    match turn:
        case "portrait":
            return x, y
        case "landscape_left":
            return y, SCREEN_WIDTH_MM - x
        case "portrait_upside_down":
            return SCREEN_WIDTH_MM - x, SCREEN_HEIGHT_MM - y
        case "landscape_right":
            return SCREEN_HEIGHT_MM - y, x
