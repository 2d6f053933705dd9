"""MERGE as one query: what happens to each pair of rows, and the new values, from the user's own expressions.

The clauses are numbered in their order. A query over the join of source and target gives, for each pair, the number of
the first clause that fits, the identity of the target's row, and the values of every clause, each evaluated only where
its clause was chosen. :meth:`MergePlan.changes` turns that into what :mod:`acidsql.plan.write` writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import DataFrame, SparkSession

from acidsql.errors import AcidError
from acidsql.metastore.model import Column, Table
from acidsql.plan.failures import failing
from acidsql.plan.scan import RAW_KEY, ROW_ID
from acidsql.plan.target import IDENTITY, Change
from acidsql.plan.text import quote
from acidsql.plan.values import NotStorable, key_text, store_assignment
from acidsql.types import parse_type, to_spark

SOURCE_MARK = "__acid_source"
"""Column of the source that is never NULL: it is, in a pair, where there is no row of the source."""
SOURCE_NUMBER = "__acid_number"
"""Column of a fetched source that numbers its rows."""
_CLAUSE = "__acid_clause"
_CHOICE = "__acid_choice"
_NONE = -1
"""The number of a pair for which no clause fits."""


class Fits(Enum):
    """Which rows a clause is about."""

    PAIR = "matched"
    SOURCE = "not matched"
    TARGET = "not matched by source"


class Join(Enum):
    """Which pairs are looked at; the target stands left."""

    PAIRS = "JOIN"
    PAIRS_AND_TARGET = "LEFT JOIN"
    PAIRS_AND_SOURCE = "RIGHT JOIN"
    ALL = "FULL JOIN"
    SOURCE_ALONE = "ANTI"
    """Rows of the source without a partner."""
    NO_TARGET = "NONE"
    """Rows of the source, which are known to have no partner."""


@dataclass(frozen=True)
class Branch:
    """One WHEN clause with its expressions as Spark can read them.

    Attributes:
        number: Its place among the clauses.
        fits: The rows that it is about.
        condition: What stands behind AND.
        change: What it does.
        values: The new value of each column that it names; of all columns for an INSERT.
        guard: What must hold where the clause is chosen, and what is wrong where it does not.
    """

    number: int
    fits: Fits
    condition: str | None
    change: Change
    values: Mapping[str, str]
    guard: tuple[str, str] | None = None

    @property
    def chosen(self) -> str:
        """Its number, or an error."""
        if self.guard is None:
            return str(self.number)
        holds, message = self.guard
        return f"CASE WHEN {holds} THEN {self.number} ELSE {failing(message)} END"


@dataclass(frozen=True)
class MergePlan:
    """A MERGE whose names are resolved.

    Attributes:
        table: The target.
        target: Its name in the expressions, back-quoted.
        source: The source's, likewise.
        on: The join condition.
        branches: The clauses.
        all_pairs: Whether pairs for which no clause fits are answered too.
        numbered: Whether the source has :data:`SOURCE_NUMBER`, which is then answered as ``n``.
        named_queries: A WITH clause whose names the expressions may use.
    """

    table: Table
    target: str
    source: str
    on: str
    branches: tuple[Branch, ...]
    all_pairs: bool
    numbered: bool = False
    named_queries: str = ""

    def query(self, join: Join, target_view: str, source_view: str) -> str:
        """The query over the pairs of a join.

        Args:
            join: Which pairs.
            target_view: Name of a view of the target with its row identities and raw keys.
            source_view: Name of a view of the source, with :data:`SOURCE_MARK` where the join asks for it.
        """
        branches = self._asked(join)
        columns = [f"{_CHOICE}.{_CLAUSE} AS {_CLAUSE}", *self._identity(join), *self._old(join)]
        for branch in branches:
            for i, value in enumerate(branch.values.values()):
                chosen = f"CASE WHEN {_CHOICE}.{_CLAUSE} = {branch.number} THEN ({value}\n) END"
                columns.append(f"{chosen} AS v{branch.number}_{i}")
        choice = f"LATERAL (SELECT {self._choice(join)} AS {_CLAUSE}) AS {_CHOICE}"
        kept = "true" if self._counts_all(join) else f"{_CHOICE}.{_CLAUSE} <> {_NONE}"
        listed = ",\n".join(columns)
        pairs = self._from(join, target_view, source_view)
        return f"{self.named_queries}\nSELECT {listed}\nFROM {pairs}, {choice}\nWHERE {kept}"

    def matched_query(self, target_view: str, source_view: str) -> str:
        """The numbers of the source's rows that have a partner, as ``n``."""
        pairs = self._from(Join.PAIRS, target_view, source_view)
        return f"{self.named_queries}\nSELECT DISTINCT {self.source}.{SOURCE_NUMBER} AS n FROM {pairs}"

    def changes(
        self, spark: SparkSession, raw: DataFrame, join: Join, failed: Callable[[Branch, NotStorable], AcidError]
    ) -> DataFrame:
        """The answer of :meth:`query` as changes; those of rows of the source alone are all inserts, without a kind.

        Args:
            spark: The session.
            raw: The answer.
            join: The join that it is of.
            failed: The error to raise where a value of a clause cannot be stored.
        """
        branches = self._asked(join)
        data, keys = self.table.columns, self.table.partition_keys
        first = 1 + len(self._identity(join))
        kept = store_assignment(spark, raw, data, first) if self._has_target(join) else []
        first += len(self._old(join))
        stored: dict[int, dict[str, str]] = {}
        for branch in branches:
            columns = [self._column(name) for name in branch.values]
            try:
                expressions = store_assignment(spark, raw, columns, first)
            except NotStorable as e:
                raise failed(branch, e) from e
            stored[branch.number] = dict(zip(branch.values, expressions, strict=True))
            first += len(columns)
        made = [self._value(branches, stored, c, kept[i] if kept else None, i) for i, c in enumerate(data)]
        made += [self._key(branches, stored, key, join, i) for i, key in enumerate(keys)]
        made += [name for name in (*IDENTITY, "n") if name in raw.columns]
        return raw.selectExpr(*made, *([f"{self._kind(branches)} AS kind"] if self._has_target(join) else []))

    # --- the join ----------------------------------------------------------------------------------------------------

    def _from(self, join: Join, target_view: str, source_view: str) -> str:
        target, source = f"{target_view} AS {self.target}", f"{source_view} AS {self.source}"
        on = f"ON ({self.on}\n)"
        if join is Join.NO_TARGET:
            return source
        if join is Join.SOURCE_ALONE:
            return f"{source} LEFT ANTI JOIN {target} {on}"
        return f"{target} {join.value} {source} {on}"

    @staticmethod
    def _has_target(join: Join) -> bool:
        return join not in (Join.SOURCE_ALONE, Join.NO_TARGET)

    def _asked(self, join: Join) -> list[Branch]:
        """The clauses that can fit a pair of the join."""
        asked = {
            Join.PAIRS: (Fits.PAIR,),
            Join.PAIRS_AND_TARGET: (Fits.PAIR, Fits.TARGET),
            Join.PAIRS_AND_SOURCE: (Fits.PAIR, Fits.SOURCE),
            Join.ALL: tuple(Fits),
            Join.SOURCE_ALONE: (Fits.SOURCE,),
            Join.NO_TARGET: (Fits.SOURCE,),
        }[join]
        return [b for b in self.branches if b.fits in asked]

    def _counts_all(self, join: Join) -> bool:
        return self.all_pairs and self._has_target(join)

    def _choice(self, join: Join) -> str:
        """The number of the first clause that fits."""
        branches = self._asked(join)

        def among(fits: Fits) -> str:
            cases = [f"WHEN ({b.condition or 'true'}\n) AND true THEN {b.chosen}" for b in branches if b.fits is fits]
            return f"CASE {' '.join(cases)} ELSE {_NONE} END" if cases else str(_NONE)

        without_target, without_source = among(Fits.SOURCE), among(Fits.TARGET)
        if not self._has_target(join):
            return without_target
        cases = []
        if join in (Join.PAIRS_AND_SOURCE, Join.ALL):
            cases.append(f"WHEN {self.target}.{quote(ROW_ID)} IS NULL THEN {without_target}")
        if join in (Join.PAIRS_AND_TARGET, Join.ALL):
            cases.append(f"WHEN {self.source}.{SOURCE_MARK} IS NULL THEN {without_source}")
        matched = among(Fits.PAIR)
        return f"CASE {' '.join(cases)} ELSE {matched} END" if cases else matched

    def _identity(self, join: Join) -> list[str]:
        """Who the target's row is, and where it stands; the number of the source's row where rows are fetched."""
        if not self._has_target(join):
            return []
        made = [f"{self.target}.{quote(ROW_ID)}.{part} AS {part}" for part in IDENTITY]
        made += [f"{self.target}.{quote(f'{RAW_KEY}{i}')} AS r{i}" for i in range(len(self.table.partition_keys))]
        if self.numbered:
            made.append(f"{self.source}.{SOURCE_NUMBER} AS n")
        return made

    def _old(self, join: Join) -> list[str]:
        if not self._has_target(join):
            return []
        return [f"{self.target}.{quote(c.name)} AS o{i}" for i, c in enumerate(self.table.columns)]

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
        old = f"r{position}" if self._has_target(join) else "CAST(NULL AS string)"
        return f"{f'CASE {_CLAUSE} {chr(32).join(cases)} ELSE {old} END' if cases else old} AS k{position}"

    @staticmethod
    def _kind(branches: Sequence[Branch]) -> str:
        cases = [f"WHEN {b.number} THEN {int(b.change)}" for b in branches]
        return f"CASE {_CLAUSE} {' '.join(cases)} ELSE {int(Change.NOTHING)} END" if cases else str(int(Change.NOTHING))
