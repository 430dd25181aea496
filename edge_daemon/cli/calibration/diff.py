"""`edge-daemon calibration diff`: what changed between two calibrations."""

from pathlib import Path

import click

from edge_daemon.cli.options import config_option, json_option


@click.command()
@click.argument("device")
@click.argument("a")
@click.argument("b", default="current")
@config_option("the store lies in its state_dir")
@json_option
def command(device: str, a: str, b: str, config_path: Path, as_json: bool) -> None:
    """Say what changed from calibration A to B of DEVICE, in millimetres over the screen. B is the one in use.

    \b
    edge-daemon calibration diff phone-1 11 12
    """
    from edge_daemon.cli.support import echo_json, staff_errors, store_of

    with staff_errors():
        from calibration.store import diff

        store = store_of(config_path, device)
        change = diff(store.load(a), store.load(b))
    if as_json:
        echo_json(change)
        return
    for line in change.lines():
        click.echo(line)
