"""Databases, tables and partitions of a Hive Metastore."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
    UnsupportedError,
)
from acidsql.metastore.hive import translate
from acidsql.metastore.hive.client import CAPABILITIES, PROCESSOR, HiveClient
from acidsql.metastore.model import (
    DEFAULT_DATABASE,
    ColumnStatistics,
    Database,
    Partition,
    RowChange,
    Statistics,
    Table,
)
from acidsql.partition_names import partition_name
from acidsql.valid_ids import ValidWriteIdList

_ALL = -1
_EXACT = "COLUMN_STATS_ACCURATE"
"""The property that says which statistics Hive may answer queries from."""
_ROWS = "numRows"
_VIEW = "VIRTUAL_VIEW"
_NO_NEW_STATISTICS = "DO_NOT_UPDATE_STATS"
"""Tells the server not to list the table's files at an ALTER."""


def _counted(place: Any, holds_rows: bool) -> Any:
    """A new Thrift table or partition: its rows are counted from 0, unless there are some that nobody has counted."""
    if not holds_rows:
        place.parameters = {_ROWS: "0", **(place.parameters or {})}
    return place


def _count_on(place: Any, change: RowChange) -> None:
    """Carry on the number of rows of a Thrift table or partition, and say that no statistics of it are exact."""
    parameters = place.parameters or {}
    parameters.pop(_EXACT, None)
    rows = parameters.get(_ROWS, "")
    if change.overwrites or rows.isdecimal():
        parameters[_ROWS] = str(change.applied(int(rows or 0)))
    place.parameters = parameters


def _set_statistics(place: Any, found: Statistics, *, flag: bool) -> None:
    """Put numbers into a Thrift table or partition; ``flag``: say so where they are exact."""
    parameters = {**(place.parameters or {}), **found.parameters}
    if found.exact and flag:
        accurate = json.loads(parameters.get(_EXACT) or "{}")
        parameters[_EXACT] = json.dumps({**accurate, "BASIC_STATS": "true"}, separators=(",", ":"))
    elif found.exact:
        parameters.pop(_EXACT, None)
    place.parameters = parameters


def _no_new_statistics() -> Any:
    return ttypes.EnvironmentContext(properties={_NO_NEW_STATISTICS: "true"})


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
            if not self._is_hive4:  # it falls over a database that is not there
                client.get_database(name)
            client.drop_database(name, True, False)

        self._gone_once(drop, DatabaseNotFound, f"Database does not exist: {name}")

    # --- tables ------------------------------------------------------------------------------------------------------

    def create_table(self, table: Table, *, holds_rows: bool = False) -> None:
        self.get_database(table.database)
        made = _counted(translate.table_to_thrift(table), holds_rows or table.is_view)
        not_null, defaults = translate.not_null_constraints(table), translate.default_constraints(table)
        checks = translate.check_constraints(table)

        def create(client: Any) -> None:
            if self._is_hive4:
                client.create_table_req(
                    ttypes.CreateTableRequest(
                        table=made,
                        notNullConstraints=not_null or None,
                        defaultConstraints=defaults or None,
                        checkConstraints=checks or None,
                        processorCapabilities=list(CAPABILITIES),
                        processorIdentifier=PROCESSOR,
                    )
                )
            elif not_null or defaults or checks:
                client.create_table_with_constraints(made, [], [], [], not_null, defaults, checks)
            else:
                client.create_table(made)

        self._made_once(create, lambda: self._is_registered(table))

    def _is_registered(self, table: Table) -> bool:
        found = self.get_table(table.database, table.name)
        return (found.columns, found.partition_keys, found.owner) == (table.columns, table.partition_keys, table.owner)

    def get_table(self, database: str, name: str) -> Table:
        found = self._raw_table(database, name)
        transactional = (found.parameters or {}).get("transactional", "").lower() == "true"
        return translate.table_from_thrift(found, self._constraints(database, name) if transactional else None)

    def find_table(self, database: str, name: str) -> Table | None:
        try:
            return self.get_table(database, name)
        except TableNotFound:
            return None

    def _constraints(self, database: str, name: str) -> Any:
        """NOT NULL, DEFAULT and CHECK of a table's columns."""
        key = {"catName": translate.CATALOG, "dbName": database, "tblName": name}
        if self._is_hive4:
            request = ttypes.AllTableConstraintsRequest(**key)
            return self._call(lambda c: c.get_all_table_constraints(request)).allTableConstraints
        key = {"catName": translate.CATALOG, "db_name": database, "tbl_name": name}
        return self._call(
            lambda c: ttypes.SQLAllTableConstraints(
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
        if not self._is_hive4:  # it falls over a database that is not there
            self.get_database(database)
        names = sorted(self._call(lambda c: c.get_all_tables(database), missing=DatabaseNotFound))
        if not names:
            self.get_database(database)
        return names

    def list_views(self, database: str) -> list[str]:
        self.get_database(database)
        return sorted(self._call(lambda c: c.get_tables_by_type(database, "*", _VIEW)))

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

    def _put_statistics(self, raw: Any, write_id: int, write_ids: ValidWriteIdList) -> None:
        if self._is_hive4:  # it judges statistics by the write id of the table, not by that of the request
            raw.writeId = write_id
        self._put(raw.dbName, raw.tableName, raw, write_id, write_ids, _no_new_statistics())

    def update_statistics(
        self, table: Table, write_id: int, write_ids: ValidWriteIdList, changes: Mapping[str, RowChange]
    ) -> None:
        """As Hive's ``StatsTask`` ends a statement, but with the word that nothing is known.

        After a major compaction Hive 4 declares the number of rows that stands there exact, without having counted
        (``StatsUpdater``): so it is kept right, as Hive keeps it.

        Also where the statistics do not hold as it is: the write id that is left there keeps an ANALYZE that runs
        meanwhile, and does not see this transaction, from declaring its own exact (``ObjectStore``). Hive 3.1 answers
        no query on a transactional table from statistics.
        """
        if not self._is_hive4:
            return
        if table.partition_keys:
            found = self._named_partitions(table, list(changes))
            for name, partition in found.items():
                _count_on(partition, changes[name])
            self._alter_partitions(table, list(found.values()), write_id, write_ids)
        else:
            raw = self._raw_table(table.database, table.name)
            _count_on(raw, changes[""])
            self._put_statistics(raw, write_id, write_ids)

    def _named_partitions(self, table: Table, names: Sequence[str]) -> dict[str, Any]:
        """Thrift partitions by name."""
        found = self._call(lambda c: c.get_partitions_by_names(table.database, table.name, list(names)))
        keys = [k.name for k in table.partition_keys]
        return {partition_name(keys, partition.values): partition for partition in found}

    def _alter_partitions(
        self, table: Table, partitions: list[Any], write_id: int, write_ids: ValidWriteIdList
    ) -> None:
        context, database, name = _no_new_statistics(), table.database, table.name
        if not self._is_hive4:
            self._call(lambda c: c.alter_partitions_with_environment_context(database, name, partitions, context))
            return
        request = ttypes.AlterPartitionsRequest(
            catName=translate.CATALOG,
            dbName=database,
            tableName=name,
            partitions=partitions,
            environmentContext=context,
            writeId=write_id,
            validWriteIdList=write_ids.to_text(),
        )
        self._call(lambda c: c.alter_partitions_req(request))

    def set_statistics(
        self, table: Table, write_id: int, write_ids: ValidWriteIdList, found: Mapping[str, Statistics]
    ) -> None:
        """As Hive's ``BasicStatsTask`` ends an ANALYZE.

        Hive 4 takes the flag away again where the write id that the last writer left is not one that ``write_ids`` sees
        (``ObjectStore``), and every later writer takes it away; so what is flagged is what is counted. To Hive 3.1
        nothing is said to be exact: it has no such rule.
        """
        if any(one.columns for one in found.values()):
            raise UnsupportedError(
                "Statistics of columns are not written to a Hive Metastore by this version",
                hint="ANALYZE TABLE … COMPUTE STATISTICS counts the rows; Hive itself gathers statistics of columns.",
            )
        partitions = self._named_partitions(table, [n for n in found if n]) if table.partition_keys else {}
        for name, partition in partitions.items():
            _set_statistics(partition, found[name], flag=self._is_hive4)
        if partitions:
            self._alter_partitions(table, list(partitions.values()), write_id, write_ids)
        if "" in found:
            raw = self._raw_table(table.database, table.name)
            _set_statistics(raw, found[""], flag=self._is_hive4)
            self._put_statistics(raw, write_id, write_ids)

    def partition_parameters(
        self, database: str, table: str, names: Sequence[str] | None = None
    ) -> dict[str, Mapping[str, str]]:
        raw = self._raw_table(database, table)
        keys = [k.name for k in raw.partitionKeys or ()]
        if names is None:
            listed = self._call(lambda c: c.get_partitions(database, table, _ALL))
        else:
            listed = self._call(lambda c: c.get_partitions_by_names(database, table, list(names)))
        return {partition_name(keys, one.values): dict(one.parameters or {}) for one in listed}

    def column_statistics(self, table: Table, partition: str | None = None) -> list[ColumnStatistics]:
        """Those of Hive are shown by Hive."""
        return []

    def drop_table(self, database: str, name: str, *, keep_files: bool = False) -> None:
        self._gone_once(
            lambda c: c.drop_table(database, name, not keep_files), TableNotFound, f"Table not found {database}.{name}"
        )

    # --- partitions --------------------------------------------------------------------------------------------------

    def add_partitions(self, partitions: Sequence[Partition], *, holds_rows: bool = False) -> None:
        by_table: dict[tuple[str, str], list[Partition]] = {}
        for partition in partitions:
            by_table.setdefault((partition.database, partition.table), []).append(partition)
        tables = {place: self._raw_table(*place) for place in by_table}
        for (database, name), added in by_table.items():
            table = tables[database, name]
            distinct = {p.values: p for p in reversed(added)}
            request = ttypes.AddPartitionsRequest(
                catName=translate.CATALOG,
                dbName=database,
                tblName=name,
                parts=[_counted(translate.partition_to_thrift(p, table), holds_rows) for p in distinct.values()],
                ifNotExists=True,
                needResult=False,
            )
            self._call(methodcaller("add_partitions_req", request))

    def list_partitions(self, database: str, table: str, names: Sequence[str] | None = None) -> list[Partition]:
        missing = f"Table not found {database}.{table}"
        if names is None:
            specs = self._call(lambda c: c.get_partitions_pspec(database, table, _ALL), name=missing)
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
        self._gone_once(
            lambda c: c.drop_partitions_req(request),
            PartitionNotFound,
            f"Partition not found in {database}.{table}: {', '.join(names[:5])}",
        )
