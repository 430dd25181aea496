"""Logging to standard error in the form journald reads: `<priority>logger: message`."""

import logging
import os

_PRIORITY = {
    logging.DEBUG: 7,
    logging.INFO: 6,
    logging.WARNING: 4,
    logging.ERROR: 3,
    logging.CRITICAL: 2,
}


class JournalFormatter(logging.Formatter):
    """sd-daemon(3): a line that begins with `<N>` is filed under priority N. Typed text never gets here."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record).replace("\n", "\n ")
        return f"<{_PRIORITY.get(record.levelno, 6)}>{text}"


def configure_logging(level: str) -> None:
    """One handler on the root logger; the journal adds the time, a terminal gets it from us."""
    under_systemd = "JOURNAL_STREAM" in os.environ
    handler = logging.StreamHandler()
    handler.setFormatter(
        JournalFormatter("%(name)s: %(message)s")
        if under_systemd
        else logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    )
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
