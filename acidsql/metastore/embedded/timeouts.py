"""Aborts timed-out transactions, and releases timed-out locks (Hive: ``PerformTimeoutsFunction``).

Hive's metastore server looks for them periodically. The embedded store has no server: whoever waits for a lock does,
and whoever calls ``time_out_txns``. Each owner sends its heartbeats by its own ``hive.txn.timeout``, so that one is
kept with the transaction or lock and decides, not the setting of whoever looks.
"""

# ruff: noqa: SIM300 (the upper-case names are columns, not constants)

from __future__ import annotations

from itertools import groupby

from sqlalchemy import BigInteger, Connection, and_, bindparam, delete, func, select

from acidsql.metastore.embedded import aborts
from acidsql.metastore.embedded.client import EmbeddedClient
from acidsql.metastore.embedded.schema import HIVE_LOCKS, TXNS
from acidsql.metastore.model import TxnState

_NOW, _DEFAULT = bindparam("now", type_=BigInteger()), bindparam("default", type_=BigInteger())
_TXN_TIMEOUT = func.coalesce(TXNS.c.TXN_TIMEOUT, _DEFAULT)
_SILENT_TXNS = (
    select(_TXN_TIMEOUT, TXNS.c.TXN_ID)
    .where(
        TXNS.c.TXN_STATE == TxnState.OPEN.value,
        TXNS.c.TXN_LAST_HEARTBEAT + _TXN_TIMEOUT < _NOW,
        TXNS.c.TXN_ID != bindparam("spared"),
    )
    .order_by(_TXN_TIMEOUT, TXNS.c.TXN_ID)
)
_IS_SILENT_LOCK = and_(
    HIVE_LOCKS.c.HL_TXNID == 0,
    HIVE_LOCKS.c.HL_LAST_HEARTBEAT + func.coalesce(HIVE_LOCKS.c.HL_TIMEOUT, _DEFAULT) < _NOW,
)
_SILENT_LOCK = select(HIVE_LOCKS.c.HL_LOCK_EXT_ID).where(_IS_SILENT_LOCK).limit(1)
_DROP_SILENT_LOCKS = delete(HIVE_LOCKS).where(_IS_SILENT_LOCK)


def are_due(db: Connection, *, now: int, timeout: int) -> bool:
    """Whether a lock or a transaction has been silent too long. Args as for :func:`release_silent_locks`."""
    times = {"now": now, "default": timeout}
    silent = db.execute(_SILENT_LOCK, times).first() or db.execute(_SILENT_TXNS, {**times, "spared": 0}).first()
    return silent is not None


def release_silent_locks(db: Connection, *, now: int, timeout: int) -> int:
    """Release locks of no transaction that have been silent too long; how many parts of requests that were.

    Args:
        now: Milliseconds since 1970.
        timeout: Milliseconds for those of an older store, which did not note their own.
    """
    return db.execute(_DROP_SILENT_LOCKS, {"now": now, "default": timeout}).rowcount


def abort_silent_txns(db: Connection, *, now: int, timeout: int, spared: int = 0) -> list[int]:
    """Abort transactions that have been silent too long; their ids.

    Args:
        now: Milliseconds since 1970.
        timeout: Milliseconds for those of an older store, which did not note their own.
        spared: The caller's own transaction: it is alive, as the call shows.
    """
    silent = db.execute(_SILENT_TXNS, {"now": now, "default": timeout, "spared": spared}).all()
    aborted: list[int] = []
    for own, rows in groupby(silent, key=lambda row: int(row[0])):
        reason = f"timed out: no heartbeat for more than {own / 1000:g} s"
        aborted += aborts.abort(db, [int(row[1]) for row in rows], reason=reason)
    return sorted(aborted)


class EmbeddedTimeouts(EmbeddedClient):
    """:class:`~acidsql.metastore.protocol.Transactions`: time-outs."""

    def time_out_txns(self) -> list[int]:
        with self._store.write() as db:
            now = self._now(db)
            release_silent_locks(db, now=now, timeout=self._timeout)
            return abort_silent_txns(db, now=now, timeout=self._timeout)
