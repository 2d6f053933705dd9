"""Reading protocol buffers without their classes: the tails of ORC files, and what Hadoop sends about files.

The bytes come from outside: what does not fit raises ValueError, IndexError or KeyError.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

Message = dict[int, list[int | bytes]]
"""The values of each field by its number, in their order: numbers as they are, everything else as bytes."""


def read_message(data: bytes) -> Message:
    """The fields of a message."""
    found: Message = {}
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        value: int | bytes
        if tag & 7 == 0:
            value, at = read_varint(data, at)
        else:
            length, at = read_varint(data, at) if tag & 7 == 2 else ({1: 8, 5: 4}[tag & 7], at)
            value, at = data[at : at + length], at + length
            if at > len(data):
                raise ValueError("a message is cut off")
        found.setdefault(tag >> 3, []).append(value)
    return found


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length at an offset, and the offset behind it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def number_of(message: Message, field: int) -> int:
    """The number in a field, 0 where the field is not there."""
    value = message.get(field, [0])[-1]
    if not isinstance(value, int):
        raise ValueError(f"field {field} of a message is not a number")
    return value


def bytes_of(value: int | bytes) -> bytes:
    """A value that is text, bytes or a message."""
    if not isinstance(value, bytes):
        raise ValueError("a number stands in a message where there should be none")
    return value


def numbers_of(values: Sequence[int | bytes]) -> Iterator[int]:
    """Repeated numbers, packed or not."""
    for value in values:
        if isinstance(value, int):
            yield value
        else:
            at = 0
            while at < len(value):
                number, at = read_varint(value, at)
                yield number
