"""The oracle sees every kind of broken promise in notes made by hand, and nothing in notes of a rig that kept them."""

import binascii
from dataclasses import replace
from typing import Any

import pytest

from edge_daemon.bench.crash.notes import (
    AboutBoard,
    Acknowledged,
    Barred,
    Entry,
    FirstByte,
    Mark,
    Name,
    Notebook,
    Progressed,
    Resolved,
    Schedule,
    Sent,
    Told,
)
from edge_daemon.bench.crash.oracle import Counts, Verdict, judge
from edge_daemon.bench.crash.phones import Touch
from firmware import wire

MS = 1_000_000
TAP: Name = ("phone-1", "tap")
NEWER: Name = ("phone-1", "newer")
TEXT: Name = ("phone-2", "text")
SECRET = "a4711815A"


def committed(name: Name) -> dict[str, Any]:
    return {"deviceId": name[0], "idempotencyKey": name[1], "status": "committed", "committedAt": "12:00"}


def failed(name: Name, code: str, **more: Any) -> dict[str, Any]:
    return {
        "deviceId": name[0],
        "idempotencyKey": name[1],
        "status": "failed",
        "error": {"code": code, "message": code, "retryable": False},
        **more,
    }


def unknown(name: Name) -> dict[str, Any]:
    return failed(name, "outcome_unknown", reason="outcome_unknown", requiresManualReview=True)


def pending(name: Name) -> dict[str, Any]:
    return {"deviceId": name[0], "idempotencyKey": name[1], "status": "pending"}


def told(at: int, name: Name, by: Any, receipt: dict[str, Any] | None, **more: Any) -> Told:
    return Told(at * MS, name, by, receipt, **more)


def refused(at: int, name: Name, code: str) -> Told:
    error = {"code": code, "message": code, "retryable": False}
    return told(at, name, "result", None, error=error, to="dispatch", token=11)


def tap_command(at: int, x: int = 7500, cmd_id: int = 1) -> FirstByte:
    return FirstByte(at * MS, "phone-1", cmd_id, wire.OP_TAP, (x, 9000, 2000, -500, 20))


def tap(at: int, x: int = 7500) -> list[Touch]:
    return [Touch((at + n) * MS, "phone-1", kind, x, 9000) for n, kind in enumerate(("place", "lift"))]


def symbols(at: int, text: str) -> list[Touch]:
    return [Touch((at + n) * MS, "phone-2", "symbol", name=symbol) for n, symbol in enumerate(text)]


class Notes:
    """Of a rig that did one tap and typed one text, as it should be; to be spoilt."""

    def __init__(self) -> None:
        self.notebook = Notebook()
        self.schedule = Schedule()
        self.touches = [*tap(120), *symbols(130, SECRET)]
        self.finished = True
        self.remains: dict[str, bytes] = {}
        self.notebook.marks = {
            TAP: Mark("place", 7500, 9000),
            NEWER: Mark("place", 8750, 9000),
            TEXT: Mark("text", text=SECRET),
        }
        crc = binascii.crc32(SECRET.encode())
        self.schedule.commands = [
            tap_command(110),
            FirstByte(125 * MS, "phone-2", 2, wire.OP_TEXT_GO, (len(SECRET), crc)),
        ]
        self.say(*self.course(TAP, 100), *self.course(TEXT, 101))
        self.say(told(400, NEWER, "lookup", None, final_round=True))

    @staticmethod
    def course(name: Name, at: int) -> list[Entry]:
        return [
            Sent(at * MS, "plane", name, 10),
            Progressed((at + 2) * MS, name, "accepted"),
            told(at + 50, name, "result", committed(name)),
            told(at + 51, name, "push", committed(name)),
            Acknowledged((at + 51) * MS, name),
            told(at + 200, name, "result", committed(name), final_round=True),
            told(at + 201, name, "lookup", committed(name), final_round=True),
        ]

    def say(self, *entries: Entry) -> None:
        self.notebook.entries = sorted([*self.notebook.entries, *entries], key=lambda entry: entry.at_ns)

    def tell_instead(self, name: Name, receipt: dict[str, Any] | None) -> None:
        """Another receipt wherever the key's was told."""
        self.notebook.entries = [
            replace(entry, receipt=receipt) if isinstance(entry, Told) and entry.name == name else entry
            for entry in self.notebook.entries
        ]

    def allow(self, name: Name, may_wait_ms: int) -> None:
        """How long what was sent of the key might wait."""
        self.notebook.entries = [
            replace(entry, may_wait_ms=may_wait_ms)
            if isinstance(entry, Sent) and entry.name == name
            else entry
            for entry in self.notebook.entries
        ]

    def never_given(self, name: Name) -> None:
        """No byte of it left, and the phone felt nothing."""
        self.schedule.commands = [one for one in self.schedule.commands if one.device != name[0]]
        self.touches = [touch for touch in self.touches if touch.device != name[0]]

    def verdict(self) -> Verdict:
        return judge(self.notebook, self.schedule, self.touches, finished=self.finished, remains=self.remains)


@pytest.fixture
def notes() -> Notes:
    return Notes()


def only(notes: Notes, **expected: int) -> None:
    """These counts and no others."""
    assert notes.verdict().counts == Counts(**expected), notes.verdict().problems


def test_a_rig_that_kept_every_promise_is_given_zeros(notes: Notes) -> None:
    only(notes)
    assert notes.verdict().counts.violations == 0


def test_a_second_touch_is_a_double_touch(notes: Notes) -> None:
    notes.touches += tap(125)
    notes.tell_instead(TAP, unknown(TAP))
    notes.schedule.boards.append(AboutBoard(122 * MS, "phone-1", "stopped"))
    only(notes, double_touches=1, unknown=1)


def test_a_second_command_for_one_key_is_a_double_touch_even_where_the_phone_felt_one(notes: Notes) -> None:
    notes.schedule.commands.append(tap_command(115, cmd_id=9))
    only(notes, double_touches=1)


def test_a_text_that_was_begun_twice_is_a_double_touch(notes: Notes) -> None:
    notes.touches += symbols(150, SECRET[:3])
    assert notes.verdict().counts.double_touches == 1


def test_a_touch_that_nobody_asked_for_is_a_stray(notes: Notes) -> None:
    notes.touches += tap(125, x=20_000)
    only(notes, stray_touches=1)


def test_committed_without_a_touch_is_a_wrong_word(notes: Notes) -> None:
    notes.touches = [touch for touch in notes.touches if touch.kind != "place"]
    only(notes, wrong_words=1)


def test_committed_with_half_of_the_text_typed_is_a_wrong_word(notes: Notes) -> None:
    notes.touches = notes.touches[:-1]
    only(notes, wrong_words=1)


def test_not_executed_with_a_touch_is_a_wrong_word(notes: Notes) -> None:
    notes.tell_instead(TAP, failed(TAP, "not_executed"))
    only(notes, wrong_words=1)


def test_unknown_without_a_person_asked_is_a_wrong_word(notes: Notes) -> None:
    notes.tell_instead(TAP, failed(TAP, "outcome_unknown", reason="outcome_unknown"))
    notes.schedule.boards.append(AboutBoard(115 * MS, "phone-1", "stopped"))
    only(notes, wrong_words=1, unknown=1)


def test_a_receipt_that_is_told_in_two_ways_is_lost(notes: Notes) -> None:
    notes.say(told(250, TAP, "push", committed(TAP) | {"committedAt": "12:01"}))
    only(notes, lost_receipts=1)


def test_after_a_restored_ledger_only_when_it_was_learned_may_be_another(notes: Notes) -> None:
    notes.schedule.ledger_lost_ns.append(240 * MS)
    notes.say(told(250, TAP, "push", committed(TAP) | {"committedAt": "12:01"}))
    only(notes)
    notes.say(told(260, TAP, "push", committed(TAP) | {"action": "swipe"}))
    only(notes, lost_receipts=1)


def test_a_receipt_that_is_pending_after_it_was_final_is_lost(notes: Notes) -> None:
    notes.say(told(250, TAP, "lookup", pending(TAP)))
    only(notes, lost_receipts=1)


def test_an_accepted_key_that_is_not_known_at_the_end_is_lost(notes: Notes) -> None:
    notes.notebook.entries = [
        entry for entry in notes.notebook.entries if entry.name != TAP or isinstance(entry, Sent | Progressed)
    ]
    notes.say(told(500, TAP, "lookup", None, known=False, final_round=True))
    only(notes, lost_receipts=1)


def test_an_accepted_key_may_be_not_known_when_its_ledger_was_replaced(notes: Notes) -> None:
    notes.schedule.ledger_lost_ns.append(200 * MS)
    notes.say(told(500, TAP, "lookup", None, known=False, epoch=2, final_round=True))
    only(notes)


def test_a_key_that_is_pending_at_the_end_is_lost(notes: Notes) -> None:
    notes.notebook.entries = [
        entry for entry in notes.notebook.entries if entry.name != TAP or isinstance(entry, Sent | Progressed)
    ]
    notes.say(told(500, TAP, "lookup", pending(TAP), final_round=True))
    only(notes, lost_receipts=1)


def test_a_final_receipt_that_is_never_pushed_is_lost(notes: Notes) -> None:
    notes.notebook.entries = [
        entry
        for entry in notes.notebook.entries
        if entry.name != TAP
        or not (isinstance(entry, Acknowledged) or (isinstance(entry, Told) and entry.by == "push"))
    ]
    only(notes, lost_receipts=1)


def test_a_known_key_refused_when_it_is_sent_again_is_a_lost_receipt(notes: Notes) -> None:
    refusal = {"code": "lease_mismatch", "message": "", "retryable": False}
    notes.say(told(310, TAP, "result", None, error=refusal, final_round=True))
    only(notes, lost_receipts=1)


@pytest.mark.parametrize("at", [104, 115, 140])
def test_not_found_after_it_was_accepted_or_dispatched_is_wrong(notes: Notes, at: int) -> None:
    notes.say(told(at, TAP, "lookup", None))
    only(notes, wrong_not_found=1)


def test_not_found_and_dispatched_later_without_being_sent_again_is_wrong(notes: Notes) -> None:
    notes.say(told(101, TAP, "lookup", None))
    only(notes, wrong_not_found=1)


def test_not_found_is_right_before_the_key_is_sent(notes: Notes) -> None:
    notes.say(told(99, TAP, "lookup", None))
    only(notes)


def test_not_known_is_right_where_the_ledger_was_replaced_and_not_found_is_not(notes: Notes) -> None:
    notes.schedule.ledger_lost_ns.append(200 * MS)
    notes.say(told(210, TAP, "lookup", None, known=False))
    only(notes)
    notes.say(told(220, TAP, "lookup", None, known=True))
    only(notes, wrong_not_found=1)


def test_unknown_is_inside_its_window_when_the_board_restarted_after_the_first_byte(notes: Notes) -> None:
    notes.tell_instead(TAP, unknown(TAP))
    only(notes, unknown=1, unknown_outside_window=1)
    notes.schedule.boards.append(AboutBoard(109 * MS, "phone-1", "stopped"))
    only(notes, unknown=1, unknown_outside_window=1)
    notes.schedule.boards.append(AboutBoard(111 * MS, "phone-1", "stopped"))
    only(notes, unknown=1)


def test_unknown_is_inside_its_window_when_the_board_broke_it_off_over_the_glass(notes: Notes) -> None:
    notes.tell_instead(TAP, unknown(TAP))
    notes.schedule.boards.append(AboutBoard(112 * MS, "phone-1", "broken off", cmd_id=1, pressing=False))
    only(notes, unknown=1, unknown_outside_window=1)
    notes.schedule.boards.append(AboutBoard(113 * MS, "phone-1", "broken off", cmd_id=1, pressing=True))
    only(notes, unknown=1)


def test_a_board_that_was_away_for_a_moment_is_no_reason_not_to_know(notes: Notes) -> None:
    notes.tell_instead(TAP, unknown(TAP))
    notes.schedule.boards += [
        AboutBoard(111 * MS, "phone-1", "away"),
        AboutBoard(140 * MS, "phone-1", "back"),
    ]
    only(notes, unknown=1, unknown_outside_window=1)


def test_unknown_without_a_first_byte_is_outside_unless_daemon_and_board_were_both_lost(notes: Notes) -> None:
    notes.tell_instead(TAP, unknown(TAP))
    notes.never_given(TAP)
    notes.schedule.boards.append(AboutBoard(120 * MS, "phone-1", "stopped"))
    only(notes, unknown=1, unknown_outside_window=1)
    notes.schedule.deaths_ns.append(119 * MS)
    only(notes, unknown=1, unknown_unsent=1)


def test_of_one_device_only_the_first_in_line_may_be_unknown_without_a_first_byte(notes: Notes) -> None:
    notes.tell_instead(TAP, unknown(TAP))
    notes.never_given(TAP)
    notes.say(*Notes.course(NEWER, 102))
    notes.tell_instead(NEWER, unknown(NEWER))
    notes.schedule.boards.append(AboutBoard(120 * MS, "phone-1", "stopped"))
    notes.schedule.deaths_ns.append(119 * MS)
    assert notes.verdict().counts.unknown_outside_window == 2


def test_a_lower_token_after_a_higher_one_was_accepted_is_a_fencing_violation(notes: Notes) -> None:
    notes.say(Sent(90 * MS, "plane", NEWER, 11), Progressed(105 * MS, NEWER, "accepted"))
    notes.say(told(115, NEWER, "push", failed(NEWER, "canceled")))
    notes.say(told(500, NEWER, "lookup", failed(NEWER, "canceled"), final_round=True))
    assert notes.verdict().counts.fencing_violations == 1


def test_a_higher_token_that_was_accepted_behind_the_first_byte_violates_nothing(notes: Notes) -> None:
    notes.say(Sent(90 * MS, "plane", NEWER, 11), Progressed(111 * MS, NEWER, "accepted"))
    notes.say(told(115, NEWER, "push", failed(NEWER, "canceled")))
    notes.say(told(500, NEWER, "lookup", failed(NEWER, "canceled"), final_round=True))
    assert notes.verdict().counts.fencing_violations == 0


@pytest.mark.parametrize(
    ("code", "violations"),
    [
        ("needs_user_control", 1),
        ("idempotency_conflict", 1),
        ("device_offline", 1),
        ("storage_unavailable", 0),
        ("rate_limited", 0),
    ],
)
def test_a_higher_token_counts_as_seen_when_its_request_is_refused_by_the_device(
    notes: Notes, code: str, violations: int
) -> None:
    notes.say(Sent(90 * MS, "plane", NEWER, 11), refused(105, NEWER, code))
    assert notes.verdict().counts.fencing_violations == violations


def test_a_token_that_was_lost_with_its_ledger_and_came_again_counts_from_then_on(notes: Notes) -> None:
    notes.say(Sent(90 * MS, "plane", NEWER, 11), refused(95, NEWER, "needs_user_control"))
    notes.schedule.ledger_lost_ns.append(100 * MS)
    assert notes.verdict().counts.fencing_violations == 0
    notes.say(Sent(104 * MS, "plane", NEWER, 11), refused(105, NEWER, "needs_user_control"))
    assert notes.verdict().counts.fencing_violations == 1


@pytest.mark.parametrize("why", ["held", "parked", "estopped"])
def test_a_command_given_while_nobody_may_act_is_a_violation(notes: Notes, why: Any) -> None:
    notes.notebook.barred.append(Barred("phone-1", 105 * MS, 115 * MS, why))
    only(notes, held_violations=1)


def test_a_command_given_before_or_behind_a_hold_violates_nothing(notes: Notes) -> None:
    notes.notebook.barred += [
        Barred("phone-1", 111 * MS, 150 * MS, "held"),
        Barred("phone-1", 50 * MS, 109 * MS, "held"),
    ]
    only(notes)


def test_typed_text_in_what_is_left_behind_is_a_leak(notes: Notes) -> None:
    notes.remains = {"ledger.sqlite3": b"...", "the log": b"typing a4711815A now"}
    only(notes, text_leaks=1)


def test_a_daemon_that_ends_by_itself_and_a_history_without_end_are_seen(notes: Notes) -> None:
    notes.schedule.crashes.append("crashed: KeyError('x')")
    notes.finished = False
    only(notes, crashes=1, stuck=1)


def test_an_emergency_stop_is_over_when_its_board_has_restarted(notes: Notes) -> None:
    notes.notebook.barred.append(Barred("phone-1", 105 * MS, 115 * MS, "estopped"))
    notes.schedule.boards.append(AboutBoard(107 * MS, "phone-1", "stopped"))
    only(notes)


def test_a_command_that_is_given_after_its_dispatch_or_its_lease_ran_out_is_late(notes: Notes) -> None:
    notes.allow(TAP, may_wait_ms=10)
    only(notes)
    notes.allow(TAP, may_wait_ms=9)
    only(notes, late_violations=1)
    notes.say(Sent(105 * MS, "plane", TAP, 10, may_wait_ms=9))
    only(notes)


def test_what_was_taken_back_and_given_to_the_board_is_a_violation_of_the_cancel(notes: Notes) -> None:
    notes.tell_instead(TAP, failed(TAP, "canceled"))
    only(notes, wrong_words=1, cancel_violations=1)


def test_what_waited_behind_another_could_be_taken_back(notes: Notes) -> None:
    other = ("phone-1", "other")
    notes.notebook.marks[other] = Mark("place", 20_000, 9000)
    notes.say(*Notes.course(other, 90), Progressed(107 * MS, other, "hover"))
    notes.schedule.commands.append(tap_command(92, x=20_000, cmd_id=7))
    notes.touches += tap(95, x=20_000)
    notes.say(told(108, TAP, "result", pending(TAP), to="cancel", asked_ns=106 * MS))
    only(notes)
    notes.say(Progressed(109 * MS, other, "hover"))
    only(notes, cancel_violations=1)


def test_another_action_under_a_known_key_has_to_be_refused_as_such(notes: Notes) -> None:
    def answer(at: int, receipt: dict[str, Any] | None, code: str = "") -> None:
        error = {"code": code, "message": "", "retryable": code == "rate_limited"} if code else None
        notes.say(
            Sent((at - 1) * MS, "plane", TAP, 10, action="another"),
            told(at, TAP, "result", receipt, error=error, to="other", asked_ns=(at - 1) * MS),
        )

    answer(250, None, "idempotency_conflict")
    answer(260, None, "rate_limited")
    only(notes)
    answer(270, committed(TAP))
    only(notes, conflict_violations=1)
    answer(280, None, "lease_mismatch")
    only(notes, conflict_violations=2)


def test_a_keys_own_action_is_never_refused_as_another(notes: Notes) -> None:
    error = {"code": "idempotency_conflict", "message": "", "retryable": False}
    notes.say(told(250, TAP, "result", None, error=error, to="dispatch"))
    only(notes, conflict_violations=1)


def test_each_character_of_a_text_and_no_other_belongs_to_it(notes: Notes) -> None:
    notes.touches = [*tap(120), *symbols(130, SECRET.replace("7", "8"))]
    assert notes.verdict().counts.stray_touches
    assert notes.verdict().counts.wrong_words == 1
    notes.touches = [*tap(120), *symbols(130, SECRET.replace("11", "1"))]
    assert notes.verdict().counts.wrong_words == 1


def test_a_contact_that_ends_elsewhere_was_not_the_whole_action(notes: Notes) -> None:
    notes.notebook.marks[TAP] = Mark("place", 7500, 9000, to=(20_000, 9000))
    only(notes, wrong_words=1)
    notes.touches[1] = replace(notes.touches[1], x=20_000)
    only(notes)


def test_a_board_that_restarted_after_the_receipt_had_come_about_is_no_excuse(notes: Notes) -> None:
    notes.schedule.boots["boot-1"] = -1000 * MS
    notes.schedule.boards.append(AboutBoard(130 * MS, "phone-1", "stopped"))
    notes.tell_instead(TAP, unknown(TAP) | {"finishedNs": 1135 * MS})
    only(notes, unknown=1)
    notes.tell_instead(TAP, unknown(TAP) | {"finishedNs": 1125 * MS})
    only(notes, unknown=1, unknown_outside_window=1)


def test_a_ledger_that_was_lost_before_a_key_was_accepted_excuses_nothing(notes: Notes) -> None:
    notes.schedule.ledger_lost_ns.append(50 * MS)
    notes.say(told(500, TAP, "lookup", None, known=False, epoch=2, final_round=True))
    only(notes, lost_receipts=1)


@pytest.mark.parametrize(
    ("copied", "counts"), [(112, {"unknown_unsent": 1}), (90, {"unknown_outside_window": 1})]
)
def test_only_a_copy_in_which_the_key_was_pending_excuses_who_was_not_first_in_line(
    notes: Notes, copied: int, counts: dict[str, int]
) -> None:
    notes.tell_instead(TAP, unknown(TAP))
    notes.never_given(TAP)
    notes.schedule.boards.append(AboutBoard(120 * MS, "phone-1", "stopped"))
    notes.schedule.ledger_lost_ns.append(119 * MS)
    notes.schedule.put_back.append((119 * MS, copied * MS))
    only(notes, unknown=1, **counts)


def resolved(name: Name, outcome: str = "committed") -> dict[str, Any]:
    return unknown(name) | {"requiresManualReview": False, "resolution": {"outcome": outcome}}


@pytest.fixture
def reviewed(notes: Notes) -> Notes:
    """Of a tap that nobody knew of, until a person said at 260 ms what had become of it."""
    notes.tell_instead(TAP, unknown(TAP))
    notes.schedule.boards.append(AboutBoard(115 * MS, "phone-1", "stopped"))
    notes.notebook.entries = [
        one for one in notes.notebook.entries if one.at_ns < 300 * MS or one.name != TAP
    ]
    notes.say(
        Resolved(260 * MS, TAP, "committed"),
        told(261, TAP, "push", resolved(TAP)),
        told(300, TAP, "result", resolved(TAP), to="dispatch", asked_ns=299 * MS, final_round=True),
        told(301, TAP, "lookup", resolved(TAP), to="lookup", asked_ns=300 * MS, final_round=True),
    )
    return notes


def test_a_persons_word_that_is_kept_told_and_pushed_violates_nothing(reviewed: Notes) -> None:
    only(reviewed, unknown=1)


def test_a_persons_word_that_is_not_pushed_or_not_told_any_more_or_another_is_lost(reviewed: Notes) -> None:
    entries = reviewed.notebook.entries
    reviewed.notebook.entries = [one for one in entries if one.at_ns != 261 * MS]
    only(reviewed, unknown=1, lost_receipts=1)
    reviewed.notebook.entries = entries
    reviewed.say(told(310, TAP, "lookup", unknown(TAP), to="lookup", asked_ns=309 * MS))
    only(reviewed, unknown=1, lost_receipts=1)
    reviewed.notebook.entries = entries
    reviewed.say(told(310, TAP, "push", resolved(TAP, "not_executed")))
    assert reviewed.verdict().counts.lost_receipts


def test_what_retention_let_go_is_not_known_and_refused_and_nothing_else(notes: Notes) -> None:
    def again(at: int, receipt: dict[str, Any] | None, code: str = "") -> None:
        error = {"code": code, "message": "", "retryable": False} if code else None
        notes.say(told(at, TAP, "result", receipt, error=error, to="dispatch", asked_ns=(at - 1) * MS))

    notes.notebook.entries = [
        one for one in notes.notebook.entries if one.at_ns < 300 * MS or one.name != TAP
    ]
    last = told(300, TAP, "lookup", None, known=False, to="lookup", asked_ns=299 * MS, final_round=True)
    notes.say(last)
    only(notes, lost_receipts=1)
    notes.schedule.pruned_ns.append(200 * MS)
    again(310, None, "idempotency_conflict")
    only(notes)
    again(320, committed(TAP))
    only(notes, lost_receipts=1)
    again(330, None, "lease_mismatch")
    only(notes, lost_receipts=2)
    notes.say(told(340, TAP, "lookup", None, known=True, to="lookup", asked_ns=339 * MS))
    assert notes.verdict().counts.wrong_not_found


def test_what_a_person_is_still_asked_to_look_at_is_not_let_go(notes: Notes) -> None:
    notes.tell_instead(TAP, unknown(TAP))
    notes.schedule.boards.append(AboutBoard(115 * MS, "phone-1", "stopped"))
    notes.schedule.pruned_ns.append(250 * MS)
    notes.say(told(400, TAP, "lookup", None, known=False, to="lookup", asked_ns=399 * MS, final_round=True))
    only(notes, unknown=1, lost_receipts=1)
