"""How a suite that could not run says so: one sentence, or one JSON object, and exit status 2."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from calibration.errors import CalibrationError
from edge_daemon.bench.calibrate.run import RunFailed
from edge_daemon.bench.daemon_process import DaemonFailed
from edge_daemon.bench.plane import PlaneDisconnected, PlaneError
from edge_daemon.bench.stage import StageFailed
from edge_daemon.bench.twin.boards import BoardCrashed
from edge_daemon.bench.twin.rig import RigError
from edge_daemon.contract import Refused
from edge_daemon.leaves import leaves
from edge_daemon.upstream.client import EdgeGone


@contextmanager
def bench_errors(as_json: bool, suite: str) -> Iterator[None]:
    """What a rig that does not come up raises, as words for whoever ran the suite."""
    try:
        yield
    except* KeyboardInterrupt:
        click.echo(f"edge-daemon bench {suite}: interrupted", err=True)
        sys.exit(130)
    except* (
        BoardCrashed,
        CalibrationError,
        DaemonFailed,
        EdgeGone,
        PlaneDisconnected,
        PlaneError,
        Refused,
        RigError,
        RunFailed,
        StageFailed,
    ) as group:
        reasons = [f"{type(error).__name__}: {error}" for error in leaves(group)]
        if as_json:
            click.echo(json.dumps({"suite": suite, "verdict": "fail", "problems": reasons}))
        for reason in reasons:
            click.echo(f"edge-daemon bench {suite}: {reason}", err=True)
        sys.exit(2)
