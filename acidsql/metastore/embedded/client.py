"""What all calls of the embedded store share: the database, the settings and the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from acidsql.metastore.embedded import sqlite
from acidsql.metastore.embedded.store import Store
from acidsql.metastore.model import Capabilities
from acidsql.metastore.owner import Owner
from acidsql.settings import METASTORE_BUSY, TXN_TIMEOUT, Settings


def system_ms() -> int:
    """The clock: milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class EmbeddedClient:
    """An open store. What its parts do is told by :class:`~acidsql.metastore.embedded.EmbeddedMetastore`."""

    def __init__(self, url: str, settings: Settings, warehouse: str, now_ms: Callable[[], int] = system_ms) -> None:
        self._store = Store(sqlite.parse_url(url), settings.value(METASTORE_BUSY), warehouse=warehouse)
        self._settings = settings
        self._first_timeout = settings.value(TXN_TIMEOUT)
        self._now = now_ms
        self._owner = Owner()

    def on_behalf_of(self, txn_id: int) -> AbstractContextManager[None]:
        return self._owner.is_txn(txn_id)

    def close(self) -> None:
        self._store.close()

    @property
    def version(self) -> None:
        return None

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities()

    @property
    def lock_pause(self) -> float:
        return 0.01

    @property
    def txn_timeout(self) -> float:
        return self._settings.value(TXN_TIMEOUT)

    @property
    def _timeout(self) -> int:
        """``hive.txn.timeout`` in milliseconds, as it was when the store was opened, or longer since.

        The session's heartbeats go by the one of the beginning (:class:`~acidsql.metastore.heartbeat.Heartbeats`).
        """
        return int(max(self.txn_timeout, self._first_timeout) * 1000)
