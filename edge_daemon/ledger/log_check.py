"""Whether SQLite, opening a ledger after a crash, has taken all of its log that was ever synced.

SQLite reads its log up to the first frame whose checksum does not fit, and takes that for the end: right after a power
cut, where only the last transaction can be torn. A block that the card has lost later looks the same, and all receipts
behind it would silently be gone. But they are still there to be seen, with the salts of the same log.
Layout: https://www.sqlite.org/fileformat2.html#walformat
"""

import struct
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

_LOG_HEADER_BYTES = 32
_FRAME_HEADER = struct.Struct(">II8s8x")

UNSYNCED_TRANSACTIONS = 2
"""May stand behind what SQLite takes: the last, torn by the cut; and the rest of one that failed before, partly
overwritten by it."""

_SAMPLE_FRAMES = 16


class _Frame(NamedTuple):
    page: int
    ends_transaction: bool
    salts: bytes
    content: bytes


def missing_transactions(
    log: bytes, taken_frames: int, page_bytes: int, read_page: Callable[[int], bytes]
) -> int:
    """How many synced transactions SQLite has not taken; 0 when the log ends as a power cut may leave it.

    log: as found before SQLite opened it. taken_frames: how many of it SQLite took. read_page: by its number,
    of the ledger file itself.
    """
    frames = list(_frames(log, page_bytes))
    if not frames:
        return 0
    if taken_frames:
        behind = _of_one_log(frames, taken_frames, frames[taken_frames - 1].salts)
        if behind and _is_padding(behind[0], frames[taken_frames - 1]):
            behind = behind[1:]
    else:
        salts, _ = Counter(frame.salts for frame in frames[:_SAMPLE_FRAMES]).most_common(1)[0]
        behind = _of_one_log(frames, 0, salts)
        if _moved(behind, read_page):
            return 0  # a new log was to begin over an old one that is in the file
    transactions = _transactions(behind)
    return transactions if transactions > UNSYNCED_TRANSACTIONS else 0


def _frames(log: bytes, page_bytes: int) -> Iterator[_Frame]:
    size = _FRAME_HEADER.size + page_bytes
    for start in range(_LOG_HEADER_BYTES, len(log) - size + 1, size):
        page, pages_after, salts = _FRAME_HEADER.unpack_from(log, start)
        yield _Frame(page, pages_after != 0, salts, log[start + _FRAME_HEADER.size : start + size])


def _of_one_log(frames: list[_Frame], first: int, salts: bytes) -> list[_Frame]:
    return [frame for frame in frames[first:] if frame.salts == salts]


def _is_padding(frame: _Frame, before: _Frame) -> bool:
    """The last page once more, to the end of the block."""
    return frame.page == before.page and frame.ends_transaction and before.ends_transaction


def _transactions(frames: list[_Frame]) -> int:
    count = 0
    last: _Frame | None = None  # of a transaction, whose padding may follow
    for frame in frames:
        if last is not None and _is_padding(frame, last):
            last = None
        else:
            count += frame.ends_transaction
            last = frame
    return count


def _moved(frames: list[_Frame], read_page: Callable[[int], bytes]) -> bool:
    latest = {frame.page: frame.content for frame in frames}
    # A damaged frame may name a page that no file has.
    return all(page > 0 and read_page(page) == content for page, content in latest.items())
