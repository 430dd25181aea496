"""The hand's core: what it refuses, how it travels, how fast, and what it does when things go wrong."""

from itertools import pairwise
from math import dist

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware import wire
from firmware.hand.core import STALL_US, Drives, HandCore, HandLimits
from firmware.hand.motion import shortest_us

LIMITS = (0, 200_000, 0, 130_000, -3_000, 30_000, 300, 4000)
V_MAX, A_MAX = 0.3, 4e-6
HOVER, PRESS = 4_000, -500
HOME = (0, 0, 30_000)


class RecordingDrives(Drives):
    """Drives that note each setpoint with its time."""

    def __init__(self, retained=None):
        self.setpoints = []
        self.pushed = None
        self._retained = retained
        self.now_us = 0

    def write(self, x_um, y_um, z_um):
        self.setpoints.append((self.now_us, (x_um, y_um, z_um)))

    def read(self):
        pushed, self.pushed = self.pushed, None
        return pushed

    def retained(self):
        return self._retained


class Bench:
    """A hand core with its drives and a clock; notes what the core reports, in place of the link."""

    def __init__(self, retained=None):
        self.drives = RecordingDrives(retained)
        self.core = HandCore(self.drives, HandLimits(*LIMITS))
        self.core.link = self
        self.now_us = 1_000
        self.reports = []

    def contact(self, now_us):
        self.reports.append(("contact", now_us))

    def done(self, now_us, data=b""):
        self.reports.append(("done", now_us))

    def fault(self, code, flags, now_us):
        self.reports.append(("fault", code, flags))

    def moved(self, cause, now_us):
        self.reports.append(("moved", cause))

    def start(self, op, *args):
        self.drives.now_us = self.now_us
        return self.core.start(op, wire.pack_args(op, *args), self.now_us)

    def poll(self, at_us):
        self.now_us = self.drives.now_us = at_us
        self.core.poll(at_us)

    def run(self, late_us=0, until_us=None):
        """Poll when the core asks for it, rounded up to whole ms as a port's poll does, until it rests."""
        for _ in range(100_000):
            due_us = self.core.due_us(self.now_us)
            if due_us < 0:
                return
            at_us = self.now_us + max(1_000, -(-due_us // 1_000) * 1_000) + late_us
            if until_us is not None and at_us > until_us:
                return
            self.poll(at_us)
        raise AssertionError("the hand never comes to rest")

    def home(self):
        assert self.start(wire.OP_HOME) == 0
        self.run()
        self.reports.clear()
        self.drives.setpoints.clear()

    def tap(self, x_um, y_um, dwell_ms=60):
        return self.start(wire.OP_TAP, x_um, y_um, HOVER, PRESS, dwell_ms)

    @property
    def at(self):
        return self.drives.setpoints[-1][1] if self.drives.setpoints else HOME


@pytest.fixture
def bench():
    homed = Bench()
    homed.home()
    return homed


def assert_within_limits(setpoints):
    """Mean speeds between setpoints, and their changes, as a body within the limits would have them.

    A setpoint is rounded to whole µm on each axis, which each interval's speed shows twice.
    """
    speeds = []
    for (t0, p0), (t1, p1) in pairwise(setpoints):
        dt = t1 - t0
        assert dist(p0, p1) <= V_MAX * dt * 1.0001 + 1.8
        speeds.append((dt, tuple((b - a) / dt for a, b in zip(p0, p1, strict=True))))
    for (dt0, v0), (dt1, v1) in pairwise(speeds):
        assert dist(v0, v1) <= A_MAX * (dt0 + dt1) / 2 * 1.0001 + 1.8 / dt0 + 1.8 / dt1


def test_a_hand_that_is_not_homed_refuses_every_command_but_home():
    bench = Bench()
    assert bench.tap(50_000, 50_000) == wire.FAULT_NOT_HOMED
    assert bench.start(wire.OP_PARK, *HOME) == wire.FAULT_NOT_HOMED
    assert bench.drives.setpoints == []
    assert not bench.core.flags() & wire.FLAG_HOMED


def test_homing_lifts_slowly_before_it_travels():
    bench = Bench(retained=(120_000, 80_000, -400))
    assert bench.start(wire.OP_HOME) == 0
    bench.run()
    lifting = [p for _, p in bench.drives.setpoints if p[2] < HOME[2]]
    assert {p[:2] for p in lifting} == {(120_000, 80_000)}
    assert bench.at == HOME
    assert bench.reports[0] == ("moved", wire.MOVED_HOMED)
    assert bench.reports[1][0] == "done"
    assert bench.core.flags() & wire.FLAG_HOMED
    lift_speeds = [
        dist(a, b) / (t1 - t0) for (t0, a), (t1, b) in pairwise(bench.drives.setpoints[: len(lifting)])
    ]
    assert max(lift_speeds) <= V_MAX / 10 + 1e-3


def test_a_tap_travels_at_hover_or_above_and_returns_to_hover(bench):
    assert bench.tap(150_000, 100_000) == 0
    bench.run()
    for _, (x, y, z) in bench.drives.setpoints:
        assert z >= HOVER or (x, y) == (150_000, 100_000)
    assert min(p[2] for _, p in bench.drives.setpoints) == PRESS
    assert bench.at == (150_000, 100_000, HOVER)
    assert [r[0] for r in bench.reports] == ["contact", "done"]


def test_a_tap_from_below_hover_lifts_before_it_travels(bench):
    bench.tap(50_000, 50_000)
    bench.run()
    bench.start(wire.OP_MOVE, 50_000, 50_000, PRESS)
    bench.run()
    bench.drives.setpoints.clear()
    bench.tap(60_000, 50_000)
    bench.run()
    assert all(z >= HOVER for _, (x, _, z) in bench.drives.setpoints if x not in (50_000, 60_000))


def test_contact_is_reported_with_the_setpoint_that_presses_and_the_dwell_is_kept(bench):
    bench.tap(50_000, 50_000, dwell_ms=80)
    bench.run()
    pressed = [t for t, p in bench.drives.setpoints if p[2] == PRESS]
    assert ("contact", pressed[0]) in bench.reports
    left_us = next(t for t, p in bench.drives.setpoints if t > pressed[0] and p[2] > PRESS)
    assert 80_000 <= left_us - pressed[0] <= 80_000 + 6_000


@pytest.mark.parametrize("far", [(60_000, 50_000), (150_000, 120_000), (50_500, 50_000)])
def test_a_tap_takes_at_most_a_twentieth_longer_than_physics_allows(bench, far):
    bench.tap(50_000, 50_000)
    bench.run()
    begun_us = bench.now_us
    assert bench.tap(*far, dwell_ms=60) == 0
    bench.run()
    travel_us = shortest_us(dist((50_000, 50_000), far), V_MAX, A_MAX)
    stroke_us = shortest_us(HOVER - PRESS, V_MAX, A_MAX)
    assert bench.now_us - begun_us <= 1.05 * (travel_us + 2 * stroke_us + 60_000)


def test_a_swipe_lasts_exactly_from_contact_to_lift(bench):
    assert bench.start(wire.OP_SWIPE, 50_000, 50_000, PRESS, 90_000, 60_000, -700, HOVER, 300) == 0
    bench.run()
    contact_us = next(r[1] for r in bench.reports if r[0] == "contact")
    lifted_us = next(t for t, p in bench.drives.setpoints if p == (90_000, 60_000, -700))
    assert 300_000 <= lifted_us - contact_us <= 301_000
    assert bench.at == (90_000, 60_000, HOVER)
    assert_within_limits(bench.drives.setpoints)


def test_a_swipe_goes_at_constant_speed_between_its_ramps(bench):
    bench.start(wire.OP_SWIPE, 50_000, 50_000, PRESS, 90_000, 50_000, PRESS, HOVER, 500)
    bench.run()
    sliding = [(t, p) for t, p in bench.drives.setpoints if 55_000 < p[0] < 85_000]
    speeds = [dist(a, b) / (t1 - t0) for (t0, a), (t1, b) in pairwise(sliding)]
    assert max(speeds) - min(speeds) < 0.001


@pytest.mark.parametrize(
    ("op", "args", "code"),
    [
        (wire.OP_TAP, (200_001, 0, HOVER, PRESS, 60), wire.FAULT_ENVELOPE),
        (wire.OP_TAP, (0, -1, HOVER, PRESS, 60), wire.FAULT_ENVELOPE),
        (wire.OP_TAP, (0, 0, 30_001, PRESS, 60), wire.FAULT_ENVELOPE),
        (wire.OP_TAP, (0, 0, HOVER, -3_001, 60), wire.FAULT_DEPTH),
        (wire.OP_TAP, (0, 0, PRESS, PRESS, 60), wire.FAULT_BAD_ARGS),
        (wire.OP_MOVE, (0, 0, -3_001), wire.FAULT_DEPTH),
        (wire.OP_PARK, (0, 130_001, 0), wire.FAULT_ENVELOPE),
        (wire.OP_SWIPE, (0, 0, PRESS, 200_001, 0, PRESS, HOVER, 300), wire.FAULT_ENVELOPE),
        (wire.OP_SWIPE, (0, 0, PRESS, 50_000, 0, -3_001, HOVER, 300), wire.FAULT_DEPTH),
        (wire.OP_SWIPE, (9_000, 9_000, PRESS, 9_000, 9_000, PRESS, HOVER, 300), wire.FAULT_BAD_ARGS),
        # 100 mm in 200 ms would need more than 300 mm/s.
        (wire.OP_SWIPE, (0, 0, PRESS, 100_000, 0, PRESS, HOVER, 200), wire.FAULT_BAD_ARGS),
        (wire.OP_KEY, (0,), wire.FAULT_UNSUPPORTED),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_moves(bench, op, args, code):
    assert bench.start(op, *args) == code
    bench.run()
    assert bench.drives.setpoints == []
    assert bench.reports == []


def test_arguments_of_the_wrong_length_are_refused(bench):
    assert bench.core.start(wire.OP_TAP, b"\x00" * 17, bench.now_us) == wire.FAULT_BAD_ARGS


def test_a_second_command_is_refused_while_one_runs(bench):
    bench.tap(50_000, 50_000)
    assert bench.tap(60_000, 60_000) == wire.FAULT_BUSY


def test_a_silent_host_during_a_press_lifts_the_stylus_and_admits_the_effect(bench):
    bench.tap(50_000, 50_000, dwell_ms=5_000)
    bench.run(until_us=bench.now_us + 2_000_000)
    assert bench.at[2] == PRESS
    bench.reports.clear()
    bench.core.deadman(bench.now_us)
    bench.run()
    assert bench.at == (50_000, 50_000, 30_000)
    assert bench.reports == [
        ("fault", wire.FAULT_ABORTED, wire.FAULT_FLAG_EFFECT),
        ("moved", wire.MOVED_DEADMAN),
    ]


def test_a_press_cut_short_above_its_setpoint_admits_that_it_may_have_touched(bench):
    bench.tap(50_000, 50_000)
    while not bench.drives.setpoints or bench.at[2] >= HOVER:
        bench.poll(bench.now_us + 4_000)
    assert bench.reports == []
    bench.core.deadman(bench.now_us)
    assert bench.reports[0] == ("fault", wire.FAULT_ABORTED, wire.FAULT_FLAG_EFFECT)


def test_a_tap_given_up_on_its_way_has_touched_nothing(bench):
    bench.tap(150_000, 100_000)
    bench.run(until_us=bench.now_us + 100_000)
    bench.core.deadman(bench.now_us)
    assert bench.reports[0] == ("fault", wire.FAULT_ABORTED, 0)
    bench.run()
    assert bench.at[2] == 30_000


def test_an_emergency_stop_latches_until_it_is_cleared(bench):
    bench.tap(50_000, 50_000, dwell_ms=5_000)
    bench.run(until_us=bench.now_us + 2_000_000)
    bench.core.estop(bench.now_us)
    bench.run()
    assert bench.at[2] == 30_000
    assert ("fault", wire.FAULT_ESTOPPED, wire.FAULT_FLAG_EFFECT) in bench.reports
    assert bench.tap(50_000, 50_000) == wire.FAULT_ESTOPPED
    assert bench.start(wire.OP_HOME) == wire.FAULT_ESTOPPED
    bench.core.clear_estop(bench.now_us)
    assert bench.tap(50_000, 50_000) == 0


def test_a_command_that_comes_during_the_safety_lift_waits_for_it(bench):
    bench.tap(50_000, 50_000, dwell_ms=5_000)
    bench.run(until_us=bench.now_us + 2_000_000)
    bench.core.deadman(bench.now_us)
    assert bench.tap(60_000, 60_000) == 0
    bench.run()
    assert bench.at == (60_000, 60_000, HOVER)
    assert (50_000, 50_000, 30_000) in [p for _, p in bench.drives.setpoints]
    assert_within_limits(bench.drives.setpoints)


def test_a_push_that_the_drives_sense_is_reported_once(bench):
    bench.drives.pushed = (700, 0, 0)
    bench.poll(bench.now_us + 1_000)
    bench.poll(bench.now_us + 1_000)
    assert bench.reports == [("moved", wire.MOVED_PUSHED)]


def test_a_jog_below_hover_goes_up_before_it_goes_sideways(bench):
    bench.tap(50_000, 50_000)
    bench.run()
    bench.start(wire.OP_MOVE, 50_000, 50_000, -200)
    bench.run()
    bench.drives.setpoints.clear()
    bench.start(wire.OP_MOVE, 52_000, 50_000, -200)
    bench.run()
    assert all(z >= HOVER for _, (x, _, z) in bench.drives.setpoints if 50_000 < x < 52_000)
    assert bench.at == (52_000, 50_000, -200)


def test_a_loop_that_stalls_slows_the_motion_instead_of_making_it_jump(bench):
    bench.tap(150_000, 100_000)
    bench.run(until_us=bench.now_us + 200_000)
    before = bench.at
    bench.poll(bench.now_us + 300_000)
    assert dist(before, bench.at) <= V_MAX * (STALL_US + 4_000)


places = st.tuples(st.integers(0, 200_000), st.integers(0, 130_000))
interruptions = st.sampled_from(["none", "deadman", "estop"])


@given(
    steps=st.lists(st.tuples(places, interruptions, st.integers(0, 900_000)), min_size=1, max_size=4),
    late_us=st.integers(0, 4_000),
)
@settings(max_examples=30, deadline=None)
def test_setpoints_stay_within_the_limits_whatever_interrupts_them(steps, late_us):
    bench = Bench()
    bench.home()
    for place, interruption, after_us in steps:
        assert bench.tap(*place, dwell_ms=20) == 0
        if interruption == "none":
            bench.run(late_us)
            continue
        bench.run(late_us, until_us=bench.now_us + after_us)
        getattr(bench.core, interruption)(bench.now_us)
        bench.run(late_us)
        bench.core.clear_estop(bench.now_us)
        assert bench.at[2] == 30_000
    assert_within_limits(bench.drives.setpoints)
