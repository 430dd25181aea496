import shutil

import msgspec
import pytest

from calibration.errors import BoardMismatch, DeviceMismatch, SchemaMismatch, StoreCorrupt
from calibration.store import BoardKey, CalibrationStore
from calibration.store.files import seal


@pytest.fixture
def former(tmp_path, former_file):
    """The former file where a daemon of schema 1 left it."""
    return shutil.copy(former_file, tmp_path / "phone-3.json")


def test_a_file_of_schema_1_becomes_entry_1_in_use_and_is_kept(store, former, former_file, conditions):
    entry = store.current(conditions)
    raw = msgspec.json.decode(former_file.read_bytes())["body"]["calibration"]
    made = entry.calibration
    assert (entry.number, entry.origin) == (1, "migrated")
    assert entry.boards.hand == BoardKey(uid="a1b2c3d4e5f60718", firmware=None)
    assert list(made.hand.model.coefficients) == raw["hand"]["coefficients"]
    assert list(made.camera.model.homography) == raw["camera"]["homography"]
    assert (made.hand.contact.c, made.hand.overtravel_mm) == (raw["contact"]["c"], raw["overtravel_mm"])
    assert [list(touch.sent) for touch in made.touches] == [touch["hand_mm"] for touch in raw["touches"]]
    assert [list(corner.px) for corner in made.camera.corners] == [c["px"] for c in raw["corners"]]
    assert made.acceptance.passed
    for name in ("p50_mm", "p95_mm", "max_mm"):
        assert getattr(made.acceptance, name) == pytest.approx(raw["acceptance"][name], rel=1e-12)
    assert made.acceptance.max_limit_mm == raw["acceptance"]["limit_mm"]
    assert former.read_bytes() == former_file.read_bytes()


def test_what_schema_1_did_not_tell_is_none_and_not_made_up(store, former):
    entry = store.load("current")
    camera, hand = entry.calibration.camera, entry.calibration.hand
    assert (entry.camera, entry.created, entry.measured, entry.expires_after_days) == (None, None, None, None)
    assert (camera.noise_sigma, camera.checks, camera.reference, camera.marks) == (None, None, None, ())
    assert (hand.approach_mm, hand.backlash) == (None, None)


def test_a_migrated_entry_is_still_keyed_to_its_board(store, former, conditions):
    other = msgspec.structs.replace(conditions, hand=BoardKey(uid="ffff", firmware="2.1"))
    with pytest.raises(BoardMismatch, match=r"a1b2c3d4e5f60718.*ffff"):
        store.current(other)


def test_it_is_migrated_once(store, former, conditions, calibration):
    assert [line.number for line in store.history()] == [1]
    first = store.load(1)
    later = store.save(calibration, conditions, origin="calibrated")
    again = CalibrationStore(store.folder.parent, "phone-3")
    assert [line.number for line in again.history()] == [1, 2]
    assert again.load(1) == first
    assert again.current(conditions) == later


def test_a_cut_after_the_entry_and_before_the_state_is_made_good(store, former, conditions):
    first = store.load(1)
    (store.folder / "state.json").unlink()
    assert store.current(conditions) == first
    assert [line.number for line in store.history()] == [1]


def test_a_former_file_that_is_damaged_is_named_and_does_not_stop_a_new_calibration(
    store, former, conditions, calibration
):
    former.write_bytes(former.read_bytes()[:-40])
    with pytest.raises(StoreCorrupt, match=r"phone-3\.json"):
        store.current(conditions)
    assert "phone-3.json" in store.history()[0].problem
    fresh = store.save(calibration, conditions, origin="calibrated")
    assert store.current(conditions) == fresh


def test_a_former_file_of_another_phone_or_another_schema_is_refused(tmp_path, former, conditions):
    shutil.copy(former, tmp_path / "phone-4.json")
    with pytest.raises(DeviceMismatch, match=r"phone-3.*phone-4"):
        CalibrationStore(tmp_path, "phone-4").current(conditions)
    former.write_bytes(seal(b'{"schema":7}'))
    with pytest.raises(SchemaMismatch, match="schema 7"):
        CalibrationStore(tmp_path, "phone-3").current(conditions)
