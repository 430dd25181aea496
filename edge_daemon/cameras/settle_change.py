"""One page watched picture by picture: when did it last change?

Sans-IO. Each cell is compared with what it has shown since it last changed. It has changed when it differs by more
than `THRESHOLD_SIGMAS` standard deviations of the difference that noise alone makes, and at least by
`THRESHOLD_FLOOR`. Coarse blocks of 4 x 4 cells are compared as well, with a lower threshold: a slow fade of a dim
page is weak everywhere and nowhere strong.
"""

from collections import deque
from dataclasses import dataclass

import cv2
import numpy as np

from edge_daemon.cameras.health import BLACK_LEVEL
from edge_daemon.cameras.settle_area import CELL_SIGMA, Mask, WatchedArea
from edge_daemon.cameras.settle_light import Light, LightMeter
from edge_daemon.cameras.settle_noise import Levels, pair_sigma
from edge_daemon.cameras.settle_spots import SMALL_SHARE, TRAIL_NS, Spots

THRESHOLD_SIGMAS = 6.5
"""Twenty thousand cells thirty times a second must not differ by noise alone; its tails are heavier than Gaussian."""
THRESHOLD_FLOOR = 3.0
"""Grey levels. Below it lie lamps and the roundings of a good JPEG, even on a noiseless source."""
STEP_SHARE = 1.2
STEP_MORE = 1.5
"""Grey levels above JPEG's step: a block that lies between two steps falls to either."""
RIM_FACTOR = 2.0
"""Changed cells over the area that changed, for a small place: its rim counts with it."""
STRONG = 1.6
"""Of the threshold: what differs by so much need not be seen twice."""
BLOCK_CELLS = 4
BLOCK_FLOOR = 1.3
BLOCK_STEP_SHARE = 1.1
"""Of JPEG's step: plain paper may fall to another one as a whole."""
BLOCK_SIGMAS = 3.0
"""Of smoothed noise: ten of the noise of sixteen cells' mean difference, which is a third of it."""
BLOCK_SHARE = 0.03
"""Of the blocks; fewer may be the shine of a lamp."""
BANDS_LEFT = 15.0
"""Grey levels times the bands' amplitude: what a measured band leaves of itself on fine detail."""
CUT_OFF = 245.0
CUT_OFF_LEVELS = 6.0
"""By which cells near white may differ more than others."""
SHINE = 12.0
"""Grey levels that shine on the glass and do not follow the screen's brightness."""
TELLABLE_LEVEL = 20.0
TELLABLE_THRESHOLDS = 5.0
TELLABLE_SHARE = 0.005
"""So much of the screen must be brighter than TELLABLE_LEVEL and so many thresholds, or a page may change unseen."""
FADE_FACTOR = 1.25
FADE_NS = 250_000_000
LIGHT_CHANGES = 0.015
LIGHT_RESTS = 0.03
"""Within a stretch, after a fade: its last trace of a page is as much."""
MAX_ESTIMATED_SIGMA = 2.0
"""Smoothed grey levels; sensor noise of 16 levels a pixel. More is no noise: it is movement everywhere, or the
light."""
_ESTIMATES = 8
_BUSY_FACT_NS = 1_000_000_000


@dataclass(frozen=True)
class Seen:
    """What one picture added.

    still_since_ns: the first picture that shows the page as it is now, what is excused left out. change: the last
    change, in words. hidden: why the page cannot be told at all, in words; then nothing else counts.
    """

    still_since_ns: int
    change: str
    ever_changed: bool
    changed_fraction: float
    noise_sigma: float | None
    busy_small: bool
    light_changes: bool
    hidden: str | None = None


class PageWatch:
    """Watches one screen from its first picture on. first: its cells, (rows, columns)."""

    def __init__(
        self, area: WatchedArea, first: Levels, exposed_ns: int, given_sigma: float | None, step: float
    ) -> None:
        self._area = area
        self._meter = LightMeter(area.watched)
        self._given = given_sigma
        self._estimates: deque[float] = deque(maxlen=_ESTIMATES)
        self._least: float | None = None
        self._too_noisy = 0
        self._step = step
        self._last = first
        self._gains: deque[tuple[int, float]] = deque()
        self._fading, self._rests_ns = False, exposed_ns
        self._change = ""
        self._ever_changed = False
        self._page_gain = 1.0
        self._page_ns = exposed_ns
        self._shown, self._weak = first.copy(), np.zeros(first.shape, np.uint8)
        self._spots = Spots(first, area.cells)

    def too_dark(self) -> str | None:
        """Why nothing can be told in the last picture's light, in words."""
        threshold = self._threshold(self._sigma_known())
        level = max(float(BLACK_LEVEL), TELLABLE_LEVEL + TELLABLE_THRESHOLDS * threshold)
        bright = cv2.bitwise_and(cv2.inRange(self._last, level, 256.0), self._area.watched)
        if cv2.countNonZero(bright) >= TELLABLE_SHARE * cv2.countNonZero(self._area.watched):
            return None
        return f"the screen is dark (nothing on it above {level:.0f} of 255): off, or too dim to tell"

    def take(self, cells: Levels, exposed_ns: int, step: float) -> Seen:
        """The next picture. step: grey levels between two means that its JPEG can give a block."""
        self._step = max(step, self._step)
        self._last = cells
        dark = self.too_dark()
        if dark is not None:
            self._new_page(cells, exposed_ns)
            return self._seen(0.0, self._sigma_known(), exposed_ns, hidden=dark)
        light = self._meter.measure(self._shown, cells, self._threshold(self._sigma_known()))
        sigma = self._sigma(cells, light)
        if sigma is None:
            return self._all_changes(cells, exposed_ns)
        if self._fades(light, exposed_ns):
            self._gains.clear()
            return self._new_page_seen(
                cells, exposed_ns, sigma, 1.0, "the screen's brightness jumps or fades"
            )
        return self._compare(cells, light, exposed_ns, sigma)

    def _compare(self, cells: Levels, light: Light, exposed_ns: int, sigma: float) -> Seen:
        threshold = self._threshold(sigma)
        shine = SHINE * abs(1.0 - light.gain) + BANDS_LEFT * light.banding
        changed = self._changed(cells, light, threshold + shine)
        creeps = self._creeps(cells, light, sigma, shine)
        if creeps or cv2.countNonZero(changed):
            light = self._meter.refine(self._shown, cells, light, threshold + shine)
            changed = self._changed(cells, light, threshold + shine)
            creeps = self._creeps(cells, light, sigma, shine)
        changed = self._confirmed(changed, cells, light, threshold + shine)
        fraction = cv2.countNonZero(changed) / self._area.cells
        if fraction > RIM_FACTOR * SMALL_SHARE:
            words = f"{fraction:.1%} of the screen changed"
            return self._new_page_seen(cells, exposed_ns, sigma, fraction, words)
        if creeps:
            return self._new_page_seen(cells, exposed_ns, sigma, fraction, "the page changes slowly")
        # Only now: between two pages there is no telling how the brightness changed.
        self._gains.append((exposed_ns, self._page_gain * light.gain))
        if self._fading:
            self._wait_for_light(exposed_ns)
        if fraction > 0.0:
            in_page_light = light.off(cells)
            level = threshold / light.gain
            if not self._spots.take(changed, in_page_light, self._shown, level, exposed_ns):
                words = (
                    f"{self._spots.share:.2%} of the screen changed bit by bit, in {self._spots.count} places"
                )
                trail = self._spots.trail(exposed_ns - TRAIL_NS)
                seen = self._new_page_seen(cells, exposed_ns, sigma, fraction, words)
                self._spots = Spots(cells, self._area.cells, trail)
                return seen
            self._remember(changed, in_page_light)
            if self._spots.changed_ns == exposed_ns:
                self._ever_changed = True
                self._fading = self._brightens()
                self._change = f"{fraction:.2%} of the screen changed"
        return self._seen(fraction, sigma, exposed_ns)

    def _changed(self, cells: Levels, light: Light, threshold: float) -> Mask:
        on = light.on(self._shown)
        difference = np.abs(cells - on)
        difference[np.maximum(cells, on) >= CUT_OFF] -= CUT_OFF_LEVELS
        far = cv2.bitwise_and(cv2.inRange(difference, threshold, 256.0), self._area.watched)
        # A cell alone is noise or a block's rounding: the least cursor reaches into two.
        company = cv2.boxFilter(far, cv2.CV_16U, (3, 3), normalize=False, borderType=cv2.BORDER_CONSTANT)
        return np.where(np.asarray(company) > 255, np.asarray(far), 0).astype(np.uint8)

    def _confirmed(self, changed: Mask, cells: Levels, light: Light, threshold: float) -> Mask:
        """What changed strongly, or weakly in this picture and the one before: noise does not stay. Where more than a
        small place changes nothing waits for the next picture."""
        weak, self._weak = self._weak, changed
        if cv2.countNonZero(changed) > SMALL_SHARE * self._area.cells:
            return changed
        strong = self._changed(cells, light, STRONG * threshold)
        near = cv2.dilate(strong, np.ones((9, 9), np.uint8))
        return np.asarray(cv2.bitwise_and(changed, cv2.bitwise_or(near, weak)), np.uint8)

    def _creeps(self, cells: Levels, light: Light, sigma: float, shine: float) -> bool:
        """Whether many blocks differ, each by little."""
        rows, columns = (side // BLOCK_CELLS for side in cells.shape)
        if min(rows, columns) < BLOCK_CELLS:
            return False
        whole = (slice(rows * BLOCK_CELLS), slice(columns * BLOCK_CELLS))
        weight = self._area.watched[whole].astype(np.float32) / np.float32(255.0)
        difference = cv2.multiply(cv2.subtract(cells[whole], light.on(self._shown)[whole]), weight)
        blocks = cv2.resize(difference, (columns, rows), interpolation=cv2.INTER_AREA)
        level = max(BLOCK_FLOOR, BLOCK_STEP_SHARE * self._step, BLOCK_SIGMAS * sigma) + shine
        few = BLOCK_SHARE * self._area.cells / BLOCK_CELLS**2
        if blocks.size - cv2.countNonZero(cv2.inRange(blocks, -level, level)) <= few:
            return False
        # What is left of bands and lamps lies over whole rows.
        own = blocks - np.median(blocks, axis=1, keepdims=True)
        return bool(own.size - cv2.countNonZero(cv2.inRange(own, -level, level)) > few)

    def _fades(self, light: Light, exposed_ns: int) -> bool:
        while self._gains and exposed_ns - self._gains[0][0] > FADE_NS:
            self._gains.popleft()
        gain = self._page_gain * light.gain
        known = [gain, *(gain for _, gain in self._gains)]
        return max(known) > FADE_FACTOR * min(known)

    def _remember(self, changed: Mask, levels: Levels) -> None:
        """The changed cells and their neighbours, which changed by less, now show this."""
        near = cv2.dilate(changed, np.ones((3, 3), np.uint8)) > 0
        self._shown[near] = levels[near]

    def _new_page(self, cells: Levels, exposed_ns: int) -> None:
        self._shown = cells.copy()
        self._weak = np.zeros(cells.shape, np.uint8)
        self._page_ns = self._rests_ns = exposed_ns
        self._spots = Spots(cells, self._area.cells)
        # The brightness goes on being followed from page to page.
        self._page_gain = self._gains[-1][1] if self._gains else 1.0
        self._least = min(self._estimates, default=None)

    def _new_page_seen(
        self, cells: Levels, exposed_ns: int, sigma: float | None, fraction: float, words: str
    ) -> Seen:
        # One page that fades into another dims or brightens the whole screen too: what is left of the change is small
        # for long. So a page that changed while its brightness did is another one until the brightness rests.
        self._fading = self._brightens()
        self._new_page(cells, exposed_ns)
        self._ever_changed = True
        self._change = words
        return self._seen(fraction, sigma, exposed_ns)

    def _all_changes(self, cells: Levels, exposed_ns: int) -> Seen:
        if self._too_noisy < _ESTIMATES:
            return self._new_page_seen(cells, exposed_ns, None, 1.0, "the whole picture changes")
        self._new_page(cells, exposed_ns)
        return self._seen(
            1.0,
            None,
            exposed_ns,
            hidden=(
                f"the whole picture has changed {self._too_noisy} times in a row: movement, noise or lamps cannot be "
                "told apart; measure noise_sigma on a still screen"
            ),
        )

    def _seen(self, fraction: float, sigma: float | None, exposed_ns: int, hidden: str | None = None) -> Seen:
        return Seen(
            still_since_ns=max(self._page_ns, self._rests_ns, self._spots.changed_ns),
            change=self._change,
            ever_changed=self._ever_changed,
            changed_fraction=fraction,
            noise_sigma=sigma,
            busy_small=self._spots.busy_since(exposed_ns - _BUSY_FACT_NS),
            light_changes=self._brightens(),
            hidden=hidden,
        )

    def _wait_for_light(self, exposed_ns: int) -> None:
        """The page that fades is there since its brightness rests."""
        least = most = self._gains[-1][1]
        own = [
            (self._page_ns, self._page_gain),
            *(known for known in self._gains if known[0] > self._page_ns),
        ]
        since_ns = exposed_ns
        for at_ns, gain in reversed([known for known in own if exposed_ns - known[0] <= FADE_NS]):
            least, most = min(least, gain), max(most, gain)
            if most > (1.0 + LIGHT_RESTS) * least:
                self._rests_ns = max(self._rests_ns, since_ns)
                break
            since_ns = at_ns
        self._change = "the page changes together with its brightness"
        self._fading = exposed_ns - self._rests_ns < FADE_NS

    def _brightens(self) -> bool:
        """Whether the screen's brightness changed within the last stretch, up or down."""
        gains = [gain for _, gain in self._gains] or [1.0]
        return max(gains) > (1.0 + LIGHT_CHANGES) * min(gains)

    # -- noise ----------------------------------------------------------------------------------------------

    def _sigma_known(self) -> float | None:
        return self._given if self._given is not None else self._least

    def _sigma(self, cells: Levels, light: Light) -> float | None:
        """The noise to reckon with, smoothed grey levels; None while everything moves and it cannot be told."""
        if self._given is None:
            estimate = pair_sigma(light.on(self._shown), cells, BLOCK_CELLS) / CELL_SIGMA
            if estimate <= MAX_ESTIMATED_SIGMA:
                self._estimates.append(estimate)
                self._least = estimate if self._least is None else min(estimate, self._least)
            else:
                self._too_noisy += 1
        # Movement only ever adds to an estimate, so the least of a page is the noise; the last few of the page before
        # may be less, where it was darker.
        return self._sigma_known()

    def _threshold(self, sigma: float | None) -> float:
        """Grey levels by which a cell must differ."""
        noise = 0.0 if sigma is None else THRESHOLD_SIGMAS * float(np.sqrt(2.0)) * CELL_SIGMA * sigma
        return max(THRESHOLD_FLOOR, STEP_SHARE * self._step + STEP_MORE, noise)
