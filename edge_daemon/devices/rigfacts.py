"""What is attached to a device, as it announced itself: the facts a calibration starts from."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from edge_daemon.boards import Board, BoardInfo, HandLimits
from edge_daemon.cameras.camera import Camera
from edge_daemon.cameras.sources import CameraSource, V4l2Source
from edge_daemon.clock import MonotonicNs, PlaneClock
from edge_daemon.config import DeviceSection, MotionSection
from edge_daemon.contract import Orientation
from edge_daemon.upstream.service import (
    HandEnvelope,
    HandPoint,
    RigCamera,
    RigFacts,
    RigHand,
    RigHid,
    RigMoment,
    ScreenSize,
)


@dataclass(frozen=True)
class RigReader:
    """Reads the facts of one device. `now` is what they are at this moment: what never announced itself is None."""

    device_id: str
    section: DeviceSection
    hand: Board | None
    hid: Board | None
    camera: Camera
    source: CameraSource
    calibration_root: Path
    boot_id: str
    clock: PlaneClock
    monotonic_ns: MonotonicNs
    orientation: Callable[[], Orientation]
    """How the screen is turned now, as it was configured or set."""

    def all_announced(self) -> bool:
        """Whether every board of the device has announced itself and its camera has given a picture."""
        boards = [board for board in (self.hand, self.hid) if board is not None]
        return all(board.last_info is not None for board in boards) and self.camera.latest() is not None

    def now(self) -> RigFacts:
        return self.facts(self._moment())

    def facts(self, moment: RigMoment) -> RigFacts:
        """What is attached now, said to be of that moment."""
        section, screen = self.section, self.section.screen
        hand = self.hand.last_info if self.hand is not None else None
        hid = self.hid.last_info if self.hid is not None else None
        return RigFacts(
            device_id=self.device_id,
            screen=ScreenSize(
                width_px=screen.width_px,
                height_px=screen.height_px,
                width_mm=screen.width_mm,
                height_mm=screen.height_mm,
            ),
            orientation=self.orientation(),
            camera=_camera(self.camera, self.source),
            calibration_folder=str(self.calibration_root),
            now=moment,
            hand=_hand(hand, section.motion) if hand is not None else None,
            hid=_hid(hid) if hid is not None else None,
        )

    def _moment(self) -> RigMoment:
        now_ns = self.monotonic_ns()
        return RigMoment(
            wall_utc=self.clock.iso(now_ns),
            clock_synced=self.clock.synced,
            boot_id=self.boot_id,
            monotonic_ns=now_ns,
        )


def _hand(info: BoardInfo, motion: MotionSection) -> RigHand:
    assert info.hand is not None, "the configured kind was checked against what it announced"
    return RigHand(
        uid=info.uid,
        firmware=info.firmware,
        envelope=_envelope(info.hand),
        park=HandPoint(x_mm=motion.park_x_mm, y_mm=motion.park_y_mm, z_mm=motion.park_z_mm),
        search_z_mm=motion.search_z_mm,
        approach_mm=motion.approach_mm,
    )


def _hid(info: BoardInfo) -> RigHid:
    assert info.hid is not None, "the configured kind was checked against what it announced"
    return RigHid(
        uid=info.uid,
        firmware=info.firmware,
        boot_id=info.boot_id,
        profile=info.hid.profile,
        touch=info.hid.touch,
    )


def _camera(camera: Camera, source: CameraSource) -> RigCamera:
    frame = camera.latest()
    kind = str(source.__struct_config__.tag)
    return RigCamera(
        name=camera.name,
        # A v4l2 path is by id or by port: another path is another camera. A URL's port may change from start to start.
        source=f"{kind} {source.path}" if isinstance(source, V4l2Source) else kind,
        width=frame.width if frame is not None else None,
        height=frame.height if frame is not None else None,
    )


def _envelope(limits: HandLimits) -> HandEnvelope:
    return HandEnvelope(
        x_min_mm=limits.x_min_mm,
        x_max_mm=limits.x_max_mm,
        y_min_mm=limits.y_min_mm,
        y_max_mm=limits.y_max_mm,
        z_min_mm=limits.z_min_mm,
        z_max_mm=limits.z_max_mm,
    )
