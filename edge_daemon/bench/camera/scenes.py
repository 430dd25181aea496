"""Scenes without end for the settle detector, each from a random stream of its own: the same seed, the same scenes.

    for scene in islice(scenes(seed), 2000):
        verdict = judge_scene(scene)

`python -m edge_daemon.bench.camera.scenes SEED COUNT` prints the rates of each kind.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import count, islice

import numpy as np

from edge_daemon.bench.camera.drawn_scenes import drawn_scene
from edge_daemon.bench.camera.scene import Scene, SceneVerdict, judge_scene
from edge_daemon.bench.camera.stories import KINDS
from edge_daemon.bench.camera.twin_scenes import ACTS, twin_scene

TWIN_EVERY = 12
"""One scene in so many is the whole twin's; it costs ten times a drawn one."""


def scenes(seed: int) -> Iterator[Scene]:
    """Every kind in turn. Use up one scene's shots before the next: those of the twin share rigs."""
    drawn, twins = count(), count()
    for number in count():
        rng = np.random.default_rng((seed, number))
        if number % TWIN_EVERY == TWIN_EVERY - 1:
            turn = next(twins)
            kind = list(ACTS)[turn % len(ACTS)]
            yield twin_scene(kind, rng, seed + turn)
        else:
            yield drawn_scene(list(KINDS)[next(drawn) % len(KINDS)], rng)


def tally(verdicts: Iterator[SceneVerdict]) -> dict[str, list[int]]:
    """kind: scenes, falsely settled, falsely moving, busy place not told, pictures."""
    rates: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0, 0])
    for verdict in verdicts:
        row = rates[verdict.kind]
        row[0] += 1
        row[1] += verdict.false_settled
        row[2] += verdict.false_moving
        row[3] += verdict.busy_missed
        row[4] += verdict.pictures
    return dict(rates)


def main(seed: int, number: int, *, loud: bool = False) -> None:
    """Print the rates over `number` scenes of `seed`; loud: each wrong verdict as well."""
    began_s = time.process_time()

    def judged() -> Iterator[SceneVerdict]:
        for at, scene in enumerate(islice(scenes(seed), number)):
            verdict = judge_scene(scene)
            if loud and verdict.wrong:
                sys.stdout.write(f"{at} {verdict.kind}: {verdict.wrong}\n")
            yield verdict

    rates = tally(judged())
    rows = [*sorted(rates.items()), ("all", [sum(column) for column in zip(*rates.values(), strict=True)])]
    sys.stdout.write(f"{'kind':20}{'scenes':>8}{'settled':>9}{'moving':>8}{'untold':>8}{'pictures':>10}\n")
    for kind, row in rows:
        sys.stdout.write(f"{kind:20}{row[0]:8}{row[1]:9}{row[2]:8}{row[3]:8}{row[4]:10}\n")
    sys.stdout.write(f"{time.process_time() - began_s:.0f} s of a core\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), loud="-v" in sys.argv)
