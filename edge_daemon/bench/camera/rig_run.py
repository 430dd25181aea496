"""The part in real time: one simulated rig with its daemon, looked at and acted on; what came of it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Protocol

import trio

from calibration.targets import Turn
from edge_daemon.bench.camera.faults import Fault, FaultRun, run_fault
from edge_daemon.bench.camera.notes import Judged, is_stale, judge
from edge_daemon.bench.camera.player import Player
from edge_daemon.bench.camera.ready import open_calibrated_stage
from edge_daemon.bench.camera.schedule import ActStep, LookStep, draw_schedule
from edge_daemon.bench.camera.truth import History, Witness
from edge_daemon.bench.camera.turns import TurnRun, back_to_portrait, run_turn, turned_apps
from edge_daemon.bench.plane import open_plane
from edge_daemon.bench.stage import staff_of
from edge_daemon.bench.twin.truth import Truth

TICK_S, PAUSE_S = 0.25, 2.0
"""Longer than the second is no busy machine but a halted one."""


class Observer(Protocol):
    """Whoever shows the run to a person."""

    def phase(self, text: str) -> None: ...

    def progress(self, what: str, done: int, total: int) -> None: ...


@dataclass
class RigFindings:
    """Everything that was measured on the rig, judged."""

    judged: list[Judged] = field(default_factory=list)
    unjudged: int = 0
    """Bound actions whose frame or acceptance the bench could not tell for itself."""
    looks: int = 0
    looks_unread: int = 0
    """Pictures in which nobody could read which exposure they are."""
    stale: int = 0
    interrupted: int = 0
    """Steps that were refused because daemon and board had lost each other: this machine was too busy."""
    paused_s: float = 0.0
    """How long this machine stood still in all: a virtual one that its host had put aside."""
    faults: list[FaultRun] = field(default_factory=list)
    turns: list[TurnRun] = field(default_factory=list)
    frame_interval_ms: float | None = None
    problems: list[str] = field(default_factory=list)
    runtime: str = ""


async def run_rig(
    seed: int,
    bound: int,
    turned: Sequence[tuple[str, Turn]],
    faults: Sequence[Fault],
    directory: Path,
    observer: Observer,
) -> RigFindings:
    """Play `bound` bound actions, turn the screen, let each fault happen. directory: for sockets and logs; short.

    turned: which pages in which turns.
    """
    found = RigFindings()
    apps = turned_apps(turned, Truth(seed))
    async with open_calibrated_stage(seed, directory, observer.phase) as (stage, calibration):
        assert calibration.hand is not None, "the rig has a hand"
        found.runtime = stage.rig.runtime
        witness = Witness(stage.rig)
        async with (
            open_plane("bench-plane", stage.files.plane_socket) as plane,
            staff_of(stage) as staff,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(_watch_for_pauses, found, observer)
            player = Player(stage, plane, staff, witness, calibration.hand)
            observer.phase("a plane looks and acts; staff and chance move the hand in between")
            await _play(player, seed, bound, observer)
            observer.phase("the screen turned all ways")
            for number, (page, turn) in enumerate(turned, start=1):
                app = apps.get((page, turn))
                found.turns.append(await run_turn(page, turn, app, stage, plane, staff, witness))
                observer.progress("pages in a turn", number, len(turned))
            await back_to_portrait(stage, staff)
            observer.phase("each trouble of the camera, on and off")
            for number, fault in enumerate(faults, start=1):
                found.faults.append(await run_fault(fault, stage.rig, plane, witness))
                observer.progress("camera troubles", number, len(faults))
            nursery.cancel_scope.cancel()
        _judge(found, player, witness.history())
    return found


async def _watch_for_pauses(found: RigFindings, observer: Observer) -> None:
    before_s = time.monotonic()
    while True:
        await trio.sleep(TICK_S)
        now_s = time.monotonic()
        still_s, before_s = now_s - before_s - TICK_S, now_s
        if still_s > PAUSE_S:
            found.paused_s += still_s
            observer.phase(f"this machine stood still for {still_s:.1f} s: this run will not count")


async def _play(player: Player, seed: int, bound: int, observer: Observer) -> None:
    acted = 0
    for step in draw_schedule(bound, seed):
        await player.play(step)
        if isinstance(step, ActStep) and step.back is not None:
            acted += 1
            observer.progress("bound actions", acted, bound)
    # What the camera's server left out shows in the looks before and after an action; the last one has none yet.
    await player.play(LookStep(leased=False, wait_settled_ms=0))


def _judge(found: RigFindings, player: Player, history: History) -> None:
    found.problems.extend(player.problems)
    found.interrupted = player.interrupted
    found.frame_interval_ms = _interval_ms(history)
    found.looks = len(player.looks)
    for look in player.looks:
        stale = is_stale(look, history)
        found.looks_unread += stale is None
        if stale:
            found.stale += 1
            found.problems.append(
                f"frame {look.frame_id or look.sequence} was exposed before it was asked for"
            )
    for acted in player.acted:
        judged = judge(acted, history, player.looks)
        if judged is None:
            found.unjudged += 1
            continue
        found.judged.append(judged)
        found.problems.extend(f"{acted.kind} (key {acted.key}): {word}" for word in judged.words)


def _interval_ms(history: History) -> float | None:
    """The median between two exposures."""
    begins = [history.exposures[number].begin_ns for number in sorted(history.exposures)]
    gaps = [(after - before) / 1e6 for before, after in pairwise(begins)]
    return median(gaps) if gaps else None
