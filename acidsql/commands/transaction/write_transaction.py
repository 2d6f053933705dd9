"""The life of a writing statement's transaction: open, lock, check, then commit, or abort with nothing left."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from acidsql.commands.ddl.rename_journal import finish_moves
from acidsql.commands.environment import Environment
from acidsql.commands.resolve.context import StartOver, essence
from acidsql.compactor.dropped import free_places
from acidsql.errors import (
    AcidError,
    NoSuchTransaction,
    TransactionAborted,
    TransactionError,
)
from acidsql.metastore.model import (
    LockComponent,
    LockRequest,
    Operation,
    Partition,
    Table,
)
from acidsql.metastore.waiting import wait_for_lock
from acidsql.plan.failures import own_failures
from acidsql.plan.snapshot import new_partition, partition_names
from acidsql.plan.staging import Staging
from acidsql.settings import SNAPSHOT_RETRIES, SYNC
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass
class WriteTransaction:
    """A transaction that holds its locks. Its snapshot is taken after they were granted (rule 4)."""

    env: Environment
    id: int
    stagings: list[Staging] = field(default_factory=list)
    is_aborted: bool = False
    """Whether the store has confirmed that none of it counts."""
    _txns: ValidTxnList | None = None
    _write_ids: dict[str, int] = field(default_factory=dict)
    _written: list[tuple[Table, tuple[str | None, ...]]] = field(default_factory=list)

    def lock(self, components: Sequence[LockComponent]) -> None:
        """Wait for locks. The snapshot is taken after it.

        Raises:
            LockTimeout: When they are not granted in time.
            StartOver: When a later transaction has changed what is now locked: this one's snapshot, which ends at its
                own id, would not see that.
        """
        if not components:
            return
        env = self.env
        request = LockRequest(tuple(components), self.id, env.user, env.host, env.agent)
        wait_for_lock(env.metastore, env.settings, request)
        conflict = env.metastore.get_latest_txn_in_conflict(self.id)
        if conflict is not None and conflict > self.id:
            raise StartOver(f"The snapshot was outdated by transaction {conflict}")

    def start_over(self, reason: str) -> None:
        """Raises: StartOver."""
        raise StartOver(reason, hint="Run it again.")

    def require_all_seen(self, table: Table) -> None:
        """Make sure that the snapshot sees all that was committed to a table on which others are locked out now.

        A writer with a later id may have committed between this transaction's beginning and its locks: who replaces
        rows by what it has read of them must see those, too.

        Raises:
            StartOver: When it does not.
        """
        mine = self.valid_write_ids(table)
        [latest] = self.env.metastore.get_valid_write_ids([table.full_name], self.env.metastore.get_valid_txns())
        newer = range(mine.high_watermark + 1, latest.high_watermark + 1)
        unseen = [w for w in (*newer, *mine.exceptions) if latest.is_valid(w)]
        if unseen:
            raise StartOver(f"Write id {unseen[0]} of {table.full_name} was committed since this statement began")

    @property
    def valid_txns(self) -> ValidTxnList:
        """The one snapshot of this statement."""
        if self._txns is None:
            self._txns = self.env.metastore.get_valid_txns(self.id)
        return self._txns

    def revalidate(self, table: Table, partitions: Sequence[Partition] | None = None) -> None:
        """Make sure that a table that was resolved before the locks were granted is still that table.

        Its comment and most of its properties may differ: Hive keeps statistics there, and changes them at each write.

        Args:
            table: The table.
            partitions: Partitions that were resolved too: they must be where they were.

        Raises:
            TableNotFound: When it was dropped while this statement waited.
            TransactionError: When it was altered or made anew.
        """
        metastore = self.env.metastore
        now = finish_moves(metastore, metastore.get_table(table.database, table.name))
        same = essence(now) == essence(table)
        if same and partitions:
            names = [partition_names(table, p) for p in partitions]
            same = set(partitions) <= set(metastore.list_partitions(table.database, table.name, names))
        if not same:
            raise TransactionError(
                f"Table {table.full_name} was changed while this statement waited for its locks", hint="Run it again."
            )

    def allocate_write_id(self, table: Table) -> int:
        """The write id in a table: taken after lock and snapshot, or deletes could miss rows (Hive's ``Driver``)."""
        if table.full_name not in self._write_ids:
            found = self.env.metastore.allocate_table_write_id(self.id, table.database, table.name)
            self._write_ids[table.full_name] = found
        return self._write_ids[table.full_name]

    def valid_write_ids(self, table: Table) -> ValidWriteIdList:
        """The write ids of a table that this statement's snapshot sees."""
        [found] = self.env.metastore.get_valid_write_ids([table.full_name], self.valid_txns)
        return found

    def invalidate_caches(self, table: Table) -> None:
        """Make the other engines of a Hive Metastore see partitions that come or go.

        HiveServer2 keeps a table's partitions by its valid write ids (HIVE-23949): what happens without a new one stays
        unseen there. No row is written under it.
        """
        if self.env.metastore.capabilities.is_shared_with_hive:
            self.allocate_write_id(table)

    def stage(self, table: Table) -> Staging:
        """A staging area, swept if the transaction does not commit."""
        sync = self.env.settings.value(SYNC)
        staging = Staging(table.location, events=table.is_full_acid, sync=sync)
        self.stagings.append(staging)
        return staging

    def publish(self, table: Table, staging: Staging, *, dynamic: bool = False) -> None:
        """Move what was staged to its places: those of the partitions, which are registered where they are new.

        Statistics of the table, or of those partitions, no longer hold from then on.

        Args:
            table: The table.
            staging: What was staged.
            dynamic: Whether the locks could not name the partitions. What was done to each is then told here: a
                partition in which rows were deleted or replaced is a changed one, whatever else came into it.
        """
        metastore, names = self.env.metastore, staging.partitions
        known = metastore.list_partitions(table.database, table.name, names) if table.partition_keys else []
        places = {partition_names(table, p): p.location for p in known}
        if table.partition_keys and len(places) < len(names):  # else what a killed DROP PARTITION left would come back
            free_places(metastore, [new_partition(table, name).location for name in names if name not in places])
        metastore.heartbeat(txn_id=self.id)  # whoever was taken for dead must not publish: the cleaner may have been
        staging.publish(places)
        metastore.heartbeat(txn_id=self.id)  # nor who slept in between: the cleaner looked before there was anything
        if not names:
            return
        self._written.append((table, tuple(names) if table.partition_keys else (None,)))
        write_id = self.allocate_write_id(table)
        if table.partition_keys:
            metastore.add_partitions([new_partition(table, name) for name in names if name not in places])
        if dynamic and table.partition_keys:
            done = staging.changes
            changed = [n for n in names if done[n].deleted or done[n].overwrites]
            added = [n for n in names if n not in changed]
            for operation, some in ((Operation.UPDATE, changed), (Operation.INSERT, added)):
                if some:
                    metastore.add_dynamic_partitions(self.id, write_id, table.database, table.name, some, operation)
        metastore.update_statistics(table, write_id, self.valid_write_ids(table), staging.changes)

    def committed(self) -> None:
        """Tell the compactor what there is since the commit."""
        for table, partitions in self._written:
            self.env.compactor.wrote(table.database, table.name, partitions)


@contextmanager
def open_transaction(env: Environment) -> Iterator[WriteTransaction]:
    """Run a block inside a transaction, and commit it.

    Any error before the commit aborts the transaction and removes what was written. Files are removed only once the
    metastore has confirmed the abort: after an unclear commit they may be the truth.

    Raises:
        ConstraintViolation: When Spark met a value that its column cannot have.
        WriteConflict: When another transaction changed the same rows first.
    """
    [txn_id] = env.metastore.open_txns(user=env.user, host=env.host, agent_info=env.agent)
    txn = WriteTransaction(env, txn_id)
    is_unclear = False
    try:
        with env.heartbeats.keep_alive(txn_id), own_failures():
            yield txn
            is_unclear = True
            env.metastore.commit_txn(txn_id)
    except BaseException as error:
        if _aborted(env, txn_id, error, is_unclear=is_unclear):
            txn.is_aborted = True
            gone = [staging.discard() for staging in txn.stagings]
            if all(gone):
                _forget(env, txn_id)
        raise
    txn.committed()


def in_transaction(env: Environment, run: Callable[[WriteTransaction], T]) -> T:
    """Run a statement inside a transaction of its own; in a new one where it has to start over.

    Hive starts over with a new transaction where the snapshot was outdated when the locks were granted, and so do we.

    Args:
        env: The session.
        run: The statement; it locks, and may raise :class:`StartOver` before it has written anything.

    Raises:
        TransactionError: When it had to start over too often. Others as :func:`open_transaction`.
    """
    for _ in range(env.settings.value(SNAPSHOT_RETRIES) + 1):
        try:
            with open_transaction(env) as txn:
                return run(txn)
        except StartOver as e:
            logger.info("transaction starts over: %s", e.message)
            reason = e
    raise TransactionError(
        f"The statement's snapshot was outdated each time when its locks were granted: {reason.message}",
        hint=f"Raise {SNAPSHOT_RETRIES.name}, or let fewer writers work on the same rows.",
    )


@contextmanager
def write_transaction(env: Environment, components: Sequence[LockComponent]) -> Iterator[WriteTransaction]:
    """Run a block inside a transaction that holds its locks from the start, and commit it.

    Raises:
        LockTimeout: When the locks were not granted in time. Others as :func:`open_transaction`.
    """
    retries = env.settings.value(SNAPSHOT_RETRIES)
    while True:
        granted = False
        try:
            with open_transaction(env) as txn:
                txn.lock(components)
                granted = True
                yield txn
            return
        except StartOver:
            if granted or not retries:
                raise
            retries -= 1


def _forget(env: Environment, txn_id: int) -> None:
    """Leave no trace of an aborted transaction whose files are gone (rule 5: never before they are)."""
    try:
        env.metastore.forget_txn_components(txn_id)
    except AcidError as e:
        logger.warning("aborted transaction %s stays listed: %s", txn_id, e)


def _aborted(env: Environment, txn_id: int, error: BaseException, *, is_unclear: bool = False) -> bool:
    """Make sure that a transaction is aborted; False where that cannot be told.

    Args:
        env: The session.
        txn_id: The transaction.
        error: What went wrong.
        is_unclear: Whether it may have been committed: then one that is forgotten may be the truth.
    """
    try:
        done = txn_id in env.metastore.abort_txns([txn_id], reason=str(error)[:200])
        if not done:
            env.metastore.heartbeat(txn_id=txn_id)
    except TransactionAborted:
        done = True
    except NoSuchTransaction:
        done = not is_unclear
    except AcidError as e:
        logger.warning("transaction %s could not be aborted: %s", txn_id, e)
        return False
    return done
