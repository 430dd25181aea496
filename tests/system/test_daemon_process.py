"""The daemon as a process: what it needs to start, what it refuses, what it does without its parts."""

import secrets
import socket
import subprocess
import sys

import pytest
import trio

from edge_daemon.bench.daemon_process import running_daemon
from edge_daemon.bench.plane import PlaneDisconnected, PlaneError, TcpAddress, open_plane
from edge_daemon.bench.rigfile import DEVICE, RigFiles, write_config


@pytest.fixture
def files(tmp_path_factory: pytest.TempPathFactory) -> RigFiles:
    """A configuration whose boards and camera do not exist."""
    files = RigFiles(tmp_path_factory.mktemp("d"))
    write_config(
        files,
        hand_port=files.directory / "no-hand",
        hid_port=files.directory / "no-keys",
        camera_url="http://127.0.0.1:9/stream",
        screen_px=(1080, 2340),
        screen_mm=(68.0, 147.3),
    )
    return files


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "edge_daemon", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


async def test_without_any_part_the_daemon_runs_and_says_what_is_missing(files: RigFiles) -> None:
    async with running_daemon(files.config, files.log), open_plane("plane", files.plane_socket) as plane:
        await plane.wait_until(lambda: "cam-1" in (plane.devices[DEVICE]["statusReason"] or ""))
        reason = plane.devices[DEVICE]["statusReason"]
        assert plane.devices[DEVICE]["status"] == "offline"
        for part in ("board hand-1", "no-hand", "board keys-1", "no-keys", "camera cam-1"):
            assert part in reason
        answer = await plane.dispatch(DEVICE, {"type": "tap", "x": 1.0, "y": 1.0}, key="offline")
        assert answer.error is not None
        assert answer.error["code"] == "device_offline"
        assert not (await plane.get_receipt(DEVICE, "offline"))["found"]


async def test_the_listing_exits_with_1_when_a_device_is_not_online(files: RigFiles) -> None:
    async with running_daemon(files.config, files.log):
        done = await trio.to_thread.run_sync(run, "devices", "--config", str(files.config), "--json")
    assert done.returncode == 1
    assert f'"deviceId": "{DEVICE}"' in done.stdout


async def test_state_and_sockets_are_for_the_daemons_user_alone(files: RigFiles) -> None:
    async with running_daemon(files.config, files.log):
        for path, mode in (
            (files.state, 0o700),
            (files.state / "ledger.sqlite3", 0o600),
            (files.plane_socket, 0o600),
            (files.staff_socket, 0o600),
        ):
            assert path.stat().st_mode & 0o777 == mode, path


async def test_sigterm_ends_it_with_status_0_and_removes_its_sockets(files: RigFiles) -> None:
    async with running_daemon(files.config, files.log) as daemon:
        assert await daemon.stop() == 0
        assert not files.plane_socket.exists()
        assert not files.staff_socket.exists()


async def test_a_second_daemon_on_the_same_ledger_is_refused_with_the_holders_pid(files: RigFiles) -> None:
    async with running_daemon(files.config, files.log) as daemon:
        done = await trio.to_thread.run_sync(run, "run", "--config", str(files.config))
        assert done.returncode == 2
        assert str(daemon.pid) in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('kind = "hand"', 'kind = "arm"', "[boards.hand-1.kind]"),
        ("state_dir = ", "state_dri = ", "state_dri"),
        ('state_dir = "', 'state_dir = "/proc/nowhere', "[edge.state_dir]"),
        ('unix_socket = "', 'unix_socket = "/no/such/dir', "unix listener"),
        ("width_mm = 68.0", "width_mm = 98.0", "[devices.phone-1.screen]"),
        (
            "[devices.phone-1.screen]",
            '[devices.phone-1.page]\nhost = "0.0.0.0"\nport = 0\n[devices.phone-1.screen]',
            "allow_beyond_loopback",
        ),
    ],
)
def test_what_it_cannot_start_with_is_refused_in_one_line(
    files: RigFiles, old: str, new: str, said: str
) -> None:
    text = files.config.read_text()
    assert old in text
    files.config.write_text(text.replace(old, new, 1))
    for command in (("run", "--config"), ("config", "check")):
        done = run(*command, str(files.config))
        if command[0] == "config" and said in ("[edge.state_dir]", "unix listener"):
            continue  # a check touches neither disk nor sockets
        assert done.returncode == 2
        assert said in done.stderr
        assert "Traceback" not in done.stderr


async def test_a_plane_may_calibrate_only_where_the_configuration_says_so(files: RigFiles) -> None:
    calibrate = {"type": "calibrate", "deviceId": DEVICE, "kind": "full", "actor": {"kind": "staff"}}
    for text, code in (("", "permission_denied"), ("staff_actions = true\n", "capability_unsupported")):
        files.config.write_text(files.config.read_text().replace("[staff]", f"{text}[staff]", 1))
        async with running_daemon(files.config, files.log), open_plane("plane", files.plane_socket) as plane:
            with pytest.raises(PlaneError) as refused:
                await plane.ask(calibrate)
            assert refused.value.code == code


async def test_a_plane_over_tcp_proves_that_it_has_the_secret(files: RigFiles) -> None:
    token = secrets.token_hex(32)
    token_file = files.directory / "token"
    token_file.write_text(token)
    token_file.chmod(0o600)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    text = files.config.read_text()
    tcp = f'[plane.tcp]\nport = {port}\ntoken_file = "{token_file}"\n[staff]'
    files.config.write_text(text.replace("[staff]", tcp, 1))
    async with running_daemon(files.config, files.log):
        async with open_plane("plane", TcpAddress("127.0.0.1", port, token.encode())) as plane:
            assert (await plane.list_devices())[0]["deviceId"] == DEVICE
        with pytest.raises((PlaneError, PlaneDisconnected)):
            async with open_plane("plane", TcpAddress("127.0.0.1", port, b"x" * 64)):
                pass


async def test_a_token_file_that_others_may_read_is_refused(files: RigFiles) -> None:
    token_file = files.directory / "token"
    token_file.write_text("x" * 64)
    token_file.chmod(0o644)
    text = files.config.read_text()
    tcp = f'[plane.tcp]\nport = 0\ntoken_file = "{token_file}"\n[staff]'
    files.config.write_text(text.replace("[staff]", tcp, 1))
    done = await trio.to_thread.run_sync(run, "run", "--config", str(files.config))
    assert done.returncode == 2
    assert str(token_file) in done.stderr


def test_a_check_of_the_configuration_says_good_or_what_is_wrong(files: RigFiles) -> None:
    good = run("config", "check", str(files.config))
    assert good.returncode == 0
    assert "good" in good.stdout
    files.config.write_text("[edge]\n")
    bad = run("config", "check", str(files.config))
    assert bad.returncode == 2
    assert str(files.config) in bad.stderr
