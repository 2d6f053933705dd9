"""ALTER TABLE: the common steps, table properties, and conversion of a plain table to an ACID table."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands.ddl.table_kind import VALID_WRITE_IDS
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.transaction.run import write_transaction
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.errors import AcidError, AnalysisError, UnsupportedError
from acidsql.metastore.model import (
    BUCKETING_VERSION,
    COMMENT,
    INSERT_ONLY,
    LAST_DDL,
    MANAGED_TABLE,
    TRANSACTIONAL,
    TRANSACTIONAL_PROPERTIES,
    LockComponent,
    LockType,
    Table,
)
from acidsql.sql.statements import Name, SetProperties, TableName, UnsetProperties

REFUSED_BY_HIVE = 40013
"""Hive's code for an ALTER TABLE that its metastore refuses."""


def set_properties(env: Environment, statement: SetProperties, parameters: Mapping[str, Any]) -> DataFrame:
    """SET TBLPROPERTIES.

    1. Check the properties: those that make a table an ACID table cannot be changed.
    2. Lock the table EXCL_WRITE, which serialises such statements but does not block Hive's readers. (Hive itself takes
       SHARED_READ here, and may lose one of two concurrent changes.)
    3. Allocate a write id, as Hive does, store the table in the metastore with it, and commit.
    """
    if acid_table(env, statement.table) is not None:
        alter_table(env, statement.table, LockType.EXCL_WRITE, lambda t: _with_properties(t, statement))
    elif _makes_transactional(statement):
        convert(env, statement)
    else:
        return env.sql(statement.span.text, parameters)
    return env.nothing()


def unset_properties(env: Environment, statement: UnsetProperties, parameters: Mapping[str, Any]) -> DataFrame:
    """UNSET TBLPROPERTIES: the phases of :func:`set_properties`, under Hive's EXCLUSIVE lock."""
    if acid_table(env, statement.table) is None:
        return env.sql(statement.span.text, parameters)
    alter_table(env, statement.table, LockType.EXCLUSIVE, lambda t: _without_properties(t, statement))
    return env.nothing()


def acid_table(env: Environment, name: TableName) -> Table | None:
    """The ACID table of an ALTER TABLE; None for a Spark table. Raises: TableNotFound."""
    table = env.find_table(name)
    if table is None and env.registered(name) is None and not env.known_to_spark(name):
        env.get_table(name)
    return table


def alter_table(
    env: Environment,
    name: TableName,
    lock: LockType,
    change: Callable[[Table], Table],
    check: Callable[[WriteTransaction, Table], None] | None = None,
) -> None:
    """Change a table under a lock, starting from its current description. An error leaves it unchanged.

    Args:
        env: The environment.
        name: The table.
        lock: The lock.
        change: Returns the new description for an old one; raises if the change is not allowed.
        check: Checks the table's rows once it is locked; raises if they do not fit.
    """
    table = env.get_table(name)
    change(table)  # an invalid statement opens no transaction
    with write_transaction(env, [LockComponent(lock, table.database, table.name)]) as txn:
        try:
            table = env.get_table(name)
            changed = change(table)
        except AcidError as e:
            raise with_location(name.span, e) from e
        if check is not None:
            check(txn, table)
        write_id = txn.allocate_write_id(table)
        write_ids = txn.valid_write_ids(table)
        env.metastore.alter_table(with_ddl_time(changed), write_id=write_id, write_ids=write_ids)


def with_ddl_time(table: Table) -> Table:
    """The table with the current time as its last DDL time."""
    return replace(table, parameters={**table.parameters, LAST_DDL: str(int(time.time()))})


# --- SET TBLPROPERTIES ('transactional' = 'true') --------------------------------------------------------------------


def _makes_transactional(statement: SetProperties) -> bool:
    return any(k.text.lower() == TRANSACTIONAL and v.lower() == "true" for k, v in statement.properties)


def convert(env: Environment, statement: SetProperties) -> None:
    """Convert a managed ORC table of a Hive Metastore to an ACID table. Its files are not changed.

    1. Refuse tables outside a Hive Metastore: the catalog of Spark's own tables has no transactions.
    2. Lock the table EXCLUSIVE, as Hive does for a conversion.
    3. Store the table in the metastore with its new properties; the metastore checks the kind of table, its format and
       its file names, and starts the write ids above those reserved for existing rows
       (``TransactionalValidationListener``, ``seedWriteIdOnAcidConversion``).
    """
    span, table = statement.table.span, env.registered(statement.table)
    if table is None or table.is_view:
        message = f"{statement.table.table} is a Spark table: it cannot be converted to an ACID table in place"
        hint = "CREATE TRANSACTIONAL TABLE … LOCATION registers a directory of ORC files without changing them."
        raise with_location(span, UnsupportedError(message, hint=hint))
    given = {k.text.lower(): v for k, v in statement.properties}
    if given.get(TRANSACTIONAL_PROPERTIES, "default").lower() == INSERT_ONLY:
        message = "A table with files cannot become insert-only: they would have to be moved into a delta"
        hint = "Create a new table, and INSERT … SELECT * FROM the old one."
        raise with_location(span, UnsupportedError(message, hint=hint))
    is_managed = given.get("external", "").lower() == "false"
    properties = {"EXTERNAL" if k.text.upper() == "EXTERNAL" else k.text: v for k, v in statement.properties}
    with write_transaction(env, [LockComponent(LockType.EXCLUSIVE, table.database, table.name)]):
        now = env.metastore.get_table(table.database, table.name)
        left = {k: v for k, v in now.parameters.items() if k.upper() != "EXTERNAL" or not is_managed}
        converted = replace(
            now,
            parameters={**left, **properties},
            table_type=MANAGED_TABLE if is_managed else now.table_type,
        )
        try:
            env.metastore.alter_table(with_ddl_time(converted))
        except AcidError as e:
            raise with_location(span, e) from e


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
    """Whether a property has its current value already.

    Raises:
        AnalysisError: When it contradicts the properties of an ACID table.
    """
    problem: str | None = None
    code = REFUSED_BY_HIVE
    name, wanted = key.text.lower(), value.lower()
    if name == TRANSACTIONAL:
        if wanted != "true" and TRANSACTIONAL_PROPERTIES not in given:
            problem, code = "Cannot change 'transactional' without 'transactional_properties'", 40000
        elif wanted != "true":
            problem = f"TBLPROPERTIES with 'transactional'='true' cannot be unset: {table.full_name}"
    elif name == TRANSACTIONAL_PROPERTIES:
        if wanted != _property(table, name, "default").lower():
            problem = "TBLPROPERTIES with 'transactional_properties' cannot be altered after the table is created"
    elif name == "external":
        if wanted == "true":
            problem = f"{table.full_name} cannot be converted to external table as it is transactional table."
    elif name == BUCKETING_VERSION:
        if value != _property(table, name, "1"):
            problem = f"{key.text} cannot be changed: the rows of {table.full_name} are stored by the old value"
    elif name == VALID_WRITE_IDS:
        problem = f"{key.text} is only allowed in CREATE TABLE … LOCATION"
    elif name != LAST_DDL.lower():
        return False
    if problem is not None:
        message = problem if code != REFUSED_BY_HIVE else f"Unable to alter table. {problem}"
        raise with_location(key.span, AnalysisError(message, code=code, sqlstate="08S01"))
    return True


def _property(table: Table, name: str, default: str) -> str:
    return next((v for k, v in table.parameters.items() if k.lower() == name), default)


_FIXED = {
    TRANSACTIONAL: "TBLPROPERTIES with 'transactional'='true' cannot be unset",
    TRANSACTIONAL_PROPERTIES: "TBLPROPERTIES with 'transactional_properties' cannot be altered after the table is"
    " created",
    BUCKETING_VERSION: "bucketing_version cannot be changed",
}


def _without_properties(table: Table, statement: UnsetProperties) -> Table:
    parameters, comment = dict(table.parameters), table.comment
    for key in statement.keys:
        problem = _FIXED.get(key.text.lower())
        if problem is not None:
            message = f"Unable to alter table. {problem}: {table.full_name}"
            raise with_location(key.span, AnalysisError(message, code=REFUSED_BY_HIVE, sqlstate="08S01"))
        is_there = comment is not None if key.text == COMMENT else key.text in parameters
        if not is_there and not statement.if_exists:
            raise with_location(
                key.span,
                AnalysisError(
                    f"The following property {key.text} does not exist in {table.name}",
                    code=10215,
                    hint="UNSET TBLPROPERTIES IF EXISTS (…) ignores missing properties.",
                ),
            )
        if key.text == COMMENT:
            comment = None
        parameters.pop(key.text, None)
    return replace(table, parameters=parameters, comment=comment)
