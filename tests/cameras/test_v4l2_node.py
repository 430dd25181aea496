import os
from pathlib import Path

import pytest

from edge_daemon.cameras.errors import SourceFault
from edge_daemon.cameras.faults import CameraFault
from edge_daemon.cameras.v4l2_node import descriptor_of, refuse_ambiguous, refuse_unreachable

BY_ID = "/dev/v4l/by-id/usb-Acme_Webcam-video-index0"


def udev_knows(folder: Path, number: str, *links: str) -> None:
    """A node's record as udev writes it."""
    lines = [f"S:{link.removeprefix('/dev/')}" for link in links]
    (folder / number).write_text("\n".join((*lines, "I:16167724", "E:ID_V4L_VERSION=2", "Q:uaccess", "")))


def test_a_camera_that_is_not_there_is_unplugged(tmp_path: Path) -> None:
    with pytest.raises(SourceFault, match="does not exist") as caught:
        refuse_unreachable(str(tmp_path / "usb-camera"))
    assert caught.value.fault is CameraFault.UNPLUGGED


def test_a_node_that_is_no_camera_is_refused_as_such() -> None:
    with pytest.raises(SourceFault, match="/dev/null is no camera") as caught:
        refuse_unreachable("/dev/null")
    assert caught.value.fault is CameraFault.UNUSABLE


def test_a_camera_that_may_not_be_opened_is_refused_with_the_group(tmp_path: Path) -> None:
    # For root too: a directory is never opened for writing.
    with pytest.raises(SourceFault, match="group video"):
        refuse_unreachable(str(tmp_path))


def test_a_name_of_one_camera_is_taken(tmp_path: Path) -> None:
    udev_knows(tmp_path, "c81:0", BY_ID, "/dev/v4l/by-path/pci-0-usb-0:1:1.0-video-index0")
    udev_knows(tmp_path, "c81:1", "/dev/v4l/by-path/pci-0-usb-0:2:1.0-video-index0")
    refuse_ambiguous(BY_ID, tmp_path, tmp_path)


def test_a_name_of_two_cameras_is_refused_with_both(tmp_path: Path) -> None:
    for number, node in (("81:0", "video0"), ("81:2", "video2")):
        udev_knows(tmp_path, f"c{number}", BY_ID)
        (tmp_path / number).symlink_to(tmp_path / "devices" / node)
    # Another kind of device may ask for anything.
    udev_knows(tmp_path, "c189:7", BY_ID)
    with pytest.raises(SourceFault, match=r"name of 2 cameras at once \(/dev/video0, /dev/video2\)"):
        refuse_ambiguous(BY_ID, tmp_path, tmp_path)


def test_without_udev_no_name_is_ambiguous(tmp_path: Path) -> None:
    refuse_ambiguous(BY_ID, tmp_path / "none", tmp_path)


def test_the_descriptor_of_a_node_is_found_among_this_processs() -> None:
    controller, terminal = os.openpty()
    try:
        assert descriptor_of(os.ttyname(terminal)) == terminal
    finally:
        os.close(controller)
        os.close(terminal)


def test_a_node_that_this_process_has_not_open_has_no_descriptor() -> None:
    controller, terminal = os.openpty()
    path = os.ttyname(terminal)
    os.close(terminal)
    try:
        with pytest.raises(OSError):
            descriptor_of(path)
    finally:
        os.close(controller)
