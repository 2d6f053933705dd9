"""The end of those that died: transactions and locks whose heartbeats stopped (Hive: ``PerformTimeoutsFunction``).

Hive's metastore server looks for them now and then. The embedded store has no server: whoever waits for a lock looks,
and whoever calls ``time_out_txns``.
"""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, delete, select

from acidsql.metastore.embedded import txns
from acidsql.metastore.embedded.schema import HIVE_LOCKS, TXNS
from acidsql.metastore.model import TxnState

_SILENT_TXNS = select(TXNS.c.TXN_ID).where(
    TXNS.c.TXN_STATE == TxnState.OPEN.value,
    TXNS.c.TXN_LAST_HEARTBEAT < bindparam("limit"),
    TXNS.c.TXN_ID != bindparam("spared"),
)
_DROP_SILENT_LOCKS = delete(HIVE_LOCKS).where(
    HIVE_LOCKS.c.HL_TXNID == 0, HIVE_LOCKS.c.HL_LAST_HEARTBEAT < bindparam("limit")
)


def time_out(db: Connection, *, now: int, timeout: int, spared_txn: int = 0) -> bool:
    """Abort transactions and release locks that have been silent too long; whether there were any.

    Args:
        now: Milliseconds since 1970.
        timeout: ``hive.txn.timeout`` in milliseconds.
        spared_txn: The caller's own transaction: it is alive, as the call shows.
    """
    released = db.execute(_DROP_SILENT_LOCKS, {"limit": now - timeout}).rowcount
    return bool(time_out_txns(db, now=now, timeout=timeout, spared_txn=spared_txn)) or released > 0


def time_out_txns(db: Connection, *, now: int, timeout: int, spared_txn: int = 0) -> list[int]:
    """Abort transactions that have been silent too long; their ids."""
    silent = list(db.execute(_SILENT_TXNS, {"limit": now - timeout, "spared": spared_txn}).scalars())
    return txns.abort(db, silent, reason=f"timed out: no heartbeat for more than {timeout / 1000:g} s")
