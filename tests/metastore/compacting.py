"""The words in which tests tell what becomes of compactions."""

from __future__ import annotations

from acidsql.metastore.model import (
    CompactionFilter,
    CompactionInfo,
    CompactionMetrics,
    CompactionRequest,
    CompactionState,
    CompactionType,
    Operation,
    TxnType,
)
from acidsql.metastore.protocol import Metastore
from tests.metastore.situations import begin, read_write_ids, write

MAJOR, MINOR = CompactionType.MAJOR, CompactionType.MINOR


def request(
    name: str = "t", part: str | None = None, type: CompactionType = MAJOR, **more: object
) -> CompactionRequest:
    return CompactionRequest("default", name, part, type, "ann", "desk", **more)  # type: ignore[arg-type]


def asked(
    store: Metastore, name: str = "t", part: str | None = None, type: CompactionType = MAJOR, **more: object
) -> int:
    """Ask for a compaction that must be accepted; its id."""
    response = store.compact(request(name, part, type, **more))
    assert response.accepted, response
    return response.id


def taken(
    store: Metastore, name: str = "t", part: str | None = None, type: CompactionType = MAJOR, worker: str = "desk-1"
) -> int:
    """Ask for a compaction, and have a worker take it; its id."""
    id = asked(store, name, part, type)
    entry = store.find_next_compact(worker)
    assert entry is not None
    assert entry.id == id
    return id


def compacted(
    store: Metastore,
    name: str = "t",
    part: str | None = None,
    type: CompactionType = MAJOR,
    *,
    commits: bool = True,
    metrics: CompactionMetrics | None = None,
) -> int:
    """A compaction of all that can be compacted, up to the worker's word that it is done, and the commit; its id."""
    id = taken(store, name, part, type)
    txn_id = begin(store, TxnType.COMPACTION)
    highest = read_write_ids(store, f"default.{name}", txn_id).for_compaction().high_watermark
    store.update_compactor_state(id, txn_id, highest)
    store.mark_compacted(id, metrics=metrics)
    if commits:
        store.commit_txn(txn_id)
    return id


def committed(store: Metastore, place: str = "default.t", operation: Operation = Operation.INSERT) -> int:
    """A write that is committed; its transaction."""
    txn_id = write(store, place, operation)
    store.commit_txn(txn_id)
    return txn_id


def aborted(store: Metastore, place: str = "default.t") -> int:
    """A write that is aborted; its transaction."""
    txn_id = write(store, place)
    store.abort_txns([txn_id])
    return txn_id


def entry(store: Metastore, id: int) -> CompactionInfo:
    """An entry of the queue, or of the history."""
    [found] = store.show_compactions(CompactionFilter(id=id))
    return found


def states(store: Metastore, **wanted: object) -> list[CompactionState]:
    """The states of the entries, the latest first."""
    return [one.state for one in store.show_compactions(CompactionFilter(**wanted))]  # type: ignore[arg-type]


def ready(store: Metastore, *, retention_ms: int = 0) -> list[int]:
    """What can be cleaned now."""
    return [one.id for one in store.find_ready_to_clean(store.min_open_txn(), retention_ms)]
