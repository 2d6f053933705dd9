"""ALTER TABLE: the columns of an ACID table.

Files are not written anew, and a column is found in them by its position. So columns are renamed, retyped, and added at
the end; none changes its place, and none goes: what is added later would show its values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands.alter import REFUSED_BY_HIVE, acid_table, alter_table
from acidsql.commands.binding import Snapshot
from acidsql.commands.columns import check_names, declared_columns
from acidsql.commands.constraints import check_condition, check_default
from acidsql.commands.environment import Environment
from acidsql.commands.places import at
from acidsql.commands.transaction import WriteTransaction
from acidsql.commands.type_changes import Verdict, is_lenient, judge
from acidsql.errors import AcidError, AnalysisError, UnsupportedError
from acidsql.metastore.model import Column, LockType, Table
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

INVALID_COLUMN = 10002
CANNOT_REORDER = 10311
CANNOT_CHANGE_TYPE = 10312
CANNOT_DROP = 10313


def add_columns(env: Environment, statement: AddColumns, parameters: Mapping[str, Any]) -> DataFrame:
    """ADD COLUMNS: new columns behind the data columns. Rows of files that were written before have NULL in them.

    1. Check names and types by the rules of CREATE TABLE; a new column is nullable and has no default.
    2. Lock the table EXCLUSIVE, as Hive does: whoever writes has ended, and whoever waits starts over.
    3. Take a write id, hand the table to the metastore with it, and commit.

    The columns are those of the table and of all its partitions, as with Hive's CASCADE.
    """
    if acid_table(env, statement.table) is None:
        return env.sql(statement.span.text, parameters)
    alter_table(env, statement.table, LockType.EXCLUSIVE, lambda t: _with_columns(env, t, statement))
    return env.nothing()


def replace_columns(env: Environment, statement: ReplaceColumns, parameters: Mapping[str, Any]) -> DataFrame:
    """REPLACE COLUMNS: other names and types, by position, and new columns at the end (``AlterTableReplaceColumns…``).

    1. Check that no column goes, and names and types as for :func:`add_columns` and :func:`change_column`. NOT NULL,
       DEFAULT and CHECK stay with their positions.
    2. The phases of :func:`add_columns`.
    """
    if acid_table(env, statement.table) is None:
        return env.sql(statement.span.text, parameters)
    alter_table(env, statement.table, LockType.EXCLUSIVE, lambda t: _replaced(env, t, statement))
    return env.nothing()


def change_column(env: Environment, statement: ChangeColumn, parameters: Mapping[str, Any]) -> DataFrame:
    """CHANGE COLUMN, ALTER COLUMN and RENAME COLUMN (``AlterTableChangeColumnOperation``).

    1. Find the column; it is none of the partition keys, and no bucket column unless only its comment changes.
    2. Check the new name, and that the values which are there fit the new type. A CHECK condition that names the column
       names it by its new name then.
    3. Lock the table EXCLUSIVE; for SET NOT NULL look for rows that have NULL there.
    4. Take a write id, hand the table to the metastore with it, and commit.
    """
    if acid_table(env, statement.table) is None:
        return env.sql(statement.span.text, parameters)

    def check(txn: WriteTransaction, table: Table) -> None:
        if statement.not_null:
            _refuse_nulls(txn, table, statement.column)

    alter_table(env, statement.table, LockType.EXCLUSIVE, lambda t: _changed(env, t, statement), check)
    return env.nothing()


def drop_columns(env: Environment, statement: DropColumns, parameters: Mapping[str, Any]) -> DataFrame:
    """DROP COLUMN: refused where there is anything to drop, as Hive refuses it for ORC."""
    table = acid_table(env, statement.table)
    if table is None:
        return env.sql(statement.span.text, parameters)
    for name in statement.columns:
        if not any(c.name == name.text.lower() for c in table.all_columns):
            if not statement.if_exists:
                raise _unknown(name)
            continue
        raise at(name.span, _cannot_drop(table))
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
            message = f"A column that is added has NULL in the rows that are there: {what} comes in a later version"
            raise at(definition.name.span, UnsupportedError(message))


def _refuse_key_name(table: Table, name: Name) -> None:
    if any(k.name == name.text.lower() for k in table.partition_keys):
        message = f"Partition column name {name.text.lower()} conflicts with table columns."
        raise at(name.span, AnalysisError(message, code=40000, sqlstate="08S01"))


def _replaced(env: Environment, table: Table, statement: ReplaceColumns) -> Table:
    definitions = statement.columns
    if len(definitions) < len(table.columns):
        raise at(statement.table.span, _cannot_drop(table))
    _check_new(table, definitions)
    check_names(definitions)
    columns = list(declared_columns(env, definitions))
    for i, (old, definition) in enumerate(zip(table.columns, definitions, strict=False)):
        if (old.name, old.type) != (columns[i].name, columns[i].type):
            _refuse_bucket_column(table, old, definition.name.span)
            _check_type(env, table, old, columns[i], definition.type)
        columns[i] = replace(columns[i], default=old.default, not_null=old.not_null)
    return _with_checks(env, replace(table, columns=tuple(columns)), table, statement.table)


def _cannot_drop(table: Table) -> AnalysisError:
    return AnalysisError(
        f"Replacing columns cannot drop columns for table {table.full_name}. SerDe may be incompatible",
        code=CANNOT_DROP,
        hint="The files would keep its values, and a column added later would show them; leave it unused, or make a new"
        " table of a query.",
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
        raise at(span, AnalysisError(message, code=CANNOT_REORDER))
    new = _new_description(env, table, old, statement)
    if (new.name, new.type) != (old.name, old.type):
        _refuse_bucket_column(table, old, name.span)
    columns = tuple(new if c is old else c for c in table.columns)
    return _with_checks(env, replace(table, columns=columns), table, statement.table)


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
    if statement.not_null is not None:
        new = replace(new, not_null=statement.not_null)
    if statement.drop_default:
        new = replace(new, default=None)
    if statement.default is not None:
        check_default(env, statement.default, parse_type(new.type))
        new = replace(new, default=statement.default.text)
    if new.type != old.type:
        _check_type(env, table, old, new, statement.type or statement.column.span)
    return new


def _unknown(name: Name) -> AnalysisError:
    return at(name.span, AnalysisError(f"Invalid column reference {name.text}", code=INVALID_COLUMN))


def _refuse_bucket_column(table: Table, column: Column, span: Span) -> None:
    if column.name in table.bucket_columns:
        message = f"Table {table.full_name} is bucketed by {column.name}: its name and type cannot change"
        raise at(span, UnsupportedError(message, hint="The rows are where the hash of the old type put them."))


def _check_type(env: Environment, table: Table, old: Column, new: Column, span: Span) -> None:
    """Old files must read rightly. Raises: AnalysisError, as Hive's metastore (40013), or Hive 10312."""
    verdict = judge(parse_type(old.type), parse_type(new.type))
    strict = env.settings.value(DISALLOW_TYPE_CHANGES)
    if verdict in (Verdict.INCOMPATIBLE, Verdict.UNREADABLE) and strict:
        message = (
            "Unable to alter table. The following columns have types incompatible with the existing columns in their"
            f" respective positions :\n{new.name}"
        )
        hint = f"{old.type} cannot become {new.type}."
        raise at(span, AnalysisError(message, code=REFUSED_BY_HIVE, sqlstate="08S01", hint=hint))
    allowed = not strict and verdict is not Verdict.UNREADABLE and is_lenient(parse_type(new.type))
    if verdict is not Verdict.FINE and not allowed:
        message = (
            f"Changing from type {old.type} to {new.type} is not supported for column {old.name}."
            " SerDe may be incompatible"
        )
        hint = (
            f"Values that are there might not fit. SET {DISALLOW_TYPE_CHANGES.name}=false, if they may be read as NULL,"
            " or cut off."
        )
        raise at(span, AnalysisError(message, code=CANNOT_CHANGE_TYPE, hint=hint))
    if new.default is not None:
        check_default(env, _whole(new.default), parse_type(new.type))


def _declared(span: Span) -> HiveType:
    """The type that a text names. Raises: AnalysisError."""
    try:
        return parse_type(span.text)
    except AcidError as e:
        raise e.inside(span.source, span.start, span.end) from e


def _whole(text: str) -> Span:
    return Span(text, 0, len(text))


def _refuse_nulls(txn: WriteTransaction, table: Table, name: Name) -> None:
    """Raises: AnalysisError, where a row has NULL in a column that is to be NOT NULL."""
    metastore = txn.env.metastore
    partitions = metastore.list_partitions(table.database, table.name) if table.partition_keys else None
    rows = snapshot_frame(txn.env.spark, Snapshot(txn.env, txn.valid_txns).of(table, partitions))
    column = name.text.lower()
    if rows.filter(f"{quote(column)} IS NULL").limit(1).collect():
        message = f"Column {column} of {table.full_name} cannot become NOT NULL: there are rows that have NULL in it"
        raise at(name.span, AnalysisError(message))


# --- CHECK -----------------------------------------------------------------------------------------------------------


def _with_checks(env: Environment, table: Table, old: Table, name: TableName) -> Table:
    """The table with the CHECK conditions of the old one, over the columns as they are called now.

    Raises:
        AnalysisError: When a condition is none any longer for a new type. Spark's own errors pass through.
    """
    pairs = [(a, b) for a, b in zip(old.columns, table.columns, strict=False) if (a.name, a.type) != (b.name, b.type)]
    if not old.checks or not pairs:
        return table
    names = {a.name: b.name for a, b in pairs if a.name != b.name}
    checks = tuple(_renamed_in(condition, table.name, names) for condition in old.checks)
    for condition in checks:
        check_condition(env, _whole(condition), name, table.columns)
    return replace(table, checks=checks)


def _renamed_in(condition: str, table: str, names: Mapping[str, str]) -> str:
    """A condition with other names for columns. A name behind a dot is a struct's field, unless the table is before it;
    one before a bracket is a function's."""
    tokens = tokenize(condition)
    made, done = [], 0
    for i, token in enumerate(tokens):
        new = names.get(token.name.lower()) if token.is_name else None
        if new is None or tokens[i + 1].word == "(":
            continue
        if i > 1 and tokens[i - 1].word == "." and not (tokens[i - 2].is_name and tokens[i - 2].name.lower() == table):
            continue
        made += [condition[done : token.start], quote(new)]
        done = token.end
    return "".join([*made, condition[done:]])
