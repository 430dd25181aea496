"""PROTOCOL.md is what strangers build from: its tables are held to the structs, its examples to the codec."""

import json
import re
from pathlib import Path
from typing import Any

import msgpack
import msgspec
import msgspec.inspect as mi
import pytest

import edge_daemon.upstream
from edge_daemon.contract import ERROR_CODES, error_info
from edge_daemon.upstream import auth, codec, messages
from edge_daemon.upstream.limits import DEFAULT_LIMITS
from edge_daemon.upstream.shape import MAX_DEPTH, MAX_KEY_BYTES

DOCUMENT = (Path(edge_daemon.upstream.__file__).parent / "PROTOCOL.md").read_text(encoding="utf-8")


# --- what the structs say ------------------------------------------------------------------------------------


def structs_of_the_protocol() -> dict[str, mi.StructType]:
    """By heading: a message by its `type`, any other struct by its name."""
    found: dict[str, mi.StructType] = {}

    def walk(kind: mi.Type) -> None:
        match kind:
            case mi.StructType(cls=cls):
                heading = heading_of(cls)
                if heading in found:
                    return
                found[heading] = kind
                for field in kind.fields:
                    walk(field.type)
            case mi.UnionType(types=types):
                for one in types:
                    walk(one)
            case mi.VarTupleType(item_type=item) | mi.ListType(item_type=item):
                walk(item)
            case mi.Metadata(type=inner):
                walk(inner)
            case _:
                pass

    walk(mi.type_info(messages.ToEdge))
    walk(mi.type_info(messages.FromEdge))
    return found


def heading_of(cls: type) -> str:
    if is_message(cls):
        return f"`{cls.__struct_config__.tag}`"
    return f"`{cls.__name__}`"


def is_message(cls: type) -> bool:
    return cls.__module__ == messages.__name__ and cls.__struct_config__.tag is not None


def type_text(kind: mi.Type) -> str:
    match kind:
        case mi.Metadata(type=inner):
            return type_text(inner)
        case mi.StructType(cls=cls):
            return cls.__name__
        case mi.UnionType(types=types):
            return " or ".join(dict.fromkeys(type_text(one) for one in types))
        case mi.VarTupleType(item_type=item):
            return f"array of {type_text(item)}"
        case mi.LiteralType():
            return "str"
        case mi.DictType():
            return "free map"
        case mi.NoneType():
            return "nil"
        case _:
            return {
                mi.BoolType: "bool",
                mi.IntType: "int",
                mi.FloatType: "float",
                mi.StrType: "str",
                mi.BytesType: "bin",
            }[type(kind)]


def limits_text(kind: mi.Type) -> str:
    match kind:
        case mi.Metadata(type=inner):
            return limits_text(inner)
        case mi.UnionType(types=types):
            return "; ".join(filter(None, (limits_text(one) for one in types)))
        case mi.LiteralType(values=values):
            if tuple(values) == tuple(sorted(ERROR_CODES)):
                return "see Errors"
            return " ".join(f"`{value}`" for value in values)
        case mi.IntType(ge=low, le=high) | mi.FloatType(ge=low, le=high) if low is not None:
            return f"{number(low)}..{number(high)}"
        case mi.StrType(pattern=pattern) if pattern is not None:
            return f"`{pattern}`"
        case mi.StrType(min_length=low, max_length=high) if high is not None:
            return f"{low or 0}..{high} characters"
        case mi.BytesType(min_length=low, max_length=high) if high is not None:
            return f"{low} bytes" if low == high else f"{low}..{high} bytes"
        case mi.VarTupleType(item_type=item):
            return limits_text(item)
        case _:
            return ""


def number(value: float) -> str:
    return {2**53 - 1: "2^53-1", 2**63 - 1: "2^63-1", 2**32 - 1: "2^32-1"}.get(int(value), f"{value:g}")


def default_text(field: mi.Field) -> str:
    if field.required:
        return "required"
    if field.default is msgspec.NODEFAULT:
        return "{}"
    return json.dumps(field.default) if field.default is not None else "nil"


def rows_of(struct: mi.StructType) -> list[tuple[str, str, str, str]]:
    rows = []
    config = struct.cls.__struct_config__
    if config.tag is not None and not is_message(struct.cls):
        rows.append((config.tag_field, "str", f"`{config.tag}`", "required"))
    for field in struct.fields:
        rows.append((field.encode_name, type_text(field.type), limits_text(field.type), default_text(field)))
    return rows


# --- what the document says ----------------------------------------------------------------------------------


def sections() -> dict[str, str]:
    parts = re.split(r"^##+ (.+)$", DOCUMENT, flags=re.MULTILINE)
    return {title.split(" – ")[0]: text for title, text in zip(parts[1::2], parts[2::2], strict=True)}


def documented_rows(section: str) -> list[tuple[str, str, str, str]]:
    rows = []
    for line in section.splitlines():
        if line.startswith("| `"):
            name, kind, limits, default, meaning = (cell.strip() for cell in line.strip("|").split("|"))
            assert meaning, f"{name} has no meaning"
            rows.append((name.strip("`"), kind, limits, default))
    return rows


def examples() -> list[tuple[str, str, str]]:
    found = []
    for title, text in sections().items():
        pairs = re.findall(r"```json\n(.*?)```\n+```hex\n(.*?)```", text, flags=re.DOTALL)
        found += [(title, shown, hexed) for shown, hexed in pairs]
    return found


def from_notation(shown: str) -> Any:
    """The document's JSON with `h'00ff'` for bin."""

    def revive(value: dict[str, Any]) -> Any:
        return bytes.fromhex(value["$bin"]) if set(value) == {"$bin"} else value

    return json.loads(re.sub(r"h'([0-9a-f]*)'", r'{"$bin": "\1"}', shown), object_hook=revive)


STRUCTS = structs_of_the_protocol()
EXAMPLES = examples()


@pytest.mark.parametrize("heading", STRUCTS)
def test_every_struct_has_its_table_of_fields(heading: str) -> None:
    assert documented_rows(sections()[heading]) == rows_of(STRUCTS[heading])


def test_no_struct_is_described_that_does_not_exist() -> None:
    assert {title for title in sections() if title.startswith("`")} == set(STRUCTS)


@pytest.mark.parametrize("heading", [h for h, s in STRUCTS.items() if is_message(s.cls)])
def test_every_message_has_an_example_and_says_what_answers_it(heading: str) -> None:
    assert any(title == heading for title, _, _ in EXAMPLES)
    assert re.search(r"^(Answered|Answers|Not answered)", sections()[heading], flags=re.MULTILINE)


@pytest.mark.parametrize(("heading", "shown", "hexed"), EXAMPLES)
def test_every_example_is_byte_for_byte_what_both_codecs_make_of_it(
    heading: str, shown: str, hexed: str
) -> None:
    wire = bytes.fromhex(hexed)
    reader = codec.FrameReader(codec.MAX_BYTES_FROM_EDGE)
    reader.feed(wire)
    body = reader.next_body()
    assert body is not None
    assert reader.next_body() is None
    towards_edge = "→ edge" in title_line(heading)
    message: msgspec.Struct = codec.decode_to_edge(body) if towards_edge else codec.decode_from_edge(body)
    encode = codec.encode_to_edge if towards_edge else codec.encode_from_edge
    assert heading == f"`{codec.tag_of(message)}`"
    assert encode(message).hex(" ") == wire.hex(" "), "the first is what belongs into the document"
    assert msgpack.unpackb(body) == from_notation(shown)
    assert msgpack.packb(from_notation(shown)) == body


def title_line(heading: str) -> str:
    (line,) = re.findall(rf"^###+ {re.escape(heading)}(?: – .*)?$", DOCUMENT, flags=re.MULTILINE)
    return line


def test_the_worked_handshake_is_what_the_code_computes() -> None:
    values = dict(
        re.findall(r"^([a-z ]+?) +([0-9a-f]{16,}|\S+)$", section_block("Authentication"), flags=re.M)
    )
    secret = values["secret"].encode()
    edge_nonce, plane_nonce = bytes.fromhex(values["edge nonce"]), bytes.fromhex(values["plane nonce"])
    plane = auth.plane_proof(secret, edge_nonce, plane_nonce, values["plane id"])
    edge = auth.edge_proof(secret, edge_nonce, plane_nonce, values["edge id"])
    assert plane.hex() == values["plane proof"]
    assert edge.hex() == values["edge proof"]


def section_block(title: str) -> str:
    text = DOCUMENT.split(f"## {title}\n", 1)[1]
    return text.split("```text\n", 1)[1].split("```", 1)[0]


def test_every_error_code_is_listed_with_its_usual_retryable() -> None:
    listed = {
        code: retryable == "yes"
        for code, retryable in re.findall(r"^\| `(\w+)` \| (yes|no) \|", sections()["Error codes"], re.M)
    }
    assert listed == {code: error_info(code, "").retryable for code in ERROR_CODES}  # type: ignore[arg-type]


def test_error_codes_named_in_the_prose_exist() -> None:
    for line in re.findall(r"^Answered.*$", DOCUMENT, flags=re.MULTILINE):
        for code in re.findall(r"`([a-z]+_[a-z_]+)`", line):
            assert code in ERROR_CODES, line


def test_the_numbers_in_the_prose_are_the_numbers_in_the_code() -> None:
    prose = " ".join(DOCUMENT.split())
    assert f"{codec.MAX_BYTES_TO_EDGE} bytes towards the edge" in prose
    assert f"{codec.MAX_BYTES_FROM_EDGE} bytes from the edge" in prose
    assert f"{codec.MAX_VALUES_TO_EDGE} values" in prose
    assert f"{MAX_DEPTH} levels" in prose
    assert f"strings of at most {MAX_KEY_BYTES} bytes" in prose
    assert f"each {DEFAULT_LIMITS.ping_ns // 10**9} s" in prose
    assert f"{DEFAULT_LIMITS.silence_ns // 10**9} s of silence" in prose
    assert f"within {DEFAULT_LIMITS.hello_ns // 10**9} s" in prose
    assert f"version {messages.PROTOCOL}" in prose
