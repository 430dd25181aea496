"""Whose action it was that a phone felt: its log held against what the plane asked for. Pure."""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from edge_daemon.bench.crash.real_notes import Entry, Felt, PhoneLog, Symbol
from edge_daemon.bench.crash.real_wishes import STARTS, number_at
from edge_daemon.bench.link.presses import SAME_PLACE_UM


class _Found:
    """What was felt of each key, and what of none."""

    def __init__(self) -> None:
        self.of_key: dict[str, Felt] = {}
        self.strays: list[str] = []

    def add(self, entry: Entry, whole: bool, last_ns: int) -> None:
        felt = self.of_key.get(entry.key, Felt())
        self.of_key[entry.key] = Felt(felt.times + 1, felt.wholes + whole, max(felt.last_ns, last_ns))


def felt_by(entries: Sequence[Entry], log: PhoneLog) -> tuple[dict[str, Felt], list[str]]:
    """What one phone felt of each key of its device, and a phrase for each thing that belongs to none.

    entries: the device's, in the order in which they were first sent.
    """
    found = _Found()
    found.strays += log.others
    _contacts(entries, log, found)
    _texts(entries, log, found)
    _strokes(entries, log, found)
    return found.of_key, found.strays


def _contacts(entries: Sequence[Entry], log: PhoneLog, found: _Found) -> None:
    by_number = {entry.wish.number: entry for entry in entries if entry.wish.board == "hand"}
    for contact in log.contacts:
        number = number_at(*contact.begin_um)
        entry = None if number is None else by_number.get(number)
        if entry is None:
            found.strays.append(f"a contact at {contact.begin_um} µm, the place of no key")
        else:
            whole = math.dist(contact.end_um, entry.wish.end_um) <= SAME_PLACE_UM
            if entry.wish.kind == "tap" and not whole:
                found.strays.append(f"the tap {entry.key} was drawn to {contact.end_um} µm")
            found.add(entry, whole, contact.last_ns)


def _texts(entries: Sequence[Entry], log: PhoneLog, found: _Found) -> None:
    """What was typed falls into pieces, each the whole of a text or the beginning of one."""
    texts = [entry for entry in entries if entry.wish.kind == "text"]
    for piece in _pieces(log.typed):
        typed = "".join(symbol.name for symbol in piece)
        # Two texts of the same first characters: the board types the later one only when it has done the earlier.
        may_be = [it for it in texts if it.wish.text.startswith(typed) and it.first_sent_ns <= piece[0].at_ns]
        if not may_be:
            found.strays.append(f"{len(typed)} characters that begin no text")
        else:
            found.add(may_be[-1], typed == may_be[-1].wish.text, piece[-1].at_ns)


def _pieces(typed: Sequence[Symbol]) -> Iterator[list[Symbol]]:
    number = 0

    def piece_of(symbol: Symbol) -> int:
        nonlocal number
        number += symbol.name in STARTS
        return number

    for _, piece in groupby(typed, piece_of):
        yield list(piece)


def _strokes(entries: Sequence[Entry], log: PhoneLog, found: _Found) -> None:
    """A key is asked for only when its former stroke is over: a stroke belongs to the last one that was sent."""
    for stroke in log.strokes:
        may_be = [it for it in entries if it.wish.name == stroke.name and it.first_sent_ns <= stroke.at_ns]
        if may_be:
            found.add(may_be[-1], True, stroke.at_ns)
        else:
            found.strays.append(f"the key {stroke.name}, which nobody had asked for")
