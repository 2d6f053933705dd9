"""The directories of a table by the write ids in their names: what each write has left, as far as it can be seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from acidsql import fs
from acidsql.errors import CorruptFile
from acidsql.format.data_files import AcidFile, acid_file, walk
from acidsql.format.directory import data_format
from acidsql.format.names import BaseName, DeltaName, is_hidden, is_side_file, parse_directory
from acidsql.metastore.model import Partition, Table
from acidsql.plan.facts import facts_of
from acidsql.plan.snapshot import Resolve, partition_names
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList


@dataclass(frozen=True)
class WrittenDirectory:
    """A base or delta that belongs to committed writes alone.

    Attributes:
        partition: Name of its partition, empty for a table without keys.
        name: What its name says.
        write_id: The highest committed write id in it.
        is_compacted: Whether a compactor made it.
        truncates: Whether Hive's TRUNCATE did: it says so in the directory.
        files: Its data files.
    """

    partition: str
    name: BaseName | DeltaName
    write_id: int
    is_compacted: bool
    truncates: bool
    files: tuple[AcidFile, ...]

    @property
    def is_base(self) -> bool:
        return isinstance(self.name, BaseName)

    @property
    def is_delete(self) -> bool:
        """Whether it holds delete events."""
        return isinstance(self.name, DeltaName) and self.name.is_delete

    @property
    def is_own(self) -> bool:
        """Whether it holds what one transaction wrote, and nothing else."""
        if self.is_compacted:
            return False
        return isinstance(self.name, BaseName) or self.name.min_write_id == self.name.max_write_id


def written_directories(
    table: Table,
    write_ids: ValidWriteIdList,
    txns: ValidTxnList,
    partitions: Sequence[Partition] | None,
    *,
    resolve: Resolve = fs.resolve,
) -> list[WrittenDirectory]:
    """The directories of a table that a snapshot may see, also those that others have made obsolete.

    Args:
        table: The table.
        write_ids: Write ids that the snapshot sees.
        txns: Transactions that it sees.
        partitions: The partitions; None for a table without keys.
        resolve: Finds the file system of a location.
    """
    found: list[WrittenDirectory] = []
    for partition in [None] if partitions is None else partitions:
        filesystem, path = resolve(table.location if partition is None else partition.location)
        name = "" if partition is None else partition_names(table, partition)
        found += _in(filesystem, path, name, write_ids, txns)
    return found


def _in(
    filesystem: fs.FileSystem, path: str, partition: str, write_ids: ValidWriteIdList, txns: ValidTxnList
) -> Iterator[WrittenDirectory]:
    for entry in filesystem.list(path):
        name = parse_directory(entry.name) if entry.is_dir and not is_hidden(entry.name) else None
        if name is None or (name.visibility_txn and not txns.is_valid(name.visibility_txn)):
            continue
        first, last = (name.write_id,) * 2 if isinstance(name, BaseName) else (name.min_write_id, name.max_write_id)
        write_id = next((w for w in range(last, max(first, 1) - 1, -1) if write_ids.is_valid(w)), None)
        if write_id is None:
            continue
        kind = data_format(filesystem, entry.path) if isinstance(name, BaseName) and not name.visibility_txn else None
        compacted = name.visibility_txn > 0 or kind == "compacted"
        listed = walk(filesystem, filesystem.list(entry.path))
        files = tuple(acid_file(f) for f in listed if not is_side_file(f.name))
        yield WrittenDirectory(partition, name, write_id, compacted, kind == "truncated", files)


def count_rows(directories: Iterable[WrittenDirectory]) -> tuple[int | None, int | None]:
    """How many rows the directories of one write have brought, and how many they have deleted, by their files' footers.

    None where that cannot be told: there are no directories, a file is not an ORC file; or, of the deleted ones, a base
    hides what was there.
    """
    listed = list(directories)
    inserted = deleted = 0
    try:
        for directory in listed:
            for file in directory.files:
                facts = facts_of(file)
                changed = facts.stats.updates + facts.stats.deletes if facts.stats is not None else 0
                deleted += facts.rows if directory.is_delete else changed  # before Hive 3 they stood among inserts
                inserted += 0 if directory.is_delete else facts.rows - (facts.stats.deletes if facts.stats else 0)
    except CorruptFile:
        return None, None
    if not listed:
        return None, None
    return inserted, None if any(d.is_base for d in listed) else deleted
