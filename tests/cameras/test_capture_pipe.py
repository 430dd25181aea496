import socket
import struct
import subprocess
import sys

import pytest

from edge_daemon.cameras import pipe
from edge_daemon.cameras.capture import QUEUED_FRAMES, Outbox
from edge_daemon.cameras.errors import PipeError
from edge_daemon.cameras.intake import Accepted
from edge_daemon.cameras.jpeg import MAX_JPEG_BYTES

FRAME = pipe.Frame(sequence=7, exposed_ns=1, received_ns=2, width=64, height=48, crc32=3, dropped=0, broken=0)
RECORDS = [(pipe.Opened(notes=("a note",)), b""), (FRAME, b"picture"), (pipe.Fault(reason="why"), b"")]
STREAM = b"".join(pipe.encode(header, jpeg) for header, jpeg in RECORDS)


def test_records_are_the_same_wherever_the_stream_is_split() -> None:
    for at in range(len(STREAM) + 1):
        reader = pipe.RecordReader()
        assert reader.feed(STREAM[:at]) + reader.feed(STREAM[at:]) == RECORDS


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (struct.pack(">II", 4097, 0), "more than 4096"),
        (struct.pack(">II", 10, MAX_JPEG_BYTES + 1), "more than 4096"),
        (struct.pack(">II", 1, 0) + b"\x01", "cannot be read"),
    ],
)
def test_bytes_that_are_no_record_are_refused_before_they_are_kept(data: bytes, reason: str) -> None:
    with pytest.raises(PipeError, match=reason):
        pipe.RecordReader().feed(data)


def test_a_daemon_that_does_not_read_never_holds_the_capture_up() -> None:
    """The camera must be drained always: old frames are dropped and counted, and the newest still comes."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        outbox = Outbox(theirs)
        outbox.start()
        for sequence in range(1, 101):
            outbox.put(Accepted(sequence, sequence, sequence, 64, 48, 0, 0, bytes(100_000)))
        reader = pipe.RecordReader()
        headers: list[pipe.Frame] = []
        while not headers or headers[-1].sequence < 100:
            headers += [
                header for header, _ in reader.feed(ours.recv(1 << 20)) if isinstance(header, pipe.Frame)
            ]
        outbox.finish()
    sequences = [header.sequence for header in headers]
    assert sequences == sorted(sequences)
    assert sequences[-QUEUED_FRAMES:] == list(range(101 - QUEUED_FRAMES, 101))
    assert headers[-1].dropped == 100 - len(headers) > 50


def test_the_capture_process_of_an_http_camera_loads_neither_opencv_nor_trio() -> None:
    """It is started for each reopening, on a machine with four slow cores."""
    script = (
        "import sys, edge_daemon.cameras.capture, edge_daemon.cameras.http_mjpeg\n"
        "sys.exit(bool({'cv2', 'numpy', 'trio'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
