"""Stories on drawn screens, seen by the small sensor: scenes by the thousand."""

import itertools
from collections.abc import Iterator

import numpy as np

from edge_daemon.bench.camera.scene import MS, Change, Scene, Shot
from edge_daemon.bench.camera.small_sensor import (
    REDUCTION,
    Canvas,
    Lamp,
    Levels,
    SensorTraits,
    SmallSensor,
)
from edge_daemon.bench.camera.stories import KINDS
from edge_daemon.bench.camera.story import Span, Story
from edge_daemon.cameras.settle_noise import pair_sigma, smoothed

VISIBLE_LEVELS = 8.0
STATUS_BAR_SHARE = 0.035
# (picture, upright canvas): 720p and 1080p, the phone along the picture or upright in it.
VIEWS = (
    ((1280, 720), (250, 544), False),
    ((1280, 720), (160, 340), True),
    ((1920, 1080), (376, 816), False),
)
BRIGHTEST = 1.06
NEVER_S = 1e6
DROPPED = 0.03
JITTER_NS = 2 * MS


def drawn_scene(kind: str, rng: np.random.Generator) -> Scene:
    """A scene of this kind; see `stories.KINDS`."""
    size, (width, height), upright = VIEWS[int(rng.choice(len(VIEWS), p=(0.5, 0.25, 0.25)))]
    traits = _traits(rng)
    canvas = (width, height) if upright else (height, width)
    sensor = SmallSensor(rng, size, canvas, traits)
    story = KINDS[kind](rng, width, height)
    fps = float(rng.choice((10.0, 15.0, 30.0), p=(0.15, 0.5, 0.35)))
    brightness = float(rng.choice((1.0, rng.uniform(0.3, 1.0)), p=(0.6, 0.4)))
    film = _Film(rng, story, sensor, upright, brightness, round(1e9 / fps))
    scene = Scene(
        kind=kind,
        interval_ns=film.interval_ns,
        begin_ns=film.begin_ns,
        shots=iter(()),
        mask=sensor.mask,
        ignore=(sensor.strip(STATUS_BAR_SHARE, upright),),
        noise_sigma=film.calibrated_sigma() if rng.random() < 0.6 else None,
        untellable_ns=None if story.untellable_s is None else film.at_ns(story.untellable_s),
        learning_ns=round(story.learning_s * 1e9),
        busy_small=story.busy_small,
        traits=f"{size[1]}p {fps:g} fps brightness {brightness:.2f} {traits}",
    )
    scene.shots = film.shots(scene.changes)
    return scene


def _traits(rng: np.random.Generator) -> SensorTraits:
    depth = float(rng.choice((0.0, rng.uniform(0.03, 0.10), rng.uniform(0.1, 0.5)), p=(0.3, 0.5, 0.2)))
    lamp = float(rng.choice((0.0, rng.uniform(0.05, 0.4)), p=(0.5, 0.5)))
    return SensorTraits(
        noise_sigma=float(rng.uniform(0.0, 6.0)),
        pwm_depth=depth,
        pwm_hz=float(rng.choice((240.0, 360.0, 480.0))) * float(rng.uniform(0.99, 1.01)),
        pwm_duty=float(rng.uniform(0.5, 0.8)),
        exposure_ms=float(rng.uniform(6.0, 12.0)),
        readout_ms=float(rng.uniform(8.0, 14.0)),
        quality=int(rng.choice((40, 70, 80, 90, 95))),
        lamp=Lamp(lamp, float(rng.choice((100.0, 120.0)))),
    )


class _Film:
    """The pictures of one story, taken one after another."""

    def __init__(
        self,
        rng: np.random.Generator,
        story: Story,
        sensor: SmallSensor,
        upright: bool,
        brightness: float,
        interval_ns: int,
    ) -> None:
        self._rng = rng
        self._story = story
        self._sensor = sensor
        self._upright = upright
        self._brightness = brightness
        self.interval_ns = interval_ns
        self.begin_ns = 1_000_000 * MS + int(rng.integers(0, 10**9))
        self._last: tuple[Canvas, float, Levels] | None = None

    def at_ns(self, at_s: float) -> int:
        return self.begin_ns + round(at_s * 1e9)

    def calibrated_sigma(self) -> float:
        """As a calibration measures it: the largest of the pairs of five pictures of the first page."""
        clean = self._clean(0.0)
        before_ns = [self.begin_ns - (5 - k) * self.interval_ns for k in range(5)]
        small = [smoothed(self._sensor.expose(clean, at_ns)) for at_ns in before_ns]
        return max(pair_sigma(one, other) for one, other in itertools.pairwise(small))

    def shots(self, changes: list[Change]) -> Iterator[Shot]:
        """Take the pictures; `changes` is filled in as they become known."""
        spans = [_Visible(span, self) for span in self._story.spans]
        at_ns = self.begin_ns
        while at_ns < self.at_ns(self._story.length_s):
            at_s = (at_ns - self.begin_ns) / 1e9
            clean = self._clean(at_s)
            for span in spans:
                span.look(at_s, clean)
            shift = self._story.shift_px(at_s) if self._story.shift_px is not None else None
            yield Shot(
                at_ns,
                grey=self._sensor.expose(clean, at_ns, shift),
                reduction=REDUCTION,
                step=self._sensor.step,
            )
            dropped = 2 if self._rng.random() < DROPPED else 1
            at_ns += dropped * self.interval_ns + int(self._rng.integers(-JITTER_NS, JITTER_NS + 1))
        changes.extend(span.change() for span in spans)

    def apart(self, one: Levels, other: Levels, share: float) -> bool:
        """Whether two clean pictures differ visibly in that share of the screen."""
        return self._sensor.screen_share(one, other, VISIBLE_LEVELS) >= share

    def _clean(self, at_s: float) -> Levels:
        canvas = self._story.paint(at_s)
        factor = 1.0 if self._story.brightness is None else self._story.brightness(at_s)
        # The exposure is locked: what a phone shines more than this would be white without detail.
        brightness = min(self._brightness * factor, BRIGHTEST)
        if self._last is None or self._last[0] is not canvas or self._last[1] != brightness:
            turned = canvas if self._upright else np.ascontiguousarray(np.rot90(canvas))
            self._last = (canvas, brightness, self._sensor.clean(turned, brightness))
        return self._last[2]

    def clean_at(self, at_s: float) -> Levels:
        return self._clean(at_s)


class _Visible:
    """When a span is seen to begin and to end; see `scene`."""

    def __init__(self, span: Span, film: _Film) -> None:
        self._span = span
        self._film = film
        self.begin_s: float | None = None if span.gradual else span.begin_s
        self.end_s: float | None = None if span.gradual else span.end_s
        self._before = film.clean_at(span.begin_s - 1e-3) if span.gradual else None
        self._after = film.clean_at(span.end_s + 0.05) if span.gradual else None

    def change(self) -> Change:
        """The span as far as it was seen. One that never was is empty: any answer is right in it."""
        first_s, last_s = self._span.first_s, self._span.end_s
        begin_s = NEVER_S if self.begin_s is None else self.begin_s
        end_s = NEVER_S if self.end_s is None else self.end_s
        at = self._film.at_ns
        return Change(at(begin_s), at(end_s), at(first_s), at(last_s))

    def look(self, at_s: float, clean: Levels) -> None:
        span = self._span
        if self._before is None or self._after is None or not span.begin_s <= at_s <= span.end_s + 0.05:
            return
        if self.begin_s is None and self._film.apart(clean, self._before, span.share):
            self.begin_s = self.end_s = at_s
        if self.begin_s is not None and self._film.apart(clean, self._after, span.share):
            self.end_s = at_s
