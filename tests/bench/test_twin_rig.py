"""The whole rig: real firmware in its own processes, on lines and wires, over one phone."""

import binascii
import itertools
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from edge_daemon.bench.twin import RigError, SimulatedRig
from edge_daemon.bench.twin.boards import BoardCrashed, Kind, Runtime, available_runtime
from firmware import wire

# A board refuses a session id that it has seen on this boot.
SESSIONS = itertools.count(77)
pytestmark = pytest.mark.system


class Wired:
    """Just enough of a host to talk to one board: a session, commands one at a time."""

    def __init__(self, port: str) -> None:
        self.fd = os.open(port, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        self.decoder = wire.Decoder()
        self.boot_id = self.session_id = self.seq = 0
        self.hello: wire.Hello | None = None

    def send(self, frame_type: int, seq: int, body: bytes) -> None:
        os.write(self.fd, wire.encode_frame(frame_type, self.boot_id, self.session_id, seq, body))

    async def frames(self) -> list[wire.Frame]:
        await trio.lowlevel.wait_readable(self.fd)
        return list(self.decoder.feed(os.read(self.fd, 4096)))

    async def open(self) -> wire.Hello:
        while True:
            for frame in await self.frames():
                if frame.type == wire.HELLO:
                    self.boot_id, self.session_id, self.seq = frame.boot_id, next(SESSIONS), 0
                    self.hello = wire.unpack_hello(frame.body)
                    self.send(wire.OPEN, 0, b"")
                elif frame.type == wire.OPENED and self.hello is not None:
                    return self.hello

    async def beat(self) -> None:
        while True:
            self.send(wire.HOST_HEARTBEAT, 0, wire.pack_body(wire.HOST_HEARTBEAT, 1))
            await trio.sleep(0.2)

    async def ready(self) -> None:
        """Until the board says that the phone takes its reports: it learns so a moment after the phone knows."""
        while True:
            for frame in await self.frames():
                flags = (
                    wire.unpack_body(frame.type, frame.body)[1] if frame.type == wire.BOARD_HEARTBEAT else 0
                )
                if flags & wire.FLAG_USB_READY:
                    return

    async def run(self, cmd_id: int, op: int, args: bytes) -> int:
        self.send(wire.CMD, self.seq, wire.pack_body(wire.CMD, cmd_id, op, tail=args))
        self.seq += 1
        while True:
            for frame in await self.frames():
                if frame.type in (wire.CONTACT, wire.DONE, wire.FAULT, wire.MOVED):
                    self.send(wire.EVENT_ACK, frame.seq, b"")
                if frame.type in (wire.DONE, wire.FAULT):
                    assert wire.unpack_body(frame.type, frame.body)[0] == cmd_id
                    return frame.type

    def tap_args(self, x_mm: float, y_mm: float, press_z_mm: float, dwell_ms: int = 60) -> bytes:
        um = [round(mm * 1000) for mm in (x_mm, y_mm, 4.0, press_z_mm)]
        return wire.pack_args(wire.OP_TAP, *um, dwell_ms)


@asynccontextmanager
async def host(port: str) -> AsyncIterator[Wired]:
    wired = Wired(port)
    try:
        await wired.open()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wired.beat)
            yield wired
            nursery.cancel_scope.cancel()
    finally:
        os.close(wired.fd)


def small_rig(directory: Path, *boards: Kind, seed: int = 7) -> SimulatedRig:
    return SimulatedRig(seed, directory, boards=boards, camera=False)


def children() -> set[int]:
    me = os.getpid()
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            if int(stat.rsplit(")", 1)[1].split()[1]) == me:
                found.add(int(entry.name))
    return found


@pytest.mark.parametrize("runtime", ["micropython", "cpython"])
async def test_a_tap_command_becomes_one_touch_near_where_the_hand_was_sent(
    tmp_path: Path, runtime: Runtime
) -> None:
    if runtime == "micropython" and available_runtime() != "micropython":
        pytest.skip("MicroPython's unix port has no wheel for this machine")
    rig = SimulatedRig(7, tmp_path, boards=("hand",), camera=False, runtime=runtime)
    async with rig, host(rig.hand_port) as hand:
        assert rig.runtime == runtime
        assert hand.hello is not None
        assert hand.hello.uid.hex() == rig.hand_uid
        assert await hand.run(1, wire.OP_HOME, b"") == wire.DONE
        assert await hand.run(2, wire.OP_TAP, hand.tap_args(100.0, 65.0, -1.2)) == wire.DONE
        await rig.wait_for(lambda: bool(rig.phone.touches) and rig.phone.touches[-1].up_ns is not None)
        (touch,) = rig.phone.touches
        x_mm, y_mm = rig.hand.to_world_mm(100.0, 65.0)
        assert touch.x_mm == pytest.approx(y_mm + 34.0, abs=0.3)
        assert touch.y_mm == pytest.approx(x_mm + 73.65, abs=0.3)
        assert touch.source == "glass"


async def test_typed_text_and_keys_reach_the_phone_as_sent(tmp_path: Path) -> None:
    async with small_rig(tmp_path, "hid") as rig, host(rig.hid_port) as hid:
        await rig.wait_for(lambda: rig.hid_host.configured or bool(rig.hid_faults))
        await hid.ready()
        rig.phone.open_app("notes")
        text = b"Hi 7!"
        load = wire.pack_args(wire.OP_TEXT_LOAD, 0, tail=text)
        hid.send(wire.CMD, hid.seq, wire.pack_body(wire.CMD, 1, wire.OP_TEXT_LOAD, tail=load))
        hid.seq += 1
        go = wire.pack_args(wire.OP_TEXT_GO, len(text), binascii.crc32(text))
        assert await hid.run(2, wire.OP_TEXT_GO, go) == wire.DONE
        home = wire.pack_args(wire.OP_KEY, wire.KEY_NAMES.index("home"))
        assert await hid.run(3, wire.OP_KEY, home) == wire.DONE
        await rig.wait_for(lambda: rig.phone.current_page == "launcher")
        assert rig.phone.text_field == "Hi 7!"
        assert [key.name for key in rig.phone.keys] == ["home"]
        assert rig.hid_faults == []


async def test_a_reset_board_greets_with_a_new_boot_and_its_cause_and_the_hand_stays(tmp_path: Path) -> None:
    async with small_rig(tmp_path, "hand") as rig:
        async with host(rig.hand_port) as hand:
            assert await hand.run(1, wire.OP_HOME, b"") == wire.DONE
            move = wire.pack_args(wire.OP_MOVE, 100_000, 65_000, 12_000)
            assert await hand.run(2, wire.OP_MOVE, move) == wire.DONE
            first_boot = hand.boot_id
            await rig.wait_for(lambda: rig.hand.at_rest)
        before = rig.hand_true_tip()
        await rig.reset_board("hand", "brownout")
        async with host(rig.hand_port) as hand:
            assert hand.boot_id != first_boot
            assert hand.hello is not None
            assert hand.hello.reset_cause == wire.RESET_BROWNOUT
            assert hand.decoder.garbage_bytes + hand.decoder.crc_errors + hand.decoder.oversize > 0
        assert rig.hand_true_tip().height_mm == pytest.approx(before.height_mm, abs=0.1)


async def test_unplugging_hangs_up_and_plugging_in_powers_the_board_up_again(tmp_path: Path) -> None:
    async with small_rig(tmp_path, "hand") as rig:
        wired = Wired(rig.hand_port)
        await wired.open()
        await rig.unplug("hand")
        assert not os.path.lexists(rig.hand_port)
        await trio.lowlevel.wait_readable(wired.fd)
        while os.read(wired.fd, 4096):
            pass
        await rig.plug("hand")
        os.close(wired.fd)
        async with host(rig.hand_port) as again:
            assert again.boot_id != wired.boot_id
            assert again.hello is not None
            assert again.hello.reset_cause == wire.RESET_POWER_ON


async def test_a_cable_pulled_from_a_powered_board_leaves_it_on_the_same_boot(tmp_path: Path) -> None:
    async with small_rig(tmp_path, "hand") as rig:
        async with host(rig.hand_port) as hand:
            boot_id = hand.boot_id
        await rig.unplug("hand", keeps_power=True)
        await rig.plug("hand")
        async with host(rig.hand_port) as hand:
            assert hand.boot_id == boot_id


async def test_a_board_without_power_lets_the_stylus_rise(tmp_path: Path) -> None:
    async with small_rig(tmp_path, "hand") as rig:
        async with host(rig.hand_port) as hand:
            assert await hand.run(1, wire.OP_HOME, b"") == wire.DONE
            press = hand.tap_args(100.0, 65.0, -1.2, dwell_ms=30_000)
            hand.send(wire.CMD, hand.seq, wire.pack_body(wire.CMD, 2, wire.OP_TAP, tail=press))
            await rig.wait_for(lambda: bool(rig.phone.touches))
            assert rig.phone.touches[-1].up_ns is None
            await rig.kill("hand")
            await rig.wait_for(lambda: rig.phone.touches[-1].up_ns is not None)


async def test_a_crashed_board_ends_the_rig_with_what_it_printed(tmp_path: Path) -> None:
    async def crash() -> None:
        async with small_rig(tmp_path, "hand") as rig:
            process = rig._boards["hand"]._process
            assert process is not None
            rig._boards["hand"].log_path.write_text("MemoryError: heap is full")
            process.terminate()
            await trio.sleep_forever()

    with pytest.raises(BoardCrashed, match="MemoryError"):
        await crash()


async def test_everything_is_gone_at_the_end_even_when_the_body_fails(tmp_path: Path) -> None:
    children_before, threads_before, fds_before = children(), threading.active_count(), _open_fds()
    for failing in (False, True):
        try:
            async with SimulatedRig(7, tmp_path) as rig:
                assert len(children() - children_before) == 2
                assert rig.camera_url
                if failing:
                    raise LookupError
        except LookupError:
            assert failing
    assert children() == children_before
    assert _open_fds() <= fds_before + 1
    # Trio keeps idle worker threads; none of them is the rig's.
    assert all("trio" in thread.name.lower() for thread in threading.enumerate()[threads_before:])


def _open_fds() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_waiting_for_what_never_happens_ends_with_an_error(tmp_path: Path) -> None:
    async with small_rig(tmp_path) as rig:
        with pytest.raises(RigError, match="within"):
            await rig.wait_for(lambda: False, timeout_s=0.05)


def test_a_directory_too_deep_for_a_socket_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RigError, match="shorter"):
        SimulatedRig(1, tmp_path / ("d" * 120))


async def test_a_rig_left_by_cancellation_leaves_nothing_open(tmp_path: Path) -> None:
    open_before = len(os.listdir("/proc/self/fd"))
    with trio.CancelScope() as scope:
        async with SimulatedRig(5, tmp_path):
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert len(os.listdir("/proc/self/fd")) == open_before
