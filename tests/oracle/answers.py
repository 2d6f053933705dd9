"""What an engine says to a statement: rows with their columns and types, or the kind of error."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import Row

from acidsql.errors import AcidError, ParseError, TableNotFound

Run = Callable[[str], DataFrame]


@dataclass(frozen=True)
class Rows:
    """Columns, their types and the rows; sorted, unless their order was asked for."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Refusal:
    """The kind of an error: its condition as Spark names it. The message is for the reader of a failed test only."""

    condition: str
    message: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Refusal) and other.condition == self.condition

    def __hash__(self) -> int:
        return hash(self.condition)


Answer = Rows | Refusal


def ask(run: Run, text: str, *, ordered: bool = False) -> Answer:
    """The answer to a query, read to its end."""
    try:
        frame = run(text)
        rows = [tuple(map(_value, row)) for row in frame.collect()]
        types = tuple(re.sub(r"(?:var)?char\(\d+\)", "string", f.dataType.simpleString()) for f in frame.schema)
        columns = tuple(map(_without_numbers, frame.columns))
    except (PySparkException, AcidError) as e:
        return Refusal(_condition(e), str(e)[:300])
    except Py4JJavaError as e:  # an error inside of Spark, which has a condition all the same
        text = str(e)
        found = re.search(r"\[(INTERNAL_ERROR\w*)\]", text)
        if found is None:
            raise
        return Refusal(found[1], text[:300])
    return Rows(columns, types, tuple(rows if ordered else sorted(rows, key=repr)))


def _condition(error: PySparkException | AcidError) -> str:
    if isinstance(error, PySparkException):
        return error.getCondition() or type(error).__name__
    if isinstance(error, TableNotFound):
        return "TABLE_OR_VIEW_NOT_FOUND"
    if isinstance(error, ParseError):
        return "PARSE_SYNTAX_ERROR"
    return f"acidsql's {type(error).__name__}"


def _without_numbers(column: str) -> str:
    """Names that Spark makes of its own expression ids, as of an outer reference or a lambda, differ each time."""
    return re.sub(r"#\d+L?|(?<=_)\d+\b", "", column)


def _value(value: Any) -> Any:
    """A value whose equality is the engine's: sums of doubles hang on the order in which rows come."""
    if isinstance(value, float):
        return f"{value:.9g}"
    if isinstance(value, Row):
        return ("row", *map(_value, value))
    if isinstance(value, list):
        return ("array", *map(_value, value))
    if isinstance(value, dict):
        return ("map", *sorted(((_value(k), _value(v)) for k, v in value.items()), key=repr))
    return bytes(value) if isinstance(value, bytearray) else value
