"""The verdict of `bench crash`: a pass only if every zero is zero, every mutation caught and nothing is missing."""

import copy
import io
from dataclasses import replace

import pytest
from rich.console import Console

from edge_daemon.bench.crash.oracle import Counts
from edge_daemon.bench.crash.points import POINTS
from edge_daemon.bench.crash.report import CrashReport, Expected, Tried, problems_of
from edge_daemon.bench.crash.show import Bars, markdown, show_report
from edge_daemon.bench.crash.tasks import (
    PROMISED_ZERO,
    RANDOM,
    Killed,
    Played,
    Tally,
    Violation,
    figures_of,
)

FAULTS = tuple(f"fault_{number}" for number in range(20))
MUTATIONS = ("no_fsync", "blind_resend")


def played(name: str, **counts: int) -> Played:
    return Played({name: Tally(10, 10, 40, figures_of(Counts(**counts)))})


def good() -> CrashReport:
    """A whole run in which every promise was kept."""
    report = CrashReport(1, Expected(FAULTS, seeds=50, mutations=MUTATIONS, kills=6, cost=True))
    report.points = dict.fromkeys(POINTS, 3)
    for name in FAULTS:
        report.played.add_all(played(name, unknown=2))
    report.played.add_all(Played({RANDOM: Tally(50, 50, 400)}))
    for name in MUTATIONS:
        report.mutations[name] = Tried(played("a", double_touches=1), played("a"))
    report.killed = Killed(kills=6, moments={"at work": 6}, keys=30, touches=29, wall_s=12.0)
    report.cost = {"ratio": 1.2}
    return report


def test_a_whole_run_without_a_violation_passes() -> None:
    report = good()
    assert problems_of(report) == []
    assert report.verdict == "pass"
    figures = report.as_json()
    assert figures["faults"] == 20
    assert figures["cut_points"] == 15
    assert figures["histories"] == 250
    assert figures["unknown"] == 40
    assert figures["mutations_caught"] == figures["mutations"] == 2
    assert [figures[name] for name in PROMISED_ZERO] == [0] * len(PROMISED_ZERO)


@pytest.mark.parametrize("figure", PROMISED_ZERO)
@pytest.mark.parametrize("where", ["fault", "random", "kills"])
def test_each_count_that_is_not_zero_fails_the_verdict(figure: str, where: str) -> None:
    report = good()
    if where == "kills":
        report.killed.figures[figure] = 1
    else:
        tally = report.played.tallies[RANDOM if where == "random" else FAULTS[7]]
        tally.figures[figure] = 1
    assert report.verdict == "fail"
    assert any(figure.replace("_", " ") in problem for problem in problems_of(report))
    assert report.as_json()[figure] == 1


def test_a_violation_is_told_with_the_command_that_repeats_it() -> None:
    report = good()
    report.played.violations.append(Violation("1:fault_3:disk-sync:4:after", ("key-1 was touched twice",)))
    (problem,) = problems_of(report)
    assert "key-1 was touched twice" in problem
    assert problem.endswith("edge-daemon bench crash --replay 1:fault_3:disk-sync:4:after")


def test_a_fault_that_breaks_every_history_does_not_hide_another() -> None:
    report = good()
    report.played.violations += [Violation(f"1:fault_3:disk-sync:{n}", ("stuck",)) for n in range(1, 100)]
    report.played.violations.append(Violation("1:fault_9:disk-sync:4", ("touched twice",)))
    problems = problems_of(report)
    assert len(problems) == 4
    assert "touched twice" in problems[-1]


def test_a_mutation_that_is_not_caught_fails_the_verdict() -> None:
    report = good()
    report.mutations["no_fsync"] = Tried(played("a", unknown=3), played("a"))
    assert report.verdict == "fail"
    assert report.as_json()["mutations_caught"] == 1


def test_a_mutation_in_histories_that_are_not_clean_without_it_shows_nothing() -> None:
    report = good()
    report.mutations["no_fsync"] = Tried(played("a", lost_receipts=3), played("a", lost_receipts=1))
    assert report.verdict == "fail"


def test_a_mutation_whose_histories_only_never_end_is_not_caught() -> None:
    report = good()
    report.mutations["no_fsync"] = Tried(played("a", stuck=3), played("a"))
    assert report.verdict == "fail"


def test_a_mutation_that_is_only_told_by_a_consequence_is_not_caught() -> None:
    report = good()
    report.mutations["no_fsync"] = Tried(
        played("a", lost_receipts=3), played("a"), told_by="fencing_violations"
    )
    assert report.verdict == "fail"
    report.mutations["no_fsync"].told_by = "lost_receipts"
    assert report.verdict == "pass"


def test_a_fault_that_was_never_seen_to_do_what_it_does_fails_the_verdict_of_a_run_of_all_points() -> None:
    report = good()
    report.expected = replace(report.expected, effects={FAULTS[3]: ("expired", "leased")})
    report.played.tallies[FAULTS[3]].signs = {"expired": 4, "leased": 1}
    assert report.verdict == "pass"
    del report.played.tallies[FAULTS[3]].signs["leased"]
    (problem,) = problems_of(report)
    assert "nobody saw 'leased'" in problem


def test_what_a_fault_did_is_told_by_how_many_histories_showed_it() -> None:
    report = good()
    report.played.tallies[FAULTS[3]].signs = {"expired": 4, "refused leased": 7}
    figures = report.as_json()
    assert list(figures["by_fault"][FAULTS[3]]["seen_in_histories"].items()) == [
        ("refused leased", 7),
        ("expired", 4),
    ]
    assert "- fault_3 showed in 10 histories: refused leased 7, expired 4" in markdown(figures)


def test_a_mutation_that_was_not_tried_fails_the_verdict() -> None:
    report = good()
    del report.mutations["blind_resend"]
    assert report.verdict == "fail"


MISSING = {
    "a fault": lambda report: report.played.tallies.pop(FAULTS[3]),
    "a fault that never struck": lambda report: setattr(report.played.tallies[FAULTS[3]], "struck", 0),
    "some points of a fault": lambda report: setattr(report.played.tallies[FAULTS[3]], "struck", 9),
    "random histories": lambda report: setattr(report.played.tallies[RANDOM], "histories", 49),
    "kills": lambda report: setattr(report.killed, "kills", 5),
    "a touch in the kills": lambda report: setattr(report.killed, "touches", 0),
    "the cost": lambda report: setattr(report, "cost", None),
    "a kind of point": lambda report: report.points.update({"disk sync": 0}),
    "a task": lambda report: report.lost.append("a worker ended"),
    "a history": lambda report: report.played.broken.append("7: ValueError: x"),
}


@pytest.mark.parametrize("what", MISSING)
def test_what_was_left_unmeasured_fails_the_verdict(what: str) -> None:
    report = good()
    MISSING[what](report)
    assert report.verdict == "fail"
    assert len(problems_of(report)) == 1


def test_fewer_than_twenty_faults_fail_the_verdict() -> None:
    report = good()
    report.expected = Expected(FAULTS[:19], seeds=50, mutations=MUTATIONS, kills=6, cost=True)
    assert report.verdict == "fail"


def test_a_commit_that_costs_too_much_fails_the_verdict() -> None:
    report = good()
    report.cost = {"ratio": 1.51}
    assert report.verdict == "fail"


def test_a_part_without_a_problem_is_no_pass() -> None:
    report = good()
    report.expected = Expected(FAULTS[:2], 0, (), 0, cost=False, whole=False)
    assert report.verdict == "partial"
    report.killed.figures["double_touches"] = 1
    assert report.verdict == "fail"


def test_the_markdown_has_a_row_for_each_fault_and_the_other_parts() -> None:
    report = good()
    report.played.tallies[FAULTS[2]].figures.update(double_touches=5, held_violations=7)
    lines = markdown(copy.deepcopy(report.as_json())).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) == 2 + len(FAULTS) + 2
    assert "| fault 2 | 10 | 10 | 40 | 5 | 0 | 0 | 7 | 2 |" in rows
    assert all(row.count("|") == 10 for row in rows)
    assert any("mutation no_fsync: double touches 1 in 10 histories" in line for line in lines)


def test_where_no_bar_can_move_each_tenth_is_a_line() -> None:
    said = io.StringIO()
    with Bars(Console(file=said)) as bars:
        bars.begins("faults at points", 40)
        for _ in range(20):
            bars.advances("faults at points", 2)
    lines = said.getvalue().splitlines()
    assert len(lines) == 10
    assert lines[-1] == "· faults at points: 40 of 40"


def test_the_table_fits_a_narrow_terminal_and_says_every_problem() -> None:
    report = good()
    report.played.tallies[FAULTS[2]].figures.update(double_touches=5)
    report.lost.append("a worker [ended]")
    said = io.StringIO()
    show_report(Console(file=said, width=80), report)
    assert "…" not in said.getvalue()
    assert "double touches: 5, promised is none" in said.getvalue()
    assert "a worker [ended]" in said.getvalue()
    assert "did not hold" in said.getvalue()
