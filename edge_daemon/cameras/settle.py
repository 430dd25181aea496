"""Is the screen still? Sans-IO: pictures and exposure times in, a verdict out.

Pictures are decoded small (each side by 4 or 8, inside the JPEG decoder: cheap, and sixteen pixels' noise
is averaged away), smoothed 3x3, and compared with the first picture of the present still stretch, not with
the one before: a slow slide whose every step is small still ends the stretch. A pixel has changed when it
differs by more than `THRESHOLD_SIGMAS` standard deviations of the difference that noise alone makes. A
picture has changed when more than `tolerated_fraction` of the watched area has: a blinking text cursor is
less, a toggle switch is more.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import cast

import cv2
import numpy as np
import numpy.typing as npt

from edge_daemon.cameras.errors import BadPicture
from edge_daemon.cameras.health import is_black
from edge_daemon.cameras.imaging import Grey, decode_small_grey
from edge_daemon.cameras.jpeg import jpeg_size
from edge_daemon.contract.frames import SettleState

Polygon = Sequence[tuple[float, float]]
"""Corners in raw camera pixels, (0, 0) the centre of the top-left pixel."""

MIN_FRAMES = 3
MIN_STILL_MS = 250.0
MAX_GAP_MS = 1000.0
"""Longer without a picture, and something may have come and gone unseen."""
TOLERATED_FRACTION = 0.0025
"""Of the watched area; with the screen as the mask a blinking cursor takes 0.0018, a spinner of 28 px in a
picture of 720 lines 0.0032, a toggle switch 0.0057. Without a mask it is a share of the whole picture: much
coarser."""
THRESHOLD_SIGMAS = 5.0
"""One pixel in 1.7 million by noise alone, were it Gaussian; the tolerated fraction takes the heavier tails
of JPEG."""
THRESHOLD_FLOOR = 3.0
"""Grey levels. Below it lie the steps of JPEG quantisation and the flicker of lamps, even on a noiseless
source."""
MAX_ESTIMATED_SIGMA = 2.0
"""Smoothed grey levels; sensor noise of 16 levels a pixel. More is no noise: it is movement everywhere, or
the light."""
MAX_GIVEN_SIGMA = 6.0
_ESTIMATES = 8
_BLOCK = 8
_WIDE = 2000
"""Pictures at least this wide are reduced by 8 instead of 4."""

_Smooth = npt.NDArray[np.float32]


@dataclass(frozen=True)
class SettleVerdict:
    """state: `still`, `moving`, or `unreliable` (the pictures do not allow to tell); `reason` says why.

    still_since_ns: exposure time of the first picture of the still stretch; only with `still`.
    frames: pictures judged so far. sequence: the last of them. changed_fraction: of the watched area,
    between the stretch's first picture and the last. noise_sigma: used for the threshold, smoothed grey
    levels.
    timed_out: the wait ended before the screen was still.
    """

    state: SettleState
    reason: str
    still_since_ns: int | None = None
    frames: int = 0
    sequence: int | None = None
    changed_fraction: float = 0.0
    noise_sigma: float | None = None
    timed_out: bool = False


class SettleDetector:
    """For one wait: make a new one after each move of the hand.

    mask: watch only inside this polygon (the screen). ignore: polygons not to watch (a clock, a parked
    stylus).
    noise_sigma: as `noise_sigma()` measured it on a still screen; None estimates it from the pictures
    themselves.
    min_still_ms: how long the stretch must be, at least MIN_STILL_MS.

    Raises ValueError for arguments that mean nothing.
    """

    def __init__(
        self,
        *,
        mask: Polygon | None = None,
        ignore: Sequence[Polygon] = (),
        noise_sigma: float | None = None,
        min_still_ms: float = MIN_STILL_MS,
        tolerated_fraction: float = TOLERATED_FRACTION,
    ) -> None:
        for polygon in (*([] if mask is None else [mask]), *ignore):
            if len(polygon) < 3:
                raise ValueError(f"a polygon needs three corners, not {len(polygon)}")
        if noise_sigma is not None and not 0 <= noise_sigma <= MAX_GIVEN_SIGMA:
            raise ValueError(
                f"noise_sigma {noise_sigma}: must be 0..{MAX_GIVEN_SIGMA:g} smoothed grey levels; "
                "more noise than that hides the screen: look at light and exposure"
            )
        if min_still_ms < MIN_STILL_MS:
            raise ValueError(f"min_still_ms {min_still_ms}: must be at least {MIN_STILL_MS:g}")
        if not 0 <= tolerated_fraction < 1:
            raise ValueError(f"tolerated_fraction {tolerated_fraction}: must be 0 or more and less than 1")
        self._mask = mask
        self._ignore = tuple(ignore)
        self._given_sigma = noise_sigma
        self._min_still_ns = round(min_still_ms * 1e6)
        self._tolerated = tolerated_fraction
        self._watched: npt.NDArray[np.bool_] | None = None
        self._first: _Smooth | None = None
        self._first_ns = 0
        self._previous: _Smooth | None = None
        self._previous_ns: int | None = None
        self._stretch = 0
        self._estimates: deque[float] = deque(maxlen=_ESTIMATES)
        self._too_noisy = 0
        self._verdict = SettleVerdict("unreliable", "no picture yet")

    @property
    def verdict(self) -> SettleVerdict:
        """The last one given."""
        return self._verdict

    def feed_jpeg(self, jpeg: bytes, exposed_ns: int) -> SettleVerdict:
        """Decode small, then `feed`."""
        try:
            small, reduction = _decode_small(jpeg)
        except BadPicture as error:
            return self._unreliable(str(error))
        return self.feed(small, exposed_ns, reduction)

    def feed(self, grey: Grey, exposed_ns: int, reduction: int = 1) -> SettleVerdict:
        """Judge the next picture, (height, width) uint8, whose sides were divided by `reduction`."""
        gap_ns = None if self._previous_ns is None else exposed_ns - self._previous_ns
        if gap_ns is not None and gap_ns <= 0:
            return self._unreliable(
                f"exposure times do not advance ({gap_ns / 1e6:.1f} ms): the pictures are not new"
            )
        self._previous_ns = exposed_ns
        if is_black(grey):
            return self._unreliable("the picture is black")
        smooth = cv2.blur(grey, (3, 3)).astype(np.float32) if grey.size else np.zeros((0, 0), np.float32)
        previous, self._previous = self._previous, smooth
        if previous is None or self._first is None:
            return self._restart(smooth, exposed_ns, reduction, "moving", "only one picture so far")
        if previous.shape != smooth.shape:
            self._estimates.clear()
            return self._restart(smooth, exposed_ns, reduction, "unreliable", "the picture changed its size")
        if gap_ns is not None and gap_ns > MAX_GAP_MS * 1e6:
            return self._restart(
                smooth,
                exposed_ns,
                reduction,
                "unreliable",
                f"no picture for {gap_ns / 1e6:.0f} ms: it was not watched",
            )
        return self._compare(previous, smooth, exposed_ns, reduction)

    def _compare(self, previous: _Smooth, smooth: _Smooth, exposed_ns: int, reduction: int) -> SettleVerdict:
        assert self._first is not None
        assert self._watched is not None
        sigma = self._sigma(previous, smooth)
        if sigma is None:
            return self._restart(smooth, exposed_ns, reduction, *self._without_sigma())
        threshold = max(THRESHOLD_FLOOR, THRESHOLD_SIGMAS * float(np.sqrt(2.0)) * sigma)
        changed = np.abs(smooth - self._first) > threshold
        fraction = float(np.count_nonzero(changed & self._watched)) / float(np.count_nonzero(self._watched))
        if fraction > self._tolerated:
            return self._restart(
                smooth,
                exposed_ns,
                reduction,
                "moving",
                f"{fraction:.2%} of the watched area changed",
                fraction,
                sigma,
            )
        self._stretch += 1
        return self._judge_stretch(exposed_ns, fraction, sigma)

    def _judge_stretch(self, exposed_ns: int, fraction: float, sigma: float) -> SettleVerdict:
        length_ns = exposed_ns - self._first_ns
        so_far = f"{self._stretch} pictures over {length_ns / 1e6:.0f} ms"
        if self._stretch < MIN_FRAMES or length_ns < self._min_still_ns:
            return self._say("moving", f"unchanged for {so_far} only", fraction, sigma)
        small = f"; a small part ({fraction:.2%}) still changes" if fraction else ""
        verdict = self._say("still", f"unchanged for {so_far}{small}", fraction, sigma)
        self._verdict = replace(verdict, still_since_ns=self._first_ns)
        return self._verdict

    def _sigma(self, previous: _Smooth, smooth: _Smooth) -> float | None:
        """The noise to reckon with; None while everything moves and it cannot be told."""
        if self._given_sigma is not None:
            return self._given_sigma
        estimate = pair_sigma(previous, smooth)
        if estimate <= MAX_ESTIMATED_SIGMA:
            self._estimates.append(estimate)
        else:
            self._too_noisy += 1
        # Movement only ever adds to an estimate, so the least of the last few is the noise.
        return min(self._estimates, default=None)

    def _without_sigma(self) -> tuple[SettleState, str]:
        if self._too_noisy < _ESTIMATES:
            return "moving", "the whole picture changes"
        return "unreliable", (
            f"the whole picture has changed {self._too_noisy} times in a row: movement, noise or lamps "
            "cannot be "
            "told apart; measure noise_sigma on a still screen"
        )

    def _restart(
        self,
        smooth: _Smooth,
        exposed_ns: int,
        reduction: int,
        state: SettleState,
        reason: str,
        fraction: float = 0.0,
        sigma: float | None = None,
    ) -> SettleVerdict:
        if self._watched is None or self._watched.shape != smooth.shape:
            self._watched = self._watched_area(smooth.shape, reduction)
        self._first, self._first_ns, self._stretch = smooth, exposed_ns, 1
        return self._say(state, reason, fraction, sigma)

    def _unreliable(self, reason: str) -> SettleVerdict:
        """A picture that cannot be judged ends the stretch; the next good one begins another."""
        self._first = None
        self._stretch = 0
        return self._say("unreliable", reason, 0.0, None)

    def _say(self, state: SettleState, reason: str, fraction: float, sigma: float | None) -> SettleVerdict:
        self._verdict = SettleVerdict(
            state, reason, frames=self._verdict.frames + 1, changed_fraction=fraction, noise_sigma=sigma
        )
        return self._verdict

    def _watched_area(self, shape: tuple[int, ...], reduction: int) -> npt.NDArray[np.bool_]:
        watched = np.full(shape, 1 if self._mask is None else 0, np.uint8)
        if self._mask is not None:
            cv2.fillPoly(watched, [_corners(self._mask, reduction)], 1)
        for polygon in self._ignore:
            cv2.fillPoly(watched, [_corners(polygon, reduction)], 0)
        if not watched.any():
            raise ValueError(f"mask and ignore leave nothing to watch in a picture of {shape[1]}x{shape[0]}")
        return watched.astype(np.bool_)


def pair_sigma(previous: _Smooth, current: _Smooth) -> float:
    """Noise of one smoothed picture, grey levels, from two in a row: the median over blocks of the
    difference's standard deviation inside a block, over the square root of two.

    The median leaves out what moves in less than half of the picture; the deviation from the block's own
    mean leaves out a change of brightness.
    """
    rows, columns = (side // _BLOCK for side in previous.shape)
    if rows == 0 or columns == 0:
        return float((current - previous).std()) / float(np.sqrt(2.0))
    difference = (current - previous)[: rows * _BLOCK, : columns * _BLOCK]
    blocks = difference.reshape(rows, _BLOCK, columns, _BLOCK)
    return float(np.median(blocks.std(axis=(1, 3)))) / float(np.sqrt(2.0))


def noise_sigma(jpegs: Sequence[bytes]) -> float:
    """Measure the `noise_sigma` to give to SettleDetector: JPEGs of a still screen, in order, at least four.

    The largest of the pairs' values: a lamp that flickers belongs to the noise. Raises ValueError and
    BadPicture.
    """
    if len(jpegs) < 4:
        raise ValueError(
            f"{len(jpegs)} pictures are too few to measure noise: give at least four of a still screen"
        )
    smooth = [_smooth(_decode_small(jpeg)[0]) for jpeg in jpegs]
    return max(pair_sigma(a, b) for a, b in pairwise(smooth))


def _decode_small(jpeg: bytes) -> tuple[Grey, int]:
    """The picture to judge, and by what its sides were divided."""
    reduction = 8 if jpeg_size(jpeg)[0] >= _WIDE else 4
    return decode_small_grey(jpeg, reduction), reduction


def _smooth(grey: Grey) -> _Smooth:
    return cast(_Smooth, cv2.blur(grey.astype(np.float32), (3, 3)))


def _corners(polygon: Polygon, reduction: int) -> npt.NDArray[np.int32]:
    """Pixel centres of the reduced picture: (x + 0.5) / reduction - 0.5."""
    return np.rint((np.asarray(polygon, np.float64) + 0.5) / reduction - 0.5).astype(np.int32)
