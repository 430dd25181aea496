"""How a receipt is kept in a row, and taken out of it again: nothing that does not fit together leaves as an answer."""

import zlib
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import msgspec

from edge_daemon.contract import Receipt
from edge_daemon.ledger.errors import LedgerCorrupt, StorageFault
from edge_daemon.ledger.types import CommandRef

COLUMNS = "id, key, fingerprint, settled, acknowledged, review, crc, command, receipt"
"""As `row_of` takes them."""

_DIGEST_BYTES = 16
encode = msgspec.msgpack.Encoder().encode
_decode_receipt = msgspec.msgpack.Decoder(Receipt).decode
_decode_command = msgspec.msgpack.Decoder(CommandRef).decode


class Filed(NamedTuple):
    """What the columns beside the receipt say of it."""

    settled: bool
    acknowledged: bool
    review: bool


class Row:
    """A row whose checksum is right. What it says is taken out when asked for: settling a receipt need not read it."""

    def __init__(
        self, path: Path, row_id: int, fingerprint: bytes, filed: Filed, command: bytes | None, blob: bytes
    ):
        self._path = path
        self.id = row_id
        self.fingerprint = fingerprint
        self._filed = filed
        self._command = command
        self._blob = blob

    @property
    def acknowledged(self) -> bool:
        return self._filed.acknowledged

    @property
    def pending(self) -> bool:
        return self._command is not None

    @cached_property
    def command(self) -> CommandRef | None:
        """None once it is settled. Raises LedgerCorrupt."""
        try:
            return None if self._command is None else _decode_command(self._command)
        except msgspec.DecodeError as error:
            raise self._corrupt(f"cannot be read: {error}") from error

    @cached_property
    def receipt(self) -> Receipt:
        """Raises LedgerCorrupt."""
        try:
            receipt = _decode_receipt(self._blob)
        except msgspec.DecodeError as error:
            raise self._corrupt(f"cannot be read: {error}") from error
        if len({receipt.status == "pending", not self._filed.settled, self.pending}) != 1:
            raise self._corrupt(f"is {receipt.status} but filed otherwise")
        if receipt.requires_manual_review and not self._filed.review:
            raise self._corrupt("waits for a review but is filed otherwise")
        return receipt

    def require_readable(self) -> None:
        """Raises LedgerCorrupt."""
        _ = self.receipt, self.command

    def _corrupt(self, detail: str) -> LedgerCorrupt:
        return LedgerCorrupt(StorageFault("corrupt", self._path, f"receipt row {self.id} {detail}"))


class Digests:
    """Salted, so that two ledgers cannot be compared; the salt is in the file, so a short text can be guessed
    by whoever holds the file and tries them all."""

    def __init__(self, salt: bytes) -> None:
        self._salt = salt

    def text(self, text: str) -> str:
        return self._digest(b"text", text.encode()).hex()

    def key(self, device_id: str, key: str) -> bytes:
        return self._digest(b"key", msgspec.msgpack.encode((device_id, key)))

    def action(self, canonical: bytes) -> bytes:
        return self._digest(b"action", canonical)

    def _digest(self, purpose: bytes, content: bytes) -> bytes:
        return blake2b(content, key=self._salt, person=purpose, digest_size=_DIGEST_BYTES).digest()


def row_of(
    path: Path,
    row_id: int,
    key: bytes,
    fingerprint: bytes,
    settled: int | None,
    acknowledged: int,
    review: int,
    crc: int,
    command: bytes | None,
    blob: bytes,
) -> Row:
    """path: of the ledger, for the error. Raises LedgerCorrupt."""
    if crc != crc_of(key, fingerprint, command, blob):
        detail = f"receipt row {row_id} does not match its checksum"
        raise LedgerCorrupt(StorageFault("corrupt", path, detail))
    filed = Filed(settled is not None, bool(acknowledged), bool(review))
    return Row(path, row_id, fingerprint, filed, command, blob)


def device_of(digests: Digests, key: bytes, blob: bytes) -> str | None:
    """Whose receipt a row holds that does not match its checksum; None unless its key vouches for it."""
    try:
        receipt = _decode_receipt(blob)
    except msgspec.DecodeError:
        return None
    return receipt.device_id if digests.key(receipt.device_id, receipt.idempotency_key) == key else None


def crc_of(key: bytes, fingerprint: bytes, command: bytes | None, receipt: bytes) -> int:
    return zlib.crc32(b"".join((key, fingerprint, command or b"", receipt)))
