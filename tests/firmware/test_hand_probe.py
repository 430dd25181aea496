"""PROBE: step by step to the glass and never deeper than asked; refused where nothing can feel it."""

from contextlib import asynccontextmanager

import pytest
import trio

from edge_daemon.bench.twin import SimulatedRig
from edge_daemon.boards import ArgumentRefused, Board, CommandFault, HandClient
from firmware import wire
from firmware.hand.core import Drives, HandCore, HandLimits

LIMITS = (0, 200_000, 0, 130_000, -3_000, 30_000, 300, 4_000)
HOVER, LOWEST, STEP = 4_000, -1_500, 100


class FeelingDrives(Drives):
    """Drives over glass at glass_um: the load rises by 300 ‰ per mm below it, with a swing that a test sets."""

    def __init__(self, glass_um, noise=(0,)):
        self.glass_um = glass_um
        self.noise = noise
        self.at = (0, 0, 30_000)
        self.setpoints = []
        self.asked = 0
        self.answers = True
        self.is_ready = True
        self._answer = None

    def write(self, x_um, y_um, z_um):
        self.at = (x_um, y_um, z_um)
        self.setpoints.append(self.at)

    def ready(self):
        return self.is_ready

    def senses(self):
        return True

    def sense(self):
        z = self.at[2]
        load = 35 + max(0, self.glass_um - z) * 3 // 10 + self.noise[self.asked % len(self.noise)]
        self.asked += 1
        self._answer = (z, load) if self.answers else None

    def sensed(self):
        answer, self._answer = self._answer, None
        return answer


class Bench:
    def __init__(self, drives):
        self.drives = drives
        self.core = HandCore(drives, HandLimits(*LIMITS))
        self.core.link = self
        self.now_us = 1_000
        self.reports = []
        assert self.start(wire.OP_HOME) == 0
        self.run()
        self.reports.clear()
        drives.setpoints.clear()

    def contact(self, now_us):
        self.reports.append(("contact",))

    def done(self, now_us, data=b""):
        self.reports.append(("done", data))

    def fault(self, code, flags, now_us):
        self.reports.append(("fault", code, flags))

    def moved(self, cause, now_us):
        pass

    def start(self, op, *args):
        return self.core.start(op, wire.pack_args(op, *args), self.now_us)

    def probe(self, lowest=LOWEST, step=STEP, hover=HOVER):
        return self.start(wire.OP_PROBE, 50_000, 40_000, hover, lowest, step)

    def run(self, until=lambda: False):
        while self.core.due_us(self.now_us) >= 0 and not until():
            self.now_us += 1_000
            self.core.poll(self.now_us)

    @property
    def found(self):
        (done,) = [report for report in self.reports if report[0] == "done"]
        return wire.unpack_probe_data(done[1])


@pytest.mark.parametrize("glass_um", [1_234, 0, -777])
def test_the_height_is_found_within_a_step_and_the_threshold(glass_um):
    bench = Bench(FeelingDrives(glass_um))
    assert bench.probe() == 0
    bench.run()
    touched, z_um = bench.found
    assert touched
    # 30 ‰ of load are 100 um here.
    assert glass_um - 100 - STEP - 10 <= z_um <= glass_um - 100 + 10
    assert ("contact",) in bench.reports
    assert bench.drives.at == (50_000, 40_000, HOVER)
    assert min(z for _, _, z in bench.drives.setpoints) == z_um
    assert all((x, y) == (50_000, 40_000) for x, y, z in bench.drives.setpoints if z < HOVER)


def test_without_glass_it_stops_at_the_lowest_place_and_says_so():
    bench = Bench(FeelingDrives(-50_000))
    assert bench.probe(lowest=-1_450) == 0
    bench.run()
    assert bench.found == (False, -1_450)
    assert ("contact",) not in bench.reports
    assert min(z for _, _, z in bench.drives.setpoints) == -1_450
    assert bench.drives.at[2] == HOVER


def test_a_lag_of_the_drive_is_contact_as_well_as_a_load():
    class Stalling(FeelingDrives):
        def sense(self):
            z = self.at[2]
            self._answer = (max(z, self.glass_um), 35)

    bench = Bench(Stalling(500))
    bench.probe()
    bench.run()
    assert bench.found == (True, 500)


def test_one_noisy_reading_is_no_contact():
    bench = Bench(FeelingDrives(-50_000, noise=(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 90)))
    bench.probe()
    bench.run()
    assert bench.found == (False, LOWEST)


def test_a_drive_that_stops_answering_ends_the_probe_in_a_fault_and_a_lift():
    bench = Bench(FeelingDrives(0))
    bench.probe()
    bench.run(until=lambda: bench.drives.at[2] < 3_000)
    bench.drives.answers = False
    bench.run()
    assert bench.reports == [("fault", wire.FAULT_DRIVE, wire.FAULT_FLAG_EFFECT)]
    assert bench.drives.at == (50_000, 40_000, 30_000)


def test_a_silent_host_ends_the_probe_in_a_lift():
    bench = Bench(FeelingDrives(0))
    bench.probe()
    bench.run(until=lambda: bench.drives.at[2] < 2_000)
    bench.core.deadman(bench.now_us)
    bench.run()
    assert bench.reports == [("fault", wire.FAULT_ABORTED, wire.FAULT_FLAG_EFFECT)]
    assert bench.drives.at == (50_000, 40_000, 30_000)
    assert bench.start(wire.OP_TAP, 1_000, 1_000, HOVER, -500, 10) == 0
    bench.run()
    assert bench.reports[-1] == ("done", b"")


@pytest.mark.parametrize(
    ("probe", "code"),
    [
        ({"lowest": -3_001}, wire.FAULT_DEPTH),
        ({"hover": 30_001}, wire.FAULT_ENVELOPE),
        ({"hover": LOWEST}, wire.FAULT_BAD_ARGS),
        ({"step": 0}, wire.FAULT_BAD_ARGS),
    ],
)
def test_what_cannot_be_probed_is_refused_before_anything_moves(probe, code):
    bench = Bench(FeelingDrives(0))
    assert bench.probe(**probe) == code
    bench.run()
    assert bench.drives.setpoints == []


def test_a_hand_whose_drives_fail_refuses_and_one_that_fails_on_its_way_stops():
    bench = Bench(FeelingDrives(0))
    bench.drives.is_ready = False
    assert bench.probe() == wire.FAULT_DRIVE
    bench.drives.is_ready = True
    assert bench.start(wire.OP_TAP, 150_000, 90_000, HOVER, -500, 10) == 0
    bench.run(until=lambda: bench.drives.at[0] > 50_000)
    bench.drives.is_ready = False
    bench.run()
    assert bench.reports == [("fault", wire.FAULT_DRIVE, 0)]
    assert bench.drives.at[2] == 30_000


# -- end to end: daemon's client, firmware in its own process, the twin's glass ---------------------------------


@asynccontextmanager
async def simulated_hand(directory, *options):
    """A rig with nothing but a hand; its board's info, the client, and the rig."""
    async with SimulatedRig(5, directory, boards=("hand",), camera=False, hand_options=options) as rig:
        async with trio.open_nursery() as nursery:
            board = Board("hand", rig.hand_port, rig.hand_uid, "hand")
            nursery.start_soon(board.run)
            with trio.fail_after(30):
                yield await board.wait_online(), HandClient(board), rig
            nursery.cancel_scope.cancel()


async def test_the_daemon_finds_the_twins_glass(tmp_path):
    async with simulated_hand(tmp_path, "--senses", "yes") as (info, hand, rig):
        assert info.caps & wire.CAP_HAND_PROBE
        await hand.home()
        x_mm, y_mm = 100.0, 65.0
        glass_mm = rig.truth.glass.height_mm(*rig.hand.to_world_mm(x_mm, y_mm))
        probed = await hand.probe(x_mm, y_mm, glass_mm + 1.0, -2.0, 0.1)
        # The threshold of 30 ‰ is 0.1 mm of spring here, the step another 0.1 mm; noise and repeatability.
        assert probed.contact_z_mm == pytest.approx(glass_mm - 0.15, abs=0.12)
        assert rig.hand.deepest_press_mm < 0.4
        missed = await hand.probe(x_mm, y_mm, glass_mm + 1.0, glass_mm + 0.5, 0.1)
        assert missed.contact_z_mm is None


async def test_a_hand_that_senses_nothing_refuses_to_probe(tmp_path):
    async with simulated_hand(tmp_path) as (info, hand, rig):
        assert not info.caps & wire.CAP_HAND_PROBE
        with pytest.raises(CommandFault, match="cannot do") as refusal:
            await hand.probe(100, 65, 5, -1)
        assert refusal.value.refused
        for step_mm in (0.0, 66.0, float("nan")):
            with pytest.raises(ArgumentRefused, match="step_mm"):
                await hand.probe(100, 65, 5, -1, step_mm)
        assert rig.phone.touches == []


ROTARY = (
    '{"kind": "rotary_delta", "base_um": [100000, 65000, 240000], "arm_um": 120000, "forearm_um": 270000,'
    ' "base_radius_um": 70000, "effector_radius_um": 30000, "joints": [[-1.6, 1.3, 8], [-1.6, 1.3, 8], [-1.6, 1.3, 8]]}'
)


async def test_a_hand_on_delta_arms_taps_the_same_glass(tmp_path):
    async with simulated_hand(tmp_path, "--kinematics", ROTARY) as (_, hand, rig):
        await hand.home()
        glass_mm = rig.truth.glass.height_mm(*rig.hand.to_world_mm(100.0, 65.0))
        await hand.tap(1, 100.0, 65.0, glass_mm + 4.0, glass_mm - 0.5, 60)
        (touch,) = rig.phone.touches
        assert touch.source == "glass"
