"""Databases, tables and partitions of a Hive Metastore."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from operator import methodcaller
from typing import Any

from hive_metastore import ttypes

from acidsql.errors import (
    AnalysisError,
    DatabaseNotFound,
    MetastoreError,
    PartitionNotFound,
    TableNotFound,
)
from acidsql.metastore.hive import constraints, translate
from acidsql.metastore.hive.client import CAPABILITIES, PROCESSOR, HiveClient
from acidsql.metastore.model import (
    DEFAULT_DATABASE,
    NUM_ROWS,
    TRANSACTIONAL,
    VIRTUAL_VIEW,
    Database,
    Partition,
    Table,
)
from acidsql.partition_names import check_database_name, check_table_name
from acidsql.valid_ids import ValidWriteIdList

ALL = -1
"""All partitions, in calls that take a number of them."""


def _counted(place: Any, holds_rows: bool) -> Any:
    """A new Thrift table or partition: its rows are counted from 0, unless there are rows that were never counted."""
    if not holds_rows:
        place.parameters = {NUM_ROWS: "0", **(place.parameters or {})}
    return place


class HiveCatalog(HiveClient):
    """:class:`~acidsql.metastore.protocol.Catalog` over Thrift."""

    # --- databases ---------------------------------------------------------------------------------------------------

    @cached_property
    def _warehouse(self) -> str:
        """Directory of managed tables of the database ``default``."""
        found = self._call(lambda c: c.get_database(DEFAULT_DATABASE), missing=DatabaseNotFound)
        managed = found.managedLocationUri
        if not managed and self._is_hive4:
            managed = self._config("hive.metastore.warehouse.dir")
        return translate.qualified(managed or found.locationUri)

    def create_database(self, database: Database) -> None:
        check_database_name(database.name)
        location = translate.qualified(database.location)
        usual = location == self._usual_location(database.name)
        made = ttypes.Database(
            name=database.name,
            description=database.comment,
            parameters=dict(database.parameters),
            ownerName=self._user,
            ownerType=ttypes.PrincipalType.USER,
            catalogName=translate.CATALOG,
            locationUri=None if usual or self._is_hive4 else location,
            managedLocationUri=None if usual or not self._is_hive4 else location,
        )
        self._require_owner()
        self._made_once(
            lambda c: c.create_database(made), lambda: self.get_database(database.name).location == location
        )

    def get_database(self, name: str) -> Database:
        found = self._call(
            lambda c: c.get_database(name), missing=DatabaseNotFound, name=f"Database does not exist: {name}"
        )
        return translate.database_from_thrift(found, self._managed_location(found))

    def _managed_location(self, found: Any) -> str:
        if not self._is_hive4:
            return str(found.locationUri)
        return str(found.managedLocationUri or self._usual_location(found.name))

    def _usual_location(self, name: str) -> str:
        root = self._warehouse.rstrip("/")
        return root if name == DEFAULT_DATABASE else f"{root}/{name}.db"

    def list_databases(self) -> list[str]:
        return sorted(self._call(lambda c: c.get_all_databases()))

    def drop_database(self, name: str) -> None:
        if name == DEFAULT_DATABASE:
            raise AnalysisError(f"Can not drop {DEFAULT_DATABASE} database")

        def drop(client: Any) -> None:
            if not self._is_hive4:  # it fails with an internal error where the database does not exist
                client.get_database(name)
            client.drop_database(name, True, False)

        self._require_owner()
        self._gone_once(drop, DatabaseNotFound, f"Database does not exist: {name}")

    # --- tables ------------------------------------------------------------------------------------------------------

    def _register(self, table: Table, *, holds_rows: bool) -> None:
        check_table_name(table.name)
        self.get_database(table.database)
        made = _counted(translate.table_to_thrift(table), holds_rows or table.is_view)
        structs = {constraints.LISTS[k]: s for k, s in constraints.to_thrift(table, table.constraints).items()}

        def create(client: Any) -> None:
            if self._is_hive4:
                client.create_table_req(
                    ttypes.CreateTableRequest(
                        table=made,
                        processorCapabilities=list(CAPABILITIES),
                        processorIdentifier=PROCESSOR,
                        **structs,
                    )
                )
            elif structs:
                kinds = ("primaryKeys", "foreignKeys", "uniqueConstraints", "notNullConstraints")
                lists = [structs.get(kind, []) for kind in (*kinds, "defaultConstraints", "checkConstraints")]
                client.create_table_with_constraints(made, *lists)
            else:
                client.create_table(made)

        self._require_owner()
        self._made_once(create, lambda: self._is_registered(table))

    def _is_registered(self, table: Table) -> bool:
        found = self.get_table(table.database, table.name)
        return (found.columns, found.partition_keys, found.owner) == (table.columns, table.partition_keys, table.owner)

    def get_table(self, database: str, name: str) -> Table:
        found = self._raw_table(database, name)
        transactional = (found.parameters or {}).get(TRANSACTIONAL, "").lower() == "true"
        table = translate.table_from_thrift(found)
        return constraints.with_constraints(table, self._constraints(database, name)) if transactional else table

    def find_table(self, database: str, name: str) -> Table | None:
        try:
            return self.get_table(database, name)
        except TableNotFound:
            return None

    def _constraints(self, database: str, name: str) -> Any:
        """The constraints of a table, as ``SQLAllTableConstraints``."""
        key = {"catName": translate.CATALOG, "dbName": database, "tblName": name}
        if self._is_hive4:
            request = ttypes.AllTableConstraintsRequest(**key)
            return self._call(lambda c: c.get_all_table_constraints(request)).allTableConstraints
        key = {"catName": translate.CATALOG, "db_name": database, "tbl_name": name}
        child = {"catName": translate.CATALOG, "foreign_db_name": database, "foreign_tbl_name": name}
        return self._call(
            lambda c: ttypes.SQLAllTableConstraints(
                primaryKeys=c.get_primary_keys(ttypes.PrimaryKeysRequest(**key)).primaryKeys,
                foreignKeys=c.get_foreign_keys(ttypes.ForeignKeysRequest(**child)).foreignKeys,
                uniqueConstraints=c.get_unique_constraints(ttypes.UniqueConstraintsRequest(**key)).uniqueConstraints,
                notNullConstraints=c.get_not_null_constraints(
                    ttypes.NotNullConstraintsRequest(**key)
                ).notNullConstraints,
                defaultConstraints=c.get_default_constraints(
                    ttypes.DefaultConstraintsRequest(**key)
                ).defaultConstraints,
                checkConstraints=c.get_check_constraints(ttypes.CheckConstraintsRequest(**key)).checkConstraints,
            )
        )

    def list_tables(self, database: str) -> list[str]:
        if not self._is_hive4:  # it fails with an internal error where the database does not exist
            self.get_database(database)
        names = sorted(self._call(lambda c: c.get_all_tables(database), missing=DatabaseNotFound))
        if not names:
            self.get_database(database)
        return names

    def latest_version(self) -> int | None:
        return None

    def list_views(self, database: str) -> list[str]:
        self.get_database(database)
        return sorted(self._call(lambda c: c.get_tables_by_type(database, "*", VIRTUAL_VIEW)))

    def _put(
        self,
        database: str,
        name: str,
        made: Any,
        write_id: int | None,
        write_ids: ValidWriteIdList | None,
        context: Any = None,
    ) -> None:
        """Register a Thrift table in the place of one that may be called otherwise."""
        missing = f"Table not found {database}.{name}"
        self._require_owner()
        if not self._is_hive4 and context is None:
            self._call(lambda c: c.alter_table(database, name, made), name=missing)
        elif not self._is_hive4:
            self._call(lambda c: c.alter_table_with_environment_context(database, name, made, context), name=missing)
        else:
            request = ttypes.AlterTableRequest(
                catName=translate.CATALOG,
                dbName=database,
                tableName=name,
                table=made,
                environmentContext=context,
                writeId=-1 if write_id is None else write_id,
                validWriteIdList=None if write_ids is None else write_ids.to_text(),
                processorCapabilities=list(CAPABILITIES),
                processorIdentifier=PROCESSOR,
            )
            self._call(lambda c: c.alter_table_req(request), name=missing)

    def drop_table(self, database: str, name: str, *, keep_files: bool = False) -> None:
        self._require_owner()
        self._gone_once(
            lambda c: c.drop_table(database, name, not keep_files), TableNotFound, f"Table not found {database}.{name}"
        )

    # --- partitions --------------------------------------------------------------------------------------------------

    def add_partitions(
        self, partitions: Sequence[Partition], *, with_rows: Sequence[Partition] = (), if_not_exists: bool = True
    ) -> None:
        by_table: dict[tuple[str, str], list[Partition]] = {}
        for partition in partitions:
            by_table.setdefault((partition.database, partition.table), []).append(partition)
        held = frozenset(with_rows)
        tables = {place: self._raw_table(*place) for place in by_table}
        self._require_owner()
        for (database, name), added in by_table.items():
            table = tables[database, name]
            distinct = {p.values: p for p in reversed(added)}
            request = ttypes.AddPartitionsRequest(
                catName=translate.CATALOG,
                dbName=database,
                tblName=name,
                parts=[_counted(translate.partition_to_thrift(p, table), p in held) for p in distinct.values()],
                ifNotExists=if_not_exists,
                needResult=False,
            )
            self._call(methodcaller("add_partitions_req", request))

    def disown_partitions(self, database: str, table: str, names: Sequence[str]) -> None:
        """A Hive Metastore does not know whose they are."""

    def list_partitions(self, database: str, table: str, names: Sequence[str] | None = None) -> list[Partition]:
        missing = f"Table not found {database}.{table}"
        if names is None:
            specs = self._call(lambda c: c.get_partitions_pspec(database, table, ALL), name=missing)
            return translate.by_name(translate.partitions_from_specs(database, table, specs))
        wanted = list(dict.fromkeys(names))
        try:
            raw = self._call(lambda c: c.get_partitions_by_names(database, table, wanted), name=missing)
        except MetastoreError:  # Hive 4 has an answer to a missing table that the bindings do not know
            self._raw_table(database, table)
            raise
        return translate.by_name(translate.partition_from_thrift(database, table, one) for one in raw)

    def drop_partitions(self, database: str, table: str, names: Sequence[str]) -> None:
        self._raw_table(database, table)
        request = ttypes.DropPartitionsRequest(
            catName=translate.CATALOG,
            dbName=database,
            tblName=table,
            parts=ttypes.RequestPartsSpec(names=list(dict.fromkeys(names))),
            deleteData=True,
            ifExists=False,
            needResult=False,
        )
        self._require_owner()
        self._gone_once(
            lambda c: c.drop_partitions_req(request),
            PartitionNotFound,
            f"Partition not found in {database}.{table}: {', '.join(names[:5])}",
        )
