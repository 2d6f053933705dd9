"""Constraints as DESCRIBE FORMATTED and SHOW CREATE TABLE show them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from acidsql.metastore.model import Constraint, ConstraintKind, Table
from acidsql.plan.text import quote

Line = tuple[str, str | None, str | None]

_BLANK: Line = ("", None, None)
_TITLES = {
    ConstraintKind.PRIMARY_KEY: "# Primary Key",
    ConstraintKind.FOREIGN_KEY: "# Foreign Keys",
    ConstraintKind.UNIQUE: "# Unique Constraints",
    ConstraintKind.NOT_NULL: "# Not Null Constraints",
    ConstraintKind.DEFAULT: "# Default Constraints",
    ConstraintKind.CHECK: "# Check Constraints",
}
_GENERATED = re.compile(r"(pk|uk|fk|nn|dc|cc)_(\d+_\d+_\d+|[0-9a-f]{16}(_\d+)?)")
"""A generated name, of Hive's metastore or acidsql."""


# --- DESCRIBE --------------------------------------------------------------------------------------------------------


def constraint_lines(table: Table) -> Iterator[Line]:
    """The constraints by kind, as Hive lists them (``TextDescTableFormatter``)."""
    if table.constraints:
        yield from (_BLANK, ("# Constraints", None, None))
    for kind, title in _TITLES.items():
        constraints = [c for c in table.constraints if c.kind is kind]
        if constraints:
            yield from (_BLANK, (title, None, None), ("Table:", table.full_name, None))
        for constraint in constraints:
            yield "Constraint Name:", constraint.name, None
            yield from _parts(constraint)
            if kind is not ConstraintKind.PRIMARY_KEY:
                yield _BLANK


def _parts(constraint: Constraint) -> Iterator[Line]:
    kind, columns = constraint.kind, constraint.columns
    if kind is ConstraintKind.FOREIGN_KEY:
        for n, (own, other) in enumerate(zip(columns, constraint.parent_columns, strict=True), 1):
            yield f"Parent Column Name:{constraint.parent}.{other}", f"Column Name:{own}", f"Key Sequence:{n}"
    elif kind is ConstraintKind.UNIQUE:
        for n, name in enumerate(columns, 1):
            yield f"Column Name:{name}", f"Key Sequence:{n}", None
    elif kind is ConstraintKind.DEFAULT:
        yield f"Column Name:{columns[0]}", f"Default Value:{constraint.expression}", None
    elif kind is ConstraintKind.CHECK:
        yield "Check Value:", constraint.expression, None
    else:
        for name in columns:
            yield "Column Name:", name, None


# --- SHOW CREATE TABLE -----------------------------------------------------------------------------------------------


def clause(constraint: Constraint) -> str:
    """A constraint as a clause of CREATE TABLE, of the table or of a column. A generated name is omitted."""
    names = ", ".join(quote(c) for c in constraint.columns)
    text = constraint.kind.value
    if constraint.kind is ConstraintKind.CHECK:
        text = f"CHECK ({constraint.expression})"
    elif constraint.kind is ConstraintKind.DEFAULT:
        text = f"DEFAULT {constraint.expression}"
    elif constraint.kind is ConstraintKind.FOREIGN_KEY:
        parent = ".".join(quote(p) for p in (constraint.parent or "").split(".", 1))
        text += f" ({names}) REFERENCES {parent} ({', '.join(quote(c) for c in constraint.parent_columns)})"
    elif constraint.kind is not ConstraintKind.NOT_NULL:
        text += f" ({names})"
    if not constraint.enforced:
        text += f" DISABLE NOVALIDATE{' RELY' if constraint.rely else ''}"
    is_given = constraint.name is not None and not _GENERATED.fullmatch(constraint.name)
    return f"CONSTRAINT {quote(constraint.name or '')} {text}" if is_given else text


def of_column(table: Table, name: str) -> list[str]:
    """The clauses of NOT NULL and DEFAULT of a column."""
    kinds = (ConstraintKind.NOT_NULL, ConstraintKind.DEFAULT)
    return [clause(c) for kind in kinds for c in table.constraints if c.kind is kind and c.columns == (name,)]


def of_table(table: Table) -> list[str]:
    """The clauses of all other constraints."""
    kinds = (ConstraintKind.NOT_NULL, ConstraintKind.DEFAULT)
    return [clause(c) for c in table.constraints if c.kind not in kinds]
