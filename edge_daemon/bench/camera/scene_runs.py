"""Scenes by the thousand, judged in processes beside everything else."""

import os
import subprocess
import sys
from collections.abc import Callable

import msgspec
import trio

from edge_daemon.bench.calibrate.run import RunFailed
from edge_daemon.bench.camera.scene import SceneVerdict

CHUNKS = 4
"""However many processors there are: the same seed gives the same scenes. A twin's rig takes a second to build, so
few and long ones."""
_SEEDS_APART = 1000


async def run_scenes(
    seed: int, count: int, workers: int, on_verdict: Callable[[SceneVerdict], None]
) -> list[SceneVerdict]:
    """Judge `count` scenes. Raises RunFailed when a process broke down. Cancellation kills them."""
    chunks: list[list[SceneVerdict]] = [[] for _ in range(CHUNKS)]
    limiter = trio.CapacityLimiter(workers)

    async def one(number: int) -> None:
        share = (count + number) // CHUNKS
        async with limiter:
            await _judged(seed * _SEEDS_APART + number, share, chunks[number], on_verdict)

    async with trio.open_nursery() as nursery:
        for number in range(CHUNKS):
            nursery.start_soon(one, number)
    return [verdict for chunk in chunks for verdict in chunk]


async def _judged(
    seed: int, count: int, into: list[SceneVerdict], on_verdict: Callable[[SceneVerdict], None]
) -> None:
    command = [sys.executable, "-m", "edge_daemon.bench.camera.scene_worker", str(seed), str(count)]
    # One of several at a time: BLAS's own threads would only fight.
    single = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    process = await trio.lowlevel.open_process(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **single},
    )
    try:
        words = await _read(process, into, on_verdict)
        status = await process.wait()
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
    if status or len(into) != count:
        raise RunFailed(f"scenes of seed {seed}: the judge ended with {status} after {len(into)}: {words}")


async def _read(
    process: trio.Process, into: list[SceneVerdict], on_verdict: Callable[[SceneVerdict], None]
) -> str:
    """Takes the verdicts; returns the last line of what it said beside them."""
    assert process.stdout is not None
    assert process.stderr is not None
    errors = bytearray()

    async def listen() -> None:
        assert process.stderr is not None
        async for data in process.stderr:
            errors.extend(data)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        rest = b""
        async for data in process.stdout:
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                verdict = msgspec.json.decode(line, type=SceneVerdict)
                into.append(verdict)
                on_verdict(verdict)
    return (errors.decode(errors="replace").strip().splitlines() or ["without a word"])[-1]
