"""Actions: bounds in the types, unknown fields refused, typed text never shown."""

import math

import msgpack
import msgspec
import pytest

from edge_daemon.contract import Dispatch, LongPress, Swipe, Tap, TypeText, args_summary, canonical
from edge_daemon.contract.actions import Action


def decode(action: dict[str, object]) -> Action:
    return msgspec.msgpack.decode(msgpack.packb(action), type=Action)


@pytest.mark.parametrize("x", [0, 1000, 0.0, 999.999])
def test_both_ends_and_fractions_of_the_grid_are_accepted(x: float) -> None:
    assert decode({"type": "tap", "x": x, "y": 1}) == Tap(x=float(x), y=1.0)


@pytest.mark.parametrize("x", [-0.001, 1000.001, math.nan, math.inf, True, "5", None])
def test_a_coordinate_off_the_grid_is_refused_and_named(x: object) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$\.x"):
        decode({"type": "tap", "x": x, "y": 1})


@pytest.mark.parametrize(
    "action",
    [
        {"type": "tap", "x": 1, "y": 1, "force": 2},
        {"type": "tap", "x": 1},
        {"type": "pinch", "x": 1, "y": 1},
        {"type": "swipe", "fromX": 1, "fromY": 1, "toX": 1, "toY": 2, "durationMs": 0},
        {"type": "swipe", "fromX": 1, "fromY": 1, "toX": 1, "toY": 2, "durationMs": 10_001},
        {"type": "longPress", "x": 1, "y": 1, "durationMs": 199},
        {"type": "pressKey", "key": "menu"},
        {"type": "typeText", "text": ""},
        {"type": "typeText", "text": "x" * 4097},
        {"type": "openApp", "appId": "com.example app"},
    ],
)
def test_what_the_contract_does_not_know_is_refused(action: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode(action)


def test_defaults_are_the_contracts() -> None:
    assert decode({"type": "swipe", "fromX": 1, "fromY": 2, "toX": 3, "toY": 4}) == Swipe(
        from_x=1.0, from_y=2.0, to_x=3.0, to_y=4.0, duration_ms=300
    )
    assert decode({"type": "longPress", "x": 1, "y": 2}) == LongPress(x=1.0, y=2.0, duration_ms=800)


def test_typed_text_shows_neither_in_a_repr_nor_in_a_summary() -> None:
    action = TypeText(text="hunter2")
    assert "hunter2" not in repr(action)
    assert args_summary(action, "digest") == {"characters": 7, "digest": "digest"}


def test_a_spelled_out_default_asks_for_the_same_as_an_omitted_one() -> None:
    spelled = decode({"type": "longPress", "x": 1, "y": 2, "durationMs": 800})
    omitted = decode({"type": "longPress", "x": 1, "y": 2})
    assert canonical(spelled) == canonical(omitted)
    assert canonical(Tap(x=1.0, y=2.0)) != canonical(Tap(x=2.0, y=1.0))


@pytest.mark.parametrize("key", ["a\n", "", "x" * 129, "agent:1", "kéy", "tab\there", "a\x7f"])
def test_a_key_must_be_printable_and_not_claim_to_be_the_agents(key: str) -> None:
    request = {
        "deviceId": "phone-1",
        "idempotencyKey": key,
        "orgId": "org",
        "actor": {"kind": "run"},
        "lease": {"leaseId": "l", "fencingToken": 1, "remainingMs": 1000},
        "action": {"type": "tap", "x": 1, "y": 1},
    }
    with pytest.raises(msgspec.ValidationError, match="idempotencyKey"):
        msgspec.msgpack.decode(msgpack.packb(request), type=Dispatch)
