"""What several commands share: a person gets a sentence, never a traceback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibration.errors import AcceptanceFailed, CalibrationError, Rejected
from edge_daemon.config import Config, ConfigError, load_config
from edge_daemon.contract import Refused
from edge_daemon.leaves import leaves
from edge_daemon.ledger import LedgerError
from edge_daemon.upstream.client import EdgeGone
from edge_daemon.upstream.listeners import EndpointRefused

if TYPE_CHECKING:
    from calibration.store import CalibrationStore, StoredCalibration
    from calibration.targets import Image


@contextmanager
def staff_errors() -> Iterator[None]:
    """Turns what a staff command may meet into one line on standard error and exit status 2.

    A calibration that was carried out and judged not good enough, by the limits or by a person, is status 1.
    """
    try:
        yield
    except* KeyboardInterrupt:
        click.echo("edge-daemon: interrupted; what was held has been given back", err=True)
        sys.exit(130)
    except* (AcceptanceFailed, Rejected) as group:
        _say(group)
        sys.exit(1)
    except* (ConfigError, Refused, EdgeGone, CalibrationError, EndpointRefused, LedgerError) as group:
        _say(group)
        sys.exit(2)


def _say(group: BaseExceptionGroup[BaseException]) -> None:
    for error in leaves(group):
        click.echo(f"edge-daemon: {error}", err=True)


def config_with(path: Path, device: str) -> Config:
    """The configuration, which has this device. Raises ConfigError."""
    config = load_config(path)
    if device not in config.devices:
        known = ", ".join(sorted(config.devices))
        raise ConfigError(f"{path}: there is no table [devices.{device}]; there are: {known}")
    return config


def store_of(path: Path, device: str) -> "CalibrationStore":
    """The device's calibrations on this machine's disk. Raises ConfigError, StoreError."""
    from calibration.store import CalibrationStore

    return CalibrationStore(config_with(path, device).calibration_root, device)


def echo_json(value: Any) -> None:
    """A struct, or plain data, as one JSON object."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value)).decode())


def before(store: "CalibrationStore", stored: "StoredCalibration") -> "StoredCalibration | None":
    """The entry before this one; None where there is none that can be read."""
    from calibration.errors import StoreError

    try:
        return store.load(stored.parent_id or stored.number - 1)
    except StoreError:
        return None


def decoded(jpeg: bytes) -> "Image | None":
    """A camera picture as BGR; None for what is no picture."""
    import cv2
    import numpy as np

    image = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
    return None if image is None else np.asarray(image, dtype=np.uint8)
