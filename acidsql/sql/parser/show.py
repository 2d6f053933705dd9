"""SHOW and DESCRIBE."""

from __future__ import annotations

from collections.abc import Callable

from acidsql.errors import UnsupportedError
from acidsql.sql.parser.cursor import Cursor
from acidsql.sql.parser.ddl import DATABASE_WORDS, database_name
from acidsql.sql.parser.passthrough import passthrough
from acidsql.sql.statements import (
    Describe,
    ShowCreateTable,
    ShowDatabases,
    ShowLocks,
    ShowPartitions,
    ShowTables,
    ShowTransactions,
    Statement,
)
from acidsql.sql.tokens import Kind


def show(cursor: Cursor) -> Statement:
    """The SHOW statements that the metastore answers; every other one is Spark's."""
    cursor.expect("SHOW")
    parse = _SHOW.get(cursor.word)
    found = parse(cursor) if parse else None
    return passthrough(cursor) if found is None else found


def _like(cursor: Cursor) -> str | None:
    """``[LIKE] 'pattern'``."""
    if cursor.accept("LIKE") or cursor.sees_kind(Kind.STRING):
        return cursor.expect_string("a pattern")
    return None


def _databases(cursor: Cursor) -> Statement | None:
    cursor.advance()
    if cursor.word in ("FROM", "IN"):
        return None
    like = _like(cursor)
    cursor.expect_end()
    return ShowDatabases(cursor.statement_span(), like)


def _tables(cursor: Cursor) -> Statement:
    cursor.advance()
    database = database_name(cursor) if cursor.accept_one_of("FROM", "IN") else None
    like = _like(cursor)
    cursor.expect_end()
    return ShowTables(cursor.statement_span(), database, like)


def _partitions(cursor: Cursor) -> Statement:
    cursor.advance()
    table = cursor.expect_table()
    partition = cursor.partition_spec()
    cursor.expect_end()
    return ShowPartitions(cursor.statement_span(), table, partition)


def _create_table(cursor: Cursor) -> Statement | None:
    cursor.advance()
    if not cursor.accept("TABLE"):
        return None
    table = cursor.expect_table()
    if cursor.word == "AS":
        return None
    cursor.expect_end()
    return ShowCreateTable(cursor.statement_span(), table)


def _transactions(cursor: Cursor) -> Statement:
    cursor.advance()
    cursor.expect_end()
    return ShowTransactions(cursor.statement_span())


def _locks(cursor: Cursor) -> Statement:
    """``SHOW LOCKS [t [PARTITION (…)] | DATABASE db] [EXTENDED]``."""
    cursor.advance()
    database = table = partition = None
    if cursor.word in DATABASE_WORDS and cursor.peek().is_name:
        cursor.advance()
        database = database_name(cursor)
    elif not cursor.at_end() and not (cursor.word == "EXTENDED" and cursor.peek().kind is Kind.END):
        table = cursor.expect_table()
        partition = cursor.partition_spec()
    extended = cursor.accept("EXTENDED")
    cursor.expect_end()
    return ShowLocks(cursor.statement_span(), database, table, partition, extended)


def _compactions(cursor: Cursor) -> Statement:
    raise _later(cursor, "SHOW COMPACTIONS")


def _later(cursor: Cursor, words: str) -> UnsupportedError:
    span = cursor.span(cursor.begin, cursor.at + 1)
    return UnsupportedError(f"{words} comes in a later version").locate(span.source, span.start, span.end)


_SHOW: dict[str, Callable[[Cursor], Statement | None]] = {
    "DATABASES": _databases,
    "SCHEMAS": _databases,
    "NAMESPACES": _databases,
    "TABLES": _tables,
    "PARTITIONS": _partitions,
    "CREATE": _create_table,
    "TRANSACTIONS": _transactions,
    "LOCKS": _locks,
    "COMPACTIONS": _compactions,
}


# --- DESCRIBE --------------------------------------------------------------------------------------------------------

_NOT_TABLES = ("FUNCTION", "CATALOG", "QUERY", *DATABASE_WORDS)


def describe(cursor: Cursor) -> Statement:
    """``DESC[RIBE] [TABLE] [FORMATTED | EXTENDED] t``; with a column, a partition or a query it is Spark's."""
    cursor.expect_one_of("DESC", "DESCRIBE")
    if cursor.at_end():
        raise cursor.error("Expected a table name")
    if _has_more(cursor) and (cursor.word in _NOT_TABLES or (cursor.at_query() and cursor.word != "TABLE")):
        return passthrough(cursor)
    if cursor.word == "TABLE" and _has_more(cursor):
        cursor.advance()
    formatted = cursor.word in ("FORMATTED", "EXTENDED") and _has_more(cursor)
    if formatted:
        cursor.advance()
    table = cursor.expect_table()
    if not cursor.at_end():
        return passthrough(cursor)
    return Describe(cursor.statement_span(), table, formatted)


def _has_more(cursor: Cursor) -> bool:
    """Whether the word here is a keyword: something other than a dot follows it."""
    following = cursor.peek()
    return following.kind is not Kind.END and following.word != "."
