"""What the ledger takes and gives beside receipts."""

import msgspec

from edge_daemon.contract import Data, Orientation, Receipt
from edge_daemon.ledger.errors import StorageFault


class CommandRef(Data, frozen=True):
    """Whom to ask, and about what, when the process died between acceptance and outcome."""

    board_uid: str
    board_boot_id: int
    cmd_id: int
    """Unsigned 64 bits, as it goes over the board's wire."""


class Accepted(msgspec.Struct, frozen=True):
    """The key is new; its pending receipt is durable."""


class Existing(msgspec.Struct, frozen=True):
    """The key was accepted earlier for the very same action."""

    receipt: Receipt
    """As it stands now: still pending, or final."""


Acceptance = Accepted | Existing


class PendingEntry(msgspec.Struct, frozen=True):
    receipt: Receipt
    command: CommandRef


class Damage(msgspec.Struct, frozen=True):
    """A receipt's row that cannot be read: whether its action was done, nobody can tell from it any more."""

    device_id: str | None
    """Whose it is; None when not even that can be told."""
    fault: StorageFault


class Pruned(msgspec.Struct, frozen=True):
    """What one call of `prune` came to."""

    removed: int
    after: int | None
    """Where to go on; None: everything old enough has been looked at."""


class Resolved(msgspec.Struct, frozen=True):
    """A receipt as it stands after a person's word."""

    id: int
    receipt: Receipt
    acknowledged: bool


class Hold(msgspec.Struct, frozen=True):
    """Staff have the device."""

    hint: str
    """What is going on, in words to show a person."""
    owner: str


class DeviceMarks(msgspec.Struct, frozen=True):
    """What outlives a restart about one device, apart from its receipts."""

    highest_token: int = 0
    hold: Hold | None = None
    parked_note: str | None = None
    """Why a person has the screen; None when nobody has."""
    orientation: Orientation | None = None
    """How staff said the screen is turned; None: as it is configured."""
