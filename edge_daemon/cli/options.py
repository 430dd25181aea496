"""Options that several commands have. Nothing heavy is imported: `--help` must be quick."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from edge_daemon.cli.run import DEFAULT_CONFIG

F = TypeVar("F", bound=Callable[..., Any])

MAX_PORT = 65535


def config_option(wording: str = "its staff socket is asked") -> Callable[[F], F]:
    """`--config`, the running daemon's."""
    return click.option(
        "--config",
        "config_path",
        type=click.Path(path_type=Path, dir_okay=False),
        default=DEFAULT_CONFIG,
        show_default=True,
        help=f"The running daemon's configuration; {wording}.",
    )


json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")


def host_and_port(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, int] | None:
    """HOST:PORT, brackets around an IPv6 host."""
    if value is None:
        return None
    host, colon, port = value.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not (port.isascii() and port.isdecimal()) or int(port) > MAX_PORT:
        raise click.BadParameter(f"{value!r} is not HOST:PORT, such as 192.168.1.20:7411")
    return host, int(port)


def page_options(function: F) -> F:
    """How the phone comes to show the targets."""
    for option in (
        click.option(
            "--targets",
            type=click.Path(path_type=Path, file_okay=False),
            default=Path("calibration-targets"),
            show_default=True,
            help="Folder for the page and the pictures to be opened on the phone by hand, full screen.",
        ),
        click.option(
            "--page",
            metavar="HOST:PORT",
            callback=host_and_port,
            help="Serve the page from this address of this machine; the phone opens it once and follows by itself.",
        ),
        click.option(
            "--yes",
            is_flag=True,
            help="Ask nobody: the pages are there or show themselves, missed places are repeated, the limits judge.",
        ),
    ):
        function = option(function)
    return function
