"""Why a calibration was refused. Each message says what was wrong, with which value, and what to do."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calibration.acceptance import Acceptance


class CalibrationError(Exception):
    """The base of everything this package raises."""


class TargetImpossible(CalibrationError):
    """No board can be laid out on a screen of that size."""


class TargetsNotWritten(CalibrationError):
    """The page, a picture or the marker sheet could not be written to its folder."""


class OptionsInvalid(CalibrationError):
    """An option, or the screen's geometry, is out of the range in which the procedure is safe."""


class PictureRefused(CalibrationError):
    """A picture does not show what it must."""


class TooDark(PictureRefused):
    """The picture has too little light to measure in."""


class Blurred(PictureRefused):
    """The picture is out of focus or smeared by motion."""


class BoardNotFound(PictureRefused):
    """There is no calibration board in the picture."""


class HalfOutOfView(PictureRefused):
    """The board is there, but part of the screen lies outside the picture or is covered."""


class NoDot(PictureRefused):
    """No fresh dot between the picture before a touch and the picture after it."""


class TwoDots(PictureRefused):
    """More than one fresh dot after a single touch."""


class PageChanged(PictureRefused):
    """The picture changed in more than a dot: another page, a notification, a phone or camera that moved."""


class UpsideDown(PictureRefused):
    """The page on the phone is turned against what was asked for."""


class SecondBoard(PictureRefused):
    """More than one calibration board is in view: which one is the phone's?"""


class BadExposure(PictureRefused):
    """The picture is over- or underexposed where it is measured."""


class Banding(PictureRefused):
    """Rows of the picture differ in brightness: the exposure does not fit the display's flicker."""


class Moire(PictureRefused):
    """The display's pixels beat with the camera's."""


class Glare(PictureRefused):
    """A reflection covers part of the screen."""


class MarksOff(PictureRefused):
    """The page's control marks are not where the camera model sees them."""


class FitRefused(CalibrationError):
    """The measurements do not determine a model, or contradict it."""


class CoverageRefused(FitRefused):
    """The points do not cover enough of the screen to be trusted at its edges."""


class ResidualRefused(FitRefused):
    """Points that the fit did not see lie too far from the model."""


class OutsideModel(CalibrationError):
    """A place was asked for at which a model says nothing."""


class RigMoved(CalibrationError):
    """The phone or the camera moved while the calibration ran."""


class RigRefused(CalibrationError):
    """Raised by a rig: it could not do what the procedure asked for."""


class TouchRefused(RigRefused):
    """The hand did not carry the touch out."""


class Declined(RigRefused):
    """The person at the rig, or the phone, did not do what was asked."""


class Rejected(RigRefused):
    """The person at the rig looked at the verdict and said no."""


class BacklashTooLarge(CalibrationError):
    """The drives have more play than coming from one side takes out."""


class ContactNotFound(CalibrationError):
    """No contact with the glass down to the lowest height that is safe."""


class OutOfReach(CalibrationError):
    """A place on the screen lies outside the hand's envelope."""


class AcceptanceFailed(CalibrationError):
    """Held-out touches landed too far from where they were sent. The calibration must not be used.

    `acceptance` holds every touch, or None when one of them did not reach the screen at all.
    """

    def __init__(self, message: str, acceptance: "Acceptance | None" = None) -> None:
        super().__init__(message)
        self.acceptance = acceptance


class StoreError(CalibrationError):
    """A stored calibration cannot be used."""


class CalibrationMissing(StoreError):
    """There is no stored calibration at that path."""


class StoreCorrupt(StoreError):
    """The file is not a whole calibration: unreadable, cut short, or its checksum does not match."""


class SchemaMismatch(StoreError):
    """The file was written for another version of this package."""


class BoardMismatch(StoreError):
    """The calibration belongs to another board."""


class DeviceMismatch(StoreError):
    """The calibration belongs to another phone."""


class FirmwareMismatch(StoreError):
    """The calibration was made with another firmware of the board, which may move differently."""


class CameraMismatch(StoreError):
    """The calibration was made with another camera, or another picture size of it."""


class ScreenMismatch(StoreError):
    """The screen's size in the configuration is not the one that the calibration was made for."""


class Expired(StoreError):
    """The calibration is older than it may get."""


class Invalidated(StoreError):
    """Something was found since that made the calibration untrue."""


class UnknownEntry(StoreError):
    """The history has no entry of that name."""
