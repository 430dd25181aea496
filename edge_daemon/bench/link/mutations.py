"""Spoiled frames without end, the same ones on CPython and MicroPython: no typing, no numpy here.

A spoiled frame is never an intact one, nor holds one: whatever a receiver takes from it, it made up.
"""

from firmware import wire

KINDS = 11
_NOISE_SIZE = 4096


class Dice:
    """Marsaglia's xorshift32 ("Xorshift RNGs", Journal of Statistical Software, 2003)."""

    def __init__(self, seed: int) -> None:
        self._x = (seed * 2654435761 + 88172645) & 0x3FFFFFFF or 1

    def below(self, n: int) -> int:
        # 30 bits, so that MicroPython's small integers are enough on 32-bit chips' host builds.
        x = self._x
        x ^= (x << 13) & 0x3FFFFFFF
        x ^= x >> 17
        x ^= (x << 5) & 0x3FFFFFFF
        self._x = x
        return x % n


class Mutator:
    """Spoils whole frames (with both delimiters, as encode_frame makes them)."""

    def __init__(self, frames: "list[bytes]", seed: int) -> None:
        self._contents = [frame[1:-1] for frame in frames]
        self._dice = Dice(seed)
        self._noise = bytes(self._dice.below(256) for _ in range(_NOISE_SIZE))

    def next(self) -> bytes:
        """The next spoiled frame, with delimiters around it."""
        dice = self._dice
        while True:
            content = self._contents[dice.below(len(self._contents))]
            spoiled = self._spoil(content, dice.below(KINDS), 1 + dice.below(len(content) - 1))
            if spoiled != content:
                return b"\x00" + spoiled + b"\x00"

    def _spoil(self, content: bytes, kind: int, at: int) -> bytes:
        dice = self._dice
        if kind < 3:
            return self._flip(content, 1 + dice.below(3))
        if kind == 3:
            return content[:at]
        if kind == 4:
            return content[:at] + content[at + 1 :]
        if kind == 5:
            return content[:at] + self._some_noise(1 + dice.below(4)) + content[at:]
        if kind == 6:
            return content[:at] + b"\x00" + content[at:]
        if kind == 7:
            return content + self._contents[dice.below(len(self._contents))]
        if kind == 8:
            return content[at:] + content[:at]
        if kind == 9:
            return self._some_noise(1 + dice.below(wire.FRAME_MAX + 100))
        return content[:at] + self._some_noise(len(content) - at)

    def _flip(self, content: bytes, times: int) -> bytes:
        spoiled = bytearray(content)
        for _ in range(times):
            spoiled[self._dice.below(len(spoiled))] ^= 1 << self._dice.below(8)
        return bytes(spoiled)

    def _some_noise(self, size: int) -> bytes:
        at = self._dice.below(_NOISE_SIZE - size)
        return self._noise[at : at + size]


class Forger:
    """Frames with a right checksum that were never sent: what a broken or strange host would say.

    None of them may move anything: another boot or session, a command far ahead or far behind, or a body that
    does not fit its type.
    """

    _TYPES = (
        wire.CMD,
        wire.HOST_HEARTBEAT,
        wire.QUERY,
        wire.CLEAR,
        wire.EVENT_ACK,
        wire.HELLO,
        0,
        0x55,
        0xFF,
    )

    def __init__(self, boot_id: int, session: int, seed: int) -> None:
        self._boot_id = boot_id
        self._session = session
        self._dice = Dice(seed)
        self._noise = bytes(self._dice.below(256) for _ in range(_NOISE_SIZE))

    def next(self) -> bytes:
        dice = self._dice
        frame_type = self._TYPES[dice.below(len(self._TYPES))]
        boot_id, session, seq = self._boot_id, self._session, 0x4000 + dice.below(0x3000)
        stranger = dice.below(3)
        if stranger == 0:
            boot_id ^= 1 << dice.below(30)
            frame_type = (wire.OPEN, wire.ESTOP, frame_type)[dice.below(3)]
        elif stranger == 1:
            session ^= 1 << dice.below(30)
        at = dice.below(_NOISE_SIZE - wire.BODY_MAX)
        body = self._noise[at : at + dice.below(wire.BODY_MAX + 1)]
        return wire.encode_frame(frame_type, boot_id, session, seq, body)
