"""The columns of CREATE TABLE, and their types."""

from __future__ import annotations

from acidsql.errors import AcidError
from acidsql.sql.parser.cursor import Cursor
from acidsql.sql.statements import ColumnDef, Span
from acidsql.sql.tokens import Kind

_CONSTRAINTS = ("CONSTRAINT", "PRIMARY", "FOREIGN", "UNIQUE", "CHECK")
_OPTIONS = ("COMMENT", "NOT", "DEFAULT", "GENERATED", "NULL", "REFERENCES", "DISABLE", *_CONSTRAINTS)


def columns(cursor: Cursor, refused: list[AcidError]) -> tuple[ColumnDef, ...]:
    """``(name type …, …)``. Constraints of Spark's own tables are read over; ``refused`` takes an error for each."""
    found: list[ColumnDef] = []

    def one() -> None:
        if _at_table_constraint(cursor):
            _skip_constraint(cursor, refused)
        else:
            found.append(column(cursor, refused, "a column name"))

    cursor.list_in_parentheses(one)
    return tuple(found)


_TYPES = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT", "LONG", "FLOAT", "REAL", "DOUBLE", "DECIMAL"),
    *("NUMERIC", "DATE", "TIMESTAMP", "STRING", "CHAR", "VARCHAR", "BINARY", "INTERVAL", "ARRAY", "MAP", "STRUCT"),
)


def at_column(cursor: Cursor) -> bool:
    """``(table string, …)``: a column that is called like the first word of a query."""
    return cursor.peek().word not in ("SELECT", "WITH", "(") and cursor.peek(2).word in _TYPES


def _at_table_constraint(cursor: Cursor) -> bool:
    if cursor.word == "CONSTRAINT":
        return cursor.peek().is_name and cursor.peek(2).word in _CONSTRAINTS
    if cursor.word in ("PRIMARY", "FOREIGN"):
        return cursor.peek().word == "KEY" and cursor.peek(2).word == "("
    return cursor.word in ("UNIQUE", "CHECK") and cursor.peek().word == "("


def column(cursor: Cursor, refused: list[AcidError], what: str, stops: tuple[str, ...] = (",", ")")) -> ColumnDef:
    """``name type`` and, in any order, COMMENT, NOT NULL and DEFAULT, up to one of the words that end it."""
    name = cursor.expect_name(what)
    type = data_type(cursor)
    comment: str | None = None
    not_null = False
    default: Span | None = None
    while cursor.word not in stops and not cursor.at_end():
        if cursor.accept("COMMENT"):
            comment = cursor.expect_string("a comment")
        elif cursor.accept("NOT"):
            cursor.expect("NULL")
            not_null = True
        elif cursor.accept("DEFAULT"):
            default = _default(cursor)
        elif cursor.accept("ENABLE"):
            continue
        elif cursor.word in _OPTIONS:
            _skip_constraint(cursor, refused)
        else:
            raise cursor.error("Expected COMMENT, NOT NULL, DEFAULT, , or )")
    return ColumnDef(name, type, comment, not_null, default)


def _default(cursor: Cursor) -> Span:
    """The expression behind DEFAULT: up to the next option of the column."""
    first = cursor.at
    while cursor.word not in (",", ")") and not cursor.at_end():
        if cursor.at > first and _at_option(cursor):
            break
        skip_one(cursor)
    if cursor.at == first:
        raise cursor.error("Expected an expression after DEFAULT")
    return cursor.span(first)


def _at_option(cursor: Cursor) -> bool:
    if cursor.word == "NOT":
        return cursor.peek().word == "NULL" and cursor.tokens[cursor.at - 1].word != "IS"
    if cursor.word == "COMMENT":
        return cursor.peek().kind is Kind.STRING
    if cursor.word == "GENERATED":
        return cursor.peek().word == "ALWAYS"
    return cursor.word in ("ENABLE", "DISABLE", *_CONSTRAINTS)


def _skip_constraint(cursor: Cursor, refused: list[AcidError]) -> None:
    refused.append(cursor.unsupported(f"{cursor.word} is not there for ACID tables in this version"))
    while cursor.word not in (",", ")") and not cursor.at_end():
        if cursor.word == "COMMENT" and cursor.peek().kind is Kind.STRING:
            return
        skip_one(cursor)


def skip_one(cursor: Cursor) -> None:
    """A token, or a group in brackets."""
    if cursor.word in ("(", "[", "{"):
        cursor.skip_brackets()
    else:
        cursor.advance()


def data_type(cursor: Cursor) -> Span:
    """A type, as text: whoever uses it knows which there are."""
    first = cursor.at
    if not cursor.token.is_name or cursor.token.quoted:
        raise cursor.error("Expected a type")
    kind = cursor.advance().word
    if cursor.word == "<":
        cursor.skip_angles()
    elif cursor.word == "<>":
        cursor.advance()
    if cursor.word == "(":
        cursor.skip_brackets()
    if kind == "DOUBLE":
        cursor.accept("PRECISION")
    if kind == "TIMESTAMP" and cursor.word in ("WITH", "WITHOUT"):
        _time_zone(cursor)
    if kind == "INTERVAL" and cursor.word in _UNITS:
        cursor.advance()
        if cursor.accept("TO"):
            cursor.expect_one_of(*_UNITS)
    if kind in ("STRING", "CHAR", "VARCHAR") and cursor.accept("COLLATE"):
        cursor.expect_name("a collation")
    return cursor.span(first)


_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")


def _time_zone(cursor: Cursor) -> None:
    cursor.advance()
    cursor.accept("LOCAL")
    cursor.expect("TIME")
    cursor.expect("ZONE")
