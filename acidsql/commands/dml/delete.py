"""DELETE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands.dml.delete_rows import DeleteCommand
from acidsql.commands.dml.truncate import TruncateCommand, refuse_not_managed
from acidsql.commands.environment import Environment
from acidsql.commands.query import table_frame
from acidsql.sql.statements import Delete


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
