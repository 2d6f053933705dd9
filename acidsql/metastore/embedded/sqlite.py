"""SQLite as the database of a metastore: how a file is opened, how its transactions begin, what its errors mean.

Write-ahead logging lets readers work beside the one writer; ``synchronous=FULL`` makes a commit survive a power cut,
and with it all commits before it, those of ``synchronous=NORMAL`` too.
A writer takes the write lock at its beginning (BEGIN IMMEDIATE): one that read first and then found the lock taken
would have to start over. Readers begin deferred and see one state of the database until they end.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import QueuePool

from acidsql.errors import MetastoreError, UnsupportedError
from acidsql.metastore.embedded.database import KIND, Database, Kind

_IDLE_CONNECTIONS = 8
_SYNCHRONOUS = {Kind.WRITE: "FULL", Kind.RELAXED: "NORMAL"}


def system_ms() -> int:
    """The clock of this machine: milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class SQLite(Database):
    """A file, for the processes of one machine. Its clock is that machine's.

    Args:
        text: A SQLAlchemy URL, or the path of the file.
        busy_timeout: Seconds that a transaction waits for the writer of another process.

    Raises:
        UnsupportedError: When it is a database in memory: no other process or thread could see it.
        MetastoreError: When it is not a URL.
    """

    driver_error = sqlite3.Error

    def __init__(self, text: str, busy_timeout: float) -> None:
        self._url = parse_url(text)
        super().__init__(str(self._url.database), busy_timeout)

    def open_engine(self) -> Engine:
        return open_engine(self._url, self.busy_timeout)

    def is_there(self) -> bool:
        return os.path.exists(self.name)

    def prepare(self, engine: Engine) -> None:
        """Switch it to write-ahead logging, where it is not yet.

        Raises:
            MetastoreError: When the file cannot be used, or its file system has no shared memory for the log.
        """
        deadline = time.monotonic() + self.busy_timeout
        with self.explained(), closing(engine.raw_connection()) as connection:
            cursor = connection.cursor()
            while cursor.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                try:
                    mode = cursor.execute("PRAGMA journal_mode=WAL").fetchone()
                except sqlite3.OperationalError as e:  # SQLite does not wait here for those who open the file just now
                    if not _is_busy(e) or time.monotonic() >= deadline:
                        raise
                    time.sleep(0.01)
                    continue
                if mode != ("wal",):
                    raise MetastoreError(
                        f"Metastore {self.name}: its file system does not support write-ahead logging",
                        hint="Put the metastore on a local disk: its URL is a setting apart from the warehouse.",
                    )

    def now_ms(self, connection: Connection) -> int:
        return system_ms()

    def check(self, connection: Connection) -> list[str]:
        found = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
        return [] if found == ["ok"] else [f"SQLite: {one}" for one in found]

    def _meaning(self, error: BaseException | None) -> MetastoreError:
        if _is_busy(error):
            return self.busy()
        text = str(error)
        if "unable to open" in text:
            directory = Path(self.name).parent
            if not directory.is_dir():
                text = f"{text}: there is no directory {directory}"
            elif not os.access(directory, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
                text = f"{text}: the directory {directory} cannot be written"
        return MetastoreError(f"Metastore {self.name}: {text}")


def parse_url(text: str) -> URL:
    """The URL of a SQLite file, from a SQLAlchemy URL or a plain path.

    Raises:
        UnsupportedError: When it is a database in memory: no other process or thread could see it.
        MetastoreError: When it is not a URL.
    """
    if "://" not in text:
        return URL.create("sqlite", database=os.path.abspath(text))
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as e:  # a port that is no number
        raise MetastoreError(f"Not the URL of a metastore: {text!r}") from e
    if not url.database or url.database == ":memory:":
        raise UnsupportedError(
            "A metastore in memory cannot be shared", hint="Name a file: sqlite:////absolute/path/acidsql.db"
        )
    return url


def open_engine(url: URL, busy_timeout: float) -> Engine:
    """An engine whose transactions begin as their option :data:`KIND` says.

    Args:
        url: From :func:`parse_url`.
        busy_timeout: Seconds that a statement waits for the lock of another process.
    """
    engine = create_engine(
        url,
        poolclass=QueuePool,
        pool_size=_IDLE_CONNECTIONS,
        max_overflow=-1,
        pool_use_lifo=True,
        # isolation_level None: the driver begins no transactions of its own
        connect_args={"timeout": busy_timeout, "check_same_thread": False, "isolation_level": None},
    )
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)
    event.listen(engine, "invalidate", _on_invalidate)
    return engine


def _on_connect(connection: sqlite3.Connection, record: Any) -> None:
    connection.execute("PRAGMA synchronous=FULL")


def _on_invalidate(connection: sqlite3.Connection, record: Any, error: BaseException | None) -> None:
    """A transaction that an exception from outside has cut off: closing alone would leave its lock to its cursors."""
    if connection.in_transaction:
        connection.rollback()


def _on_begin(connection: Connection) -> None:
    kind = connection.get_execution_options()[KIND]
    if kind is Kind.READ:
        connection.exec_driver_sql("BEGIN")
        return
    # In the write-ahead log a FULL commit also makes all earlier ones safe, whoever wrote them.
    connection.exec_driver_sql(f"PRAGMA synchronous={_SYNCHRONOUS[kind]}")
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _is_busy(error: BaseException | None) -> bool:
    return "locked" in str(error)
