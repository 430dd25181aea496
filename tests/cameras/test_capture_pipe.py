"""What goes from a capture process to the daemon, over a real socket."""

import os
import socket
import subprocess
import sys
from array import array
from collections.abc import Iterator
from contextlib import closing
from itertools import islice

import pytest

from edge_daemon.cameras import pipe
from edge_daemon.cameras.capture import QUEUED_FRAMES, Outbox
from edge_daemon.cameras.errors import PipeError
from edge_daemon.cameras.faults import CameraFault
from edge_daemon.cameras.intake import Accepted
from edge_daemon.cameras.jpeg import MAX_JPEG_BYTES

Pair = tuple[socket.socket, socket.socket]


def frame(sequence: int = 7, *, jpeg_bytes: int = 7) -> pipe.Frame:
    return pipe.Frame(
        sequence=sequence,
        stamp_ns=4,
        exposed_ns=1,
        exposed_about_ns=3,
        captured_about_ns=4,
        received_ns=2,
        width=64,
        height=48,
        crc32=3,
        dropped=0,
        broken=0,
        jpeg_bytes=jpeg_bytes,
    )


def accepted(sequence: int, jpeg: bytes) -> Accepted:
    return Accepted(
        sequence=sequence,
        stamp_ns=sequence,
        exposed_ns=sequence,
        exposed_about_ns=sequence,
        captured_about_ns=sequence,
        received_ns=sequence,
        width=64,
        height=48,
        crc32=0,
        broken=0,
        jpeg=jpeg,
    )


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        ours.settimeout(8)
        yield ours, theirs


def received(sock: socket.socket) -> tuple[pipe.Header, bytes]:
    message, rights, _, _ = sock.recvmsg(pipe.MAX_HEADER_BYTES, pipe.RIGHTS_BYTES, pipe.RECEIVE_FLAGS)
    return pipe.take_record(message, rights)


def open_descriptors() -> list[str]:
    return sorted(os.listdir("/proc/self/fd"))


def test_records_come_whole_and_in_order_and_leave_no_descriptor_open(pair: Pair) -> None:
    ours, theirs = pair
    before = open_descriptors()
    records = [
        (pipe.Opened(notes=("a note",)), b""),
        (frame(), b"picture"),
        (pipe.Fault(fault=CameraFault.FROZEN, reason="why"), b""),
    ]
    with closing(pipe.Sender(theirs)) as sender:
        for header, jpeg in records:
            sender.send(header, jpeg)
    assert [received(ours) for _ in records] == records
    assert open_descriptors() == before


def test_a_large_picture_comes_as_it_was(pair: Pair) -> None:
    ours, theirs = pair
    jpeg = os.urandom(MAX_JPEG_BYTES)
    with closing(pipe.Sender(theirs)) as sender:
        sender.send(frame(jpeg_bytes=len(jpeg)), jpeg)
        assert received(ours)[1] == jpeg


def test_a_picture_that_was_not_read_yet_stays_as_it_was(pair: Pair) -> None:
    """However many come after it, and whatever was read between them."""
    ours, theirs = pair
    pictures = [bytes([number]) * 5000 for number in range(60)]
    sent = iter(pictures)
    found = []
    with closing(pipe.Sender(theirs)) as sender:
        for unread in (1, 2, pipe.MOST_SHEETS + 3, 1, 3):
            for picture in islice(sent, unread):
                sender.send(frame(jpeg_bytes=len(picture)), picture)
            found += [received(ours)[1] for _ in range(unread)]
    assert found == pictures[: len(found)]


def test_a_daemon_that_keeps_up_gets_all_pictures_through_one_file(pair: Pair) -> None:
    """Memory that is cleared and filled anew for each picture is what an idle camera costs most."""
    ours, theirs = pair
    files = set()
    with closing(pipe.Sender(theirs)) as sender:
        for length in (MAX_JPEG_BYTES, 5, 70_000):
            sender.send(frame(jpeg_bytes=length), bytes(length))
            message, rights, _, _ = ours.recvmsg(pipe.MAX_HEADER_BYTES, pipe.RIGHTS_BYTES, pipe.RECEIVE_FLAGS)
            files.add(os.fstat(array("i", rights[0][2])[0]).st_ino)
            assert pipe.take_record(message, rights)[1] == bytes(length)
    assert len(files) == 1


def picture_files() -> set[int]:
    paths = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    return {
        os.stat(path).st_ino for path in paths if os.path.exists(path) and "memfd:frame" in os.readlink(path)
    }


def test_a_daemon_that_does_not_read_costs_no_new_file_for_each_attempt(pair: Pair) -> None:
    _, theirs = pair
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
    with closing(pipe.Sender(theirs)) as sender:
        with pytest.raises(BlockingIOError):
            for _ in range(1000):
                sender.send(frame(), b"picture")
        before = picture_files()
        for _ in range(3):
            with pytest.raises(BlockingIOError):
                sender.send(frame(), b"picture")
        assert picture_files() == before
        assert len(before) == pipe.MOST_SHEETS


@pytest.mark.parametrize(
    ("message", "picture", "reason"),
    [
        (b"\x01", b"picture", "cannot be read"),
        (pipe.encode(frame(jpeg_bytes=MAX_JPEG_BYTES + 1)), b"picture", "which is not 1.."),
        (pipe.encode(frame(jpeg_bytes=0)), b"picture", "which is not 1.."),
        (pipe.encode(frame(jpeg_bytes=8)), b"picture", "of 7 bytes from the capture process, announced as 8"),
        (pipe.encode(frame()), None, "a frame with 0 pictures"),
    ],
    ids=["no header", "oversize", "empty", "shorter than announced", "without its picture"],
)
def test_what_is_no_record_is_refused_and_leaves_no_descriptor_open(
    pair: Pair, message: bytes, picture: bytes | None, reason: str
) -> None:
    ours, theirs = pair
    before = open_descriptors()
    rights = []
    if picture is not None:
        fd = os.memfd_create("frame")
        os.write(fd, picture)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", [fd]))]
    theirs.sendmsg([message], rights)
    if picture is not None:
        os.close(fd)
    with pytest.raises(PipeError, match=reason):
        received(ours)
    assert open_descriptors() == before


def test_a_daemon_that_does_not_read_never_holds_the_capture_up(pair: Pair) -> None:
    """The camera must be drained always: old frames are dropped and counted, and the newest still comes."""
    ours, theirs = pair
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
    outbox = Outbox(theirs)
    for sequence in range(1, 1001):
        outbox.put(accepted(sequence, bytes(1000)))
    headers: list[pipe.Frame] = []
    while not headers or headers[-1].sequence < 1000:
        header, _ = received(ours)
        assert isinstance(header, pipe.Frame)
        headers.append(header)
    sequences = [header.sequence for header in headers]
    assert sequences == sorted(sequences)
    assert sequences[-QUEUED_FRAMES:] == list(range(1001 - QUEUED_FRAMES, 1001))
    assert headers[-1].dropped == 1000 - len(headers) > 900


def test_a_fault_is_told_behind_the_frames_before_it_and_survives_the_dropping_of_frames(pair: Pair) -> None:
    ours, theirs = pair
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    outbox = Outbox(theirs)
    for sequence in range(1, 101):
        outbox.put(accepted(sequence, b"picture"))
    outbox.tell(pipe.Fault(fault=CameraFault.BLOCKED, reason="hangs"))
    for sequence in range(101, 201):
        outbox.put(accepted(sequence, b"picture"))
    found: list[pipe.Header] = []
    while not (found and isinstance(found[-1], pipe.Frame) and found[-1].sequence == 200):
        found.append(received(ours)[0])
    faults = [at for at, header in enumerate(found) if isinstance(header, pipe.Fault)]
    assert len(faults) == 1
    assert all(header.sequence <= 100 for header in found[: faults[0]] if isinstance(header, pipe.Frame))


def test_the_capture_process_of_an_http_camera_loads_neither_opencv_nor_trio() -> None:
    """It is started for each reopening, on a machine with four slow cores."""
    script = (
        "import sys, edge_daemon.cameras.capture, edge_daemon.cameras.http_mjpeg\n"
        "sys.exit(bool({'cv2', 'numpy', 'trio'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
