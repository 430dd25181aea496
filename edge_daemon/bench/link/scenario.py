"""One run: three taps over a line with one fault, and whether the daemon's word agrees with what was pressed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

import trio

from edge_daemon.bench.link import faults
from edge_daemon.bench.link.presses import DWELL_MS, HOVER_Z_MM, PRESS_Z_MM, PressLog, place_mm
from edge_daemon.bench.link.proxy import Proxy
from edge_daemon.boards import (
    Board,
    BoardError,
    CommandFault,
    Done,
    HandClient,
    NotExecuted,
    NotSent,
    OutcomeUnknown,
)

Word = Literal["done", "aborted", "not executed", "unknown", "unreachable"]

# The link's own bounds are 1.6 s for a command without answer and 5 s without HELLO.
ONLINE_S = 15.0
ASK_S = 15.0
RUN_S = 90.0


class LinkWorld(faults.World, Protocol):
    """Both ends of a line, the proxy between them, and the log of what was pressed."""

    board: Board
    hand: HandClient
    proxy: Proxy
    presses: PressLog

    @property
    def boots(self) -> int:
        """How often the board has started."""

    @property
    def pending(self) -> bool:
        """Whether something that a fault asked for has not happened yet."""

    def next_place(self) -> tuple[float, float]:
        """A place that no command had before."""


class Counting:
    """Ids and places, each used once."""

    def __init__(self) -> None:
        self._ids = 0
        self._places = 0

    def next_cmd_id(self) -> int:
        self._ids += 1
        return self._ids

    def next_place(self) -> tuple[float, float]:
        self._places += 1
        return place_mm(self._places)


@dataclass
class Told:
    """One tap: where, and what the daemon says became of it."""

    place: tuple[float, float]
    word: Word
    effect: bool = False
    reason: str = ""


@dataclass
class Run:
    """What one run showed."""

    fault: str
    struck: bool = False
    unknown: bool = False
    may_be_unknown: bool = False
    doubles: int = 0
    lost: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def recovered(self) -> bool:
        return not self.unknown and not self.problems


async def make_ready(world: LinkWorld) -> None:
    """As the daemon does on each new connection: online, and homed."""
    while True:
        await world.board.wait_online()
        flags = world.board.flags
        if flags is not None and flags.homed:
            return
        try:
            await world.hand.home(world.next_cmd_id())
            return
        except BoardError:
            # Its turn comes again when the board is back.
            await trio.sleep(0.02)


async def settle(world: LinkWorld) -> None:
    """Until the fault has done all it does, and the daemon has had a true answer from the board's present start."""
    while True:
        info = world.board.last_info
        if not world.pending and info is not None and info.boot_id == world.proxy.boot_id:
            answer = await world.board.ask(world.next_cmd_id(), info.boot_id, timeout_s=ASK_S)
            if isinstance(answer, NotExecuted):
                return
        await trio.sleep(0.02)


async def tap(world: LinkWorld) -> Told:
    """One tap at a place of its own, and the daemon's last word on it."""
    place = world.next_place()
    with trio.move_on_after(ONLINE_S):
        await world.board.wait_online()
    info = world.board.last_info
    if info is None:
        return Told(place, "not executed", reason="the board has never been online")
    cmd_id = world.next_cmd_id()
    try:
        await world.hand.tap(cmd_id, *place, HOVER_Z_MM, PRESS_Z_MM, DWELL_MS, boot_id=info.boot_id)
    except OutcomeUnknown as unknown:
        if unknown.final:
            return Told(place, "unknown", reason=unknown.reason)
        return _told(place, await world.board.ask(cmd_id, info.boot_id, timeout_s=ASK_S))
    except BoardError as error:
        return _told(place, error)
    return Told(place, "done")


def _told(place: tuple[float, float], answer: Done | BoardError) -> Told:
    match answer:
        case Done():
            return Told(place, "done")
        case CommandFault(refused=True) | NotExecuted() | NotSent():
            return Told(place, "not executed", reason=str(answer))
        case CommandFault():
            return Told(place, "aborted", effect=answer.effect, reason=str(answer))
        case OutcomeUnknown(final=True):
            return Told(place, "unknown", reason=answer.reason)
        case _:
            return Told(place, "unreachable", reason=str(answer))


async def play(world: LinkWorld, fault: str, arm: Callable[[], None], *, armed_first: bool) -> Run:
    """Two taps with the fault somewhere on the line, one on a good line after it.

    armed_first: the fault may strike the handshake and the homing too; else the board is ready before it.
    """
    run = Run(fault)
    told: list[Told] = []
    boots = world.boots
    world.presses.presses_um.clear()
    if armed_first:
        arm()
    with trio.move_on_after(RUN_S) as patience:
        await make_ready(world)
        if not armed_first:
            arm()
        told += [await tap(world), await tap(world)]
        world.proxy.heal()
        await settle(world)
        await make_ready(world)
        told.append(await tap(world))
    run.struck = world.proxy.struck
    run.may_be_unknown = world.boots > boots + armed_first or fault == faults.another_host.__name__
    judge(run, told, world.presses)
    if patience.cancelled_caught:
        run.lost += 3 - len(told)
        run.problems.append(f"the board did not come back to work within {RUN_S:.0f} s")
    elif told[-1].word != "done" and not run.problems:
        run.problems.append(f"the tap on the good line afterwards: {told[-1].word} ({told[-1].reason})")
    return run


def judge(run: Run, told: list[Told], presses: PressLog) -> None:
    """Hold each word against the log."""
    for number, tap_told in enumerate(told, start=1):
        count = presses.count_at(tap_told.place)
        run.doubles += max(0, count - 1)
        problem = contradiction(tap_told, count)
        if problem is None and tap_told.word == "unknown":
            run.unknown = True
            if not run.may_be_unknown:
                problem = f"unknown, and the board neither restarted nor forgot: {tap_told.reason}"
        if problem is not None:
            run.lost += count <= 1
            run.problems.append(f"tap {number}: {problem}")
    strays = presses.strays([tap_told.place for tap_told in told])
    if strays:
        run.doubles += strays
        run.problems.append(f"{strays} press(es) where nothing was asked for")


def contradiction(told: Told, presses: int) -> str | None:
    """How a word disagrees with the number of presses; None where it does not."""
    if presses > 1:
        return f"pressed {presses} times; the daemon says {told.word}"
    if told.word == "unreachable":
        return f"no answer was ever had: {told.reason}"
    if told.word == "done" and presses == 0:
        return "the daemon says done, and nothing was pressed"
    touched_nothing = told.word == "not executed" or (told.word == "aborted" and not told.effect)
    if touched_nothing and presses:
        return f"the daemon says {told.word} without effect, and it was pressed ({told.reason})"
    return None
