"""frameNotes against the truth: what the bench takes for true, and each way in which a receipt can be wrong."""

from dataclasses import replace
from typing import Any

import pytest

from edge_daemon.bench.camera.commands import Command
from edge_daemon.bench.camera.notes import Acted, Judged, Looked, is_stale, judge
from edge_daemon.bench.camera.truth import EdgeMove, History, Sight
from edge_daemon.bench.twin.sensor import Exposure
from firmware import wire

MS = 1_000_000
PERIOD, OPEN = 66, 20
CLEAR = Sight(hand_in_view=False, screen_moving=False)
FRAME = Looked(
    10 * PERIOD * MS - MS, 700 * MS, True, 2000, number=11, sequence=11, frame_id="f-1", settle="still"
)
TAP = Command(wire.OP_TAP, sent_ns=1000 * MS, accepted_ns=1002 * MS, ended_ns=1300 * MS)
# Frame 11 was exposed from 660 ms on, the tap accepted at 1000 to 1002 ms, frame 16 exposed from 990 to 1010 ms.
TRUE_NOTES = {"ageMs": 341.0, "newerFrames": 4, "edgeMovedSince": False, "settled": True}


def exposure(sequence: int) -> Exposure:
    begin_ns = (sequence - 1) * PERIOD * MS
    return Exposure(sequence, begin_ns, begin_ns + OPEN * MS, begin_ns + OPEN * MS)


def history(**changes: Any) -> History:
    values: dict[str, Any] = {
        "exposures": {number: exposure(number) for number in range(1, 25)},
        "sights": dict.fromkeys(range(1, 25), CLEAR),
        "hand": (TAP,),
        "keys": (),
        "edge_moves": (),
    }
    return History(**{**values, **changes})


def judged(history: History, looks: list[Looked] | None = None, **notes: Any) -> Judged:
    acted = Acted("k", "tap", 900 * MS, 1400 * MS, FRAME, {**TRUE_NOTES, **notes})
    found = judge(acted, history, looks or [])
    assert found is not None
    return found


def test_true_notes_hold() -> None:
    found = judged(history())
    assert found.words == ()
    assert found.age_error_ms == 0.0


@pytest.mark.parametrize(("age_ms", "error_ms"), [(339.0, 1.0), (340.0, 0.0), (342.0, 0.0), (350.0, 8.0)])
def test_an_age_is_wrong_by_its_distance_from_what_the_line_allows(age_ms: float, error_ms: float) -> None:
    assert judged(history(), ageMs=age_ms).age_error_ms == pytest.approx(error_ms)


@pytest.mark.parametrize(("count", "wrong"), [(3, True), (4, False), (5, False), (6, True)])
def test_only_a_frame_that_was_just_being_exposed_may_be_counted_or_not(count: int, wrong: bool) -> None:
    assert judged(history(), newerFrames=count).newer_error is wrong


def test_frames_that_the_server_never_sent_need_not_be_counted() -> None:
    later = replace(FRAME, sent_ns=1500 * MS, answered_ns=1600 * MS, number=24, sequence=22, frame_id=None)
    found = judged(history(), [FRAME, later], newerFrames=2)
    assert not found.newer_error
    assert found.skipped == 2
    assert judged(history(), [FRAME, later], newerFrames=1).newer_error


@pytest.mark.parametrize(
    ("begin_ms", "end_ms", "moved"),
    [(100, 600, False), (700, 800, True), (1100, 1200, False)],
)
def test_only_a_move_at_the_edge_between_frame_and_acceptance_counts(
    begin_ms: int, end_ms: int, moved: bool
) -> None:
    there = history(edge_moves=(EdgeMove("jog", begin_ms * MS, end_ms * MS),))
    assert judged(there, edgeMovedSince=moved, settled=False).words == ()
    assert judged(there, edgeMovedSince=not moved, settled=False).edge_error


def test_homing_by_the_daemon_itself_is_a_move_at_the_edge() -> None:
    home = Command(wire.OP_HOME, 910 * MS, 911 * MS, 990 * MS)
    assert judged(history(hand=(home, TAP)), settled=False).edge_error


@pytest.mark.parametrize(("op", "moved"), [(wire.OP_HOME, True), (wire.OP_TAP, False)])
def test_a_hand_that_parks_ends_the_move_before_it_on_the_same_account(op: int, moved: bool) -> None:
    before = Command(op, 500 * MS, 501 * MS, 600 * MS)
    park = Command(wire.OP_PARK, 705 * MS, 706 * MS, 800 * MS)
    found = history(hand=(before, park, TAP))
    assert judged(found, edgeMovedSince=moved, settled=False).words == ()
    assert judged(found, edgeMovedSince=not moved, settled=False).edge_error


def test_a_broken_link_leaves_open_whether_the_hand_moved() -> None:
    there = history(opened_ns=(950 * MS,))
    assert not judged(there, edgeMovedSince=True).edge_error
    assert not judged(there, edgeMovedSince=False).edge_error


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"sights": {11: Sight(hand_in_view=True, screen_moving=False)}}, "hand is in the picture"),
        ({"sights": {11: Sight(hand_in_view=False, screen_moving=True)}}, "page was changing"),
        ({"hand": (Command(wire.OP_PARK, 750 * MS, 751 * MS, 800 * MS), TAP)}, "moved since the frame"),
    ],
)
def test_settled_is_wrong_where_hand_or_screen_speak_against_it(changes: dict[str, Any], word: str) -> None:
    found = judged(history(**changes))
    assert found.settled_error
    assert any(word in said for said in found.words)
    assert not judged(history(**changes), settled=False).settled_error


def test_the_approach_to_the_action_itself_does_not_unsettle_its_frame() -> None:
    move = Command(wire.OP_MOVE, 905 * MS, 906 * MS, 990 * MS)
    assert not judged(history(hand=(move, TAP))).settled_error


def test_nothing_is_judged_without_a_truth_of_its_own() -> None:
    acted = Acted("k", "tap", 900 * MS, 1400 * MS, FRAME, TRUE_NOTES)
    assert judge(replace(acted, frame=replace(FRAME, number=None)), history(), []) is None
    assert judge(acted, history(hand=()), []) is None
    assert judge(acted, history(hand=(TAP, replace(TAP, sent_ns=1350 * MS))), []) is None


@pytest.mark.parametrize(("sent_ms", "stale"), [(659, False), (661, True)])
def test_a_look_is_stale_when_its_exposure_began_before_it_was_asked_for(sent_ms: int, stale: bool) -> None:
    assert is_stale(replace(FRAME, sent_ns=sent_ms * MS), history()) is stale
    assert is_stale(replace(FRAME, number=None), history()) is None
