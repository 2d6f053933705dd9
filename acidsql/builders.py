"""DML without SQL text: ``acid.merge(…).on(…).when_matched_update(…).execute()``, by the names that Delta's users know.

A builder puts a statement together and runs it; conditions and values are SQL expressions, as in the statement. A value
that is not a text stands for itself: ``{"state": "'sent'", "count": 1, "day": date(2024, 2, 29)}``.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from acidsql.errors import InvalidValue
from acidsql.plan.text import quote
from acidsql.plan.views import Views

Value: TypeAlias = "str | int | float | bool | decimal.Decimal | datetime.date | datetime.datetime | bytes | None"
Run = Callable[..., DataFrame]

_PLAIN = (int, float, decimal.Decimal, datetime.date, bytes)


class Expressions:
    """SQL expressions from what a builder is given; values that are not texts become named parameters."""

    def __init__(self) -> None:
        self.parameters: dict[str, Any] = {}

    def text(self, value: Value) -> str:
        """The expression of a value.

        Raises:
            InvalidValue: When it is of another type, such as a Column: only texts can be part of a statement.
        """
        if isinstance(value, str):
            return value
        return self.value(value)

    def value(self, value: Value) -> str:
        """The expression of a value, a text standing for itself, too. Raises: as :meth:`text`."""
        if value is None:
            return "NULL"
        if not isinstance(value, (*_PLAIN, str)):
            raise InvalidValue(
                f"{type(value).__name__} is no value of a statement: {value!r}",
                hint="Give a SQL expression as a text ('salary * 2'), or a plain Python value.",
            )
        name = f"acid_value_{len(self.parameters)}"
        self.parameters[name] = value
        return f":{name}"

    def assignments(self, values: Mapping[str, Value]) -> str:
        """``a = expression, b = …`` for SET.

        Raises:
            InvalidValue: When there are none.
        """
        if not values:
            raise InvalidValue("There is no column to set")
        return ", ".join(f"{quote(name)} = {self.text(value)}\n" for name, value in values.items())


def insert_text(
    table: str, view: str, columns: Sequence[str], *, overwrite: bool, partition: Mapping[str, Value], by_name: bool
) -> tuple[str, dict[str, Any]]:
    """An INSERT of all rows of a view, and its parameters.

    Args:
        table: The table's name as in a statement.
        view: The view's name.
        columns: The view's columns.
        overwrite: Whether what is there is replaced.
        partition: Values of static partition keys; a text is a value here, not an expression.
        by_name: Whether columns go to those of their name; by their place otherwise.
    """
    expressions = Expressions()
    keys = ", ".join(f"{quote(name)} = {expressions.value(value)}" for name, value in partition.items())
    into = f"INSERT {'OVERWRITE TABLE' if overwrite else 'INTO'} {table}"
    spec = f" PARTITION ({keys})" if keys else ""
    listed = ", ".join(quote(c) for c in columns)
    return f"{into}{spec}{' BY NAME' if by_name else ''} SELECT {listed} FROM {quote(view)}", expressions.parameters


class MergeBuilder:
    """A MERGE that is being put together. Each ``when_…`` gives the builder back; :meth:`execute` runs it.

    Clauses count in the order of their calls: of those that a row could take, the first one is taken.
    """

    def __init__(
        self,
        run: Run,
        spark: SparkSession,
        table: str,
        source: str | DataFrame,
        *,
        alias: str | None = None,
        source_alias: str | None = None,
    ) -> None:
        self._run = run
        self._spark = spark
        self._table = table
        self._source = source
        self._alias = alias
        self._source_alias = source_alias or ("source" if isinstance(source, DataFrame) else None)
        self._condition: str | None = None
        self._clauses: list[str] = []
        self._evolves = False
        self._expressions = Expressions()

    def on(self, condition: str) -> MergeBuilder:
        """When a row of the source and one of the table are partners, as SQL: ``"t.id = source.id"``."""
        self._condition = condition
        return self

    def with_schema_evolution(self) -> MergeBuilder:
        """Columns that only the source has are added to the table by ``…_all`` clauses."""
        self._evolves = True
        return self

    def when_matched_update(self, set: Mapping[str, Value], condition: str | None = None) -> MergeBuilder:
        """Update rows of the table that have a partner."""
        return self._when("MATCHED", condition, f"UPDATE SET {self._expressions.assignments(set)}")

    def when_matched_update_all(self, condition: str | None = None) -> MergeBuilder:
        """Set all columns to those of the same name in the source."""
        return self._when("MATCHED", condition, "UPDATE SET *")

    def when_matched_delete(self, condition: str | None = None) -> MergeBuilder:
        """Delete rows of the table that have a partner."""
        return self._when("MATCHED", condition, "DELETE")

    def when_not_matched_insert(self, values: Mapping[str, Value], condition: str | None = None) -> MergeBuilder:
        """Insert for rows of the source without a partner; columns that are not named get their default."""
        if not values:
            raise InvalidValue("There is no column to insert")
        columns = ", ".join(quote(name) for name in values)
        texts = ", ".join(f"{self._expressions.text(v)}\n" for v in values.values())
        return self._when("NOT MATCHED", condition, f"INSERT ({columns}) VALUES ({texts})")

    def when_not_matched_insert_all(self, condition: str | None = None) -> MergeBuilder:
        """Insert rows of the source without a partner, columns by their names."""
        return self._when("NOT MATCHED", condition, "INSERT *")

    def when_not_matched_by_source_update(self, set: Mapping[str, Value], condition: str | None = None) -> MergeBuilder:
        """Update rows of the table without a partner in the source."""
        return self._when("NOT MATCHED BY SOURCE", condition, f"UPDATE SET {self._expressions.assignments(set)}")

    def when_not_matched_by_source_delete(self, condition: str | None = None) -> MergeBuilder:
        """Delete rows of the table without a partner in the source."""
        return self._when("NOT MATCHED BY SOURCE", condition, "DELETE")

    def _when(self, match: str, condition: str | None, action: str) -> MergeBuilder:
        asked = f" AND ({condition}\n)" if condition is not None else ""
        self._clauses.append(f"WHEN {match}{asked} THEN {action}")
        return self

    def execute(self, **parameters: Any) -> DataFrame:
        """Run it.

        Args:
            **parameters: Values of the named parameters ``:name`` in conditions and values.

        Returns:
            The row of counts, as :meth:`acidsql.session.AcidSession.sql` answers it.

        Raises:
            InvalidValue: When there is no condition, or no clause.
        """
        if self._condition is None:
            raise InvalidValue("MERGE needs a condition: on('t.id = source.id')")
        if not self._clauses:
            raise InvalidValue("MERGE needs a clause: when_matched_update(…), when_not_matched_insert_all() …")
        with Views(self._spark) if isinstance(self._source, DataFrame) else nullcontext() as views:
            source = self._source if isinstance(self._source, str) else quote(views.add(self._source))  # type: ignore[union-attr]
            return self._run(self._text(source), **self._expressions.parameters, **parameters)

    def _text(self, source: str) -> str:
        evolution = " WITH SCHEMA EVOLUTION" if self._evolves else ""
        alias = f" AS {quote(self._alias)}" if self._alias else ""
        source_alias = f" AS {quote(self._source_alias)}" if self._source_alias else ""
        into, using = f"MERGE{evolution} INTO {self._table}{alias}", f"USING {source}{source_alias}"
        return "\n".join([into, using, f"ON ({self._condition}", ")", *self._clauses])
