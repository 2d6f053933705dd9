"""Changes of the catalog, each in one step with the check that the statement still holds its locks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection

from acidsql.metastore.embedded import txns
from acidsql.metastore.embedded.client import EmbeddedClient


class EmbeddedChanges(EmbeddedClient):
    """What the parts that change the catalog share."""

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
