"""Is the screen still? Sans-IO: pictures and exposure times in, a verdict out.

Pictures are decoded small (a quarter of each side, inside the JPEG decoder) and brought to cells of one JPEG block
(settle_area). Each is compared, in the light it was taken in (settle_light), with what each cell has shown since it
last changed, not with the picture before: a slow slide whose every step is small is seen all the same.

Where the line runs between a page that changes and one that is still:

* Changes in more than 1 % of the screen at once or within three seconds are a change of the page: a scroll, an
  animation, a video, a fade, a keyboard, a notification. So is a smaller one that travels, by more than a cell (8
  camera pixels), and one that happens once and stays, as a switch does. The screen is still 250 ms later.
* A page on which only small places change and go on changing is still, and `busy_small` says that they do: a place
  no larger than a text cursor (0.15 %); a larger one, up to 1 %, that comes back to a state it had, or that has gone
  on in one place for 600 ms (a spinner).
* A change of the whole screen's brightness that leaves black black, slower than a factor of 1.25 in 250 ms, is no
  change of the page; `light_changes` says it. Faster, it is a fade; and so it is where the page changed meanwhile: then
  the screen is still once its brightness rests too (within 3 %).
* Whatever changes by less than the threshold of `settle_change` is not seen.

`moving` means that a change was seen within the last stretch. Before a whole stretch was watched, with the screen too
dark, after a gap, and when the camera has moved, the answer is `unreliable`, with the reason.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from edge_daemon.cameras.errors import BadPicture
from edge_daemon.cameras.health import is_black
from edge_daemon.cameras.imaging import Grey
from edge_daemon.cameras.settle_area import Polygon, WatchedArea
from edge_daemon.cameras.settle_change import PageWatch, Seen
from edge_daemon.cameras.settle_noise import (
    COARSE_STEP,
    MAX_GIVEN_SIGMA,
    block_step,
    decode_small,
    noise_sigma,
)
from edge_daemon.cameras.shift import ShiftCheck
from edge_daemon.contract.frames import SettleState

__all__ = [
    "MAX_GAP_MS",
    "MAX_GIVEN_SIGMA",
    "MIN_FRAMES",
    "MIN_STILL_MS",
    "Polygon",
    "SettleDetector",
    "SettleVerdict",
    "noise_sigma",
]

MIN_FRAMES = 3
MIN_STILL_MS = 250.0
MAX_GAP_MS = 1000.0
"""Longer without a picture, and something may have come and gone unseen."""
_TIMES = 256


@dataclass(frozen=True)
class SettleVerdict:
    """state: `still`, `moving`, or `unreliable` (the pictures do not allow to tell); `reason` says why.

    still_since_ns: exposure time of the first picture of the still stretch; only with `still`.
    frames: pictures judged so far. sequence: the last of them. changed_fraction: of the screen, changed with this
    picture. noise_sigma: used for the threshold, smoothed grey levels.
    busy_small: something small that leaves the page as it is went on within the last second: a cursor, a spinner.
    light_changes: the screen's brightness changed within the last stretch.
    camera_shift_px: (right, down) in camera px since the first picture, once the camera has moved.
    timed_out: the wait ended before the screen was still.
    """

    state: SettleState
    reason: str
    still_since_ns: int | None = None
    frames: int = 0
    sequence: int | None = None
    changed_fraction: float = 0.0
    noise_sigma: float | None = None
    busy_small: bool = False
    light_changes: bool = False
    camera_shift_px: tuple[float, float] | None = None
    timed_out: bool = False


class SettleDetector:
    """For one wait: make a new one after each move of the hand.

    mask: watch only inside this polygon (the screen); without it shares are of the whole picture: much coarser.
    ignore: polygons not to watch (a clock, a parked stylus).
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
    ) -> None:
        for polygon in (*([] if mask is None else [mask]), *ignore):
            if len(polygon) < 3:
                raise ValueError(f"a polygon needs three corners, not {len(polygon)}")
        if noise_sigma is not None and not 0 <= noise_sigma <= MAX_GIVEN_SIGMA:
            raise ValueError(
                f"noise_sigma {noise_sigma}: must be 0..{MAX_GIVEN_SIGMA:g} smoothed grey levels; "
                "more noise than that hides the screen: look at light and exposure"
            )
        if not min_still_ms >= MIN_STILL_MS:
            raise ValueError(f"min_still_ms {min_still_ms}: must be at least {MIN_STILL_MS:g}")
        self._mask = mask
        self._ignore = tuple(ignore)
        self._given_sigma = noise_sigma
        self._min_still_ns = round(min_still_ms * 1e6)
        self._area: WatchedArea | None = None
        self._page: PageWatch | None = None
        self._shift: ShiftCheck | None = None
        self._times: deque[int] = deque(maxlen=_TIMES)
        self._previous_ns: int | None = None
        self._verdict = SettleVerdict("unreliable", "no picture yet")

    @property
    def verdict(self) -> SettleVerdict:
        """The last one given."""
        return self._verdict

    def feed_jpeg(self, jpeg: bytes, exposed_ns: int) -> SettleVerdict:
        """Decode small, then `feed`."""
        try:
            small, reduction = decode_small(jpeg)
            step = block_step(jpeg)
        except BadPicture as error:
            return self._unreliable(str(error))
        return self.feed(small, exposed_ns, reduction, step)

    def feed(
        self, grey: Grey, exposed_ns: int, reduction: int = 1, step: float = COARSE_STEP
    ) -> SettleVerdict:
        """Judge the next picture, (height, width) uint8, whose sides were divided by `reduction`.

        step: grey levels by which JPEG rounds a block's mean; what is not known is taken for coarse.
        """
        gap_ns = None if self._previous_ns is None else exposed_ns - self._previous_ns
        if gap_ns is not None and gap_ns <= 0:
            return self._unreliable(
                f"exposure times do not advance ({gap_ns / 1e6:.1f} ms): the pictures are not new"
            )
        self._previous_ns = exposed_ns
        if self._area is None or self._area.shape != grey.shape:
            resized = self._area is not None
            self._area = WatchedArea(grey.shape, self._mask, self._ignore, reduction)
            self._page, self._shift = None, ShiftCheck(grey, self._area.outside)
            if resized:
                self._begin(grey, exposed_ns, step)
                return self._say("unreliable", "the picture changed its size")
        if gap_ns is not None and gap_ns > MAX_GAP_MS * 1e6:
            self._begin(grey, exposed_ns, step)
            return self._say(
                "unreliable", f"no picture for {gap_ns / 1e6:.0f} ms: the screen was not watched"
            )
        return self._judge(grey, exposed_ns, reduction, step)

    def _begin(self, grey: Grey, exposed_ns: int, step: float) -> None:
        """This picture is the first of what is known about the page."""
        assert self._area is not None
        self._page = PageWatch(self._area, self._area.to_cells(grey), exposed_ns, self._given_sigma, step)
        self._times.clear()
        self._times.append(exposed_ns)

    def _judge(self, grey: Grey, exposed_ns: int, reduction: int, step: float) -> SettleVerdict:
        assert self._area is not None
        assert self._shift is not None
        shift = self._shift.shift_px(grey)
        if shift is not None:
            moved = (shift[0] * reduction, shift[1] * reduction)
            verdict = self._unreliable(
                f"the camera moved by {moved[0]:.1f} px to the right and {moved[1]:.1f} px down"
            )
            self._verdict = replace(verdict, camera_shift_px=moved)
            return self._verdict
        if self._page is None:
            self._begin(grey, exposed_ns, step)
            assert self._page is not None
            return self._say("unreliable", self._page.too_dark() or "only one picture so far")
        seen = self._page.take(self._area.to_cells(grey), exposed_ns, step)
        if seen.hidden is not None:
            return self._say("unreliable", "the picture is black" if is_black(grey) else seen.hidden, seen)
        self._times.append(exposed_ns)
        return self._judge_stretch(seen, exposed_ns)

    def _judge_stretch(self, seen: Seen, exposed_ns: int) -> SettleVerdict:
        length_ns = exposed_ns - seen.still_since_ns
        pictures = sum(1 for at_ns in self._times if at_ns >= seen.still_since_ns)
        so_far = f"{pictures} pictures over {length_ns / 1e6:.0f} ms"
        if pictures < MIN_FRAMES or length_ns < self._min_still_ns:
            if not seen.ever_changed:
                return self._say("unreliable", f"watched for only {so_far}", seen)
            if length_ns == 0:
                return self._say("moving", seen.change, seen)
            return self._say("moving", f"unchanged for {so_far} only", seen)
        facts = "; something small goes on" if seen.busy_small else ""
        facts += "; its brightness changes" if seen.light_changes else ""
        verdict = self._say("still", f"unchanged for {so_far}{facts}", seen)
        self._verdict = replace(verdict, still_since_ns=seen.still_since_ns)
        return self._verdict

    def _unreliable(self, reason: str) -> SettleVerdict:
        """A picture that cannot be judged ends the stretch; the next good one begins another."""
        self._page = None
        return self._say("unreliable", reason)

    def _say(self, state: SettleState, reason: str, seen: Seen | None = None) -> SettleVerdict:
        self._verdict = SettleVerdict(
            state,
            reason,
            frames=self._verdict.frames + 1,
            changed_fraction=0.0 if seen is None else seen.changed_fraction,
            noise_sigma=self._given_sigma if seen is None else seen.noise_sigma,
            busy_small=seen is not None and seen.busy_small,
            light_changes=seen is not None and seen.light_changes,
        )
        return self._verdict
