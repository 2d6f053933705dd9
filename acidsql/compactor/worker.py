"""The worker: takes requests from the queue and runs the compactions (Hive's ``Worker``)."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from acidsql.compactor.compaction import RefusedError, WorkerContext, place_of
from acidsql.compactor.rebalance import check_rebalance, compaction_of
from acidsql.compactor.rename_journal import find_table
from acidsql.compactor.version import VERSION
from acidsql.errors import AcidError, CompactionError
from acidsql.format.rewrite import Rewritten
from acidsql.interrupts import Deferred
from acidsql.metastore.model import (
    CompactionFilter,
    CompactionInfo,
    CompactionState,
    CompactionType,
    LockComponent,
    LockRequest,
    LockType,
    Operation,
    Partition,
    Table,
    TxnType,
)
from acidsql.metastore.waiting import wait_for_lock

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome:
    """The result of a request.

    Attributes:
        entry: The request.
        state: READY_FOR_CLEANING, REFUSED or FAILED.
        done: What was read and written.
        message: Why it was refused, or failed.
        seconds: How long it took.
    """

    entry: CompactionInfo
    state: CompactionState
    done: Rewritten = field(default_factory=Rewritten)
    message: str | None = None
    seconds: float = 0.0

    def __str__(self) -> str:
        """One line: ``compaction 7 of hr.emp: MAJOR, ready for cleaning, 3 rows, 5 -> 1 files, 9 -> 4 bytes, 1 s``."""
        head = f"compaction {self.entry.id} of {place_of(self.entry)}: {self.entry.type.name}, {self.state}"
        if self.message is not None:
            return f"{head}, {self.seconds:.1f} s: {self.message}"
        done = self.done
        files = f"{done.files_read} -> {done.files_written} files, {done.bytes_read} -> {done.bytes_written} bytes"
        return f"{head}, {done.rows} rows, {files}, {self.seconds:.1f} s"


class Worker:
    """Takes requests one after another; any number of workers may serve one queue, in any number of processes.

    A compaction:

    1. Take the oldest queued request.
    2. Open a compactor transaction, lock the table or partition SHARED_READ (a rebalance: EXCL_WRITE, like UPDATE and
       DELETE), send heartbeats.
    3. Determine what may be compacted: nothing at or above the smallest open write id.
    4. Write the new directories into a hidden staging directory, file by file.
    5. Move them into place, update the queue entry, commit. The cleaner removes what they replace.

    An error leaves nothing behind but the entry in SHOW COMPACTIONS with its message.
    """

    def __init__(self, context: WorkerContext, name: str, pool: str | None = None) -> None:
        """
        Args:
            context: The shared context of the services.
            name: The worker's name, ``host-…``.
            pool: The pool that it serves; None for requests without a pool.
        """
        self._context = context
        self._name = name
        self._pool = pool

    def run_one(self) -> Outcome | None:
        """Run one request; None if the queue is empty."""
        with self._taken() as entry:
            return None if entry is None else self._run(entry)

    @contextmanager
    def _taken(self) -> Iterator[CompactionInfo | None]:
        """The next request; whatever interrupts this, it is not left as one that somebody works on."""
        entry: CompactionInfo | None = None
        try:
            with Deferred():
                entry = self._context.metastore.find_next_compact(self._name, pool=self._pool, worker_version=VERSION)
            yield entry
        except BaseException as e:
            if entry is not None:
                self._mark_failed(entry, f"The worker was interrupted: {type(e).__name__}")
            raise

    def _run(self, entry: CompactionInfo) -> Outcome:
        metastore = self._context.metastore
        begin = time.monotonic()
        try:
            done = self._compact(entry)
        except RefusedError as e:
            metastore.mark_refused(entry.id, e.message, worker=self._name)
            outcome = Outcome(entry, CompactionState.REFUSED, message=e.message, seconds=time.monotonic() - begin)
        except Exception as e:  # any error: log it and continue with the next request
            message = e.message if isinstance(e, AcidError) else f"{type(e).__name__}: {e}"
            self._mark_failed(entry, message)
            outcome = Outcome(entry, CompactionState.FAILED, message=message, seconds=time.monotonic() - begin)
            logger.exception("%s", outcome)
            return outcome
        else:
            outcome = Outcome(entry, CompactionState.READY_FOR_CLEANING, done, seconds=time.monotonic() - begin)
        logger.info("%s", outcome)
        return outcome

    def _mark_failed(self, entry: CompactionInfo, message: str) -> None:
        try:
            self._context.metastore.mark_failed(entry.id, message, worker=self._name)
        except CompactionError as e:  # it was reassigned to another worker
            logger.warning("compaction %s was reassigned to another worker: %s", entry.id, e.message)

    def _compact(self, entry: CompactionInfo) -> Rewritten:
        self._resolved(entry)
        with self._transaction(entry) as txn_id:
            compaction = None
            try:
                table, partition = self._confirmed(entry)
                compaction = compaction_of(self._context, entry, self._name, table, partition, txn_id)
                return compaction.run()
            except BaseException:
                if compaction is None or compaction.leaves_nothing:
                    with suppress(AcidError):  # it is aborted below, in the end
                        self._context.metastore.abort_txns([txn_id], reason=_reason(entry))
                        self._context.metastore.forget_txn_components(txn_id)
                raise

    def _confirmed(self, entry: CompactionInfo) -> tuple[Table, Partition | None]:
        """The table or partition as it is under the lock: it may have changed while the worker waited.

        Raises:
            RefusedError: When it was dropped or renamed.
        """
        current = self._context.metastore.show_compactions(CompactionFilter(id=entry.id))
        if [place_of(one) for one in current] != [place_of(entry)]:
            raise RefusedError(f"{place_of(entry)} was renamed or dropped while the worker waited for its lock")
        return self._resolved(entry)

    def _resolved(self, entry: CompactionInfo) -> tuple[Table, Partition | None]:
        metastore = self._context.metastore
        table = find_table(metastore, entry.database, entry.table)
        if table is None or not table.is_transactional:
            raise RefusedError(f"Table {entry.database}.{entry.table} does not exist, or is not transactional any more")
        check_rebalance(entry, table)
        if entry.partition is None:
            return table, None
        partitions = metastore.list_partitions(entry.database, entry.table, [entry.partition])
        if not partitions:
            raise RefusedError(f"Partition {entry.partition} of {table.full_name} does not exist any more")
        return table, partitions[0]

    @contextmanager
    def _transaction(self, entry: CompactionInfo) -> Iterator[int]:
        """A transaction with the lock of a compaction; committed at the end, aborted after an error."""
        context, metastore = self._context, self._context.metastore
        is_rebalance = entry.type is CompactionType.REBALANCE
        lock = LockComponent(
            LockType.EXCL_WRITE if is_rebalance else LockType.SHARED_READ,
            entry.database,
            entry.table,
            entry.partition,
            Operation.UPDATE if is_rebalance else Operation.SELECT,
        )
        txn_id = 0
        try:
            with Deferred():
                [txn_id] = metastore.open_txns(
                    user=context.user,
                    host=context.host,
                    type=TxnType.REBALANCE_COMPACTION if is_rebalance else TxnType.COMPACTION,
                    agent_info=self._name,
                )
            with context.heartbeats.keep_alive(txn_id):
                request = LockRequest((lock,), txn_id, context.user, context.host, self._name)
                wait_for_lock(metastore, context.settings, request)
                yield txn_id
                metastore.commit_txn(txn_id)
        except BaseException:
            if not txn_id:
                raise
            try:
                metastore.abort_txns([txn_id], reason=_reason(entry))
            except BaseException as e:  # busy, or full: the error of the compaction itself is what counts
                context.heartbeats.abort_later(txn_id, _reason(entry))
                if not isinstance(e, AcidError):
                    raise
                logger.warning("transaction %s of compaction %s could not be aborted: %s", txn_id, entry.id, e)
            raise


def _reason(entry: CompactionInfo) -> str:
    """Why a compaction's transaction is aborted, for SHOW TRANSACTIONS."""
    return f"compaction {entry.id} did not succeed"
