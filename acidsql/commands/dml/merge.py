"""MERGE: updates, deletes and inserts rows of a table from a source, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from acidsql.catalyst import Catalyst, Plan
from acidsql.commands.dml.columns import check_name, columns_of, names_by_comparison
from acidsql.commands.dml.merge_clauses import Scope, is_delete, is_star, resolve_clauses
from acidsql.commands.dml.merge_run import MergeDraft, MergeRows, MergeRun
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.inspect.explained import Explained
from acidsql.commands.resolve.binding import Binding, refuse_evaluated_twice
from acidsql.commands.resolve.context import StatementContext
from acidsql.commands.resolve.reads import read_locks
from acidsql.commands.transaction.locking import change_locks, require_held, upsert_lock
from acidsql.commands.transaction.run import in_transaction
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.errors import AcidError, AnalysisError, TransactionError
from acidsql.metastore.model import Column, LockComponent, LockType, Operation, Partition, Table
from acidsql.plan.merge import MergePlan
from acidsql.plan.merge_clauses import Join, source_of
from acidsql.plan.target import RowCounts
from acidsql.settings import MERGE_CARDINALITY, XLOCK_MERGE_INSERT
from acidsql.sql.statements import Match, Merge, Span
from acidsql.sql.with_clause import whole_query

UNNAMED_SOURCE = "__acid_using"
"""The alias of a subquery without one."""


class MergeCommand:
    """MERGE.

    1. Open a transaction. Resolve the target, the source, the columns in SET and INSERT, and let Spark resolve the
       user's expressions over both; prune the partitions by the conditions pushed down to the target.
    2. Lock these partitions (or the table) EXCL_WRITE (SHARED_READ if rows are only inserted; SHARED_WRITE if none are
       inserted and rows are compared) and the tables read SHARED_READ, all at once; look everything up again, and
       restart if something has changed.
    3. Take one snapshot for the target, the source and every table in a subquery.
    4. Fetch a small source, once: its keys prune partitions and stripes of the target.
    5. One join determines for each pair of rows the first matching clause and its values. A fetched source is
       broadcast, and its rows without a match are inserted without a second scan of the target; a MERGE that only
       inserts reads no target columns except those that ON compares.
    6. A target row that is matched by more than one source row is an error before anything is published.
    7. Allocate the write id; write delete events and new versions under one statement id, inserted rows under the next.
    8. Publish by rename, register new partitions, commit, return the counts.
    """

    def __init__(self, env: Environment, statement: Merge, parameters: Mapping[str, Any]) -> None:
        self.env = env
        self.statement = statement
        self.parameters = parameters
        self.table = env.changeable_table(statement.table)
        self.matches = {c.match for c in statement.clauses}
        self._is_whole = False
        """Whether the whole table is locked, whichever partitions are left."""

    @property
    def changes_rows(self) -> bool:
        """Whether rows of the target may be updated or deleted."""
        return self.matches != {Match.NOT_MATCHED}

    @property
    def _is_by_rows(self) -> bool:
        """Whether it is in conflict only with those who change the same rows. What it inserts, others might, too."""
        return Match.NOT_MATCHED not in self.matches

    # --- resolve -----------------------------------------------------------------------------------------------------

    def draft(self, context: StatementContext) -> MergeDraft:
        """Resolve the statement in a context."""
        self.table = self.env.changeable_table(self.statement.table)
        context.add(self.table)
        binding = Binding(context, self.parameters, self.statement.span.text)
        source = self._source(binding)
        new_columns = self._new_columns(binding, source)
        table = replace(self.table, columns=(*self.table.columns, *new_columns))
        plan = self.plan(binding, table, source, None)
        query = binding.with_clause(self.statement.with_clause, plan.query(self.join))
        analysed = binding.analysed(binding.bound(query, self.statement.span))
        self._refuse_windows(analysed)
        if self.statement.with_clause is not None:
            refuse_evaluated_twice(self.statement.span, (binding, source), (binding, analysed))
        partitions = binding.remaining(analysed, plan.relation)
        locks = [*self._locks(partitions, bool(new_columns)), *read_locks(binding.tables)]
        return MergeDraft(
            self.statement,
            binding,
            table,
            new_columns,
            source,
            plan,
            self.join,
            analysed,
            partitions,
            tuple(locks),
            self.plan,
        )

    def _refuse_windows(self, analysed: Plan) -> None:
        """Raises: AnalysisError when a clause has a window function: Spark has none there, Hive one over its rows."""
        node = Catalyst.without_definitions(analysed)
        while node.nodeName() != "Join" and not node.children().isEmpty():
            if node.nodeName() == "Window":
                hint = "Compute it in the source: USING (SELECT …, row_number() OVER (…) AS n FROM …)."
                problem = AnalysisError("Window functions are not allowed in the clauses of MERGE", hint=hint)
                raise with_location(self.statement.span, problem)
            node = Catalyst.without_definitions(node.children().head())

    @property
    def join(self) -> Join:
        """The kind of join that the clauses need."""
        if self.matches == {Match.NOT_MATCHED}:
            return Join.SOURCE_ALONE
        if Match.NOT_MATCHED not in self.matches:
            return Join.PAIRS_AND_TARGET if Match.NOT_MATCHED_BY_SOURCE in self.matches else Join.PAIRS
        return Join.ALL if Match.NOT_MATCHED_BY_SOURCE in self.matches else Join.PAIRS_AND_SOURCE

    def _source(self, binding: Binding) -> Plan:
        """The rows of USING, resolved; columns have the table's qualifier if there is no alias."""
        source = self.statement.source
        try:
            if source.table is not None:
                version = f" {source.version.text}" if source.version is not None else ""
                text = f"SELECT * FROM {source.table.span.text}{version}"
                table = Span(text, 0, len(text))
                plan = binding.analysed(binding.query(whole_query(self.statement.with_clause, table)))
            else:
                assert source.query is not None
                plan = binding.analysed(binding.query(whole_query(self.statement.with_clause, source.query)))
        except AcidError as e:
            raise with_location(source.span, e) from e
        if source.columns is None:
            return plan
        frame = binding.catalyst.frame(plan).toDF(*[c.text for c in source.columns])
        return binding.catalyst.analyzed(frame)

    def _source_name(self, plan: Plan) -> tuple[str, list[str]]:
        """The name of the source in the expressions, and its possible qualifiers."""
        source = self.statement.source
        if source.alias is not None:
            return source.alias.text, []
        if source.table is None:
            return UNNAMED_SOURCE, []
        qualifier = list(Catalyst.items(Catalyst.output(plan)[0].qualifier()))
        return (qualifier[-1], qualifier[:-1]) if qualifier else (source.table.table, [])

    def _new_columns(self, binding: Binding, source: Plan) -> tuple[Column, ...]:
        """The source columns that a star would set and the table lacks, if schema evolution may add them.

        Files with fewer columns read as NULL in the new ones, so it does not matter who sees the columns first.
        """
        if not self.statement.schema_evolution or not any(is_star(c) for c in self.statement.clauses):
            return ()
        known = {c.name for c in self.table.all_columns}
        try:
            fields = binding.catalyst.frame(source).schema.fields
            new = columns_of(StructType([f for f in fields if f.name.lower() not in known]))
            taken = names_by_comparison(known)
            for column in new:
                check_name(column.name, taken)
        except AcidError as e:
            raise with_location(self.statement.source.span, e) from e
        return new

    def plan(
        self, binding: Binding, table: Table, source: Plan, number: str | None, like: Plan | None = None
    ) -> MergePlan:
        """The plan over a source.

        Args:
            binding: The texts.
            table: The target.
            source: The source's rows, resolved.
            number: The column with the row number.
            like: The original source, where ``source`` has its fetched rows.
        """
        statement = self.statement
        relation, target = binding.target(table, statement.alias.text if statement.alias else None)
        name, qualifier = self._source_name(source if like is None else like)
        found = source_of(binding.catalyst, source, name, qualifier, binding.secret, number)
        scope = Scope(binding, table, relation, found, statement.schema_evolution)
        branches = resolve_clauses(statement.clauses, scope)
        strict = self.env.settings.value(MERGE_CARDINALITY) and Match.MATCHED in self.matches
        on = binding.expression(statement.on)

        def resolve(plan: Plan) -> Plan:
            return binding.resolved(binding.bound(binding.with_clause(statement.with_clause, plan), statement.span))

        return MergePlan(
            binding.catalyst, table, relation, target, found, on, branches, strict, binding.secret, resolve
        )

    def _locks(self, partitions: tuple[Partition, ...] | None, evolves: bool) -> list[LockComponent]:
        """The locks that Hive's branches request: EXCL_WRITE for UPDATE and DELETE, SHARED_READ for INSERT.

        Adding columns excludes all other writers, which rely on the columns they have resolved.
        """
        env, table = self.env, self.table
        made = self._change_locks(partitions)
        if Match.NOT_MATCHED in self.matches and (table.partition_keys or not made):
            made.append(upsert_lock(env, table))
        if evolves:
            made.append(LockComponent(LockType.EXCL_WRITE, table.database, table.name))
        return made

    def _change_locks(self, partitions: Sequence[Partition] | None) -> list[LockComponent]:
        """Those for UPDATE and DELETE."""
        if not self.changes_rows:
            return []
        updates = any(c.match is not Match.NOT_MATCHED and not is_delete(c) for c in self.statement.clauses)
        operation, places = (Operation.UPDATE if updates else Operation.DELETE), None if self._is_whole else partitions
        return change_locks(self.env, self.table, operation, places, by_rows=self._is_by_rows)

    # --- run ---------------------------------------------------------------------------------------------------------

    def run(self) -> RowCounts:
        """All phases from the resolved statement to the commit."""
        return in_transaction(self.env, self._run)

    def _run(self, txn: WriteTransaction) -> RowCounts:
        self._is_whole = txn.locks.is_whole(self.table)
        draft = self.draft(StatementContext(self.env))
        if draft.new_columns and txn.has_several_statements:
            name = draft.new_columns[0].name
            problem = f"MERGE cannot add the column {name} in a transaction: it would stay after a ROLLBACK"
            raise with_location(self.statement.table.span, TransactionError(problem, hint="Add it before."))
        txn.lock(draft.locks, by_rows=self._is_by_rows)
        binding = draft.binding
        excludes = Match.NOT_MATCHED in self.matches and self.env.settings.value(XLOCK_MERGE_INSERT)
        binding.context.revalidate(txn.snapshot)
        now = binding.remaining(draft.analysed, draft.plan.relation)
        require_held(txn, binding.context, self.table, now, self._change_locks)
        if excludes:
            txn.require_all_seen(self.table)
        rows = MergeRows.of(self.env, binding, draft.source)
        written = MergeRun(self.env, draft, rows).run(txn)
        if draft.new_columns and any((written.inserted, written.updated)):
            self._store_schema(txn, draft.table)
        return written

    def explain(self, context: StatementContext) -> list[Explained]:
        """What :meth:`run` would do: shown as one join, even if a fetched source would be split on the driver."""
        draft = self.draft(context)
        changes = MergeRun(self.env, draft, MergeRows(None)).one_join()
        reads = draft.binding.reads(draft.analysed)
        return [Explained(self.table, draft.locks, reads, changes.frame, writes=self._directories())]

    def _directories(self) -> list[str]:
        """The kinds of directories that it may write."""
        changing = [c for c in self.statement.clauses if c.match is not Match.NOT_MATCHED]
        made = ["delete_delta"] if changing else []
        made += ["delta"] if any(not is_delete(c) for c in changing) else []
        if Match.NOT_MATCHED in self.matches:
            made.append("delta of a second statement" if changing else "delta")
        return made

    def _store_schema(self, txn: WriteTransaction, table: Table) -> None:
        write_ids, write_id = txn.valid_write_ids(table), txn.allocate_write_id(table)
        now = self.env.metastore.get_table(table.database, table.name)  # its statistics have changed
        self.env.metastore.alter_table(replace(now, columns=table.columns), write_id=write_id, write_ids=write_ids)


def merge(env: Environment, statement: Merge, parameters: Mapping[str, Any]) -> DataFrame:
    """Run MERGE; the row of counts."""
    written = MergeCommand(env, statement, parameters).run()
    return env.counts(updated=written.updated, deleted=written.deleted, inserted=written.inserted)
