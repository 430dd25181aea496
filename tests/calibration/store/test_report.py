"""The report: what a person reads off it, and that it needs nothing but itself."""

import re
import subprocess
import sys
from html.parser import HTMLParser

import cv2
import msgspec
import numpy as np
import pytest

from calibration.acceptance import Acceptance
from calibration.errors import CameraMismatch, StoreError
from calibration.fit_hid import DigitizerModel, HidQuality, PointerModel
from calibration.report import write_report
from calibration.report.figures import error_map, rendered
from calibration.report.page import page as page_of
from calibration.report.palette import LIGHT
from calibration.report.touch_errors import touch_errors
from calibration.result import DigitizerPart, PointerPart, TouchRecord
from calibration.store import Invalidation, diff, unsaved

change = msgspec.structs.replace
QUALITY = HidQuality(leave_one_out_rms_mm=0.03, places=15, outliers=())


class Page(HTMLParser):
    """Everything a browser would fetch, the text, and the rows of all tables."""

    def __init__(self, text):
        super().__init__()
        self.fetched, self.words, self.rows, self.open = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.fetched += [
            value for name, value in attrs if name in ("src", "srcset", "href", "data", "poster")
        ]
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if "style" in self.open:
            return
        self.words.append(data)
        if {"td", "th"} & set(self.open) and self.rows:
            self.rows[-1].append(data.strip())

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    def row(self, name):
        """The cells of the first row of that name, without empty ones."""
        return [cell for cell in next(row for row in self.rows if row and row[0] == name) if cell]


@pytest.fixture(scope="module")
def stored(calibration, conditions):
    return unsaved(calibration, conditions, note="after the new stylus")


@pytest.fixture(scope="module")
def files(stored, tmp_path_factory):
    """A whole report's files by name; made once, for the figures take most of the time."""
    picture = np.full((720, 1280, 3), 90, dtype=np.uint8)
    folder = tmp_path_factory.mktemp("report")
    return {file.name: file for file in write_report(folder, stored, camera_picture=picture, before=stored)}


@pytest.fixture
def text():
    """text(stored, change=None): the page without its figures, which take most of the time."""
    return lambda stored, change=None: Page(page_of(stored, [], None, change))


@pytest.fixture
def refused(calibration, conditions):
    """A calibration whose held-out touches all land 0.6 mm to the right."""
    targets = [(x, y) for x in (3.0, 34.0, 64.0) for y in (3.0, 50.0, 97.0, 144.0)]
    off = Acceptance.of(
        calibration.screen, [((x, y), (x + 0.6, y)) for x, y in targets], p95_limit_mm=0.3, max_limit_mm=0.5
    )
    off = change(off, failing="max 0.60 mm, the limit is 0.5 mm", cause="the phone moved")
    return unsaved(change(calibration, acceptance=off), conditions)


def test_the_page_fetches_nothing(files):
    written = files["report.html"].read_text(encoding="utf-8")
    page = Page(written)
    assert len(page.fetched) == 3 * 3 + 1
    assert all(source.startswith("data:image/") for source in page.fetched)
    assert not re.search(r"url\(|@import", re.sub(r"data:[^\"]+", "", written))


def test_an_accepted_calibration_says_so_with_its_worst_touch(text, stored):
    page = text(stored)
    acceptance = stored.calibration.acceptance
    assert "accepted" in page.text
    assert f"the worst is {acceptance.max_mm:.3f} mm off" in page.text
    assert "refused" not in page.text


def test_a_refused_calibration_says_so_with_the_failing_number_and_its_cause(text, refused):
    page = text(refused)
    assert "refused" in page.text
    assert "max 0.60 mm, the limit is 0.5 mm. Likely cause: the phone moved" in page.text
    assert "accepted" not in page.text


def test_the_numbers_are_those_of_the_calibration_with_units_and_limits(text, stored):
    page = text(stored)
    acceptance, hand = stored.calibration.acceptance, stored.calibration.hand
    assert page.row("p95") == ["p95", f"{acceptance.p95_mm:.3f}", f"mm ≤ {acceptance.p95_limit_mm:.3f}"]
    assert page.row("backlash x") == ["backlash x", "0.151 ± 0.012", "mm"]
    assert page.row("leave-one-out, affine (chosen)")[1:] == [
        f"{hand.quality.leave_one_out_rms_mm['affine']:.3f}",
        "mm",
    ]
    assert page.row("leave-one-out, quadratic")[2] == "mm"
    assert page.row("control marks, max")[1:] == [f"{stored.calibration.camera.marks_max_mm:.3f}", "mm"]
    assert page.row("glass tilt")[2] == "°"
    assert page.row("picture noise, σ")[1:] == ["2.10", "of 255"]
    assert page.row("note") == ["note", "after the new stylus"]
    assert page.row("hand board")[1] == "uid a1b2c3d4e5f60718, firmware 2.1"


def test_every_touch_is_in_the_table(text, stored):
    page = text(stored)
    steps = {touch.step for touch in stored.calibration.touches}
    rows = [row for row in page.rows if len(row) > 2 and row[1] in steps]
    assert [int(row[0]) for row in rows] == list(range(1, len(stored.calibration.touches) + 1))
    assert f"All {len(rows)} touches" in page.text


def test_what_was_not_measured_says_so(text, stored):
    bare = change(
        stored.calibration,
        hand=change(stored.calibration.hand, backlash=None),
        camera=change(stored.calibration.camera, noise_sigma=None, marks=()),
    )
    page = text(change(stored, calibration=bare, created=None, camera=None))
    for name in ("backlash x", "picture noise, σ", "control marks", "bed markers"):
        assert page.row(name) == [name, "not measured"]
    assert page.row("created")[1] == page.row("camera")[1] == "not known"


def test_before_and_after_stand_side_by_side(text, stored, shifted):
    after = change(stored, calibration=shifted(0.25))
    page = text(after, diff(stored, after))
    assert page.row("accuracy p95")[1:] == [f"{stored.calibration.acceptance.p95_mm:.3f}"] * 2 + ["mm"]
    assert page.row("touch map moved, max") == ["touch map moved, max", "0.250", "mm"]


def test_a_name_from_outside_is_shown_and_not_run(stored):
    written = page_of(change(stored, note="<script>alert(1)</script>"), [], None, None)
    assert "<script>" not in written
    assert "<script>alert(1)</script>" in Page(written).text


def test_what_was_untrue_when_it_was_made_is_said(text, stored, make_stamp):
    found = Invalidation(by="phone_moved", at=make_stamp(2), lost=frozenset({"hand"}))
    page = text(change(stored, already_lost=(found,)))
    assert "Its hand was already untrue when this was made: the phone moved." in page.text


def test_a_device_that_nothing_touches_has_a_report_without_a_verdict(stored, tmp_path):
    alone = change(stored.calibration, hand=None, acceptance=None)
    files = write_report(
        tmp_path / "new" / "folder", change(stored, calibration=alone), camera_picture=None, before=None
    )
    assert [file.name for file in files] == ["report.html"]
    assert "not judged" in Page(files[0].read_text(encoding="utf-8")).text


@pytest.mark.parametrize("part", ["digitizer", "pointer"])
def test_a_hid_boards_calibration_has_its_own_table(text, stored, part):
    touch = TouchRecord(step="grid", sent=(0.5, 0.5), press_z_mm=None, seen_mm=(34.0, 70.0), whole=True)
    made = {
        "digitizer": DigitizerPart(
            model=DigitizerModel(x=(0.0, 1.0, 0.0), y=(0.0, 0.0, 1.0)), quality=QUALITY, touches=(touch,)
        ),
        "pointer": PointerPart(
            model=PointerModel(mm_per_count_x=0.1, mm_per_count_y=0.1, step_counts=8, home_counts=4000),
            quality=QUALITY,
            touches=(touch,),
        ),
    }
    page = text(change(stored, calibration=change(stored.calibration, hand=None, **{part: made[part]})))
    assert {"digitizer": "HID touch screen", "pointer": "Relative pointer"}[part] in page.text
    assert page.row("leave-one-out") == ["leave-one-out", "0.030", "mm"]


# -- figures ----------------------------------------------------------------------------------------------


def test_the_figures_are_pictures_with_something_in_them(files):
    assert list(files) == ["report.html", "error-map.png", "scatter.png", "distribution.png", "camera.png"]
    for name in list(files)[1:]:
        figure = cv2.imread(str(files[name]))
        assert min(figure.shape[:2]) > 400
        assert len(np.unique(figure[::5, ::5].reshape(-1, 3), axis=0)) > 50


def test_the_error_map_turns_to_the_limits_colour_where_touches_miss_it(stored, refused):
    red = np.array((0x1E, 0x26, 0xB3))

    def limit_coloured(what):
        made = what.calibration
        drawn = rendered(error_map(made.screen, touch_errors(made), made.acceptance, LIGHT), "png")
        figure = cv2.imdecode(np.frombuffer(drawn, np.uint8), cv2.IMREAD_COLOR).astype(int)
        return float((np.abs(figure - red).sum(axis=2) < 8).mean())

    assert limit_coloured(stored) < 0.005
    assert limit_coloured(refused) > 0.3


def test_held_out_errors_are_those_of_the_acceptance_and_fit_errors_those_of_the_model(calibration):
    errors = touch_errors(calibration)
    held_out = [error.distance_mm for error in errors if error.kind == "held out"]
    assert held_out == pytest.approx([touch.error_mm for touch in calibration.acceptance.touches])
    fit = [error.distance_mm for error in errors if error.kind == "fit"]
    assert len(fit) > 15
    assert np.sqrt(np.square(fit).mean()) < calibration.hand.quality.leave_one_out_rms_mm["affine"]


def test_touches_lie_right_of_a_model_that_wants_the_hand_sent_further_right(shifted):
    errors = [error for error in touch_errors(shifted(0.5)) if error.kind == "fit"]
    x_mm, y_mm = np.mean([error.error_mm for error in errors], axis=0)
    # The fixture's hand is turned by 2 degrees against the screen.
    assert x_mm == pytest.approx(0.5, abs=0.02)
    assert abs(y_mm) < 0.03


def test_touches_that_no_fit_may_use_are_no_fit_errors(calibration):
    usual = next(touch for touch in calibration.touches if touch.step == "grid")
    others = [change(usual, step=step) for step in ("verify", "acceptance")]
    others += [change(usual, replaced=True)]
    others += [
        change(usual, approach=("high", "low")),
        change(usual, whole=False),
        change(usual, seen_mm=None),
    ]
    dropped = change(usual, outlier=True)

    def kinds(*touches):
        hand = change(calibration.hand, touches=touches)
        return [error.kind for error in touch_errors(change(calibration, hand=hand, acceptance=None))]

    assert kinds(usual, *others) == ["fit"]
    assert kinds(dropped) == ["dropped"]


def test_equal_calibrations_give_equal_files(files, stored, tmp_path):
    picture = np.full((720, 1280, 3), 90, dtype=np.uint8)
    for again in write_report(tmp_path, stored, camera_picture=picture, before=stored):
        assert again.read_bytes() == files[again.name].read_bytes()


# -- what goes wrong --------------------------------------------------------------------------------------


def test_a_picture_of_another_mode_is_refused_and_nothing_is_written(tmp_path, stored):
    with pytest.raises(CameraMismatch, match=r"640 x 480.*1280 x 720"):
        write_report(
            tmp_path / "report", stored, camera_picture=np.zeros((480, 640, 3), np.uint8), before=None
        )
    assert not (tmp_path / "report").exists()


def test_a_folder_that_cannot_be_written_is_named(tmp_path, stored):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(StoreError, match="taken"):
        write_report(tmp_path / "taken", stored, camera_picture=None, before=None)


def test_the_plotting_library_is_loaded_by_no_one_who_only_wants_the_verb():
    check = (
        "import sys, calibration, calibration.store\nfrom calibration.report import write_report\n"
        "print(sorted({'matplotlib', 'jinja2'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
