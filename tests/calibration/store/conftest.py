"""Calibrations to keep: a real one, written by schema 1, with the facts that came later added by hand."""

import shutil
from pathlib import Path

import msgspec
import pytest

from calibration.backlash import Backlash
from calibration.result import MarkRecord
from calibration.store import BoardKey, CalibrationStore, CameraKey, Conditions, Stamp

FORMER_FILE = Path(__file__).parent.parent / "data" / "schema1-phone-3.json"
DAY_NS = 86_400 * 10**9


def stamp(day: int = 1, *, synced: bool = True, boot: str | None = None, monotonic_ns: int = 0) -> Stamp:
    return Stamp(
        wall_utc=f"2024-05-{day:02}T08:00:00Z",
        clock_synced=synced,
        boot_id=boot or f"boot of day {day}",
        monotonic_ns=monotonic_ns,
    )


@pytest.fixture(scope="session")
def make_stamp():
    """make_stamp(day of May, synced=, boot=, monotonic_ns=); every day has its own boot unless told."""
    return stamp


@pytest.fixture
def former_file():
    """A file that a daemon of schema 1 wrote."""
    return FORMER_FILE


@pytest.fixture(scope="session")
def calibration(tmp_path_factory):
    """A hand's calibration with backlash, noise and control marks."""
    root = tmp_path_factory.mktemp("former")
    shutil.copy(FORMER_FILE, root / "phone-3.json")
    former = CalibrationStore(root, "phone-3").load("current").calibration
    change = msgspec.structs.replace
    return change(
        former,
        camera=change(
            former.camera,
            noise_sigma=2.1,
            marks=tuple(
                MarkRecord(drawn_mm=(x, y), seen_mm=(x + 0.012, y - 0.007 * i))
                for i, (x, y) in enumerate([(5.5, 5.5), (62.5, 60.0), (5.5, 110.0), (40.0, 141.8)])
            ),
        ),
        hand=change(
            former.hand,
            approach_mm=0.6,
            backlash=Backlash(x_mm=0.151, y_mm=0.149, x_sigma_mm=0.012, y_sigma_mm=0.014),
        ),
    )


@pytest.fixture(scope="session")
def conditions(calibration):
    """The rig of the calibration; change one fact with msgspec.structs.replace."""
    return Conditions(
        device_id="phone-3",
        screen=calibration.screen,
        hand=BoardKey(uid="a1b2c3d4e5f60718", firmware="2.1"),
        hid=None,
        camera=CameraKey(name="cam-3", width=1280, height=720, source="usb:1-1.2"),
        now=stamp(),
    )


@pytest.fixture
def store(tmp_path):
    return CalibrationStore(tmp_path, "phone-3")


@pytest.fixture
def shifted(calibration):
    """shifted(mm): the same calibration, its hand sent further right by so much."""

    def shift(mm):
        model = calibration.hand.model
        coefficients = (model.coefficients[0] + mm, *model.coefficients[1:])
        moved = msgspec.structs.replace(model, coefficients=coefficients)
        hand = msgspec.structs.replace(calibration.hand, model=moved)
        return msgspec.structs.replace(calibration, hand=hand)

    return shift
