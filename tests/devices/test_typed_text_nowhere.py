"""What is typed may be a password: it reaches the phone and stays nowhere, whatever goes wrong meanwhile."""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from edge_daemon.contract import Outcome, ReceiptQuery, TypeText
from edge_daemon.ledger.offline import offline_receipts

NEEDLE = "zQ7pwDx4"
"""As long as a frame's chunk of text or shorter, so that a chunk of many of them shows one whole."""
LONG = TypeText(text=NEEDLE * 60)
NOT_ON_THE_KEYBOARD = "Ж"

RunRig = Callable[[], AbstractAsyncContextManager[Any]]


def files_of(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def command_lines() -> Iterator[tuple[str, bytes]]:
    """Of every process there is: what `ps` shows to anybody on the machine."""
    for process in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "comm"):
            try:
                yield f"{process}/{name}", (process / name).read_bytes()
            except OSError:
                continue  # it has ended meanwhile


async def cut_short(rig: Any, key: str, stop: Callable[[], Any]) -> Outcome:
    """Types at length; `stop` is called when the phone has a part of it."""
    outcomes: list[Outcome] = []
    before = len(rig.phone.typed)

    async def dispatch() -> None:
        outcomes.append(await rig.dispatch(key, LONG))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(dispatch)
        await rig.rig.wait_for(lambda: len(rig.phone.typed) > before + 2 * len(NEEDLE))
        await stop()
    assert before < len(rig.phone.typed) < before + len(LONG.text)
    return outcomes[0]


async def test_typed_text_is_in_no_file_log_dump_error_export_or_command_line(
    run_rig: RunRig,
    caplog: pytest.LogCaptureFixture,
    must_be_nowhere: Callable[[str, object, bytes | str], None],
) -> None:
    caplog.set_level(logging.DEBUG)
    outcomes: list[Outcome] = []
    kept: dict[str, bytes] = {}
    async with run_rig() as rig:
        outcomes.append(await rig.dispatch("typed", TypeText(text=f"Hello {NEEDLE}!")))
        assert rig.phone.typed.endswith(f"Hello {NEEDLE}!")
        kept.update(command_lines())
        outcomes.append(await rig.dispatch("refused", TypeText(text=NEEDLE + NOT_ON_THE_KEYBOARD)))
        outcomes.append(await rig.dispatch("typed", TypeText(text=NEEDLE * 2)))
        stopped = await cut_short(rig, "stopped", lambda: rig.fleet.estop("phone-1"))
        await rig.fleet.clear_estop("phone-1")
        reset = await cut_short(rig, "reset", lambda: rig.rig.reset_board("hid"))
        outcomes += [stopped, reset]
        kept |= {f"open {name}": content for name, content in files_of(rig.ledger_path.parent).items()}
    async with run_rig() as rig:
        outcomes.append(await rig.dispatch("typed", TypeText(text=f"Hello {NEEDLE}!")))
        outcomes.append(await rig.dispatch("reset", LONG))
        page = await rig.ledger.receipts(ReceiptQuery())
        kept["the receipts, exported"] = msgspec.json.encode(page.receipts)
        directory = rig.ledger_path.parent
        path = rig.ledger_path
    with offline_receipts(path) as receipts:
        kept["the receipts, read from the file"] = msgspec.json.encode(receipts.page(ReceiptQuery()).receipts)
    kept |= files_of(directory)

    typed, refused, conflict, stopped, reset, again, reset_again = outcomes
    assert typed.receipt.status == "committed"
    assert again.deduplicated
    assert refused.error.code in ("invalid_argument", "capability_unsupported")
    assert conflict.error.code == "idempotency_conflict"
    assert stopped.receipt.status == "failed"
    assert reset.receipt.requires_manual_review
    assert reset_again.receipt == reset.receipt
    assert "its last frames" in caplog.text
    assert "TEXT_LOAD" in caplog.text
    assert {"open ledger.sqlite3-wal", "ledger.sqlite3"} <= set(kept)
    must_be_nowhere(NEEDLE, "the log", caplog.text)
    for number, outcome in enumerate(outcomes):
        must_be_nowhere(NEEDLE, f"outcome {number}", msgspec.json.encode(outcome))
        must_be_nowhere(NEEDLE, f"the representation of outcome {number}", repr(outcome))
    for name, content in kept.items():
        must_be_nowhere(NEEDLE, name, content)
