"""The abort of a transaction: its locks go, and the tables that it was creating.

What it wrote stays on record until its files are gone (:mod:`~acidsql.metastore.embedded.components`).
"""

# ruff: noqa: SIM300 (the upper-case names are columns, not constants)

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, select, update

from acidsql.metastore.embedded import catalog, components
from acidsql.metastore.embedded.batches import batches
from acidsql.metastore.embedded.client import EmbeddedClient
from acidsql.metastore.embedded.schema import HIVE_LOCKS, TXNS
from acidsql.metastore.model import TxnState

_T = TXNS.c


def abort(db: Connection, txn_ids: Sequence[int], reason: str) -> list[int]:
    """Abort those that are open; their ids."""
    aborted: list[int] = []
    for some in batches(sorted(set(txn_ids))):
        is_open = select(_T.TXN_ID).where(_T.TXN_ID.in_(some), _T.TXN_STATE == TxnState.OPEN.value)
        ids = list(db.execute(is_open.order_by(_T.TXN_ID)).scalars())
        if ids:
            ended = {"TXN_STATE": TxnState.ABORTED.value, "TXN_META_INFO": reason or None}
            db.execute(update(TXNS).where(_T.TXN_ID.in_(ids)).values(**ended))
            db.execute(delete(HIVE_LOCKS).where(HIVE_LOCKS.c.HL_TXNID.in_(ids)))
            components.back_write_ids(db, ids)
            aborted += ids
    if aborted:
        catalog.drop_unfinished(db)
    return aborted


class EmbeddedAborts(EmbeddedClient):
    """:class:`~acidsql.metastore.protocol.Transactions`: abort."""

    def abort_txns(self, txn_ids: Sequence[int], reason: str = "") -> list[int]:
        with self._store.write() as db:
            return abort(db, txn_ids, reason)
