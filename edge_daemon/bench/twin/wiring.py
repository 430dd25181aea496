"""Records on the wiring between a simulated board and the twin: u8 kind, u8 length, payload.

The wiring stands for everything that leaves a board except its serial line: step pulses to the drives, USB to
the phone, and what comes back from them.
"""

from collections.abc import Iterator

# board to twin
JOINTS = 0x01  # '<iii' setpoint, um
HID_REPORT = 0x02  # report id and bytes
HID_DESCRIPTOR = 0x03  # '<HB' offset, last piece?; bytes
SENSE = 0x04  # the board wants to know what z feels
# twin to board
HID_COMPLETE = 0x81  # u8 count of reports taken by the phone
HID_LEDS = 0x82  # u8
HID_STATE = 0x83  # u8: 0 detached, 1 configured, 2 suspended
PUSHED = 0x84  # '<iii' displacement, um
SENSED = 0x85  # '<ih' z of the drive, um; its load, 1/1000

MAX_PAYLOAD = 255


def record(kind: int, payload: bytes) -> bytes:
    """One record's bytes. Raises ValueError for a payload over 255 bytes."""
    if len(payload) > MAX_PAYLOAD:
        raise ValueError(f"a wiring record of {len(payload)} bytes; {MAX_PAYLOAD} are possible")
    return bytes((kind, len(payload))) + payload


class Records:
    """Collects a stream's bytes and gives them back as (kind, payload)."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Records that are complete with `data`."""
        self._held += data
        while len(self._held) >= 2 and len(self._held) >= 2 + self._held[1]:
            end = 2 + self._held[1]
            kind, payload = self._held[0], bytes(self._held[2:end])
            del self._held[:end]
            yield kind, payload
