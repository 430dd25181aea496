"""How a receipt is kept in a row, and taken out of it again: nothing that does not fit together leaves as an answer."""

import zlib
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import msgspec

from edge_daemon.contract import Receipt
from edge_daemon.ledger.errors import LedgerCorrupt
from edge_daemon.ledger.sealed import corrupt
from edge_daemon.ledger.types import CommandRef

COLUMNS = "id, key, fingerprint, settled, acknowledged, review, filed, crc, command, receipt"
"""As `row_of` takes them."""

UNCHECKED = -9
"""`filed` in a row from before it was kept, which has not changed since."""

FILED_OTHERWISE = (
    f"filed NOT IN ({UNCHECKED}, coalesce(settled, -1) * 4 + acknowledged * 2 + review) "
    "OR acknowledged NOT IN (0, 1) OR review NOT IN (0, 1)"  # the sums above take an empty blob for 0
)
"""Of a row in which `Filed.check` is not what it should be."""

_DIGEST_BYTES = 16
encode = msgspec.msgpack.Encoder().encode
_decode_receipt = msgspec.msgpack.Decoder(Receipt).decode
_decode_command = msgspec.msgpack.Decoder(CommandRef).decode


class Filed(NamedTuple):
    """What the columns beside the receipt say of it."""

    settled: int | None
    """Order and time of settling; None: pending."""
    acknowledged: bool
    review: bool

    @property
    def check(self) -> int:
        """Kept beside the columns: a flipped bit would keep a receipt from its plane, or have it removed too early."""
        return (-1 if self.settled is None else self.settled) * 4 + self.acknowledged * 2 + self.review


class Row:
    """A row whose checksum is right. What it says is taken out when asked for: settling a receipt need not read it."""

    def __init__(
        self,
        path: Path,
        row_id: int,
        key: bytes,
        fingerprint: bytes,
        filed: Filed,
        command: bytes | None,
        blob: bytes,
    ):
        self._path = path
        self.id = row_id
        self.key = key
        self.fingerprint = fingerprint
        self.filed = filed
        self._command = command
        self._blob = blob

    @property
    def acknowledged(self) -> bool:
        return self.filed.acknowledged

    @property
    def pending(self) -> bool:
        return self._command is not None

    def removable(self, settled_by: int) -> bool:
        """Settled by then, acknowledged, and no person has yet to speak."""
        settled, acknowledged, review = self.filed
        return settled is not None and settled <= settled_by and acknowledged and not review

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
        if len({receipt.status == "pending", self.filed.settled is None, self.pending}) != 1:
            raise self._corrupt(f"is {receipt.status} but filed otherwise")
        if receipt.requires_manual_review and not self.filed.review:
            raise self._corrupt("waits for a review but is filed otherwise")
        return receipt

    def require_readable(self) -> None:
        """Raises LedgerCorrupt."""
        _ = self.receipt, self.command

    def _corrupt(self, detail: str) -> LedgerCorrupt:
        return corrupt(self._path, f"receipt row {self.id} {detail}")


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
    check: int,
    crc: int,
    command: bytes | None,
    blob: bytes,
) -> Row:
    """path: of the ledger, for the error. Raises LedgerCorrupt."""
    # A flipped bit can also make a number of a blob, or a text of a number.
    sorts = all(isinstance(one, bytes) for one in (key, fingerprint, command or b"", blob)) and all(
        isinstance(one, int) for one in (settled or 0, acknowledged, review, check)
    )
    if not sorts or crc != crc_of(key, fingerprint, command, blob):
        raise corrupt(path, f"receipt row {row_id} does not match its checksum")
    filed = Filed(settled, bool(acknowledged), bool(review))
    if check not in (UNCHECKED, filed.check):
        raise corrupt(path, filed_otherwise(row_id))
    return Row(path, row_id, key, fingerprint, filed, command, blob)


def filed_otherwise(row_id: int) -> str:
    return f"receipt row {row_id} (when settled, whether acknowledged or to be reviewed) does not match its check"


def device_of(digests: Digests, key: object, blob: object) -> str | None:
    """Whose receipt a row holds that does not match its checksum; None unless its key vouches for it."""
    if not isinstance(blob, bytes):
        return None
    try:
        receipt = _decode_receipt(blob)
    except msgspec.DecodeError:
        return None
    return receipt.device_id if digests.key(receipt.device_id, receipt.idempotency_key) == key else None


def crc_of(key: bytes, fingerprint: bytes, command: bytes | None, receipt: bytes) -> int:
    return zlib.crc32(b"".join((key, fingerprint, command or b"", receipt)))
