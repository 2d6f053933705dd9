"""DELETE: delete events for the rows that match."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from acidsql.catalyst import Expression
from acidsql.commands.dml.row_change import RowChange
from acidsql.commands.dml.truncate import TruncateCommand, refuse_not_managed
from acidsql.commands.environment import Environment
from acidsql.commands.query import table_frame
from acidsql.commands.resolve.binding import Binding
from acidsql.metastore.model import Operation
from acidsql.plan.relation import Relation
from acidsql.plan.snapshot import TableSnapshot
from acidsql.sql.statements import Delete


class DeleteCommand(RowChange):
    """DELETE: UPDATE without new versions.

    1. Open a transaction. Resolve the table, and have Spark resolve the condition over its columns; the conditions that
       reach the table leave partitions.
    2. Lock these partitions (or the table) EXCL_WRITE and the tables read SHARED_READ, all at once; look everything up
       again, and start over where something has changed.
    3. Take one snapshot for the table and every table in a subquery.
    4. One scan gives the identity of each row that matches.
    5. Allocate the write id; write ``delete_delta`` into a staging directory: by the driver when few rows match, else
       by one Spark job.
    6. Publish by rename, commit, answer the counts.
    """

    operation = Operation.DELETE
    directories = ("delete_delta",)
    statement: Delete

    def resolve(self) -> None:
        """It names none."""

    def values(self, binding: Binding, target: Relation) -> list[Expression]:
        """None: no row is written."""
        return []

    def stored(self, rows: DataFrame, binding: Binding, seen: TableSnapshot) -> DataFrame:
        """The identities."""
        return rows.selectExpr(*self.identity(rows.columns))


def delete(env: Environment, statement: Delete, parameters: Mapping[str, Any]) -> DataFrame:
    """Run DELETE; the row of counts. Of an insert-only table all rows can go at once, as in Hive, or none.

    Raises:
        AnalysisError: As TRUNCATE, which Hive makes of a DELETE without a condition, of an external table (Hive 10146).
    """
    name = statement.table
    table = env.registered(name) if statement.where is None else None
    if statement.where is None and not (table is not None and (table.is_transactional or table.is_view)):
        refuse_not_managed(env, name)
    if table is not None and table.is_insert_only:
        gone = table_frame(env, name).count()
        TruncateCommand(env, table).run()
        return env.counts(deleted=gone)
    return env.counts(deleted=DeleteCommand(env, statement, parameters).run().deleted)
