"""The embedded store's calls about compactions: each is one transaction of the database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from acidsql.metastore.compaction_protocol import latest_done
from acidsql.metastore.embedded import cleaning, compaction_history, queue
from acidsql.metastore.embedded.store import Store
from acidsql.metastore.model import (
    AbortedComponent,
    CompactionCandidate,
    CompactionFilter,
    CompactionInfo,
    CompactionMetrics,
    CompactionRequest,
    CompactionResponse,
    CompactionState,
)
from acidsql.settings import (
    FAILED_COMPACTS_THRESHOLD,
    FETCH_SIZE,
    HISTORY_DID_NOT_INITIATE,
    HISTORY_FAILED,
    HISTORY_REFUSED,
    HISTORY_SUCCEEDED,
    HISTORY_TIMEOUT,
    POOL_TIMEOUT,
    Settings,
)


class EmbeddedCompactions:
    """:class:`~acidsql.metastore.protocol.Compactions` in the embedded store."""

    _store: Store
    _settings: Settings
    _now: Callable[[], int]

    # --- requests ----------------------------------------------------------------------------------------------------

    def compact(self, request: CompactionRequest) -> CompactionResponse:
        with self._store.write() as db:
            return queue.compact(db, request, self._now())

    def show_compactions(self, wanted: CompactionFilter) -> list[CompactionInfo]:
        with self._store.read() as db:
            return queue.show(db, wanted)

    def abort_compactions(self, ids: Sequence[int]) -> dict[int, str]:
        with self._store.write() as db:
            return queue.abort(db, ids, self._now())

    def latest_compactions(
        self, database: str, table: str, partitions: Collection[str] | None = None, *, after: int = 0
    ) -> list[CompactionInfo]:
        with self._store.read() as db:
            return latest_done(queue.show(db, CompactionFilter(database=database, table=table)), partitions, after)

    # --- workers -----------------------------------------------------------------------------------------------------

    def find_next_compact(
        self, worker: str, *, pool: str | None = None, worker_version: str | None = None
    ) -> CompactionInfo | None:
        with self._store.read() as db:  # an idle worker asks every second, and must not make a writer wait for that
            if not queue.is_anything_initiated(db):
                return None
        timeout = int(self._settings.value(POOL_TIMEOUT) * 1000)
        with self._store.write() as db:
            return queue.take_next(db, worker, pool, worker_version, now=self._now(), pool_timeout=timeout)

    def update_compactor_state(self, id: int, txn_id: int, highest_write_id: int, *, worker: str | None = None) -> None:
        with self._store.write() as db:
            queue.set_state(db, id, txn_id, highest_write_id, worker)

    def set_job_id(self, id: int, job: str, *, worker: str | None = None) -> None:
        with self._store.write(durable=False) as db:
            queue.set_job(db, id, job, worker)

    def mark_compacted(self, id: int, *, worker: str | None = None, metrics: CompactionMetrics | None = None) -> None:
        with self._store.write() as db:
            queue.mark_compacted(db, id, worker, metrics)

    def mark_failed(self, id: int, message: str, *, worker: str | None = None) -> None:
        with self._store.write() as db:
            queue.mark_ended(db, id, CompactionState.FAILED, message, self._now(), worker)

    def mark_refused(self, id: int, message: str, *, worker: str | None = None) -> None:
        with self._store.write() as db:
            queue.mark_ended(db, id, CompactionState.REFUSED, message, self._now(), worker)

    def revoke_timed_out_workers(self, timeout_ms: int) -> int:
        with self._store.write() as db:
            return queue.revoke_timed_out(db, self._now() - timeout_ms)

    def revoke_from_local_workers(self, host: str) -> int:
        with self._store.write() as db:
            return queue.revoke_of_host(db, host)

    # --- initiator ---------------------------------------------------------------------------------------------------

    def find_potential_compactions(
        self, *, aborted_threshold: int, aborted_age_ms: int | None, since_ms: int | None = None
    ) -> list[CompactionCandidate]:
        before = None if aborted_age_ms is None else self._now() - aborted_age_ms
        with self._store.read() as db:
            return cleaning.candidates(db, aborted_threshold=aborted_threshold, aborted_before=before, since=since_ms)

    def check_failed_compactions(
        self, database: str, table: str, partition: str | None, threshold: int, retry_ms: int
    ) -> bool:
        after = self._now() - retry_ms if retry_ms > 0 else None
        with self._store.read() as db:
            return compaction_history.have_failed(
                db, database, table, partition, threshold=threshold, enqueued_after=after
            )

    def mark_did_not_initiate(self, request: CompactionRequest, message: str) -> None:
        with self._store.write() as db:
            queue.did_not_initiate(db, request, message, self._now())

    # --- cleaner -----------------------------------------------------------------------------------------------------

    def min_open_txn(self) -> int:
        with self._store.read() as db:
            return cleaning.min_open_txn(db)

    def min_unseen_txn(self) -> int:
        with self._store.read() as db:
            return cleaning.min_unseen_txn(db)

    def find_ready_to_clean(self, min_open_txn: int, retention_ms: int) -> list[CompactionInfo]:
        limit = self._settings.value(FETCH_SIZE)
        with self._store.read() as db:
            return cleaning.find_ready(db, min_open_txn, retention=retention_ms, now=self._now(), limit=limit)

    def set_cleaner_retry(self, id: int, *, retry_at_ms: int, message: str) -> None:
        with self._store.write() as db:
            cleaning.put_off(db, id, retry_at=retry_at_ms, message=message, now=self._now())

    def mark_cleaned(self, id: int, *, keep_aborted: bool = False) -> None:
        with self._store.write() as db:
            cleaning.mark_cleaned(db, id, keep_aborted=keep_aborted, now=self._now())

    def aborted_components(
        self, *, threshold: int = 0, age_ms: int | None = None, table: str | None = None
    ) -> list[AbortedComponent]:
        before = None if age_ms is None else self._now() - age_ms
        limit = self._settings.value(FETCH_SIZE)
        with self._store.read() as db:
            return cleaning.aborted_components(db, threshold=threshold, started_before=before, limit=limit, table=table)

    def forget_aborted(self, database: str, table: str, partition: str | None, write_ids: Collection[int]) -> None:
        with self._store.write() as db:
            cleaning.forget_aborted(db, database, table, partition, write_ids)

    def aborted_compactions(self, *, table: str | None = None) -> list[AbortedComponent]:
        with self._store.read() as db:
            return cleaning.aborted_compactions(db, self._settings.value(FETCH_SIZE), table=table)

    # --- housekeeping ------------------------------------------------------------------------------------------------

    def purge_compaction_history(self) -> None:
        value = self._settings.value
        retained = {
            CompactionState.SUCCEEDED: value(HISTORY_SUCCEEDED),
            # the initiator counts those that failed
            CompactionState.FAILED: max(value(HISTORY_FAILED), value(FAILED_COMPACTS_THRESHOLD)),
            CompactionState.DID_NOT_INITIATE: value(HISTORY_DID_NOT_INITIATE),
            CompactionState.REFUSED: value(HISTORY_REFUSED),
            CompactionState.ABORTED: value(HISTORY_REFUSED),  # Hive keeps them for ever
        }
        before = self._now() - int(value(HISTORY_TIMEOUT) * 1000)
        with self._store.write() as db:
            compaction_history.purge(db, retained, before)

    def prune_txn_to_write_id(self) -> int:
        with self._store.write() as db:
            return cleaning.prune_txn_to_write_id(db)
