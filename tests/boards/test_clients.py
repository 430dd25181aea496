"""The clients: millimetres and fractions become what the wire carries, and what cannot be done is refused first."""

import binascii

import pytest

from edge_daemon.boards import ArgumentRefused, HandClient, HidClient, NotSent
from edge_daemon.boards.hid import TEXT_CHUNK
from firmware import wire


@pytest.fixture
def hand(pty_board, supervised):
    return supervised(pty_board)


@pytest.fixture
def hid(hid_pty_board, supervised):
    return supervised(hid_pty_board, kind="hid")


# -- hand --------------------------------------------------------------------------------------------------------


async def test_a_tap_goes_out_in_micrometres(hand, pty_board, clock):
    async with hand as board:
        done = await HandClient(board).tap(1, 35.5, 71.25, 5.0, -1.2, 80)
    (args,) = pty_board.core.started
    assert wire.unpack_args(wire.OP_TAP, args) == (35500, 71250, 5000, -1200, 80)
    assert done.contact_ns is not None


async def test_a_swipe_goes_out_with_a_depth_at_each_end(hand, pty_board, clock):
    async with hand as board:
        await HandClient(board).swipe(1, 10, 20, -1.2, 30, 120, -1.15, 5, 300)
    (args,) = pty_board.core.started
    assert wire.unpack_args(wire.OP_SWIPE, args) == (10000, 20000, -1200, 30000, 120000, -1150, 5000, 300)


async def test_home_park_and_move_number_themselves_apart_from_given_ids(hand, pty_board, clock):
    async with hand as board:
        client = HandClient(board)
        await client.home()
        await client.park(0, 150, 20)
        await client.move(1, 2, 3)
        ids = [
            wire.unpack_body(wire.CMD, entry.frame.body)[0]
            for entry in board.frame_log.entries()
            if entry.sent and entry.frame.type == wire.CMD
        ]
    assert ids == sorted(set(ids))
    assert all(cmd_id >> 63 for cmd_id in ids)
    assert [len(args) for args in pty_board.core.started] == [0, 12, 12]


async def test_limits_are_what_the_board_announced_and_stay_known_while_it_is_away(hand, pty_board, clock):
    async with hand as board:
        client = HandClient(board)
        pty_board.unplug()
        assert client.limits.x_max_mm == 100.0
        assert client.limits.v_max_mm_s == 200


@pytest.mark.parametrize("place", [float("nan"), float("inf")])
async def test_a_place_that_is_none_is_refused_before_anything_is_sent(board_of, pty_board, place):
    with pytest.raises(ArgumentRefused, match="y_mm"):
        await HandClient(board_of(pty_board)).tap(1, 1.0, place, 5.0, -1.0, 80)


async def test_a_dwell_that_the_wire_cannot_carry_is_refused_not_clamped(board_of, pty_board):
    with pytest.raises(ArgumentRefused, match="65536"):
        await HandClient(board_of(pty_board)).tap(1, 1.0, 1.0, 5.0, -1.0, 65536)


# -- hid ---------------------------------------------------------------------------------------------------------


async def test_a_key_goes_out_as_its_index_and_only_if_the_board_has_it(hid, hid_pty_board, clock):
    async with hid as board:
        client = HidClient(board)
        assert client.keys == ("home", "back", "enter")
        await client.key(1, "enter")
        with pytest.raises(ArgumentRefused, match="home, back, enter"):
            await client.key(2, "power")
    assert hid_pty_board.core.started == [bytes([2])]


async def test_text_is_loaded_in_chunks_and_typed_by_one_command_that_carries_its_checksum(
    hid, hid_pty_board, clock
):
    text = "Grüße " * 40
    async with hid as board:
        await HidClient(board).text(1, text)
    utf8 = text.encode()
    assert len(utf8) > TEXT_CHUNK
    loads = [utf8[at : at + TEXT_CHUNK] for at in range(0, len(utf8), TEXT_CHUNK)]
    offsets = range(0, len(utf8), TEXT_CHUNK)
    assert bytes(hid_pty_board.core.loaded) == b"".join(
        wire.pack_args(wire.OP_TEXT_LOAD, offset, tail=load)
        for offset, load in zip(offsets, loads, strict=True)
    )
    (go,) = hid_pty_board.core.started
    assert wire.unpack_args(wire.OP_TEXT_GO, go) == (len(utf8), binascii.crc32(utf8))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("abc\u4e2d", r"character 3 of the text, counted from 0, cannot be typed with the de layout"),
        ("", "0 bytes"),
        ("a" * 401, "401 bytes"),
    ],
)
async def test_text_that_cannot_be_typed_as_a_whole_is_refused_before_anything_is_typed(
    hid, hid_pty_board, clock, text, words
):
    async with hid as board:
        with pytest.raises(ArgumentRefused, match=words):
            await HidClient(board).text(1, text)
    assert hid_pty_board.core.loaded == b""
    assert hid_pty_board.core.started == []


async def test_the_charset_is_the_layouts(hid, clock):
    async with hid as board:
        charset = HidClient(board).charset()
    assert set("aZ09ß@€") <= charset
    assert "\u4e2d" not in charset


async def test_touches_are_fractions_of_the_digitizer(hid, hid_pty_board, clock):
    async with hid as board:
        client = HidClient(board)
        await client.tap(1, 0.0, 1.0, 50)
        await client.swipe(2, 0.5, 0.25, 1, 0, 300)
        with pytest.raises(ArgumentRefused, match=r"x is 1\.01"):
            await client.tap(3, 1.01, 0.5, 50)
    tap, swipe = hid_pty_board.core.started
    assert wire.unpack_args(wire.OP_HID_TAP, tap) == (0, 32767, 50)
    assert wire.unpack_args(wire.OP_HID_SWIPE, swipe) == (16384, 8192, 32767, 0, 300)


async def test_what_was_decided_for_another_boot_is_not_sent_by_any_operation(hid, hid_pty_board, clock):
    other_boot = hid_pty_board.boot_id + 1
    async with hid as board:
        client = HidClient(board)
        for operation in (
            lambda boot: client.key(1, "home", boot_id=boot),
            lambda boot: client.tap(2, 0.5, 0.5, 50, boot_id=boot),
            lambda boot: client.swipe(3, 0, 0, 1, 1, 300, boot_id=boot),
            lambda boot: client.text(4, "a", before_go=lambda: boot),
        ):
            with pytest.raises(NotSent, match="restarted since"):
                await operation(other_boot)
            assert hid_pty_board.core.started == []
        await client.text(5, "a", before_go=lambda: hid_pty_board.boot_id)
    assert len(hid_pty_board.core.started) == 1


async def test_a_hand_gets_nothing_that_was_decided_for_another_boot(hand, pty_board, clock):
    async with hand as board:
        client = HandClient(board)
        with pytest.raises(NotSent, match="restarted since"):
            await client.tap(1, 1, 1, 5, -1, 80, boot_id=pty_board.boot_id + 1)
        with pytest.raises(NotSent, match="restarted since"):
            await client.swipe(2, 1, 1, -1, 9, 9, -1, 5, 300, boot_id=pty_board.boot_id + 1)
    assert pty_board.core.started == []


async def test_before_the_board_was_ever_online_nothing_is_claimed_of_it(board_of, hid_pty_board):
    client = HidClient(board_of(hid_pty_board, kind="hid"))
    assert (client.keys, client.charset()) == ((), frozenset())
    with pytest.raises(NotSent):
        await client.key(1, "home")
