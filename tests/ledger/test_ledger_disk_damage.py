"""A damaged, shortened or old ledger: refused with the reason, or true.

Not told apart from the truth: a log whose last two transactions were damaged, or that was cut off at its end, for that
is what a power cut leaves of what was never synced.
"""

import itertools
import sqlite3
import struct
from collections.abc import Iterable
from contextlib import closing
from itertools import pairwise

import pytest

from edge_daemon.bench.crash.disk import Snapshot
from edge_daemon.contract import Refused
from edge_daemon.ledger import Accepted, Existing, Hold, Ledger, LedgerCorrupt, StorageUnavailable, schema
from edge_daemon.ledger.identity import read_identity
from edge_daemon.ledger.log_check import missing_transactions
from edge_daemon.ledger.rows import Digests
from edge_daemon.ledger.spent import DIGEST_BYTES, spent_form

FILE, LOG, WITNESS = "/state/ledger.db", "/state/ledger.db-wal", "/state/ledger.db.witness"
KEYS = [f"key-{number}" for number in range(12)]
SPENT = [f"spent-{number}" for number in range(12)]
HOLD = Hold("a check", "technician")
TOKEN = 2**33 + 5
LEAF, LEAF_WITHOUT_ROWID = 13, 10
"""Kinds of pages, https://www.sqlite.org/fileformat2.html#b_tree_pages."""
BITS = tuple(1 << bit for bit in range(8))
FRAME_BYTES = 24 + schema.PAGE_BYTES


@pytest.fixture
def simulated(simulated_ledger):
    return simulated_ledger(1)


async def lived(simulated, samples) -> tuple[Snapshot, Snapshot, int]:
    """The disk while the ledger was open, as a crash leaves it, and after it was closed.

    Every KEY is committed, the receipt of every key in SPENT has been removed, phone-1 is held and phone-2 parked.
    And the epoch in which that was.
    """
    async with simulated.open() as ledger:
        await ledger.set_parked("phone-2", True, "a person enters a password")
        await ledger.set_orientation("phone-2", "landscape_left")
        await samples.accept(ledger, samples.pending("another's", "phone-2"), token=TOKEN)
        for key in SPENT:
            await samples.finished(ledger, key, acknowledged=True)
        assert (await ledger.prune(0, 0)).removed == len(SPENT)
        for key in KEYS:
            await samples.finished(ledger, key)
        await ledger.set_hold("phone-1", HOLD)
        await ledger.set_hold("phone-1", None)
        await ledger.set_hold("phone-1", HOLD)
        crashed = simulated.disk.snapshot()
    return crashed, simulated.disk.snapshot(), ledger.epoch


async def is_true_or_refused(simulated, samples, epoch: int, keys: Iterable[str] = KEYS) -> bool:
    """Whether anything was refused. Fails when an answer is wrong, or an action would be done twice."""
    refused = False
    try:
        async with simulated.open("after") as ledger:
            marks_are_true(ledger)
            for key in keys:
                refused |= not await key_is_true(ledger, samples, key, epoch)
            for key in SPENT:
                refused |= not await spent_is_true(ledger, samples, key, epoch)
    except LedgerCorrupt as error:
        assert error.code == "storage_unavailable"
        return True
    return refused


def marks_are_true(ledger: Ledger) -> None:
    assert ledger.hold("phone-1") in (None, HOLD)  # a log cut off at its end may lack the last word
    assert ledger.highest_token("phone-1") == 1
    assert ledger.parked_note("phone-2") == "a person enters a password"
    assert ledger.orientation("phone-2") == "landscape_left"
    assert ledger.highest_token("phone-2") == TOKEN


async def key_is_true(ledger: Ledger, samples, key: str, epoch: int) -> bool:
    try:
        answer = await ledger.lookup("phone-1", key, epoch)
        assert answer.receipt in (None, samples.committed(samples.pending(key)))
        assert answer.found or not answer.known, f"{key}: a false 'not found'"
        again = await samples.accept(ledger, samples.pending(key), token=9)
    except StorageUnavailable:
        return False
    assert answer.receipt is None or again == Existing(answer.receipt)
    return True


async def spent_is_true(ledger: Ledger, samples, key: str, epoch: int) -> bool:
    """Its receipt is gone: nothing is known of it, and it is never taken for a new one."""
    try:
        assert not (await ledger.lookup("phone-1", key, epoch)).known, f"{key}: a false 'not found'"
    except StorageUnavailable:
        pass
    with pytest.raises(Refused) as refused:
        await samples.accept(ledger, samples.pending(key), token=9, epoch=epoch)
    return refused.value.code in ("idempotency_conflict", "outcome_unknown")


def with_flipped(snapshot: Snapshot, path: str, offset: int, bits: int = 0x15) -> Snapshot:
    content = bytearray(snapshot[path])
    content[offset] ^= bits
    return {**snapshot, path: bytes(content)}


async def test_a_flipped_byte_of_the_file_makes_no_answer_wrong(simulated, samples):
    _, closed, epoch = await lived(simulated, samples)
    refusals = 0
    for offset in range(3, len(closed[FILE]), 67):
        simulated.disk.restore(with_flipped(closed, FILE, offset))
        refusals += await is_true_or_refused(simulated, samples, epoch)
    assert refusals > 20


def tables_of(file: bytes) -> sqlite3.Connection:
    """A copy in memory."""
    connection = sqlite3.connect(":memory:")
    connection.deserialize(file[:18] + bytes([1, 1]) + file[20:])  # as a file in no WAL mode: it has no log
    return connection


def used_bytes_of(table: str, file: bytes) -> list[int]:
    """Offsets in a file whose table is one leaf page."""
    with closing(tables_of(file)) as connection:
        ((root,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,))
    start = (root - 1) * schema.PAGE_BYTES
    assert file[start] in (LEAF, LEAF_WITHOUT_ROWID)
    cells, content = struct.unpack_from(">HH", file, start + 3)
    return [*range(start, start + 8 + 2 * cells), *range(start + content, start + schema.PAGE_BYTES)]


@pytest.mark.parametrize("table", ["identity", "device_state"])
async def test_a_bit_flipped_in_what_stands_for_the_whole_ledger_is_refused(simulated, samples, table):
    """Salt, epoch, time lived; fencing tokens, holds, parkings, orientations: at the opening, with the reason."""
    _, closed, epoch = await lived(simulated, samples)
    refused: list[str] = []
    used = used_bytes_of(table, closed[FILE])
    for offset in used:
        for flipped in BITS:
            simulated.disk.restore(with_flipped(closed, FILE, offset, flipped))
            try:
                async with simulated.open("after") as ledger:
                    marks_are_true(ledger)
                    assert ledger.epoch == epoch
                    assert not (await ledger.lookup("phone-1", SPENT[0], epoch)).known
                    assert (await ledger.lookup("phone-1", KEYS[0], epoch)).found
            except LedgerCorrupt as error:
                refused.append(str(error))
    assert len(refused) > 0.95 * len(used) * len(BITS)
    assert any("does not match its checksum" in reason or "not match their" in reason for reason in refused)


async def test_a_bit_flipped_in_the_digests_of_removed_receipts_lets_no_key_act_again(simulated, samples):
    _, closed, epoch = await lived(simulated, samples)
    opened = told = 0
    for offset in used_bytes_of("spent", closed[FILE]):
        for flipped in (1 << offset % 8, 1 << (offset + 4) % 8, 0x15):
            simulated.disk.restore(with_flipped(closed, FILE, offset, flipped))
            try:
                async with simulated.open("after") as ledger:
                    opened += 1
                    whole = [await spent_is_true(ledger, samples, key, epoch) for key in SPENT]
                    told += not all(whole)
            except LedgerCorrupt:
                pass
    # What breaks the order, or the page, is found when the ledger is opened; the rest where its key would stand.
    assert told > 300
    assert told >= 0.9 * opened


async def test_a_bit_flipped_in_how_a_receipt_is_filed_keeps_none_from_its_plane(simulated, samples):
    """Its row's sizes and sorts, its number, and when it was settled, whether acknowledged, whether to be reviewed."""
    _, closed, _ = await lived(simulated, samples)
    file = closed[FILE]
    page = file.index(samples.command.board_uid.encode()) // schema.PAGE_BYTES * schema.PAGE_BYTES
    assert file[page] == LEAF
    (cells,) = struct.unpack_from(">H", file, page + 3)
    starts = struct.unpack_from(f">{cells}H", file, page + 8)
    refused = 0
    for start in starts[:3]:
        for offset in range(page + start, page + start + 18):
            for flipped in BITS:
                simulated.disk.restore(with_flipped(closed, FILE, offset, flipped))
                try:
                    async with simulated.open("after") as ledger:
                        pending = await ledger.pending()
                        outbox = await ledger.unacknowledged(99)
                        damaged = any(ledger.damage(device_id) for device_id in ("phone-1", "phone-2"))
                except StorageUnavailable:
                    refused += 1
                    continue
                if damaged:
                    refused += 1
                else:
                    assert [entry.receipt.idempotency_key for entry in pending] == ["another's"]
                    assert [receipt.idempotency_key for receipt in outbox] == KEYS
    assert refused > 300


async def test_a_key_far_from_a_damaged_digest_is_answered_and_accepted_as_before(simulated, samples):
    _, closed, epoch = await lived(simulated, samples)
    with closing(tables_of(closed[FILE])) as connection:
        digests = [digest for (digest,) in connection.execute("SELECT digest FROM spent ORDER BY digest")]
    last_of_digest = closed[FILE].index(digests[3]) + DIGEST_BYTES - 1
    simulated.disk.restore(with_flipped(closed, FILE, last_of_digest, 1))
    async with simulated.open("after") as ledger:
        answered = refused = 0
        for number in range(60):
            try:
                answer = await ledger.lookup("phone-1", f"new-{number}", epoch)
                assert (answer.known, answer.found) == (True, False)
                assert await samples.accept(ledger, samples.pending(f"new-{number}"), token=9) == Accepted()
                answered += 1
            except LedgerCorrupt as error:
                assert "whether it was used is not known" in str(error)
                refused += 1
        assert answered > 30
        assert refused > 0
        for key in SPENT:
            await spent_is_true(ledger, samples, key, epoch)


async def test_a_key_whose_place_is_beside_a_damaged_digest_keeps_its_receipt(simulated, samples):
    """Its digest would stand before the damaged one, which its own key would then find no more."""
    async with simulated.open() as ledger:
        for key in SPENT:
            await samples.finished(ledger, key, acknowledged=True)
        await ledger.prune(0, 0)
    with closing(tables_of(simulated.disk.snapshot()[FILE])) as connection:
        digest_of = Digests(read_identity(connection, simulated.path).salt).key
    digest, bit, moved = moved_up_in_place(sorted(digest_of("phone-1", key) for key in SPENT))
    names = map("between-{}".format, itertools.count())
    between = next(name for name in names if digest < digest_of("phone-1", name) < moved)
    async with simulated.open() as ledger:
        await samples.finished(ledger, between, acknowledged=True)
        epoch = ledger.epoch
    closed = simulated.disk.snapshot()
    place = closed[FILE].index(spent_form(digest))
    simulated.disk.restore(with_flipped(closed, FILE, place, bit))
    async with simulated.open("after") as ledger:
        with pytest.raises(LedgerCorrupt, match="whether it was used"):
            await ledger.prune(0, 0)
        assert (await ledger.lookup("phone-1", between, epoch)).found
        for key in SPENT:
            await spent_is_true(ledger, samples, key, epoch)


def moved_up_in_place(digests: list[bytes]) -> tuple[bytes, int, bytes]:
    """One of them, the bit of its first byte that is flipped, and what it is then: still before the next."""
    for digest, after in pairwise(digests):
        for bit in BITS:
            moved = bytes([digest[0] ^ bit]) + digest[1:]
            if digest < moved < after:
                return digest, bit, moved
    raise AssertionError("no two of them are far enough apart")


async def test_tables_described_otherwise_are_refused(simulated, samples):
    """In another table no key would be found."""
    _, closed, epoch = await lived(simulated, samples)
    sought = b"fingerprint BLOB NOT NULL,"
    place = closed[FILE].index(sought)
    for offset in range(place, place + len(sought) - 1):
        simulated.disk.restore(with_flipped(closed, FILE, offset))
        if offset < place + len("fingerprint"):
            with pytest.raises(LedgerCorrupt):
                async with simulated.open():
                    pass
        else:
            await is_true_or_refused(simulated, samples, epoch)


async def test_a_flipped_byte_of_the_log_loses_no_receipt_in_silence(simulated, samples):
    crashed, _, epoch = await lived(simulated, samples)
    # Behind the last receipt: three transactions of a frame and its padding.
    receipts_end = len(crashed[LOG]) - 6 * FRAME_BYTES
    offsets = [*range(32), *range(32, receipts_end, 911)]
    refusals = 0
    for offset in offsets:
        simulated.disk.restore(with_flipped(crashed, LOG, offset))
        refusals += await is_true_or_refused(simulated, samples, epoch)
    assert refusals > len(offsets) * 0.9
    simulated.disk.restore(crashed)
    assert not await is_true_or_refused(simulated, samples, epoch)


async def test_a_damaged_log_is_left_as_found(simulated, samples):
    crashed, _, _ = await lived(simulated, samples)
    simulated.disk.restore(with_flipped(crashed, LOG, FRAME_BYTES * 5))
    for _ in range(2):
        with pytest.raises(LedgerCorrupt, match="log is damaged"):
            async with simulated.open():
                pass
        assert len(simulated.disk.snapshot()[LOG]) == len(crashed[LOG])


def test_a_log_begun_over_one_that_is_in_the_file_is_no_damage():
    def frame(page: int, salts: bytes) -> bytes:
        return page.to_bytes(4, "big") + (9).to_bytes(4, "big") + salts + bytes(8) + bytes([page]) * 512

    old = b"".join(frame(page, b"old salt") for page in (1, 2, 3, 4))

    def file(page: int) -> bytes:
        return bytes([page]) * 512

    assert missing_transactions(bytes(32) + old, 0, 512, file) == 0
    assert missing_transactions(bytes(32) + old, 0, 512, lambda page: bytes(512)) == 4
    assert missing_transactions(bytes(32) + bytes(4) + old[4:], 0, 512, file) == 4
    assert missing_transactions(bytes(32) + old, 4, 512, file) == 0
    assert missing_transactions(bytes(32) + old, 1, 512, file) == 3
    begun = frame(1, b"new salt") + old[len(frame(1, b"")) + 8 :]
    assert missing_transactions(bytes(32) + begun, 1, 512, file) == 0
    assert missing_transactions(b"", 0, 512, file) == 0


async def test_a_shortened_file_makes_no_answer_wrong(simulated, samples):
    _, closed, epoch = await lived(simulated, samples)
    for size in range(0, len(closed[FILE]), 1024):
        simulated.disk.restore({**closed, FILE: closed[FILE][:size]})
        refused = await is_true_or_refused(simulated, samples, epoch)
        # Of the last page a part is enough where it holds little, or is not in use.
        assert refused or size > len(closed[FILE]) - schema.PAGE_BYTES


async def test_an_earlier_copy_from_any_moment_of_an_earlier_opening_is_noticed(simulated_ledger, samples):
    """Put back without its witness: beside the present one, or beside none."""
    simulated = simulated_ledger(1)
    copies: list[Snapshot] = []
    simulated.disk.after_hook = lambda op: copies.append(simulated.disk.snapshot())
    async with simulated.open() as ledger:
        await samples.finished(ledger, "early", acknowledged=True)
    simulated.disk.after_hook = None
    async with simulated.open() as ledger:
        for key in KEYS:
            await samples.finished(ledger, key)
        epoch = ledger.epoch
    present = simulated.disk.snapshot()[WITNESS]
    whole = [copy for copy in copies if FILE in copy]
    assert len(whole) > 50
    for copy in whole:
        for witness in ({WITNESS: present}, {}):
            older = {path: copy[path] for path in (FILE, LOG) if path in copy}
            simulated.disk.restore({**older, **witness})
            async with simulated.open("after") as ledger:
                assert ledger.renewed is not None
                assert ledger.epoch > epoch
                for key in ("early", *KEYS):
                    answer = await ledger.lookup("phone-1", key, epoch)
                    assert not answer.known or answer.found
