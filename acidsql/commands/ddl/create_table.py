"""CREATE TABLE of an ACID table, with declared columns, those of a query, or those of another table."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from acidsql import fs
from acidsql.commands.ddl.created_directory import created_directories
from acidsql.commands.ddl.import_directory import ImportedDirectory
from acidsql.commands.ddl.table_kind import (
    VALID_WRITE_IDS,
    bucket_columns,
    check_kind,
    made_like,
    property_of,
    table_parameters,
)
from acidsql.commands.dml.columns import check_names, declared_columns, warn_of_local_timestamps
from acidsql.commands.dml.constraints import with_constraints
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.transaction.locking import name_lock
from acidsql.commands.transaction.run import write_transaction
from acidsql.compactor.dropped import free_place
from acidsql.compactor.rename_journal import finish_all_moves
from acidsql.errors import AcidError, AlreadyExists, AnalysisError
from acidsql.format.names import is_staged
from acidsql.metastore.model import Column, LockComponent, LockType, Table
from acidsql.partition_names import check_table_name, table_directory
from acidsql.sql.statements import CreateTable
from acidsql.types import LOCAL_TIMESTAMP, Array, HiveType, Map, Struct, parse_type, to_hive


class CreateTableCommand:
    """CREATE TABLE of an ACID table.

    1. Check the declaration by Hive's rules for transactional tables.
    2. Lock the database SHARED_READ and the name EXCL_WRITE, and check again: the database may have been dropped and
       recreated elsewhere.
    3. Create the directory, or inspect the one that LOCATION names.
    4. Register the table. For an imported directory, also start the table's write ids above those in it and register
       its partitions: on the embedded store in the same step, on a Hive Metastore in a safe order
       (:meth:`~acidsql.metastore.protocol.Catalog.create_table`).

    Args:
        env: The session.
        statement: The statement. LIKE copies columns, keys, buckets, constraints and properties.
        columns: The data columns of CREATE TABLE … AS, which declares none (:func:`columns_of`).
        keys: Its partition keys.
    """

    def __init__(
        self,
        env: Environment,
        statement: CreateTable,
        columns: Sequence[Column] | None = None,
        keys: Sequence[Column] = (),
    ) -> None:
        self.env = env
        self.statement = statement
        self.database = env.database_of(statement.table)
        self.name = statement.table.table.lower()
        self.full_name = f"{self.database}.{self.name}"
        self._columns = columns
        self._keys = keys

    def run(self) -> Table | None:
        """All phases; the table, or None if it exists and IF NOT EXISTS is given."""
        if self.described() is None:  # an invalid statement opens no transaction
            return None
        locks = [LockComponent(LockType.SHARED_READ, self.database), name_lock(self.database, self.name)]
        with write_transaction(self.env, locks):
            new = self.prepare()
            if new is None:
                return None
            table, is_import = new
            self._register(table, is_import)
        warn_of_local_timestamps(table.columns)
        return table

    def _register(self, table: Table, is_import: bool) -> None:
        """Steps 3 and 4."""
        metastore = self.env.metastore
        valid_write_ids = property_of(self.statement.properties, VALID_WRITE_IDS)
        imported = ImportedDirectory(table, valid_write_ids) if is_import else None
        try:
            with created_directories(metastore, [table.location]):
                facts = None if imported is None else imported.facts()
                try:
                    metastore.create_table(table, holds_rows=is_import, imported=facts)
                except AlreadyExists:  # perhaps of a renamed table whose directory moved, which the journal still lists
                    if is_import or not finish_all_moves(metastore):
                        raise
                    metastore.create_table(table, holds_rows=is_import, imported=facts)
        except AcidError as e:
            raise self._fail(e) from e

    def prepare(self) -> tuple[Table, bool] | None:
        """The table to be created, and whether its directory already has files. Asked for under the lock on the name:
        the directory may be that of a statement that is creating a table of this name.

        None if the table exists and IF NOT EXISTS is given. Nothing is changed yet.
        """
        table = self.described()
        if table is None:
            return None
        free_place(self.env.metastore, table.location)
        # a killed or running statement has left at most a staging directory there
        filesystem, path = fs.resolve(table.location)
        has_files = any(not is_staged(entry.name) for entry in filesystem.list(path))
        if has_files and self.statement.location is None:
            raise self._fail(
                AlreadyExists(
                    f"Directory {path} of the new table already exists and is not empty",
                    hint=f"Register it with LOCATION '{path}', or remove it.",
                )
            )
        return table, has_files

    def described(self) -> Table | None:
        """The table to be created; None if it exists and IF NOT EXISTS is given."""
        env, statement = self.env, self.statement
        try:
            check_table_name(self.name)
            home = env.metastore.get_database(self.database)
        except AcidError as e:
            raise self._fail(e) from e
        if env.metastore.find_table(self.database, self.name) is not None:
            if statement.if_not_exists:
                return None
            raise self._fail(AlreadyExists(f"Table {self.full_name} already exists"))
        check_kind(statement, self.full_name)
        if statement.like is None and self._columns is None and not statement.columns:
            raise self._fail(AnalysisError(f"Table {self.full_name} has no columns"))
        usual = fs.join(home.location, table_directory(self.name))
        location = fs.qualify(statement.location) if statement.location else usual
        return self._table(fs.resolve(location)[1])

    def _table(self, path: str) -> Table:
        statement = self.statement
        table = self._declared() if statement.like is None else made_like(self.env, statement)
        comment = statement.comment if statement.comment is not None else table.comment
        return replace(
            table,
            database=self.database,
            name=self.name,
            location=path,
            comment=comment,
            parameters=table_parameters(statement.properties, table.parameters),
            owner=self.env.user,
            created_at=int(time.time()),
        )

    def _declared(self) -> Table:
        """A table with only the columns of the statement or its query."""
        env, s = self.env, self.statement
        if self._columns is not None:
            columns, keys = tuple(self._columns), tuple(self._keys)
            places = [s.query or s.table.span] * len(keys)
        else:
            check_names([*s.columns, *s.partition_keys])
            columns, keys = declared_columns(env, s.columns), declared_columns(env, s.partition_keys)
            places = [definition.type for definition in s.partition_keys]
        for place, key in zip(places, keys, strict=True):
            if not _is_key_type(parse_type(key.type)):
                raise with_location(place, AnalysisError(f"A partition key cannot be of type {key.type}"))
        table = Table(
            self.database,
            self.name,
            "",
            columns,
            keys,
            bucket_columns=bucket_columns(s, columns),
            num_buckets=-1 if s.num_buckets is None else s.num_buckets,
        )
        return with_constraints(env, table, s)

    def _fail(self, error: AcidError) -> AcidError:
        return with_location(self.statement.table.span, error)


def _is_key_type(type: HiveType) -> bool:
    return not isinstance(type, Array | Map | Struct) and to_hive(type) not in ("binary", LOCAL_TIMESTAMP)
