"""DELETE: writes delete events for the matching rows."""

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
from acidsql.plan.changes import ChangeSet
from acidsql.plan.relation import Relation
from acidsql.plan.snapshot import TableSnapshot
from acidsql.sql.statements import Delete


class DeleteCommand(RowChange):
    """DELETE: UPDATE without new versions.

    1. Open a transaction. Resolve the table, and let Spark resolve the condition over its columns; prune the partitions
       by the conditions pushed down to the table.
    2. Lock these partitions (or the table) EXCL_WRITE and the tables read SHARED_READ, all at once; look everything up
       again, and restart if something has changed.
    3. Take one snapshot for the table and every table in a subquery.
    4. Scan the identity of each matching row.
    5. Allocate the write id; write ``delete_delta`` into a staging directory: by the driver when few rows match, else
       by one Spark job.
    6. Publish by rename, commit, return the counts.
    """

    operation = Operation.DELETE
    directories = ("delete_delta",)
    statement: Delete

    def resolve(self) -> None:
        """DELETE names no columns."""

    def values(self, binding: Binding, target: Relation) -> list[Expression]:
        """Empty: no new row is written."""
        return []

    def stored(self, rows: DataFrame, binding: Binding, seen: TableSnapshot) -> ChangeSet:
        """The row identities."""
        return self.change_set(rows.selectExpr(*self.identity(rows.columns)))


def delete(env: Environment, statement: Delete, parameters: Mapping[str, Any]) -> DataFrame:
    """Run DELETE; the row of counts. An insert-only table supports only deleting all rows, as in Hive.

    Raises:
        AnalysisError: For an external table (Hive 10146): Hive turns a DELETE without a condition into TRUNCATE.
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
