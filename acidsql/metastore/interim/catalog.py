"""Databases, tables and partitions in the embedded store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Row

from acidsql.errors import AlreadyExists, AnalysisError, DatabaseNotFound, PartitionNotFound, TableNotFound
from acidsql.metastore.interim.store import Step, Store
from acidsql.metastore.model import DEFAULT_DATABASE, Column, Database, Partition, Table
from acidsql.partition_names import partition_name

_OF_TABLE = (
    ("PARTITIONS", "DB", "TBL"),
    ("TXN_TO_WRITE_ID", "T2W_DATABASE", "T2W_TABLE"),
    ("NEXT_WRITE_ID", "NWI_DATABASE", "NWI_TABLE"),
    ("TXN_COMPONENTS", "TC_DATABASE", "TC_TABLE"),
    ("COMPLETED_TXN_COMPONENTS", "CTC_DATABASE", "CTC_TABLE"),
    ("WRITE_SET", "WS_DATABASE", "WS_TABLE"),
    ("TBLS", "DB", "TBL"),
)
"""What belongs to a table, as (table of the store, its database column, its table column)."""

_TABLE_COLUMNS = (
    "DB, TBL, LOCATION, TBL_TYPE, COMMENT, OWNER, CREATE_TIME, PARAMETERS, COLUMNS, PARTITION_KEYS, BUCKET_COLUMNS, "
    "NUM_BUCKETS"
)
_TABLE_VALUES = (
    ":db, :tbl, :location, :type, :comment, :owner, :created, :parameters, :columns, :keys, :buckets, :num_buckets"
)


def _row_of(table: Table) -> dict[str, Any]:
    return {
        "db": table.database,
        "tbl": table.name,
        "location": table.location,
        "type": table.table_type,
        "comment": table.comment,
        "owner": table.owner,
        "created": table.created_at,
        "parameters": json.dumps(dict(table.parameters)),
        "columns": json.dumps([asdict(c) for c in table.columns]),
        "keys": json.dumps([asdict(c) for c in table.partition_keys]),
        "buckets": json.dumps(list(table.bucket_columns)),
        "num_buckets": table.num_buckets,
    }


def _table_of(row: Row[Any]) -> Table:
    return Table(
        database=row.DB,
        name=row.TBL,
        location=row.LOCATION,
        columns=tuple(Column(**c) for c in json.loads(row.COLUMNS)),
        partition_keys=tuple(Column(**c) for c in json.loads(row.PARTITION_KEYS)),
        parameters=json.loads(row.PARAMETERS),
        comment=row.COMMENT,
        bucket_columns=tuple(json.loads(row.BUCKET_COLUMNS)),
        num_buckets=row.NUM_BUCKETS,
        table_type=row.TBL_TYPE,
        owner=row.OWNER,
        created_at=row.CREATE_TIME,
    )


class EmbeddedCatalog:
    """The :class:`~acidsql.metastore.protocol.Catalog` of the embedded store."""

    _store: Store

    def create_database(self, database: Database) -> None:
        with self._store.write() as step:
            if step.row("SELECT 1 FROM DBS WHERE NAME = :name", name=database.name):
                raise AlreadyExists(f"Database {database.name} already exists")
            step.run(
                "INSERT INTO DBS (NAME, LOCATION, COMMENT, PARAMETERS) VALUES (:name, :location, :comment, :parameters)",
                name=database.name,
                location=database.location,
                comment=database.comment,
                parameters=json.dumps(dict(database.parameters)),
            )

    def get_database(self, name: str) -> Database:
        with self._store.read() as step:
            row = step.row("SELECT NAME, LOCATION, COMMENT, PARAMETERS FROM DBS WHERE NAME = :name", name=name)
        if row is None:
            raise DatabaseNotFound(f"Database does not exist: {name}")
        return Database(row.NAME, row.LOCATION, row.COMMENT, json.loads(row.PARAMETERS))

    def list_databases(self) -> list[str]:
        with self._store.read() as step:
            return [r[0] for r in step.rows("SELECT NAME FROM DBS ORDER BY NAME")]

    def drop_database(self, name: str) -> None:
        if name == DEFAULT_DATABASE:
            raise AnalysisError("Cannot drop the default database")
        with self._store.write() as step:
            _require_database(step, name)
            if step.row("SELECT 1 FROM TBLS WHERE DB = :name", name=name):
                raise AnalysisError(f"Database {name} is not empty. One or more tables exist.", code=10226)
            step.run("DELETE FROM DBS WHERE NAME = :name", name=name)

    def create_table(self, table: Table) -> None:
        with self._store.write() as step:
            _require_database(step, table.database)
            if step.row("SELECT 1 FROM TBLS WHERE DB = :db AND TBL = :tbl", db=table.database, tbl=table.name):
                raise AlreadyExists(f"Table {table.full_name} already exists")
            step.run(f"INSERT INTO TBLS ({_TABLE_COLUMNS}) VALUES ({_TABLE_VALUES})", **_row_of(table))

    def get_table(self, database: str, name: str) -> Table:
        table = self.find_table(database, name)
        if table is None:
            raise TableNotFound(f"Table not found {database}.{name}")
        return table

    def find_table(self, database: str, name: str) -> Table | None:
        with self._store.read() as step:
            row = step.row(f"SELECT {_TABLE_COLUMNS} FROM TBLS WHERE DB = :db AND TBL = :tbl", db=database, tbl=name)
        return None if row is None else _table_of(row)

    def list_tables(self, database: str) -> list[str]:
        with self._store.read() as step:
            _require_database(step, database)
            return [r[0] for r in step.rows("SELECT TBL FROM TBLS WHERE DB = :db ORDER BY TBL", db=database)]

    def alter_table(self, table: Table) -> None:
        pairs = "LOCATION = :location, COMMENT = :comment, PARAMETERS = :parameters, COLUMNS = :columns"
        values = _row_of(table)
        kept = {k: values[k] for k in ("db", "tbl", "location", "comment", "parameters", "columns")}
        with self._store.write() as step:
            if not step.run(f"UPDATE TBLS SET {pairs} WHERE DB = :db AND TBL = :tbl", **kept):
                raise TableNotFound(f"Table not found {table.full_name}")

    def drop_table(self, database: str, name: str) -> None:
        with self._store.write() as step:
            _require_table(step, database, name)
            for table, db, tbl in _OF_TABLE:
                step.run(f"DELETE FROM {table} WHERE {db} = :db AND {tbl} = :tbl", db=database, tbl=name)
            # an aborted transaction is listed for the sake of its components: none of them is left
            step.run("DELETE FROM TXNS WHERE TXN_STATE = 'a' AND TXN_ID NOT IN (SELECT TC_TXNID FROM TXN_COMPONENTS)")

    def add_partitions(self, partitions: Sequence[Partition]) -> None:
        with self._store.write() as step:
            for partition in partitions:
                table = _require_table(step, partition.database, partition.table)
                step.run(
                    "INSERT INTO PARTITIONS (DB, TBL, PART_NAME, PART_VALUES, LOCATION)"
                    " VALUES (:db, :tbl, :name, :values, :location) ON CONFLICT DO NOTHING",
                    db=partition.database,
                    tbl=partition.table,
                    name=_partition_name(table, partition),
                    values=json.dumps(list(partition.values)),
                    location=partition.location,
                )

    def list_partitions(self, database: str, table: str, names: Sequence[str] | None = None) -> list[Partition]:
        with self._store.read() as step:
            _require_table(step, database, table)
            rows = step.rows(
                "SELECT PART_NAME, PART_VALUES, LOCATION FROM PARTITIONS WHERE DB = :db AND TBL = :tbl ORDER BY PART_NAME",
                db=database,
                tbl=table,
            )
        wanted = None if names is None else set(names)
        return [
            Partition(database, table, tuple(json.loads(r.PART_VALUES)), r.LOCATION)
            for r in rows
            if wanted is None or r.PART_NAME in wanted
        ]

    def drop_partitions(self, database: str, table: str, names: Sequence[str]) -> None:
        with self._store.write() as step:
            _require_table(step, database, table)
            for name in names:
                dropped = step.run(
                    "DELETE FROM PARTITIONS WHERE DB = :db AND TBL = :tbl AND PART_NAME = :name",
                    db=database,
                    tbl=table,
                    name=name,
                )
                if not dropped:
                    raise PartitionNotFound(f"Partition not found {database}.{table} {name}")


def _require_database(step: Step, name: str) -> None:
    if step.row("SELECT 1 FROM DBS WHERE NAME = :name", name=name) is None:
        raise DatabaseNotFound(f"Database does not exist: {name}")


def _require_table(step: Step, database: str, name: str) -> Table:
    row = step.row(f"SELECT {_TABLE_COLUMNS} FROM TBLS WHERE DB = :db AND TBL = :tbl", db=database, tbl=name)
    if row is None:
        raise TableNotFound(f"Table not found {database}.{name}")
    return _table_of(row)


def _partition_name(table: Table, partition: Partition) -> str:
    """What locks and listings name, and the end of the partition's usual location."""
    return partition_name([k.name for k in table.partition_keys], partition.values)
