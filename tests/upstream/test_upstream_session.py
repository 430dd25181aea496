"""The session as a state machine: only bytes and times go in here."""

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_daemon.contract import Picture, PixelSize, Progress, error_info
from edge_daemon.upstream.handshake import Handshake, Role
from edge_daemon.upstream.limits import SessionLimits
from edge_daemon.upstream.messages import Devices, Ok, PictureAnswer, ProgressNote
from edge_daemon.upstream.session import (
    EdgeSession,
    HelloReceived,
    PlaneClockRead,
    ReceiptAcknowledged,
    RequestReceived,
)

S = 1_000_000_000
NONCE = b"n" * 32


def frame(message: object) -> bytes:
    body = msgpack.packb(message)
    return len(body).to_bytes(4, "big") + body


def said(session: EdgeSession, now_ns: int = 0) -> list[dict]:
    wire = bytearray()
    while chunk := session.take_output(now_ns):
        wire += chunk
    found = []
    while wire:
        end = 4 + int.from_bytes(wire[:4], "big")
        found.append(msgpack.unpackb(bytes(wire[4:end])))
        del wire[:end]
    return found


def fresh(role: Role = "plane", limits: SessionLimits | None = None) -> EdgeSession:
    return EdgeSession(Handshake(role, "edge-7", NONCE, None), 0, limits or SessionLimits())


def opened(role: Role = "plane", limits: SessionLimits | None = None, protocol: int = 2) -> EdgeSession:
    session = fresh(role, limits)
    name = {"plane": {"type": "hello", "planeId": "p"}, "staff": {"type": "staffHello", "staffId": "s"}}
    session.receive(frame({**name[role], "protocol": protocol}), 0)
    assert isinstance(session.next_event(0), HelloReceived)
    session.welcome(boot_id="b", epoch=1, ledger_id="l", devices=(), now_ns=0)
    assert [message["type"] for message in said(session)] == ["challenge", "welcome"]
    return session


def test_the_states_go_from_challenge_to_hello_to_open_to_closed() -> None:
    session = fresh()
    assert session.state == "challenge"
    session.receive(frame({"type": "hello", "planeId": "p", "protocol": 1}), 0)
    assert isinstance(session.next_event(0), HelloReceived)
    assert session.state == "hello"
    session.welcome(boot_id="b", epoch=1, ledger_id="l", devices=(), now_ns=0)
    assert session.state == "open"
    session.lost("gone")
    assert session.state == "closed"
    assert session.close_reason == "gone"


def test_one_byte_at_a_time_is_as_good_as_all_at_once() -> None:
    session = opened()
    for byte in frame({"type": "listDevices", "id": 5}):
        assert session.next_event(0) is None
        session.receive(bytes([byte]), 0)
    event = session.next_event(0)
    assert isinstance(event, RequestReceived)
    assert event.request.id == 5


def test_frames_behind_hello_wait_for_the_decision() -> None:
    session = fresh()
    session.receive(
        frame({"type": "hello", "planeId": "p", "protocol": 1}) + frame({"type": "listDevices", "id": 1}), 0
    )
    assert isinstance(session.next_event(0), HelloReceived)
    assert session.next_event(0) is None
    session.welcome(boot_id="b", epoch=1, ledger_id="l", devices=(), now_ns=0)
    assert isinstance(session.next_event(0), RequestReceived)


def test_a_refused_hello_is_never_followed_by_what_came_behind_it() -> None:
    session = fresh()
    session.receive(
        frame({"type": "hello", "planeId": "p", "protocol": 1}) + frame({"type": "listDevices", "id": 1}), 0
    )
    session.next_event(0)
    session.close(error_info("permission_denied", "no"))
    assert session.next_event(0) is None
    session.welcome(boot_id="b", epoch=1, ledger_id="l", devices=(), now_ns=0)
    assert [message["type"] for message in said(session)] == ["challenge", "error"]


def test_pings_carry_the_time_of_writing_and_measure_by_it() -> None:
    session = opened()
    session.poll(2 * S)
    (ping,) = said(session, 2 * S + 7)  # the writer came 7 ns later
    assert ping == {"type": "ping", "monotonicNs": 2 * S + 7}
    session.receive(frame({"type": "pong", "monotonicNs": 2 * S + 7, "planeUnixMs": 5.0}), 3 * S)
    assert session.next_event(3 * S) == PlaneClockRead(2 * S + 7, 5.0, 3 * S)


def test_a_pong_counts_once() -> None:
    session = opened()
    session.poll(2 * S)
    said(session, 2 * S)
    pong = frame({"type": "pong", "monotonicNs": 2 * S, "planeUnixMs": 5.0})
    session.receive(pong + pong, 3 * S)
    assert isinstance(session.next_event(3 * S), PlaneClockRead)
    assert session.next_event(3 * S) is None
    assert said(session)[0]["error"]["field"] == "monotonicNs"


def test_silence_closes_at_fifteen_seconds_and_not_before() -> None:
    session = opened()
    session.receive(frame({"type": "ping", "monotonicNs": 1}), 5 * S)
    session.poll(20 * S - 1)
    assert session.state == "open"
    assert session.next_poll_ns() <= 20 * S
    session.poll(20 * S)
    assert session.state == "closed"


def test_a_write_that_does_not_get_on_closes_while_the_peer_still_talks() -> None:
    session = opened()
    session.poll(2 * S)
    assert session.take_output(2 * S)  # written, and never reported back
    session.receive(frame({"type": "ping", "monotonicNs": 1}), 16 * S)
    session.next_event(16 * S)
    session.poll(17 * S - 1)
    assert session.state == "open"
    session.poll(17 * S)
    assert session.state == "closed"
    assert "reads nothing" in str(session.close_reason)


def test_a_slow_reader_that_gets_on_is_not_taken_for_gone() -> None:
    session = opened(limits=SessionLimits(queued_bytes=2**24))
    session.receive(frame({"type": "listDevices", "id": 1}), 0)
    session.next_event(0)
    for n in range(40):
        session.notice(error_info("expired", "x" * 60_000))
        session.receive(frame({"type": "ping", "monotonicNs": n}), n * S)
        session.next_event(n * S)
    for n in range(41):  # one chunk in ten seconds
        session.receive(b"\0", n * 10 * S)
        session.poll(n * 10 * S)
        assert session.state == "open"
        session.take_output(n * 10 * S)


def test_an_id_is_free_again_once_its_answer_is_handed_to_the_writer() -> None:
    session = opened(limits=SessionLimits(requests=1))
    for expected in ("rate_limited", None):
        session.receive(frame({"type": "listDevices", "id": 1 if expected else 3}), 0)
        assert isinstance(session.next_event(0), RequestReceived)
        session.receive(frame({"type": "listDevices", "id": 2}), 0)
        assert session.next_event(0) is None
        session.answer(Devices(reply_to=1 if expected else 3, devices=()))
        kinds = [(message["type"], message.get("replyTo")) for message in said(session)]
        assert kinds == [("error", 2), ("devices", 1 if expected else 3)]


def test_more_waiting_than_the_queue_takes_closes() -> None:
    session = opened(limits=SessionLimits(queued_bytes=10_000))
    for _ in range(20):
        session.notice(error_info("expired", "x" * 1000))
    assert session.state == "closed"


@pytest.mark.parametrize("protocol", [1, 2])
def test_a_mismatch_of_the_orientation_is_told_in_the_words_of_the_version(protocol: int) -> None:
    session = opened(protocol=protocol)
    look = {"type": "look", "id": 1, "deviceId": "phone-1", "orgId": "org", "actor": {"kind": "system"}}
    session.receive(frame(look), 0)
    assert isinstance(session.next_event(0), RequestReceived)
    shown = Picture(
        format="jpeg",
        image=b"",
        pixel_size=PixelSize(width=1, height=2),
        orientation="portrait",
        sequence=1,
        captured_at=None,
        clock_synced=False,
        age_ms=1.0,
        settle="still",
        orientation_mismatch="landscape_left",
    )
    session.answer(PictureAnswer(reply_to=1, picture=shown))
    (answer,) = said(session)
    picture = answer["picture"]
    if protocol == 2:
        assert (picture["orientationMismatch"], picture["settle"]) == ("landscape_left", "still")
    else:
        # Version 1 refuses a field it does not know; that the picture is not to be relied on it can be told.
        assert "orientationMismatch" not in picture
        assert picture["settle"] == "unreliable"
        assert "landscape_left" in picture["settleReason"]


def test_nothing_is_queued_after_the_end() -> None:
    session = opened()
    session.close(error_info("expired", "over"))
    said(session)
    session.answer(Ok(reply_to=1))
    session.notice(error_info("expired", "x"))
    session.note(
        ProgressNote(
            reply_to=1, progress=Progress(device_id="d", idempotency_key="k", stage="contact", elapsed_ms=1.0)
        )
    )
    session.push_receipts([])
    assert said(session) == []


def test_acknowledgements_come_out_as_events() -> None:
    session = opened()
    session.receive(frame({"type": "ackReceipt", "deviceId": "phone-1", "idempotencyKey": "k"}), 0)
    assert session.next_event(0) == ReceiptAcknowledged("phone-1", "k", resolved=False)


def test_the_window_bounds_what_is_pushed_and_each_receipt_is_pushed_once(rig) -> None:
    rig.record("a", "b", "c", "d")
    receipts = [entry.receipt for entry in rig.ledger.values()]
    session = opened(limits=SessionLimits(outbox_window=2))

    def pushed() -> list[str]:
        session.push_receipts(receipts)
        return [message["receipt"]["idempotencyKey"] for message in said(session)]

    assert pushed() == ["a", "b"]
    assert pushed() == []
    session.receive(frame({"type": "ackReceipt", "deviceId": "phone-1", "idempotencyKey": "a"}), 0)
    assert session.next_event(0) == ReceiptAcknowledged("phone-1", "a", resolved=False)
    assert pushed() == []
    session.acknowledged("phone-1", "a")
    assert receipts.pop(0).idempotency_key == "a"
    assert pushed() == ["c"]


@pytest.mark.parametrize("role", ["plane", "staff"])
@given(chunks=st.lists(st.binary(max_size=300), max_size=8), framed=st.booleans(), greeted=st.booleans())
@settings(max_examples=150)
def test_random_bytes_never_crash_the_session(
    role: Role, chunks: list[bytes], framed: bool, greeted: bool
) -> None:
    session = opened(role) if greeted else fresh(role)
    for n, chunk in enumerate(chunks):
        session.receive(len(chunk).to_bytes(4, "big") + chunk if framed else chunk, n)
        while session.next_event(n) is not None:
            pass
        session.poll(n)
    for message in said(session):
        assert message["type"] in ("challenge", "error", "ping", "pong")


MESSAGES = st.sampled_from(
    [
        {"type": "hello", "planeId": "p", "protocol": 1},
        {"type": "listDevices", "id": 1},
        {"type": "listDevices", "id": 2},
        {"type": "ping", "monotonicNs": 4},
        {"type": "pong", "monotonicNs": 4},
        {"type": "ackReceipt", "deviceId": "d", "idempotencyKey": "k"},
        {"type": "nonsense"},
        {"type": "estop", "id": 3, "deviceId": "d"},
        [1],
    ]
)


@given(st.lists(st.tuples(MESSAGES, st.integers(0, 4 * S), st.booleans()), max_size=40))
def test_any_order_of_messages_times_and_answers_keeps_the_session_sound(
    script: list[tuple[object, int, bool]],
) -> None:
    session, now = fresh(limits=SessionLimits(requests=3)), 0
    open_requests = []
    for message, pause, answer_one in script:
        now += pause
        session.receive(frame(message), now)
        while (event := session.next_event(now)) is not None:
            match event:
                case HelloReceived():
                    session.welcome(boot_id="b", epoch=1, ledger_id="l", devices=(), now_ns=now)
                case RequestReceived(request):
                    open_requests.append(request.id)
                case _:
                    pass
        assert len(open_requests) == len(set(open_requests)) <= 3
        if answer_one and open_requests:
            session.answer(Devices(reply_to=open_requests.pop(), devices=()))
        session.poll(now)
        said(session, now)
        if session.closed:
            open_requests.clear()
        else:
            assert session.next_poll_ns() > now
