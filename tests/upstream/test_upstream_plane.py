"""A plane over real sockets: actions, receipts, the outbox, reconnects; the bench's own plane is the other end."""

import itertools
from pathlib import Path

import pytest
import trio

from edge_daemon.bench.plane import Plane, PlaneDisconnected, PlaneError, TcpAddress, open_plane
from edge_daemon.ledger.epoch import first_epoch

TAP = {"type": "tap", "x": 500.0, "y": 250.0}
DISPATCH = {
    "type": "dispatch",
    "deviceId": "phone-1",
    "orgId": "o",
    "actor": {"kind": "run"},
    "lease": {"leaseId": "l", "fencingToken": 1, "remainingMs": 1000},
    "action": TAP,
}


@pytest.fixture(params=["unix", "tcp"])
def address(request, edge) -> Path | TcpAddress:
    return edge.plane_socket if request.param == "unix" else edge.tcp


async def test_an_action_tells_its_stages_and_then_its_receipt(edge, address) -> None:
    async with open_plane("plane-1", address) as plane:
        answer = await plane.dispatch("phone-1", TAP, key="k-1", observed_frame="f-1")
        assert answer.committed
        assert answer.stages == ["accepted", "dispatched", "contact", "hover"]
        assert answer.receipt["frameNotes"]["newerFrames"] == 2
        await edge.rig.wait_until(lambda: edge.rig.acknowledged == [("phone-1", "k-1")])
        assert edge.rig.executed == ["k-1"]
        assert plane.notebook["phone-1", "k-1"] == answer.receipt


async def test_welcome_carries_what_a_plane_must_know(edge, address) -> None:
    async with open_plane("plane-1", address) as plane:
        assert plane.welcome["edgeId"] == "edge-7"
        assert plane.welcome["epoch"] == 3
        assert plane.welcome["ledgerId"] == "ledger-1"
        assert plane.welcome["bootId"] == "boot-1"
        assert set(plane.devices) == {"phone-1", "phone-2"}
        assert plane.welcome["rules"]["outboxWindow"] == 32


async def test_requests_reach_the_rig_in_the_order_they_were_sent(edge) -> None:
    async with edge.raw() as peer:
        await peer.hello()
        keys = [f"k-{n}" for n in range(40)]
        for key in keys:
            await peer.say({**DISPATCH, "id": key, "idempotencyKey": key})
        await peer.say({"type": "getReceipt", "id": "r", "deviceId": "phone-1", "idempotencyKey": keys[-1]})
        while (answer := await peer.hear()).get("replyTo") != "r":
            pass
        assert answer["answer"]["found"]
    assert list(edge.rig.ledger) == [("phone-1", key) for key in keys]


async def test_the_same_key_again_is_answered_and_not_executed(edge) -> None:
    async with open_plane("plane-1", edge.plane_socket) as plane:
        await plane.dispatch("phone-1", TAP, key="k-1")
        again = await plane.dispatch("phone-1", TAP, key="k-1")
        assert again.committed
        assert again.deduplicated
        other = await plane.dispatch("phone-1", {**TAP, "x": 1.0}, key="k-1")
        assert other.error["code"] == "idempotency_conflict"
        assert edge.rig.executed == ["k-1"]


async def test_an_action_goes_on_when_the_plane_is_gone_and_its_receipt_waits(edge, nursery) -> None:
    edge.rig.gate = trio.Event()
    async with open_plane("plane-1", edge.plane_socket) as plane:
        broken = []

        async def act() -> None:
            with pytest.raises(PlaneDisconnected):
                await plane.dispatch("phone-1", TAP, key="k-1")
            broken.append(True)

        nursery.start_soon(act)
        await edge.rig.begun.wait()
        await plane.disconnect()
        edge.rig.gate.set()
        await edge.rig.wait_until(lambda: edge.rig.executed == ["k-1"])
        assert plane.notebook == {}
        await plane.connect()
        answer = await plane.get_receipt("phone-1", "k-1", epoch=3)
        assert answer["receipt"]["status"] == "committed"
        await plane.wait_until(lambda: ("phone-1", "k-1") in plane.notebook)
        assert broken


async def test_a_key_that_never_came_is_found_false(edge) -> None:
    async with open_plane("plane-1", edge.plane_socket) as plane:
        assert await plane.get_receipt("phone-1", "never", epoch=3) == {
            "known": True,
            "found": False,
            "epoch": 3,
            "receipt": None,
        }
        assert (await plane.get_receipt("phone-1", "never", epoch=2))["known"] is False


async def test_receipts_are_sent_again_on_each_connection_until_acknowledged(edge) -> None:
    edge.rig.record("a", "b", "c")
    names = [("phone-1", key) for key in "abc"]
    async with open_plane("plane-1", edge.plane_socket, acknowledge=False) as plane:
        await plane.wait_until(lambda: len(plane.pushed) == 3)
        await plane.reconnect()
        await plane.wait_until(lambda: len(plane.pushed) == 6)
        assert plane.pushed == names + names
        await plane.acknowledge_receipt("phone-1", "b")
        await edge.rig.wait_until(lambda: ("phone-1", "b") in edge.rig.acknowledged)
        await plane.reconnect()
        await plane.wait_until(lambda: len(plane.pushed) == 8)
        assert plane.pushed[6:] == [("phone-1", "a"), ("phone-1", "c")]
        plane.acknowledge = True
        await plane.reconnect()
        await edge.rig.wait_until(lambda: edge.rig.outbox == [])


async def test_no_more_receipts_are_under_way_than_the_window_and_acknowledging_makes_room(edge) -> None:
    keys = [f"k-{n:03d}" for n in range(100)]
    edge.rig.record(*keys)
    async with open_plane("plane-1", edge.plane_socket, acknowledge=False) as plane:
        await plane.wait_until(lambda: len(plane.pushed) == 32)
        await plane.list_devices()  # an answer after the receipts: nothing more was on its way
        assert len(plane.pushed) == 32
        await plane.acknowledge_receipt("phone-1", keys[5])
        await plane.wait_until(lambda: len(plane.pushed) == 33)
        for key in keys:
            await plane.acknowledge_receipt("phone-1", key)
        await plane.wait_until(lambda: len(plane.notebook) == 100)
        assert [key for _, key in plane.pushed] == keys


async def test_acknowledging_twice_or_before_the_push_is_no_error(edge) -> None:
    async with open_plane("plane-1", edge.plane_socket, acknowledge=False) as plane:
        await plane.dispatch("phone-1", TAP, key="k-1")
        await plane.acknowledge_receipt("phone-1", "k-1")
        await plane.acknowledge_receipt("phone-1", "k-1")
        await edge.rig.wait_until(lambda: len(edge.rig.acknowledged) == 2)
        await plane.list_devices()
        assert plane.complaints == []


async def test_an_acknowledgement_that_cannot_be_taken_is_said(edge) -> None:
    async with open_plane("plane-1", edge.plane_socket) as plane:
        await plane.acknowledge_receipt("phone-9", "k-1")
        await plane.wait_until(lambda: bool(plane.complaints))
        assert plane.complaints[0]["code"] == "unknown_device"


async def test_a_second_plane_is_refused_and_the_first_stays(edge) -> None:
    async with open_plane("plane-1", edge.plane_socket) as first:
        with pytest.raises(PlaneError, match="plane-1") as refused:
            async with open_plane("plane-2", edge.tcp):
                pass
        assert refused.value.code == "permission_denied"
        assert refused.value.error["field"] == "planeId"
        assert (await first.dispatch("phone-1", TAP)).committed
    async with open_plane("plane-2", edge.tcp) as second:
        assert (await second.dispatch("phone-1", TAP)).committed


async def test_the_same_plane_takes_over_from_its_own_older_connection(edge) -> None:
    edge.rig.record("a")
    async with open_plane("plane-1", edge.plane_socket, acknowledge=False) as old:
        await old.wait_until(lambda: bool(old.pushed))
        async with open_plane("plane-1", edge.tcp) as new:
            await old.disconnected.wait()
            assert old.complaints[0]["code"] == "permission_denied"
            await new.wait_until(lambda: ("phone-1", "a") in new.notebook)
            await edge.rig.wait_until(lambda: edge.rig.outbox == [])
            assert (await new.dispatch("phone-1", TAP)).committed


async def test_the_place_is_free_again_when_the_plane_hung_up(edge) -> None:
    for name in ("plane-1", "plane-2", "plane-3"):
        while True:
            try:
                async with open_plane(name, edge.plane_socket) as plane:
                    assert (await plane.dispatch("phone-1", TAP, key=name)).committed
                break
            except PlaneError as e:  # the edge has not noticed the former one's end yet
                assert e.code == "permission_denied"
                await trio.lowlevel.checkpoint()
    assert edge.rig.executed == ["plane-1", "plane-2", "plane-3"]


async def test_a_wrong_token_is_refused(edge) -> None:
    with pytest.raises(PlaneError) as refused:
        async with open_plane("plane-1", TcpAddress("127.0.0.1", edge.tcp.port, b"x" * 32)):
            pass
    assert refused.value.code == "permission_denied"
    assert refused.value.error["field"] == "proof"


@pytest.mark.parametrize(
    ("fields", "missing"), [({}, "nonce"), ({"nonce": b"n" * 32}, "proof"), ({"proof": b"p" * 32}, "nonce")]
)
async def test_a_missing_token_is_refused(edge, fields: dict[str, bytes], missing: str) -> None:
    async with edge.raw_tcp() as peer:
        answer = await peer.hello(**fields)
        assert answer["error"]["code"] == "permission_denied"
        assert answer["error"]["field"] == missing
        assert await peer.hear() is None


async def test_the_proof_of_one_connection_is_worth_nothing_on_another(edge) -> None:
    async with edge.raw_tcp() as one, edge.raw_tcp() as two:
        first, second = await one.hear(), await two.hear()
        assert first["nonce"] != second["nonce"]
        plane = Plane("plane-1", edge.tcp, nursery=None)  # type: ignore[arg-type]
        nonce = b"n" * 32
        proof = plane._proof("plane", first["nonce"] + nonce + b"plane-1")
        await two.say({"type": "hello", "protocol": 1, "planeId": "plane-1", "nonce": nonce, "proof": proof})
        assert (await two.hear())["error"]["field"] == "proof"


async def test_a_plane_that_remembers_a_younger_epoch_raises_ours(edge) -> None:
    async with edge.raw() as peer:
        welcome = await peer.hello(epoch=9)
        assert welcome["epoch"] == 10
    async with edge.raw() as peer:
        welcome = await peer.hello(epoch=10)
        assert welcome["epoch"] == 10


async def test_a_plane_that_remembers_the_epoch_of_another_card_raises_ours(edge) -> None:
    """Also a lower one: epochs of two cards do not follow each other."""
    edge.rig.epoch = first_epoch(b"\0\0\0\2")
    async with edge.raw() as peer:
        welcome = await peer.hello(epoch=first_epoch(b"\0\0\0\1"))
        assert welcome["epoch"] == first_epoch(b"\0\0\0\2") + 1


async def test_an_epoch_that_no_edge_can_have_told_is_refused_and_locks_nobody_out(edge) -> None:
    epoch = edge.rig.epoch
    async with edge.raw() as peer:
        refused = await peer.hello(epoch=2**53 - 1)
        assert (refused["type"], refused["error"]["code"]) == ("error", "invalid_argument")
        assert refused["error"]["field"] == "epoch"
    async with edge.raw() as peer:
        welcome = await peer.hello(epoch=epoch)
        assert (welcome["type"], welcome["epoch"]) == ("welcome", epoch)


async def test_requests_sent_right_behind_hello_wait_for_the_welcome(edge) -> None:
    async with edge.raw() as peer:
        await peer.say({"type": "hello", "protocol": 1, "planeId": "plane-1"})
        await peer.say({"type": "listDevices", "id": "early"})
        kinds = [(await peer.hear())["type"] for _ in range(3)]
        assert kinds == ["challenge", "welcome", "devices"]


async def test_the_plane_clock_is_measured_by_the_edges_pings(edge) -> None:
    assert not edge.clock.synced
    async with open_plane("plane-1", edge.plane_socket, unix_ms=lambda: 1_772_357_400_000.0) as plane:
        while not edge.clock.synced:
            await plane.list_devices()
        assert edge.clock.iso(0).startswith("2026-")


async def test_staff_clocks_are_not_the_planes(edge) -> None:
    async with edge.raw(edge.staff_socket) as peer:
        await peer.hear()
        await peer.say({"type": "staffHello", "protocol": 2, "staffId": "jo"})
        while (message := await peer.hear(pings=True))["type"] != "ping":
            pass
        await peer.say({"type": "pong", "monotonicNs": message["monotonicNs"], "planeUnixMs": 5.0})
        await peer.still_serves()
    assert not edge.clock.synced


async def test_a_pong_for_no_ping_measures_nothing(edge) -> None:
    async with edge.raw() as peer:
        await peer.hello()
        await peer.say({"type": "pong", "monotonicNs": 12345, "planeUnixMs": 5.0})
        assert (await peer.hear())["error"]["field"] == "monotonicNs"
        await peer.still_serves()
    assert not edge.clock.synced


async def test_the_edge_answers_pings(edge) -> None:
    async with edge.raw() as peer:
        await peer.hello()
        await peer.say({"type": "ping", "monotonicNs": 77})
        assert await peer.hear() == {"type": "pong", "monotonicNs": 77}


async def test_a_change_of_a_device_is_told(edge) -> None:
    async with open_plane("plane-1", edge.plane_socket) as plane:
        await plane.list_devices()
        edge.rig.redescribe("phone-2", status="offline", status_reason="the board is silent")
        await plane.wait_until(lambda: plane.devices["phone-2"]["status"] == "offline")


async def test_a_subscriber_overrun_by_changes_reads_everything_anew(edge) -> None:
    async with open_plane("plane-1", edge.plane_socket) as plane:
        await plane.list_devices()
        for n in range(50):  # without a checkpoint between: the bounded channel overflows
            edge.rig.redescribe("phone-1", display_name=f"name {n}")
        edge.rig.record("late")
        await plane.wait_until(lambda: plane.devices["phone-1"].get("displayName") == "name 49")
        await plane.wait_until(lambda: ("phone-1", "late") in plane.notebook)
        assert edge.rig.subscriptions == 2


async def test_only_a_person_lifts_a_parking(edge) -> None:
    async with open_plane("plane-1", edge.plane_socket) as plane:
        await plane.set_parked("phone-1", True, actor_kind="run")
        assert (await plane.dispatch("phone-1", TAP)).error["code"] == "needs_user_control"
        with pytest.raises(PlaneError, match="needs_user_control"):
            await plane.look("phone-1")
        for kind in ("run", "api_key", "copilot", "system", "staff"):
            with pytest.raises(PlaneError) as refused:
                await plane.set_parked("phone-1", False, actor_kind=kind)
            assert refused.value.code == "permission_denied"
            assert refused.value.error["field"] == "actor.kind"
        assert plane.devices["phone-1"]["parked"]
        await plane.set_parked("phone-1", False)
        assert (await plane.dispatch("phone-1", TAP)).committed


async def test_an_action_can_be_taken_back(edge) -> None:
    edge.rig.gate = trio.Event()
    async with open_plane("plane-1", edge.plane_socket) as plane, trio.open_nursery() as inner:

        async def act() -> None:
            assert (await plane.dispatch("phone-1", TAP, key="k-1")).error["code"] == "canceled"

        inner.start_soon(act)
        await edge.rig.begun.wait()
        answer = await plane.cancel("phone-1", "k-1")
        assert answer.receipt["status"] == "failed"
        assert answer.error["code"] == "canceled"
        assert (await plane.cancel("phone-1", "none")).error["field"] == "idempotencyKey"
        edge.rig.gate.set()
    assert edge.rig.executed == []


async def test_a_look_brings_the_picture(edge, address) -> None:
    edge.rig.picture = bytes(range(256)) * 12_000  # far more than one write
    async with open_plane("plane-1", address) as plane:
        picture = await plane.look("phone-1")
        assert picture["image"] == edge.rig.picture
        assert picture["frameId"] == "f-1"
        assert "frameId" not in await plane.look("phone-1", leased=False)


async def test_a_picture_over_the_cap_is_refused_and_the_session_goes_on(edge) -> None:
    edge.rig.picture = bytes(9 * 1024 * 1024)
    async with open_plane("plane-1", edge.plane_socket) as plane:
        with pytest.raises(PlaneError, match="over the cap"):
            await plane.look("phone-1", format="png")
        assert await plane.list_devices()


async def test_more_looks_or_requests_at_a_time_than_allowed_are_refused(edge) -> None:
    edge.rig.looks_gate, edge.rig.gate = trio.Event(), trio.Event()
    async with edge.raw() as peer:
        await peer.hello()
        ids = itertools.count(1)
        look = {"type": "look", "deviceId": "phone-1", "orgId": "o", "actor": {"kind": "run"}}
        for _ in range(4):
            await peer.say({**look, "id": next(ids)})
        await peer.say({**look, "id": "a look too many"})
        answer = await peer.hear()
        assert answer["replyTo"] == "a look too many"
        assert answer["error"]["code"] == "rate_limited"
        for n in range(60):
            await peer.say({**DISPATCH, "id": next(ids), "idempotencyKey": f"k-{n}"})
        await peer.say({**DISPATCH, "id": "one too many", "idempotencyKey": "k-late"})
        while (answer := await peer.hear())["type"] == "progress":
            pass
        assert answer["replyTo"] == "one too many"
        assert answer["error"]["code"] == "rate_limited"
        assert answer["error"]["retryable"]
        edge.rig.looks_gate.set()
        edge.rig.gate.set()
        answered = set()
        while len(answered) < 64:
            answer = await peer.hear()
            if answer["type"] in ("result", "picture"):
                answered.add(answer["replyTo"])
        assert len(edge.rig.executed) == 60
        assert "k-late" not in edge.rig.executed
        await peer.still_serves()


async def test_the_sockets_are_private_and_gone_after_the_end(edge) -> None:
    for path in (edge.plane_socket, edge.staff_socket):
        assert path.stat().st_mode & 0o777 == 0o600
    edge.stop()
    while edge.plane_socket.exists() or edge.staff_socket.exists():
        await trio.lowlevel.checkpoint()


async def test_actions_left_behind_by_many_connections_are_bounded(edge) -> None:
    edge.rig.gate = trio.Event()
    refused = 0
    for connection in range(5):
        async with edge.raw() as peer:
            assert (await peer.hello())["type"] == "welcome"
            for n in range(60):
                key = f"k-{connection}-{n}"
                await peer.say({**DISPATCH, "id": key, "idempotencyKey": key})
            await peer.say({"type": "listDevices", "id": "last"})
            while (answer := await peer.hear()).get("replyTo") != "last":
                if answer["type"] == "error":
                    assert answer["error"]["code"] == "rate_limited"
                    refused += 1
    assert refused == 300 - 256
    edge.rig.gate.set()
    await edge.rig.wait_until(lambda: len(edge.rig.executed) == 256)


async def test_connections_are_bounded_and_a_place_left_is_free_again(edge) -> None:
    async with trio.open_nursery() as crowd:

        async def linger(task_status: trio.TaskStatus[None]) -> None:
            async with edge.raw(edge.staff_socket) as peer:
                await peer.hear()
                task_status.started()
                await trio.sleep_forever()

        for _ in range(32):
            await crowd.start(linger)
        async with edge.raw() as peer:
            assert await peer.hear() is None
        crowd.cancel_scope.cancel()
    while True:
        async with edge.raw() as peer:
            if await peer.hear() is not None:
                break
