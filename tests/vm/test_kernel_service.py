"""The daemon under systemd as the service manager: Type=notify, killed, started again, stopped."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trio
from usb_ports import UID, by_id

from edge_daemon.bench.plane import open_plane
from edge_daemon.bench.rigfile import DEVICE, RigFiles, write_config

NAME = "edge-daemon-test.service"
UNIT = """
[Service]
Type=notify
NotifyAccess=main
ExecStart={python} -m edge_daemon run --config {config}
WorkingDirectory={root}
Restart=always
RestartSec=100ms
TimeoutStartSec=60
"""
PATIENCE_S = 120.0
ROOT = Path(__file__).parents[2]


def systemctl(*arguments: str) -> str:
    """Its output; fails where it fails, with what the service wrote."""
    done = subprocess.run(["systemctl", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        journal = subprocess.run(
            ["journalctl", "-u", NAME, "-n", "40"], capture_output=True, text=True, check=False
        )
        raise AssertionError(f"systemctl {arguments}: {done.stderr}\n{journal.stdout}")
    return done.stdout.strip()


def shown(what: str) -> str:
    return systemctl("show", "--value", "-p", what, NAME)


@pytest.fixture
def service(tmp_path):
    """The unit, not yet started; its hand is the board behind ALPHA, the other parts are missing."""
    files = RigFiles(tmp_path)
    write_config(
        files,
        hand_port=Path(by_id("ALPHA")),
        hid_port=tmp_path / "no-keys",
        camera_url="http://127.0.0.1:9/stream",
        screen_px=(1080, 2340),
        screen_mm=(68.0, 147.3),
    )
    unit = Path("/run/systemd/system") / NAME
    unit.write_text(UNIT.format(python=sys.executable, config=files.config, root=ROOT))
    systemctl("daemon-reload")
    yield files
    systemctl("stop", NAME)
    unit.unlink()
    systemctl("daemon-reload")


async def has_its_board(files: RigFiles) -> None:
    """Wait until the daemon says that it has the board behind ALPHA."""
    async with open_plane("plane", files.plane_socket) as plane:
        await plane.wait_until(lambda: UID["ALPHA"] in str(plane.devices[DEVICE]["metadata"]))


async def test_ready_when_it_says_so_back_after_a_kill_and_stopped_without_a_fault(usb, service, figures):
    begun = trio.current_time()
    with trio.fail_after(PATIENCE_S):
        # Returns once READY=1 has come: the plane is let in at once.
        await trio.to_thread.run_sync(systemctl, "start", NAME)
        figures.values["systemd_ready_s"] = round(trio.current_time() - begun, 1)
        assert shown("ActiveState") == "active"
        await has_its_board(service)

        first = shown("MainPID")
        os.kill(int(first), signal.SIGKILL)
        while shown("MainPID") in (first, "0") or shown("ActiveState") != "active":
            await trio.sleep(0.1)
        assert shown("NRestarts") == "1"
        # The port is free again and the ledger is not locked; nobody had to clean up.
        await has_its_board(service)

        await trio.to_thread.run_sync(systemctl, "stop", NAME)
    assert shown("Result") == "success"
    assert shown("ExecMainStatus") == "0"
    assert not service.plane_socket.exists()
