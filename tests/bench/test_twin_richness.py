"""What the twin's mechanics, glass and panel have that no simple model has; the rest stayed as it was."""

import numpy as np
import pytest

from edge_daemon.bench.twin.arm import Arm
from edge_daemon.bench.twin.bed import bed_markers
from edge_daemon.bench.twin.cover import Cover
from edge_daemon.bench.twin.frames import screen_to_world_mm
from edge_daemon.bench.twin.mechanics import Hand
from edge_daemon.bench.twin.optics import PICTURE_HEIGHT_PX, PICTURE_WIDTH_PX, project
from edge_daemon.bench.twin.touches import PanelFaults, Spoiling, Touch
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_WIDTH_MM, Truth
from edge_daemon.bench.twin.virtual import VirtualRig

MS = 1_000_000
HOVER_MM = 5.0
SEEDS = range(40)


class Taps:
    """A rig in virtual time whose hand is driven by setpoints each 4 ms."""

    def __init__(self, seed: int, *, rich: bool = True) -> None:
        self.truth = Truth(seed, rich)
        self.rig = VirtualRig(self.truth)
        self.at = (0.0, 0.0, 30.0)

    def go(self, x: float, y: float, z: float, speed_mm_s: float = 150.0) -> None:
        start, goal = np.array(self.at), np.array((x, y, z))
        count = max(1, int(np.linalg.norm(goal - start) / speed_mm_s / 0.004))
        for share in np.arange(1, count + 1) / count:
            setpoint = np.round((start + (goal - start) * share) * 1000).astype(int)
            self.rig.pass_ms(4)
            self.rig.command(*(int(um) for um in setpoint))
        self.at = (x, y, z)

    def tap(self, x: float, y: float, press_z: float) -> list[Touch]:
        before = len(self.rig.phone.touches)
        self.go(x, y, HOVER_MM)
        self.go(x, y, press_z, 60.0)
        self.rig.pass_ms(60)
        self.go(x, y, HOVER_MM, 60.0)
        self.rig.pass_ms(200)
        return self.rig.phone.touches[before:]


# What the twin reported before it had bows, pulleys, curved glass and panel faults: screen mm.
BEFORE = [
    (14.072222, 23.511346),
    (33.338889, 109.058654),
    (26.035185, 24.707372),
    (8.846296, 70.219295),
    (5.635185, 100.686474),
    (30.253704, 60.210449),
]


def test_without_the_rich_parts_the_same_seed_gives_the_touches_of_before() -> None:
    taps = Taps(3, rich=False)
    rng = np.random.default_rng(3)
    for wanted in BEFORE:
        (touch,) = taps.tap(float(rng.uniform(40, 160)), float(rng.uniform(35, 95)), -1.0)
        assert (touch.x_mm, touch.y_mm) == pytest.approx(wanted, abs=1e-6)


def test_the_rich_parts_leave_the_older_parameters_as_they_were() -> None:
    for seed in SEEDS:
        rich, plain = Truth(seed), Truth(seed, rich=False)
        assert (rich.hand, rich.glass, rich.camera, rich.phone) == (
            plain.hand,
            plain.glass,
            plain.camera,
            plain.phone,
        )
        assert rich.arm != plain.arm


def test_rails_are_bowed_by_more_than_an_affine_map_takes_up_and_pulleys_add_a_wave() -> None:
    across, along = np.meshgrid(np.linspace(30, 170, 29), np.linspace(32, 98, 15))
    places = np.column_stack([across.ravel(), along.ravel()])
    for seed in range(20):
        arm = Arm(Truth(seed))
        off = np.array([arm.deviation_mm(x, y) for x, y in places])
        affine = np.column_stack([places, np.ones(len(places))])
        left = off - affine @ np.linalg.lstsq(affine, off, rcond=None)[0]
        assert 0.03 < np.abs(left).max() < 0.6, seed
        fine = np.array([arm.deviation_mm(x, 65.0)[0] for x in np.linspace(30, 170, 281)])
        assert 0.02 <= np.ptp(fine) <= 0.061, "the pulley's wave along x, twice its amplitude"


def test_each_rail_bends_sideways_by_its_own_quadratic_and_cubic() -> None:
    truth = Truth(3)
    arm, along = Arm(truth), np.linspace(-1.0, 1.0, 41)
    across_x = [arm.deviation_mm(100.0 + 75.0 * u, 65.0)[1] for u in along]
    across_y = [arm.deviation_mm(100.0, 65.0 + 36.0 * v)[0] for v in along]
    for seen, bow in ((across_x, truth.arm.bow_of_x_mm), (across_y, truth.arm.bow_of_y_mm)):
        cubic, quadratic, _, _ = np.polyfit(along, seen, 3)
        assert (quadratic, cubic) == pytest.approx(bow, abs=1e-9)


def test_a_ghost_contact_comes_and_goes_by_itself_while_the_hand_rests() -> None:
    taps = Taps(5)
    phone = taps.rig.phone
    phone.spoil_next_touch("doubled")
    taps.go(100.0, 65.0, HOVER_MM)
    taps.go(100.0, 65.0, -1.4, 60.0)
    taps.go(100.0, 65.0, HOVER_MM, 60.0)
    lifted_ns = phone.touches[0].up_ns
    assert lifted_ns is not None
    while (due_ns := phone.due_ns()) is not None:
        phone.advance(due_ns)
    assert [touch.up_ns is not None for touch in phone.touches] == [True, True]
    assert phone.touches[1].down_ns > lifted_ns


def test_hand_and_world_are_each_other_s_inverse_with_all_deviations() -> None:
    for seed in range(10):
        arm = Arm(Truth(seed))
        for place in ((30.0, 30.0), (100.0, 65.0), (171.0, 99.0)):
            assert arm.to_hand_mm(*arm.to_world_mm(*place)) == pytest.approx(place, abs=1e-6)


def test_the_glass_is_lower_at_its_edges_than_in_its_middle() -> None:
    for seed in SEEDS:
        shape = Truth(seed).shape
        middle, edge = shape.drop_mm(0.0, 0.0), shape.drop_mm(0.0, SCREEN_WIDTH_MM / 2 - 0.01)
        assert middle == 0.0
        assert 0.05 - 0.002 <= edge <= 0.15


def test_the_phone_sinks_under_the_stylus_and_more_so_in_a_corner() -> None:
    taps = Taps(8)
    hand, give = taps.rig.hand, {}
    for name, world in (("middle", (0.0, 0.0)), ("corner", (68.0, 29.0))):
        x, y = hand.to_hand_mm(*world)
        surface = hand.surface_z_mm(x, y)
        (touch,) = taps.tap(x, y, surface - 2.0)
        give[name] = 2.0 / touch.press_mm - 1.0
    assert give["middle"] == pytest.approx(taps.truth.shape.compliance_mm_per_n, abs=0.012)
    assert give["corner"] > 1.7 * give["middle"]


@pytest.mark.parametrize(("how", "count"), [("missed", 0), ("doubled", 2), ("bounced", 2)])
def test_a_spoiled_touch_is_missed_or_comes_twice_and_the_next_one_is_whole(
    how: Spoiling, count: int
) -> None:
    taps = Taps(5)
    taps.rig.phone.spoil_next_touch(how)
    spoiled = taps.tap(100.0, 65.0, -1.4)
    assert len(spoiled) == count
    assert all(touch.up_ns is not None for touch in spoiled)
    for touch in spoiled[1:]:
        assert np.hypot(touch.x_mm - spoiled[0].x_mm, touch.y_mm - spoiled[0].y_mm) < 0.1
    assert len(taps.tap(100.0, 65.0, -1.4)) == 1


def test_faults_come_by_their_probability_the_same_for_the_same_seed_and_move_no_good_touch() -> None:
    def counts(faults: PanelFaults) -> list[list[tuple[float, float]]]:
        taps = Taps(6)
        taps.rig.phone.set_touch_faults(faults)
        return [[(touch.x_mm, touch.y_mm) for touch in taps.tap(90.0, 60.0, -1.4)] for _ in range(24)]

    good, bad = counts(PanelFaults()), counts(PanelFaults(missed=0.25, doubled=0.25))
    assert [len(touches) for touches in good] == [1] * 24
    assert 2 <= sum(not touches for touches in bad) <= 12
    assert 2 <= sum(len(touches) == 2 for touches in bad) <= 12
    assert all(touches[0] == whole[0] for touches, whole in zip(bad, good, strict=True) if touches)
    assert bad == counts(PanelFaults(missed=0.25, doubled=0.25))


def test_a_dot_s_place_in_the_picture_is_that_of_a_pixel_under_refracting_glass() -> None:
    truth = Truth(6)
    places = screen_to_world_mm(np.array([[x, y] for x in (8.0, 34.0, 60.0) for y in (8.0, 73.0, 139.0)]))[
        :, :2
    ]
    cover = Cover(truth, truth.camera.lens, truth.camera.pose)
    seen = cover.picture_px(places)
    assert np.abs(cover.display_mm(seen) - places).max() < 1e-6
    # A flat sheet of refracting glass lets a pixel at depth d appear at d / n, straight below the eye.
    depth = truth.display.cover_mm / truth.display.cover_index
    raised = np.column_stack([places, np.full(len(places), -depth)])
    assert np.abs(project(truth.camera.lens, truth.camera.pose, raised) - seen).max() < 0.06
    surface = np.column_stack([places, np.zeros(len(places))])
    assert np.abs(project(truth.camera.lens, truth.camera.pose, surface) - seen).max() > 0.4


def test_every_rig_has_four_bed_markers_that_its_camera_sees_whole_beside_the_phone() -> None:
    for seed in SEEDS:
        truth = Truth(seed)
        markers = bed_markers(truth)
        assert len({marker.ident for marker in markers}) == 4
        for marker in markers:
            square = np.array([(-4, -4), (4, -4), (4, 4), (-4, 4)]) + np.array([marker.x_mm, marker.y_mm])
            seen = project(truth.camera.lens, truth.camera.pose, np.column_stack([square, np.full(4, -8.5)]))
            assert seen.min() > 4, seed
            assert (seen < (PICTURE_WIDTH_PX - 5, PICTURE_HEIGHT_PX - 5)).all(), seed
            outside = np.abs(square) - (SCREEN_HEIGHT_MM / 2 + 3.6, SCREEN_WIDTH_MM / 2 + 3.6)
            assert (outside.max(axis=1) > 0).all(), seed


def test_a_nudged_phone_is_touched_elsewhere_by_as_much_as_it_was_moved_and_turned() -> None:
    taps = Taps(4)
    before = taps.tap(130.0, 70.0, -1.6)[0]
    taps.rig.nudge_phone(1.5, -0.8, 0.5)
    after = taps.tap(130.0, 70.0, -1.6)[0]
    # World X is screen y, world Y screen x; the phone moved under a tip that stayed.
    turned = np.radians(0.5) * np.array(
        [before.x_mm - SCREEN_WIDTH_MM / 2, before.y_mm - SCREEN_HEIGHT_MM / 2]
    )
    assert after.y_mm - before.y_mm == pytest.approx(-1.5 + turned[0], abs=0.2)
    assert after.x_mm - before.x_mm == pytest.approx(0.8 - turned[1], abs=0.2)


def test_a_nudge_under_a_resting_tip_moves_the_screen_and_not_the_tip() -> None:
    hand = Hand(Truth(4), 0)
    rig = VirtualRig(Truth(4))
    before = rig.hand.pose()
    rig.nudge_phone(2.0, 0.0)
    after = rig.hand.pose()
    assert (after.x_mm, after.y_mm) == pytest.approx((before.x_mm, before.y_mm - 2.0))
    assert hand.pose().height_mm == pytest.approx(after.height_mm, abs=0.05)
