"""The steps of the procedures, as a person at the rig reads them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One step: what is done, and what to mind meanwhile."""

    title: str
    caution: str


_BOARD = Step("Look at the board", "From here to the end, do not move phone, camera or lamp.")
_MARKS = Step("Judge the camera", "The dots page must stay in front; silence notifications.")
_ACCEPTANCE = Step("Touch held-out places", "These touches judge the calibration; do not help them.")
_CHECK = Step("Look once more", "Nothing may have moved since the first look.")

STEPS: dict[str, Step] = {
    "board": _BOARD,
    "marks": _MARKS,
    "contact": Step(
        "Find the glass",
        "The hand presses down in small steps in the middle of its range. Keep fingers out and the "
        "emergency stop at hand.",
    ),
    "triangle": Step("Find the hand's directions", "The hand touches close to the first place."),
    "plane": Step("Measure the glass at the corners", "The hand now travels over the whole screen."),
    "backlash": Step("Measure the play of the drives", "The hand comes from both sides, in the middle."),
    "grid": Step("Touch the grid", "Leave the dots on the screen; silence notifications."),
    "acceptance": _ACCEPTANCE,
    "check": _CHECK,
}
"""Of a hand's calibration, in order."""

CAMERA_STEPS: dict[str, Step] = {"board": _BOARD, "marks": _MARKS}
"""Of the camera's part alone."""

DIGITIZER_STEPS: dict[str, Step] = {
    "board": _BOARD,
    "marks": _MARKS,
    "triangle": Step("Find the touch screen's directions", "The phone is touched over USB; no hand moves."),
    "grid": Step("Touch the grid", "Leave the dots on the screen; silence notifications."),
    "acceptance": _ACCEPTANCE,
    "check": _CHECK,
    "turn": Step("Touch the turned page", "Whether touches turn with the page differs from phone to phone."),
}
"""Of a HID board's touch screen."""

POINTER_STEPS: dict[str, Step] = {
    "board": _BOARD,
    "marks": _MARKS,
    "triangle": Step("Find the pointer's gain", "The pointer must be switched on in the phone's settings."),
    "grid": Step("Click the grid", "Leave the dots on the screen; silence notifications."),
    "acceptance": _ACCEPTANCE,
    "check": _CHECK,
}
"""Of a HID board's relative pointer."""

VERIFY_STEPS: dict[str, Step] = {
    "marks": _MARKS,
    "acceptance": Step("Touch five places", "Keep off the screen."),
}
"""Of the quick check."""
