"""Locks in the embedded store: Hive's levels, matrix and fairness (``TxnHandler.lock`` and ``checkLock``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sqlalchemy import Row

from acidsql.errors import NoSuchLock, TransactionError
from acidsql.metastore.interim.store import Step, Store
from acidsql.metastore.interim.txns import abort_one, require_open, txn_state
from acidsql.metastore.model import (
    LockComponent,
    LockInfo,
    LockRequest,
    LockResponse,
    LockState,
    LockType,
    Operation,
    TxnState,
)
from acidsql.settings import TXN_TIMEOUT, Settings

_LETTERS = {
    LockType.SHARED_READ: "r",
    LockType.SHARED_WRITE: "w",
    LockType.EXCL_WRITE: "x",
    LockType.EXCLUSIVE: "e",
}
_TYPES = {letter: type for type, letter in _LETTERS.items()}

_BLOCKED_BY = {"r": "e", "w": "xe", "x": "wxe", "e": "rwxe"}
"""For each level asked for, the levels that stand in its way."""

_COLUMNS = "HL_DB, HL_TABLE, HL_PARTITION"


class EmbeddedLocks:
    """Locks and heartbeats; see :class:`~acidsql.metastore.protocol.Transactions`."""

    _store: Store
    _settings: Settings
    _now_ms: Callable[[], int]

    def lock(self, request: LockRequest) -> LockResponse:
        with self._store.write() as step:
            if request.txn_id:
                require_open(step, request.txn_id)
                _add_components(step, request)
            lock_id = step.next_id("lock")
            _enqueue(step, request, lock_id, self._now_ms())
            return self._try(step, lock_id, request.zero_wait_reads)

    def check_lock(self, lock_id: int) -> LockResponse:
        self.time_out_txns()
        with self._store.write() as step:
            rows = _rows_of(step, lock_id)
            if not rows:
                raise NoSuchLock(f"No such lock lockid:{lock_id}")
            _beat(step, rows[0].HL_TXNID, lock_id, self._now_ms())
            if all(r.HL_LOCK_STATE == LockState.ACQUIRED.value for r in rows):
                return LockResponse(lock_id, LockState.ACQUIRED)
            return self._try(step, lock_id, False)

    def _try(self, step: Step, lock_id: int, zero_wait_reads: bool) -> LockResponse:
        """Grant all components of a request if nothing that was asked for earlier is in the way of any."""
        wanted = _rows_of(step, lock_id)
        earlier = step.rows("SELECT * FROM HIVE_LOCKS WHERE HL_LOCK_EXT_ID < :id ORDER BY HL_LOCK_EXT_ID", id=lock_id)
        pair = _first_block(wanted, earlier)
        if pair is None:
            step.run(
                "UPDATE HIVE_LOCKS SET HL_LOCK_STATE = 'a', HL_ACQUIRED_AT = :now, HL_BLOCKEDBY_EXT_ID = NULL,"
                " HL_BLOCKEDBY_INT_ID = NULL WHERE HL_LOCK_EXT_ID = :id",
                id=lock_id,
                now=self._now_ms(),
            )
            return LockResponse(lock_id, LockState.ACQUIRED)
        mine, held = pair
        if zero_wait_reads and mine.HL_LOCK_TYPE == "r":
            step.run("DELETE FROM HIVE_LOCKS WHERE HL_LOCK_EXT_ID = :id", id=lock_id)
            return LockResponse(lock_id, LockState.NOT_ACQUIRED, _info(held))
        step.run(
            "UPDATE HIVE_LOCKS SET HL_BLOCKEDBY_EXT_ID = :ext, HL_BLOCKEDBY_INT_ID = :int"
            " WHERE HL_LOCK_EXT_ID = :id AND HL_LOCK_INT_ID = :mine",
            ext=held.HL_LOCK_EXT_ID,
            int=held.HL_LOCK_INT_ID,
            id=lock_id,
            mine=mine.HL_LOCK_INT_ID,
        )
        return LockResponse(lock_id, LockState.WAITING, _info(held))

    def unlock(self, lock_id: int) -> None:
        with self._store.write() as step:
            rows = _rows_of(step, lock_id)
            if not rows:
                raise NoSuchLock(f"No such lock lockid:{lock_id}")
            if rows[0].HL_TXNID and rows[0].HL_LOCK_STATE == LockState.ACQUIRED.value:
                raise TransactionError(
                    f"Lock {lock_id} belongs to transaction {rows[0].HL_TXNID} and is released with it"
                )
            step.run("DELETE FROM HIVE_LOCKS WHERE HL_LOCK_EXT_ID = :id", id=lock_id)

    def show_locks(
        self, database: str | None = None, table: str | None = None, partition: str | None = None
    ) -> list[LockInfo]:
        wanted = {"HL_DB": database, "HL_TABLE": table, "HL_PARTITION": partition}
        given = {column: value for column, value in wanted.items() if value is not None}
        where = " AND ".join(f"{column} = :{column}" for column in given) or "1 = 1"
        with self._store.read() as step:
            rows = step.rows(f"SELECT * FROM HIVE_LOCKS WHERE {where} ORDER BY HL_LOCK_EXT_ID, HL_LOCK_INT_ID", **given)
        return [_info(r) for r in rows]

    # --- heartbeats and time-outs ------------------------------------------------------------------------------------

    def heartbeat(self, *, txn_id: int = 0, lock_id: int = 0) -> None:
        with self._store.write() as step:
            if txn_id:
                require_open(step, txn_id)
            if lock_id and not _rows_of(step, lock_id):
                raise NoSuchLock(f"No such lock lockid:{lock_id}")
            _beat(step, txn_id, lock_id, self._now_ms())

    def heartbeat_txns(self, txn_ids: Sequence[int]) -> tuple[list[int], list[int]]:
        aborted, unknown = [], []
        with self._store.write() as step:
            for txn_id in txn_ids:
                state = txn_state(step, txn_id)
                if state == TxnState.OPEN.value:
                    _beat(step, txn_id, 0, self._now_ms())
                elif state == TxnState.ABORTED.value:
                    aborted.append(txn_id)
                else:
                    unknown.append(txn_id)
        return aborted, unknown

    def time_out_txns(self) -> list[int]:
        oldest = self._now_ms() - int(self._settings.value(TXN_TIMEOUT) * 1000)
        dead_txns = "SELECT TXN_ID FROM TXNS WHERE TXN_STATE = 'o' AND TXN_LAST_HEARTBEAT < :oldest"
        dead_locks = "HL_TXNID = 0 AND HL_LAST_HEARTBEAT < :oldest"
        with self._store.read() as step:
            found = step.row(dead_txns, oldest=oldest) or step.row(
                f"SELECT 1 FROM HIVE_LOCKS WHERE {dead_locks}", oldest=oldest
            )
        if not found:
            return []
        with self._store.write() as step:
            dead = [int(r.TXN_ID) for r in step.rows(dead_txns, oldest=oldest)]
            for txn_id in dead:
                abort_one(step, txn_id, "no heartbeat within hive.txn.timeout")
            step.run(f"DELETE FROM HIVE_LOCKS WHERE {dead_locks}", oldest=oldest)
        return dead


def _add_components(step: Step, request: LockRequest) -> None:
    """Rows of TXN_COMPONENTS for what the transaction will write (Hive's ``enqueueLock``)."""
    written = {Operation.INSERT, Operation.UPDATE, Operation.DELETE}
    rows = []
    for component in request.components:
        if component.operation in written and not component.is_dynamic_partition_write and component.table is not None:
            write_id = step.value(
                "SELECT T2W_WRITEID FROM TXN_TO_WRITE_ID"
                " WHERE T2W_TXNID = :txn AND T2W_DATABASE = :db AND T2W_TABLE = :tbl",
                txn=request.txn_id,
                db=component.database,
                tbl=component.table,
            )
            rows.append(
                {
                    "txn": request.txn_id,
                    "db": component.database,
                    "tbl": component.table,
                    "part": component.partition,
                    "op": component.operation.value,
                    "wid": write_id,
                }
            )
    step.run_many("INSERT INTO TXN_COMPONENTS VALUES (:txn, :db, :tbl, :part, :op, :wid)", rows)


def _enqueue(step: Step, request: LockRequest, lock_id: int, now: int) -> None:
    def row(number: int, component: LockComponent) -> dict[str, Any]:
        return {
            "ext": lock_id,
            "int": number,
            "txn": request.txn_id,
            "db": component.database,
            "tbl": component.table,
            "part": component.partition,
            "type": _LETTERS[component.type],
            "beat": 0 if request.txn_id else now,  # a transaction's heartbeat is its locks'
            "user": request.user,
            "host": request.host,
            "agent": request.agent_info,
        }

    step.run_many(
        f"INSERT INTO HIVE_LOCKS (HL_LOCK_EXT_ID, HL_LOCK_INT_ID, HL_TXNID, {_COLUMNS}, HL_LOCK_STATE, HL_LOCK_TYPE,"
        " HL_LAST_HEARTBEAT, HL_USER, HL_HOST, HL_AGENT_INFO)"
        " VALUES (:ext, :int, :txn, :db, :tbl, :part, 'w', :type, :beat, :user, :host, :agent)",
        [row(i, c) for i, c in enumerate(request.components, start=1)],
    )


def _rows_of(step: Step, lock_id: int) -> Sequence[Row[Any]]:
    return step.rows("SELECT * FROM HIVE_LOCKS WHERE HL_LOCK_EXT_ID = :id ORDER BY HL_LOCK_INT_ID", id=lock_id)


def _beat(step: Step, txn_id: int, lock_id: int, now: int) -> None:
    if txn_id:
        step.run("UPDATE TXNS SET TXN_LAST_HEARTBEAT = :now WHERE TXN_ID = :txn", now=now, txn=txn_id)
    elif lock_id:
        step.run("UPDATE HIVE_LOCKS SET HL_LAST_HEARTBEAT = :now WHERE HL_LOCK_EXT_ID = :id", now=now, id=lock_id)


def _first_block(wanted: Iterable[Row[Any]], earlier: Sequence[Row[Any]]) -> tuple[Row[Any], Row[Any]] | None:
    """The first component that is blocked, and the earlier lock (held or waiting: first come, first served) that does."""
    for mine in wanted:
        for held in earlier:
            if _blocks(mine, held):
                return mine, held
    return None


def _blocks(mine: Row[Any], held: Row[Any]) -> bool:
    if mine.HL_TXNID and mine.HL_TXNID == held.HL_TXNID:
        return False
    if held.HL_LOCK_TYPE not in _BLOCKED_BY[mine.HL_LOCK_TYPE] or not _overlap(mine, held):
        return False
    if mine.HL_LOCK_TYPE == "r" and held.HL_LOCK_TYPE == "e":
        # reading a database's list is not in the way of dropping one of its tables
        return not (mine.HL_TABLE is None and held.HL_TABLE is not None)
    if mine.HL_LOCK_TYPE == "e" and held.HL_LOCK_TYPE == "r":
        return not (held.HL_TABLE is None and mine.HL_TABLE is not None)
    return True


def _overlap(a: Row[Any], b: Row[Any]) -> bool:
    """Whether two objects are the same, or one is part of the other."""
    if a.HL_DB != b.HL_DB:
        return False
    if a.HL_TABLE is None or b.HL_TABLE is None:
        return True
    if a.HL_TABLE != b.HL_TABLE:
        return False
    return a.HL_PARTITION is None or b.HL_PARTITION is None or bool(a.HL_PARTITION == b.HL_PARTITION)


def _info(row: Row[Any]) -> LockInfo:
    return LockInfo(
        lock_id=row.HL_LOCK_EXT_ID,
        internal_id=row.HL_LOCK_INT_ID,
        txn_id=row.HL_TXNID,
        database=row.HL_DB,
        table=row.HL_TABLE,
        partition=row.HL_PARTITION,
        type=_TYPES[row.HL_LOCK_TYPE],
        state=LockState(row.HL_LOCK_STATE),
        blocked_by_lock_id=row.HL_BLOCKEDBY_EXT_ID,
        blocked_by_internal_id=row.HL_BLOCKEDBY_INT_ID,
        heartbeat_ms=None if row.HL_TXNID else row.HL_LAST_HEARTBEAT,
        acquired_ms=row.HL_ACQUIRED_AT,
        user=row.HL_USER,
        host=row.HL_HOST,
        agent_info=row.HL_AGENT_INFO,
    )
