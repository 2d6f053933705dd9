"""Transactions and locks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum


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


@dataclass(frozen=True)
class CompletedWrite:
    """What a committed transaction may have written to a table, or to one partition of it.

    Attributes:
        partition: Name of the partition; empty where it may have written anywhere in the table.
        committed_at: Seconds since 1970.
        changes_rows: Whether it updated, deleted or replaced rows; it only added some otherwise.
    """

    write_id: int
    txn_id: int
    partition: str
    committed_at: int
    changes_rows: bool


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


CHANGES = frozenset({Operation.UPDATE, Operation.DELETE})
"""The operations that change rows which are there: two of them may be in conflict."""


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
    """Answer to a lock request: its id, its state and, while it waits, the first lock in its way.

    ``circle``: transactions that wait for each other's locks, of which the one that asks is to be ended.
    ``ahead``: how many requests are in its way, as far as the store tells: it is asked for again the sooner, the fewer.
    """

    lock_id: int
    state: LockState
    blocked_by: LockInfo | None = None
    circle: tuple[int, ...] = ()
    ahead: int = 1
