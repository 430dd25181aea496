"""A worker process of the suite: tasks come in a line at a time, results go out.

    python -m edge_daemon.bench.crash.worker [MUTATION]

With a mutation the product is broken in this process for as long as it lives. It ends with its input: the suite's end,
however that comes, is this process's end.
"""

import os
import sys

from edge_daemon.bench.crash.mutations import mutate


def main(arguments: list[str]) -> None:
    """Until the input ends."""
    if arguments:
        mutate(arguments[0])
    # After that, and not before: these load the product.
    from edge_daemon.bench.crash.tasks import Line, Progress, decode_task, encode
    from edge_daemon.bench.crash.work import do

    def say(line: Line) -> None:
        try:
            sys.stdout.buffer.write(encode(line))
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            # The interpreter would try to flush again on its way out, and complain.
            os._exit(1)

    for task in sys.stdin.buffer:
        say(do(decode_task(task), lambda done: say(Progress(done))))


if __name__ == "__main__":
    main(sys.argv[1:])
