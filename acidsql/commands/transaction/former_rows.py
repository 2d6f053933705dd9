"""Rows that lie where a partition is going to be: those of a former one, of which it is none any more.

A place keeps its files where a partition was given another one (SET LOCATION) and dropped there, or where somebody has
copied files. ADD PARTITION and MSCK REPAIR TABLE make them rows again, as in Hive. What only wants to insert rows does
not: they would come back, and be seen by older snapshots and after a ROLLBACK.
"""

from __future__ import annotations

from collections.abc import Sequence

from acidsql import fs
from acidsql.commands.environment import Environment
from acidsql.commands.resolve.context import StatementContext, StatementSnapshot
from acidsql.errors import UnsupportedError
from acidsql.metastore.model import Partition, Table
from acidsql.plan.snapshot import partition_names


def with_rows(env: Environment, table: Table, partitions: Sequence[Partition]) -> list[Partition]:
    """Those partitions, registered or not, in whose places there are committed rows.

    Raises:
        StartOver: When the table is changed meanwhile.
    """

    def is_there(partition: Partition) -> bool:
        filesystem, path = fs.resolve(partition.location)
        return filesystem.exists(path)

    found = [
        p for p, there in zip(partitions, fs.side_by_side(is_there, partitions, table.location), strict=True) if there
    ]
    if not found:
        return []
    metastore = env.metastore
    version = metastore.latest_version()
    context = StatementContext(env, StatementSnapshot(metastore.get_valid_txns(), version))
    context.add(table)
    parts = context.table_snapshot(table, found).partitions
    return [part.partition for part in parts if part.partition is not None and not part.state.is_empty]


def refuse_former_rows(env: Environment, table: Table, partitions: Sequence[Partition]) -> None:
    """Make sure that there are none where partitions are going to be that do not exist yet.

    Raises:
        UnsupportedError: When there are some.
    """
    found = with_rows(env, table, partitions)
    names = [partition_names(table, p) for p in found]
    exist = {p.values for p in env.metastore.list_partitions(table.database, table.name, names) if p.exists}
    left = [p for p in found if p.values not in exist]  # nobody has committed it since
    if left:
        raise UnsupportedError(
            f"Partition {partition_names(table, left[0])} of {table.full_name} does not exist, but {left[0].location}"
            " has rows of a former one",
            hint="MSCK REPAIR TABLE, or ALTER TABLE … ADD PARTITION, makes them rows of the table again.",
        )
