"""kill -9 of the real process tree at random moments, over and over; the phones' own logs and the plane's notebook say
what came of it.

Two phones, each with a hand and a keyboard whose firmware runs in processes of their own behind ptys; one daemon
process with its files; one plane that goes on sending whatever happens. The seed draws what is sent and when is
killed; the machine's own timing makes each run another one.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal

import trio

from edge_daemon.bench.crash.oracle import Counts
from edge_daemon.bench.crash.real_book import Seen, judge_entries
from edge_daemon.bench.crash.real_felt import felt_by
from edge_daemon.bench.crash.real_leaks import leaks
from edge_daemon.bench.crash.real_notes import BoardKind, Entry, Felt
from edge_daemon.bench.crash.real_rig import RealPhone, RealRig, open_real_rig
from edge_daemon.bench.crash.real_sender import Sender
from edge_daemon.bench.plane import Plane

DEVICES = ("phone-1", "phone-2")
CLIENTS = 2
"""Requests at the same time for each phone: one is carried out, one waits in line."""
ACCOUNTS_S = 120.0
"""For every key to be asked about, after a daemon that waits for a board has given it up."""

Moment = Literal["at work", "while starting", "while recovering"]
MOMENTS: tuple[Moment, ...] = ("at work", "while starting", "while recovering")
_WEIGHTS = (6, 2, 2)
_AT_WORK_S = (0.0, 1.0)
"""How long after the first acceptance of this life: an action takes 0.2 s, a long one 1 s."""
_STARTING_S = (0.02, 0.6)
"""How long after the spawn; at the end of it the daemon is about to say that it is ready."""
_RECOVERING_S = (0.5, 1.8)
"""How long after the spawn: boards are found again, and what was pending is asked about."""
_CUT_SHARE = 0.25
"""How often the plane's connection breaks shortly before the kill."""
_CUT_BEFORE_S = (0.0, 0.05)
_RESET_SHARE = 0.1
"""How often a board loses its memory at the same time, as in a power cut."""
_TROUBLE_SHARE = 0.3
_RESET_RATHER = 0.3
_TROUBLE_S = (0.0, 0.2)
"""How often a board restarts, or rather its cable goes, while the daemon lives: so long after it got an action."""
_AWAY_S = (0.05, 0.4)
"""How long a cable is gone."""


@dataclass
class KillReport:
    """What came of it."""

    seed: int
    kills: int = 0
    moments: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MOMENTS, 0))
    board_resets: int = 0
    cable_flaps: int = 0
    plane_cuts: int = 0
    keys: int = 0
    touches: int = 0
    """Contacts with the glass."""
    felt: dict[str, int] = field(default_factory=dict)
    """Keys by what was asked for and how much of it a phone felt: "text part"."""
    committed: int = 0
    counts: Counts = field(default_factory=Counts)
    problems: list[str] = field(default_factory=list)
    wall_s: float = 0.0


async def kill_many(
    seed: int, kills: int, directory: Path, on_kill: Callable[[Moment], None] = lambda moment: None
) -> KillReport:
    """`kills` times kill -9; returns when everything has healed and every key has been asked about.

    directory: a short path, it holds sockets. Raises what a rig raises that does not come up.
    """
    begun, rng = time.monotonic(), Random(seed)
    report = KillReport(seed)
    async with open_real_rig(directory, DEVICES) as rig, trio.open_nursery() as nursery:
        plane = Plane(f"plane-{seed}", rig.files.plane_socket, nursery)
        sender = Sender(plane, DEVICES, rng)
        nursery.start_soon(sender.stay_connected)
        nursery.start_soon(sender.listen)
        killer = _Killer(rig, plane, sender, rng, report)
        async with trio.open_nursery() as clients:
            for device in DEVICES:
                for _ in range(CLIENTS):
                    clients.start_soon(sender.keep_busy, device)
            await killer.kill_running()
            while report.kills < kills:
                on_kill(await killer.live_and_kill())
            await rig.daemon.start()
            # A run of a few kills would else end with nothing to show.
            await sender.shown()
            sender.stop()
        await sender.online()
        with trio.fail_after(ACCOUNTS_S):
            await sender.settle_accounts()
        seen = {
            device: _seen(sender.of_device(device), phone, killer.resets_ns[device], killer.kills_ns)
            for device, phone in rig.phones.items()
        }
        report.touches = sum(len(phone.log.contacts) for phone in rig.phones.values())
        nursery.cancel_scope.cancel()
    _judge(report, sender, seen, directory)
    report.wall_s = time.monotonic() - begun
    return report


def _judge(report: KillReport, sender: Sender, seen: dict[str, Seen], directory: Path) -> None:
    """Nothing runs any more. directory: everything that was left behind."""
    entries = list(sender.entries.values())
    report.counts = judge_entries(entries, seen, report.problems.append)
    texts = [entry.wish.text for entry in entries if entry.wish.kind == "text"]
    leaked = leaks(texts, directory, sender.said)
    report.counts.text_leaks += len(leaked)
    report.problems += leaked
    report.keys = len(entries)
    report.committed = sum((entry.receipt or {}).get("status") == "committed" for entry in entries)
    report.felt = dict(Counter(_how_felt(entry, seen[entry.device].felt.get(entry.key)) for entry in entries))


def _how_felt(entry: Entry, felt: Felt | None) -> str:
    return f"{entry.wish.kind} {'none' if felt is None else 'whole' if felt.wholes else 'part'}"


class _Killer:
    """Each life of the daemon ends with kill -9."""

    def __init__(self, rig: RealRig, plane: Plane, sender: Sender, rng: Random, report: KillReport) -> None:
        self._rig = rig
        self._plane = plane
        self._sender = sender
        self._rng = rng
        self._report = report
        self.kills_ns: list[int] = []
        self.resets_ns: dict[str, dict[BoardKind, list[int]]] = {
            device: {"hand": [], "hid": []} for device in DEVICES
        }

    async def live_and_kill(self) -> Moment:
        """One life from its start to its end, and when that was."""
        (moment,) = self._rng.choices(MOMENTS, _WEIGHTS)
        if moment == "at work":
            await self._rig.daemon.start()
            await self.kill_running()
        else:
            bounds = _STARTING_S if moment == "while starting" else _RECOVERING_S
            await self._rig.daemon.start_and_kill(self._rng.uniform(*bounds))
            await self._killed(moment)
        return moment

    async def kill_running(self) -> None:
        """The daemon is running: when every phone is there and has been asked, at a random moment of the work."""
        await self._sender.online()
        await self._sender.at_work()
        if self._rng.random() < _TROUBLE_SHARE:
            await self._trouble()
        await trio.sleep(self._rng.uniform(*_AT_WORK_S))
        if self._rng.random() < _CUT_SHARE:
            self._report.plane_cuts += 1
            await self._plane.disconnect()
            await trio.sleep(self._rng.uniform(*_CUT_BEFORE_S))
        await self._rig.daemon.kill()
        await self._killed("at work")

    async def _killed(self, moment: Moment) -> None:
        self.kills_ns.append(time.monotonic_ns())
        self._report.kills += 1
        self._report.moments[moment] += 1
        if self._rng.random() < _RESET_SHARE:
            device = self._rng.choice(DEVICES)
            await self._reset(device, self._rng.choice(list(self._rig.phones[device].boards)))

    async def _trouble(self) -> None:
        """A board that has an action to carry out restarts, or its cable goes; the daemon lives."""
        entry = await self._sender.next_at_a_board()
        await trio.sleep(self._rng.uniform(*_TROUBLE_S))
        if self._rng.random() < _RESET_RATHER:
            await self._reset(entry.device, entry.wish.board)
        else:
            self._report.cable_flaps += 1
            board = self._rig.phones[entry.device].boards[entry.wish.board]
            await board.flap(self._rng.uniform(*_AWAY_S))

    async def _reset(self, device: str, kind: BoardKind) -> None:
        self._report.board_resets += 1
        self.resets_ns[device][kind].append(time.monotonic_ns())
        await self._rig.phones[device].boards[kind].reset()


def _seen(
    entries: list[Entry], phone: RealPhone, resets_ns: dict[BoardKind, list[int]], kills_ns: list[int]
) -> Seen:
    felt, strays = felt_by(entries, phone.log)
    if phone.keys.keys_down:
        strays.append(f"{phone.keys.keys_down} keys are still down when everything had healed")
    flaps = {kind: board.flaps for kind, board in phone.boards.items()}
    return Seen(felt, strays, resets_ns, kills_ns, flaps)
