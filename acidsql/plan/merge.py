"""MERGE as one plan: the action for each pair of rows, and the new values, from the user's expressions.

The clauses are numbered in their order. A plan over the join of source and target gives, for each pair, the number of
the first clause that applies, the identity of the target's row, and the values of every clause, each evaluated only
where its clause was chosen. :meth:`MergePlan.changes` turns that into what :mod:`acidsql.plan.write` writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

from pyspark.sql import DataFrame

from acidsql.catalyst import Catalyst, Expression, Plan
from acidsql.errors import AcidError
from acidsql.metastore.model import Column, Table
from acidsql.plan.changes import KIND, NUMBER, ChangeSet
from acidsql.plan.merge_clauses import Branch, Join, MatchKind, Source
from acidsql.plan.relation import Relation
from acidsql.plan.scan import ROW_ID
from acidsql.plan.target import IDENTITY, Change
from acidsql.plan.values import NotStorable, Zones, key_text, store_assignment
from acidsql.types import parse_type, to_spark

_Columns: TypeAlias = Any
"""A Scala ``Seq`` of columns: they are handed on without a call into the JVM for each one."""
_CLAUSE = "clause"
_NONE = -1
"""The number of a pair for which no clause applies."""
_ALONE = {
    Join.PAIRS_AND_TARGET: (MatchKind.TARGET,),
    Join.PAIRS_AND_SOURCE: (MatchKind.SOURCE,),
    Join.ALL: (MatchKind.SOURCE, MatchKind.TARGET),
}
"""The kinds of clauses that see one side alone, of joins that have both."""


@dataclass(frozen=True)
class _Scope:
    """Columns that a text sees, and those that it sees only by name."""

    visible: _Columns
    hidden: _Columns

    def beside(self, further: _Columns) -> _Scope:
        """The same, and columns of no side, whose names no text can know."""
        return _Scope(self.visible, self.hidden.appendedAll(further))


@dataclass(frozen=True)
class MergePlan:
    """A MERGE whose names are resolved.

    Attributes:
        catalyst: The session that it is analysed in.
        table: The target.
        relation: The target in the plan, and ``target`` the plan that stands for it.
        source: The source.
        on: The join condition.
        branches: The clauses.
        all_pairs: Whether pairs for which no clause applies are answered too.
        secret: Makes names that no text can know.
        resolve: Resolves a plan in which there are expressions of the user's.
    """

    catalyst: Catalyst
    table: Table
    relation: Relation
    target: Plan
    source: Source
    on: Expression
    branches: tuple[Branch, ...]
    all_pairs: bool
    secret: str
    resolve: Callable[[Plan], Plan]

    def over_target(self, target: Plan) -> MergePlan:
        """The same over those target rows that may have a match."""
        return replace(self, target=target)

    def answering_all(self) -> MergePlan:
        """The same, which answers pairs for which no clause applies, too."""
        return replace(self, all_pairs=True)

    def query(self, join: Join) -> Plan:
        """The plan over the pairs of a join; its columns are :meth:`names`.

        As in Spark, NOT MATCHED names columns of the source alone, and NOT MATCHED BY SOURCE those of the target. So
        the choice and the values of such clauses are resolved in a plan of their own below that of the others, in which
        the columns of the other side have names that no text can know.
        """
        catalyst, pairs, both = self.catalyst, self._pairs(join), self._both(join)
        columns = both.visible.appendedAll(both.hidden)
        passed, further = columns, catalyst.java.nothing
        values: dict[str, Expression] = {}
        chosen: dict[MatchKind, Expression] = {}
        for kind in _ALONE.get(join, ()):
            branches = [b for b in self.branches if b.match is kind]
            first = catalyst.case([(self._is_alone(kind), self._first_of(branches))], self._no_clause)
            side = self._side(kind).beside(further)
            seen = catalyst.project(side.visible, pairs, hidden=side.hidden)
            scope, number = self._chosen(seen, passed, side, first)
            made = self._values(branches, number)
            pairs = self.resolve(catalyst.project(passed.appendedAll(catalyst.seq([number, *made.values()])), scope))
            passed = pairs.output()
            further = passed.drop(columns.size())
            resolved = Catalyst.items(further.takeRight(len(made)))
            values |= zip(made, resolved, strict=True)
            chosen[kind] = number
        rest = [b for b in self._asked(join) if b.match not in chosen]
        first = self._first_of(rest)
        if chosen:
            first = catalyst.case([(self._is_alone(kind), number) for kind, number in chosen.items()], first)
        scope, number = self._chosen(pairs, passed, both.beside(further), first)
        if not self._answers_all(join):
            scope = catalyst.filter(catalyst.unequal(number, self._no_clause), scope)
        values |= self._values(rest, number)
        named = [values[self._value_name(b, i)] for b in self._asked(join) for i in range(len(b.values))]
        return catalyst.project([number, *self._identity(join), *self._old(join), *named], scope)

    def _chosen(self, pairs: Plan, passed: _Columns, scope: _Scope, choice: Expression) -> tuple[Plan, Expression]:
        """A plan in which the texts of some clauses are resolved, and the column in it with their choice.

        Args:
            pairs: The pairs, as the texts see them.
            passed: All of their columns, which are handed on.
            scope: What the texts see of them.
            choice: The choice, of such texts.
        """
        catalyst = self.catalyst
        alias = catalyst.alias(choice, f"__acid_choice{self.secret}")
        number = catalyst.number(alias)
        inner = catalyst.project(passed.appended(alias), pairs)
        return catalyst.project(scope.visible, inner, hidden=scope.hidden.appended(number)), number

    def _both(self, join: Join) -> _Scope:
        """What texts see that see both sides, of those that a join has."""
        if not join.has_target:
            return _Scope(self._source_visible, self.catalyst.java.nothing)
        visible = self._target_visible.appendedAll(self._source_visible)
        return _Scope(visible, self._target_hidden.appendedAll(self._source_hidden))

    def _side(self, kind: MatchKind) -> _Scope:
        """What texts see that see one side alone: the columns of the other one have other names."""
        if kind is MatchKind.SOURCE:
            visible, hidden, others = self._source_visible, self._source_hidden, self._target_columns
        else:
            visible, hidden, others = self._target_visible, self._target_hidden, self._source_columns
        unknown = [a.withName(f"__acid_other{self.secret}_{i}") for i, a in enumerate(others)]
        return _Scope(visible, hidden.appendedAll(self.catalyst.seq(unknown)))

    def _values(self, branches: Sequence[Branch], number: Expression) -> dict[str, Expression]:
        """The values of clauses by their names, each evaluated only where its clause was chosen."""
        catalyst, made = self.catalyst, {}
        for branch in branches:
            for i, value in enumerate(branch.values.values()):
                only = catalyst.case([(catalyst.equal(number, catalyst.literal(branch.number)), value)], None)
                name = self._value_name(branch, i)
                made[name] = catalyst.alias(only, name)
        return made

    def _value_name(self, branch: Branch, position: int) -> str:
        return f"__acid_v{self.secret}_{branch.number}_{position}"

    def names(self, join: Join) -> list[str]:
        """Names for the columns of :meth:`query`."""
        made = [_CLAUSE]
        if join.has_target:
            made += ["row_id", *(f"r{i}" for i in range(len(self.table.partition_keys)))]
            made += [NUMBER] if self.source.number is not None else []
            made += [f"o{i}" for i in range(len(self.table.columns))]
        made += [f"v{b.number}_{i}" for b in self._asked(join) for i in range(len(b.values))]
        return made

    def matched_numbers(self) -> Plan:
        """The distinct numbers of the source rows with a match."""
        assert self.source.number is not None
        catalyst = self.catalyst
        return catalyst.distinct(catalyst.project([self.source.number], self._pairs(Join.PAIRS)))

    def changes(
        self, raw: DataFrame, join: Join, zones: Zones, failed: Callable[[Branch, NotStorable], AcidError]
    ) -> ChangeSet:
        """The answer of :meth:`query` as changes; those of rows of the source alone are all inserts.

        Args:
            raw: The answer, in a session of acidsql's own, its columns called as :meth:`names` says.
            join: The join that it is of.
            zones: The zones that timestamps pass.
            failed: The error to raise where a value of a clause cannot be stored.
        """
        spark, branches = raw.sparkSession, self._asked(join)
        is_numbered = join.has_target and self.source.number is not None
        data, keys = self.table.columns, self.table.partition_keys
        kept: list[str] = []
        if join.has_target:
            first, everything = raw.columns.index("o0"), range(len(data))
            kept = store_assignment(spark, raw, data, first, zones=zones, kept=everything)
        stored: dict[int, dict[str, str]] = {}
        for branch in branches:
            columns = [self._column(name) for name in branch.values]
            placed = [i for i, c in enumerate(columns) if c in keys]
            try:
                first = raw.columns.index(f"v{branch.number}_0") if columns else 0
                expressions = store_assignment(spark, raw, columns, first, zones=zones, kept=placed)
            except NotStorable as e:
                raise failed(branch, e) from e
            stored[branch.number] = dict(zip(branch.values, expressions, strict=True))
        made = [self._value(branches, stored, c, kept[i] if kept else None, i) for i, c in enumerate(data)]
        made += [self._key(branches, stored, key, join, i) for i, key in enumerate(keys)]
        if join.has_target:
            made += [f"row_id.{name} AS {name}" for name in IDENTITY]
            made += [NUMBER] if is_numbered else []
            made.append(f"{self._kind(branches)} AS {KIND}")
        change = None if join.has_target else Change.INSERT
        return ChangeSet(raw.selectExpr(*made), self.table, change, is_numbered=is_numbered)

    # --- the join ----------------------------------------------------------------------------------------------------

    def _pairs(self, join: Join) -> Plan:
        if join is Join.NO_TARGET:
            return self.source.plan
        if join is Join.SOURCE_ALONE:
            return self.catalyst.join(self.source.plan, self.target, join.value, self.on)
        return self.catalyst.join(self.target, self.source.plan, join.value, self.on)

    @cached_property
    def _target_visible(self) -> _Columns:
        return self.target.output()

    @cached_property
    def _source_visible(self) -> _Columns:
        return self.source.plan.output()

    @cached_property
    def _target_hidden(self) -> _Columns:
        qualifier = self._target_visible.head().qualifier()  # as in t.ROW__ID
        return self.catalyst.seq([a.withQualifier(qualifier) for a in self._target_columns[self.relation.visible :]])

    @cached_property
    def _source_hidden(self) -> _Columns:
        return self.catalyst.seq(self._source_columns[len(self.source.visible) :])

    @property
    def _target_columns(self) -> Sequence[Expression]:
        return list(self.relation.attributes.values())

    @property
    def _source_columns(self) -> Sequence[Expression]:
        number = [self.source.number] if self.source.number is not None else []
        return [*self.source.visible, self.source.mark, *number]

    def _asked(self, join: Join) -> list[Branch]:
        """The clauses that can apply to a pair of the join."""
        asked = {
            Join.PAIRS: (MatchKind.PAIR,),
            Join.PAIRS_AND_TARGET: (MatchKind.PAIR, MatchKind.TARGET),
            Join.PAIRS_AND_SOURCE: (MatchKind.PAIR, MatchKind.SOURCE),
            Join.ALL: tuple(MatchKind),
            Join.SOURCE_ALONE: (MatchKind.SOURCE,),
            Join.NO_TARGET: (MatchKind.SOURCE,),
        }[join]
        return [b for b in self.branches if b.match in asked]

    def _answers_all(self, join: Join) -> bool:
        return self.all_pairs and join.has_target

    def _is_alone(self, kind: MatchKind) -> Expression:
        """Whether a pair has no row of the other side."""
        return self.catalyst.is_null(self.relation.attributes[ROW_ID] if kind is MatchKind.SOURCE else self.source.mark)

    def _first_of(self, branches: Sequence[Branch]) -> Expression:
        """The number of the first of some clauses that applies."""
        catalyst, always = self.catalyst, self._always
        # AND makes a bare NULL a condition
        cases = [(always if b.condition is None else catalyst.both([b.condition, always]), b.choice) for b in branches]
        return catalyst.case(cases, self._no_clause) if cases else self._no_clause

    @cached_property
    def _always(self) -> Expression:
        return self.catalyst.literal(True)

    @cached_property
    def _no_clause(self) -> Expression:
        return self.catalyst.literal(_NONE)

    def _identity(self, join: Join) -> list[Expression]:
        """Who the target's row is, and where it stands; the number of the source's row where rows are fetched."""
        if not join.has_target:
            return []
        attributes = self.relation.attributes
        names = [ROW_ID, *self.relation.columns.raw_key_names(len(self.table.partition_keys))]
        made = [attributes[name] for name in names]
        return [*made, self.source.number] if self.source.number is not None else made

    def _old(self, join: Join) -> list[Expression]:
        """The target's values, wall clocks as files hold them."""
        if not join.has_target:
            return []
        attributes, prefix = self.relation.attributes, self.relation.columns.file_value_prefix
        return [attributes.get(f"{prefix}{i}") or attributes[c.name] for i, c in enumerate(self.table.columns)]

    # --- values ------------------------------------------------------------------------------------------------------

    def _column(self, name: str) -> Column:
        return next(c for c in self.table.all_columns if c.name == name)

    def _value(
        self,
        branches: Sequence[Branch],
        stored: Mapping[int, Mapping[str, str]],
        column: Column,
        old: str | None,
        position: int,
    ) -> str:
        """The new value of a data column, whatever clause was chosen."""
        cases = []
        for branch in branches:
            value = stored[branch.number].get(column.name)
            if value is None and branch.change is Change.UPDATE:
                value = old
            if value is not None:
                cases.append(f"WHEN {branch.number} THEN {value}")
        nothing = f"CAST(NULL AS {to_spark(parse_type(column.type), plain_strings=True)})"
        chosen = f"CASE {_CLAUSE} {' '.join(cases)} ELSE {nothing} END" if cases else nothing
        return f"{chosen} AS c{position}"

    def _key(
        self,
        branches: Sequence[Branch],
        stored: Mapping[int, Mapping[str, str]],
        key: Column,
        join: Join,
        position: int,
    ) -> str:
        """The partition of a row as path text: that of the old row, or by the values of an INSERT."""
        cases = [
            f"WHEN {b.number} THEN {key_text(stored[b.number][key.name], parse_type(key.type))}"
            for b in branches
            if b.change is Change.INSERT
        ]
        old = f"r{position}" if join.has_target else "CAST(NULL AS string)"
        return f"{f'CASE {_CLAUSE} {chr(32).join(cases)} ELSE {old} END' if cases else old} AS k{position}"

    @staticmethod
    def _kind(branches: Sequence[Branch]) -> str:
        cases = [f"WHEN {b.number} THEN {int(b.change)}" for b in branches]
        return f"CASE {_CLAUSE} {' '.join(cases)} ELSE {int(Change.NOTHING)} END" if cases else str(int(Change.NOTHING))
