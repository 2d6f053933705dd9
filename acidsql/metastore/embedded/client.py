"""What all calls of the embedded store share: the database, the settings and the clock."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from sqlalchemy import Connection

from acidsql.metastore.embedded.database import Database
from acidsql.metastore.embedded.store import Store
from acidsql.metastore.model import Capabilities
from acidsql.metastore.owner import Owner
from acidsql.settings import TXN_TIMEOUT, Settings

_LONGEST = 10**15
"""Milliseconds: longer than anything lives, and so short that a time can be added to it."""


class EmbeddedClient:
    """An open store. What its parts do is told by :class:`~acidsql.metastore.embedded.EmbeddedMetastore`."""

    def __init__(
        self, database: Database, settings: Settings, warehouse: str | None, now_ms: Callable[[], int] | None = None
    ) -> None:
        self._store = Store(database, warehouse=warehouse)
        self._settings = settings
        self._first_timeout = settings.value(TXN_TIMEOUT)
        self._clock = now_ms
        self._owner = Owner()

    def on_behalf_of(self, txn_id: int) -> AbstractContextManager[None]:
        return self._owner.is_txn(txn_id)

    def hurry(self) -> None:
        self._store.hurry()

    def close(self) -> None:
        self._store.close()

    @property
    def version(self) -> None:
        return None

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities()

    @property
    def lock_pauses(self) -> tuple[float, float]:
        return 0.01, 0.5

    @property
    def txn_timeout(self) -> float:
        return self._settings.value(TXN_TIMEOUT)

    def _now(self, db: Connection) -> int:
        """Milliseconds since 1970, within a transaction of the store."""
        return self._store.now(db) if self._clock is None else self._clock()

    @property
    def _timeout(self) -> int:
        """``hive.txn.timeout`` in milliseconds, as it was when the store was opened, or longer since.

        The session's heartbeats go by the one of the beginning (:class:`~acidsql.metastore.heartbeat.Heartbeats`).
        """
        return min(int(max(self.txn_timeout, self._first_timeout) * 1000), _LONGEST)
