"""SHOW CREATE TABLE: the statement that recreates a table or view."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands.environment import Environment
from acidsql.commands.inspect import show_constraints
from acidsql.metastore.model import APPLIED, STATISTICS, Column, Table
from acidsql.plan.text import literal, quote
from acidsql.sql.statements import ShowCreateTable


def _column_text(column: Column, constraints: Sequence[str]) -> str:
    parts = [f"  {quote(column.name)} {column.type}", *constraints]
    if column.comment:
        parts.append(f"COMMENT {literal(column.comment)}")
    return " ".join(parts)


def _properties(table: Table) -> Iterator[str]:
    shown = table.shown_parameters.keys() & table.parameters.keys() - {*STATISTICS, APPLIED}
    kept = {k: table.parameters[k] for k in sorted(shown)}
    if kept:
        yield "TBLPROPERTIES (\n" + ",\n".join(f"  {literal(k)}={literal(v)}" for k, v in kept.items()) + ")"


def create_table_text(table: Table) -> str:
    """The statement that recreates a table."""
    columns = [_column_text(c, show_constraints.of_column(table, c.name)) for c in table.columns]
    columns += [f"  {clause}" for clause in show_constraints.of_table(table)]
    lines = [f"CREATE TABLE {quote(table.database)}.{quote(table.name)} (", ",\n".join(columns) + ")"]
    if table.comment is not None:
        lines.append(f"COMMENT {literal(table.comment)}")
    if table.partition_keys:
        keys = [_column_text(k, show_constraints.of_column(table, k.name)) for k in table.partition_keys]
        lines.append("PARTITIONED BY (\n" + ",\n".join(keys) + ")")
    if table.bucket_columns:
        clustered = ", ".join(quote(c) for c in table.bucket_columns)
        lines.append(f"CLUSTERED BY ({clustered}) INTO {table.num_buckets} BUCKETS")
    lines.append("STORED AS ORC")
    lines.append(f"LOCATION {literal(table.location)}")
    lines += _properties(table)
    return "\n".join(lines)


def create_view_text(view: Table) -> str:
    """The statement that recreates a view; its names are qualified, so that it works in any database."""
    columns = ", ".join(quote(c.name) + (f" COMMENT {literal(c.comment)}" if c.comment else "") for c in view.columns)
    lines = [f"CREATE VIEW {quote(view.database)}.{quote(view.name)} ({columns})"]
    if view.comment is not None:
        lines.append(f"COMMENT {literal(view.comment)}")
    lines += _properties(view)
    lines.append(f"AS {view.view_text}")
    return "\n".join(lines)


def show_create_table(env: Environment, statement: ShowCreateTable, parameters: Mapping[str, Any]) -> DataFrame:
    """SHOW CREATE TABLE of a table or view."""
    table = env.registered(statement.table)
    if table is None or not (table.is_view or table.is_transactional):
        return env.sql(statement.span.text, parameters)
    text = create_view_text(table) if table.is_view else create_table_text(table)
    return env.strings(["createtab_stmt"], [[text]])
