"""VACUUM: the cleaner for one table, now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands.environment import Environment
from acidsql.commands.optimize import own_table
from acidsql.commands.places import at
from acidsql.compactor.vacuum import TableCleaner
from acidsql.errors import UnsupportedError
from acidsql.sql.statements import Vacuum

_HOUR_MS = 3_600_000


def vacuum(env: Environment, statement: Vacuum, parameters: Mapping[str, Any]) -> DataFrame:
    """VACUUM t [RETAIN n HOURS] [DRY RUN]: a row for each path that was removed, or would be.

    1. Resolve the table, and end the readers of this session whose DataFrames are gone.
    2. Have the cleaner do for this table what it does: what compactions have replaced, what aborted transactions and
       writers that died have left. Nothing goes that an open transaction, readers included, may still need.

    ``RETAIN n HOURS`` keeps what a compaction has replaced for so long after it, if that is longer than
    ``hive.compactor.cleaner.retention.time`` keeps it; what was aborted was never to be read, and has no such time.

    Raises:
        TableNotFound: When there is no such table.
        AnalysisError: When it is a view.
        UnsupportedError: On a Hive Metastore, whose own cleaner removes files.
    """
    table = own_table(env, statement.table)
    if table is None:
        return env.sql(statement.span.text, parameters)
    if env.metastore.version is not None:
        message = "VACUUM is not there on a Hive Metastore: its own cleaner removes files"
        hint = "hive.compactor.cleaner.run.interval of the metastore says how often."
        raise at(statement.span, UnsupportedError(message, hint=hint))
    env.heartbeats.end_released()
    retain_ms = int((statement.retain_hours or 0) * _HOUR_MS)
    cleaner = TableCleaner(env.compactor.context, table, retain_ms)
    paths = cleaner.removable() if statement.dry_run else cleaner.remove()
    return env.strings(["path"], [[path] for path in paths])
