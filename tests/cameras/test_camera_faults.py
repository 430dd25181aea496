"""Each thing that may go wrong with a camera has its name, ends the camera or is said beside its pictures."""

from collections.abc import Callable
from time import monotonic_ns
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest
import trio

from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_WIDTH_MM, Truth
from edge_daemon.bench.twin.virtual import VirtualRig
from edge_daemon.cameras.camera import Camera, CameraOffline, CameraOnline
from edge_daemon.cameras.faults import CameraFault
from edge_daemon.cameras.health import RateCheck, look
from edge_daemon.cameras.sources import HttpMjpegSource
from edge_daemon.cameras.status import CameraCounters, Degradation, said
from edge_daemon.cli.devices import _camera

S = 1_000_000_000
PATIENCE_S = 8.0
"""Only a bound on a test that hangs; nothing is measured with it."""


async def offline_with(camera: Camera, fault: CameraFault) -> CameraOffline:
    status = camera.status
    while not (isinstance(status, CameraOffline) and status.fault is fault):
        status = await camera.status_other_than(status)
    return status


async def online_where(camera: Camera, holds: Callable[[set[CameraFault]], bool]) -> CameraOnline:
    while True:
        status = camera.status
        if isinstance(status, CameraOnline) and holds({one.fault for one in status.degraded}):
            return status
        await camera.status_other_than(status)


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda part, jpeg: part(jpeg, headers={"X-UStreamer-Online": "false"}), CameraFault.UNPLUGGED),
        (lambda part, jpeg: part(jpeg, headers={"X-Timestamp": "1.5"}), CameraFault.NO_CLOCK),
        (lambda part, jpeg: part(jpeg, grab_ns=monotonic_ns() + 3600 * S), CameraFault.NO_CLOCK),
        (lambda part, jpeg: part(jpeg, grab_ns=1), CameraFault.NO_CLOCK),
        (lambda part, jpeg: part(jpeg) + part(jpeg, grab_ns=monotonic_ns() - S), CameraFault.NO_CLOCK),
        (lambda part, jpeg: part(jpeg, length=len(jpeg) - 9), CameraFault.BROKEN_STREAM),
        (lambda part, jpeg: b"".join(part(jpeg[:-30]) for _ in range(10)), CameraFault.BROKEN_STREAM),
    ],
    ids=["no signal", "no time", "future", "old", "jumps back", "truncated part", "cut pictures"],
)  # fmt: skip
async def test_a_stream_that_cannot_be_used_is_named(
    running: Any, server: Any, part: Any, jpegs: list[bytes], spoil: Any, fault: CameraFault
) -> None:
    server.on_connect = lambda: spoil(part, jpegs[0])
    async with running(server.over()) as camera:
        await offline_with(camera, fault)
        # It ends as it began: from outside.
        server.on_connect = None
        async with server.playing(jpegs):
            await camera.wait_online()


@pytest.mark.parametrize(
    ("head", "fault"),
    [
        (b"HTTP/1.0 404 Not Found\r\n\r\n", CameraFault.NOT_MJPEG),
        (b"HTTP/1.0 503 Unavailable\r\n\r\n", CameraFault.UNPLUGGED),
        (b"HTTP/1.0 200 OK\r\nContent-Type: image/jpeg\r\n\r\n", CameraFault.NOT_MJPEG),
        (b"SSH-2.0-OpenSSH\r\n", CameraFault.NOT_MJPEG),
    ],
)
async def test_an_answer_that_is_no_motion_jpeg_is_named(
    running: Any, server: Any, head: bytes, fault: CameraFault
) -> None:
    server.head = head
    async with running(server.over()) as camera:
        await offline_with(camera, fault)


async def test_a_server_that_is_gone_and_a_camera_that_blocks_are_told_apart(
    running: Any, server: Any, jpegs: list[bytes]
) -> None:
    async with running(server.over(silence_s=0.5)) as camera:
        async with server.playing(jpegs):
            await camera.wait_online()
        await offline_with(camera, CameraFault.BLOCKED)
        server.unplug()
        status = await offline_with(camera, CameraFault.SERVER_GONE)
        assert status.words.startswith("server_gone: ")


async def test_a_frozen_camera_stays_offline_however_often_it_is_opened(
    running: Any, server: Any, part: Any, jpegs: list[bytes]
) -> None:
    """Its old picture comes again with each opening. It is not new then, and the camera is not online for it."""
    frozen = part(jpegs[0], grab_ns=monotonic_ns())
    server.on_connect = lambda: frozen
    async with running(server.over(silence_s=0.4)) as camera, trio.open_nursery() as nursery:

        async def repeat() -> None:
            while True:
                await server.send(frozen)
                await trio.sleep(0.01)

        nursery.start_soon(repeat)
        since = await offline_with(camera, CameraFault.FROZEN)
        while camera.counters.restarts < 1:
            status = await camera.status_other_than(camera.status)
            assert isinstance(status, CameraOffline)
            assert status.since_ns == since.since_ns, "it has been offline all the time"
        assert camera.counters.captured == 1
        nursery.cancel_scope.cancel()


async def test_a_stamp_that_repeats_over_other_pictures_is_a_slip_and_no_frozen_camera(
    running: Any, server: Any, jpegs: list[bytes]
) -> None:
    async with running(server.over(silence_s=0.4)) as camera:
        await server.wait_connected()
        await server.push(jpegs[7])
        await camera.wait_online()
        for number in range(0, 40, 2):
            grab_ns = monotonic_ns()
            await server.push(jpegs[number % 8], grab_ns=grab_ns)
            await server.push(jpegs[(number + 1) % 8], grab_ns=grab_ns)
            await camera.frame_after(grab_ns - 1, PATIENCE_S)
        assert isinstance(camera.status, CameraOnline)
        assert camera.counters.captured >= 39


async def test_a_clock_that_stands_still_while_the_pictures_change_is_no_clock_and_stays_none(
    running: Any, server: Any, jpegs: list[bytes]
) -> None:
    async with running(server.over(silence_s=0.4)) as camera, trio.open_nursery() as nursery:
        await server.wait_connected()
        grab_ns = monotonic_ns()

        async def play() -> None:
            while True:
                for jpeg in jpegs:
                    await server.push(jpeg, grab_ns=grab_ns)
                    await trio.sleep(0.005)

        nursery.start_soon(play)
        status = await offline_with(camera, CameraFault.NO_CLOCK)
        assert "stood still" in status.reason
        while camera.counters.restarts < 1:
            assert isinstance(await camera.status_other_than(camera.status), CameraOffline)
        nursery.cancel_scope.cancel()


async def test_another_picture_size_is_named_until_it_is_the_old_one_again(
    running: Any, server: Any, jpeg: Callable[..., bytes], jpegs: list[bytes]
) -> None:
    async with running(server.over()) as camera:
        async with server.playing(jpegs):
            await camera.wait_online()
        async with server.playing([jpeg(level, width=96, height=48) for level in range(8)]):
            status = await online_where(camera, lambda names: CameraFault.SIZE_CHANGED in names)
            assert "96x48, gave 64x48 before" in status.degraded[0].words
        async with server.playing(jpegs):
            await online_where(camera, lambda names: not names)


# -- enough pictures? -------------------------------------------------------------------------------------------


def rates(
    check: RateCheck, fps: float, seconds: float, state: list[int], *, broken: int = 0
) -> list[str | None]:
    """Play pictures at a rate; `state` is time, captured, broken so far."""
    said = []
    for _ in range(round(fps * seconds)):
        state[0] += round(S / fps)
        state[1] += 1
        state[2] += broken
        said.append(check.take(state[0], state[1], state[2]))
    return said


@pytest.mark.parametrize("expected", [30.0, None], ids=["configured", "learned"])
def test_half_the_rate_is_starvation_from_then_until_it_is_over(expected: float | None) -> None:
    check, state = RateCheck(expected), [0, 0, 0]
    assert set(rates(check, 30, 4, state)) == {None}
    starved = [words for words in rates(check, 15, 4, state) if words is not None]
    assert len(starved) > 30, "said within two seconds"
    assert len(set(starved)) == 1, "nobody is woken for another number"
    assert "bus is crowded" in starved[0]
    assert rates(check, 30, 2.5, state)[-1] is None, "over within three seconds"


def test_a_rate_a_little_short_is_no_starvation() -> None:
    assert set(rates(RateCheck(30.0), 25, 6, [0, 0, 0])) == {None}


def test_many_broken_pictures_are_starvation_too() -> None:
    check, state = RateCheck(30.0), [0, 0, 0]
    assert "arrive broken" in str(rates(check, 30, 4, state, broken=1)[-1])
    assert rates(check, 30, 3, state)[-1] is None


# -- anything to be seen? ---------------------------------------------------------------------------------------


def drawn(view: Any, screen: int | None) -> bytes:
    """The view with a screen of that level; None leaves the page of icons."""
    image = view.page(1)
    if screen is not None:
        corners = np.rint(view.SCREEN).astype(np.int32)
        cv2.fillPoly(image, [corners], (screen, screen, screen))
    done, encoded = cv2.imencode(".jpg", image)
    assert done
    return encoded.tobytes()


def test_a_dark_screen_in_a_lit_room_is_off_and_a_lit_one_is_not(view: Any) -> None:
    screens = {"phone-1": view.SCREEN}
    assert [one.fault for one in look(drawn(view, 5), screens)] == [CameraFault.SCREEN_OFF]
    assert "phone-1" in look(drawn(view, 5), screens)[0].words
    assert look(drawn(view, None), screens) == ()
    assert look(drawn(view, 5), {}) == (), "nobody knows where the screen is"


def test_a_dark_page_with_a_line_of_text_is_not_off(view: Any) -> None:
    image = cv2.imdecode(np.frombuffer(drawn(view, 8), np.uint8), cv2.IMREAD_COLOR)
    assert image is not None
    cv2.putText(image, "Good night", (500, 300), 0, 1.4, (220, 220, 220), 3)
    assert look(cv2.imencode(".jpg", image)[1].tobytes(), {"phone-1": view.SCREEN}) == ()


def test_a_screen_that_is_switched_off_is_told_in_the_pictures_of_the_twin() -> None:
    rig = VirtualRig(Truth(3), quality="realtime")
    width_mm, height_mm = SCREEN_WIDTH_MM, SCREEN_HEIGHT_MM
    outline = rig.sensor.truth_project(
        np.array([[0, 0], [width_mm, 0], [width_mm, height_mm], [0, height_mm]], np.float64)
    )
    screens = {"phone-1": [(float(x), float(y)) for x, y in outline]}
    rig.pass_ms(100)
    assert look(rig.take_picture().jpeg, screens) == ()
    rig.phone.set_brightness(0.0, rig.now_ns)
    rig.pass_ms(100)
    assert [one.fault for one in look(rig.take_picture().jpeg, screens)] == [CameraFault.SCREEN_OFF]


async def test_a_screen_that_goes_dark_is_said_while_the_camera_is_online_and_taken_back(
    running: Any, server: Any, view: Any
) -> None:
    camera = Camera("over", HttpMjpegSource(url=server.url), silence_s=PATIENCE_S, look_every_s=0.02)
    camera.watch_screen("phone-1", view.SCREEN)
    async with running(camera):
        async with server.playing([drawn(view, level) for level in range(4)]):
            await online_where(camera, lambda names: names == {CameraFault.SCREEN_OFF})
            camera.watch_screen("phone-1", None)
            await online_where(camera, lambda names: not names)


# -- what people and programs are told --------------------------------------------------------------------------


def test_the_metadata_and_the_list_of_devices_name_what_is_wrong() -> None:
    counters = CameraCounters(dropped=2, restarts=1)
    gone = said("cam-1", CameraOffline("nobody answers", 0, CameraFault.SERVER_GONE), counters)
    assert (gone["status"], gone["fault"], gone["dropped"]) == ("offline", "server_gone", 2)
    dark = said(
        "cam-1", CameraOnline(64, 48, 0, (Degradation(CameraFault.BLACK, "nothing is to be seen"),)), counters
    )
    assert dark["degraded"] == [{"fault": "black", "words": "nothing is to be seen"}]
    shown = [_camera(SimpleNamespace(metadata={"camera": camera})) for camera in (gone, dark)]
    assert shown == ["cam-1\nserver_gone", "cam-1\nblack: nothing is to be seen"]
