"""The end of those that died: transactions and locks whose heartbeats stopped (Hive: ``PerformTimeoutsFunction``).

Hive's metastore server looks for them now and then. The embedded store has no server: whoever waits for a lock looks,
and whoever calls ``time_out_txns``.
"""

# ruff: noqa: SIM300 (the upper-case names are columns, not constants)

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


def release_silent_locks(db: Connection, *, now: int, timeout: int) -> int:
    """Release locks of no transaction that have been silent too long; how many parts of requests that were.

    Args:
        now: Milliseconds since 1970.
        timeout: ``hive.txn.timeout`` in milliseconds.
    """
    return db.execute(_DROP_SILENT_LOCKS, {"limit": now - timeout}).rowcount


def abort_silent_txns(db: Connection, *, now: int, timeout: int, spared: int = 0) -> list[int]:
    """Abort transactions that have been silent too long; their ids.

    Args:
        now: Milliseconds since 1970.
        timeout: ``hive.txn.timeout`` in milliseconds.
        spared: The caller's own transaction: it is alive, as the call shows.
    """
    silent = list(db.execute(_SILENT_TXNS, {"limit": now - timeout, "spared": spared}).scalars())
    return txns.abort(db, silent, reason=f"timed out: no heartbeat for more than {timeout / 1000:g} s")
