"""What the daemon logs during a history: kept, so that it can be looked through, and kept off the terminal."""

import logging
from types import TracebackType

CHATTY_EVERY = 16
"""Of so many seeds one keeps every line, the others only warnings: to format them all takes longer than a history."""
_LOGGERS = ("edge_daemon", "calibration")


class Listening(logging.Handler):
    """For the time of a `with` block nothing that the product logs goes anywhere else."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.setLevel(logging.DEBUG if seed % CHATTY_EVERY == 0 else logging.WARNING)
        self._lines: list[str] = []
        self._former: list[tuple[logging.Logger, int, bool]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(self.format(record))

    def heard(self) -> bytes:
        return "\n".join(self._lines).encode()

    def __enter__(self) -> "Listening":
        for name in _LOGGERS:
            logger = logging.getLogger(name)
            self._former.append((logger, logger.level, logger.propagate))
            logger.setLevel(self.level)
            logger.propagate = False
            logger.addHandler(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for logger, level, propagate in self._former:
            logger.removeHandler(self)
            logger.setLevel(level)
            logger.propagate = propagate
