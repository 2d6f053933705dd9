"""Locks: queue a request, grant it, release it. The rules of who waits for whom are in lock_rules.

The id of a request (external id) is its place in the queue; its parts have internal ids from 1. A request is granted
as a whole or waits as a whole. A lock of a transaction lives as long as that; any other has a heartbeat of its own.
"""

# ruff: noqa: SIM300 (the upper-case names are columns, not constants)

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import BigInteger, Connection, bindparam, delete, insert, or_, select, update

from acidsql.errors import NoSuchLock, TransactionError
from acidsql.metastore.embedded import components, timeouts, txns, write_ids
from acidsql.metastore.embedded.client import EmbeddedClient
from acidsql.metastore.embedded.schema import HIVE_LOCKS, NEXT_LOCK_ID
from acidsql.metastore.lock_rules import CONFLICTS, STRENGTH, circle_of, conflicts, overtaken_by
from acidsql.metastore.model import (
    LockComponent,
    LockInfo,
    LockRequest,
    LockResponse,
    LockState,
    LockType,
)

NO_SUCH_LOCK = 10270
_BEATS = 4
"""Who asks for a lock again is alive: it says so that often before it would be taken for dead."""

LETTERS = {
    LockType.SHARED_READ: "r",
    LockType.SHARED_WRITE: "w",
    LockType.EXCL_WRITE: "x",
    LockType.EXCLUSIVE: "e",
}
_TYPES = {letter: kind for kind, letter in LETTERS.items()}
_ACQUIRED, _WAITING = LockState.ACQUIRED.value, LockState.WAITING.value

_L = HIVE_LOCKS.c
_NEXT = select(NEXT_LOCK_ID.c.NL_NEXT)
_SET_NEXT = update(NEXT_LOCK_ID).values(NL_NEXT=bindparam("next"))
_BY_ID = select(HIVE_LOCKS).where(_L.HL_LOCK_EXT_ID == bindparam("lock")).order_by(_L.HL_LOCK_INT_ID)
_EARLIER = (  # and those of transactions that have overtaken the request
    select(HIVE_LOCKS)
    .where(
        or_(_L.HL_LOCK_EXT_ID < bindparam("lock"), _L.HL_LOCK_STATE == _ACQUIRED),
        _L.HL_DB.in_(bindparam("databases", expanding=True)),
        _L.HL_LOCK_TYPE.in_(bindparam("types", expanding=True)),
        or_(bindparam("txn", type_=BigInteger()) == 0, _L.HL_TXNID != bindparam("txn")),
    )
    .order_by(_L.HL_LOCK_EXT_ID, _L.HL_LOCK_INT_ID)
)
_HELD_BY = select(HIVE_LOCKS).where(_L.HL_TXNID == bindparam("txn"), _L.HL_LOCK_STATE == _ACQUIRED)
_OF_TXN = delete(HIVE_LOCKS).where(_L.HL_TXNID == bindparam("txn"))


@dataclass(frozen=True)
class _Part:
    """A part of a request: its number and what it asks for."""

    internal_id: int
    type: LockType
    database: str
    table: str | None
    partition: str | None


def _beat(db: Connection, lock_id: int, txn_id: int, now: int) -> None:
    if txn_id:
        txns.heartbeat(db, txn_id, now)
    else:
        db.execute(update(HIVE_LOCKS).where(_L.HL_LOCK_EXT_ID == lock_id).values(HL_LAST_HEARTBEAT=now))


def release_of(db: Connection, txn_id: int) -> None:
    """Release all locks of a transaction."""
    db.execute(_OF_TXN, {"txn": txn_id})


@dataclass(frozen=True)
class _Blocked:
    """Why a request waits.

    Attributes:
        by: The first lock in its way.
        part: The part of the request that it is in the way of.
        ahead: How many requests are in its way.
        circle: The transactions that wait for each other, where they do.
    """

    by: LockInfo
    part: _Part
    ahead: int = 1
    circle: tuple[int, ...] = ()


def _blocked(
    db: Connection, lock_id: int, txn_id: int, parts: Sequence[_Part], *, now: int, timeout: int
) -> _Blocked | None:
    """The first earlier lock that conflicts with a request. Locks of owners that died are released."""
    found = _first_conflict(db, lock_id, txn_id, parts)
    if found is not None:
        released = timeouts.release_silent_locks(db, now=now, timeout=timeout)
        if timeouts.abort_silent_txns(db, now=now, timeout=timeout, spared=txn_id) or released:
            found = _first_conflict(db, lock_id, txn_id, parts)
    return found


def _first_conflict(db: Connection, lock_id: int, txn_id: int, parts: Sequence[_Part]) -> _Blocked | None:
    types = frozenset[LockType]().union(*(CONFLICTS[p.type] for p in parts))
    parameters = {
        "lock": lock_id,
        "txn": txn_id,
        "databases": sorted({p.database for p in parts}),
        "types": sorted(LETTERS[t] for t in types),
    }
    overtaken: set[int] | None = None
    found: _Blocked | None = None
    ahead = set[int]()
    for held, part in conflicts(parts, map(_info, db.execute(_EARLIER, parameters).all())):
        if overtaken is None:
            overtaken = overtaken_by(txn_id, _locks_beside(db, txn_id))
        if found is None and held.lock_id not in overtaken:
            found = _Blocked(held, part)
        if found is not None:
            ahead.add(held.lock_id)
    return found and replace(found, ahead=len(ahead))


def _locks_beside(db: Connection, txn_id: int) -> list[LockInfo]:
    """All locks; none beside a transaction that holds nothing: it overtakes nobody, and is in no circle."""
    if not txn_id or db.execute(_HELD_BY, {"txn": txn_id}).first() is None:
        return []
    return [_info(r) for r in db.execute(select(HIVE_LOCKS))]


def _with_circle(db: Connection, txn_id: int, found: _Blocked) -> _Blocked:
    """The same, with the transactions that wait for each other by now, if this one is to be ended for it.

    That is the one which has asked last and so closed the circle, so that it is told at once. The request has been
    recorded.
    """
    return replace(found, circle=_circle_that_it_ends(_locks_beside(db, txn_id), txn_id))


def _circle_that_it_ends(locks: Sequence[LockInfo], txn_id: int, writers: Sequence[int] = ()) -> tuple[int, ...]:
    """The transactions that wait for each other, if it is this one that is to be ended.

    That is the youngest of those that wait for writers, as TRUNCATE does, which can be run again; where there is none,
    the one that has asked last for a lock.

    Args:
        locks: All locks, held and waiting.
        txn_id: The transaction.
        writers: Those that it waits for.
    """
    circle = circle_of(locks, txn_id, overtaking=True, beside=writers)
    if not circle:
        return ()
    members = [k for k in locks if k.txn_id in circle]
    waiting = {k.txn_id for k in members if k.state is LockState.ACQUIRED and k.blocked_by_lock_id is not None}
    waiting |= {txn_id} if writers else set()
    asked = {k.lock_id: k.txn_id for k in members if k.state is LockState.WAITING}
    return circle if txn_id == (max(waiting) if waiting else asked[max(asked)]) else ()


def _noted(locks: Sequence[LockInfo], txn_id: int, table: str, writers: Sequence[int]) -> list[LockInfo]:
    """The locks of a table (``database.table``) that a transaction holds, as they are to be: with the one of the first
    writer that it waits for in their way, or none."""
    held = [k for k in locks if k.state is LockState.ACQUIRED and f"{k.database}.{k.table}" == table]
    blockers = sorted((k.lock_id, k.internal_id) for k in held if k.txn_id in writers)
    lock_id, part = blockers[0] if blockers else (None, None)
    own = [replace(k, blocked_by_lock_id=lock_id, blocked_by_internal_id=part) for k in held if k.txn_id == txn_id]
    return [k for k in own if k not in locks]


def _by_id(db: Connection, lock_id: int) -> list[LockInfo]:
    """The parts of a request. Raises: NoSuchLock."""
    found = [_info(r) for r in db.execute(_BY_ID, {"lock": lock_id})]
    if not found:
        raise NoSuchLock(f"No such lock lockid:{lock_id}", code=NO_SUCH_LOCK)
    return found


def _parts(locks: Sequence[LockInfo]) -> list[_Part]:
    return [_Part(k.internal_id, k.type, k.database, k.table, k.partition) for k in locks]


def _part(number: int, component: LockComponent) -> _Part:
    return _Part(number, component.type, component.database, component.table, component.partition)


def _row(
    lock_id: int, part: _Part, request: LockRequest, found: _Blocked | None, now: int, timeout: int
) -> dict[str, object]:
    blocker = found.by if found is not None and found.part is part else None
    return {
        "HL_LOCK_EXT_ID": lock_id,
        "HL_LOCK_INT_ID": part.internal_id,
        "HL_TXNID": request.txn_id,
        "HL_DB": part.database,
        "HL_TABLE": part.table,
        "HL_PARTITION": part.partition,
        "HL_LOCK_STATE": _ACQUIRED if found is None else _WAITING,
        "HL_LOCK_TYPE": LETTERS[part.type],
        "HL_LAST_HEARTBEAT": 0 if request.txn_id else now,
        "HL_ACQUIRED_AT": now if found is None else None,
        "HL_USER": request.user,
        "HL_HOST": request.host,
        "HL_AGENT_INFO": request.agent_info,
        "HL_BLOCKEDBY_EXT_ID": blocker and blocker.lock_id,
        "HL_BLOCKEDBY_INT_ID": blocker and blocker.internal_id,
        "HL_TIMEOUT": timeout,
    }


def _response(lock_id: int, found: _Blocked | None) -> LockResponse:
    if found is None:
        return LockResponse(lock_id, LockState.ACQUIRED)
    return LockResponse(lock_id, LockState.WAITING, found.by, found.circle, found.ahead)


def _info(row: Any) -> LockInfo:
    return LockInfo(
        lock_id=row.HL_LOCK_EXT_ID,
        internal_id=row.HL_LOCK_INT_ID,
        txn_id=row.HL_TXNID,
        database=row.HL_DB,
        table=row.HL_TABLE,
        partition=row.HL_PARTITION,
        type=_TYPES[row.HL_LOCK_TYPE],
        state=LockState(row.HL_LOCK_STATE),
        blocked_by_lock_id=row.HL_BLOCKEDBY_EXT_ID,
        blocked_by_internal_id=row.HL_BLOCKEDBY_INT_ID,
        heartbeat_ms=row.HL_LAST_HEARTBEAT or None,
        acquired_ms=row.HL_ACQUIRED_AT,
        user=row.HL_USER,
        host=row.HL_HOST,
        agent_info=row.HL_AGENT_INFO or "",
    )


class EmbeddedLocks(EmbeddedClient):
    """The locks of :class:`~acidsql.metastore.protocol.Transactions`."""

    def lock(self, request: LockRequest) -> LockResponse:
        """Take a place in the queue, and the locks if no earlier lock conflicts."""
        with self._store.write(durable=False) as db:
            now, timeout = self._now(db), self._timeout
            if not request.components:
                raise TransactionError("A lock request must name what is to be locked")
            if request.txn_id:
                txns.require_open(db, request.txn_id)
            lock_id = int(db.execute(_NEXT).scalar_one())
            db.execute(_SET_NEXT, {"next": lock_id + 1})
            parts = [_part(n, c) for n, c in enumerate(request.components, 1)]
            found = _blocked(db, lock_id, request.txn_id, parts, now=now, timeout=timeout)
            if found is not None and request.zero_wait_reads and request.txn_id:
                reads = [p for p in parts if p.type is LockType.SHARED_READ]
                before_reads = _blocked(db, lock_id, request.txn_id, reads, now=now, timeout=timeout)
                if before_reads is not None:
                    return LockResponse(lock_id, LockState.NOT_ACQUIRED, before_reads.by)
            components.record_locked(db, request)
            db.execute(insert(HIVE_LOCKS), [_row(lock_id, part, request, found, now, timeout) for part in parts])
            return _response(lock_id, found and _with_circle(db, request.txn_id, found))

    def check_lock(self, lock_id: int) -> LockResponse:
        """Where nothing has changed it is only read: who waits must not hold up the writer that is waited for."""
        with self._store.read() as db:
            found = self._still_blocked(db, lock_id)
        return self._asked_again(lock_id) if found is None else _response(lock_id, found)

    def _still_blocked(self, db: Connection, lock_id: int) -> _Blocked | None:
        """Why a request waits, where that is on record, and nobody is due to be taken for dead; else None."""
        now, timeout = self._now(db), self._timeout
        locks = _by_id(db, lock_id)
        txn_id = locks[0].txn_id
        beat = txns.heartbeat_of(db, txn_id) if txn_id else locks[0].heartbeat_ms
        is_silent = beat is None or now - beat >= timeout // _BEATS
        if locks[0].state is LockState.ACQUIRED or is_silent or timeouts.are_due(db, now=now, timeout=timeout):
            return None
        found = _first_conflict(db, lock_id, txn_id, _parts(locks))
        if found is None:
            return None
        on_record = {k.internal_id: (k.blocked_by_lock_id, k.blocked_by_internal_id) for k in locks}
        known = on_record.pop(found.part.internal_id) == (found.by.lock_id, found.by.internal_id)
        return _with_circle(db, txn_id, found) if known and set(on_record.values()) <= {(None, None)} else None

    def _asked_again(self, lock_id: int) -> LockResponse:
        with self._store.write(durable=False) as db:
            now, timeout = self._now(db), self._timeout
            locks = _by_id(db, lock_id)
            txn_id = locks[0].txn_id
            _beat(db, lock_id, txn_id, now)
            if locks[0].state is LockState.ACQUIRED:
                return LockResponse(lock_id, LockState.ACQUIRED)
            parts = _parts(locks)
            found = _blocked(db, lock_id, txn_id, parts, now=now, timeout=timeout)
            mine = _L.HL_LOCK_EXT_ID == lock_id
            db.execute(update(HIVE_LOCKS).where(mine).values(HL_BLOCKEDBY_EXT_ID=None, HL_BLOCKEDBY_INT_ID=None))
            if found is None:
                db.execute(update(HIVE_LOCKS).where(mine).values(HL_LOCK_STATE=_ACQUIRED, HL_ACQUIRED_AT=now))
            else:
                db.execute(
                    update(HIVE_LOCKS)
                    .where(mine, _L.HL_LOCK_INT_ID == found.part.internal_id)
                    .values(HL_BLOCKEDBY_EXT_ID=found.by.lock_id, HL_BLOCKEDBY_INT_ID=found.by.internal_id)
                )
            return _response(lock_id, found and _with_circle(db, txn_id, found))

    def unlock(self, lock_id: int, withdrawn: LockRequest | None = None) -> None:
        """Hive: ``DefaultTxnLockManager.unlock``."""
        with self._store.write(durable=False) as db:
            first = _by_id(db, lock_id)[0]
            if first.txn_id and first.state is LockState.ACQUIRED and withdrawn is None:
                raise TransactionError(
                    f"Unlocking locks associated with transaction not permitted: lock {lock_id} belongs to"
                    f" {txns.txn_name(first.txn_id)}",
                    hint="Commit or abort the transaction.",
                )
            db.execute(delete(HIVE_LOCKS).where(_L.HL_LOCK_EXT_ID == lock_id))
            if withdrawn is not None:
                components.withdraw(db, withdrawn)

    def show_locks(
        self, database: str | None = None, table: str | None = None, partition: str | None = None
    ) -> list[LockInfo]:
        """Those held first, then by strength and id (Hive: ``LockInfoComparator``)."""
        with self._store.read() as db:
            named = [(_L.HL_DB, database), (_L.HL_TABLE, table), (_L.HL_PARTITION, partition)]
            found = [
                _info(r) for r in db.execute(select(HIVE_LOCKS).where(*(c == v for c, v in named if v is not None)))
            ]
            return sorted(
                found,
                key=lambda k: (k.state is not LockState.ACQUIRED, STRENGTH.index(k.type), k.lock_id, k.internal_id),
            )

    def circle_with_writers(self, txn_id: int, database: str, table: str, below: int) -> tuple[int, ...]:
        with self._store.read() as db:
            locks = _locks_beside(db, txn_id)
            writers = write_ids.open_writers(db, database, table, below)
            noted = _noted(locks, txn_id, f"{database}.{table}", writers)
            if not noted:
                return _circle_that_it_ends(locks, txn_id, writers)
        with self._store.write(durable=False) as db:
            for k in noted:
                mine = (_L.HL_LOCK_EXT_ID == k.lock_id, _L.HL_LOCK_INT_ID == k.internal_id)
                values = {
                    _L.HL_BLOCKEDBY_EXT_ID: k.blocked_by_lock_id,
                    _L.HL_BLOCKEDBY_INT_ID: k.blocked_by_internal_id,
                }
                db.execute(update(HIVE_LOCKS).where(*mine).values(values))
            return _circle_that_it_ends(_locks_beside(db, txn_id), txn_id, writers)

    def heartbeat(self, *, txn_id: int = 0, lock_id: int = 0) -> None:
        with self._store.write(durable=False) as db:
            now = self._now(db)
            if txn_id:
                txns.heartbeat(db, txn_id, now)
            if lock_id:
                _beat(db, lock_id, _by_id(db, lock_id)[0].txn_id, now)
