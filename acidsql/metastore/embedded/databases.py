"""Databases of the catalog."""

# ruff: noqa: SIM300 (the upper-case names are columns, not constants)

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, bindparam, delete, insert, select
from sqlalchemy import Table as Entity

from acidsql.errors import AlreadyExists, AnalysisError, DatabaseNotFound
from acidsql.metastore.embedded import dropped_places, places
from acidsql.metastore.embedded.changes import EmbeddedChanges
from acidsql.metastore.embedded.schema import DATABASE_PARAMS, DBS, TBLS
from acidsql.metastore.model import DEFAULT_DATABASE, Database
from acidsql.partition_names import check_database_name

DATABASE_NOT_EMPTY = 10226

_DATABASE = select(DBS.c.DB_ID, DBS.c.DB_LOCATION_URI, DBS.c.DESC).where(DBS.c.NAME == bindparam("name"))


def database_id_of(db: Connection, name: str) -> int:
    """The number of a database in the catalog. Raises: DatabaseNotFound."""
    row = db.execute(_DATABASE, {"name": name}).first()
    if row is None:
        raise DatabaseNotFound(f"Database does not exist: {name}")
    return int(row[0])


def insert_rows(db: Connection, table: Entity, rows: Sequence[Mapping[str, object]]) -> None:
    """Insert rows; none is no error."""
    if rows:
        db.execute(insert(table), rows)


def insert_one(db: Connection, table: Entity, row: Mapping[str, object]) -> int:
    """Insert a row; the id that it got."""
    key = db.execute(insert(table), row).inserted_primary_key
    assert key is not None  # every table here has one
    return int(key[0])


def parameter_rows(key: str, id: int, parameters: Mapping[str, str]) -> list[dict[str, object]]:
    """Rows of parameters of a database or table, by the column that holds its number."""
    return [{key: id, "PARAM_KEY": k, "PARAM_VALUE": v} for k, v in parameters.items()]


class EmbeddedDatabases(EmbeddedChanges):
    """The databases of :class:`~acidsql.metastore.protocol.Catalog`."""

    def create_database(self, database: Database) -> None:
        with self._change() as db:
            check_database_name(database.name)
            if db.execute(_DATABASE, {"name": database.name}).first() is not None:
                raise AlreadyExists(f"Database {database.name} already exists")
            places.check_database(db, database.location)
            dropped_places.require_free(db, [database.location])
            row = {"NAME": database.name, "DB_LOCATION_URI": database.location, "DESC": database.comment}
            insert_rows(db, DATABASE_PARAMS, parameter_rows("DB_ID", insert_one(db, DBS, row), database.parameters))

    def get_database(self, name: str) -> Database:
        with self._store.read() as db:
            row = db.execute(_DATABASE, {"name": name}).first()
            if row is None:
                raise DatabaseNotFound(f"Database does not exist: {name}")
            database_id, location, comment = row
            p = DATABASE_PARAMS.c
            parameters = db.execute(
                select(p.PARAM_KEY, p.PARAM_VALUE).where(p.DB_ID == database_id).order_by(p.PARAM_KEY)
            )
            return Database(name, location, comment, {r[0]: r[1] for r in parameters})

    def list_databases(self) -> list[str]:
        with self._store.read() as db:
            return list(db.execute(select(DBS.c.NAME).order_by(DBS.c.NAME)).scalars())

    def drop_database(self, name: str) -> None:
        with self._change() as db:
            database_id = database_id_of(db, name)
            if name == DEFAULT_DATABASE:
                raise AnalysisError(f"Can not drop {DEFAULT_DATABASE} database", code=40000)
            of_database = select(TBLS.c.TBL_NAME).where(TBLS.c.DB_ID == database_id).order_by(TBLS.c.TBL_NAME)
            tables = list(db.execute(of_database).scalars())
            if tables:
                raise AnalysisError(
                    f"Database {name} is not empty. One or more tables exist: {', '.join(tables[:5])}",
                    code=DATABASE_NOT_EMPTY,
                    hint="Drop its tables first, or use DROP DATABASE … CASCADE.",
                )
            db.execute(delete(DATABASE_PARAMS).where(DATABASE_PARAMS.c.DB_ID == database_id))
            db.execute(delete(DBS).where(DBS.c.DB_ID == database_id))
