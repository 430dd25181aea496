"""Typed text and a whole daemon that says all it has to say: it stands in no log line and no file, however it ends."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trio

from edge_daemon.bench.plane import Plane, PlaneDisconnected, PlaneError, open_plane
from edge_daemon.bench.rigfile import DEVICE, RigFiles
from edge_daemon.bench.stage import Stage, open_stage, staff_of, wait_online

SEED = 12
NEEDLE = "zQ7pwDx4"
"""As long as a frame's chunk of text or shorter, so that a chunk of many of them shows one whole."""
LONG = {"type": "typeText", "text": NEEDLE * 60}
NOT_ON_THE_KEYBOARD = "Ж"


@pytest.fixture
def typing_rig() -> Iterator[RigFiles]:
    """Uncalibrated: a keyboard needs no calibration. A short path, for it holds sockets."""
    with tempfile.TemporaryDirectory(prefix="edge-test-") as directory:
        yield RigFiles(Path(directory))


def files_of(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


async def at_debug(stage: Stage) -> None:
    """The same daemon once more, at the chattiest level that the configuration knows."""
    await stage.daemon.stop()
    with stage.files.config.open("a", encoding="utf-8") as config:
        config.write('[log]\nlevel = "debug"\n')
    await stage.daemon.start()
    await wait_online(stage.files)


async def half_typed(stage: Stage, nursery: trio.Nursery, plane: Plane, key: str) -> None:
    """Returns when the phone has a part of a long text; its dispatch goes on in the nursery."""

    async def dispatch() -> None:
        with pytest.raises(PlaneDisconnected):
            await plane.dispatch(DEVICE, LONG, key=key)

    before = len(stage.rig.phone.typed)
    nursery.start_soon(dispatch)
    await stage.rig.wait_for(lambda: len(stage.rig.phone.typed) > before + 2 * len(NEEDLE))


async def test_typed_text_is_in_no_log_line_and_no_file_of_a_daemon_at_debug_that_is_killed_while_typing(
    typing_rig: RigFiles, must_be_nowhere: Callable[[str, object, bytes | str], None]
) -> None:
    async with (
        open_stage(SEED, typing_rig.directory) as stage,
        open_plane("plane-typing", typing_rig.plane_socket) as plane,
    ):
        await at_debug(stage)
        await plane.connect()
        whole = {"type": "typeText", "text": f"Hello {NEEDLE}!"}
        assert (await plane.dispatch(DEVICE, whole, key="typed")).committed
        cannot = {"type": "typeText", "text": NEEDLE + NOT_ON_THE_KEYBOARD}
        refused = await plane.dispatch(DEVICE, cannot, key="refused")
        conflict = await plane.dispatch(DEVICE, LONG, key="typed")
        misshapen = {"type": "typeText", "text": NEEDLE * 600}
        with pytest.raises(PlaneError) as too_long:
            await plane.dispatch(DEVICE, misshapen, key="too-long")
        async with trio.open_nursery() as nursery:
            await half_typed(stage, nursery, plane, "killed")
            await stage.daemon.kill()
        await stage.daemon.start()
        await wait_online(typing_rig)
        await plane.connect()
        killed = await plane.dispatch(DEVICE, LONG, key="killed")
        stopped: list[object] = []

        async def stop_half_way() -> None:
            answer = await plane.dispatch(DEVICE, LONG, key="stopped")
            stopped.append(answer.outcome)

        async with staff_of(stage) as staff, trio.open_nursery() as nursery:
            before = len(stage.rig.phone.typed)
            nursery.start_soon(stop_half_way)
            await stage.rig.wait_for(lambda: len(stage.rig.phone.typed) > before + 2 * len(NEEDLE))
            await stage.rig.reset_board("hid")
            await plane.wait_until(lambda: (DEVICE, "stopped") in plane.pushed)
            assert (await staff.get_receipt(DEVICE, "stopped")).found
        open_files = {path: path.read_bytes() for path in files_of(typing_rig.directory)}
        told = [
            refused.outcome,
            conflict.outcome,
            str(too_long.value),
            killed.outcome,
            stopped,
            plane.notebook,
        ]

    assert f"Hello {NEEDLE}!" in stage.rig.phone.typed, "or there was nothing to be found"
    assert killed.receipt["reason"] == "outcome_unknown"
    log = typing_rig.log.read_bytes()
    assert b" DEBUG " in log, "the level did not take"
    assert b"its last frames" in log, "no frames were dumped, so that shows nothing"
    assert b"TEXT_LOAD" in log or b"TEXT_GO" in log
    must_be_nowhere(NEEDLE, "what a plane was told", repr(told))
    for path, content in open_files.items():
        must_be_nowhere(NEEDLE, f"{path}, open", content)
    for path in files_of(typing_rig.directory):
        must_be_nowhere(NEEDLE, path, path.read_bytes())
