import os

import msgspec
import pytest

from calibration import store
from calibration.errors import (
    BoardMismatch,
    CalibrationMissing,
    DeviceMismatch,
    SchemaMismatch,
    StoreCorrupt,
    StoreError,
)

KEY = {"device_id": "phone-3", "board_uid": "a1b2c3d4e5f60718"}


@pytest.fixture
def calibration(calibrated):
    return calibrated[1]


@pytest.fixture
def other(calibration):
    return msgspec.structs.replace(calibration, overtravel_mm=0.2)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "phone-3.json"


def test_what_was_saved_is_loaded_to_the_last_bit_with_all_raw_measurements(calibration, path):
    store.save(path, calibration, **KEY)
    loaded = store.load(path, **KEY)
    assert loaded.calibration == calibration
    assert loaded.calibration.hand.grid_to_hand(123.4, 567.8) == calibration.hand.grid_to_hand(123.4, 567.8)
    assert len(loaded.calibration.touches) == len(calibration.touches) > 30
    assert len(loaded.calibration.corners) == 112


def test_a_missing_file_says_what_to_do(path):
    with pytest.raises(CalibrationMissing, match="calibrate it"):
        store.load(path, **KEY)


def test_a_calibration_of_another_board_is_refused_and_both_are_named(calibration, path):
    store.save(path, calibration, **KEY)
    with pytest.raises(BoardMismatch, match=r"a1b2c3d4e5f60718.*ffff"):
        store.load(path, device_id="phone-3", board_uid="ffff")


def test_a_calibration_of_another_phone_is_refused(calibration, path):
    store.save(path, calibration, **KEY)
    with pytest.raises(DeviceMismatch, match=r"phone-3.*phone-4"):
        store.load(path, device_id="phone-4", board_uid=KEY["board_uid"])


def test_an_edited_number_is_refused(calibration, path):
    store.save(path, calibration, **KEY)
    path.write_bytes(path.read_bytes().replace(b'"overtravel_mm":0.3', b'"overtravel_mm":0.9'))
    with pytest.raises(StoreCorrupt, match="edited or damaged"):
        store.load(path, **KEY)


def test_a_file_cut_short_anywhere_is_refused(calibration, path):
    store.save(path, calibration, **KEY)
    whole = path.read_bytes()
    for length in (0, 1, 50, 200, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(StoreCorrupt):
            store.load(path, **KEY)


def test_another_schema_is_refused_even_when_its_shape_is_unknown(path):
    body = b'{"schema":7,"deviceId":"phone-3","boardUid":"a1b2c3d4e5f60718","lens":{"of":"tomorrow"}}'
    path.write_bytes(b'{"checksum":"%s","body":%s}' % (store._checksum(body).encode(), body))
    with pytest.raises(SchemaMismatch, match="schema 7"):
        store.load(path, **KEY)


def test_a_whole_file_with_a_false_shape_is_refused(path):
    body = b'{"schema":1,"deviceId":"phone-3","boardUid":"a1b2c3d4e5f60718","calibration":{}}'
    path.write_bytes(b'{"checksum":"%s","body":%s}' % (store._checksum(body).encode(), body))
    with pytest.raises(StoreCorrupt):
        store.load(path, **KEY)


def test_a_number_that_is_not_finite_is_not_saved_over_a_good_calibration(calibration, path):
    store.save(path, calibration, **KEY)
    broken = msgspec.structs.replace(calibration, overtravel_mm=float("nan"))
    with pytest.raises(StoreError, match="not finite"):
        store.save(path, broken, **KEY)
    assert store.load(path, **KEY).calibration == calibration


@pytest.mark.parametrize("call", ["open", "write", "fsync", "replace"])
def test_a_save_that_fails_at_its_nth_call_leaves_the_old_or_the_new_file_whole(
    call, calibration, other, path, monkeypatch
):
    store.save(path, calibration, **KEY)
    real, countdown = getattr(os, call), 0

    def failing(*arguments, **named):
        nonlocal countdown
        countdown -= 1
        if countdown == 0:
            raise OSError(28, "No space left on device")
        return real(*arguments, **named)

    monkeypatch.setattr(os, call, failing)
    for n in range(1, 10):
        countdown = n
        try:
            store.save(path, other, **KEY)
        except OSError:
            countdown = 0
            assert store.load(path, **KEY).calibration in (calibration, other)
        else:
            break
    assert n > 1
    countdown = 0
    assert store.load(path, **KEY).calibration == other


def test_a_disk_that_takes_few_bytes_at_a_time_still_gets_the_whole_file(calibration, path, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:1000]))
    store.save(path, calibration, **KEY)
    assert store.load(path, **KEY).calibration == calibration
