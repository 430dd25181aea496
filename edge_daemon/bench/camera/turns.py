"""The screen in all four turns: does the daemon find out, does it say so where it is told otherwise, and does a tap in
each land where the grid of that turn says?"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from calibration.targets import TURNS, Turn
from calibration.targets.turns import is_landscape
from edge_daemon.bench.camera.player import take_look
from edge_daemon.bench.camera.truth import LINK_LOST_NS, Witness
from edge_daemon.bench.camera.turned_apps import TurnedApp
from edge_daemon.bench.plane import Message, Plane, PlaneError
from edge_daemon.bench.rigfile import DEVICE
from edge_daemon.bench.stage import Stage, wait_online
from edge_daemon.bench.twin.phone import Phone
from edge_daemon.bench.twin.technician_pages import on_screen_mm
from edge_daemon.bench.twin.touches import Touch
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_WIDTH_MM, Truth
from edge_daemon.contract import Refused
from edge_daemon.upstream.client import StaffClient

PAGES = ("charuco", "dots")
"""Each shows how it is turned."""
APPS = ("settings", "panel")
"""An app shows it where its bars can be told from what lies beside them."""
LANDING_LIMIT_MM = 0.6
TRIES = 3
GRID = 1000.0
TAPS = ((180.0, 240.0), (830.0, 610.0))
"""No two turns put them on the same place of the glass."""


@dataclass
class TurnRun:
    """One page in one turn. found: by the daemon itself. wrong: what was not as it should be, in words."""

    turn: Turn
    page: str
    checks: int = 0
    found: bool = False
    wrong: list[str] = field(default_factory=list)

    def expect(self, holds: bool, words: str) -> None:
        self.checks += 1
        if not holds:
            self.wrong.append(f"{self.page} in {self.turn}: {words}")


def pages(quick: bool) -> Sequence[tuple[str, Turn]]:
    """Every page in every turn; quick: one page in each."""
    if quick:
        return [
            (page, turn) for page, turn in zip(("dots", "charuco", "settings", "dots"), TURNS, strict=True)
        ]
    return [(page, turn) for turn in TURNS for page in (*PAGES, *APPS)]


def turned_apps(turned: Sequence[tuple[str, Turn]], truth: Truth) -> dict[tuple[str, Turn], TurnedApp]:
    """Their pictures, drawn beforehand: drawing holds up a rig that runs in real time."""
    phone = Phone(truth, 0)
    return {(page, turn): TurnedApp(phone, page, turn) for page, turn in turned if page in APPS}


async def run_turn(
    page: str,
    turn: Turn,
    app: TurnedApp | None,
    stage: Stage,
    plane: Plane,
    staff: StaffClient,
    witness: Witness,
) -> TurnRun:
    """Turn the phone under `page`; hear what the daemon says before it is told; let it find out; tap.

    Again from the start where daemon and board lost each other meanwhile: this machine was too busy.
    """
    for _ in range(TRIES):
        began_ns = time.monotonic_ns()
        run = TurnRun(turn, page)
        try:
            await _turn(run, app, stage, plane, staff, witness)
        except (PlaneError, Refused) as refusal:
            run.expect(False, f"refused: {refusal}")
        if not run.wrong or not witness.link_broke_since(began_ns - LINK_LOST_NS):
            break
        await wait_online(stage.files)
    return run


async def _turn(
    run: TurnRun,
    app: TurnedApp | None,
    stage: Stage,
    plane: Plane,
    staff: StaffClient,
    witness: Witness,
) -> None:
    turn = run.turn
    before = (await plane.list_devices())[0]["orientation"]
    _show(run.page, turn, app, stage)
    await _contradicted(run, before, stage, plane, witness)
    run.found = await _find_out(run, staff)
    look, picture = await take_look(plane, witness, leased=True, wait_settled_ms=2000)
    run.expect(picture["orientation"] == turn, f"it was found to be {picture['orientation']}")
    run.expect(picture.get("orientationMismatch") is None, "the picture contradicts what was just found")
    run.expect(_lies(picture) == is_landscape(turn), f"a picture of {picture['pixelSize']}")
    run.expect(look.number is not None, "the picture is not upright: nobody can read which one it is")
    for x, y in TAPS:
        await _tap(run, x, y, turn, look.frame_id, stage, plane)


async def _find_out(run: TurnRun, staff: StaffClient) -> bool:
    """Whether the daemon found out; where an app shows too little, it must say so and is told by name."""
    try:
        await staff.set_orientation(DEVICE, "found")
    except Refused as refusal:
        run.expect(run.page in APPS and refusal.info.code == "invalid_argument", f"not found: {refusal}")
        await staff.set_orientation(DEVICE, run.turn)
        return False
    return True


async def back_to_portrait(stage: Stage, staff: StaffClient) -> None:
    stage.rig.phone.show_page("launcher")
    await staff.set_orientation(DEVICE, "portrait")


def _show(page: str, turn: Turn, app: TurnedApp | None, stage: Stage) -> None:
    phone = stage.rig.phone
    if app is not None:
        phone.add_page(app)
    phone.show_page(page if app is None else app.name)
    phone.rotate(turn)


async def _contradicted(run: TurnRun, before: Turn, stage: Stage, plane: Plane, witness: Witness) -> None:
    """What a daemon that still believes in `before` says of the turned screen, and that it touches nothing by it."""
    look, picture = await take_look(plane, witness, leased=True, wait_settled_ms=2000)
    said = picture.get("orientationMismatch")
    if before == run.turn:
        run.expect(said is None, f"it is said to contradict itself: {said}")
        return
    run.expect(
        said == run.turn, f"taken for {before}; the picture is said to show {said or 'no contradiction'}"
    )
    if said is None:
        return
    touched = len(stage.rig.phone.touches)
    action = {"type": "tap", "x": TAPS[0][0], "y": TAPS[0][1]}
    answer = await plane.dispatch(DEVICE, action, observed_frame=look.frame_id)
    code = (answer.error or {}).get("code")
    run.expect(code == "stale_frame", f"a tap bound to a contradicted frame ended with {code or 'a touch'}")
    run.expect(
        len(stage.rig.phone.touches) == touched, "a tap bound to a contradicted frame touched the screen"
    )


async def _tap(
    run: TurnRun, x: float, y: float, turn: Turn, frame_id: str | None, stage: Stage, plane: Plane
) -> None:
    phone = stage.rig.phone
    touched = len(phone.touches)
    action: dict[str, Any] = {"type": "tap", "x": x, "y": y}
    answer = await plane.dispatch(DEVICE, action, observed_frame=frame_id)
    name = f"a tap at ({x:g}, {y:g})"
    run.expect(answer.committed, f"{name} was not committed: {(answer.error or {}).get('message')}")
    seen = phone.touches[touched:]
    run.expect(len(seen) == 1, f"{name} made {len(seen)} touches")
    if len(seen) == 1:
        off_mm = landing_error_mm(seen[0], x, y, turn)
        run.expect(off_mm <= LANDING_LIMIT_MM, f"{name} landed {off_mm:.2f} mm off")


def landing_error_mm(touch: Touch, x: float, y: float, turn: Turn) -> float:
    """How far a touch began from grid point (x, y) of the screen as it is read in `turn`."""
    width_mm, height_mm = SCREEN_WIDTH_MM, SCREEN_HEIGHT_MM
    if is_landscape(turn):
        width_mm, height_mm = height_mm, width_mm
    true_mm = on_screen_mm((x / GRID * width_mm, y / GRID * height_mm), turn)
    return math.dist(true_mm, (touch.x_mm, touch.y_mm))


def _lies(picture: Message) -> bool:
    return bool(picture["pixelSize"]["width"] > picture["pixelSize"]["height"])
