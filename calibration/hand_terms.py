"""The terms that the hand's models are linear in, and their slopes, over a screen normalised to -1..1 each way."""

import numpy as np

from calibration.fitting import Matrix
from calibration.targets import Points

DEGREES = {"affine": 1, "quadratic": 2, "cubic": 3, "thin_plate": 1}


def term_count(kind: str, knots: int) -> int:
    """How many numbers each axis of a model of this kind has."""
    return len(_exponents(DEGREES[kind])) + (knots if kind == "thin_plate" else 0)


def terms(kind: str, unit: Points, knots: Points) -> Matrix:
    """The design matrix: 1, x, y, x², xy, y², x³, ... up to the kind's degree, then a bump per knot; (N, terms)."""
    design = np.column_stack([_power(unit, 0, a) * _power(unit, 1, b) for a, b in _exponents(DEGREES[kind])])
    return np.hstack([design, bumps(unit, knots)]) if kind == "thin_plate" else design


def term_slopes(kind: str, unit: Points, knots: Points) -> tuple[Matrix, Matrix]:
    """The derivatives of `terms` by x and by y; (N, terms) each."""
    pairs = _exponents(DEGREES[kind])
    by_x = np.column_stack([a * _power(unit, 0, a - 1) * _power(unit, 1, b) for a, b in pairs])
    by_y = np.column_stack([b * _power(unit, 0, a) * _power(unit, 1, b - 1) for a, b in pairs])
    if kind != "thin_plate":
        return by_x, by_y
    away, square = _from_knots(unit, knots)
    # d/dx of r² ln r is x (2 ln r + 1), which goes to 0 with r.
    growth = np.where(square > 0.0, np.log(np.where(square > 0.0, square, 1.0)) + 1.0, 0.0)
    return np.hstack([by_x, away[:, :, 0] * growth]), np.hstack([by_y, away[:, :, 1] * growth])


def bumps(unit: Points, knots: Points) -> Matrix:
    """The thin plate's r² ln r from every place to every knot (Duchon 1977); (N, knots)."""
    _, square = _from_knots(unit, knots)
    return np.asarray(0.5 * square * np.log(np.where(square > 0.0, square, 1.0)), dtype=np.float64)


def homography_terms(unit: Points) -> Matrix:
    """What a homography's eight numbers do to x (first N rows) and y, to first order about no change; (2 N, 8)."""
    x, y = unit[:, 0], unit[:, 1]
    plane, zeros = np.column_stack([np.ones(len(unit)), unit]), np.zeros((len(unit), 3))
    top = np.hstack([plane, zeros, np.column_stack([-x * x, -x * y])])
    return np.vstack([top, np.hstack([zeros, plane, np.column_stack([-x * y, -y * y])])])


def screen_units(per_side: int = 9) -> Points:
    """Places all over the screen and on its edges; (per_side², 2)."""
    along = np.linspace(-1.0, 1.0, per_side)
    x, y = np.meshgrid(along, along)
    return np.column_stack([x.ravel(), y.ravel()])


def _exponents(degree: int) -> list[tuple[int, int]]:
    return [(a, total - a) for total in range(degree + 1) for a in range(total, -1, -1)]


def _power(unit: Points, axis: int, exponent: int) -> Matrix:
    return np.asarray(unit[:, axis] ** max(exponent, 0), dtype=np.float64)


def _from_knots(unit: Points, knots: Points) -> tuple[Matrix, Matrix]:
    away = unit[:, None, :] - knots[None, :, :]
    return away, np.asarray((away**2).sum(axis=2), dtype=np.float64)
