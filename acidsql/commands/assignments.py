"""The columns that SET names: of UPDATE, and of the UPDATE clauses of MERGE."""

from __future__ import annotations

from collections.abc import Sequence

from acidsql.commands.places import at
from acidsql.errors import AcidError, AnalysisError, ColumnNotFound
from acidsql.metastore.model import Table
from acidsql.sql.statements import Assignment


def assigned_columns(table: Table, assignments: Sequence[Assignment]) -> dict[str, Assignment]:
    """The assignments by the name of their column, in lower case.

    Raises:
        ColumnNotFound: When there is no such column (Hive 10408).
        AnalysisError: When it is a partition key (10292) or a bucketing column (10302), or is set twice.
    """
    found: dict[str, Assignment] = {}
    for assignment in assignments:
        name = assignment.column.text.lower()
        problem = _problem(table, name, assignment.column.text)
        if problem is None and name in found:
            problem = AnalysisError(f"Column {name} is set twice")
        if problem is not None:
            raise at(assignment.column.span, problem)
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
