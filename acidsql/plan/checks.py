"""CHECK constraints: new rows of a table must meet its conditions."""

from __future__ import annotations

from pyspark.sql import SparkSession

from acidsql.plan.changes import KIND, ChangeSet, key_column, value_column
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
    values = [from_files(f"{_ROW}.{_PREFIX}{value_column(i)}", c, zones) for i, c in enumerate(table.columns)]
    columns = [f"{value} AS {quote(c.name)}" for value, c in zip(values, table.columns, strict=True)]
    for i, key in enumerate(table.partition_keys):
        value = from_key_text(f"{_ROW}.{_PREFIX}{key_column(i)}", parse_type(key.type))
        columns.append(f"{value} AS {quote(key.name)}")
    is_new = "true" if change is not None else f"{_ROW}.{_PREFIX}{KIND} IN ({int(Change.INSERT)}, {int(Change.UPDATE)})"
    cases = [
        f"WHEN NOT ({check}\n) THEN {failing(f'CHECK constraint violated: a row does not meet {check}')}"
        for check in table.checks
    ]
    with Views(spark) as views:
        named = changes.columns
        renamed = views.add(changes.frame.selectExpr(*[f"{name} AS {_PREFIX}{name}" for name in named]))
        row = f"LATERAL (SELECT {', '.join(columns)}) AS {quote(table.name)}"
        fits = f"CASE WHEN NOT ({is_new}) THEN true {' '.join(cases)} ELSE true END"
        frame = spark.sql(f"SELECT {_ROW}.* FROM {renamed} AS {_ROW}, {row} WHERE {fits}")
    return changes.over(frame.toDF(*named))
