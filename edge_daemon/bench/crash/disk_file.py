"""One file of the simulated disk: what programs see, what the card holds, and what lies between the two."""

import random
from collections.abc import Iterator
from typing import Literal

Keep = Literal["nothing", "all", "torn"]
"""What a power cut leaves of unsynced writes; `torn`: each kept, dropped or torn for itself, so also reordered."""

SECTOR_BYTES = 512
"""Written whole or torn at any byte."""

BLOCK_BYTES = 4096
"""What a card rewrites at once, neighbours included, and the page of the kernel's cache."""

_KEPT, _DROPPED = 0.35, 0.7  # the rest is torn
_SPOILED = 0.25
"""The share of torn writes whose whole block is lost: power fails while the card programs it."""

_Change = tuple[int, bytes | None]
"""Bytes written at an offset; None: the file was cut to that length."""


class SimFile:
    """Whoever has it open keeps it when its name goes, as on Linux."""

    __slots__ = ("durable", "name", "seen", "unsynced")

    def __init__(self, name: str, content: bytes = b"") -> None:
        self.name = name
        self.seen = bytearray(content)
        self.durable = bytearray(content)
        self.unsynced: list[_Change] = []

    def write(self, offset: int, data: bytes) -> None:
        self.unsynced.append((offset, data))
        _write(self.seen, offset, data)

    def truncate(self, size: int) -> None:
        self.unsynced.append((size, None))
        _truncate(self.seen, size)

    def sync(self) -> None:
        for offset, data in self.unsynced:
            if data is None:
                _truncate(self.durable, offset)
            else:
                _write(self.durable, offset, data)
        self.unsynced.clear()

    def fail_sync(self, rng: random.Random) -> None:
        """Each dirty page reaches the card or not, and all are clean afterwards: no later sync writes them again.

        That is how Linux does it (https://wiki.postgresql.org/wiki/Fsync_Errors). Programs go on seeing what they
        wrote, or, once the page has been evicted, what the card holds.
        """
        evicted = rng.random() < 0.5
        for start in self._dirty_pages():
            page = slice(start, start + BLOCK_BYTES)
            if rng.random() < 0.5:
                _write(self.durable, start, bytes(self.seen[page]))
            elif evicted:
                seen_bytes = len(self.seen[page])
                self.seen[page] = bytes(self.durable[page]).ljust(seen_bytes, b"\0")[:seen_bytes]
        if len(self.durable) > len(self.seen):
            _truncate(self.durable, len(self.seen))
        self.unsynced.clear()

    def cut_power(self, keep: Keep, rng: random.Random) -> None:
        if keep == "all":
            self.sync()
        elif keep == "torn":
            for change in self.unsynced:
                self._tear(change, rng)
        self.unsynced.clear()
        self.seen = bytearray(self.durable)

    def _tear(self, change: _Change, rng: random.Random) -> None:
        offset, data = change
        fate = rng.random()
        if _KEPT <= fate < _DROPPED:
            return
        if data is None:
            _truncate(self.durable, offset)
        elif fate < _KEPT:
            _write(self.durable, offset, data)
        else:
            for start, piece in _sectors(offset, data):
                _write(
                    self.durable, start, piece[: rng.choice((0, len(piece), rng.randrange(len(piece) + 1)))]
                )
            if rng.random() < _SPOILED:
                self._spoil_block_of(offset + rng.randrange(len(data)), rng)

    def _spoil_block_of(self, offset: int, rng: random.Random) -> None:
        start = offset - offset % BLOCK_BYTES
        held = len(self.durable[start : start + BLOCK_BYTES])
        self.durable[start : start + held] = rng.randbytes(held)

    def _dirty_pages(self) -> list[int]:
        """Their offsets."""
        pages: set[int] = set()
        for offset, data in self.unsynced:
            if data:
                pages.update(range(offset // BLOCK_BYTES, (offset + len(data) - 1) // BLOCK_BYTES + 1))
        return [page * BLOCK_BYTES for page in sorted(pages) if page * BLOCK_BYTES < len(self.seen)]


def _write(content: bytearray, offset: int, data: bytes) -> None:
    if not data:
        return
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


def _truncate(content: bytearray, size: int) -> None:
    if size <= len(content):
        del content[size:]
    else:
        content.extend(bytes(size - len(content)))


def _sectors(offset: int, data: bytes) -> Iterator[tuple[int, bytes]]:
    start = 0
    while start < len(data):
        size = SECTOR_BYTES - (offset + start) % SECTOR_BYTES
        yield offset + start, data[start : start + size]
        start += size
