"""Protocol buffers without their classes: the tails of ORC files, and what Hadoop sends about files.

What is read comes from outside, and may be crafted: what does not fit, or would take more memory than its meaning can
need, raises ValueError, IndexError or KeyError.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

Message = dict[int, list[int | bytes]]
"""The values of each field by its number, in their order: numbers as they are, everything else as bytes."""

MAX_FIELDS = 1 << 20
"""Values that a message may have: each takes some fifty times the bytes that it stands in."""
_WORD = (1 << 64) - 1
_LAST_SHIFT = 63
"""A number has 64 bits, in ten bytes at most."""


def read_message(data: bytes) -> Message:
    """The fields of a message."""
    found: Message = {}
    at = count = 0
    while at < len(data):
        count += 1
        if count > MAX_FIELDS:
            raise ValueError("a message has too many fields")
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
            return value & _WORD, at
        shift += 7
        if shift > _LAST_SHIFT:
            raise ValueError("a number is longer than 64 bits")


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
            if len(value) > MAX_FIELDS:
                raise ValueError("a message has too many numbers")
            while at < len(value):
                number, at = read_varint(value, at)
                yield number


def write_message(fields: Iterable[tuple[int, int | bytes]]) -> bytes:
    """A message of fields in their order: numbers of variable length, and what has a length of its own."""
    made = bytearray()
    for field, value in fields:
        if isinstance(value, int):
            made += write_varint(field << 3) + write_varint(value)
        else:
            made += write_varint(field << 3 | 2) + write_varint(len(value)) + value
    return bytes(made)


def write_varint(value: int) -> bytes:
    """A number of variable length; a negative one as the 64 bits of its two's complement."""
    value &= _WORD
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def zigzag(value: int) -> int:
    """A signed number as protocol buffers write ``sint64``."""
    return value << 1 if value >= 0 else (-value << 1) - 1


def unzigzag(value: int) -> int:
    """The signed number that :func:`zigzag` made another of."""
    return value >> 1 if not value & 1 else -(value >> 1) - 1
