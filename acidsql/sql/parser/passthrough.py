"""Statements that are passed to Spark, and those that are not supported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

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
_BEFORE_COLUMNS = {"TABLE", "VIEW", "INTO", "OVERWRITE"}
"""Keywords after which a name followed by a parenthesis is a table with columns; elsewhere it is a function."""
_IN_BETWEEN = {"IF", "NOT", "EXISTS", "TABLE", "EXTENDED", "FORMATTED", "LATERAL", "ONLY"}
_WITH_QUERIES = {"SELECT", "FROM", "BEGIN"}
"""Words of a statement that contains queries or other statements: tables may be anywhere in it."""


def passthrough(cursor: Cursor, later: Name | None = None) -> Passthrough:
    """Any statement, with the names in it that may be tables.

    Args:
        cursor: Anywhere in the statement.
        later: The part of it that is not supported for ACID tables.
    """
    source, tokens = cursor.source, cursor.tokens[cursor.begin : -1]
    cursor.at = len(cursor.tokens) - 1
    has_queries = tokens[0].word != "SHOW" and any(t.word in _WITH_QUERIES for t in tokens)
    starts = range(len(tokens)) if has_queries else _after_keywords(tokens)
    names: dict[tuple[int, int], TableName] = {}
    for at in starts:
        name = _name(source, tokens, at)
        if name is not None:
            names.setdefault((name.span.start, name.span.end), name)
    if [t.word for t in tokens[:3]] == ["COMMENT", "ON", "COLUMN"]:
        names |= _table_of_column(source, tokens)
    return Passthrough(
        cursor.statement_span(), tuple(names.values()), later, _dynamic(source, tokens), _identifiers(source, tokens)
    )


def _after_keywords(tokens: Sequence[Token]) -> Iterator[int]:
    """The places after keywords that precede tables. Other names there do no harm: no table has them."""
    for at, token in enumerate(tokens):
        if token.word in _BEFORE_TABLES:
            at += 1
            while at < len(tokens) - 1 and tokens[at].word in _IN_BETWEEN and tokens[at + 1].is_name:
                at += 1
            yield at


def _name(source: str, tokens: Sequence[Token], at: int) -> TableName | None:
    """The dotted name of up to three parts that begins at a token; None for a function, or for no name."""
    before = tokens[at - 1].word if at else ""
    if at >= len(tokens) or not tokens[at].is_name or before == ".":
        return None
    parts = [tokens[at].name]
    last = at
    while last + 2 < len(tokens) and tokens[last + 1].word == "." and tokens[last + 2].is_name:
        last += 2
        parts.append(tokens[last].name)
    opens = last + 1 < len(tokens) and tokens[last + 1].word == "("
    is_call = opens and (before not in _BEFORE_COLUMNS | _IN_BETWEEN or tokens[at].word == "IDENTIFIER")
    if len(parts) > 3 or is_call:
        return None
    database = parts[-2] if len(parts) > 1 else None
    catalog = parts[0] if len(parts) > 2 else None
    return TableName(parts[-1], database, Span(source, tokens[at].start, tokens[last].end), catalog)


def _table_of_column(source: str, tokens: Sequence[Token]) -> dict[tuple[int, int], TableName]:
    """``COMMENT ON COLUMN db.t.c``: the name without its last part."""
    end = next((at for at, token in enumerate(tokens) if token.word == "IS"), len(tokens))
    name = _name(source, tokens[: end - 2], 3)
    return {} if name is None else {(name.span.start, name.span.end): name}


def _dynamic(source: str, tokens: Sequence[Token]) -> Name | None:
    """``EXECUTE IMMEDIATE``: its text is not known before it runs."""
    for one, other in pairwise(tokens):
        if (one.word, other.word) == ("EXECUTE", "IMMEDIATE"):
            return Name("EXECUTE IMMEDIATE", Span(source, one.start, other.end))
    return None


def _identifiers(source: str, tokens: Sequence[Token]) -> tuple[Span, ...]:
    """The expressions in ``IDENTIFIER(…)``, whose values may be names of tables."""
    found = []
    for at, (one, other) in enumerate(pairwise(tokens)):
        if (one.word, other.word) == ("IDENTIFIER", "("):
            depth, end = 1, at + 2
            while end < len(tokens) and (depth := depth + {"(": 1, ")": -1}.get(tokens[end].word, 0)):
                end += 1
            found.append(Span(source, other.end, tokens[end].start if end < len(tokens) else tokens[-1].end))
    return tuple(found)


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
