import numpy as np
import pytest

from calibration.errors import FitRefused, OutsideModel, ResidualRefused
from calibration.fit_hid import fit_digitizer, fit_digitizer_area, fit_pointer

ALONG_X, ALONG_Y = np.linspace(9.0, 59.0, 3), np.linspace(9.0, 138.0, 4)
PLACES = np.array([(x, y) for y in ALONG_Y for x in ALONG_X])
SIZE = np.array([68.0, 147.3])


def seen(places, seed=1, noise_mm=0.02):
    return places + np.random.default_rng(seed).normal(0.0, noise_mm, places.shape)


def with_margins(places):
    """An area that reaches 1.5 mm beyond the screen left and right, 4 mm at the top, 2 mm at the bottom."""
    return (places + np.array([1.5, 4.0])) / [71.0, 153.3]


def quarter_turned(places):
    unit = with_margins(places)
    return np.column_stack([unit[:, 1], 1.0 - unit[:, 0]])


def mirrored(places):
    return with_margins(places) * [-1.0, 1.0] + [1.0, 0.0]


def few_degrees(places):
    """An area turned by 2 degrees about the screen's middle, large enough to cover it."""
    turn = np.radians(2.0)
    matrix = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    return ((places - SIZE / 2.0) @ matrix.T) / [76.0, 155.0] + 0.5


@pytest.mark.parametrize("area", [with_margins, quarter_turned, mirrored, few_degrees])
def test_margins_turns_and_mirrors_are_found(screen, area):
    model, quality = fit_digitizer(screen, seen(PLACES), area(PLACES))
    for place in [(0.0, 0.0), (68.0, 0.0), (3.0, 144.0), (34.0, 73.0)]:
        grid = screen.mm_to_grid(np.array([place]))[0]
        wanted = area(np.array([place]))[0]
        assert model.grid_to_fraction(*grid) == pytest.approx(wanted, abs=0.05 / 68.0)
    assert quality.leave_one_out_rms_mm < 0.05
    assert quality.places == 12
    assert quality.outliers == ()


def test_an_area_that_ends_inside_the_screen_names_the_edges_and_how_much(screen):
    """The area ends 2 mm inside the left edge and 5 mm inside the bottom."""
    short = (PLACES - [2.0, 0.0]) / [66.0, 142.3]
    with pytest.raises(FitRefused, match=r"left 2\d\.\d, bottom 3\d\.\d"):
        fit_digitizer(screen, seen(PLACES), short)
    model, _ = fit_digitizer_area(screen, seen(PLACES, noise_mm=0.0), short)
    edges = model.unreachable_grid()
    assert edges == {"left": pytest.approx(2.0 / 68.0 * 1000), "bottom": pytest.approx(5.0 / 147.3 * 1000)}


def test_an_area_that_ends_inside_a_turned_screen_names_the_screens_edge(screen):
    """The same missing 2 mm on the left, where the digitizer's own y ends."""
    unit = (PLACES - [2.0, 0.0]) / [66.0, 147.3]
    model, _ = fit_digitizer_area(screen, PLACES, np.column_stack([unit[:, 1], 1.0 - unit[:, 0]]))
    assert model.unreachable_grid() == {"left": pytest.approx(2.0 / 68.0 * 1000)}


@pytest.mark.parametrize("seed", range(8))
def test_an_area_of_exactly_the_screen_is_reached_to_its_edges(screen, seed):
    model, _ = fit_digitizer(screen, seen(PLACES, seed), np.round(PLACES / SIZE * 32767.0) / 32767.0)
    assert model.unreachable_grid() == {}
    for corner in [(0.0, 0.0), (1000.0, 0.0), (1000.0, 1000.0), (0.0, 1000.0)]:
        assert model.reachable_fraction(*corner) == pytest.approx(np.array(corner) / 1000.0, abs=0.0015)
        assert all(0.0 <= fraction <= 1.0 for fraction in model.reachable_fraction(*corner))


def test_a_place_that_the_area_does_not_reach_is_refused_not_moved_to_its_edge(screen):
    model, _ = fit_digitizer_area(screen, seen(PLACES), (PLACES - [2.0, 0.0]) / [66.0, 142.3])
    with pytest.raises(OutsideModel, match="does not reach"):
        model.reachable_fraction(5.0, 500.0)
    with pytest.raises(OutsideModel, match="off the screen"):
        model.reachable_fraction(500.0, 1000.5)
    assert model.reachable_fraction(500.0, 500.0) == model.grid_to_fraction(500.0, 500.0)


def test_a_bad_touch_is_dropped_and_named(screen):
    places = seen(PLACES)
    places[4] += [3.0, -2.0]
    model, quality = fit_digitizer(screen, places, with_margins(PLACES))
    assert quality.outliers == (4,)
    assert quality.places == 11
    assert model.grid_to_fraction(0.0, 0.0) == pytest.approx(with_margins(np.zeros((1, 2)))[0], abs=1e-3)


def test_touches_that_scatter_are_refused(screen):
    with pytest.raises(ResidualRefused):
        fit_digitizer(screen, seen(PLACES, noise_mm=0.8), with_margins(PLACES))


def test_an_axis_that_does_not_move_the_dot_is_refused(screen):
    places = np.column_stack([PLACES[:, 0], np.full(len(PLACES), 70.0)])
    with pytest.raises(FitRefused, match="along one line"):
        fit_digitizer(screen, places, with_margins(PLACES))


def test_touches_along_one_axis_determine_nothing(screen):
    line = np.column_stack([np.linspace(5, 60, 8), np.full(8, 70.0)])
    with pytest.raises(FitRefused, match="determine"):
        fit_digitizer(screen, line, with_margins(line))


@pytest.mark.parametrize("places", [0, 4])
def test_few_touches_are_refused(screen, places):
    with pytest.raises(FitRefused, match="at least 5"):
        fit_digitizer(screen, PLACES[:places], with_margins(PLACES)[:places])


COUNTS = np.round(PLACES / [0.11, 0.123])


def fit_pointer_on(screen, places, counts):
    return fit_pointer(screen, places, counts, step_counts=4, home_counts=4000)


def test_a_pointers_gain_and_home_corner_are_found(screen):
    landed = COUNTS * [0.11, 0.123] + [0.5, 0.3]
    model, quality = fit_pointer_on(screen, seen(landed), COUNTS)
    assert model.mm_per_count_x == pytest.approx(0.11, rel=1e-3)
    assert model.mm_per_count_y == pytest.approx(0.123, rel=1e-3)
    assert (model.home_x_mm, model.home_y_mm) == pytest.approx((0.5, 0.3), abs=0.05)
    assert (model.step_counts, model.home_counts) == (4, 4000)
    assert quality.places == 12
    right, down = model.mm_to_counts(40.0, 100.0)
    assert right * 0.11 + 0.5 == pytest.approx(40.0, abs=0.11)
    assert down * 0.123 + 0.3 == pytest.approx(100.0, abs=0.123)


@pytest.mark.parametrize("more", [0.06, 0.1, 0.3, 0.8])
def test_pointer_acceleration_is_refused_with_its_cause(screen, more):
    """Also so much of it that the far clicks look like bad ones to a straight line."""
    landed = COUNTS * [0.11, 0.123] * (1.0 + more * COUNTS / COUNTS.max(axis=0))
    with pytest.raises(ResidualRefused, match="pointer acceleration: lower step_counts"):
        fit_pointer_on(screen, seen(landed), COUNTS)


def test_the_two_farthest_clicks_of_an_accelerated_pointer_are_no_bad_clicks(screen):
    """They alone are far from a straight line through the others; without them the path looks straight enough."""
    near = np.array([(x, y) for y in (60.0, 180.0, 300.0, 420.0) for x in (60.0, 180.0, 300.0)])
    counts = np.vstack([near, [(580.0, 1100.0), (520.0, 1150.0)]])
    landed = counts * 0.11 * (1.0 + 0.05 * counts / [580.0, 1150.0])
    with pytest.raises(ResidualRefused, match="pointer acceleration"):
        fit_pointer_on(screen, seen(landed), counts)


def test_a_bad_click_is_not_taken_for_acceleration(screen):
    landed = seen(COUNTS * [0.11, 0.123])
    landed[11] += [4.0, 6.0]
    model, quality = fit_pointer_on(screen, landed, COUNTS)
    assert quality.outliers == (11,)
    assert model.mm_per_count_y == pytest.approx(0.123, rel=2e-3)


def test_a_pointer_that_goes_the_other_way_is_refused(screen):
    with pytest.raises(FitRefused, match="orientation"):
        fit_pointer_on(screen, [68.0, 0.0] + COUNTS * [-0.11, 0.123], COUNTS)


def test_a_pointer_that_does_not_repeat_is_refused(screen):
    with pytest.raises(ResidualRefused):
        fit_pointer_on(screen, seen(COUNTS * [0.11, 0.123], noise_mm=0.9), COUNTS)


def test_clicks_at_home_only_are_refused(screen):
    with pytest.raises(FitRefused, match="home corner"):
        fit_pointer_on(screen, seen(np.zeros((6, 2))), np.zeros((6, 2)))
