"""ALTER TABLE … ADD, REPLACE, CHANGE, ALTER, RENAME and DROP of columns.

Each function returns None for a form that only Spark has: a struct field, several columns at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from acidsql.errors import AcidError
from acidsql.sql.parser.columns import column, data_type
from acidsql.sql.parser.cursor import Cursor
from acidsql.sql.statements import (
    AddColumns,
    ChangeColumn,
    ColumnDef,
    DropColumns,
    Name,
    ReplaceColumns,
    Span,
    Statement,
    TableName,
)
from acidsql.sql.tokens import Kind

_COLUMN_ENDS = (",", ")", "FIRST", "AFTER", "CASCADE", "RESTRICT")


# --- all columns -----------------------------------------------------------------------------------------------------


def _add(cursor: Cursor, table: TableName) -> Statement | None:
    """Columns at the end, in brackets (Hive) or without (Spark)."""
    columns = _new_columns(cursor)
    if not columns:
        return None
    cascade = _end(cursor)
    return AddColumns(cursor.statement_span(), table, columns, cascade=cascade)


def _replace(cursor: Cursor, table: TableName) -> Statement | None:
    """``(name type …, …)``: all new columns of the table."""
    if cursor.word != "(":
        raise cursor.error("Expected (")
    columns = _new_columns(cursor)
    if not columns:
        return None
    cascade = _end(cursor)
    return ReplaceColumns(cursor.statement_span(), table, columns, cascade=cascade)


def _new_columns(cursor: Cursor) -> tuple[ColumnDef, ...]:
    """Columns up to CASCADE or the end; none if there is a position, a field or a constraint."""
    refused: list[AcidError] = []
    found: list[ColumnDef] = []
    in_brackets = cursor.accept("(")
    while not found or cursor.accept(","):
        if cursor.peek().word == ".":
            return ()
        found.append(column(cursor, refused, "a column name", _COLUMN_ENDS))
        others = any(c.kind not in ("NOT NULL", "DEFAULT") or not c.is_enforced for c in found[-1].constraints)
        if cursor.word in ("FIRST", "AFTER") or refused or others:
            return ()
    if in_brackets:
        if cursor.word != ")":
            raise cursor.error("Expected , or )")
        cursor.advance()
    return tuple(found)


def _end(cursor: Cursor) -> Span | None:
    """``[CASCADE | RESTRICT]``: whether partitions change too; those of ACID tables always do.

    Returns:
        The word CASCADE.
    """
    first = cursor.at
    cascade = cursor.span(first) if cursor.accept("CASCADE") else None
    if cascade is None:
        cursor.accept("RESTRICT")
    cursor.expect_end()
    return cascade


# --- one column ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Change:
    """The change that ALTER COLUMN declares."""

    type: Span | None = None
    comment: str | None = None
    not_null: bool | None = None
    default: Span | None = None
    drop_default: bool = False
    first: bool = False
    after: Name | None = None


def _change(cursor: Cursor, table: TableName) -> Statement | None:
    """Hive's ``CHANGE [COLUMN] old new type [constraint] [COMMENT '…'] [FIRST | AFTER c] [CASCADE | RESTRICT]``."""
    if cursor.word == "COLUMN" and _is_keyword(cursor):
        cursor.advance()
    old = cursor.expect_name("a column name")
    if cursor.word == ".":
        return None
    if _at_action(cursor):
        return _altered(cursor, table, old)
    refused: list[AcidError] = []
    new = column(cursor, refused, "a new name for the column", _COLUMN_ENDS)
    if refused:
        return None
    place = _place(cursor)
    cascade = _end(cursor)
    return ChangeColumn(
        cursor.statement_span(),
        table,
        old,
        new.name,
        new.type,
        new.comment,
        True if new.not_null else None,
        new.default,
        first=place.first,
        after=place.after,
        constraints=new.constraints,
        cascade=cascade,
    )


def _is_keyword(cursor: Cursor) -> bool:
    """Whether COLUMN is the keyword: followed by a name, a name and a type (or an action), not by a name and a type."""
    if not cursor.peek().is_name:
        return False
    cursor.advance()
    second, third = cursor.peek(), cursor.peek(2)
    found = second.word == "." or (second.is_name and (third.is_name or _at_action(cursor, 1)))
    cursor.at -= 1
    return found


def _at_action(cursor: Cursor, ahead: int = 0) -> bool:
    """Whether one of Spark's actions follows, not a column's new name and type."""
    word = cursor.peek(ahead).word
    following, second = cursor.peek(ahead + 1), cursor.peek(ahead + 2)
    if word == "COMMENT":
        return following.kind is Kind.STRING
    if word == "FIRST":
        return following.kind is Kind.END
    if word == "AFTER":
        return following.is_name and second.kind is Kind.END
    if word in ("SET", "DROP"):
        return (following.word, second.word) == ("NOT", "NULL") or following.word == "DEFAULT"
    return False


def _alter(cursor: Cursor, table: TableName) -> Statement | None:
    """Spark's ``ALTER [COLUMN] c`` with one action."""
    if cursor.word == "COLUMN" and cursor.peek().is_name and not _at_action_behind_name(cursor):
        cursor.advance()
    name = cursor.expect_name("a column name")
    if cursor.word == ".":
        return None
    return _altered(cursor, table, name)


def _at_action_behind_name(cursor: Cursor) -> bool:
    """Whether COLUMN is the column's name: ``ALTER column TYPE int``."""
    cursor.advance()
    found = cursor.word in ("TYPE", "COMMENT", "SET", "DROP", "FIRST", "AFTER") and not cursor.peek(2).is_name
    cursor.at -= 1
    return found


def _altered(cursor: Cursor, table: TableName, name: Name) -> Statement | None:
    change = _action(cursor)
    if cursor.word == ",":
        return None
    cursor.expect_end()
    return ChangeColumn(
        cursor.statement_span(),
        table,
        name,
        None,
        change.type,
        change.comment,
        change.not_null,
        change.default,
        change.drop_default,
        change.first,
        change.after,
    )


def _action(cursor: Cursor) -> _Change:
    """``TYPE type | COMMENT '…' | SET NOT NULL | DROP NOT NULL | SET DEFAULT e | DROP DEFAULT | FIRST | AFTER c``."""
    if cursor.accept("TYPE"):
        return _Change(type=data_type(cursor))
    if cursor.accept("COMMENT"):
        return _Change(comment=cursor.expect_string("a comment"))
    if cursor.accept("SET", "NOT", "NULL"):
        return _Change(not_null=True)
    if cursor.accept("DROP", "NOT", "NULL"):
        return _Change(not_null=False)
    if cursor.accept("SET", "DEFAULT"):
        return _Change(default=cursor.expect_expression(()))
    if cursor.accept("DROP", "DEFAULT"):
        return _Change(drop_default=True)
    if cursor.word in ("FIRST", "AFTER"):
        return _place(cursor)
    raise cursor.error(
        "Expected an action on the column",
        hint="Actions are TYPE t, COMMENT '…', SET or DROP NOT NULL, SET or DROP DEFAULT, FIRST, AFTER c.",
    )


def _place(cursor: Cursor) -> _Change:
    """``[FIRST | AFTER c]``."""
    if cursor.accept("FIRST"):
        return _Change(first=True)
    return _Change(after=cursor.expect_name("a column name") if cursor.accept("AFTER") else None)


def _rename(cursor: Cursor, table: TableName) -> Statement | None:
    """``RENAME COLUMN old TO new``."""
    old = cursor.expect_name("a column name")
    if cursor.word == ".":
        return None
    cursor.expect("TO")
    new = cursor.expect_name("a new name for the column")
    cursor.expect_end()
    return ChangeColumn(cursor.statement_span(), table, old, new)


def _drop(cursor: Cursor, table: TableName) -> Statement | None:
    """``DROP COLUMN[S] [IF EXISTS] (c, …)``, with brackets or without."""
    if_exists = cursor.if_exists()
    in_brackets = cursor.accept("(")
    found: list[Name] = []
    while not found or cursor.accept(","):
        found.append(cursor.expect_name("a column name"))
        if cursor.word == ".":
            return None
    if in_brackets and not cursor.accept(")"):
        raise cursor.error("Expected , or )")
    cursor.expect_end()
    return DropColumns(cursor.statement_span(), table, tuple(found), if_exists)


COLUMN_FORMS: dict[str, Callable[[Cursor, TableName], Statement | None]] = {
    "ADD COLUMNS": _add,
    "ADD COLUMN": _add,
    "REPLACE COLUMNS": _replace,
    "CHANGE": _change,
    "ALTER": _alter,
    "RENAME COLUMN": _rename,
    "DROP COLUMNS": _drop,
    "DROP COLUMN": _drop,
}
