"""CREATE and DROP VIEW: views of the metastore, and temporary ones of the session."""

from __future__ import annotations

from collections.abc import Mapping

from acidsql.sql.parser.cursor import Cursor, LeftToSpark
from acidsql.sql.statements import CreateTempView, CreateView, DropView, Name

ViewColumn = tuple[Name, "str | None"]
"""A column's name and its comment."""


def create_view(cursor: Cursor, or_replace: bool) -> CreateView:
    """``[IF NOT EXISTS] v [(column [COMMENT '…'], …)] [COMMENT '…'] [TBLPROPERTIES (…)] AS query``, after VIEW."""
    if_not_exists = cursor.if_not_exists()
    view = cursor.expect_table("a view name")
    columns, comment, properties = _head(cursor)
    query = cursor.query()
    return CreateView(cursor.statement_span(), view, query, columns, or_replace, if_not_exists, comment, properties)


def create_temp_view(cursor: Cursor, or_replace: bool, is_global: bool) -> CreateTempView:
    """A view over a query; views over data sources, and what Spark refuses, are left to Spark."""
    if cursor.sees("IF", "NOT", "EXISTS") or cursor.sees("IDENTIFIER", "("):
        raise LeftToSpark
    name = cursor.expect_name("a view name")
    if is_global and name.text.lower() == "global_temp" and cursor.accept("."):
        name = cursor.expect_name("a view name")
    if cursor.word == "." or _uses_source(cursor):
        raise LeftToSpark
    columns, _, _ = _head(cursor)
    query = cursor.query()
    names = None if columns is None else tuple(name for name, _ in columns)
    return CreateTempView(cursor.statement_span(), name, query, names, or_replace, is_global)


def drop_view(cursor: Cursor) -> DropView:
    """``[IF EXISTS] v``, after DROP VIEW."""
    if_exists = cursor.if_exists()
    view = cursor.expect_table("a view name")
    cursor.expect_end()
    return DropView(cursor.statement_span(), view, if_exists)


_SPARKS_OWN = ("DEFAULT COLLATION", "WITH", "PARTITIONED ON")
"""View clauses that only Spark has: collations, schema binding, metrics."""


def _head(cursor: Cursor) -> tuple[tuple[ViewColumn, ...] | None, str | None, Mapping[str, str]]:
    """``[(columns)] {COMMENT '…' | TBLPROPERTIES (…)} AS``: columns, comment and properties."""
    columns = cursor.list_in_parentheses(lambda: _column(cursor)) if cursor.word == "(" else None
    comment: str | None = None
    properties: Mapping[str, str] = {}
    while not cursor.accept("AS"):
        if cursor.accept("COMMENT"):
            comment = cursor.expect_string("a comment")
        elif cursor.accept("TBLPROPERTIES"):
            properties = cursor.properties()
        elif cursor.at_phrase(_SPARKS_OWN):
            raise LeftToSpark
        else:
            raise cursor.error("Expected AS and a query")
    return columns, comment, properties


def _uses_source(cursor: Cursor) -> bool:
    here = cursor.at
    if cursor.word == "(":
        cursor.skip_brackets()
    uses_source = cursor.word == "USING"
    cursor.at = here
    return uses_source


def _column(cursor: Cursor) -> ViewColumn:
    name = cursor.expect_name("a column name")
    return name, cursor.expect_string("a comment") if cursor.accept("COMMENT") else None
