"""The columns of SET clauses and of column lists of INSERT, also in MERGE."""

from __future__ import annotations

from collections.abc import Container, Sequence

from acidsql.commands.error_location import with_location
from acidsql.errors import AcidError, AnalysisError, ColumnNotFound
from acidsql.metastore.model import Column, Table
from acidsql.sql.statements import Assignment, Name


def assigned_columns(table: Table, assignments: Sequence[Assignment]) -> dict[str, Assignment]:
    """The assignments by column name, in lower case.

    Raises:
        ColumnNotFound: When a column does not exist (Hive 10408).
        AnalysisError: When it is a partition key (10292) or a bucketing column (10302), or is set twice.
    """
    found: dict[str, Assignment] = {}
    for assignment in assignments:
        name = assignment.column.text.lower()
        problem = _problem(table, name, assignment.column.text)
        if problem is None and name in found:
            problem = AnalysisError(f"Column {name} is set twice")
        if problem is not None:
            raise with_location(assignment.column.span, problem)
        found[name] = assignment
    return found


def _problem(table: Table, name: str, written: str) -> AcidError | None:
    if any(k.name == name for k in table.partition_keys):
        return AnalysisError("Updating values of partition columns is not supported", code=10292)
    if name in table.bucket_columns:
        return AnalysisError(f"Updating values of bucketing columns is not supported.  Column {name}.", code=10302)
    if any(c.name == name for c in table.columns):
        return None
    return ColumnNotFound(
        f'Target column "{written}" of set clause is not found in table "{table.full_name}"',
        code=10408,
        hint=f"The columns are {', '.join(c.name for c in table.columns)}.",
    )


def named_columns(table: Table, names: Sequence[Name], *, fixed: Container[str] = ()) -> list[Column]:
    """The columns of a column list, in its order.

    Args:
        table: The table.
        names: The list.
        fixed: Partition keys that already have a value.

    Raises:
        AnalysisError: When a column does not exist, or one is named twice.
    """
    by_name = {c.name: c for c in table.all_columns if c.name not in fixed}
    chosen: list[Column] = []
    for name in names:
        column = by_name.get(name.text.lower())
        if column is None:
            raise with_location(name.span, _not_insertable(table, name))
        if column in chosen:
            raise with_location(name.span, AnalysisError(f"Column {column.name} is named twice"))
        chosen.append(column)
    return chosen


def _not_insertable(table: Table, name: Name) -> AcidError:
    return AnalysisError(
        f"'{name.text}' in insert schema specification is not found among regular columns of {table.full_name}"
        " nor dynamic partition columns",
        hint=f"The columns are {', '.join(c.name for c in table.all_columns)}.",
    )
