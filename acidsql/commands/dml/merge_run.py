"""MERGE inside its transaction: fetching the source, the join, and writing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from acidsql.catalyst import Catalyst, Expression, Plan, conjuncts_of
from acidsql.commands.dml.ready import ready
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.resolve.binding import Binding
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.errors import AcidError
from acidsql.metastore.model import Column, LockComponent, Partition, Table
from acidsql.plan.changes import KIND, NUMBER, ChangeSet
from acidsql.plan.keys import key_condition
from acidsql.plan.local import fetch_small, local_frame
from acidsql.plan.merge import MergePlan
from acidsql.plan.merge_clauses import Branch, Join, MatchKind
from acidsql.plan.nanoseconds import kept_timestamps, reject_sub_microsecond
from acidsql.plan.target import Change, RowCounts
from acidsql.plan.values import NotStorable
from acidsql.plan.write import Writer
from acidsql.settings import NANOSECONDS, XLOCK_MERGE_INSERT
from acidsql.sql.statements import Merge, Span


@dataclass(frozen=True)
class MergeDraft:
    """A MERGE before it runs.

    Attributes:
        statement: The parsed statement.
        binding: The texts and the tables in them.
        table: The target with the columns that the source adds, which are ``new_columns``.
        source: The rows of USING, resolved.
        plan: The actions for pairs of rows.
        join: The kind of join that the clauses need.
        analysed: The resolved plan of all actions as one join.
        partitions: The target's partitions after pruning; None for a table without partition keys.
        locks: The locks that the statement requests.
        replan: Builds the plan over other source rows: binding, target, rows, the column with the row number, and the
            original source.
    """

    statement: Merge
    binding: Binding
    table: Table
    new_columns: tuple[Column, ...]
    source: Plan
    plan: MergePlan
    join: Join
    analysed: Plan
    partitions: tuple[Partition, ...] | None
    locks: tuple[LockComponent, ...]
    replan: Callable[[Binding, Table, Plan, str | None, Plan], MergePlan]


@dataclass(frozen=True)
class MergeRows:
    """The rows of USING; ``rows`` if they are few enough for the driver: then the source is not read again."""

    rows: pa.Table | None

    @staticmethod
    def of(env: Environment, binding: Binding, source: Plan) -> MergeRows:
        """Fetch a small source."""
        frame = env.catalyst.frame(binding.scanned(source))
        return MergeRows(fetch_small(env.sessions.own, frame, env.driver_limit))


class MergeRun:
    """Phases 4 to 8, inside the transaction."""

    def __init__(self, env: Environment, draft: MergeDraft, rows: MergeRows) -> None:
        self._env = env
        self._draft = draft
        self._table = draft.table
        self._rows = rows.rows
        self._number = f"__acid_number{draft.binding.secret}"
        self._kinds = {b.match for b in draft.plan.branches}
        self._changes_rows = self._kinds != {MatchKind.SOURCE}

    def run(self, txn: WriteTransaction) -> RowCounts:
        """Write and publish."""
        if self._rows is not None and not self._rows.num_rows and MatchKind.TARGET not in self._kinds:
            return RowCounts()
        limit, to = self._env.driver_limit, txn.target(self._table, statements=1 + self._changes_rows)
        staging = txn.stage(self._table)
        session = self._env.writing
        self._changer = Writer(session, to, staging, limit)
        self._inserter = Writer(session, to.next if self._changes_rows else to, staging, limit)
        written = self._by_fetched_source() if self._rows is not None else self._by_one_join(self.one_join())
        excludes = self._env.settings.value(XLOCK_MERGE_INSERT)
        txn.publish(self._table, staging, dynamic=MatchKind.SOURCE in self._kinds, as_changes=excludes)
        return written

    def one_join(self) -> ChangeSet:
        """All pairs in one plan, for a source that is not on the driver."""
        draft = self._draft
        return self._changes(draft.binding, draft.plan, self._draft.join, draft.analysed)

    def _by_one_join(self, changes: ChangeSet) -> RowCounts:
        writer = self._inserter if self._draft.join is Join.SOURCE_ALONE else self._changer
        return writer.write(changes)

    # --- a fetched source --------------------------------------------------------------------------------------------

    def _by_fetched_source(self) -> RowCounts:
        """Broadcast the source; its rows without a match are identified by their row numbers."""
        rows = self._rows
        assert rows is not None
        numbered = rows.append_column(self._number, pa.array(range(rows.num_rows), type=pa.int64()))
        binding, plan = self._over(numbered, broadcast=True)
        inserts, written = MatchKind.SOURCE in self._kinds, RowCounts()
        if not self._changes_rows:
            analysed = self._analysed(binding, plan.matched_numbers())
            numbers = self._env.catalyst.frame(binding.scanned(analysed, is_our_join=True)).toArrow().column(0)
        else:
            join = Join.PAIRS_AND_TARGET if MatchKind.TARGET in self._kinds else Join.PAIRS
            changes = self._joined(binding, plan.answering_all() if inserts else plan, join)
            fetched = self._changer.fetch(changes)
            if fetched is None:
                whole = self._joined(*self._over(numbered, broadcast=True), self._draft.join)
                return self._by_one_join(whole.without_number())
            numbers = fetched[NUMBER]
            if not self._draft.plan.all_pairs:
                fetched = fetched.filter(pc.not_equal(fetched[KIND], int(Change.NOTHING)))
            written = self._changer.write_fetched(fetched, None)
        if not inserts:
            return written
        rest = numbered.filter(pc.invert(pc.is_in(numbered[self._number], pc.unique(numbers))))
        return written + self._insert(rest)

    def _insert(self, rows: pa.Table) -> RowCounts:
        """Insert the source rows without a match."""
        if not rows.num_rows:
            return RowCounts()
        changes = self._joined(*self._over(rows, broadcast=False), Join.NO_TARGET)
        return self._inserter.write(changes)

    def _over(self, rows: pa.Table, *, broadcast: bool) -> tuple[Binding, MergePlan]:
        """The plan over rows that were fetched from the source."""
        env, draft = self._env, self._draft
        like = env.catalyst.frame(draft.source)
        local = local_frame(env.own_spark, rows, like)
        source = env.sessions.own.analyzed(F.broadcast(local) if broadcast else local)
        binding = draft.binding.anew()
        plan = self._draft.replan(binding, self._table, source, self._number, draft.source)
        keys = self._keys(plan, rows) if MatchKind.TARGET not in self._kinds and broadcast else []
        if keys:
            plan = plan.over_target(env.catalyst.filter(env.catalyst.both(keys), plan.target))
        return binding, plan

    def _keys(self, plan: MergePlan, rows: pa.Table) -> list[Expression]:
        """Conditions on the target from the keys of the fetched rows, which every matching row meets."""
        made, own = [], self._env.sessions.own
        for target, source, is_null_safe in self._equal_columns(plan):
            position = [a.exprId().id() for a in Catalyst.output(self._draft.source)].index(source)
            values = rows.column(position)
            condition = key_condition(own, plan.relation, target, values)
            if condition is not None and is_null_safe and values.null_count:
                condition = own.either(condition, own.is_null(target))
            made += [] if condition is None else [condition]
        return made

    def _equal_columns(self, plan: MergePlan) -> list[tuple[Expression, int, bool]]:
        """The target columns that ON equates with a source column, with the expression id of the latter, and whether
        NULL equals NULL.

        Taken from the resolved condition of the drafted join: both sides are columns of the same type.
        """
        draft = self._draft
        names = {
            a.exprId().id(): a.name() for a in Catalyst.output(draft.plan.relation.leaf)[: len(self._table.all_columns)]
        }
        origin = {a.exprId().id() for a in Catalyst.output(draft.source)}
        attributes = plan.relation.attributes
        return [
            (attributes[names[one]], other, is_null_safe)
            for one, other, is_null_safe in _equalities(draft.analysed)
            if one in names and other in origin
        ]

    # --- plans -------------------------------------------------------------------------------------------------------

    def _analysed(self, binding: Binding, plan: Plan) -> Plan:
        statement = self._draft.statement
        return binding.analysed(binding.bound(binding.with_clause(statement.with_clause, plan), statement.span))

    def _joined(self, binding: Binding, plan: MergePlan, join: Join) -> ChangeSet:
        return self._changes(binding, plan, join, self._analysed(binding, plan.query(join)))

    def _changes(self, binding: Binding, plan: MergePlan, join: Join, analysed: Plan) -> ChangeSet:
        """The changes, in the session that writes files."""
        env = self._env
        raw = env.sessions.own.frame(binding.scanned(analysed, is_our_join=True)).toDF(*plan.names(join))
        changes = plan.changes(raw, join, env.zones, self._not_storable)
        if join.has_target and env.settings.value(NANOSECONDS) != "truncate":
            updates = [b.values.keys() for b in plan.branches if b.change is Change.UPDATE]
            kept = {i for assigned in updates for i in kept_timestamps(self._table, assigned)}
            seen = binding.read(analysed, plan.relation).snapshot
            changes = reject_sub_microsecond(env.own_spark, seen, sorted(kept), changes)
        return ready(env, binding.context, changes)

    def _not_storable(self, branch: Branch, error: NotStorable) -> AcidError:
        """The error of a value that does not fit its column, located at the value."""
        place = branch.places[error.target]
        assert isinstance(place, Span)
        return with_location(place, error)


def _equalities(analysed: Plan) -> list[tuple[int, int, bool]]:
    """Pairs of columns of the same type that the outermost join of a resolved plan equates, in both orders; and whether
    NULL equals NULL (``<=>``)."""
    node = analysed
    while node.nodeName() != "Join":
        if node.children().isEmpty():
            return []
        node = node.children().last() if node.nodeName() == "WithCTE" else node.children().head()
    condition = node.condition()
    if condition.isEmpty():
        return []
    made: list[tuple[int, int, bool]] = []
    for part in conjuncts_of(condition.get()):
        if part.nodeName() not in ("EqualTo", "EqualNullSafe"):
            continue
        left, right = part.left(), part.right()
        if left.nodeName() == right.nodeName() == "AttributeReference" and left.dataType().equals(right.dataType()):
            one, other = left.exprId().id(), right.exprId().id()
            is_null_safe = part.nodeName() == "EqualNullSafe"
            made += [(one, other, is_null_safe), (other, one, is_null_safe)]
    return made
