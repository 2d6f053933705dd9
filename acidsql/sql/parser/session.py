"""USE, SET and EXPLAIN: statements about the session and about other statements."""

from __future__ import annotations

from collections.abc import Callable

from acidsql.sql.parser.cursor import Cursor
from acidsql.sql.parser.ddl import DATABASE_WORDS, database_name
from acidsql.sql.parser.passthrough import passthrough
from acidsql.sql.parser.transactions import set_autocommit
from acidsql.sql.statements import Explain, Reset, Set, Statement, Use
from acidsql.sql.tokens import Kind


def use(cursor: Cursor) -> Statement:
    """``USE [DATABASE] db``; other catalogs than Spark's own are passed to Spark."""
    cursor.expect("USE")
    if cursor.word in DATABASE_WORDS and cursor.peek().is_name:
        cursor.advance()
    name = database_name(cursor)
    cursor.expect_end()
    return Use(cursor.statement_span(), name)


_SPARKS_OWN = ("ROLE", "TIME", "CATALOG", "COLLATION", "VAR", "VARIABLE", "PATH")
"""Words after SET that start a Spark statement if another word, a string or a bracket follows."""


def set_value(cursor: Cursor) -> Statement:
    """``SET``, ``SET name``, ``SET name = value``: the value is the rest of the statement, unchanged."""
    cursor.expect("SET")
    if cursor.at_end():
        return Set(cursor.statement_span())
    following = cursor.peek()
    if cursor.word == "AUTOCOMMIT" and (following.kind not in (Kind.SYMBOL, Kind.END) or following.word == "="):
        return set_autocommit(cursor)
    if cursor.word in _SPARKS_OWN and (following.kind not in (Kind.SYMBOL, Kind.END) or following.word == "("):
        return passthrough(cursor)
    first = cursor.at
    while not cursor.at_end() and not cursor.word.startswith("="):
        cursor.advance()
    if cursor.at == first:
        raise cursor.error("Expected the name of a setting")
    name = _key(cursor, first)
    if cursor.at_end():
        return Set(cursor.statement_span(), name)
    start = cursor.advance().start + 1
    cursor.at = len(cursor.tokens) - 1
    end = max(start, cursor.tokens[cursor.at - 1].end)
    return Set(cursor.statement_span(), name, cursor.source[start:end].strip())


def reset(cursor: Cursor) -> Statement:
    """``RESET``, ``RESET name``."""
    cursor.expect("RESET")
    first = cursor.at
    while not cursor.at_end():
        cursor.advance()
    return Reset(cursor.statement_span(), _key(cursor, first) if cursor.at > first else None)


def _key(cursor: Cursor, first: int) -> str:
    if cursor.at == first + 1 and cursor.tokens[first].quoted:
        return cursor.tokens[first].name
    return cursor.span(first).text


_MODES = ("EXTENDED", "FORMATTED", "COST", "CODEGEN", "LOGICAL")


def explain(parse_inner: Callable[[Cursor], Statement]) -> Callable[[Cursor], Statement]:
    """``EXPLAIN [mode] statement``, given the function that parses any statement."""

    def parse(cursor: Cursor) -> Statement:
        cursor.expect("EXPLAIN")
        mode = cursor.accept_one_of(*_MODES) or ""
        if cursor.at_end():
            raise cursor.error("Expected a statement to explain")
        with cursor.at_statement():
            inner = parse_inner(cursor)
        return Explain(cursor.statement_span(), mode, inner)

    return parse
