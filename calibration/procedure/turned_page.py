"""Does a digitizer's area turn with the page, or does it keep the screen it was calibrated on?"""

import dataclasses

import numpy as np

from calibration.aims import digitizer_aim
from calibration.dots_page import DotsPage
from calibration.errors import FitRefused
from calibration.fit_hid import DigitizerModel
from calibration.procedure.place import touch_place
from calibration.procedure.run import Run
from calibration.result import AreaBehaviour
from calibration.rig import Touch, Turn
from calibration.screen import Pair, ScreenGeometry
from calibration.session import TouchSession
from calibration.targets import DOT_DIAMETER_MM, Points, turned_points

# Shares of the screen's width and height. None is where a turn of the area would bring itself or another one.
_PLACES: tuple[Pair, ...] = ((0.3, 0.2), (0.62, 0.35), (0.36, 0.7), (0.7, 0.84))
TURN_TOUCHES = len(_PLACES)
# The calibration has just been accepted within half of this; a wrong guess is off by centimetres.
AGREES_MM = 1.0


def area_behaviour(run: Run, model: DigitizerModel, turn: Turn, other: Turn) -> AreaBehaviour:
    """Have the dots page turned the other way, touch some places, and see where they land.

    model: accepted in `turn`. The touches join the run's records. Raises FitRefused when they land neither where
    they did before nor where the page's turn would bring them, PictureRefused, RigMoved, and what the rig raises.
    """
    screen = run.screen
    page = DotsPage(
        run.rig, screen, run.camera.model, run.options, turn=other, reference=run.camera.reference
    )
    page.show()
    session = TouchSession(run.rig, page, run.options)
    turned_run = dataclasses.replace(run, page=page, session=session)

    product = digitizer_aim(screen, model)

    def aim(place: Pair, missed: int) -> Touch:
        return product(place)

    kept_mm, turned_mm = [], []
    for point, (across, down) in enumerate(_PLACES, start=1):
        wanted = (across * screen.width_mm, down * screen.height_mm)
        place, dot = touch_place(turned_run, "verify", point, wanted, DOT_DIAMETER_MM, aim)
        seen = np.array([dot.x_mm, dot.y_mm])
        kept_mm.append(float(np.hypot(*(seen - place))))
        turned_mm.append(float(np.hypot(*(seen - with_the_page(screen, place, turn, other)))))
        run.meter.tell(f"({dot.x_mm:.1f}, {dot.y_mm:.1f}) mm: touched")
    run.session.records.extend(session.records)
    if max(kept_mm) <= AGREES_MM:
        return "keeps"
    if max(turned_mm) <= AGREES_MM:
        return "turns"
    raise FitRefused(
        f"with the page in {other}, touches land up to {max(kept_mm):.1f} mm from where they did in {turn}, and up to "
        f"{max(turned_mm):.1f} mm from where the page's turn would bring them; lock the phone's rotation in {turn}, or "
        f"calibrate in {other} by itself"
    )


def with_the_page(screen: ScreenGeometry, place: Pair, turn: Turn, other: Turn) -> Points:
    """Where a touch that lands at `place` in one turn lands in another if its area turns with the page.

    Screen mm, shape (2,).
    """
    shares = _shares(screen, np.array([place]), turn)
    return np.asarray(_on_screen(screen, shares, other)[0], dtype=np.float64)


def _on_screen(screen: ScreenGeometry, shares: Points, turn: Turn) -> Points:
    """Shares 0..1 of the page as it is read to portrait screen mm; (N, 2)."""
    size = (screen.width_mm, screen.height_mm)
    page = size[::-1] if turn in ("landscape_left", "landscape_right") else size
    return turned_points(shares * np.array(page), *size, turn)


def _shares(screen: ScreenGeometry, places_mm: Points, turn: Turn) -> Points:
    """The way back."""
    origin, right, below = _on_screen(screen, np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), turn)
    matrix = np.column_stack([right - origin, below - origin])
    return np.asarray(np.linalg.solve(matrix, (places_mm - origin).T).T, dtype=np.float64)
