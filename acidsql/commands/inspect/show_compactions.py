"""SHOW COMPACTIONS: the compaction queue and its history."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands.ddl.partitions import spec_values, whole_name
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.errors import AnalysisError
from acidsql.metastore.model import CompactionFilter, CompactionInfo, CompactionMetrics, CompactionState, CompactionType
from acidsql.partition_names import partition_name
from acidsql.sql.statements import PartitionSpec, ShowCompactions


def _host(name: str | None) -> str | None:
    """The host of ``host-id``: all up to the last dash."""
    return None if name is None else name.rpartition("-")[0] or name


def _id(name: str | None) -> str | None:
    return None if name is None else name.rpartition("-")[2]


def _started(one: CompactionInfo) -> int | None:
    """Hive shows 0 if a request ended (was aborted) before a worker took it."""
    return one.started_ms if one.started_ms is not None or one.ended_ms is None else 0


def _duration(one: CompactionInfo) -> int | None:
    return None if one.ended_ms is None else one.ended_ms - (one.started_ms or 0)


def _metric(value: Callable[[CompactionMetrics], int]) -> Callable[[CompactionInfo], int | None]:
    return lambda c: None if c.metrics is None else value(c.metrics)


COMPACTION_COLUMNS: Mapping[str, Callable[[CompactionInfo], str | int | None]] = {
    "compactionid": lambda c: c.id,
    "dbname": lambda c: c.database,
    "tabname": lambda c: c.table,
    "partname": lambda c: c.partition,
    "type": lambda c: c.type.name,
    "state": lambda c: str(c.state),
    "workerhost": lambda c: _host(c.worker),
    "workerid": lambda c: _id(c.worker),
    "enqueuetime": lambda c: c.enqueued_ms,
    "starttime": _started,
    "duration": _duration,
    "hadoopjobid": lambda c: c.job_id,
    "errormessage": lambda c: c.error,
    "initiatorhost": lambda c: _host(c.initiator),
    "initiatorid": lambda c: _id(c.initiator),
    "poolname": lambda c: c.pool or "default",
    "txnid": lambda c: c.txn_id,
    "nexttxnid": lambda c: c.next_txn_id,
    "committime": lambda c: c.committed_ms,
    "hightestwriteid": lambda c: c.highest_write_id,
    "filesbefore": _metric(lambda m: m.files_before),
    "filesafter": _metric(lambda m: m.files_after),
    "bytesbefore": _metric(lambda m: m.bytes_before),
    "bytesafter": _metric(lambda m: m.bytes_after),
}
"""The columns of Hive 4 (``ShowCompactionsDesc``, with its spelling), then acidsql's, with their values."""

_NOTHING = {"hadoopjobid": "None", "txnid": "0", "nexttxnid": "0", "committime": "0"}
"""Placeholders of missing values, where they are not ``' --- '``."""


def show_compactions(env: Environment, statement: ShowCompactions, parameters: Mapping[str, Any]) -> DataFrame:
    """SHOW COMPACTIONS: Hive 4's columns, all strings, without the header row of Hive's shell, followed by the number
    and bytes of files before and after compactions by acidsql.

    ORDER BY accepts these columns: numbers are compared as numbers, and nulls come first (DESC: last), as in Spark.
    """
    compactions = env.metastore.show_compactions(_filter(env, statement, parameters))
    for key in reversed(statement.order_by):
        value = COMPACTION_COLUMNS.get(key.column.text.lower())
        if value is None:
            hint = f"The columns are {', '.join(COMPACTION_COLUMNS)}."
            raise with_location(
                key.column.span, AnalysisError(f"SHOW COMPACTIONS has no column {key.column.text}", hint=hint)
            )
        compactions.sort(key=_sort_key(value), reverse=key.descending)
    rows = [[_text(name, value(c)) for name, value in COMPACTION_COLUMNS.items()] for c in compactions]
    return env.strings(list(COMPACTION_COLUMNS), rows if statement.limit is None else rows[: statement.limit])


def _sort_key(value: Callable[[CompactionInfo], str | int | None]) -> Callable[[CompactionInfo], tuple[bool, Any]]:
    def key(one: CompactionInfo) -> tuple[bool, Any]:
        key_value = value(one)
        return (False, 0) if key_value is None else (True, key_value)

    return key


def _text(column: str, value: str | int | None) -> str:
    return _NOTHING.get(column, " --- ") if value is None else str(value)


def _filter(env: Environment, statement: ShowCompactions, parameters: Mapping[str, Any]) -> CompactionFilter:
    database = statement.database.text.lower() if statement.database else None
    table = partition = type = state = None
    if statement.table is not None:
        database, table = env.database_of(statement.table), statement.table.table.lower()
        if statement.partition is not None:
            partition = _partition(env, database, table, statement.partition, parameters)
    if statement.type is not None:
        given = statement.type
        type = next((t for t in CompactionType if t.name == given.value.upper()), None)
        if type is None:
            raise with_location(
                given.span, AnalysisError(f"Unexpected compaction type {given.value}", sqlstate="08S01")
            )
    if statement.status is not None:
        state = next((s for s in CompactionState if str(s) == statement.status.value.lower()), None)
        if state is None:
            error = AnalysisError(
                f"Unexpected compaction state {statement.status.value}",
                sqlstate="08S01",
                hint=f"The states are {', '.join(map(str, CompactionState))}.",
            )
            raise with_location(statement.status.span, error)
    return CompactionFilter(
        statement.id,
        database,
        table,
        partition,
        statement.pool.value if statement.pool else None,
        type,
        state,
        None if statement.order_by else statement.limit,
    )


def _partition(env: Environment, database: str, table: str, spec: PartitionSpec, parameters: Mapping[str, Any]) -> str:
    """The name of the partition; for a dropped table it is used as written."""
    known = env.metastore.find_table(database, table)
    if known is not None:
        return whole_name(known, spec, spec_values(env, known, spec, parameters))
    values = env.sql(f"SELECT {', '.join(v.text if v else 'NULL' for _, v in spec.keys)}", parameters).collect()[0]
    return partition_name([k.text for k, _ in spec.keys], [None if v is None else str(v) for v in values])
