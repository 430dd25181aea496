"""The rigs that the histories play on: their configuration, and a calibration for each hand, made once per process.

Everything is small and quick, so that a history is: a phone of 50 mm, a hand that crosses it in a fifth of a second.
"""

import atexit
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from calibration.screen import ScreenGeometry
from calibration.store import BoardKey, CalibrationStore, CameraKey, Conditions, Stamp
from edge_daemon.bench.exact import exact_calibration
from edge_daemon.config import Config, load_config
from firmware.hand.limits import HandLimits
from firmware.link import FIRMWARE_MAJOR, FIRMWARE_MINOR

DEVICES_MAX = 4
CAMERA_PX = (64, 64)
SCREEN_PX, SCREEN_MM = 1000, 50.0
EDGE_MM = 5.0
"""Where the screen begins in the hand's own frame."""
# µm, mm/s, mm/s²: a small gantry, quicker than a real one.
HAND_LIMITS = (0, 60_000, 0, 60_000, -3_000, 8_000, 1_000, 40_000)
HAND_TOLERANCE_UM = 60
TOUCH_TOLERANCE = 40
"""Units of a touch screen, of 32,767: about 1 of the grid."""
TOUCH_UNITS = 32767

_CONFIG = """
[edge]
id = "rig"
state_dir = "{directory}"
[plane]
unix_socket = "{directory}/plane"
[staff]
unix_socket = "{directory}/staff"
"""
_BOARD = """
[boards.{board.name}]
kind = "{board.kind}"
port = "/dev/{board.name}"
uid = "{uid}"
"""
_DEVICE = """
[cameras.cam-{number}]
type = "http_mjpeg"
url = "http://127.0.0.1:1/"
[devices.phone-{number}]
{parts}
camera = "cam-{number}"
[devices.phone-{number}.screen]
width_px = {px}
height_px = {px}
width_mm = {mm}
height_mm = {mm}
[devices.phone-{number}.motion]
park_z_mm = 8.0
hover_mm = 2.0
dwell_ms = 20
"""


@dataclass(frozen=True)
class BoardPlace:
    """A board of the rig: which device it serves, and the layout of its phone's keyboard."""

    device: str
    name: str
    kind: str
    uid: bytes
    layout: str = "us"


def boards_of(kinds: tuple[str, ...], layouts: tuple[str, ...] = ()) -> tuple[BoardPlace, ...]:
    """kinds: "hand", "hid" or "both" for each device, layouts of those that have a keyboard. Of both the hand comes
    first: it is what touches."""
    spare = iter(layouts)
    return tuple(
        BoardPlace(
            f"phone-{number}",
            f"{board}-{number}",
            board,
            bytes.fromhex(f"435253480000{number:02x}{board == 'hid':02x}"),
            next(spare, "us") if board == "hid" else "us",
        )
        for number, kind in enumerate(kinds, start=1)
        for board in (("hand", "hid") if kind == "both" else (kind,))
    )


def hand_limits() -> HandLimits:
    return HandLimits(*HAND_LIMITS)


def hand_um(x_grid: float, y_grid: float) -> tuple[int, int]:
    """Where the hand's drives stand when it touches that place of the grid."""
    per_grid = SCREEN_MM * 1000 / 1000
    return round(EDGE_MM * 1000 + x_grid * per_grid), round(EDGE_MM * 1000 + y_grid * per_grid)


@cache
def folder() -> Path:
    """Where the calibrations of this process lie; removed at its end."""
    path = Path(tempfile.mkdtemp(prefix="edge-crash-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@cache
def config_of(kinds: tuple[str, ...]) -> Config:
    """The configuration of a rig with these boards, its calibrations stored."""
    directory = folder() / "-".join(kinds)
    directory.mkdir()
    text = _CONFIG.format(directory=directory)
    boards = boards_of(kinds)
    text += "".join(_BOARD.format(board=board, uid=board.uid.hex()) for board in boards)
    for number in range(1, len(kinds) + 1):
        own = [board for board in boards if board.device == f"phone-{number}"]
        parts = "\n".join(f'{board.kind} = "{board.name}"' for board in own)
        text += _DEVICE.format(number=number, parts=parts, px=SCREEN_PX, mm=SCREEN_MM)
    path = directory / "edge.toml"
    path.write_text(text)
    config = load_config(path)
    for board in boards:
        if board.kind == "hand":
            _calibrate(config.calibration_root, board, board.device.replace("phone", "cam"))
    return config


def _calibrate(root: Path, board: BoardPlace, camera: str) -> None:
    now = Stamp(wall_utc="2026-01-01T00:00:00Z", clock_synced=False, boot_id="workshop", monotonic_ns=1)
    conditions = Conditions(
        device_id=board.device,
        screen=_SCREEN,
        hand=BoardKey(uid=board.uid.hex(), firmware=f"{FIRMWARE_MAJOR}.{FIRMWARE_MINOR}"),
        hid=None,
        camera=CameraKey(name=camera, width=CAMERA_PX[0], height=CAMERA_PX[1], source="http_mjpeg"),
        now=now,
    )
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    CalibrationStore(root, board.device).save(
        exact_calibration(_SCREEN, EDGE_MM, 0.6, CAMERA_PX), conditions, origin="calibrated"
    )


_SCREEN = ScreenGeometry(width_px=SCREEN_PX, height_px=SCREEN_PX, width_mm=SCREEN_MM, height_mm=SCREEN_MM)
