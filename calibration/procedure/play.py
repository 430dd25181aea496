"""The play of the drives: a square of places in the middle, each reached from one of three sides."""

from calibration.backlash import Backlash, require_taken_out
from calibration.models import ContactPlane
from calibration.places import clear_block
from calibration.procedure.place import affine_so_far, send_to, touch_place
from calibration.procedure.run import Run
from calibration.rig import HandFacts, HandTouch, Side, Touch
from calibration.screen import Pair
from calibration.session import LOW
from calibration.solve import solve_backlash

# From where hand x and hand y come: both low, as always; then one of them high.
_SIDES: tuple[tuple[Side, Side], ...] = (LOW, ("high", "low"), ("low", "high"))
_INSET_MM = 5.0


def measure_play(run: Run, hand: HandFacts, plane: ContactPlane, keep_free: list[Pair]) -> Backlash:
    """Touch a block of places from all sides and measure how far apart that makes them land.

    Every row of the block has each side once, and three rows have it once in every column (a Latin square): what
    the affine map of the dots so far has wrong across the block is the same for all sides. keep_free: the places of
    later touches. Raises BacklashTooLarge when coming from one side does not take the play out, FitRefused for a
    play that is negative, PictureRefused.
    """
    options, screen = run.options, run.screen
    block = clear_block(
        (screen.width_mm / 2.0, screen.height_mm / 2.0),
        len(_SIDES),
        options.backlash_touches,
        [*run.page.occupied, *keep_free],
        screen,
        _INSET_MM,
    )
    point = 0
    for row, places in enumerate(block):
        columns = range(len(places)) if row % 2 == 0 else reversed(range(len(places)))
        for column in columns:
            point += 1
            _touch_from(run, point, places[column], _SIDES[(row + column) % len(_SIDES)], plane)
    backlash = solve_backlash(screen, affine_so_far(run), run.session.records)
    assert backlash is not None, "the touches have just been made"
    run.meter.tell(f"play {backlash.x_mm:.3f} mm in x, {backlash.y_mm:.3f} mm in y")
    require_taken_out(backlash, hand.approach_mm)
    return backlash


def _touch_from(run: Run, point: int, place: Pair, sides: tuple[Side, Side], plane: ContactPlane) -> None:
    def aim(at: Pair, missed: int) -> Touch:
        x, y = send_to(run, at)
        depth = run.options.overtravel_mm * (1 if missed == 0 else 2)
        return HandTouch(x, y, plane.contact_z(x, y) - depth, approach_x=sides[0], approach_y=sides[1])

    at, _ = touch_place(run, "backlash", point, place, _INSET_MM, aim)
    run.meter.tell(f"({at[0]:.1f}, {at[1]:.1f}) mm: x from its {sides[0]} side, y from its {sides[1]} side")
