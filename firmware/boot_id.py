"""The number of a start, by which the host tells whether a board still remembers its commands."""


def boot_id(count: int, randomness: "bytes | bytearray") -> int:
    """From the counter in the board's store and 3 random bytes: never 0.

    The low byte counts, so that 256 starts in a row differ whatever the chip's random numbers are worth. The rest
    is random, so that a store that was lost or put back repeats an old number once in 2**24 times at most.
    """
    return ((randomness[0] << 16 | randomness[1] << 8 | randomness[2]) << 8 | count & 0xFF) or 0x100
