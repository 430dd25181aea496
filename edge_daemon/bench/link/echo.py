"""The floor of the round trip: MICROPYTHON echo.py FD gives back every byte that comes, and knows no frames.

It reads and waits exactly as the firmware's main loop does (poll, readinto, write), so that the difference to
a command's round trip is the link and nothing else.
"""

import select
import sys


def main(fd: int) -> None:
    line = open(fd, "r+b", 0)  # noqa: SIM115 – until the process is killed
    buffer = bytearray(256)
    view = memoryview(buffer)
    poller = select.poll()
    poller.register(line, select.POLLIN)
    wait = getattr(poller, "ipoll", poller.poll)
    while True:
        for _ in wait(1000):
            n = line.readinto(buffer)
            if n:
                line.write(view[:n])


main(int(sys.argv[1]))
