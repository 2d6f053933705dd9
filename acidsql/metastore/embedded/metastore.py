"""The embedded metastore: the union of its parts, each in the module that is named after it."""

from __future__ import annotations

import re
from collections.abc import Callable

from acidsql.errors import UnsupportedError
from acidsql.metastore.embedded.aborts import EmbeddedAborts
from acidsql.metastore.embedded.catalog import EmbeddedCatalog
from acidsql.metastore.embedded.check import EmbeddedCheck
from acidsql.metastore.embedded.cleaning import EmbeddedCleaning
from acidsql.metastore.embedded.commit import EmbeddedCommits
from acidsql.metastore.embedded.compaction_history import EmbeddedCompactionHistory
from acidsql.metastore.embedded.database import Database
from acidsql.metastore.embedded.databases import EmbeddedDatabases
from acidsql.metastore.embedded.dropped_places import EmbeddedDroppedPlaces
from acidsql.metastore.embedded.locks import EmbeddedLocks
from acidsql.metastore.embedded.queue import EmbeddedQueue
from acidsql.metastore.embedded.renames import EmbeddedRenames
from acidsql.metastore.embedded.sqlite import SQLite
from acidsql.metastore.embedded.statistics import EmbeddedStatistics
from acidsql.metastore.embedded.timeouts import EmbeddedTimeouts
from acidsql.metastore.embedded.txns import EmbeddedTxns
from acidsql.metastore.embedded.write_ids import EmbeddedWriteIds
from acidsql.settings import METASTORE_BUSY, Settings


class EmbeddedMetastore(
    EmbeddedDatabases,
    EmbeddedCatalog,
    EmbeddedRenames,
    EmbeddedStatistics,
    EmbeddedDroppedPlaces,
    EmbeddedTxns,
    EmbeddedAborts,
    EmbeddedWriteIds,
    EmbeddedLocks,
    EmbeddedCommits,
    EmbeddedTimeouts,
    EmbeddedQueue,
    EmbeddedCompactionHistory,
    EmbeddedCleaning,
    EmbeddedCheck,
):
    """:class:`~acidsql.metastore.protocol.Metastore` in a SQL database, for any number of threads and processes.

    What a method does and raises stands in the protocol. Besides that, each raises MetastoreError where the database
    cannot be read or written.

    Args:
        url: A SQLAlchemy URL of SQLite or PostgreSQL, or the path of a SQLite file.
        settings: Timeouts, limits and ``hive.txn.xlock.write`` are looked up at each call; the busy timeout once.
        warehouse: Location of the database ``default``, for a store that is made now; None: it must be there.
        now_ms: The clock, in the place of the database's: all processes at one store should have the same.

    Raises:
        UnsupportedError: When it is another kind of database, or its driver is not installed.
        MetastoreError: When it cannot be opened, is no metastore, or is one of a newer version.
    """

    def __init__(
        self, url: str, settings: Settings, warehouse: str | None, now_ms: Callable[[], int] | None = None
    ) -> None:
        super().__init__(_database(url, settings.value(METASTORE_BUSY)), settings, warehouse, now_ms)
        if self._store.was_upgraded:
            self.clean_empty_aborted_txns()


_SCHEME = re.compile(r"([a-z][a-z0-9.]*(?:\+[a-z0-9_]+)?)://", re.IGNORECASE)
_SQLITE = (None, "sqlite", "sqlite+pysqlite")
_POSTGRESQL = ("postgresql", "postgres", "postgresql+psycopg")


def _database(url: str, busy_timeout: float) -> Database:
    found = _SCHEME.match(url)
    scheme = None if found is None else found[1].lower()
    if scheme in _SQLITE:
        return SQLite(url, busy_timeout)
    if scheme not in _POSTGRESQL:
        raise UnsupportedError(
            f"No metastore can be opened at {scheme}://…",
            hint="Supported are SQLite (sqlite:////absolute/path/acidsql.db or the path of the file), PostgreSQL"
            " (postgresql+psycopg://user@host:5432/database) and a Hive Metastore (thrift://host:9083).",
        )
    try:
        from acidsql.metastore.embedded.postgres import PostgreSQL
    except ImportError as e:
        raise UnsupportedError(
            f"A store in PostgreSQL needs a package that is not installed: {e.name}",
            hint="pip install 'acidsql[postgres]'",
        ) from e
    return PostgreSQL(url, busy_timeout)
