"""How far back the changes of a directory can be followed.

A base hides what it replaces without telling how it came about: rows that were deleted are not in it, and the events
that deleted them are gone. As long as the replaced files are there, they tell. A cleaner of acidsql that is about to
remove them leaves a note first, an empty file whose name carries the write id of the base: no change up to that one can
be read from then on. Readers list first and look for notes afterwards, so that they notice what they have missed. Hive
and Spark pass over files of such a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from acidsql.format.data_files import still_there, walk
from acidsql.format.directory import data_format, parse_listed
from acidsql.format.names import BaseName, is_hidden, parse_bucket_file
from acidsql.format.orc_statistics import integer_range
from acidsql.format.schema import EVENT_COLUMNS
from acidsql.format.tail import footer_of, read_tail
from acidsql.fs import FileSystem, join
from acidsql.valid_ids import ValidWriteIdList

_NOTE = re.compile(r"_acidsql_history_([0-9]+)")


def _noted(fs: FileSystem, path: str) -> Iterator[tuple[int, str]]:
    for entry in fs.list(path):
        if found := _NOTE.fullmatch(entry.name):
            yield int(found[1]), entry.path


def last_forgotten(fs: FileSystem, path: str) -> int:
    """The last write id whose changes are not to be found in a directory any more; 0 where none is known."""
    return max((write_id for write_id, _ in _noted(fs, path)), default=0)


def forget_changes(fs: FileSystem, path: str, write_id: int) -> None:
    """Note that files are about to be removed without which the changes up to a write id cannot be followed.

    The note is durable when this returns.
    """
    before = list(_noted(fs, path))
    if any(known >= write_id for known, _ in before):
        return
    note = join(path, f"_acidsql_history_{write_id:07d}")
    fs.write_bytes(note, b"")
    fs.sync(directories=[path])
    for _, older in before:
        fs.delete(older)


@dataclass(frozen=True)
class Replacements:
    """The bases in a directory that no compaction of deltas has made, by their write ids.

    Attributes:
        overwrites: Those of INSERT OVERWRITE and TRUNCATE: they have replaced all rows.
        rebalances: Those in which rows have got other ids, but are the rows from before.
    """

    overwrites: tuple[int, ...]
    rebalances: tuple[int, ...]


def replacements(fs: FileSystem, path: str, write_ids: ValidWriteIdList, since: int) -> Replacements:
    """What a snapshot sees replace the rows of a directory, from a write id on."""
    named = ((parse_listed(entry), entry.path) for entry in fs.list(path) if entry.is_dir and not is_hidden(entry.name))
    found: dict[bool, list[int]] = {True: [], False: []}
    for name, base in named:
        if (
            isinstance(name, BaseName)
            and name.write_id >= since
            and write_ids.is_valid(name.write_id)
            and not name.visibility_txn
            and data_format(fs, base) != "compacted"
        ):
            found[_is_written_by(fs, base, name.write_id)].append(name.write_id)
    return Replacements(*(tuple(sorted(found[is_new])) for is_new in (True, False)))


def _is_written_by(fs: FileSystem, base: str, write_id: int) -> bool:
    """Whether all rows of a base are of one write id."""
    for entry in walk(fs, still_there(fs, base)):
        if not entry.length or parse_bucket_file(entry.name) is None:
            continue
        with fs.open_read(entry.path) as file:
            tail = read_tail(file, entry.path)
        footer = footer_of(tail, entry.path)
        if footer.is_acid and footer.row_count:
            bounds = integer_range(tail, EVENT_COLUMNS.index("originalTransaction") + 1)
            if bounds != (write_id, write_id):
                return False
    return True
