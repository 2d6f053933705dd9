"""Protocol buffers without generated classes: the tails of ORC files, and Hadoop's file status messages.

The input is untrusted: invalid messages, and messages that would need excessive memory, raise ValueError, IndexError or
KeyError.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

Message = dict[int, list[int | bytes]]
"""The values of each field by field number, in order: numbers as int, everything else as bytes."""

MAX_FIELDS = 1 << 20
"""Maximum number of values in a message: in memory each takes about fifty times its encoded size."""
_WORD = (1 << 64) - 1
_SHORT = [bytes([value]) for value in range(0x80)]
"""Numbers of one byte: most of them are."""
_LAST_SHIFT = 63
"""A number has 64 bits, in at most ten bytes."""


def read_message(data: bytes) -> Message:
    """The fields of a message."""
    message: Message = {}
    at = count = 0
    while at < len(data):
        count += 1
        if count > MAX_FIELDS:
            raise ValueError("a message has too many fields")
        tag, at = (data[at], at + 1) if data[at] < 0x80 else read_varint(data, at)
        kind = tag & 7
        value: int | bytes
        if kind == 0:
            value, at = (data[at], at + 1) if data[at] < 0x80 else read_varint(data, at)
        else:
            length, at = read_varint(data, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
            value, at = data[at : at + length], at + length
            if at > len(data):
                raise ValueError("a message is cut off")
        message.setdefault(tag >> 3, []).append(value)
    return message


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The varint at an offset, and the offset after it."""
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
    """The number in a field, 0 where the field is missing."""
    value = message.get(field, [0])[-1]
    if not isinstance(value, int):
        raise ValueError(f"field {field} of a message is not a number")
    return value


def bytes_of(value: int | bytes) -> bytes:
    """A value that is text, bytes or a message."""
    if not isinstance(value, bytes):
        raise ValueError("a message has a number where bytes are expected")
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
    """A message of fields in this order: numbers as varints, bytes length-delimited."""
    encoded = bytearray()
    for field, value in fields:
        if isinstance(value, int):
            encoded += write_varint(field << 3) + write_varint(value)
        else:
            encoded += write_varint(field << 3 | 2) + write_varint(len(value)) + value
    return bytes(encoded)


def write_varint(value: int) -> bytes:
    """A varint; a negative number as its 64-bit two's complement."""
    if 0 <= value <= 0x7F:
        return _SHORT[value]
    value &= _WORD
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def zigzag(value: int) -> int:
    """A signed number in the encoding of ``sint64``."""
    return value << 1 if value >= 0 else (-value << 1) - 1


def unzigzag(value: int) -> int:
    """The inverse of :func:`zigzag`."""
    return value >> 1 if not value & 1 else -(value >> 1) - 1
