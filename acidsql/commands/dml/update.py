"""UPDATE: writes delete events for the matching rows, and their new versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from acidsql.catalyst import Expression
from acidsql.commands.dml.assignments import assigned_columns
from acidsql.commands.dml.row_change import RowChange
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.resolve.binding import Binding
from acidsql.metastore.model import Operation
from acidsql.plan.changes import ChangeSet, value_column
from acidsql.plan.nanoseconds import kept_timestamps, reject_sub_microsecond
from acidsql.plan.relation import Relation
from acidsql.plan.snapshot import TableSnapshot
from acidsql.plan.values import NotStorable, store_assignment, typed_default
from acidsql.settings import NANOSECONDS
from acidsql.sql.statements import Assignment, Default, Update


class UpdateCommand(RowChange):
    """UPDATE.

    1. Open a transaction. Resolve the table and the SET columns, and let Spark resolve the user's expressions over the
       table's columns; prune the partitions by the conditions pushed down to the table.
    2. Lock these partitions (or the table) EXCL_WRITE (SHARED_WRITE where rows are compared) and the tables read
       SHARED_READ, all at once; look everything up again, and restart if something has changed.
    3. Take one snapshot for the table and every table in a subquery.
    4. Scan the identity and all new values, as stored, of each matching row.
    5. Allocate the write id; write ``delete_delta`` and ``delta`` of the same statement id into a staging directory: by
       the driver when few rows match, else by one Spark job.
    6. Publish by rename, commit, return the counts.
    """

    operation = Operation.UPDATE
    directories = ("delete_delta", "delta")
    statement: Update

    def __init__(self, env: Environment, statement: Update, parameters: Mapping[str, Any]) -> None:
        super().__init__(env, statement, parameters)
        self.assignments: dict[str, Assignment] = {}
        self.resolve()

    def resolve(self) -> None:
        """Resolve the columns that SET names."""
        self.assignments = assigned_columns(self.table, self.statement.assignments)

    def values(self, binding: Binding, target: Relation) -> list[Expression]:
        """New values for the columns in SET, old ones for all others, with wall-clock times as in the files."""
        attributes, made = target.attributes, []
        for i, column in enumerate(self.table.columns):
            assignment = self.assignments.get(column.name)
            if assignment is None:
                held = f"{target.columns.file_value_prefix}{i}"
                made.append(attributes.get(held) or attributes[column.name])
            elif isinstance(assignment.value, Default):
                made.append(self.env.sessions.own.resolved_expression(typed_default(column)))
            else:
                made.append(binding.expression(assignment.value))
        return made

    def stored(self, rows: DataFrame, binding: Binding, seen: TableSnapshot) -> ChangeSet:
        """The new values in their stored form."""
        env, columns = self.env, self.table.columns
        try:
            stored = store_assignment(env.own_spark, rows, columns, 0, zones=env.zones, kept=self._kept())
        except NotStorable as e:
            value = self.assignments[e.target].value
            raise with_location(value.span if isinstance(value, Default) else value, e) from e
        values = [f"{e} AS {value_column(i)}" for i, e in enumerate(stored)]
        changes = self.change_set(rows.selectExpr(*values, *self.identity(rows.columns)))
        if env.settings.value(NANOSECONDS) == "truncate":
            return changes
        kept = kept_timestamps(self.table, self.assignments.keys())
        return reject_sub_microsecond(env.own_spark, seen, kept, changes)

    def _kept(self) -> frozenset[int]:
        """Positions of the columns that keep their values."""
        return frozenset(i for i, c in enumerate(self.table.columns) if c.name not in self.assignments)


def update(env: Environment, statement: Update, parameters: Mapping[str, Any]) -> DataFrame:
    """Run UPDATE; the row of counts."""
    return env.counts(updated=UpdateCommand(env, statement, parameters).run().updated)
