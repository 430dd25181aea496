"""The HID board's operations: keys, text and touches of a phone's own screen."""

import binascii
from collections.abc import Callable
from dataclasses import dataclass

import trio

from edge_daemon.boards.arguments import milliseconds
from edge_daemon.boards.board import Board, OnStage
from edge_daemon.boards.errors import ArgumentRefused, NotSent
from edge_daemon.boards.info import LAYOUT_CODES, HidProfile
from edge_daemon.boards.status import Done
from firmware import wire
from firmware.hid import layouts

TOUCH_MAX = 32767
OPERATION_TIMEOUT_S = 10.0
# What the board moves in one report on its way into the corner, and a slow phone's polling pace with a margin.
POINTER_STEP_MAX = 127
REPORT_TIMEOUT_S = 0.025
# Press and release of one character at a slow phone's polling pace, dead keys included, with a margin.
CHARACTER_TIMEOUT_S = 0.1
TEXT_CHUNK = wire.CMD_ARGS_MAX - 2


@dataclass(frozen=True, slots=True)
class PointerScale:
    """How a phone's cursor answers to a relative pointer, in counts; a phone's restart may change it.

    ``span_x`` and ``span_y`` carry the cursor from edge to edge, ``home`` is enough to reach the corner from
    anywhere (at least the larger span), ``step`` is the largest count of one report with which it was measured.
    """

    span_x: int
    span_y: int
    home: int
    step: int


class HidClient:
    """Commands of a HID board. All raise as Board.execute() does, and ArgumentRefused before sending.

    ``boot_id`` is Board.execute()'s.
    """

    def __init__(self, board: Board) -> None:
        self._board = board
        self._typing = trio.Lock()

    @property
    def profile(self) -> HidProfile | None:
        """What the board last announced; None if it has not been online yet."""
        info = self._board.last_info
        return info.hid if info is not None else None

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys this board can press; empty if it has not been online yet."""
        profile = self.profile
        return profile.keys if profile is not None else ()

    def charset(self) -> frozenset[str]:
        """The characters that the board's layout can type; empty if it has not been online yet."""
        profile = self.profile
        return (
            frozenset(layouts.charset(LAYOUT_CODES[profile.layout])) if profile is not None else frozenset()
        )

    async def key(
        self, cmd_id: int, name: str, on_stage: OnStage | None = None, boot_id: int | None = None
    ) -> Done:
        """Press and release one of ``keys``."""
        if name not in self._announced().keys:
            raise ArgumentRefused(f"this board has no key {name!r}; it has {', '.join(self.keys) or 'none'}")
        args = wire.pack_args(wire.OP_KEY, wire.KEY_NAMES.index(name))
        return await self._execute(cmd_id, wire.OP_KEY, args, on_stage, OPERATION_TIMEOUT_S, boot_id)

    def check_text(self, text: str) -> None:
        """Raises ArgumentRefused when the board could not type the whole text; nothing is typed."""
        profile = self._announced()
        size = len(text.encode("utf-8", "surrogatepass"))
        if not 0 < size <= profile.text_max_bytes:
            raise ArgumentRefused(f"the text has {size} bytes; the board takes 1 to {profile.text_max_bytes}")
        charset = self.charset()
        for position, character in enumerate(text):
            if character not in charset:
                # Not which one it is: this is told, logged and kept, and typed text is not.
                raise ArgumentRefused(
                    f"character {position} of the text, counted from 0, cannot be typed with the {profile.layout} "
                    "layout; nothing was typed"
                )

    async def text(
        self,
        cmd_id: int,
        text: str,
        on_stage: OnStage | None = None,
        before_go: Callable[[], int | None] = lambda: None,
    ) -> Done:
        """Type a text: load it into the board, which then types it as one command.

        Until the whole text is loaded nothing of the command has been sent: a link lost before that is
        NotSent, and the board types only what its checksum says is the whole text. `before_go` is called when
        it is loaded, right before the command; what it raises ends the matter, with nothing typed, and what it
        returns is the boot_id that the command is meant for.
        """
        self.check_text(text)
        utf8 = text.encode()
        go = wire.pack_args(wire.OP_TEXT_GO, len(utf8), binascii.crc32(utf8))
        async with self._typing:
            for offset in range(0, len(utf8), TEXT_CHUNK):
                load = wire.pack_args(wire.OP_TEXT_LOAD, offset, tail=utf8[offset : offset + TEXT_CHUNK])
                await self._board.send_data(wire.OP_TEXT_LOAD, load)
            boot_id = before_go()
            timeout_s = OPERATION_TIMEOUT_S + CHARACTER_TIMEOUT_S * len(text)
            return await self._execute(cmd_id, wire.OP_TEXT_GO, go, on_stage, timeout_s, boot_id)

    async def tap(
        self,
        cmd_id: int,
        x: float,
        y: float,
        dwell_ms: int,
        on_stage: OnStage | None = None,
        boot_id: int | None = None,
    ) -> Done:
        """Touch at x, y (fractions 0..1 of the digitizer, portrait) for dwell_ms."""
        place = (_touch_units("x", x), _touch_units("y", y))
        args = wire.pack_args(wire.OP_HID_TAP, *place, milliseconds("dwell_ms", dwell_ms))
        timeout_s = OPERATION_TIMEOUT_S + dwell_ms / 1000
        return await self._execute(cmd_id, wire.OP_HID_TAP, args, on_stage, timeout_s, boot_id)

    async def swipe(
        self,
        cmd_id: int,
        x0: float,
        y0: float,
        x1: float,
        y1: float,
        duration_ms: int,
        on_stage: OnStage | None = None,
        boot_id: int | None = None,
    ) -> Done:
        """Touch at x0, y0 and draw to x1, y1 (fractions 0..1) within duration_ms."""
        ends = {"x0": x0, "y0": y0, "x1": x1, "y1": y1}
        places = [_touch_units(name, fraction) for name, fraction in ends.items()]
        args = wire.pack_args(wire.OP_HID_SWIPE, *places, milliseconds("duration_ms", duration_ms))
        timeout_s = OPERATION_TIMEOUT_S + duration_ms / 1000
        return await self._execute(cmd_id, wire.OP_HID_SWIPE, args, on_stage, timeout_s, boot_id)

    async def pointer_tap(
        self,
        cmd_id: int,
        x: float,
        y: float,
        dwell_ms: int,
        scale: PointerScale,
        on_stage: OnStage | None = None,
        boot_id: int | None = None,
    ) -> Done:
        """Move the cursor into its corner and from there to x, y (fractions 0..1, portrait), press for dwell_ms."""
        place = (_touch_units("x", x), _touch_units("y", y))
        counts = (scale.span_x, scale.span_y, scale.home, scale.step)
        try:
            args = wire.pack_args(wire.OP_POINTER_TAP, *place, *counts, milliseconds("dwell_ms", dwell_ms))
        except wire.BodyError as err:
            raise ArgumentRefused(f"{scale} does not fit the wire: {err}") from err
        moves = scale.home // POINTER_STEP_MAX + max(scale.span_x, scale.span_y) // max(scale.step, 1) + 4
        timeout_s = OPERATION_TIMEOUT_S + moves * REPORT_TIMEOUT_S + dwell_ms / 1000
        return await self._execute(cmd_id, wire.OP_POINTER_TAP, args, on_stage, timeout_s, boot_id)

    async def _execute(
        self,
        cmd_id: int,
        op: int,
        args: bytes,
        on_stage: OnStage | None,
        timeout_s: float,
        boot_id: int | None,
    ) -> Done:
        return await self._board.execute(
            cmd_id, op, args, on_stage=on_stage, timeout_s=timeout_s, boot_id=boot_id
        )

    def _announced(self) -> HidProfile:
        profile = self.profile
        if profile is None:
            raise NotSent("the board has not been online yet, so what it can do is not known")
        return profile


def _touch_units(name: str, fraction: float) -> int:
    # A NaN fails this as well.
    if not 0.0 <= fraction <= 1.0:
        raise ArgumentRefused(f"{name} is {fraction}; a place on the digitizer is a fraction from 0 to 1")
    return round(fraction * TOUCH_MAX)
