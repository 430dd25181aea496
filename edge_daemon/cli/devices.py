"""`edge-daemon devices`: what the running daemon has, and what each part says about itself."""

import sys
from pathlib import Path
from typing import Any, get_args

import click

from edge_daemon.cli.run import DEFAULT_CONFIG
from edge_daemon.upstream.service import WantedOrientation


@click.group(invoke_without_command=True)
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path, dir_okay=False),
    default=DEFAULT_CONFIG,
    show_default=True,
    help="The running daemon's configuration; its staff socket is asked.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON array of device descriptions, as the plane sees them."
)
@click.option(
    "--release",
    metavar="DEVICE",
    help="Give DEVICE back to the plane although a session that is gone still holds it.",
)
@click.pass_context
def command(context: click.Context, config_path: Path, as_json: bool, release: str | None) -> None:
    """List devices with status, reason, holder and boards.

    Exit status 1 when a device is not online.
    """
    if context.invoked_subcommand is not None:
        context.obj = config_path
        return
    _list(config_path, as_json, release)


@command.command()
@click.argument("device")
@click.argument("turned", metavar="ORIENTATION", type=click.Choice(get_args(WantedOrientation)))
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="As of `devices`, whose own is taken without it.",
)
@click.pass_obj
def orientation(listed: Path, device: str, turned: WantedOrientation, config_path: Path | None) -> None:
    """Say how DEVICE's screen is turned from now on; `found` takes what the camera's picture shows.

    \b
    landscape_left    the phone is turned counter-clockwise, its top edge points left
    landscape_right   clockwise
    """
    import trio

    from edge_daemon.cli.support import config_with, staff_errors
    from edge_daemon.upstream.client import connect_staff

    async def say() -> str:
        async with connect_staff(Path(config.staff.unix_socket), "devices") as edge:
            await edge.set_orientation(device, turned)
            (described,) = (one for one in await edge.list_devices() if one.device_id == device)
            return described.orientation

    with staff_errors():
        config = config_with(config_path or listed, device)
        click.echo(f"{device}: {trio.run(say)}")


def _list(config_path: Path, as_json: bool, release: str | None) -> None:
    import msgspec
    import trio

    from edge_daemon.cli.support import staff_errors
    from edge_daemon.config import load_config
    from edge_daemon.contract import DeviceDescription
    from edge_daemon.upstream.client import connect_staff

    async def ask() -> tuple[tuple[DeviceDescription, ...], str | None]:
        async with connect_staff(Path(config.staff.unix_socket), "devices") as edge:
            if release is not None:
                await edge.release_hold(release, force=True)
            raised = edge.epoch_raised and f"epoch {edge.epoch} since this start: {edge.epoch_raised}"
            return await edge.list_devices(), raised

    with staff_errors():
        config = load_config(config_path)
        devices, raised = trio.run(ask)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(devices)).decode())
    else:
        _show(devices)
        if raised is not None:
            click.echo(
                f"ledger: {raised}. Keys of before are answered as not known; holds and parkings may be missing too."
            )
    sys.exit(0 if all(device.status == "online" for device in devices) else 1)


def _show(devices: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("device", "status", "camera", "calibrated", "held", "boards", "keys")
    for device in devices:
        status = device.status if device.status_reason is None else f"{device.status}: {device.status_reason}"
        held = (
            device.staff_hold.hint
            if device.staff_hold
            else ("a person has the screen" if device.parked else "")
        )
        boards = "\n".join(
            f"{name} {board['uid']} firmware {board['firmware']}, last reset {board['resetCause']}"
            for name, board in device.metadata.items()
            if isinstance(board, dict) and "uid" in board
        )
        table.add_row(
            device.device_id,
            status,
            _camera(device),
            _calibrated(device),
            held,
            boards,
            ", ".join(device.capabilities.keys),
        )
    Console().print(table)
    for device in devices:
        if fault := device.metadata.get("storageFault"):
            click.echo(f"{device.device_id}: nothing new is accepted: {fault}")


def _camera(device: Any) -> str:
    """Its name, and what is wrong with it; why it is offline stands in the device's status in full."""
    said = device.metadata.get("camera") or {}
    lines = [f"{said.get('name', '')}"]
    if said.get("status") == "offline":
        lines.append(said.get("fault") or "being opened")
    lines += [f"{one['fault']}: {one['words']}" for one in said.get("degraded", ())]
    return "\n".join(lines)


def _calibrated(device: Any) -> str:
    """Yes or no, why not, and what the drift watch says."""
    said = device.metadata.get("calibration") or {}
    lines = ["yes" if device.calibrated else f"no: {said.get('why')}"]
    if warning := device.metadata.get("calibrationWarning"):
        lines.append(f"warning: {warning}")
    elif (said.get("drift") or {}).get("verdict") == "unmeasured":
        lines.append(f"drift unmeasured: {said['drift']['message']}")
    return "\n".join(lines)
