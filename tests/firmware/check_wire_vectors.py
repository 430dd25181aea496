"""The golden vectors against the codec, in whatever interpreter runs this: PYTHON check_wire_vectors.py ROOT.

Prints how many vectors held and leaves with an error at the first that does not.
"""

import json
import sys

sys.path.insert(0, sys.argv[1])

from firmware import wire


def unhex(text):
    return bytes(int(text[i : i + 2], 16) for i in range(0, len(text), 2))


def expect(name, what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{name}: {what} is {got!r}, must be {wanted!r}")


def check(vector):
    name = vector["name"]
    line, body = unhex(vector["frame"]), unhex(vector["body"])
    header = (vector["type"], vector["boot_id"], vector["session_id"], vector["seq"])
    expect(name, "frame", wire.encode_frame(*header, body), line)
    (frame,) = wire.Decoder().feed(line)
    expect(name, "header", (frame.type, frame.boot_id, frame.session_id, frame.seq), header)
    expect(name, "body", frame.body, body)
    if "fields" in vector:
        fields = tuple(vector["fields"])
        expect(name, "fields", wire.unpack_body(frame.type, body), fields)
        expect(
            name, "packed", wire.pack_body(frame.type, *fields, tail=wire.body_tail(frame.type, body)), body
        )
    else:
        expect(name, "HELLO", wire.unpack_hello(body).pack(), body)
    if "op" in vector:
        op, given = vector["op"], tuple(vector["args"])
        args = wire.body_tail(wire.CMD, body)
        expect(name, "arguments", wire.unpack_args(op, args), given)
        expect(name, "packed", wire.pack_args(op, *given, tail=wire.args_tail(op, args)), args)


def main():
    with open(sys.argv[1] + "/tests/firmware/wire_vectors.json") as file:
        vectors = json.load(file)
    for vector in vectors:
        check(vector)
    sys.stdout.write(f"{len(vectors)} vectors hold\n")


main()
