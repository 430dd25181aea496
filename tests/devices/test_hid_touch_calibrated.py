"""A HID board's touches go where its calibration says, and nowhere when it says nothing or may not be used."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from calibration.acceptance import Acceptance
from calibration.fit_hid import DigitizerModel, HidQuality, PointerModel
from calibration.result import DeviceCalibration, DigitizerPart, PointerPart
from calibration.screen import ScreenGeometry
from calibration.store import BoardKeys, Conditions, Stamp, unsaved
from edge_daemon.bench.exact import unasked_camera
from edge_daemon.bench.twin.hidhost import PhoneOs
from edge_daemon.bench.twin.rig import SimulatedRig
from edge_daemon.boards import Board, HidClient
from edge_daemon.contract import LongPress, Refused, Swipe, Tap
from edge_daemon.devices.hid_touch import HidTouch
from edge_daemon.devices.orders import Order
from edge_daemon.devices.pointer import place_of_counts
from edge_daemon.devices.slot import CalibrationSlot
from edge_daemon.upstream.service import DigitizerTouchAt, HandTouchAt, PointerTouchAt

SCREEN = ScreenGeometry(width_px=1080, height_px=2340, width_mm=68.0, height_mm=147.3)
QUALITY = HidQuality(leave_one_out_rms_mm=0.02, places=12, outliers=())
# A digitizer whose area ends 5 % inside the screen's left edge and is stretched to its right one.
MARGINS = DigitizerPart(
    model=DigitizerModel(x=(0.1, 0.8, 0.0), y=(0.0, 0.0, 0.9)), quality=QUALITY, touches=()
)
RunRig = Callable[[], AbstractAsyncContextManager[Any]]


def calibration_of(**parts: Any) -> DeviceCalibration:
    """A calibration of these parts, under a camera that nobody asks."""
    return DeviceCalibration(screen=SCREEN, camera=unasked_camera((1280, 720)), **parts)


def slot_with(**parts: Any) -> CalibrationSlot:
    """A slot filled with such a calibration."""
    now = Stamp(wall_utc="2026-03-01T09:30:00Z", clock_synced=False, boot_id="b", monotonic_ns=1)
    conditions = Conditions(device_id="phone-1", screen=SCREEN, hand=None, hid=None, camera=None, now=now)
    stored = unsaved(calibration_of(**parts), conditions)
    assert stored.boards == BoardKeys()
    slot = CalibrationSlot("phone-1")
    slot.adopt(stored, {}, None)
    return slot


@asynccontextmanager
async def board_of(os: PhoneOs, directory: Path) -> AsyncIterator[tuple[SimulatedRig, Board]]:
    async with SimulatedRig(5, directory, boards=("hid",), camera=False, os=os) as rig:
        board = Board("keys", rig.hid_port, None, "hid")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(board.run)
            events = board.events()
            while board.flags is None or not board.flags.usb_ready:
                await events.receive()
            yield rig, board
            nursery.cancel_scope.cancel()


async def perform(
    touch: HidTouch, board: Board, action: Any, cmd_id: int, orientation: Any = "portrait"
) -> None:
    touch.refuse(action, orientation)
    assert board.last_info is not None
    boot_id = board.last_info.boot_id
    await touch.perform(Order(action, orientation, cmd_id, lambda: boot_id, lambda stage, us, at_ns: None))


def code_of(touch: HidTouch, action: Any, orientation: Any = "portrait") -> tuple[str, str]:
    with pytest.raises(Refused) as caught:
        touch.refuse(action, orientation)
    return caught.value.code, str(caught.value)


async def test_a_touch_screen_is_told_what_its_calibration_makes_of_the_grid(tmp_path: Path) -> None:
    async with board_of("android", tmp_path) as (rig, board):
        touch = HidTouch(board, HidClient(board), slot_with(digitizer=MARGINS))
        await perform(touch, board, Tap(x=500.0, y=1000.0), 1)
        await perform(
            touch, board, Swipe(from_x=0.0, from_y=0.0, to_x=1000.0, to_y=500.0, duration_ms=200), 2
        )
        tapped, swiped = (rig.phone.touch_at_grid(one) for one in rig.phone.touches)
        # The simulated phone takes fractions at their word: what was sent is where it was touched.
        assert tapped == pytest.approx((500.0, 900.0), abs=0.5)
        assert swiped == pytest.approx((100.0, 0.0), abs=0.5)
        assert rig.phone.touches[1].path[-1][1] == pytest.approx(0.9 * SCREEN.width_mm, abs=0.1)


async def test_in_another_turn_the_area_keeps_its_place_or_turns_or_nothing_is_touched(
    tmp_path: Path,
) -> None:
    async with board_of("android", tmp_path) as (rig, board):
        hid, tap = HidClient(board), Tap(x=250.0, y=500.0)
        unknown = HidTouch(board, hid, slot_with(digitizer=MARGINS))
        code, why = code_of(unknown, tap, "landscape_left")
        assert code == "uncalibrated"
        assert "edge-daemon calibrate phone-1" in why
        for number, area in enumerate(("keeps", "turns"), start=1):
            part = msgspec.structs.replace(MARGINS, area=area)
            await perform(
                HidTouch(board, hid, slot_with(digitizer=part)), board, tap, number, "landscape_left"
            )
        keeps, turns = (rig.phone.touch_at_grid(one) for one in rig.phone.touches)
        # Grid (250, 500) of a landscape_left page lies at portrait (500, 250).
        assert keeps == pytest.approx((500.0, 225.0), abs=0.5)
        assert turns == pytest.approx((300.0, 450.0), abs=0.5)


async def test_a_touch_screen_whose_calibration_may_not_be_used_touches_nothing(tmp_path: Path) -> None:
    async with board_of("android", tmp_path) as (rig, board):
        slot = slot_with(digitizer=MARGINS)
        touch, hid = HidTouch(board, HidClient(board), slot), HidClient(board)
        slot.refused = {"digitizer": "it was made with another board"}
        assert code_of(touch, Tap(x=1.0, y=1.0))[0] == "uncalibrated"
        slot.drop("the file is damaged")
        assert code_of(touch, LongPress(x=1.0, y=1.0))[0] == "uncalibrated"
        never = HidTouch(board, hid, CalibrationSlot("phone-1"))
        await perform(never, board, Tap(x=250.0, y=750.0), 1)
        assert rig.phone.touch_at_grid(rig.phone.touches[0]) == pytest.approx((250.0, 750.0), abs=0.5)
        assert len(rig.phone.touches) == 1


async def test_a_place_that_the_area_does_not_cover_is_refused_and_not_moved(tmp_path: Path) -> None:
    async with board_of("android", tmp_path) as (_rig, board):
        short = msgspec.structs.replace(MARGINS, model=DigitizerModel(x=(-0.1, 1.2, 0.0), y=(0.0, 0.0, 1.0)))
        touch = HidTouch(board, HidClient(board), slot_with(digitizer=short))
        touch.refuse(Tap(x=500.0, y=500.0), "portrait")
        assert code_of(touch, Tap(x=10.0, y=500.0))[0] == "invalid_argument"
        swipe = Swipe(from_x=500.0, from_y=500.0, to_x=990.0, to_y=500.0)
        assert code_of(touch, swipe)[0] == "invalid_argument"


async def test_a_pointer_goes_exactly_so_many_counts_as_its_calibration_says(tmp_path: Path) -> None:
    def pointer(mm_per_count: float) -> CalibrationSlot:
        model = PointerModel(
            mm_per_count_x=mm_per_count, mm_per_count_y=mm_per_count, step_counts=4, home_counts=4000
        )
        return slot_with(pointer=PointerPart(model=model, quality=QUALITY, touches=()))

    async with board_of("ios", tmp_path) as (rig, board):
        hid = HidClient(board)
        await perform(HidTouch(board, hid, pointer(0.2)), board, Tap(x=500.0, y=200.0), 1)
        await perform(HidTouch(board, hid, pointer(0.1)), board, Tap(x=500.0, y=100.0), 2)
        first, second = rig.phone.touches
        # 170 and 340 counts to the right, 147 down both times, whatever a count is worth on this phone.
        assert (second.x_mm, second.y_mm) == pytest.approx((2 * first.x_mm, first.y_mm), abs=0.01)
        beyond = slot_with(
            pointer=PointerPart(
                model=PointerModel(
                    mm_per_count_x=0.1, mm_per_count_y=0.1, step_counts=4, home_counts=4000, home_x_mm=3.0
                ),
                quality=QUALITY,
                touches=(),
            )
        )
        assert code_of(HidTouch(board, hid, beyond), Tap(x=1.0, y=500.0))[0] == "invalid_argument"


@pytest.mark.parametrize("phone_os", ["ios"])
async def test_a_phone_that_started_again_may_move_its_pointer_otherwise_and_what_is_unmeasured_is_said(
    run_rig: RunRig, phone_os: PhoneOs
) -> None:
    model = PointerModel(mm_per_count_x=0.1, mm_per_count_y=0.1, step_counts=4, home_counts=4000)
    landed = [((float(x), float(x)), (float(x), float(x))) for x in range(5, 65, 5)]
    made = calibration_of(
        pointer=PointerPart(model=model, quality=QUALITY, touches=()),
        acceptance=Acceptance.of(SCREEN, landed, p95_limit_mm=0.3, max_limit_mm=0.5),
    )
    async with run_rig() as run:
        desk = run.fleet._desks["phone-1"]
        await desk.save_calibration(lambda store, now: store.save(made, now, origin="calibrated"))
        with run.fleet.subscribe() as changes, trio.fail_after(60):
            while "drift" not in run.fleet.devices()[0].metadata["calibration"]:
                await changes.receive()
            said = run.fleet.devices()[0].metadata["calibration"]
            assert said["usable"] == ["camera", "pointer"]
            assert said["drift"]["verdict"] == "unmeasured", "nothing to measure against is not still"
            assert (await run.dispatch("before", Tap(x=300.0, y=300.0))).receipt.status == "committed"
            await run.rig.kill("hid")
            await run.rig.revive("hid")
            while run.fleet.devices()[0].metadata["calibration"]["usable"] == ["camera", "pointer"]:
                await changes.receive()
            while run.fleet.devices()[0].status != "online":
                await changes.receive()
        after = await run.dispatch("after", Tap(x=300.0, y=300.0))
        assert after.error.code == "uncalibrated"
        assert "phone_rebooted" in after.error.message
        assert len(run.phone.touches) == 1
    async with run_rig() as run:
        assert run.fleet.devices()[0].metadata["calibration"]["usable"] == ["camera"], "it is remembered"


@pytest.mark.parametrize("counts", [(0, 0), (1, 700), (340, 295), (4000, 3)])
def test_the_board_is_told_the_very_counts(counts: tuple[int, int]) -> None:
    place = place_of_counts(*counts, home_counts=4000, step_counts=4)
    assert (place.x * place.scale.span_x, place.y * place.scale.span_y) == counts
    assert place.scale.home >= max(place.scale.span_x, place.scale.span_y) >= 1, "or the board refuses it"


async def test_staff_touch_by_the_board_that_is_there_and_only_with_the_hold(run_rig: RunRig) -> None:
    at = DigitizerTouchAt(x=0.25, y=0.5, dwell_ms=60)
    async with run_rig() as run:
        with pytest.raises(Refused) as caught:
            await run.fleet.staff_touch("phone-1", at, "jo")
        assert caught.value.code == "lease_required"
        await run.fleet.take_hold("phone-1", "a check", "jo")
        await run.fleet.staff_touch("phone-1", at, "jo")
        (touch,) = run.phone.touches
        assert run.phone.touch_at_grid(touch) == pytest.approx((250.0, 500.0), abs=0.5)
        for wrong in (
            PointerTouchAt(x_counts=1, y_counts=1, home_counts=9, step_counts=1, dwell_ms=60),
            HandTouchAt(x_mm=0, y_mm=0, press_z_mm=0, hover_z_mm=5, dwell_ms=60),
        ):
            with pytest.raises(Refused) as caught:
                await run.fleet.staff_touch("phone-1", wrong, "jo")
            assert caught.value.code == "capability_unsupported"
        await run.fleet.release_hold("phone-1", "jo")
        assert len(run.phone.touches) == 1
