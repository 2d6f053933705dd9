"""DESCRIBE DETAIL: the state of a table's files, past compactions, and which compaction is due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from acidsql import fs
from acidsql.commands import query
from acidsql.commands.environment import Environment
from acidsql.commands.maintenance.optimize import own_table
from acidsql.commands.resolve.context import StatementContext
from acidsql.compactor.initiator import Thresholds, opts_out, type_due
from acidsql.format.directory import AcidState, acid_state
from acidsql.metastore.model import CompactionFilter, CompactionInfo, Partition, Table
from acidsql.plan.snapshot import partition_names
from acidsql.sql.statements import DescribeDetail

_TIME = pa.timestamp("us", tz="UTC")
_COMPACTION = pa.struct(
    {
        "id": pa.int64(),
        "partition": pa.string(),
        "type": pa.string(),
        "state": pa.string(),
        "enqueued": _TIME,
        "ended": _TIME,
        "message": pa.string(),
        "filesBefore": pa.int64(),
        "filesAfter": pa.int64(),
        "bytesBefore": pa.int64(),
        "bytesAfter": pa.int64(),
        "rowsWritten": pa.int64(),
    }
)
COLUMNS: Mapping[str, pa.DataType] = {
    "format": pa.string(),
    "name": pa.string(),
    "description": pa.string(),
    "location": pa.string(),
    "createdAt": _TIME,
    "partitionColumns": pa.list_(pa.string()),
    "numFiles": pa.int64(),
    "sizeInBytes": pa.int64(),
    "properties": pa.map_(pa.string(), pa.string()),
    "transactional": pa.string(),
    "bucketColumns": pa.list_(pa.string()),
    "numBuckets": pa.int64(),
    "numPartitions": pa.int64(),
    "writeId": pa.int64(),
    "bases": pa.list_(pa.string()),
    "numDeltas": pa.int64(),
    "numDeleteDeltas": pa.int64(),
    "numOriginalFiles": pa.int64(),
    "obsolete": pa.list_(pa.string()),
    "aborted": pa.list_(pa.string()),
    "autoCompaction": pa.bool_(),
    "compactionDue": pa.map_(pa.string(), pa.string()),
    "lastCompaction": _COMPACTION,
    "compactionsByState": pa.map_(pa.string(), pa.int64()),
}
"""The names up to ``properties`` are Delta's."""


@dataclass(frozen=True)
class _Look:
    """A table without partition keys, or one partition: what a reader sees of it, and which compaction is due."""

    partition: str
    state: AcidState
    due: str | None

    def path_of(self, path: str) -> str:
        """Relative to the table: ``p=1/delta_0000001_0000001_0000``."""
        name = path.rstrip("/").rpartition("/")[2]
        return f"{self.partition}/{name}" if self.partition else name


def describe_detail(env: Environment, statement: DescribeDetail, parameters: Mapping[str, Any]) -> DataFrame:
    """DESCRIBE DETAIL t: one row.

    1. Take a snapshot; list each directory once.
    2. Count the files that a reader of this snapshot reads, and list those that are obsolete or invisible.
    3. Apply the initiator's thresholds to each directory, as a compactor would see it.
    4. Read the queue and its history.

    ``compactionDue`` is by partition (the empty name for a table without partition keys), and includes what the
    initiator skips because of ``NO_AUTO_COMPACTION``: ``autoCompaction`` is false then.

    Raises:
        TableNotFound: When the table does not exist.
        AnalysisError: When it is a view (Hive 10286).
    """
    row = query.at_snapshot(env, lambda context: _row(env, context, statement))
    return env.sql(statement.span.text, parameters) if row is None else env.frame(COLUMNS, [row])


def _row(env: Environment, context: StatementContext, statement: DescribeDetail) -> list[Any] | None:
    """The row; None for a Spark table."""
    table = own_table(env, statement.table)
    if table is None:
        return None
    context.add(table)
    partitions = context.partitions(table)
    with context.unchanged(table, partitions):
        looks = list(_looks(env, context, table, partitions))
    write_id = context.write_ids(table).high_watermark
    row = {**_of_catalog(env, table), **_of_files(looks), **_of_queue(env, table), "writeId": write_id}
    row["numPartitions"] = len(looks) if table.partition_keys else None
    return [row[name] for name in COLUMNS]


def _looks(
    env: Environment, context: StatementContext, table: Table, partitions: Sequence[Partition] | None
) -> Iterator[_Look]:
    write_ids, txns = context.write_ids(table), context.snapshot.txns
    thresholds = Thresholds.of(table, env.settings)
    directories = [("", table.location)]
    if partitions is not None:
        directories = [(partition_names(table, p), p.location) for p in partitions]
    for partition, location in directories:
        filesystem, path = fs.resolve(location)
        listed, any_name = fs.ListedOnce(filesystem), table.is_insert_only
        state = acid_state(listed, path, write_ids, txns, any_file_name=any_name)
        for_compactor = acid_state(listed, path, write_ids.for_compaction(), txns, any_file_name=any_name)
        due = type_due(for_compactor, thresholds)
        yield _Look(partition, state, None if due is None else due.name)


def _of_catalog(env: Environment, table: Table) -> dict[str, Any]:
    of_database = env.metastore.get_database(table.database).parameters
    return {
        "format": "orc",
        "name": table.full_name,
        "description": table.comment,
        "location": table.location,
        "createdAt": _time(table.created_at * 1000 or None),
        "partitionColumns": [k.name for k in table.partition_keys],
        "properties": sorted(table.parameters.items()),
        "transactional": "insert_only" if table.is_insert_only else "full",
        "bucketColumns": list(table.bucket_columns),
        "numBuckets": table.num_buckets if table.num_buckets > 0 else None,
        "autoCompaction": not (opts_out(table.parameters) or opts_out(of_database)),
    }


def _of_files(looks: list[_Look]) -> dict[str, Any]:
    files = [
        file
        for look in looks
        for directory in (*look.state.data_directories, *look.state.delete_deltas)
        for file in directory.files
    ]
    files += [file for look in looks for file in look.state.originals]
    return {
        "numFiles": len(files),
        "sizeInBytes": sum(file.length for file in files),
        "bases": [look.path_of(look.state.base.path) for look in looks if look.state.base is not None],
        "numDeltas": sum(len(look.state.insert_deltas) for look in looks),
        "numDeleteDeltas": sum(len(look.state.delete_deltas) for look in looks),
        "numOriginalFiles": sum(len(look.state.originals) for look in looks),
        "obsolete": sorted(look.path_of(path) for look in looks for path in look.state.obsolete),
        "aborted": sorted(look.path_of(path) for look in looks for path in look.state.aborted),
        "compactionDue": [(look.partition, look.due) for look in looks if look.due is not None],
    }


def _of_queue(env: Environment, table: Table) -> dict[str, Any]:
    entries = env.metastore.show_compactions(CompactionFilter(database=table.database, table=table.name))
    states = Counter(str(entry.state) for entry in entries)
    return {
        "lastCompaction": _compaction(entries[0]) if entries else None,
        "compactionsByState": sorted(states.items()),
    }


def _compaction(entry: CompactionInfo) -> dict[str, Any]:
    metrics = entry.metrics
    return {
        "id": entry.id,
        "partition": entry.partition,
        "type": entry.type.name,
        "state": str(entry.state),
        "enqueued": _time(entry.enqueued_ms),
        "ended": _time(entry.ended_ms),
        "message": entry.error,
        "filesBefore": metrics and metrics.files_before,
        "filesAfter": metrics and metrics.files_after,
        "bytesBefore": metrics and metrics.bytes_before,
        "bytesAfter": metrics and metrics.bytes_after,
        "rowsWritten": metrics and metrics.rows,
    }


def _time(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
