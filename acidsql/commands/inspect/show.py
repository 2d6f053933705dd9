"""SHOW statements. Result columns are those of Hive (transactions, locks) or Spark (the rest)."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.errors import AnalysisError, PartitionNotFound
from acidsql.metastore.model import LockInfo, LockState, Table, TxnState
from acidsql.plan.snapshot import partition_names
from acidsql.sql.statements import (
    PartitionSpec,
    ShowColumns,
    ShowDatabases,
    ShowLocks,
    ShowPartitions,
    ShowProperties,
    ShowTables,
    ShowTransactions,
    ShowViews,
    TableName,
)

TRANSACTION_COLUMNS = ("txnid", "state", "startedtime", "lastheartbeattime", "user", "host")
LOCK_COLUMNS = (
    "lockid",
    "database",
    "table",
    "partition",
    "lock_state",
    "blocked_by",
    "lock_type",
    "transaction_id",
    "last_heartbeat",
    "acquired_at",
    "user",
    "hostname",
    "agent_info",
)


def _matches(name: str, pattern: str | None) -> bool:
    """SHOW … LIKE: ``*`` for any text and ``|`` between alternatives, as in Hive and Spark; ``%`` is accepted too."""
    if pattern is None:
        return True
    return any(fnmatch.fnmatchcase(name.lower(), p.strip().lower().replace("%", "*")) for p in pattern.split("|"))


def show_databases(env: Environment, statement: ShowDatabases, parameters: Mapping[str, Any]) -> DataFrame:
    """Databases of the metastore and of Spark."""
    names = set(env.metastore.list_databases()) | {d.name for d in env.spark.catalog.listDatabases()}
    return env.strings(["namespace"], [[n] for n in sorted(names) if _matches(n, statement.like)])


def show_tables(env: Environment, statement: ShowTables, parameters: Mapping[str, Any]) -> DataFrame:
    """ACID tables and views over them, and Spark's own tables and temporary views, of one database."""
    database = statement.database.text.lower() if statement.database else env.database
    rows = _relations(env, database, views_only=False)
    return _relations_frame(env, "tableName", rows, statement.like)


def show_views(env: Environment, statement: ShowViews, parameters: Mapping[str, Any]) -> DataFrame:
    """Views of the metastore, and Spark's own and temporary ones, of one database."""
    database = statement.database.text.lower() if statement.database else env.database
    rows = _relations(env, database, views_only=True)
    return _relations_frame(env, "viewName", rows, statement.like)


def _relations(env: Environment, database: str, *, views_only: bool) -> dict[tuple[str, str], bool]:
    """Whether a table or view is temporary, by its database (none for a temporary one) and name."""
    rows: dict[tuple[str, str], bool] = {}
    ours = database in env.metastore.list_databases()
    if env.spark.catalog.databaseExists(database):
        for entry in env.spark.catalog.listTables(database):
            if not views_only or entry.isTemporary or entry.tableType == "VIEW":
                rows["" if entry.isTemporary else database, entry.name] = entry.isTemporary
    elif not ours:
        env.require_database(database)
    if ours:
        listed = env.metastore.list_views if views_only else env.metastore.list_tables
        rows.update({(database, name): False for name in listed(database)})
    return rows


def _relations_frame(
    env: Environment, name: str, rows: Mapping[tuple[str, str], bool], pattern: str | None
) -> DataFrame:
    kept = [(*key, temporary) for key, temporary in sorted(rows.items()) if _matches(key[1], pattern)]
    return env.frame({"namespace": pa.string(), name: pa.string(), "isTemporary": pa.bool_()}, kept)


def show_partitions(env: Environment, statement: ShowPartitions, parameters: Mapping[str, Any]) -> DataFrame:
    """Names of a table's partitions, ``p=1/q=even``; only those of a (partial) PARTITION clause."""
    table = env.find_table(statement.table)
    if table is None:
        return env.sql(statement.span.text, parameters)
    if not table.partition_keys:
        span = statement.table.span
        error = AnalysisError(f"Table {table.full_name} is not a partitioned table", code=10241)
        raise with_location(span, error)
    wanted = _wanted_values(env, statement.partition)
    keys = [k.name for k in table.partition_keys]
    partitions = env.metastore.list_partitions(table.database, table.name)
    kept = [p for p in partitions if all(dict(zip(keys, p.values, strict=True)).get(k) == v for k, v in wanted.items())]
    return env.strings(["partition"], [[partition_names(table, p)] for p in kept])


def _wanted_values(env: Environment, spec: PartitionSpec | None) -> dict[str, str]:
    wanted = {}
    for key, value in spec.keys if spec else ():
        if value is not None:
            row = env.spark.sql(f"SELECT CAST(({value.text}\n) AS string) FROM VALUES (1)").collect()[0]
            wanted[key.text.lower()] = str(row[0])
    return wanted


def known_table(env: Environment, name: TableName) -> Table | None:
    """The table or view as registered in the metastore; None if Spark has to describe it.

    Spark describes tables of a Hive Metastore that are not transactional, if it has them.
    """
    table = env.registered(name)
    if table is None or table.is_transactional or table.is_view:
        return table
    return None if env.known_to_spark(name) else table


def show_columns(env: Environment, statement: ShowColumns, parameters: Mapping[str, Any]) -> DataFrame:
    """Names of a table's columns, partition keys last, in a column named as in Hive."""
    table = known_table(env, statement.table)
    if table is None:
        return env.sql(statement.span.text, parameters)
    return env.strings(["field"], [[c.name] for c in table.all_columns if _matches(c.name, statement.like)])


def show_properties(env: Environment, statement: ShowProperties, parameters: Mapping[str, Any]) -> DataFrame:
    """A table's properties by name, or one of them; a missing one is reported in the result, as in Hive."""
    table = known_table(env, statement.table)
    if table is None:
        return env.sql(statement.span.text, parameters)
    properties = table.shown_parameters
    rows: list[list[str | None]] = [[k, v] for k, v in sorted(properties.items())]
    if statement.key is not None:
        key = statement.key.value
        missing = [f"Table {table.full_name} does not have property: {key}", None]
        rows = [[key, properties[key]] if key in properties else missing]
    return env.strings(["prpt_name", "prpt_value"], rows)


def show_transactions(env: Environment, statement: ShowTransactions, parameters: Mapping[str, Any]) -> DataFrame:
    """Open and aborted transactions, also of readers, with Hive's columns."""
    env.heartbeats.end_released(collect=True)
    states = {TxnState.OPEN: "OPEN", TxnState.ABORTED: "ABORTED", TxnState.COMMITTED: "COMMITTED"}
    rows = [
        [str(t.id), states[t.state], str(t.started_ms), str(t.heartbeat_ms), t.user, t.host]
        for t in env.metastore.show_txns()
    ]
    return env.strings(TRANSACTION_COLUMNS, rows)


def show_locks(env: Environment, statement: ShowLocks, parameters: Mapping[str, Any]) -> DataFrame:
    """Acquired and waiting locks, with Hive's columns."""
    database = statement.database.text.lower() if statement.database else None
    table = partition = None
    if statement.table is not None:
        database, table = env.database_of(statement.table), statement.table.table.lower()
        partition = _partition_named(env, statement, database, table)
    return env.strings(LOCK_COLUMNS, [_lock_row(i) for i in env.metastore.show_locks(database, table, partition)])


def _partition_named(env: Environment, statement: ShowLocks, database: str, table: str) -> str | None:
    if statement.partition is None:
        return None
    known = env.metastore.get_table(database, table)
    wanted = _wanted_values(env, statement.partition)
    for partition in env.metastore.list_partitions(database, table):
        if dict(zip([k.name for k in known.partition_keys], partition.values, strict=True)) == wanted:
            return partition_names(known, partition)
    span = statement.partition.span
    raise with_location(span, PartitionNotFound(f"Partition not found {wanted}"))


def _lock_row(lock: LockInfo) -> list[str | None]:
    blocked = "            "  # as Hive prints a lock that is not blocked
    if lock.blocked_by_lock_id is not None:
        blocked = f"{lock.blocked_by_lock_id}.{lock.blocked_by_internal_id}"

    def shown(value: object | None) -> str:
        return "NULL" if value is None else str(value)

    return [
        f"{lock.lock_id}.{lock.internal_id}",
        lock.database,
        shown(lock.table),
        shown(lock.partition),
        "ACQUIRED" if lock.state is LockState.ACQUIRED else "WAITING",
        blocked,
        lock.type.name,
        shown(lock.txn_id or None),
        shown(lock.heartbeat_ms if lock.heartbeat_ms is not None else 0 if lock.txn_id else None),
        shown(lock.acquired_ms),
        lock.user,
        lock.host,
        lock.agent_info,
    ]
