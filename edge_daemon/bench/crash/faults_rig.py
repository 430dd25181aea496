"""What befalls a rig: its daemon, its machine, its card, its boards and their lines, its clock."""

import errno

import trio

from edge_daemon.bench.crash.hits import Hit, fault
from edge_daemon.bench.crash.points import POINTS, PointKind
from edge_daemon.bench.crash.scenario import FIRST_TOKEN
from edge_daemon.bench.crash.world import DISK_LATENCY_S

SERIAL: frozenset[PointKind] = frozenset(("serial write", "serial read"))
UP_AGAIN_NS = 5_000_000_000
"""What the monotonic clock of a machine shows that has just restarted: less than when its boards began to serve."""
AT_WORK_S = 10.0
DISK: frozenset[PointKind] = frozenset(("disk write", "disk sync"))


# -- the process and the machine --------------------------------------------------------------------------------


@fault("interrupted_by_restart", after=True)
def process_death(hit: Hit) -> None:
    """SIGKILL."""
    hit.world.kill()


@fault("interrupted_by_restart", after=True)
def power_cut_nothing_kept(hit: Hit) -> None:
    """The machine loses its power, and the card everything that was not synced."""
    hit.world.cut_power("nothing")


@fault("interrupted_by_restart", after=True)
def power_cut_all_kept(hit: Hit) -> None:
    """The machine loses its power; the card has everything all the same."""
    hit.world.cut_power("all")


@fault("interrupted_by_restart", after=True)
def power_cut_torn(hit: Hit) -> None:
    """The machine loses its power; of what was not synced the card has parts, torn and in another order."""
    hit.world.cut_power("torn")


@fault("interrupted_by_restart", "outcome_unknown", after=True)
def power_cut_with_boards(hit: Hit) -> None:
    """Machine and boards lose their power."""
    hit.world.cut_power("torn", boards=True)


@fault("interrupted_by_restart", after=True)
def machine_rebooted(hit: Hit) -> None:
    """The machine restarts, its boards stay up, and its daemon is killed when an action is on its way to one."""
    world, stage, writes = hit.world, hit.stage, hit.rng.randint(1, 4)
    wish = hit.wish(FIRST_TOKEN + 1)
    world.cut_power("all", up_ns=UP_AGAIN_NS)
    stage.act_soon(wish)

    async def kill_at_work() -> None:
        with trio.move_on_after(AT_WORK_S):
            await stage.plane.wait_until(lambda: wish in stage.accepted())
            world.points.arm_next("serial write", writes, world.kill)

    world.soon(kill_at_work)


@fault("interrupted_by_restart")
def restart_while_moving(hit: Hit) -> None:
    """SIGTERM, whatever the hand is doing."""
    hit.world.stop()


@fault("interrupted_by_restart", after=True)
def restart_storm(hit: Hit) -> None:
    """Killed, and killed again three times while it recovers."""
    world, rng = hit.world, hit.rng
    world.kill()

    def again(times: int) -> None:
        world.kill()
        if times:
            world.points.arm_next(rng.choice(POINTS), rng.randint(1, 30), lambda: again(times - 1))

    world.points.arm_next(rng.choice(POINTS), rng.randint(1, 30), lambda: again(2))


# -- the disk ---------------------------------------------------------------------------------------------------


@fault("refused storage_unavailable", kinds=frozenset(("disk sync",)))
def fsync_error(hit: Hit) -> None:
    """This sync fails; what it was to make durable may be lost, and is not tried again by the kernel."""
    hit.world.next_disk_error = errno.EIO


@fault("refused storage_unavailable", kinds=DISK)
def disk_errors(hit: Hit) -> None:
    """Every write and sync fails for a while."""
    world = hit.world
    world.next_disk_error = errno.EIO
    world.fail_disk(hit.ms(200, 3000))


@fault("refused storage_unavailable", kinds=frozenset(("disk write",)))
def write_error(hit: Hit) -> None:
    """This write fails."""
    hit.world.next_disk_error = errno.EIO


@fault("refused storage_unavailable")
def disk_full(hit: Hit) -> None:
    """Nothing more fits for a while."""
    world = hit.world
    world.disk.free_bytes = hit.rng.choice((0, 3000, 20_000))
    world.later(hit.ms(500, 4000), world.empty_disk)


@fault("accepted late")
def disk_slow(hit: Hit) -> None:
    """A commit takes up to seconds for a while, as on a worn card."""
    world = hit.world
    world.disk_latency_s = hit.rng.choice((0.05, 0.5, 2.5))

    def quick() -> None:
        world.disk_latency_s = DISK_LATENCY_S

    world.later(hit.ms(500, 4000), quick)


@fault("not known")
def ledger_restored(hit: Hit) -> None:
    """The daemon stops, or dies, and an older copy of the ledger is put in the place of its file."""
    world = hit.world
    if hit.rng.random() < 0.5:
        copy = hit.rng.choice(world.copies)
        world.kill()
    else:
        copy = world.copy_card()
        world.stop()
    world.meanwhile(lambda: world.put_back(copy))


@fault("not known")
def ledger_deleted(hit: Hit) -> None:
    """The daemon dies, and its ledger is deleted."""
    world = hit.world
    world.kill()
    world.meanwhile(world.delete_ledger)


@fault("not known")
def card_replaced(hit: Hit) -> None:
    """The daemon dies, and its card is replaced by an empty one."""
    world = hit.world
    world.kill()
    world.meanwhile(world.replace_card)


# -- boards -----------------------------------------------------------------------------------------------------


@fault("device_offline", "outcome_unknown")
def board_reset(hit: Hit) -> None:
    """A board restarts, now."""
    hit.line.reset()


@fault("outcome_unknown")
def board_reset_mid_motion(hit: Hit) -> None:
    """A board restarts when the phone is next touched."""
    line = hit.line
    line.when_pressed(True, line.reset)


@fault("outcome_unknown")
def board_reset_after_motion(hit: Hit) -> None:
    """A board restarts when the phone has next been touched and let go."""
    line = hit.line
    line.when_pressed(True, lambda: line.when_pressed(False, line.reset))


@fault("device_offline", "outcome_unknown")
def board_loses_power(hit: Hit) -> None:
    """A board is without power for a moment."""
    hit.line.lose_power(hit.ms(50, 500))


@fault("device_offline")
def board_hangs(hit: Hit) -> None:
    """A board's firmware stands still for a while, the stylus wherever it is."""
    hit.line.hang(hit.ms(100, 1500))


# -- lines ------------------------------------------------------------------------------------------------------


@fault("device_offline")
def cable_pull(hit: Hit) -> None:
    """A port vanishes and comes back; the board kept its power."""
    hit.line.pull(hit.ms(50, 900), power=False)


@fault("device_offline")
def cable_pull_long(hit: Hit) -> None:
    """A port vanishes for as long as anybody still waits for it; the board kept its power."""
    hit.line.pull(hit.ms(1_000, 25_000), power=False)


@fault("device_offline", kinds=SERIAL)
def cable_flaps(hit: Hit) -> None:
    """A port vanishes for 5 s, comes back, and vanishes for 6 s more at one of the next writes to it."""
    line, points = hit.line, hit.world.points
    line.pull(5_000, power=False)
    left = hit.rng.randint(1, 5)

    def at_next_write() -> None:
        nonlocal left
        left -= points.here is line
        if left:
            points.arm_next("serial write", 1, at_next_write)
        else:
            line.pull(6_000, power=False)

    points.arm_next("serial write", 1, at_next_write)


@fault("outcome_unknown")
def cable_pull_with_power(hit: Hit) -> None:
    """A port vanishes and comes back, and the board lost its power with it."""
    hit.line.pull(hit.ms(50, 500), power=True)


@fault("outcome_unknown", kinds=SERIAL)
def cable_away(hit: Hit) -> None:
    """A port vanishes for longer than anybody waits for it."""
    hit.line.pull(hit.ms(31_000, 36_000), power=False)


@fault("bytes meddled with", kinds=SERIAL)
def frame_lost(hit: Hit) -> None:
    """What is written (or read) here is lost."""
    hit.line.lose_next()


@fault("bytes meddled with", kinds=SERIAL)
def frame_spoiled(hit: Hit) -> None:
    """One bit of what is written (or read) here is turned over."""
    hit.line.spoil_next()


@fault("bytes meddled with", kinds=SERIAL)
def frame_doubled(hit: Hit) -> None:
    """What is written (or read) here arrives twice."""
    hit.line.double_next()


@fault("not_executed")
def line_silent(hit: Hit) -> None:
    """Nothing passes on a line for a while."""
    hit.line.fall_silent(hit.ms(200, 1800))


@fault("not_executed")
def line_frozen(hit: Hit) -> None:
    """Nothing passes on a line for a while, then everything that was sent meanwhile arrives."""
    hit.line.stutter(hit.ms(100, 1800))


# -- clocks -----------------------------------------------------------------------------------------------------


@fault("wrong wall clock read")
def wall_clock_forward(hit: Hit) -> None:
    """The machine's wall clock is set, years later."""
    hit.world.wall_step_s += 3e7 * hit.ms(1, 5)


@fault("wrong wall clock read")
def wall_clock_back(hit: Hit) -> None:
    """The machine's wall clock jumps back by years."""
    hit.world.wall_step_s -= 3e7 * hit.ms(1, 5)
