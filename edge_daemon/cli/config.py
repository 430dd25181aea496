"""`edge-daemon config check`: refuse a bad file before the daemon does."""

import sys
from pathlib import Path

import click

from edge_daemon.cli.run import DEFAULT_CONFIG


@click.group()
def command() -> None:
    """Look at the configuration."""


@command.command()
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False), default=DEFAULT_CONFIG)
def check(path: Path) -> None:
    """Read PATH as the daemon would; say what is wrong with it, or that nothing is.

    Exit status 2 when it would be refused.
    """
    from edge_daemon.config import ConfigError, load_config
    from edge_daemon.daemon import StartRefused, pages_of, screens_of
    from edge_daemon.upstream.listeners import EndpointRefused

    try:
        config = load_config(path)
        pages_of(config, screens_of(config))
    except (ConfigError, StartRefused, EndpointRefused) as error:
        click.echo(f"edge-daemon: {error}", err=True)
        sys.exit(2)
    click.echo(
        f"{path}: good. {len(config.devices)} device(s), {len(config.boards)} board(s), "
        f"{len(config.cameras)} camera(s)"
    )
