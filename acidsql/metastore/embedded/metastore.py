"""The embedded metastore: the union of its parts, each in the module that is named after it."""

from __future__ import annotations

from collections.abc import Callable

from acidsql.metastore.embedded.aborts import EmbeddedAborts
from acidsql.metastore.embedded.catalog import EmbeddedCatalog
from acidsql.metastore.embedded.cleaning import EmbeddedCleaning
from acidsql.metastore.embedded.client import system_ms
from acidsql.metastore.embedded.commit import EmbeddedCommits
from acidsql.metastore.embedded.compaction_history import EmbeddedCompactionHistory
from acidsql.metastore.embedded.databases import EmbeddedDatabases
from acidsql.metastore.embedded.dropped_places import EmbeddedDroppedPlaces
from acidsql.metastore.embedded.locks import EmbeddedLocks
from acidsql.metastore.embedded.queue import EmbeddedQueue
from acidsql.metastore.embedded.renames import EmbeddedRenames
from acidsql.metastore.embedded.statistics import EmbeddedStatistics
from acidsql.metastore.embedded.timeouts import EmbeddedTimeouts
from acidsql.metastore.embedded.txns import EmbeddedTxns
from acidsql.metastore.embedded.write_ids import EmbeddedWriteIds
from acidsql.settings import Settings


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
):
    """:class:`~acidsql.metastore.protocol.Metastore` in a SQLite file, for any number of threads and processes.

    What a method does and raises stands in the protocol. Besides that, each raises MetastoreError where the database
    cannot be read or written.

    Args:
        url: A SQLAlchemy URL of SQLite, or the path of the file.
        settings: Timeouts, limits and ``hive.txn.xlock.write`` are looked up at each call; the busy timeout once.
        warehouse: Location of the database ``default``, for a store that is made now.
        now_ms: The clock. All processes at one store should have about the same.

    Raises:
        MetastoreError: When the file cannot be opened, is no metastore, or is one of a newer version.
    """

    def __init__(self, url: str, settings: Settings, warehouse: str, now_ms: Callable[[], int] = system_ms) -> None:
        super().__init__(url, settings, warehouse, now_ms)
        if self._store.was_upgraded:
            self.clean_empty_aborted_txns()
