"""The words in which the tests tell their situations."""

from __future__ import annotations

from dataclasses import dataclass, replace

from acidsql.metastore.model import (
    Column,
    Constraint,
    ConstraintKind,
    LockComponent,
    LockInfo,
    LockRequest,
    LockResponse,
    LockState,
    LockType,
    Operation,
    Partition,
    Table,
    TxnType,
)
from acidsql.metastore.protocol import Metastore
from acidsql.valid_ids import ValidWriteIdList

READ, SHARED_WRITE, EXCL_WRITE, EXCLUSIVE = (
    LockType.SHARED_READ,
    LockType.SHARED_WRITE,
    LockType.EXCL_WRITE,
    LockType.EXCLUSIVE,
)

AGENT = "acidsql test"
"""Deadlocks beside Hive's statements end those of ours, which are known by their agents."""


NEVER_GIVEN = 4_711_000_000_000
"""An id that no transaction and no lock has, however long a store has been in use."""

STATISTICS = {"numRows", "numFiles", "numFilesErasureCoded", "totalSize"}
STAMPS = {"transient_lastDdlTime", "transactional_properties", *STATISTICS}
"""Properties that a Hive Metastore gives to a table by itself, besides its creation time."""


@dataclass
class Clock:
    """A clock that stands still until a test moves it."""

    ms: int = 1_700_000_000_000

    def __call__(self) -> int:
        return self.ms

    def pass_seconds(self, seconds: float) -> None:
        self.ms += int(seconds * 1000)


_warehouse = "file:/warehouse"


def use_warehouse(location: str) -> None:
    """Say where tables lie: a Hive Metastore takes managed ones in its own warehouse only."""
    global _warehouse
    _warehouse = location


def home(database: str = "default") -> str:
    """The directory of a database."""
    return _warehouse if database == "default" else f"{_warehouse}/{database}.db"


def table(name: str = "t", database: str = "default", *, partitioned: bool = False) -> Table:
    """A full ACID table of one column, by ``p`` where partitioned."""
    return Table(
        database,
        name,
        f"{home(database)}/{name}",
        (Column("a", "int"),),
        (Column("p", "string"),) if partitioned else (),
        {"transactional": "true"},
    )


def unstamped(table: Table) -> Table:
    """A table without what a store may have added to it."""
    return replace(table, created_at=0, parameters={k: v for k, v in table.parameters.items() if k not in STAMPS})


def check(condition: str, name: str | None = None) -> Constraint:
    """A CHECK that is enforced."""
    return Constraint.enabled(ConstraintKind.CHECK, condition, name=name)


def partition(value: str, name: str = "t", database: str = "default") -> Partition:
    return Partition(database, name, (value,), f"{home(database)}/{name}/p={value}")


def sweep(store: Metastore) -> None:
    """Say that the directories of what was dropped are gone."""
    dropped = store.dropped_directories()
    store.set_aside(dropped)
    store.forget_dropped(dropped)


def begin(store: Metastore, type: TxnType = TxnType.DEFAULT) -> int:
    [txn_id] = store.open_txns(user="ann", host="desk", type=type)
    return txn_id


def component(
    type: LockType,
    place: str,
    operation: Operation = Operation.NO_TXN,
    *,
    dynamic: bool = False,
) -> LockComponent:
    """A component on ``db``, ``db.table`` or ``db.table/partition``."""
    full_name, _, partition_name = place.partition("/")
    database, _, name = full_name.partition(".")
    return LockComponent(type, database, name or None, partition_name or None, operation, dynamic)


def ask(
    store: Metastore,
    txn_id: int,
    type: LockType,
    place: str = "default.t",
    operation: Operation = Operation.NO_TXN,
    *,
    zero_wait: bool = False,
) -> LockResponse:
    """Ask for a lock on one object."""
    return ask_all(store, txn_id, component(type, place, operation), zero_wait=zero_wait)


def ask_all(store: Metastore, txn_id: int, *components: LockComponent, zero_wait: bool = False) -> LockResponse:
    return store.lock(LockRequest(components, txn_id, "ann", "desk", AGENT, zero_wait))


def take(
    store: Metastore,
    txn_id: int,
    type: LockType,
    place: str = "default.t",
    operation: Operation = Operation.NO_TXN,
) -> int:
    """Take a lock that must be granted; its id."""
    response = ask(store, txn_id, type, place, operation)
    assert response.state is LockState.ACQUIRED, response
    return response.lock_id


def write(
    store: Metastore,
    place: str = "default.t",
    operation: Operation = Operation.INSERT,
    *,
    txn_id: int | None = None,
    type: LockType | None = None,
) -> int:
    """A transaction that has its lock (as Hive takes it for the operation) and its write id, and is about to commit."""
    txn_id = txn_id or begin(store)
    take(store, txn_id, type or (READ if operation is Operation.INSERT else SHARED_WRITE), place, operation)
    database, _, name = place.partition("/")[0].partition(".")
    store.allocate_table_write_id(txn_id, database, name)
    return txn_id


def read_write_ids(store: Metastore, name: str = "default.t", txn_id: int = 0) -> ValidWriteIdList:
    """The write ids that a reader sees now."""
    [found] = store.get_valid_write_ids([name], store.get_valid_txns(txn_id))
    return found


def seen(write_ids: ValidWriteIdList, up_to: int = 12) -> list[int]:
    """The write ids that are seen, of those up to a number."""
    return [i for i in range(1, up_to + 1) if write_ids.is_valid(i)]


def locks_of(store: Metastore, *named: str) -> list[LockInfo]:
    """SHOW LOCKS, in the order in which they were asked for."""
    return sorted(store.show_locks(*named), key=lambda one: (one.lock_id, one.internal_id))


def lock_states(store: Metastore) -> list[tuple[int, str]]:
    """Lock ids with their states, in the order in which they were asked for."""
    return [(one.lock_id, one.state.value) for one in locks_of(store)]


def tidy(store: Metastore, clock: Clock) -> None:
    """Let the housekeeper forget all that it may; what is younger than a second it may keep."""
    clock.pass_seconds(10)
    store.clean_empty_aborted_txns()
