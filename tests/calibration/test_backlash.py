import numpy as np
import pytest

from calibration.backlash import Backlash, measure_backlash, require_taken_out
from calibration.errors import BacklashTooLarge, FitRefused


def sides(play_mm, touches, seed, noise_mm=0.03):
    random = np.random.default_rng(seed)
    return (
        (random.normal(0.0, noise_mm, touches)).tolist(),
        (play_mm + random.normal(0.0, noise_mm, touches)).tolist(),
    )


def test_the_play_is_found_for_each_axis_on_its_own():
    play = measure_backlash(*sides(0.15, 40, 1), *sides(0.0, 40, 2))
    assert play.x_mm == pytest.approx(0.15, abs=0.02)
    assert play.y_mm == pytest.approx(0.0, abs=0.02)


def test_the_standard_error_is_how_far_the_figure_is_usually_off():
    plays = [measure_backlash(*sides(0.15, 5, 2 * n), *sides(0.2, 3, 2 * n + 1)) for n in range(400)]
    off_in_sigmas = [(play.x_mm - 0.15) / play.x_sigma_mm for play in plays]
    # Student's t with eight degrees of freedom: 95 % lie within 2.31.
    assert 0.90 < np.mean(np.abs(off_in_sigmas) < 2.31) < 0.99
    spread = np.std([play.y_mm for play in plays])
    assert np.sqrt(np.mean([play.y_sigma_mm**2 for play in plays])) == pytest.approx(spread, rel=0.15)


def test_touches_that_repeat_exactly_have_no_error():
    play = measure_backlash([1.0, 1.0], [1.25, 1.25], [2.0, 2.0], [2.0, 2.0, 2.0])
    assert (play.x_mm, play.x_sigma_mm, play.y_mm, play.y_sigma_mm) == (0.25, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("x_low", [[], [0.1], [0.1, float("nan")]])
def test_a_side_that_was_not_touched_twice_is_refused(x_low):
    with pytest.raises(FitRefused, match="hand x needs 2 touches"):
        measure_backlash(x_low, [0.1, 0.2], [0.0, 0.0], [0.1, 0.1])


def test_sides_that_are_swapped_are_refused():
    low, high = sides(0.2, 5, 1)
    with pytest.raises(FitRefused, match=r"hand y landed .* cannot be negative"):
        measure_backlash(low, high, high, low)


def test_play_within_the_approach_is_taken_out():
    require_taken_out(Backlash(x_mm=0.2, y_mm=0.18, x_sigma_mm=0.02, y_sigma_mm=0.02), approach_mm=0.6)


@pytest.mark.parametrize(
    ("axis", "x_mm", "y_mm", "sigma_mm"),
    [("x", 0.7, 0.1, 0.01), ("y", 0.1, 0.7, 0.01), ("x", 0.55, 0.1, 0.02)],
)
def test_play_beyond_the_approach_is_refused_with_its_numbers(axis, x_mm, y_mm, sigma_mm):
    """The last one is within the approach, but is not known well enough to say so."""
    play = Backlash(x_mm=x_mm, y_mm=y_mm, x_sigma_mm=sigma_mm, y_sigma_mm=sigma_mm)
    with pytest.raises(BacklashTooLarge, match=rf"hand {axis} has 0\.\d+ mm of play.*0\.600 mm"):
        require_taken_out(play, approach_mm=0.6)
