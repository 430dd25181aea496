"""The frames that somebody may act on: one book per device."""

import secrets
from collections import OrderedDict
from dataclasses import dataclass

from edge_daemon.cameras.errors import UnknownFrame
from edge_daemon.cameras.ring import RawFrame
from edge_daemon.cameras.settle import SettleVerdict
from edge_daemon.contract.identity import Orientation

CAPACITY = 256
"""A holder looks about once per action; a frame 256 looks old is nobody's reason to act."""


@dataclass(frozen=True)
class FrameRecord:
    """What is remembered of a served frame, for the notes of the action that is bound to it.

    exposed_ns, exposed_about_ns: as in RawFrame: what is judged by, and what ages are told from.
    contradicted_by: the orientation that the picture itself showed, where it was not `orientation`.
    fencing_token: of the lease whose holder saw it. settle: the verdict at the time it was served.
    """

    frame_id: str
    camera: str
    sequence: int
    exposed_ns: int
    exposed_about_ns: int
    orientation: Orientation
    contradicted_by: Orientation | None
    settle: SettleVerdict
    fencing_token: int


class FrameBook:
    """Mints frame ids and remembers the newest of them, in memory: after a restart nothing was seen."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        if capacity < 1:
            raise ValueError(f"capacity {capacity}: must be at least 1")
        self._capacity = capacity
        # Ids of an earlier run must not name frames of this one.
        self._prefix = f"f-{secrets.token_hex(6)}-"
        self._minted = 0
        self._records: OrderedDict[str, FrameRecord] = OrderedDict()

    def mint(
        self,
        frame: RawFrame,
        *,
        orientation: Orientation,
        contradicted_by: Orientation | None = None,
        settle: SettleVerdict,
        fencing_token: int | None,
    ) -> FrameRecord | None:
        """A frame id for the lease's holder. A watch (`fencing_token` None) mints none."""
        if fencing_token is None:
            return None
        self._minted += 1
        record = FrameRecord(
            frame_id=f"{self._prefix}{self._minted}",
            camera=frame.camera,
            sequence=frame.sequence,
            exposed_ns=frame.exposed_ns,
            exposed_about_ns=frame.exposed_about_ns,
            orientation=orientation,
            contradicted_by=contradicted_by,
            settle=settle,
            fencing_token=fencing_token,
        )
        self._records[record.frame_id] = record
        if len(self._records) > self._capacity:
            self._records.popitem(last=False)
        return record

    def lookup(self, frame_id: str) -> FrameRecord:
        """Raises UnknownFrame, which says whether it is forgotten, of an earlier run, or never was."""
        record = self._records.get(frame_id)
        if record is not None:
            return record
        number = frame_id.removeprefix(self._prefix)
        if (
            number != frame_id
            and number.isascii()
            and number.isdigit()
            and 1 <= int(number[:20]) <= self._minted
        ):
            raise UnknownFrame(
                f"frame {frame_id} is forgotten: {self._capacity} newer ones were served; look again"
            )
        raise UnknownFrame(
            f"frame {frame_id[:64]!r} was not served for this device since the daemon started; look again"
        )

    def __len__(self) -> int:
        return len(self._records)
