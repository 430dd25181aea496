"""The configuration file of a simulated rig: the same file, read by the same code, as in production."""

from dataclasses import dataclass
from pathlib import Path

DEVICE = "phone-1"

_TEMPLATE = """\
[edge]
id = "bench-rig"
state_dir = "{state}"
[plane]
unix_socket = "{plane}"
[staff]
unix_socket = "{staff}"
[boards.hand-1]
kind = "hand"
port = "{hand_port}"
[boards.keys-1]
kind = "hid"
port = "{hid_port}"
[cameras.cam-1]
type = "http_mjpeg"
url = "{camera_url}"
[devices.{device}]
hand = "hand-1"
hid = "keys-1"
camera = "cam-1"
display_name = "Simulated phone"
[devices.{device}.motion]
park_x_mm = 100.0
park_y_mm = 0.0
park_z_mm = 15.0
search_z_mm = 5.0
[devices.{device}.screen]
width_px = {width_px}
height_px = {height_px}
width_mm = {width_mm}
height_mm = {height_mm}
"""


@dataclass(frozen=True)
class RigFiles:
    """Where everything of one bench run lies."""

    directory: Path

    @property
    def config(self) -> Path:
        return self.directory / "edge-daemon.toml"

    @property
    def state(self) -> Path:
        return self.directory / "state"

    @property
    def plane_socket(self) -> Path:
        return self.directory / "plane.sock"

    @property
    def staff_socket(self) -> Path:
        return self.directory / "staff.sock"

    @property
    def log(self) -> Path:
        return self.directory / "daemon.log"

    @property
    def calibration_root(self) -> Path:
        """The store's root, with a folder for the device."""
        return self.state / "calibration"


def write_config(
    files: RigFiles,
    *,
    hand_port: Path,
    hid_port: Path,
    camera_url: str,
    screen_px: tuple[int, int],
    screen_mm: tuple[float, float],
) -> None:
    """Writes `files.config`; what stands in it a technician could know, nothing else."""
    files.config.write_text(
        _TEMPLATE.format(
            state=files.state,
            plane=files.plane_socket,
            staff=files.staff_socket,
            hand_port=hand_port,
            hid_port=hid_port,
            camera_url=camera_url,
            device=DEVICE,
            width_px=screen_px[0],
            height_px=screen_px[1],
            width_mm=screen_mm[0],
            height_mm=screen_mm[1],
        ),
        encoding="utf-8",
    )
