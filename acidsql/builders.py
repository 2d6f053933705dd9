"""DML without SQL text: ``acid.merge(…).on(…).when_matched_update(…).execute()``, with Delta's method names.

A builder composes a statement and runs it; conditions and values are SQL expressions, as in the statement. A value that
is not a string is used as a literal: ``{"state": "'sent'", "count": 1, "day": date(2024, 2, 29)}``.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from acidsql.errors import InvalidValue
from acidsql.plan.text import quote
from acidsql.plan.views import Views
from acidsql.sql.tokens import tokenize

Value: TypeAlias = "str | int | float | bool | decimal.Decimal | datetime.date | datetime.datetime | bytes | None"
Run = Callable[..., DataFrame]

_PLAIN = (int, float, decimal.Decimal, datetime.date, bytes)


class Expressions:
    """SQL expressions from a builder's arguments; values other than strings become named parameters."""

    def __init__(self) -> None:
        self.parameters: dict[str, Any] = {}

    def text(self, value: Value) -> str:
        """The expression of a value.

        Raises:
            InvalidValue: When its type is not supported, such as a Column.
        """
        if isinstance(value, str):
            return value
        return self.value(value)

    def value(self, value: Value) -> str:
        """The expression of a value; a string is a literal here. Raises: as :meth:`text`."""
        if value is None:
            return "NULL"
        if not isinstance(value, (*_PLAIN, str)):
            raise InvalidValue(
                f"{type(value).__name__} cannot be used as a SQL value: {value!r}",
                hint="Pass a SQL expression as a string ('salary * 2'), or a plain Python value.",
            )
        name = f"acid_value_{len(self.parameters)}"
        self.parameters[name] = value
        return f":{name}"

    def assignments(self, values: Mapping[str, Value]) -> str:
        """``a = expression, b = …`` for SET.

        Raises:
            InvalidValue: When ``values`` is empty.
        """
        if not values:
            raise InvalidValue("No column to set")
        return ", ".join(f"{quote(name)} = {self.text(value)}\n" for name, value in values.items())


def require_used(text: str, parameters: Iterable[str]) -> None:
    """Make sure that a statement uses its parameters.

    Raises:
        InvalidValue: Naming one that it does not use, such as ``where``.
    """
    tokens = tokenize(text)
    used = {name.name for mark, name in pairwise(tokens) if mark.word == ":"}
    for name in parameters:
        if name not in used:
            raise InvalidValue(f"No text uses the parameter :{name}", hint="The condition is the argument condition.")


def insert_text(
    table: str, view: str, *, overwrite: bool, partition: Mapping[str, Value], by_name: bool
) -> tuple[str, dict[str, Any]]:
    """An INSERT of all rows of a view, and its parameters.

    Args:
        table: The table name as in a statement.
        view: The view's name.
        overwrite: Whether existing rows are replaced.
        partition: Values of static partition keys; a string is a value here, not an expression.
        by_name: Whether columns are matched by name instead of by position.
    """
    expressions = Expressions()
    keys = ", ".join(f"{quote(name)} = {expressions.value(value)}" for name, value in partition.items())
    into = f"INSERT {'OVERWRITE TABLE' if overwrite else 'INTO'} {table}"
    spec = f" PARTITION ({keys})" if keys else ""
    return f"{into}{spec}{' BY NAME' if by_name else ''} SELECT * FROM {quote(view)}", expressions.parameters


class MergeBuilder:
    """Builder of a MERGE. Each ``when_…`` returns the builder; :meth:`execute` runs the statement.

    Clauses are tried in the order of their calls: the first matching clause applies.
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
        answering: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._run = run
        self._answering = answering
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
        """The condition that matches source and target rows, as SQL: ``"t.id = source.id"``."""
        self._condition = condition
        return self

    def with_schema_evolution(self) -> MergeBuilder:
        """Let ``…_all`` clauses add the columns that only the source has to the table."""
        self._evolves = True
        return self

    def when_matched_update(self, set: Mapping[str, Value], condition: str | None = None) -> MergeBuilder:
        """Update target rows with a matching source row."""
        return self._when("MATCHED", condition, f"UPDATE SET {self._expressions.assignments(set)}")

    def when_matched_update_all(self, condition: str | None = None) -> MergeBuilder:
        """Set all columns to the source columns of the same name."""
        return self._when("MATCHED", condition, "UPDATE SET *")

    def when_matched_delete(self, condition: str | None = None) -> MergeBuilder:
        """Delete target rows with a matching source row."""
        return self._when("MATCHED", condition, "DELETE")

    def when_not_matched_insert(self, values: Mapping[str, Value], condition: str | None = None) -> MergeBuilder:
        """Insert a row for each source row without a match; columns that are not named get their default."""
        if not values:
            raise InvalidValue("No column to insert")
        columns = ", ".join(quote(name) for name in values)
        texts = ", ".join(f"{self._expressions.text(v)}\n" for v in values.values())
        return self._when("NOT MATCHED", condition, f"INSERT ({columns}) VALUES ({texts})")

    def when_not_matched_insert_all(self, condition: str | None = None) -> MergeBuilder:
        """Insert the source rows without a match; columns are matched by name."""
        return self._when("NOT MATCHED", condition, "INSERT *")

    def when_not_matched_by_source_update(self, set: Mapping[str, Value], condition: str | None = None) -> MergeBuilder:
        """Update target rows without a matching source row."""
        return self._when("NOT MATCHED BY SOURCE", condition, f"UPDATE SET {self._expressions.assignments(set)}")

    def when_not_matched_by_source_delete(self, condition: str | None = None) -> MergeBuilder:
        """Delete target rows without a matching source row."""
        return self._when("NOT MATCHED BY SOURCE", condition, "DELETE")

    def _when(self, match: str, condition: str | None, action: str) -> MergeBuilder:
        asked = f" AND ({condition}\n)" if condition is not None else ""
        self._clauses.append(f"WHEN {match}{asked} THEN {action}")
        return self

    def execute(self, **parameters: Any) -> DataFrame:
        """Run the statement.

        Args:
            **parameters: Values of the named parameters ``:name`` in conditions and values.

        Returns:
            The row of counts, as :meth:`acidsql.session.AcidSession.sql` returns it.

        Raises:
            InvalidValue: When the condition or all clauses are missing.
        """
        if self._condition is None:
            raise InvalidValue("MERGE needs a condition: on('t.id = source.id')")
        if not self._clauses:
            raise InvalidValue("MERGE needs a clause: when_matched_update(…), when_not_matched_insert_all() …")
        with (
            self._answering(),
            Views(self._spark) if isinstance(self._source, DataFrame) else nullcontext() as views,
        ):
            source = self._source if isinstance(self._source, str) else quote(views.add(self._source))  # type: ignore[union-attr]
            return self._run(self._text(source), **self._expressions.parameters, **parameters)

    def _text(self, source: str) -> str:
        evolution = " WITH SCHEMA EVOLUTION" if self._evolves else ""
        alias = f" AS {quote(self._alias)}" if self._alias else ""
        source_alias = f" AS {quote(self._source_alias)}" if self._source_alias else ""
        into, using = f"MERGE{evolution} INTO {self._table}{alias}", f"USING {source}{source_alias}"
        return "\n".join([into, using, f"ON ({self._condition}", ")", *self._clauses])
