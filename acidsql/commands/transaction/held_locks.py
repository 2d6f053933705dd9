"""The locks of one transaction: what it holds, and what its statement's next attempt asks for first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from acidsql.commands.environment import Environment
from acidsql.metastore.lock_rules import STRENGTH
from acidsql.metastore.model import CHANGES, LockComponent, LockRequest, LockType, Operation, Table
from acidsql.metastore.waiting import wait_for_lock

_SHARED = (LockType.SHARED_READ, LockType.SHARED_WRITE)


@dataclass
class HeldLocks:
    """The locks that a transaction holds: none is asked for twice, and all are held to its end."""

    env: Environment
    txn_id: int
    components: list[LockComponent] = field(default_factory=list)
    excluded_next: set[str] = field(default_factory=set)
    """Tables in which nobody may write meanwhile where the statement has to run again."""
    has_lost: bool = False
    """Whether it is run again after a conflict about rows: then it excludes others."""
    added_in: Counter[str] = field(default_factory=Counter)
    """How often the statement had to begin anew because partitions were added to a table, or changed, over all of its
    attempts."""

    def missing(self, wanted: Sequence[LockComponent]) -> tuple[LockComponent, ...]:
        """Those of some locks that it does not hold: a request for another one would wait behind who waits for it."""
        return tuple(c for c in wanted if not any(_covers(held, c) for held in self.components))

    def wait_for(self, components: Sequence[LockComponent]) -> None:
        """Ask for locks, all at once. Raises: LockTimeout when they are not granted in time."""
        if components:
            env = self.env
            request = LockRequest(tuple(components), self.txn_id, env.user, env.host, env.agent)
            wait_for_lock(env.metastore, env.settings, request)
            self.components += components

    def of_next_attempt(self) -> list[LockComponent]:
        """What the next attempt of the statement is to hold from its beginning (:meth:`wait_again`)."""

        def is_excluded(c: LockComponent) -> bool:
            return c.operation in CHANGES and f"{c.database}.{c.table}" in self.excluded_next

        return [replace(c, type=LockType.EXCLUSIVE) if is_excluded(c) else c for c in self.components]

    def wait_again(self, components: Sequence[LockComponent]) -> None:
        """Wait for what an earlier attempt of the same statement held, before it is planned and asks for the rest.

        Raises:
            LockTimeout: When they are not granted in time.
        """
        named = [c for c in components if not (c.is_dynamic_partition_write and c.type in _SHARED)]
        self.wait_for([excluding(c) for c in named] if self.has_lost else named)

    def were_outdated(self, components: Sequence[LockComponent]) -> None:
        """Count that others have changed what was locked now, after the snapshot: what an earlier attempt had locked is
        locked before it, so from the second time on these are partitions that were added since."""
        named = [c for c in components if c.partition is not None and c.operation in CHANGES]
        self.added_in.update({f"{c.database}.{c.table}" for c in named})

    def is_whole(self, table: Table) -> bool:
        """Whether the statement is to lock a whole table, whichever partitions its conditions leave."""
        return self.added_in[table.full_name] > 1

    def are_of_unnamed(self, table: Table) -> bool:
        """Whether it holds a lock for partitions of a table that are not named yet: the store knows of none of them."""
        place = (table.database, table.name)
        return any(c.is_dynamic_partition_write for c in self.components if (c.database, c.table) == place)

    def may_write_beside(self, table: Table) -> bool:
        """Whether its locks for changing a table let others insert: EXCL_WRITE is not in the way of INSERT's
        SHARED_READ (Hive's matrix)."""
        place = (table.database, table.name)
        held = [c.type for c in self.components if (c.database, c.table) == place and c.operation in CHANGES]
        return any(type is not LockType.EXCLUSIVE for type in held)

    @property
    def shares(self) -> list[LockComponent]:
        """Those of changes beside which others may change the same place."""
        return [c for c in self.components if c.type is LockType.SHARED_WRITE]


def excluding(component: LockComponent) -> LockComponent:
    """The lock of a change that lets nobody else change anything there."""
    is_shared = component.type is LockType.SHARED_WRITE and component.operation in CHANGES
    return replace(component, type=LockType.EXCL_WRITE) if is_shared else component


def _covers(held: LockComponent, wanted: LockComponent) -> bool:
    """Whether whoever holds a lock needs no other one of the same place, or a part of it, nor to tell more of what it
    does there."""
    is_part = held.partition in (None, wanted.partition)
    if (held.database, held.table) != (wanted.database, wanted.table) or not is_part:
        return False
    if wanted.is_dynamic_partition_write and not held.is_dynamic_partition_write:
        return False
    tells = held.operation == wanted.operation or held.operation in CHANGES or wanted.operation is Operation.SELECT
    return tells and STRENGTH.index(held.type) >= STRENGTH.index(wanted.type)
