"""ALTER TABLE … EXCHANGE PARTITION: refused for transactional tables, as in Hive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands.ddl.alter import acid_table
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.errors import AnalysisError, UnsupportedError
from acidsql.sql.statements import ExchangePartition

WITH_TRANSACTIONAL_TABLES = 10236


def exchange_partition(env: Environment, statement: ExchangePartition, parameters: Mapping[str, Any]) -> DataFrame:
    """EXCHANGE PARTITION.

    A partition's directories have write ids and deletes of one table: in another one they would show deleted rows, or
    hide rows of a snapshot (``AlterTableExchangePartitionAnalyzer``).

    Raises:
        AnalysisError: When one of the tables is transactional (Hive 10236).
        UnsupportedError: For Spark tables: Spark has no such statement.
        TableNotFound: When a table does not exist.
    """
    tables = [(name, acid_table(env, name)) for name in (statement.table, statement.source)]
    for name, table in tables:
        if table is not None:
            message = "Exchange partition is not allowed with transactional tables"
            hint = "LOAD DATA INPATH … INTO TABLE or INSERT OVERWRITE TABLE … PARTITION moves a partition's rows."
            raise with_location(name.span, AnalysisError(message, code=WITH_TRANSACTIONAL_TABLES, hint=hint))
    raise with_location(statement.partition.span, UnsupportedError("Spark has no EXCHANGE PARTITION"))
