"""A look at a MessagePack body before anything is built from it.

A typed decoder alone is not enough against a hostile body: nested arrays inside an open map overflow its
recursion, a key that comes twice is silently taken once, and invalid UTF-8 is reported without saying where.
This walk is iterative, builds nothing but the keys, and names the place.
"""

from typing import Final

MAX_DEPTH: Final = 16
"""The deepest message has 6 levels (devices of a welcome down to their keys); the rest is for `metadata`."""

MAX_KEY_BYTES: Final = 128
"""Names go into error paths; a long one would be sent back many times."""

_FIXED_WIDTH: Final = {
    0xC0: 0, 0xC2: 0, 0xC3: 0,
    0xCA: 4, 0xCB: 8,
    0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8,
    0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8,
}  # fmt: skip
_BYTES: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4}
_TEXT: Final = {0xD9: 1, 0xDA: 2, 0xDB: 4}
_LISTS: Final = {0xDC: 2, 0xDD: 4}
_MAPS: Final = {0xDE: 2, 0xDF: 4}


class NotMessagePack(Exception):
    """The bytes are not exactly one MessagePack value."""


class BadShape(Exception):
    """One MessagePack value, but no message can have this shape. `path` names the place."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


class _Level:
    """One open map or list during the walk."""

    __slots__ = ("done", "keys", "name", "total")

    def __init__(self, name: str, total: int, keys: set[str] | None) -> None:
        self.name = name  # of the value being read: its key, or `[index]`
        self.total = total  # a map's keys and values both count
        self.done = 0
        self.keys = keys

    def expects_key(self) -> bool:
        return self.keys is not None and self.done % 2 == 0


class _Walk:
    """One walk over one body."""

    def __init__(self, body: bytes, max_values: int) -> None:
        self._body = body
        self._at = 0
        self._left = max_values
        self._max_values = max_values
        self._levels: list[_Level] = []

    def run(self) -> None:
        self._value()
        while self._levels:
            level = self._levels[-1]
            if level.done == level.total:
                self._levels.pop()
            elif level.expects_key():
                self._key(level)
                level.done += 1
            else:
                if level.keys is None:
                    level.name = f"[{level.done}]"
                level.done += 1
                self._value()
        if self._at != len(self._body):
            raise NotMessagePack(f"{len(self._body) - self._at} bytes follow the message")
        if not _is_map(self._body[0]):
            raise BadShape("", "a message is a map, this is something else")

    def _value(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise BadShape(self._path(), f"more than {self._max_values} values in one message")
        kind = self._take(1)[0]
        if kind <= 0x7F or kind >= 0xE0:
            return
        if kind <= 0x8F:
            self._open(kind & 0x0F, is_map=True)
        elif kind <= 0x9F:
            self._open(kind & 0x0F, is_map=False)
        elif kind <= 0xBF:
            self._text(kind & 0x1F)
        elif kind in _FIXED_WIDTH:
            self._skip(_FIXED_WIDTH[kind])
        elif kind in _TEXT:
            self._text(self._number(_TEXT[kind]))
        elif kind in _BYTES:
            self._skip(self._number(_BYTES[kind]))
        elif kind in _LISTS:
            self._open(self._number(_LISTS[kind]), is_map=False)
        elif kind in _MAPS:
            self._open(self._number(_MAPS[kind]), is_map=True)
        elif kind == 0xC1:
            raise NotMessagePack(f"byte 0xc1 at offset {self._at - 1} begins no MessagePack value")
        else:
            raise BadShape(self._path(), "extension types are not part of this protocol")

    def _open(self, count: int, *, is_map: bool) -> None:
        total = 2 * count if is_map else count
        if total > len(self._body) - self._at:
            raise NotMessagePack("the message ends before its last value")
        if len(self._levels) >= MAX_DEPTH:
            raise BadShape(self._path(), f"nested more than {MAX_DEPTH} levels deep")
        self._levels.append(_Level("", total, set() if is_map else None))

    def _key(self, level: _Level) -> None:
        kind = self._take(1)[0]
        if 0xA0 <= kind <= 0xBF:
            length = kind & 0x1F
        elif kind in _TEXT:
            length = self._number(_TEXT[kind])
        else:
            level.name = "?"
            raise BadShape(self._path(), "a field's name must be a string")
        level.name = "?"
        if length > MAX_KEY_BYTES:
            raise BadShape(self._path(), f"a field's name of {length} bytes; {MAX_KEY_BYTES} are the most")
        name = level.name = self._text(length)
        assert level.keys is not None
        if name in level.keys:
            raise BadShape(self._path(), "this field is given twice")
        level.keys.add(name)

    def _text(self, length: int) -> str:
        raw = self._take(length)
        try:
            return raw.decode()
        except UnicodeDecodeError as e:
            raise BadShape(self._path(), f"not UTF-8 from its byte {e.start} on") from None

    def _number(self, width: int) -> int:
        return int.from_bytes(self._take(width), "big")

    def _take(self, count: int) -> bytes:
        start = self._at
        self._skip(count)
        return self._body[start : self._at]

    def _skip(self, count: int) -> None:
        self._at += count
        if self._at > len(self._body):
            raise NotMessagePack("the message ends before its last value")

    def _path(self) -> str:
        path = ""
        for level in self._levels:
            path += level.name if level.name.startswith("[") or not path else f".{level.name}"
        return path


def _is_map(kind: int) -> bool:
    return 0x80 <= kind <= 0x8F or kind in _MAPS


def check_shape(body: bytes, max_values: int) -> None:
    """Refuse what is not one MessagePack map of at most `max_values` values and `MAX_DEPTH` levels, with
    string keys that come once each and no extension types.

    Raises: NotMessagePack, BadShape.
    """
    if not body:
        raise NotMessagePack("an empty frame")
    _Walk(body, max_values).run()
