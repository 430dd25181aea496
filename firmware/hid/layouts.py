"""Keyboard layouts as data: which keys make which character. One table for the boards and for the daemon.

The phone turns keys into characters, so its physical-keyboard layout must be set to the one the board
announces. The tables follow Android's own (AOSP, packages/InputDevices/res/raw/keyboard_layout_*.kcm):
Android's French has no dead tilde, its German circumflex is not dead, its UK grave is. A character that
Android makes differently from what a desktop would is left out rather than typed wrong: a dead grave and a
space give U+02CB there, so that one is in the charset and the grave accent of ASCII is not.

Usages are those of the HID Usage Tables 1.4, page 0x07, named after their place on a US keyboard.
"""

from firmware import wire

SHIFT = 0x01
ALTGR = 0x02
# Caps lock turns this key's Shift around.
CAPS = 0x04

# Every table below has one character for each of these keys, in this order:
#   a..z (0x04..0x1D), 1..0 (0x1E..0x27), - = [ ] (0x2D..0x30), backslash or ISO hash (0x31),
#   ; ' ` , . / (0x33..0x38), ISO key beside the left Shift (0x64)
_USAGES = bytes(range(0x04, 0x28)) + bytes(range(0x2D, 0x32)) + bytes(range(0x33, 0x39)) + b"\x64"

USAGE_ENTER = 0x28
USAGE_BACKSPACE = 0x2A
USAGE_SPACE = 0x2C

# No character: a dead key, or a level that the layout leaves empty.
_NO = "\x00"
_NO10 = _NO * 10
_LOWER = "abcdefghijklmnopqrstuvwxyz"
_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

# All letters that Unicode has with the accent: Android composes what Unicode composes (NFC).
_GRAVE = ("aeiouwynAEIOUWYN", "àèìòùẁỳǹÀÈÌÒÙẀỲǸ")
_ACUTE = ("aeiouycgklmnprswzAEIOUYCGKLMNPRSWZ", "áéíóúýćǵḱĺḿńṕŕśẃźÁÉÍÓÚÝĆǴḰĹḾŃṔŔŚẂŹ")
_CIRCUMFLEX = ("aeiouwycghjszAEIOUWYCGHJSZ", "âêîôûŵŷĉĝĥĵŝẑÂÊÎÔÛŴŶĈĜĤĴŜẐ")
_DIAERESIS = ("aeiouywhxtAEIOUYWHX", "äëïöüÿẅḧẍẗÄËÏÖÜŸẄḦẌ")
_TILDE = ("anoeiuvyANOEIUVY", "ãñõẽĩũṽỹÃÑÕẼĨŨṼỸ")


class Layout:
    """One layout: a string of characters for each level, the keys that caps lock affects, the dead keys.

    plain, shift, altgr and shift_altgr run along _USAGES. Each dead key is (flags, usage, (bases, composed)):
    after it, the key of bases[i] makes composed[i].
    """

    def __init__(
        self,
        name: str,
        plain: str,
        shift: str,
        altgr: str,
        shift_altgr: str,
        dead: "tuple[tuple[int, int, tuple[str, str]], ...]",
    ) -> None:
        self.name = name
        self._levels = (plain, shift, altgr, shift_altgr)
        self._dead = dead

    def steps(self, char: str) -> bytes:
        """The key strokes of a character as (flags, usage) byte pairs in order; b"" if it cannot be typed."""
        if len(char) != 1:
            return b""
        direct = self._stroke(char)
        if direct:
            return direct
        for flags, usage, (bases, composed) in self._dead:
            at = composed.find(char)
            if at >= 0:
                return bytes((flags, usage)) + self._stroke(bases[at])
        return b""

    def _stroke(self, char: str) -> bytes:
        if char == " ":
            return bytes((0, USAGE_SPACE))
        if char == "\n":
            return bytes((0, USAGE_ENTER))
        if char == _NO:
            return b""
        for level in range(4):
            at = self._levels[level].find(char)
            if at >= 0:
                return bytes((level | self._caps(level & ALTGR, at), _USAGES[at]))
        return b""

    def _caps(self, altgr: int, at: int) -> int:
        lower = self._levels[altgr][at]
        upper = self._levels[altgr | SHIFT][at]
        return CAPS if lower != upper and (lower + upper) in _CASE_PAIRS else 0

    def charset(self) -> str:
        """Every character that can be typed, each once."""
        found = " \n"
        for text in self._levels + tuple(composed for _, _, (_, composed) in self._dead):
            for char in text:
                if char != _NO and char not in found:
                    found += char
        return found


# MicroPython's str.upper() knows ASCII only.
_CASE_PAIRS = tuple(a + b for a, b in zip(_LOWER + "äöüáéíóúýçẃ", _UPPER + "ÄÖÜÁÉÍÓÚÝÇẂ"))

_US = Layout(
    "us",
    _LOWER + "1234567890" + "-=[]\\" + ";'`,./" + _NO,
    _UPPER + "!@#$%^&*()" + "_+{}|" + ':"~<>?' + _NO,
    _NO * 48,
    _NO * 48,
    (),
)

_UK = Layout(
    "uk",
    _LOWER + "1234567890" + "-=[]#" + ";'" + _NO + ",./" + "\\",
    _UPPER + '!"£$%^&*()' + "_+{}~" + ":@¬<>?" + "|",
    "á\0ç\0é\0\0\0í\0\0\0\0\0ó\0\0\0\0\0ú\0ẃ\0ý\0" + "\0\0\0€" + _NO10 + _NO + "\0\0¦\0\0\0" + _NO,
    "Á\0Ç\0É\0\0\0Í\0\0\0\0\0Ó\0\0\0\0\0Ú\0Ẃ\0Ý\0" + _NO10 + "\0\0\0\0\0" + "\0`\0\0\0\0" + _NO,
    (
        (0, 0x35, _GRAVE),
        (ALTGR, 0x34, _ACUTE),
        (ALTGR, 0x1F, _DIAERESIS),
        (ALTGR, 0x23, _CIRCUMFLEX),
        (ALTGR, 0x31, _TILDE),
        (0, 0x35, (" ", "ˋ")),
        (ALTGR, 0x34, (" ", "´")),
        (ALTGR, 0x1F, (" ", "¨")),
        (ALTGR, 0x23, (" ", "ˆ")),
        (ALTGR, 0x31, (" ", "˜")),
    ),
)

_DE = Layout(
    "de",
    "abcdefghijklmnopqrstuvwxzy" + "1234567890" + "ß" + _NO + "ü+#" + "öä^,.-" + "<",
    "ABCDEFGHIJKLMNOPQRSTUVWXZY" + '!"§$%&/()=' + "?" + _NO + "Ü*'" + "ÖÄ°;:_" + ">",
    "\0\0\0\0€\0\0\0\0\0\0\0µ\0\0\0@" + _NO10[1:] + "\0²³\0\0\0{[]}" + "\\\0\0~\0" + "\0\0\0\0\0\0" + "|",
    _NO * 48,
    (
        (0, 0x2E, _ACUTE),
        (SHIFT, 0x2E, _GRAVE),
        (0, 0x2E, (" ", "´")),
        (SHIFT, 0x2E, (" ", "ˋ")),
    ),
)

_FR = Layout(
    "fr",
    "qbcdefghijkl,noparstuvzxyw" + "&é\"'(-è_çà" + ")=" + _NO + "$*" + "mù²;:!" + "<",
    "QBCDEFGHIJKL?NOPARSTUVZXYW" + "1234567890" + "°+" + _NO + "£µ" + "M%\0./§" + ">",
    "\0\0\0\0€" + "\0" * 21 + "\0~#{[|`\\^@" + "]}\0¤\0" + "\0\0\0\0\0\0" + _NO,
    _NO * 48,
    (
        (0, 0x2F, _CIRCUMFLEX),
        (SHIFT, 0x2F, _DIAERESIS),
        (0, 0x2F, (" ", "ˆ")),
        (SHIFT, 0x2F, (" ", "¨")),
    ),
)

LAYOUTS = {wire.LAYOUT_US: _US, wire.LAYOUT_UK: _UK, wire.LAYOUT_DE: _DE, wire.LAYOUT_FR: _FR}


def charset(layout_id: int) -> str:
    """What a board with this layout (wire.LAYOUT_*) can type, each once. KeyError if there is none such."""
    return LAYOUTS[layout_id].charset()
