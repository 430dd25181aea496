"""What a technician is given: the page, the pictures, the bed's marker sheet and the QR code."""

import base64
import json
import re
import struct
import xml.etree.ElementTree as ElementTree

import cv2
import numpy as np
import pytest

from calibration.errors import TargetImpossible, TargetsNotWritten
from calibration.screen import ScreenGeometry
from calibration.targets import (
    BED_DICTIONARY,
    BED_MARKER_IDS,
    BED_MARKER_MM,
    DICTIONARY,
    DOT_DIAMETER_MM,
    DOTS_BACKGROUND_LEVEL,
    DOUBLE_TAP_ASIDE_MM,
    DOUBLE_TAP_MS,
    TURNS,
    bed_markers_png,
    bed_markers_svg,
    control_marks_mm,
    draw_bed_markers,
    draw_charuco,
    draw_dots,
    page_html,
    turned_picture,
    turned_points,
)
from calibration.targets.bed import SHEET_DPI
from calibration.targets.files import qr_terminal, write_targets

SCREEN = ScreenGeometry(width_px=1080, height_px=2340, width_mm=68.0, height_mm=147.3)
TABLET = ScreenGeometry(width_px=1620, height_px=2160, width_mm=155.0, height_mm=206.7)


def settings_of(page):
    return json.loads(re.search(r'<script type="application/json" id="settings">(.*?)</script>', page)[1])


def test_the_page_loads_nothing_from_anywhere():
    page = page_html(SCREEN)
    for loading in (
        r"https?://",
        r"//[a-z]",
        r"<link(?! rel=\"icon\" href=\"data:,\")",
        r"\bsrc\s*=\s*[\"']",
        r"@import",
    ):
        # A comment's slashes are followed by a space.
        assert not re.search(loading, page), loading
    assert not re.search(r"url\(", page)
    assert "default-src 'none'" in page
    assert not re.search(r"\{\{\w+\}\}", page)


@pytest.mark.parametrize("screen", [SCREEN, TABLET])
def test_the_page_carries_the_numbers_of_the_shared_definition(screen):
    settings = settings_of(page_html(screen))
    width, height = screen.width_mm, screen.height_mm
    assert settings["screen"] == {
        "widthPx": screen.width_px,
        "heightPx": screen.height_px,
        "widthMm": width,
        "heightMm": height,
    }
    dots = settings["dots"]
    assert (dots["backgroundLevel"], dots["diameterMm"]) == (DOTS_BACKGROUND_LEVEL, DOT_DIAMETER_MM)
    assert (dots["doubleTapMs"], dots["doubleTapAsideMm"]) == (DOUBLE_TAP_MS, DOUBLE_TAP_ASIDE_MM)
    for turn in TURNS:
        marks = dots["landscapeMarksMm" if turn.startswith("landscape") else "portraitMarksMm"]
        on_glass = turned_points(np.array(marks), width, height, turn)
        assert np.allclose(on_glass, control_marks_mm(width, height, turn))


@pytest.mark.parametrize("screen", [SCREEN, TABLET])
@pytest.mark.parametrize("turn", TURNS)
def test_the_board_in_the_page_is_the_shared_drawing_to_the_pixel(screen, turn):
    boards = settings_of(page_html(screen))["board"]
    url = boards["landscape" if turn.startswith("landscape") else "portrait"]
    png = base64.b64decode(url.removeprefix("data:image/png;base64,"))
    page = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)
    assert np.array_equal(turned_picture(page, turn), draw_charuco(screen.width_px, screen.height_px, turn))


@pytest.mark.parametrize("size_px", [(300, 2000), (100, 200)])
def test_a_screen_that_the_targets_do_not_fit_gets_no_page_and_no_file(tmp_path, size_px):
    screen = ScreenGeometry(
        width_px=size_px[0], height_px=size_px[1], width_mm=size_px[0] / 5, height_mm=size_px[1] / 5
    )
    with pytest.raises(TargetImpossible):
        page_html(screen)
    with pytest.raises(TargetImpossible):
        write_targets(tmp_path / "out", screen)
    assert not (tmp_path / "out").exists()


def test_everything_is_written_as_it_is_drawn(tmp_path):
    written = write_targets(tmp_path / "targets", SCREEN)
    assert written.page.read_text(encoding="utf-8") == page_html(SCREEN)
    for turn in TURNS:
        assert np.array_equal(cv2.imread(str(written.boards[turn])), draw_charuco(1080, 2340, turn))
        dots = draw_dots(1080, 2340, 68.0, 147.3, turn=turn)
        assert np.array_equal(cv2.imread(str(written.dots[turn])), dots)
    assert written.qr is None
    said = {written.page, *written.boards.values(), *written.dots.values(), written.bed_png, written.bed_svg}
    assert set((tmp_path / "targets").iterdir()) == said


def test_the_qr_code_opens_the_page(tmp_path):
    url = "http://192.168.1.20:8090/pC1hZ2VzLW9mLWEtdG9rZW4/"
    written = write_targets(tmp_path, SCREEN, url)
    assert cv2.QRCodeDetector().detectAndDecode(cv2.imread(str(written.qr)))[0] == url
    assert len(qr_terminal(url).splitlines()) > 15


def test_a_folder_that_cannot_be_written_to_is_refused_by_name(tmp_path):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    with pytest.raises(TargetsNotWritten, match=re.escape(str(in_the_way))):
        write_targets(in_the_way / "targets", SCREEN)


def found_markers(picture, dictionary):
    detector = cv2.aruco.ArucoDetector(cv2.aruco.getPredefinedDictionary(dictionary))
    corners, ids, _ = detector.detectMarkers(picture)
    return {} if ids is None else dict(zip(np.asarray(ids).ravel().tolist(), corners, strict=True))


def test_the_bed_markers_are_found_at_their_size_and_never_taken_for_the_board_s():
    sheet = draw_bed_markers(300)
    found = found_markers(sheet, BED_DICTIONARY)
    assert set(found) == set(BED_MARKER_IDS)
    for corners in found.values():
        edges = np.linalg.norm(
            np.diff(corners.reshape(4, 2), axis=0, append=corners.reshape(4, 2)[:1]), axis=1
        )
        # Detected corners are pixels of the marker itself: an edge is a pixel longer.
        assert (edges + 1) * 25.4 / 300 == pytest.approx(BED_MARKER_MM, abs=0.15)
    assert found_markers(sheet, DICTIONARY) == {}
    assert not set(BED_MARKER_IDS) & set(found_markers(draw_charuco(1080, 2340)[:, :, 0], BED_DICTIONARY))


def test_the_bed_sheet_says_its_dpi_and_is_of_a4_size():
    png = bed_markers_png()
    at = png.index(b"pHYs") + 4
    across, down, unit = struct.unpack(">IIB", png[at : at + 9])
    assert (across, down, unit) == (round(SHEET_DPI / 0.0254),) * 2 + (1,)
    picture = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_GRAYSCALE)
    assert np.array(picture.shape) * 25.4 / SHEET_DPI == pytest.approx([297.0, 210.0], abs=0.05)


def test_the_svg_has_the_same_markers_and_the_same_ruler_at_true_size():
    root = ElementTree.fromstring(bed_markers_svg())
    assert (root.get("width"), root.get("height"), root.get("viewBox")) == ("210mm", "297mm", "0 0 210 297")
    boxes = [
        tuple(float(r.get(k)) for k in ("x", "y", "width", "height"))
        for r in root.iter("{http://www.w3.org/2000/svg}rect")
        if r.get("x") is not None
    ]
    assert max(w for _, _, w, _ in boxes) == 50.0
    scale = 300 / 25.4
    drawn = np.full((3508, 2480), 255, dtype=np.uint8)
    for x, y, w, h in boxes:
        drawn[round(y * scale) : round((y + h) * scale), round(x * scale) : round((x + w) * scale)] = 0
    assert set(found_markers(drawn, BED_DICTIONARY)) == set(BED_MARKER_IDS)
