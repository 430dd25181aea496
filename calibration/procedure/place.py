"""One touch at one place of the screen, with its second chances."""

from collections.abc import Callable, Sequence

import numpy as np

from calibration.detect import Dot
from calibration.errors import NoDot, PictureRefused
from calibration.fit_hand import fit_kind
from calibration.models import HandModel
from calibration.places import clear_of
from calibration.procedure.run import Run
from calibration.result import TouchStep
from calibration.rig import DigitizerTouch, HandTouch, PointerTouch, Touch
from calibration.screen import Pair
from calibration.session import Attempts
from calibration.solve import fitted

Aim = Callable[[Pair, int], Touch]
"""From a place on the screen, mm, and how often it has been missed so far, to the touch to be sent."""


def touch_place(
    run: Run, step: TouchStep, point: int, wanted: Pair, inset_mm: float, aim: Aim
) -> tuple[Pair, Dot]:
    """Touch near the wanted place until a whole dot of its own is seen; returns the place aimed at, and the dot.

    The place is the wanted one, or the nearest that is clear of all that is on the page. A touch that left no such
    dot is asked about and made again, away from its mess, as often as the options allow; then its refusal is raised.
    """
    attempts, missed = Attempts(run.rig, run.options, step, point), 0
    while True:
        place = clear_of(wanted, run.page.occupied, run.screen, inset_mm)
        try:
            return place, whole_dot(run, step, aim(place, missed), place)
        except PictureRefused as refusal:
            run.meter.tell(f"({place[0]:.1f}, {place[1]:.1f}) mm: {refusal}")
            attempts.refused(refusal)
            if isinstance(refusal, NoDot):
                missed += 1
            else:
                run.page.occupied.append(place)
                run.page.settle()


def touch_series(
    run: Run, step: TouchStep, wanted: Sequence[tuple[int, Pair]], inset_mm: float, aim: Aim
) -> list[tuple[Pair, Dot]]:
    """Touch near several wanted places, one right after the other, and look once; as touch_place for each.

    wanted: the places with their numbers. When one of them is spoiled all are asked about and touched again.
    """
    attempts, missed = Attempts(run.rig, run.options, step, wanted[0][0]), 0
    while True:
        places: list[Pair] = []
        for _, place in wanted:
            places.append(clear_of(place, [*run.page.occupied, *places], run.screen, inset_mm))
        try:
            dots = run.session.touch_series(step, [(aim(place, missed), place) for place in places])
            for dot in dots:
                _require_whole(dot)
            return list(zip(places, dots, strict=True))
        except PictureRefused as refusal:
            run.meter.tell(f"places {wanted[0][0]} to {wanted[-1][0]}: {refusal}")
            attempts.refused(refusal)
            run.page.occupied.extend(places)
            if isinstance(refusal, NoDot):
                missed += 1
            else:
                run.page.settle(len(places))


def whole_dot(run: Run, step: TouchStep, touch: Touch, place: Pair | None) -> Dot:
    """Touch once; the dot it leaves, whole. Raises NoDot and other refusals that name the place."""
    where = "" if place is None else f" at ({place[0]:.1f}, {place[1]:.1f}) mm of the screen"
    try:
        dot = run.session.touch(step, touch, place)
    except NoDot as missed:
        raise NoDot(f"no dot{where}, {_how(touch)}") from missed
    _require_whole(dot)
    return dot


def _require_whole(dot: Dot) -> None:
    if not dot.whole:
        raise PictureRefused(
            f"the dot at ({dot.x_mm:.1f}, {dot.y_mm:.1f}) mm of the screen is partly hidden by something black; "
            "keep the page clean"
        )


def affine_so_far(run: Run) -> HandModel:
    """From grid units to what is sent, by all dots so far that a fit may use."""
    records = [run.session.records[number] for number in fitted(run.session.records)]
    seen = np.array([record.seen_mm for record in records], dtype=np.float64).reshape(-1, 2)
    sent = np.array([record.sent for record in records], dtype=np.float64).reshape(-1, 2)
    return fit_kind("affine", run.screen.mm_to_grid(seen), sent)


def send_to(run: Run, place: Pair) -> Pair:
    """What to send for a place on the screen, by that map."""
    x, y = affine_so_far(run).map_grid(run.screen.mm_to_grid(np.array([place])))[0]
    return float(x), float(y)


def _how(touch: Touch) -> str:
    match touch:
        case HandTouch():
            return (
                f"pressing to {touch.press_z_mm:.2f} mm; look for dirt, a bent screen or a loose stylus, or raise "
                "overtravel_mm"
            )
        case DigitizerTouch():
            return (
                f"touching at ({touch.x:.3f}, {touch.y:.3f}) of the digitizer; check that the phone takes the HID "
                "board for a touch screen"
            )
        case PointerTouch():
            return (
                f"clicking {touch.x_counts}, {touch.y_counts} counts from the corner; check that the phone shows a "
                "pointer, and does not accelerate it"
            )
