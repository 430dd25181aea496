"""The hand's operations in millimetres of its own frame (z up: larger is further from the glass)."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from edge_daemon.boards.arguments import micrometres, milliseconds
from edge_daemon.boards.board import Board, OnStage
from edge_daemon.boards.errors import ArgumentRefused
from edge_daemon.boards.info import HandLimits
from edge_daemon.boards.status import Done
from firmware import wire

# The longest way of a phone-sized hand takes a second or two; what is not over by then has gone wrong.
TRAVEL_TIMEOUT_S = 15.0
HOME_TIMEOUT_S = 60.0
# Settling, two readings and a slow step on a drive that takes its time to answer.
PROBE_STEP_TIMEOUT_S = 1.0
_HOUSEKEEPING_FAMILY = 1 << 63


@dataclass(frozen=True, slots=True)
class Probed:
    """A probe that was carried out: where contact was sensed, None if it was not above the lowest place."""

    done: Done
    contact_z_mm: float | None


class HandClient:
    """Commands of a hand board. All raise as Board.execute() does, and ArgumentRefused before sending.

    Places outside the envelope are refused by the board (CommandFault ``envelope`` or ``depth``), never
    clamped. home, park and move number themselves where the caller has no use for asking later, by ``now_ns``,
    best of a clock that does not begin anew with the machine. ``boot_id`` is Board.execute()'s.
    """

    def __init__(self, board: Board, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._board = board
        self._now_ns = now_ns
        self._last_own_id = 0

    @property
    def limits(self) -> HandLimits | None:
        """The envelope the board last announced; None if it has not been online yet."""
        info = self._board.last_info
        return info.hand if info is not None else None

    async def home(self, cmd_id: int | None = None) -> Done:
        """Find the reference position. The first motion after a start: the hand does not know where it is."""
        return await self._travel(cmd_id, wire.OP_HOME, b"", HOME_TIMEOUT_S)

    async def park(self, x_mm: float, y_mm: float, z_mm: float, cmd_id: int | None = None) -> Done:
        """Go out of the picture: lift, travel, descend to z_mm."""
        args = wire.pack_args(wire.OP_PARK, *micrometres(x_mm=x_mm, y_mm=y_mm, z_mm=z_mm))
        return await self._travel(cmd_id, wire.OP_PARK, args, TRAVEL_TIMEOUT_S)

    async def move(self, x_mm: float, y_mm: float, z_mm: float, cmd_id: int | None = None) -> Done:
        """Jog to a place, lifting first."""
        args = wire.pack_args(wire.OP_MOVE, *micrometres(x_mm=x_mm, y_mm=y_mm, z_mm=z_mm))
        return await self._travel(cmd_id, wire.OP_MOVE, args, TRAVEL_TIMEOUT_S)

    async def tap(
        self,
        cmd_id: int,
        x_mm: float,
        y_mm: float,
        hover_z_mm: float,
        press_z_mm: float,
        dwell_ms: int,
        on_stage: OnStage | None = None,
        boot_id: int | None = None,
    ) -> Done:
        """Travel at hover, press to press_z_mm for dwell_ms, return to hover. A long dwell is a long press."""
        place = micrometres(x_mm=x_mm, y_mm=y_mm, hover_z_mm=hover_z_mm, press_z_mm=press_z_mm)
        args = wire.pack_args(wire.OP_TAP, *place, milliseconds("dwell_ms", dwell_ms))
        timeout_s = TRAVEL_TIMEOUT_S + dwell_ms / 1000
        return await self._board.execute(
            cmd_id, wire.OP_TAP, args, on_stage=on_stage, timeout_s=timeout_s, boot_id=boot_id
        )

    async def swipe(
        self,
        cmd_id: int,
        x0_mm: float,
        y0_mm: float,
        press0_z_mm: float,
        x1_mm: float,
        y1_mm: float,
        press1_z_mm: float,
        hover_z_mm: float,
        duration_ms: int,
        on_stage: OnStage | None = None,
        boot_id: int | None = None,
    ) -> Done:
        """Press at the first place, draw to the second within duration_ms, lift to hover."""
        places = micrometres(
            x0_mm=x0_mm,
            y0_mm=y0_mm,
            press0_z_mm=press0_z_mm,
            x1_mm=x1_mm,
            y1_mm=y1_mm,
            press1_z_mm=press1_z_mm,
            hover_z_mm=hover_z_mm,
        )
        args = wire.pack_args(wire.OP_SWIPE, *places, milliseconds("duration_ms", duration_ms))
        timeout_s = TRAVEL_TIMEOUT_S + duration_ms / 1000
        return await self._board.execute(
            cmd_id, wire.OP_SWIPE, args, on_stage=on_stage, timeout_s=timeout_s, boot_id=boot_id
        )

    async def probe(
        self,
        x_mm: float,
        y_mm: float,
        hover_z_mm: float,
        lowest_z_mm: float,
        step_mm: float = 0.05,
        cmd_id: int | None = None,
    ) -> Probed:
        """Go down at a place in steps until the drive feels the glass, never below lowest_z_mm; back to hover.

        What is felt lies up to a step and the sensor's threshold below the glass. The phone may take it for a
        touch. Raises CommandFault ``unsupported`` on a hand whose drives do not sense, ``drive`` when they
        stopped answering.
        """
        place = micrometres(x_mm=x_mm, y_mm=y_mm, hover_z_mm=hover_z_mm, lowest_z_mm=lowest_z_mm)
        (step_um,) = micrometres(step_mm=step_mm)
        if not 1 <= step_um <= 0xFFFF:
            raise ArgumentRefused(f"step_mm is {step_mm}; a step is 0.001 to 65.535 mm")
        steps = max(0, place[2] - place[3]) // step_um + 2
        args = wire.pack_args(wire.OP_PROBE, *place, step_um)
        done = await self._travel(
            cmd_id, wire.OP_PROBE, args, TRAVEL_TIMEOUT_S + steps * PROBE_STEP_TIMEOUT_S
        )
        touched, z_um = wire.unpack_probe_data(done.data)
        return Probed(done, z_um / 1000 if touched else None)

    async def _travel(self, cmd_id: int | None, op: int, args: bytes, timeout_s: float) -> Done:
        if cmd_id is None:
            cmd_id = self._own_id()
        return await self._board.execute(cmd_id, op, args, timeout_s=timeout_s)

    def _own_id(self) -> int:
        """Growing, also over a restart of the daemon, and apart from the ids that callers give (top bit)."""
        info = self._board.last_info
        told = info.highest_cmd_ids[1] & ~_HOUSEKEEPING_FAMILY if info is not None else 0
        self._last_own_id = max(self._last_own_id + 1, told + 1, self._now_ns())
        return _HOUSEKEEPING_FAMILY | self._last_own_id
