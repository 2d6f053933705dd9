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
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from acidsql.errors import MetastoreError, UnsupportedError

BEGIN = "acidsql_begin"
"""Execution option: the statement with which a transaction begins."""

SYNCHRONOUS = "acidsql_synchronous"
"""Execution option of writers: FULL (a commit survives a power cut), or NORMAL."""

_IDLE_CONNECTIONS = 8


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
    except ArgumentError as e:
        raise MetastoreError(f"Not the URL of a metastore: {text!r}") from e
    if not url.database or url.database == ":memory:":
        raise UnsupportedError(
            "A metastore in memory cannot be shared", hint="Name a file: sqlite:////absolute/path/acidsql.db"
        )
    return url


def open_engine(url: URL, busy_timeout: float) -> Engine:
    """An engine whose transactions begin as their option :data:`BEGIN` says.

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
    options = connection.get_execution_options()
    begin = options.get(BEGIN)
    if begin is not None:
        # In the write-ahead log a FULL commit also makes all earlier ones safe, whoever wrote them.
        connection.exec_driver_sql(f"PRAGMA synchronous={options.get(SYNCHRONOUS, 'FULL')}")
    connection.exec_driver_sql(begin or "BEGIN")


def enable_write_ahead_log(engine: Engine, busy_timeout: float) -> None:
    """Switch a database to write-ahead logging, where it is not yet.

    Raises:
        MetastoreError: When the file cannot be used, or its file system has no shared memory for the log.
    """
    deadline = time.monotonic() + busy_timeout
    with explained(engine.url, busy_timeout), closing(engine.raw_connection()) as connection:
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
                    f"Metastore {engine.url.database}: its file system does not support write-ahead logging",
                    hint="Put the metastore on a local disk: its URL is a setting apart from the warehouse.",
                )


@contextmanager
def explained(url: URL, busy_timeout: float) -> Iterator[None]:
    """Errors of the database as MetastoreError, with the file and the cause."""
    try:
        yield
    except sqlite3.Error as e:
        raise _meaning(e, url, busy_timeout) from e
    except DBAPIError as e:
        raise _meaning(e.orig, url, busy_timeout) from e
    except SQLAlchemyError as e:
        raise MetastoreError(f"Metastore {url.database}: {e}") from e


def busy(url: URL, busy_timeout: float) -> MetastoreError:
    """The error of a transaction that timed out waiting."""
    return MetastoreError(
        f"Metastore {url.database}: others have been writing to it for longer than {busy_timeout:g} s"
        " (acidsql.metastore.busy.timeout)"
    )


def _meaning(error: BaseException | None, url: URL, busy_timeout: float) -> MetastoreError:
    if _is_busy(error):
        return busy(url, busy_timeout)
    text = str(error)
    if "unable to open" in text:
        directory = Path(str(url.database)).parent
        if not directory.is_dir():
            text = f"{text}: there is no directory {directory}"
        elif not os.access(directory, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            text = f"{text}: the directory {directory} cannot be written"
    return MetastoreError(f"Metastore {url.database}: {text}")


def _is_busy(error: BaseException | None) -> bool:
    return "locked" in str(error)
