"""Statements that are passed to Spark, and those that are not supported."""

from __future__ import annotations

from collections.abc import Iterator

from acidsql.sql.parser.cursor import Cursor
from acidsql.sql.statements import Name, Passthrough, Span, Statement, TableName
from acidsql.sql.tokens import Token

_BEFORE_TABLES = {
    "TABLE",
    "VIEW",
    "FROM",
    "JOIN",
    "INTO",
    "IN",
    "ON",
    "USING",
    "LIKE",
    "DESC",
    "DESCRIBE",
    "EXTENDED",
    "FORMATTED",
    "PARTITIONS",
    "TBLPROPERTIES",
    "OVERWRITE",
    "REFRESH",
}
_BEFORE_CALLS = {"FROM", "JOIN", ",", "IN", "ON"}
"""Keywords after which a name followed by a parenthesis is a function; elsewhere the parenthesis lists columns."""
_IN_BETWEEN = {"IF", "NOT", "EXISTS", "TABLE", "EXTENDED", "FORMATTED", "LATERAL", "ONLY"}


def passthrough(cursor: Cursor, later: Name | None = None) -> Passthrough:
    """Any statement, with the names in it that may be tables.

    Args:
        cursor: Anywhere in the statement.
        later: The part of it that is not supported for ACID tables.
    """
    cursor.at = cursor.begin
    first = cursor.at
    cursor.at = len(cursor.tokens) - 1
    names = tuple(_names(cursor.source, cursor.tokens[first : cursor.at]))
    return Passthrough(cursor.statement_span(), names, later)


def _names(source: str, tokens: list[Token]) -> Iterator[TableName]:
    """Names after keywords that precede tables, and after a comma that follows such a name.

    False positives are harmless: a name counts only if the metastore has a table of that name.
    """
    at, in_list = 0, False
    while at < len(tokens):
        token = tokens[at]
        if token.word in _BEFORE_TABLES or (in_list and token.word == ","):
            at += 1
            while at < len(tokens) - 1 and tokens[at].word in _IN_BETWEEN and tokens[at + 1].is_name:
                at += 1
            name, at = _name(source, tokens, at, calls=token.word in _BEFORE_CALLS)
            if name is not None:
                yield name
                at = _past_alias(tokens, at)
            in_list = name is not None
        else:
            at += 1
            in_list = False


def _name(source: str, tokens: list[Token], at: int, *, calls: bool) -> tuple[TableName | None, int]:
    """A dotted name of up to three parts, and the index after it; None for a function or no name."""
    if at >= len(tokens) or not tokens[at].is_name:
        return None, at
    parts = [tokens[at].name]
    last = at
    while last + 2 < len(tokens) and tokens[last + 1].word == "." and tokens[last + 2].is_name:
        last += 2
        parts.append(tokens[last].name)
    opens = last + 1 < len(tokens) and tokens[last + 1].word == "("
    is_call = opens and (calls or tokens[at].word == "IDENTIFIER")
    if len(parts) > 3 or is_call:
        return None, at
    database = parts[-2] if len(parts) > 1 else None
    catalog = parts[0] if len(parts) > 2 else None
    return TableName(parts[-1], database, Span(source, tokens[at].start, tokens[last].end), catalog), last + 1


def _past_alias(tokens: list[Token], at: int) -> int:
    """Past ``[AS] alias``, if a comma follows it."""
    ahead = at + 1 if at < len(tokens) and tokens[at].word == "AS" else at
    if ahead + 1 < len(tokens) and tokens[ahead].is_name and tokens[ahead + 1].word == ",":
        return ahead + 1
    return at


def begin(cursor: Cursor) -> Statement:
    """``BEGIN [TRANSACTION]`` starts a transaction; ``BEGIN … END`` is a Spark script."""
    following = cursor.peek()
    return unsupported(cursor) if following.word == "TRANSACTION" or not following.text else passthrough(cursor)


def unsupported(cursor: Cursor) -> Statement:
    """A known statement that is not supported, neither in Hive 4.0.1."""
    raise cursor.unsupported(f"{_LATER[cursor.word]} is not supported", code=GENERIC_ERROR)


_LATER = {
    "START": "START TRANSACTION",
    "BEGIN": "BEGIN TRANSACTION",
    "COMMIT": "COMMIT",
    "ROLLBACK": "ROLLBACK",
}

GENERIC_ERROR = 40000
"""Hive's generic error code."""

LOCK_UNSUPPORTED = 10271
"""Hive's code (``LOCK_REQUEST_UNSUPPORTED``): its transaction manager takes the locks itself."""


def lock(cursor: Cursor) -> Statement:
    """``LOCK`` and ``UNLOCK`` of a table or database: refused, as by Hive's ``DbTxnManager``."""
    message = f"{cursor.word} {cursor.peek().word} is not supported: each statement takes the locks that it needs"
    hint = "SHOW LOCKS lists the current locks."
    raise cursor.unsupported(message, hint=hint, code=LOCK_UNSUPPORTED)


def export_table(cursor: Cursor) -> Statement:
    """``EXPORT TABLE``: neither acidsql nor Spark writes Hive's dumps."""
    hint = 'acid.table("t").write.orc("path") writes the current rows of a table as plain files.'
    raise cursor.unsupported("EXPORT TABLE is not supported", hint=hint)


def import_table(cursor: Cursor) -> Statement:
    """``IMPORT``: neither acidsql nor Spark reads Hive's dumps."""
    hint = "LOAD DATA INPATH 'dump/data' INTO TABLE t loads the ORC files of a dump; create the table first."
    raise cursor.unsupported("IMPORT is not supported", hint=hint)
