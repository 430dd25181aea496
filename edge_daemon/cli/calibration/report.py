"""`edge-daemon calibration report`: one page on one calibration, for a person to judge."""

from pathlib import Path

import click

from edge_daemon.cli.options import config_option, json_option


@click.command()
@click.argument("device")
@click.argument("ref", default="current")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder.  [default: calibration-reports/DEVICE-NUMBER]",
)
@click.option(
    "--picture",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A raw picture of the same camera, to draw the errors into.",
)
@config_option("the store lies in its state_dir")
@json_option
def command(
    device: str, ref: str, out: Path | None, picture: Path | None, config_path: Path, as_json: bool
) -> None:
    """Write the report on a calibration of DEVICE: one self-contained page, and its figures as pictures.

    \b
    edge-daemon calibration report phone-1 11 --out /tmp/report
    """
    from calibration.errors import PictureRefused
    from calibration.report import write_report
    from edge_daemon.cli.support import before, decoded, echo_json, staff_errors, store_of

    with staff_errors():
        store = store_of(config_path, device)
        stored = store.load(ref)
        image = None
        if picture is not None:
            image = decoded(picture.read_bytes())
            if image is None:
                raise PictureRefused(f"{picture} is no picture that can be read; give a PNG or JPEG")
        folder = out or Path("calibration-reports") / f"{device}-{stored.number:04}"
        files = write_report(folder, stored, camera_picture=image, before=before(store, stored))
    if as_json:
        echo_json({"files": [str(path) for path in files]})
    else:
        click.echo(f"report: {files[0]}")
