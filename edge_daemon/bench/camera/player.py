"""Plays the schedule on a simulated rig: as the plane, as staff at the rig, and as whoever shoves the arm."""

import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import cv2
import numpy as np
import trio

from calibration.result import HandPart
from edge_daemon.bench.camera.marks import read, unwrapped
from edge_daemon.bench.camera.notes import Acted, Looked
from edge_daemon.bench.camera.schedule import ActStep, EdgeKind, EdgeStep, LookStep, PageStep, Step, WaitStep
from edge_daemon.bench.camera.truth import LINK_LOST_NS, Witness
from edge_daemon.bench.plane import Message, Plane, PlaneError
from edge_daemon.bench.rigfile import DEVICE
from edge_daemon.bench.stage import Stage, StageFailed
from edge_daemon.bench.twin.draw import Image
from edge_daemon.contract import Refused
from edge_daemon.upstream.client import StaffClient
from edge_daemon.upstream.service import HandTouchAt

KEPT_FRAMES = 24
READY_S = 20.0
"""After a stop or a restart until the hand is homed and parked again."""
QUIET_LOOKS = 3
PUSH_MM = (1.5, -1.0, 0.5)
PUSH_SENSED_S = 0.3
JOG_ABOVE_MM, HOVER_ABOVE_MM, PRESS_BELOW_MM, DWELL_MS = 3.0, 6.0, 0.2, 40
_UPRIGHT = {
    "landscape_right": cv2.ROTATE_90_COUNTERCLOCKWISE,
    "portrait_upside_down": cv2.ROTATE_180,
    "landscape_left": cv2.ROTATE_90_CLOCKWISE,
}
"""What turns a picture of the screen so turned back to portrait."""


class Player:
    """One rig, one plane, one member of staff. What went wrong is in `problems`, in words."""

    def __init__(
        self, stage: Stage, plane: Plane, staff: StaffClient, witness: Witness, hand: HandPart
    ) -> None:
        self._stage = stage
        self._plane = plane
        self._staff = staff
        self._witness = witness
        self._hand = hand
        self._frames: deque[Looked] = deque(maxlen=KEPT_FRAMES)
        self.looks: list[Looked] = []
        self.acted: list[Acted] = []
        self.problems: list[str] = []
        self.interrupted = 0
        """Steps refused because daemon and board had lost each other for a moment, as the line shows."""

    async def play(self, step: Step) -> None:
        """One step; a refusal that should not be is a problem, and the run goes on."""
        self._witness.collect()
        began_ns = time.monotonic_ns()
        try:
            match step:
                case LookStep():
                    await self.look(leased=step.leased, wait_settled_ms=step.wait_settled_ms)
                case ActStep():
                    await self._act(step)
                case WaitStep():
                    await trio.sleep(step.seconds)
                case EdgeStep():
                    await self._at_the_edge(step.kind)
                case PageStep(animated=True):
                    self._stage.rig.phone.open_app(step.name)
                case PageStep():
                    self._stage.rig.phone.show_page(step.name)
        except (PlaneError, Refused) as refusal:
            await self._refused(f"{step}: {refusal}", began_ns)

    async def look(self, *, leased: bool, wait_settled_ms: int) -> Looked:
        """Raises PlaneError. The frame of a leased look may be acted on later."""
        look, _ = await take_look(self._plane, self._witness, leased=leased, wait_settled_ms=wait_settled_ms)
        self.looks.append(look)
        if look.frame_id is not None:
            self._frames.append(look)
        return look

    async def _act(self, step: ActStep) -> None:
        frame = self._frames[-1 - min(step.back, len(self._frames) - 1)] if step.back is not None else None
        key = self._plane.new_key()
        sent_ns = time.monotonic_ns()
        answer = await self._plane.dispatch(
            DEVICE, step.action, key=key, observed_frame=frame.frame_id if frame is not None else None
        )
        answered_ns = time.monotonic_ns()
        kind = step.action["type"]
        if not answer.committed or answer.receipt is None:
            words = (answer.error or {}).get("message")
            await self._refused(f"{kind} (key {key}) was not committed: {words}", sent_ns)
            return
        if frame is None:
            return
        notes = answer.receipt.get("frameNotes")
        if notes is None:
            self.problems.append(f"{kind} (key {key}): a bound action's receipt has no frameNotes")
            return
        self.acted.append(Acted(key, kind, sent_ns, answered_ns, frame, notes))

    async def _refused(self, words: str, began_ns: int) -> None:
        """A busy machine may silence the daemon for longer than a board waits: that is nobody's fault here."""
        await self._ready()
        if self._witness.link_broke_since(began_ns - LINK_LOST_NS):
            self.interrupted += 1
        else:
            self.problems.append(words)

    # -- at the edge ------------------------------------------------------------------------------------------

    async def _at_the_edge(self, kind: EdgeKind) -> None:
        verbs: dict[EdgeKind, Callable[[], Awaitable[None]]] = {
            "jog": self._jog,
            "calibration touch": self._touch,
            "emergency stop": self._stop,
            "board restart": self._restart,
            "push": self._push,
        }
        with self._witness.edge_move(kind):
            await verbs[kind]()

    async def _jog(self) -> None:
        """The hand goes somewhere over the screen and touches nothing."""
        await self._staff_touch(300.0, 600.0, JOG_ABOVE_MM)

    async def _touch(self) -> None:
        await self._staff_touch(620.0, 400.0, -PRESS_BELOW_MM)

    async def _staff_touch(self, x: float, y: float, above_mm: float) -> None:
        x_mm, y_mm = self._hand.grid_to_hand(x, y)
        z_mm = self._hand.contact_z(x_mm, y_mm)
        at = HandTouchAt(
            x_mm=x_mm,
            y_mm=y_mm,
            press_z_mm=z_mm + above_mm,
            hover_z_mm=z_mm + HOVER_ABOVE_MM,
            dwell_ms=DWELL_MS,
        )
        await self._staff.take_hold(DEVICE, "The bench moves the hand.")
        try:
            await self._staff.touch(DEVICE, at)
        finally:
            await self._staff.release_hold(DEVICE)

    async def _stop(self) -> None:
        try:
            await self._staff.estop(DEVICE)
        finally:
            await self._ready()

    async def _restart(self) -> None:
        await self._stage.rig.reset_board("hand")
        await self._ready()

    async def _push(self) -> None:
        self._stage.rig.push_hand(*PUSH_MM)
        await trio.sleep(PUSH_SENSED_S)

    async def _ready(self) -> None:
        """Until no stop is latched, and the device is online and stays so: a restart is noticed a little later."""
        with trio.move_on_after(READY_S):
            quiet = 0
            while quiet < QUIET_LOOKS:
                quiet = quiet + 1 if await self._is_ready() else 0
                await trio.sleep(0.15)
            return
        raise StageFailed(f"{DEVICE} is not online {READY_S:.0f} s after a stop, a restart or a refusal")

    async def _is_ready(self) -> bool:
        try:
            await self._staff.clear_estop(DEVICE)
        except Refused:
            # The board is away for a moment; it is asked again.
            return False
        (device,) = await self._staff.list_devices()
        return device.status == "online"


async def take_look(
    plane: Plane, witness: Witness, *, leased: bool, wait_settled_ms: int
) -> tuple[Looked, Message]:
    """A look, and what the picture itself says of its exposure. Raises PlaneError."""
    sent_ns = time.monotonic_ns()
    picture = await plane.look(DEVICE, leased=leased, wait_settled_ms=wait_settled_ms)
    answered_ns = time.monotonic_ns()
    number = read(upright(picture))
    if number is not None:
        number = unwrapped(number, witness.newest())
    look = Looked(
        sent_ns=sent_ns,
        answered_ns=answered_ns,
        leased=leased,
        wait_settled_ms=wait_settled_ms,
        number=number,
        sequence=picture["sequence"],
        frame_id=picture.get("frameId"),
        settle=picture["settle"],
    )
    return look, picture


def upright(picture: Message) -> Image:
    """The picture of a look as BGR (height, width, 3), turned back to the screen's portrait."""
    image: Any = cv2.imdecode(np.frombuffer(picture["image"], np.uint8), cv2.IMREAD_COLOR)
    assert image is not None, "the daemon sent a picture that cannot be decoded"
    turn = _UPRIGHT.get(picture["orientation"])
    return np.asarray(image if turn is None else cv2.rotate(image, turn), dtype=np.uint8)
