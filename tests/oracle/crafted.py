"""ORC files that no writer makes: their footers are written by hand, as protobuf messages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

LONG, LIST, STRUCT = 4, 10, 12
Field = tuple[int, int | bytes]


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def message(*fields: Field) -> bytes:
    """A protobuf message of numbers and of bytes."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += _varint(number << 3) + _varint(value)
        else:
            out += _varint(number << 3 | 2) + _varint(len(value)) + value
    return out


def write_orc(path: Path, types: Sequence[bytes]) -> Path:
    """A file without rows whose footer lists these types."""
    footer = message((1, 3), (2, 3), *((4, t) for t in types), (6, 0))
    postscript = message((1, len(footer)), (2, 0), (3, 65536), (4, 0), (4, 12), (5, 0), (6, 6), (8000, b"ORC"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"ORC" + footer + postscript + bytes([len(postscript)]))
    return path


def doubling(levels: int) -> list[bytes]:
    """Structs of two fields that are the same next struct: twice as many leaves with each level."""
    structs = [message((1, STRUCT), (2, n + 1), (2, n + 1), (3, b"a"), (3, b"b")) for n in range(levels)]
    return [*structs, message((1, LONG))]


def nested(levels: int) -> list[bytes]:
    """A list of a list of a list …"""
    lists = [message((1, LIST), (2, n + 2)) for n in range(levels)]
    return [message((1, STRUCT), (2, 1), (3, b"id")), *lists, message((1, LONG))]


def circle() -> list[bytes]:
    """A struct that holds itself."""
    return [message((1, STRUCT), (2, 1), (3, b"id")), message((1, STRUCT), (2, 0), (3, b"a"))]
