"""Light on the board: its black and white squares, looked up through what the corners say of every place on it."""

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from calibration.detect.board import BoardView
from calibration.fitting import apply_homography, fit_homography
from calibration.targets import MARKER_SHARE, CharucoTarget, Points, turned_points

# The middle of the white between a square's edge and its marker, as a share of the square.
MARGIN = (1.0 - MARKER_SHARE) / 4.0
# Along the white margin, clear of the square's own corners.
ALONG = (0.1, 0.9)
# Inside a black square, clear of blur from its neighbours.
INSIDE = (0.25, 0.75)
INSIDE_SAMPLES = 6

Plane = npt.NDArray[np.float32]
Vector = npt.NDArray[np.float64]


class BoardPlane:
    """Places on the board, in squares as the page is read, to camera px: a homography and a cubic remainder."""

    def __init__(self, view: BoardView, target: CharucoTarget) -> None:
        self._target = target
        self._homography = fit_homography(target.corners_px()[view.ids], view.px)
        columns = view.ids % (target.squares_x - 1) + 1
        rows = view.ids // (target.squares_x - 1) + 1
        squares = np.column_stack([columns, rows]).astype(np.float64)
        rest = view.px - self._flat(squares)
        self._bend = np.linalg.lstsq(self._terms(squares), rest, rcond=None)[0]

    def to_px(self, squares: Points) -> Points:
        """Board places (N, 2), in squares from the board's top-left edge, to camera px."""
        return np.asarray(self._flat(squares) + self._terms(squares) @ self._bend, dtype=np.float64)

    def _flat(self, squares: Points) -> Points:
        target = self._target
        page = squares * target.square_px + np.array([target.left_px, target.top_px])
        screen = turned_points(page, target.width_px, target.height_px, target.turn)
        return apply_homography(self._homography, screen)

    def _terms(self, squares: Points) -> Vector:
        return polynomial(squares / [self._target.squares_x / 2.0, self._target.squares_y / 2.0] - 1.0, 3)


@dataclass(frozen=True)
class Samples:
    """Values on the board: px (N, 2) camera px, squares (N, 2) board places, value (N,) grey levels."""

    px: Points
    squares: Points
    value: Vector


@dataclass(frozen=True)
class Strips:
    """White margins, one row each: px (S, N, 2), value (S, N). Along the page's x first, then along its y."""

    px: Points
    value: Vector
    along_x: npt.NDArray[np.bool_]


class BoardLight:
    """What a board picture holds in its squares."""

    def __init__(self, grey: npt.NDArray[np.uint8], view: BoardView, target: CharucoTarget) -> None:
        self._grey = grey.astype(np.float32)
        self._plane = BoardPlane(view, target)
        columns, rows = np.meshgrid(np.arange(target.squares_x), np.arange(target.squares_y))
        dark = (columns + rows) % 2 == 0
        self._black = np.column_stack([columns[dark], rows[dark]]).astype(np.float64)
        self._white = np.column_stack([columns[~dark], rows[~dark]]).astype(np.float64)
        self._size = (target.squares_x, target.squares_y)
        middle = np.array([self._size]) / 2.0
        step = self._plane.to_px(middle + np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
        self.square_px = float(np.linalg.norm(step[1:] - step[0], axis=1).min())

    def black(self) -> Samples:
        """The insides of the black squares."""
        inner = np.linspace(*INSIDE, INSIDE_SAMPLES)
        across, down = np.meshgrid(inner, inner)
        places = self._black[:, None] + np.column_stack([across.ravel(), down.ravel()])[None]
        return self._samples(places.reshape(-1, 2))

    def white(self) -> Strips:
        """The white margins around the markers, sampled about every px."""
        along = np.linspace(*ALONG, max(8, int((ALONG[1] - ALONG[0]) * self.square_px)))
        near, far = np.full_like(along, MARGIN), np.full_like(along, 1.0 - MARGIN)
        sides = [np.column_stack(pair) for pair in ((along, near), (along, far), (near, along), (far, along))]
        places = self._white[:, None, None] + np.array(sides)[None]
        shape = (4 * len(self._white), len(along))
        found = self._samples(places.reshape(-1, 2))
        along_x = np.tile([True, True, False, False], len(self._white))
        return Strips(found.px.reshape(*shape, 2), found.value.reshape(shape), along_x)

    def edge_profiles(self, reach: Vector) -> tuple[Vector, Vector, Points]:
        """Values across the edges between black and white squares, (edges, samples along, len(reach)).

        reach: distances from the edge in px, negative into the black square. Also whether each edge runs along
        the page's x, and its middle in squares.
        """
        along = np.linspace(0.2, 0.8, 9)
        profiles, runs_x, middles = [], [], []
        for black in self._black:
            for normal in ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)):
                neighbour = black + normal
                if not (0 <= neighbour[0] < self._size[0] and 0 <= neighbour[1] < self._size[1]):
                    continue
                tangent = np.array([abs(normal[1]), abs(normal[0])])
                start = black + 0.5 + 0.5 * np.array(normal) - 0.5 * tangent
                on_edge = start + along[:, None] * tangent
                places = on_edge[:, None] + (reach / self.square_px)[None, :, None] * np.array(normal)
                profiles.append(places)
                runs_x.append(normal[0] == 0.0)
                middles.append(start + 0.5 * tangent)
        places = np.array(profiles)
        values = self._samples(places.reshape(-1, 2)).value.reshape(places.shape[:-1])
        return values, np.array(runs_x), np.array(middles)

    def _samples(self, squares: Points) -> Samples:
        px = self._plane.to_px(squares)
        # remap takes pictures of up to 32767 px a side: fold the list into rows.
        width = 4096
        padded = np.zeros((-(-len(px) // width) * width, 2), np.float32)
        padded[: len(px)] = px
        x, y = (padded[:, i].reshape(-1, width) for i in range(2))
        value = cv2.remap(self._grey, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        return Samples(px, squares, np.asarray(value, dtype=np.float64).ravel()[: len(px)])


def polynomial(unit: Points, degree: int) -> Vector:
    """All products x^i y^j with i + j up to degree, (N, terms)."""
    x, y = unit[:, 0], unit[:, 1]
    return np.column_stack([x**i * y**j for i in range(degree + 1) for j in range(degree + 1 - i)])
