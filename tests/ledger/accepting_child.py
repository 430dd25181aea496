"""A process to be killed: accepts and settles without end and says each time what it was promised.

    python accepting_child.py LEDGER

For each line on stdin it forks a worker, which prints `pid N`, then `accepted KEY` and `settled KEY` lines. When
the worker has died it prints `reaped`. One interpreter for all workers, because starting one takes longer than
the test. The worker ends by being killed.
"""

import os
import sys
from itertools import count
from pathlib import Path

import trio

from edge_daemon.contract import Actor, Receipt
from edge_daemon.ledger import CommandRef, Ledger, open_ledger

TASKS = 4


def receipt(key: str, status: str) -> Receipt:
    return Receipt(
        org_id="org",
        device_id="phone-1",
        idempotency_key=key,
        backend_kind="robot_hand",
        action="tap",
        args_summary={"x": 1.0, "y": 2.0},
        status=status,
        requested_at="2025-06-01T12:34:56.789Z",
        boot_id="boot",
        requested_ns=1,
        clock_synced=False,
        actor=Actor(kind="system"),
    )


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode("ascii"))


async def act(ledger: Ledger, task: int, token: int) -> None:
    for number in count():
        key = f"{os.getpid()}-{task}-{number}-{token}"
        command = CommandRef(board_uid="uid", board_boot_id=1, cmd_id=number)
        await ledger.accept(receipt(key, "pending"), key.encode("ascii"), token, command)
        say(f"accepted {key}")
        await ledger.settle(receipt(key, "committed"))
        say(f"settled {key}")


async def work(path: Path) -> None:
    async with open_ledger(path) as ledger, trio.open_nursery() as nursery:
        for task in range(TASKS):
            nursery.start_soon(act, ledger, task, ledger.highest_token("phone-1") + 1)


for _ in sys.stdin:
    worker = os.fork()
    if worker == 0:
        say(f"pid {os.getpid()}")
        try:
            trio.run(work, Path(sys.argv[1]))
        finally:
            os._exit(1)  # back in the launcher's loop it would be a second launcher
    os.waitpid(worker, 0)
    say("reaped")
