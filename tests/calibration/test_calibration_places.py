import numpy as np
import pytest

from calibration.errors import OptionsInvalid
from calibration.options import Options
from calibration.places import (
    clear_block,
    clear_of,
    grid_places,
    held_out_places,
    hid_places,
    short_tour,
    travel_mm,
    verify_places,
)
from calibration.targets import DOT_CLEARANCE_MM, DOT_DIAMETER_MM, control_marks_mm


def apart(places):
    points = np.array(places)
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    return distances[~np.eye(len(points), dtype=bool)].min()


def test_the_default_grid_has_twenty_four_places_with_the_four_corners_first(screen):
    places = grid_places(screen, Options())
    assert len(set(places)) == 24
    assert [(round(x, 3), round(y, 3)) for x, y in places[:4]] == [
        (5.5, 5.5),
        (62.5, 5.5),
        (62.5, 141.8),
        (5.5, 141.8),
    ]


def test_the_default_places_are_clear_of_each_other_and_of_the_control_marks(screen):
    options, marks = Options(), control_marks_mm(screen.width_mm, screen.height_mm)
    corners = [p for p in held_out_places(screen, options) if p[0] in (3.0, 65.0) and p[1] in (3.0, 144.3)]
    assert len(corners) == 4
    assert apart([*grid_places(screen, options), *corners, *marks]) >= DOT_CLEARANCE_MM
    assert apart([*hid_places(screen, options), *corners, *marks]) >= DOT_CLEARANCE_MM
    assert apart([*verify_places(screen), *marks]) >= DOT_CLEARANCE_MM


def test_a_tour_visits_every_place_on_a_way_not_much_longer_than_row_by_row_in_turns(screen):
    random = np.random.default_rng(3)
    rows = [(float(x), float(y)) for y in range(5) for x in (range(4) if y % 2 == 0 else range(3, -1, -1))]
    shuffled = [rows[i] for i in random.permutation(len(rows))]
    tour = short_tour(shuffled, (0.0, 0.0))
    assert sorted(tour) == sorted(rows)
    assert travel_mm(tour) <= 1.1 * travel_mm(rows)


def test_a_block_of_places_stands_clear_as_near_to_the_middle_as_it_can(screen):
    marks = control_marks_mm(screen.width_mm, screen.height_mm)
    block = clear_block((34.0, 73.6), 3, 2, [(34.0, 73.6), *marks], screen, 5.0)
    assert [len(row) for row in block] == [3, 3]
    places = [place for row in block for place in row]
    assert apart([*places, (34.0, 73.6), *marks]) >= DOT_CLEARANCE_MM
    assert np.hypot(*(np.mean(places, axis=0) - [34.0, 73.6])) < 12.0


def test_a_page_without_room_for_a_block_is_refused(screen):
    everywhere = [(float(x), float(y)) for x in range(0, 69, 5) for y in range(0, 148, 5)]
    with pytest.raises(OptionsInvalid, match="3 x 3 dots"):
        clear_block((34.0, 73.6), 3, 3, everywhere, screen, 5.0)


@pytest.mark.parametrize("count", [12, 15, 30])
def test_held_out_places_cover_the_whole_screen_and_keep_apart(screen, count):
    places = np.array(held_out_places(screen, Options(held_out=count)))
    assert len(places) == count
    assert np.ptp(places, axis=0) == pytest.approx([62.0, 141.3])
    assert apart(places) > DOT_DIAMETER_MM


def test_a_place_on_an_older_dot_steps_aside_as_little_as_needed(screen):
    moved = clear_of((30.0, 40.0), [(30.5, 40.0)], screen, 4.0)
    assert np.hypot(moved[0] - 30.5, moved[1] - 40.0) >= DOT_CLEARANCE_MM
    assert np.hypot(moved[0] - 30.0, moved[1] - 40.0) < 1.3 * DOT_CLEARANCE_MM


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
