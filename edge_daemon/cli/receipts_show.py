"""Receipts on a terminal."""

from collections.abc import Sequence
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from edge_daemon.contract import Receipt, kind_of

_STYLES = {"committed": "green", "failed": "yellow", "unknown": "bold red", "pending": "cyan"}
_UNSET = "when it was requested, or when it ended, is by the machine's own clock, which no plane had set"


def show_table(receipts: Sequence[Receipt], *, more: bool) -> None:
    console = Console()
    if not receipts:
        console.print("no such receipts")
        return
    table = Table()
    for name in ("requested", "device", "key", "action", "came to", "ms", "for"):
        # A key is there to be copied, a time to be compared: neither is cut.
        table.add_column(name, no_wrap=name == "requested", overflow="fold")
    for receipt in receipts:
        took = receipt.timing.hover_ms if receipt.timing is not None else None
        table.add_row(
            Text(_short(receipt.requested_at) + ("" if receipt.clock_synced else " ?")),
            Text(receipt.device_id),
            Text(receipt.idempotency_key),
            Text(f"{receipt.action} {_brief(receipt.args_summary)}".strip()),
            _came_to(receipt),
            "" if took is None else f"{took:.0f}",
            Text(receipt.actor.id or receipt.actor.kind),
        )
    console.print(table)
    if any(receipt.requires_manual_review for receipt in receipts):
        console.print(
            "look: a person has to, at the phone; then edge-daemon receipts resolve KEY", soft_wrap=True
        )
    if any(not receipt.clock_synced for receipt in receipts):
        console.print(f"?: {_UNSET}", soft_wrap=True)
    if more:
        console.print(f"The newest {len(receipts)}; there are more: --limit, --since", soft_wrap=True)


def show_receipt(receipt: Receipt) -> None:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _lines(receipt):
        table.add_row(name, value if isinstance(value, Text) else Text(value))
    Console().print(table)


def resolution_line(receipt: Receipt) -> str:
    resolution = receipt.resolution
    assert resolution is not None
    said = "committed" if resolution.outcome == "committed" else "not executed"
    return f"{said}, says {_actor(resolution.actor)} at {resolution.resolved_at}: {resolution.note}"


def _lines(receipt: Receipt) -> list[tuple[str, str | Text]]:
    lines: list[tuple[str, str | Text]] = [
        ("key", receipt.idempotency_key),
        ("device", f"{receipt.device_id} ({receipt.backend_kind})"),
        ("action", _action(receipt)),
        ("came to", _came_to(receipt)),
    ]
    if receipt.error is not None:
        lines.append(("why", f"{receipt.error.code}: {receipt.error.message}"))
    if receipt.reason is not None:
        lines.append(("reason", receipt.reason))
    if receipt.resolution is not None:
        lines.append(("resolved", resolution_line(receipt)))
    lines += [
        ("requested", receipt.requested_at),
        ("finished", receipt.committed_at or receipt.failed_at or "not yet"),
        ("for", f"{_actor(receipt.actor)} of {receipt.org_id}"),
        ("frame", receipt.observed_frame or "none bound"),
    ]
    if not receipt.clock_synced:
        lines.append(("clock", _UNSET))
    for name, struct in (("frame notes", receipt.frame_notes), ("timing", receipt.timing)):
        if struct is not None:
            lines.append((name, _pairs(msgspec.to_builtins(struct))))
    lines.append(
        ("boot", f"{receipt.boot_id}, requested at {receipt.requested_ns} ns of its monotonic clock")
    )
    return lines


def _came_to(receipt: Receipt) -> Text:
    kind = kind_of(receipt)
    words = Text(kind, style=_STYLES[kind])
    if receipt.requires_manual_review:
        words.append(": look")
    elif receipt.resolution is not None:
        words.append(f" → {receipt.resolution.outcome.replace('_', ' ')}", style="bold")
    elif receipt.error is not None:
        words.append(f": {receipt.error.code}")
    return words


def _short(label: str) -> str:
    """Month to second of an ISO time: the year stands in `show`."""
    return label[5:19].replace("T", " ")


def _brief(args_summary: dict[str, Any]) -> str:
    """A text's digest makes a row six lines high and tells a person nothing; it stands in `show`."""
    return ", ".join(str(value) for name, value in args_summary.items() if name != "digest")


def _action(receipt: Receipt) -> str:
    return f"{receipt.action} {_pairs(receipt.args_summary)}".strip()


def _pairs(fields: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in fields.items())


def _actor(actor: Any) -> str:
    behalf = f" for {actor.on_behalf_of}" if actor.on_behalf_of else ""
    return f"{actor.kind} {actor.id or ''}".strip() + behalf
