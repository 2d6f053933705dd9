"""VACUUM: the cleaner for one table, now."""

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

    1. Resolve the table, and end the readers of this session whose DataFrames are gone.
    2. Have the cleaner do for this table what it does: what compactions have replaced, what aborted transactions and
       writers that died have left. Nothing goes that an open transaction, readers included, may still need.
    3. By the same rule remove what no compaction has replaced: what stood there before an INSERT OVERWRITE or TRUNCATE
       that everybody sees.

    ``RETAIN n HOURS`` keeps what was replaced for so long after it, if that is longer than the cleaner's own settings
    keep it; what was aborted was never to be read, and has no such time. DRY RUN names the paths, and removes nothing.
    """

    def __init__(self, env: Environment, statement: Vacuum, table: Table) -> None:
        env.heartbeats.end_released(collect=True)
        self.statement = statement
        self.table = table
        self._cleaner = TableCleaner(env.compactor.context, table, int((statement.retain_hours or 0) * _HOUR_MS))
        self._removable: Sequence[str] = ()
        self._kept: Sequence[str] = ()

    def run(self) -> list[str]:
        """The paths that are gone; with DRY RUN those that would be."""
        return self._cleaner.removable() if self.statement.dry_run else self._cleaner.remove()

    def look(self) -> None:
        """See what :meth:`explain` tells, while no transaction of our own is open."""
        self._removable, self._kept = self._cleaner.removable(), self._cleaner.kept()

    def explain(self, context: StatementContext) -> list[Explained]:
        """What :meth:`run` would have removed when :meth:`look` was called."""
        more = [("Removes", self._removable), ("Keeps", self._kept)]
        return [Explained(self.table, (), (), None, no_plan="the cleaner works by itself", more=more)]


def vacuum_command(env: Environment, statement: Vacuum) -> VacuumCommand | None:
    """VACUUM of an ACID table; None for a table of Spark's own.

    Raises:
        TableNotFound: When there is no such table.
        AnalysisError: When it is a view.
        UnsupportedError: On a Hive Metastore, whose own cleaner removes files.
    """
    table = own_table(env, statement.table)
    if table is None:
        return None
    if env.metastore.capabilities.runs_compactor:
        message = "VACUUM is not there on a Hive Metastore: its own cleaner removes files"
        hint = "hive.compactor.cleaner.run.interval of the metastore says how often."
        raise with_location(statement.span, UnsupportedError(message, hint=hint))
    return VacuumCommand(env, statement, table)


def vacuum(env: Environment, statement: Vacuum, parameters: Mapping[str, Any]) -> DataFrame:
    """VACUUM t [RETAIN n HOURS] [DRY RUN]: a row for each path that was removed, or would be."""
    command = vacuum_command(env, statement)
    if command is None:
        return env.sql(statement.span.text, parameters)
    return env.strings(["path"], [[path] for path in command.run()])
