"""The hand as a machine: it lands where the geometry says, with its own play, scatter and touch."""

import numpy as np
import pytest

from edge_daemon.bench.twin.frames import world_to_screen_mm
from edge_daemon.bench.twin.mechanics import Hand, TipPose
from edge_daemon.bench.twin.phone import Phone
from edge_daemon.bench.twin.touches import Touch
from edge_daemon.bench.twin.truth import Truth

MS = 1_000_000
HOVER_MM = 5.0


class Bench:
    """A hand over a phone, driven by setpoints each 4 ms as the firmware writes them."""

    def __init__(self, seed: int, rich: bool = True) -> None:
        self.truth = Truth(seed, rich)
        self.now_ns = 1_000 * MS
        self.phone = Phone(self.truth, self.now_ns)
        self.hand = Hand(self.truth, self.now_ns)
        self.at = (0.0, 0.0, 30.0)
        self.poses: list[TipPose] = []

    def go(self, x: float, y: float, z: float, speed_mm_s: float = 150.0) -> None:
        start, goal = np.array(self.at), np.array((x, y, z))
        count = max(1, int(np.linalg.norm(goal - start) / speed_mm_s / 0.004))
        for share in np.arange(1, count + 1) / count:
            setpoint = np.round((start + (goal - start) * share) * 1000).astype(int)
            self.now_ns += 4 * MS
            self._pass(self.hand.command(*(int(um) for um in setpoint), self.now_ns))
        self.at = (x, y, z)

    def wait(self, ms: int) -> None:
        self.now_ns += ms * MS
        self._pass(self.hand.advance(self.now_ns))

    def tap(self, x: float, y: float, press_z: float, dwell_ms: int = 60) -> Touch:
        before = len(self.phone.touches)
        self.go(x, y, HOVER_MM)
        self.go(x, y, press_z, 60.0)
        self.wait(dwell_ms)
        self.go(x, y, HOVER_MM, 60.0)
        self.wait(100)
        touches = self.phone.touches[before:]
        assert len(touches) == 1
        return touches[0]

    def expected_mm(self, x: float, y: float) -> tuple[float, float]:
        """Where hand mm x, y lies on the screen, without play and scatter."""
        return world_to_screen_mm(*self.hand.to_world_mm(x, y))

    def surface_z(self, x: float, y: float) -> float:
        return self.hand.surface_z_mm(x, y)

    def _pass(self, poses: list[TipPose]) -> None:
        self.poses.extend(poses)
        self.phone.glass(poses)


@pytest.fixture(params=[3, 8])
def bench(request: pytest.FixtureRequest) -> Bench:
    return Bench(request.param)


def test_a_touch_lands_where_the_geometry_says_within_play_and_scatter(bench: Bench) -> None:
    for x, y in [(60.0, 50.0), (100.0, 65.0), (140.0, 80.0), (150.0, 55.0)]:
        bench.go(x - 3, y - 3, HOVER_MM)
        touch = bench.tap(x, y, -1.0)
        wanted = bench.expected_mm(x, y)
        assert np.hypot(touch.x_mm - wanted[0], touch.y_mm - wanted[1]) < 0.30
        assert touch.source == "glass"
        assert touch.up_ns is not None
        assert 50 <= (touch.duration_ms or 0) <= 150


def test_hand_millimetres_are_turned_skewed_and_stretched_as_the_truth_says() -> None:
    bench = Bench(3, rich=False)
    hand = bench.truth.hand
    c, s = np.cos(hand.rotation_rad), np.sin(hand.rotation_rad)
    rotation = np.array([[c, -s], [s, c]])
    skew = np.array([[1.0, np.tan(hand.skew_rad)], [0.0, 1.0]])
    linear = rotation @ skew @ np.diag([hand.scale_x, hand.scale_y])
    middle = np.array([100.0 + hand.offset_x_mm, 65.0 + hand.offset_y_mm])
    for place in ((40.0, 30.0), (160.0, 100.0)):
        world = linear @ (np.array(place) - middle)
        assert bench.hand.to_world_mm(*place) == pytest.approx(world)
        assert bench.hand.to_hand_mm(*world) == pytest.approx(place)


def test_coming_from_the_other_side_shifts_the_touch_by_the_backlash(bench: Bench) -> None:
    def mean_x(approach_mm: float) -> float:
        found = []
        for _ in range(12):
            bench.go(100.0 + approach_mm, 65.0, HOVER_MM)
            bench.wait(60)
            touch = bench.tap(100.0, 65.0, -1.0)
            found.append(touch.y_mm)
        return float(np.mean(found))

    # Hand x runs along the screen's y.
    shift = mean_x(4.0) - mean_x(-4.0)
    assert shift == pytest.approx(bench.truth.hand.backlash_x_mm * bench.truth.hand.scale_x, abs=0.05)


def test_touches_of_one_place_scatter_by_the_repeatability(bench: Bench) -> None:
    bench.go(90.0, 60.0, HOVER_MM)
    places = []
    for _ in range(60):
        touch = bench.tap(100.0, 65.0, -1.0)
        places.append((touch.x_mm, touch.y_mm))
    # Quantisation to px (0.063 mm) and the panel's jitter come on top of the hand's own scatter.
    spread = np.std(places, axis=0)
    assert np.all(spread > 0.6 * bench.truth.hand.repeatability_mm)
    assert np.all(spread < 2.0 * bench.truth.hand.repeatability_mm)


def test_the_glass_feels_nothing_until_it_is_pressed(bench: Bench) -> None:
    x, y = 100.0, 65.0
    bench.go(x, y, HOVER_MM)
    bench.go(x, y, bench.surface_z(x, y) - 0.01, 30.0)
    bench.wait(100)
    assert bench.phone.touches == []
    bench.go(x, y, bench.surface_z(x, y) - 0.12, 30.0)
    bench.wait(100)
    assert len(bench.phone.touches) == 1
    assert bench.phone.touches[0].up_ns is None


def test_the_glass_is_tilted_as_the_truth_says() -> None:
    bench = Bench(8, rich=False)
    depths = []
    for x in (45.0, 155.0):
        touch = bench.tap(x, 65.0, -1.5)
        depths.append(touch.press_mm)
        wanted = bench.truth.glass.height_mm(*bench.hand.to_world_mm(x, 65.0)) + 1.5
        assert touch.press_mm == pytest.approx(wanted, abs=0.05)
    assert depths[0] != pytest.approx(depths[1], abs=1e-4)


def test_a_press_beside_the_screen_is_no_touch_but_is_counted(bench: Bench) -> None:
    bench.go(5.0, 65.0, HOVER_MM)
    bench.go(5.0, 65.0, -1.5, 60.0)
    bench.wait(50)
    bench.go(5.0, 65.0, HOVER_MM, 60.0)
    bench.wait(50)
    assert bench.phone.touches == []
    assert bench.phone.off_screen_contacts == 1


def test_the_drives_never_exceed_their_acceleration_even_for_a_jump_of_the_setpoint(bench: Bench) -> None:
    bench.wait(10)
    bench._pass(bench.hand.command(150_000, 100_000, 30_000, bench.now_ns))
    bench.wait(900)
    places = np.array([(pose.x_mm, pose.y_mm) for pose in bench.poses])
    speed = np.linalg.norm(np.diff(places, axis=0), axis=1) / 1e-3
    assert speed.max() < 450 * 2**0.5 * 1.03
    # The arm starts with a jerk, when the drives have crossed their play; from then on it is theirs.
    assert np.abs(np.diff(speed[10:])).max() < 12_000 * 2**0.5 * 1.1 * 1e-3
    wanted = bench.expected_mm(150.0, 100.0)
    assert np.hypot(*(places[-1] - wanted)) < 0.25


def test_a_resting_hand_costs_nothing_and_keeps_its_place(bench: Bench) -> None:
    bench.go(100.0, 65.0, 10.0)
    bench.wait(200)
    assert bench.hand.at_rest
    pose = bench.hand.pose()
    bench.wait(3_600_000)
    assert bench.hand.pose() == pose


def test_a_push_displaces_the_tip_until_the_next_command(bench: Bench) -> None:
    bench.go(100.0, 65.0, 10.0)
    bench.wait(200)
    before = bench.hand.pose()
    bench._pass(bench.hand.push(3.0, 0.0, 0.0, bench.now_ns))
    bench.wait(500)
    pushed = bench.hand.pose()
    assert pushed.y_mm - before.y_mm == pytest.approx(3.0, abs=0.25)
    bench.go(100.0, 65.0, 12.0)
    bench.wait(300)
    assert bench.hand.pose().y_mm == pytest.approx(before.y_mm, abs=0.25)


def test_the_same_commands_give_the_same_touches_again() -> None:
    first, second = Bench(5), Bench(5)
    for bench in (first, second):
        bench.tap(80.0, 50.0, -1.0)
        bench.tap(120.0, 75.0, -1.0)
    assert first.phone.touches == second.phone.touches
