"""A person's word on a receipt: over the staff socket, and on its way to planes of each version."""

import msgspec
import pytest

from edge_daemon.contract import Actor, ReceiptQuery, Refused, Resolution
from edge_daemon.upstream import connect_staff
from edge_daemon.upstream.window import Window

STAFF = Actor(kind="staff", id="jo")
KEY = "k-1"


def unknown(rig, key: str = KEY) -> None:
    """What a plane has been told: nobody can tell."""
    rig.record(key)
    entry = rig.ledger["phone-1", key]
    entry.receipt = msgspec.structs.replace(
        entry.receipt, status="failed", reason="outcome_unknown", requires_manual_review=True
    )


async def hear(peer, kind: str) -> dict:
    while (message := await peer.hear()) is not None:
        if message["type"] == kind:
            return message
    raise AssertionError(f"no {kind} came")


async def test_staff_find_a_review_and_settle_it(edge) -> None:
    unknown(edge.rig)
    edge.rig.record("done")
    async with connect_staff(edge.staff_socket, "jo") as staff:
        (receipt,) = (await staff.list_receipts(ReceiptQuery(needs_review=True))).receipts
        answer = await staff.resolve_receipt("phone-1", KEY, "committed", "the app is open", STAFF)
        assert answer.receipt is not None
        assert answer.receipt.resolution is not None
        assert answer.receipt.resolution.note == "the app is open"
        assert (
            msgspec.structs.replace(answer.receipt, resolution=None, requires_manual_review=True) == receipt
        )
        assert (await staff.list_receipts(ReceiptQuery(needs_review=True))).receipts == ()
        with pytest.raises(Refused, match="needs no review"):
            await staff.resolve_receipt("phone-1", "done", "committed", "sure", STAFF)


async def test_pages_follow_each_other(edge) -> None:
    edge.rig.record(*(f"k-{number}" for number in range(5)))
    async with connect_staff(edge.staff_socket, "jo") as staff:
        found, cursor = [], None
        while len(found) < 5:
            page = await staff.list_receipts(ReceiptQuery(limit=2, cursor=cursor))
            found += [receipt.idempotency_key for receipt in page.receipts]
            cursor = page.next
        assert cursor is None
        assert found == [f"k-{number}" for number in range(5)]


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"note": ""}, "invalid_argument", "note"),
        ({"note": "two\nlines"}, "invalid_argument", "note"),
        ({"note": "x" * 501}, "invalid_argument", "note"),
        ({"outcome": "maybe"}, "invalid_argument", "outcome"),
        ({"actor": Actor(kind="run")}, "permission_denied", "actor.kind"),
    ],
)
async def test_a_word_that_is_none_is_refused_by_field(edge, changes, code, field) -> None:
    unknown(edge.rig)
    said = {"outcome": "committed", "note": "looked", "actor": STAFF, **changes}
    async with connect_staff(edge.staff_socket, "jo") as staff:
        with pytest.raises(Refused) as refused:
            await staff.resolve_receipt("phone-1", KEY, **said)
    assert (refused.value.info.code, refused.value.info.field) == (code, field)
    assert edge.rig.ledger["phone-1", KEY].receipt.requires_manual_review


async def test_a_plane_neither_lists_nor_resolves(edge) -> None:
    async with edge.raw() as peer:
        await peer.hello(protocol=3)
        await peer.say({"type": "listReceipts", "id": 1})
        assert (await hear(peer, "error"))["error"]["code"] == "permission_denied"


async def test_staff_of_an_earlier_version_have_no_such_requests(edge) -> None:
    async with edge.raw(edge.staff_socket) as peer:
        await peer.hear()
        await peer.say({"type": "staffHello", "protocol": 2, "staffId": "jo"})
        assert (await peer.hear())["type"] == "welcome"
        await peer.say({"type": "listReceipts", "id": 1})
        refused = await peer.hear()
        assert (refused["type"], refused.get("replyTo")) == ("error", 1)
        assert refused["error"]["code"] == "protocol_error"


@pytest.mark.parametrize("protocol", [1, 2, 3])
async def test_the_plane_hears_once_more_what_it_had_acknowledged(edge, protocol) -> None:
    unknown(edge.rig)
    async with edge.raw() as peer:
        await peer.hello(protocol=protocol)
        first = (await hear(peer, "receipt"))["receipt"]
        await peer.say({"type": "ackReceipt", "deviceId": "phone-1", "idempotencyKey": KEY})
        await edge.rig.wait_until(lambda: edge.rig.outbox == [])
        async with connect_staff(edge.staff_socket, "jo") as staff:
            await staff.resolve_receipt("phone-1", KEY, "not_executed", "the stylus hit the bezel", STAFF)
        second = (await hear(peer, "receipt"))["receipt"]
        assert first["requiresManualReview"]
        assert "requiresManualReview" not in second
        assert second["reason"] == "outcome_unknown"
        assert ("resolution" in second) == (protocol == 3)
        ack = {"type": "ackReceipt", "deviceId": "phone-1", "idempotencyKey": KEY}
        await peer.say({**ack, "resolved": True} if protocol == 3 else ack)
        await edge.rig.wait_until(lambda: edge.rig.outbox == [])


@pytest.mark.parametrize("protocol", [2, 3])
async def test_an_acknowledgement_on_its_way_is_of_what_it_answers(edge, protocol) -> None:
    unknown(edge.rig)
    ack = {"type": "ackReceipt", "deviceId": "phone-1", "idempotencyKey": KEY}
    async with edge.raw() as peer:
        await peer.hello(protocol=protocol)
        await hear(peer, "receipt")
        async with connect_staff(edge.staff_socket, "jo") as staff:
            await staff.resolve_receipt("phone-1", KEY, "committed", "looked", STAFF)
        await hear(peer, "receipt")
        await peer.say(ack)  # of the first
        await peer.still_serves()
        assert edge.rig.outbox == [("phone-1", KEY)]
    async with edge.raw() as peer:
        await peer.hello(protocol=protocol)
        assert "requiresManualReview" not in (await hear(peer, "receipt"))["receipt"]


async def test_a_welcome_says_why_the_epoch_was_raised_to_whoever_can_read_it(edge) -> None:
    edge.rig.epoch_raised = "the ledger file was missing"
    for protocol, told in ((2, None), (3, "the ledger file was missing")):
        async with edge.raw() as peer:
            assert (await peer.hello(protocol=protocol)).get("epochRaised") == told
    async with connect_staff(edge.staff_socket, "jo") as staff:
        assert staff.epoch_raised == "the ledger file was missing"


def test_a_receipt_goes_out_once_with_each_word_and_the_window_stays_bounded(rig) -> None:
    unknown(rig, "a")
    rig.record("b", "c")
    a, b, c = (rig.ledger["phone-1", key].receipt for key in ("a", "b", "c"))
    resolution = msgspec.convert(
        {
            "outcome": "committed",
            "note": "looked",
            "actor": {"kind": "staff"},
            "resolvedAt": "2026-03-01T10:00:00.000Z",
            "clockSynced": True,
            "bootId": "boot",
            "resolvedNs": 1,
        },
        Resolution,
    )
    resolved = msgspec.structs.replace(a, resolution=resolution, requires_manual_review=False)
    window = Window(2)
    assert [window.take(one) for one in (a, b, c, a)] == [True, True, False, False]
    assert [window.take(one) for one in (resolved, resolved)] == [True, False]
    name = ("phone-1", "a")
    assert not window.acknowledged(name)
    window.settled(name)
    assert not window.take(c)
    assert window.acknowledged(name)
    window.settled(name)
    assert window.take(c)
