import numpy as np
import pytest

from calibration.contact import HeightSearch, Site, fit_plane, plane_residual_mm, predict
from calibration.errors import ContactNotFound, FitRefused

STEP, RESOLUTION = 1.0, 0.06


def run(search, contact_mm):
    """Feed the search with the truth; returns its answer, its heights, and the deepest overtravel."""
    heights = []
    while (height := search.next_press_z()) is not None:
        heights.append(height)
        search.feed(height, touched=height <= contact_mm)
    return search.result(), heights, max(contact_mm - h for h in heights)


def from_above(hover_mm=12.0, floor_mm=-5.0):
    search = HeightSearch(hover_mm, None, step_mm=STEP, resolution_mm=RESOLUTION, floor_mm=floor_mm)
    search.feed(hover_mm, touched=False)
    return search


def around(expected_mm, within_mm, floor_mm=-20.0):
    return HeightSearch(
        expected_mm + within_mm,
        expected_mm - within_mm,
        step_mm=STEP,
        resolution_mm=RESOLUTION,
        floor_mm=floor_mm,
    )


@pytest.mark.parametrize("contact_mm", np.linspace(-4.0, 11.9, 37))
def test_coming_from_above_the_contact_is_found_and_never_overrun_by_more_than_a_step(contact_mm):
    (height, half_width), heights, overtravel = run(from_above(), contact_mm)
    assert abs(height - contact_mm) <= half_width <= RESOLUTION
    assert overtravel <= STEP
    assert len(heights) <= (12.0 - contact_mm) / STEP + 6


@pytest.mark.parametrize("contact_mm", np.linspace(2.02, 3.98, 41))
def test_a_right_prediction_costs_few_touches_and_little_overtravel(contact_mm):
    (height, half_width), heights, overtravel = run(around(3.0, 1.0), contact_mm)
    assert abs(height - contact_mm) <= half_width + 1e-9
    assert half_width <= RESOLUTION
    assert len(heights) <= 8
    assert overtravel <= 1.0 + 1e-9


@pytest.mark.parametrize("contact_mm", [0.3, 1.2, 4.4, 5.5])
def test_a_wrong_prediction_is_noticed_and_corrected(contact_mm):
    (height, half_width), _, _ = run(around(3.0, 0.4), contact_mm)
    assert abs(height - contact_mm) <= half_width + 1e-9
    assert half_width <= RESOLUTION


@pytest.mark.parametrize("contact_mm", np.linspace(2.1, 4.9, 15))
@pytest.mark.parametrize("missed", range(14))
def test_one_touch_that_the_phone_missed_costs_touches_and_not_the_height(contact_mm, missed):
    search, heights, true_half_width = from_above(6.0), [], RESOLUTION
    while (height := search.next_press_z()) is not None:
        search.feed(height, touched=height <= contact_mm and len(heights) != missed)
        heights.append(height)
    found, half_width = search.result()
    # A miss in the very last halvings looks like the glass being that little lower.
    assert abs(found - contact_mm) <= half_width + 2.0 * true_half_width + 1e-9
    assert contact_mm - min(heights) <= 2.0 * STEP


def test_nothing_is_pressed_below_the_floor():
    search = from_above(floor_mm=8.5)
    for height in (11.0, 10.0, 9.0):
        assert search.next_press_z() == height
        search.feed(height, touched=False)
    with pytest.raises(ContactNotFound, match=r"8\.50 mm"):
        search.next_press_z()


def sites(places, plane=(0.01, -0.02, 3.0), half_width=0.05):
    return [Site(x, y, plane[0] * x + plane[1] * y + plane[2], half_width) for x, y in places]


FIVE = [(10.0, 20.0), (70.0, 22.0), (68.0, 150.0), (8.0, 148.0), (40.0, 80.0)]


def test_the_plane_goes_through_its_sites():
    plane = fit_plane(sites(FIVE))
    assert (plane.a, plane.b, plane.c) == pytest.approx((0.01, -0.02, 3.0), abs=1e-9)
    assert plane.contact_z(100.0, 50.0) == pytest.approx(3.0)


def test_a_place_off_the_plane_is_refused_and_named():
    bumpy = [*sites(FIVE[:4]), Site(40.0, 80.0, 1.8 + 0.8, 0.05)]
    with pytest.raises(FitRefused, match=r"\(40\.0, 80\.0\)"):
        fit_plane(bumpy)


def test_curved_glass_within_its_limit_is_a_plane_with_a_residual():
    bent = [Site(s.x_mm, s.y_mm, s.contact_mm - (0.15 if s.x_mm == 40.0 else 0.0), 0.05) for s in sites(FIVE)]
    residual = plane_residual_mm(fit_plane(bent), bent)
    assert 0.1 < residual < 0.15
    assert plane_residual_mm(fit_plane(sites(FIVE)), sites(FIVE)) < 1e-9


def test_sites_in_a_line_give_no_plane():
    with pytest.raises(FitRefused, match="contact plane"):
        fit_plane(sites([(10.0, 10.0), (20.0, 20.0), (50.0, 50.0), (90.0, 90.0)]))


def test_a_prediction_from_one_site_allows_for_the_steepest_glass():
    expected = predict(sites([(10.0, 20.0)]), 22.0, 20.0, tilt_max=0.06)
    truth = 0.01 * 22.0 - 0.02 * 20.0 + 3.0
    assert abs(expected.contact_mm - truth) <= expected.within_mm
    assert expected.within_mm >= 0.06 * 12.0


@pytest.mark.parametrize("seed", range(20))
def test_a_prediction_from_three_sites_allows_for_the_worst_of_their_intervals(seed):
    random = np.random.default_rng(seed)
    rough = [
        Site(s.x_mm, s.y_mm, s.contact_mm + random.uniform(-0.06, 0.06), 0.06)
        for s in sites([(40.0, 80.0), (52.0, 80.0), (40.0, 92.0)])
    ]
    expected = predict(rough, 8.0, 148.0, tilt_max=0.06)
    assert abs(expected.contact_mm - (0.08 - 2.96 + 3.0)) <= expected.within_mm
    assert expected.slope_x == pytest.approx(0.01, abs=0.01)
