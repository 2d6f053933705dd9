"""ALTER TABLE: the properties and the columns of an ACID table."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands.columns import check_names, declared_columns
from acidsql.commands.create import VALID_WRITE_IDS
from acidsql.commands.environment import Environment
from acidsql.commands.places import at
from acidsql.commands.transaction import write_transaction
from acidsql.errors import AcidError, AnalysisError, UnsupportedError
from acidsql.metastore.model import LockComponent, LockType, Table
from acidsql.sql.statements import AddColumns, Name, SetProperties, TableName, UnsetProperties

LAST_DDL = "transient_lastDdlTime"
COMMENT = "comment"
"""The property that is the table's comment, in Hive and in Spark."""

REFUSED_BY_HIVE = 40013
"""Hive's code for an ALTER TABLE that its metastore refuses."""


def set_properties(env: Environment, statement: SetProperties, parameters: Mapping[str, Any]) -> DataFrame:
    """SET TBLPROPERTIES.

    1. Check the properties: what makes a table an ACID table cannot be changed.
    2. Lock the table EXCL_WRITE: two such statements come one after the other, and readers of Hive do not matter.
       (Hive itself takes SHARED_READ here, and of two at once may lose one.)
    3. Take a write id, as Hive does, hand the table to the metastore with it, and commit.
    """
    if acid_table(env, statement.table) is None:
        return env.sql(statement.span.text, parameters)
    _alter(env, statement.table, LockType.EXCL_WRITE, lambda t: _with_properties(t, statement))
    return env.nothing()


def unset_properties(env: Environment, statement: UnsetProperties, parameters: Mapping[str, Any]) -> DataFrame:
    """UNSET TBLPROPERTIES: the phases of :func:`set_properties`, under Hive's EXCLUSIVE lock."""
    if acid_table(env, statement.table) is None:
        return env.sql(statement.span.text, parameters)
    _alter(env, statement.table, LockType.EXCLUSIVE, lambda t: _without_properties(t, statement))
    return env.nothing()


def add_columns(env: Environment, statement: AddColumns, parameters: Mapping[str, Any]) -> DataFrame:
    """ADD COLUMNS: new columns behind the data columns. Rows of files that were written before have NULL in them.

    1. Check names and types by the rules of CREATE TABLE; a new column is nullable and has no default.
    2. Lock the table EXCLUSIVE, as Hive does: whoever writes has ended, and whoever waits starts over.
    3. Take a write id, hand the table to the metastore with it, and commit.

    The columns are those of the table and of all its partitions, as with Hive's CASCADE.
    """
    if acid_table(env, statement.table) is None:
        return env.sql(statement.span.text, parameters)
    _alter(env, statement.table, LockType.EXCLUSIVE, lambda t: _with_columns(env, t, statement))
    return env.nothing()


def acid_table(env: Environment, name: TableName) -> Table | None:
    """The ACID table that an ALTER TABLE means; None where it means one of Spark's. Raises: TableNotFound."""
    table = env.find_table(name)
    if table is None and env.registered(name) is None and not env.known_to_spark(name):
        env.get_table(name)
    return table


def _alter(env: Environment, name: TableName, lock: LockType, change: Callable[[Table], Table]) -> None:
    """Change a table's description under a lock, starting from what it is by then. An error leaves it as it is."""
    table = env.get_table(name)
    change(table)  # a mistake in the statement opens no transaction
    with write_transaction(env, [LockComponent(lock, table.database, table.name)]) as txn:
        try:
            changed = change(env.metastore.get_table(table.database, table.name))
        except AcidError as e:
            raise at(name.span, e) from e
        write_id = txn.allocate_write_id(table)
        [write_ids] = env.metastore.get_valid_write_ids([table.full_name], txn.valid_txns)
        touched = {**changed.parameters, LAST_DDL: str(int(time.time()))}
        env.metastore.alter_table(replace(changed, parameters=touched), write_id=write_id, write_ids=write_ids)


# --- properties ------------------------------------------------------------------------------------------------------


def _with_properties(table: Table, statement: SetProperties) -> Table:
    given = {key.text.lower(): value for key, value in statement.properties}
    parameters, comment = dict(table.parameters), table.comment
    for key, value in statement.properties:
        if _is_kept(table, key, value, given):
            continue
        if key.text == COMMENT:
            comment = value
        else:
            parameters[key.text] = value
    return replace(table, parameters=parameters, comment=comment)


def _is_kept(table: Table, key: Name, value: str, given: Mapping[str, str]) -> bool:
    """Whether a property says what is so anyway.

    Raises:
        AnalysisError: When it says the contrary of what an ACID table is.
    """
    problem: str | None = None
    code = REFUSED_BY_HIVE
    name, wanted = key.text.lower(), value.lower()
    if name == "transactional":
        if wanted != "true" and "transactional_properties" not in given:
            problem, code = "Cannot change 'transactional' without 'transactional_properties'", 40000
        elif wanted != "true":
            problem = f"TBLPROPERTIES with 'transactional'='true' cannot be unset: {table.full_name}"
    elif name == "transactional_properties":
        if wanted != _property(table, name, "default").lower():
            problem = "TBLPROPERTIES with 'transactional_properties' cannot be altered after the table is created"
    elif name == "external":
        if wanted == "true":
            problem = f"{table.full_name} cannot be converted to external table as it is transactional table."
    elif name == "bucketing_version":
        if value != _property(table, name, "1"):
            problem = f"{key.text} cannot be changed: the rows of {table.full_name} are where the old one put them"
    elif name == VALID_WRITE_IDS:
        problem = f"{key.text} belongs to CREATE TABLE … LOCATION"
    elif name != LAST_DDL.lower():
        return False
    if problem is not None:
        message = problem if code != REFUSED_BY_HIVE else f"Unable to alter table. {problem}"
        raise at(key.span, AnalysisError(message, code=code, sqlstate="08S01"))
    return True


def _property(table: Table, name: str, default: str) -> str:
    return next((v for k, v in table.parameters.items() if k.lower() == name), default)


_FIXED = {
    "transactional": "TBLPROPERTIES with 'transactional'='true' cannot be unset",
    "transactional_properties": "TBLPROPERTIES with 'transactional_properties' cannot be altered after the table is"
    " created",
    "bucketing_version": "bucketing_version cannot be changed",
}


def _without_properties(table: Table, statement: UnsetProperties) -> Table:
    parameters, comment = dict(table.parameters), table.comment
    for key in statement.keys:
        problem = _FIXED.get(key.text.lower())
        if problem is not None:
            message = f"Unable to alter table. {problem}: {table.full_name}"
            raise at(key.span, AnalysisError(message, code=REFUSED_BY_HIVE, sqlstate="08S01"))
        is_there = comment is not None if key.text == COMMENT else key.text in parameters
        if not is_there and not statement.if_exists:
            raise at(
                key.span,
                AnalysisError(
                    f"The following property {key.text} does not exist in {table.name}",
                    code=10215,
                    hint="UNSET TBLPROPERTIES IF EXISTS (…) does not mind.",
                ),
            )
        if key.text == COMMENT:
            comment = None
        parameters.pop(key.text, None)
    return replace(table, parameters=parameters, comment=comment)


# --- columns ---------------------------------------------------------------------------------------------------------


def _with_columns(env: Environment, table: Table, statement: AddColumns) -> Table:
    for definition in statement.columns:
        name = definition.name.text.lower()
        if any(k.name == name for k in table.partition_keys):
            message = f"Partition column name {name} conflicts with table columns."
            raise at(definition.name.span, AnalysisError(message, code=40000, sqlstate="08S01"))
        if definition.not_null or definition.default is not None:
            what = "NOT NULL" if definition.not_null else "DEFAULT"
            message = f"A column that is added has NULL in the rows that are there: {what} comes in a later version"
            raise at(definition.name.span, UnsupportedError(message))
    check_names(statement.columns, [c.name for c in table.columns])
    return replace(table, columns=table.columns + declared_columns(env, statement.columns))
