"""The transaction on whose behalf a thread changes the catalog: what both kinds of store keep for ``on_behalf_of``."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Owner(threading.local):
    """One transaction for each thread.

    Attributes:
        txn_id: The transaction; 0 where the thread works for none.
    """

    txn_id: int = 0

    @contextmanager
    def is_txn(self, txn_id: int) -> Iterator[None]:
        """The thread works for a transaction in a block; after it for the one before."""
        outer, self.txn_id = self.txn_id, txn_id
        try:
            yield
        finally:
            self.txn_id = outer
