"""Where the receipts commands read: the running daemon over its staff socket, or its ledger file when none runs."""

import getpass
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path
from typing import IO, Protocol, TypeVar

import click
import msgspec
import trio

from edge_daemon.cli.support import staff_errors
from edge_daemon.config import ConfigError, load_config
from edge_daemon.contract import (
    MAX_RECEIPTS,
    Actor,
    Receipt,
    ReceiptAnswer,
    ReceiptPage,
    ReceiptQuery,
    Refused,
    ResolvedAs,
    kind_of,
)
from edge_daemon.ledger.offline import OfflineReceipts, daemon_has, offline_receipts
from edge_daemon.upstream.client import EdgeGone, StaffClient, connect_staff

T = TypeVar("T")


class Reader(Protocol):
    async def page(self, query: ReceiptQuery) -> ReceiptPage: ...

    async def devices(self) -> list[str]:
        """Those configured and those of which the ledger may have receipts."""
        ...

    async def lookup(self, device_id: str, key: str) -> ReceiptAnswer: ...

    async def resolve(
        self, device_id: str, key: str, outcome: ResolvedAs, note: str, actor: Actor
    ) -> ReceiptAnswer: ...


class _FromDaemon:
    def __init__(self, edge: StaffClient) -> None:
        self._edge = edge
        self.page = edge.list_receipts
        self.lookup = edge.get_receipt
        self.resolve = edge.resolve_receipt

    async def devices(self) -> list[str]:
        configured = {device.device_id for device in await self._edge.list_devices()}
        page = await self._edge.list_receipts(ReceiptQuery(limit=1))
        return sorted(configured.union(page.devices))


class _FromFile:
    def __init__(self, receipts: OfflineReceipts, configured: Iterable[str]) -> None:
        self._receipts = receipts
        self._configured = frozenset(configured)

    async def page(self, query: ReceiptQuery) -> ReceiptPage:
        return self._receipts.page(query)

    async def devices(self) -> list[str]:
        return sorted(self._configured.union(self._receipts.devices()))

    async def lookup(self, device_id: str, key: str) -> ReceiptAnswer:
        return self._receipts.lookup(device_id, key)

    async def resolve(
        self, device_id: str, key: str, outcome: ResolvedAs, note: str, actor: Actor
    ) -> ReceiptAnswer:
        raise AssertionError("only through the daemon, which tells the plane")


def read(config_path: Path, ask: Callable[[Reader], Awaitable[T]], *, running: bool = False) -> T:
    """What `ask` returns. running: the daemon must be running. Whatever fails is said in a line, exit status 2."""
    with staff_errors():
        config = load_config(config_path)
        socket, ledger = Path(config.staff.unix_socket), config.ledger_path

        async def main() -> T:
            try:
                async with connect_staff(socket, "receipts") as edge:
                    return await ask(_FromDaemon(edge))
            except EdgeGone:
                if running or _has(ledger):
                    raise
            click.echo(f"edge-daemon: no daemon runs; read from {ledger}", err=True)
            with offline_receipts(ledger) as receipts:
                return await ask(_FromFile(receipts, config.devices))

        return trio.run(main)
    raise AssertionError("unreachable: staff_errors exits")


def _has(ledger: Path) -> bool:
    try:
        return daemon_has(ledger)
    except OSError as error:
        raise ConfigError(f"{ledger}.lock: cannot be read: {error.strerror}") from error


async def every(reader: Reader, query: ReceiptQuery) -> AsyncGenerator[Receipt, None]:
    """All that the query takes, page after page. Raises Refused for a device that nobody knows."""
    if query.device_id is not None:
        await _known(reader, query.device_id)
    cursor: int | None = None
    while True:
        page = await reader.page(msgspec.structs.replace(query, cursor=cursor))
        for receipt in page.receipts:
            yield receipt
        cursor = page.next
        if cursor is None:
            return


async def collect(reader: Reader, query: ReceiptQuery, limit: int) -> list[Receipt]:
    """The first `limit` of them. Raises Refused for a device that nobody knows."""
    found: list[Receipt] = []
    query = msgspec.structs.replace(query, limit=min(limit, MAX_RECEIPTS))
    async with aclosing(every(reader, query)) as receipts:
        async for receipt in receipts:
            found.append(receipt)
            if len(found) == limit:
                break
    return found


async def _known(reader: Reader, device: str | None) -> list[str]:
    """The device, or all where none is given. Raises Refused: of a misspelt one nothing is to be said."""
    known = await reader.devices()
    if device is None:
        return known
    if device not in known:
        raise Refused(
            "unknown_device",
            f"unknown device {device!r}: it is not configured, and the ledger has never heard of it; known: "
            f"{', '.join(known)}",
        )
    return [device]


async def find(reader: Reader, key: str, device: str | None) -> Receipt:
    """Raises Refused when there is none, or more than one and no device given, or one that nobody knows."""
    devices = await _known(reader, device)
    answers = [await reader.lookup(name, key) for name in devices]
    found = [answer.receipt for answer in answers if answer.receipt is not None]
    where = ", ".join(devices) or "any device"
    if not found and all(answer.known for answer in answers):
        raise Refused("invalid_argument", f"no receipt by key {key} on {where}: nothing was executed for it")
    if not found:
        raise Refused(
            "invalid_argument",
            f"no receipt by key {key} on {where}; there may have been one: it was removed after its time, or the "
            "ledger is younger than the key",
        )
    if len(found) > 1:
        several = ", ".join(f"{receipt.device_id} ({kind_of(receipt)})" for receipt in found)
        raise Refused("invalid_argument", f"key {key} has a receipt on {several}: choose one with --device")
    return found[0]


async def resolved(
    reader: Reader, key: str, device: str | None, outcome: ResolvedAs, note: str, by: str | None
) -> Receipt:
    receipt = await find(reader, key, device)
    actor = Actor(kind="staff", id=by or _user())
    answer = await reader.resolve(receipt.device_id, key, outcome, note, actor)
    assert answer.receipt is not None
    return answer.receipt


@contextmanager
def new_private_file(path: Path) -> Iterator[IO[bytes]]:
    """Complete, or not there. Raises Refused."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise Refused("invalid_argument", f"{path} exists; choose another name or remove it") from None
    except OSError as error:
        raise Refused("invalid_argument", f"{path}: cannot be written: {error.strerror}") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
    except BaseException as error:
        with suppress(OSError):
            path.unlink()
        if isinstance(error, OSError):
            raise Refused("invalid_argument", f"{path}: cannot be written: {error.strerror}") from error
        raise


def _user() -> str | None:
    """Whoever typed it, also through sudo; None where the machine does not know."""
    with suppress(OSError, KeyError):
        return os.environ.get("SUDO_USER") or getpass.getuser()
    return None
