"""Stories whose page stays as it is, or of which nothing can be told."""

import cv2
import numpy as np

from edge_daemon.bench.camera.drawn_pages import page
from edge_daemon.bench.camera.small_sensor import Canvas
from edge_daemon.bench.camera.story import Paint, Story, moments, refreshed


def still(rng: np.random.Generator, w: int, h: int) -> Story:
    canvas = page(rng, w, h)
    return Story(lambda at_s: canvas, 1.5)


def _blinking(one: Canvas, other: Canvas, half_s: float, first_s: float) -> Paint:
    return lambda at_s: one if int((at_s - first_s) / half_s + 2.0) % 2 == 0 else other


def cursor(rng: np.random.Generator, w: int, h: int) -> Story:
    """A text cursor: 6 x 68 of 1080 x 2340."""
    canvas = page(rng, w, h)
    x, y = int(rng.integers(w // 8, w - w // 8)), int(rng.integers(h // 8, h - h // 8))
    wide, high = max(1, round(w * 6 / 1080)), max(5, round(h * 68 / 2340))
    other = canvas.copy()
    under = int(canvas[y, x])
    other[y : y + high, x : x + wide] = 40 if under > 128 else 230
    half_s = float(rng.uniform(0.5, 0.56))
    return Story(_blinking(canvas, other, half_s, float(rng.uniform(0.0, half_s))), 3.0, busy_small=True)


def blinker(rng: np.random.Generator, w: int, h: int) -> Story:
    """A block cursor or a blinking mark of 0.25 to 0.7 % of the screen: larger than many a switch."""
    canvas = page(rng, w, h)
    other = canvas.copy()
    side = round((w * h * rng.uniform(0.0025, 0.007)) ** 0.5)
    x, y = int(rng.integers(side, w - 2 * side)), int(rng.integers(h // 10, h - 2 * side))
    other[y : y + side, x : x + side] = 255 - canvas[y : y + side, x : x + side]
    half_s = float(rng.uniform(0.4, 0.6))
    paint = _blinking(canvas, other, half_s, float(rng.uniform(0.0, half_s)))
    # Until it has come back once: two halves, and what the second took from the stretch.
    return Story(paint, 4.0, learning_s=2 * half_s, busy_small=True)


def _spin(canvas: Canvas, x: int, y: int, radius: int, angle: float, ink: int) -> Canvas:
    turned = canvas.copy()
    cv2.ellipse(turned, (x, y), (radius, radius), 0, angle, angle + 100, ink, max(1, radius // 4))
    return turned


def spinning(rng: np.random.Generator, w: int, h: int, low: float, high: float) -> tuple[Paint, float]:
    canvas = page(rng, w, h)
    # The stroke lies half outside the radius.
    radius = max(3, round((w * h * rng.uniform(low, high)) ** 0.5 / 2.25))
    x = int(rng.integers(radius + 2, w - radius - 2))
    y = int(rng.integers(h // 10 + radius, h - radius - 2))
    ground = int(canvas[y, x])
    cv2.rectangle(canvas, (x - radius - 3, y - radius - 3), (x + radius + 3, y + radius + 3), ground, -1)
    ink = int(np.clip(ground + (90 if ground < 128 else -90) * rng.uniform(1.0, 1.7), 0, 255))
    period_s = float(rng.uniform(0.6, 1.3))
    return (
        lambda at_s: _spin(canvas, x, y, radius, refreshed(at_s) / period_s * 360.0, ink),
        period_s,
    )


def spinner(rng: np.random.Generator, w: int, h: int) -> Story:
    """0.06 to 0.7 % of the screen."""
    paint, period_s = spinning(rng, w, h, 0.0006, 0.007)
    return Story(paint, 3.2, learning_s=0.6 + period_s, busy_small=True)


def status_bar(rng: np.random.Generator, w: int, h: int) -> Story:
    """The clock and the icons change; the strip is ignored as the daemon does it."""
    one = page(rng, w, h)
    other = one.copy()
    bar = round(h * 0.03)
    other[:bar, w // 2 :] = 255 - other[:bar, w // 2 :]
    times = np.sort(rng.uniform(0.2, 1.8, 3))
    return Story(lambda at_s: one if np.searchsorted(times, at_s) % 2 == 0 else other, 2.0)


def auto_brightness(rng: np.random.Generator, w: int, h: int) -> Story:
    """The brightness goes to 0.6 to 1.5 of itself within 0.8 to 2.5 s."""
    canvas = page(rng, w, h)
    begin_s, end_s, length_s = moments(rng, 0.8, 2.5)
    factor = float(rng.choice((rng.uniform(0.6, 0.92), rng.uniform(1.08, 1.5))))
    return Story(
        lambda at_s: canvas,
        length_s,
        brightness=lambda at_s: float(np.interp(at_s, (begin_s, end_s), (1.0, factor))),
    )


def camera_moved(rng: np.random.Generator, w: int, h: int) -> Story:
    """The camera is knocked by 2 to 24 of its px and stays so."""
    canvas = page(rng, w, h)
    at_s = float(rng.uniform(0.3, 0.9))
    angle, far = rng.uniform(0.0, 2.0 * np.pi), rng.uniform(0.5, 6.0)
    shift = (float(far * np.cos(angle)), float(far * np.sin(angle)))
    return Story(
        lambda now_s: canvas,
        2.0,
        untellable_s=at_s,
        shift_px=lambda now_s: shift if now_s >= at_s else None,
    )


def screen_off(rng: np.random.Generator, w: int, h: int) -> Story:
    """Dark, or so dim that a page could not be told from another."""
    canvas = page(rng, w, h)
    level = float(rng.uniform(0.0, 0.05))
    return Story(lambda at_s: canvas, 1.2, untellable_s=-1.0, brightness=lambda at_s: level)
