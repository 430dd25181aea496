"""A cable with a bad contact goes twice; the board has kept its power and knows what it did."""

from edge_daemon.bench.crash.play import play


def test_a_board_that_kept_its_power_is_asked_again_when_its_line_was_lost_while_it_was_asked() -> None:
    for n in range(16, 32):
        history = play(5, "cable_flaps", "serial write", n)
        assert history.struck
        assert history.counts.violations == history.counts.unknown == 0, (n, history.problems)
