"""VACUUM: runs the cleaner for one table now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.inspect.explained import Explained
from acidsql.commands.maintenance.optimize import own_table
from acidsql.commands.resolve.context import StatementContext
from acidsql.compactor.vacuum import TableCleaner
from acidsql.errors import UnsupportedError
from acidsql.metastore.model import Table
from acidsql.sql.statements import Vacuum

_HOUR_MS = 3_600_000


class VacuumCommand:
    """VACUUM.

    1. Resolve the table, and end the readers of this session whose DataFrames no longer exist.
    2. Run the cleaner for this table: remove files replaced by compactions, and those left by aborted transactions and
       dead writers. Nothing is removed that an open transaction, readers included, may still need.
    3. By the same rule remove files that no compaction has replaced: those from before an INSERT OVERWRITE or TRUNCATE
       that is visible to everyone.

    ``RETAIN n HOURS`` keeps replaced files for that time, if it exceeds the cleaner's settings; aborted ones were
    never readable and are not retained. DRY RUN lists the paths and removes nothing.
    """

    def __init__(self, env: Environment, statement: Vacuum, table: Table) -> None:
        env.heartbeats.end_released(collect=True)
        self.statement = statement
        self.table = table
        self._cleaner = TableCleaner(env.compactor.context, table, int((statement.retain_hours or 0) * _HOUR_MS))
        self._removable: Sequence[str] = ()
        self._kept: Sequence[str] = ()

    def run(self) -> list[str]:
        """The removed paths; with DRY RUN those that would be removed."""
        return self._cleaner.removable() if self.statement.dry_run else self._cleaner.remove()

    def look(self) -> None:
        """Collect what :meth:`explain` shows, while no transaction of this statement is open."""
        self._removable, self._kept = self._cleaner.removable(), self._cleaner.kept()

    def explain(self, context: StatementContext) -> list[Explained]:
        """What :meth:`run` would have removed when :meth:`look` was called."""
        more = [("Removes", self._removable), ("Keeps", self._kept)]
        return [Explained(self.table, (), (), None, no_plan="the cleaner does not use Spark", more=more)]


def vacuum_command(env: Environment, statement: Vacuum) -> VacuumCommand | None:
    """VACUUM of an ACID table; None for a Spark table.

    Raises:
        TableNotFound: When the table does not exist.
        AnalysisError: When it is a view.
        UnsupportedError: On a Hive Metastore, whose own cleaner removes files.
    """
    table = own_table(env, statement.table)
    if table is None:
        return None
    if env.metastore.capabilities.runs_compactor:
        message = "VACUUM is not supported on a Hive Metastore: its own cleaner removes files"
        hint = "The metastore's hive.compactor.cleaner.run.interval sets its interval."
        raise with_location(statement.span, UnsupportedError(message, hint=hint))
    return VacuumCommand(env, statement, table)


def vacuum(env: Environment, statement: Vacuum, parameters: Mapping[str, Any]) -> DataFrame:
    """VACUUM t [RETAIN n HOURS] [DRY RUN]: a row for each path that was removed, or would be."""
    command = vacuum_command(env, statement)
    if command is None:
        return env.sql(statement.span.text, parameters)
    return env.strings(["path"], [[path] for path in command.run()])
