"""Which lock waits for which: the rules of Hive's lock manager (``CheckLockFunction``), without a database.

A request waits for every lock of an earlier request that is in its way, whether that lock is held or itself waiting.
So no request overtakes an earlier one, and a writer is not starved by a stream of readers.

A transaction of several statements asks for locks while it holds some. In the embedded store its requests overtake
those that wait for it (:func:`overtaken_by`): to wait for them would be a deadlock. So they wait for its later locks,
too. Hive has no such rule.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from acidsql.metastore.model import LockInfo, LockState, LockType


class LockedObject(Protocol):
    """A database (table None), a table (partition None) or a partition, and the kind of lock on it."""

    @property
    def type(self) -> LockType: ...
    @property
    def database(self) -> str: ...
    @property
    def table(self) -> str | None: ...
    @property
    def partition(self) -> str | None: ...


Requested = TypeVar("Requested", bound=LockedObject)
Held = TypeVar("Held", bound=LockedObject)

CONFLICTS: Mapping[LockType, frozenset[LockType]] = {
    LockType.SHARED_READ: frozenset({LockType.EXCLUSIVE}),
    LockType.SHARED_WRITE: frozenset({LockType.EXCL_WRITE, LockType.EXCLUSIVE}),
    LockType.EXCL_WRITE: frozenset({LockType.SHARED_WRITE, LockType.EXCL_WRITE, LockType.EXCLUSIVE}),
    LockType.EXCLUSIVE: frozenset(LockType),
}
"""For each kind of request, the kinds of locks on the same object that it waits for."""

STRENGTH = (LockType.SHARED_READ, LockType.SHARED_WRITE, LockType.EXCL_WRITE, LockType.EXCLUSIVE)
"""From the weakest to the strongest: the order of SHOW LOCKS (Hive: ``LockTypeComparator``)."""


def blocks(held: LockedObject, requested: LockedObject) -> bool:
    """Whether a lock of somebody else, held or waiting, is in the way of a request."""
    return held.type in CONFLICTS[requested.type] and _overlap(held, requested) and not _exempt(held, requested)


def _overlap(one: LockedObject, other: LockedObject) -> bool:
    """Whether two objects are the same or one contains the other."""
    if one.database != other.database:
        return False
    if one.table is None or other.table is None:
        return True
    if one.table != other.table:
        return False
    return one.partition is None or other.partition is None or one.partition == other.partition


def _exempt(held: LockedObject, requested: LockedObject) -> bool:
    """SHARED_READ on a database only keeps the database: what happens to a table in it is no concern of that lock."""
    if requested.type is LockType.SHARED_READ:
        return requested.table is None and held.table is not None
    return held.type is LockType.SHARED_READ and held.table is None and requested.table is not None


def conflicts(requested: Sequence[Requested], held: Iterable[Held]) -> Iterator[tuple[Held, Requested]]:
    """The locks that a request must wait for, each with a part of the request that waits for it.

    Args:
        requested: All parts of the request.
        held: Locks of other transactions that asked earlier, in the order of their ids.
    """
    whole_tables: dict[tuple[str, str | None], list[Requested]] = defaultdict(list)
    partitions: dict[tuple[str, str | None, str | None], list[Requested]] = defaultdict(list)
    for part in requested:
        if part.partition is None:
            whole_tables[part.database, part.table].append(part)
        else:
            partitions[part.database, part.table, part.partition].append(part)
    for lock in held:
        if lock.partition is None:
            candidates: Iterable[Requested] = requested
        else:  # a thousand partitions against a thousand: look only at what can overlap
            candidates = (
                *whole_tables[lock.database, None],
                *whole_tables[lock.database, lock.table],
                *partitions[lock.database, lock.table, lock.partition],
            )
        for part in candidates:
            if blocks(lock, part):
                yield lock, part
                break


def must_wait(requested: Sequence[LockedObject], held: Iterable[LockedObject]) -> bool:
    """Whether a request must wait for one of some locks; both as for :func:`conflicts`."""
    return any(True for _ in conflicts(requested, held))


def overtaken_by(txn_id: int, locks: Iterable[LockInfo]) -> set[int]:
    """The requests that wait for a transaction, so that they get nothing before it ends: ids of locks.

    They wait for a lock that it holds, behind one of themselves, or for what is held by a transaction that has asked
    for one of themselves.

    Args:
        txn_id: The transaction.
        locks: All locks, held and waiting.
    """
    held: dict[int, list[LockInfo]] = defaultdict(list)
    waiting: dict[int, list[LockInfo]] = defaultdict(list)
    for lock in locks:
        if lock.state is LockState.ACQUIRED:
            held[lock.txn_id].append(lock)
        elif lock.txn_id != txn_id:
            waiting[lock.lock_id].append(lock)
    held.pop(0, None)  # each of these is its own
    in_the_way, found = held.pop(txn_id, []), set[int]()
    while True:
        for lock_id, parts in sorted(waiting.items()):
            before = (k for k in in_the_way if k.lock_id < lock_id or k.state is LockState.ACQUIRED)
            if lock_id not in found and must_wait(parts, before):
                found.add(lock_id)
                in_the_way = [*in_the_way, *parts, *held.pop(parts[0].txn_id, [])]
                break
        else:
            return found


def circle_of(
    locks: Iterable[LockInfo], txn_id: int, *, overtaking: bool, beside: Collection[int] = ()
) -> tuple[int, ...]:
    """Transactions that wait for each other's locks, beginning with one; none where they do not.

    Only one that holds locks and waits for others can be part of such a circle.

    Args:
        locks: All locks, held and waiting.
        txn_id: The transaction.
        overtaking: Whether requests overtake those that wait for their transaction. Then a lock that is held, and of
            which the store says that another one blocks it, is that of a transaction that waits for the other's end.
        beside: Transactions that this one waits for without having asked for a lock.
    """
    requests: dict[int, list[LockInfo]] = defaultdict(list)
    of_txn: dict[int, list[LockInfo]] = defaultdict(list)
    for lock in locks:
        requests[lock.lock_id].append(lock)
        of_txn[lock.txn_id].append(lock)
    ordered = [lock for _, parts in sorted(requests.items()) for lock in parts]

    def waits_for(txn: int) -> Iterator[int]:
        if txn == txn_id:
            yield from beside
        if overtaking:
            held = (one.blocked_by_lock_id for one in of_txn[txn] if one.state is LockState.ACQUIRED)
            yield from (k.txn_id for blocker in held if blocker in requests for k in requests[blocker][:1])
        passed = overtaken_by(txn, ordered) if overtaking else set[int]()
        for lock_id in {one.lock_id for one in of_txn[txn] if one.state is LockState.WAITING}:
            others = (one for one in ordered if one.txn_id != txn and one.lock_id not in passed)
            earlier = (k for k in others if k.lock_id < lock_id or (overtaking and k.state is LockState.ACQUIRED))
            yield from (held.txn_id for held, _ in conflicts(requests[lock_id], earlier))

    came_from: dict[int, int] = {}
    to_visit = [txn_id]
    while to_visit:
        one = to_visit.pop()
        for other in waits_for(one) if one else ():
            if other == txn_id:
                circle = [one]
                while circle[-1] != txn_id:
                    circle.append(came_from[circle[-1]])
                return tuple(reversed(circle))
            if other not in came_from:
                came_from[other] = one
                to_visit.append(other)
    return ()
