import msgspec
import numpy as np
import pytest

from calibration.errors import FitRefused, OutsideModel, ResidualRefused
from calibration.fit_hand import fit_hand, fit_kind, inverse_error_mm, leave_one_out
from calibration.fitting import as_good
from calibration.hand_terms import terms
from calibration.models import HandModel
from calibration.thin_plate import ThinPlate

COLUMNS, ROWS = np.linspace(7.0, 61.0, 3), np.linspace(7.0, 140.3, 5)
PLACES = np.array([(x, y) for y in ROWS for x in COLUMNS])
MANY = np.array([(x, y) for y in np.linspace(7.0, 140.3, 6) for x in np.linspace(7.0, 61.0, 4)])
ALL_KINDS = ("affine", "homography", "quadratic", "cubic", "thin_plate")


def crooked(seen_mm, bend=0.0, keystone=0.0):
    """Hand mm for places on a 68 x 147.3 mm screen: turned, stretched, and bent if asked."""
    unit = seen_mm / [34.0, 73.65] - 1.0
    turned = seen_mm @ np.array([[1.006, 0.02], [-0.03, 0.995]]).T + [80.0, 20.0]
    bent = bend * np.column_stack([unit[:, 1] ** 2, unit[:, 0] * unit[:, 1]])
    return (turned + bent) / (1.0 + keystone * unit[:, :1])


def noisy(hand_mm, seed):
    return hand_mm + np.random.default_rng(seed).normal(0.0, 0.03, hand_mm.shape)


def everywhere(screen, inset_mm=3.0):
    x, y = np.meshgrid(
        np.linspace(inset_mm, screen.width_mm - inset_mm, 12),
        np.linspace(inset_mm, screen.height_mm - inset_mm, 24),
    )
    return np.column_stack([x.ravel(), y.ravel()])


def wavy(seen_mm):
    """Hand mm with a wave of 0.3 mm over the screen: what no polynomial here can follow."""
    wave = np.sin(seen_mm[:, 1] * (2.0 * np.pi / 147.0)) * np.cos(seen_mm[:, 0] * (np.pi / 68.0))
    return crooked(seen_mm) + 0.3 * np.column_stack([wave, -wave])


def cubic(seen_mm):
    unit = seen_mm / [34.0, 73.65] - 1.0
    return crooked(seen_mm) + 0.5 * np.column_stack([unit[:, 1] ** 3, unit[:, 0] ** 2 * unit[:, 1]])


def test_a_straight_hand_is_given_the_affine_model(screen):
    kinds = [fit_hand(screen, MANY, noisy(crooked(MANY), seed))[0].kind for seed in range(20)]
    assert kinds.count("affine") >= 17


def test_every_kind_that_can_be_fitted_is_compared(screen):
    _, few = fit_hand(screen, PLACES, noisy(crooked(PLACES), 1))
    _, many = fit_hand(screen, MANY, noisy(crooked(MANY), 1))
    assert set(few.leave_one_out_rms_mm) == {"affine", "homography", "quadratic", "thin_plate"}
    assert set(many.leave_one_out_rms_mm) == set(ALL_KINDS)


@pytest.mark.parametrize("seed", range(3))
def test_a_cubic_hand_is_given_the_cubic_model(screen, seed):
    model, _ = fit_hand(screen, MANY, noisy(cubic(MANY), seed))
    assert model.kind == "cubic"
    off = model.map_grid(screen.mm_to_grid(everywhere(screen))) - cubic(everywhere(screen))
    assert np.linalg.norm(off, axis=1).max() < 0.15


@pytest.mark.parametrize("seed", range(3))
def test_a_wavy_hand_is_given_the_thin_plate(screen, seed):
    model, _ = fit_hand(screen, MANY, noisy(wavy(MANY), seed))
    assert model.kind == "thin_plate"
    off = model.map_grid(screen.mm_to_grid(everywhere(screen))) - wavy(everywhere(screen))
    cubic_model = fit_kind("cubic", screen.mm_to_grid(MANY), wavy(MANY))
    bent = cubic_model.map_grid(screen.mm_to_grid(everywhere(screen))) - wavy(everywhere(screen))
    assert np.sqrt((off**2).mean()) < 0.8 * np.sqrt((bent**2).mean())


def test_a_thin_plate_does_not_go_through_the_noise(screen):
    """Not once in 300 times: leave-one-out alone is now and then content with a plate through every touch."""
    grid, unit = screen.mm_to_grid(MANY), MANY / [34.0, 73.65] - 1.0
    for seed in range(300):
        plate = ThinPlate(unit, noisy(crooked(MANY), seed))
        smooth = crooked(MANY) - terms("thin_plate", unit, unit) @ plate.coefficients
        assert np.sqrt((smooth**2).mean()) < 0.85 * 0.03
    model = fit_kind("thin_plate", grid, noisy(crooked(MANY), 1))
    off = model.map_grid(screen.mm_to_grid(everywhere(screen))) - crooked(everywhere(screen))
    assert np.sqrt((off**2).mean()) < 0.03


def test_a_thin_plate_is_stored_as_plain_numbers(screen):
    model = fit_kind("thin_plate", screen.mm_to_grid(MANY), noisy(wavy(MANY), 1))
    again = msgspec.json.decode(msgspec.json.encode(model), type=HandModel)
    assert again == model
    assert again.grid_to_hand(12.5, 900.0) == model.grid_to_hand(12.5, 900.0)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_leaving_one_out_is_what_refitting_without_it_gives(screen, kind):
    grid, hand = screen.mm_to_grid(MANY), noisy(crooked(MANY, bend=0.2), 3)
    errors = leave_one_out(kind, grid, hand)
    keep = np.arange(len(grid)) != 5
    # Without the place another smoothness may be chosen for the thin plate.
    near = 0.5 if kind == "thin_plate" else 1e-6
    refitted = fit_kind(kind, grid[keep], hand[keep]).map_grid(grid[5:6])[0]
    assert np.linalg.norm(refitted - hand[5]) == pytest.approx(errors[5], rel=near)


@pytest.mark.parametrize("seed", range(4))
def test_a_cubic_on_three_columns_is_refused_also_when_noise_hides_that_they_are_three(screen, seed):
    seen = PLACES + np.random.default_rng(seed).normal(0.0, 0.05, PLACES.shape)
    grid = screen.mm_to_grid(seen)
    with pytest.raises(FitRefused, match="cubic"):
        fit_kind("cubic", grid, crooked(PLACES))
    with pytest.raises(FitRefused, match="cubic"):
        leave_one_out("cubic", grid, crooked(PLACES))
    _, quality = fit_hand(screen, seen, noisy(cubic(PLACES), seed))
    assert "cubic" not in quality.leave_one_out_rms_mm


def test_a_cluster_of_places_determines_no_model_of_the_whole_screen(screen):
    cluster = 30.0 + 12.0 * np.random.default_rng(1).uniform(size=(16, 2))
    with pytest.raises(FitRefused, match="spread over the whole screen"):
        fit_hand(screen, cluster, crooked(cluster))


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_hand_to_grid_undoes_grid_to_hand(screen, kind):
    model = fit_kind(kind, screen.mm_to_grid(MANY), noisy(wavy(MANY), 2))
    for place in [(0.0, 0.0), (1000.0, 1000.0), (3.0, 997.0), (512.0, 300.0)]:
        assert model.hand_to_grid(*model.grid_to_hand(*place)) == pytest.approx(place, abs=1e-6)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_the_slopes_are_the_derivatives(screen, kind):
    model = fit_kind(kind, screen.mm_to_grid(MANY), noisy(cubic(MANY), 2))
    places = np.array([[-0.9, 0.3], [0.1, 0.2], [0.8, -1.0]])
    for axis in range(2):
        step = np.eye(2)[axis] * 1e-5
        ahead, behind = (model.map_grid((places + s + 1.0) * 500.0) for s in (step, -step))
        assert model.slopes(places)[:, :, axis] == pytest.approx((ahead - behind) / 2e-5, abs=1e-5)


def test_the_inverse_is_reported_and_far_below_a_micrometre(screen):
    _, quality = fit_hand(screen, MANY, noisy(cubic(MANY), 1))
    assert quality.inverse_error_mm < 1e-6


def test_hand_mm_far_from_the_screen_lead_nowhere(screen):
    model = fit_kind("quadratic", screen.mm_to_grid(MANY), crooked(MANY, bend=0.6))
    with pytest.raises(OutsideModel, match="near the screen"):
        model.hand_to_grid(900.0, -400.0)


def test_a_model_that_folds_is_refused(screen):
    folded = HandModel(
        kind="quadratic", coefficients=(80.0, 34.0, 0.0, 24.0, 0.0, 0.0, 80.0, 0.0, 73.0, 0.0, 0.0, 0.0)
    )
    with pytest.raises(FitRefused, match="folds"):
        inverse_error_mm(folded, screen)


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


def test_noise_that_both_models_meet_does_not_make_them_as_good():
    """A model that is a little worse at every point is worse, however much the points differ from each other."""
    best = np.random.default_rng(1).exponential(1.0, 24)
    assert not as_good(best + 0.05, best)
    assert as_good(best + np.random.default_rng(2).normal(0.0, 0.05, 24), best)
    assert as_good(best, best)


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


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("bad", [(0,), (0, 1), (0, 4), (11, 12), (19, 23)])
def test_one_or_two_bad_touches_of_many_are_named_and_no_others(screen, bad, seed):
    """Also two neighbours that agree with each other, at a corner, where a bent model would follow them."""
    hand = noisy(crooked(MANY, bend=0.2), seed)
    hand[list(bad)] += [0.5, 0.35]
    model, quality = fit_hand(screen, MANY, hand)
    assert quality.outliers == bad
    off = model.map_grid(screen.mm_to_grid(everywhere(screen))) - crooked(everywhere(screen), bend=0.2)
    assert np.linalg.norm(off, axis=1).max() < 0.2


def test_three_bad_touches_of_many_are_refused(screen):
    hand = noisy(crooked(MANY), 4)
    hand[[1, 10, 20]] += [[0.9, -0.5], [-0.8, 0.7], [0.2, -1.1]]
    with pytest.raises(ResidualRefused, match="after dropping 2 of 24"):
        fit_hand(screen, MANY, hand)


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


def crooked_arm(random):
    """A hand as a rig has it: (where it lands in screen mm, where it must be sent), both (N, 2) to (N, 2)."""
    turn, skew, scale = (
        np.radians(random.uniform(-3, 3)),
        random.uniform(-0.009, 0.009),
        random.uniform(0.985, 1.015, 2),
    )
    linear = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]) @ [
        [scale[0], skew],
        [0.0, scale[1]],
    ]
    bow, pulley, phase = (
        random.uniform(-0.2, 0.2, 2),
        random.uniform(0.01, 0.03, 2),
        random.uniform(0, 6.3, 2),
    )
    middle = np.array([34.0, 73.65])

    def lands(hand):
        unit = hand / middle
        bent = bow * np.column_stack([unit[:, 1] ** 2, unit[:, 0] ** 2])
        return (hand + bent + pulley * np.sin(hand * (2 * np.pi / 40.0) + phase)) @ linear.T + middle

    def sent(places):
        hand = (places - middle) @ np.linalg.inv(linear).T
        for _ in range(20):
            hand = hand + (places - lands(hand)) @ np.linalg.inv(linear).T
        return hand

    return lands, sent


def test_a_thousand_touches_of_every_rig_land_within_a_quarter_of_a_mm(screen):
    for seed in range(25):
        random = np.random.default_rng([77, seed])
        lands, sent = crooked_arm(random)
        noise_mm = np.hypot(random.uniform(0.025, 0.035), random.uniform(0.010, 0.025))
        seen = MANY + random.normal(0.0, np.hypot(noise_mm, 0.02), MANY.shape)
        model, _ = fit_hand(screen, seen, sent(MANY))
        wanted = random.uniform(3.0, [65.0, 144.3], (1000, 2))
        landed = lands(model.map_grid(screen.mm_to_grid(wanted))) + random.normal(0.0, noise_mm, wanted.shape)
        off = np.linalg.norm(landed - wanted, axis=1)
        assert np.percentile(off, 95) <= 0.15
        assert off.max() <= 0.25
