"""The text suite: a short run of it, and that its comparison and its bad line are what they say."""

import re
from pathlib import Path

import numpy as np
import pytest

from edge_daemon.bench.text import (
    LAYOUTS,
    LayoutResult,
    TextReport,
    TextRun,
    difference,
    draw_text,
    run_text_suite,
)
from edge_daemon.bench.twin.line_loss import FrameLoss
from firmware import wire
from firmware.hid import layouts


@pytest.mark.system
async def test_a_text_arrives_equal_over_a_clean_line_and_with_caps_lock_over_a_bad_one(
    tmp_path: Path,
) -> None:
    told: list[LayoutResult] = []
    report = await run_text_suite(["fr"], 200, 0.1, 1.0, 3, tmp_path, told.append)
    (result,) = told
    assert result.clean.problem is None
    assert result.lossy.problem is None
    assert result.clean.lost_frames == 0
    figures = report.as_json()["layouts"]["fr"]
    assert (figures["characters"], figures["equal"]) == (200, True)
    assert figures["frames"] > 0


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_a_drawn_text_has_its_length_and_every_character_of_the_charset(layout: str) -> None:
    text = draw_text(layout, 4096, np.random.default_rng(1))
    assert len(text) == 4096
    assert set(text) == set(layouts.charset(LAYOUTS[layout]))
    assert len(text.encode()) <= 12_288


@pytest.mark.parametrize(
    ("arrived", "words"),
    [
        ("hell", "4 of 5 .* at 4"),
        ("heello", "6 of 5 .* at 2"),
        ("hElo!", "at 1: 'ello' became 'Elo!'"),
        ("", "0 of 5 .* at 0"),
    ],
)
def test_a_character_lost_doubled_or_wrong_is_told(arrived: str, words: str) -> None:
    assert difference("hello", "hello") is None
    told = difference("hello", arrived)
    assert told is not None
    assert re.search(words, told)


def run(equal: bool, lost: int) -> TextRun:
    return TextRun(equal, 100, lost, 0, 0, 1.0, None if equal else "different")


@pytest.mark.parametrize(
    ("clean", "lossy", "verdict"),
    [
        (run(True, 0), run(True, 5), "pass"),
        (run(True, 0), run(True, 0), "fail"),
        (run(False, 0), run(True, 5), "fail"),
        (run(True, 0), run(False, 5), "fail"),
    ],
)
def test_the_verdict_wants_both_texts_equal_and_frames_really_lost(
    clean: TextRun, lossy: TextRun, verdict: str
) -> None:
    result = LayoutResult("us", 200, 200, clean, lossy)
    assert TextReport(1, "cpython", 0.05, 1.0, [result]).as_json()["verdict"] == verdict


def test_a_line_that_loses_frames_loses_whole_ones_at_its_rate() -> None:
    frames = [
        wire.encode_frame(wire.QUERY, 1, 2, seq, wire.pack_body(wire.QUERY, seq)) for seq in range(2000)
    ]
    stream = b"".join(frames)
    loss = FrameLoss(np.random.default_rng(4), 0.05)
    arrived = b"".join(loss.carry(stream[at : at + 7]) for at in range(0, len(stream), 7))
    decoder = wire.Decoder()
    seqs = [frame.seq for frame in decoder.feed(arrived)]
    assert seqs == sorted(seqs)
    assert len(seqs) == loss.passed == 2000 - loss.lost
    assert 60 <= loss.lost <= 140
    assert decoder.crc_errors == decoder.garbage_bytes == 0
