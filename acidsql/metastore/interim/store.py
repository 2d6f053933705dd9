"""The database file: opening it, and one atomic step on it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from sqlalchemy import Connection, Engine, Row, TextClause, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from acidsql.errors import MetastoreError
from acidsql.metastore.interim.schema import SCHEMA_VERSION, metadata


@cache
def _text(sql: str) -> TextClause:
    return text(sql)


class Step:
    """One atomic step: its statements see and leave the store as if nobody else were there."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def execute(self, clause: TextClause, **values: Any) -> Sequence[Row[Any]]:
        """All rows of a query that was prepared elsewhere."""
        return self._connection.execute(clause, values).fetchall()

    def run(self, sql: str, **values: Any) -> int:
        """Execute a statement; the number of rows that it changed."""
        return self._connection.execute(_text(sql), values).rowcount

    def run_many(self, sql: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Execute a statement once per row of values."""
        if rows:
            self._connection.execute(_text(sql), list(rows))

    def rows(self, sql: str, **values: Any) -> Sequence[Row[Any]]:
        """All rows of a query."""
        return self._connection.execute(_text(sql), values).fetchall()

    def row(self, sql: str, **values: Any) -> Row[Any] | None:
        """The first row of a query."""
        return self._connection.execute(_text(sql), values).first()

    def value(self, sql: str, **values: Any) -> Any:
        """The first column of the first row; None where there is none."""
        row = self.row(sql, **values)
        return None if row is None else row[0]

    def next_id(self, sequence: str, count: int = 1) -> int:
        """Take ids from a sequence; the first of them."""
        first = int(self.value("SELECT NEXT FROM SEQUENCES WHERE NAME = :name", name=sequence))
        self.run("UPDATE SEQUENCES SET NEXT = :next WHERE NAME = :name", next=first + count, name=sequence)
        return first


class Store:
    """A SQLite file in WAL mode, for any number of threads and processes.

    Commits are synchronous (``synchronous=FULL``): a commit that was answered survives a power failure, and a write id is
    never handed out twice.

    Args:
        url: ``sqlite:///<absolute path>``.
        busy_timeout: Seconds to wait for another writer.
    """

    def __init__(self, url: str, busy_timeout: float) -> None:
        self._url = url
        self._busy_ms = int(busy_timeout * 1000)
        self.path = make_url(url).database or ""
        self._engine = self._open()
        self._pid = os.getpid()
        self._create()

    def _open(self) -> Engine:
        engine = create_engine(self._url, pool_size=20, max_overflow=200)

        @event.listens_for(engine, "connect")
        def connect(connection: Any, _: Any) -> None:
            connection.isolation_level = None  # BEGIN is ours: the driver's own starts too late and too weakly
            connection.execute(f"PRAGMA busy_timeout = {self._busy_ms}")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")

        @event.listens_for(engine, "begin")
        def begin(connection: Connection) -> None:
            writes = connection.get_execution_options().get("acidsql_writes", False)
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

        return engine

    def _create(self) -> None:
        with self.write() as step:
            metadata.create_all(step._connection)
            found = step.value("SELECT MAX(SCHEMA_VERSION) FROM VERSION")
            if found is None:
                step.run("INSERT INTO VERSION VALUES (:v)", v=SCHEMA_VERSION)
                step.run("INSERT INTO SEQUENCES VALUES ('txn', 1), ('lock', 1)")
        if found is not None and found > SCHEMA_VERSION:
            self.close()
            raise MetastoreError(
                f"The store {self.path} has schema version {found}; this version of acidsql knows {SCHEMA_VERSION}",
                hint="Upgrade acidsql.",
            )

    @contextmanager
    def read(self) -> Iterator[Step]:
        """A step that changes nothing."""
        with self._step(writes=False) as step:
            yield step

    @contextmanager
    def write(self) -> Iterator[Step]:
        """A step that may change something; done when the block ends, undone when it raises."""
        with self._step(writes=True) as step:
            yield step

    @contextmanager
    def _step(self, writes: bool) -> Iterator[Step]:
        if self._pid != os.getpid():  # a forked child must not use its parent's connections
            self._engine.dispose(close=False)
            self._engine, self._pid = self._open(), os.getpid()
        try:
            with self._engine.connect() as connection:
                connection = connection.execution_options(acidsql_writes=writes)
                with connection.begin():
                    yield Step(connection)
        except SQLAlchemyError as e:
            cause = getattr(e, "orig", None) or e
            hint = "Another process is writing to it." if "locked" in str(cause) else None
            raise MetastoreError(f"The store {self.path} cannot be used: {cause}", hint=hint) from e

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()
