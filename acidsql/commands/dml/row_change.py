"""Common base of UPDATE and DELETE: a table, an optional condition, and the identity of the matching rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from acidsql.catalyst import Catalyst, Expression, Plan
from acidsql.commands.dml.ready import ready
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.inspect.explained import Explained
from acidsql.commands.resolve.binding import Binding
from acidsql.commands.resolve.context import StatementContext
from acidsql.commands.resolve.reads import read_locks
from acidsql.commands.transaction.locking import change_locks, require_held
from acidsql.commands.transaction.run import in_transaction
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.errors import AnalysisError
from acidsql.metastore.model import LockComponent, Operation, Partition, Table
from acidsql.plan.changes import ChangeSet, key_column
from acidsql.plan.leaves import read_bytes
from acidsql.plan.relation import Relation
from acidsql.plan.scan import ROW_ID
from acidsql.plan.snapshot import TableSnapshot
from acidsql.plan.staging import Staging
from acidsql.plan.target import IDENTITY, Change, RowCounts
from acidsql.plan.text import quote
from acidsql.plan.write import Writer
from acidsql.sql.statements import Delete, Update

_KEEPING = {"Filter", "Project", "SubqueryAlias", "Window"}
"""Nodes of an analysed plan that make one row of each row, or none."""

JOB_BYTES = 256 << 20
"""A statement without WHERE over more bytes than this always runs as a Spark job."""


@dataclass(frozen=True)
class RowChangePlan:
    """UPDATE or DELETE before it runs.

    Attributes:
        binding: The texts and the tables in them.
        target: The table that is changed.
        analysed: The identity, partition and new values of each matching row.
        partitions: The partitions after pruning; None for a table without partition keys.
        locks: The locks that the statement requests.
    """

    binding: Binding
    target: Relation
    analysed: Plan
    partitions: tuple[Partition, ...] | None
    locks: tuple[LockComponent, ...]


class RowChange(ABC):
    """UPDATE or DELETE of one table."""

    operation: Operation
    directories: Sequence[str]
    """The kinds of directories that it writes."""

    def __init__(self, env: Environment, statement: Update | Delete, parameters: Mapping[str, Any]) -> None:
        self.env = env
        self.parameters = parameters
        self.statement = statement
        self.table: Table = env.changeable_table(statement.table)
        self.alias = statement.alias.text if statement.alias else None
        self._is_whole = False
        """Whether the whole table is locked, whichever partitions are left."""

    # --- what UPDATE and DELETE differ in ----------------------------------------------------------------------------

    @abstractmethod
    def resolve(self) -> None:
        """Resolve the columns that the statement names, once its table is known."""

    @abstractmethod
    def values(self, binding: Binding, target: Relation) -> list[Expression]:
        """Expressions for the new values of all data columns; none for DELETE."""

    @abstractmethod
    def stored(self, rows: DataFrame, binding: Binding, seen: TableSnapshot) -> ChangeSet:
        """The rows of the analysed plan as changes."""

    # --- run ---------------------------------------------------------------------------------------------------------

    def run(self) -> RowCounts:
        """All phases from the resolved statement to the commit."""
        return in_transaction(self.env, self._run)

    def _run(self, txn: WriteTransaction) -> RowCounts:
        self._is_whole = txn.locks.is_whole(self.table)
        context = StatementContext(self.env)
        plan = self.plan(context)
        if plan.partitions == () and not txn.has_several_statements:
            return RowCounts()
        txn.lock(plan.locks, by_rows=True)
        context.revalidate(txn.snapshot)
        now = plan.binding.remaining(plan.analysed, plan.target)
        if now == ():
            return RowCounts()
        require_held(txn, context, self.table, now, self._locks)
        changes = self.changes(plan)
        return RowCounts() if changes is None else self._write(txn, changes)

    def plan(self, context: StatementContext) -> RowChangePlan:
        """Resolve the statement in a context."""
        self.table = self.env.changeable_table(self.statement.table)
        self.resolve()
        context.add(self.table)
        statement = self.statement
        binding = Binding(context, self.parameters, statement.span.text)
        catalyst = binding.catalyst
        target, rows = binding.target(self.table, self.alias)
        if statement.where is not None:
            rows = catalyst.filter(binding.expression(statement.where), rows)
        values = self.values(binding, target)
        columns = [catalyst.alias(v, f"__acid_v{binding.secret}_{i}") for i, v in enumerate(values)]
        hidden = target.attributes
        kept = [hidden[name] for name in (ROW_ID, *target.columns.raw_key_names(len(self.table.partition_keys)))]
        plan = binding.with_clause(statement.with_clause, catalyst.project([*columns, *kept], rows))
        analysed = binding.analysed(binding.bound(plan, statement.span))
        self._refuse_generator(analysed)
        partitions = binding.remaining(analysed, target)
        locks = [*self._locks(partitions), *read_locks(binding.tables)]
        return RowChangePlan(binding, target, analysed, partitions, tuple(locks))

    def _locks(self, partitions: Sequence[Partition] | None) -> list[LockComponent]:
        """The locks of the table to change these partitions."""
        places = None if self._is_whole else partitions
        return change_locks(self.env, self.table, self.operation, places, by_rows=True)

    def _refuse_generator(self, analysed: Plan) -> None:
        """Each row must produce exactly one row.

        Raises:
            AnalysisError: When the statement has a generator, or anything else between the target and the new values
                that is not known to keep the rows as they are.
        """
        node = Catalyst.without_definitions(analysed)
        while not node.children().isEmpty():
            if node.nodeName() not in _KEEPING:
                several = "Generators like explode() are not allowed in SET: they return several rows"
                other = f"SET and WHERE have to leave one row of each row ({node.nodeName()})"
                problem = AnalysisError(several if node.nodeName() == "Generate" else other)
                raise with_location(self.statement.span, problem)
            node = node.children().head()

    def change_set(self, frame: DataFrame) -> ChangeSet:
        """The changes of a frame with their columns."""
        change = Change.UPDATE if self.operation is Operation.UPDATE else Change.DELETE
        return ChangeSet(frame, self.table, change)

    def changes(self, plan: RowChangePlan) -> ChangeSet | None:
        """The changes over the snapshot, in the session that writes files; None if the table has no rows."""
        binding = plan.binding
        seen = binding.read(plan.analysed, plan.target).snapshot
        if all(part.state.is_empty for part in seen.partitions):
            return None
        own = self.env.sessions.own
        rows = own.frame(binding.scanned(plan.analysed))
        return ready(self.env, binding.context, self.stored(rows, binding, seen))

    def identity(self, columns: Sequence[str]) -> list[str]:
        """Expressions for a row's identity and partition, over the last columns of the analysed plan."""
        count = len(self.table.partition_keys)
        row_id, *keys = columns[len(columns) - count - 1 :]
        made = [f"{quote(row_id)}.{part} AS {part}" for part in IDENTITY]
        return [*made, *(f"{quote(key)} AS {key_column(i)}" for i, key in enumerate(keys))]

    def explain(self, context: StatementContext) -> list[Explained]:
        """What :meth:`run` would do."""
        plan = self.plan(context)
        changes = None if plan.partitions == () else self.changes(plan)
        reads = plan.binding.reads(plan.analysed)
        writes = [] if changes is None else self.directories
        frame = None if changes is None else changes.frame
        return [Explained(self.table, plan.locks, reads, frame, writes=writes)]

    def _write(self, txn: WriteTransaction, changes: ChangeSet) -> RowCounts:
        written, staging = self.stage(txn, changes)
        txn.publish(self.table, staging)
        return written

    def stage(self, txn: WriteTransaction, changes: ChangeSet) -> tuple[RowCounts, Staging]:
        """Write the changes into a staging directory."""
        env, table = self.env, self.table
        target = txn.target(table)
        staging = txn.stage(table)
        writer = Writer(env.writing, target, staging, env.driver_limit)
        is_large = self.statement.where is None and read_bytes(changes.frame) > JOB_BYTES
        return writer.write(changes, large=is_large), staging
