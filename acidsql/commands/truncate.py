"""TRUNCATE TABLE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands.alter import acid_table
from acidsql.commands.environment import Environment
from acidsql.commands.partitions import partitions_with, shown, spec_values
from acidsql.commands.places import at
from acidsql.commands.transaction import write_transaction
from acidsql.errors import AnalysisError, PartitionNotFound
from acidsql.metastore.model import LockComponent, LockType, Operation, Table
from acidsql.plan.snapshot import partition_names
from acidsql.plan.target import Target
from acidsql.plan.write import Writer
from acidsql.settings import DRIVER_WRITE_ROWS, LOCK_PARTITIONS
from acidsql.sql.statements import PartitionSpec, TableName, Truncate

NOT_MANAGED = 10146
NOT_PARTITIONED = 10148


def truncate(env: Environment, statement: Truncate, parameters: Mapping[str, Any]) -> DataFrame:
    """TRUNCATE [TABLE]: the table, or the partitions that have the values named.

    1. Find the partitions; Hive's rules tell which tables can be truncated at all.
    2. :func:`truncate_table`.
    """
    name, spec = statement.table, statement.partition
    table = acid_table(env, name)
    if table is None:
        _refuse_not_managed(env, name)
        return env.sql(statement.span.text, parameters)
    partitions = None if spec is None else _named(env, table, spec, parameters)
    if partitions is None or partitions:
        truncate_table(env, table, partitions)
    return env.nothing()


def _refuse_not_managed(env: Environment, name: TableName) -> None:
    """Raises: AnalysisError for a view, or a table whose files are not Hive's to remove (Hive 10146)."""
    table = env.registered(name)
    if table is None or table.table_type == "MANAGED_TABLE":
        return
    if table.is_view or table.parameters.get("external.table.purge", "").lower() != "true":
        message = f"Cannot truncate non-managed table {name.table}."
        raise at(name.span, AnalysisError(message, code=NOT_MANAGED))


def _named(env: Environment, table: Table, spec: PartitionSpec, parameters: Mapping[str, Any]) -> list[str]:
    """Names of the partitions that are meant; one that is named wholly has to be there."""
    if not table.partition_keys:
        message = f"Partition spec for non partitioned table {table.full_name}."
        raise at(spec.span, AnalysisError(message, code=NOT_PARTITIONED))
    values = spec_values(env, table, spec, parameters)
    found = partitions_with(env, table, values)
    if not found and len(values) == len(table.partition_keys):
        raise at(spec.span, PartitionNotFound(f"Partition not found {shown(values)}"))
    return list(found)


def truncate_table(env: Environment, table: Table, partitions: Sequence[str] | None = None) -> None:
    """Hide all rows of a full-ACID or insert-only table, or of some of its partitions.

    1. Lock the table, or the partitions, EXCL_WRITE as Hive does: UPDATE and DELETE wait, readers and INSERT do not.
    2. Allocate the write id; write a base without rows into a staging directory. Hive's own TRUNCATE writes a base that
       holds nothing but ``_metadata_acid``, on which Hive 3.1 fails and which Trino does not see; a base with one
       empty file hides what was there from every engine, as INSERT OVERWRITE of nothing does.
    3. Publish by rename, and commit.

    Args:
        env: The environment.
        table: The table.
        partitions: Names of the partitions; all that are there once the lock is granted, for None.

    Raises:
        LockTimeout: When the locks were not granted in time.
        TransactionError: When the table was changed meanwhile.
    """
    few = partitions is not None and len(partitions) <= env.settings.value(LOCK_PARTITIONS)
    whole = bool(table.partition_keys) and not few
    names = [None] if partitions is None or not few else list(partitions)
    locks = [
        LockComponent(LockType.EXCL_WRITE, table.database, table.name, name, Operation.UPDATE, whole) for name in names
    ]
    with write_transaction(env, locks) as txn:
        txn.confirm(table)
        places: Sequence[str] = [""]
        if table.partition_keys:
            known = env.metastore.list_partitions(table.database, table.name, partitions)
            places = [partition_names(table, p) for p in known]
        target = Target(table, txn.allocate_write_id(table), overwrite=True)
        staging = txn.stage(table)
        writer = Writer(env.spark, target, staging, env.settings.value(DRIVER_WRITE_ROWS))
        for place in places:
            writer.write_nothing(place)
        txn.publish(table, staging, dynamic=Operation.UPDATE if whole else None)
