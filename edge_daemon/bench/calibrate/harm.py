"""Rigs on which a mutation does harm.

A rig whose arm is straight may rightly be accepted with an affine map. To ask whether acceptance notices a mutation
one has to take rigs where it moves the taps; the bench knows the truth and may choose.
"""

import itertools
from collections.abc import Callable

import numpy as np

from edge_daemon.bench.twin.mechanics import Hand
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_WIDTH_MM, Truth

# Seeds of the mutated runs lie so far behind those of the sound ones.
SEEDS_APART = 10_000
# What the defect alone must do to one tap in twenty: the limit of p95 (solver.py).
HARM_MM = 0.15


def harmful_seeds(mutation: str, first_seed: int, count: int) -> list[int]:
    """The first `count` seeds behind the sound ones' on whose rigs the mutation does harm."""
    harm = _HARM.get(mutation, _always)
    behind = itertools.count(first_seed + SEEDS_APART)
    return list(itertools.islice((seed for seed in behind if harm(Truth(seed))), count))


def _always(truth: Truth) -> bool:
    return True


def _play_matters(truth: Truth) -> bool:
    """From either side by chance, a tap is off by half the play in each axis: 0.14 mm in both is p95 > 0.15 mm."""
    return min(truth.hand.backlash_x_mm, truth.hand.backlash_y_mm) >= 0.14


def _arm_is_bowed(truth: Truth) -> bool:
    """The best affine map of the whole screen alone misses the limit of p95."""
    hand = Hand(truth, 0)
    x, y = np.meshgrid(
        np.linspace(-SCREEN_HEIGHT_MM / 2, SCREEN_HEIGHT_MM / 2, 9),
        np.linspace(-SCREEN_WIDTH_MM / 2, SCREEN_WIDTH_MM / 2, 5),
    )
    world = np.column_stack([x.ravel(), y.ravel()])
    there = np.array([hand.to_hand_mm(float(at[0]), float(at[1])) for at in world])
    terms = np.column_stack([np.ones(len(world)), world])
    left = there - terms @ np.linalg.lstsq(terms, there, rcond=None)[0]
    return float(np.percentile(np.hypot(*left.T), 95.0)) >= HARM_MM


_HARM: dict[str, Callable[[Truth], bool]] = {
    "no_one_sided_approach": _play_matters,
    "affine_forced": _arm_is_bowed,
}
