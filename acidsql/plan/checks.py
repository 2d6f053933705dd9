"""CHECK constraints: new rows of a table must meet its conditions."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from acidsql.metastore.model import Table
from acidsql.plan.changes import KIND, NUMBER, ChangeSet, key_column, value_column
from acidsql.plan.failures import failing
from acidsql.plan.target import Change
from acidsql.plan.text import quote
from acidsql.plan.values import Zones, from_files, from_key_text
from acidsql.plan.views import Views
from acidsql.types import parse_type

_ROW = "__acid_row"
_PREFIX = "__acid_"


def checked(spark: SparkSession, changes: ChangeSet, zones: Zones) -> ChangeSet:
    """The changes, failing at a new row for which a CHECK condition is false. NULL passes, as in the SQL standard.

    Args:
        spark: The session of the changes.
        changes: The changes.
        zones: The zones that timestamps pass: the conditions see them as the user does.
    """
    table, change = changes.table, changes.change
    if not table.checks or change is Change.DELETE:
        return changes
    values = [from_files(of_row(value_column(i)), c, zones) for i, c in enumerate(table.columns)]
    is_new = "true" if change is not None else f"{of_row(KIND)} IN ({int(Change.INSERT)}, {int(Change.UPDATE)})"
    cases = [f"WHEN NOT ({check}\n) THEN {failing(violation(check))}" for check in table.checks]
    named = changes.columns
    with Views(spark) as views:
        rows = _rows_and_columns(views, changes.frame.select(*named), table, values)
        fits = f"CASE WHEN NOT ({is_new}) THEN true {' '.join(cases)} ELSE true END"
        frame = spark.sql(f"SELECT {_ROW}.* FROM {rows} WHERE {fits}")
    return changes.over(frame.toDF(*named))


def violations(spark: SparkSession, frame: DataFrame, table: Table, values: Sequence[str]) -> dict[int, str]:
    """The first condition that each row does not meet, by the row's number; rows that meet all are not there.

    Args:
        spark: The session of the frame.
        frame: Rows with their values, the texts of partition keys, and :data:`NUMBER`.
        table: Their table.
        values: Expressions for the values of the table's data columns, as the user sees them, over names that
            :func:`of_row` has made of the frame's.
    """
    cases = [f"WHEN NOT ({check}\n) THEN {i}" for i, check in enumerate(table.checks)]
    with Views(spark) as views:
        rows = _rows_and_columns(views, frame, table, values)
        found = spark.sql(f"SELECT {of_row(NUMBER)} AS n, CASE {' '.join(cases)} END AS failed FROM {rows}")
    return {row.n: violation(table.checks[row.failed]) for row in found.where("failed IS NOT NULL").collect()}


def violation(check: str) -> str:
    """What an error says of a row that does not meet a condition."""
    return f"CHECK constraint violated: a row does not meet {check}"


def of_row(name: str) -> str:
    """A column of the rows, in expressions beside the conditions."""
    return f"{_ROW}.{_PREFIX}{name}"


def _rows_and_columns(views: Views, frame: DataFrame, table: Table, values: Sequence[str]) -> str:
    """A FROM clause of the rows under names that no condition has, and beside them the table's columns."""
    columns = [f"{value} AS {quote(c.name)}" for value, c in zip(values, table.columns, strict=True)]
    for i, key in enumerate(table.partition_keys):
        value = from_key_text(of_row(key_column(i)), parse_type(key.type))
        columns.append(f"{value} AS {quote(key.name)}")
    renamed = views.add(frame.selectExpr(*[f"{name} AS {_PREFIX}{name}" for name in frame.columns]))
    return f"{renamed} AS {_ROW}, LATERAL (SELECT {', '.join(columns)}) AS {quote(table.name)}"
