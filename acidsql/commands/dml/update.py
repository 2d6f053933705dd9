"""UPDATE and DELETE: delete events for the rows that match, and for UPDATE their new versions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands.dml.assignments import assigned_columns
from acidsql.commands.dml.truncate import TruncateCommand, refuse_not_managed
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.inspect.explained import Explained, TargetRead
from acidsql.commands.query import table_frame
from acidsql.commands.resolve.binding import (
    Snapshot,
    Sources,
    bind,
    find_sources,
    partitions_left,
    read_locks,
    search_of,
)
from acidsql.commands.transaction.locking import change_locks
from acidsql.commands.transaction.write_transaction import WriteTransaction, write_transaction
from acidsql.metastore.model import Operation, Partition, Table
from acidsql.plan.local import estimated_bytes
from acidsql.plan.nanoseconds import kept_timestamps, refuse_finer
from acidsql.plan.scan import RAW_KEY, ROW_ID, snapshot_frame
from acidsql.plan.target import IDENTITY, Change, Target, Written
from acidsql.plan.text import quote
from acidsql.plan.values import NotStorable, store_assignment
from acidsql.plan.views import Views
from acidsql.plan.write import Writer
from acidsql.settings import DRIVER_WRITE_ROWS, NANOSECONDS
from acidsql.sql.references import References, analyse_expression
from acidsql.sql.statements import Default, Delete, Span, Update
from acidsql.sql.with_clause import cte_names, named_queries, spliced_clause

JOB_BYTES = 256 << 20
"""A statement without WHERE over more than this goes straight to a Spark job."""


class _RowChange(ABC):
    """What UPDATE and DELETE share: a table, an optional condition, and the identity of the rows that meet it."""

    operation: Operation
    directories: Sequence[str]
    """The kinds of directories that it writes."""

    def __init__(self, env: Environment, statement: Update | Delete, parameters: Mapping[str, Any]) -> None:
        self.env = env
        self.parameters = parameters
        self.statement = statement
        self.table: Table = env.changeable_table(statement.table)
        self.alias = statement.alias.text if statement.alias else None
        self.named_queries = named_queries(statement.with_clause)
        self.where = self._analyse(statement.where) if statement.where else None

    @property
    def name(self) -> str:
        """The name by which the expressions call the table."""
        return self.alias or self.table.name

    def _analyse(self, span: Span) -> References:
        ctes = cte_names(self.statement.with_clause)
        return analyse_expression(span, target=self.statement.table, alias=self.alias, ctes=ctes)

    def _expressions(self) -> list[References]:
        """The user's expressions, and the queries that they may name."""
        return [r for r in (self.named_queries, self.where) if r is not None]

    @abstractmethod
    def _values(self, bound: Mapping[References, str]) -> list[str]:
        """Expressions for the new values of all data columns; none for DELETE."""

    def run(self) -> Written:
        """All phases from the resolved statement to the commit."""
        env, table = self.env, self.table
        sources = {r: find_sources(env, r, self.parameters) for r in self._expressions()}
        partitions = self._partitions()
        if partitions is not None and not partitions:
            return Written()
        read = [s for found in sources.values() for s in found]
        locks = [*change_locks(env, table, self.operation, partitions), *read_locks(read)]
        with write_transaction(env, locks) as txn, Views(env.spark) as views:
            txn.confirm(table, partitions)
            changes = self._plan(Snapshot(env, txn.valid_txns), sources, partitions, views)
            if changes is None:
                return Written()
            return self._write(txn, table, changes)

    def explain(self, snapshot: Snapshot, views: Views) -> list[Explained]:
        """What :meth:`run` would do."""
        sources = {r: find_sources(self.env, r, self.parameters) for r in self._expressions()}
        read = [s for found in sources.values() for s in found]
        partitions = self._partitions()
        changes = None if partitions == () else self._plan(snapshot, sources, partitions, views)
        search = search_of(self.table, self.where, None, self.name, self.parameters)
        locks = [*change_locks(self.env, self.table, self.operation, partitions), *read_locks(read)]
        writes = [] if changes is None else self.directories
        return [Explained(self.table, locks, TargetRead(partitions, search), read, changes, writes=writes)]

    def _partitions(self) -> tuple[Partition, ...] | None:
        return partitions_left(self.env, self.table, self.where, None, self.name, self.parameters)

    def _plan(
        self,
        snapshot: Snapshot,
        sources: Mapping[References, Sources],
        partitions: tuple[Partition, ...] | None,
        views: Views,
    ) -> DataFrame | None:
        """The changes as :mod:`acidsql.plan.write` describes them; None where the table has no rows at all."""
        env, table = self.env, self.table
        seen = snapshot.of(table, partitions)
        if all(p.state.is_empty for p in seen.partitions):
            return None
        search = search_of(table, self.where, None, self.name, self.parameters)
        view = views.add(snapshot_frame(env.spark, seen, row_id=True, raw_keys=True, search=search))
        bound = {r: bind(env, r, found, snapshot, views) for r, found in sources.items()}
        name = quote(self.name)
        values = self._values(bound)
        identity = [f"{name}.{quote(ROW_ID)}.{part} AS {part}" for part in IDENTITY]
        keys = [f"{name}.{quote(f'{RAW_KEY}{i}')} AS k{i}" for i in range(len(table.partition_keys))]
        columns = ",\n".join([*(f"{v} AS v{i}" for i, v in enumerate(values)), *identity, *keys])
        where = f" WHERE {bound[self.where]}\n" if self.where else ""
        head = f"{spliced_clause(bound[self.named_queries])}\n" if self.named_queries else ""
        raw = env.sql(f"{head}SELECT {columns}\nFROM {view} AS {name}{where}", self.parameters)
        if not values:
            return raw
        stored = self._stored(raw)
        if env.settings.value(NANOSECONDS) == "truncate":
            return stored
        kept = kept_timestamps(table, self._assigned())
        return refuse_finer(env.spark, seen, kept, stored, Change.UPDATE)

    def _assigned(self) -> Collection[str]:
        """The columns that the statement sets."""
        return ()

    def _stored(self, raw: DataFrame) -> DataFrame:
        """The new values as they are stored."""
        stored = store_assignment(self.env.spark, raw, self.table.columns, 0)
        rest = [quote(c) for c in raw.columns[len(stored) :]]
        return raw.selectExpr(*[f"{e} AS c{i}" for i, e in enumerate(stored)], *rest)

    def _write(self, txn: WriteTransaction, table: Table, changes: DataFrame) -> Written:
        env = self.env
        target = Target(table, txn.allocate_write_id(table))
        staging = txn.stage(table)
        writer = Writer(env.spark, target, staging, env.settings.value(DRIVER_WRITE_ROWS))
        small = None
        if self.where is None and estimated_bytes(changes) > JOB_BYTES:
            small = False
        change = Change.UPDATE if self.operation is Operation.UPDATE else Change.DELETE
        written = writer.write(changes, change, small=small)
        txn.publish(table, staging)
        return written


class UpdateCommand(_RowChange):
    """UPDATE.

    1. Resolve the table and the SET columns; prune its partitions by the condition.
    2. Open a transaction, lock the partitions (or the table) EXCL_WRITE and the tables read SHARED_READ, all at once.
    3. Take one snapshot for the table and every table in a subquery.
    4. One scan gives, for each row that matches, its identity and all its new values, as they are stored.
    5. Allocate the write id; write ``delete_delta`` and ``delta`` of the same statement id into a staging directory: by
       the driver when few rows match, else by one Spark job.
    6. Publish by rename, commit, answer the counts.
    """

    operation = Operation.UPDATE
    directories = ("delete_delta", "delta")

    def __init__(self, env: Environment, statement: Update, parameters: Mapping[str, Any]) -> None:
        super().__init__(env, statement, parameters)
        self.assignments = assigned_columns(self.table, statement.assignments)
        self.expressions = {
            name: self._analyse(a.value) for name, a in self.assignments.items() if isinstance(a.value, Span)
        }

    def _assigned(self) -> Collection[str]:
        return self.assignments.keys()

    def _expressions(self) -> list[References]:
        return [*super()._expressions(), *self.expressions.values()]

    def _stored(self, raw: DataFrame) -> DataFrame:
        try:
            return super()._stored(raw)
        except NotStorable as e:
            value = self.assignments[e.target].value
            raise with_location(value.span if isinstance(value, Default) else value, e) from e

    def _values(self, bound: Mapping[References, str]) -> list[str]:
        name = quote(self.name)
        made = []
        for column in self.table.columns:
            assignment = self.assignments.get(column.name)
            if assignment is None:
                made.append(f"{name}.{quote(column.name)}")
            elif isinstance(assignment.value, Default):
                made.append(f"({column.default or 'NULL'})")
            else:
                made.append(f"({bound[self.expressions[column.name]]}\n)")
        return made


class DeleteCommand(_RowChange):
    """DELETE: :class:`UpdateCommand` without new versions.

    1. Resolve the table; prune its partitions by the condition.
    2. Open a transaction, lock the partitions (or the table) EXCL_WRITE and the tables read SHARED_READ, all at once.
    3. Take one snapshot for the table and every table in a subquery.
    4. One scan gives the identity of each row that matches.
    5. Allocate the write id; write ``delete_delta`` into a staging directory: by the driver when few rows match, else
       by one Spark job.
    6. Publish by rename, commit, answer the counts.
    """

    operation = Operation.DELETE
    directories = ("delete_delta",)

    def _values(self, bound: Mapping[References, str]) -> list[str]:
        return []


def update(env: Environment, statement: Update, parameters: Mapping[str, Any]) -> DataFrame:
    """Run UPDATE; the row of counts."""
    return env.counts(updated=UpdateCommand(env, statement, parameters).run().updated)


def delete(env: Environment, statement: Delete, parameters: Mapping[str, Any]) -> DataFrame:
    """Run DELETE; the row of counts. Of an insert-only table all rows can go at once, as in Hive, or none.

    Raises:
        AnalysisError: As TRUNCATE, which Hive makes of a DELETE without a condition, of an external table (Hive 10146).
    """
    name = statement.table
    table = env.registered(name) if statement.where is None else None
    if statement.where is None and not (table is not None and (table.is_transactional or table.is_view)):
        refuse_not_managed(env, name)
    if table is not None and table.is_insert_only:
        gone = table_frame(env, name).count()
        TruncateCommand(env, table).run()
        return env.counts(deleted=gone)
    return env.counts(deleted=DeleteCommand(env, statement, parameters).run().deleted)
