"""The locks that statements request, by Hive's rules (``AcidUtils.makeLockComponents``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from acidsql.commands.environment import Environment
from acidsql.commands.resolve.context import StatementContext
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.metastore.model import LockComponent, LockType, Operation, Partition, Table
from acidsql.plan.snapshot import partition_names
from acidsql.settings import LOCK_PARTITIONS, XLOCK_IOW, XLOCK_MERGE_INSERT, XLOCK_WRITE


def name_lock(database: str, name: str) -> LockComponent:
    """The lock on a name that is to become a table's: whoever wants it, too, waits for the outcome.

    Hive locks only the database; there CREATE and RENAME of one name meet in the metastore, which moves directories
    itself.
    """
    return LockComponent(LockType.EXCL_WRITE, database, name)


def change_lock_type(env: Environment) -> LockType:
    """The lock type of UPDATE and DELETE: EXCL_WRITE (``hive.txn.xlock.write``)."""
    return LockType.EXCL_WRITE if env.settings.value(XLOCK_WRITE) else LockType.SHARED_WRITE


def change_locks(
    env: Environment, table: Table, operation: Operation, partitions: Sequence[Partition] | None, *, by_rows: bool
) -> list[LockComponent]:
    """The locks of a statement that changes rows: on its partitions, or on the table if they are many or None.

    Args:
        env: The session.
        table: The table.
        operation: What is done.
        partitions: The partitions.
        by_rows: Whether others may change other rows meanwhile, where the session compares rows.
    """
    names: Sequence[str | None] = [None]
    if partitions is not None and len(partitions) <= env.settings.value(LOCK_PARTITIONS):
        names = [partition_names(table, p) for p in partitions]
    kind = LockType.SHARED_WRITE if by_rows and env.compares_rows else change_lock_type(env)
    if names == [None] and table.partition_keys and env.metastore.capabilities.is_shared_with_hive:
        kind = LockType.EXCL_WRITE  # who changes a partition would not be found to be in conflict: see lock()
    return [LockComponent(kind, table.database, table.name, name, operation) for name in names]


def require_held(
    txn: WriteTransaction,
    context: StatementContext,
    table: Table,
    partitions: Sequence[Partition] | None,
    locks: Callable[[Sequence[Partition] | None], Sequence[LockComponent]],
) -> None:
    """Make sure that a statement holds the locks of what it changes: of every partition in which it sees rows.

    Args:
        txn: Its transaction, which has its locks and its snapshot.
        context: The statement, with everything looked up again since.
        table: The table.
        partitions: Those that its conditions leave now.
        locks: The locks of some partitions.

    Raises:
        StartOver: When others have added partitions while it waited. Where that happens again the next attempt is to
            lock the whole table (:meth:`.HeldLocks.is_whole`): they might add one each time.
    """
    if partitions is None or not txn.locks.missing(locks(partitions)):
        return
    added = [one for one in partitions if txn.locks.missing(locks([one]))]
    if any(not part.state.is_empty for part in context.table_snapshot(table, added).partitions):
        txn.locks.added_in[table.full_name] += 1
        txn.start_over(f"Partitions of {table.full_name} were added while the statement waited")


def insert_lock(
    env: Environment, table: Table, partition: str | None, *, overwrite: bool, dynamic: bool = False
) -> LockComponent:
    """The lock of a statement that inserts rows: SHARED_READ; for OVERWRITE EXCLUSIVE (``hive.txn.xlock.iow``).

    With ``hive.txn.xlock.write=false`` (first commit wins) they are SHARED_WRITE and EXCL_WRITE, as in Hive.

    Args:
        env: The session.
        table: The table.
        partition: Name of the one partition; None for the table.
        overwrite: Whether existing rows are replaced.
        dynamic: Whether the partitions are not known yet.
    """
    waits = env.settings.value(XLOCK_WRITE)
    kind, operation = (LockType.SHARED_READ if waits else LockType.SHARED_WRITE), Operation.INSERT
    if overwrite:
        exclusive = waits and env.settings.value(XLOCK_IOW)
        kind, operation = (LockType.EXCLUSIVE if exclusive else LockType.EXCL_WRITE), Operation.UPDATE
    return LockComponent(kind, table.database, table.name, partition, operation, is_dynamic_partition_write=dynamic)


def upsert_lock(env: Environment, table: Table) -> LockComponent:
    """The lock of what a statement inserts besides the rows that it changes, as MERGE does."""
    lock = insert_lock(env, table, None, overwrite=False, dynamic=bool(table.partition_keys))
    # as in Hive: then what is inserted counts as a change, also where the first commit wins
    strong = replace(lock, type=change_lock_type(env), operation=Operation.UPDATE)
    return strong if env.settings.value(XLOCK_MERGE_INSERT) else lock
