"""A line that loses whole frames: what a receiver with a full buffer, or a burst of noise, does to one."""

import numpy as np

# A frame stands between two of these (firmware/framing.py).
DELIMITER = 0


class FrameLoss:
    """Loses each frame with the same probability; what is no frame passes. Bytes in, bytes out.

    A frame is passed on as a whole, once its end has come.
    """

    def __init__(self, rng: np.random.Generator, rate: float) -> None:
        self._rng = rng
        self._rate = rate
        self._frame = bytearray()
        self.passed = 0
        self.lost = 0

    def carry(self, data: bytes) -> bytes:
        """What arrives of `data` and of what was held back before it."""
        arrived = bytearray()
        for byte in data:
            if byte != DELIMITER:
                self._frame.append(byte)
                continue
            if self._frame:
                arrived += self._decide()
            arrived.append(DELIMITER)
        return bytes(arrived)

    def _decide(self) -> bytes:
        frame, self._frame = bytes(self._frame), bytearray()
        if self._rng.random() < self._rate:
            self.lost += 1
            return b""
        self.passed += 1
        return frame
