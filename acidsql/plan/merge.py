"""MERGE as one plan: the action for each pair of rows, and the new values, from the user's expressions.

The clauses are numbered in their order. A plan over the join of source and target gives, for each pair, the number of
the first clause that applies, the identity of the target's row, and the values of every clause, each evaluated only
where its clause was chosen. :meth:`MergePlan.changes` turns that into what :mod:`acidsql.plan.write` writes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from acidsql.catalyst import Catalyst, Expression, Plan
from acidsql.errors import AcidError
from acidsql.metastore.model import Column, Table
from acidsql.plan.changes import KIND, NUMBER, ChangeSet
from acidsql.plan.relation import Relation
from acidsql.plan.scan import ROW_ID
from acidsql.plan.target import IDENTITY, Change
from acidsql.plan.values import NotStorable, Zones, key_text, store_assignment
from acidsql.types import parse_type, to_spark

_CLAUSE = "clause"
_NONE = -1
"""The number of a pair for which no clause applies."""


class MatchKind(Enum):
    """The rows to which a clause applies."""

    PAIR = "matched"
    SOURCE = "not matched"
    TARGET = "not matched by source"


class Join(Enum):
    """The kind of join; the target is on the left."""

    PAIRS = "inner"
    PAIRS_AND_TARGET = "left"
    PAIRS_AND_SOURCE = "right"
    ALL = "full"
    SOURCE_ALONE = "leftanti"
    """Source rows without a match."""
    NO_TARGET = "none"
    """Source rows that are known to have no match."""

    @property
    def has_target(self) -> bool:
        """Whether a pair may have a row of the target."""
        return self not in (Join.SOURCE_ALONE, Join.NO_TARGET)


@dataclass(frozen=True)
class Branch:
    """One WHEN clause, resolved.

    Attributes:
        number: Its place among the clauses.
        match: The rows that it is about.
        condition: What stands behind AND.
        change: What it does.
        values: The new value of each column that it names; of all columns for an INSERT.
        choice: Its number, or an expression that gives it or fails.
        places: Where in the statement the value of each column stands.
    """

    number: int
    match: MatchKind
    condition: Expression | None
    change: Change
    values: Mapping[str, Expression]
    choice: Expression
    places: Mapping[str, object]


@dataclass(frozen=True)
class Source:
    """The rows of USING in a plan.

    Attributes:
        plan: The plan, under the source's name.
        visible: The columns that expressions see.
        mark: A column that is never NULL: it is, in a pair, where there is no row of the source.
        number: A column that numbers the rows of a source that was fetched; None for one that was not.
    """

    plan: Plan
    visible: tuple[Expression, ...]
    mark: Expression
    number: Expression | None = None

    @property
    def names(self) -> Collection[str]:
        """The names of its columns in lower case."""
        return self._by_name

    def column(self, name: str) -> Expression | None:
        """The one column of a name, in any letter case."""
        found = self._by_name.get(name, [])
        return found[0] if len(found) == 1 else None

    @cached_property
    def _by_name(self) -> dict[str, list[Expression]]:
        made: dict[str, list[Expression]] = {}
        for attribute in self.visible:
            made.setdefault(attribute.name().lower(), []).append(attribute)
        return made


def source_of(
    catalyst: Catalyst, plan: Plan, name: str, qualifier: Sequence[str], secret: str, number: str | None
) -> Source:
    """A resolved plan as the source of a MERGE.

    Args:
        catalyst: The session.
        plan: The rows; ``number`` names a column of them that is not the user's.
        name: The name by which expressions call it.
        qualifier: What may stand before the name.
        secret: Makes a name that no text can know.
        number: The column that numbers the rows.
    """
    columns = Catalyst.output(plan)
    mark = catalyst.alias(catalyst.expression(F.lit(True)), f"__acid_mark{secret}")
    named = catalyst.named(name, qualifier, catalyst.project([*columns, mark], plan))
    output = Catalyst.output(named)
    visible = [a for a in output[:-1] if a.name() != number]
    numbers = [a for a in output if a.name() == number]
    hidden = [*numbers, output[-1]]
    return Source(
        catalyst.project(visible, named, hidden=hidden), tuple(visible), output[-1], numbers[0] if numbers else None
    )


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

    def over_target(self, target: Plan) -> MergePlan:
        """The same over those target rows that may have a match."""
        return replace(self, target=target)

    def answering_all(self) -> MergePlan:
        """The same, which answers pairs for which no clause applies, too."""
        return replace(self, all_pairs=True)

    def query(self, join: Join) -> Plan:
        """The plan over the pairs of a join; its columns are :meth:`names`."""
        catalyst = self.catalyst
        pairs = self._pairs(join)
        visible = [*(self._target_visible() if join.has_target else []), *self.source.visible]
        hidden = [*(self._target_hidden() if join.has_target else []), *self._source_hidden(join)]
        chosen = catalyst.alias(self._choice(join), f"__acid_choice{self.secret}")
        number = catalyst.attribute(chosen, "int")
        inner = catalyst.project([*visible, *hidden, chosen], pairs)
        scope = catalyst.project(visible, inner, hidden=[*hidden, number])
        columns = [number, *self._identity(join), *self._old(join)]
        for branch in self._asked(join):
            for i, value in enumerate(branch.values.values()):
                only = catalyst.case([(catalyst.equal(number, catalyst.literal(branch.number)), value)], None)
                columns.append(catalyst.alias(only, f"__acid_v{self.secret}_{branch.number}_{i}"))
        if not self._answers_all(join):
            scope = catalyst.filter(catalyst.unequal(number, catalyst.literal(_NONE)), scope)
        return catalyst.project(columns, scope)

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

    def _target_visible(self) -> list[Expression]:
        return Catalyst.output(self.target)

    def _target_hidden(self) -> list[Expression]:
        qualifier = self._target_visible()[0].qualifier()  # as in t.ROW__ID
        return [a.withQualifier(qualifier) for a in Catalyst.output(self.relation.leaf)[self.relation.visible :]]

    def _source_hidden(self, join: Join) -> list[Expression]:
        number = [self.source.number] if self.source.number is not None else []
        return [self.source.mark, *number] if join.has_target else []

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

    def _choice(self, join: Join) -> Expression:
        """The number of the first clause that applies."""
        catalyst, branches = self.catalyst, self._asked(join)
        none = catalyst.literal(_NONE)

        def among(match: MatchKind) -> Expression:
            # AND makes a bare NULL a condition
            always = catalyst.literal(True)
            cases = [
                (always if b.condition is None else catalyst.both([b.condition, always]), b.choice)
                for b in branches
                if b.match is match
            ]
            return catalyst.case(cases, none) if cases else none

        if not join.has_target:
            return among(MatchKind.SOURCE)
        cases = []
        if join in (Join.PAIRS_AND_SOURCE, Join.ALL):
            row_id = self.relation.attributes[ROW_ID]
            cases.append((catalyst.is_null(row_id), among(MatchKind.SOURCE)))
        if join in (Join.PAIRS_AND_TARGET, Join.ALL):
            cases.append((catalyst.is_null(self.source.mark), among(MatchKind.TARGET)))
        matched = among(MatchKind.PAIR)
        return catalyst.case(cases, matched) if cases else matched

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
