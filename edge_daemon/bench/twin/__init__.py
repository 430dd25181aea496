"""The digital twin of a rig: a phone, a hand, a HID cable, a camera and two boards, with a hidden truth.

Nothing of it may be imported outside edge_daemon.bench: what a calibration has to find out must not leak.
"""

from edge_daemon.bench.twin.camera import Trouble as Trouble
from edge_daemon.bench.twin.mechanics import TipPose as TipPose
from edge_daemon.bench.twin.phone import Phone as Phone
from edge_daemon.bench.twin.rig import RigError as RigError
from edge_daemon.bench.twin.rig import SimulatedRig as SimulatedRig
from edge_daemon.bench.twin.touches import Touch as Touch
from edge_daemon.bench.twin.truth import Truth as Truth
