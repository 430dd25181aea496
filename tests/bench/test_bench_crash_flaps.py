"""A cable with a bad contact goes twice; the board has kept its power and knows what it did."""

from edge_daemon.bench.crash.hits import FAULTS, Fault, Hit
from edge_daemon.bench.crash.play import play

THE_QUESTION = 3
"""Of the writes to a board that comes back: it is opened, and then asked what became of the command."""


def cable_flaps(hit: Hit) -> None:
    """Away for 5 s; back; away for 6 s more while it is asked; back for good."""
    line, points = hit.line, hit.world.points
    line.pull(5000, power=False)
    left = [THE_QUESTION]

    def at_next_write() -> None:
        if points.here is line:
            left[0] -= 1
            if not left[0]:
                line.pull(6000, power=False)
                return
        points.arm_next("serial write", 1, at_next_write)

    points.arm_next("serial write", 1, at_next_write)


def test_a_board_that_kept_its_power_is_asked_again_when_its_line_was_lost_while_it_was_asked() -> None:
    name = cable_flaps.__name__
    FAULTS[name] = Fault(name, frozenset(("serial write",)), False, cable_flaps, "")
    try:
        for n in range(16, 32):
            history = play(5, name, "serial write", n)
            assert history.struck
            assert history.counts.violations == history.counts.unknown == 0, (n, history.problems)
    finally:
        del FAULTS[name]
