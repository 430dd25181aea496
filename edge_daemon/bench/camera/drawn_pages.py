"""Pages of a phone in grey, upright, drawn from a random stream: launchers, lists, articles, photographs, forms."""

import cv2
import numpy as np

from edge_daemon.bench.camera.small_sensor import Canvas


def page(rng: np.random.Generator, width: int, height: int) -> Canvas:
    """Any page, with a status bar in its topmost 3.5 %."""
    draw = (_launcher, _list, _article, _photograph, _form)[int(rng.integers(5))]
    canvas = draw(rng, width, height)
    bar = round(height * 0.035)
    ground = int(canvas[bar + 1, width // 2])
    canvas[:bar] = ground
    ink = 30 if ground > 128 else 225
    words(canvas, rng, round(width * 0.06), bar // 4, round(width * 0.12), max(bar // 2, 2), ink)
    return canvas


def tall_page(rng: np.random.Generator, width: int, height: int) -> Canvas:
    """A list or an article to scroll through, three screens long."""
    draw = (_list, _article)[int(rng.integers(2))]
    return draw(rng, width, 3 * height)


def words(
    canvas: Canvas, rng: np.random.Generator, x: int, y: int, width: int, height: int, ink: int
) -> None:
    """A line of text: strokes with gaps, `height` px high."""
    at = x
    end = min(x + width, canvas.shape[1] - 1)
    while at < end:
        letter = int(rng.integers(1, max(2, height // 2) + 1))
        top = y + int(rng.integers(0, max(1, height // 3)))
        canvas[top : y + height, at : min(at + letter, end)] = ink
        at += letter + (int(rng.integers(1, 3)) if rng.random() < 0.85 else height)


def _ground(rng: np.random.Generator) -> tuple[int, int]:
    """Paper and ink; one page in four is dark."""
    if rng.random() < 0.25:
        return int(rng.integers(12, 45)), int(rng.integers(190, 245))
    return int(rng.integers(225, 256)), int(rng.integers(15, 70))


def _launcher(rng: np.random.Generator, width: int, height: int) -> Canvas:
    top, bottom = rng.integers(40, 200, 2)
    canvas = np.repeat(np.linspace(top, bottom, height).astype(np.uint8)[:, None], width, axis=1)
    step_x, step_y = width // 4, height // 7
    side = round(step_x * 0.6)
    for row in range(1, 7):
        for column in range(4):
            if rng.random() < 0.85:
                x, y = column * step_x + (step_x - side) // 2, row * step_y
                cv2.rectangle(canvas, (x, y), (x + side, y + side), int(rng.integers(20, 255)), -1)
                cv2.circle(canvas, (x + side // 2, y + side // 2), side // 3, int(rng.integers(20, 255)), -1)
                words(canvas, rng, x, y + side + 3, side, max(3, side // 7), 240)
    return canvas


def _list(rng: np.random.Generator, width: int, height: int) -> Canvas:
    paper, ink = _ground(rng)
    canvas = np.full((height, width), paper, np.uint8)
    row = round(width * rng.uniform(0.16, 0.24))
    faint = (paper + ink) // 2
    size = max(4, row // 5)
    for y in range(round(width * 0.25), height, row):
        cv2.circle(canvas, (round(width * 0.11), y + row // 2), row // 4, int(rng.integers(40, 220)), -1)
        words(canvas, rng, round(width * 0.22), y + row // 4, round(width * rng.uniform(0.3, 0.6)), size, ink)
        words(
            canvas,
            rng,
            round(width * 0.22),
            y + row // 2,
            round(width * rng.uniform(0.2, 0.7)),
            size - 1,
            faint,
        )
    return canvas


def _article(rng: np.random.Generator, width: int, height: int) -> Canvas:
    paper, ink = _ground(rng)
    canvas = np.full((height, width), paper, np.uint8)
    y, size = round(width * 0.2), max(4, width // 32)
    while y < height - size:
        if rng.random() < 0.06:
            tall = round(width * 0.4)
            canvas[y : y + tall, width // 12 : -width // 12] = _texture(
                rng, width - 2 * (width // 12), min(tall, height - y)
            )[:, : canvas[y : y + tall, width // 12 : -width // 12].shape[1]]
            y += tall + size
        words(canvas, rng, width // 12, y, round(width * rng.uniform(0.5, 0.85)), size, ink)
        y += round(size * 1.9)
    return canvas


def _photograph(rng: np.random.Generator, width: int, height: int) -> Canvas:
    canvas = _texture(rng, width, height)
    words(canvas, rng, width // 10, round(height * 0.9), width // 2, max(5, width // 24), 250)
    return canvas


def _form(rng: np.random.Generator, width: int, height: int) -> Canvas:
    paper, ink = _ground(rng)
    canvas = np.full((height, width), paper, np.uint8)
    size = max(5, width // 26)
    for field in range(4):
        y = round(height * (0.14 + 0.15 * field))
        words(canvas, rng, width // 10, y, width // 3, size, ink)
        cv2.rectangle(
            canvas,
            (width // 10, y + 2 * size),
            (width - width // 10, y + 5 * size),
            (paper + ink) // 2,
            1,
        )
    cv2.rectangle(
        canvas,
        (width // 4, round(height * 0.8)),
        (width - width // 4, round(height * 0.87)),
        int(rng.integers(60, 160)),
        -1,
    )
    return canvas


def _texture(rng: np.random.Generator, width: int, height: int) -> Canvas:
    coarse = rng.integers(10, 250, (max(3, height // 24), max(3, width // 24))).astype(np.uint8)
    return np.asarray(cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC), np.uint8)
