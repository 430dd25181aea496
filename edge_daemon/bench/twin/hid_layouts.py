"""What a phone makes of a key on a physical keyboard: four layouts, written down from Android's own.

Source of the facts: AOSP packages/InputDevices/res/raw/keyboard_layout_{english_uk,german,french}.kcm and
data/keyboards/Generic.kcm; accents alone from KeyCharacterMap.java. Written independently of the firmware's
tables, so that a wrong entry there shows as a wrong character here.

Usages are those of the keyboard page (0x07) and name positions, not letters. A layout maps a usage to the
characters without a modifier, with Shift, with AltGr and with Shift+AltGr. Dead keys are combining characters
(U+03xx) and join with the next letter.
"""

from collections.abc import Mapping

LETTERS = {0x04 + index: chr(ord("a") + index) for index in range(26)}
DIGIT_USAGES = tuple(range(0x1E, 0x28))
SPACE = 0x2C

GRAVE, ACUTE, CIRCUMFLEX, TILDE, DIAERESIS = "\u0300", "\u0301", "\u0302", "\u0303", "\u0308"
# What Android shows for a dead key that nothing joins.
DEAD_ALONE = {GRAVE: "\u02cb", ACUTE: "\u00b4", CIRCUMFLEX: "\u02c6", TILDE: "\u02dc", DIAERESIS: "\u00a8"}

Layout = Mapping[int, tuple[str, str, str, str]]


def _layout(
    moved: Mapping[int, str],
    digits: str,
    shifted_digits: str,
    others: Mapping[int, tuple[str, str]],
    altgr: Mapping[int, str],
    shift_altgr: Mapping[int, str] | None = None,
) -> Layout:
    """The letters with those that `moved`, the digit row, `others` (plain, shifted), the AltGr levels."""
    plain: dict[int, tuple[str, str]] = {SPACE: (" ", " ")}
    for usage, letter in {**LETTERS, **moved}.items():
        plain[usage] = (letter, letter.upper())
    plain.update(zip(DIGIT_USAGES, zip(digits, shifted_digits, strict=True), strict=True))
    plain.update(others)
    third = shift_altgr or {}
    return {usage: (*pair, altgr.get(usage, ""), third.get(usage, "")) for usage, pair in plain.items()}


US = _layout(
    {},
    "1234567890",
    "!@#$%^&*()",
    {
        0x2D: ("-", "_"),
        0x2E: ("=", "+"),
        0x2F: ("[", "{"),
        0x30: ("]", "}"),
        0x31: ("\\", "|"),
        0x32: ("\\", "|"),
        0x33: (";", ":"),
        0x34: ("'", '"'),
        0x35: ("`", "~"),
        0x36: (",", "<"),
        0x37: (".", ">"),
        0x38: ("/", "?"),
        0x64: ("\\", "|"),
    },
    {},
)

UK = _layout(
    {},
    "1234567890",
    '!"£$%^&*()',
    {
        0x2D: ("-", "_"),
        0x2E: ("=", "+"),
        0x2F: ("[", "{"),
        0x30: ("]", "}"),
        0x31: ("#", "~"),
        0x32: ("#", "~"),
        0x33: (";", ":"),
        0x34: ("'", "@"),
        0x35: (GRAVE, "¬"),
        0x36: (",", "<"),
        0x37: (".", ">"),
        0x38: ("/", "?"),
        0x64: ("\\", "|"),
    },
    {
        0x1F: DIAERESIS,
        0x21: "€",
        0x23: CIRCUMFLEX,
        0x31: TILDE,
        0x32: TILDE,
        0x34: ACUTE,
        0x35: "¦",
        0x04: "á",
        0x06: "ç",
        0x08: "é",
        0x0C: "í",
        0x12: "ó",
        0x18: "ú",
        0x1A: "ẃ",
        0x1C: "ý",
    },
    {
        0x30: "|",
        0x31: "\\",
        0x32: "\\",
        0x34: "`",
        0x04: "Á",
        0x06: "Ç",
        0x08: "É",
        0x0C: "Í",
        0x12: "Ó",
        0x18: "Ú",
        0x1A: "Ẃ",
        0x1C: "Ý",
    },
)

DE = _layout(
    {0x1C: "z", 0x1D: "y"},
    "1234567890",
    '!"§$%&/()=',
    {
        0x2D: ("ß", "?"),
        0x2E: (ACUTE, GRAVE),
        0x2F: ("ü", "Ü"),
        0x30: ("+", "*"),
        0x31: ("#", "'"),
        0x32: ("#", "'"),
        0x33: ("ö", "Ö"),
        0x34: ("ä", "Ä"),
        0x35: ("^", "°"),
        0x36: (",", ";"),
        0x37: (".", ":"),
        0x38: ("-", "_"),
        0x64: ("<", ">"),
    },
    {
        0x1F: "²",
        0x20: "³",
        0x24: "{",
        0x25: "[",
        0x26: "]",
        0x27: "}",
        0x2D: "\\",
        0x14: "@",
        0x08: "€",
        0x30: "~",
        0x64: "|",
        0x10: "µ",
    },
)

FR = _layout(
    {0x04: "q", 0x14: "a", 0x1A: "z", 0x1D: "w"},
    "&é\"'(-è_çà",
    "1234567890",
    {
        0x10: (",", "?"),
        0x2D: (")", "°"),
        0x2E: ("=", "+"),
        0x2F: (CIRCUMFLEX, DIAERESIS),
        0x30: ("$", "£"),
        0x31: ("*", "µ"),
        0x32: ("*", "µ"),
        0x33: ("m", "M"),
        0x34: ("ù", "%"),
        0x35: ("²", ""),
        0x36: (";", "."),
        0x37: (":", "/"),
        0x38: ("!", "§"),
        0x64: ("<", ">"),
    },
    {
        0x1F: "~",
        0x20: "#",
        0x21: "{",
        0x22: "[",
        0x23: "|",
        0x24: "`",
        0x25: "\\",
        0x26: "^",
        0x27: "@",
        0x2D: "]",
        0x2E: "}",
        0x08: "€",
        0x30: "¤",
    },
)

LAYOUTS: Mapping[str, Layout] = {"us": US, "uk": UK, "de": DE, "fr": FR}
