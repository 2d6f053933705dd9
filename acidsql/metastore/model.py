"""What the metastore knows, as frozen values. The words are those of Hive's metastore API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum

DEFAULT_DATABASE = "default"


# --- catalog ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A column. ``type`` is a Hive type string in lower case (``decimal(10,2)``, ``struct<a:int>``)."""

    name: str
    type: str
    comment: str | None = None
    default: str | None = None
    """SQL text of the DEFAULT expression."""
    not_null: bool = False


@dataclass(frozen=True)
class Database:
    name: str
    location: str
    comment: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """A table. ``columns`` are the data columns; partition keys are not among them."""

    database: str
    name: str
    location: str
    columns: tuple[Column, ...]
    partition_keys: tuple[Column, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    bucket_columns: tuple[str, ...] = ()
    num_buckets: int = -1
    table_type: str = "MANAGED_TABLE"
    owner: str = ""
    created_at: int = 0
    """Seconds since 1970."""
    view_text: str | None = None
    """The query of a view (``table_type`` VIRTUAL_VIEW), its names complete."""
    view_original: str | None = None
    """The query of a view as the user wrote it."""
    checks: tuple[str, ...] = ()
    """Conditions of the enabled CHECK constraints, as SQL text."""

    @property
    def full_name(self) -> str:
        """``database.table``: the name under which write ids are counted."""
        return f"{self.database}.{self.name}"

    @property
    def all_columns(self) -> tuple[Column, ...]:
        """Data columns, then partition keys: the order of ``SELECT *``."""
        return self.columns + self.partition_keys

    @property
    def is_view(self) -> bool:
        return self.view_text is not None

    @property
    def is_transactional(self) -> bool:
        return self.parameters.get("transactional", "").lower() == "true"

    @property
    def is_insert_only(self) -> bool:
        return self.is_transactional and self.parameters.get("transactional_properties", "").lower() == "insert_only"

    @property
    def is_full_acid(self) -> bool:
        return self.is_transactional and not self.is_insert_only


@dataclass(frozen=True)
class Partition:
    """A partition. ``values``: the key values as text, in key order; NULL is ``partition_names.DEFAULT_PARTITION``."""

    database: str
    table: str
    values: tuple[str, ...]
    location: str


@dataclass(frozen=True)
class ColumnStatistics:
    """What ANALYZE … FOR COLUMNS found of a column; None for what does not apply to its type.

    Attributes:
        low, high: The least and the greatest value, as text.
        distinct: How many values there are, approximately.
        average_length, max_length: Of strings in characters, of binary values in bytes.
    """

    column: str
    type: str
    nulls: int
    distinct: int | None = None
    low: str | None = None
    high: str | None = None
    average_length: float | None = None
    max_length: int | None = None
    trues: int | None = None
    falses: int | None = None


@dataclass(frozen=True)
class Statistics:
    """What ANALYZE found of a table, or of one partition.

    Attributes:
        parameters: ``numRows``, ``numFiles``, ``totalSize``: those that were found out.
        columns: Statistics of columns.
        exact: Whether the number of rows is that of the snapshot, counted.
    """

    parameters: Mapping[str, str]
    columns: tuple[ColumnStatistics, ...] = ()
    exact: bool = False


@dataclass(frozen=True)
class RowChange:
    """What a statement does to the rows of a table or partition."""

    inserted: int = 0
    deleted: int = 0
    overwrites: bool = False
    """The inserted rows replace all that were there."""

    def applied(self, rows: int) -> int:
        """How many rows there are after it, of so many before."""
        return (0 if self.overwrites else rows) + self.inserted - self.deleted


# --- transactions ----------------------------------------------------------------------------------------------------


class TxnType(IntEnum):
    """Hive's ``TxnType``."""

    DEFAULT = 0
    REPL_CREATED = 1
    READ_ONLY = 2
    COMPACTION = 3
    MATER_VIEW_REBUILD = 4
    SOFT_DELETE = 5
    REBALANCE_COMPACTION = 6


class TxnState(Enum):
    """State of a transaction, with Hive's letters."""

    OPEN = "o"
    ABORTED = "a"
    COMMITTED = "c"


@dataclass(frozen=True)
class TxnInfo:
    """A row of SHOW TRANSACTIONS. Times are milliseconds since 1970."""

    id: int
    state: TxnState
    type: TxnType
    started_ms: int
    heartbeat_ms: int
    user: str
    host: str
    agent_info: str = ""
    abort_reason: str | None = None


# --- locks -----------------------------------------------------------------------------------------------------------


class LockType(IntEnum):
    """Hive's ``LockType`` (the numbers of its Thrift enum)."""

    SHARED_READ = 1
    SHARED_WRITE = 2
    EXCLUSIVE = 3
    EXCL_WRITE = 4


class LockState(Enum):
    """State of a lock, with Hive's letters. NOT_ACQUIRED answers a zero-wait request and is never stored."""

    ACQUIRED = "a"
    WAITING = "w"
    NOT_ACQUIRED = "n"


class Operation(Enum):
    """What a statement does to the object that it locks (Hive's ``DataOperationType`` and its letters)."""

    SELECT = "s"
    INSERT = "i"
    UPDATE = "u"
    DELETE = "d"
    NO_TXN = "n"


@dataclass(frozen=True)
class LockComponent:
    """One object of a lock request: a database (table None), a table (partition None) or a partition.

    ``partition`` is a partition name as in a path, ``p=1/q=even``.
    """

    type: LockType
    database: str
    table: str | None = None
    partition: str | None = None
    operation: Operation = Operation.NO_TXN
    is_dynamic_partition_write: bool = False


@dataclass(frozen=True)
class LockRequest:
    """All objects that a statement needs, granted together or not at all. ``txn_id`` 0: a lock without transaction."""

    components: tuple[LockComponent, ...]
    txn_id: int
    user: str
    host: str
    agent_info: str = ""
    zero_wait_reads: bool = False


@dataclass(frozen=True)
class LockInfo:
    """A row of SHOW LOCKS. Times are milliseconds since 1970, None where there is none."""

    lock_id: int
    internal_id: int
    txn_id: int
    database: str
    table: str | None
    partition: str | None
    type: LockType
    state: LockState
    blocked_by_lock_id: int | None
    blocked_by_internal_id: int | None
    heartbeat_ms: int | None
    acquired_ms: int | None
    user: str
    host: str
    agent_info: str


@dataclass(frozen=True)
class LockResponse:
    """Answer to a lock request: its id, its state and, while it waits, the first lock in its way."""

    lock_id: int
    state: LockState
    blocked_by: LockInfo | None = None


# --- compaction ------------------------------------------------------------------------------------------------------


class CompactionType(Enum):
    """Kind of a compaction, with Hive's letters."""

    MAJOR = "a"
    MINOR = "i"
    REBALANCE = "r"
    ABORT_TXN_CLEANUP = "c"


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


@dataclass(frozen=True)
class CompactionResponse:
    """Answer to a request: ``accepted`` is False where the same thing is queued or running already.

    ``id`` and ``state`` are those of the entry that stands in the queue, ``message`` is the store's own word.
    """

    id: int
    state: str
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
    state: str | None = None
    """One of the words of :class:`CompactionInfo`."""
    limit: int | None = None


@dataclass(frozen=True)
class CompactionInfo:
    """A row of SHOW COMPACTIONS. Times are milliseconds since 1970, None where there is none.

    ``state`` is Hive's word: initiated, working, ready for cleaning, succeeded, failed, did not initiate, refused or
    aborted.
    """

    id: int
    database: str
    table: str
    partition: str | None
    type: CompactionType
    state: str
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
    next_txn_id: int | None = None
    committed_ms: int | None = None
    highest_write_id: int | None = None
