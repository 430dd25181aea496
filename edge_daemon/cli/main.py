"""The `edge-daemon` command. Each subcommand is one small module, imported only when it is used."""

import click

from edge_daemon import __version__
from edge_daemon.cli.lazy import LazyGroup

_COMMANDS: dict[str, str] = {
    "run": "edge_daemon.cli.run",
    "bench": "edge_daemon.cli.bench",
    "calibrate": "edge_daemon.cli.calibrate",
    "calibration": "edge_daemon.cli.calibration",
    "devices": "edge_daemon.cli.devices",
    "estop": "edge_daemon.cli.estop",
    "receipts": "edge_daemon.cli.receipts",
    "config": "edge_daemon.cli.config",
}


@click.group(
    cls=LazyGroup,
    modules=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="edge-daemon")
def main() -> None:
    """Drives phones in rigs: taps by a robot hand, keys by an ESP32 HID board, frames by a camera.

    \b
    Try it without hardware:   edge-daemon bench
    On a rig:                  edge-daemon run --config /etc/edge-daemon/edge-daemon.toml
                               edge-daemon calibrate phone-1
    """
