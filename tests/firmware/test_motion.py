"""Moves are time-optimal, stay on their line and never exceed their limits."""

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware.hand.motion import (
    Move,
    acceleration_from_mm_s2,
    distance_um,
    shortest_us,
    speed_from_mm_s,
)

V_MAX = speed_from_mm_s(300)
A_MAX = acceleration_from_mm_s2(4000)

axis_um = st.integers(-200_000, 200_000)
points = st.lists(axis_um, min_size=3, max_size=3)


def sampled(move: Move, step_us: float) -> list[float]:
    count = int(move.duration_us / step_us) + 2
    return [move.way_um(i * step_us) for i in range(count)]


def assert_within_limits(way_um: list[float], step_us: float, v_max: float, a_max: float) -> None:
    speeds = [(b - a) / step_us for a, b in pairwise(way_um)]
    changes = [(b - a) / step_us for a, b in zip([0.0, *speeds], [*speeds, 0.0], strict=True)]
    assert min(speeds) >= -1e-9
    assert max(speeds) <= v_max * 1.0001
    assert max(abs(a) for a in changes) <= a_max * 1.0001 + 1e-12


@given(start=points, end=points, v_mm_s=st.integers(10, 1000), a_mm_s2=st.integers(100, 20_000))
@settings(max_examples=60, deadline=None)
def test_a_move_never_exceeds_its_limits_and_arrives_exactly(start, end, v_mm_s, a_mm_s2):
    v_max, a_max = speed_from_mm_s(v_mm_s), acceleration_from_mm_s2(a_mm_s2)
    move = Move()
    move.plan(start, end, v_max, a_max)
    step_us = max(500.0, move.duration_us / 200)
    assert_within_limits(sampled(move, step_us), step_us, v_max, a_max)
    out = [0, 0, 0]
    move.position(move.duration_us, out)
    assert out == end


@given(start=points, end=points, share=st.floats(0.0, 1.0))
@settings(max_examples=60, deadline=None)
def test_a_setpoint_lies_on_the_line_within_a_micrometre(start, end, share):
    move = Move()
    move.plan(start, end, V_MAX, A_MAX)
    out = [0, 0, 0]
    move.position(move.duration_us * share, out)
    assert distance_um(start, out) + distance_um(out, end) <= distance_um(start, end) + 2.0


@pytest.mark.parametrize(
    ("length_um", "expected_us"),
    [
        (0, 0.0),
        # 10 mm do not reach 300 mm/s at 4 m/s² (that takes 22.5 mm): 2 sqrt(L/a) = 100 ms.
        (10_000, 100_000.0),
        (22_500, 150_000.0),
        # 90 mm: 300 ms at top speed and one ramp of 75 ms.
        (90_000, 375_000.0),
    ],
)
def test_a_move_takes_the_textbook_time(length_um, expected_us):
    move = Move()
    move.plan([0, 0, 0], [0, length_um, 0], V_MAX, A_MAX)
    assert move.duration_us == pytest.approx(expected_us)
    assert shortest_us(length_um, V_MAX, A_MAX) == pytest.approx(expected_us)


@given(end=points, slower=st.floats(1.0, 20.0))
@settings(max_examples=60, deadline=None)
def test_a_timed_move_takes_exactly_its_time_within_the_limits(end, slower):
    start = [0, 0, 0]
    least_us = shortest_us(distance_um(start, end), V_MAX, A_MAX)
    duration_us = math.ceil(least_us * slower) + 1
    move = Move()
    move.plan_timed(start, end, duration_us, A_MAX)
    assert move.duration_us == duration_us
    step_us = max(500.0, duration_us / 200)
    assert_within_limits(sampled(move, step_us), step_us, V_MAX, A_MAX)
    assert move.way_um(duration_us - 1e-6) == pytest.approx(distance_um(start, end), abs=1.0)


@given(end=points, share=st.floats(0.0, 1.0))
@settings(max_examples=60, deadline=None)
def test_an_interrupted_move_brakes_within_the_limits_and_never_passes_its_end(end, share):
    move = Move()
    move.plan([0, 0, 0], end, V_MAX, A_MAX)
    length_um = distance_um([0, 0, 0], end)
    planned_us, t_us = move.duration_us, move.duration_us * share
    step_us = max(500.0, planned_us / 200)
    before = [move.way_um(i * step_us) for i in range(int(t_us / step_us) + 1)]
    move.stop_early(t_us)
    assert move.duration_us <= planned_us + 1e-6
    assert move.way_um(move.duration_us) <= length_um + 1e-6
    after = [move.way_um(i * step_us) for i in range(len(before), int(move.duration_us / step_us) + 2)]
    assert_within_limits(before + after, step_us, V_MAX, A_MAX)
