"""Scenes of the whole twin: its phone with its apps, its lens, its sensor, JPEGs of 1280 x 720."""

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np

from edge_daemon.bench.camera.scene import MS, Change, Scene, Shot
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_WIDTH_MM, Truth
from edge_daemon.bench.twin.virtual import VirtualRig
from edge_daemon.cameras.settle import Polygon

TRUTHS = 6
"""A rig costs a second to build; scenes share this many."""
INTERVAL_NS = 66_666_667
SETTLE_NS = 700 * MS
TRANSITION_NS = 250 * MS
STATUS_BAR_SHARE = 0.035

Act = Callable[[VirtualRig, np.random.Generator], int]
"""Does something to the phone and returns for how long it may move, ns; 0 for a step."""


@lru_cache(maxsize=TRUTHS)
def _rig(seed: int) -> VirtualRig:
    return VirtualRig(Truth(seed))


def _open(rig: VirtualRig, rng: np.random.Generator) -> int:
    others = [name for name in ("launcher", "panel", "settings", "notes") if name != rig.phone.current_page]
    rig.phone.open_app(str(rng.choice(others)), now_ns=rig.now_ns)
    return TRANSITION_NS


def _show(rig: VirtualRig, rng: np.random.Generator) -> int:
    others = [name for name in ("launcher", "panel", "settings", "dots") if name != rig.phone.current_page]
    rig.phone.show_page(str(rng.choice(others)), now_ns=rig.now_ns)
    return 0


def _notify(rig: VirtualRig, rng: np.random.Generator) -> int:
    rig.phone.notify("Are you there?", now_ns=rig.now_ns, for_ms=60_000.0)
    return TRANSITION_NS


def _nothing(rig: VirtualRig, rng: np.random.Generator) -> int:
    return -1


ACTS: dict[str, tuple[str, Act]] = {
    "twin_still": ("launcher", _nothing),
    "twin_notes_cursor": ("notes", _nothing),
    "twin_open_app": ("launcher", _open),
    "twin_page": ("panel", _show),
    "twin_notification": ("settings", _notify),
}


def twin_scene(kind: str, rng: np.random.Generator, seed: int) -> Scene:
    """A scene of this kind; see `ACTS`."""
    rig = _rig(seed % TRUTHS)
    page, act = ACTS[kind]
    # What an earlier scene left on the screen goes.
    rig.phone.notify("", now_ns=rig.now_ns, for_ms=0.0)
    rig.phone.show_page(page, now_ns=rig.now_ns)
    rig.phone.set_brightness(float(rng.choice((1.0, rng.uniform(0.35, 1.0)))), now_ns=rig.now_ns)
    rig.pass_ms(2_000)
    scene = Scene(
        kind=kind,
        interval_ns=INTERVAL_NS,
        begin_ns=rig.now_ns,
        shots=iter(()),
        mask=_polygon(rig, 0.0, 1.0),
        ignore=(_polygon(rig, 0.0, STATUS_BAR_SHARE),),
        busy_small=kind == "twin_notes_cursor",
        traits=f"twin {seed % TRUTHS}",
    )
    scene.shots = _shots(rig, rng, act, scene)
    return scene


def _shots(rig: VirtualRig, rng: np.random.Generator, act: Act, scene: Scene) -> Iterator[Shot]:
    acts_ns = rig.now_ns + round(float(rng.uniform(350.0, 600.0)) * MS)
    ends_ns = acts_ns + TRANSITION_NS + SETTLE_NS
    done = False
    while rig.now_ns < ends_ns:
        due_ns = rig.now_ns + INTERVAL_NS
        if not done and rig.now_ns + rig.sensor.exposure_ns >= acts_ns:
            done = True
            begin_ns = rig.now_ns
            lasts_ns = act(rig, rng)
            if lasts_ns >= 0:
                scene.changes.append(Change(begin_ns, begin_ns + lasts_ns, begin_ns, begin_ns + lasts_ns))
        picture = rig.take_picture()
        yield Shot(picture.exposure.begin_ns, jpeg=picture.jpeg)
        rig.pass_ns(max(0, due_ns - rig.now_ns))


def _polygon(rig: VirtualRig, top: float, bottom: float) -> Polygon:
    """Part of the screen between two shares of its height, as the true camera shows it."""
    corners = np.array(
        [
            [0.0, top * SCREEN_HEIGHT_MM],
            [SCREEN_WIDTH_MM, top * SCREEN_HEIGHT_MM],
            [SCREEN_WIDTH_MM, bottom * SCREEN_HEIGHT_MM],
            [0.0, bottom * SCREEN_HEIGHT_MM],
        ]
    )
    return [(float(x), float(y)) for x, y in rig.sensor.truth_project(corners)]
