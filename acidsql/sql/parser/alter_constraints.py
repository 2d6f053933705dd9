"""ALTER TABLE … ADD and DROP CONSTRAINT."""

from __future__ import annotations

from collections.abc import Callable

from acidsql.sql.parser.constraints import at_table_constraint, table_constraint
from acidsql.sql.parser.cursor import Cursor
from acidsql.sql.statements import AddConstraint, DropConstraint, Statement, TableName


def _add(cursor: Cursor, table: TableName) -> Statement | None:
    """``CONSTRAINT name {CHECK (c) | PRIMARY KEY (a) | UNIQUE (a) | FOREIGN KEY (a) REFERENCES t (b)} [traits]``.

    In Spark the name is optional.
    """
    if not at_table_constraint(cursor):
        cursor.expect("CONSTRAINT")
        cursor.expect_name("a name for the constraint")
        raise cursor.error("Expected CHECK, PRIMARY KEY, UNIQUE or FOREIGN KEY", hint=_OF_COLUMNS)
    constraint = table_constraint(cursor)
    cursor.expect_end()
    return AddConstraint(cursor.statement_span(), table, constraint)


_OF_COLUMNS = "NOT NULL and DEFAULT are column constraints: CHANGE COLUMN c c type CONSTRAINT name NOT NULL."


def _drop(cursor: Cursor, table: TableName) -> Statement | None:
    """``[IF EXISTS] name``, and Spark's RESTRICT or CASCADE."""
    if_exists = cursor.if_exists()
    name = cursor.expect_name("the name of a constraint")
    cursor.accept_one_of("RESTRICT", "CASCADE")
    cursor.expect_end()
    return DropConstraint(cursor.statement_span(), table, name, if_exists)


def _add_without_name(cursor: Cursor, table: TableName) -> Statement | None:
    cursor.at -= 1  # the word belongs to the constraint
    return _add(cursor, table)


def _add_key_without_name(cursor: Cursor, table: TableName) -> Statement | None:
    cursor.at -= 2
    return _add(cursor, table)


CONSTRAINT_FORMS: dict[str, Callable[[Cursor, TableName], Statement | None]] = {
    "ADD CONSTRAINT": _add_without_name,
    "ADD CHECK": _add_without_name,
    "ADD UNIQUE": _add_without_name,
    "ADD PRIMARY KEY": _add_key_without_name,
    "ADD FOREIGN KEY": _add_key_without_name,
    "DROP CONSTRAINT": _drop,
}
"""``ADD CONSTRAINT`` and the forms without a name, by their first keywords."""
