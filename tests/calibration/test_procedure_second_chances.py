"""What a person, or an unattended rig, may have done again, and where it ends."""

import numpy as np
import pytest

from calibration import Options
from calibration.aims import aim_of
from calibration.errors import AcceptanceFailed, NoDot, PageChanged, Rejected, RigRefused
from calibration.places import held_out_places
from calibration.procedure.fitting_places import FittingPlaces
from calibration.procedure.glass import Glass
from calibration.procedure.judging import judge
from calibration.procedure.place import touch_place, touch_series
from calibration.rig import HandTouch, Judge, RedoPoints
from calibration.solve import fitted

PLACES = [(10.0, 20.0), (50.0, 20.0), (50.0, 120.0), (10.0, 120.0)]
ONE_LOOK = Options(mark_looks=1)


@pytest.fixture
def aim(calibrated):
    """How the default calibration sends the hand; for a fit it may be asked again after a miss."""
    product = aim_of(calibrated[1])
    return lambda place, missed=0: product(place)


def judged_by(make_rig, rig_kind, *answers):
    """A rig whose person gives these answers to the verdicts, one after the other."""
    left = list(answers)

    def ask(self, request):
        answer = rig_kind.ask(self, request)
        return left.pop(0) if isinstance(request, Judge) else answer

    return make_rig(kind=type("AttendedRig", (rig_kind,), {"ask": ask}))


@pytest.mark.parametrize("mishap", ["missed", "double", "notification"])
def test_a_spoilt_touch_is_asked_about_and_made_again_on_a_clean_place(mishap, start_run, make_rig, aim):
    rig = make_rig(mishaps={0: mishap}, banner_looks=3)
    run = start_run(rig, ONE_LOOK)
    place, dot = touch_place(run, "grid", 7, (30.0, 60.0), 3.0, aim)
    assert [(question.step, question.point) for question in rig.questions] == [("grid", 7)]
    assert len(rig.touches) == 2
    assert np.hypot(dot.x_mm - rig.landed[1][0], dot.y_mm - rig.landed[1][1]) < 0.05
    others = [spot for spot in rig.dots if spot != rig.landed[1]]
    assert all(np.hypot(place[0] - x, place[1] - y) > 2.4 for x, y in others)
    assert [record.whole for record in run.session.records] == [False, True]


SERIES = [(1, (10.0, 20.0)), (2, (50.0, 100.0)), (3, (20.0, 60.0)), (4, (60.0, 130.0))]


def test_touches_of_a_series_come_from_each_others_places_and_are_seen_in_one_look(start_run, make_rig, aim):
    rig = make_rig()
    run = start_run(rig, ONE_LOOK)
    looks = rig.looks
    touched = touch_series(run, "acceptance", SERIES, 3.0, aim)
    assert rig.looks == looks + 1
    assert [number for number, _ in SERIES] == [1, 2, 3, 4]
    for (place, dot), landed, (_, wanted) in zip(touched, rig.landed, SERIES, strict=True):
        assert place == wanted
        assert np.hypot(dot.x_mm - landed[0], dot.y_mm - landed[1]) < 0.05


@pytest.mark.parametrize("mishap", ["missed", "double", "notification"])
@pytest.mark.parametrize("at", [0, 2])
def test_a_spoilt_touch_of_a_series_has_the_whole_series_made_again(mishap, at, start_run, make_rig, aim):
    rig = make_rig(mishaps={at: mishap}, banner_looks=3)
    run = start_run(rig, ONE_LOOK)
    touched = touch_series(run, "acceptance", SERIES, 3.0, aim)
    assert [(question.step, question.point) for question in rig.questions] == [("acceptance", 1)]
    assert len(rig.touches) == 8
    for (_, dot), landed in zip(touched, rig.landed[4:], strict=True):
        assert np.hypot(dot.x_mm - landed[0], dot.y_mm - landed[1]) < 0.05
    assert [record.seen_mm is not None for record in run.session.records] == [False] * 4 + [True] * 4


def test_a_touch_far_from_where_it_was_aimed_is_not_taken_for_another(start_run, make_rig, aim):
    rig = make_rig()
    run = start_run(rig, Options(mark_looks=1, redo_max=0))
    with pytest.raises(NoDot, match="no dot within 2"):
        touch_series(
            run, "acceptance", SERIES[:2], 3.0, lambda place, missed: aim((place[0] + 3.0, place[1]))
        )


def test_a_notification_that_slid_away_leaves_the_places_under_it_usable(start_run, make_rig, aim):
    rig = make_rig(mishaps={0: "notification"}, banner_looks=5)
    run = start_run(rig, ONE_LOOK)
    looks = rig.looks
    touch_place(run, "grid", 1, (30.0, 60.0), 3.0, aim)
    assert rig.looks - looks == 1 + 5 + 1
    place, _ = touch_place(run, "grid", 2, (30.0, 65.0), 3.0, aim)
    assert np.hypot(place[0] - 30.0, place[1] - 65.0) < 3.0


def test_a_notification_that_stays_is_waited_for_only_so_long(start_run, make_rig, aim):
    rig = make_rig(mishaps={0: "notification"}, banner_looks=1000)
    run = start_run(rig, ONE_LOOK)
    with pytest.raises(PageChanged):
        touch_place(run, "grid", 1, (30.0, 60.0), 3.0, aim)
    assert rig.looks <= 12
    assert len(rig.touches) == 1


def test_a_missed_touch_of_the_height_search_is_found_out(start_run, make_rig, calibrated):
    clean, missing = make_rig(), make_rig(mishaps={8: "missed"})
    heights = []
    for rig in (clean, missing):
        run = start_run(rig, ONE_LOOK)
        glass = Glass(run, rig.hand)
        glass.find_first_contact()
        heights.append(glass._sites[0].contact_mm)
    assert heights[1] == pytest.approx(heights[0], abs=0.12)


def test_places_touched_again_replace_their_former_touches_in_the_fit(rig_kind, start_run, make_rig, aim):
    rig = judged_by(make_rig, rig_kind, RedoPoints((2, 4)), "accept")
    run = start_run(rig, ONE_LOOK)
    places = FittingPlaces(run, PLACES, aim)
    places.touch_all()
    used = []

    def fit():
        used.append(fitted(run.session.records))
        return aim

    acceptance = judge(run, places, fit)
    assert used[0] == [0, 1, 2, 3]
    again = [number for number in used[1] if number > 3]
    assert used[1][:2] == [0, 2]
    assert len(again) == 2
    for number, place in zip(again, (PLACES[1], PLACES[3]), strict=True):
        seen = run.session.records[number].seen_mm
        assert 2.4 < np.hypot(seen[0] - place[0], seen[1] - place[1]) < 7.0
    first, second = (question.acceptance for question in rig.questions)
    assert acceptance == second
    for touch in second.touches:
        fresh = min(
            np.hypot(touch.target_mm[0] - x, touch.target_mm[1] - y)
            for x, y in [t.landed_mm for t in first.touches]
        )
        assert fresh > 2.4
    # But for those that had to step aside for older dots, they are the second verdict's own places.
    own = set(held_out_places(run.screen, run.options, 1)) & {touch.target_mm for touch in second.touches}
    assert len(own) >= 5
    assert rig.questions[0].places_mm == tuple(PLACES)


def test_a_person_who_says_no_to_a_good_verdict_rejects_it(rig_kind, start_run, make_rig, aim):
    run = start_run(judged_by(make_rig, rig_kind, "reject"), ONE_LOOK)
    places = FittingPlaces(run, PLACES[:1], aim)
    with pytest.raises(Rejected, match="the calibration before stays"):
        judge(run, places, lambda: aim)


def test_a_person_cannot_accept_what_the_verdict_refuses(rig_kind, start_run, make_rig, aim):
    rig = judged_by(make_rig, rig_kind, "accept")
    run = start_run(rig, Options(mark_looks=1, p95_max_mm=0.02, acceptance_max_mm=0.05))

    def beside(place):
        touch = aim(place)
        return HandTouch(touch.x_mm + 0.2, touch.y_mm, touch.press_z_mm)

    with pytest.raises(AcceptanceFailed, match=r"the limit is 0\.05 mm"):
        judge(run, FittingPlaces(run, PLACES[:1], aim), lambda: beside)
    assert rig.questions[-1].acceptance.verdict == "refused"


@pytest.mark.parametrize("points", [(5,), (0,), ()])
def test_places_that_there_are_not_cannot_be_touched_again(points, start_run, make_rig, aim):
    run = start_run(make_rig(), ONE_LOOK)
    places = FittingPlaces(run, PLACES, aim)
    with pytest.raises(RigRefused, match="numbered 1 to 4"):
        places.redo(points)


def test_each_verdict_has_fresh_places_within_the_screen(screen):
    first, second = (set(held_out_places(screen, Options(), number)) for number in (0, 1))
    corners = first & second
    assert len(corners) == 4
    assert len(first) == len(second) == 12
