"""`edge-daemon receipts`: what was done, what nobody can tell, and a person's word on that."""

import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from edge_daemon.cli.options import config_option, json_option

if TYPE_CHECKING:
    from edge_daemon.cli.receipts_read import Reader
    from edge_daemon.contract import Receipt, ReceiptQuery

F = TypeVar("F", bound=Callable[..., Any])

_KINDS = ("pending", "committed", "failed", "unknown")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_config = config_option("its staff socket is asked, or its ledger file if it does not run")


def _device(function: F) -> F:
    return click.option("--device", metavar="DEVICE", help="Only of this device.")(function)


def _since(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """The label that is compared with `requestedAt`."""
    if value is None:
        return None
    try:
        if duration := re.fullmatch(r"(\d{1,6})([smhd])", value):
            at = datetime.now(UTC) - timedelta(seconds=int(duration[1]) * _SECONDS[duration[2]])
        else:
            at = datetime.fromisoformat(value)
            at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(f"{value!r} is no 30m, 2h, 7d and no 2025-06-01T12:00") from error
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


since_option = click.option(
    "--since",
    metavar="TIME",
    callback=_since,
    help="Requested within 90s, 30m, 2h, 7d, or since a date or time (UTC without an offset). By the label that the "
    "receipt carries; a duration is counted back on this machine's clock.",
)


def _note(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if not re.fullmatch(r"[^\x00-\x1f\x7f]{1,500}", value.strip()):
        raise click.BadParameter("1 to 500 characters on one line: how you know")
    return value.strip()


@click.group()
def command() -> None:
    """What was asked of the devices and what came of it; and a person's word on what nobody can tell.

    \b
    edge-daemon receipts list                          the newest 20
    edge-daemon receipts list --needs-review           nobody knows whether these touched: look at the phone
    edge-daemon receipts show KEY                      everything about one
    edge-daemon receipts resolve KEY --as committed --note "the app is open"
    edge-daemon receipts export --since 7d --output week.jsonl

    Receipts are read from the running daemon, or from its ledger file when it does not run.
    """


@command.command("list")
@_device
@click.option(
    "--status",
    type=click.Choice(_KINDS),
    help="failed: and not executed. unknown: nobody could tell, whether reviewed since or not.",
)
@click.option("--needs-review", is_flag=True, help="Only those that wait for a person's word.")
@since_option
@click.option("--limit", type=click.IntRange(1, 100_000), default=20, show_default=True)
@_config
@json_option
def list_command(
    device: str | None,
    status: Any,
    needs_review: bool,
    since: str | None,
    limit: int,
    config_path: Path,
    as_json: bool,
) -> None:
    """List receipts, the newest first. With --json one array of receipts.

    \b
    edge-daemon receipts list --device phone-1 --since 2h
    edge-daemon receipts list --status unknown --limit 100
    edge-daemon receipts list --needs-review --json | jq -r '.[].idempotencyKey'
    """
    from edge_daemon.cli.receipts_read import collect, read
    from edge_daemon.cli.receipts_show import show_table
    from edge_daemon.cli.support import echo_json
    from edge_daemon.contract import ReceiptQuery

    query = ReceiptQuery(device_id=device, kind=status, needs_review=needs_review, since=since)
    # One more than is shown tells whether there are more.
    found = read(config_path, lambda reader: collect(reader, query, limit + 1))
    shown = found[:limit]
    if as_json:
        echo_json(shown)
    else:
        show_table(shown, more=len(found) > limit)


@command.command()
@click.argument("key")
@_device
@_config
@json_option
def show(key: str, device: str | None, config_path: Path, as_json: bool) -> None:
    """Show everything about the receipt of KEY. With --json the receipt as the plane gets it.

    \b
    edge-daemon receipts show run-42-step-7
    edge-daemon receipts show run-42-step-7 --device phone-1 --json

    Exit status 2 when there is none, or when several devices have one and --device does not choose.
    """
    from edge_daemon.cli.receipts_read import find, read
    from edge_daemon.cli.receipts_show import show_receipt
    from edge_daemon.cli.support import echo_json

    receipt = read(config_path, lambda reader: find(reader, key, device))
    if as_json:
        echo_json(receipt)
    else:
        show_receipt(receipt)


@command.command()
@click.argument("key")
@click.option(
    "--as",
    "outcome",
    type=click.Choice(["committed", "not-executed"]),
    required=True,
    help="What became of it: the phone was touched, or it was not.",
)
@click.option(
    "--note", required=True, metavar="TEXT", callback=_note, help="How you know; kept in the receipt."
)
@click.option("--by", metavar="NAME", help="Who says so.  [default: the user who runs this]")
@_device
@_config
@json_option
def resolve(
    key: str, outcome: str, note: str, by: str | None, device: str | None, config_path: Path, as_json: bool
) -> None:
    """Settle the receipt of KEY, of which nobody could tell whether it was executed.

    Look at the phone first. Nothing is executed by this, and the key stays used: the plane is told, and whoever wants
    the action again sends it under a new key. What the receipt said before stays in it. Saying the same again changes
    nothing; a word that was given is not taken back.

    \b
    edge-daemon receipts resolve run-42-step-7 --as committed --note "the app is open"
    edge-daemon receipts resolve run-42-step-7 --as not-executed --note "stylus stood beside the phone" --by jo

    The daemon must be running.
    """
    from edge_daemon.cli.receipts_read import read, resolved
    from edge_daemon.cli.receipts_show import resolution_line
    from edge_daemon.cli.support import echo_json

    receipt = read(
        config_path,
        lambda reader: resolved(
            reader, key, device, "committed" if outcome == "committed" else "not_executed", note, by
        ),
        running=True,
    )
    if as_json:
        echo_json(receipt)
    else:
        click.echo(f"{receipt.device_id}: {key}: {resolution_line(receipt)}")


@command.command()
@_device
@since_option
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A new file, which only you may read (mode 0600).  [default: standard output]",
)
@_config
@json_option
def export(
    device: str | None, since: str | None, output: Path | None, config_path: Path, as_json: bool
) -> None:
    """Write receipts as JSON lines, the oldest first, each as the plane gets it.

    With --output, --json says what was written as one object; without, the lines are JSON in any case.

    \b
    edge-daemon receipts export --output receipts.jsonl
    edge-daemon receipts export --since 24h | jq -c 'select(.status == "failed")'
    """
    from edge_daemon.cli.receipts_read import read
    from edge_daemon.cli.support import echo_json
    from edge_daemon.contract import ReceiptQuery

    query = ReceiptQuery(device_id=device, since=since, oldest_first=True)
    count = read(config_path, lambda reader: _export(reader, query, output))
    if output is not None and as_json:
        echo_json({"receipts": count, "file": str(output)})
    elif output is not None:
        click.echo(f"{output}: {count} receipts")


async def _export(reader: "Reader", query: "ReceiptQuery", output: Path | None) -> int:
    import msgspec

    from edge_daemon.cli.receipts_read import every, new_private_file

    def line(receipt: "Receipt") -> bytes:
        return msgspec.json.encode(receipt) + b"\n"

    count = 0
    if output is None:
        async for receipt in every(reader, query):
            sys.stdout.buffer.write(line(receipt))
            count += 1
        return count
    with new_private_file(output) as file:
        async for receipt in every(reader, query):
            file.write(line(receipt))
            count += 1
    return count
