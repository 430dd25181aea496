"""The composition root: from a configuration to a running rig. Reads like the picture in README.md."""

import logging
import secrets
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import cv2
import trio

from calibration.errors import CalibrationError
from calibration.screen import ScreenGeometry
from edge_daemon.boards import Board
from edge_daemon.cameras.camera import Camera, InThread
from edge_daemon.cameras.sources import CameraSource
from edge_daemon.clock import MonotonicNs, PlaneClock, machine_boot_id
from edge_daemon.config import BoardSection, Config
from edge_daemon.devices.build import House, build_fleet
from edge_daemon.devices.fleet import Fleet
from edge_daemon.leaves import leaves
from edge_daemon.ledger import Ledger, LedgerError, Retention, open_ledger
from edge_daemon.notify import notify_systemd
from edge_daemon.staff.page_server import PageListen
from edge_daemon.staff.unattended import Unattended
from edge_daemon.upstream.limits import SessionLimits
from edge_daemon.upstream.listeners import EndpointRefused, Endpoints, TcpEndpoint
from edge_daemon.upstream.server import EdgeIdentity
from edge_daemon.upstream.server import serve as serve_upstream

logger = logging.getLogger(__name__)


class StartRefused(Exception):
    """The daemon cannot start; the message says why and what to do."""


async def serve(config: Config) -> None:
    """Runs the rig until SIGTERM or SIGINT. Raises `StartRefused` when it cannot begin."""
    cv2.setNumThreads(1)  # one camera's picture at a time; OpenCV's own threads would starve the serial lines
    try:
        # Open from first to last: a second signal during the shutdown must not keep a hand from parking.
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            await _serve(config, signals)
    except* (LedgerError, EndpointRefused, CalibrationError) as group:
        raise StartRefused("; ".join(str(error) for error in leaves(group))) from group


async def _serve(config: Config, signals: AsyncIterator[int]) -> None:
    endpoints = endpoints_of(config)
    unattended = Unattended(pages_of(config, screens_of(config)))
    identity = EdgeIdentity(config.edge.id, machine_boot_id())
    limits = SessionLimits(staff_actions=config.plane.staff_actions)
    make_state_dir(config)

    async def listen(
        fleet: Fleet, clock: PlaneClock, task_status: trio.TaskStatus[object] = trio.TASK_STATUS_IGNORED
    ) -> None:
        await serve_upstream(fleet, endpoints, identity, clock, limits=limits, task_status=task_status)

    async def told_to_stop() -> None:
        notify_systemd("READY=1")
        logger.info("rig %s: serving %d device(s)", config.edge.id, len(config.devices))
        logger.info("stopping on %s", signal.Signals(await anext(signals)).name)
        notify_systemd("STOPPING=1")

    await run_rig(config, Machine(identity.boot_id), unattended, listen, told_to_stop)


@dataclass(frozen=True)
class Machine:
    """What the rig has of the machine it runs on; a simulation hands in its own."""

    boot_id: str
    monotonic_ns: MonotonicNs = time.monotonic_ns
    wall_s: Callable[[], float] = time.time
    random_bits: Callable[[int], int] = secrets.randbits
    in_thread: InThread = trio.to_thread.run_sync
    open_ledger: Callable[[Path], AbstractAsyncContextManager[Ledger]] = open_ledger
    make_board: Callable[[str, BoardSection], Board] = lambda name, section: Board(
        name, section.port, section.uid, section.kind
    )
    make_camera: Callable[[str, CameraSource], Camera] = Camera


class Listen(Protocol):
    """Lets planes and staff in until cancelled; started once they can come."""

    async def __call__(
        self, fleet: Fleet, clock: PlaneClock, task_status: trio.TaskStatus[object] = ...
    ) -> None: ...


async def run_rig(
    config: Config,
    machine: Machine,
    unattended: Unattended,
    listen: Listen,
    told_to_stop: Callable[[], Awaitable[None]],
) -> None:
    """The rig from its ledger to its planes, until `told_to_stop` returns. Raises `LedgerError` and what `listen` does.

    Three nurseries, one inside the other, so that things end in the right order: first nobody may ask for
    anything, then hands are parked and receipts settled, last the boards and cameras go.
    """
    async with machine.open_ledger(config.ledger_path) as ledger:
        if ledger.renewed is not None:
            logger.warning("%s: epoch %d: older keys are answered as not known", ledger.renewed, ledger.epoch)
        pending = await ledger.pending()
        boards = {name: machine.make_board(name, section) for name, section in config.boards.items()}
        cameras = {name: machine.make_camera(name, source) for name, source in config.cameras.items()}
        clock = PlaneClock(machine.monotonic_ns, machine.wall_s)
        house = House(
            config,
            ledger,
            clock,
            machine.boot_id,
            machine.monotonic_ns,
            boards,
            cameras,
            machine.random_bits,
            machine.in_thread,
        )
        fleet = build_fleet(house, pending, unattended)
        async with trio.open_nursery() as parts, trio.open_nursery() as acting:
            for board in boards.values():
                parts.start_soon(board.run)
            for camera in cameras.values():
                parts.start_soon(camera.run)
            parts.start_soon(Retention(ledger, config.ledger.keep_days, config.ledger.keep_newest).run)
            await acting.start(fleet.run)
            async with unattended.serving(), trio.open_nursery() as listening:
                await listening.start(listen, fleet, clock)
                await told_to_stop()
                listening.cancel_scope.cancel()
            await fleet.drain()
            acting.cancel_scope.cancel()
            parts.cancel_scope.cancel()


def endpoints_of(config: Config) -> Endpoints:
    """Where planes and staff may come in. Raises `EndpointRefused`."""
    tcp = config.plane.tcp
    return Endpoints(
        plane_socket=Path(config.plane.unix_socket) if config.plane.unix_socket is not None else None,
        plane_tcp=TcpEndpoint(tcp.host, tcp.port, Path(tcp.token_file), tcp.allow_beyond_loopback)
        if tcp is not None
        else None,
        staff_socket=Path(config.staff.unix_socket),
    )


def screens_of(config: Config) -> dict[str, ScreenGeometry]:
    """Every device's screen. Raises `StartRefused` for one that no phone has: nothing could be computed on it."""
    screens = {}
    for device_id, device in config.devices.items():
        size = device.screen
        try:
            screens[device_id] = ScreenGeometry(
                width_px=size.width_px,
                height_px=size.height_px,
                width_mm=size.width_mm,
                height_mm=size.height_mm,
            )
        except CalibrationError as error:
            raise StartRefused(f"[devices.{device_id}.screen] {error}") from error
    return screens


def pages_of(
    config: Config, screens: Mapping[str, ScreenGeometry]
) -> dict[str, tuple[PageListen, ScreenGeometry]]:
    """The calibration pages to be served, by device. Raises `EndpointRefused`."""
    return {
        device_id: (
            PageListen(
                device.page.host, device.page.port, device.page.allow_beyond_loopback, device.page.url_host
            ),
            screens[device_id],
        )
        for device_id, device in config.devices.items()
        if device.page is not None
    }


def make_state_dir(config: Config) -> None:
    """Ledger and calibrations say who did what on whose phone: nobody else may read them."""
    for path in (config.state_dir, config.state_dir / "calibration"):
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.chmod(0o700)
        except OSError as error:
            raise StartRefused(f"[edge.state_dir] {path}: {error.strerror}") from error
