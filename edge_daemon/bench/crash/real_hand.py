"""A hand for the real kills. The phone's log is made of the setpoints that the board gives its drives, whatever
anybody says on the link."""

import time
from pathlib import Path
from struct import unpack

import trio

from edge_daemon.bench.crash.real_board import RealBoard
from edge_daemon.bench.crash.real_notes import Contact, PhoneLog
from edge_daemon.bench.link.presses import GLASS_Z_UM
from edge_daemon.bench.twin import wiring
from edge_daemon.bench.twin.boards import Runtime


class Glass:
    """Setpoints of the drives in, contacts out."""

    def __init__(self, log: PhoneLog) -> None:
        self._log = log
        self._contact: Contact | None = None

    def setpoint(self, x_um: int, y_um: int, z_um: int, now_ns: int) -> None:
        place = (x_um, y_um)
        if z_um >= GLASS_Z_UM:
            self._contact = None
        elif self._contact is None:
            self._contact = Contact(now_ns, place, now_ns, place)
            self._log.contacts.append(self._contact)
        else:
            self._contact.last_ns, self._contact.end_um = now_ns, place


class RealHand(RealBoard):
    """A hand over one phone."""

    def __init__(self, log: PhoneLog, name: str, uid: str, directory: Path, runtime: Runtime) -> None:
        super().__init__("hand", name, uid, directory, runtime)
        self._glass = Glass(log)

    async def serve(self, stream: trio.SocketStream) -> None:
        records = wiring.Records()
        async for data in stream:
            now_ns = time.monotonic_ns()
            for kind, payload in records.feed(bytes(data)):
                if kind == wiring.JOINTS:
                    x_um, y_um, z_um = unpack("<iii", payload)
                    self._glass.setpoint(x_um, y_um, z_um, now_ns)
