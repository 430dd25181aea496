"""The camera: true geometry, honest times, and the troubles a real one has."""

import http.client
import itertools
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import cv2
import numpy as np
import pytest
import trio

from calibration.targets import charuco_target
from edge_daemon.bench.twin import SimulatedRig, TipPose, Trouble, Truth
from edge_daemon.bench.twin.camera import LATE_NS, CameraTwin
from edge_daemon.bench.twin.frames import PX_PER_MM_X, PX_PER_MM_Y
from edge_daemon.bench.twin.mechanics import Hand
from edge_daemon.bench.twin.phone import Phone
from edge_daemon.bench.twin.picture_options import PictureQuality
from edge_daemon.bench.twin.renderer import Renderer
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_PX, SCREEN_WIDTH_PX

S = 1_000_000_000
TRUTH = Truth(6)


@pytest.fixture(scope="module", params=["realtime", "full"])
def renderer(request: pytest.FixtureRequest) -> Renderer:
    return Renderer(TRUTH, TRUTH.camera.lens, TRUTH.camera.pose, request.param)


@pytest.fixture(scope="module")
def geometry() -> CameraTwin:
    return CameraTwin(TRUTH, Phone(TRUTH, 0), Hand(TRUTH, 0))


def picture_of(renderer: Renderer, phone: Phone, at_ns: int, hand: TipPose | None = None) -> np.ndarray:
    frame = phone.frame(at_ns)
    return renderer.render(frame, frame, [hand or Hand(TRUTH, 0).pose()])


def test_the_picture_shows_the_board_where_the_true_projection_says(
    renderer: Renderer, geometry: CameraTwin
) -> None:
    phone = Phone(TRUTH, 0)
    phone.show_page("charuco", S)
    target = charuco_target(SCREEN_WIDTH_PX, SCREEN_HEIGHT_PX)
    grey = cv2.cvtColor(picture_of(renderer, phone, 2 * S), cv2.COLOR_BGR2GRAY)
    corners, ids, _, _ = cv2.aruco.CharucoDetector(target.board()).detectBoard(grey)
    found, ids = np.asarray(corners).reshape(-1, 2), np.asarray(ids).ravel()
    assert len(ids) == target.corner_count
    true = geometry.truth_project(target.corners_px() / [PX_PER_MM_X, PX_PER_MM_Y])[ids]
    errors = found - true
    assert np.abs(errors.mean(axis=0)).max() < 0.03
    assert np.sqrt((errors**2).sum(axis=1).mean()) < 0.2


def test_a_dot_appears_in_the_picture_at_the_place_of_the_touch(
    renderer: Renderer, geometry: CameraTwin
) -> None:
    phone = Phone(TRUTH, 0)
    phone.show_page("dots", S)
    before = picture_of(renderer, phone, 2 * S).astype(float).sum(axis=2)
    phone.hid_contact(0, True, 20.0, 40.0, 2 * S)
    phone.hid_contact(0, False, 20.0, 40.0, 2 * S + 50_000_000)
    darker = before - picture_of(renderer, phone, 3 * S).astype(float).sum(axis=2)
    darker[darker < 60] = 0
    ys, xs = np.mgrid[0:720, 0:1280]
    centre = np.array([(xs * darker).sum(), (ys * darker).sum()]) / darker.sum()
    true = geometry.truth_project(np.array([[20.0, 40.0]]))[0]
    assert np.abs(centre - true).max() < 0.1


@pytest.mark.parametrize("quality", ["realtime", "full"])
def test_noise_is_the_truth_s_in_the_dark_grows_with_the_light_and_differs_from_frame_to_frame(
    quality: PictureQuality,
) -> None:
    renderer = Renderer(TRUTH, TRUTH.camera.lens, TRUTH.camera.pose, quality)
    phone = Phone(TRUTH, 0)
    phone.show_page("charuco", S)
    first, second = (picture_of(renderer, phone, 2 * S).astype(float) for _ in range(2))
    level = (first + second) / 2
    sigma = {
        name: (first - second)[chosen].std() / 2**0.5
        for name, chosen in (("dark", level < 30), ("bright", level > 200))
    }
    # Whole grey levels and, where black is cut off at zero, a little less.
    read = TRUTH.camera.noise_sigma
    assert sigma["dark"] == pytest.approx(np.hypot(read, 0.29), rel=0.15)
    assert 1.15 < sigma["bright"] / sigma["dark"] < 1.45


def test_the_hand_hides_the_screen_and_leans_with_its_height(
    renderer: Renderer, geometry: CameraTwin
) -> None:
    phone = Phone(TRUTH, 0)
    phone.show_page("dots", S)
    empty = picture_of(renderer, phone, 2 * S)
    low = picture_of(renderer, phone, 2 * S, TipPose(0, 50.0, 40.0, 0.0))
    high = picture_of(renderer, phone, 2 * S, TipPose(0, 50.0, 40.0, 20.0))
    tip_x, tip_y = geometry.truth_project(np.array([[50.0, 40.0]]))[0]
    around = (slice(int(tip_y) - 10, int(tip_y) + 30), slice(int(tip_x) - 25, int(tip_x) + 25))
    hidden = empty.astype(int).mean(axis=2) - low.astype(int).mean(axis=2) > 40
    assert hidden[around].mean() > 0.1
    assert hidden.mean() > 0.01
    assert (np.abs(low.astype(int) - high.astype(int)) > 40).sum() > 500


def test_an_exposure_over_a_change_shows_some_of_both(renderer: Renderer) -> None:
    phone = Phone(TRUTH, 0)
    phone.show_page("dots", S)
    bright = phone.frame(2 * S)
    phone.press_key("power", 2 * S)
    dark = phone.frame(3 * S)
    hand = [Hand(TRUTH, 0).pose()]
    levels = [
        float(renderer.render(opening, closing, hand)[300:420, 500:760].mean())
        for opening, closing in ((bright, bright), (bright, dark), (dark, dark))
    ]
    assert levels[1] == pytest.approx((levels[0] + levels[2]) / 2, abs=3)


class Stream:
    """A client of the camera's stream: parts with their headers, decoded on demand."""

    def __init__(self, url: str, timeout_s: float = 3.0) -> None:
        parts = urlsplit(url)
        self.connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout_s)
        self.connection.request("GET", f"{parts.path}?{parts.query}")
        self.response = self.connection.getresponse()
        assert self.response.status == 200
        assert self.response.readline().startswith(b"--boundarydonotcross")

    def part(self) -> tuple[dict[str, str], bytes]:
        headers = {}
        while (line := self.response.readline().strip()) != b"":
            name, _, value = line.decode().partition(":")
            headers[name] = value.strip()
        body = self.response.read(int(headers["Content-Length"]))
        assert self.response.readline() == b"\r\n"
        assert self.response.readline().startswith(b"--boundarydonotcross")
        return headers, body

    def close(self) -> None:
        self.response.close()
        self.connection.close()


def stamp_ns(headers: dict[str, str]) -> int:
    return round(float(headers["X-UStreamer-Grab-Time"]) * 1e9)


def brightness(jpeg: bytes) -> float:
    picture = cv2.imdecode(np.frombuffer(jpeg, dtype=np.uint8), cv2.IMREAD_GRAYSCALE)
    assert picture is not None
    assert picture.shape == (720, 1280)
    return float(picture[300:420, 500:760].mean())


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[SimulatedRig]:
    async with SimulatedRig(6, tmp_path, boards=()) as rig:
        yield rig


@pytest.fixture
def stream(rig: SimulatedRig) -> Iterator[Stream]:
    with closing(Stream(rig.camera_url)) as stream:
        yield stream


async def test_stamps_advance_follow_the_true_exposures_and_are_older_than_the_latency(
    rig: SimulatedRig, stream: Stream
) -> None:
    parts = [await trio.to_thread.run_sync(stream.part) for _ in range(6)]
    stamps = [stamp_ns(headers) for headers, _ in parts]
    assert all(later > earlier for earlier, later in itertools.pairwise(stamps))
    true = {exposure.stamp_ns // 1_000_000 for exposure in rig.camera.exposures}
    assert {stamp // 1_000_000 for stamp in stamps} <= true
    for headers, _ in parts:
        sent_ns = float(headers["X-UStreamer-Send-Time"]) * 1e9
        assert sent_ns - stamp_ns(headers) >= rig.truth.camera.latency_ms * 1e6


async def test_a_page_change_shows_only_in_frames_exposed_after_it(rig: SimulatedRig, stream: Stream) -> None:
    rig.phone.press_key("power", rig.phone.started_ns)
    await rig.wait_for(lambda: not rig.phone.screen_on)
    await trio.to_thread.run_sync(stream.part)
    rig.phone.show_page("dots")
    changes = [rig.phone.started_ns]
    rig.phone.on_change(lambda: changes.append(time.monotonic_ns()))
    rig.phone.press_key("power", time.monotonic_ns())
    await rig.wait_for(lambda: rig.phone.screen_on)
    changed_ns = changes[-1]
    pressed_ns = rig.phone.keys[-1].at_ns
    seen = set()
    for _ in range(8):
        headers, jpeg = await trio.to_thread.run_sync(stream.part)
        exposure = next(
            e for e in rig.camera.exposures if e.stamp_ns // 1_000_000 == stamp_ns(headers) // 1_000_000
        )
        bright = brightness(jpeg) > 100
        if exposure.end_ns < pressed_ns:
            assert not bright
            seen.add("before")
        elif exposure.begin_ns > changed_ns:
            assert bright
            seen.add("after")
    assert "after" in seen


async def test_an_unplugged_camera_shows_no_signal_and_says_so(rig: SimulatedRig, stream: Stream) -> None:
    await rig.unplug("camera")
    headers: dict[str, str] = {"X-UStreamer-Online": "true"}
    while headers["X-UStreamer-Online"] == "true":
        headers, _ = await trio.to_thread.run_sync(stream.part)
    assert headers["X-UStreamer-Grab-Time"] == "0.000000"
    await rig.plug("camera")
    while headers["X-UStreamer-Online"] == "false":
        headers, _ = await trio.to_thread.run_sync(stream.part)
    assert stamp_ns(headers) > 0


async def test_a_frozen_camera_repeats_its_last_picture_under_its_old_stamp(
    rig: SimulatedRig, stream: Stream
) -> None:
    await trio.to_thread.run_sync(stream.part)
    rig.camera.set_trouble(Trouble.FROZEN)
    earlier = await trio.to_thread.run_sync(stream.part)
    while (later := await trio.to_thread.run_sync(stream.part))[1] != earlier[1]:
        earlier = later
    assert stamp_ns(later[0]) == stamp_ns(earlier[0])


async def test_a_stuck_camera_sends_one_picture_under_new_stamps(rig: SimulatedRig, stream: Stream) -> None:
    await trio.to_thread.run_sync(stream.part)
    rig.camera.set_trouble(Trouble.STUCK)
    parts = [await trio.to_thread.run_sync(stream.part) for _ in range(7)]
    assert parts[-1][1] == parts[-2][1]
    assert stamp_ns(parts[-1][0]) > stamp_ns(parts[-2][0])


async def test_a_covered_camera_gives_black_pictures(rig: SimulatedRig, stream: Stream) -> None:
    await trio.to_thread.run_sync(stream.part)
    rig.camera.set_trouble(Trouble.COVERED)
    while brightness((await trio.to_thread.run_sync(stream.part))[1]) > 5:
        pass


async def test_a_crowded_bus_cuts_pictures_in_their_middle(rig: SimulatedRig, stream: Stream) -> None:
    _, whole = await trio.to_thread.run_sync(stream.part)
    assert whole.endswith(b"\xff\xd9")
    rig.camera.set_trouble(Trouble.CUT)
    while (cut := (await trio.to_thread.run_sync(stream.part))[1]).endswith(b"\xff\xd9"):
        pass
    assert cut.startswith(b"\xff\xd8")


async def test_a_starved_camera_gives_one_picture_of_three(rig: SimulatedRig, stream: Stream) -> None:
    rig.camera.set_trouble(Trouble.STARVED)
    parts = [await trio.to_thread.run_sync(stream.part) for _ in range(5)]
    stamps = [stamp_ns(headers) // 1_000_000 for headers, _ in parts[2:]]
    taken = [exposure.stamp_ns // 1_000_000 for exposure in rig.camera.exposures]
    places = [taken.index(stamp) for stamp in stamps]
    assert all((later - earlier) % 3 == 0 for earlier, later in itertools.pairwise(places))


async def test_a_camera_with_a_wrong_clock_stamps_by_the_wall(rig: SimulatedRig, stream: Stream) -> None:
    rig.camera.set_trouble(Trouble.WRONG_CLOCK)
    parts = [await trio.to_thread.run_sync(stream.part) for _ in range(3)]
    assert stamp_ns(parts[-1][0]) > 1_000_000_000 * S


async def test_a_pen_writes_into_each_picture_and_is_told_which_it_is(
    rig: SimulatedRig, stream: Stream
) -> None:
    told: list[int] = []

    def pen(picture: np.ndarray, number: int) -> None:
        told.append(number)
        picture[:] = 0

    rig.camera.pen = pen
    while brightness((await trio.to_thread.run_sync(stream.part))[1]) > 5:
        pass
    assert set(told[:-1]) <= {exposure.sequence for exposure in rig.camera.exposures}


async def test_no_exposure_lasts_longer_than_it_was_set_to_however_busy_the_machine(
    rig: SimulatedRig,
) -> None:
    with closing(Stream(rig.camera_url)) as stream:
        for _ in range(5):
            await trio.to_thread.run_sync(stream.part)
    exposures = rig.camera.exposures
    assert all(one.end_ns - one.begin_ns <= rig.camera.sensor.exposure_ns + LATE_NS for one in exposures)


async def test_a_killed_server_breaks_the_stream_and_comes_back_on_the_same_port(
    rig: SimulatedRig, stream: Stream
) -> None:
    url = rig.camera_url
    await rig.kill("camera")
    while await trio.to_thread.run_sync(stream.response.read, 65536):
        pass
    with pytest.raises(ConnectionRefusedError):
        Stream(url)
    await rig.revive("camera")
    assert rig.camera_url == url
    with closing(Stream(url)) as again:
        await trio.to_thread.run_sync(again.part)


async def test_without_extra_headers_there_is_no_stamp(rig: SimulatedRig) -> None:
    with closing(Stream(rig.camera_url.replace("extra_headers=1", ""))) as plain:
        headers, _ = await trio.to_thread.run_sync(plain.part)
    assert "X-Timestamp" in headers
    assert "X-UStreamer-Grab-Time" not in headers


async def test_a_knock_moves_the_picture_for_good(rig: SimulatedRig) -> None:
    middle = np.array([[34.0, 73.0]])
    before = rig.camera.truth_project(middle)
    rig.camera.knock(tilt_degrees=1.0)
    assert np.linalg.norm(rig.camera.truth_project(middle) - before) > 5
