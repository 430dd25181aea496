"""What a HID board's phone does with it decides what the device claims: asleep, awake, and a pointer for a screen."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from edge_daemon.bench.twin.rig import SimulatedRig
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_WIDTH_MM
from edge_daemon.boards import ArgumentRefused, Board, HidClient
from edge_daemon.boards.hid import PointerScale
from edge_daemon.contract import LongPress, PressKey, Refused, Swipe, Tap, TypeText
from edge_daemon.devices.capabilities import capabilities_of
from edge_daemon.devices.hid_touch import HidTouch
from edge_daemon.devices.keyboard import Keyboard
from edge_daemon.devices.slot import CalibrationSlot
from firmware import wire

pytestmark = pytest.mark.system


async def test_a_phone_that_sleeps_takes_the_claims_with_it_and_gives_them_back_awake(run_rig) -> None:
    async with run_rig() as run:
        awake = run.fleet.devices()[0]
        assert awake.capabilities.actions.type_text
        assert "home" in awake.capabilities.keys
        with run.fleet.subscribe() as changes:
            run.rig.suspend_phone(True)
            while run.fleet.devices()[0].status == "online":
                await changes.receive()
            asleep = run.fleet.devices()[0]
            assert asleep.capabilities.keys == ()
            assert not asleep.capabilities.actions.type_text
            assert not asleep.capabilities.actions.tap
            outcome = await run.dispatch("k", PressKey(key="home"))
            assert outcome.error is not None
            assert outcome.error.code == "device_offline"
            run.rig.suspend_phone(False)
            while run.fleet.devices()[0].status != "online":
                await changes.receive()
        assert run.fleet.devices()[0].capabilities == awake.capabilities
        assert run.phone.keys == []


@asynccontextmanager
async def iphone(directory: Path) -> AsyncIterator[tuple[SimulatedRig, Board]]:
    async with SimulatedRig(5, directory, boards=("hid",), camera=False, os="ios") as rig:
        board = Board("keys", rig.hid_port, None, "hid")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(board.run)
            events = board.events()
            while board.flags is None or not board.flags.usb_ready:
                await events.receive()
            yield rig, board
            nursery.cancel_scope.cancel()


async def test_an_iphone_has_six_keys_text_and_taps_that_wait_for_a_calibration(tmp_path: Path) -> None:
    async with iphone(tmp_path) as (rig, board):
        info = board.last_info
        assert info is not None
        assert info.hid is not None
        assert (info.hid.touch, info.caps & wire.CAP_HID_TOUCH) == ("pointer", 0)
        can = capabilities_of(has_hand=False, hand=None, hid=info)
        assert set(can.keys) == {"home", "enter", "delete", "power", "volume_up", "volume_down"}
        assert (can.actions.tap, can.actions.long_press, can.actions.swipe) == (True, True, False)
        client = HidClient(board)
        touch = HidTouch(board, client, CalibrationSlot("phone-1"))
        for action in (
            Tap(x=1, y=1),
            LongPress(x=1, y=1),
            Swipe(from_x=1, from_y=1, to_x=1, to_y=1, duration_ms=300),
        ):
            with pytest.raises(Refused) as refusal:
                touch.refuse(action, "portrait")
            assert refusal.value.info.code == "uncalibrated"
        with pytest.raises(Refused) as refusal:
            Keyboard(board, client).refuse(PressKey(key="back"), "portrait")
        assert refusal.value.info.code == "capability_unsupported"
        Keyboard(board, client).refuse(TypeText(text="hello"), "portrait")
        await client.key(1, "home")
        await rig.wait_for(lambda: [key.name for key in rig.phone.keys] == ["home"])


async def test_a_pointer_tap_with_the_phones_scale_lands_where_it_was_asked(tmp_path: Path) -> None:
    async with iphone(tmp_path) as (rig, board):
        per_mm = 1 / rig.hid_host.cursor.mm_per_count
        spans = round(SCREEN_WIDTH_MM * per_mm), round(SCREEN_HEIGHT_MM * per_mm)
        client = HidClient(board)
        done = await client.pointer_tap(1, 0.25, 0.5, 60, PointerScale(*spans, home=2_000, step=100))
        assert done.contact_ns is not None
        (touch,) = rig.phone.touches
        assert (touch.x_mm, touch.y_mm) == pytest.approx((SCREEN_WIDTH_MM / 4, SCREEN_HEIGHT_MM / 2), abs=0.2)
        assert touch.up_ns is not None
        with pytest.raises(ArgumentRefused, match="span_x=70000"):
            await client.pointer_tap(2, 0.5, 0.5, 60, PointerScale(70_000, 1, home=1, step=1))
        assert rig.hid_faults == []
