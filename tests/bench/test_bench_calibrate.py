"""The calibration suite: the solver cannot reach the truth, the verdict is the phone's, and defects are caught."""

import socket
import subprocess
import sys
from dataclasses import replace

import pytest
import trio

from edge_daemon.bench.calibrate.channel import Channel, ChannelClosed
from edge_daemon.bench.calibrate.harm import harmful_seeds
from edge_daemon.bench.calibrate.judge import Landing
from edge_daemon.bench.calibrate.mutations import MUTATIONS, mutate
from edge_daemon.bench.calibrate.run import Outcome, RunFailed, calibrate_seed
from edge_daemon.bench.calibrate.suite import CalibrateReport
from edge_daemon.bench.calibrate.world import World

SEED = 31


def calibrate(seed: int, mutation: str = "", taps: int = 0) -> Outcome:
    return trio.run(calibrate_seed, seed, mutation, taps)


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return calibrate(SEED, taps=60)


def test_a_sound_rig_is_accepted_and_later_taps_are_true_by_the_phones_own_log(outcome):
    assert outcome.accepted, outcome.because
    assert outcome.landing.taps == 60
    assert outcome.landing.missing == outcome.landing.extra == 0
    assert 0.0 < outcome.landing.p50_mm < outcome.landing.p95_mm <= 0.15
    assert outcome.landing.max_mm <= 0.25
    assert outcome.camera_max_mm <= 0.10
    assert outcome.rig_time_s <= 180.0


def test_the_solver_process_never_imports_the_simulated_rig():
    listing = subprocess.run(
        [sys.executable, "-c", "import sys, edge_daemon.bench.calibrate.solver; print(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert "calibration.procedure" in listing.stdout
    assert [name for name in listing.stdout.split() if name.startswith("edge_daemon.bench.twin")] == []


def test_a_solver_with_the_truth_in_reach_fails_the_run(monkeypatch):
    monkeypatch.setattr("edge_daemon.bench.calibrate.run.FORBIDDEN", "calibration.procedure")
    with pytest.raises(RunFailed, match="in reach"):
        calibrate(SEED)


def test_the_world_answers_with_pictures_and_refusals_and_nothing_else():
    world = World(SEED)
    facts = world.answer({"verb": "facts"})
    assert set(facts) == {"limits", "hover_z_mm", "approach_mm"}
    assert world.answer({"verb": "show", "target": "dots", "turn": "portrait"}) == {}
    touch = {"verb": "touch", "x_mm": 100.0, "y_mm": 65.0, "approach_x": "low", "approach_y": "low"}
    assert world.answer({**touch, "press_z_mm": -1.5}) == {}
    assert set(world.answer({**touch, "x_mm": 900.0, "press_z_mm": 1.0})) == {"refused"}
    look = world.answer({"verb": "look"})
    assert set(look) == {"jpeg"}
    assert look["jpeg"][:2] == b"\xff\xd8"
    with pytest.raises(ValueError, match="no such verb"):
        world.answer({"verb": "truth"})


def test_the_facts_are_the_same_for_every_seed():
    assert World(1).answer({"verb": "facts"}) == World(2).answer({"verb": "facts"})


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_acceptance_refuses_a_calibration_broken_by(mutation):
    (seed,) = harmful_seeds(mutation, SEED, 1)
    broken = calibrate(seed, mutation)
    assert not broken.accepted
    assert broken.refusal in {"AcceptanceFailed", "MarksOff", "ResidualRefused", "BacklashTooLarge"}, (
        broken.because
    )


def test_an_unknown_mutation_is_not_taken_for_none():
    with pytest.raises(ValueError, match="no mutation"):
        mutate("no_distortion")


def test_a_run_whose_process_dies_is_no_verdict(monkeypatch):
    monkeypatch.setattr("edge_daemon.bench.calibrate.run.RIG_MUTATIONS", ())
    with pytest.raises(RunFailed, match="no mutation is called 'nonsense'"):
        calibrate(SEED, "nonsense")


def test_a_channel_says_when_the_other_end_is_gone():
    here, there = socket.socketpair()
    there.close()
    with here, pytest.raises(ChannelClosed):
        Channel(here).receive()


# -- the verdict ---------------------------------------------------------------------------------------------


def report_of(outcome: Outcome, *mutants: Outcome) -> CalibrateReport:
    return CalibrateReport(SEED, [outcome], list(mutants))


def landing(outcome: Outcome, **changed: float) -> Outcome:
    kept = {name: getattr(outcome.landing, name) for name in Landing.__struct_fields__}
    return replace(outcome, landing=Landing(**{**kept, **changed}))


def test_a_true_calibration_holds_and_its_figures_are_the_worst_seeds(outcome):
    report = CalibrateReport(SEED, [outcome, replace(landing(outcome, max_mm=0.2), seed=SEED + 1)])
    figures = report.as_json()
    assert report.holds, report.problems
    assert figures["verdict"] == "pass"
    assert figures["tap_max_mm"] == 0.2
    assert figures["worst_seed"] == SEED + 1


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"max_mm": 0.26}, "worst later tap 0.260 mm"),
        ({"p95_mm": 0.16}, "p95 of later taps 0.160 mm"),
        ({"missing": 1}, "1 taps left no touch"),
        ({"extra": 2}, "2 left more than one"),
    ],
)
def test_an_accepted_rig_that_is_not_true_fails_the_suite(outcome, changed, words):
    report = report_of(landing(outcome, **changed))
    assert not report.holds
    assert words in report.problems[0]


def test_a_false_camera_or_a_long_calibration_fails_the_suite(outcome):
    assert "camera to screen 0.110 mm" in report_of(replace(outcome, camera_max_mm=0.11)).problems[0]
    assert "time at the rig 181.000 s" in report_of(replace(outcome, rig_time_s=181.0)).problems[0]


def test_an_accepted_mutant_fails_the_suite(outcome):
    report = report_of(outcome, replace(outcome, mutation="affine_forced"))
    assert "broken by affine_forced" in report.problems[0]
    assert report.as_json()["mutations"]["affine_forced"] == {"caught": 0, "runs": 1, "refused_by": []}


def test_too_many_refusals_and_no_acceptance_fail_the_suite(outcome):
    refused = replace(outcome, refusal="AcceptanceFailed", because="p95 0.31 mm")
    assert CalibrateReport(SEED, [outcome, refused]).holds
    assert "2 of 3 sound rigs were refused" in CalibrateReport(SEED, [outcome, refused, refused]).problems[0]
    assert "nothing was shown" in report_of(refused).problems[-1]
