"""A table as one snapshot sees it: the files of each partition that are to be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from acidsql import fs
from acidsql.format.data_files import DirectoryGone
from acidsql.format.directory import AcidState, acid_state
from acidsql.metastore.model import Partition, Table
from acidsql.partition_names import parse_partition_name, partition_name
from acidsql.types import Struct, parse_type
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList

Resolve = Callable[[str], tuple[fs.FileSystem, str]]
"""From a location to a file system and the path in it."""


@dataclass(frozen=True)
class PartitionState:
    """The directory state of one partition; ``partition`` is None for a table without partitions."""

    partition: Partition | None
    state: AcidState


@dataclass(frozen=True)
class TableSnapshot:
    """A table, the write ids that are seen, and the state of every partition that is read."""

    table: Table
    write_ids: ValidWriteIdList
    partitions: tuple[PartitionState, ...]


def row_type_of(table: Table) -> Struct:
    """The ``row`` of a table's events: its data columns, without the partition keys."""
    return Struct(tuple((c.name, parse_type(c.type)) for c in table.columns))


def partition_names(table: Table, partition: Partition) -> str:
    """Name of a partition as in its path: ``p=1/q=even``."""
    return partition_name([k.name for k in table.partition_keys], list(partition.values))


def new_partition(table: Table, name: str) -> Partition:
    """A partition at its usual place below the table."""
    values = tuple(value for _, value in parse_partition_name(name))
    return Partition(table.database, table.name, values, f"{table.location.rstrip('/')}/{name}")


def take_snapshot(
    table: Table,
    write_ids: ValidWriteIdList,
    txns: ValidTxnList,
    partitions: Sequence[Partition] | None,
    *,
    resolve: Resolve = fs.resolve,
    is_pinned: bool = False,
) -> TableSnapshot:
    """List a table's directories and choose the files that the snapshot sees.

    Args:
        table: The table.
        write_ids: Write ids of the table that the snapshot sees.
        txns: Transactions that it sees (for ``_v<txn>`` directories).
        partitions: The partitions to read; None for a table without partition keys.
        resolve: Finds the file system of a location.
        is_pinned: Whether an open transaction has kept the cleaner away since the snapshot was taken.

    Raises:
        SnapshotTooOld: When the files of this snapshot were compacted away and cleaned.
        CorruptFile: When the name of a directory or a side file is invalid.
        StorageError: When a directory does not exist.
    """

    def look(partition: Partition | None) -> PartitionState:
        filesystem, path = resolve(table.location if partition is None else partition.location)
        state = acid_state(filesystem, path, write_ids, txns, any_file_name=table.is_insert_only, is_pinned=is_pinned)
        if not (state.data_directories or state.originals or filesystem.exists(path)):
            # a table or partition has a directory from its first day to its last: rows may be where it is now
            raise DirectoryGone(path)
        return PartitionState(partition, state)

    places: Sequence[Partition | None] = [None] if partitions is None else partitions
    return TableSnapshot(table, write_ids, tuple(fs.side_by_side(look, places, table.location)))
