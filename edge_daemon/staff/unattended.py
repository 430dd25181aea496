"""Calibration that nobody attends: the daemon holds the device, shows its page on the phone, and runs the procedure."""

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

import trio

from calibration.errors import AcceptanceFailed, CalibrationError
from calibration.options import Options
from calibration.procedure import Progress
from calibration.screen import ScreenGeometry
from calibration.store import CalibrationStore, Conditions, StoredCalibration
from edge_daemon.contract import Actor, Refused
from edge_daemon.staff.askers import by_page, unattended
from edge_daemon.staff.conditions import conditions_of
from edge_daemon.staff.page_server import PageListen, Pages, page_server
from edge_daemon.staff.plan import plan_for
from edge_daemon.staff.rig import RigVerbs
from edge_daemon.staff.runs import run_plan, stage_of
from edge_daemon.upstream.service import (
    CalibrationKind,
    CalibrationOutcome,
    RawPicture,
    RigFacts,
    StaffTouchAt,
    StageCallback,
)

logger = logging.getLogger(__name__)

OWNER = "edge:calibration"
HINT = "Being calibrated by itself; about three minutes."
RELEASE_S = 10.0


class Desk(Protocol):
    """What is asked of the device's staff side."""

    @property
    def device_id(self) -> str: ...

    def facts(self) -> RigFacts: ...

    async def take_hold(self, hint: str, owner: str) -> None: ...

    async def release_hold(self, owner: str | None) -> None: ...

    async def look(self) -> RawPicture: ...

    async def touch(self, touch: StaffTouchAt, owner: str) -> None: ...

    async def save_calibration(
        self, save: Callable[[CalibrationStore, Conditions], StoredCalibration]
    ) -> StoredCalibration: ...


@dataclass
class _Job:
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    over: trio.Event = field(default_factory=trio.Event)
    touches: int = 0


class Unattended:
    """The pages that the configuration asks for, and the calibrations under way, one a device at most."""

    def __init__(
        self, pages: Mapping[str, tuple[PageListen, ScreenGeometry]], options: Options | None = None
    ) -> None:
        self._listen = dict(pages)
        self._options = options or Options()
        self._pages: dict[str, Pages] = {}
        self._jobs: dict[str, _Job] = {}

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """The pages can be opened while the block runs. Raises EndpointRefused, TargetImpossible."""
        async with AsyncExitStack() as stack:
            for device_id, (listen, screen) in self._listen.items():
                self._pages[device_id] = await stack.enter_async_context(page_server(listen, screen))
                logger.info("%s: its calibration page is at %s", device_id, self._pages[device_id].url)
            try:
                yield
            finally:
                self._pages.clear()

    def page_url(self, device_id: str) -> str | None:
        """Where the device's phone finds its page; None where none is served."""
        pages = self._pages.get(device_id)
        return pages.url if pages is not None else None

    async def calibrate(
        self,
        desk: Desk,
        kind: CalibrationKind,
        actor: Actor,
        on_stage: StageCallback,
        on_change: Callable[[], None],
    ) -> CalibrationOutcome:
        """One whole calibration. Raises `Refused` where it cannot begin, and `canceled` when it was taken back."""
        device_id = desk.device_id
        if device_id in self._jobs:
            raise Refused("leased", f"{device_id} is being calibrated already", hint=HINT)
        pages = self._open_page(device_id)
        logger.info("%s: calibration (%s) begun for %s %s", device_id, kind, actor.kind, actor.id or "")
        job = self._jobs[device_id] = _Job()
        try:
            outcome = await self._run(desk, kind, actor, pages, job, on_stage, on_change)
        finally:
            del self._jobs[device_id]
            job.over.set()
        if outcome is None:
            raise Refused(
                "canceled", f"the calibration of {device_id} was taken back; the former one is in use"
            )
        return outcome

    async def stop(self, device_id: str) -> None:
        """Takes back what runs on the device; returns when its hand is parked and its hold given back."""
        job = self._jobs.get(device_id)
        if job is not None:
            job.scope.cancel()
            await job.over.wait()

    def _open_page(self, device_id: str) -> Pages:
        pages = self._pages.get(device_id)
        if pages is None:
            raise Refused(
                "capability_unsupported",
                f"nobody would show the calibration page on {device_id}: configure [devices.{device_id}.page], or run "
                f"edge-daemon calibrate {device_id} at the rig",
            )
        if pages.state is None:
            raise Refused(
                "capability_unsupported",
                f"{device_id} does not have the calibration page open: open {pages.url} on it, full screen",
            )
        return pages

    async def _run(
        self,
        desk: Desk,
        kind: CalibrationKind,
        actor: Actor,
        pages: Pages,
        job: _Job,
        on_stage: StageCallback,
        on_change: Callable[[], None],
    ) -> CalibrationOutcome | None:
        """None when it was taken back. The hand is parked and the hold given back on any exit."""
        await desk.take_hold(HINT, OWNER)
        on_change()
        outcome = None
        try:
            with job.scope:
                outcome = await self._judged(desk, kind, actor, pages, job, on_stage)
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + RELEASE_S) as patience:
                await desk.release_hold(OWNER)
            if patience.cancelled_caught:
                logger.error(
                    "%s: not given back within %.0f s: its hand does not park", desk.device_id, RELEASE_S
                )
            on_change()
        return outcome

    async def _judged(
        self,
        desk: Desk,
        kind: CalibrationKind,
        actor: Actor,
        pages: Pages,
        job: _Job,
        on_stage: StageCallback,
    ) -> CalibrationOutcome:
        async def touch(at: StaffTouchAt) -> None:
            # One that has begun ends as it would have: taken back half-way, nobody could say what the phone felt.
            with trio.CancelScope(shield=True):
                await desk.touch(at, OWNER)

        def tell(progress: Progress) -> None:
            job.touches = progress.touches
            trio.from_thread.run_sync(on_stage, stage_of(progress))

        device_id = desk.device_id
        try:
            facts = desk.facts()
            store = CalibrationStore(Path(facts.calibration_folder), device_id)
            read = partial(plan_for, facts, kind, store, conditions_of(facts), attended=False)
            plan = await trio.to_thread.run_sync(read)
            verbs = RigVerbs(desk.look, touch)
            asker = unattended(by_page(pages))
            result = await run_plan(plan, verbs, facts, self._options, asker, tell)
            stored = await desk.save_calibration(
                lambda store, conditions: plan.save(store, conditions, result, note_of(actor))
            )
        except CalibrationError as error:
            logger.warning("%s: calibration refused: %s", device_id, error)
            acceptance = error.acceptance if isinstance(error, AcceptanceFailed) else None
            return CalibrationOutcome(
                device_id=device_id,
                verdict="refused",
                touches=job.touches,
                refusal=type(error).__name__,
                reason=str(error),
                p50_mm=acceptance.p50_mm if acceptance is not None else None,
                p95_mm=acceptance.p95_mm if acceptance is not None else None,
                max_mm=acceptance.max_mm if acceptance is not None else None,
            )
        accepted = stored.calibration.acceptance
        logger.info("%s: calibration %s accepted and in use", device_id, stored.label)
        return CalibrationOutcome(
            device_id=device_id,
            verdict="accepted",
            touches=len(stored.calibration.touches),
            calibration_id=stored.id,
            p50_mm=accepted.p50_mm if accepted is not None else None,
            p95_mm=accepted.p95_mm if accepted is not None else None,
            max_mm=accepted.max_mm if accepted is not None else None,
        )


def note_of(actor: Actor) -> str:
    """What stands in the history beside it."""
    return f"unattended, asked for by {actor.kind} {actor.id or ''}".rstrip()
