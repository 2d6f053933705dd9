"""Constraints in CREATE TABLE and ALTER TABLE: Hive's syntax, and Spark's extensions."""

from __future__ import annotations

from acidsql.errors import AcidError
from acidsql.sql.parser.cursor import Cursor
from acidsql.sql.statements import ConstraintDef, Name, Span, TableName
from acidsql.sql.tokens import Kind

_OF_TABLES = ("PRIMARY", "FOREIGN", "UNIQUE", "CHECK")
_NAMED = (*_OF_TABLES, "NOT", "DEFAULT", "REFERENCES")
"""What may follow ``CONSTRAINT name``."""
_TRAITS = ("ENABLE", "ENFORCED", "DISABLE", "VALIDATE", "NOVALIDATE", "RELY", "NORELY")
_ONLY_SPARK = ("GENERATED", "NULL")


def at_table_constraint(cursor: Cursor) -> bool:
    """Whether a constraint starts here, not a column named like one of its keywords."""
    if cursor.word == "CONSTRAINT":
        return cursor.peek().is_name and cursor.peek(2).word in _OF_TABLES
    if cursor.word in ("PRIMARY", "FOREIGN"):
        return cursor.peek().word == "KEY" and cursor.peek(2).word == "("
    return cursor.word in ("UNIQUE", "CHECK") and cursor.peek().word == "("


def table_constraint(cursor: Cursor) -> ConstraintDef:
    """``[CONSTRAINT name] {PRIMARY KEY (a) | UNIQUE (a) | FOREIGN KEY (a) REFERENCES t (b) | CHECK (c)} [traits]``."""
    first = cursor.at
    name = _name(cursor)
    word = cursor.expect_one_of(*_OF_TABLES)
    columns: tuple[Name, ...] = ()
    expression: Span | None = None
    parent: TableName | None = None
    parent_columns: tuple[Name, ...] = ()
    if word in ("PRIMARY", "FOREIGN"):
        cursor.expect("KEY")
        word += " KEY"
    if word == "CHECK":
        expression = _condition(cursor)
    else:
        columns = cursor.names_in_parentheses("a column name")
    if word == "FOREIGN KEY":
        parent, parent_columns = _parent(cursor)
    return _with_traits(cursor, first, word, name, columns, expression, parent, parent_columns)


def at_column_constraint(cursor: Cursor) -> bool:
    """Whether a column constraint starts here."""
    word = cursor.peek(2).word if cursor.word == "CONSTRAINT" else cursor.word
    return word in _NAMED


def column_constraint(cursor: Cursor, column: Name) -> ConstraintDef:
    """``[CONSTRAINT name] {NOT NULL | DEFAULT e | CHECK (c) | PRIMARY KEY | UNIQUE | REFERENCES t (b)} [traits]``."""
    first = cursor.at
    name = _name(cursor)
    kind = cursor.expect_one_of("PRIMARY", "UNIQUE", "CHECK", "NOT", "DEFAULT", "REFERENCES")
    expression: Span | None = None
    parent: TableName | None = None
    parent_columns: tuple[Name, ...] = ()
    if kind == "PRIMARY":
        cursor.expect("KEY")
        kind = "PRIMARY KEY"
    elif kind == "NOT":
        cursor.expect("NULL")
        kind = "NOT NULL"
    elif kind == "DEFAULT":
        expression = _default(cursor)
    elif kind == "CHECK":
        expression = _condition(cursor)
    elif kind == "REFERENCES":
        kind = "FOREIGN KEY"
        cursor.at -= 1
        parent, parent_columns = _parent(cursor)
    return _with_traits(cursor, first, kind, name, (column,), expression, parent, parent_columns)


def _name(cursor: Cursor) -> Name | None:
    return cursor.expect_name("a name for the constraint") if cursor.accept("CONSTRAINT") else None


def _with_traits(
    cursor: Cursor,
    first: int,
    kind: str,
    name: Name | None,
    columns: tuple[Name, ...],
    expression: Span | None,
    parent: TableName | None,
    parent_columns: tuple[Name, ...],
) -> ConstraintDef:
    """``[[ENABLE | DISABLE | [NOT] ENFORCED] [VALIDATE | NOVALIDATE] [RELY | NORELY]]``, in any order."""
    span = cursor.span(first)
    enabled = validate = rely = None
    while True:
        if cursor.accept("NOT", "ENFORCED"):
            enabled = False
        elif word := cursor.accept_one_of("ENABLE", "ENFORCED", "DISABLE"):
            enabled = word != "DISABLE"
        elif word := cursor.accept_one_of("VALIDATE", "NOVALIDATE"):
            validate = word == "VALIDATE"
        elif word := cursor.accept_one_of("RELY", "NORELY"):
            rely = word == "RELY"
        else:
            break
    return ConstraintDef(kind, span, name, columns, expression, parent, parent_columns, enabled, validate, rely)


def _parent(cursor: Cursor) -> tuple[TableName, tuple[Name, ...]]:
    """``REFERENCES t [(a, b)]``; the command reports missing columns."""
    cursor.expect("REFERENCES")
    parent = cursor.expect_table()
    return parent, cursor.names_in_parentheses("a column name") if cursor.word == "(" else ()


def _condition(cursor: Cursor) -> Span:
    if cursor.word != "(":
        raise cursor.error("Expected a condition in parentheses")
    opened = cursor.at
    cursor.skip_brackets()
    if cursor.at == opened + 2:
        raise cursor.error("Expected a condition", cursor.tokens[opened + 1])
    return cursor.span(opened + 1, cursor.at - 1)


def _default(cursor: Cursor) -> Span:
    """The expression after DEFAULT: up to the next option of the column."""
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
        if cursor.peek().word == "ENFORCED":
            return True
        return cursor.peek().word == "NULL" and cursor.tokens[cursor.at - 1].word != "IS"
    if cursor.word == "COMMENT":
        return cursor.peek().kind is Kind.STRING
    if cursor.word == "GENERATED":
        return cursor.peek().word == "ALWAYS"
    if cursor.word == "CONSTRAINT":
        return cursor.peek(2).word in _NAMED
    return cursor.word in (*_TRAITS, "REFERENCES", *_OF_TABLES)


# --- what only Spark knows -------------------------------------------------------------------------------------------


def at_spark_constraint(cursor: Cursor) -> bool:
    return cursor.word in _ONLY_SPARK


def skip_constraint(cursor: Cursor, refused: list[AcidError]) -> None:
    """Skip a constraint that only Spark tables may have, adding an error for it to ``refused``."""
    refused.append(cursor.unsupported(f"{cursor.word} is not supported for ACID tables"))
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
