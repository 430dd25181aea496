"""The keyboard layouts: every character of a charset is made by its strokes, and only real keys are used."""

import string
import unicodedata

import pytest

from edge_daemon.bench.twin import hid_layouts
from firmware import wire
from firmware.hid import layouts

# What Android makes of a dead key and a space.
ACCENTS_ALONE = "ˋ´ˆ˜¨"
LAYOUT_IDS = sorted(layouts.LAYOUTS)


def strokes(layout_id: int, char: str) -> list[tuple[int, int]]:
    data = layouts.LAYOUTS[layout_id].steps(char)
    return [(data[i] & (layouts.SHIFT | layouts.ALTGR), data[i + 1]) for i in range(0, len(data), 2)]


# Written down from the layouts as they are engraved, not from our tables.
KNOWN = [
    (wire.LAYOUT_US, "a", [(0, 0x04)]),
    (wire.LAYOUT_US, "Z", [(1, 0x1D)]),
    (wire.LAYOUT_US, "@", [(1, 0x1F)]),
    (wire.LAYOUT_US, "~", [(1, 0x35)]),
    (wire.LAYOUT_US, "?", [(1, 0x38)]),
    (wire.LAYOUT_US, " ", [(0, 0x2C)]),
    (wire.LAYOUT_US, "\n", [(0, 0x28)]),
    (wire.LAYOUT_UK, "£", [(1, 0x20)]),
    (wire.LAYOUT_UK, "@", [(1, 0x34)]),
    (wire.LAYOUT_UK, '"', [(1, 0x1F)]),
    (wire.LAYOUT_UK, "#", [(0, 0x31)]),
    (wire.LAYOUT_UK, "~", [(1, 0x31)]),
    (wire.LAYOUT_UK, "\\", [(0, 0x64)]),
    (wire.LAYOUT_UK, "|", [(1, 0x64)]),
    (wire.LAYOUT_UK, "€", [(2, 0x21)]),
    (wire.LAYOUT_UK, "é", [(2, 0x08)]),
    (wire.LAYOUT_UK, "è", [(0, 0x35), (0, 0x08)]),
    (wire.LAYOUT_DE, "z", [(0, 0x1C)]),
    (wire.LAYOUT_DE, "Y", [(1, 0x1D)]),
    (wire.LAYOUT_DE, "ß", [(0, 0x2D)]),
    (wire.LAYOUT_DE, "Ü", [(1, 0x2F)]),
    (wire.LAYOUT_DE, "@", [(2, 0x14)]),
    (wire.LAYOUT_DE, "{", [(2, 0x24)]),
    (wire.LAYOUT_DE, "\\", [(2, 0x2D)]),
    (wire.LAYOUT_DE, "|", [(2, 0x64)]),
    (wire.LAYOUT_DE, "é", [(0, 0x2E), (0, 0x08)]),
    (wire.LAYOUT_DE, "À", [(1, 0x2E), (1, 0x04)]),
    (wire.LAYOUT_FR, "a", [(0, 0x14)]),
    (wire.LAYOUT_FR, "M", [(1, 0x33)]),
    (wire.LAYOUT_FR, "1", [(1, 0x1E)]),
    (wire.LAYOUT_FR, "é", [(0, 0x1F)]),
    (wire.LAYOUT_FR, ".", [(1, 0x36)]),
    (wire.LAYOUT_FR, "@", [(2, 0x27)]),
    (wire.LAYOUT_FR, "ê", [(0, 0x2F), (0, 0x08)]),
    (wire.LAYOUT_FR, "Ï", [(1, 0x2F), (1, 0x0C)]),
]


@pytest.mark.parametrize(("layout_id", "char", "expected"), KNOWN)
def test_a_character_is_made_by_the_keys_that_are_engraved_for_it(layout_id, char, expected):
    assert strokes(layout_id, char) == expected


@pytest.mark.parametrize("layout_id", LAYOUT_IDS)
def test_no_two_characters_share_their_strokes(layout_id):
    chars = layouts.charset(layout_id)
    assert len({tuple(strokes(layout_id, char)) for char in chars}) == len(chars) == len(set(chars))


@pytest.mark.parametrize("layout_id", LAYOUT_IDS)
def test_what_a_dead_key_composes_is_what_unicode_composes(layout_id):
    """All characters behind one dead key are their bases with one and the same accent."""
    accents: dict[tuple[int, int], set[str]] = {}
    for char in layouts.charset(layout_id):
        keys = strokes(layout_id, char)
        if len(keys) == 2 and char not in ACCENTS_ALONE:
            base, accent = unicodedata.normalize("NFD", char)
            assert strokes(layout_id, base) == keys[1:]
            accents.setdefault(keys[0], set()).add(accent)
    assert all(len(found) == 1 for found in accents.values())


@pytest.mark.parametrize("layout_id", LAYOUT_IDS)
def test_caps_lock_matters_for_exactly_the_keys_whose_shift_is_the_capital(layout_id):
    layout = layouts.LAYOUTS[layout_id]
    for char in layouts.charset(layout_id):
        data = layout.steps(char)
        partner = char.swapcase()
        other = layout.steps(partner)
        has_partner = len(partner) == 1 and partner != char and len(other) == 2 == len(data)
        same_key = has_partner and other[1] == data[1] and (other[0] ^ data[0]) == layouts.SHIFT
        if len(data) == 2:
            assert bool(data[0] & layouts.CAPS) == same_key, char


@pytest.mark.parametrize("layout_id", LAYOUT_IDS)
def test_every_layout_types_plain_ascii_or_leaves_out_what_android_makes_differently(layout_id):
    missing = {chr(code) for code in range(0x20, 0x7F)} - set(layouts.charset(layout_id))
    assert missing == ({"`"} if layout_id == wire.LAYOUT_DE else set())


@pytest.mark.parametrize("char", ["\t", "\x00", "\u4e2d", "😀", "", "ab"])
def test_what_no_layout_has_gives_no_strokes(char):
    assert all(layouts.LAYOUTS[layout_id].steps(char) == b"" for layout_id in LAYOUT_IDS)


@pytest.mark.parametrize("layout_id", LAYOUT_IDS)
def test_a_board_can_type_all_that_its_layout_has_on_its_keys_and_behind_its_dead_keys(layout_id):
    """Against the simulated phone's tables, which were written down independently."""
    on_keys: set[str] = set()
    dead: set[str] = set()
    for levels in hid_layouts.LAYOUTS[layouts.LAYOUTS[layout_id].name].values():
        for char in filter(None, levels):
            (dead if unicodedata.combining(char) else on_keys).add(char)
    composed = {
        unicodedata.normalize("NFC", letter + mark) for letter in string.ascii_letters for mark in dead
    }
    composed = {char for char in composed if len(char) == 1}
    alone = {hid_layouts.DEAD_ALONE[mark] for mark in dead}
    assert set(layouts.charset(layout_id)) == on_keys | composed | alone | {"\n"}
