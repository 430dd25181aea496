from dataclasses import replace

import msgspec
import numpy as np
import pytest

from calibration.acceptance import Acceptance
from calibration.errors import FitRefused, MarksOff
from calibration.fit_camera import fit_camera
from calibration.models import ContactPlane
from calibration.options import Options
from calibration.result import CameraPart, CornerRecord, DeviceCalibration, HandPart, MarkRecord, TouchRecord
from calibration.solve import (
    digitizer_target,
    hand_target,
    pointer_target,
    solve_again,
    solve_backlash,
    solve_digitizer,
    solve_hand,
    solve_pointer,
)
from calibration.targets import charuco_target, control_marks_mm

SIZE = (1280, 720)
TURN = np.array([[0.9995, -0.03], [0.031, 1.004]])
OFFSET = np.array([40.0, 12.0])
PLAY_MM = (0.14, 0.19)


def pairs(places):
    return [(float(x), float(y)) for x, y in places]


def to_hand(places):
    """Hand mm for screen mm, with an arm that bows."""
    unit = np.asarray(places) / [34.0, 73.65] - 1.0
    return np.asarray(places) @ TURN.T + OFFSET + 0.15 * np.column_stack([unit[:, 1] ** 2, unit[:, 0] * 0.0])


def grid_of(columns, rows, inset_mm):
    x, y = np.meshgrid(
        np.linspace(inset_mm, 68.0 - inset_mm, columns), np.linspace(inset_mm, 147.3 - inset_mm, rows)
    )
    return np.column_stack([x.ravel(), y.ravel()])


def touch(step, sent, seen, **fields):
    return TouchRecord(
        step=step, sent=pairs([sent])[0], press_z_mm=1.0, seen_mm=pairs([seen])[0], whole=True, **fields
    )


def camera_part(screen, lens, noise_px=0.04, shift_px=0.0):
    target = charuco_target(screen.width_px, screen.height_px)
    board_mm = screen.px_to_mm(target.corners_px())
    random = np.random.default_rng(2)
    px = lens.project(board_mm) + random.normal(0.0, noise_px, board_mm.shape) + shift_px
    model, quality = fit_camera(screen, SIZE, np.arange(len(px)), board_mm, px, 0.35)
    drawn = control_marks_mm(screen.width_mm, screen.height_mm)
    seen = model.unproject(lens.project(drawn))
    return CameraPart(
        model=model,
        quality=quality,
        corners=tuple(CornerRecord(id=i, px=at, looks=5) for i, at in enumerate(pairs(px))),
        marks=tuple(MarkRecord(drawn_mm=d, seen_mm=s) for d, s in zip(drawn, pairs(seen), strict=True)),
    )


def hand_touches(screen, random):
    """The fit's touches, one of them bad, and those of the play."""
    places = grid_of(4, 6, 7.0)
    seen = places + random.normal(0.0, 0.03, places.shape)
    seen[9] += [0.9, -0.4]
    touches = [
        touch("grid", h, s, target_mm=t) for h, s, t in zip(to_hand(places), seen, pairs(places), strict=True)
    ]
    for n in range(9):
        place = np.array([14.0 + 4.0 * n, 60.0])
        sides = [("low", "low"), ("high", "low"), ("low", "high")][n % 3]
        late = np.array([PLAY_MM[axis] if sides[axis] == "high" else 0.0 for axis in range(2)])
        landed = place + np.linalg.solve(TURN, late) + random.normal(0.0, 0.01, 2)
        touches.append(touch("backlash", to_hand([place])[0], landed, approach=sides))
    return touches


@pytest.fixture(scope="session")
def whole(calibrated):
    """A calibration with everything in it that can be solved again: (calibration, its lens)."""
    rig, accepted, _ = calibrated
    screen, lens, random = accepted.screen, rig.lens, np.random.default_rng(5)
    touches = hand_touches(screen, random)
    model, quality, touches = solve_hand(screen, touches)
    held_out = np.array([(float(x), float(y)) for x in (3.0, 22.0, 45.0, 65.0) for y in (3.0, 70.0, 144.3)])
    sent = model.map_grid(screen.mm_to_grid(held_out))
    landed = held_out + random.normal(0.0, 0.03, held_out.shape)
    judged = [
        touch("acceptance", h, s, target_mm=t) for h, s, t in zip(sent, landed, pairs(held_out), strict=True)
    ]
    hand = HandPart(
        model=model,
        contact=ContactPlane(a=0.01, b=0.0, c=2.0),
        overtravel_mm=0.3,
        overtravel_limit_mm=1.5,
        quality=quality,
        touches=(*touches, *judged),
        approach_mm=0.6,
        backlash=solve_backlash(screen, model, touches),
    )
    verdict = Acceptance.of(
        screen, list(zip(pairs(held_out), pairs(landed), strict=True)), p95_limit_mm=0.3, max_limit_mm=0.5
    )
    return DeviceCalibration(
        screen=screen, camera=camera_part(screen, lens), hand=hand, acceptance=verdict
    ), lens


def test_unchanged_points_give_the_same_calibration_bit_for_bit(whole):
    calibration, _ = whole
    stored = msgspec.json.decode(msgspec.json.encode(calibration), type=DeviceCalibration)
    again = solve_again(stored)
    assert again == calibration
    assert msgspec.json.encode(again) == msgspec.json.encode(calibration)


def test_what_the_procedure_accepted_is_solved_to_the_same_again(calibrated):
    _, accepted, _ = calibrated
    assert msgspec.json.encode(solve_again(accepted)) == msgspec.json.encode(accepted)


def test_the_play_and_the_outlier_come_out_of_the_stored_touches(whole):
    calibration, _ = whole
    forgotten = msgspec.structs.replace(
        calibration.hand,
        backlash=None,
        touches=tuple(msgspec.structs.replace(t, outlier=False) for t in calibration.hand.touches),
    )
    again = solve_again(msgspec.structs.replace(calibration, hand=forgotten))
    assert [n for n, t in enumerate(again.touches) if t.outlier] == [9]
    assert again.hand.backlash.x_mm == pytest.approx(PLAY_MM[0], abs=0.03)
    assert again.hand.backlash.y_mm == pytest.approx(PLAY_MM[1], abs=0.03)


def test_touches_from_the_high_side_do_not_bend_the_model(whole, screen):
    calibration, _ = whole
    without = [t for t in calibration.touches if "high" not in t.approach]
    assert solve_hand(screen, without)[0] == calibration.hand.model


def test_a_touch_that_was_made_again_serves_no_fit_any_more(whole, screen):
    calibration, _ = whole
    bad = touch("grid", calibration.touches[0].sent, (7.2, 7.2), replaced=True)
    assert solve_hand(screen, [bad, *calibration.touches])[0] == calibration.hand.model


def test_held_out_touches_serve_no_fit(whole, screen):
    calibration, _ = whole
    for step in ("acceptance", "verify"):
        more = touch(step, calibration.touches[0].sent, (7.2, 7.2))
        assert solve_hand(screen, [*calibration.touches, more])[0] == calibration.hand.model


def test_held_out_touches_judge_a_model_that_they_were_not_sent_with(whole, screen):
    """A model that is wrong by 0.4 mm at the time; its held-out touches landed 0.4 mm off. Solved again it is right."""
    calibration, _ = whole
    wrong = np.array([0.4, 0.0])
    touches = tuple(
        msgspec.structs.replace(
            t,
            sent=pairs([np.array(t.sent) + wrong])[0],
            seen_mm=pairs([np.array(t.seen_mm) + np.linalg.solve(TURN, wrong)])[0],
        )
        if t.step == "acceptance"
        else t
        for t in calibration.touches
    )
    held_out = [t for t in touches if t.step == "acceptance"]
    refused = Acceptance.of(
        screen, [(t.target_mm, t.seen_mm) for t in held_out], p95_limit_mm=0.3, max_limit_mm=0.5
    )
    assert not refused.passed
    again = solve_again(
        msgspec.structs.replace(
            calibration,
            hand=msgspec.structs.replace(calibration.hand, touches=touches),
            acceptance=refused,
        )
    )
    assert again.acceptance.passed
    assert again.acceptance.max_mm == pytest.approx(calibration.acceptance.max_mm, abs=0.02)


def test_dots_follow_the_camera_model(whole):
    """Corners that were measured 3 px to one side: solved again without that, every dot is where it really was."""
    calibration, lens = whole
    off = camera_part(calibration.screen, replace(lens, shift_mm=(2.4, -1.6)))
    true, model = calibration.camera, calibration.camera.model
    px = model.project(np.array([t.seen_mm for t in calibration.touches]))
    shifted = tuple(
        msgspec.structs.replace(t, seen_mm=at)
        for t, at in zip(calibration.touches, pairs(off.model.unproject(px)), strict=True)
    )
    landed = {t.seen_mm: s.seen_mm for t, s in zip(calibration.touches, shifted, strict=True)}
    judged = [(h.target_mm, landed[h.landed_mm]) for h in calibration.acceptance.touches]
    stored = msgspec.structs.replace(
        calibration,
        camera=msgspec.structs.replace(true, model=off.model),
        hand=msgspec.structs.replace(calibration.hand, touches=shifted),
        acceptance=Acceptance.of(calibration.screen, judged, p95_limit_mm=0.3, max_limit_mm=0.5),
    )
    assert not stored.acceptance.passed
    again = solve_again(
        msgspec.structs.replace(stored, camera=msgspec.structs.replace(stored.camera, marks=()))
    )
    assert again.camera.model == model
    seen = np.array([t.seen_mm for t in again.touches])
    assert np.abs(seen - np.array([t.seen_mm for t in calibration.touches])).max() < 1e-6
    assert again.acceptance.max_mm == pytest.approx(calibration.acceptance.max_mm, abs=1e-3)


def test_a_camera_that_the_marks_refute_is_refused(whole):
    calibration, lens = whole
    camera = camera_part(calibration.screen, lens, shift_px=0.8)
    with pytest.raises(MarksOff, match="shifted"):
        solve_again(msgspec.structs.replace(calibration, camera=camera), Options(marks_mean_max_mm=0.06))


def test_held_out_touches_without_a_record_are_missed(whole):
    calibration, _ = whole
    fewer = msgspec.structs.replace(calibration.hand, touches=calibration.hand.touches[:-1])
    with pytest.raises(FitRefused, match="1 of 12 held-out"):
        solve_again(msgspec.structs.replace(calibration, hand=fewer))


def test_a_camera_alone_is_solved_alone(whole):
    calibration, _ = whole
    alone = DeviceCalibration(screen=calibration.screen, camera=calibration.camera)
    assert solve_again(alone) == alone


def hid_calibration(calibration, part, target_of, held_out, name):
    verdict = Acceptance.of(
        calibration.screen,
        [(target_of(t), t.seen_mm) for t in held_out],
        p95_limit_mm=0.3,
        max_limit_mm=0.5,
    )
    return DeviceCalibration(
        screen=calibration.screen,
        camera=calibration.camera,
        acceptance=verdict,
        **{name: msgspec.structs.replace(part, touches=(*part.touches, *held_out))},
    )


def test_a_digitizer_is_solved_to_the_same_again(whole, screen):
    calibration, _ = whole
    random = np.random.default_rng(8)
    places = grid_of(3, 4, 9.0)
    fractions = 0.02 + 0.95 * places / [68.0, 147.3]
    seen = places + random.normal(0.0, 0.02, places.shape)
    part = solve_digitizer(screen, [touch("grid", f, s) for f, s in zip(fractions, seen, strict=True)])
    part = msgspec.structs.replace(part, turn="landscape_right", area="keeps")
    held_out = []
    for place in grid_of(3, 4, 4.0):
        grid = screen.mm_to_grid(place[None, :])[0]
        sent = part.model.grid_to_fraction(*grid)
        held_out.append(
            touch("acceptance", sent, place + random.normal(0.0, 0.02, 2), target_mm=pairs([place])[0])
        )
    stored = hid_calibration(calibration, part, digitizer_target(screen, part.model), held_out, "digitizer")
    assert [t.target_mm for t in stored.acceptance.touches] == [t.target_mm for t in held_out]
    assert solve_again(stored) == stored


def test_a_pointer_is_solved_to_the_same_again(whole, screen):
    calibration, _ = whole
    random = np.random.default_rng(9)
    counts = np.round(grid_of(3, 4, 9.0) / 0.11)
    seen = 0.4 + counts * 0.11 + random.normal(0.0, 0.02, counts.shape)
    part = solve_pointer(
        screen,
        [touch("grid", c, s) for c, s in zip(counts, seen, strict=True)],
        step_counts=4,
        home_counts=4000,
    )
    held_out = []
    for place in grid_of(3, 4, 4.0):
        sent = part.model.mm_to_counts(*place)
        landed = 0.4 + np.array(sent) * 0.11
        held_out.append(touch("acceptance", sent, landed, target_mm=pairs([place])[0]))
    stored = hid_calibration(calibration, part, pointer_target(part.model), held_out, "pointer")
    assert [t.target_mm for t in stored.acceptance.touches] == [t.target_mm for t in held_out]
    assert solve_again(stored) == stored


def test_a_hand_that_leads_elsewhere_says_where_it_would_have_sent(whole, screen):
    calibration, _ = whole
    there = hand_target(screen, calibration.hand.model)
    sent = calibration.hand.model.grid_to_hand(500.0, 500.0)
    assert there(touch("verify", sent, (1.0, 1.0))) == pytest.approx((34.0, 73.65), abs=1e-6)
