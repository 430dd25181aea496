"""One simulated rig with its daemon for the whole run: building and calibrating it takes a minute.

It lives on a trio loop of its own in a thread; tests reach it as anybody would, over its sockets.
"""

import queue
import re
import shutil
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import trio

from calibration.options import Options
from edge_daemon.bench.plane import Plane, open_plane
from edge_daemon.bench.rigfile import RigFiles
from edge_daemon.bench.stage import Stage, calibrate_stage, open_stage

SEED = 11


class RigThread:
    """Opens a stage on a trio loop in a thread and keeps it until told to stop."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._started: queue.Queue[Stage | BaseException] = queue.Queue()
        self._stop: trio.Event | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._thread = threading.Thread(target=trio.run, args=(self._main,))

    async def _main(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        self._stop = trio.Event()
        try:
            async with open_stage(SEED, self._directory) as stage:
                await calibrate_stage(stage, Options.quick(), lambda progress: None)
                self._started.put(stage)
                await self._stop.wait()
        except BaseException as error:  # noqa: BLE001 - handed to the fixture, which raises it
            # Handed to the waiting fixture, which raises it; the thread itself has nothing more to say.
            self._started.put(error)

    def start(self) -> Stage:
        self._thread.start()
        result = self._started.get()
        if isinstance(result, BaseException):
            raise result
        return result

    async def call(self, verb: Callable[..., Awaitable[None]], *args: object) -> None:
        token = self._token
        await trio.to_thread.run_sync(lambda: trio.from_thread.run(verb, *args, trio_token=token))

    def stop(self) -> None:
        if self._token is not None and self._stop is not None and self._thread.is_alive():
            self._token.run_sync_soon(self._stop.set)
        if self._thread.ident is not None:
            self._thread.join()


@pytest.fixture(scope="session")
def truth_seed() -> int:
    """The seed of the shared rig's hidden truth: another rig of the same seed may use its calibration."""
    return SEED


@pytest.fixture(scope="session")
def rig_thread() -> Iterator[RigThread]:
    with tempfile.TemporaryDirectory(prefix="edge-test-") as directory:
        thread = RigThread(Path(directory))
        try:
            yield thread
        finally:
            thread.stop()


@pytest.fixture(scope="session")
def calibrated(rig_thread: RigThread) -> Stage:
    """A calibrated rig, its daemon online. Shared: a test leaves it as it found it."""
    return rig_thread.start()


@pytest.fixture
def in_rig(rig_thread: RigThread) -> Callable[..., Awaitable[None]]:
    """Awaits one of the shared rig's own verbs on the loop that the rig lives on."""
    return rig_thread.call


@pytest.fixture
async def plane(calibrated: Stage, request: pytest.FixtureRequest) -> AsyncIterator[Plane]:
    """A plane of this test's own, connected to the shared daemon."""
    plane_id = "plane-" + re.sub(r"[^A-Za-z0-9]", "-", request.node.name)[:100]
    async with open_plane(plane_id, calibrated.files.plane_socket) as plane:
        yield plane


@pytest.fixture
def own_rig(calibrated: Stage) -> Iterator[RigFiles]:
    """A folder for a second rig of the same truth, with the calibration that was made for it."""
    with tempfile.TemporaryDirectory(prefix="edge-test-") as directory:
        files = RigFiles(Path(directory))
        files.state.mkdir(parents=True, mode=0o700)
        shutil.copytree(calibrated.files.calibration_root, files.calibration_root)
        yield files
