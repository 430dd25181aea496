"""`edge-daemon calibration targets`: what goes onto the phone and beside it."""

from pathlib import Path

import click

from edge_daemon.cli.options import config_option, json_option


@click.command()
@click.argument("device")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@config_option("of a running daemon that serves the page the address is asked")
@json_option
def command(device: str, folder: Path, config_path: Path, as_json: bool) -> None:
    """Write into FOLDER what the calibration of DEVICE shows: page, pictures, and the markers to print for the bed.

    \b
    edge-daemon calibration targets phone-1 ~/targets

    Print bed_markers.png or .svg at its true size and stick the four markers to the bed around the phone: they tell a
    camera that moved from a phone that moved.
    """
    import trio

    from calibration.targets.files import qr_terminal, write_targets
    from edge_daemon.cli.support import config_with, echo_json, staff_errors
    from edge_daemon.daemon import screens_of
    from edge_daemon.upstream.client import EdgeGone, connect_staff

    async def page_url() -> str | None:
        try:
            async with connect_staff(Path(config.staff.unix_socket), "targets") as edge:
                return (await edge.rig_facts(device)).page_url
        except EdgeGone:
            return None

    with staff_errors():
        config = config_with(config_path, device)
        url = trio.run(page_url)
        files = write_targets(folder, screens_of(config)[device], url)
    if as_json:
        echo_json({"folder": str(folder), "page": str(files.page), "url": url})
        return
    click.echo(f"page: {files.page}")
    click.echo(f"pictures: {', '.join(str(path) for path in (*files.boards.values(), *files.dots.values()))}")
    click.echo(f"bed markers, to print at true size: {files.bed_png} or {files.bed_svg}")
    if url is None:
        click.echo(
            "the daemon serves no page for this phone: open the file, or use calibrate --page HOST:PORT"
        )
    else:
        click.echo(f"the daemon serves the page to the phone: {url}")
        click.echo(qr_terminal(url))
