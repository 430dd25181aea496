"""Periodic patterns on what should be evenly lit: bands of rows, and moiré."""

import numpy as np

from calibration.detect.board_light import Strips, Vector, polynomial

# Lamps and vignetting are no bands: they are what a polynomial of this degree follows.
FIELD_DEGREE = 4
# Bands narrower than this are averaged away by the rows' noise; wider ones are hardly told from a lamp.
BAND_ROWS = (6.0, 300.0)
# Cells in which long waves are looked for, px, and the longest of them.
CELL_PX = 8
WAVE_PX = (3.0 * CELL_PX, 150.0)
# Spectra are padded so many times: a wave between two lines would lose up to 0.6 of its amplitude.
PADDING = 4


def unevenness(strips: Strips) -> Vector:
    """The white margins over their smooth field, less one; same shape as the strips."""
    px = strips.px.reshape(-1, 2)
    value = strips.value.ravel()
    unit = (px - px.mean(axis=0)) / np.ptp(px, axis=0).max() * 2.0
    terms = polynomial(unit, FIELD_DEGREE)
    kept = np.ones(len(value), dtype=np.bool_)
    for _ in range(3):
        field = terms @ np.linalg.lstsq(terms[kept], value[kept], rcond=None)[0]
        rest = value / np.maximum(field, 1.0) - 1.0
        spread = 1.4826 * float(np.median(np.abs(rest)))
        kept = np.abs(rest) < 4.0 * spread + 0.01
    return np.asarray(rest.reshape(strips.value.shape), dtype=np.float64)


def row_bands(strips: Strips, rest: Vector) -> tuple[float, float]:
    """The strongest wave over the picture's rows: its amplitude as a share of the level, and its period in rows."""
    rows, means, counts = _by_row(strips, rest)
    if len(rows) < 2 * BAND_ROWS[0]:
        return 0.0, 0.0
    length = float(np.ptp(rows))
    frequencies = np.arange(1.0 / min(BAND_ROWS[1], length), 1.0 / BAND_ROWS[0], 0.25 / length)
    waves = np.exp(-2j * np.pi * np.outer(frequencies, rows))
    weight = counts / counts.sum()
    power = 2.0 * np.abs(waves @ (weight * means))
    best = int(np.argmax(power))
    return float(power[best]), float(1.0 / frequencies[best])


def without_rows(strips: Strips, rest: Vector) -> Vector:
    """The unevenness without what whole rows share."""
    rows, means, _ = _by_row(strips, rest)
    at = np.searchsorted(rows, np.round(strips.px[..., 1]))
    return np.asarray(rest - means[at], dtype=np.float64)


def moire(strips: Strips, rest: Vector) -> tuple[float, float]:
    """The strongest periodic pattern that is not one of rows: amplitude over the level, and period in px."""
    return max(_long_wave(strips, rest), *(_short_wave(strips, rest, way) for way in (True, False)))


def _by_row(strips: Strips, rest: Vector) -> tuple[Vector, Vector, Vector]:
    rows, index = np.unique(np.round(strips.px[..., 1]).ravel(), return_inverse=True)
    counts = np.bincount(index).astype(np.float64)
    return rows, np.bincount(index, rest.ravel()) / counts, counts


def _short_wave(strips: Strips, rest: Vector, along_x: bool) -> tuple[float, float]:
    """Mean power spectrum of the strips of one direction: neighbouring strips need not be in phase."""
    chosen = rest[strips.along_x == along_x]
    count = chosen.shape[1]
    time = np.arange(count) - (count - 1) / 2.0
    level = chosen.mean(axis=1, keepdims=True)
    slope = (chosen @ time / (time @ time))[:, None]
    spectrum = np.abs(np.fft.rfft(chosen - level - slope * time, PADDING * count, axis=1)) ** 2
    # The median resists the few strips that a reflection or dust lies on. Less than a whole wave is no pattern.
    power = np.median(spectrum, axis=0)[PADDING:] * (2.0 / count) ** 2
    best = int(np.argmax(power))
    excess = max(float(power[best] - np.median(power)), 0.0)
    step = np.median(np.linalg.norm(np.diff(strips.px[strips.along_x == along_x], axis=1), axis=2))
    return float(np.sqrt(excess)), float(step) * PADDING * count / (best + PADDING)


def _long_wave(strips: Strips, rest: Vector) -> tuple[float, float]:
    """Waves longer than a strip, over the whole board."""
    px = strips.px.reshape(-1, 2)
    cells = np.floor((px - px.min(axis=0)) / CELL_PX).astype(np.int64)
    shape = tuple(cells.max(axis=0) + 1)
    flat = cells[:, 0] * shape[1] + cells[:, 1]
    counts = np.bincount(flat, minlength=shape[0] * shape[1])
    means = np.bincount(flat, rest.ravel(), minlength=len(counts)) / np.maximum(counts, 1)
    size = (PADDING * shape[0], PADDING * shape[1])
    amplitude = 2.0 * np.abs(np.fft.rfft2(means.reshape(shape), size)) / float((counts > 0).sum())
    frequency = np.hypot(np.fft.fftfreq(size[0])[:, None], np.fft.rfftfreq(size[1])[None]) / CELL_PX
    amplitude[(frequency < 1.0 / WAVE_PX[1]) | (frequency > 1.0 / WAVE_PX[0])] = 0.0
    best = np.unravel_index(int(np.argmax(amplitude)), amplitude.shape)
    period = float(1.0 / frequency[best]) if frequency[best] > 0.0 else 0.0
    return float(amplitude[best]), period
