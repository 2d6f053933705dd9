"""A plan that is put together step by step and analysed once, by :meth:`Draft.frame`.

Each step of a ``DataFrame`` is a plan of its own that Spark analyses anew: a scan of eight steps cost eight analyses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame

from acidsql.catalyst.builder import Expression, Plan
from acidsql.catalyst.plans import Catalyst


@dataclass(frozen=True)
class Draft:
    """Steps like those of a ``DataFrame``, with texts of acidsql's own; nothing is resolved yet.

    Attributes:
        catalyst: A session of acidsql's own, which fixes what the texts mean.
        plan: The plan so far.
    """

    catalyst: Catalyst
    plan: Plan

    @classmethod
    def of(cls, catalyst: Catalyst, frame: DataFrame) -> Draft:
        """The steps over a frame."""
        return cls(catalyst, catalyst.analyzed(frame))

    def frame(self) -> DataFrame:
        """The analysed plan.

        Raises:
            pyspark.errors.AnalysisException: As Spark.
        """
        return self.catalyst.frame(self.plan)

    def filter(self, condition: str) -> Draft:
        """WHERE; each call is a filter of its own."""
        return self._with(self.catalyst.filter(self.catalyst.parse_expression(condition), self.plan))

    def where(self, condition: Expression) -> Draft:
        """WHERE, with a condition that is no text."""
        return self._with(self.catalyst.filter(condition, self.plan))

    def select(self, *columns: str) -> Draft:
        """SELECT, of columns as they stand there."""
        return self._above(f"SELECT {', '.join(columns)}")

    def with_columns(self, columns: Mapping[str, Column]) -> Draft:
        """All columns, and further ones."""
        return self.further({name: self.catalyst.expression(column) for name, column in columns.items()})

    def further(self, columns: Mapping[str, Expression]) -> Draft:
        """All columns, and further ones that are no texts."""
        made = [self.catalyst.alias(expression, name) for name, expression in columns.items()]
        return self._with(self.catalyst.project([self.catalyst.star, *made], self.plan))

    def join(self, other: Draft, condition: str, kind: str) -> Draft:
        """A join of a kind as :meth:`Catalyst.join` takes it."""
        on = self.catalyst.parse_expression(condition)
        return self._with(self.catalyst.join(self.plan, other.plan, kind, on))

    def distributed(self, by: Iterable[str]) -> Draft:
        """All rows with equal values in one task."""
        return self._above(f"SELECT 1 DISTRIBUTE BY {', '.join(by)}")

    def limited_in_tasks(self, rows: int) -> Draft:
        """At most so many rows of each task."""
        return self._with(self.catalyst.limited_in_tasks(rows, self.plan))

    def in_one_task(self) -> Draft:
        """All rows in a single task, which other tasks have made."""
        return self._with(self.catalyst.in_one_task(self.plan))

    def sorted_within(self, by: Iterable[str]) -> Draft:
        """The rows of each task in an order."""
        return self._above(f"SELECT 1 SORT BY {', '.join(by)}")

    def broadcast(self) -> Draft:
        """The same with the hint that it is small."""
        return self._with(self.catalyst.broadcast(self.plan))

    def _above(self, text: str) -> Draft:
        """The outermost step of a query, with the plan in the place of what is below it there."""
        return self._with(self.catalyst.parse(text).withNewChildren(self.catalyst.seq([self.plan])))

    def _with(self, plan: Plan) -> Draft:
        return replace(self, plan=plan)


def union(drafts: Iterable[Draft]) -> Draft:
    """All rows of some drafts, at least one; columns by position."""
    first, *others = drafts
    if not others:
        return first
    return replace(first, plan=first.catalyst.union([first.plan, *(o.plan for o in others)]))
