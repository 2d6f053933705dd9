"""The columns of CREATE TABLE, and their types."""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.errors import AcidError
from acidsql.sql.parser.constraints import (
    at_column_constraint,
    at_spark_constraint,
    at_table_constraint,
    column_constraint,
    skip_constraint,
    table_constraint,
)
from acidsql.sql.parser.cursor import Cursor
from acidsql.sql.statements import ColumnDef, ConstraintDef, Span


@dataclass(frozen=True)
class Elements:
    """The contents of the parentheses of CREATE TABLE."""

    columns: tuple[ColumnDef, ...] = ()
    constraints: tuple[ConstraintDef, ...] = ()
    """The table constraints."""

    @property
    def checks(self) -> tuple[Span, ...]:
        """The conditions of enforced CHECK constraints."""
        return tuple(c.expression for c in self.constraints if c.expression is not None and c.is_enforced)


def elements(cursor: Cursor, refused: list[AcidError]) -> Elements:
    """``(name type …, [CONSTRAINT name] CHECK (condition) …, [CONSTRAINT name] PRIMARY KEY (name) …, …)``.

    Elements that only Spark tables support are skipped, adding an error to ``refused``.
    """
    definitions: list[ColumnDef] = []
    constraints: list[ConstraintDef] = []

    def one() -> None:
        if at_table_constraint(cursor):
            constraints.append(table_constraint(cursor))
            if cursor.word not in (",", ")"):
                skip_constraint(cursor, refused)
        else:
            definitions.append(column(cursor, refused, "a column name"))

    cursor.list_in_parentheses(one)
    return Elements(tuple(definitions), tuple(constraints))


_TYPES = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT", "LONG", "FLOAT", "REAL", "DOUBLE", "DECIMAL"),
    *("NUMERIC", "DATE", "TIMESTAMP", "STRING", "CHAR", "VARCHAR", "BINARY", "INTERVAL", "ARRAY", "MAP", "STRUCT"),
)


def at_column(cursor: Cursor) -> bool:
    """``(table string, …)``: a column named like the first keyword of a query."""
    return cursor.peek().word not in ("SELECT", "WITH", "(") and cursor.peek(2).word in _TYPES


def column(cursor: Cursor, refused: list[AcidError], what: str, stops: tuple[str, ...] = (",", ")")) -> ColumnDef:
    """``name type`` and, in any order, COMMENT and constraints, up to one of ``stops``."""
    name = cursor.expect_name(what)
    type = data_type(cursor)
    comment: str | None = None
    constraints: list[ConstraintDef] = []
    while cursor.word not in stops and not cursor.at_end():
        if cursor.accept("COMMENT"):
            comment = cursor.expect_string("a comment")
        elif at_column_constraint(cursor):
            first = cursor.token
            constraints.append(column_constraint(cursor, name))
            if constraints[-1].kind == "CHECK" and sum(c.kind == "CHECK" for c in constraints) > 1:
                hint = "Combine the conditions with AND."
                refused.append(cursor.unsupported("A column can have only one CHECK", first, hint=hint))
        elif at_spark_constraint(cursor):
            skip_constraint(cursor, refused)
        else:
            raise cursor.error("Expected COMMENT, NOT NULL, DEFAULT, CHECK, , or )")
    enforced = {c.kind: c for c in constraints if c.is_enforced}
    default, check = enforced.get("DEFAULT"), enforced.get("CHECK")
    return ColumnDef(
        name,
        type,
        comment,
        "NOT NULL" in enforced,
        default.expression if default else None,
        check.expression if check else None,
        tuple(constraints),
    )


def data_type(cursor: Cursor) -> Span:
    """A type, as text; it is validated by its user."""
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
