"""The compaction queue of a Hive Metastore."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from hive_metastore import ttypes

from acidsql.errors import CompactionError, MetastoreError, UnsupportedError
from acidsql.metastore.compaction_protocol import latest_done
from acidsql.metastore.hive import translate, wire
from acidsql.metastore.hive.client import HiveClient
from acidsql.metastore.model import (
    DEFAULT_POOL,
    AbortedComponent,
    CompactionCandidate,
    CompactionFilter,
    CompactionInfo,
    CompactionMetrics,
    CompactionRequest,
    CompactionResponse,
    CompactionState,
)

_QUEUED = re.compile(r"state='([^']*)' and id=(\d+)")
"""How the metastore names an entry of its queue in a message."""


JOB_ID_LENGTH = 32
"""The longest name of a job in Hive's queue."""


class HiveCompactions(HiveClient):
    """:class:`~acidsql.metastore.protocol.Compactions` over Thrift."""

    def compact(self, request: CompactionRequest) -> CompactionResponse:
        self._raw_table(request.database, request.table)
        asked = wire.CompactionRequest(
            dbname=request.database,
            tablename=request.table,
            partitionname=request.partition,
            type=translate.COMPACTION_NUMBERS[request.type],
            runas=None,  # the owner of the table's directory, as the worker finds it
            properties=dict(request.properties) or None,
            initiatorId=request.initiator_id,
            initiatorVersion=request.initiator_version,
            poolName=request.pool,
            numberOfBuckets=request.buckets,
            orderByClause=request.order_by,
        )
        answer = self._call(lambda c: wire.compact(c, asked))
        id, word = answer.id, answer.state
        if queued := _QUEUED.search(answer.errormessage or ""):  # Hive 4 names the entry in the message alone
            id, word = int(queued[2]), queued[1]
        return CompactionResponse(id, translate.compaction_state(word), bool(answer.accepted), answer.errormessage)

    def show_compactions(self, wanted: CompactionFilter) -> list[CompactionInfo]:
        """As the protocol says. A metastore 3 filters nothing, so all is filtered here again."""
        request = wire.ShowCompactRequest()
        if self._is_hive4:
            request = wire.ShowCompactRequest(
                id=wanted.id, dbName=wanted.database, tbName=wanted.table, partName=wanted.partition
            )
        found = self._call(lambda c: wire.show_compact(c, request))
        kept = [one for one in map(translate.compaction_from_thrift, found) if _is_wanted(one, wanted)]
        kept.sort(key=lambda one: one.id, reverse=True)
        return kept[: wanted.limit]

    def abort_compactions(self, ids: Sequence[int]) -> dict[int, str]:
        request = wire.AbortCompactionRequest(compactionIds=list(ids))
        answer = self._call(lambda c: wire.abort_compactions(c, request))
        return {id: found.message or found.status for id, found in answer.items()}

    def latest_compactions(
        self, database: str, table: str, partitions: Collection[str] | None = None, *, after: int = 0
    ) -> list[CompactionInfo]:
        return latest_done(self.show_compactions(CompactionFilter(database=database, table=table)), partitions, after)

    # --- workers -----------------------------------------------------------------------------------------------------

    def find_next_compact(
        self, worker: str, *, pool: str | None = None, worker_version: str | None = None
    ) -> CompactionInfo | None:
        """As the protocol says. An entry whose answer is lost goes back into the queue after the metastore's own
        ``hive.compactor.worker.timeout``."""
        self._require_open_queue()
        request = wire.FindNextCompactRequest(
            workerId=worker, workerVersion=worker_version, poolName=None if pool == DEFAULT_POOL else pool or None
        )
        found = self._call(lambda c: wire.find_next_compact(c, request))
        return None if found is None else translate.taken_from_thrift(found, worker)

    def update_compactor_state(self, id: int, txn_id: int, highest_write_id: int, *, worker: str | None = None) -> None:
        entry = self._entry(id)
        owner = self._raw_table(entry.database, entry.table).owner
        struct = _struct(entry, highestWriteId=highest_write_id, runas=owner or self._user)  # Hive's cleaner acts as it
        self._call(lambda c: c.update_compactor_state(struct, txn_id))

    def set_job_id(self, id: int, job: str, *, worker: str | None = None) -> None:
        self._require_open_queue()
        self._call(lambda c: c.set_hadoop_jobid(job[:JOB_ID_LENGTH], id))

    def mark_compacted(self, id: int, *, worker: str | None = None, metrics: CompactionMetrics | None = None) -> None:
        """As the protocol says, but for the metrics: the metastore's API has no place for them."""
        struct = _struct(self._entry(id))
        self._call(lambda c: c.mark_compacted(struct))

    def mark_failed(self, id: int, message: str, *, worker: str | None = None) -> None:
        struct = _struct(self._entry(id), errorMessage=message)
        self._end(id, CompactionState.FAILED, lambda c: c.mark_failed(struct))

    def mark_refused(self, id: int, message: str, *, worker: str | None = None) -> None:
        struct = _struct(self._entry(id), errorMessage=message)
        self._end(id, CompactionState.REFUSED, lambda c: c.mark_refused(struct))

    def mark_cleaned(self, id: int, *, keep_aborted: bool = False) -> None:
        """As the protocol says.

        Raises:
            UnsupportedError: With ``keep_aborted``, and where the entry has no highest write id: the metastore would
                forget too much.
        """
        entry = self._entry(id)
        if keep_aborted or entry.highest_write_id is None:
            raise UnsupportedError(
                f"Compaction {id} cannot be marked as cleaned on a Hive Metastore: it would forget what is still there",
                hint="The metastore's own cleaner does it (metastore.compactor.cleaner.on).",
            )
        struct = _struct(entry, highestWriteId=entry.highest_write_id)
        self._end(id, CompactionState.SUCCEEDED, lambda c: c.mark_cleaned(struct))

    def _require_open_queue(self) -> None:
        if not self._is_hive4:
            raise UnsupportedError(
                f"This Hive Metastore does not hand out compactions: it is of version {self.version}",
                hint="Version 4 and later do. Compactions are run by its own workers.",
            )

    def _entry(self, id: int) -> CompactionInfo:
        self._require_open_queue()
        found = self.show_compactions(CompactionFilter(id=id))
        if not found:
            raise CompactionError(f"No record with CQ_ID={id} found in COMPACTION_QUEUE")
        return found[0]

    def _end(self, id: int, state: CompactionState, call: Callable[[Any], None]) -> None:
        """End an entry. What is found ended so may be the work of a first try whose answer was lost."""
        try:
            self._call(call)
        except MetastoreError:
            if self._entry(id).state is not state:
                raise

    # --- the metastore's own services --------------------------------------------------------------------------------

    def min_open_txn(self) -> int:
        txns = self._call(lambda c: c.get_open_txns_info())
        open_ids = [int(t.id) for t in txns.open_txns if t.state == ttypes.TxnState.OPEN]
        return min([*open_ids, int(txns.txn_high_water_mark) + 1])

    def min_unseen_txn(self) -> int:
        raise _own_service("cleaner removes what is obsolete")

    def revoke_timed_out_workers(self, timeout_ms: int) -> int:
        raise _own_service("initiator gives entries of dead workers back")

    def revoke_from_local_workers(self, host: str) -> int:
        raise _own_service("initiator gives entries of dead workers back")

    def find_potential_compactions(
        self, *, aborted_threshold: int, aborted_age_ms: int | None, since_ms: int | None = None
    ) -> list[CompactionCandidate]:
        raise _own_service("initiator looks for what is due")

    def check_failed_compactions(
        self, database: str, table: str, partition: str | None, threshold: int, retry_ms: int
    ) -> bool:
        raise _own_service("initiator looks for what is due")

    def mark_did_not_initiate(self, request: CompactionRequest, message: str) -> None:
        raise _own_service("initiator looks for what is due")

    def find_ready_to_clean(self, min_open_txn: int, retention_ms: int, *, after: int = 0) -> list[CompactionInfo]:
        raise _own_service("cleaner removes what is obsolete")

    def set_cleaner_retry(self, id: int, *, retry_at_ms: int, message: str) -> None:
        raise _own_service("cleaner removes what is obsolete")

    def aborted_components(
        self, *, threshold: int = 0, age_ms: int | None = None, table: str | None = None
    ) -> list[AbortedComponent]:
        raise _own_service("cleaner removes what was aborted")

    def forget_aborted(
        self,
        database: str,
        table: str,
        partition: str | None,
        write_ids: Collection[int],
        txn_ids: Collection[int] | None = None,
    ) -> None:
        raise _own_service("cleaner removes what was aborted")

    def aborted_compactions(self, *, table: str | None = None) -> list[AbortedComponent]:
        raise _own_service("cleaner removes what was aborted")

    def forget_aborted_compactions(self, txn_ids: Collection[int]) -> None:
        raise _own_service("cleaner removes what was aborted")

    def purge_compaction_history(self) -> None:
        """Nothing: the metastore's own housekeeper does it."""

    def prune_txn_to_write_id(self) -> int:
        """Nothing: the metastore's own housekeeper does it."""
        return 0


def _own_service(does: str) -> UnsupportedError:
    return UnsupportedError(f"On a Hive Metastore its own {does}: its API does not offer that to others")


def _struct(entry: CompactionInfo, **more: Any) -> Any:
    """An entry as the calls of workers want it; they go by its id."""
    return ttypes.CompactionInfoStruct(
        id=entry.id,
        dbname=entry.database,
        tablename=entry.table,
        partitionname=entry.partition,
        type=translate.COMPACTION_NUMBERS[entry.type],
        **more,
    )


def _is_wanted(one: CompactionInfo, wanted: CompactionFilter) -> bool:
    pairs = (
        (one.id, wanted.id),
        (one.database, wanted.database),
        (one.table, wanted.table),
        (one.partition, wanted.partition),
        (one.pool, wanted.pool),
        (one.type, wanted.type),
        (one.state, wanted.state),
    )
    return all(want is None or have == want for have, want in pairs)
