"""kill -9 of real processes: what it shows, how it is judged, and that nothing of it is left behind."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio

from edge_daemon.bench.crash.oracle import Counts
from edge_daemon.bench.crash.real_book import Seen, judge_entries
from edge_daemon.bench.crash.real_felt import felt_by
from edge_daemon.bench.crash.real_hand import Glass
from edge_daemon.bench.crash.real_kills import kill_many
from edge_daemon.bench.crash.real_leaks import leaks
from edge_daemon.bench.crash.real_notes import Contact, Entry, Felt, Flap, PhoneLog, Symbol, Wish
from edge_daemon.bench.crash.real_wishes import KEYS, Wishes, number_at, place_um, press
from edge_daemon.bench.crash.tasks import KillReal, encode
from edge_daemon.bench.undertaker import Undertaker, left_at_the_end

COMMITTED = {"status": "committed", "requiresManualReview": False}
FAILED = {"status": "failed", "error": {"code": "device_offline", "message": "nothing was sent"}}
UNKNOWN = {"status": "failed", "reason": "outcome_unknown", "requiresManualReview": True}
NONE: dict[str, Any] = {"known": True, "found": False}

TAP, SWIPE, TEXT = (getattr(Wishes(Random(1)), kind)() for kind in ("tap", "swipe", "text"))
WHOLE, PART, NOTHING = Felt(1, 1, 150), Felt(1, 0, 150), Felt()
S = 10**9


def entry(
    receipt: dict[str, Any] | None, *, wish: Wish = TAP, told: list[dict[str, Any]] | None = None, **more: Any
) -> Entry:
    found = NONE if receipt is None else {"known": True, "found": True, "receipt": receipt}
    return Entry("phone-1", "key-1", wish, 1, first_sent_ns=100, told=told or [], found=found, **more)


def judged(one: Entry, felt: Felt, **world: Any) -> Counts:
    said: list[str] = []
    counts = judge_entries([one], {"phone-1": Seen({"key-1": felt}, **world)}, said.append)
    assert bool(said) == bool(counts.violations), "each violation is said in words, and nothing else"
    return counts


def test_felt_once_and_the_right_words_are_no_violation() -> None:
    assert judged(entry(COMMITTED, told=[COMMITTED, COMMITTED], accepted_told=True), WHOLE) == Counts()
    assert judged(entry(FAILED, told=[FAILED]), NOTHING) == Counts()
    assert judged(entry(None), NOTHING) == Counts()


VIOLATIONS = {
    "felt a second time": (entry(COMMITTED), Felt(2, 2), {}, {"double_touches": 1}),
    "typed in part, and then whole": (entry(COMMITTED, wish=TEXT), Felt(2, 1), {}, {"double_touches": 1}),
    "felt, and asked for by nobody": (entry(COMMITTED), WHOLE, {"strays": ["a", "b"]}, {"stray_touches": 2}),
    "committed, and not felt": (entry(COMMITTED), NOTHING, {}, {"wrong_words": 1}),
    "committed, and typed in part": (entry(COMMITTED, wish=TEXT), PART, {}, {"wrong_words": 1}),
    "not executed, but felt": (entry(FAILED), WHOLE, {}, {"wrong_words": 1}),
    "not executed, but typed in part": (entry(FAILED, wish=TEXT), PART, {}, {"wrong_words": 1}),
    "accepted and then not found": (entry(None, accepted_told=True), NOTHING, {}, {"lost_receipts": 1}),
    "never final": (entry({"status": "pending"}), WHOLE, {}, {"lost_receipts": 1}),
    "another word than before": (entry(COMMITTED, told=[UNKNOWN]), WHOLE, {}, {"lost_receipts": 1}),
    "not found, but felt": (entry(None), PART, {}, {"wrong_not_found": 1}),
    "a stale holder's": (entry(COMMITTED, stale=True), WHOLE, {}, {"fencing_violations": 1}),
    "unknown of a board that stayed up": (
        entry(UNKNOWN, final_ns=300),
        WHOLE,
        {"resets_ns": {"hand": (50, 400), "hid": (200,)}},
        {"unknown": 1, "unknown_outside_window": 1},
    ),
    "unknown, typed whole, and long before the kill": (
        entry(UNKNOWN, wish=TEXT, final_ns=9 * S),
        Felt(1, 1, 2 * S),
        {"kills_ns": (2 * S,)},
        {"unknown": 1, "unknown_outside_window": 1},
    ),
    "unknown, not felt, and no restart": (
        entry(UNKNOWN, wish=TEXT, final_ns=9 * S),
        NOTHING,
        {"kills_ns": (2 * S,)},
        {"unknown": 1, "unknown_outside_window": 1},
    ),
    "unknown, and long done when its cable went": (
        entry(UNKNOWN, final_ns=9 * S),
        Felt(1, 1, 2 * S),
        {"flaps": {"hand": (Flap(3 * S, opened_ns=4 * S),)}},
        {"unknown": 1, "unknown_outside_window": 1},
    ),
    "unknown, and its board restarted after that had been settled": (
        entry({**UNKNOWN, "finishedNs": 150}, final_ns=300),
        WHOLE,
        {"resets_ns": {"hand": (200,)}},
        {"unknown": 1, "unknown_outside_window": 1},
    ),
    "never answered": (Entry("phone-1", "key-1", TAP, 1), NOTHING, {}, {"stuck": 1}),
}


@pytest.mark.parametrize("what", VIOLATIONS)
def test_each_violation_is_counted(what: str) -> None:
    one, felt, world, expected = VIOLATIONS[what]
    assert judged(one, felt, **world) == Counts(**expected)


def test_unknown_is_allowed_where_its_board_restarted_or_a_part_of_it_was_felt() -> None:
    restarted = {"resets_ns": {"hand": (200,), "hid": ()}}
    assert judged(entry(UNKNOWN, final_ns=300), WHOLE, **restarted) == Counts(unknown=1)
    assert judged(entry(UNKNOWN, wish=TEXT, final_ns=300), PART) == Counts(unknown=1)
    assert judged(entry(UNKNOWN, wish=SWIPE, final_ns=300), PART) == Counts(unknown=1)


MS = 10**6
BROKEN_OFF_AT_ITS_END = {
    "by the deadman after a kill": (TEXT, Felt(1, 1, 2600 * MS), {"kills_ns": (2000 * MS,)}),
    "by the deadman while the cable was gone": (
        TEXT,
        Felt(1, 1, 2600 * MS),
        {"flaps": {"hid": (Flap(2000 * MS),)}},
    ),
    "by the daemon's return": (
        TAP,
        Felt(1, 1, 2200 * MS),
        {"flaps": {"hand": (Flap(2000 * MS, opened_ns=2250 * MS),)}},
    ),
    "before it could tell whether it had arrived": (TAP, NOTHING, {"flaps": {"hand": (Flap(2000 * MS),)}}),
}


@pytest.mark.parametrize("how", BROKEN_OFF_AT_ITS_END)
def test_unknown_is_allowed_where_it_ended_just_when_the_board_broke_it_off(how: str) -> None:
    wish, felt, world = BROKEN_OFF_AT_ITS_END[how]
    assert judged(entry(UNKNOWN, wish=wish, final_ns=9000 * MS), felt, **world) == Counts(unknown=1)
    of_the_other_board = {
        what: {"hid" if kind == "hand" else "hand": flaps for kind, flaps in value.items()}
        for what, value in world.items()
        if what == "flaps"
    }
    outside = Counts(unknown=1, unknown_outside_window=1)
    assert judged(entry(UNKNOWN, wish=wish, final_ns=9000 * MS), felt, **of_the_other_board) == outside


def asked(number: int, wish: Wish, at_ns: int = 0) -> Entry:
    return Entry("phone-1", f"key-{number}", wish, 1, first_sent_ns=at_ns)


def typed(*texts: str) -> list[Symbol]:
    return [Symbol(at_ns, symbol) for at_ns, symbol in enumerate("".join(texts), start=1000)]


def test_what_was_typed_falls_into_whole_texts_and_beginnings() -> None:
    wishes = Wishes(Random(1))
    entries = [asked(number, wishes.text()) for number in range(4)]
    one, two, three, _ = (entry.wish.text for entry in entries)
    felt, strays = felt_by(entries, PhoneLog(typed=typed(one, two[:1], three[:5], one[:3], three)))
    counts = {key: (it.times, it.wholes) for key, it in felt.items()}
    assert counts == {"key-0": (2, 1), "key-1": (1, 0), "key-2": (2, 1)}
    assert strays == []


@pytest.mark.parametrize("spoil", ["X{}", "{}X", "x{}", "{0[0]}{0[1]}."])
def test_what_begins_no_text_is_nobodys(spoil: str) -> None:
    one = asked(1, TEXT)
    _, strays = felt_by([one], PhoneLog(typed=typed(spoil.format(TEXT.text))))
    assert len(strays) == 1


def test_a_text_that_comes_later_begins_with_the_same_character_and_is_told_apart_by_time() -> None:
    wishes = Wishes(Random(1))
    texts = [wishes.text() for _ in range(60)]
    first, again = next(
        (one, two) for one in texts for two in texts if one is not two and same_start(one, two)
    )
    entries = [asked(1, first, at_ns=0), asked(2, again, at_ns=2000)]
    for at_ns, key in ((1000, "key-1"), (3000, "key-2")):
        felt, _ = felt_by(entries, PhoneLog(typed=[Symbol(at_ns, first.text[0])]))
        assert list(felt) == [key]


def same_start(one: Wish, two: Wish) -> bool:
    return one.text[0] == two.text[0]


def test_a_stroke_belongs_to_the_last_one_that_was_asked_for() -> None:
    entries = [asked(1, press("back"), at_ns=10), asked(2, press("back"), at_ns=20)]
    log = PhoneLog(strokes=[Symbol(15, "back"), Symbol(25, "back"), Symbol(26, "back"), Symbol(26, "home")])
    felt, strays = felt_by(entries, log)
    assert [felt[key].times for key in ("key-1", "key-2")] == [1, 2]
    assert strays == ["the key home, which nobody had asked for"]


def test_a_drag_is_whole_where_it_was_lifted_at_its_end() -> None:
    x_um, y_um = place_um(SWIPE.number)
    for end_um, wholes in ((SWIPE.end_um, 1), ((x_um, y_um + 2000), 0)):
        felt, strays = felt_by([asked(1, SWIPE)], PhoneLog(contacts=[Contact(1, (x_um, y_um), 9, end_um)]))
        assert (felt["key-1"].times, felt["key-1"].wholes, strays) == (1, wholes, [])


def test_a_tap_that_was_drawn_is_noticed_and_so_is_a_contact_at_nobodys_place() -> None:
    at_um, elsewhere_um = place_um(TAP.number), (11_000, 11_000)
    log = PhoneLog(contacts=[Contact(1, at_um, 9, elsewhere_um), Contact(1, elsewhere_um, 9, at_um)])
    _, strays = felt_by([asked(1, TAP)], log)
    assert len(strays) == 2


def test_setpoints_below_the_glass_are_one_contact_until_it_is_lifted() -> None:
    log = PhoneLog()
    glass = Glass(log)
    for at_ns, (x_um, z_um) in enumerate(((1, 9), (1, -9), (2, -9), (2, 9), (3, -9))):
        glass.setpoint(x_um, 0, z_um, at_ns)
    assert log.contacts == [Contact(1, (1, 0), 2, (2, 0)), Contact(4, (3, 0), 4, (3, 0))]


def test_each_place_and_each_text_belongs_to_one_key() -> None:
    for number in (0, 49, 50, 777):
        x_um, y_um = place_um(number)
        assert number_at(x_um, y_um) == number
        assert number_at(x_um + 300, y_um) is None
    wishes = Wishes(Random(1))
    drawn = [wishes.draw(KEYS) for _ in range(1000)]
    for mark in ("number", "text"):
        marks = [getattr(wish, mark) for wish in drawn if getattr(wish, mark) not in (-1, "")]
        assert len(set(marks)) == len(marks) > 100


@pytest.mark.parametrize("form", ["{}", "{0!r}", "hex", "hex spaced", "utf-16"])
def test_a_piece_of_a_typed_text_is_found_in_any_file_and_in_what_was_told(form: str, tmp_path: Path) -> None:
    piece = TEXT.text[3:12]
    forms = {"hex": piece.encode().hex(), "hex spaced": piece.encode().hex(" ").upper(), "utf-16": piece}
    content = forms.get(form, form.format(piece)).encode("utf-16-le" if form == "utf-16" else "utf-8")
    (tmp_path / "state").mkdir()
    kept = tmp_path / "state" / "some.file"
    kept.write_bytes(b"before, 7 and a6" + content + b"after")
    assert leaks([TEXT.text], tmp_path, []) == ["a piece of a typed text stands in state/some.file"]
    kept.write_bytes(b"abcdefghijklmnop " + TEXT.text[:6].encode())
    assert leaks([TEXT.text], tmp_path, [repr(COMMITTED)]) == []
    assert leaks([TEXT.text], tmp_path, [f"cannot type {piece}"]) != []


async def test_killed_again_and_again_nothing_is_felt_twice_and_no_receipt_is_lost() -> None:
    with tempfile.TemporaryDirectory(prefix="edge-test-") as directory:
        report = await kill_many(1, 3, Path(directory))
        log = (Path(directory) / "daemon.log").read_text()
    assert report.problems == []
    assert report.counts.violations == 0
    assert report.kills == sum(report.moments.values()) == 3
    assert report.touches > 0, "else nothing was shown of hands"
    typed = report.felt.get("text whole", 0) + report.felt.get("key whole", 0)
    assert typed > 0, "else nothing was shown of keyboards"
    assert report.committed > 0
    assert " DEBUG " in log, "else a text that is logged at that level would not be found"


async def test_kill_9_of_the_bench_leaves_no_process_behind() -> None:
    with tempfile.TemporaryDirectory(prefix="edge-test-") as directory:
        worker = await trio.lowlevel.open_process(
            [sys.executable, "-m", "edge_daemon.bench.crash.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "TMPDIR": directory},
        )
        assert worker.stdin is not None
        assert worker.stdout is not None
        async with worker.stdin, worker.stdout:
            await worker.stdin.send_all(encode(KillReal(seed=1, kills=1000)))
            with trio.fail_after(30):
                while not {"run", "hand", "hid"} <= {role(pid) for pid in descendants(worker.pid)}:
                    await trio.sleep(0.01)
            left = [os.pidfd_open(pid) for pid in descendants(worker.pid)]
            worker.kill()
            await worker.wait()
        with trio.fail_after(10):
            for pidfd in left:
                await trio.lowlevel.wait_readable(pidfd)
                os.close(pidfd)


def test_the_undertaker_ends_what_was_not_released_and_nothing_else() -> None:
    with Undertaker() as undertaker:
        watched, released = (start(undertaker, "cat; sleep 60 & wait") for _ in range(2))
        undertaker.release(released.pid)
    assert watched.wait(10) == -signal.SIGKILL
    assert released.poll() is None
    os.killpg(released.pid, signal.SIGKILL)
    released.wait(10)


def test_only_those_that_were_not_released_are_left() -> None:
    assert left_at_the_end([b"+7\n", b"+8\n", b"-7\n", b"+9\n", b"-9\n"]) == [8]


def start(undertaker: Undertaker, script: str) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(
        undertaker.command(["/bin/sh", "-c", f"echo up; {script}"]),
        stdin=undertaker.fd,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"up\n", "enrolled before it runs"
    return process


def role(pid: int) -> str:
    """What kind of process this is, by the argument that tells; "" for others and for one that is gone."""
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    return next((word for word in ("run", "hand", "hid") if word.encode() in arguments), "")


def descendants(pid: int) -> Iterator[int]:
    parents = {}
    for entry_path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry_path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(entry_path.parent.name)] = int(fields[1])
    family = {pid}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    yield from family - {pid}
