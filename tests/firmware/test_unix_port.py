"""The whole firmware as a process on a pty: in MicroPython with an ESP32's heap, and in CPython."""

import os
import pty
import select
import shutil
import socket
import struct
import subprocess
import sys
import time
import tty
from pathlib import Path

import pytest

from firmware import wire
from firmware.hid.descriptor import ANDROID_DESCRIPTOR
from firmware.ports.unix import wiring
from firmware.ports.unix.main import ABSENT_US, SerialLine

ROOT = Path(__file__).parents[2]
MAIN = ROOT / "firmware" / "ports" / "unix" / "main.py"
MICROPYTHON = shutil.which("micropython", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
UID = bytes(range(8))
PATIENCE_S = 10.0

RUNTIMES = [
    pytest.param(
        [MICROPYTHON, "-X", "heapsize=160k"],
        id="micropython",
        marks=pytest.mark.skipif(MICROPYTHON is None, reason="no MicroPython for this machine"),
    ),
    pytest.param([sys.executable], id="cpython"),
]


class BoardProcess:
    """A board on a pty, with the host's end of the line and the rig's end of the wiring in our hands."""

    def __init__(self, runtime: list[str], directory: Path, kind: str, *options: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        path = directory / "wiring"
        path.unlink(missing_ok=True)
        self._listener.bind(str(path))
        self._listener.listen()
        master, self.line = pty.openpty()
        tty.setraw(self.line)
        self.line_path = os.ttyname(self.line)
        os.set_blocking(master, False)
        arguments = [kind, "--serial", str(master), "--wiring", str(path), "--uid", UID.hex()]
        arguments += ["--state", str(directory / "boots"), *options]
        self._process = subprocess.Popen([*runtime, str(MAIN), *arguments], pass_fds=[master], cwd=directory)
        os.close(master)
        self._listener.settimeout(PATIENCE_S)
        self.wires, _ = self._listener.accept()
        self._decoder = wire.Decoder()
        self._wire_bytes = b""
        self._frames: list[wire.Frame] = []
        self.records: list[tuple[int, bytes]] = []
        self._boot_id = 0
        self._seq = 0
        self._heartbeat_s = 0.0
        self.keeps_alive = True

    def __enter__(self) -> "BoardProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.wires.close()
        self._listener.close()
        if self.line >= 0:
            os.close(self.line)
        assert self._process.wait(PATIENCE_S) == 0, "the board ends with its wiring"

    def kill(self) -> None:
        """Power off in the middle of whatever it does."""
        self._process.kill()
        self._process.wait()
        self._process.wait = lambda _timeout=None: 0

    def send(self, frame_type: int, *fields: int, seq: int = 0, tail: bytes = b"") -> None:
        body = wire.pack_body(frame_type, *fields, tail=tail)
        os.write(self.line, wire.encode_frame(frame_type, self._boot_id, 1, seq, body))

    def command(self, cmd_id: int, op: int, *args: int) -> None:
        self.send(wire.CMD, cmd_id, op, seq=self._seq, tail=wire.pack_args(op, *args))
        self._seq += 1

    def _pump(self) -> None:
        """Wait for bytes on either line, keep the session alive and acknowledge events."""
        if (
            self._boot_id
            and self.line >= 0
            and self.keeps_alive
            and time.monotonic() - self._heartbeat_s > 0.2
        ):
            self._heartbeat_s = time.monotonic()
            self.send(wire.HOST_HEARTBEAT, 0)
        lines = [self.wires] + ([self.line] if self.line >= 0 else [])
        readable, _, _ = select.select(lines, [], [], 0.2)
        if self.wires in readable:
            self._take_records(self.wires.recv(4096))
        if self.line in readable:
            for frame in self._decoder.feed(os.read(self.line, 4096)):
                self._frames.append(frame)
                if frame.type in (wire.CONTACT, wire.DONE, wire.FAULT, wire.MOVED) and self.keeps_alive:
                    self.send(wire.EVENT_ACK, seq=frame.seq)

    def _take_records(self, data: bytes) -> None:
        assert data, "the board has died"
        self._wire_bytes += data
        while len(self._wire_bytes) >= 2 and len(self._wire_bytes) >= 2 + self._wire_bytes[1]:
            size = self._wire_bytes[1]
            self.records.append((self._wire_bytes[0], self._wire_bytes[2 : 2 + size]))
            self._wire_bytes = self._wire_bytes[2 + size :]

    def frame(self, frame_type: int) -> wire.Frame:
        """The next frame of this type; those before it are passed over."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            while self._frames:
                frame = self._frames.pop(0)
                if frame.type == frame_type:
                    return frame
            self._pump()
        raise AssertionError(f"no frame 0x{frame_type:02x}")

    def record(self, kind: int) -> bytes:
        """The next wiring record of this kind."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            while self.records:
                found, payload = self.records.pop(0)
                if found == kind:
                    return payload
            self._pump()
        raise AssertionError(f"no record 0x{kind:02x}")

    def joints(self) -> tuple[int, int, int]:
        x, y, z = struct.unpack("<iii", self.record(wiring.JOINTS))
        return x, y, z

    def all_joints(self) -> list[tuple[int, int, int]]:
        return [struct.unpack("<iii", p) for kind, p in self.records if kind == wiring.JOINTS]

    def open(self) -> wire.Hello:
        hello = self.frame(wire.HELLO)
        self._boot_id = hello.boot_id
        self.send(wire.OPEN)
        self.frame(wire.OPENED)
        return wire.unpack_hello(hello.body)

    def let_go_of_the_line(self) -> None:
        os.close(self.line)
        self.line = -1

    def take_the_line(self) -> None:
        self.line = os.open(self.line_path, os.O_RDWR | os.O_NOCTTY)
        tty.setraw(self.line)
        self.keeps_alive = False

    @property
    def boot_id(self) -> int:
        return self._boot_id


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_hand_says_hello_homes_and_taps(runtime, tmp_path):
    with BoardProcess(runtime, tmp_path, "hand") as board:
        hello = board.open()
        assert (hello.uid, hello.kind, hello.reset_cause) == (UID, wire.KIND_HAND, wire.RESET_POWER_ON)
        board.command(1, wire.OP_HOME)
        assert wire.unpack_body(wire.DONE, board.frame(wire.DONE).body)[0] == 1
        board.command(2, wire.OP_TAP, 10_000, 8_000, 24_000, 20_000, 30)
        contact = wire.unpack_body(wire.CONTACT, board.frame(wire.CONTACT).body)
        cmd_id, accepted_us, contact_us, done_us = wire.unpack_body(wire.DONE, board.frame(wire.DONE).body)
        assert cmd_id == contact[0] == 2
        assert accepted_us < contact_us < done_us
        joints = board.all_joints()
        assert (10_000, 8_000, 20_000) in joints
        assert joints[-1] == (10_000, 8_000, 24_000)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_hid_board_describes_itself_and_presses_a_key(runtime, tmp_path):
    with BoardProcess(runtime, tmp_path, "hid", "--layout", "de") as board:
        descriptor = b""
        while True:
            part = board.record(wiring.HID_DESCRIPTOR)
            offset, is_last = struct.unpack_from("<HB", part)
            assert offset == len(descriptor)
            descriptor += part[3:]
            if is_last:
                break
        assert descriptor == ANDROID_DESCRIPTOR
        hello = board.open()
        assert wire.unpack_hid_tail(hello.tail)[:2] == (wire.PROFILE_ANDROID, wire.LAYOUT_DE)
        board.command(1, wire.OP_KEY, 0)
        refused = wire.unpack_body(wire.FAULT, board.frame(wire.FAULT).body)
        assert refused[1:3] == (wire.FAULT_USB_NOT_READY, wire.FAULT_FLAG_REFUSED)
        board.wires.sendall(bytes((wiring.HID_STATE, 1, 1)))
        assert board.record(wiring.HID_REPORT) == b"\x01" + bytes(8)
        board.wires.sendall(bytes((wiring.HID_COMPLETE, 1, 1)))
        while not wire.unpack_body(wire.BOARD_HEARTBEAT, board.frame(wire.BOARD_HEARTBEAT).body)[1]:
            pass
        board.command(2, wire.OP_KEY, 0)
        for report in (b"\x02\x23\x02", b"\x02\x00\x00"):
            assert board.record(wiring.HID_REPORT) == report
            board.wires.sendall(bytes((wiring.HID_COMPLETE, 1, 1)))
        assert wire.unpack_body(wire.DONE, board.frame(wire.DONE).body)[0] == 2


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_board_whose_host_goes_away_during_a_press_lifts_and_waits_for_the_next_one(runtime, tmp_path):
    with BoardProcess(runtime, tmp_path, "hand") as board:
        board.open()
        board.command(1, wire.OP_HOME)
        board.frame(wire.DONE)
        board.command(2, wire.OP_TAP, 0, 0, 29_900, 29_500, 60_000)
        board.frame(wire.CONTACT)
        board.records.clear()
        board.let_go_of_the_line()
        while board.joints() != (0, 0, 30_000):
            pass
        board.take_the_line()
        hello = board.frame(wire.HELLO)
        assert hello.boot_id == board.boot_id
        assert wire.unpack_hello(hello.body).flags & wire.FLAG_HELD


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_board_ends_quietly_when_the_rig_closes_without_having_read(runtime, tmp_path):
    with BoardProcess(runtime, tmp_path, "hid") as board:
        # The descriptor lies unread in the socket: closing it is a reset, not an end of file.
        assert select.select([board.wires], [], [], PATIENCE_S)[0]


def test_a_line_that_nobody_holds_is_quiet_and_works_again_later():
    master, slave = pty.openpty()
    tty.setraw(slave)
    path = os.ttyname(slave)
    os.set_blocking(master, False)
    poller = select.poll()
    line = SerialLine(master, poller)
    os.close(slave)
    assert poller.poll(0)
    assert line.read(0) == b""
    assert poller.poll(0) == [], "a hang-up that is polled for ever is a busy loop"
    line.write(b"lost")
    slave = os.open(path, os.O_RDWR | os.O_NOCTTY)
    tty.setraw(slave)
    line.look_again(ABSENT_US)
    os.write(slave, b"hello")
    assert poller.poll(1_000)
    assert line.read(ABSENT_US) == b"hello"
    line.write(b"back")
    assert os.read(slave, 16) == b"back"
    os.close(slave)
    line.close()


def test_a_line_that_ends_like_a_socket_is_quiet_too():
    board_end, host_end = socket.socketpair()
    board_end.setblocking(False)
    poller = select.poll()
    line = SerialLine(board_end.detach(), poller)
    host_end.close()
    assert poller.poll(0)
    assert line.read(0) == b""
    assert poller.poll(0) == [], "an end of file that is polled for ever is a busy loop"
    line.write(b"lost")
    line.look_again(ABSENT_US)
    line.write(b"lost")
    line.close()


@pytest.mark.parametrize("runtime", RUNTIMES[:1] if MICROPYTHON else RUNTIMES[1:])
def test_a_hand_that_is_reset_while_pressing_lifts_where_it_is_before_it_homes(runtime, tmp_path):
    with BoardProcess(runtime, tmp_path, "hand") as board:
        board.open()
        first_boot = board.boot_id
        board.command(1, wire.OP_HOME)
        board.frame(wire.DONE)
        board.command(2, wire.OP_TAP, 5_000, 0, 29_900, 29_500, 60_000)
        board.frame(wire.CONTACT)
        board.kill()
    with BoardProcess(runtime, tmp_path, "hand", "--reset-cause", "watchdog") as board:
        assert board.open().reset_cause == wire.RESET_WATCHDOG
        assert board.boot_id & 0xFF == (first_boot & 0xFF) + 1
        board.command(3, wire.OP_HOME)
        board.frame(wire.DONE)
        joints = board.all_joints()
        assert all((x, y) == (5_000, 0) for x, y, z in joints if z < 30_000)
        # Pressed to 29.5 mm; the first setpoint may be a poll of 12 ms into the lift already, and hover is at 29.9.
        assert joints[0][2] < 29_700
        assert joints[-1] == (0, 0, 30_000)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "kind"),
        (["hand", "--serial", "3"], "--wiring"),
        (["hand", "--serial", "x", "--wiring", "w", "--state", "s", "--uid", "0" * 16], "--serial"),
        (["hid", "--serial", "3", "--wiring", "w", "--state", "s", "--uid", "12"], "--uid"),
        (
            ["hid", "--serial", "3", "--wiring", "w", "--state", "s", "--uid", "0" * 16, "--layot", "de"],
            "--layot",
        ),
    ],
)
def test_a_wrong_command_line_is_explained(runtime, arguments, complaint):
    result = subprocess.run(
        [*runtime, str(MAIN), *arguments], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert result.returncode == 2
    assert complaint in result.stderr.splitlines()[0]
    assert "usage:" in result.stderr
