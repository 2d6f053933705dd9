"""Queries, the WITH clause before a statement, and several INSERTs from one FROM."""

from __future__ import annotations

from collections.abc import Callable

from acidsql.sql.parser.cursor import Cursor, LeftToSpark
from acidsql.sql.parser.dml import delete, insert, insert_head, update
from acidsql.sql.parser.merge import merge
from acidsql.sql.statements import Insert, MultiInsert, Query, Span, Statement


def query(cursor: Cursor) -> Statement:
    """A query, run by Spark over snapshots; or several INSERTs after a FROM."""
    if not cursor.at_query():
        raise LeftToSpark
    if cursor.word == "FROM" and _inserts_follow(cursor):
        return multi_insert(cursor)
    first = cursor.at
    while not cursor.at_end():
        if _at_insert(cursor):
            raise LeftToSpark
        _skip_one(cursor)
    return Query(cursor.span(first))


def with_statement(cursor: Cursor) -> Statement:
    """``WITH name AS (…), …`` before a query, an INSERT, several of them, or an UPDATE, DELETE or MERGE."""
    first = cursor.at
    cursor.expect("WITH")
    cursor.accept("RECURSIVE")
    _cte(cursor)
    while cursor.accept(","):
        _cte(cursor)
    clause = cursor.span(first)
    change = _BEHIND_WITH.get(cursor.word)
    if change is not None:
        return change(cursor, clause)
    if not cursor.at_query():
        raise cursor.error("Expected a query, INSERT, UPDATE, DELETE or MERGE after the WITH clause")
    if cursor.word == "FROM" and _inserts_follow(cursor):
        return multi_insert(cursor, clause)
    cursor.at = first
    return query(cursor)


_BEHIND_WITH: dict[str, Callable[[Cursor, Span], Statement]] = {
    "INSERT": insert,
    "UPDATE": update,
    "DELETE": delete,
    "MERGE": merge,
}


def _cte(cursor: Cursor) -> None:
    """``name [(columns)] [MAX RECURSION LEVEL n] [AS] (query)``."""
    cursor.expect_name("a name for the query")
    if cursor.word == "(" and not cursor.at_query():
        cursor.names_in_parentheses("a column name")
    if cursor.accept("MAX", "RECURSION", "LEVEL"):
        cursor.expect_integer("a number")
    cursor.accept("AS")
    if cursor.word != "(":
        raise cursor.error("Expected AS and a query in parentheses")
    cursor.skip_brackets()


# --- several INSERTs -------------------------------------------------------------------------------------------------


def multi_insert(cursor: Cursor, with_clause: Span | None = None) -> MultiInsert:
    """``FROM source INSERT INTO|OVERWRITE … SELECT … INSERT …``."""
    first = cursor.at
    cursor.expect("FROM")
    if _at_insert(cursor):
        raise cursor.error("Expected a table or a query in parentheses after FROM")
    while not _at_insert(cursor):
        _skip_one(cursor)
    source = cursor.span(first)
    inserts = [_leg(cursor)]
    while not cursor.at_end():
        inserts.append(_leg(cursor))
    return MultiInsert(cursor.statement_span(), source, tuple(inserts), with_clause)


def _leg(cursor: Cursor) -> Insert:
    """One INSERT with its SELECT, up to the next one."""
    first = cursor.at
    head = insert_head(cursor)
    if cursor.word not in ("SELECT", "MAP", "REDUCE"):
        raise cursor.error("Expected SELECT", hint="Each INSERT after a FROM has a SELECT without a FROM.")
    body = cursor.at
    while not cursor.at_end() and not _at_insert(cursor):
        _skip_one(cursor)
    return head.with_body(cursor.span(first), cursor.span(body))


def _inserts_follow(cursor: Cursor) -> bool:
    """Whether an INSERT follows the FROM here, outside of brackets."""
    here = cursor.at
    while not cursor.at_end() and not _at_insert(cursor):
        _skip_one(cursor)
    follows = not cursor.at_end()
    cursor.at = here
    return follows


def _at_insert(cursor: Cursor) -> bool:
    return cursor.word == "INSERT" and cursor.peek().word in ("INTO", "OVERWRITE")


def _skip_one(cursor: Cursor) -> None:
    """A token, or a group in brackets."""
    if cursor.word in (")", "]", "}"):
        raise cursor.error("Expected the end of the statement")
    if cursor.word in ("(", "[", "{"):
        cursor.skip_brackets()
    else:
        cursor.advance()
