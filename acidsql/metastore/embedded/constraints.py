"""The constraints of tables that do not belong to a column, and the names of all.

Each function is a step inside a transaction of the database.
"""

# ruff: noqa: SIM300 (the upper-case names are columns, not constants)

from __future__ import annotations

import json
import uuid
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, or_, select

from acidsql.errors import AnalysisError, TableNotFound
from acidsql.metastore.embedded.schema import CHECK_CONSTRAINTS, COLUMNS_V2, DBS, KEY_CONSTRAINTS, TBLS
from acidsql.metastore.model import Constraint, ConstraintKind, Table

_PREFIXES = {
    ConstraintKind.PRIMARY_KEY: "pk",
    ConstraintKind.UNIQUE: "uk",
    ConstraintKind.FOREIGN_KEY: "fk",
    ConstraintKind.NOT_NULL: "nn",
    ConstraintKind.DEFAULT: "dc",
    ConstraintKind.CHECK: "cc",
}
_CONSTRAINTS = (
    select(KEY_CONSTRAINTS).where(KEY_CONSTRAINTS.c.TBL_ID == bindparam("id")).order_by(KEY_CONSTRAINTS.c.INTEGER_IDX)
)
_CHECKS = (
    select(CHECK_CONSTRAINTS.c.CHECK_EXPRESSION, CHECK_CONSTRAINTS.c.CHECK_NAME)
    .where(CHECK_CONSTRAINTS.c.TBL_ID == bindparam("id"))
    .order_by(CHECK_CONSTRAINTS.c.INTEGER_IDX)
)
_TABLE_NAME = (
    select(DBS.c.NAME, TBLS.c.TBL_NAME).join(DBS, DBS.c.DB_ID == TBLS.c.DB_ID).where(TBLS.c.TBL_ID == bindparam("id"))
)
_COLUMN_IDS = select(COLUMNS_V2.c.COLUMN_NAME, COLUMNS_V2.c.INTEGER_IDX, COLUMNS_V2.c.IS_PARTITION_KEY).where(
    COLUMNS_V2.c.TBL_ID == bindparam("id")
)


def generated_name(kind: ConstraintKind) -> str:
    """A name for a constraint that was given none, as Hive generates one: ``pk_…``."""
    return f"{_PREFIXES[kind]}_{uuid.uuid4().hex[:16]}"


def find(db: Connection, table_id: int) -> tuple[Constraint, ...]:
    """:attr:`Table.table_constraints`, in the order in which they were added."""
    informational = [_constraint(db, row) for row in db.execute(_CONSTRAINTS, {"id": table_id}).all()]
    checks = db.execute(_CHECKS, {"id": table_id})
    return (*informational, *(Constraint.enabled(ConstraintKind.CHECK, text, name=name) for text, name in checks))


def _constraint(db: Connection, row: Any) -> Constraint:
    parent, columns = None, ()
    if row.PARENT_TBL_ID is not None:
        parent = ".".join(db.execute(_TABLE_NAME, {"id": row.PARENT_TBL_ID}).one())
        names = {(n, k): name for name, n, k in db.execute(_COLUMN_IDS, {"id": row.PARENT_TBL_ID})}
        columns = tuple(names[n, k] for n, k in json.loads(row.PARENT_COLUMN_IDS))
    return Constraint(
        ConstraintKind(row.CONSTRAINT_TYPE),
        tuple(json.loads(row.COLUMN_NAMES)),
        row.CONSTRAINT_NAME,
        rely=row.RELY,
        expression=row.EXPRESSION,
        parent=parent,
        parent_columns=columns,
    )


def put(db: Connection, table_id: int, table: Table) -> None:
    """Store :attr:`Table.table_constraints`.

    Raises:
        TableNotFound: When the parent of a FOREIGN KEY does not exist.
        AnalysisError: When a column of it does not exist.
    """
    rows = [_row(db, table_id, n, constraint) for n, constraint in enumerate(table.informational)]
    if rows:
        db.execute(insert(KEY_CONSTRAINTS), rows)
    checks = [
        {
            "TBL_ID": table_id,
            "INTEGER_IDX": n,
            "CHECK_EXPRESSION": check.expression,
            "CHECK_NAME": check.name or generated_name(ConstraintKind.CHECK),
        }
        for n, check in enumerate(c for c in table.table_constraints if c.enforced)
    ]
    if checks:
        db.execute(insert(CHECK_CONSTRAINTS), checks)


def _row(db: Connection, table_id: int, number: int, constraint: Constraint) -> dict[str, object]:
    parent, columns = None, None
    if constraint.parent is not None:
        database, _, name = constraint.parent.partition(".")
        parent = db.execute(
            select(TBLS.c.TBL_ID)
            .join(DBS, DBS.c.DB_ID == TBLS.c.DB_ID)
            .where(DBS.c.NAME == database, TBLS.c.TBL_NAME == name)
        ).scalar()
        if parent is None:
            raise TableNotFound(f"Table not found {constraint.parent}")
        ids = {c: [n, k] for c, n, k in db.execute(_COLUMN_IDS, {"id": parent})}
        missing = [c for c in constraint.parent_columns if c not in ids]
        if missing:
            raise AnalysisError(f"Table {constraint.parent} has no column {missing[0]}")
        columns = json.dumps([ids[c] for c in constraint.parent_columns])
    return {
        "TBL_ID": table_id,
        "INTEGER_IDX": number,
        "CONSTRAINT_TYPE": constraint.kind.value,
        "CONSTRAINT_NAME": constraint.name or generated_name(constraint.kind),
        "COLUMN_NAMES": json.dumps(constraint.columns),
        "RELY": constraint.rely,
        "EXPRESSION": constraint.expression,
        "PARENT_TBL_ID": parent,
        "PARENT_COLUMN_IDS": columns,
    }


def forget(db: Connection, table_id: int, *, is_dropped: bool = False) -> None:
    """Remove them; of a table that ``is_dropped`` also the foreign keys that refer to it, as in Hive."""
    c = KEY_CONSTRAINTS.c
    gone = or_(c.TBL_ID == table_id, c.PARENT_TBL_ID == table_id) if is_dropped else c.TBL_ID == table_id
    db.execute(delete(KEY_CONSTRAINTS).where(gone))
    db.execute(delete(CHECK_CONSTRAINTS).where(CHECK_CONSTRAINTS.c.TBL_ID == table_id))
