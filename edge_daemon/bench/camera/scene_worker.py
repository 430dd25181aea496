"""Judges scenes in a process of its own, one verdict a line as JSON.

    python -m edge_daemon.bench.camera.scene_worker SEED COUNT

It steps back for whatever else runs: a simulated rig beside it works in real time.
"""

import os
import sys
from itertools import islice

import cv2
import msgspec

from edge_daemon.bench.camera.scene import judge_scene
from edge_daemon.bench.camera.scenes import scenes

NICENESS = 19


def main(seed: int, count: int) -> None:
    os.nice(NICENESS)
    cv2.setNumThreads(1)
    for scene in islice(scenes(seed), count):
        sys.stdout.write(msgspec.json.encode(judge_scene(scene)).decode() + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
