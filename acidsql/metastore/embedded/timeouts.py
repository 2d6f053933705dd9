"""Aborts timed-out transactions, and releases timed-out locks (Hive: ``PerformTimeoutsFunction``).

Hive's metastore server looks for them periodically. The embedded store has no server: whoever waits for a lock does,
and whoever calls ``time_out_txns``. Each owner sends its heartbeats by its own ``hive.txn.timeout``, so that one is
kept with the transaction or lock and decides, not the setting of whoever looks.
"""

# ruff: noqa: SIM300 (the upper-case names are columns, not constants)

from __future__ import annotations

from itertools import groupby

from sqlalchemy import BigInteger, Connection, and_, bindparam, delete, func, or_, select, update

from acidsql.metastore.embedded import aborts
from acidsql.metastore.embedded.client import EmbeddedClient
from acidsql.metastore.embedded.schema import HIVE_LOCKS, TXNS
from acidsql.metastore.model import TxnState

_NOW, _DEFAULT = bindparam("now", type_=BigInteger()), bindparam("default", type_=BigInteger())
_TXN_TIMEOUT = func.coalesce(TXNS.c.TXN_TIMEOUT, _DEFAULT)
_IS_OPEN = TXNS.c.TXN_STATE == TxnState.OPEN.value
_IS_SILENT = TXNS.c.TXN_LAST_HEARTBEAT + _TXN_TIMEOUT < _NOW
_SILENT_TXNS = (
    select(_TXN_TIMEOUT, TXNS.c.TXN_ID)
    .where(_IS_OPEN, _IS_SILENT, TXNS.c.TXN_ID != bindparam("spared"))
    .order_by(_TXN_TIMEOUT, TXNS.c.TXN_ID)
)
_IS_SILENT_LOCK = and_(
    HIVE_LOCKS.c.HL_TXNID == 0,
    HIVE_LOCKS.c.HL_LAST_HEARTBEAT + func.coalesce(HIVE_LOCKS.c.HL_TIMEOUT, _DEFAULT) < _NOW,
)
_DROP_SILENT_LOCKS = delete(HIVE_LOCKS).where(_IS_SILENT_LOCK)
_LATER = 1000
"""Milliseconds after now from which on a heartbeat cannot be: the clock was set back since."""
_IS_LATER_TXN = TXNS.c.TXN_LAST_HEARTBEAT > _NOW + _LATER
_IS_LATER_LOCK = and_(HIVE_LOCKS.c.HL_TXNID == 0, HIVE_LOCKS.c.HL_LAST_HEARTBEAT > _NOW + _LATER)
_ARE_DUE = (
    select(HIVE_LOCKS.c.HL_LOCK_EXT_ID).where(or_(_IS_SILENT_LOCK, _IS_LATER_LOCK)).limit(1),
    select(TXNS.c.TXN_ID).where(_IS_OPEN, or_(_IS_SILENT, _IS_LATER_TXN)).limit(1),
)


def are_due(db: Connection, *, now: int, timeout: int) -> bool:
    """Whether a lock or a transaction has been silent too long, or its heartbeat is not that of this clock. Args as for
    :func:`release_silent_locks`."""
    times = {"now": now, "default": timeout}
    return any(db.execute(query, times).first() is not None for query in _ARE_DUE)


def release_silent_locks(db: Connection, *, now: int, timeout: int) -> int:
    """Release locks of no transaction that have been silent too long; how many parts of requests that were.

    Where the clock was set back since a heartbeat, that counts from now on.

    Args:
        now: Milliseconds since 1970.
        timeout: Milliseconds for those of an older store, which did not note their own.
    """
    db.execute(update(HIVE_LOCKS).where(_IS_LATER_LOCK).values(HL_LAST_HEARTBEAT=_NOW), {"now": now})
    return db.execute(_DROP_SILENT_LOCKS, {"now": now, "default": timeout}).rowcount


def abort_silent_txns(db: Connection, *, now: int, timeout: int, spared: int = 0) -> list[int]:
    """Abort transactions that have been silent too long; their ids.

    Where the clock was set back since a heartbeat, that counts from now on.

    Args:
        now: Milliseconds since 1970.
        timeout: Milliseconds for those of an older store, which did not note their own.
        spared: The caller's own transaction: it is alive, as the call shows.
    """
    db.execute(update(TXNS).where(_IS_OPEN, _IS_LATER_TXN).values(TXN_LAST_HEARTBEAT=_NOW), {"now": now})
    silent = db.execute(_SILENT_TXNS, {"now": now, "default": timeout, "spared": spared}).all()
    aborted: list[int] = []
    for own, rows in groupby(silent, key=lambda row: int(row[0])):
        reason = f"timed out: no heartbeat for more than {own / 1000:g} s"
        aborted += aborts.abort(db, [int(row[1]) for row in rows], reason=reason)
    return sorted(aborted)


class EmbeddedTimeouts(EmbeddedClient):
    """:class:`~acidsql.metastore.protocol.Transactions`: time-outs."""

    def time_out_txns(self, *, spared: int = 0) -> list[int]:
        with self._store.read() as db:
            if not are_due(db, now=self._now(db), timeout=self._timeout):
                return []
        with self._store.write() as db:
            now = self._now(db)
            release_silent_locks(db, now=now, timeout=self._timeout)
            return abort_silent_txns(db, now=now, timeout=self._timeout, spared=spared)
