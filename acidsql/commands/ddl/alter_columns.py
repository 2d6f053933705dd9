"""ALTER TABLE: the columns of an ACID table.

Files are not rewritten, and their columns are read by position. So columns can be renamed, retyped, and added at the
end, but not moved or dropped: a column added later would show the values of the dropped one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands.ddl.alter import REFUSED_BY_HIVE, acid_table, alter_table
from acidsql.commands.ddl.partitions import one_partition
from acidsql.commands.ddl.type_changes import Verdict, judge, kinds_fit
from acidsql.commands.dml.columns import check_names, declared_columns
from acidsql.commands.dml.constraints import (
    INVALID_COLUMN,
    check_condition,
    check_constraint_names,
    check_default,
    with_check,
    with_declared,
)
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.resolve.context import StatementContext
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.errors import AcidError, AnalysisError, UnsupportedError
from acidsql.metastore.model import Column, Constraint, ConstraintKind, LockType, Table
from acidsql.plan.scan import snapshot_frame
from acidsql.plan.text import quote
from acidsql.settings import DISALLOW_TYPE_CHANGES
from acidsql.sql.statements import (
    AddColumns,
    ChangeColumn,
    ColumnDef,
    DropColumns,
    Name,
    ReplaceColumns,
    Span,
    TableName,
)
from acidsql.sql.tokens import tokenize
from acidsql.types import HiveType, parse_type, to_hive

CANNOT_REORDER = 10311
CANNOT_CHANGE_TYPE = 10312
CANNOT_DROP = 10313
REPLACE_UNSUPPORTED_TYPE = 10314
NO_CASCADE_OF_PARTITION = 10300
NO_CASCADE_WITHOUT_PARTITIONS = 10410

logger = logging.getLogger(__name__)


def add_columns(env: Environment, statement: AddColumns, parameters: Mapping[str, Any]) -> DataFrame:
    """ADD COLUMNS: new columns after the data columns. They are NULL in rows of older files.

    1. Check names and types by the rules of CREATE TABLE; a new column is nullable and has no default.
    2. Lock the table EXCLUSIVE, as Hive does: current writers finish first, and waiting ones restart.
    3. Allocate a write id, store the table in the metastore with it, and commit.

    The columns apply to the table and all its partitions, as with Hive's CASCADE.
    """
    return _alter(env, statement, parameters, lambda t: _with_columns(env, t, statement))


def replace_columns(env: Environment, statement: ReplaceColumns, parameters: Mapping[str, Any]) -> DataFrame:
    """REPLACE COLUMNS: new names and types, by position, and new columns at the end (``AlterTableReplaceColumns…``).

    1. Check that no column is dropped, and names and types as for :func:`add_columns` and :func:`change_column`.
       NOT NULL, DEFAULT and CHECK keep their positions.
    2. Continue as :func:`add_columns`.
    """
    return _alter(env, statement, parameters, lambda t: _replaced(env, t, statement))


def change_column(env: Environment, statement: ChangeColumn, parameters: Mapping[str, Any]) -> DataFrame:
    """CHANGE COLUMN, ALTER COLUMN and RENAME COLUMN (``AlterTableChangeColumnOperation``).

    1. Find the column; it must not be a partition key, nor a bucket column unless only its comment changes.
    2. Check the new name, and that existing values fit the new type. Rename the column in CHECK conditions.
    3. Lock the table EXCLUSIVE; for SET NOT NULL check that no row has NULL in it.
    4. Allocate a write id, store the table in the metastore with it, and commit.
    """

    def check(txn: WriteTransaction, table: Table) -> None:
        unchecked = any(c.kind == "NOT NULL" and c.validate is False for c in statement.constraints)
        if statement.not_null and not unchecked:
            _refuse_nulls(txn, table, statement.column)

    return _alter(env, statement, parameters, lambda t: _changed(env, t, statement), check)


def _alter(
    env: Environment,
    statement: AddColumns | ReplaceColumns | ChangeColumn,
    parameters: Mapping[str, Any],
    change: Callable[[Table], Table],
    check: Callable[[WriteTransaction, Table], None] | None = None,
) -> DataFrame:
    """The common phases of the three statements; Spark runs the statement for its own tables."""
    table = acid_table(env, statement.table)
    if table is None:
        return env.sql(statement.span.text, parameters)
    if statement.cascade is not None and statement.partition is not None:
        message = f"Alter table partition type {_TYPES[type(statement)]} does not support cascade"
        raise with_location(statement.cascade, AnalysisError(message, code=NO_CASCADE_OF_PARTITION))
    if statement.cascade is not None and not table.partition_keys:
        message = "Alter table with non-partitioned table does not support cascade"
        raise with_location(statement.cascade, AnalysisError(message, code=NO_CASCADE_WITHOUT_PARTITIONS))
    if statement.partition is not None:
        one_partition(env, table, statement.partition, parameters)
        if change(table) != table:
            message = f"All partitions of {table.full_name} have the columns of the table: one alone cannot change"
            hint = "ALTER TABLE without PARTITION changes the table and all its partitions."
            raise with_location(statement.partition.span, UnsupportedError(message, hint=hint))
    else:
        altered: list[Table] = []

        def alter(current: Table) -> Table:
            altered.append(change(current))
            return altered[-1]

        alter_table(env, statement.table, LockType.EXCLUSIVE, alter, check)
        _warn_of_losses(table, altered[-1])
    return env.nothing()


_TYPES = {AddColumns: "add columns", ReplaceColumns: "replace columns", ChangeColumn: "rename column"}
"""Hive's names of the statements (``AlterTableType``)."""


def drop_columns(env: Environment, statement: DropColumns, parameters: Mapping[str, Any]) -> DataFrame:
    """DROP COLUMN: refused if a named column exists, as Hive refuses it for ORC."""
    table = acid_table(env, statement.table)
    if table is None:
        return env.sql(statement.span.text, parameters)
    for name in statement.columns:
        if not any(c.name == name.text.lower() for c in table.all_columns):
            if not statement.if_exists:
                raise _unknown(name)
            continue
        raise with_location(name.span, _cannot_drop(table))
    return env.nothing()


# --- ADD and REPLACE -------------------------------------------------------------------------------------------------


def _with_columns(env: Environment, table: Table, statement: AddColumns) -> Table:
    _check_new(table, statement.columns)
    check_names(statement.columns, [c.name for c in table.columns])
    return replace(table, columns=table.columns + declared_columns(env, statement.columns))


def _check_new(table: Table, definitions: Iterable[ColumnDef]) -> None:
    for definition in definitions:
        _refuse_key_name(table, definition.name)
        if definition.not_null or definition.default is not None:
            what = "NOT NULL" if definition.not_null else "DEFAULT"
            message = f"A new column is NULL in existing rows: {what} is not supported"
            raise with_location(definition.name.span, UnsupportedError(message))


def _refuse_key_name(table: Table, name: Name) -> None:
    if any(k.name == name.text.lower() for k in table.partition_keys):
        message = f"Partition column name {name.text.lower()} conflicts with table columns."
        raise with_location(name.span, AnalysisError(message, code=40000, sqlstate="08S01"))


def _replaced(env: Environment, table: Table, statement: ReplaceColumns) -> Table:
    definitions = statement.columns
    if len(definitions) < len(table.columns):
        raise with_location(statement.table.span, _cannot_drop(table))
    _check_new(table, definitions)
    check_names(definitions)
    columns = list(declared_columns(env, definitions))
    for i, (old, definition) in enumerate(zip(table.columns, definitions, strict=False)):
        if (old.name, old.type) != (columns[i].name, columns[i].type):
            _refuse_bucket_column(table, old, definition.name.span)
            _check_type(env, old, columns[i], definition.type, REPLACE_UNSUPPORTED_TYPE)
        columns[i] = replace(old, name=columns[i].name, type=columns[i].type, comment=columns[i].comment)
    return _with_checks(env, replace(table, columns=tuple(columns)), table, statement.table)


def _cannot_drop(table: Table) -> AnalysisError:
    return AnalysisError(
        f"Replacing columns cannot drop columns for table {table.full_name}. SerDe may be incompatible",
        code=CANNOT_DROP,
        hint="Files keep the values of a dropped column, and a column added later would show them; create a new table"
        " AS a query instead.",
    )


# --- CHANGE ----------------------------------------------------------------------------------------------------------


def _changed(env: Environment, table: Table, statement: ChangeColumn) -> Table:
    name = statement.column
    old = next((c for c in table.columns if c.name == name.text.lower()), None)
    if old is None:
        raise _unknown(name)
    if statement.first or statement.after is not None:
        message = f"Reordering columns is not supported for table {table.full_name}. SerDe may be incompatible"
        span = statement.after.span if statement.after is not None else name.span
        raise with_location(span, AnalysisError(message, code=CANNOT_REORDER))
    check_constraint_names(table, statement.constraints)
    new = _new_description(env, table, old, statement)
    if (new.name, new.type) != (old.name, old.type):
        _refuse_bucket_column(table, old, name.span)
    columns = tuple(new if c is old else c for c in table.columns)
    return _constrained(env, _with_checks(env, replace(table, columns=columns), table, statement.table), statement)


def _constrained(env: Environment, table: Table, statement: ChangeColumn) -> Table:
    """The table with the constraints of CHANGE except NOT NULL and DEFAULT, which the column already has."""
    for definition in statement.constraints:
        if definition.kind == "CHECK" and definition.is_enforced and definition.expression is not None:
            condition = check_condition(env, definition.expression, statement.table, table.columns)
            table = with_check(table, condition, definition.given_name)
    return with_declared(env, table, [c for c in statement.constraints if not c.is_enforced])


def _new_description(env: Environment, table: Table, old: Column, statement: ChangeColumn) -> Column:
    new = old
    if statement.new_name is not None and statement.new_name.text.lower() != old.name:
        _refuse_key_name(table, statement.new_name)
        check_names([ColumnDef(statement.new_name, statement.new_name.span)], [c.name for c in table.columns])
        new = replace(new, name=statement.new_name.text.lower())
    if statement.type is not None:
        new = replace(new, type=to_hive(_declared(statement.type)))
    if statement.comment is not None:
        new = replace(new, comment=statement.comment)
    names = {c.kind: c.given_name for c in statement.constraints if c.is_enforced and c.name is not None}
    if statement.not_null is not None:
        name = names.get("NOT NULL", old.not_null_name) if statement.not_null else None
        new = replace(new, not_null=statement.not_null, not_null_name=name)
    if statement.drop_default:
        new = replace(new, default=None, default_name=None)
    if statement.default is not None:
        check_default(env, statement.default, parse_type(new.type))
        new = replace(new, default=statement.default.text, default_name=names.get("DEFAULT", old.default_name))
    if new.type != old.type:
        _check_type(env, old, new, statement.type or statement.column.span, CANNOT_CHANGE_TYPE)
    return new


def _unknown(name: Name) -> AnalysisError:
    return with_location(name.span, AnalysisError(f"Invalid column reference {name.text}", code=INVALID_COLUMN))


def _refuse_bucket_column(table: Table, column: Column, span: Span) -> None:
    if column.name in table.bucket_columns:
        message = f"Table {table.full_name} is bucketed by {column.name}: its name and type cannot change"
        raise with_location(span, UnsupportedError(message, hint="The rows are stored by the hash of the old type."))


def _check_type(env: Environment, old: Column, new: Column, span: Span, code: int) -> None:
    """Check that old files read as in Hive, which allows more with its setting off; ``code`` is for unreadable types.

    Raises:
        AnalysisError: As in Hive's metastore (40013), or with ``code``.
    """
    before, after = parse_type(old.type), parse_type(new.type)
    if env.settings.value(DISALLOW_TYPE_CHANGES) and not kinds_fit(before, after):
        message = (
            "Unable to alter table. The following columns have types incompatible with the existing columns in their"
            f" respective positions :\n{new.name}"
        )
        hint = f"{old.type} cannot become {new.type}."
        raise with_location(span, AnalysisError(message, code=REFUSED_BY_HIVE, sqlstate="08S01", hint=hint))
    if judge(before, after) is Verdict.UNREADABLE:
        raise with_location(span, _unreadable(old, new, code))
    if new.default is not None:
        check_default(env, _whole(new.default), after)


def _warn_of_losses(before: Table, after: Table) -> None:
    """Log a warning for values that may not fit a new type."""
    for old, new in zip(before.columns, after.columns, strict=False):
        if judge(parse_type(old.type), parse_type(new.type)) is Verdict.LOSSY:
            logger.warning(
                "Column %s of %s is now of type %s: values that do not fit are read as NULL or truncated, and the next"
                " UPDATE stores them that way",
                new.name,
                after.full_name,
                new.type,
            )


def _unreadable(old: Column, new: Column, code: int) -> AnalysisError:
    if code == REPLACE_UNSUPPORTED_TYPE:
        what = f"Replacing columns with unsupported type conversion (from {old.type} to {new.type})"
        return AnalysisError(f"{what} for column {old.name}. SerDe may be incompatible", code=code)
    what = f"Changing from type {old.type} to {new.type} is not supported for column {old.name}"
    return AnalysisError(f"{what}. SerDe may be incompatible", code=code, hint="Old files would become unreadable.")


def _declared(span: Span) -> HiveType:
    """Parse a type. Raises: AnalysisError."""
    try:
        return parse_type(span.text)
    except AcidError as e:
        raise e.inside(span.source, span.start, span.end) from e


def _whole(text: str) -> Span:
    return Span(text, 0, len(text))


def _refuse_nulls(txn: WriteTransaction, table: Table, name: Name) -> None:
    """Raises: AnalysisError when a row has NULL in a column that is to become NOT NULL."""
    metastore = txn.env.metastore
    partitions = metastore.list_partitions(table.database, table.name) if table.partition_keys else None
    seen = StatementContext(txn.env, txn.snapshot).table_snapshot(table, partitions)
    rows = snapshot_frame(txn.env.sessions.own, seen, txn.env.zones)
    column = name.text.lower()
    if rows.filter(f"{quote(column)} IS NULL").limit(1).collect():
        message = f"Column {column} of {table.full_name} cannot become NOT NULL: some rows have NULL in it"
        raise with_location(name.span, AnalysisError(message))


# --- CHECK -----------------------------------------------------------------------------------------------------------


def _with_checks(env: Environment, table: Table, old: Table, name: TableName) -> Table:
    """The table with the constraints of the old one, with current column names.

    Raises:
        AnalysisError: When a condition is invalid for a new type. Spark's errors pass through.
    """
    pairs = [(a, b) for a, b in zip(old.columns, table.columns, strict=False) if (a.name, a.type) != (b.name, b.type)]
    if not pairs:
        return table
    names = {a.name: b.name for a, b in pairs if a.name != b.name}
    table = table.constrained(_of_renamed(c, table, names) for c in old.table_constraints)
    for condition in table.checks:
        check_condition(env, _whole(condition), name, table.columns)
    return table


def _of_renamed(constraint: Constraint, table: Table, names: Mapping[str, str]) -> Constraint:
    """A constraint with current column names; a foreign key may refer to its own table."""
    expression, parent_columns = constraint.expression, constraint.parent_columns
    if expression is not None and constraint.kind is ConstraintKind.CHECK:
        expression = _renamed_in(expression, table.name, names)
    if constraint.parent == table.full_name:
        parent_columns = tuple(names.get(c, c) for c in parent_columns)
    columns = tuple(names.get(c, c) for c in constraint.columns)
    return replace(constraint, columns=columns, expression=expression, parent_columns=parent_columns)


def _renamed_in(condition: str, table: str, names: Mapping[str, str]) -> str:
    """A condition with renamed columns. A name after a dot is a struct field, unless the table name precedes it; one
    before a parenthesis is a function."""
    tokens = tokenize(condition)
    parts, done = [], 0
    for i, token in enumerate(tokens):
        new = names.get(token.name.lower()) if token.is_name else None
        if new is None or tokens[i + 1].word == "(":
            continue
        if i > 1 and tokens[i - 1].word == "." and not (tokens[i - 2].is_name and tokens[i - 2].name.lower() == table):
            continue
        parts += [condition[done : token.start], quote(new)]
        done = token.end
    return "".join([*parts, condition[done:]])
