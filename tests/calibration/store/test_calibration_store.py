import os
import stat

import msgspec
import pytest

from calibration.errors import (
    AcceptanceFailed,
    BoardMismatch,
    CalibrationMissing,
    CameraMismatch,
    DeviceMismatch,
    Expired,
    FirmwareMismatch,
    Invalidated,
    SchemaMismatch,
    ScreenMismatch,
    StoreCorrupt,
    StoreError,
    UnknownEntry,
)
from calibration.store import BoardKey, CalibrationStore
from calibration.store.files import seal

change = msgspec.structs.replace


@pytest.fixture
def saved(store, calibration, conditions):
    """Saves a calibration as freshly made; saved(calibration or None, **of save)."""

    def save(made=None, **of_save):
        return store.save(made or calibration, conditions, **{"origin": "calibrated", **of_save})

    return save


# -- kept and found again ---------------------------------------------------------------------------------


def test_what_was_saved_is_in_use_to_the_last_bit_with_all_raw_measurements(
    store, saved, calibration, conditions
):
    entry = saved(note="first")
    again = CalibrationStore(store.folder.parent, "phone-3").current(conditions)
    assert again == entry
    assert again.calibration == calibration
    assert again.calibration.hand.grid_to_hand(123.4, 567.8) == calibration.hand.grid_to_hand(123.4, 567.8)
    assert len(again.calibration.touches) > 30
    assert len(again.calibration.camera.corners) == 112
    assert (again.number, again.note, again.parent_id, again.created) == (1, "first", None, conditions.now)


def test_a_calibration_as_the_procedure_returns_it_is_kept_to_the_last_bit(store, calibrated, conditions):
    made = calibrated[1]
    rig = change(conditions, screen=made.screen)
    store.save(made, rig, origin="calibrated")
    assert store.current(rig).calibration == made


def test_only_the_owner_may_read_the_folder_and_its_files(store, saved):
    saved()
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700
    files = sorted(store.folder.iterdir())
    assert [file.name[:5] for file in files] == ["0001-", "state"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_entries_are_numbered_in_the_order_of_saving_whatever_the_clock_says(
    store, calibration, conditions, make_stamp
):
    for day in (20, 3, 11):
        store.save(calibration, change(conditions, now=make_stamp(day)), origin="calibrated")
    assert [(entry.number, entry.created.wall_utc[8:10]) for entry in store.history()] == [
        (1, "20"),
        (2, "03"),
        (3, "11"),
    ]
    assert store.load("current").number == 3


def test_an_entry_is_found_by_number_by_the_beginning_of_its_id_and_as_current(store, saved, shifted):
    first, second = saved(), saved(shifted(0.1))
    assert store.load(1) == store.load("1") == store.load("0001") == store.load(first.id[:6]) == first
    assert store.load("current") == store.load(second.id) == second
    for unknown in ("7", "zz", "", "-1", "1.0"):
        with pytest.raises(UnknownEntry, match="0001-"):
            store.load(unknown)


def test_two_entries_of_one_number_or_one_beginning_are_told_apart_only_by_the_whole_id(store, saved):
    entry = saved()
    copied = change(entry, id=entry.id[:7] + ("0" if entry.id[7] != "0" else "1"))
    (store.folder / copied.file_name).write_bytes(seal(msgspec.json.encode(copied)))
    for ambiguous in (1, entry.id[:7]):
        with pytest.raises(UnknownEntry, match="2 entries named"):
            store.load(ambiguous)
    assert store.load(entry.id) == entry


def test_what_is_all_digits_is_never_taken_for_an_id(store, saved):
    for _ in range(20):
        assert saved().id[0] in "abcdef"


def test_the_history_tells_what_each_entry_is_and_which_one_is_in_use(store, saved, calibration):
    first = saved(note="after the new stylus")
    saved(origin="solved again", parent_id=first.id)
    one, two = store.history()
    assert (one.origin, one.note, one.parent_id, one.current) == (
        "calibrated",
        "after the new stylus",
        None,
        False,
    )
    assert (two.origin, two.parent_id, two.current) == ("solved again", first.id, True)
    assert (one.verdict, one.model_kind, one.problem) == ("accepted", "affine", "")
    assert (one.p95_mm, one.max_mm) == (calibration.acceptance.p95_mm, calibration.acceptance.max_mm)


def test_a_damaged_entry_is_listed_with_its_problem_and_hides_no_other(store, saved, conditions):
    first, second, third = saved(), saved(), saved()
    (store.folder / second.file_name).write_bytes(b"{")
    lines = store.history()
    assert [(line.number, bool(line.problem)) for line in lines] == [(1, False), (2, True), (3, False)]
    assert second.file_name in lines[1].problem
    assert store.current(conditions) == third
    assert store.load(1) == first


# -- what is refused --------------------------------------------------------------------------------------


def test_without_a_calibration_it_is_said_what_to_do(store, conditions):
    assert store.history() == []
    with pytest.raises(CalibrationMissing, match="phone-3; calibrate it"):
        store.current(conditions)
    assert not store.folder.exists()


def test_an_entry_in_use_whose_file_is_gone_is_missing(store, saved, conditions):
    (store.folder / saved().file_name).unlink()
    with pytest.raises(CalibrationMissing, match="roll back"):
        store.current(conditions)


def test_an_edited_number_is_refused(store, saved, conditions):
    path = store.folder / saved().file_name
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"overtravel_mm":0.3', b'"overtravel_mm":0.9'))
    assert path.read_bytes() != whole
    with pytest.raises(StoreCorrupt, match="edited or damaged"):
        store.current(conditions)


def test_a_file_cut_short_anywhere_is_refused(store, saved, conditions):
    path = store.folder / saved().file_name
    whole = path.read_bytes()
    for length in (0, 1, 50, 200, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(StoreCorrupt):
            store.current(conditions)


def test_another_schema_is_refused_even_when_its_shape_is_unknown(store, saved, conditions):
    path = store.folder / saved().file_name
    path.write_bytes(seal(b'{"schema":7,"lens":{"of":"tomorrow"}}'))
    with pytest.raises(SchemaMismatch, match="schema 7, this version reads 2"):
        store.current(conditions)


def test_a_whole_file_with_a_false_shape_is_refused(store, saved, conditions):
    path = store.folder / saved().file_name
    path.write_bytes(seal(b'{"schema":2,"number":1}'))
    with pytest.raises(StoreCorrupt, match="not a whole calibration"):
        store.current(conditions)


def test_a_renamed_file_is_refused(store, saved):
    entry = saved()
    (store.folder / entry.file_name).rename(store.folder / f"0009-{entry.id}.json")
    with pytest.raises(StoreCorrupt, match="renamed"):
        store.load(9)


def test_another_phone_is_refused(store, saved, conditions):
    saved()
    with pytest.raises(DeviceMismatch, match=r"phone-3.*phone-4"):
        store.current(change(conditions, device_id="phone-4"))
    with pytest.raises(DeviceMismatch, match="phone-4"):
        store.save(store.load(1).calibration, change(conditions, device_id="phone-4"), origin="calibrated")


def test_another_board_is_refused_and_both_are_named(store, saved, conditions):
    saved()
    with pytest.raises(BoardMismatch, match=r"a1b2c3d4e5f60718.*ffff"):
        store.current(change(conditions, hand=BoardKey(uid="ffff", firmware="2.1")))
    with pytest.raises(BoardMismatch, match="no hand board is here"):
        store.current(change(conditions, hand=None))


def test_another_major_firmware_is_refused_another_minor_is_not(store, saved, conditions):
    saved()
    uid = conditions.hand.uid
    store.current(change(conditions, hand=BoardKey(uid=uid, firmware="2.9")))
    with pytest.raises(FirmwareMismatch, match=r"2\.1.*3\.0"):
        store.current(change(conditions, hand=BoardKey(uid=uid, firmware="3.0")))


def test_another_camera_or_another_picture_size_is_refused(store, saved, conditions):
    saved()
    with pytest.raises(CameraMismatch, match=r"cam-3.*cam-9"):
        store.current(change(conditions, camera=change(conditions.camera, name="cam-9")))
    with pytest.raises(CameraMismatch, match=r"1280 x 720.*1920 x 1080"):
        store.current(change(conditions, camera=change(conditions.camera, width=1920, height=1080)))
    with pytest.raises(CameraMismatch, match="no camera is here"):
        store.current(change(conditions, camera=None))


def test_another_screen_size_in_the_configuration_is_refused(store, saved, conditions):
    saved()
    with pytest.raises(ScreenMismatch, match=r"68 x 147\.3 mm.*69 x 147\.3 mm"):
        store.current(change(conditions, screen=change(conditions.screen, width_mm=69.0)))


def test_an_entry_expires_by_both_clocks_set_and_by_the_uptime_of_one_boot(
    store, saved, conditions, make_stamp
):
    saved(expires_after_days=7.0)
    store.current(change(conditions, now=make_stamp(8)))
    with pytest.raises(Expired, match=r"8\.0 days old and was to be used for 7"):
        store.current(change(conditions, now=make_stamp(9)))
    eight_days_up = make_stamp(1, synced=False, monotonic_ns=8 * 86_400 * 10**9)
    with pytest.raises(Expired):
        store.current(change(conditions, now=eight_days_up))


def test_an_age_by_a_clock_that_was_not_set_is_not_judged_and_that_is_said(
    store, saved, conditions, make_stamp
):
    saved(expires_after_days=7.0)
    usable = store.usable(change(conditions, now=make_stamp(30, synced=False)))
    assert usable.whole
    assert "its age is not known" in usable.notes[0]
    assert store.usable(conditions).notes == ()


def test_a_refused_calibration_and_one_that_nobody_judged_are_not_saved(store, saved, calibration):
    refused = change(calibration.acceptance, verdict="refused", failing="max 0.61 mm, the limit is 0.5 mm")
    for acceptance in (refused, None):
        with pytest.raises(AcceptanceFailed, match="not saved"):
            saved(change(calibration, acceptance=acceptance))
    assert store.history() == []


def test_a_calibration_that_could_not_be_loaded_again_is_not_saved(store, calibration, conditions):
    for wrong, error in (
        ({"hand": None}, BoardMismatch),
        ({"camera": None}, CameraMismatch),
        ({"camera": change(conditions.camera, width=640)}, CameraMismatch),
        ({"screen": change(conditions.screen, width_mm=69.0)}, ScreenMismatch),
    ):
        with pytest.raises(error):
            store.save(calibration, change(conditions, **wrong), origin="calibrated")
    assert store.history() == []


def test_a_number_that_is_not_finite_is_not_saved_over_a_good_calibration(
    store, saved, calibration, conditions
):
    good = saved()
    broken = change(calibration, hand=change(calibration.hand, overtravel_mm=float("nan")))
    with pytest.raises(StoreError, match="not finite"):
        saved(broken)
    assert store.current(conditions) == good


@pytest.mark.parametrize("device_id", ["../phone", "a/b", "", ".hidden", "x y"])
def test_an_id_that_is_no_folders_name_is_refused(tmp_path, device_id):
    with pytest.raises(StoreError, match="cannot name a folder"):
        CalibrationStore(tmp_path, device_id)


# -- rolled back ------------------------------------------------------------------------------------------


def test_a_rollback_takes_an_earlier_entry_into_use_and_is_logged(store, saved, shifted, conditions):
    first, second = saved(), saved(shifted(0.2))
    assert store.rollback(1, conditions) == first
    assert store.current(conditions) == first
    assert [(line.what, line.entry, line.why) for line in store.log()] == [
        ("rolled back", first.id, f"from {second.id}")
    ]
    assert saved().number == 3


def test_a_rollback_goes_only_to_what_would_load(store, saved, conditions):
    first, second = saved(), saved()
    with pytest.raises(BoardMismatch):
        store.rollback(1, change(conditions, hand=BoardKey(uid="ffff", firmware="2.1")))
    (store.folder / first.file_name).write_bytes(b"")
    with pytest.raises(StoreCorrupt):
        store.rollback(1, conditions)
    with pytest.raises(UnknownEntry):
        store.rollback("9", conditions)
    assert store.current(conditions) == second


# -- untrue -----------------------------------------------------------------------------------------------


def test_after_the_camera_moved_the_hands_part_is_still_usable(store, saved, conditions, make_stamp):
    saved()
    store.invalidate("camera_moved", make_stamp(2))
    usable = store.usable(conditions)
    assert usable.lost == {"camera"}
    assert not usable.whole
    with pytest.raises(
        Invalidated, match=r"its camera is not true since 2024-05-02T08:00:00Z \(camera_moved"
    ):
        store.current(conditions)


def test_after_the_phone_moved_neither_camera_nor_hand_is_usable(store, saved, conditions, make_stamp):
    saved()
    store.invalidate("phone_moved", make_stamp(2))
    with pytest.raises(Invalidated, match="camera and hand"):
        store.usable(conditions)


def test_what_a_device_does_not_have_cannot_be_lost(store, saved, conditions, make_stamp):
    entry = saved()
    store.invalidate("phone_rebooted", make_stamp(2))
    assert store.current(conditions) == entry


def test_another_camera_costs_only_the_cameras_part(store, saved, conditions):
    saved()
    usable = store.usable(change(conditions, camera=change(conditions.camera, name="cam-9")))
    assert usable.lost == {"camera"}
    assert [type(error) for error in usable.objections] == [CameraMismatch]


def test_an_event_makes_earlier_entries_untrue_too_so_that_no_rollback_gets_around_it(
    store, saved, shifted, conditions, make_stamp
):
    saved(), saved(shifted(0.1))
    store.invalidate("phone_moved", make_stamp(2))
    fresh = saved()
    assert store.current(conditions) == fresh
    with pytest.raises(Invalidated):
        store.rollback(1, conditions)
    assert [line.invalidated_by for line in store.history()] == [("phone_moved",), ("phone_moved",), ()]


def test_the_same_found_again_writes_nothing(store, saved, make_stamp, monkeypatch):
    saved()
    store.invalidate("camera_moved", make_stamp(2))
    before = (store.folder / "state.json").stat()
    store.invalidate("camera_moved", make_stamp(3))
    after = (store.folder / "state.json").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_new_look_at_the_board_keeps_the_hands_part_with_its_board_and_its_age(
    store, saved, calibration, conditions, make_stamp
):
    first = saved(expires_after_days=7.0)
    store.invalidate("camera_moved", make_stamp(2))
    later = change(conditions, now=make_stamp(3), hand=None)
    second = store.save(calibration, later, origin="camera only", parent_id=first.id)
    assert (second.boards, second.measured, second.created) == (first.boards, first.measured, later.now)
    assert store.current(conditions) == second


def test_what_was_lost_of_the_hand_is_not_regained_by_looking_or_solving_again(
    store, saved, calibration, conditions, make_stamp
):
    first = saved()
    store.invalidate("phone_moved", make_stamp(2))
    looked = saved(origin="camera only", parent_id=first.id)
    assert store.usable(conditions).lost == {"hand"}
    solved = saved(origin="solved again", parent_id=looked.id)
    assert store.usable(conditions).lost == {"hand"}
    assert [event.by for event in solved.already_lost] == ["phone_moved"]
    solved_old = saved(origin="solved again", parent_id=first.id)
    assert {part for event in solved_old.already_lost for part in event.lost} == {"camera", "hand"}


def test_taking_measurements_over_needs_a_parent(store, saved):
    with pytest.raises(StoreError, match="name its parent"):
        saved(origin="solved again")
    with pytest.raises(UnknownEntry):
        saved(origin="solved again", parent_id="abcdef01")


def test_a_device_that_nothing_touches_needs_neither_a_verdict_nor_a_parent(store, calibration, conditions):
    alone = change(calibration, hand=None, acceptance=None)
    entry = store.save(alone, change(conditions, hand=None), origin="camera only")
    assert store.current(change(conditions, hand=None)) == entry
    assert (store.history()[0].model_kind, store.history()[0].verdict) == ("camera", None)


# -- pruned -----------------------------------------------------------------------------------------------


def test_pruning_keeps_the_newest_the_one_in_use_and_its_parents(store, saved, conditions):
    saved()
    parent = saved()
    in_use = saved(origin="solved again", parent_id=parent.id)
    saved(), saved(), saved()
    store.rollback(in_use.id, conditions)
    assert store.prune(2) == [1, 4]
    assert [line.number for line in store.history()] == [2, 3, 5, 6]
    assert store.current(conditions) == in_use
    assert saved().number == 7


def test_pruning_to_nothing_is_refused(store, saved):
    saved()
    with pytest.raises(StoreError, match="at least one"):
        store.prune(0)


def test_a_disk_that_takes_few_bytes_at_a_time_still_gets_the_whole_file(
    store, saved, conditions, monkeypatch
):
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:1000]))
    entry = saved()
    assert store.current(conditions) == entry
