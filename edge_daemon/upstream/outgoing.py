"""What waits to be written to one session's peer: bounded, and cheap to give up where it may be given up."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from edge_daemon.contract import DeviceDescription
from edge_daemon.upstream.codec import encode_from_edge
from edge_daemon.upstream.messages import DeviceChanged, Ping, RequestId

CHUNK_BYTES: Final = 64 * 1024
"""Written at a time: small enough that a slow but living reader shows progress within the silence timeout."""


@dataclass(frozen=True, slots=True)
class _Frame:
    data: bytes
    answers: RequestId | None


class Outgoing:
    """A queue of frames, with two kinds that are made only when their turn comes: pings, which must carry the
    time of writing, and device changes, of which only the latest per device is worth sending.
    """

    def __init__(self) -> None:
        self._frames: deque[_Frame] = deque()
        self._offset = 0
        self._told: dict[str, DeviceDescription] = {}
        self._changed: dict[str, DeviceDescription] = {}
        self._ping_wanted = False
        self._greeting = False
        self.queued_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._frames or self._changed or self._ping_wanted)

    def greet(self, welcome: msgspec.Struct) -> None:
        """Queues the first message of an open session: no ping overtakes it. Raises MessageTooLong."""
        self.put(welcome)
        self._greeting = True

    def put(self, message: msgspec.Struct, answers: RequestId | None = None) -> None:
        """Raises MessageTooLong; nothing was queued then."""
        data = encode_from_edge(message)
        self._frames.append(_Frame(data, answers))
        self.queued_bytes += len(data)

    def want_ping(self) -> None:
        self._ping_wanted = True

    def told(self, devices: tuple[DeviceDescription, ...]) -> None:
        """The peer has been sent these descriptions."""
        for device in devices:
            self._told[device.device_id] = device

    def device_changed(self, device: DeviceDescription) -> None:
        if self._told.get(device.device_id) == device:
            self._changed.pop(device.device_id, None)
        else:
            self._changed[device.device_id] = device

    def take(self, now_ns: int, on_ping: Callable[[int], None]) -> tuple[bytes, list[RequestId]]:
        """The next bytes, at most `CHUNK_BYTES`, and the requests whose answers are complete with them."""
        if self._offset == 0:
            self._make_late_frames(now_ns, on_ping)
        chunk = bytearray()
        answered: list[RequestId] = []
        while self._frames and len(chunk) < CHUNK_BYTES:
            head = self._frames[0]
            part = head.data[self._offset : self._offset + CHUNK_BYTES - len(chunk)]
            chunk += part
            self._offset += len(part)
            if self._offset < len(head.data):
                break
            self._frames.popleft()
            self._greeting = False
            self._offset = 0
            if head.answers is not None:
                answered.append(head.answers)
        self.queued_bytes -= len(chunk)
        return bytes(chunk), answered

    def _make_late_frames(self, now_ns: int, on_ping: Callable[[int], None]) -> None:
        if self._ping_wanted and not self._greeting:
            self._ping_wanted = False
            data = encode_from_edge(Ping(monotonic_ns=now_ns))
            self._frames.appendleft(_Frame(data, None))
            self.queued_bytes += len(data)
            on_ping(now_ns)
        changed, self._changed = self._changed, {}
        for device in changed.values():
            self.put(DeviceChanged(device=device))
        self.told(tuple(changed.values()))
