"""DESCRIBE HISTORY: the write ids of a table, and what is known of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from acidsql import fs
from acidsql.commands import query
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.inspect.show import known_table
from acidsql.commands.resolve.context import StatementContext
from acidsql.errors import AcidError, SnapshotTooOld, UnsupportedError
from acidsql.metastore.model import CompletedWrite, Partition, Table
from acidsql.plan.snapshot import Resolve
from acidsql.plan.written import WrittenDirectory, count_rows, written_directories
from acidsql.sql.statements import DescribeHistory

COLUMNS: Mapping[str, pa.DataType] = {
    "write_id": pa.int64(),
    "transaction_id": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "operation": pa.string(),
    "partitions": pa.list_(pa.string()),
    "directories": pa.list_(pa.string()),
    "inserted_rows": pa.int64(),
    "deleted_rows": pa.int64(),
    "readable": pa.bool_(),
}
"""The result columns. NULL means that neither the store nor the directories have the information."""

_SECOND = 1_000_000
"""Microseconds."""


@dataclass(frozen=True)
class _Version:
    """A write id, its records in the store, and the directories that end with it."""

    write_id: int
    records: tuple[CompletedWrite, ...]
    directories: tuple[WrittenDirectory, ...]

    @property
    def own(self) -> list[WrittenDirectory]:
        """The directories with rows of this write id only."""
        return [d for d in self.directories if d.is_own]

    def operation(self, deleted: int | None) -> str | None:
        """The operation as the directories show it; a MERGE appears as the operations of its branches.

        Args:
            deleted: The number of deleted rows, if known.
        """
        own = self.own
        if any(d.truncates for d in own):
            return "TRUNCATE"
        if any(d.is_base for d in own):
            return "OVERWRITE"
        if own:
            deletes, inserts = any(d.is_delete for d in own) or bool(deleted), any(not d.is_delete for d in own)
            return "UPDATE" if deletes and inserts else "DELETE" if deletes else "INSERT"
        if self.records:
            return None if any(r.changes_rows for r in self.records) else "INSERT"
        return "COMPACTION" if all(d.is_compacted for d in self.directories) else None

    @property
    def partitions(self) -> list[str]:
        """The partitions that it wrote to; those that it may have written to if no directory shows it any longer."""
        names = {d.partition for d in self.own} or {r.partition for r in self.records}
        return sorted(names - {""})

    def row(self, table: Table, *, readable: bool) -> list[Any]:
        """As :data:`COLUMNS`."""
        inserted, deleted = count_rows(self.own)
        compactor = max((d.name.visibility_txn for d in self.directories), default=0) or None
        txn_id = self.records[0].txn_id if self.records else None if self.own else compactor
        return [
            self.write_id,
            txn_id,
            self.records[0].committed_at * _SECOND if self.records else None,
            self.operation(deleted),
            self.partitions if table.partition_keys else None,
            [f"{d.partition}/{d.name}" if d.partition else str(d.name) for d in self.directories],
            inserted,
            deleted,
            readable,
        ]


def describe_history(env: Environment, statement: DescribeHistory, parameters: Mapping[str, Any]) -> DataFrame:
    """DESCRIBE HISTORY t [LIMIT n]: a row for each known write id, the newest first.

    1. Take a snapshot: only committed write ids are shown.
    2. Read the writes recorded in the store (the embedded store: until a compaction over them is cleaned; a Hive
       Metastore has no such call), and the directory names. A compacted directory counts for the highest write id in
       it.
    3. For each row: count the events in its own directories, by the footers of their files, and check whether VERSION
       AS OF would still find all files that it needs, over one listing of each directory.

    Spark (or Delta) shows the history of its own tables.

    Raises:
        TableNotFound: When there is no such table.
        UnsupportedError: When it is a view, or not transactional.
    """
    rows = query.at_snapshot(env, lambda context: _answer(env, context, statement))
    return env.sql(statement.span.text, parameters) if rows is None else env.frame(COLUMNS, rows)


def _answer(env: Environment, context: StatementContext, statement: DescribeHistory) -> list[list[Any]] | None:
    """The rows; None for a Spark table."""
    name = statement.table
    table = known_table(env, name)
    if table is None:
        if env.database_of(name) in env.metastore.list_databases() and not env.known_to_spark(name):
            env.get_table(name)
        return None
    if not table.is_transactional:
        kind = "a view" if table.is_view else "not transactional"
        problem = f"{table.full_name} is {kind}: its versions are not write ids"
        raise with_location(statement.table.span, UnsupportedError(problem))
    context.add(table)
    try:
        return _rows(env, context, table, statement.limit)
    except AcidError as e:
        raise with_location(statement.table.span, e) from e


def _rows(env: Environment, context: StatementContext, table: Table, limit: int | None) -> list[list[Any]]:
    metastore, resolve = env.metastore, _listed_once()
    partitions = context.partitions(table)
    with context.unchanged(table, partitions):
        write_ids = context.write_ids(table)
        records = metastore.completed_writes(table.database, table.name) or []
        directories = written_directories(table, write_ids, context.snapshot.txns, partitions, resolve=resolve)
        seen = StatementContext(env, context.snapshot, resolve=resolve)
        versions = _versions([r for r in records if write_ids.is_valid(r.write_id)], directories)[:limit]
        return [v.row(table, readable=_is_readable(seen, table, partitions, v.write_id)) for v in versions]


def _versions(records: Iterable[CompletedWrite], directories: Iterable[WrittenDirectory]) -> list[_Version]:
    """All known write ids, the highest first."""
    written: dict[int, list[CompletedWrite]] = {}
    placed: dict[int, list[WrittenDirectory]] = {}
    for record in records:
        written.setdefault(record.write_id, []).append(record)
    for directory in directories:
        placed.setdefault(directory.write_id, []).append(directory)
    return [
        _Version(write_id, tuple(written.get(write_id, ())), tuple(placed.get(write_id, ())))
        for write_id in sorted(written.keys() | placed.keys(), reverse=True)
    ]


def _is_readable(seen: StatementContext, table: Table, partitions: Sequence[Partition] | None, write_id: int) -> bool:
    """Whether all files that VERSION AS OF this write id needs exist."""
    try:
        seen.table_snapshot(table, partitions, write_id)
    except SnapshotTooOld:
        return False
    return True


def _listed_once() -> Resolve:
    """Resolves locations to file systems that list each directory only once."""

    known: dict[str, fs.ListedOnce] = {}

    def resolve(location: str) -> tuple[fs.FileSystem, str]:
        filesystem, path = fs.resolve(location)
        return known.setdefault(filesystem.root, fs.ListedOnce(filesystem)), path

    return resolve
