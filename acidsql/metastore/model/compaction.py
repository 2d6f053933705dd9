"""The compactor's queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from enum import Enum

DEFAULT_POOL = "default"
"""How SHOW COMPACTIONS calls the pool of requests that name none."""


class CompactionType(Enum):
    """Kind of a compaction, with Hive's letters."""

    MAJOR = "a"
    MINOR = "i"
    REBALANCE = "r"
    ABORT_TXN_CLEANUP = "c"


class CompactionState(Enum):
    """State of a compaction, with Hive's letters; as text it is the word that SHOW COMPACTIONS prints.

    The first three are those of the queue, the others those of its history. :data:`TRANSITIONS` holds how they change.
    """

    INITIATED = "i"
    WORKING = "w"
    READY_FOR_CLEANING = "r"
    SUCCEEDED = "s"
    FAILED = "f"
    DID_NOT_INITIATE = "a"
    REFUSED = "c"
    ABORTED = "x"

    def __str__(self) -> str:
        return self.name.lower().replace("_", " ")

    @property
    def is_under_way(self) -> bool:
        """Whether a worker still has to do the work, or is doing it."""
        return self in (CompactionState.INITIATED, CompactionState.WORKING)

    @property
    def is_done(self) -> bool:
        """Whether the work is done, cleaned or not."""
        return self in (CompactionState.READY_FOR_CLEANING, CompactionState.SUCCEEDED)

    @property
    def origins(self) -> tuple[CompactionState, ...]:
        """The states that can become this one."""
        return tuple(state for state, following in TRANSITIONS.items() if self in following)


_ENDS = (CompactionState.FAILED, CompactionState.REFUSED)

TRANSITIONS: Mapping[CompactionState, tuple[CompactionState, ...]] = {
    CompactionState.INITIATED: (CompactionState.WORKING, CompactionState.ABORTED, *_ENDS),
    CompactionState.WORKING: (CompactionState.READY_FOR_CLEANING, CompactionState.INITIATED, *_ENDS),
    CompactionState.READY_FOR_CLEANING: (CompactionState.SUCCEEDED, CompactionState.INITIATED, *_ENDS),
}
"""What each state of the queue can become. An entry is INITIATED again when its worker is lost, or when the work is
undone with the compactor's transaction. DID_NOT_INITIATE is only ever recorded: nothing becomes it."""


@dataclass(frozen=True)
class CompactionRequest:
    """What ALTER TABLE … COMPACT asks for. ``partition`` is a partition name, ``p=1/q=even``."""

    database: str
    table: str
    partition: str | None
    type: CompactionType
    user: str
    host: str
    properties: Mapping[str, str] = field(default_factory=dict)
    pool: str | None = None
    buckets: int | None = None
    order_by: str | None = None
    """The whole clause, ``ORDER BY a DESC``."""
    initiator: str | None = None
    """``host-id`` of the initiator that asks; None for a request of a user."""
    initiator_version: str | None = None
    """Which software it is, for the record."""

    @property
    def initiator_id(self) -> str:
        """Who asks, as SHOW COMPACTIONS tells it: Hive names a request of a user ``host-manual``."""
        return self.initiator or f"{self.host}-manual"


@dataclass(frozen=True)
class CompactionResponse:
    """Answer to a request: ``accepted`` is False where the same thing is queued or running already.

    ``id`` and ``state`` are those of the entry that stands in the queue, ``message`` is the store's own word.
    """

    id: int
    state: CompactionState
    accepted: bool
    message: str | None = None


@dataclass(frozen=True)
class CompactionFilter:
    """What SHOW COMPACTIONS asks for; None does not restrict."""

    id: int | None = None
    database: str | None = None
    table: str | None = None
    partition: str | None = None
    pool: str | None = None
    type: CompactionType | None = None
    state: CompactionState | None = None
    limit: int | None = None


@dataclass(frozen=True)
class CompactionMetrics:
    """What a compaction has replaced, and by what.

    Attributes:
        files_before: Files with rows or delete events that the new directories replace, original files among them.
        bytes_before: Their size.
        files_after: Files with rows or delete events in the new directories.
        bytes_after: Their size.
        rows: Rows, or events, in the new files.
    """

    files_before: int = 0
    bytes_before: int = 0
    files_after: int = 0
    bytes_after: int = 0
    rows: int = 0

    def __add__(self, other: CompactionMetrics) -> CompactionMetrics:
        return CompactionMetrics(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True)
class CompactionInfo:
    """A row of SHOW COMPACTIONS. Times are milliseconds since 1970, None where there is none."""

    id: int
    database: str
    table: str
    partition: str | None
    type: CompactionType
    state: CompactionState
    worker: str | None = None
    """``host-id`` of the worker, as it named itself."""
    enqueued_ms: int | None = None
    started_ms: int | None = None
    ended_ms: int | None = None
    job_id: str | None = None
    error: str | None = None
    initiator: str | None = None
    """``host-id`` of whoever asked for it."""
    pool: str | None = None
    txn_id: int | None = None
    """The compactor's transaction."""
    next_txn_id: int | None = None
    """The newest transaction when that one was committed: those up to it may still see what was compacted."""
    committed_ms: int | None = None
    highest_write_id: int | None = None
    """The compaction covers the write ids up to it."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """``compactor.…`` and ``tblprops.…`` properties of the request."""
    buckets: int | None = None
    order_by: str | None = None
    """The whole clause, ``ORDER BY a DESC``."""
    retries: int = 0
    """How often cleaning was put off after an error."""
    worker_version: str | None = None
    """Which software the worker is, or was."""
    initiator_version: str | None = None
    metrics: CompactionMetrics | None = None
    """None where it is not known: before the worker is done, and of compactions that Hive carried out."""


@dataclass(frozen=True)
class CompactionCandidate:
    """Where something was written or aborted: the initiator looks whether a compaction is due.

    Attributes:
        partition: Name of the partition; None for a table without any, and for a write that named none.
        too_many_aborts: There are more aborted transactions than the threshold.
        has_old_abort: There is an aborted transaction older than the threshold.
    """

    database: str
    table: str
    partition: str | None
    too_many_aborts: bool = False
    has_old_abort: bool = False


@dataclass(frozen=True)
class AbortedComponent:
    """What aborted transactions may have left of files in a table, or in one partition.

    Attributes:
        partition: Name of the partition; None for a table without any, and for a write that named none.
        write_ids: Their write ids; empty for compactions, which have none.
        min_txn: The oldest of the transactions.
        txn_ids: The transactions.
    """

    database: str
    table: str
    partition: str | None
    write_ids: frozenset[int]
    min_txn: int
    txn_ids: frozenset[int] = frozenset()
