"""One seed: a world and a solver as processes, connected, and what came of it."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import msgspec
import trio

from calibration.result import DeviceCalibration
from edge_daemon.bench.calibrate.channel import Channel, ChannelClosed
from edge_daemon.bench.calibrate.judge import Landing
from edge_daemon.bench.calibrate.mutations import RIG_MUTATIONS

# No module of the simulated rig may be in the solver's process: there the truth would be in reach.
FORBIDDEN = "edge_daemon.bench.twin"


class RunFailed(Exception):
    """One of the processes of a seed did not do its part; the message has its last words."""


@dataclass(frozen=True)
class Outcome:
    """What one calibration came to. landing and camera_max_mm are None for a refusal, and for a mutation."""

    seed: int
    mutation: str
    refusal: str
    because: str
    touches: int
    looks: int
    rig_time_s: float
    hand_s: float
    camera_s: float
    person_s: float
    landing: Landing | None
    camera_max_mm: float | None
    calibration: DeviceCalibration | None

    @property
    def accepted(self) -> bool:
        return not self.refusal


async def calibrate_seed(seed: int, mutation: str, taps: int) -> Outcome:
    """Calibrate the rig of this seed; if it was accepted and taps is not 0, let the world judge it by taps.

    Raises RunFailed. Cancellation kills both processes.
    """
    with (
        _pair() as (rig_here, rig_there),
        _pair() as (judge_here, judge_there),
        _pair() as (result, result_there),
        tempfile.TemporaryFile() as words,
    ):
        on_rig = [mutation] if mutation in RIG_MUTATIONS else []
        world = _start("world", [str(seed)], (rig_here, judge_there), on_rig, words)
        solver = _start("solver", [], (rig_there, result_there), [mutation], words)
        try:
            return await _follow(seed, mutation, taps, Channel(judge_here), Channel(result))
        except ChannelClosed as error:
            raise RunFailed(f"seed {seed}{f' ({mutation})' if mutation else ''}: {_last(words)}") from error
        finally:
            for process in (solver, world):
                process.kill()
                process.wait()


async def _follow(seed: int, mutation: str, taps: int, judge: Channel, result: Channel) -> Outcome:
    answer = await _receive(result)
    reached = [name for name in answer["modules"] if name.startswith(FORBIDDEN)]
    if reached:
        raise RunFailed(f"seed {seed}: the solver had the simulated rig in reach: {', '.join(reached)}")
    spent = await _receive(judge)
    calibration = verdict = None
    if "calibration" in answer:
        calibration = msgspec.json.decode(answer["calibration"], type=DeviceCalibration)
        if taps:
            judge.send({"calibration": answer["calibration"], "taps": taps})
            verdict = await _receive(judge)
    return Outcome(
        seed=seed,
        mutation=mutation,
        refusal=answer.get("refusal", ""),
        because=answer.get("because", ""),
        touches=spent["touches"],
        looks=spent["looks"],
        rig_time_s=spent["rig_time_s"],
        hand_s=spent["hand_ms"] / 1000,
        camera_s=spent["camera_ms"] / 1000,
        person_s=spent["person_ms"] / 1000,
        landing=_landing(verdict) if verdict else None,
        camera_max_mm=verdict["camera_to_screen_max_mm"] if verdict else None,
        calibration=calibration,
    )


def _landing(verdict: dict[str, Any]) -> Landing:
    return msgspec.convert({name: verdict[name] for name in Landing.__struct_fields__}, Landing)


async def _receive(channel: Channel) -> dict[str, Any]:
    return await trio.to_thread.run_sync(channel.receive, abandon_on_cancel=True)


@contextmanager
def _pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    here, there = socket.socketpair()
    with here, there:
        yield here, there


def _start(
    module: str,
    before: list[str],
    ends: tuple[socket.socket, socket.socket],
    after: list[str],
    words: IO[bytes],
) -> subprocess.Popen[bytes]:
    """The process takes its ends with it: they are closed here, so that its death is heard at the other side."""
    fds = tuple(end.fileno() for end in ends)
    command = [sys.executable, "-m", f"edge_daemon.bench.calibrate.{module}", *before, *map(str, fds), *after]
    # Each process is one of many at a time: BLAS's own threads would only fight.
    single = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command,
        pass_fds=fds,
        stdin=subprocess.DEVNULL,
        stdout=words,
        stderr=words,
        env={**os.environ, **single},
    )
    for end in ends:
        end.close()
    return process


def _last(words: IO[bytes]) -> str:
    words.seek(0)
    lines = words.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "a process ended without a word"
