"""The oracle: DuckDB, which knows nothing of files, transactions and row ids."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import duckdb

from tests.interop.values import DEFAULT_PARTITION, NESTED, Field
from tests.programs.steps import Step
from tests.programs.tables import Column, Shape, source_columns, type_list

Row = tuple[Any, ...]


class Senseless(Exception):
    """Raised when a step has no meaning after the ones before it: a program that was made shorter may hold such."""


class Oracle:
    """The tables ``t`` and ``s``, and ``parts``: the partitions that are there, with rows or without."""

    def __init__(self, shape: Shape, source: str) -> None:
        """``source`` is the INSERT that fills the source table."""
        self.db = duckdb.connect()
        self.db.execute(shape.create_oracle("t"))
        self.db.execute(f"CREATE TABLE s ({type_list(source_columns(shape), oracle=True)})")
        self.db.execute(source.replace("{s}", "s"))
        if shape.keys:
            self.db.execute(f"CREATE TABLE parts ({type_list(shape.keys, oracle=True)})")

    def ask(self, query: str) -> list[Row]:
        return self.db.execute(_named(query)).fetchall()

    def must_fail(self, step: Step) -> bool:
        """Whether the statement is an error where things stand."""
        try:
            return bool(step.error) and bool(self.ask(step.error))
        except duckdb.Error as e:
            raise Senseless(step.text.acid) from e

    def run(self, step: Step) -> int:
        """Carry a step out; the number of rows of the table that are gone, or have another version now."""
        try:
            gone = self._run(step)
        except duckdb.Error as e:
            raise Senseless(step.text.acid) from e
        if [c for c, *_ in self.ask("DESCRIBE {t}")] != [c.name for c in step.shape.fields]:
            raise Senseless(step.text.acid)
        return gone

    def _run(self, step: Step) -> int:
        gone = 0
        if step.partition:  # before the rows: whether it was there is asked by their statements
            before = self.ask("SELECT * FROM parts")
        for statement in step.oracle:
            answer = self.ask(statement)
            if statement.startswith(("DELETE FROM {t}", "UPDATE {t}")):
                gone += answer[0][0]
            elif step.kind == "merge":
                gone += sum(action != "INSERT" for (action,) in answer)
        if step.partition and not (set(self.ask(step.partition)) & set(before)):
            self.ask(f"INSERT INTO parts {step.partition}")
        if step.shape.keys:
            names = ", ".join(k.name for k in step.shape.keys)
            self.ask(f"INSERT INTO parts SELECT {names} FROM {{t}} EXCEPT SELECT * FROM parts")
        return gone

    def rows(self, columns: Sequence[Column], query: str = "SELECT * FROM {t}") -> list[Row]:
        """The rows of a query whose columns are given, their values in the form in which all engines' are compared."""
        fields = fields_of(columns)
        return sorted((tuple(map(_normal, fields, row)) for row in self.ask(query)), key=repr)

    def set_partitions(self, names: Sequence[str]) -> None:
        """Take over the partitions that are there, by their names ``k=1/l=a%2Fb``."""
        self.ask("DELETE FROM parts")
        for name in names:
            values = [unquote(part.partition("=")[2]) for part in name.split("/")]
            self.db.execute(
                f"INSERT INTO parts VALUES ({', '.join('?' * len(values))})",
                [None if v == DEFAULT_PARTITION else v for v in values],
            )

    def partitions(self) -> int:
        """How many partitions there are."""
        return int(self.ask("SELECT count(*) FROM parts")[0][0])


def fields_of(columns: Sequence[Column]) -> list[Field]:
    """The columns as the comparison knows them."""
    return [Field(c.name, c.type.name) for c in columns]


def _named(text: str) -> str:
    return text.replace("{t}", "t").replace("{s}", "s")


def _normal(field: Field, value: Any) -> Any:
    if value is None:
        return None
    if field.type.startswith(NESTED):
        return field.normal(json.dumps(value, default=str))
    if isinstance(value, bytes):
        return value.hex().upper()
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    return field.normal(value)
