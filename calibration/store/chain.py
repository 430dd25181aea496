"""The stated chain: which event makes which part of a calibration untrue.

What drift finds (`camera_moved` to `moved_not_told_apart`) is named as `calibration.drift` names it. Another board,
camera or screen size is no event: it is compared with what is written down whenever a calibration is taken into use.
"""

from typing import Literal, get_args

from calibration.result import DeviceCalibration

Part = Literal["camera", "hand", "digitizer", "pointer"]
PARTS: tuple[Part, ...] = get_args(Part)
EVERYTHING: frozenset[Part] = frozenset(PARTS)

Cause = Literal[
    "camera_moved",
    "phone_moved",
    "both_moved",
    "moved_not_told_apart",
    "hand_pushed",
    "hid_profile_changed",
    "phone_rebooted",
    "verify_failed",
    "withdrawn",
    "state_lost",
]

LOST: dict[Cause, frozenset[Part]] = {
    # The hand's map goes from the screen to the hand; the camera only helped to measure it.
    "camera_moved": frozenset({"camera"}),
    "phone_moved": frozenset({"camera", "hand"}),
    "both_moved": frozenset({"camera", "hand"}),
    # No bed marker was seen: it may have been either.
    "moved_not_told_apart": frozenset({"camera", "hand"}),
    "hand_pushed": frozenset({"hand"}),
    "hid_profile_changed": frozenset({"digitizer", "pointer"}),
    # A phone may come up with another pointer speed.
    "phone_rebooted": frozenset({"pointer"}),
    # Touches land elsewhere than the camera says: it cannot be told which of the two is wrong.
    "verify_failed": EVERYTHING,
    "withdrawn": EVERYTHING,
    "state_lost": EVERYTHING,
}

WHAT_HAPPENED: dict[Cause, str] = {
    "camera_moved": "the camera moved",
    "phone_moved": "the phone moved",
    "both_moved": "the camera and the phone moved",
    "moved_not_told_apart": "the phone or the camera moved",
    "hand_pushed": "the hand was pushed and not homed again",
    "hid_profile_changed": "the HID board shows the phone another profile",
    "phone_rebooted": "the phone restarted",
    "verify_failed": "touches of a check landed too far off",
    "withdrawn": "a person withdrew it",
    "state_lost": "the record of what was found untrue was damaged",
}


def parts_of(calibration: DeviceCalibration) -> frozenset[Part]:
    """The parts that this calibration has."""
    return frozenset(part for part in PARTS if getattr(calibration, part) is not None)


def named(parts: frozenset[Part]) -> str:
    """The parts for a sentence, always in the same order."""
    return " and ".join(part for part in PARTS if part in parts)
