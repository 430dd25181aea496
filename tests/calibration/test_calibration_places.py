import numpy as np
import pytest

from calibration.errors import OptionsInvalid
from calibration.options import Options
from calibration.places import CLEARANCE_MM, clear_of, grid_places, held_out_places
from calibration.result import Acceptance
from calibration.targets import DOT_DIAMETER_MM


def apart(places):
    points = np.array(places)
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    return distances[~np.eye(len(points), dtype=bool)].min()


def test_the_default_grid_has_fifteen_places_with_the_four_corners_first(screen):
    places = grid_places(screen, Options())
    assert len(set(places)) == 15
    assert {(round(x, 3), round(y, 3)) for x, y in places[:4]} == {
        (7.0, 7.0),
        (61.0, 7.0),
        (7.0, 140.3),
        (61.0, 140.3),
    }


@pytest.mark.parametrize("count", [5, 8, 30])
def test_held_out_places_cover_the_whole_screen_and_keep_apart(screen, count):
    places = np.array(held_out_places(screen, Options(held_out=count)))
    assert len(places) == count
    assert np.ptp(places, axis=0) == pytest.approx([60.0, 139.3])
    assert apart(places) > DOT_DIAMETER_MM


def test_a_place_on_an_older_dot_steps_aside_as_little_as_needed(screen):
    moved = clear_of((30.0, 40.0), [(30.5, 40.0)], screen, 4.0)
    assert np.hypot(moved[0] - 30.5, moved[1] - 40.0) >= CLEARANCE_MM
    assert np.hypot(moved[0] - 30.0, moved[1] - 40.0) < 1.3 * CLEARANCE_MM


def test_a_place_that_is_free_stays_where_it_is(screen):
    assert clear_of((30.0, 40.0), [(30.0, 45.0)], screen, 4.0) == (30.0, 40.0)


def test_stepping_aside_never_leaves_the_screen(screen):
    x, y = clear_of((4.0, 4.0), [(4.5, 4.5)], screen, 4.0)
    assert x >= 4.0
    assert y >= 4.0


def test_a_full_page_is_refused(screen):
    everywhere = [(float(x), float(y)) for x in range(0, 69, 3) for y in range(0, 148, 3)]
    with pytest.raises(OptionsInvalid, match="no room"):
        clear_of((30.0, 40.0), everywhere, screen, 4.0)


def test_insets_that_leave_little_of_the_screen_are_refused(screen):
    with pytest.raises(OptionsInvalid, match="grid_inset_mm"):
        grid_places(screen, Options(grid_inset_mm=19.0))


def test_one_bad_touch_among_many_good_ones_fails_the_acceptance(screen):
    pairs = [((10.0, float(y)), (10.0, float(y) + 0.05)) for y in range(10, 90, 10)]
    assert Acceptance.of(screen, pairs, 0.6).passed
    verdict = Acceptance.of(screen, [*pairs, ((60.0, 140.0), (60.3, 140.6))], 0.6)
    assert not verdict.passed
    assert verdict.worst.target_mm == (60.0, 140.0)
    assert verdict.max_mm == pytest.approx(0.671, abs=0.001)
    assert verdict.worst.error_grid == pytest.approx(np.hypot(0.3 / 68.0, 0.6 / 147.3) * 1000, abs=0.01)
    assert verdict.p50_mm == pytest.approx(0.05)
