"""Transactions, snapshots and write ids in the embedded store (Hive's ``TxnHandler``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import bindparam, text

from acidsql.errors import NoSuchTransaction, TransactionAborted, TransactionError, WriteConflict
from acidsql.metastore.interim.store import Step, Store
from acidsql.metastore.model import Operation, TxnInfo, TxnState, TxnType
from acidsql.settings import MAX_OPEN_TXNS, XLOCK_WRITE, Settings
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList

_OPEN, _ABORTED, _COMMITTED = TxnState.OPEN.value, TxnState.ABORTED.value, TxnState.COMMITTED.value

REMEMBERED_COMMITS = 1000
"""How many of the latest transactions stay listed after their commit, so that committing again is no error."""


class EmbeddedTransactions:
    """Opening, snapshots, write ids, commit and abort; see :class:`~acidsql.metastore.protocol.Transactions`."""

    _store: Store
    _settings: Settings
    _now_ms: Callable[[], int]

    # --- open and look -----------------------------------------------------------------------------------------------

    def open_txns(
        self, count: int = 1, *, user: str, host: str, type: TxnType = TxnType.DEFAULT, agent_info: str = ""
    ) -> list[int]:
        now = self._now_ms()
        with self._store.write() as step:
            limit = self._settings.value(MAX_OPEN_TXNS)
            if int(step.value("SELECT COUNT(*) FROM TXNS WHERE TXN_STATE = 'o'")) + count > limit:
                raise TransactionError(f"Maximum allowed number of open transactions ({limit}) has been reached")
            first = step.next_id("txn", count)
            step.run_many(
                "INSERT INTO TXNS (TXN_ID, TXN_STATE, TXN_TYPE, TXN_STARTED, TXN_LAST_HEARTBEAT, TXN_USER, TXN_HOST,"
                " TXN_AGENT_INFO) VALUES (:id, 'o', :type, :now, :now, :user, :host, :agent)",
                [
                    {"id": i, "type": int(type), "now": now, "user": user, "host": host, "agent": agent_info}
                    for i in range(first, first + count)
                ],
            )
            step.run("DELETE FROM TXNS WHERE TXN_STATE = 'c' AND TXN_ID < :old", old=first - REMEMBERED_COMMITS)
        return list(range(first, first + count))

    def get_valid_txns(self, current_txn: int = 0) -> ValidTxnList:
        with self._store.read() as step:
            high = current_txn or _last_txn(step)
            rows = step.rows(
                "SELECT TXN_ID, TXN_STATE FROM TXNS WHERE TXN_STATE IN ('o', 'a') AND TXN_ID <= :high"
                " AND TXN_ID <> :current ORDER BY TXN_ID",
                high=high,
                current=current_txn,
            )
        return ValidTxnList(
            high,
            tuple(r.TXN_ID for r in rows if r.TXN_STATE == _OPEN),
            tuple(r.TXN_ID for r in rows if r.TXN_STATE == _ABORTED),
        )

    def get_valid_write_ids(self, tables: Sequence[str], valid_txns: ValidTxnList) -> list[ValidWriteIdList]:
        with self._store.read() as step:
            return [_valid_write_ids(step, table, valid_txns) for table in tables]

    def show_txns(self) -> list[TxnInfo]:
        with self._store.read() as step:
            rows = step.rows("SELECT * FROM TXNS WHERE TXN_STATE IN ('o', 'a') ORDER BY TXN_ID")
        return [
            TxnInfo(
                r.TXN_ID,
                TxnState(r.TXN_STATE),
                TxnType(r.TXN_TYPE),
                r.TXN_STARTED,
                r.TXN_LAST_HEARTBEAT,
                r.TXN_USER,
                r.TXN_HOST,
                r.TXN_AGENT_INFO,
                r.TXN_ABORT_REASON,
            )
            for r in rows
        ]

    # --- write ids ---------------------------------------------------------------------------------------------------

    def allocate_table_write_id(self, txn_id: int, database: str, table: str, *, reallocate: bool = False) -> int:
        names = {"db": database, "tbl": table}
        with self._store.write() as step:
            require_open(step, txn_id)
            if step.value("SELECT TXN_TYPE FROM TXNS WHERE TXN_ID = :id", id=txn_id) == TxnType.READ_ONLY:
                raise TransactionError(f"Transaction {txn_id} is read-only: it gets no write id")
            mine = "T2W_DATABASE = :db AND T2W_TABLE = :tbl AND T2W_TXNID = :txn"
            if reallocate:
                step.run(f"DELETE FROM TXN_TO_WRITE_ID WHERE {mine}", **names, txn=txn_id)
            known = step.value(f"SELECT T2W_WRITEID FROM TXN_TO_WRITE_ID WHERE {mine}", **names, txn=txn_id)
            if known is not None:
                return int(known)
            write_id = _next_write_id(step, database, table)
            step.run("INSERT INTO TXN_TO_WRITE_ID VALUES (:txn, :db, :tbl, :wid)", **names, txn=txn_id, wid=write_id)
            step.run(
                "UPDATE TXN_COMPONENTS SET TC_WRITEID = :wid"
                " WHERE TC_TXNID = :txn AND TC_DATABASE = :db AND TC_TABLE = :tbl",
                **names,
                txn=txn_id,
                wid=write_id,
            )
        return write_id

    def seed_write_id(self, valid_write_ids: ValidWriteIdList) -> None:
        database, _, table = valid_write_ids.table.partition(".")
        names = {"db": database, "tbl": table}
        high = valid_write_ids.high_watermark
        hidden = sorted({*valid_write_ids.open_ids, *valid_write_ids.aborted_ids})
        with self._store.write() as step:
            if step.row("SELECT 1 FROM NEXT_WRITE_ID WHERE NWI_DATABASE = :db AND NWI_TABLE = :tbl", **names):
                raise TransactionError(f"Table {valid_write_ids.table} has write ids already")
            step.run("INSERT INTO NEXT_WRITE_ID VALUES (:db, :tbl, :next)", **names, next=high + 1)
            if high not in hidden:
                step.run("INSERT INTO TXN_TO_WRITE_ID VALUES (0, :db, :tbl, :wid)", **names, wid=high)
            for write_id in hidden:
                _hide_write_id(step, database, table, write_id, self._now_ms())

    def seed_txn_id(self, txn_id: int) -> None:
        with self._store.write() as step:
            step.run("UPDATE SEQUENCES SET NEXT = :next WHERE NAME = 'txn' AND NEXT < :next", next=txn_id + 1)

    # --- end ---------------------------------------------------------------------------------------------------------

    def commit_txn(self, txn_id: int) -> None:
        conflict = None
        with self._store.write() as step:
            if txn_state(step, txn_id) == _COMMITTED:
                return
            require_open(step, txn_id)
            commit_id = _last_txn(step)
            if not self._settings.value(XLOCK_WRITE):
                conflict = _write_conflict(step, txn_id, commit_id)
            if conflict is None:
                _commit(step, txn_id, commit_id, self._now_ms())
            else:
                abort_one(step, txn_id, conflict)
        if conflict is not None:
            raise WriteConflict(conflict)

    def abort_txns(self, txn_ids: Sequence[int], reason: str = "") -> list[int]:
        with self._store.write() as step:
            opened = [i for i in txn_ids if txn_state(step, i) == _OPEN]
            for txn_id in opened:
                abort_one(step, txn_id, reason)
        return opened

    def add_dynamic_partitions(
        self, txn_id: int, write_id: int, database: str, table: str, partitions: Sequence[str], operation: Operation
    ) -> None:
        with self._store.write() as step:
            require_open(step, txn_id)
            names = {"txn": txn_id, "db": database, "tbl": table}
            step.run(
                "DELETE FROM TXN_COMPONENTS WHERE TC_TXNID = :txn AND TC_DATABASE = :db AND TC_TABLE = :tbl"
                " AND TC_PARTITION IS NULL",
                **names,
            )
            step.run_many(
                "INSERT INTO TXN_COMPONENTS VALUES (:txn, :db, :tbl, :part, :op, :wid)",
                [{**names, "part": p, "op": operation.value, "wid": write_id} for p in partitions],
            )

    def get_latest_txn_in_conflict(self, txn_id: int) -> int | None:
        with self._store.read() as step:
            found = step.value(
                f"SELECT MAX(WS_TXNID) FROM WRITE_SET, TXN_COMPONENTS WHERE {_SAME_OBJECT}"
                " AND TC_TXNID = :txn AND WS_TXNID <> :txn AND WS_COMMIT_ID >= :txn",
                txn=txn_id,
            )
        return None if found is None else int(found)

    def clean_empty_aborted_txns(self) -> None:
        with self._store.write() as step:
            step.run(
                "DELETE FROM TXNS WHERE TXN_STATE IN ('a', 'c') AND TXN_ID NOT IN (SELECT TC_TXNID FROM TXN_COMPONENTS)"
            )

    def forget_txn_components(self, txn_id: int) -> None:
        with self._store.write() as step:
            if txn_state(step, txn_id) == _ABORTED:
                step.run("DELETE FROM TXN_COMPONENTS WHERE TC_TXNID = :txn", txn=txn_id)
                step.run("DELETE FROM TXNS WHERE TXN_ID = :txn", txn=txn_id)


_SAME_OBJECT = (
    "WS_DATABASE = TC_DATABASE AND WS_TABLE = TC_TABLE"
    " AND (WS_PARTITION IS NULL OR TC_PARTITION IS NULL OR WS_PARTITION = TC_PARTITION)"
    " AND WS_OPERATION_TYPE IN ('u', 'd') AND TC_OPERATION_TYPE IN ('u', 'd')"
)
"""Whether a committed change and a component touch the same rows. A whole table meets each of its partitions."""


def _last_txn(step: Step) -> int:
    return int(step.value("SELECT NEXT FROM SEQUENCES WHERE NAME = 'txn'")) - 1


def txn_state(step: Step, txn_id: int) -> str | None:
    """The letter of a transaction's state; None where it is not listed."""
    found = step.value("SELECT TXN_STATE FROM TXNS WHERE TXN_ID = :id", id=txn_id)
    return None if found is None else str(found)


def require_open(step: Step, txn_id: int) -> None:
    """Raises: NoSuchTransaction, TransactionAborted."""
    row = step.row("SELECT TXN_STATE, TXN_ABORT_REASON FROM TXNS WHERE TXN_ID = :id", id=txn_id)
    if row is None:
        raise NoSuchTransaction(f"No such transaction txnid:{txn_id}")
    if row.TXN_STATE == _ABORTED:
        reason = f" due to: {row.TXN_ABORT_REASON}" if row.TXN_ABORT_REASON else ""
        raise TransactionAborted(f"Transaction txnid:{txn_id} already aborted{reason}")
    if row.TXN_STATE == _COMMITTED:
        raise NoSuchTransaction(f"Transaction txnid:{txn_id} is already committed")


def _next_write_id(step: Step, database: str, table: str) -> int:
    names = {"db": database, "tbl": table}
    where = "NWI_DATABASE = :db AND NWI_TABLE = :tbl"
    found = step.value(f"SELECT NWI_NEXT FROM NEXT_WRITE_ID WHERE {where}", **names)
    if found is None:
        step.run("INSERT INTO NEXT_WRITE_ID VALUES (:db, :tbl, 2)", **names)
        return 1
    step.run(f"UPDATE NEXT_WRITE_ID SET NWI_NEXT = NWI_NEXT + 1 WHERE {where}", **names)
    return int(found)


def _hide_write_id(step: Step, database: str, table: str, write_id: int, now: int) -> None:
    """Give a write id to an aborted transaction that stays listed for its component's sake (rule 5)."""
    txn_id = step.next_id("txn")
    step.run(
        "INSERT INTO TXNS VALUES (:id, 'a', :type, :now, :now, 'acidsql', '', '', 'aborted where the files were made')",
        id=txn_id,
        type=int(TxnType.REPL_CREATED),
        now=now,
    )
    values = {"txn": txn_id, "db": database, "tbl": table, "wid": write_id}
    step.run("INSERT INTO TXN_COMPONENTS VALUES (:txn, :db, :tbl, NULL, 'i', :wid)", **values)
    step.run("INSERT INTO TXN_TO_WRITE_ID VALUES (:txn, :db, :tbl, :wid)", **values)


_INVALID = text(
    "SELECT T2W_TXNID, T2W_WRITEID FROM TXN_TO_WRITE_ID WHERE T2W_DATABASE = :db AND T2W_TABLE = :tbl"
    " AND T2W_WRITEID <= :high AND (T2W_TXNID > :txn_high OR T2W_TXNID IN :exceptions) ORDER BY T2W_WRITEID"
).bindparams(bindparam("exceptions", expanding=True))


def _valid_write_ids(step: Step, full_name: str, txns: ValidTxnList) -> ValidWriteIdList:
    """Hive's ``getValidWriteIdsForTable``: what the transactions that are seen wrote, up to the last of it."""
    database, _, table = full_name.partition(".")
    names = {"db": database, "tbl": table}
    high = step.value(
        "SELECT T2W_WRITEID FROM TXN_TO_WRITE_ID WHERE T2W_DATABASE = :db AND T2W_TABLE = :tbl AND T2W_TXNID <= :txn_high"
        " ORDER BY T2W_WRITEID DESC LIMIT 1",
        **names,
        txn_high=txns.high_watermark,
    )
    if high is None:
        following = step.value(
            "SELECT NWI_NEXT FROM NEXT_WRITE_ID WHERE NWI_DATABASE = :db AND NWI_TABLE = :tbl", **names
        )
        # write ids that only later transactions have: none of them is seen
        taken = step.value(
            "SELECT MIN(T2W_WRITEID) FROM TXN_TO_WRITE_ID WHERE T2W_DATABASE = :db AND T2W_TABLE = :tbl", **names
        )
        return ValidWriteIdList(full_name, 0 if following is None else int(taken or following) - 1)
    aborted = frozenset(txns.aborted_ids)
    rows = step.execute(
        _INVALID,
        **names,
        high=high,
        txn_high=txns.high_watermark,
        exceptions=[*txns.open_ids, *txns.aborted_ids],
    )
    return ValidWriteIdList(
        full_name,
        int(high),
        tuple(r.T2W_WRITEID for r in rows if r.T2W_TXNID not in aborted),
        tuple(r.T2W_WRITEID for r in rows if r.T2W_TXNID in aborted),
    )


def _write_conflict(step: Step, txn_id: int, commit_id: int) -> str | None:
    """First committer wins: Hive's message where another transaction committed a change of the same object."""
    row = step.row(
        f"SELECT WS_DATABASE, WS_TABLE, WS_PARTITION, WS_TXNID, WS_COMMIT_ID, WS_OPERATION_TYPE, TC_OPERATION_TYPE"
        f" FROM WRITE_SET, TXN_COMPONENTS WHERE {_SAME_OBJECT}"
        " AND TC_TXNID = :txn AND WS_TXNID <> :txn AND WS_COMMIT_ID >= :txn ORDER BY WS_COMMIT_ID LIMIT 1",
        txn=txn_id,
    )
    if row is None:
        return None
    place = "/".join(p for p in (row.WS_DATABASE, row.WS_TABLE, row.WS_PARTITION) if p)
    return (
        f"Aborting [txnid:{txn_id},{commit_id}] due to a write conflict on {place} committed by"
        f" [txnid:{row.WS_TXNID},{row.WS_COMMIT_ID}] {row.TC_OPERATION_TYPE}/{row.WS_OPERATION_TYPE}"
    )


def _commit(step: Step, txn_id: int, commit_id: int, now: int) -> None:
    step.run(
        "INSERT INTO WRITE_SET SELECT DISTINCT TC_DATABASE, TC_TABLE, TC_PARTITION, TC_TXNID, :commit, TC_OPERATION_TYPE"
        " FROM TXN_COMPONENTS WHERE TC_TXNID = :txn AND TC_OPERATION_TYPE IN ('u', 'd')",
        txn=txn_id,
        commit=commit_id,
    )
    step.run(
        "INSERT INTO COMPLETED_TXN_COMPONENTS SELECT DISTINCT TC_TXNID, TC_DATABASE, TC_TABLE, TC_PARTITION, :now,"
        " TC_WRITEID, CASE WHEN TC_OPERATION_TYPE = 'i' THEN 'N' ELSE 'Y' END FROM TXN_COMPONENTS"
        " WHERE TC_TXNID = :txn AND TC_WRITEID IS NOT NULL",
        txn=txn_id,
        now=now,
    )
    step.run("DELETE FROM TXN_COMPONENTS WHERE TC_TXNID = :txn", txn=txn_id)
    step.run("DELETE FROM HIVE_LOCKS WHERE HL_TXNID = :txn", txn=txn_id)
    step.run("UPDATE TXNS SET TXN_STATE = 'c' WHERE TXN_ID = :txn", txn=txn_id)
    # no open transaction began before these commits: none can be in conflict with them
    step.run(
        "DELETE FROM WRITE_SET WHERE WS_COMMIT_ID <"
        " COALESCE((SELECT MIN(TXN_ID) FROM TXNS WHERE TXN_STATE = 'o'), :last + 1)",
        last=commit_id,
    )


def abort_one(step: Step, txn_id: int, reason: str) -> None:
    """Abort one; it stays listed only while it has components whose files may be there."""
    step.run("DELETE FROM HIVE_LOCKS WHERE HL_TXNID = :txn", txn=txn_id)
    if step.row("SELECT 1 FROM TXN_COMPONENTS WHERE TC_TXNID = :txn", txn=txn_id) is None:
        step.run("DELETE FROM TXNS WHERE TXN_ID = :txn", txn=txn_id)
        return
    step.run(
        "UPDATE TXNS SET TXN_STATE = 'a', TXN_ABORT_REASON = :reason WHERE TXN_ID = :txn", txn=txn_id, reason=reason
    )
