"""The changes of an ACID table: as a frame, how far they go, and how much there is of them."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from acidsql.commands.environment import Environment
from acidsql.commands.query import at_snapshot, over_snapshot
from acidsql.commands.resolve.binding import Binding
from acidsql.commands.resolve.context import StatementContext
from acidsql.commands.transaction.pin import Pin
from acidsql.metastore.model import Table
from acidsql.plan.feed_history import Changes, bytes_of_changes, newest_final
from acidsql.sql.statements import TableName


def changes_frame(env: Environment, name: TableName, changes: Changes) -> DataFrame:
    """The changes of an ACID table, as ``acid.changes()`` returns them."""

    def rows(pin: Pin) -> DataFrame:
        binding = Binding(pin.context, {})
        return pin.hold(binding.answer(binding.changes(name, changes)), binding.held)

    return over_snapshot(env, rows)


def newest_version(env: Environment, name: TableName) -> tuple[Table, int]:
    """An ACID table, and the newest of its write ids whose changes are final."""

    def newest(context: StatementContext) -> tuple[Table, int]:
        table = env.get_table(name)
        with context.unchanged(table):
            return table, newest_final(context.write_ids(table), context.snapshot.own.get(table.full_name))

    return at_snapshot(env, newest)


def bytes_by_version(env: Environment, name: TableName, changes: Changes) -> Mapping[int, float]:
    """Bytes of the files that tell the changes of an ACID table, by write id.

    Raises: as :meth:`acidsql.commands.resolve.context.StatementContext.table_history`.
    """

    def look(context: StatementContext) -> Mapping[int, float]:
        table = env.get_table(name)
        return bytes_of_changes(context.table_history(table, context.partitions(table), changes))

    return at_snapshot(env, look)
