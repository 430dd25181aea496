"""`edge-daemon calibration show`: one calibration, and whether it may be used."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from edge_daemon.cli.options import config_option, json_option

if TYPE_CHECKING:
    from calibration.result import HandPart
    from calibration.store import BoardKey, HistoryEntry, StoredCalibration


@click.command()
@click.argument("device")
@click.argument("ref", default="current")
@config_option("the store lies in its state_dir")
@json_option
def command(device: str, ref: str, config_path: Path, as_json: bool) -> None:
    """Show a calibration of DEVICE: the one in use, or REF.

    \b
    edge-daemon calibration show phone-1
    edge-daemon calibration show phone-1 11 --json       all of it, with every raw point
    """
    from edge_daemon.cli.support import echo_json, staff_errors, store_of

    with staff_errors():
        store = store_of(config_path, device)
        stored = store.load(ref)
        entry = next(entry for entry in store.history() if entry.id == stored.id)
    if as_json:
        echo_json({"entry": entry, "stored": stored})
    else:
        _show(device, stored, entry)


def _show(device: str, stored: "StoredCalibration", entry: "HistoryEntry") -> None:
    from rich.console import Console
    from rich.table import Table

    from edge_daemon.staff.verdict import verdict_table

    console = Console()
    table = Table("", "", title=f"{device}: calibration {stored.label}", show_header=False)
    for name, value in _facts(stored, entry):
        table.add_row(name, value)
    console.print(table)
    if stored.calibration.acceptance is not None:
        console.print(verdict_table(stored.calibration.acceptance))


def _facts(stored: "StoredCalibration", entry: "HistoryEntry") -> list[tuple[str, str]]:
    from edge_daemon.cli.calibration.history import created_text, invalid_text

    calibration, camera = stored.calibration, stored.calibration.camera
    facts = [
        ("in use", "yes" if entry.current else "no"),
        ("not true since", invalid_text(entry)),
        ("made", created_text(stored.created)),
        ("how", stored.origin + (f", from {stored.parent_id}" if stored.parent_id else "")),
        ("note", stored.note),
        ("touches", str(len(calibration.touches))),
        ("camera", _camera(stored)),
        ("camera residual", f"{camera.quality.held_out_rms_px:.3f} px (board corners that were held out)"),
        ("control marks", _mm(camera.marks_mean_mm) + " mean, " + _mm(camera.marks_max_mm) + " max"),
    ]
    hand = calibration.hand
    if hand is not None:
        facts += [
            ("hand model", _hand(hand)),
            ("board", _board(stored.boards.hand)),
        ]
    elif calibration.digitizer is not None or calibration.pointer is not None:
        facts.append(("board", _board(stored.boards.hid)))
    return [(name, value) for name, value in facts if value]


def _hand(hand: "HandPart") -> str:
    left_out = hand.quality.leave_one_out_rms_mm.get(hand.model.kind)
    return f"{hand.model.kind}, leave-one-out {_mm(left_out)}, pressed {hand.overtravel_mm} mm beyond contact"


def _camera(stored: "StoredCalibration") -> str:
    model, camera = stored.calibration.camera.model, stored.camera
    name = camera.name if camera is not None else "not known"
    return f"{name}, {model.image_width} x {model.image_height} px"


def _mm(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.3f} mm"


def _board(board: "BoardKey | None") -> str:
    return "not known" if board is None else f"{board.uid} firmware {board.firmware or 'not known'}"
