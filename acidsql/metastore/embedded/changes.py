"""Changes of the catalog, each in one step with the check that the statement still holds its locks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from sqlalchemy import Connection

from acidsql.metastore.embedded import txns
from acidsql.metastore.embedded.client import EmbeddedClient, system_ms
from acidsql.metastore.owner import Owner
from acidsql.settings import Settings


class EmbeddedChanges(EmbeddedClient):
    """What the parts that change the catalog share."""

    def __init__(self, url: str, settings: Settings, warehouse: str, now_ms: Callable[[], int] = system_ms) -> None:
        super().__init__(url, settings, warehouse, now_ms)
        self._owner = Owner()

    def on_behalf_of(self, txn_id: int) -> AbstractContextManager[None]:
        return self._owner.is_txn(txn_id)

    @contextmanager
    def _change(self, *, durable: bool = True) -> Iterator[Connection]:
        """As :meth:`Store.write`, for a change of the catalog.

        Raises:
            NoSuchTransaction, TransactionAborted: When the transaction that the thread works for is not open.
        """
        with self._store.write(durable=durable) as db:
            if self._owner.txn_id:
                txns.require_open(db, self._owner.txn_id)
            yield db
