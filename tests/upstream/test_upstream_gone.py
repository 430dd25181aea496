"""Peers that fall silent, do not read, or never say hello: by a mock clock, over real sockets."""

import pytest
import trio
import trio.testing

from edge_daemon.bench.plane import open_plane
from edge_daemon.upstream import EdgeGone, SessionLimits, connect_staff
from edge_daemon.upstream.handshake import Handshake
from edge_daemon.upstream.listeners import unix_listener
from edge_daemon.upstream.session import EdgeSession

TAP = {"type": "tap", "x": 500.0, "y": 250.0}


@pytest.fixture
def autojump_clock() -> trio.testing.MockClock:
    # 0 would jump while the kernel is still carrying bytes between two sockets.
    return trio.testing.MockClock(autojump_threshold=0.001)


async def test_a_silent_plane_is_closed_after_fifteen_seconds(edge, autojump_clock) -> None:
    async with edge.raw() as peer:
        await peer.hello()
        begun = trio.current_time()
        answer = await peer.hear()  # pings pass by unanswered
        assert answer["error"]["code"] == "protocol_error"
        assert "silent" in answer["error"]["message"]
        assert await peer.hear() is None
        assert 14.9 <= trio.current_time() - begun <= 16.5
    async with open_plane("another", edge.plane_socket) as plane:
        assert (await plane.dispatch("phone-1", TAP)).committed


async def test_a_plane_that_answers_pings_stays(edge, autojump_clock) -> None:
    async with open_plane("plane-1", edge.plane_socket) as plane:
        await trio.sleep(120)
        assert (await plane.dispatch("phone-1", TAP)).committed
        assert not plane.disconnected.is_set()


async def test_staff_that_answers_pings_keeps_its_hold(edge, autojump_clock) -> None:
    async with connect_staff(edge.staff_socket, "jo") as staff:
        await staff.take_hold("phone-1", "calibration")
        await trio.sleep(120)
        assert "phone-1" in edge.rig.holds


@pytest.mark.parametrize("tcp", [False, True], ids=["unix", "tcp"])
async def test_who_does_not_say_hello_is_closed_after_five_seconds(edge, autojump_clock, tcp: bool) -> None:
    async with edge.raw_tcp() if tcp else edge.raw() as peer:
        await peer.hear()
        begun = trio.current_time()
        assert (await peer.hear())["error"]["code"] == "protocol_error"
        assert await peer.hear() is None
        assert 4.9 <= trio.current_time() - begun <= 6.5


async def test_half_a_hello_does_not_keep_the_door_open(edge, autojump_clock) -> None:
    async with edge.raw() as peer:
        await peer.hear()
        begun = trio.current_time()
        for byte in b"\x00\x00\x00\x20":
            await peer.stream.send_all(bytes([byte]))
            await trio.sleep(1.5)
        assert (await peer.hear())["error"]["code"] == "protocol_error"
        assert trio.current_time() - begun <= 6.5


async def test_a_plane_that_reads_nothing_is_closed_and_no_receipt_is_lost(edge, autojump_clock) -> None:
    edge.rig.picture = bytes(4 * 1024 * 1024)
    keys = [f"k-{n}" for n in range(50)]
    async with edge.raw() as peer:
        await peer.hello()
        # A picture larger than the socket takes: from here on every answer waits behind it.
        look = {"type": "look", "id": "big", "deviceId": "phone-1", "orgId": "o", "actor": {"kind": "run"}}
        await peer.say(look)
        for key in keys:
            await peer.say({"type": "dispatch", "id": key, **dispatch(key)})
        try:
            while True:  # talking all the time: not silent, but not reading either
                await trio.sleep(1)
                await peer.say({"type": "ping", "monotonicNs": 1})
        except trio.BrokenResourceError:
            pass
    assert edge.rig.executed == keys
    assert edge.rig.acknowledged == []
    async with open_plane("plane-1", edge.plane_socket) as plane:
        await plane.wait_until(lambda: len(plane.notebook) == 50)
        assert [key for _, key in plane.pushed] == keys


async def test_a_plane_that_asks_without_reading_cannot_make_the_edge_grow(edge, autojump_clock) -> None:
    asked = 0
    async with edge.raw() as peer:
        await peer.hello()
        with pytest.raises(trio.BrokenResourceError):
            while True:
                # Refused at once and so answered at once: only the queue's own bound ends this.
                await peer.say({"type": "nonsense"})
                asked += 1
    assert asked < 20_000
    async with open_plane("plane-1", edge.plane_socket) as plane:
        assert await plane.list_devices()


@pytest.fixture
def limits(request) -> SessionLimits:
    if "progress" in request.node.name:
        return SessionLimits(progress_backlog_bytes=0)
    if "cannot_make_the_edge_grow" in request.node.name:
        return SessionLimits(queued_bytes=64 * 1024)
    return SessionLimits()


async def test_progress_is_dropped_for_who_is_behind_and_the_result_still_comes(edge) -> None:
    async with open_plane("plane-1", edge.plane_socket) as plane:
        answer = await plane.dispatch("phone-1", TAP)
        assert answer.committed
        # Two stages are told without a pause, twice; with no backlog allowed the second finds the first queued.
        assert set(answer.stages) <= {"accepted", "contact"}


async def test_a_plane_that_vanishes_while_actions_run_leaves_no_trace(edge, autojump_clock) -> None:
    edge.rig.gate = trio.Event()
    async with edge.raw() as peer:
        await peer.hello()
        await peer.say({"type": "dispatch", "id": 1, **dispatch("k-1")})
        await edge.rig.begun.wait()
    await trio.sleep(60)
    edge.rig.gate.set()
    await edge.rig.wait_until(lambda: edge.rig.executed == ["k-1"])
    async with open_plane("plane-2", edge.plane_socket) as plane:
        await plane.wait_until(lambda: ("phone-1", "k-1") in plane.notebook)


async def test_a_daemon_that_falls_silent_is_noticed_by_staff(autojump_clock, tmp_path, nursery) -> None:
    async def be_silent_after_welcome(listener: trio.SocketListener) -> None:
        async with await listener.accept() as stream:
            session = EdgeSession(Handshake("staff", "edge-7", b"n" * 32, None), 0)
            await stream.send_all(session.take_output(0))
            session.receive(await stream.receive_some(), 0)
            assert session.next_event(0) is not None
            session.welcome(boot_id="boot-1", epoch=1, ledger_id="l", devices=(), now_ns=0)
            await stream.send_all(session.take_output(0))
            await trio.sleep_forever()

    with unix_listener(tmp_path / "staff.sock") as listener:
        nursery.start_soon(be_silent_after_welcome, listener)
        with pytest.raises(EdgeGone, match="silent"):
            async with connect_staff(tmp_path / "staff.sock", "jo") as staff:
                await staff.list_devices()
        nursery.cancel_scope.cancel()


def dispatch(key: str) -> dict[str, object]:
    return {
        "deviceId": "phone-1",
        "idempotencyKey": key,
        "orgId": "org-1",
        "actor": {"kind": "run"},
        "lease": {"leaseId": "l-1", "fencingToken": 1, "remainingMs": 600_000},
        "action": TAP,
    }
