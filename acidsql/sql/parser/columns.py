"""The columns of CREATE TABLE, and their types."""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.errors import AcidError
from acidsql.sql.parser.cursor import Cursor
from acidsql.sql.statements import ColumnDef, Span
from acidsql.sql.tokens import Kind

_CONSTRAINTS = ("PRIMARY", "FOREIGN", "UNIQUE", "CHECK")
_NAMED = (*_CONSTRAINTS, "NOT", "DEFAULT")
"""What may follow ``CONSTRAINT name``."""
_OPTIONS = ("GENERATED", "NULL", "REFERENCES", "DISABLE", *_CONSTRAINTS)


@dataclass(frozen=True)
class Elements:
    """What stands in the parentheses of CREATE TABLE."""

    columns: tuple[ColumnDef, ...] = ()
    checks: tuple[Span, ...] = ()
    """The conditions of CHECK constraints beside the columns."""


def elements(cursor: Cursor, refused: list[AcidError]) -> Elements:
    """``(name type …, [CONSTRAINT name] CHECK (condition), …)``.

    Other constraints of Spark's own tables are read over; ``refused`` takes an error for each.
    """
    found: list[ColumnDef] = []
    checks: list[Span] = []

    def one() -> None:
        if not _at_table_constraint(cursor):
            found.append(column(cursor, refused, "a column name"))
            return
        _constraint_name(cursor)
        if cursor.word == "CHECK":
            checks.append(_check(cursor, refused))
        if cursor.word not in (",", ")"):
            _skip_constraint(cursor, refused)

    cursor.list_in_parentheses(one)
    return Elements(tuple(found), tuple(checks))


def _constraint_name(cursor: Cursor) -> None:
    """``[CONSTRAINT name]``: a name is allowed and means nothing, as constraints are named by their conditions here."""
    if cursor.word == "CONSTRAINT" and cursor.peek(2).word in _NAMED:
        cursor.advance()
        cursor.expect_name("a name for the constraint")


def _check(cursor: Cursor, refused: list[AcidError]) -> Span:
    """``CHECK (condition) [ENABLE …]``: the condition."""
    cursor.expect("CHECK")
    if cursor.word != "(":
        raise cursor.error("Expected a condition in parentheses")
    opened = cursor.at
    cursor.skip_brackets()
    if cursor.at == opened + 2:
        raise cursor.error("Expected a condition", cursor.tokens[opened + 1])
    condition = cursor.span(opened + 1, cursor.at - 1)
    _traits(cursor, refused)
    return condition


def _traits(cursor: Cursor, refused: list[AcidError]) -> None:
    """``[ENABLE | ENFORCED] [VALIDATE | NOVALIDATE] [RELY | NORELY]``; one that is not enforced is refused."""
    while True:
        if cursor.word == "DISABLE" or cursor.sees("NOT", "ENFORCED"):
            refused.append(cursor.unsupported("Constraints of ACID tables are enforced here"))
            cursor.accept("NOT")
            cursor.advance()
        elif not cursor.accept_one_of("ENABLE", "ENFORCED", "VALIDATE", "NOVALIDATE", "RELY", "NORELY"):
            return


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
    """``name type`` and, in any order, COMMENT, NOT NULL, DEFAULT and CHECK, up to one of the words that end it."""
    name = cursor.expect_name(what)
    type = data_type(cursor)
    comment: str | None = None
    not_null = False
    default: Span | None = None
    check: Span | None = None
    while cursor.word not in stops and not cursor.at_end():
        _constraint_name(cursor)
        if cursor.accept("COMMENT"):
            comment = cursor.expect_string("a comment")
        elif cursor.accept("NOT"):
            cursor.expect("NULL")
            not_null = True
            _traits(cursor, refused)
        elif cursor.accept("DEFAULT"):
            default = _default(cursor)
            _traits(cursor, refused)
        elif cursor.word == "CHECK":
            if check is not None:
                refused.append(cursor.unsupported("A column has one CHECK here", hint="Join the conditions by AND."))
            check = _check(cursor, refused)
        elif cursor.word in _OPTIONS:
            _skip_constraint(cursor, refused)
        else:
            raise cursor.error("Expected COMMENT, NOT NULL, DEFAULT, CHECK, , or )")
    return ColumnDef(name, type, comment, not_null, default, check)


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
    if cursor.word == "CONSTRAINT":
        return cursor.peek(2).word in _NAMED
    return cursor.word in ("ENABLE", "ENFORCED", "DISABLE", *_CONSTRAINTS)


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
