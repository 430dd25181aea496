"""The bench's verdict: each way in which receipts and the phone's log can disagree fails it, in words."""

from typing import Any

import pytest

from edge_daemon.bench.script import Step, draw_script
from edge_daemon.bench.verdict import Attempt, SeenTouch, judge

SCREEN_MM = (68.0, 147.3)
TAP = Step({"type": "tap", "x": 500.0, "y": 500.0}, look_first=False)
ON_TARGET = SeenTouch(1, 2, (34.0, 73.65), (34.0, 73.65))
COMMITTED = {"status": "committed"}
FAILED = {"status": "failed", "error": {"message": "refused by the board"}}


def attempt(step: Step = TAP, **changes: Any) -> Attempt:
    values: dict[str, Any] = {
        "number": 1,
        "key": "k",
        "step": step,
        "receipt": COMMITTED,
        "error": None,
        "answered": True,
        "touches": [ON_TARGET],
        "keys": [],
        "typed": "",
    }
    return Attempt(**{**values, **changes})


def verdict_of(*attempts: Attempt, strays: int = 0) -> Any:
    return judge(attempts, SCREEN_MM, stray_touches=strays, landing_limit_mm=0.6)


def test_a_committed_tap_that_the_phone_felt_once_holds() -> None:
    verdict = verdict_of(attempt())
    assert verdict.holds
    assert (verdict.committed, verdict.landing()["max"]) == (1, 0.0)


@pytest.mark.parametrize(
    ("changes", "count", "word"),
    [
        ({"touches": [ON_TARGET, ON_TARGET]}, "double_touches", "2 times"),
        ({"touches": []}, "missing_touches", "saw nothing"),
        ({"receipt": None}, "lost_receipts", "no receipt"),
        ({"receipt": FAILED, "touches": []}, "failed", "refused by the board"),
        ({"receipt": FAILED}, "double_touches", "not executed, but the phone saw it"),
        ({"receipt": {**FAILED, "reason": "outcome_unknown"}}, "outcome_unknown", "unknown"),
    ],
)
def test_a_disagreement_is_counted_and_said(changes: dict[str, Any], count: str, word: str) -> None:
    verdict = verdict_of(attempt(**changes))
    assert not verdict.holds
    assert getattr(verdict, count) == 1
    assert any(word in problem for problem in verdict.problems)


def test_a_touch_that_belongs_to_no_action_counts_as_a_double() -> None:
    verdict = verdict_of(attempt(), strays=1)
    assert not verdict.holds
    assert verdict.double_touches == 1


def test_a_touch_too_far_from_its_target_fails_the_run() -> None:
    off = SeenTouch(1, 2, (34.0 + 0.7, 73.65), (34.7, 73.65))
    verdict = verdict_of(attempt(touches=[off]))
    assert not verdict.holds
    assert verdict.landing()["max"] == pytest.approx(0.7)


def test_a_key_and_a_text_count_by_what_the_phone_took() -> None:
    key = Step({"type": "pressKey", "key": "home"}, look_first=False)
    text = Step({"type": "typeText", "text": "ab"}, look_first=False)
    assert verdict_of(attempt(key, touches=[], keys=["home"])).holds
    assert verdict_of(attempt(key, touches=[], keys=["home", "home"])).double_touches == 1
    assert verdict_of(attempt(key, touches=[], keys=["back"])).missing_touches == 1
    assert verdict_of(attempt(text, touches=[], typed="ab")).holds
    assert not verdict_of(attempt(text, touches=[], typed="aab")).holds, "a doubled character is no text"
    assert verdict_of(attempt(text, touches=[], typed="abab")).double_touches == 1
    assert verdict_of(attempt(text, touches=[], typed="a")).missing_touches == 1


def test_the_script_follows_its_seed_and_stays_on_the_glass() -> None:
    assert draw_script(50, 7) == draw_script(50, 7)
    assert draw_script(50, 7) != draw_script(50, 8)
    script = draw_script(500, 3)
    assert {step.kind for step in script} == {"tap", "swipe", "longPress", "pressKey", "typeText"}
    for step in script:
        for place in (step.target, step.end):
            assert place is None or all(0 <= value <= 1000 for value in place)
