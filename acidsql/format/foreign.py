"""What a directory tells by its names before its table is known: who wrote into it, and whether files are in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from acidsql.format import names
from acidsql.format.directory import parse_listed
from acidsql.format.names import BaseName
from acidsql.fs import FileStatus, FileSystem


class DirectorySummary(NamedTuple):
    """The transactions that wrote a foreign directory, by the names in it.

    Attributes:
        max_write_id: The largest write id in any name, 0 where there is none.
        max_visibility_txn: The largest transaction of a compactor in any name, 0 where there is none.
    """

    max_write_id: int
    max_visibility_txn: int


def directory_summary(fs: FileSystem, path: str) -> DirectorySummary:
    """Summarise a table directory, including its partitions, before it is imported.

    Raises:
        CorruptFile: When a directory name is invalid.
    """
    found = DirectorySummary(0, 0)
    for entry in _of_table(fs, path):
        if entry.is_dir:
            name = parse_listed(entry)
            if isinstance(name, BaseName):
                below = DirectorySummary(name.write_id, name.visibility_txn)
            elif name is not None:
                below = DirectorySummary(name.max_write_id, name.visibility_txn)
            else:
                below = directory_summary(fs, entry.path)
            found = DirectorySummary(*map(max, found, below))
    return found


def has_files(fs: FileSystem, path: str) -> bool:
    """Whether there are files of readers below a table directory, its partitions included."""
    return any(not entry.is_dir or has_files(fs, entry.path) for entry in _of_table(fs, path))


def _of_table(fs: FileSystem, path: str) -> Iterator[FileStatus]:
    """What is not hidden, and partitions whose key begins like a hidden name: they are where the metastore has them."""
    return (e for e in fs.list(path) if not names.is_hidden(e.name) or (e.is_dir and "=" in e.name))
