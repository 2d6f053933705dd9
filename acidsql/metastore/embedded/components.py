"""TXN_COMPONENTS: what a transaction writes to. For an aborted one: where files of it may still lie.

As long as an aborted transaction has components it stays known as aborted, and its write ids are not seen. Only
:func:`forget` ends that, when the files are gone.
"""

# ruff: noqa: SIM300 (the upper-case names are columns, not constants)

from __future__ import annotations

from collections.abc import Sequence
from datetime import timezone

from sqlalchemy import Connection, and_, bindparam, delete, exists, insert, null, select, update
from sqlalchemy import literal as value

from acidsql.metastore.embedded.schema import (
    COMPLETED_TXN_COMPONENTS,
    HIVE_LOCKS,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    TXNS,
)
from acidsql.metastore.model import CHANGES, CompletedWrite, LockComponent, LockRequest, LockState, Operation, TxnState

_C, _W = TXN_COMPONENTS.c, TXN_TO_WRITE_ID.c

WRITES = frozenset({Operation.INSERT, Operation.UPDATE, Operation.DELETE})
"""Operations of which two on the same rows are in conflict."""

_IS_ABORTED = exists().where(TXNS.c.TXN_ID == _C.TC_TXNID, TXNS.c.TXN_STATE == TxnState.ABORTED.value)
_IS_WAITING = exists().where(
    HIVE_LOCKS.c.HL_TXNID == _C.TC_TXNID, HIVE_LOCKS.c.HL_LOCK_STATE == LockState.WAITING.value
)
_WRITE_IDS = select(_W.T2W_DATABASE, _W.T2W_TABLE, _W.T2W_WRITEID).where(_W.T2W_TXNID == bindparam("txn"))
_SET_WRITE_ID = (
    update(TXN_COMPONENTS)
    .where(_C.TC_TXNID == bindparam("txn"), _C.TC_DATABASE == bindparam("database"), _C.TC_TABLE == bindparam("table"))
    .values(TC_WRITEID=bindparam("write_id"))
)


def record_locked(db: Connection, request: LockRequest) -> None:
    """Record what a request locks for writing (Hive: ``InsertTxnComponentsCommand``)."""
    places = _written_places(request)
    if places:
        write_ids = {(d, t): w for d, t, w in db.execute(_WRITE_IDS, {"txn": request.txn_id})}
        rows = [_row(request.txn_id, d, t, p, o, write_ids.get((d, t or ""))) for d, t, p, o in places]
        db.execute(insert(TXN_COMPONENTS), rows)


def withdraw(db: Connection, request: LockRequest) -> None:
    """Take back what :func:`record_locked` has recorded of a request that was never granted.

    An earlier one of the same transaction may have recorded the same: that stays.
    """
    for database, table, partition, operation in _written_places(request):
        named = ((_C.TC_TABLE, table), (_C.TC_PARTITION, partition))
        same = and_(
            _C.TC_TXNID == request.txn_id,
            _C.TC_DATABASE == database,
            _C.TC_OPERATION_TYPE == operation.value,
            *(column.is_(None) if name is None else column == name for column, name in named),
        )
        write_ids = db.execute(select(_C.TC_WRITEID).where(same)).scalars().all()
        db.execute(delete(TXN_COMPONENTS).where(same))
        if earlier := write_ids[1:]:
            rows = [_row(request.txn_id, database, table, partition, operation, write_id) for write_id in earlier]
            db.execute(insert(TXN_COMPONENTS), rows)


def _written_places(request: LockRequest) -> list[tuple[str, str | None, str | None, Operation]]:
    """Database, table, partition and operation of what a request locks for writing in a transaction.

    A dynamic-partition write does not know its partitions yet: it is there once, for the whole table, as the strongest
    of its operations, until :func:`name_partitions` names them.
    """
    if not request.txn_id:
        return []
    dynamic: dict[tuple[str, str | None], Operation] = {}
    fixed: dict[tuple[str, str | None, str | None, Operation], None] = {}
    for c in request.components:
        if c.operation not in WRITES:
            continue
        if not c.is_dynamic_partition_write:
            fixed[c.database, c.table, c.partition, c.operation] = None
        elif dynamic.get((c.database, c.table), Operation.INSERT) is Operation.INSERT:
            dynamic[c.database, c.table] = _strongest(c)
    return [*fixed, *((d, t, None, o) for (d, t), o in dynamic.items())]


def _strongest(component: LockComponent) -> Operation:
    return Operation.UPDATE if component.operation in CHANGES else Operation.INSERT


def name_partitions(
    db: Connection,
    txn_id: int,
    write_id: int,
    database: str,
    table: str,
    partitions: Sequence[str],
    operation: Operation,
) -> None:
    """Put the partitions really written to in the place of the whole table (Hive: ``addDynamicPartitions``)."""
    of_table = and_(_C.TC_TXNID == txn_id, _C.TC_DATABASE == database, _C.TC_TABLE == table)
    db.execute(delete(TXN_COMPONENTS).where(of_table, _C.TC_PARTITION.is_(None)))
    rows = [_row(txn_id, database, table, name, operation, write_id) for name in dict.fromkeys(partitions)]
    if rows:
        db.execute(insert(TXN_COMPONENTS), rows)


def set_write_id(db: Connection, txn_id: int, database: str, table: str, write_id: int) -> None:
    """Record with which write id a transaction writes to a table."""
    db.execute(_SET_WRITE_ID, {"txn": txn_id, "database": database, "table": table, "write_id": write_id})


def back_write_ids(db: Connection, txn_ids: Sequence[int]) -> None:
    """Give transactions that are being aborted a component for every table in which they have a write id.

    Hive relies on the lock request for that. Without a component such a transaction would soon be forgotten, and
    its write id would then count as committed, whatever files it left.
    """
    known = exists(
        select(1).where(_C.TC_TXNID == _W.T2W_TXNID, _C.TC_DATABASE == _W.T2W_DATABASE, _C.TC_TABLE == _W.T2W_TABLE)
    )
    columns = ["TC_TXNID", "TC_DATABASE", "TC_TABLE", "TC_PARTITION", "TC_OPERATION_TYPE", "TC_WRITEID"]
    missing = select(
        _W.T2W_TXNID, _W.T2W_DATABASE, _W.T2W_TABLE, null(), value(Operation.UPDATE.value), _W.T2W_WRITEID
    ).where(_W.T2W_TXNID.in_(txn_ids), ~known)
    db.execute(insert(TXN_COMPONENTS).from_select(columns, missing))


def back_seeded(db: Connection, database: str, table: str, write_ids: dict[int, int]) -> None:
    """Components of the transactions that stand for aborted write ids in files made elsewhere: txn -> write id."""
    rows = [_row(txn, database, table, None, Operation.UPDATE, write_id) for txn, write_id in write_ids.items()]
    db.execute(insert(TXN_COMPONENTS), rows)


def forget(db: Connection, txn_id: int) -> None:
    """Drop the components of a transaction."""
    db.execute(delete(TXN_COMPONENTS).where(_C.TC_TXNID == txn_id))


def forget_ended(db: Connection, database: str, table: str) -> None:
    """Drop the components of a table that is gone, but for those of open transactions.

    They are recorded when a lock is asked for: one that waits for the table's lock may be going to create the next
    table of its name. Who wanted the old one finds that it is gone, and aborts.
    """
    is_open = exists().where(TXNS.c.TXN_ID == _C.TC_TXNID, TXNS.c.TXN_STATE == TxnState.OPEN.value)
    db.execute(delete(TXN_COMPONENTS).where(_C.TC_DATABASE == database, _C.TC_TABLE == table, ~is_open))


def rename_table(db: Connection, database: str, table: str, new_database: str, new_table: str) -> None:
    """Let the components of a table follow its new name, but for those of requests that wait for locks on the old one.

    Who waits gets the locks that he has asked for, and then looks his names up again: under the old one there may be
    another table by then.
    """
    of_table = and_(_C.TC_DATABASE == database, _C.TC_TABLE == table)
    names = {"TC_DATABASE": new_database, "TC_TABLE": new_table}
    db.execute(update(TXN_COMPONENTS).where(of_table, ~_IS_WAITING).values(names))


def rename_partition(db: Connection, database: str, table: str, partition: str, new_partition: str) -> None:
    """As :func:`rename_table`. An aborted transaction gets a second component, and keeps the first.

    Its files are in the directory that follows the new name, or where new partitions of the old name are: the partition
    may have been registered, elsewhere, after they were written.
    """
    of_table = and_(_C.TC_DATABASE == database, _C.TC_TABLE == table)
    of_partition = and_(of_table, _C.TC_PARTITION == partition)
    columns = [_C.TC_TXNID, _C.TC_DATABASE, _C.TC_TABLE, _C.TC_PARTITION, _C.TC_OPERATION_TYPE, _C.TC_WRITEID]
    known = select(*columns).where(of_table, _C.TC_PARTITION == new_partition)
    renamed = [value(new_partition) if c is _C.TC_PARTITION else c for c in columns]
    followed = select(*renamed).where(of_partition, _IS_ABORTED).except_(known)
    db.execute(insert(TXN_COMPONENTS).from_select([c.name for c in columns], followed))
    followers = and_(of_partition, ~_IS_WAITING, ~_IS_ABORTED)
    db.execute(update(TXN_COMPONENTS).where(followers).values(TC_PARTITION=new_partition))


def _row(
    txn_id: int, database: str, table: str | None, partition: str | None, operation: Operation, write_id: int | None
) -> dict[str, object]:
    return {
        "TC_TXNID": txn_id,
        "TC_DATABASE": database,
        "TC_TABLE": table,
        "TC_PARTITION": partition,
        "TC_OPERATION_TYPE": operation.value,
        "TC_WRITEID": write_id,
    }


def completed_writes(db: Connection, database: str, table: str) -> list[CompletedWrite]:
    """What committed transactions have written, by write id and partition."""
    c = COMPLETED_TXN_COMPONENTS.c
    query = select(c.CTC_WRITEID, c.CTC_TXNID, c.CTC_PARTITION, c.CTC_TIMESTAMP, c.CTC_UPDATE_DELETE).where(
        c.CTC_DATABASE == database, c.CTC_TABLE == table, c.CTC_WRITEID.is_not(None)
    )
    found = [
        CompletedWrite(write_id, txn_id, partition or "", int(at.replace(tzinfo=timezone.utc).timestamp()), how == "Y")
        for write_id, txn_id, partition, at, how in db.execute(query)
    ]
    return sorted(found, key=lambda w: (w.write_id, w.partition))
