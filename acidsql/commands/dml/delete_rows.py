"""Delete events for rows of a table: those of DELETE, and of statements that replace all rows in a transaction."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import DataFrame

from acidsql.catalyst import Expression
from acidsql.commands.dml.row_change import RowChange
from acidsql.commands.environment import Environment
from acidsql.commands.resolve.binding import Binding
from acidsql.commands.resolve.context import StatementContext
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.metastore.model import Operation, Table
from acidsql.plan.changes import ChangeSet
from acidsql.plan.relation import Relation
from acidsql.plan.snapshot import TableSnapshot
from acidsql.plan.staging import Staging
from acidsql.plan.text import quote
from acidsql.sql.parser import parse_statement
from acidsql.sql.statements import Delete


class DeleteCommand(RowChange):
    """DELETE: UPDATE without new versions.

    1. Open a transaction. Resolve the table, and let Spark resolve the condition over its columns; prune the partitions
       by the conditions pushed down to the table.
    2. Lock these partitions (or the table) EXCL_WRITE (SHARED_WRITE where rows are compared) and the tables read
       SHARED_READ, all at once; look everything up again, and restart if something has changed.
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

    def stage_all(self, txn: WriteTransaction, partitions: Collection[str] | None) -> Staging | None:
        """As :func:`stage_deletes`."""
        plan = self.plan(StatementContext(self.env))
        plan.target.only = None if partitions is None else frozenset(partitions)
        plan.binding.context.revalidate(txn.snapshot)
        changes = self.changes(plan)
        if changes is None:
            return None
        _, staging = self.stage(txn, changes)
        return staging


def stage_deletes(
    env: Environment, txn: WriteTransaction, table: Table, partitions: Collection[str] | None
) -> Staging | None:
    """Write delete events for all rows that a transaction sees, in some partitions of a table that it has locked.

    Where a base would hide all of the transaction's own rows, whatever it writes after it, these hide what is there.

    Args:
        env: The session.
        txn: The transaction.
        table: The table.
        partitions: Names of partitions; None: the whole table.

    Returns:
        What is to be published; None where there is no row.
    """
    text = f"DELETE FROM {quote(table.database)}.{quote(table.name)}"
    statement = parse_statement(text)
    assert isinstance(statement, Delete)
    return DeleteCommand(env, statement, {}).stage_all(txn, partitions)
