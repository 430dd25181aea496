"""What a port gives the hand: drives that go to a setpoint and, where they can, say what they feel."""


class Drives:
    """Coordinates are the hand's own µm, z up. Only write() must be there; the rest is for drives that sense."""

    def write(self, x_um: int, y_um: int, z_um: int) -> None:
        """Make the drives go to this setpoint now; called every SETPOINT_US or so while the hand moves.

        The first call after a start, with z lifted or about to be lifted, powers the drives.
        """
        raise NotImplementedError

    def poll(self, now_us: int) -> None:
        """Talk to the drives as far as is due; called in each poll of the core. Bounded work."""

    def ready(self) -> bool:
        """Whether every drive answers and reports no error; without it no command starts or goes on."""
        return True

    def read(self) -> "tuple[int, int, int] | None":
        """A displacement in µm that somebody pushed the hand by since the last call, or None."""
        return None

    def retained(self) -> "tuple[int, int, int] | None":
        """Where the drives stand before the first write: sensed, or the setpoint that they still hold.

        None where nobody knows, as after a power-on of drives that sense nothing.
        """
        return None

    def senses(self) -> bool:
        """Whether sense() works: only then can the hand PROBE."""
        return False

    def sense(self) -> None:
        """Begin a measurement of what z feels from now on; sensed() has it when it is there."""

    def sensed(self) -> "tuple[int, int] | None":
        """(where the tip's z really is in µm, load of the drive in ‰), None until sense() has an answer."""
        return None
