"""DESCRIBE [FORMATTED] of an ACID table."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands.environment import Environment
from acidsql.metastore.model import Column, Table
from acidsql.sql.statements import Describe

Line = tuple[str, str | None, str | None]

SERDE = "org.apache.hadoop.hive.ql.io.orc.OrcSerde"
INPUT_FORMAT = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
OUTPUT_FORMAT = "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"


def _columns(columns: tuple[Column, ...]) -> Iterator[Line]:
    for column in columns:
        yield column.name, column.type, column.comment


def _details(table: Table) -> Iterator[Line]:
    yield "", None, None
    yield "# Detailed Table Information", None, None
    yield "Database", table.database, None
    yield "Table", table.name, None
    yield "Owner", table.owner, None
    yield "CreateTime", time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(table.created_at)) + " UTC", None
    yield "Location", table.location, None
    yield "Table Type", table.table_type, None
    if table.comment:
        yield "Comment", table.comment, None
    constraints = [c for c in table.columns if c.not_null or c.default is not None]
    for column in constraints:
        rule = " ".join(p for p in ("NOT NULL" if column.not_null else "", _default(column)) if p)
        yield "Constraint", column.name, rule
    yield "Table Parameters", None, None
    for name, value in sorted(table.parameters.items()):
        yield "", name, value
    yield "", None, None
    yield "# Storage Information", None, None
    yield "SerDe Library", SERDE, None
    yield "InputFormat", INPUT_FORMAT, None
    yield "OutputFormat", OUTPUT_FORMAT, None
    yield "Num Buckets", str(table.num_buckets), None


def _default(column: Column) -> str:
    return f"DEFAULT {column.default}" if column.default is not None else ""


def describe(env: Environment, statement: Describe, parameters: Mapping[str, Any]) -> DataFrame:
    """Columns, partition keys and, FORMATTED, all that the metastore knows of the table."""
    table = env.find_table(statement.table)
    if table is None:
        return env.sql(statement.span.text, parameters)
    lines: list[Line] = list(_columns(table.all_columns))
    if table.partition_keys:
        lines += [("# Partition Information", None, None), ("# col_name", "data_type", "comment")]
        lines += _columns(table.partition_keys)
    if statement.formatted:
        lines += _details(table)
    return env.strings(["col_name", "data_type", "comment"], lines)
