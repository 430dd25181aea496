"""The configuration: every key documented, every mistake named with file, key and what is allowed."""

import re
from pathlib import Path

import pytest

from edge_daemon.config import ConfigError, load_config

EXAMPLE = Path(__file__).parent.parent / "systemd" / "edge-daemon.example.toml"

GOOD = """
[edge]
id = "rig-1"
state_dir = "state"
[plane]
unix_socket = "plane.sock"
[staff]
unix_socket = "staff.sock"
[boards.hand-1]
kind = "hand"
port = "/dev/serial/by-id/hand"
[boards.keys-1]
kind = "hid"
port = "/dev/serial/by-id/keys"
[cameras.cam-1]
type = "http_mjpeg"
url = "http://127.0.0.1:1/stream"
[devices.phone-1]
hand = "hand-1"
hid = "keys-1"
camera = "cam-1"
[devices.phone-1.screen]
width_px = 1080
height_px = 2340
width_mm = 68.0
height_mm = 147.3
"""


def refused(tmp_path: Path, text: str) -> str:
    path = tmp_path / "edge-daemon.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    message = str(caught.value)
    assert message.startswith(str(path)), "the file is named first"
    return message


def test_the_commented_example_is_a_valid_configuration() -> None:
    config = load_config(EXAMPLE)
    assert set(config.devices) == {"phone-1"}


def test_every_key_that_the_example_shows_as_optional_is_known_when_uncommented(tmp_path: Path) -> None:
    lines = EXAMPLE.read_text().splitlines()
    # The first plane transport is a choice in the example; the commented table stands at a line start.
    text = "\n".join(line[2:] if re.match(r"# (\[|[a-z0-9_]+ = )", line) else line for line in lines)
    path = tmp_path / "all.toml"
    path.write_text(text)
    config = load_config(path)
    assert config.plane.tcp is not None
    assert config.boards["hand-1"].uid == "0011223344556677"
    page = config.devices["phone-1"].page
    assert page is not None
    assert page.url_host == "rig-1.lan"
    assert [str(source.__struct_config__.tag) for source in config.cameras.values()] == [
        "http_mjpeg", "v4l2", "csi", "files",
    ]  # fmt: skip


def test_a_good_file_is_typed_with_its_defaults(tmp_path: Path) -> None:
    path = tmp_path / "good.toml"
    path.write_text(GOOD)
    config = load_config(path)
    assert config.devices["phone-1"].motion.dwell_ms == 60
    assert config.calibration_root == Path("state/calibration")
    assert config.devices["phone-1"].drift.every_s == 600
    assert config.devices["phone-1"].page is None
    assert not config.plane.staff_actions, "a plane is given the staff's rights by the operator alone"


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (("state_dir", "sate_dir"), ["[edge]", "`sate_dir`", "did you mean `state_dir`", "allowed: id"]),
        (("[boards.hand-1]", "[bords.hand-1]"), ["[bords]", "did you mean `boards`"]),
        (('kind = "hand"', 'kind = "arm"'), ["[boards.hand-1.kind]", "'arm'"]),
        (("width_px = 1080", "width_px = 1"), ["[devices.phone-1.screen.width_px]", ">= 100"]),
        (("width_px = 1080", 'width_px = "1080"'), ["[devices.phone-1.screen.width_px]", "int"]),
        (("height_mm = 147.3", "height_mn = 147.3"), ["[devices.phone-1.screen]", "`height_mn`"]),
        (('hand = "hand-1"', 'hand = "hand-2"'), ["[devices.phone-1]", "hand-2", "no table [boards.hand-2]"]),
        (('hand = "hand-1"', 'hand = "keys-1"'), ["[devices.phone-1]", "kind is 'hid'"]),
        (('camera = "cam-1"', 'camera = "cam-9"'), ["cam-9", "no table [cameras.cam-9]"]),
        (('type = "http_mjpeg"', 'type = "usb"'), ["[cameras.cam-1]", "`type`", "http_mjpeg"]),
        (("/dev/serial/by-id/keys", "/dev/serial/by-id/hand"), ["[boards.keys-1]", "already used"]),
        (('unix_socket = "plane.sock"', ""), ["[plane]", "unix_socket"]),
        (("[edge]", "[edge"), ["is not TOML"]),
        (('id = "rig-1"', 'id = "rig 1"'), ["[edge.id]"]),
        (("[staff]", "staff_actions = 1\n[staff]"), ["[plane.staff_actions]", "bool"]),
        (
            ("[devices.phone-1.screen]", "[devices.phone-1.drift]\nevery_s = 0\n[devices.phone-1.screen]"),
            ["[devices.phone-1.drift.every_s]", ">= 1"],
        ),
        (
            ("[devices.phone-1.screen]", "[devices.phone-1.page]\nport = 70000\n[devices.phone-1.screen]"),
            ["[devices.phone-1.page.port]", "<= 65535"],
        ),
    ],
)
def test_a_mistake_is_named_with_the_key_and_what_is_allowed(
    tmp_path: Path, change: tuple[str, str], names: list[str]
) -> None:
    assert change[0] in GOOD
    message = refused(tmp_path, GOOD.replace(change[0], change[1], 1))
    for name in names:
        assert name in message, message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.toml: cannot be read"):
        load_config(tmp_path / "nowhere.toml")
