"""A whole rig in virtual time: no thread, no socket, no wall clock. The bench hands in every nanosecond.

    rig = VirtualRig(Truth(7))
    rig.phone.show_page("charuco", now_ns=rig.now_ns)
    rig.pass_ms(100)
    picture = rig.take_picture()                # time goes on by the exposure; picture.jpeg, picture.exposure
    rig.command(100_000, 65_000, 5_000)         # one setpoint of the hand's board, in µm; each 4 ms as firmware does
    rig.pass_ms(4)

Only `take_picture`, the setpoints and the HID reports are what a calibration may use. Everything else here is the
bench's: the phone's log, the true projection, the faults.
"""

from math import radians

from edge_daemon.bench.twin.frames import HOME
from edge_daemon.bench.twin.hidhost import ENUMERATION_NS, HidHost, PhoneOs
from edge_daemon.bench.twin.mechanics import Hand
from edge_daemon.bench.twin.phone import Phone
from edge_daemon.bench.twin.picture_options import PictureQuality
from edge_daemon.bench.twin.sensor import Picture, Sensor
from edge_daemon.bench.twin.truth import Truth
from firmware.hid import descriptor

MS = 1_000_000
START_NS = 1_000_000 * MS
DESCRIPTORS = {"android": descriptor.ANDROID_DESCRIPTOR, "ios": descriptor.IOS_DESCRIPTOR}
# A piece of a descriptor on the wiring holds at most this much.
PIECE_BYTES = 200


class VirtualRig:
    """Phone, hand, HID host and camera of one truth, at one virtual moment `now_ns`."""

    def __init__(
        self,
        truth: Truth,
        *,
        layout: str = "us",
        os: PhoneOs = "android",
        quality: PictureQuality = "full",
    ) -> None:
        self.truth = truth
        self.now_ns = START_NS
        self.phone = Phone(truth, self.now_ns, clock=lambda: self.now_ns)
        self.hand = Hand(truth, self.now_ns)
        self.hid_host = HidHost(self.phone, layout, os, habits=truth.hid)
        self.sensor = Sensor(truth, self.phone, self.hand, quality)
        self._descriptor = bytes(DESCRIPTORS[os])
        self._placement = HOME

    # -- time ----------------------------------------------------------------------------------------------

    def pass_ns(self, duration_ns: int) -> None:
        """Let this much time go by for everything."""
        self.now_ns += duration_ns
        self.phone.glass(self.hand.advance(self.now_ns))
        self.hid_host.advance(self.now_ns)
        self.phone.advance(self.now_ns)

    def pass_ms(self, duration_ms: float) -> None:
        """As pass_ns, in ms."""
        self.pass_ns(round(duration_ms * MS))

    # -- what a calibration may use ------------------------------------------------------------------------

    def command(self, x_um: int, y_um: int, z_um: int) -> None:
        """A setpoint of the hand's board reaches the drives now."""
        self.phone.glass(self.hand.command(x_um, y_um, z_um, self.now_ns))

    def take_picture(self) -> Picture:
        """Expose one picture from now on; now_ns is the exposure's end afterwards."""
        shutter = self.sensor.open_shutter(self.now_ns)
        self.pass_ns(self.sensor.exposure_ns)
        raw = self.sensor.close_shutter(shutter, self.now_ns)
        return self.sensor.finish(shutter, self.now_ns, self.sensor.encode(raw))

    def plug_hid(self) -> None:
        """Plug the HID board into the phone and let the phone take it; the board is the firmware's own."""
        for at in range(0, len(self._descriptor), PIECE_BYTES):
            piece = self._descriptor[at : at + PIECE_BYTES]
            last = at + len(piece) == len(self._descriptor)
            self.hid_host.descriptor(at, last, piece, self.now_ns)
        self.pass_ns(ENUMERATION_NS + MS)

    def hid_report(self, report: bytes) -> None:
        """The HID board queues a report (id first); the phone polls it as time passes."""
        self.hid_host.report(report, self.now_ns)

    # -- what may go wrong ---------------------------------------------------------------------------------

    def nudge_phone(self, dx_mm: float, dy_mm: float, turn_deg: float = 0.0) -> None:
        """Somebody shoves the phone on the bed: from hand and camera it lies elsewhere; see frames.Placement."""
        self._placement = self._placement.nudged(dx_mm, dy_mm, radians(turn_deg))
        self.phone.glass(self.hand.place_phone(self._placement, self.now_ns))
        self.sensor.place_phone(self._placement)
