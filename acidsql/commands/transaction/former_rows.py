"""Rows that lie where a partition is going to be: those of a former one, of which it is none any more.

A place keeps its files where a partition was given another one (SET LOCATION) and dropped there, or where somebody has
copied files. ADD PARTITION and MSCK REPAIR TABLE make them rows again, as in Hive. What only wants to insert rows does
not: they would come back, and be seen by older snapshots and after a ROLLBACK.
"""

from __future__ import annotations

from collections.abc import Sequence

from acidsql import fs
from acidsql.commands.environment import Environment
from acidsql.errors import UnsupportedError
from acidsql.format.directory import acid_state
from acidsql.format.foreign import directory_summary
from acidsql.metastore.model import Partition, Table
from acidsql.metastore.protocol import Metastore
from acidsql.plan.snapshot import partition_names


def with_rows(env: Environment, table: Table, partitions: Sequence[Partition]) -> list[Partition]:
    """Those partitions, registered or not, in whose places there are files of committed rows; the table is locked."""
    found = _with_directory(table, partitions)
    if not found:
        return []
    txns = env.metastore.get_valid_txns()
    [write_ids] = env.metastore.get_valid_write_ids([table.full_name], txns)

    def has_files(partition: Partition) -> bool:
        at = fs.resolve(partition.location)  # that of a failed ADD PARTITION may be gone by now
        return not acid_state(*at, write_ids, txns, any_file_name=table.is_insert_only, is_pinned=True).is_empty

    looks = fs.side_by_side(has_files, found, table.location)
    return [partition for partition, has in zip(found, looks, strict=True) if has]


def holds_unknown_ids(metastore: Metastore, table: Table, path: str) -> bool:
    """Whether a directory has write ids that the table has not allocated so far: of another table, say, whose rows
    would be seen once it has.

    The directory is listed first: a writer that publishes there meanwhile allocated its write id before.
    """
    newest = directory_summary(*fs.resolve(path)).max_write_id
    [allocated] = metastore.get_valid_write_ids([table.full_name], metastore.get_valid_txns())
    return newest > allocated.high_watermark


def refuse_former_rows(env: Environment, table: Table, partitions: Sequence[Partition]) -> None:
    """Make sure that there are none where partitions are going to be that do not exist yet.

    Raises:
        UnsupportedError: When there are some.
    """
    for partition in _with_directory(table, partitions):
        if holds_unknown_ids(env.metastore, table, partition.location):
            raise UnsupportedError(
                f"Directory {partition.location} of the new partition has write ids that {table.full_name} never"
                " allocated"
            )
    found = with_rows(env, table, partitions)
    names = [partition_names(table, p) for p in found]
    exist = {p.values for p in env.metastore.list_partitions(table.database, table.name, names) if p.exists}
    left = [p for p in found if p.values not in exist]  # nobody has committed it since
    if left:
        raise UnsupportedError(
            f"Partition {partition_names(table, left[0])} of {table.full_name} does not exist, but {left[0].location}"
            " has files of a former one",
            hint="MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION, makes them rows of the table again.",
        )


def _with_directory(table: Table, partitions: Sequence[Partition]) -> list[Partition]:
    def is_there(partition: Partition) -> bool:
        filesystem, path = fs.resolve(partition.location)
        return filesystem.exists(path)

    looks = fs.side_by_side(is_there, partitions, table.location)
    return [partition for partition, there in zip(partitions, looks, strict=True) if there]
