"""The `edge-daemon` command. Each subcommand is one small module, imported only when it is used."""

import importlib

import click

from edge_daemon import __version__

_COMMANDS: dict[str, str] = {
    "run": "edge_daemon.cli.run",
    "bench": "edge_daemon.cli.bench",
    "calibrate": "edge_daemon.cli.calibrate",
    "devices": "edge_daemon.cli.devices",
    "estop": "edge_daemon.cli.estop",
    "config": "edge_daemon.cli.config",
}


class LazyGroup(click.Group):
    """Keeps `edge-daemon --help` fast: OpenCV takes a second to import on a Pi."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module_name = _COMMANDS.get(cmd_name)
        if module_name is None:
            return None
        command = importlib.import_module(module_name).command
        assert isinstance(command, click.Command)
        return command


@click.group(
    cls=LazyGroup,
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
