"""The embedded metastore: catalog, transactions and locks in one SQLite file, for any number of processes."""

from __future__ import annotations

import time
from collections.abc import Callable

from acidsql.metastore.interim.catalog import EmbeddedCatalog
from acidsql.metastore.interim.locks import EmbeddedLocks
from acidsql.metastore.interim.store import Store
from acidsql.metastore.interim.txns import EmbeddedTransactions
from acidsql.metastore.model import DEFAULT_DATABASE
from acidsql.settings import METASTORE_BUSY, Settings


def _now_ms() -> int:
    return int(time.time() * 1000)


class EmbeddedMetastore(EmbeddedCatalog, EmbeddedTransactions, EmbeddedLocks):
    """:class:`~acidsql.metastore.protocol.Metastore` on a SQLite file.

    Args:
        url: ``sqlite:///<absolute path>``.
        settings: Time-outs and limits.
        warehouse: Location of the ``default`` database.
        now_ms: The clock, milliseconds since 1970.

    Raises:
        MetastoreError: When the file cannot be opened, made, read or written, or is of a later version.
    """

    def __init__(self, url: str, settings: Settings, warehouse: str, now_ms: Callable[[], int] = _now_ms) -> None:
        self._settings = settings
        self._now_ms = now_ms
        self._store = Store(url, settings.value(METASTORE_BUSY))
        with self._store.write() as step:
            step.run(
                "INSERT INTO DBS (NAME, LOCATION, COMMENT, PARAMETERS) VALUES (:name, :location, :comment, '{}')"
                " ON CONFLICT DO NOTHING",
                name=DEFAULT_DATABASE,
                location=warehouse,
                comment="Default Hive database",
            )

    def close(self) -> None:
        """Close all connections of this process."""
        self._store.close()
