"""The steps that a command of the hand is made of, and what is to be said when one of them has ended."""

KEEP = None  # a phase's coordinate: stay where that axis is
NOTHING = 0
CONTACT = 1
DONE = 2
HOMED = 3
SENSE = 4  # ask the drive what it feels
SENSED = 5  # ends with its answer; when the wait is over there was none


class Phase:
    """One step of a command: a move to (x, y, z), or a wait where wait_us is given; then an event."""

    def __init__(
        self,
        x: "int | None" = KEEP,
        y: "int | None" = KEEP,
        z: "int | None" = KEEP,
        event: int = NOTHING,
        share: float = 1.0,
        exact_us: int = 0,
        wait_us: int = -1,
        z_at_least: bool = False,
        touches: bool = False,
    ) -> None:
        self.x = x
        self.y = y
        self.z = z
        self.event = event
        self.share = share
        self.exact_us = exact_us
        self.wait_us = wait_us
        self.z_at_least = z_at_least
        self.touches = touches
