"""Which lock waits for which: the rules of Hive's lock manager (``CheckLockFunction``), without a database.

A request waits for every lock of an earlier request that is in its way, whether that lock is held or itself waiting.
So no request overtakes an earlier one, and a writer is not starved by a stream of readers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from acidsql.metastore.model import LockType


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


def first_conflict(requested: Sequence[Requested], held: Iterable[Held]) -> tuple[Held, Requested] | None:
    """The first lock that a request must wait for, with the part of the request that waits for it.

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
                return lock, part
    return None
