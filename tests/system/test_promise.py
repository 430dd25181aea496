"""The main job against the simulated phone's own log: at most one touch per key, no receipt lost."""

import math
from collections.abc import Awaitable, Callable

import pytest
import trio

from edge_daemon.bench.plane import Answer, Plane, PlaneDisconnected, open_plane
from edge_daemon.bench.rigfile import DEVICE, RigFiles
from edge_daemon.bench.stage import SCREEN_MM, Stage, open_stage, staff_of, wait_online

TAP = {"type": "tap", "x": 400.0, "y": 620.0}


def distance_mm(stage: Stage, x: float, y: float) -> float:
    touch = stage.rig.phone.touches[-1]
    return math.hypot(touch.x_mm - x / 1000 * SCREEN_MM[0], touch.y_mm - y / 1000 * SCREEN_MM[1])


async def test_a_tap_touches_once_where_it_was_aimed_and_its_receipt_comes_back(
    calibrated: Stage, plane: Plane
) -> None:
    before = len(calibrated.rig.phone.touches)
    answer = await plane.dispatch(DEVICE, TAP)
    assert answer.committed
    assert answer.stages == ["accepted", "dispatched", "contact", "hover"]
    assert len(calibrated.rig.phone.touches) == before + 1
    assert distance_mm(calibrated, 400, 620) < 0.6


async def test_the_same_key_again_replays_the_outcome_and_touches_nothing(
    calibrated: Stage, plane: Plane
) -> None:
    first = await plane.dispatch(DEVICE, TAP, key="twice")
    touches = len(calibrated.rig.phone.touches)
    second = await plane.dispatch(DEVICE, TAP, key="twice")
    assert second.deduplicated
    assert second.receipt == first.receipt
    assert len(calibrated.rig.phone.touches) == touches


async def test_two_dispatches_of_one_key_at_once_touch_once(calibrated: Stage, plane: Plane) -> None:
    touches = len(calibrated.rig.phone.touches)
    answers = []

    async def dispatch() -> None:
        answers.append(await plane.dispatch(DEVICE, TAP, key="at-once"))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(dispatch)
    assert all(answer.committed for answer in answers)
    assert sum(not answer.deduplicated for answer in answers) == 1
    assert len(calibrated.rig.phone.touches) == touches + 1


async def test_a_plane_that_hangs_up_during_a_tap_finds_its_receipt_when_it_returns(
    calibrated: Stage, plane: Plane
) -> None:
    touches = len(calibrated.rig.phone.touches)
    async with trio.open_nursery() as nursery:

        async def dispatch() -> None:
            with pytest.raises(PlaneDisconnected):
                await plane.dispatch(DEVICE, TAP, key="hang-up")

        nursery.start_soon(dispatch)
        await stored(plane, "hang-up")
        await plane.disconnect()
    await plane.connect()
    await plane.wait_until(lambda: (DEVICE, "hang-up") in plane.pushed)
    assert plane.notebook[DEVICE, "hang-up"]["status"] == "committed"
    assert len(calibrated.rig.phone.touches) == touches + 1


async def test_keys_and_text_arrive_as_they_were_sent(calibrated: Stage, plane: Plane) -> None:
    phone = calibrated.rig.phone
    typed, keys = len(phone.typed), len(phone.keys)
    assert (await plane.dispatch(DEVICE, {"type": "typeText", "text": "Hi, @rig (7)!"})).committed
    assert (await plane.dispatch(DEVICE, {"type": "pressKey", "key": "home"})).committed
    assert phone.typed[typed:] == "Hi, @rig (7)!"
    assert [press.name for press in phone.keys[keys:]] == ["home"]


async def test_typed_text_is_in_no_log_and_no_file_of_the_daemon(calibrated: Stage, plane: Plane) -> None:
    secret = "correct horse 7 battery"
    answer = await plane.dispatch(DEVICE, {"type": "typeText", "text": secret})
    assert answer.committed
    assert calibrated.rig.phone.typed.endswith(secret)
    assert secret not in str(answer.receipt)
    files = [path for path in calibrated.files.directory.rglob("*") if path.is_file()]
    assert calibrated.files.log in files
    for path in files:
        assert secret.encode() not in path.read_bytes(), path


async def test_a_swipe_draws_from_end_to_end_and_a_hold_stays(calibrated: Stage, plane: Plane) -> None:
    swipe = {"type": "swipe", "fromX": 300.0, "fromY": 700.0, "toX": 600.0, "toY": 500.0, "durationMs": 600}
    assert (await plane.dispatch(DEVICE, swipe)).committed
    touch = calibrated.rig.phone.touches[-1]
    _, end_x, end_y = touch.path[-1]
    assert math.hypot(end_x - 0.6 * SCREEN_MM[0], end_y - 0.5 * SCREEN_MM[1]) < 0.8
    assert (
        await plane.dispatch(DEVICE, {"type": "longPress", "x": 500.0, "y": 500.0, "durationMs": 700})
    ).committed
    held_ms = calibrated.rig.phone.touches[-1].duration_ms
    assert held_ms is not None
    assert 650 < held_ms < 1000


async def test_frame_notes_tell_age_newer_frames_and_a_move_of_the_edge(
    calibrated: Stage, plane: Plane
) -> None:
    picture = await plane.look(DEVICE)
    notes = (await plane.dispatch(DEVICE, TAP, observed_frame=picture["frameId"])).receipt["frameNotes"]
    assert notes["settled"]
    assert not notes["edgeMovedSince"]
    assert notes["ageMs"] > 0
    # 15 frames a second: the count and the age are two measurements of the same time.
    assert abs(notes["newerFrames"] - notes["ageMs"] * 15 / 1000) <= 2

    picture = await plane.look(DEVICE)
    calibrated.rig.push_hand(2.0, 0.0, 0.0)
    with trio.fail_after(5):
        while True:
            answer = await plane.dispatch(DEVICE, TAP, observed_frame=picture["frameId"])
            if answer.receipt["frameNotes"]["edgeMovedSince"]:
                break


async def test_a_hold_taken_mid_queue_refuses_what_waits_at_the_moment_of_dispatch(
    calibrated: Stage, in_rig: Callable[..., Awaitable[None]], plane: Plane
) -> None:
    phone = calibrated.rig.phone
    before = len(phone.touches)
    answers: dict[str, Answer] = {}

    async def dispatch(key: str, action: dict[str, object]) -> None:
        answers[key] = await plane.dispatch(DEVICE, action, key=key)

    async with staff_of(calibrated) as staff:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(dispatch, "under-way", {**TAP, "type": "longPress", "durationMs": 1000})
            await in_rig(calibrated.rig.wait_for, lambda: len(phone.touches) > before)
            nursery.start_soon(dispatch, "in-line", TAP)
            await stored(plane, "in-line")
            await staff.take_hold(DEVICE, "Maintenance.")
        await staff.release_hold(DEVICE)
    assert answers["under-way"].committed
    assert answers["in-line"].error is not None
    assert answers["in-line"].error["code"] == "leased"
    assert len(phone.touches) == before + 1


async def test_a_hold_taken_while_the_hand_approaches_keeps_it_from_touching(
    calibrated: Stage, plane: Plane
) -> None:
    touches = len(calibrated.rig.phone.touches)
    answers: list[Answer] = []

    async def dispatch() -> None:
        answers.append(await plane.dispatch(DEVICE, TAP, key="approaching"))

    async with staff_of(calibrated) as staff:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(dispatch)
            await stored(plane, "approaching")
            await staff.take_hold(DEVICE, "Stop.")
        await staff.release_hold(DEVICE)
    assert answers[0].error is not None
    assert answers[0].error["code"] == "leased"
    assert len(calibrated.rig.phone.touches) == touches


async def test_a_newer_holder_fences_off_what_the_older_one_left_in_line(
    own_rig: RigFiles, truth_seed: int
) -> None:
    answers: dict[str, Answer] = {}
    async with (
        open_stage(truth_seed, own_rig.directory) as stage,
        open_plane("plane-fence", own_rig.plane_socket) as plane,
    ):

        async def dispatch(key: str, action: dict[str, object], token: int) -> None:
            answers[key] = await plane.dispatch(DEVICE, action, key=key, fencing_token=token)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(dispatch, "old-1", {**TAP, "type": "longPress", "durationMs": 1000}, 5)
            await stage.rig.wait_for(lambda: len(stage.rig.phone.touches) == 1)
            nursery.start_soon(dispatch, "old-2", TAP, 5)
            await stored(plane, "old-2")
            nursery.start_soon(dispatch, "new", TAP, 6)
        assert answers["old-1"].committed
        assert answers["new"].committed
        assert answers["old-2"].error is not None
        assert answers["old-2"].error["code"] == "lease_mismatch"
        assert len(stage.rig.phone.touches) == 2
        await stage.daemon.kill()
        await stage.daemon.start()
        await wait_online(own_rig)
        await plane.connect()
        answer = await plane.dispatch(DEVICE, TAP, key="old-3", fencing_token=5)
        assert answer.error is not None
        assert answer.error["code"] == "lease_mismatch", "the highest token survives a kill -9"
        assert len(stage.rig.phone.touches) == 2


async def test_a_board_that_restarts_while_an_action_waits_does_not_get_it(
    own_rig: RigFiles, truth_seed: int
) -> None:
    """The ledger names the boot to be asked about an action before its first byte; another boot must not get it."""
    answers: dict[str, Answer] = {}
    async with (
        open_stage(truth_seed, own_rig.directory) as stage,
        open_plane("plane-boot", own_rig.plane_socket) as plane,
    ):

        async def dispatch(key: str, action: dict[str, object]) -> None:
            answers[key] = await plane.dispatch(DEVICE, action, key=key)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(dispatch, "text", {"type": "typeText", "text": "seven words or so " * 20})
            await stored(plane, "text")
            nursery.start_soon(dispatch, "tap", TAP)
            await stored(plane, "tap")
            await stage.rig.reset_board("hand")
            await plane.wait_until(lambda: plane.devices[DEVICE]["status"] == "offline")
            await plane.wait_until(lambda: plane.devices[DEVICE]["status"] == "online")
            assert "text" not in answers, "the text must still be at work, or this shows nothing"
        assert answers["text"].committed
        assert answers["tap"].error is not None
        assert answers["tap"].error["code"] == "device_offline"
        assert "has restarted" in answers["tap"].error["message"]
        assert stage.rig.phone.touches == []


async def stored(plane: Plane, key: str) -> None:
    """Until the edge has accepted the key."""
    while not (await plane.get_receipt(DEVICE, key))["found"]:
        pass


@pytest.mark.parametrize("stage_reached", ["accepted", "dispatched", "contact"])
async def test_kill_9_during_a_tap_makes_no_second_touch_and_its_receipt_ends(
    own_rig: RigFiles, truth_seed: int, stage_reached: str
) -> None:
    async with (
        open_stage(truth_seed, own_rig.directory) as stage,
        open_plane("plane-crash", own_rig.plane_socket) as plane,
    ):
        async with trio.open_nursery() as nursery:

            async def dispatch() -> None:
                with pytest.raises(PlaneDisconnected):
                    await plane.dispatch(DEVICE, TAP, key="crash", on_progress=reached.send_nowait)

            reached, stages = trio.open_memory_channel[dict[str, object]](10)
            nursery.start_soon(dispatch)
            async for progress in stages:
                if progress["stage"] == stage_reached:
                    break
            await stage.daemon.kill()
        await stage.daemon.start()
        await wait_online(own_rig)
        await plane.connect()
        await plane.wait_until(lambda: (DEVICE, "crash") in plane.pushed)
        receipt = plane.notebook[DEVICE, "crash"]
        touches = stage.rig.phone.touches
        again = await plane.dispatch(DEVICE, TAP, key="crash")
        assert again.receipt == receipt
        assert len(stage.rig.phone.touches) == len(touches) <= 1
        if receipt["status"] == "committed":
            assert len(touches) == 1
        elif receipt.get("reason") != "outcome_unknown":
            assert len(touches) == 0
        else:
            assert receipt["requiresManualReview"]


async def test_sigterm_leaves_the_hand_parked(own_rig: RigFiles, truth_seed: int) -> None:
    async with open_stage(truth_seed, own_rig.directory) as stage:
        async with open_plane("plane-stop", own_rig.plane_socket) as plane:
            assert (await plane.dispatch(DEVICE, TAP)).committed
        assert await stage.daemon.stop() == 0
        tip = stage.rig.hand_true_tip()
        assert tip.height_mm > 8
        assert not (0 <= tip.x_mm <= SCREEN_MM[0] and 0 <= tip.y_mm <= SCREEN_MM[1]), "still over the screen"
