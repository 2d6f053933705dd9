"""ALTER TABLE: the constraints of an ACID table (``AlterTableAddConstraintOperation``, ``…DropConstraint…``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands.ddl.alter import acid_table, alter_table
from acidsql.commands.dml.constraints import (
    REFUSED,
    check_condition,
    check_constraint_names,
    with_check,
    with_declared,
)
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.errors import AnalysisError
from acidsql.metastore.model import Column, Constraint, ConstraintKind, LockType, Table
from acidsql.sql.statements import AddConstraint, DropConstraint


def add_constraint(env: Environment, statement: AddConstraint, parameters: Mapping[str, Any]) -> DataFrame:
    """ADD CONSTRAINT: a CHECK that is enforced for new rows, or a key that is only declared.

    1. Check the condition, or the columns and the options of a key; the name must be new.
    2. Lock the table EXCLUSIVE: current writers finish first, and waiting ones restart.
    3. Allocate a write id, as Hive does, store the table in the metastore with it, and commit.

    Existing rows are not checked: Hive enables a constraint without validating it (``ENABLE NOVALIDATE``). A row that
    violates it stays; the next UPDATE of that row must satisfy it.
    """
    if acid_table(env, statement.table) is None:
        return env.sql(statement.span.text, parameters)
    alter_table(env, statement.table, LockType.EXCLUSIVE, lambda t: _with_constraint(env, t, statement))
    return env.nothing()


def drop_constraint(env: Environment, statement: DropConstraint, parameters: Mapping[str, Any]) -> DataFrame:
    """DROP CONSTRAINT of any kind, by name, in the phases of :func:`add_constraint`. DESCRIBE FORMATTED shows names."""
    table = acid_table(env, statement.table)
    if table is None:
        return env.sql(statement.span.text, parameters)
    if not (statement.if_exists and _named(table, statement) is None):
        alter_table(env, statement.table, LockType.EXCLUSIVE, lambda t: _without_constraint(t, statement))
    return env.nothing()


def _with_constraint(env: Environment, table: Table, statement: AddConstraint) -> Table:
    definition = statement.constraint
    check_constraint_names(table, [definition])
    if not definition.is_enforced:
        return with_declared(env, table, [definition])
    assert definition.expression is not None  # of the constraints of a table, only CHECK is enforced
    name = definition.given_name
    return with_check(table, check_condition(env, definition.expression, statement.table, table.columns), name)


def _named(table: Table, statement: DropConstraint) -> Constraint | None:
    name = statement.name.text.lower()
    return next((c for c in table.constraints if c.name == name), None)


def _without_constraint(table: Table, statement: DropConstraint) -> Table:
    constraint = _named(table, statement)
    if constraint is None:
        message = (
            f"The constraint: {statement.name.text.lower()} does not exist for the associated table: {table.full_name}"
        )
        raise with_location(statement.name.span, AnalysisError(message, code=REFUSED, sqlstate="08S01"))
    if constraint in table.table_constraints:
        return table.constrained(c for c in table.table_constraints if c.name != constraint.name)
    cleared: dict[str, Any] = {"not_null": False, "not_null_name": None}
    if constraint.kind is ConstraintKind.DEFAULT:
        cleared = {"default": None, "default_name": None}

    def freed(columns: tuple[Column, ...]) -> tuple[Column, ...]:
        return tuple(replace(c, **cleared) if c.name in constraint.columns else c for c in columns)

    return replace(table, columns=freed(table.columns), partition_keys=freed(table.partition_keys))
