import numpy as np
import pytest

from calibration.errors import FitRefused, OutsideModel, ResidualRefused
from calibration.fit_hand import fit_hand, fit_kind
from calibration.models import HandModel

COLUMNS, ROWS = np.linspace(7.0, 61.0, 3), np.linspace(7.0, 140.3, 5)
PLACES = np.array([(x, y) for y in ROWS for x in COLUMNS])


def crooked(seen_mm, bend=0.0, keystone=0.0):
    """Hand mm for places on a 68 x 147.3 mm screen: turned, stretched, and bent if asked."""
    unit = seen_mm / [34.0, 73.65] - 1.0
    turned = seen_mm @ np.array([[1.006, 0.02], [-0.03, 0.995]]).T + [80.0, 20.0]
    bent = bend * np.column_stack([unit[:, 1] ** 2, unit[:, 0] * unit[:, 1]])
    return (turned + bent) / (1.0 + keystone * unit[:, :1])


def noisy(hand_mm, seed):
    return hand_mm + np.random.default_rng(seed).normal(0.0, 0.03, hand_mm.shape)


@pytest.mark.parametrize("seed", range(5))
def test_a_straight_hand_is_given_the_affine_model(screen, seed):
    model, quality = fit_hand(screen, PLACES, noisy(crooked(PLACES), seed))
    assert model.kind == "affine"
    assert set(quality.leave_one_out_rms_mm) == {"affine", "homography", "quadratic"}


@pytest.mark.parametrize("seed", range(3))
def test_a_bent_hand_is_given_the_quadratic_model(screen, seed):
    model, _ = fit_hand(screen, PLACES, noisy(crooked(PLACES, bend=0.6), seed))
    assert model.kind == "quadratic"


def test_a_keystoned_hand_is_given_the_homography(screen):
    model, _ = fit_hand(screen, PLACES, noisy(crooked(PLACES, keystone=0.02), 1))
    assert model.kind == "homography"


@pytest.mark.parametrize("shape", [{}, {"bend": 0.6}, {"keystone": 0.02}])
def test_the_model_predicts_places_it_was_not_fitted_to(screen, shape):
    model, _ = fit_hand(screen, PLACES, noisy(crooked(PLACES, **shape), 2))
    elsewhere = np.array([[4.0, 4.0], [64.0, 143.3], [20.0, 90.0], [64.0, 4.0]])
    predicted = model.map_grid(screen.mm_to_grid(elsewhere))
    assert np.linalg.norm(predicted - crooked(elsewhere, **shape), axis=1).max() < 0.12


def test_places_in_a_line_determine_no_model(screen):
    line = np.column_stack([np.linspace(5, 60, 9), np.linspace(5, 140, 9)])
    with pytest.raises(FitRefused, match="determine"):
        fit_hand(screen, line, crooked(line))


def test_places_on_two_lines_never_get_a_quadratic(screen):
    two_columns = PLACES[PLACES[:, 0] != COLUMNS[1]]
    grid = screen.mm_to_grid(two_columns)
    with pytest.raises(FitRefused, match="quadratic"):
        fit_kind("quadratic", grid, crooked(two_columns))
    model, _ = fit_hand(screen, two_columns, noisy(crooked(two_columns, bend=0.3), 1))
    assert model.kind != "quadratic"


def test_two_places_are_too_few(screen):
    with pytest.raises(FitRefused, match="needs 3 places"):
        fit_hand(screen, PLACES[:2], crooked(PLACES[:2]))


def test_a_slipped_touch_is_dropped_and_named(screen):
    hand = noisy(crooked(PLACES), 4)
    hand[6] += [0.9, -0.5]
    model, quality = fit_hand(screen, PLACES, hand)
    assert quality.outliers == (6,)
    assert quality.places == 14
    assert np.linalg.norm(model.map_grid(screen.mm_to_grid(PLACES)) - crooked(PLACES), axis=1).max() < 0.1


def test_a_loose_stylus_is_refused(screen):
    hand = noisy(crooked(PLACES), 4)
    hand[[1, 6, 11]] += [[1.5, -0.5], [-0.8, 1.4], [0.2, -1.8]]
    with pytest.raises(ResidualRefused, match="stylus"):
        fit_hand(screen, PLACES, hand)


@pytest.mark.parametrize("place", [(-0.1, 5.0), (5.0, 1000.1), (float("nan"), 5.0), (5.0, float("inf"))])
def test_a_place_off_the_grid_is_refused_not_clamped(screen, place):
    model, _ = fit_hand(screen, PLACES, crooked(PLACES))
    with pytest.raises(OutsideModel, match="off the screen"):
        model.grid_to_hand(*place)


def test_both_ends_of_the_grid_are_on_it(screen):
    model, _ = fit_hand(screen, PLACES, crooked(PLACES))
    corner = crooked(np.array([[screen.width_mm, screen.height_mm]]))[0]
    assert model.grid_to_hand(1000.0, 1000.0) == pytest.approx(tuple(corner), abs=1e-6)
    assert model.grid_to_hand(0.0, 0.0) == pytest.approx((80.0, 20.0), abs=1e-6)


def test_a_model_with_the_wrong_number_of_coefficients_cannot_be_made():
    with pytest.raises(FitRefused, match="6 finite"):
        HandModel(kind="affine", coefficients=(1.0, 2.0))
