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
from acidsql.protobuf import bytes_of, number_of, read_message

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
    fields = read_message(message)
    path = bytes_of(fields[_PATH][-1]).decode()
    name = path.rpartition("/")[2]
    is_dir = number_of(fields, _TYPE) == _DIRECTORY
    length = 0 if is_dir else number_of(fields, _LENGTH)
    inside = f"{directory.rstrip('/')}/{name}"
    return path, FileStatus(inside, name, is_dir, length, number_of(fields, _MODIFIED) * 1_000_000)
