"""Least squares shared by the camera's and the hand's models."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from calibration.errors import FitRefused
from calibration.targets import Points

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]

# Beyond this condition number of a normalised design matrix its parameters are not determined by the data.
CONDITION_MAX = 1e4
# A place whose own fit follows it to within this share is predicted by nothing else.
LEVERAGE_ROOM_MIN = 1e-3


def apply_homography(homography: Matrix, points: Points) -> Points:
    """Map (N, 2) points through a 3 x 3 homography; (N, 2)."""
    mapped = points @ homography[:, :2].T + homography[:, 2]
    return np.asarray(mapped[:, :2] / mapped[:, 2:], dtype=np.float64)


def normalisation(points: Points) -> Matrix:
    """The 3 x 3 similarity that brings points to zero mean and unit spread (Hartley 1997)."""
    centre = points.mean(axis=0)
    spread = float(np.sqrt(((points - centre) ** 2).sum(axis=1).mean() / 2.0))
    if not spread > 0.0:
        raise FitRefused("all points coincide; nothing can be fitted to them")
    scale = 1.0 / spread
    return np.array([[scale, 0, -scale * centre[0]], [0, scale, -scale * centre[1]], [0, 0, 1.0]])


def require_rank(design: Matrix, what: str) -> None:
    """Raise FitRefused unless the design matrix determines every one of its columns."""
    singular = np.linalg.svd(design, compute_uv=False)
    if len(design) < design.shape[1] or singular[-1] * CONDITION_MAX < singular[0]:
        raise FitRefused(
            f"{len(design)} equations do not determine the {design.shape[1]} terms of the {what}; "
            "use more places, spread over the whole screen and not along lines"
        )


def as_good(losses: Vector, best: Vector) -> bool:
    """Whether a model's held-out losses (N,) are within one standard error of the best model's, same points.

    The standard error is that of the difference, point by point: what noise both models meet alike says nothing about
    which is better, and the textbook's rule (Hastie et al., 7.10), which counts it, lets too simple a model stand.
    """
    more = losses - best
    return float(more.mean()) <= float(more.std(ddof=1)) / float(np.sqrt(len(more)))


def deleted_residuals(design: Matrix, values: Matrix, what: str) -> Matrix:
    """How far each row of values (N, M) is from the least-squares fit to all the other rows; (N, M).

    residual / (1 - leverage), exactly what refitting gives (Cook & Weisberg 1982, 2.2). Raises FitRefused where a
    row alone determines part of the fit.
    """
    require_rank(design, what)
    q, _ = np.linalg.qr(design)
    free = 1.0 - (q**2).sum(axis=1)
    if not float(free.min()) > LEVERAGE_ROOM_MIN:
        raise FitRefused(
            f"without one of the {len(design)} places the others do not determine the {what}; touch more places"
        )
    return np.asarray((values - q @ (q.T @ values)) / free[:, None], dtype=np.float64)


def gauss_newton(
    residuals: Callable[[Vector], Vector], start: Vector, what: str, iterations: int = 30
) -> Vector:
    """Minimise |residuals(p)|² from start with a numeric Jacobian and step halving.

    Raises FitRefused when the Jacobian loses rank: then the data do not determine the parameters.
    """
    parameters = start.astype(np.float64)
    current = residuals(parameters)
    cost = float(current @ current)
    for _ in range(iterations):
        jacobian = np.empty((len(current), len(parameters)))
        for column in range(len(parameters)):
            step = 1e-6 * max(1.0, abs(float(parameters[column])))
            ahead = parameters.copy()
            ahead[column] += step
            jacobian[:, column] = (residuals(ahead) - current) / step
        require_rank(jacobian, what)
        direction = np.linalg.lstsq(jacobian, -current, rcond=None)[0]
        length = 1.0
        while length > 1e-4:
            candidate = parameters + length * direction
            after = residuals(candidate)
            after_cost = float(after @ after)
            if np.isfinite(after_cost) and after_cost < cost:
                break
            length /= 2.0
        else:
            return parameters
        gained = cost - after_cost
        parameters, current, cost = candidate, after, after_cost
        if gained <= 1e-12 * cost:
            return parameters
    return parameters


def fit_homography(source: Points, destination: Points) -> Matrix:
    """The homography source -> destination, least squares in the destination's units; 3 x 3, [2, 2] = 1.

    Normalised direct linear transform (Hartley & Zisserman, 4.4), then Gauss-Newton on the distance.
    Raises FitRefused for fewer than four places, or four in a line.
    """
    from_unit, to_unit = normalisation(source), normalisation(destination)
    a, b = apply_homography(from_unit, source), apply_homography(to_unit, destination)
    ones, zeros = np.ones((len(a), 1)), np.zeros((len(a), 3))
    plane = np.hstack([a, ones])
    top = np.hstack([plane, zeros, -b[:, :1] * a])
    bottom = np.hstack([zeros, plane, -b[:, 1:] * a])
    design = np.vstack([top, bottom])
    require_rank(design, "homography")
    right = np.concatenate([b[:, 0], b[:, 1]])
    linear = np.linalg.lstsq(design, right, rcond=None)[0]

    def distances(parameters: Vector) -> Vector:
        mapped = apply_homography(np.append(parameters, 1.0).reshape(3, 3), a)
        return np.asarray((mapped - b).ravel(), dtype=np.float64)

    refined = gauss_newton(distances, linear, "homography")
    whole = np.linalg.inv(to_unit) @ np.append(refined, 1.0).reshape(3, 3) @ from_unit
    return np.asarray(whole / whole[2, 2], dtype=np.float64)
