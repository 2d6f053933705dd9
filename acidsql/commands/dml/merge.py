"""MERGE: rows of a source update, delete and complete those of a table, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from acidsql.commands.dml.columns import columns_of
from acidsql.commands.dml.merge_clauses import Clause, Names, resolve_clauses
from acidsql.commands.dml.merge_run import MergeRows, MergeRun
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.inspect.explained import Explained
from acidsql.commands.resolve.binding import (
    Snapshot,
    Sources,
    bind,
    find_sources,
    partitions_left,
    read_locks,
)
from acidsql.commands.transaction.locking import change_lock_type, change_locks, insert_lock
from acidsql.commands.transaction.write_transaction import WriteTransaction, write_transaction
from acidsql.errors import AcidError
from acidsql.metastore.model import LockComponent, Operation, Partition
from acidsql.plan.local import fetch_small
from acidsql.plan.merge import SOURCE_NUMBER, Branch, MergePlan
from acidsql.plan.target import Written
from acidsql.plan.text import quote
from acidsql.plan.values import NotStorable
from acidsql.plan.views import Views
from acidsql.settings import (
    DRIVER_WRITE_ROWS,
    MERGE_CARDINALITY,
    XLOCK_MERGE_INSERT,
)
from acidsql.sql.references import References, analyse_expression, analyse_query
from acidsql.sql.statements import Match, Merge, MergeDelete, MergeInsert, MergeUpdate, Span, WhenClause
from acidsql.sql.with_clause import cte_names, named_queries, spliced_clause, whole_query

UNNAMED_SOURCE = "__acid_using"
"""The alias of a subquery that the user has given none."""


class MergeCommand:
    """MERGE.

    1. Resolve the target, the columns in SET and INSERT, and the source; conditions of ON over the target's partition
       keys alone leave partitions out.
    2. Open a transaction; lock what is left EXCL_WRITE (SHARED_READ where rows are only inserted) and the tables read
       SHARED_READ, all at once.
    3. Take one snapshot for the target, the source and every table in a subquery.
    4. A small source is fetched: its keys leave out partitions and parts of files of the target.
    5. One join tells for each pair of rows which clause comes first, and its values. A fetched source is broadcast, and
       its rows without a partner are inserted without a second look at the target; a MERGE that only inserts needs no
       row of the target but what ON compares.
    6. A row of the target with several partners is an error, before anything is published.
    7. Allocate the write id; write delete events and new versions under one statement id, inserted rows under the next.
    8. Publish by rename, register new partitions, commit, answer the counts.
    """

    def __init__(self, env: Environment, statement: Merge, parameters: Mapping[str, Any]) -> None:
        self.env = env
        self.statement = statement
        self.parameters = parameters
        self.table = env.changeable_table(statement.table)
        self.alias = statement.alias.text if statement.alias else None
        self.using = analyse_query(self._source_text())
        self.named_queries = named_queries(statement.with_clause)
        self.on = self._analyse(statement.on)
        clauses = resolve_clauses(statement.clauses, self._names(None))
        self.texts = {span: self._analyse(span) for clause in clauses for span in clause.spans}
        self.matches = {c.match for c in statement.clauses}

    # --- resolve -----------------------------------------------------------------------------------------------------

    @property
    def target_name(self) -> str:
        """The name by which the expressions call the target."""
        return self.alias or self.table.name

    @property
    def source_name(self) -> str:
        """The name by which the expressions call the source."""
        source = self.statement.source
        if source.alias is not None:
            return source.alias.text
        return source.table.table if source.table is not None else UNNAMED_SOURCE

    def _source_text(self) -> Span:
        """The source as a query, with the WITH clause that stands before MERGE."""
        source = self.statement.source
        query = source.query
        if source.table is not None:
            version = f" {source.version.text}" if source.version is not None else ""
            text = f"SELECT * FROM {source.table.span.text}{version}"
            query = Span(text, 0, len(text))
        assert query is not None
        return whole_query(self.statement.with_clause, query)

    def _analyse(self, span: Span) -> References:
        source = self.statement.source
        other = (source.table, source.alias.text if source.alias else None)
        ctes = cte_names(self.statement.with_clause)
        return analyse_expression(span, target=self.statement.table, alias=self.alias, other=other, ctes=ctes)

    def _names(self, source_columns: Sequence[str] | None) -> Names:
        return Names(
            self.table,
            quote(self.target_name),
            quote(self.source_name),
            source_columns,
            self.statement.schema_evolution,
        )

    @property
    def prunes(self) -> bool:
        """Whether rows of the target that ON excludes do not matter."""
        return Match.NOT_MATCHED_BY_SOURCE not in self.matches

    @property
    def changes_rows(self) -> bool:
        """Whether rows of the target may be updated or deleted."""
        return self.matches != {Match.NOT_MATCHED}

    # --- run ---------------------------------------------------------------------------------------------------------

    def run(self) -> Written:
        """All phases from the resolved statement to the commit."""
        env = self.env
        using, inner, read = self._sources()
        partitions = self._partitions()
        locks = [*self._locks(partitions), *read_locks(read)]
        with write_transaction(env, locks) as txn, Views(env.spark) as views:
            txn.confirm(self.table, partitions)
            snapshot = Snapshot(env, txn.valid_txns)
            source = self._source(using, snapshot, views)
            evolved = self._evolve(source)
            bound = {r: bind(env, r, s, snapshot, views) for r, s in inner.items()}
            plan = self._plan(source, bound)
            written = MergeRun(self, snapshot, views, plan, source).run(txn, partitions)
            if evolved and any((written.inserted, written.updated)):
                self._store_schema(txn)
        return written

    def explain(self, snapshot: Snapshot, views: Views) -> list[Explained]:
        """What :meth:`run` would do: one join, also where a fetched source would be told apart on the driver."""
        using, inner, read = self._sources()
        partitions = self._partitions()
        source = self._source(using, snapshot, views)
        self._evolve(source)
        plan = self._plan(source, {r: bind(self.env, r, s, snapshot, views) for r, s in inner.items()})
        target, changes = MergeRun(self, snapshot, views, plan, source).explain(partitions)
        locks = [*self._locks(partitions), *read_locks(read)]
        return [Explained(self.table, locks, target, read, changes, writes=self._directories())]

    def _directories(self) -> list[str]:
        """The kinds of directories that it may write."""
        changing = [c for c in self.statement.clauses if c.match is not Match.NOT_MATCHED]
        made = ["delete_delta"] if changing else []
        made += ["delta"] if any(not _is_delete(c) for c in changing) else []
        if Match.NOT_MATCHED in self.matches:
            made.append("delta of a second statement" if changing else "delta")
        return made

    def _sources(self) -> tuple[Sources, dict[References, Sources], Sources]:
        """The ACID tables of USING, those of the expressions and of the queries that they may name, and all of them."""
        using = find_sources(self.env, self.using, self.parameters)
        texts = [self.on, *self.texts.values(), *([self.named_queries] if self.named_queries else [])]
        inner = {r: find_sources(self.env, r, self.parameters) for r in texts}
        return using, inner, [*using, *(s for found in inner.values() for s in found)]

    def _partitions(self) -> tuple[Partition, ...] | None:
        conditions = self.on if self.prunes else None
        return partitions_left(self.env, self.table, conditions, None, self.target_name, self.parameters)

    def _locks(self, partitions: tuple[Partition, ...] | None) -> list[LockComponent]:
        """As Hive's branches ask for them: ``x`` on what UPDATE and DELETE may change, ``r`` for INSERT."""
        env, table = self.env, self.table
        made = []
        if self.changes_rows:
            updates = any(c.match is not Match.NOT_MATCHED and not _is_delete(c) for c in self.statement.clauses)
            made += change_locks(env, table, Operation.UPDATE if updates else Operation.DELETE, partitions)
        if Match.NOT_MATCHED in self.matches and (table.partition_keys or not made):
            lock = insert_lock(env, table, None, overwrite=False, dynamic=bool(table.partition_keys))
            strong = env.settings.value(XLOCK_MERGE_INSERT)
            made.append(replace(lock, type=change_lock_type(env)) if strong else lock)
        return made

    def _source(self, sources: Sources, snapshot: Snapshot, views: Views) -> MergeRows:
        """The rows of USING, fetched where they are few."""
        env, statement = self.env, self.statement
        try:
            frame = env.sql(bind(env, self.using, sources, snapshot, views), self.parameters)
        except AcidError as e:
            raise with_location(statement.source.span, e) from e
        if statement.source.columns is not None:
            frame = frame.toDF(*[c.text for c in statement.source.columns])
        rows = fetch_small(frame, env.settings.value(DRIVER_WRITE_ROWS))
        if rows is None:
            return MergeRows(frame, None)
        numbered = rows.append_column(SOURCE_NUMBER, pa.array(range(rows.num_rows), type=pa.int64()))
        return MergeRows(frame, numbered)

    def _evolve(self, source: MergeRows) -> bool:
        """Give the table those columns of the source that a star would set and it does not have; whether there are any.

        Files with fewer columns read as NULL in the new ones, so it does not matter who sees the new columns first.
        """
        if not self.statement.schema_evolution or not any(_is_star(c) for c in self.statement.clauses):
            return False
        known = {c.name for c in self.table.all_columns}
        try:
            new = tuple(c for c in columns_of(source.frame.schema) if c.name not in known)
        except AcidError as e:
            raise with_location(self.statement.source.span, e) from e
        self.table = replace(self.table, columns=(*self.table.columns, *new))
        return bool(new)

    def _store_schema(self, txn: WriteTransaction) -> None:
        write_ids, write_id = txn.valid_write_ids(self.table), txn.allocate_write_id(self.table)
        now = self.env.metastore.get_table(self.table.database, self.table.name)  # its statistics have changed
        self.env.metastore.alter_table(replace(now, columns=self.table.columns), write_id=write_id, write_ids=write_ids)

    def _plan(self, source: MergeRows, bound: Mapping[References, str]) -> MergePlan:
        clauses = resolve_clauses(self.statement.clauses, self._names(source.frame.columns))
        strict = self.env.settings.value(MERGE_CARDINALITY) and Match.MATCHED in self.matches

        def text(value: Span | str) -> str:
            return bound[self.texts[value]] if isinstance(value, Span) else value

        def branch(clause: Clause) -> Branch:
            condition = clause.clause.condition
            values = {name: text(value) for name, value in clause.values.items()}
            return Branch(
                clause.number,
                clause.fits,
                None if condition is None else text(condition),
                clause.change,
                values,
                clause.guard,
            )

        return MergePlan(
            self.table,
            quote(self.target_name),
            quote(self.source_name),
            bound[self.on],
            tuple(branch(c) for c in clauses),
            strict,
            named_queries=spliced_clause(bound[self.named_queries]) if self.named_queries else "",
        )

    def not_storable(self, branch: Branch, error: NotStorable) -> AcidError:
        """The error of a value that its column cannot take, at its place."""
        clause = self.statement.clauses[branch.number]
        [resolved] = resolve_clauses([clause], self._names(None))
        return with_location(resolved.place_of(error.target), error)


def _is_delete(clause: WhenClause) -> bool:
    return isinstance(clause.action, MergeDelete)


def _is_star(clause: WhenClause) -> bool:
    """Whether a clause takes the source's columns by their names."""
    action = clause.action
    return (isinstance(action, MergeUpdate) and action.assignments is None) or (
        isinstance(action, MergeInsert) and action.values is None
    )


def merge(env: Environment, statement: Merge, parameters: Mapping[str, Any]) -> DataFrame:
    """Run MERGE; the row of counts."""
    written = MergeCommand(env, statement, parameters).run()
    return env.counts(updated=written.updated, deleted=written.deleted, inserted=written.inserted)
