"""The hand as a machine: drives that follow their setpoints, play in the axes, a tip above glass that gives way.

Time is handed in; the plant is stepped by 1 ms from the last time it knows to the time asked for. While
nothing moves it costs nothing.
"""

import threading
from collections import deque
from math import copysign, sqrt
from typing import NamedTuple

from edge_daemon.bench.twin.arm import Arm
from edge_daemon.bench.twin.frames import HOME, Placement
from edge_daemon.bench.twin.truth import SCREEN_HEIGHT_MM, SCREEN_WIDTH_MM, Truth

STEP_NS = 1_000_000
STEP_S = 1e-3
# Stronger than what the firmware plans with (300 mm/s, 4000 mm/s2), as properly sized drives are.
DRIVE_V_MAX_MM_S = 450.0
DRIVE_A_MAX_MM_S2 = 12_000.0
# What a drive's speed changes in one step.
MOST_MM_S = DRIVE_A_MAX_MM_S2 * STEP_S
# Position loop of a small servo or a closed-loop stepper: a lag of 4 ms.
DRIVE_GAIN_PER_S = 250.0
# sqrt(2 a e) * 0.7 meets gain * e here.
NEAR_MM = 2.0 * DRIVE_A_MAX_MM_S2 * 0.7**2 / DRIVE_GAIN_PER_S**2
# A shaft pulled to another place within its play swings in over a few ms.
REPEAT_BLEND = 0.25
AT_REST_MM = 1e-4
# Below this an axis is where it is told to be, and is not computed any more.
ARRIVED_MM = 1e-9
# Long enough for one more scan of the touch panel after the last movement.
REST_STEPS = 20
HISTORY = 600

PARKED_UM = (0, 0, 30_000)

# What a drive with an encoder says of the sprung tip: load rises with its compression, and is noisy.
TIP_SPRING_N_PER_MM = 1.0
LOAD_PERMILLE_PER_MM = 300.0
LOAD_NOISE_PERMILLE = 4.0
# Weight and friction of the z carriage.
LOAD_FREE_PERMILLE = 35.0
# 4096 steps on the 40 mm circumference of a pinion.
ENCODER_STEP_MM = 0.01


class TipPose(NamedTuple):
    """The stylus tip at one moment: screen mm, and its height over the glass.

    A negative height is how far the tip's spring is compressed: the glass has sunk by its own share under it.
    """

    at_ns: int
    x_mm: float
    y_mm: float
    height_mm: float


class Hand:
    """Follows JOINTS setpoints in hand micrometres and says where the tip really is.

    command() and advance() belong to the one thread that owns time; pose() and pose_at() to any.
    """

    def __init__(self, truth: Truth, now_ns: int) -> None:
        self._hand = truth.hand
        self._half_play = (truth.hand.backlash_x_mm / 2, truth.hand.backlash_y_mm / 2)
        self._arm_shape = Arm(truth)
        self._glass = truth.glass
        self._shape = truth.shape
        self._placement = HOME
        self._rng = truth.stream(11)
        self._feeling = truth.stream(14)
        self._target = [um / 1000.0 for um in PARKED_UM]
        self._drive = list(self._target)
        self._speed = [0.0, 0.0, 0.0]
        self._arm = [self._drive[0], self._drive[1]]
        self._repeat_target = [0.0, 0.0, 0.0]
        self._repeat = [0.0, 0.0, 0.0]
        self._rising = True
        self._rest_steps = REST_STEPS
        self._now_ns = now_ns
        self._deepest_mm = 0.0
        self._lock = threading.Lock()
        self._history: deque[TipPose] = deque([self._pose(now_ns)], maxlen=HISTORY)

    @property
    def deepest_press_mm(self) -> float:
        """The most that the tip's spring has ever been compressed."""
        return self._deepest_mm

    @property
    def at_rest(self) -> bool:
        return self._rest_steps >= REST_STEPS

    def command(self, x_um: int, y_um: int, z_um: int, now_ns: int) -> list[TipPose]:
        """A setpoint that arrived at now_ns. Returns the poses up to then, as advance() does."""
        poses = self.advance(now_ns)
        target = [x_um / 1000.0, y_um / 1000.0, z_um / 1000.0]
        if target != self._target:
            self._note_approach(target[2] - self._target[2])
            self._target = target
            self._rest_steps = 0
        return poses

    def push(self, dx_mm: float, dy_mm: float, dz_mm: float, now_ns: int) -> list[TipPose]:
        """Someone shoves the arm: it stays displaced until the drives are told to go somewhere else."""
        poses = self.advance(now_ns)
        for axis, shove in enumerate((dx_mm, dy_mm, dz_mm)):
            self._drive[axis] += shove
            self._speed[axis] = 0.0
        self._take_up_play()
        pose = self._pose(now_ns)
        self._remember([pose])
        return [*poses, pose]

    def place_phone(self, placement: Placement, now_ns: int) -> list[TipPose]:
        """The phone lies elsewhere from now on; the tip stays where it is in the world."""
        poses = self.advance(now_ns)
        self._placement = placement
        pose = self._pose(now_ns)
        self._remember([pose])
        return [*poses, pose]

    def let_go(self, now_ns: int) -> list[TipPose]:
        """The drives lose their power: a spring lifts the stylus where it is."""
        x_um, y_um = round(self._drive[0] * 1000), round(self._drive[1] * 1000)
        return self.command(x_um, y_um, PARKED_UM[2], now_ns)

    def feel(self) -> tuple[int, int]:
        """What the z drive senses: its own z in µm in whole encoder steps, and its load in ‰."""
        depth_mm = max(0.0, -self.pose().height_mm)
        load = LOAD_FREE_PERMILLE + LOAD_PERMILLE_PER_MM * depth_mm
        load += LOAD_NOISE_PERMILLE * float(self._feeling.normal())
        z_mm = round(self._drive[2] / ENCODER_STEP_MM) * ENCODER_STEP_MM
        return round(z_mm * 1000), round(min(load, 1000.0))

    def advance(self, now_ns: int) -> list[TipPose]:
        """Step the plant to now_ns. Returns the poses passed through, none while at rest."""
        if self.at_rest:
            self._now_ns = max(self._now_ns, now_ns)
            return []
        poses: list[TipPose] = []
        while self._now_ns + STEP_NS <= now_ns and not self.at_rest:
            self._now_ns += STEP_NS
            poses.append(self._step())
        if self.at_rest:
            self._now_ns = now_ns
        self._remember(poses)
        return poses

    def pose(self) -> TipPose:
        """The last known pose of the tip."""
        with self._lock:
            return self._history[-1]

    def pose_at(self, at_ns: int) -> TipPose:
        """The pose at a moment of the recent past (0.6 s of movement is kept), else the nearest known."""
        with self._lock:
            for pose in reversed(self._history):
                if pose.at_ns <= at_ns:
                    return pose
            return self._history[0]

    def _remember(self, poses: list[TipPose]) -> None:
        with self._lock:
            self._history.extend(poses)

    def _note_approach(self, dz_mm: float) -> None:
        """Each descent after a rise is a new approach, and lands a little elsewhere."""
        if dz_mm > 0.0:
            self._rising = True
        elif dz_mm < 0.0 and self._rising:
            self._rising = False
            sigma = self._hand.repeatability_mm
            dx, dy, dz = (float(draw) for draw in self._rng.normal(size=3))
            self._repeat_target = [sigma * dx, sigma * dy, self._hand.repeatability_z_mm * dz]

    def _step(self) -> TipPose:
        moved = 0.0
        target, drive, speed = self._target, self._drive, self._speed
        for axis in (0, 1, 2):
            if abs(target[axis] - drive[axis]) > ARRIVED_MM or abs(speed[axis]) > ARRIVED_MM:
                moved = max(moved, self._follow(axis))
        self._take_up_play()
        repeat, repeat_target = self._repeat, self._repeat_target
        if repeat != repeat_target:
            for axis in (0, 1, 2):
                repeat[axis] += (repeat_target[axis] - repeat[axis]) * REPEAT_BLEND
        self._rest_steps = self._rest_steps + 1 if moved < AT_REST_MM else 0
        pose = self._pose(self._now_ns)
        if -pose.height_mm > self._deepest_mm:
            self._deepest_mm = -pose.height_mm
        return pose

    def _follow(self, axis: int) -> float:
        """One drive, one step: as fast as it can still brake for, within its acceleration."""
        error = self._target[axis] - self._drive[axis]
        wanted = DRIVE_GAIN_PER_S * error
        # Nearer than this the position loop is slower than the brakes would allow.
        if abs(error) > NEAR_MM:
            braking = sqrt(2.0 * DRIVE_A_MAX_MM_S2 * abs(error)) * 0.7
            wanted = copysign(min(abs(wanted), braking, DRIVE_V_MAX_MM_S), error)
        speed = self._speed[axis]
        change = wanted - speed
        # A comparison costs a third of min() and max(), and this is the innermost loop.
        speed += MOST_MM_S if change > MOST_MM_S else -MOST_MM_S if change < -MOST_MM_S else change
        self._speed[axis] = speed
        self._drive[axis] += speed * STEP_S
        return abs(speed) * STEP_S

    def _take_up_play(self) -> None:
        """The play operator: the arm is dragged along once the drive has crossed the backlash."""
        drive, arm, half_play = self._drive, self._arm, self._half_play
        for axis in (0, 1):
            low, high = drive[axis] - half_play[axis], drive[axis] + half_play[axis]
            if not low <= arm[axis] <= high:
                arm[axis] = low if arm[axis] < low else high

    def _pose(self, at_ns: int) -> TipPose:
        repeat = self._repeat
        world_x, world_y = self._arm_shape.to_world_mm(self._arm[0] + repeat[0], self._arm[1] + repeat[1])
        x_mm, y_mm = self._placement.to_phone_mm(world_x, world_y)
        surface_mm = self._glass.height_mm(world_x, world_y) - self._shape.drop_mm(x_mm, y_mm)
        height_mm = self._drive[2] + repeat[2] - surface_mm
        if height_mm < 0.0:
            # Spring and cradle share the way: the same force goes through both.
            give = TIP_SPRING_N_PER_MM * self._shape.sink_mm_per_n(x_mm, y_mm)
            height_mm /= 1.0 + give
        return TipPose(at_ns, y_mm + SCREEN_WIDTH_MM / 2, x_mm + SCREEN_HEIGHT_MM / 2, height_mm)

    def to_world_mm(self, x_mm: float, y_mm: float) -> tuple[float, float]:
        """Hand mm to world mm without play and scatter."""
        return self._arm_shape.to_world_mm(x_mm, y_mm)

    def to_hand_mm(self, x_mm: float, y_mm: float) -> tuple[float, float]:
        """World mm to hand mm: the inverse of to_world_mm. For tests and the bench's own checks."""
        return self._arm_shape.to_hand_mm(x_mm, y_mm)

    def surface_z_mm(self, x_mm: float, y_mm: float) -> float:
        """Hand z at which the tip meets the unloaded glass over hand mm (x_mm, y_mm), without scatter."""
        world = self._arm_shape.to_world_mm(x_mm, y_mm)
        return self._glass.height_mm(*world) - self._shape.drop_mm(*self._placement.to_phone_mm(*world))
