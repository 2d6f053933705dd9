"""CREATE and DROP of databases and tables, and MSCK REPAIR TABLE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from acidsql import fs
from acidsql.commands.ddl.create_as import create_table_as
from acidsql.commands.ddl.create_table import CreateTableCommand
from acidsql.commands.ddl.created_directory import created_directories, remove_empty
from acidsql.commands.ddl.import_directory import find_partitions
from acidsql.commands.ddl.partitions import add_with_rows, already_exists
from acidsql.commands.ddl.table_kind import is_ours
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.query import with_query
from acidsql.commands.resolve.names import SPARK_CATALOG
from acidsql.commands.transaction.run import write_transaction
from acidsql.compactor.dropped import free_place, free_places, remove_dropped
from acidsql.compactor.rename_journal import finish_moves
from acidsql.errors import AcidError, AlreadyExists, AnalysisError
from acidsql.format.foreign import DirectorySummary, directory_summary
from acidsql.metastore.model import DEFAULT_DATABASE, Database, LockComponent, LockType, Operation, Partition, Table
from acidsql.partition_names import check_database_name
from acidsql.plan.snapshot import new_partition, partition_names
from acidsql.settings import DROP_IGNORES
from acidsql.sql.statements import (
    CreateDatabase,
    CreateTable,
    DropDatabase,
    DropTable,
    RepairTable,
)
from acidsql.valid_ids import ValidWriteIdList


def create_database(env: Environment, statement: CreateDatabase, parameters: Mapping[str, Any]) -> DataFrame:
    """CREATE DATABASE: its directory is ``<warehouse>/<name>.db`` unless LOCATION is given."""
    name = statement.name.text.lower()
    try:
        check_database_name(name)
    except AcidError as e:
        raise with_location(statement.name.span, e) from e
    location = fs.qualify(statement.location) if statement.location else fs.join(env.warehouse, f"{name}.db")
    path = fs.resolve(location)[1]
    if name in env.metastore.list_databases():
        if statement.if_not_exists:
            return env.nothing()
        raise with_location(statement.name.span, AlreadyExists(f"Database {name} already exists"))
    # a metastore that creates the directory itself refuses an existing one
    made = [] if env.metastore.capabilities.owns_directories else [path]
    try:
        free_places(env.metastore, made)
        with created_directories(env.metastore, made):
            env.metastore.create_database(Database(name, path, statement.comment, dict(statement.properties)))
    except AlreadyExists as e:
        raise with_location(statement.name.span, e) from e
    return env.nothing()


def drop_database(env: Environment, statement: DropDatabase, parameters: Mapping[str, Any]) -> DataFrame:
    """DROP DATABASE [CASCADE].

    1. Lock the database EXCLUSIVE, and list its tables.
    2. Drop its tables (CASCADE; otherwise it must be empty), then the database.
    3. Remove the directories of its ACID tables (:mod:`acidsql.compactor.dropped`), and its own if it is empty. A Hive
       Metastore removes the files that it manages itself.
    """
    name = statement.name.text.lower()
    if name not in env.metastore.list_databases() and statement.if_exists:
        return env.nothing()
    env.require_database(name)
    with write_transaction(env, [LockComponent(LockType.EXCLUSIVE, name)]):
        if name not in env.metastore.list_databases() and statement.if_exists:
            return env.nothing()
        database = env.metastore.get_database(name)
        remove_dropped(env.metastore)  # first of all the table of a killed CREATE TABLE … AS, which nobody sees
        for table in env.metastore.list_tables(name) if statement.cascade else ():
            finish_moves(env.metastore, env.metastore.get_table(name, table))
            env.metastore.drop_table(name, table)
        try:
            env.metastore.drop_database(name)
        except AcidError as e:
            raise with_location(statement.name.span, e) from e
        remove_dropped(env.metastore)
        remove_empty(env.metastore, fs.resolve(database.location)[1])
    if env.database == name:
        env.use(DEFAULT_DATABASE)
    return env.nothing()


def create_table(env: Environment, statement: CreateTable, parameters: Mapping[str, Any]) -> DataFrame:
    """CREATE TABLE; Spark runs it for tables that are not transactional (the AS query may read ACID tables).

    Raises:
        AlreadyExists: When a Spark table would get the name of an ACID table or view, which would shadow it.
    """
    if is_ours(env, statement):
        if statement.query is not None:
            return create_table_as(env, statement, parameters)
        CreateTableCommand(env, statement).run()
        return env.nothing()
    name = statement.table
    is_in_catalog = (name.catalog or SPARK_CATALOG).lower() == SPARK_CATALOG
    existing = env.metastore.find_table(env.database_of(name), name.table.lower()) if is_in_catalog else None
    if existing is not None:
        if statement.if_not_exists:
            return env.nothing()
        raise with_location(name.span, AlreadyExists(f"Table {existing.full_name} already exists"))
    if statement.query is None:
        return env.sql(statement.span.text, parameters)
    return with_query(env, statement.span, statement.query, parameters)


def drop_table(env: Environment, statement: DropTable, parameters: Mapping[str, Any]) -> DataFrame:
    """DROP TABLE.

    1. Lock the table EXCLUSIVE: readers' plans keep their files until then, writers have finished. The table that has
       the name once the lock is granted is dropped, at its current location.
    2. Remove it from the metastore, which records its directory in the same step: from now on it is dropped.
    3. Remove its directory (the table is managed, as in Hive; :mod:`acidsql.compactor.dropped`). A Hive Metastore has
       already removed it.
    """
    table = env.find_table(statement.table)
    if table is None:
        if not _is_registered_view(env, statement) and env.known_to_spark(statement.table):
            return env.sql(statement.span.text, parameters)
        return _nothing_to_drop(env, statement)
    lock = LockComponent(LockType.EXCLUSIVE, table.database, table.name, None, Operation.NO_TXN)
    with write_transaction(env, [lock]):
        table = env.find_table(statement.table)
        if table is None:
            return _nothing_to_drop(env, statement)
        env.metastore.drop_table(table.database, table.name)
        remove_dropped(env.metastore)
    return env.nothing()


def _nothing_to_drop(env: Environment, statement: DropTable) -> DataFrame:
    """The result if the table does not exist. Raises: TableNotFound; AnalysisError for a view."""
    if _is_registered_view(env, statement):
        error = AnalysisError("Cannot drop a view with DROP TABLE", sqlstate="08S01")
        raise with_location(statement.table.span, error)
    if not statement.if_exists and not env.settings.value(DROP_IGNORES):
        env.get_table(statement.table)
    return env.nothing()


def _is_registered_view(env: Environment, statement: DropTable) -> bool:
    view = env.registered(statement.table)
    return view is not None and view.is_view


def repair_table(env: Environment, statement: RepairTable, parameters: Mapping[str, Any]) -> DataFrame:
    """MSCK REPAIR TABLE: register existing partition directories that the metastore does not have.

    1. Lock the table SHARED_READ; remove the remains of dropped partitions.
    2. Find the directories, and the highest write id in each.
    3. Refuse a directory with write ids that the table never allocated: its rows would become visible gradually, as
       others write to the table. If the table has allocated none, these are its first ones, and the next write id is
       above them. (Hive's ``Msck.validateAndAddMaxTxnIdAndWriteId`` does the same.)
    4. Register the partitions, commit. One that is registered, and that nobody has committed, is this statement's from
       now on, too; at another place it is an error.
    """
    if env.find_table(statement.table) is None and env.known_to_spark(statement.table):
        return env.sql(statement.span.text, parameters)
    table = env.get_table(statement.table)
    if not table.partition_keys:
        raise with_location(
            statement.table.span, AnalysisError(f"Table {table.full_name} is not partitioned", code=10241)
        )
    with write_transaction(env, [LockComponent(LockType.SHARED_READ, table.database, table.name)]) as txn:
        txn.revalidate(table)
        free_place(env.metastore, table.location)
        registered = env.metastore.list_partitions(table.database, table.name)
        known = {p.values for p in registered if p.exists}
        uncommitted = {p.values: p for p in registered if not p.exists}
        on_disk = [new_partition(table, name) for name in find_partitions(table)]
        missing = [p for p in on_disk if p.values not in known]
        held = [(p, directory_summary(*fs.resolve(p.location))) for p in missing]
        try:
            for partition in missing:
                found = uncommitted.get(partition.values)
                if found is not None and fs.absolute(found.location) != fs.absolute(partition.location):
                    raise already_exists(partition_names(table, partition), found)
            _check_write_ids(env, table, held)
            add_with_rows(txn, table, missing)
        except AcidError as e:
            raise with_location(statement.table.span, e) from e
        txn.invalidate_caches(table)
    return env.nothing()


def _check_write_ids(env: Environment, table: Table, held: Sequence[tuple[Partition, DirectorySummary]]) -> None:
    """See :func:`repair_table`. The directories were listed before, so that the ids of later writers do not matter.

    Raises:
        AnalysisError: When a directory has write ids or a compaction's transaction that cannot be of this table.
    """
    txns = env.metastore.get_valid_txns()
    [seen] = env.metastore.get_valid_write_ids([table.full_name], txns)
    for partition, summary in held:
        what, id, highest = "transaction", summary.max_visibility_txn, txns.high_watermark
        if summary.max_write_id > seen.high_watermark > 0:
            what, id, highest = "write id", summary.max_write_id, seen.high_watermark
        if id > highest:
            raise AnalysisError(
                f"Directory {partition.location} does not belong to {table.full_name}: it has {what} {id}, but"
                f" the highest one allocated is {highest}",
                hint="CREATE TABLE … LOCATION registers a directory with its files; INSERT … SELECT copies its rows.",
            )
    first = max((summary.max_write_id for _, summary in held), default=0)
    if first and not seen.high_watermark:
        env.metastore.seed_write_id(ValidWriteIdList(table.full_name, first))
