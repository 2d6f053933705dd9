"""Rows that lie where a partition is going to be: those of a former one, of which it is none any more.

A place keeps its files where a partition was given another one (SET LOCATION) and dropped there, or where somebody has
copied files. ADD PARTITION and MSCK REPAIR TABLE make them rows again, as in Hive. What only wants to insert rows does
not: they would come back, and be seen by older snapshots and after a ROLLBACK.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress

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
    if not partitions:
        return []
    txns = env.metastore.get_valid_txns()
    [write_ids] = env.metastore.get_valid_write_ids([table.full_name], txns)

    def has_files(partition: Partition) -> bool:
        at = fs.resolve(partition.location)  # that of a failed ADD PARTITION may be gone by now
        return not acid_state(*at, write_ids, txns, any_file_name=table.is_insert_only, is_pinned=True).is_empty

    return _those(has_files, table, partitions)


def refuse_unknown_ids(metastore: Metastore, table: Table, partitions: Sequence[Partition]) -> None:
    """Make sure that directories have no write ids that the table has not allocated so far: of another table, say,
    whose rows would be seen once it has.

    The directories are listed first: a writer that publishes there meanwhile allocated its write id before.

    Raises:
        UnsupportedError: When one has.
    """
    newest = {p.location: directory_summary(*fs.resolve(p.location)).max_write_id for p in partitions}
    [allocated] = metastore.get_valid_write_ids([table.full_name], metastore.get_valid_txns())
    for location, write_id in newest.items():
        if write_id > allocated.high_watermark:
            path = fs.absolute(location)
            message = f"Directory {path} of the new partition has write ids that {table.full_name} never allocated"
            raise UnsupportedError(message)


def refuse_former_rows(env: Environment, table: Table, partitions: Sequence[Partition]) -> None:
    """Make sure that there are none where partitions are going to be that do not exist yet.

    Raises:
        UnsupportedError: When there are some.
    """

    def is_there(partition: Partition) -> bool:
        filesystem, path = fs.resolve(partition.location)
        return filesystem.exists(path)

    there = _those(is_there, table, partitions)
    if not there:
        return
    refuse_unknown_ids(env.metastore, table, there)
    found = with_rows(env, table, there)
    names = [partition_names(table, p) for p in found]
    exist = {p.values for p in env.metastore.list_partitions(table.database, table.name, names) if p.exists}
    left = [p for p in found if p.values not in exist]  # nobody has committed it since
    if left:
        raise UnsupportedError(
            f"Partition {partition_names(table, left[0])} of {table.full_name} does not exist, but {left[0].location}"
            " has files of a former one",
            hint="MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION, makes them rows of the table again.",
        )


def _those(look: Callable[[Partition], bool], table: Table, partitions: Sequence[Partition]) -> list[Partition]:
    """The partitions of which a look at their places says so."""
    return list(compress(partitions, fs.side_by_side(look, partitions, table.location)))
