"""The kernel's own camera driver `vivid`, and the ways in which it can be made to fail."""

import glob
import os
import subprocess
from pathlib import Path

from edge_daemon.cameras.sources import V4l2Source

WIDTH, HEIGHT, FPS = 320, 180, 25
PATH = "/dev/v4l/by-path/platform-vivid.0-video-index0"
END_OF_FRAME, START_OF_EXPOSURE = 0, 1
"""What the timestamp marks. The end of a frame is reckoned ahead: its stamp lies in the future when it comes."""
CAPTURE_NODE, OUTPUT_NODE = 0x1, 0x100
WEBCAM = 0
RULES = Path("/run/udev/rules.d/70-edge-test.rules")
_BUS = Path("/sys/bus/platform/drivers/vivid")


def source(**fields: object) -> V4l2Source:
    """The camera as configured; vivid gives no Motion-JPEG."""
    given: dict[str, object] = {
        "path": PATH,
        "width": WIDTH,
        "height": HEIGHT,
        "fps": FPS,
        "pixel_format": "yuyv",
    }
    return V4l2Source(**(given | fields))


class Vivid:
    """The driver, loaded. What is set here is set by v4l2-ctl, not by our own code."""

    def __init__(self, devices: int = 1, nodes: int = CAPTURE_NODE) -> None:
        kinds = ",".join([hex(nodes)] * devices)
        inputs = (
            f"num_inputs={','.join(['1'] * devices)}",
            f"input_types={','.join([str(WEBCAM)] * devices)}",
        )
        run("modprobe", "vivid", f"n_devs={devices}", f"node_types={kinds}", *inputs)
        run("udevadm", "settle")

    def unload(self) -> None:
        run("modprobe", "-r", "vivid")

    def set(self, **controls: int) -> None:
        given = ",".join(f"{name}={value}" for name, value in controls.items())
        run("v4l2-ctl", "-d", PATH, "-c", given)

    def get(self, control: str) -> int:
        return int(run("v4l2-ctl", "-d", PATH, "-C", control).rpartition(":")[2])

    def press(self, button: str) -> None:
        self.set(**{button: 1})

    def unbind(self) -> None:
        (_BUS / "unbind").write_text("vivid.0")

    def bind(self) -> None:
        """Returns when udev has made its links."""
        (_BUS / "bind").write_text("vivid.0")
        run("udevadm", "settle")


def link_all(*links: str) -> None:
    """Give every camera these links too, as udev's own rules give two of one make the same by-id name."""
    RULES.parent.mkdir(exist_ok=True)
    names = " ".join(link.removeprefix("/dev/") for link in links)
    RULES.write_text(f'SUBSYSTEM=="video4linux", SYMLINK+="{names}"\n')
    reload_rules()


def unlink_all() -> None:
    RULES.unlink(missing_ok=True)
    reload_rules()


def reload_rules() -> None:
    run("udevadm", "control", "--reload")
    for node in glob.glob("/sys/class/video4linux/*"):
        run("udevadm", "trigger", "--settle", "--action=change", os.path.realpath(node))


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout
