"""The technician's commands: what they say of what is stored, what they refuse, and what a killed one leaves behind."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from click.testing import CliRunner

from edge_daemon.bench.browser import open_page
from edge_daemon.bench.plane import Plane
from edge_daemon.bench.rigfile import DEVICE, RigFiles
from edge_daemon.bench.stage import Stage
from edge_daemon.cli.main import main

pytestmark = pytest.mark.system
InRig = Callable[..., Awaitable[None]]


def edge(files: RigFiles, *arguments: str, status: int = 0) -> str:
    """Standard output of a command that ends with that status; whatever it says is no traceback."""
    done = CliRunner().invoke(main, [*arguments, "--config", str(files.config)])
    assert not isinstance(done.exception, Exception), done.exception
    assert done.exit_code == status, done.output
    return done.stdout if status == 0 else done.stderr


def calibration(files: RigFiles, command: str, *arguments: str, status: int = 0) -> str:
    return edge(files, "calibration", command, DEVICE, *arguments, status=status)


def test_what_is_stored_is_listed_shown_compared_and_reported(calibrated: Stage, tmp_path: Path) -> None:
    files = calibrated.files
    listed = json.loads(calibration(files, "history", "--json"))
    (entry,) = [one for one in listed["entries"] if one["current"]]
    assert str(entry["number"]) in calibration(files, "history")
    shown = json.loads(calibration(files, "show", "--json"))
    assert shown["stored"]["id"] == entry["id"]
    assert shown["stored"]["calibration"]["hand"]["touches"], "every raw point is kept"
    said = calibration(files, "show", entry["id"][:4])
    assert "accepted" in said
    assert "p95" in said
    change = json.loads(calibration(files, "diff", str(entry["number"]), "current", "--json"))
    assert change["camera"]["max_mm"] == 0.0
    report = json.loads(calibration(files, "report", "--out", str(tmp_path / "report"), "--json"))
    page = Path(report["files"][0]).read_text(encoding="utf-8")
    assert entry["id"] in page


def test_the_stored_points_give_the_same_calibration_again_and_saved_it_is_in_use(
    calibrated: Stage,
) -> None:
    files = calibrated.files
    first = json.loads(calibration(files, "show", "--json"))["entry"]
    only_said = json.loads(calibration(files, "solve", "--json"))
    assert only_said["after"]["max_mm"] == pytest.approx(only_said["before"]["max_mm"], abs=1e-6)
    assert only_said["savedAs"] is None
    saved = json.loads(calibration(files, "solve", "--save", "--json"))
    assert json.loads(calibration(files, "show", "--json"))["entry"]["id"] == saved["savedAs"]
    (device,) = json.loads(edge(files, "devices", "--json"))
    assert device["metadata"]["calibration"]["id"] == saved["savedAs"], "the daemon uses it"
    back = json.loads(calibration(files, "rollback", str(first["number"]), "--json"))
    assert back["calibrationId"] == first["id"]
    (device,) = json.loads(edge(files, "devices", "--json"))
    assert device["metadata"]["calibration"]["id"] == first["id"], "and the former one again"
    assert "rolled back" in calibration(files, "history")


def test_what_goes_onto_the_phone_and_beside_it_is_written(calibrated: Stage, tmp_path: Path) -> None:
    said = json.loads(calibration(calibrated.files, "targets", str(tmp_path), "--json"))
    assert Path(said["page"]).is_file()
    assert (tmp_path / "bed_markers.png").is_file()
    assert said["url"] is None, "this daemon serves no page"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("calibration", "show", "phone-9"), "no table [devices.phone-9]"),
        (("calibration", "show", DEVICE, "99"), "no entry named '99'"),
        (("calibration", "show", DEVICE, ""), "no entry named ''"),
        (("calibration", "diff", DEVICE, "zz", "current"), "no entry named 'zz'"),
        (("calibration", "rollback", DEVICE, "77"), "no entry named '77'"),
        (("calibration", "solve", DEVICE, "-"), "no entry named '-'"),
        (("calibration", "report", DEVICE, "99"), "no entry named '99'"),
        (("calibration", "verify", "phone-9", "--yes"), "no table [devices.phone-9]"),
        (("calibration", "drift", "phone-9"), "no table [devices.phone-9]"),
        (("calibrate", "phone-9", "--yes"), "no table [devices.phone-9]"),
        (("calibrate", DEVICE, "--page", "7411"), "is not HOST:PORT"),
        (("calibrate", DEVICE, "--page", "host:70000"), "is not HOST:PORT"),
        (("calibrate", DEVICE, "--yes", "--page", "0.0.0.0:0"), "url_host"),
        (("calibrate", DEVICE, "--yes", "--page", "192.0.2.1:0"), "192.0.2.1"),
        (("calibrate", DEVICE, "--targets", "/proc/nowhere"), "/proc/nowhere"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(
    calibrated: Stage, arguments: tuple[str, ...], says: str
) -> None:
    touches = len(calibrated.rig.phone.touches)
    assert says in edge(calibrated.files, *arguments, status=2).replace("\n", "")
    assert len(calibrated.rig.phone.touches) == touches


def test_without_a_daemon_it_is_said_which_socket_nobody_listens_on(tmp_path: Path) -> None:
    files = RigFiles(tmp_path)
    example = Path(__file__).parent.parent.parent / "systemd" / "edge-daemon.example.toml"
    files.config.write_text(example.read_text().replace("/run/edge-daemon", str(tmp_path)))
    for command in ("verify", "drift"):
        assert "is it running" in edge(files, "calibration", command, DEVICE, status=2)
    assert "is it running" in edge(files, "calibrate", DEVICE, "--yes", status=2)


class Command:
    """`edge-daemon calibrate` as a process, with the phone's browser following its page."""

    def __init__(self, stage: Stage, nursery: trio.Nursery) -> None:
        self._stage, self._nursery = stage, nursery
        self.process: trio.Process | None = None

    async def start(self, *arguments: str) -> trio.Process:
        command = [sys.executable, "-m", "edge_daemon", "calibrate", DEVICE, "--yes", "--quick", "--json"]
        self.process = await trio.lowlevel.open_process(
            [*command, "--page", "127.0.0.1:0", "--config", str(self._stage.files.config), *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "COLUMNS": "200"},
        )
        said, url = b"", None
        while url is None:
            said += await self.process.stderr.receive_some()
            url = re.search(rb"http://127\.0\.0\.1:\d+/[\w-]+/", said)
        await self._nursery.start(open_page, self._stage.rig.phone, url[0].decode())
        return self.process


@pytest.mark.parametrize(
    ("ended_by", "touches", "status"),
    [(signal.SIGKILL, 1, -signal.SIGKILL), (signal.SIGINT, 0, 130), (signal.SIGINT, 1, 130)],
)
async def test_a_calibration_that_is_killed_leaves_hand_parked_device_free_and_the_former_one_in_use(
    calibrated: Stage, in_rig: InRig, plane: Plane, ended_by: int, touches: int, status: int
) -> None:
    phone, camera = calibrated.rig.phone, calibrated.rig.camera
    before: dict[str, Any] = (await plane.list_devices())[0]["metadata"]["calibration"]
    made = len(phone.touches)
    async with trio.open_nursery() as nursery:
        process = await Command(calibrated, nursery).start()
        await plane.wait_until(lambda: "staffHold" in plane.devices[DEVICE])
        await in_rig(calibrated.rig.wait_for, lambda: len(phone.touches) >= made + touches, 60.0)
        process.send_signal(ended_by)
        assert await process.wait() == status
        await plane.wait_until(lambda: "staffHold" not in plane.devices[DEVICE])
        nursery.cancel_scope.cancel()
    assert not camera.hand_in_view(), "parked before anybody else may act"
    (device,) = await plane.list_devices()
    assert device["metadata"]["calibration"]["id"] == before["id"]
    assert device["calibrated"]
    phone.show_page("launcher")
    after = len(phone.touches)
    assert (await plane.dispatch(DEVICE, {"type": "tap", "x": 400.0, "y": 620.0})).committed
    assert len(phone.touches) == after + 1
