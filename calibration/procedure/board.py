"""The first look: the board on the screen, and from it the camera's model."""

import msgspec
import numpy as np
import numpy.typing as npt

from calibration.detect import BoardFinder, BoardView, turn_in_picture
from calibration.drift import make_reference
from calibration.errors import RigMoved, UpsideDown
from calibration.fit_camera import fit_camera
from calibration.models import CameraModel
from calibration.noise import noise_sigma
from calibration.options import Options
from calibration.picture_checks import PictureChecks, check_board_picture
from calibration.result import CameraPart, CornerRecord
from calibration.rig import Rig, ShowTarget, Turn
from calibration.screen import Pair, ScreenGeometry
from calibration.targets import CharucoTarget, Image, charuco_target

# Further than this from where it was the page has been turned by a quarter at least; nobody lays a phone so askew.
TURNED_MIN_DEG = 45.0


def look_at_board(
    rig: Rig, screen: ScreenGeometry, options: Options, turn: Turn, previous: CameraModel | None
) -> CameraPart:
    """Have the board shown, take pictures of it and fit the camera's model; the marks are still to come.

    previous: how the camera saw the screen when it was last calibrated, to notice a page that is turned.
    Raises PictureRefused (each gate has its own), RigMoved, FitRefused, and what the rig raises.
    """
    target = charuco_target(screen.width_px, screen.height_px, turn)
    finder = BoardFinder(target)
    rig.ask(ShowTarget("charuco", turn))
    pictures: list[Image] = []
    checks: list[PictureChecks] = []
    seen: dict[int, list[Pair]] = {}
    for _ in range(options.board_looks):
        picture = rig.look().image
        view = finder.find(picture)
        if not pictures and previous is not None:
            _require_same_turn(view, target, screen, previous)
        checks.append(check_board_picture(picture, view, target))
        pictures.append(picture)
        for number, (x, y) in zip(view.ids, view.px, strict=True):
            seen.setdefault(int(number), []).append((float(x), float(y)))
    kept = _steady(seen, options)
    ids = np.array(list(kept), dtype=np.int64)
    mean = np.array([px.mean(axis=0) for px in kept.values()])
    size = (picture.shape[1], picture.shape[0])
    board_mm = screen.px_to_mm(target.corners_px())
    model, quality = fit_camera(screen, size, ids, board_mm, mean, options.camera_residual_max_px)
    return CameraPart(
        model=model,
        quality=quality,
        corners=tuple(
            CornerRecord(id=number, px=(float(m[0]), float(m[1])), looks=len(px))
            for (number, px), m in zip(kept.items(), mean, strict=True)
        ),
        noise_sigma=noise_sigma(pictures, model.project(screen.outline_mm())),
        checks=_worst(checks),
        reference=make_reference(pictures, model, screen),
        turn=turn,
    )


def _steady(seen: dict[int, list[Pair]], options: Options) -> dict[int, npt.NDArray[np.float64]]:
    """The corners that most pictures show, (looks, 2) each. Raises RigMoved when they wander."""
    # A corner found in a minority of the pictures sits in a reflection or on the edge of being found.
    kept = {number: np.array(px) for number, px in sorted(seen.items()) if 2 * len(px) >= options.board_looks}
    shake = float(np.percentile([np.ptp(px, axis=0).max() for px in kept.values()], 90.0))
    if shake > options.moved_max_px:
        raise RigMoved(
            f"the board's corners wander by {shake:.2f} px from picture to picture, the limit is "
            f"{options.moved_max_px} px; fix camera and phone, and wait until nothing vibrates"
        )
    return kept


def _require_same_turn(
    view: BoardView, target: CharucoTarget, screen: ScreenGeometry, previous: CameraModel
) -> None:
    expected_px = previous.project(screen.px_to_mm(target.corners_px()))
    expected = turn_in_picture(BoardView(ids=np.arange(len(expected_px)), px=expected_px))
    turned = (turn_in_picture(view) - expected + 180.0) % 360.0 - 180.0
    if abs(turned) > TURNED_MIN_DEG:
        raise UpsideDown(
            f"the board lies {turned:+.0f} degrees from where the calibration before saw it; turn the phone, or the "
            "page on it, back. Was the phone put in the other way round on purpose? Then start without the "
            "previous calibration"
        )


def _worst(checks: list[PictureChecks]) -> PictureChecks:
    """Of each measure the worst that a picture had: what the gates have let through."""
    lowest = ("white_level",)
    return PictureChecks(
        **{
            name: (min if name in lowest else max)(getattr(check, name) for check in checks)
            for name in (field.name for field in msgspec.structs.fields(PictureChecks))
        }
    )
