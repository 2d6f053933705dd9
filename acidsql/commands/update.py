"""UPDATE and DELETE: delete events for the rows that match, and for UPDATE their new versions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands.assignments import assigned_columns
from acidsql.commands.binding import Snapshot, Sources, bind, find_sources, pruned_partitions, read_locks, search_of
from acidsql.commands.environment import Environment
from acidsql.commands.explained import Explained, TargetRead
from acidsql.commands.places import at
from acidsql.commands.query import table_frame
from acidsql.commands.transaction import WriteTransaction, write_transaction
from acidsql.commands.truncate import truncate_table
from acidsql.metastore.model import LockComponent, LockType, Operation, Partition, Table
from acidsql.plan.local import estimated_bytes
from acidsql.plan.nanoseconds import kept_timestamps, refuse_finer
from acidsql.plan.scan import RAW_KEY, ROW_ID, snapshot_frame
from acidsql.plan.snapshot import partition_names
from acidsql.plan.target import Change, Target, Written
from acidsql.plan.text import quote
from acidsql.plan.values import NotStorable, store_assignment
from acidsql.plan.views import Views
from acidsql.plan.write import Writer
from acidsql.settings import DRIVER_WRITE_ROWS, LOCK_PARTITIONS, NANOSECONDS, XLOCK_WRITE
from acidsql.sql.references import References, analyse_expression
from acidsql.sql.statements import Default, Delete, Span, Update

JOB_BYTES = 256 << 20
"""A statement without WHERE over more than this goes straight to a Spark job."""


class _RowChange(ABC):
    """What UPDATE and DELETE share: a table, an optional condition, and the identity of the rows that meet it."""

    operation: Operation

    def __init__(self, env: Environment, statement: Update | Delete, parameters: Mapping[str, Any]) -> None:
        self.env = env
        self.parameters = parameters
        self.statement = statement
        self.table: Table = env.changeable_table(statement.table)
        self.alias = statement.alias.text if statement.alias else None
        self.where = self._analyse(statement.where) if statement.where else None

    def _analyse(self, span: Span) -> References:
        return analyse_expression(span, target=self.statement.table, alias=self.alias)

    def _expressions(self) -> list[References]:
        return [self.where] if self.where else []

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
        locks = self._locks(partitions) + read_locks(s for found in sources.values() for s in found)
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
        search = search_of(self.table, self.where, None, self.alias or self.table.name, self.parameters)
        locks = [*self._locks(partitions), *read_locks(read)]
        return [Explained(self.table, locks, TargetRead(partitions, search), read, changes)]

    def _partitions(self) -> tuple[Partition, ...] | None:
        if not self.table.partition_keys:
            return None
        keys = frozenset(k.name for k in self.table.partition_keys)
        conjuncts: Sequence[Span] = self.where.conjuncts(None, keys) if self.where else ()
        return pruned_partitions(self.env, self.table, conjuncts, self.alias or self.table.name, self.parameters)

    def _locks(self, partitions: tuple[Partition, ...] | None) -> list[LockComponent]:
        """EXCL_WRITE on what may change (Hive's ``hive.txn.xlock.write``): the partitions left, or the table."""
        exclusive = self.env.settings.value(XLOCK_WRITE)
        kind = LockType.EXCL_WRITE if exclusive else LockType.SHARED_WRITE
        table, names = self.table, [None]
        if partitions is not None and len(partitions) <= self.env.settings.value(LOCK_PARTITIONS):
            names = [partition_names(table, p) for p in partitions]  # type: ignore[misc]
        return [LockComponent(kind, table.database, table.name, n, self.operation) for n in names]

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
        search = search_of(table, self.where, None, self.alias or table.name, self.parameters)
        view = views.add(snapshot_frame(env.spark, seen, row_id=True, raw_keys=True, search=search))
        bound = {r: bind(env, r, found, snapshot, views) for r, found in sources.items()}
        name = quote(self.alias or table.name)
        values = self._values(bound)
        identity = [f"{name}.{quote(ROW_ID)}.{part} AS {part}" for part in ("writeId", "bucketId", "rowId")]
        keys = [f"{name}.{quote(f'{RAW_KEY}{i}')} AS k{i}" for i in range(len(table.partition_keys))]
        columns = ",\n".join([*(f"{v} AS v{i}" for i, v in enumerate(values)), *identity, *keys])
        where = f" WHERE {bound[self.where]}\n" if self.where else ""
        raw = env.sql(f"SELECT {columns}\nFROM {view} AS {name}{where}", self.parameters)
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
            raise at(value.span if isinstance(value, Default) else value, e) from e

    def _values(self, bound: Mapping[References, str]) -> list[str]:
        name = quote(self.alias or self.table.name)
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

    def _values(self, bound: Mapping[References, str]) -> list[str]:
        return []


def update(env: Environment, statement: Update, parameters: Mapping[str, Any]) -> DataFrame:
    """Run UPDATE; the row of counts."""
    return env.counts(updated=UpdateCommand(env, statement, parameters).run().updated)


def delete(env: Environment, statement: Delete, parameters: Mapping[str, Any]) -> DataFrame:
    """Run DELETE; the row of counts. Of an insert-only table all rows can go at once, as in Hive, or none."""
    table = env.find_table(statement.table)
    if table is not None and table.is_insert_only and statement.where is None:
        gone = table_frame(env, statement.table).count()
        truncate_table(env, table)
        return env.counts(deleted=gone)
    return env.counts(deleted=DeleteCommand(env, statement, parameters).run().deleted)
