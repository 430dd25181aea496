"""What the hand promises whatever it is told: nothing drags across the glass, nothing takes too long.

Random commands at random moments, interrupted at random, go through the core as the link gives them; what it
tells its drives is sampled setpoint by setpoint.
"""

from itertools import pairwise
from math import dist

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware import wire
from firmware.hand.arm_config import arm_from_config
from firmware.hand.core import Drives, HandCore, HandLimits
from firmware.hand.motion import shortest_us

X, Y, Z = (0, 160_000), (0, 90_000), (-3_000, 30_000)
V_MM_S, A_MM_S2 = 300, 4_000
V_MAX, A_MAX = V_MM_S * 1e-3, A_MM_S2 * 1e-9
SCARA = {
    "kind": "scara",
    "base_um": [80_000, -60_000],
    "upper_um": 110_000,
    "fore_um": 110_000,
    "elbow": "left",
    "joints": [[0.0, 4.0, 5.0], [-2.8, -0.2, 5.0], [-3_000, 30_000, 200]],
}


class SampledDrives(Drives):
    """Each setpoint with its time, the command it belongs to, and whether that one has made contact."""

    def __init__(self, rig, retained):
        self._rig = rig
        self._retained = retained
        self.samples = []

    def write(self, x_um, y_um, z_um):
        rig = self._rig
        self.samples.append((rig.now_us, (x_um, y_um, z_um), rig.op, rig.has_contact))

    def retained(self):
        return self._retained

    def senses(self):
        return True

    def sensed(self):
        return (self.samples[-1][1][2], 0) if self.samples else (0, 0)


class Rig:
    """A core, a clock, and what would have heard of it."""

    def __init__(self, retained=None, arm=None):
        self.now_us = 5_000
        self.op = None
        self.has_contact = False
        self.hover = Z[1]
        self.ends = []
        self.drives = SampledDrives(self, retained)
        self.core = HandCore(
            self.drives, HandLimits(*X, *Y, *Z, V_MM_S, A_MM_S2), arm_from_config(arm) if arm else None
        )
        self.core.link = self

    def contact(self, now_us):
        self.has_contact = True

    def done(self, now_us, data=b""):
        self.ends.append("done")

    def fault(self, code, flags, now_us):
        self.ends.append(code)

    def moved(self, cause, now_us):
        pass

    def start(self, op, args):
        before = (self.op, self.has_contact)
        self.op, self.has_contact = op, False
        code = self.core.start(op, wire.pack_args(op, *args), self.now_us)
        if code:
            self.op, self.has_contact = before
        return code

    def run(self, us=None, late_us=0):
        """Poll as a port does, in whole ms, until the hand rests or the time is over."""
        end_us = None if us is None else self.now_us + us
        while self.core.due_us(self.now_us) >= 0 and (end_us is None or self.now_us < end_us):
            self.now_us += max(1_000, -(-self.core.due_us(self.now_us) // 1_000) * 1_000) + late_us
            self.core.poll(self.now_us)

    def home(self):
        assert self.start(wire.OP_HOME, ()) == 0
        self.run()
        assert self.ends == ["done"]


xs, ys = st.integers(*X), st.integers(*Y)
zs = st.integers(*Z)
hovers = st.integers(1_000, 8_000)
presses = st.integers(-3_000, 900)
commands = st.one_of(
    st.tuples(st.just(wire.OP_TAP), st.tuples(xs, ys, hovers, presses, st.integers(0, 300))),
    st.tuples(
        st.just(wire.OP_SWIPE), st.tuples(xs, ys, presses, xs, ys, presses, hovers, st.integers(1, 10_000))
    ),
    st.tuples(st.just(wire.OP_MOVE), st.tuples(xs, ys, zs)),
    st.tuples(st.just(wire.OP_PARK), st.tuples(xs, ys, zs)),
    st.tuples(st.just(wire.OP_PROBE), st.tuples(xs, ys, hovers, presses, st.integers(200, 2_000))),
    st.tuples(st.just(wire.OP_HOME), st.just(())),
)
moments = st.one_of(st.none(), st.integers(0, 1_500_000))
interruptions = st.sampled_from(["none", "deadman", "estop"])
steps = st.lists(st.tuples(commands, moments, interruptions), min_size=1, max_size=6)
HOVER_ARG = {wire.OP_TAP: 2, wire.OP_SWIPE: 6, wire.OP_PROBE: 2}


@given(
    steps=steps,
    retained=st.one_of(st.none(), st.tuples(xs, ys, zs)),
    late_us=st.integers(0, 4_000),
    arm=st.sampled_from([None, SCARA]),
)
@settings(max_examples=150)
def test_nothing_but_a_swipe_moves_across_the_glass_below_hover(steps, retained, late_us, arm):
    rig = Rig(retained, arm)
    rig.home()
    # A lift out of an unknown place is the first thing there is; from then on hover is the last command's.
    hover = Z[1]
    assert_lifted_first(rig, retained)
    for (op, args), moment, interruption in steps:
        first, started = len(rig.drives.samples), len(rig.ends)
        code = rig.start(op, args)
        if code:
            assert len(rig.drives.samples) == first, "refused, and yet it moved"
            assert code != wire.FAULT_BUSY
            continue
        hover = args[HOVER_ARG[op]] if op in HOVER_ARG else hover
        rig.run(moment, late_us)
        if interruption != "none":
            getattr(rig.core, interruption)(rig.now_us)
        rig.run(late_us=late_us)
        rig.core.clear_estop(rig.now_us)
        for (_, a, _, _), (_, b, now_op, has_contact) in pairwise(rig.drives.samples[max(0, first - 1) :]):
            if a[:2] != b[:2] and not (now_op == wire.OP_SWIPE and has_contact):
                assert min(a[2], b[2]) >= hover, (a, b, hover)
        assert len(rig.ends) == started + 1, "each command that starts ends once"
        rig.drives.samples[:] = rig.drives.samples[-1:]


def assert_lifted_first(rig, retained):
    if retained is not None:
        below = [p for _, p, _, _ in rig.drives.samples if p[2] < Z[1]]
        assert all(p[:2] == retained[:2] for p in below)


@given(
    start=st.tuples(xs, ys),
    end=st.one_of(st.none(), st.tuples(xs, ys)),
    hover=st.integers(1_000, 8_000),
    press=st.integers(-2_000, 0),
    dwell_ms=st.integers(0, 500),
    phase_us=st.integers(0, 999),
)
@settings(max_examples=150)
def test_a_tap_takes_at_most_1_05_times_the_least_time_of_its_way(
    start, end, hover, press, dwell_ms, phase_us
):
    end = end or (max(start[0] - 50, X[0]), start[1])
    rig = Rig()
    rig.home()
    assert rig.start(wire.OP_MOVE, (*start, hover)) == 0
    rig.run()
    rig.now_us += phase_us
    begun_us = rig.now_us
    assert rig.start(wire.OP_TAP, (*end, hover, press, dwell_ms)) == 0
    rig.run()
    least_us = dwell_ms * 1_000 + 2 * shortest_us(hover - press, V_MAX, A_MAX)
    least_us += shortest_us(dist(start, end), V_MAX, A_MAX)
    assert rig.now_us - begun_us <= 1.05 * least_us


@given(
    start=st.tuples(xs, ys, presses),
    end=st.tuples(xs, ys, presses),
    duration_ms=st.integers(0, 12_000),
)
@settings(max_examples=50)
def test_a_swipe_lasts_as_long_as_was_asked_or_is_refused(start, end, duration_ms):
    rig = Rig()
    rig.home()
    before = len(rig.drives.samples)
    code = rig.start(wire.OP_SWIPE, (*start, *end, 5_000, duration_ms))
    possible = 1 <= duration_ms <= 10_000 and start[:2] != end[:2]
    possible = possible and duration_ms * 1_000 >= shortest_us(dist(start, end), V_MAX, A_MAX)
    assert (code == 0) == possible
    rig.run()
    if code:
        assert len(rig.drives.samples) == before
        return
    if dist(start, end) < 1_000:
        return  # whole micrometres: the setpoints are at the end before the time is over
    sliding = [(t, p) for t, p, op, has_contact in rig.drives.samples if op == wire.OP_SWIPE and has_contact]
    down_us = max(t for t, p, op, _ in rig.drives.samples if op == wire.OP_SWIPE and p == start)
    up_us = min(t for t, p in sliding if p == end)
    assert duration_ms * 1_000 <= up_us - down_us <= duration_ms * 1_000 + 1_000
    assert all(t >= down_us for t, _ in sliding)


bad_places = st.one_of(
    st.tuples(st.integers(X[1] + 1, X[1] * 9), ys, zs),
    st.tuples(xs, st.integers(-90_000, -1), zs),
    st.tuples(xs, ys, st.integers(Z[1] + 1, 99_000)),
    st.tuples(xs, ys, st.integers(-99_000, Z[0] - 1)),
)


@given(
    place=bad_places,
    op=st.sampled_from([wire.OP_TAP, wire.OP_SWIPE, wire.OP_MOVE, wire.OP_PARK, wire.OP_PROBE]),
)
@settings(max_examples=80)
def test_a_place_outside_is_refused_before_the_first_setpoint(place, op):
    x, y, z = place
    args = {
        wire.OP_TAP: (x, y, 31_000 if z > Z[1] else 5_000, min(z, 0), 50),
        wire.OP_SWIPE: (1_000, 1_000, -500, x, y, min(z, 0), 31_000 if z > Z[1] else 5_000, 5_000),
        wire.OP_PROBE: (x, y, 31_000 if z > Z[1] else 5_000, min(z, 0), 50),
    }.get(op, place)
    rig = Rig()
    rig.home()
    before = len(rig.drives.samples)
    assert rig.start(op, args) == (wire.FAULT_DEPTH if z < Z[0] else wire.FAULT_ENVELOPE)
    rig.run()
    assert len(rig.drives.samples) == before
    assert rig.ends == ["done"]


def test_a_place_in_the_envelope_that_the_arm_does_not_reach_is_refused_before_the_first_setpoint():
    rig = Rig(arm=SCARA | {"joints": [[0.0, 4.0, 5.0], [-2.8, -1.5, 5.0], [-3_000, 30_000, 200]]})
    rig.home()
    before = len(rig.drives.samples)
    assert rig.start(wire.OP_TAP, (160_000, 90_000, 5_000, -500, 50)) == wire.FAULT_ENVELOPE
    assert rig.start(wire.OP_MOVE, (160_000, 90_000, 5_000)) == wire.FAULT_ENVELOPE
    assert len(rig.drives.samples) == before


@given(line=st.tuples(xs, ys, xs, ys))
@settings(max_examples=25)
def test_no_joint_of_a_scara_goes_faster_than_it_may(line):
    slow = SCARA | {"joints": [[0.0, 4.0, 1.5], [-2.8, -0.2, 1.5], [-3_000, 30_000, 200]]}
    rig = Rig(arm=slow)
    rig.home()
    rig.start(wire.OP_MOVE, (*line[:2], 5_000))
    rig.run()
    rig.drives.samples[:] = rig.drives.samples[-1:]
    rig.start(wire.OP_TAP, (*line[2:], 5_000, -500, 20))
    rig.run()
    arm = arm_from_config(slow)
    before, after = [0.0] * 3, [0.0] * 3
    for (t0, a, *_), (t1, b, *_) in pairwise(rig.drives.samples):
        arm.inverse(*a, before)
        arm.inverse(*b, after)
        for i, top in enumerate((1.5e-6, 1.5e-6, 0.2)):
            # Setpoints are whole micrometres: two of them turn a joint by as little as this.
            rounding = 2.0 if arm.slides[i] else 2.0 / 30_000
            assert abs(after[i] - before[i]) <= top * (t1 - t0) + rounding


@pytest.mark.parametrize("dwell_ms", [0, 1, 800, 10_000, 65_535])
def test_a_hold_keeps_its_time(dwell_ms):
    rig = Rig()
    rig.home()
    rig.start(wire.OP_TAP, (50_000, 50_000, 5_000, -500, dwell_ms))
    rig.run()
    down_us = min(t for t, p, op, _ in rig.drives.samples if op == wire.OP_TAP and p[2] == -500)
    up_us = next(t for t, p, op, _ in rig.drives.samples if op == wire.OP_TAP and t > down_us and p[2] > -500)
    assert dwell_ms * 1_000 <= up_us - down_us <= dwell_ms * 1_000 + 6_000
