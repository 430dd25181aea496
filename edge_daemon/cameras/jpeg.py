"""The little about JPEG that the capture process must know without decoding: is it whole, and how large is
it."""

from edge_daemon.cameras.errors import BadPicture

MAX_JPEG_BYTES = 8 * 1024 * 1024
"""Four times a 4K picture at quality 90. Anything larger is a broken length, not a picture."""

_SOI = b"\xff\xd8"
_EOI = b"\xff\xd9"
_SOS = 0xDA
# SOF0..SOF15 carry the size; C4 (DHT), C8 (JPG) and CC (DAC) share their number range but are no frame
# headers.
_FRAME_HEADERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD9)})


def whole_jpeg(data: bytes | bytearray) -> bytes | bytearray:
    """`data` without the zero bytes some drivers pad with.

    Raises BadPicture when it does not begin with SOI and end with EOI, i.e. when it was cut.
    """
    trimmed = data.rstrip(b"\x00") if data.endswith(b"\x00") else data
    if not trimmed.startswith(_SOI):
        raise BadPicture(
            f"{len(data)} bytes that do not begin as a JPEG (first {data[:4].hex(' ') or 'none'})"
        )
    if not trimmed.endswith(_EOI):
        raise BadPicture(f"a JPEG of {len(data)} bytes without its end marker: it was cut on the way")
    return trimmed


def jpeg_size(data: bytes | bytearray) -> tuple[int, int]:
    """(width, height) from the frame header (ITU-T T.81, B.2.2). Raises BadPicture when there is none."""
    at = 2
    while at + 4 <= len(data):
        if data[at] != 0xFF:
            break
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
            continue
        if marker in _WITHOUT_LENGTH:
            at += 2
            continue
        if marker == _SOS:
            break
        if marker in _FRAME_HEADERS:
            if at + 9 > len(data):
                break
            height = int.from_bytes(data[at + 5 : at + 7], "big")
            width = int.from_bytes(data[at + 7 : at + 9], "big")
            if width and height:
                return width, height
            break
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    raise BadPicture(f"a JPEG of {len(data)} bytes without a readable frame header")
