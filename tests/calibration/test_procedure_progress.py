import pytest

from calibration.procedure import STEPS, Step
from calibration.procedure.progress import Meter, MeteredRig, Work

TWO = {"walk": Step("Walk", "Mind the step."), "talk": Step("Talk", "Mind your words.")}


def test_progress_names_each_step_with_its_caution_in_order(calibrated):
    told = calibrated[2]
    numbers = [progress.number for progress in told]
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(1, told[0].steps + 1))
    assert {progress.step.title for progress in told} == {step.title for step in STEPS.values()}
    assert all(progress.step.caution for progress in told)
    assert told[-1].touches == len(calibrated[1].touches)


def test_the_fraction_done_never_falls_and_ends_at_one(calibrated):
    fractions = [progress.fraction for progress in calibrated[2]]
    assert fractions == sorted(fractions)
    assert fractions[0] == 0.0
    assert fractions[-1] == 1.0


def test_the_expected_number_of_touches_is_right_to_a_fifth_half_way(calibrated):
    told, looks_and_touches = calibrated[2], 2 * len(calibrated[1].touches) + 11
    half_way = next(progress for progress in told if progress.touches >= 40)
    assert half_way.fraction == pytest.approx((2 * half_way.touches + 8) / looks_and_touches, abs=0.2)


class ToyRig:
    """A rig whose verbs take a known time on a clock of its own."""

    hand = None

    def __init__(self):
        self.now = 100.0

    def look(self):
        self.now += 0.5

    def touch(self, touch):
        self.now += 2.0

    def ask(self, request):
        self.now += 1000.0


def test_the_remaining_time_is_reckoned_from_this_runs_own_touches_and_looks_and_not_from_a_persons_time():
    rig, told = ToyRig(), []
    meter = Meter(TWO, {"walk": Work(2, 2), "talk": Work(3, 4)}, lambda: rig.now, told.append)
    metered = MeteredRig(rig, meter)
    meter.begin("walk")
    assert told[-1].remaining_s is None
    metered.touch(None)
    metered.look()
    metered.ask(None)
    meter.tell("one")
    assert told[-1].remaining_s == pytest.approx((1 + 3) * 2.0 + (1 + 4) * 0.5)
    assert told[-1].fraction == pytest.approx(2 / 11)
    assert told[-1].detail == "one"
    meter.begin("talk")
    assert told[-1].remaining_s == pytest.approx(3 * 2.0 + 4 * 0.5)
    assert (told[-1].number, told[-1].steps, told[-1].touches) == (2, 2, 1)


def test_a_step_that_needs_more_than_expected_does_not_take_the_fraction_back():
    rig, told = ToyRig(), []
    meter = Meter(TWO, {"walk": Work(1, 1), "talk": Work(1, 1)}, lambda: rig.now, told.append)
    metered = MeteredRig(rig, meter)
    meter.begin("walk")
    for _ in range(3):
        metered.touch(None)
        metered.look()
        meter.tell("again")
    meter.begin("walk")
    fractions = [progress.fraction for progress in told]
    assert fractions == sorted(fractions)
    assert fractions[-1] < 1.0
