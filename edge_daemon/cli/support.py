"""What several commands share: a person gets a sentence, never a traceback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from calibration.errors import CalibrationError
from edge_daemon.config import ConfigError
from edge_daemon.contract import Refused
from edge_daemon.leaves import leaves
from edge_daemon.upstream.client import EdgeGone


@contextmanager
def staff_errors() -> Iterator[None]:
    """Turns what a staff command may meet into one line on standard error and exit status 2."""
    try:
        yield
    except* KeyboardInterrupt:
        click.echo("edge-daemon: interrupted; what was held has been given back", err=True)
        sys.exit(130)
    except* (ConfigError, Refused, EdgeGone, CalibrationError) as group:
        for error in leaves(group):
            click.echo(f"edge-daemon: {error}", err=True)
        sys.exit(2)
