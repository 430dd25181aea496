"""A phone with a HID board alone, in this process: real board firmware on a pty, real camera stream, real ledger."""

import resource
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from calibration.options import Options
from edge_daemon.bench.twin.hidhost import PhoneOs
from edge_daemon.bench.twin.phone import Phone
from edge_daemon.bench.twin.rig import SimulatedRig
from edge_daemon.boards import Board
from edge_daemon.cameras.camera import Camera
from edge_daemon.clock import PlaneClock, machine_boot_id
from edge_daemon.config import load_config
from edge_daemon.contract import Actor, Dispatch, Lease, Outcome, Progress, Receipt
from edge_daemon.contract.actions import Action
from edge_daemon.daemon import pages_of, screens_of
from edge_daemon.devices.build import House, build_fleet
from edge_daemon.devices.fleet import Fleet
from edge_daemon.ledger import Ledger, open_ledger
from edge_daemon.staff.unattended import Unattended

DEVICE = "phone-1"

CONFIG = """
[edge]
id = "rig"
state_dir = "{directory}"
[plane]
unix_socket = "{directory}/plane"
[staff]
unix_socket = "{directory}/staff"
[boards.keys-1]
kind = "hid"
port = "{port}"
[cameras.cam-1]
type = "http_mjpeg"
url = "{url}"
[devices.phone-1]
hid = "keys-1"
camera = "cam-1"
queue_limit = 3
[devices.phone-1.page]
port = 0
[devices.phone-1.screen]
width_px = 1080
height_px = 2340
width_mm = 68.0
height_mm = 147.3
"""


@dataclass
class Rig:
    """One run of the daemon's inside; `restart` is a new run on the same ledger and the same boards."""

    fleet: Fleet
    ledger: Ledger
    phone: Phone
    rig: SimulatedRig
    ledger_path: Path
    unattended: Unattended

    async def dispatch(
        self,
        key: str,
        action: Action,
        *,
        token: int = 1,
        expires_in_ms: int = 60_000,
        epoch: int | None = None,
        on_progress: Callable[[Progress], None] = lambda progress: None,
    ) -> Outcome:
        request = Dispatch(
            device_id=DEVICE,
            idempotency_key=key,
            org_id="org",
            actor=Actor(kind="system"),
            lease=Lease(lease_id="lease", fencing_token=token, remaining_ms=600_000),
            action=action,
            expires_in_ms=expires_in_ms,
            epoch=epoch,
        )
        return await self.fleet.dispatch(request, on_progress)


RunRig = Callable[[], AbstractAsyncContextManager[Rig]]


@pytest.fixture
def phone_os() -> PhoneOs:
    return "android"


@pytest.fixture
def ask_timeout_s() -> float:
    """How long an action that lost its link waits for the board before the device does."""
    return 3.0


@pytest.fixture
async def run_rig(phone_os: PhoneOs, ask_timeout_s: float) -> AsyncIterator[RunRig]:
    """Call it to have the daemon's inside run for a while; again, and it is the next start of the daemon."""
    with tempfile.TemporaryDirectory(prefix="edge-test-") as name:
        directory = Path(name)
        async with SimulatedRig(5, directory, boards=("hid",), os=phone_os) as twin:
            text = CONFIG.format(directory=directory, port=twin.hid_port, url=twin.camera_url)
            (directory / "edge.toml").write_text(text)

            @asynccontextmanager
            async def run() -> AsyncIterator[Rig]:
                config = load_config(directory / "edge.toml")
                async with open_ledger(config.ledger_path) as ledger:
                    boards = {
                        "keys-1": Board("keys-1", twin.hid_port, None, "hid", ask_timeout_s=ask_timeout_s)
                    }
                    cameras = {"cam-1": Camera("cam-1", config.cameras["cam-1"])}
                    house = House(
                        config, ledger, PlaneClock(), machine_boot_id(), time.monotonic_ns, boards, cameras
                    )
                    unattended = Unattended(pages_of(config, screens_of(config)), Options.quick())
                    fleet = build_fleet(house, await ledger.pending(), unattended)
                    async with (
                        unattended.serving(),
                        trio.open_nursery() as parts,
                        trio.open_nursery() as acting,
                    ):
                        parts.start_soon(boards["keys-1"].run)
                        parts.start_soon(cameras["cam-1"].run)
                        with fleet.subscribe() as changes:
                            await acting.start(fleet.run)
                            while fleet.devices()[0].status != "online":
                                await changes.receive()
                        yield Rig(fleet, ledger, twin.phone, twin, config.ledger_path, unattended)
                        acting.cancel_scope.cancel()
                        parts.cancel_scope.cancel()

            yield run


@pytest.fixture
def no_file_grows() -> Callable[[], AbstractContextManager[None]]:
    """The kernel refuses to write into any file of this process (EFBIG); processes cannot be started meanwhile."""

    @contextmanager
    def limited() -> Iterator[None]:
        usual = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, usual[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, usual)

    return limited


@pytest.fixture
def pending_receipt() -> Callable[..., Receipt]:
    """A tap's, by its key; keywords are fields that matter to the test."""

    def made(key: str, **changes: Any) -> Receipt:
        receipt = Receipt(
            org_id="org",
            device_id=DEVICE,
            idempotency_key=key,
            backend_kind="esp32_hid",
            action="tap",
            args_summary={"x": 500.0, "y": 320.0},
            status="pending",
            requested_at="2025-06-01T12:00:00.000Z",
            boot_id="boot",
            requested_ns=5,
            clock_synced=True,
            actor=Actor(kind="system"),
        )
        return msgspec.structs.replace(receipt, **changes)

    return made
