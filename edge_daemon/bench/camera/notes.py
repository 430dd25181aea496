"""frameNotes and looks held against the truth; pure, so that each figure's check can be broken in a test."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from edge_daemon.bench.camera.truth import History
from edge_daemon.bench.twin.sensor import Exposure

NS_PER_MS = 1e6


@dataclass(frozen=True)
class Looked:
    """One look from the plane's side. number: which exposure the picture itself says it is; None: unreadable."""

    sent_ns: int
    answered_ns: int
    leased: bool
    wait_settled_ms: int
    number: int | None
    sequence: int
    frame_id: str | None
    settle: str


@dataclass(frozen=True)
class Acted:
    """One action that was bound to a frame, and the receipt's notes on it."""

    key: str
    kind: str
    sent_ns: int
    answered_ns: int
    frame: Looked
    notes: dict[str, Any]


@dataclass(frozen=True)
class Judged:
    """What of one receipt's notes is true. words: what is not.

    newer: what could be said truly, least and most. skipped: pictures that the camera's server left out meanwhile.
    moved: something at the edge moved the hand in between. settled: the receipt says so.
    """

    age_error_ms: float
    newer_error: bool
    edge_error: bool
    settled_error: bool
    newer: tuple[int, int]
    skipped: int
    moved: bool
    settled: bool
    words: tuple[str, ...]


def is_stale(look: Looked, history: History) -> bool | None:
    """Whether the picture's exposure began before the look was asked for; None when that cannot be told."""
    exposure = history.exposures.get(look.number) if look.number is not None else None
    return None if exposure is None else exposure.begin_ns < look.sent_ns


def judge(acted: Acted, history: History, looks: Sequence[Looked]) -> Judged | None:
    """None for a frame whose exposure is not known, or an action that no single command carried out.

    looks: all of the run in order; what the camera's server left out shows in them.
    """
    number = acted.frame.number
    frame = history.exposures.get(number) if number is not None else None
    command = history.action_between(acted.sent_ns, acted.answered_ns)
    if frame is None or command is None or command.accepted_ns is None:
        return None
    # The board accepted it at some moment between these two.
    from_ns, to_ns = command.sent_ns, command.accepted_ns
    skipped = _skipped(acted, looks)
    newer = _newer(frame, history, from_ns, to_ns, skipped)
    moved = _edge_moved(frame, history, from_ns, to_ns)
    unsettled = _unsettled(acted, frame, history)
    notes, words = acted.notes, []
    said = float(notes["ageMs"])
    true_ages = (from_ns - frame.begin_ns) / NS_PER_MS, (to_ns - frame.begin_ns) / NS_PER_MS
    error_ms = max(true_ages[0] - said, said - true_ages[1], 0.0)
    newer_error = not newer[0] <= notes["newerFrames"] <= newer[1]
    if newer_error:
        words.append(f"newerFrames {notes['newerFrames']}, true {newer[0]} to {newer[1]}")
    edge_error = moved is not None and notes["edgeMovedSince"] != moved[0]
    if edge_error and moved is not None:
        words.append(f"edgeMovedSince {notes['edgeMovedSince']}, but {moved[1]}")
    settled_error = bool(notes["settled"]) and unsettled is not None
    if settled_error:
        words.append(f"settled, but {unsettled}")
    return Judged(
        age_error_ms=error_ms,
        newer_error=newer_error,
        edge_error=edge_error,
        settled_error=settled_error,
        newer=newer,
        skipped=skipped,
        moved=moved is not None and moved[0],
        settled=bool(notes["settled"]),
        words=tuple(words),
    )


def _newer(frame: Exposure, history: History, from_ns: int, to_ns: int, skipped: int) -> tuple[int, int]:
    """How many exposures came after `frame` until the acceptance. One under way then may be counted or not."""
    later = [exposure for number, exposure in history.exposures.items() if number > frame.sequence]
    ended = sorted(exposure.end_ns for exposure in later)
    begun = sorted(exposure.begin_ns for exposure in later)
    return max(0, bisect_right(ended, from_ns) - skipped), bisect_right(begun, to_ns)


def _skipped(acted: Acted, looks: Sequence[Looked]) -> int:
    """Pictures that never reached the daemon between the frame and the next look after the action: of no camera
    server with a slow reader is anything else to be had, and it does not tell of them."""
    assert acted.frame.number is not None
    before = acted.frame.number - acted.frame.sequence
    for look in looks:
        if look.sent_ns > acted.answered_ns and look.number is not None:
            return max(0, look.number - look.sequence - before)
    return 0


def _edge_moved(frame: Exposure, history: History, from_ns: int, to_ns: int) -> tuple[bool, str] | None:
    """Whether something at the edge moved the hand after the frame; None when only a part of it came after it."""
    open_ended = False
    for move in (*history.edge_moves, *history.homings(), *history.returns(), *history.link_breaks()):
        if move.begin_ns >= to_ns or move.end_ns <= frame.begin_ns:
            continue
        if move.certain and move.begin_ns >= frame.begin_ns and move.end_ns <= from_ns:
            return True, f"a {move.kind} came between"
        open_ended = True
    return None if open_ended else (False, "nothing at the edge came between")


def _unsettled(acted: Acted, frame: Exposure, history: History) -> str | None:
    """Why the frame cannot have been settled when the action was sent; None when nothing speaks against it."""
    sight = history.sights.get(frame.sequence)
    if sight is not None and sight.hand_in_view:
        return "the hand is in the picture"
    if sight is not None and sight.screen_moving:
        return "the page was changing"
    if history.hand_moved_between(frame.begin_ns, acted.sent_ns):
        return "the hand has moved since the frame"
    return None
