"""The part of the metastore protocol that compactions are about: the queue, its history, and what there is to clean.

The names are those of Hive's ``TxnStore`` and ``CompactionTxnHandler``. An entry is ``initiated`` by a request,
``working`` while a worker has it, ``ready for cleaning`` when it is compacted; then it moves to the history as
``succeeded``, or before that as ``failed``, ``refused`` or ``aborted``. A request that the initiator could not make is
recorded there as ``did not initiate``. Which state can follow which: :data:`acidsql.metastore.model.TRANSITIONS`.

A Hive Metastore hands requests to workers (from version 4 on), and does everything else by services of its own: those
calls raise UnsupportedError.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from acidsql.metastore.model import (
    AbortedComponent,
    CompactionCandidate,
    CompactionFilter,
    CompactionInfo,
    CompactionMetrics,
    CompactionRequest,
    CompactionResponse,
)


def latest_done(
    entries: Iterable[CompactionInfo], partitions: Collection[str] | None, after: int
) -> list[CompactionInfo]:
    """Of the entries of one table, the latest first, those that :meth:`Compactions.latest_compactions` is about."""
    latest: dict[str | None, CompactionInfo] = {}
    for one in entries:
        is_wanted = one.id > after and (partitions is None or one.partition in partitions)
        if is_wanted and one.state.is_done:
            latest.setdefault(one.partition, one)
    return list(latest.values())


class Compactions(Protocol):
    """The queue of compactions."""

    # --- requests ----------------------------------------------------------------------------------------------------

    def compact(self, request: CompactionRequest) -> CompactionResponse:
        """Put a request into the queue.

        It is not accepted while the same table or partition is initiated or working, nor when it is ready for cleaning
        after a compaction of all that could be compacted now.

        Raises:
            TableNotFound: When the table does not exist.
        """
        ...

    def show_compactions(self, wanted: CompactionFilter) -> list[CompactionInfo]:
        """Entries of the queue and its history, the latest first."""
        ...

    def abort_compactions(self, ids: Sequence[int]) -> dict[int, str]:
        """Take requests that no worker has out of the queue: the store's message for each id.

        Raises:
            UnsupportedError: When the store cannot.
        """
        ...

    def latest_compactions(
        self, database: str, table: str, partitions: Collection[str] | None = None, *, after: int = 0
    ) -> list[CompactionInfo]:
        """The latest compaction of a table, or of each of its partitions, whose work is done (ready for cleaning or
        succeeded): Hive's ``getLatestCommittedCompactionInfo``.

        Args:
            partitions: Only of these.
            after: Only entries with a higher id.
        """
        ...

    # --- workers -----------------------------------------------------------------------------------------------------

    def find_next_compact(
        self, worker: str, *, pool: str | None = None, worker_version: str | None = None
    ) -> CompactionInfo | None:
        """Take the oldest request that no worker has; None where there is none. No two workers get the same.

        Args:
            worker: Who takes it, as ``host-id``.
            pool: Only requests of this pool. None (or ``default``): those of no pool, and those of any that have waited
                for ``hive.compactor.worker.pool.timeout``.
            worker_version: The worker's version, for the record.

        Raises:
            UnsupportedError: When the store does not hand out requests (a Hive Metastore before 4).
        """
        ...

    def update_compactor_state(self, id: int, txn_id: int, highest_write_id: int, *, worker: str | None = None) -> None:
        """Record in which transaction an entry is compacted, and up to which write id.

        The transaction gets a component of operation ``c``, so that it stays known when it is aborted until what it has
        written is cleaned.

        Args:
            worker: Only if the entry is still this worker's: it may have been given to another one. Here and below a
                Hive Metastore cannot tell, and does not look.

        Raises:
            CompactionError: When no worker has the entry any more, or another one.
            NoSuchTransaction, TransactionAborted: When the transaction is not open. A Hive Metastore does not look.
        """
        ...

    def set_job_id(self, id: int, job: str, *, worker: str | None = None) -> None:
        """Name the job that works on an entry. Raises: CompactionError, as above."""
        ...

    def mark_compacted(self, id: int, *, worker: str | None = None, metrics: CompactionMetrics | None = None) -> None:
        """``working`` becomes ``ready for cleaning``. Raises: CompactionError, as above.

        The entry is cleaned only when its transaction has committed, before or after this call; the commit tells the
        entry which transaction is the newest then.

        Args:
            worker: As above.
            metrics: What was replaced, and by what: :attr:`CompactionInfo.metrics` has it from now on, unless the work
                is undone. A Hive Metastore cannot carry it.
        """
        ...

    def mark_failed(self, id: int, message: str, *, worker: str | None = None) -> None:
        """An entry of the queue goes into the history as ``failed``.

        Raises:
            CompactionError: When the queue does not have it, or when it is no longer the worker's that is given.
        """
        ...

    def mark_refused(self, id: int, message: str, *, worker: str | None = None) -> None:
        """An entry of the queue goes into the history as ``refused``. Raises: CompactionError, as above."""
        ...

    def revoke_timed_out_workers(self, timeout_ms: int) -> int:
        """Put entries back into the queue that are worked on for longer than that, and those whose worker has reported
        them as done but whose transaction was aborted. How many they were."""
        ...

    def revoke_from_local_workers(self, host: str) -> int:
        """Put back what workers of a host were working on when it died. How many entries they were."""
        ...

    # --- initiator ---------------------------------------------------------------------------------------------------

    def find_potential_compactions(
        self, *, aborted_threshold: int, aborted_age_ms: int | None, since_ms: int | None = None
    ) -> list[CompactionCandidate]:
        """Where something was written that no compaction has covered, and where there are too many or old aborts.

        Args:
            aborted_threshold: More aborted transactions than this are too many.
            aborted_age_ms: An abort older than this is old; None for never.
            since_ms: Only what was written since then, and what has failed last time. In milliseconds since 1970.
        """
        ...

    def check_failed_compactions(
        self, database: str, table: str, partition: str | None, threshold: int, retry_ms: int
    ) -> bool:
        """Whether the last compactions of it failed, as many as ``threshold``, the latest of them asked for within
        ``retry_ms`` (0: whenever). What did not initiate does not count."""
        ...

    def mark_did_not_initiate(self, request: CompactionRequest, message: str) -> None:
        """Record in the history what could not be asked for."""
        ...

    # --- cleaner -----------------------------------------------------------------------------------------------------

    def min_open_txn(self) -> int:
        """The oldest open transaction, readers included; the next id where none is open."""
        ...

    def min_unseen_txn(self) -> int:
        """The oldest transaction that somebody who is open now may not see; the next id where none is open.

        What is older had ended when the oldest of those that are open began: every snapshot of now and later sees it.
        :meth:`min_open_txn` does not tell that: one that has ended since may have been open when a reader began.
        """
        ...

    def find_ready_to_clean(self, min_open_txn: int, retention_ms: int, *, after: int = 0) -> list[CompactionInfo]:
        """Entries that can be cleaned now: no snapshot needs the files that they replaced.

        Of each table or partition those with the lowest write id only: the next ones follow when they are done. At
        most ``hive.compactor.fetch.size`` of them, by their ids.

        Args:
            min_open_txn: From :meth:`min_open_txn`.
            retention_ms: How long obsolete files stay after the commit of the compaction.
            after: Only entries with a greater id.
        """
        ...

    def set_cleaner_retry(self, id: int, *, retry_at_ms: int, message: str) -> None:
        """Put cleaning off until then, for an error; :attr:`CompactionInfo.retries` counts how often.

        Raises:
            CompactionError: When the entry does not wait for cleaning.
        """
        ...

    def mark_cleaned(self, id: int, *, keep_aborted: bool = False) -> None:
        """An entry goes into the history as ``succeeded``, and what its write ids were is forgotten.

        That is, up to its highest write id: what committed transactions have written, and the components of aborted
        ones. Nothing happens where another cleaner has done it.

        Args:
            keep_aborted: Aborted transactions are still in the files.

        Raises:
            CompactionError: When the entry is not ready for cleaning.
        """
        ...

    def aborted_components(
        self, *, threshold: int = 0, age_ms: int | None = None, table: str | None = None
    ) -> list[AbortedComponent]:
        """Where aborted transactions may have left files, by table and partition, the oldest first.

        Args:
            threshold: Only places with more aborted transactions than this,
            age_ms: or with one that began longer ago than this; None for no matter.
            table: Only those of this ``database.table``, and then all; otherwise ``hive.compactor.fetch.size`` at most.
        """
        ...

    def forget_aborted(
        self,
        database: str,
        table: str,
        partition: str | None,
        write_ids: Collection[int],
        txn_ids: Collection[int] | None = None,
    ) -> None:
        """Drop components of aborted transactions whose files are gone (rule 5).

        With ``txn_ids`` only of these: another table may have taken the name while the files were removed, and its
        write ids are others.
        """
        ...

    def aborted_compactions(self, *, table: str | None = None) -> list[AbortedComponent]:
        """Where aborted compactions may have left directories, which carry the ids of their transactions."""
        ...

    def forget_aborted_compactions(self, txn_ids: Collection[int]) -> None:
        """Drop what stands for aborted compactions whose directories are gone (rule 5); not what these transactions
        have written under a write id."""
        ...

    # --- housekeeping ------------------------------------------------------------------------------------------------

    def purge_compaction_history(self) -> None:
        """Forget old entries of the history by ``hive.compactor.history.retention.…`` (Hive's rules)."""
        ...

    def prune_txn_to_write_id(self) -> int:
        """Forget to which transactions the write ids belong that every snapshot sees (``cleanTxnToWriteIdTable``).

        How many they were.
        """
        ...
