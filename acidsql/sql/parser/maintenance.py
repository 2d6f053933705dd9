"""OPTIMIZE and VACUUM, with Delta's syntax."""

from __future__ import annotations

from acidsql.sql.parser.cursor import Cursor
from acidsql.sql.statements import Name, Optimize, Passthrough, Statement, TableName, Vacuum
from acidsql.sql.tokens import Kind

_OF_OPTIMIZE = ("ZORDER", "FULL")
_OF_VACUUM = ("USING", "LITE", "FULL")
"""Keywords of clauses that only Delta has."""


def optimize(cursor: Cursor) -> Statement:
    """``OPTIMIZE t [PARTITION (…)] [WHERE condition]``; quoted paths and Delta-only clauses are passed to Spark."""
    cursor.expect("OPTIMIZE")
    if cursor.sees_kind(Kind.STRING):
        return _of_spark(cursor)
    table = cursor.expect_table()
    partition = cursor.partition_spec()
    where = cursor.expect_expression(("ZORDER BY",), "a condition") if cursor.accept("WHERE") else None
    if cursor.word in _OF_OPTIMIZE:
        return _of_spark(cursor, table)
    cursor.expect_end()
    return Optimize(cursor.statement_span(), table, partition, where)


def vacuum(cursor: Cursor) -> Statement:
    """``VACUUM t [RETAIN n HOURS] [DRY RUN]``, in any order; paths and Delta-only clauses are passed to Spark."""
    cursor.expect("VACUUM")
    if cursor.sees_kind(Kind.STRING):
        return _of_spark(cursor)
    table = cursor.expect_table()
    hours, dry_run = None, False
    while not cursor.at_end():
        if cursor.word in _OF_VACUUM:
            return _of_spark(cursor, table)
        if hours is None and cursor.accept("RETAIN"):
            hours = _hours(cursor)
        elif not dry_run and cursor.accept("DRY"):
            cursor.expect("RUN")
            dry_run = True
        else:
            raise cursor.error(
                "Expected the end of the statement", hint="The clauses are RETAIN n HOURS and DRY RUN, each once."
            )
    return Vacuum(cursor.statement_span(), table, hours, dry_run)


def _hours(cursor: Cursor) -> float:
    if not cursor.sees_kind(Kind.NUMBER) or not cursor.token.text.replace(".", "", 1).isdecimal():
        raise cursor.error("Expected a number of hours")
    hours = float(cursor.advance().text)
    cursor.expect("HOURS")
    return hours


def _of_spark(cursor: Cursor, table: TableName | None = None) -> Passthrough:
    """A statement for Spark, unless it is about an ACID table."""
    first, word = cursor.begin, cursor.at
    clause = Name(f"{cursor.tokens[first].word} … {cursor.word}", cursor.span(word, word + 1))
    cursor.rest()
    names = () if table is None else (table,)
    return Passthrough(cursor.statement_span(), names, clause if names else None)
