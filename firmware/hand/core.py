"""The hand board's core: commands in, setpoints to the drives out. Sans-IO, on CPython and MicroPython.

A command becomes a short queue of phases (straight moves and waits) which poll() works off. Every answer
is checked before anything moves: what lies outside the envelope or below the depth limit is refused, never
clamped. Between two places the stylus travels at hover height or above; down and up are straight lines.
"""

from firmware import wire
from firmware.hand import phase as phases
from firmware.hand import probe
from firmware.hand.drives import Drives as Drives
from firmware.hand.kinematics import Cartesian, Kinematics
from firmware.hand.limits import HandLimits as HandLimits
from firmware.hand.motion import Move, acceleration_from_mm_s2, distance_um, shortest_us, speed_from_mm_s
from firmware.hand.phase import Phase
from firmware.link import Core

# 4 ms is a fifth of a hobby servo's 50 Hz frame and well within what a poll loop keeps up with.
SETPOINT_US = 4000
# A late poll must not make the setpoints jump: the motion's clock never advances further than this at once.
STALL_US = 12000
# The stylus leaves an unknown place, perhaps on the glass, at this share of the top speed.
HOMING_LIFT_SHARE = 0.1
HOMING_TRAVEL_SHARE = 0.5
# Drives that have just been powered swing to their setpoint by themselves; wait for that before travelling.
HOMING_SETTLE_US = 300000
SWIPE_MS_MAX = 10000

_OPERATIONS = (wire.OP_HOME, wire.OP_PARK, wire.OP_TAP, wire.OP_SWIPE, wire.OP_MOVE, wire.OP_PROBE)


class HandCore(Core):
    """A hand with three axes: TAP (long presses too), SWIPE, MOVE, PARK, HOME, and PROBE if its drives sense.

    The arm has to reach the whole envelope (kinematics.require_reach): straight lines in it are then possible.
    """

    def __init__(
        self,
        drives: Drives,
        limits: HandLimits,
        arm: "Kinematics | None" = None,
        finder: "probe.Probe | None" = None,
    ) -> None:
        self._drives = drives
        self._limits = limits
        self._arm = arm or Cartesian()
        self._probe = finder or probe.Probe()
        self._v_max = speed_from_mm_s(limits.v_max_mm_s)
        self._a_max = acceleration_from_mm_s2(limits.a_max_mm_s2)
        self._move = Move()
        self._goal = [0, 0, 0]
        # Until it is known better: after a power-on the hand is taken to rest lifted in the home corner.
        self._at = [limits.x_min, limits.y_min, limits.z_max]
        self._is_powered = False
        self._hover = limits.z_max
        self._queue: list[Phase] = []
        self._phase: Phase | None = None
        self._t_us = 0
        self._polled_us = 0
        self._written_us = 0
        self._homed = False
        self._running = False
        self._is_probing = False
        self._estopped = False
        # The glass lies above a press setpoint by the overtravel: from the start of a press downwards the
        # stylus may have touched, whether or not the setpoint was reached.
        self._may_have_touched = False

    # -- what the link asks ------------------------------------------------------------------------

    def caps(self) -> int:
        caps = wire.CAP_HAND_TAP | wire.CAP_HAND_SWIPE | wire.CAP_HAND_HOLD | wire.CAP_HAND_MOVE
        return caps | wire.CAP_HAND_PROBE if self._drives.senses() else caps

    def hello_tail(self) -> bytes:
        return wire.pack_hand_tail(*self._limits.fields())

    def flags(self) -> int:
        flags = wire.FLAG_HOMED if self._homed else 0
        if self._phase is not None:
            flags |= wire.FLAG_MOVING
        if self._estopped:
            flags |= wire.FLAG_ESTOPPED
        return flags

    def data(self, op: int, args: "bytes | memoryview") -> int:
        return wire.FAULT_UNSUPPORTED

    def start(self, op: int, args: "bytes | memoryview", now_us: int) -> int:
        if self._estopped:
            return wire.FAULT_ESTOPPED
        if self._running:
            return wire.FAULT_BUSY
        if op not in _OPERATIONS or (op == wire.OP_PROBE and not self._drives.senses()):
            return wire.FAULT_UNSUPPORTED
        if not self._drives.ready():
            return wire.FAULT_DRIVE
        if not self._homed and op != wire.OP_HOME:
            return wire.FAULT_NOT_HOMED
        try:
            fault = self._plan(op, wire.unpack_args(op, args))
        except wire.BodyError:
            return wire.FAULT_BAD_ARGS
        if fault:
            return fault
        self._running = True
        self._is_probing = op == wire.OP_PROBE
        self._may_have_touched = False
        self._polled_us = now_us
        self._advance(now_us)
        return 0

    # -- commands: check everything, then queue ------------------------------------------------------

    def _plan(self, op: int, fields: "tuple[int, ...]") -> int:
        """Queue the operation's phases: 0, or the FAULT code of a refusal."""
        if op == wire.OP_HOME:
            return self._plan_home()
        if op == wire.OP_TAP:
            return self._plan_tap(*fields)
        if op == wire.OP_SWIPE:
            return self._plan_swipe(*fields)
        if op == wire.OP_PROBE:
            return self._plan_probe(*fields)
        return self._plan_move(*fields)

    def _fault(self, x: int, y: int, z: int) -> int:
        """0 for a place that the envelope and the arm allow, else the FAULT code."""
        fault = self._limits.fault(x, y, z)
        if not fault and not self._arm.reaches(float(x), float(y), float(z)):
            return wire.FAULT_ENVELOPE
        return fault

    def _plan_home(self) -> int:
        z_max = self._limits.z_max
        if not self._is_powered:
            # Limp drives may have been moved until this moment.
            held = self._drives.retained()
            if held is not None:
                self._at[0], self._at[1], self._at[2] = held
        x, y, z = self._at
        home = [self._limits.x_min, self._limits.y_min, z_max]
        for line in (([x, y, z], [x, y, z_max]), ([x, y, z_max], home)):
            if self._arm.speed_on_line(line[0], line[1], self._v_max) <= 0.0:
                # Somebody has to bring the hand into its envelope first.
                return wire.FAULT_ENVELOPE
        self._homed = False
        self._queue.append(Phase(z=z_max, share=HOMING_LIFT_SHARE))
        self._queue.append(Phase(wait_us=HOMING_SETTLE_US))
        self._queue.append(
            Phase(
                self._limits.x_min, self._limits.y_min, z_max, share=HOMING_TRAVEL_SHARE, event=phases.HOMED
            )
        )
        return 0

    def _plan_move(self, x: int, y: int, z: int) -> int:
        fault = self._fault(x, y, z)
        if fault:
            return fault
        goes_sideways = x != self._at[0] or y != self._at[1]
        if goes_sideways or self._queue or self._phase is not None:
            travel_z = max(z, self._hover)
            self._queue.append(Phase(z=travel_z, z_at_least=True))
            self._queue.append(Phase(x, y, travel_z))
        self._queue.append(Phase(x, y, z, event=phases.DONE, touches=z < self._hover))
        return 0

    def _plan_tap(self, x: int, y: int, hover_z: int, press_z: int, dwell_ms: int) -> int:
        fault = self._fault(x, y, hover_z) or self._fault(x, y, press_z)
        if fault:
            return fault
        if hover_z <= press_z:
            return wire.FAULT_BAD_ARGS
        self._queue_press(x, y, hover_z, press_z)
        self._queue.append(Phase(wait_us=dwell_ms * 1000))
        self._queue.append(Phase(z=hover_z, event=phases.DONE))
        return 0

    def _plan_swipe(
        self, x0: int, y0: int, press0_z: int, x1: int, y1: int, press1_z: int, hover_z: int, duration_ms: int
    ) -> int:
        fault = (
            self._fault(x0, y0, hover_z)
            or self._fault(x1, y1, hover_z)
            or self._fault(x0, y0, press0_z)
            or self._fault(x1, y1, press1_z)
        )
        if fault:
            return fault
        if hover_z <= max(press0_z, press1_z) or (x0, y0) == (x1, y1) or duration_ms > SWIPE_MS_MAX:
            return wire.FAULT_BAD_ARGS
        start, end = [x0, y0, press0_z], [x1, y1, press1_z]
        v_max = self._arm.speed_on_line(start, end, self._v_max)
        if v_max <= 0.0:
            return wire.FAULT_ENVELOPE
        if duration_ms * 1000 < shortest_us(distance_um(start, end), v_max, self._a_max):
            return wire.FAULT_BAD_ARGS
        self._queue_press(x0, y0, hover_z, press0_z)
        self._queue.append(Phase(x1, y1, press1_z, exact_us=duration_ms * 1000))
        self._queue.append(Phase(z=hover_z, event=phases.DONE))
        return 0

    def _plan_probe(self, x: int, y: int, hover_z: int, lowest_z: int, step_um: int) -> int:
        fault = self._fault(x, y, hover_z) or self._fault(x, y, lowest_z)
        if fault:
            return fault
        if hover_z <= lowest_z or step_um == 0:
            return wire.FAULT_BAD_ARGS
        self._queue_hover(x, y, hover_z)
        self._probe.begin(hover_z, lowest_z, step_um)
        self._queue_sensing()
        return 0

    def _queue_sensing(self) -> None:
        self._queue.append(Phase(wait_us=probe.SETTLE_US, event=phases.SENSE))
        self._queue.append(Phase(wait_us=probe.READING_LATE_US, event=phases.SENSED))

    def _queue_press(self, x: int, y: int, hover_z: int, press_z: int) -> None:
        self._queue_hover(x, y, hover_z)
        self._queue.append(Phase(z=press_z, event=phases.CONTACT, touches=True))

    def _queue_hover(self, x: int, y: int, hover_z: int) -> None:
        # From higher up the way to the hover point is one slanting line, which never dips below hover.
        self._hover = hover_z
        self._queue.append(Phase(z=hover_z, z_at_least=True))
        self._queue.append(Phase(x, y, hover_z))

    # -- the clockwork ---------------------------------------------------------------------------------

    def poll(self, now_us: int) -> None:
        """Write the next setpoint if it is due and report what has been reached. Bounded work per call."""
        drives = self._drives
        drives.poll(now_us)
        if drives.read() is not None:
            self.link.moved(wire.MOVED_PUSHED, now_us)
        if self._running and not drives.ready():
            self._retreat(wire.FAULT_DRIVE, now_us)
        if self._phase is None and not self._queue:
            self._polled_us = now_us
            return
        self._advance(now_us)

    def due_us(self, now_us: int) -> int:
        """How many µs from now the next poll does something; -1 while the hand rests."""
        phase = self._phase
        if phase is None:
            return 0 if self._queue else -1
        due = self._duration_us(phase) - self._t_us
        if phase.event == phases.SENSED:
            due = min(due, SETPOINT_US)
        if phase.wait_us < 0:
            due = min(due, self._written_us + SETPOINT_US - self._polled_us)
        return max(0, self._polled_us + due - now_us)

    def _advance(self, now_us: int) -> None:
        step = now_us - self._polled_us
        self._polled_us = now_us
        phase = self._phase
        if phase is not None:
            self._t_us += step if phase.wait_us >= 0 else min(step, STALL_US)
            if phase.event == phases.SENSED and self._take_reading(now_us):
                return
            if self._t_us < self._duration_us(phase):
                if phase.wait_us < 0 and now_us - self._written_us >= SETPOINT_US:
                    self._write(now_us)
                return
            self._finish(phase, now_us)
        # A phase that takes no time (already there) is finished at once, so this ends with the queue.
        while self._phase is None and self._queue:
            phase = self._begin(self._queue.pop(0))
            if self._duration_us(phase) <= 0:
                self._finish(phase, now_us)

    def _take_reading(self, now_us: int) -> bool:
        """What the drive feels while probing: whether that answer was there and has been dealt with."""
        reading = self._drives.sensed()
        if reading is None:
            return False
        self._phase = None
        search = self._probe
        z = self._at[2]
        if search.take(z, reading[0], reading[1]):
            self._queue.append(Phase(z=search.next_z(z), share=probe.SPEED_SHARE, touches=True))
        if search.finished:
            if search.touched:
                self.link.contact(now_us)
            self._queue.append(Phase(z=self._hover, event=phases.DONE))
        else:
            self._queue_sensing()
        return True

    def _begin(self, phase: Phase) -> Phase:
        self._phase = phase
        self._t_us = 0
        if phase.touches:
            self._may_have_touched = True
        if phase.wait_us >= 0:
            return phase
        at = self._at
        goal = self._goal
        goal[0] = at[0] if phase.x is None else phase.x
        goal[1] = at[1] if phase.y is None else phase.y
        goal[2] = at[2] if phase.z is None else phase.z
        if phase.z_at_least and goal[2] < at[2]:
            goal[2] = at[2]
        if phase.exact_us:
            self._move.plan_timed(at, goal, phase.exact_us, self._a_max)
        else:
            v_max = self._arm.speed_on_line(at, goal, self._v_max * phase.share)
            self._move.plan(at, goal, v_max, self._a_max)
        return phase

    def _duration_us(self, phase: Phase) -> int:
        # Rounded up, so that the last setpoint of a move is the one at its very end.
        return phase.wait_us if phase.wait_us >= 0 else -int(-self._move.duration_us // 1)

    def _finish(self, phase: Phase, now_us: int) -> None:
        if phase.wait_us < 0:
            self._t_us = self._duration_us(phase)
            self._write(now_us)
        self._phase = None
        if phase.event == phases.CONTACT:
            self.link.contact(now_us)
        elif phase.event == phases.HOMED:
            self._homed = True
            self.link.moved(wire.MOVED_HOMED, now_us)
            self._done(now_us)
        elif phase.event == phases.DONE:
            self._done(now_us)
        elif phase.event == phases.SENSE:
            self._drives.sense()
        elif phase.event == phases.SENSED:
            self._retreat(wire.FAULT_DRIVE, now_us)

    def _done(self, now_us: int) -> None:
        self._running = False
        data = self._probe.data() if self._is_probing else b""
        self._is_probing = False
        self.link.done(now_us, data)

    def _write(self, now_us: int) -> None:
        at = self._at
        x, y, z = at
        self._move.position(float(self._t_us), at)
        # While homing even a setpoint that asks for no move is written: it is what powers the drives.
        if not self._homed or at[0] != x or at[1] != y or at[2] != z:
            self._is_powered = True
            self._drives.write(at[0], at[1], at[2])
        self._written_us = now_us

    # -- safe states -------------------------------------------------------------------------------------

    def deadman(self, now_us: int) -> None:
        """Give up what runs, brake, then lift straight up to z_max."""
        if self._retreat(wire.FAULT_ABORTED, now_us):
            self.link.moved(wire.MOVED_DEADMAN, now_us)

    def estop(self, now_us: int) -> None:
        """As deadman, and refuse every command until clear_estop(). The link reports that the hand moved."""
        self._estopped = True
        self._retreat(wire.FAULT_ESTOPPED, now_us)

    def clear_estop(self, now_us: int) -> None:
        self._estopped = False

    def _retreat(self, code: int, now_us: int) -> bool:
        """Stop and lift; the running command ends with this code. Whether that moves the hand."""
        was_homing = self._running and not self._homed
        if self._running:
            self._running = False
            self.link.fault(code, wire.FAULT_FLAG_EFFECT if self._may_have_touched else 0, now_us)
        self._queue.clear()
        phase = self._phase
        if phase is not None:
            if phase.wait_us >= 0:
                self._phase = None
            else:
                phase.event = phases.NOTHING
                self._move.stop_early(float(self._t_us))
        # Before homing nobody knows where the hand is: an idle one stays, one that is homing goes on lifting.
        if self._homed or was_homing:
            share = 1.0 if self._homed else HOMING_LIFT_SHARE
            self._queue.append(Phase(z=self._limits.z_max, share=share))
        return self._phase is not None or self._at[2] < self._limits.z_max
