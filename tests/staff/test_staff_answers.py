"""Who answers what a procedure asks: a person's words at the terminal, or the limits alone."""

import io
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from calibration.acceptance import Acceptance
from calibration.errors import CalibrationMissing, Declined, Invalidated
from calibration.fit_hid import DigitizerModel, HidQuality
from calibration.result import DeviceCalibration, DigitizerPart
from calibration.rig import Judge, PointRefused, RedoPoints, ShowTarget
from calibration.screen import ScreenGeometry
from calibration.store import CalibrationStore
from edge_daemon.bench.exact import unasked_camera
from edge_daemon.staff.askers import unattended
from edge_daemon.staff.conditions import conditions_of, screen_of
from edge_daemon.staff.console import StepBar, Terminal, by_files, left_text, numbers_in
from edge_daemon.staff.plan import plan_for
from edge_daemon.upstream import (
    HandEnvelope,
    HandPoint,
    RigCamera,
    RigFacts,
    RigHand,
    RigHid,
    RigMoment,
    ScreenSize,
)

SCREEN = ScreenGeometry(width_px=1080, height_px=2340, width_mm=68.0, height_mm=147.3)
GOOD = [((float(x), 10.0), (float(x), 10.1)) for x in range(5, 65, 5)]
BAD = [((float(x), 10.0), (float(x), 11.0)) for x in range(5, 65, 5)]
MISSED = PointRefused("grid", 3, "no dot at (1.0, 2.0) mm of the screen")


def judge(pairs) -> Judge:
    verdict = Acceptance.of(SCREEN, pairs, p95_limit_mm=0.3, max_limit_mm=0.5)
    return Judge(acceptance=verdict, places_mm=((1.0, 1.0),) * 24)


async def nothing(request: ShowTarget) -> None:
    raise AssertionError("no page is to be shown")


@pytest.fixture
def typed(monkeypatch):
    """A terminal at which somebody types these lines, and then nobody answers any more."""

    def at(lines: str, *, yes: bool = False) -> tuple[Terminal, io.StringIO]:
        monkeypatch.setattr("sys.stdin", io.StringIO(lines))
        screen = io.StringIO()
        console = Console(file=screen, width=200)
        return Terminal(console, StepBar(console), nothing, yes=yes), screen

    return at


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("3,7", (3, 7)),
        (" 24 ", (24,)),
        ("3, 7,3", (3, 7)),
        ("0", None),
        ("25", None),
        ("3;7", None),
        ("3,", None),
        ("", None),
        ("-1", None),
        ("³", None),
        ("99999", None),
    ],
)
def test_numbers_of_places_are_read_whole_or_not_at_all(text, numbers) -> None:
    assert numbers_in(text, 24) == numbers


async def test_a_verdict_is_accepted_rejected_or_places_are_touched_again(typed) -> None:
    assert await typed("accept\n")[0].answer(judge(GOOD)) == "accept"
    assert await typed("\n")[0].answer(judge(GOOD)) == "accept", "Enter takes what the limits say"
    assert await typed("reject\n")[0].answer(judge(GOOD)) == "reject"
    terminal, screen = typed("what?\n99\n3,7\n")
    assert await terminal.answer(judge(GOOD)) == RedoPoints((3, 7))
    assert "neither a word nor numbers" in screen.getvalue()
    assert "p95" in screen.getvalue()


async def test_nobody_can_accept_what_the_limits_refuse(typed) -> None:
    terminal, screen = typed("accept\nreject\n")
    assert await terminal.answer(judge(BAD)) == "reject"
    assert "cannot be accepted" in screen.getvalue()
    assert await typed("\n")[0].answer(judge(BAD)) == "reject"
    assert await typed("", yes=True)[0].answer(judge(BAD)) == "reject"


async def test_a_missed_place_is_repeated_or_everything_stops(typed) -> None:
    assert await typed("redo\n")[0].answer(MISSED) == "redo"
    assert await typed("", yes=True)[0].answer(MISSED) == "redo"
    with pytest.raises(Declined, match="person at the terminal"):
        await typed("stop\n")[0].answer(MISSED)


async def test_where_nobody_answers_it_ends_and_says_so(typed) -> None:
    for request in (MISSED, judge(GOOD)):
        with pytest.raises(Declined, match="--yes"):
            await typed("")[0].answer(request)


async def test_the_limits_alone_judge_what_nobody_attends() -> None:
    answer = unattended(nothing)
    assert await answer(judge(GOOD)) == "accept"
    assert await answer(judge(BAD)) == "reject"
    assert await answer(MISSED) == "redo"


async def test_pictures_to_be_opened_by_hand_are_written_and_named(tmp_path: Path, monkeypatch) -> None:
    screen = io.StringIO()
    show = by_files(Console(file=screen), SCREEN, tmp_path, wait=True)
    monkeypatch.setattr("sys.stdin", io.StringIO("\nq\n"))
    await show(ShowTarget("charuco"))
    assert str(tmp_path / "charuco_portrait.png") in screen.getvalue()
    assert (tmp_path / "charuco_portrait.png").is_file()
    with pytest.raises(Declined):
        await show(ShowTarget("dots", "landscape_left"))


def test_the_time_that_is_left_is_said_in_minutes_or_not_at_all() -> None:
    assert left_text(None) == "time left: not known yet"
    assert left_text(95.4) == "1:35 left"
    assert left_text(0.2) == "0:00 left"


def facts(root: Path, *, hand: bool = True, touch=None) -> RigFacts:
    return RigFacts(
        device_id="phone-1",
        screen=ScreenSize(width_px=1080, height_px=2340, width_mm=68.0, height_mm=147.3),
        orientation="portrait",
        camera=RigCamera(name="cam-1", source="http_mjpeg", width=None, height=None),
        calibration_folder=str(root),
        now=RigMoment(wall_utc="2026-03-01T09:30:00Z", clock_synced=False, boot_id="b", monotonic_ns=1),
        hand=RigHand(
            uid="a1",
            firmware="1.4",
            envelope=HandEnvelope(x_min_mm=0, x_max_mm=1, y_min_mm=0, y_max_mm=1, z_min_mm=0, z_max_mm=1),
            park=HandPoint(x_mm=0, y_mm=0, z_mm=1),
            search_z_mm=1,
            approach_mm=0.6,
        )
        if hand
        else None,
        hid=RigHid(uid="b2", firmware="1.0", boot_id=1, profile="ios", touch=touch),
    )


@pytest.mark.parametrize(
    ("hand", "touch", "name"),
    [
        (True, "digitizer", "calibrate"),
        (False, "digitizer", "calibrate_digitizer"),
        (False, "pointer", "calibrate_pointer"),
        (False, None, "_camera_alone"),
    ],
)
def test_what_touches_the_phone_decides_the_procedure(tmp_path: Path, hand, touch, name) -> None:
    rig = facts(tmp_path, hand=hand, touch=touch)
    store = CalibrationStore(tmp_path, "phone-1")
    plan = plan_for(rig, "full", store, conditions_of(rig), attended=False)
    procedure = getattr(plan.procedure, "func", plan.procedure)
    assert procedure.__name__ == name
    if touch == "digitizer" and not hand:
        assert plan.procedure.keywords["compare_with"] is None, "nobody is there to turn the phone"


def test_a_camera_alone_is_not_measured_where_there_is_nothing_to_keep(tmp_path: Path) -> None:
    rig = facts(tmp_path)
    with pytest.raises(CalibrationMissing):
        plan_for(rig, "camera", CalibrationStore(tmp_path, "phone-1"), conditions_of(rig), attended=True)


def test_a_camera_alone_is_not_measured_beside_what_is_no_longer_true(tmp_path: Path) -> None:
    digitizer = DigitizerPart(
        model=DigitizerModel(x=(0.0, 1.0, 0.0), y=(0.0, 0.0, 1.0)),
        quality=HidQuality(leave_one_out_rms_mm=0.02, places=12, outliers=()),
        touches=(),
    )
    made = DeviceCalibration(
        screen=SCREEN,
        camera=unasked_camera((1280, 720)),
        digitizer=digitizer,
        acceptance=judge(GOOD).acceptance,
    )
    rig = msgspec.structs.replace(
        facts(tmp_path, hand=False, touch="digitizer"),
        camera=RigCamera(name="cam-1", source="http_mjpeg", width=1280, height=720),
    )
    now = conditions_of(rig)
    store = CalibrationStore(tmp_path, "phone-1")
    stored = store.save(made, now, origin="calibrated")
    plan = plan_for(rig, "camera", store, now, attended=True)
    assert plan.previous == stored, "what is kept comes from there"
    store.invalidate("hid_profile_changed", now.now, parts=["digitizer"])
    with pytest.raises(Invalidated):
        plan_for(rig, "camera", store, now, attended=True)


def test_what_was_never_seen_is_not_made_up_for_the_store(tmp_path: Path) -> None:
    now = conditions_of(facts(tmp_path, hand=False))
    assert now.camera is None
    assert now.hand is None
    assert now.hid is not None
    assert screen_of(facts(tmp_path)) == SCREEN
