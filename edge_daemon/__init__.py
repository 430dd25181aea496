"""Edge daemon: physical actions on phones, with receipts."""

__version__ = "0.1.0"
