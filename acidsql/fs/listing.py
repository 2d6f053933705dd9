"""A directory listing of Hadoop in one piece: ``FileStatus`` objects as Hadoop itself writes them to the wire.

Asking py4j for each value of each entry would cost a call of the JVM every time. ``FileStatus`` is a ``Writable``: an
array of them is written as their number, and each as its length and a protocol buffer ``FileStatusProto``; the numbers
have four bytes, the highest first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from acidsql.errors import StorageError
from acidsql.fs.protocol import FileStatus

_TYPE, _PATH, _LENGTH, _MODIFIED = 1, 2, 3, 7
_DIRECTORY = 1


def decode_listing(data: bytes, directory: str) -> list[FileStatus]:
    """The entries of a directory.

    Args:
        data: The array of statuses, as ``ArrayWritable`` writes it.
        directory: Their directory; their paths begin with it, as it is written here.

    Raises:
        StorageError: When it is a file: Hadoop then lists the file itself.
    """
    found = []
    for message in _messages(data):
        path, status = _status(message, directory)
        if not status.is_dir and _below_root(path) == _below_root(directory):
            raise StorageError(f"Cannot list {directory}: Not a directory")
        found.append(status)
    return found


def _below_root(path: str) -> str:
    return re.sub(r"^[^/]*:(//[^/]*)?", "", path)


def _messages(data: bytes) -> Iterator[bytes]:
    at = 4
    for _ in range(int.from_bytes(data[:4], "big")):
        start = at + 4
        at = start + int.from_bytes(data[at:start], "big")
        yield data[start:at]


def _status(message: bytes, directory: str) -> tuple[str, FileStatus]:
    """The path as Hadoop writes it, and the entry."""
    kind = length = modified = 0
    path = ""
    for field, value in _fields(message):
        if field == _TYPE and isinstance(value, int):
            kind = value
        elif field == _LENGTH and isinstance(value, int):
            length = value
        elif field == _MODIFIED and isinstance(value, int):
            modified = value
        elif field == _PATH and isinstance(value, bytes):
            path = value.decode()
    name = path.rpartition("/")[2]
    is_dir = kind == _DIRECTORY
    inside = f"{directory.rstrip('/')}/{name}"
    return path, FileStatus(inside, name, is_dir, 0 if is_dir else length, modified * 1_000_000)


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Numbers and values of a protocol buffer's fields: numbers as they are, everything else as bytes."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        if tag & 7 == 0:
            number, at = _varint(message, at)
            yield tag >> 3, number
        else:
            length, at = _varint(message, at) if tag & 7 == 2 else ({1: 8, 5: 4}[tag & 7], at)
            yield tag >> 3, message[at : at + length]
            at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
