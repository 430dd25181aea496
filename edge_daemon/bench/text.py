"""Long texts through every layout: what the daemon's own client types, the simulated phone must have read.

The firmware runs in its own process behind a pty; the phone takes the reports through their descriptor and makes
characters of them with key tables of its own. Each layout types the same text twice: over a clean line, and with
caps lock on over a line that loses frames both ways.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import trio

from edge_daemon.bench.stage import StageFailed
from edge_daemon.bench.twin.boards import Runtime
from edge_daemon.bench.twin.rig import RigError, SimulatedRig
from edge_daemon.boards import Board, BoardError, HidClient
from firmware.hid import layouts

LAYOUTS = {layout.name: layout_id for layout_id, layout in layouts.LAYOUTS.items()}
READY_S = 15.0
# The phone's own input latency, and one more poll of its USB host.
ARRIVAL_S = 2.0


@dataclass(frozen=True)
class TextRun:
    """One text, typed once. ``problem``: why it is not equal, in words."""

    equal: bool
    frames: int
    lost_frames: int
    retransmits: int
    reconnects: int
    wall_s: float
    problem: str | None = None


@dataclass(frozen=True)
class LayoutResult:
    """Both runs of one layout."""

    layout: str
    characters: int
    utf8_bytes: int
    clean: TextRun
    lossy: TextRun

    @property
    def equal(self) -> bool:
        return self.clean.equal and self.lossy.equal

    def as_json(self) -> dict[str, Any]:
        return {
            "characters": self.characters,
            "utf8_bytes": self.utf8_bytes,
            "equal": self.equal,
            "frames": self.lossy.frames,
            "lost_frames": self.lossy.lost_frames,
            "retransmits": self.lossy.retransmits,
            "reconnects": self.lossy.reconnects,
            "wall_s": round(self.lossy.wall_s, 2),
            "clean_wall_s": round(self.clean.wall_s, 2),
            "problems": [run.problem for run in (self.clean, self.lossy) if run.problem],
        }


@dataclass(frozen=True)
class TextReport:
    """What a run of the suite found."""

    seed: int
    runtime: Runtime
    frame_loss: float
    poll_ms: float
    layouts: Sequence[LayoutResult]

    @property
    def holds(self) -> bool:
        """Every text arrived equal; and where frames were to be lost, some were."""
        lost = sum(result.lossy.lost_frames for result in self.layouts)
        return (
            bool(self.layouts)
            and all(result.equal for result in self.layouts)
            and bool(lost or not self.frame_loss)
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "suite": "text",
            "verdict": "pass" if self.holds else "fail",
            "seed": self.seed,
            "runtime": self.runtime,
            "frame_loss": self.frame_loss,
            "poll_ms": self.poll_ms,
            "layouts": {result.layout: result.as_json() for result in self.layouts},
        }


def draw_text(layout: str, characters: int, rng: np.random.Generator) -> str:
    """Every character of the layout's charset at least once where there is room, the rest at random."""
    charset = list(layouts.charset(LAYOUTS[layout]))
    rng.shuffle(charset)
    rest = max(0, characters - len(charset))
    text = charset[:characters] + [charset[index] for index in rng.integers(len(charset), size=rest)]
    rng.shuffle(text)
    return "".join(text)


async def run_text_suite(
    names: Sequence[str],
    characters: int,
    frame_loss: float,
    poll_ms: float,
    seed: int,
    directory: Path,
    on_layout: Callable[[LayoutResult], None],
) -> TextReport:
    """Types through each layout in turn; `on_layout` hears of each one. poll_ms: the phone's polling interval."""
    results: list[LayoutResult] = []
    runtime: Runtime = "cpython"
    for index, name in enumerate(names):
        text = draw_text(name, characters, np.random.default_rng([seed, index]))
        place = directory / name
        place.mkdir()
        rig = SimulatedRig(
            seed,
            place,
            layout=name,
            boards=("hid",),
            camera=False,
            hid_poll_ns=round(poll_ms * 1e6),
        )
        async with rig:
            runtime = rig.runtime
            result = await _type_through(rig, name, text, frame_loss)
        results.append(result)
        on_layout(result)
    return TextReport(seed, runtime, frame_loss, poll_ms, results)


async def _type_through(rig: SimulatedRig, layout: str, text: str, frame_loss: float) -> LayoutResult:
    board = Board("keys", rig.hid_port, rig.hid_uid, "hid")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(board.run)
        await _ready(board)
        rig.phone.open_app("notes")
        clean = await _type_once(rig, board, 1, text)
        rig.set_caps_lock(True)
        await _ready(board, caps_lock=True)
        lossy = await _type_once(rig, board, 2, text, frame_loss)
        nursery.cancel_scope.cancel()
    return LayoutResult(layout, len(text), len(text.encode()), clean, lossy)


async def _ready(board: Board, caps_lock: bool = False) -> None:
    with trio.move_on_after(READY_S):
        events = board.events()
        while (flags := board.flags) is None or not flags.usb_ready or flags.caps_lock != caps_lock:
            await events.receive()
        return
    raise StageFailed(f"the HID board was not ready within {READY_S:.0f} s: {board.status}, {board.flags}")


async def _type_once(
    rig: SimulatedRig, board: Board, cmd_id: int, text: str, frame_loss: float = 0.0
) -> TextRun:
    line = rig.line("hid")
    before, written_before = board.counters, len(rig.phone.text_field)
    losses = [way.lose_frames(frame_loss) for way in (line.to_board, line.to_host)]
    problem: str | None = None
    began_s = time.monotonic()
    try:
        await HidClient(board).text(cmd_id, text)
    except BoardError as error:
        problem = f"{type(error).__name__}: {error}"
    wall_s = time.monotonic() - began_s
    line.to_board.heal()
    line.to_host.heal()
    after = board.counters
    if problem is None:
        with suppress(RigError):
            await rig.wait_for(lambda: len(rig.phone.text_field) >= written_before + len(text), ARRIVAL_S)
        problem = difference(text, rig.phone.text_field[written_before:])
    if problem is None and rig.hid_faults:
        problem = f"the phone did not understand a report: {rig.hid_faults[0]}"
    if problem is None and rig.hid_host.keys_down:
        problem = f"{rig.hid_host.keys_down} keys stayed down"
    return TextRun(
        equal=problem is None,
        frames=sum(loss.passed + loss.lost for loss in losses),
        lost_frames=sum(loss.lost for loss in losses),
        retransmits=after.line.retransmits - before.line.retransmits,
        reconnects=after.reconnects - before.reconnects,
        wall_s=wall_s,
        problem=problem,
    )


def difference(sent: str, arrived: str) -> str | None:
    """Where two texts part, in words; None if they are equal."""
    if sent == arrived:
        return None
    pairs = enumerate(zip(sent, arrived, strict=False))
    at = next((index for index, (a, b) in pairs if a != b), min(len(sent), len(arrived)))
    return (
        f"{len(arrived)} of {len(sent)} characters arrived; the first difference is at {at}: "
        f"{sent[at : at + 5]!r} became {arrived[at : at + 5]!r}"
    )
