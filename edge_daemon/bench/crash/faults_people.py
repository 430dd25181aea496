"""What planes and people do at the wrong moment."""

from collections.abc import Callable

from edge_daemon.bench.crash.hits import Hit, fault
from edge_daemon.bench.crash.scenario import FIRST_TOKEN

# -- planes -----------------------------------------------------------------------------------------------------


@fault("plane cut off", after=True)
def plane_gone(hit: Hit) -> None:
    """The plane's connection breaks; it is back soon."""
    hit.stage.plane.go(loses_what_it_sent=hit.rng.random() < 0.5)


@fault("plane connected twice", "deduplicated")
def plane_takes_over(hit: Hit) -> None:
    """The same plane connects a second time, sends something again there, and leaves."""
    hit.world.soon(hit.stage.take_over, hit.last_wish())


@fault("pushed again")
def acknowledgement_lost(hit: Hit) -> None:
    """The plane's next acknowledgements do not arrive, and its connection breaks."""
    hit.stage.plane.lose_acknowledgements(hit.ms(1, 3))


@fault("deduplicated")
def duplicate_dispatch(hit: Hit) -> None:
    """The plane sends once more what it has sent before."""
    wish = hit.last_wish()
    if wish is not None:
        hit.world.soon(wish.plane.send_again, wish.device, wish.key, wish.action, wish.token)


@fault("deduplicated")
def concurrent_dispatch(hit: Hit) -> None:
    """A new action is sent four times at once under one key."""
    wish = hit.wish(FIRST_TOKEN + 1)
    hit.stage.act_soon(wish)
    for _ in range(3):
        hit.world.soon(wish.plane.send_again, wish.device, wish.key, wish.action, wish.token)


@fault("refused idempotency_conflict")
def other_arguments(hit: Hit) -> None:
    """A key that was accepted comes again with another action."""
    accepted = hit.stage.accepted()
    if accepted:
        wish = hit.rng.choice(accepted)
        action = {"type": "tap", "x": 987.0, "y": 987.0}
        hit.world.soon(wish.plane.send_again, wish.device, wish.key, action, wish.token)


@fault("refused lease_mismatch")
def stale_token(hit: Hit) -> None:
    """A holder whose lease has long passed on sends a new action."""
    hit.stage.act_soon(hit.wish(FIRST_TOKEN - 1))


@fault("lease_mismatch")
def newer_holder(hit: Hit) -> None:
    """A newer holder sends an action."""
    hit.stage.act_soon(hit.wish(FIRST_TOKEN + 2))


@fault("canceled")
def canceled(hit: Hit) -> None:
    """The plane takes an action back, one that waits if there is any."""
    wish = hit.waiting_wish()
    if wish is not None:
        hit.world.soon(wish.plane.take_back, wish.device, wish.key)


@fault("expired")
def expired(hit: Hit) -> None:
    """An action comes that may wait for a moment only."""
    wish = hit.wish(FIRST_TOKEN + 1)
    wish.expires_in_ms = hit.ms(1, 80)
    hit.stage.act_soon(wish)


@fault("lease_required")
def lease_runs_out(hit: Hit) -> None:
    """An action comes whose holder has the device for a moment only."""
    wish = hit.wish(FIRST_TOKEN + 1)
    wish.lease_ms = hit.ms(1, 80)
    hit.stage.act_soon(wish)


# -- people -----------------------------------------------------------------------------------------------------


@fault("leased", "refused leased")
def hold_taken(hit: Hit) -> None:
    """Staff take a device for a while."""
    hit.world.soon(hit.stage.staff.hold, hit.device, hit.ms(50, 800) / 1000)


@fault("leased")
def staff_gone(hit: Hit) -> None:
    """Staff take a device, and their console is closed with all that it held."""
    stage, after_s = hit.stage, hit.ms(20, 400) / 1000

    async def take_and_leave(device: str) -> None:
        stage.world.later(int(after_s * 1000), stage.staff.go)
        await stage.staff.hold(device, 1.0)

    hit.world.soon(take_and_leave, hit.device)


@fault("needs_user_control")
def parked(hit: Hit) -> None:
    """A person takes the screen for a while."""
    hit.world.soon(hit.stage.plane.park, hit.device, hit.ms(50, 800) / 1000)


@fault("estopped", "refused estopped")
def emergency_stop(hit: Hit) -> None:
    """Somebody presses the emergency stop, an action comes, and the stop is lifted after a while."""
    device = hit.rng.choice(hit.world.devices)
    wish = hit.wish(FIRST_TOKEN + 1, device)
    hit.world.soon(
        hit.stage.staff.stop_and_lift, device, hit.ms(50, 500) / 1000, lambda: hit.stage.act_soon(wish)
    )


@fault("not known")
def pruned(hit: Hit) -> None:
    """Retention lets go what is final and acknowledged, as if it were old."""
    hit.world.prune(hit.rng.choice((0, 0, 1, 2)))


# -- people, and the daemon dies --------------------------------------------------------------------------------

OVER_A_START_MS = 2500
"""Longer than a daemon takes from its death until its devices are online again."""


@fault("refused leased")
def held_and_killed(hit: Hit) -> None:
    """Staff take a device, the daemon is killed or its machine cut off, and a new action comes: the hold lasts on."""
    device = hit.device
    hit.world.soon(hit.stage.staff.hold_over, device, _interruption(hit, device), OVER_A_START_MS / 1000)


@fault("refused needs_user_control")
def parked_and_killed(hit: Hit) -> None:
    """A person takes the screen, the daemon is killed or its machine cut off, and a new action comes."""
    device = hit.device
    hit.world.soon(hit.stage.plane.park, device, OVER_A_START_MS / 1000, _interruption(hit, device))


@fault("refused lease_mismatch")
def killed_and_stale(hit: Hit) -> None:
    """The daemon is killed or its machine cut off, and a holder whose lease has long passed on sends a new action."""
    _kill_or_cut_off(hit)
    hit.stage.act_soon(hit.wish(FIRST_TOKEN - 1))


def _kill_or_cut_off(hit: Hit) -> None:
    if hit.rng.random() < 0.5:
        hit.world.cut_power("torn")
    else:
        hit.world.kill()


def _interruption(hit: Hit, device: str) -> Callable[[], None]:
    wish = hit.wish(FIRST_TOKEN + 1, device)

    def interrupt() -> None:
        _kill_or_cut_off(hit)
        hit.stage.act_soon(wish)

    return interrupt
