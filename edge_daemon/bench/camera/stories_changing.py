"""Stories whose page changes: at once, slowly, bit by bit, or all the time."""

from collections.abc import Callable

import cv2
import numpy as np

from edge_daemon.bench.camera.drawn_pages import page, tall_page, words
from edge_daemon.bench.camera.small_sensor import Canvas
from edge_daemon.bench.camera.stories_staying import cursor, spinning
from edge_daemon.bench.camera.story import REST_S, Paint, Span, Story, between, eased, moments, refreshed

CURSOR_SHARE = 0.0015
"""Of the screen: a knob that has moved so little has not moved yet."""


def page_change(rng: np.random.Generator, w: int, h: int) -> Story:
    before, after = page(rng, w, h), page(rng, w, h)
    begin_s = float(rng.uniform(0.35, 0.8))
    return Story(lambda at_s: before if at_s < begin_s else after, begin_s + REST_S, [Span(begin_s, begin_s)])


def _scrolling(rng: np.random.Generator, w: int, h: int, way_px: Callable[[float], float]) -> Paint:
    """way_px(s): how far the list has gone, canvas px."""
    sheet, head = tall_page(rng, w, h), round(h * 0.12)
    top = page(rng, w, h)[:head]
    shown: dict[int, Canvas] = {}

    def paint(at_s: float) -> Canvas:
        # The panel's px are finer than the canvas': half a canvas px is the least step.
        half = min(round(2 * way_px(refreshed(at_s))), 2 * (2 * h - 1))
        if half not in shown:
            shown.clear()
            at = half // 2
            part = sheet[at : at + h - head]
            if half % 2:
                below = sheet[at + 1 : at + 1 + h - head]
                part = np.asarray(cv2.addWeighted(part, 0.5, below, 0.5, 0), np.uint8)
            shown[half] = np.vstack([top, part])
        return shown[half]

    return paint


def scroll(rng: np.random.Generator, w: int, h: int) -> Story:
    """At an even pace, 0.05 to 2.5 screens a second."""
    begin_s, end_s, length_s = moments(rng, 0.4, 1.2)
    pace = h * float(np.exp(rng.uniform(np.log(0.05), np.log(2.5))))
    pace = min(pace, 1.8 * h / (end_s - begin_s))
    paint = _scrolling(rng, w, h, lambda at_s: pace * (min(max(at_s, begin_s), end_s) - begin_s))
    return Story(paint, length_s, [Span(begin_s, end_s, gradual=True)])


def fling(rng: np.random.Generator, w: int, h: int) -> Story:
    """It slows down by 1/e in 325 ms; the last px come one by one."""
    begin_s = float(rng.uniform(0.35, 0.6))
    way = h * float(rng.uniform(0.3, 1.5))

    def way_px(at_s: float) -> float:
        return way * float(1.0 - np.exp(-min(max(at_s - begin_s, 0.0), 1.6) / 0.325))

    return Story(
        _scrolling(rng, w, h, way_px), begin_s + 1.6 + REST_S, [Span(begin_s, begin_s + 1.6, gradual=True)]
    )


def slide(rng: np.random.Generator, w: int, h: int) -> Story:
    """The new page comes in from the right, within 0.2 to 3 s."""
    before, after = page(rng, w, h), page(rng, w, h)
    begin_s, end_s, length_s = moments(rng, 0.2, 3.0)

    def middle(share: float) -> Canvas:
        edge = round(w * (1.0 - eased(share)))
        return np.hstack([before[:, w - edge :], after[:, : w - edge]])

    paint = between(before, after, begin_s, end_s, middle)
    return Story(paint, length_s, [Span(begin_s, end_s, gradual=True)])


def fade(rng: np.random.Generator, w: int, h: int) -> Story:
    """One page becomes the other within 0.15 to 4 s."""
    before, after = page(rng, w, h), page(rng, w, h)
    begin_s, end_s, length_s = moments(rng, 0.15, 4.0)

    def middle(share: float) -> Canvas:
        return np.asarray(cv2.addWeighted(before, 1.0 - share, after, share, 0), np.uint8)

    paint = between(before, after, begin_s, end_s, middle)
    return Story(paint, length_s, [Span(begin_s, end_s, gradual=True)])


def _over(before: Canvas, sheet: Canvas, top: int, left: int) -> Canvas:
    canvas = before.copy()
    shown = sheet[: max(0, canvas.shape[0] - top)]
    canvas[top : top + len(shown), left : left + sheet.shape[1]] = shown
    return canvas


def keyboard(rng: np.random.Generator, w: int, h: int) -> Story:
    """Slides in from below within 0.15 to 0.4 s."""
    before = page(rng, w, h)
    tall = round(h * rng.uniform(0.3, 0.42))
    keys = np.full((tall, w), 215, np.uint8)
    for y in range(2, tall - 8, tall // 5):
        for x in range(2, w - 6, w // 10):
            keys[y : y + tall // 6, x : x + w // 12] = 250
            words(keys, rng, x + 2, y + 3, max(3, w // 40), max(3, tall // 14), 60)
    begin_s, end_s, length_s = moments(rng, 0.15, 0.4)

    def middle(share: float) -> Canvas:
        return _over(before, keys, h - round(tall * eased(share)), 0)

    paint = between(before, middle(1.0), begin_s, end_s, middle)
    return Story(paint, length_s, [Span(begin_s, end_s, gradual=True)])


def notification(rng: np.random.Generator, w: int, h: int) -> Story:
    before = page(rng, w, h)
    card = np.full((round(h * 0.14), w - w // 15), 248, np.uint8)
    words(card, rng, w // 6, card.shape[0] // 3, w // 2, max(4, w // 24), 30)
    begin_s, end_s, length_s = moments(rng, 0.2, 0.3)

    def middle(share: float) -> Canvas:
        bottom = round((card.shape[0] + h * 0.05) * share)
        return (
            before if bottom == 0 else _over(before, card[-bottom:], max(0, bottom - card.shape[0]), w // 30)
        )

    paint = between(before, middle(1.0), begin_s, end_s, middle)
    return Story(paint, length_s, [Span(begin_s, end_s, gradual=True)])


def dialog(rng: np.random.Generator, w: int, h: int) -> Story:
    """The page darkens while a box grows in, within 0.1 to 0.4 s."""
    before = page(rng, w, h)
    box = np.full((round(h * 0.3), round(w * 0.8)), 245, np.uint8)
    words(box, rng, w // 10, h // 12, w // 2, max(4, w // 24), 30)
    begin_s, end_s, length_s = moments(rng, 0.1, 0.4)

    def middle(share: float) -> Canvas:
        dark = cv2.convertScaleAbs(before, alpha=1.0 - 0.45 * share)
        where = (slice(h // 3, h // 3 + box.shape[0]), slice(w // 10, w // 10 + box.shape[1]))
        dark[where] = cv2.addWeighted(dark[where], 1.0 - share, box, share, 0)
        return np.asarray(dark, np.uint8)

    paint = between(before, middle(1.0), begin_s, end_s, middle)
    return Story(paint, length_s, [Span(begin_s, end_s, gradual=True)])


def switch(rng: np.random.Generator, w: int, h: int, most: float = 0.009) -> Story:
    """0.3 to 0.9 % of the screen flips once and stays; at once, or the knob moves for up to 0.3 s."""
    before = page(rng, w, h)
    high = max(5, round((w * h * rng.uniform(0.003, most) / 2) ** 0.5))
    wide = 2 * high
    x, y = int(rng.integers(2, w - wide - 2)), int(rng.integers(h // 8, h - 2 * high))
    lasts_s = float(rng.choice((0.0, rng.uniform(0.1, 0.3))))
    begin_s = float(rng.uniform(0.35, 0.8))
    ground = int(rng.choice((170, 90)))

    def middle(share: float) -> Canvas:
        canvas = before.copy()
        track = round(ground + (235 - ground if ground == 170 else -70) * share)
        cv2.rectangle(canvas, (x, y), (x + wide - 1, y + high - 1), track, -1)
        knob = x + high // 2 + round((wide - high) * share)
        cv2.circle(canvas, (knob, y + high // 2), max(1, high // 2 - 1), 252 if ground == 170 else 190, -1)
        return canvas

    off, on = middle(0.0), middle(1.0)
    paint = between(off, on, begin_s, begin_s + max(lasts_s, 1e-6), middle)
    # A knob that has hardly moved yet is less than a cursor.
    span = Span(begin_s, begin_s + lasts_s, gradual=lasts_s > 0.0, share=CURSOR_SHARE)
    return Story(paint, begin_s + lasts_s + REST_S, [span])


def list_row(rng: np.random.Generator, w: int, h: int) -> Story:
    """A row over the whole width is marked, by 25 to 60 levels, and stays so."""
    before = page(rng, w, h)
    after = before.copy()
    y, tall = int(rng.integers(h // 6, h - h // 6)), round(h * rng.uniform(0.04, 0.09))
    by = float(rng.uniform(0.12, 0.25))
    after[y : y + tall] = cv2.addWeighted(
        after[y : y + tall], 1.0 - by, np.full_like(after[y : y + tall], 128), by, 0
    )
    apart = np.abs(after.astype(int) - before)[y : y + tall].mean()
    if apart < 12:
        after[y : y + tall] = np.maximum(before[y : y + tall], 40) - 40
    begin_s = float(rng.uniform(0.35, 0.8))
    return Story(lambda at_s: before if at_s < begin_s else after, begin_s + REST_S, [Span(begin_s, begin_s)])


def video(rng: np.random.Generator, w: int, h: int) -> Story:
    """Things drift and turn in 3 to 45 % of the screen, all the time."""
    canvas = page(rng, w, h)
    share = float(rng.uniform(0.03, 0.45))
    wide = round(w * min(1.0, (share * 2.0) ** 0.5))
    high = min(round(w * h * share / wide), round(h * 0.9))
    x, y = (w - wide) // 2, int(rng.integers(round(h * 0.05), h - high + 1))
    sheet = page(rng, 3 * wide, 2 * high)
    pace = rng.uniform(0.15, 1.0) * wide
    rate_hz = float(rng.choice((24.0, 30.0, 60.0)))

    def paint(at_s: float) -> Canvas:
        shown_s = int(at_s * rate_hz) / rate_hz
        across = wide * (1.0 - np.cos(shown_s * pace / wide)) * 0.99
        down = high * (0.5 - 0.5 * np.cos(shown_s * 1.3))
        matrix = np.array([[1.0, 0.0, -across], [0.0, 1.0, -down]])
        shown = canvas.copy()
        shown[y : y + high, x : x + wide] = cv2.warpAffine(sheet, matrix, (wide, high))
        cv2.circle(
            shown,
            (x + round(wide * (0.5 + 0.4 * np.sin(3.1 * shown_s))), y + high // 2),
            max(3, min(wide, high) // 6),
            round(128 + 120 * np.sin(5.0 * shown_s)),
            -1,
        )
        return shown

    return Story(paint, 2.0, [Span(0.0, 9.9)])


def big_spinner(rng: np.random.Generator, w: int, h: int) -> Story:
    """2 to 6 % of the screen."""
    paint, _ = spinning(rng, w, h, 0.02, 0.06)
    return Story(paint, 2.0, [Span(0.0, 9.9)])


def shimmer(rng: np.random.Generator, w: int, h: int) -> Story:
    """A page of grey bars over which a light passes, again and again."""
    canvas = np.full((h, w), 245, np.uint8)
    for y in range(h // 10, h - h // 12, h // 12):
        canvas[y : y + h // 25, w // 12 : w - w // 12] = 205
    bars = canvas < 220
    at = np.arange(w)[None, :] + np.arange(h)[:, None] * 0.3
    period_s = float(rng.uniform(0.9, 1.6))

    def paint(at_s: float) -> Canvas:
        middle = (refreshed(at_s) / period_s % 1.0) * (w + h * 0.3)
        light = 28.0 * np.exp(-(((at - middle) / 30.0) ** 2))
        return np.where(bars, np.clip(canvas + light, 0, 255), canvas).astype(np.uint8)

    return Story(paint, 2.2, [Span(0.0, 9.9)])


def traveller(rng: np.random.Generator, w: int, h: int) -> Story:
    """A mark of 0.3 to 0.8 % of the screen crosses it, a quarter to one width a second."""
    canvas = page(rng, w, h)
    radius = max(3, round((w * h * rng.uniform(0.003, 0.008) / np.pi) ** 0.5))
    y = int(rng.integers(h // 6, h - h // 6))
    pace = w * float(rng.uniform(0.25, 1.0))
    begin_s = float(rng.uniform(0.35, 0.6))
    end_s = begin_s + (w - 4.0 * radius) / pace
    ground = float(canvas[y - radius : y + radius].mean())

    def middle(share: float) -> Canvas:
        shown = canvas.copy()
        at = 2.0 * radius + share * (w - 4.0 * radius)
        cv2.circle(
            shown, (round(at * 16), y * 16), radius * 16, 20 if ground > 128 else 240, -1, cv2.LINE_AA, 4
        )
        return shown

    paint = between(middle(0.0), middle(1.0), begin_s, end_s, middle)
    return Story(paint, end_s + REST_S, [Span(begin_s, end_s)])


def typing(rng: np.random.Generator, w: int, h: int) -> Story:
    """Letters appear one after another, 4 to 12 a second, a cursor behind them. Of fewer than four nothing is said."""
    canvas = page(rng, w, h)
    size = max(8, round(h * 56 / 2340))
    y, left = h // 2, w // 12
    paper, ink = (250, 30) if rng.random() < 0.7 else (25, 230)
    canvas[y - size : y + 2 * size] = paper
    begin_s, every_s = float(rng.uniform(0.35, 0.6)), float(rng.uniform(1 / 12, 1 / 4))
    count = int(rng.integers(8, 15))
    advance = max(4, round(size * 0.55))
    count = min(count, (w - 2 * left) // advance - 1)
    states = [canvas]
    for letter in range(count):
        after = states[-1].copy()
        x = left + letter * advance
        after[y : y + size, x : x + advance] = paper
        words(after, rng, x, y, advance - 1, size, ink)
        after[y + size // 2, x : x + advance - 1] = ink
        after[y - 2 : y + size + 2, x + advance : x + advance + max(1, w // 180)] = ink
        states.append(after)
    end_s = begin_s + (count - 1) * every_s

    def paint(at_s: float) -> Canvas:
        return states[min(max(int((at_s - begin_s) / every_s + 1.0), 0), count)]

    return Story(paint, end_s + REST_S, [Span(begin_s + 3 * every_s, end_s, trace_s=begin_s)])


def progress(rng: np.random.Generator, w: int, h: int) -> Story:
    """A thin bar grows over most of the width within 0.8 to 2 s."""
    canvas = page(rng, w, h)
    y, tall = int(rng.integers(h // 6, h - h // 6)), max(3, h // 110)
    canvas[y : y + tall] = 215
    begin_s, end_s, length_s = moments(rng, 0.8, 2.0)

    def middle(share: float) -> Canvas:
        shown = canvas.copy()
        shown[y : y + tall, w // 16 : w // 16 + round(w * 0.86 * share)] = 60
        return shown

    paint = between(canvas, middle(1.0), begin_s, end_s, middle)
    return Story(paint, length_s, [Span(begin_s + 0.1 * (end_s - begin_s), end_s, trace_s=begin_s)])


def spinner_then_page(rng: np.random.Generator, w: int, h: int) -> Story:
    """A spinner turns until the page is there."""
    paint, period_s = spinning(rng, w, h, 0.001, 0.007)
    after = page(rng, w, h)
    begin_s = float(rng.uniform(0.5, 2.6))
    return Story(
        lambda at_s: paint(at_s) if at_s < begin_s else after,
        begin_s + REST_S,
        [Span(begin_s, begin_s)],
        learning_s=0.6 + period_s,
    )


def cursor_then_switch(rng: np.random.Generator, w: int, h: int) -> Story:
    """A cursor blinks on; elsewhere a switch flips once."""
    flipping, blinking = switch(rng, w, h, 0.006), cursor(rng, w, h)
    on_s = flipping.spans[0]
    base = blinking.paint(0.0)
    last: list[Canvas] = []

    def paint(at_s: float) -> Canvas:
        one, other = flipping.paint(at_s), blinking.paint(at_s)
        if not last or last[0] is not one or last[1] is not other:
            last[:] = [one, other, np.where(other != base, other, one)]
        return last[2]

    return Story(paint, flipping.length_s + 1.0, [on_s], busy_small=True)
