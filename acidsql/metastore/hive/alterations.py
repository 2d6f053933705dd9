"""Changes of what is registered in a Hive Metastore: descriptions, names, places, constraints."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from operator import methodcaller
from typing import Any

from hive_metastore import ttypes

from acidsql.errors import AcidError, AlreadyExists, PartitionNotFound
from acidsql.metastore.hive import constraints, translate
from acidsql.metastore.hive.catalog import HiveCatalog
from acidsql.metastore.model import DirectoryMove, Partition, Table
from acidsql.partition_names import check_table_name, partition_name
from acidsql.valid_ids import ValidWriteIdList

_CASCADE = "CASCADE"
"""Tells the server to give a table's columns to all its partitions (``StatsSetupConst``)."""


class HiveAlterations(HiveCatalog):
    """The part of :class:`~acidsql.metastore.protocol.Catalog` that changes tables and partitions, over Thrift."""

    # --- tables ------------------------------------------------------------------------------------------------------

    def alter_table(
        self, table: Table, *, write_id: int | None = None, write_ids: ValidWriteIdList | None = None
    ) -> None:
        """Changed columns are those of all partitions too: a reader of Hive's takes a partition's own."""
        found = self._raw_table(table.database, table.name)
        made = translate.altered_table(found, table)
        cascade = made.sd.cols != found.sd.cols and bool(table.partition_keys)
        context = ttypes.EnvironmentContext(properties={_CASCADE: "true"}) if cascade else None
        self._put(table.database, table.name, made, write_id, write_ids, context)
        if table.is_transactional:
            self._keep_constraints(table, made)

    def rename_table(
        self,
        database: str,
        name: str,
        table: Table,
        *,
        write_id: int | None = None,
        write_ids: ValidWriteIdList | None = None,
        move: DirectoryMove | None = None,
    ) -> None:
        """The location of ``table`` is not looked at: the metastore moves the files where it wants them."""
        check_table_name(table.name)
        found = self._raw_table(database, name)
        self.get_database(table.database)
        if self.find_table(table.database, table.name) is not None:
            raise AlreadyExists(f"Table {table.full_name} already exists")
        made = translate.altered_table(found, table)
        made.sd.location = found.sd.location
        made.dbName, made.tableName = table.database, table.name

        def is_done() -> bool:
            there = self.find_table(table.database, table.name)
            return there is not None and there.created_at == found.createTime

        self._done_once(lambda: self._put(database, name, made, write_id, write_ids), is_done)

    # --- partitions --------------------------------------------------------------------------------------------------

    def rename_partition(
        self,
        name: str,
        partition: Partition,
        *,
        move: DirectoryMove | None = None,
        write_ids: ValidWriteIdList | None = None,
    ) -> None:
        """The location of ``partition`` is not looked at: the metastore moves the files where it wants them."""
        database, table = partition.database, partition.table
        owner = self._raw_table(database, table)
        old = self._raw_partition(owner, name)
        keys = [k.name for k in owner.partitionKeys]
        new = partition_name(keys, list(partition.values))
        if new != name and self.list_partitions(database, table, [new]):
            raise AlreadyExists(f"Partition already exists: {new}")
        made = deepcopy(old)
        made.values = list(partition.values)

        def rename() -> None:
            if not self._is_hive4:
                self._call(lambda c: c.rename_partition(database, table, old.values, made), missing=PartitionNotFound)
                return
            request = ttypes.RenamePartitionRequest(
                catName=translate.CATALOG,
                dbName=database,
                tableName=table,
                partVals=old.values,
                newPart=made,
                validWriteIdList=None if write_ids is None else write_ids.to_text(),
            )
            self._call(lambda c: c.rename_partition_req(request), missing=PartitionNotFound)

        self._require_owner()
        self._done_once(rename, lambda: bool(self.list_partitions(database, table, [new])))

    def forget_moves(self, table: Table) -> None:
        """Nothing: the metastore moves directories itself, and no table of its has any."""

    def alter_partition(self, partition: Partition) -> None:
        owner = self._raw_table(partition.database, partition.table)
        keys = [k.name for k in owner.partitionKeys]
        made = self._raw_partition(owner, partition_name(keys, list(partition.values)))
        made.sd.location = translate.qualified(partition.location)
        place = (partition.database, partition.table)
        self._require_owner()
        self._call(lambda c: c.alter_partition(*place, made), missing=PartitionNotFound)

    def _raw_partition(self, owner: Any, name: str) -> Any:
        """A Thrift partition. Raises: PartitionNotFound."""
        place = (owner.dbName, owner.tableName)
        found = self._call(lambda c: c.get_partitions_by_names(*place, [name]))
        if not found:
            raise PartitionNotFound(f"Partition not found in {'.'.join(place)}: {name}")
        return found[0]

    def _done_once(self, change: Callable[[], None], is_done: Callable[[], bool]) -> None:
        """Change something; where that fails although it is done, it is the work of a try whose answer was lost."""
        try:
            change()
        except AcidError:
            if not is_done():
                raise

    # --- constraints -------------------------------------------------------------------------------------------------

    def _keep_constraints(self, table: Table, altered: Any) -> None:
        """Have the constraints in the metastore be those of the table.

        A change of a table's columns keeps them by the position of their column (Hive 4), or not at all (3.1).
        """
        there = self._constraints(table.database, table.name)
        found = constraints.with_constraints(translate.table_from_thrift(altered), there)
        gone, new = constraints.difference(found, table)
        for constraint in gone:
            self._drop_constraint(table, constraint.name or "")
        for kind, structs in constraints.to_thrift(table, new).items():
            call, request = constraints.REQUESTS[kind]
            self._call(methodcaller(call, request(structs)))

    def _drop_constraint(self, table: Table, name: str) -> None:
        request = ttypes.DropConstraintRequest(
            catName=translate.CATALOG, dbname=table.database, tablename=table.name, constraintname=name
        )
        self._call(lambda c: c.drop_constraint(request))
