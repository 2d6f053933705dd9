"""CREATE and DROP of databases and tables, and taking in the partitions of a directory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from acidsql import fs
from acidsql.commands.columns import check_names, declared_columns
from acidsql.commands.environment import Environment
from acidsql.commands.places import at
from acidsql.commands.query import with_sources
from acidsql.commands.transaction import write_transaction
from acidsql.errors import (
    AcidError,
    AlreadyExists,
    AnalysisError,
    InvalidValue,
    UnsupportedError,
)
from acidsql.format.directory import directory_summary
from acidsql.format.names import is_hidden, parse_directory
from acidsql.format.orc import read_footer
from acidsql.metastore.model import (
    DEFAULT_DATABASE,
    Column,
    Database,
    LockComponent,
    LockType,
    Operation,
    Table,
)
from acidsql.partition_names import parse_partition_name
from acidsql.plan.snapshot import new_partition
from acidsql.sql.statements import (
    CreateDatabase,
    CreateTable,
    DropDatabase,
    DropTable,
    RepairTable,
)
from acidsql.types import Array, HiveType, Map, Struct, parse_type, to_hive
from acidsql.valid_ids import ValidWriteIdList

VALID_WRITE_IDS = "acidsql.valid.write.ids"
"""Table property of CREATE TABLE … LOCATION: Hive's ``ValidReaderWriteIdList`` text for a directory that holds aborted
or open write ids; without it every directory there counts as committed."""


def create_database(env: Environment, statement: CreateDatabase, parameters: Mapping[str, Any]) -> DataFrame:
    """CREATE DATABASE: its directory is ``<warehouse>/<name>.db`` unless LOCATION says otherwise."""
    name = statement.name.text.lower()
    location = fs.qualify(statement.location) if statement.location else fs.join(env.warehouse, f"{name}.db")
    filesystem, path = fs.resolve(location)
    if name in env.metastore.list_databases():
        if statement.if_not_exists:
            return env.nothing()
        raise at(statement.name.span, AlreadyExists(f"Database {name} already exists"))
    env.metastore.create_database(Database(name, path, statement.comment, dict(statement.properties)))
    try:
        filesystem.mkdirs(path)  # a Hive Metastore has made it, and takes none that is there before it
    except AcidError:
        env.metastore.drop_database(name)
        raise
    return env.nothing()


def drop_database(env: Environment, statement: DropDatabase, parameters: Mapping[str, Any]) -> DataFrame:
    """DROP DATABASE [CASCADE].

    1. Lock the database EXCLUSIVE.
    2. Drop its tables (CASCADE), then the database; it must be empty otherwise.
    3. Remove the directories of its ACID tables, and its own where that is empty. The files of all other tables are not
       ours: a Hive Metastore itself removes those that it manages.
    """
    name = statement.name.text.lower()
    if name not in env.metastore.list_databases():
        if statement.if_exists:
            return env.nothing()
        env.require_database(name)
    database = env.metastore.get_database(name)
    with write_transaction(env, [LockComponent(LockType.EXCLUSIVE, name)]):
        tables = (
            [env.metastore.get_table(name, t) for t in env.metastore.list_tables(name)] if statement.cascade else []
        )
        for table in tables:
            env.metastore.drop_table(name, table.name)
        try:
            env.metastore.drop_database(name)
        except AcidError as e:
            raise at(statement.name.span, e) from e
    for table in tables:
        if table.is_transactional:
            _remove(table.location)
    filesystem, path = fs.resolve(database.location)
    filesystem.delete_if_empty(path)
    if env.database == name:
        env.database = DEFAULT_DATABASE
    return env.nothing()


def is_ours(statement: CreateTable) -> bool:
    """Whether CREATE TABLE makes an ACID table; every other one is Spark's."""
    named = {k.lower(): v for k, v in statement.properties.items()}
    return statement.transactional or named.get("transactional", "").lower() == "true"


class CreateTableCommand:
    """CREATE TABLE of an ACID table.

    1. Check the declaration by Hive's rules for transactional tables.
    2. Make the directory, or look at the one that LOCATION names.
    3. Register the table under a SHARED_READ lock of its database; a directory that is taken in also starts the table's
       write ids above those in its names, and registers the partitions that are there.
    """

    def __init__(self, env: Environment, statement: CreateTable) -> None:
        self.env = env
        self.statement = statement
        self.database = env.database_of(statement.table)
        self.name = statement.table.table.lower()
        self.full_name = f"{self.database}.{self.name}"

    def run(self) -> None:
        """All phases."""
        env, statement = self.env, self.statement
        try:
            home = env.metastore.get_database(self.database)
        except AcidError as e:
            raise self._fail(e) from e
        if env.metastore.find_table(self.database, self.name) is not None:
            if statement.if_not_exists:
                return
            raise self._fail(AlreadyExists(f"Table {self.full_name} already exists"))
        self._check_kind()
        location = fs.qualify(statement.location) if statement.location else fs.join(home.location, self.name)
        filesystem, path = fs.resolve(location)
        table = self._table(path)
        there = bool(filesystem.list(path))
        if there and statement.location is None:
            raise self._fail(
                AlreadyExists(
                    f"Directory {path} of the new table is there already and not empty",
                    hint=f"Take it in with LOCATION '{path}', or remove it.",
                )
            )
        adopted = _Adopted(table, self._property(VALID_WRITE_IDS)) if there else None
        made = not filesystem.exists(path)
        filesystem.mkdirs(path)
        try:
            with write_transaction(env, [LockComponent(LockType.SHARED_READ, self.database)]):
                env.metastore.create_table(table, holds_rows=adopted is not None)
        except AcidError as e:
            if made:
                filesystem.delete_if_empty(path)
            raise self._fail(e) from e
        if adopted is not None:
            self._adopt(table, adopted)

    def _adopt(self, table: Table, adopted: _Adopted) -> None:
        try:
            adopted.register(self.env)
        except BaseException:
            self.env.metastore.drop_table(table.database, table.name, keep_files=True)
            raise

    def _check_kind(self) -> None:
        s = self.statement
        named = {k.lower(): v.lower() for k, v in s.properties.items()}
        problem: AcidError | None = None
        if s.external:
            problem = AnalysisError(
                f"{self.full_name} cannot be declared transactional because it's an external table", sqlstate="08S01"
            )
        elif (s.stored_as or s.using or "orc").lower() != "orc":
            problem = AnalysisError(
                f"The table must be stored using an ACID compliant format (such as ORC): {self.full_name}",
                sqlstate="08S01",
            )
        elif s.sorted_by:
            problem = AnalysisError(
                f"Table {self.full_name} cannot support full ACID functionality since it is sorted.", sqlstate="08S01"
            )
        elif named.get("transactional") == "false":
            problem = AnalysisError(f"Table {self.full_name} is declared TRANSACTIONAL and transactional=false at once")
        elif named.get("transactional_properties", "default") == "insert_only":
            problem = UnsupportedError("Insert-only transactional tables come in a later version")
        elif named.get("transactional_properties", "default") != "default":
            problem = InvalidValue("transactional_properties is 'default' for a full-ACID table")
        elif s.clustered_by:
            problem = UnsupportedError("Bucketed tables (CLUSTERED BY) come in a later version")
        elif s.query is not None:
            problem = UnsupportedError("CREATE TABLE AS SELECT of an ACID table comes in a later version")
        elif not s.columns:
            problem = AnalysisError(f"Table {self.full_name} has no columns")
        if problem is not None:
            raise self._fail(problem)

    def _table(self, path: str) -> Table:
        statement = self.statement
        columns = declared_columns(self.env, statement.columns)
        keys = declared_columns(self.env, statement.partition_keys)
        check_names([*statement.columns, *statement.partition_keys])
        for definition in statement.partition_keys:
            if not _is_key_type(parse_type(definition.type.text)):
                raise at(definition.type, AnalysisError(f"A partition key cannot be of type {definition.type.text}"))
        parameters = {
            **{k: v for k, v in statement.properties.items() if k.lower() != VALID_WRITE_IDS},
            "transactional": "true",
            "transactional_properties": "default",
            "bucketing_version": statement.properties.get("bucketing_version", "2"),
            "transient_lastDdlTime": str(int(time.time())),
        }
        return Table(
            self.database,
            self.name,
            path,
            columns,
            keys,
            parameters,
            statement.comment,
            owner=self.env.user,
            created_at=int(time.time()),
        )

    def _property(self, name: str) -> str | None:
        return next((v for k, v in self.statement.properties.items() if k.lower() == name), None)

    def _fail(self, error: AcidError) -> AcidError:
        return at(self.statement.table.span, error)


def _is_key_type(type: HiveType) -> bool:
    return not isinstance(type, Array | Map | Struct) and to_hive(type) != "binary"


class _Adopted:
    """A directory with data that a new table takes in."""

    def __init__(self, table: Table, valid_write_ids: str | None) -> None:
        self.table = table
        self.given = ValidWriteIdList.from_text(valid_write_ids) if valid_write_ids else None
        self.partitions = list(find_partitions(table))
        filesystem, root = fs.resolve(table.location)
        paths = [fs.join(root, p) for p in self.partitions] if table.partition_keys else [root]
        self.max_write_id = self.max_txn = 0
        for path in paths:
            write_id, txn = directory_summary(filesystem, path)
            self.max_write_id, self.max_txn = max(self.max_write_id, write_id), max(self.max_txn, txn)
            self._check_files(filesystem, path)

    def _check_files(self, filesystem: fs.FileSystem, path: str) -> None:
        """One file of each directory must be ORC: better an error now than at the first query."""
        for directory in filesystem.list(path):
            if directory.is_dir and parse_directory(directory.name) is not None:
                first = next((f for f in filesystem.list(directory.path) if not is_hidden(f.name)), None)
                if first is not None and not first.is_dir and first.length:
                    read_footer(filesystem, first.path)

    def register(self, env: Environment) -> None:
        """Start write ids and transaction ids above those in the names, and register the partitions."""
        table = self.table
        if self.max_txn:
            env.metastore.seed_txn_id(self.max_txn)
        valid = ValidWriteIdList(table.full_name, self.max_write_id)
        if self.given is not None:
            high = max(self.given.high_watermark, self.max_write_id)
            beyond = tuple(range(self.given.high_watermark + 1, high + 1))  # on disk, but not in the given snapshot
            valid = ValidWriteIdList(table.full_name, high, self.given.open_ids, self.given.aborted_ids + beyond)
        if valid.high_watermark > 0:
            env.metastore.seed_write_id(valid)
        env.metastore.add_partitions([new_partition(table, name) for name in self.partitions], holds_rows=True)


def find_partitions(table: Table) -> Iterator[str]:
    """Names of the partition directories below a table, at the depth and with the key names that it declares."""
    if not table.partition_keys:
        return
    filesystem, root = fs.resolve(table.location)

    def walk(path: str, above: list[str], keys: Sequence[Column]) -> Iterator[str]:
        if not keys:
            yield "/".join(above)
            return
        for entry in filesystem.list(path):
            if not entry.is_dir or is_hidden(entry.name) or "=" not in entry.name:
                continue
            [(key, _)] = parse_partition_name(entry.name)
            if key.lower() == keys[0].name:
                yield from walk(entry.path, [*above, entry.name], keys[1:])

    yield from walk(root, [], table.partition_keys)


def create_table(env: Environment, statement: CreateTable, parameters: Mapping[str, Any]) -> DataFrame:
    """CREATE TABLE: ours when it is transactional, Spark's otherwise (its AS query may read ACID tables)."""
    if is_ours(statement):
        CreateTableCommand(env, statement).run()
        return env.nothing()
    if statement.query is None:
        return env.sql(statement.span.text, parameters)
    query = statement.query
    head, tail = query.source[statement.span.start : query.start], query.source[query.end : statement.span.end]
    return with_sources(env, query, parameters, head=head, tail=tail)


def drop_table(env: Environment, statement: DropTable, parameters: Mapping[str, Any]) -> DataFrame:
    """DROP TABLE.

    1. Lock the table EXCLUSIVE: readers' plans keep their files until then, writers are done.
    2. Forget it in the metastore: from now on it is gone.
    3. Remove its directory (the table is managed, as in Hive).
    """
    table = env.find_table(statement.table)
    if table is None:
        if statement.if_exists or env.known_to_spark(statement.table):
            return env.sql(statement.span.text, parameters)
        table = env.get_table(statement.table)
    with write_transaction(
        env, [LockComponent(LockType.EXCLUSIVE, table.database, table.name, None, Operation.NO_TXN)]
    ):
        env.metastore.drop_table(table.database, table.name)
    _remove(table.location)
    return env.nothing()


def repair_table(env: Environment, statement: RepairTable, parameters: Mapping[str, Any]) -> DataFrame:
    """MSCK REPAIR TABLE: register the partition directories that are there and not known."""
    table = env.get_table(statement.table)
    if not table.partition_keys:
        raise at(statement.table.span, AnalysisError(f"Table {table.full_name} is not partitioned", code=10241))
    known = {p.values for p in env.metastore.list_partitions(table.database, table.name)}
    found = [new_partition(table, name) for name in find_partitions(table)]
    missing = [p for p in found if p.values not in known]
    with write_transaction(env, [LockComponent(LockType.SHARED_READ, table.database, table.name)]):
        env.metastore.add_partitions(missing, holds_rows=True)
    return env.nothing()


def _remove(location: str) -> None:
    if not location:
        return
    filesystem, path = fs.resolve(location)
    filesystem.delete(path)
