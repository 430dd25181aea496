"""Pictures of the screen over the real link: the grid's edges, never stale, and no frame for a mere watcher."""

import cv2
import numpy as np
import numpy.typing as npt
import trio

from edge_daemon.bench.plane import Plane
from edge_daemon.bench.rigfile import DEVICE
from edge_daemon.bench.stage import Stage

Image = npt.NDArray[np.uint8]


def shown(picture: dict[str, object]) -> Image:
    image = cv2.imdecode(np.frombuffer(picture["image"], np.uint8), cv2.IMREAD_COLOR)
    assert image is not None
    return np.asarray(image, dtype=np.uint8)


def likeness(picture: Image, screen: Image) -> float:
    """Correlation of two pictures of the screen, blurred, in grey, without the rounded corners; 1 for the same."""
    height, width = picture.shape[:2]
    small = cv2.resize(screen, (width, height), interpolation=cv2.INTER_AREA)
    rim = width // 10
    a, b = (
        cv2.GaussianBlur(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), (0, 0), 3)[rim:-rim, rim:-rim].ravel()
        for image in (picture, small)
    )
    return float(np.corrcoef(a, b)[0, 1])


async def test_a_look_shows_the_screen_with_its_edges_as_the_grids_edges(
    calibrated: Stage, plane: Plane
) -> None:
    calibrated.rig.phone.show_page("launcher")
    picture = await plane.look(DEVICE, format="png")
    image = shown(picture)
    assert picture["pixelSize"] == {"width": image.shape[1], "height": image.shape[0]}
    assert picture["settle"] == "still"
    assert picture["orientation"] == "portrait"
    snapshot = calibrated.rig.phone.snapshot()
    right = likeness(image, snapshot)
    assert right > 0.97
    # A picture that were off by two grid units would be less like the screen than this one.
    shifted = np.roll(image, (2, 2), axis=(0, 1))
    assert likeness(shifted, snapshot) < right


async def test_a_look_after_a_tap_shows_what_the_tap_did(calibrated: Stage, plane: Plane) -> None:
    phone = calibrated.rig.phone
    phone.show_page("launcher")
    before = shown(await plane.look(DEVICE))
    x, y = phone.buttons_grid()["panel"]
    tap = {"type": "tap", "x": x, "y": y}
    answer = await plane.dispatch(DEVICE, tap)
    assert answer.committed
    picture = await plane.look(DEVICE)
    assert phone.current_page != "launcher"
    assert picture["settle"] == "still"
    after = shown(picture)
    page = phone.snapshot()
    # The lens darkens the corners, which a page of little contrast feels: 0.967 was measured for the same page.
    assert likeness(after, page) > 0.95
    assert likeness(before, page) < 0.6
    phone.show_page("launcher")


async def test_a_watch_gets_a_picture_and_no_frame_and_moves_nothing(calibrated: Stage, plane: Plane) -> None:
    await plane.look(DEVICE)
    pose = calibrated.rig.hand_true_tip()
    picture = await plane.look(DEVICE, leased=False)
    assert "frameId" not in picture
    assert shown(picture).size
    now = calibrated.rig.hand_true_tip()
    assert (now.x_mm, now.y_mm, now.height_mm) == (pose.x_mm, pose.y_mm, pose.height_mm)


async def test_a_frame_is_told_apart_from_one_that_came_later(calibrated: Stage, plane: Plane) -> None:
    first = await plane.look(DEVICE)
    second = await plane.look(DEVICE)
    assert first["frameId"] != second["frameId"]
    assert second["sequence"] > first["sequence"]
    assert second["clockSynced"]
    assert second["capturedAt"] > first["capturedAt"]


async def test_a_screen_that_is_off_is_named_and_lit_again_it_is_not(calibrated: Stage, plane: Plane) -> None:
    def is_off() -> bool:
        degraded = plane.devices[DEVICE]["metadata"]["camera"]["degraded"]
        return any(one["fault"] == "screen_off" and DEVICE in one["words"] for one in degraded)

    for off in (True, False):
        assert (await plane.dispatch(DEVICE, {"type": "pressKey", "key": "power"})).committed
        with trio.fail_after(20):
            await plane.wait_until(lambda off=off: is_off() == off)
