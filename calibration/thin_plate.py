"""A smoothing thin plate through the touches, as smooth as leave-one-out wants it."""

import numpy as np

from calibration.fitting import Matrix, Vector, require_rank
from calibration.hand_terms import bumps, terms
from calibration.targets import Points

# From the stiffest plate, an affine map, to the softest. Five decades in thirds of one.
STIFFNESSES = 10.0 ** np.linspace(2.5, -2.5, 16)
# A plate with as much freedom as there are touches goes through their noise, and leave-one-out does not always
# notice: of 1,000 simulated rigs the worst were such. Half is the most.
FREEDOM_SHARE_MAX = 0.5


class ThinPlate:
    """Minimises |hand - plate|² + stiffness * bending energy (Duchon 1977; Wahba 1990, 2.4).

    unit (N, 2): places, the screen normalised to -1..1 both ways. hand_mm (N, 2): what the plate's two sheets go
    towards there. Afterwards coefficients (3 + N, 2) are those of hand_terms.terms, and left_out (N,) each touch's
    distance in mm from the plate made without it (closed form, Wahba 1990, 4.2). Raises FitRefused for places in a
    line.
    """

    def __init__(self, unit: Points, hand_mm: Points) -> None:
        plane, plate = terms("affine", unit, unit[:0]), bumps(unit, unit)
        require_rank(plane, "thin plate")
        q, r = np.linalg.qr(plane, mode="complete")
        along, across = q[:, :3], q[:, 3:]
        # In this basis the plate is a row of independent springs of these softnesses.
        softness, turn = np.linalg.eigh(across.T @ plate @ across)
        basis = across @ turn
        best: tuple[float, float, Vector] | None = None
        for stiffness in STIFFNESSES:
            freedom = 3.0 + float((softness / (softness + stiffness)).sum())
            if freedom > FREEDOM_SHARE_MAX * len(unit):
                break
            left_out = _left_out(basis, stiffness / (softness + stiffness), hand_mm)
            loss = float((left_out**2).mean())
            if best is None or loss < best[0]:
                best = loss, float(stiffness), left_out
        assert best is not None  # the stiffest plate is all but affine: 3 of at least 12 touches
        _, self.stiffness, self.left_out = best
        weights = basis @ ((basis.T @ hand_mm) / (softness + self.stiffness)[:, None])
        level = np.linalg.solve(r[:3], along.T @ (hand_mm - plate @ weights))
        self.coefficients: Matrix = np.vstack([level, weights])


def _left_out(basis: Matrix, kept: Vector, hand_mm: Points) -> Vector:
    """|residual / (1 - leverage)| of each touch: basis diag(kept) basis' makes residuals of touches."""
    misses = (basis * kept) @ basis.T
    off = (misses @ hand_mm) / np.diag(misses)[:, None]
    return np.asarray(np.linalg.norm(off, axis=1), dtype=np.float64)
