"""The rig as it stands, in the calibration store's words."""

from calibration.screen import ScreenGeometry
from calibration.store import BoardKey, CameraKey, Conditions, Stamp
from edge_daemon.upstream.service import RigFacts, RigMoment


def screen_of(facts: RigFacts) -> ScreenGeometry:
    """Raises OptionsInvalid for a configured screen that no phone has."""
    screen = facts.screen
    return ScreenGeometry(
        width_px=screen.width_px,
        height_px=screen.height_px,
        width_mm=screen.width_mm,
        height_mm=screen.height_mm,
    )


def conditions_of(facts: RigFacts) -> Conditions:
    """What a stored calibration is held against. Raises OptionsInvalid as `screen_of` does."""
    camera = facts.camera
    return Conditions(
        device_id=facts.device_id,
        screen=screen_of(facts),
        hand=BoardKey(uid=facts.hand.uid, firmware=facts.hand.firmware) if facts.hand is not None else None,
        hid=BoardKey(uid=facts.hid.uid, firmware=facts.hid.firmware) if facts.hid is not None else None,
        camera=CameraKey(name=camera.name, width=camera.width, height=camera.height, source=camera.source)
        if camera.width is not None and camera.height is not None
        else None,
        now=stamp_of(facts.now),
    )


def stamp_of(now: RigMoment) -> Stamp:
    return Stamp(
        wall_utc=now.wall_utc,
        clock_synced=now.clock_synced,
        boot_id=now.boot_id,
        monotonic_ns=now.monotonic_ns,
    )
