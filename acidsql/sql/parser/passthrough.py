"""Statements that acidsql hands to Spark, and those that a later version will carry out."""

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
"""Where a bracket behind a name makes it a function; elsewhere the bracket holds columns."""
_IN_BETWEEN = {"IF", "NOT", "EXISTS", "TABLE", "EXTENDED", "FORMATTED", "LATERAL", "ONLY"}


def passthrough(cursor: Cursor, later: Name | None = None) -> Passthrough:
    """Any statement, with the names in it that may be tables.

    Args:
        cursor: Anywhere in the statement.
        later: What of it a later version will carry out on ACID tables.
    """
    cursor.at = cursor.begin
    first = cursor.at
    cursor.at = len(cursor.tokens) - 1
    names = tuple(_names(cursor.source, cursor.tokens[first : cursor.at]))
    return Passthrough(cursor.statement_span(), names, later)


def _names(source: str, tokens: list[Token]) -> Iterator[TableName]:
    """Names behind the words that tables stand behind, and behind a comma that follows such a name.

    Too many are no harm: a name counts only where the metastore knows a table of that name.
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
    """A dotted name of up to three parts, and what is behind it; None where it is a function's, or none stands."""
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
    """``BEGIN [TRANSACTION]`` is a transaction's; ``BEGIN … END`` is a script of Spark's own."""
    following = cursor.peek()
    return unsupported(cursor) if following.word == "TRANSACTION" or not following.text else passthrough(cursor)


def unsupported(cursor: Cursor) -> Statement:
    """A statement that is understood, and that this version does not carry out; Hive 4.0.1 does not either."""
    raise cursor.unsupported(f"{_LATER[cursor.word]} comes in a later version", code=GENERIC_ERROR)


_LATER = {
    "START": "START TRANSACTION",
    "BEGIN": "BEGIN TRANSACTION",
    "COMMIT": "COMMIT",
    "ROLLBACK": "ROLLBACK",
}

GENERIC_ERROR = 40000
"""Hive's code where it has no other."""

LOCK_UNSUPPORTED = 10271
"""Hive's code (``LOCK_REQUEST_UNSUPPORTED``): its transaction manager takes the locks itself."""


def lock(cursor: Cursor) -> Statement:
    """``LOCK`` and ``UNLOCK`` of a table or database: refused, as by Hive's ``DbTxnManager``."""
    message = f"{cursor.word} {cursor.peek().word} is not there: each statement takes the locks that it needs"
    hint = "SHOW LOCKS lists the locks that are held."
    raise cursor.unsupported(message, hint=hint, code=LOCK_UNSUPPORTED)


def export_table(cursor: Cursor) -> Statement:
    """``EXPORT TABLE``: neither acidsql nor Spark writes Hive's dumps."""
    hint = 'acid.table("t").write.orc("path") writes the rows that a table has now as plain files.'
    raise cursor.unsupported("EXPORT TABLE is not there", hint=hint)


def import_table(cursor: Cursor) -> Statement:
    """``IMPORT``: neither acidsql nor Spark reads Hive's dumps."""
    hint = "LOAD DATA INPATH 'dump/data' INTO TABLE t takes in the ORC files of a dump; CREATE TABLE makes the table."
    raise cursor.unsupported("IMPORT is not there", hint=hint)
