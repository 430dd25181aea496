"""What can go wrong, by name, and at which kinds of points each fault can strike.

Each strikes right before or right behind one point: a write of the disk, a byte to a board, a message to the plane.
What it asks of people and planes happens at once, beside whatever is under way.
"""

from edge_daemon.bench.crash import faults_people, faults_rig
from edge_daemon.bench.crash.hits import FAULTS, Fault, Hit

__all__ = ["FAULTS", "Fault", "Hit", "faults_people", "faults_rig"]
