"""A HID board for the real kills, and the phone at the other end of its USB cable, which notes what is typed."""

import time
from pathlib import Path
from struct import unpack_from

import trio

from edge_daemon.bench.crash.real_board import RealBoard
from edge_daemon.bench.crash.real_notes import PhoneLog, Symbol
from edge_daemon.bench.twin import wiring
from edge_daemon.bench.twin.boards import Runtime
from edge_daemon.bench.twin.hidhost import HidHost
from edge_daemon.bench.twin.phone import Phone
from edge_daemon.bench.twin.truth import Truth


class RealKeys(RealBoard):
    """A keyboard of one phone."""

    def __init__(self, log: PhoneLog, name: str, uid: str, directory: Path, runtime: Runtime) -> None:
        super().__init__("hid", name, uid, directory, runtime)
        self._log = log
        self._phone = Phone(Truth(0))
        # A machine that stops for half a second must not look like a key that was held so long.
        self._host = HidHost(self._phone, "us", repeats=False)
        self._phone.on_change(self._note)

    @property
    def keys_down(self) -> int:
        """How many the phone believes to be down now."""
        return self._host.keys_down

    async def serve(self, stream: trio.SocketStream) -> None:
        records, host = wiring.Records(), self._host
        try:
            while (data := await self._receive_until_due(stream)) != b"":
                now_ns = time.monotonic_ns()
                for kind, payload in records.feed(data or b""):
                    if kind == wiring.HID_DESCRIPTOR:
                        offset, last = unpack_from("<HB", payload)
                        host.descriptor(offset, bool(last), payload[3:], now_ns)
                    elif kind == wiring.HID_REPORT:
                        host.report(payload, now_ns)
                host.advance(now_ns)
                if answers := host.take_answers():
                    await stream.send_all(answers)
        finally:
            host.unplugged(time.monotonic_ns())

    async def _receive_until_due(self, stream: trio.SocketStream) -> bytes | None:
        """What the board sent; None when the phone has something to do first; empty at the end."""
        due_ns = self._host.due_ns()
        wait_s = float("inf") if due_ns is None else max(0.0, (due_ns - time.monotonic_ns()) / 1e9)
        with trio.move_on_after(wait_s):
            return bytes(await stream.receive_some())
        return None

    def _note(self) -> None:
        """The phone felt something: what it is, and when."""
        now_ns, log, phone = time.monotonic_ns(), self._log, self._phone
        log.typed += [Symbol(now_ns, character) for character in phone.typed[len(log.typed) :]]
        log.strokes += [Symbol(now_ns, key.name) for key in phone.keys[len(log.strokes) :]]
        log.others += ["a contact of the keyboard's touch screen"] * len(phone.touches_since(len(log.others)))
