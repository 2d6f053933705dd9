"""What every test would make anew, made once a process: compiled SQL, and the tables of an embedded store.

SQLAlchemy compiles each SQL statement once for each engine. A run of the tests opens some thousands of stores, so this
was a quarter of its time. The stores of one process share what was compiled here, and the second store gets its tables
from the DDL that SQLAlchemy sent for the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from sqlalchemy import URL, Connection, Engine, MetaData, create_engine

from acidsql.metastore.embedded import schema, sqlite


@contextmanager
def shared_sql() -> Iterator[None]:
    """Let all embedded stores that are opened in the block share their compiled SQL."""
    shared = create_engine("sqlite://", query_cache_size=5000)
    shared.connect().close()  # initializes its dialect, which knows the version of SQLite from then on
    open_engine = sqlite.open_engine
    create_all = MetaData.create_all
    ddl: list[str] = []

    def open_sharing(url: URL, busy_timeout: float) -> Engine:
        engine = open_engine(url, busy_timeout)
        engine.dialect, engine._compiled_cache = shared.dialect, shared._compiled_cache
        return engine

    def create_as_before(metadata: MetaData, connection: Connection, **options: Any) -> None:
        names = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
        if (
            metadata is not schema.metadata
            or connection.dialect.name != "sqlite"
            or connection.exec_driver_sql(names).first() is not None
        ):
            create_all(metadata, connection, **options)  # an upgrade
        elif ddl:
            for statement in ddl:
                connection.exec_driver_sql(statement)
        else:
            create_all(metadata, connection, **options)
            ddl.extend(connection.exec_driver_sql(names).scalars())

    with patch.object(sqlite, "open_engine", open_sharing), patch.object(MetaData, "create_all", create_as_before):
        yield
