"""Whether this file is the ledger that was here last time.

A card is swapped, a backup is put back: such a ledger lacks receipts, and "no such receipt" would be a lie
about keys it never saw. A witness file beside the ledger and the ledger itself both keep an epoch and a
nonce that changes each time the ledger is opened and closed. Where they disagree, the epoch is raised and
older keys are answered "not known".

A ledger's first epoch is drawn at random: one that was made on a new card is no earlier one's, and what a plane
remembers shows it. So is the one of a ledger that was put back without its witness: it may be put back twice.

What this cannot see: both files put back together from a copy, unless the epoch was raised in between, and a copy taken
and put back within one opening that ended in a crash.
"""

import zlib
from pathlib import Path

import msgspec

from edge_daemon.contract import Refused
from edge_daemon.ledger.errors import EpochsExhausted
from edge_daemon.ledger.files import Files, write_durably

RENEWALS_BITS = 20
"""An epoch's low bits count from 1; those above are of the ledger that a rig began with."""
LINEAGE_BITS = 32
"""Epochs stay below 2^53, the largest integer that every reader of MessagePack and JSON has."""
LINEAGE_BYTES = LINEAGE_BITS // 8
JUMP_BYTES = 3
"""Of an epoch after a copy was put back. Hundreds of such jumps, one upon the other, stay below 2^53."""

HIGHEST = 2**53 - 1
"""The contract carries no later one."""
HIGHEST_REMEMBERED = 2**53 - 2**50
"""A plane that says that it remembers a later one is not believed: ours, which then follows that one, keeps room for 63
of the widest jumps and for any number of renewals. A ledger comes there by itself when 190 copies were put back."""


def first_epoch(random: bytes) -> int:
    """Of a ledger made where there was none. random: LINEAGE_BYTES of them."""
    return int.from_bytes(random, "big") << RENEWALS_BITS | 1


def epoch_of_a_copy(epoch: int, random: bytes) -> int:
    """A later one than that of the copy, and not the one in which the same copy went on when it was put back before.

    random: LINEAGE_BYTES of them. Raises EpochsExhausted.
    """
    jump = 1 + int.from_bytes(random[:JUMP_BYTES], "big")
    return carried((epoch >> RENEWALS_BITS) + jump << RENEWALS_BITS | 2)


def epoch_after(epoch: int) -> int:
    """The next one that does not look as if a ledger had begun in it. Raises EpochsExhausted."""
    after = epoch + 1
    return carried(after + 1 if never_raised(after) else after)


def carried(epoch: int) -> int:
    """The same, where the contract can carry it. Raises EpochsExhausted."""
    if not 1 <= epoch <= HIGHEST:
        raise EpochsExhausted(epoch, HIGHEST)
    return epoch


def never_raised(epoch: int) -> bool:
    """Whether a ledger in that epoch has been complete since its rig began."""
    return epoch & ((1 << RENEWALS_BITS) - 1) == 1


def raised_for(remembered: int, ours: int) -> int:
    """The epoch to go on in when a plane remembers another one: ours, where the ledger of that one is known to be this.

    A later one tells that this ledger is older than what the plane has seen. An earlier one of another beginning tells
    that this ledger was made anew since, as on a new card; no need to raise it twice for that.
    Raises Refused `invalid_argument` for one that no edge has told: behind it there would soon be none left.
    """
    if remembered > ours:
        if remembered > HIGHEST_REMEMBERED:
            raise Refused(
                "invalid_argument",
                f"epoch: {remembered} is none that an edge would have told (its own is {ours}, and none is above "
                f"{HIGHEST_REMEMBERED}); say the highest one of this edge's welcome and receiptAnswer, or none",
                field="epoch",
            )
        return epoch_after(remembered)
    of_another = remembered >> RENEWALS_BITS != ours >> RENEWALS_BITS
    return epoch_after(ours) if of_another and never_raised(ours) else ours


class Witness(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`next` is set while the nonce is being changed: either of the two may then be found in the ledger.

    `nonce` is None from before a ledger was created until it is there: no receipt can be missing yet.
    """

    epoch: int
    nonce: str | None
    next: str | None = None


class Stamp(msgspec.Struct, frozen=True):
    """The ledger's own copy."""

    epoch: int
    nonce: str


class Lineage(msgspec.Struct, frozen=True):
    epoch: int
    renewed: str | None = None
    """Why the epoch was raised; None when this is the ledger of last time, or the very first."""


class WitnessUnreadable(Exception):
    """The file is there but damaged."""


def lineage(witness: Witness | None, stamp: Stamp | None, random: bytes) -> Lineage:
    """The epoch to go on with, from what was found: `stamp` is None when there is no ledger file.

    random: LINEAGE_BYTES of them, for an epoch that does not follow from what was found. Raises EpochsExhausted.
    """
    if stamp is None:
        if witness is None:
            return Lineage(first_epoch(random))
        if witness.nonce is None:
            return Lineage(carried(witness.epoch))
        return Lineage(epoch_after(witness.epoch), "the ledger file was missing")
    if witness is None:
        raised = epoch_of_a_copy(stamp.epoch, random)
        return Lineage(raised, "the ledger had no readable witness file beside it")
    epoch = max(witness.epoch, stamp.epoch)
    if stamp.nonce in (witness.nonce, witness.next):
        return Lineage(carried(epoch))
    return Lineage(epoch_after(epoch), "the ledger file is an older copy, or another one than last time")


def new_nonce(files: Files) -> str:
    return files.random_bytes(12).hex()


def read_witness(files: Files, path: Path) -> Witness | None:
    """None when there is no such file. Raises WitnessUnreadable, OSError."""
    try:
        content = files.read(path)
    except FileNotFoundError:
        return None
    body, _, check = content.rpartition(b"\n#")
    if check.strip() != _check(body):
        raise WitnessUnreadable(f"{path}: the checksum does not match")
    try:
        return msgspec.json.decode(body, type=Witness)
    except msgspec.DecodeError as error:
        raise WitnessUnreadable(f"{path}: {error}") from error


def write_witness(files: Files, path: Path, witness: Witness) -> None:
    """Durable when it returns; the old content or the new is there after a power cut. Raises OSError."""
    body = msgspec.json.encode(witness)
    write_durably(files, path, body + b"\n#" + _check(body) + b"\n")


def _check(body: bytes) -> bytes:
    return f"{zlib.crc32(body):08x}".encode("ascii")
