"""`edge-daemon run`: the daemon itself."""

import sys
from pathlib import Path

import click

DEFAULT_CONFIG = Path("/etc/edge-daemon/edge-daemon.toml")


@click.command()
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path, dir_okay=False),
    default=DEFAULT_CONFIG,
    show_default=True,
    help="The rig's configuration. Every key is explained in systemd/edge-daemon.example.toml.",
)
def command(config_path: Path) -> None:
    """Run the daemon until SIGTERM or SIGINT; hands are parked and keys released before it ends.

    A board or camera that is missing does not stop it: that device is offline, with the reason, and comes
    alive when the part is plugged in. Exit status 2: the configuration was refused.
    """
    import trio

    from edge_daemon.config import ConfigError, load_config
    from edge_daemon.daemon import StartRefused, serve
    from edge_daemon.log import configure_logging

    try:
        config = load_config(config_path)
        configure_logging(config.log.level)
        trio.run(serve, config)
    except (ConfigError, StartRefused) as error:
        click.echo(f"edge-daemon: {error}", err=True)
        sys.exit(2)
