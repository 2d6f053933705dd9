"""Transactions: open, abort, keep alive, list, forget."""

# ruff: noqa: SIM300 (the upper-case names are columns, not constants)

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, and_, bindparam, delete, exists, func, insert, or_, select, update

from acidsql.errors import AnalysisError, NoSuchTransaction, TransactionAborted, TransactionError
from acidsql.metastore.embedded import components
from acidsql.metastore.embedded.batches import batches
from acidsql.metastore.embedded.client import EmbeddedClient
from acidsql.metastore.embedded.schema import COMPLETED_TXN_COMPONENTS, TXN_COMPONENTS, TXNS
from acidsql.metastore.model import CompletedWrite, Operation, TxnInfo, TxnState, TxnType
from acidsql.settings import MAX_OPEN_BATCH, MAX_OPEN_TXNS
from acidsql.valid_ids import ValidTxnList

OPEN_TXN_WINDOW_MS = 1000
"""Transactions younger than this are not forgotten (Hive: ``metastore.txn.opentxn.timeout``)."""

NO_SUCH_TRANSACTION, TRANSACTION_ABORTED = 10262, 10263

_NAMED_IN_FILES = frozenset({TxnType.COMPACTION, TxnType.REBALANCE_COMPACTION, TxnType.SOFT_DELETE})
"""Transactions whose ids stand in names of directories (``_v<txn>``): such an id must never be handed out again."""

_T = TXNS.c
_OPEN, _ABORTED, _COMMITTED = TxnState.OPEN.value, TxnState.ABORTED.value, TxnState.COMMITTED.value

_MIN_OPEN = select(func.min(_T.TXN_ID)).where(_T.TXN_STATE == _OPEN)
_NEWEST = select(func.max(_T.TXN_ID))
_COUNT_OPEN = select(func.count()).select_from(TXNS).where(_T.TXN_STATE == _OPEN)
_STATE = select(_T.TXN_STATE, _T.TXN_TYPE, _T.TXN_META_INFO).where(_T.TXN_ID == bindparam("txn"))
_IS_COMPLETED = select(1).where(COMPLETED_TXN_COMPONENTS.c.CTC_TXNID == bindparam("txn")).limit(1)
_NOT_COMMITTED = (
    select(_T.TXN_ID, _T.TXN_STATE)
    .where(_T.TXN_STATE.in_([_OPEN, _ABORTED]), _T.TXN_ID <= bindparam("high"))
    .order_by(_T.TXN_ID)
)
_HEARTBEAT = (
    update(TXNS).where(_T.TXN_ID == bindparam("txn"), _T.TXN_STATE == _OPEN).values(TXN_LAST_HEARTBEAT=bindparam("now"))
)
_LAST_HEARTBEAT = select(_T.TXN_LAST_HEARTBEAT).where(_T.TXN_ID == bindparam("txn"), _T.TXN_STATE == _OPEN)
_SET_COMMITTED = update(TXNS).where(_T.TXN_ID == bindparam("txn")).values(TXN_STATE=_COMMITTED)
_OLDEST_OPEN_WRITER = select(func.min(_T.TXN_ID)).where(_T.TXN_STATE == _OPEN, _T.TXN_TYPE != TxnType.READ_ONLY.value)
_HAS_COMPONENTS = exists(select(1).where(TXN_COMPONENTS.c.TC_TXNID == _T.TXN_ID))


def txn_name(txn_id: int) -> str:
    """A transaction as Hive's messages name it."""
    return f"txnid:{txn_id}"


def newest_txn(db: Connection) -> int:
    """The highest transaction id. Its row is never removed: it is the high watermark of snapshots."""
    return int(db.execute(_NEWEST).scalar_one())


def add_aborted(db: Connection, count: int, *, reason: str, now: int) -> list[int]:
    """Transactions that were never open; they back write ids that must not be seen."""
    first = newest_txn(db) + 1
    ids = list(range(first, first + count))
    row = _row(TxnState.ABORTED, now, reason=reason)
    db.execute(insert(TXNS), [{"TXN_ID": txn_id, **row} for txn_id in ids])
    return ids


_MAX_SEED = 1 << 48


def check_seed(what: str, id: int) -> None:
    """Ids come from names of directories, which any user with write access can create. Raises: AnalysisError."""
    if id > _MAX_SEED:
        raise AnalysisError(f"No store has ever given out {what} id {id}: a directory has a wrong name")


def start_above(db: Connection, txn_id: int, now: int) -> None:
    """Let the ids go on above ``txn_id``; nothing happens where they are higher already.

    Raises:
        AnalysisError: When no store can ever have given it out: the ids of this one would run out.
    """
    check_seed("transaction", txn_id)
    if txn_id > newest_txn(db):
        db.execute(insert(TXNS), {"TXN_ID": txn_id, **_row(TxnState.COMMITTED, now)})


def _row(
    state: TxnState,
    now: int,
    *,
    user: str = "",
    host: str = "",
    type: TxnType = TxnType.DEFAULT,
    agent_info: str = "",
    reason: str | None = None,
) -> dict[str, object]:
    return {
        "TXN_STATE": state.value,
        "TXN_STARTED": now,
        "TXN_LAST_HEARTBEAT": now,
        "TXN_USER": user,
        "TXN_HOST": host,
        "TXN_AGENT_INFO": agent_info,
        "TXN_META_INFO": reason,
        "TXN_TYPE": type.value,
    }


def valid_txns(db: Connection, current_txn: int) -> ValidTxnList:
    """The snapshot of a transaction, or of all that is committed for 0 (Hive: ``createValidReadTxnList``)."""
    high = newest_txn(db)
    if current_txn > 0:
        high = min(high, current_txn)
    open_ids: list[int] = []
    aborted_ids: list[int] = []
    for txn_id, state in db.execute(_NOT_COMMITTED, {"high": high}):
        if txn_id != current_txn:
            (open_ids if state == _OPEN else aborted_ids).append(txn_id)
    return ValidTxnList(high, tuple(open_ids), tuple(aborted_ids))


# --- state -----------------------------------------------------------------------------------------------------------


def open_type(db: Connection, txn_id: int) -> TxnType | None:
    """The type of an open transaction, None for one that is known to have committed.

    Raises:
        TransactionAborted: When it is aborted.
        NoSuchTransaction: When it was never handed out, or is forgotten.
    """
    row = db.execute(_STATE, {"txn": txn_id}).first()
    if row is None:
        if db.execute(_IS_COMPLETED, {"txn": txn_id}).first() is not None:
            return None
        raise NoSuchTransaction(
            f"No such transaction {txn_name(txn_id)}",
            code=NO_SUCH_TRANSACTION,
            hint="One that was ended, as after hive.txn.timeout without heartbeats, is forgotten some time later.",
        )
    state, type, reason = row
    if state == _ABORTED:
        because = f": {reason}" if reason else ""
        raise TransactionAborted(f"Transaction {txn_name(txn_id)} already aborted{because}", code=TRANSACTION_ABORTED)
    return TxnType(type) if state == _OPEN else None


def require_open(db: Connection, txn_id: int) -> TxnType:
    """The type of an open transaction.

    Raises:
        TransactionAborted: When it is aborted.
        NoSuchTransaction: When it is committed, forgotten, or was never handed out.
    """
    type = open_type(db, txn_id)
    if type is None:
        raise NoSuchTransaction(f"Transaction {txn_name(txn_id)} is already committed.", code=NO_SUCH_TRANSACTION)
    return type


def heartbeat(db: Connection, txn_id: int, now: int) -> None:
    """Say that the owner of a transaction is alive.

    Raises:
        NoSuchTransaction, TransactionAborted: When it is not open.
    """
    if db.execute(_HEARTBEAT, {"txn": txn_id, "now": now}).rowcount != 1:
        require_open(db, txn_id)


def heartbeat_of(db: Connection, txn_id: int) -> int | None:
    """When the owner of a transaction was last heard of; None where it is not open."""
    found = db.execute(_LAST_HEARTBEAT, {"txn": txn_id}).scalar()
    return None if found is None else int(found)


def set_committed(db: Connection, txn_id: int) -> None:
    """The moment at which a transaction becomes true."""
    db.execute(_SET_COMMITTED, {"txn": txn_id})


# --- listing and forgetting ------------------------------------------------------------------------------------------


def oldest_open_writer(db: Connection) -> int | None:
    """The lowest open transaction that can still write; None where there is none."""
    return db.execute(_OLDEST_OPEN_WRITER).scalar()


def forget_empty(db: Connection, now: int) -> None:
    """Forget transactions that have ended and left no components (Hive: ``cleanEmptyAbortedAndCommittedTxns``).

    A snapshot takes the highest id for its high watermark, so that row stays; and so does what is younger than
    :data:`OPEN_TXN_WINDOW_MS`.
    """
    newest_old = select(_T.TXN_ID).where(_T.TXN_STARTED < now - OPEN_TXN_WINDOW_MS).order_by(_T.TXN_ID.desc()).limit(1)
    old = db.execute(newest_old).scalar()
    if old is not None:
        db.execute(delete(TXNS).where(_T.TXN_STATE.in_([_ABORTED, _COMMITTED]), _T.TXN_ID < old, ~_HAS_COMPONENTS))


class EmbeddedTxns(EmbeddedClient):
    """:class:`~acidsql.metastore.protocol.Transactions`: open, keep alive, list."""

    def open_txns(
        self, count: int = 1, *, user: str, host: str, type: TxnType = TxnType.DEFAULT, agent_info: str = ""
    ) -> list[int]:
        """Ids rise without gaps: the writers' lock is held."""
        limit = self._settings.value(MAX_OPEN_TXNS)
        count = min(count, self._settings.value(MAX_OPEN_BATCH))
        with self._store.write(durable=type in _NAMED_IN_FILES) as db:
            if count < 1:
                raise TransactionError(f"Invalid input for number of txns: {count}")
            if int(db.execute(_COUNT_OPEN).scalar_one()) + count > limit:
                raise TransactionError(
                    "Maximum allowed number of open transactions has been reached. See hive.max.open.txns.",
                    hint=f"{MAX_OPEN_TXNS.name} is {limit}; SHOW TRANSACTIONS lists the open ones.",
                )
            first = newest_txn(db) + 1
            ids = list(range(first, first + count))
            row = _row(TxnState.OPEN, self._now(db), user=user, host=host, type=type, agent_info=agent_info)
            oldest = db.execute(_MIN_OPEN).scalar()
            row["TXN_MIN_OPEN"] = first if oldest is None else oldest
            row["TXN_TIMEOUT"] = self._timeout
            db.execute(insert(TXNS), [{"TXN_ID": txn_id, **row} for txn_id in ids])
            return ids

    def heartbeat_txns(self, txn_ids: Sequence[int]) -> tuple[list[int], list[int]]:
        with self._store.write(durable=False) as db:
            now = self._now(db)
            states: dict[int, str] = {}
            for some in batches(txn_ids):
                db.execute(
                    update(TXNS).where(_T.TXN_ID.in_(some), _T.TXN_STATE == _OPEN).values(TXN_LAST_HEARTBEAT=now)
                )
                states.update((i, s) for i, s in db.execute(select(_T.TXN_ID, _T.TXN_STATE).where(_T.TXN_ID.in_(some))))
            wanted = sorted(set(txn_ids))
            aborted = [i for i in wanted if states.get(i) == _ABORTED]
            return aborted, [i for i in wanted if states.get(i) not in (_OPEN, _ABORTED)]

    def get_valid_txns(self, current_txn: int = 0) -> ValidTxnList:
        with self._store.read() as db:
            return valid_txns(db, current_txn)

    def show_txns(self) -> list[TxnInfo]:
        with self._store.read() as db:
            rows = db.execute(
                select(TXNS)
                .where(or_(_T.TXN_STATE == _OPEN, and_(_T.TXN_STATE == _ABORTED, _HAS_COMPONENTS)))
                .order_by(_T.TXN_ID)
            )
            return [
                TxnInfo(
                    id=r.TXN_ID,
                    state=TxnState(r.TXN_STATE),
                    type=TxnType(r.TXN_TYPE),
                    started_ms=r.TXN_STARTED,
                    heartbeat_ms=r.TXN_LAST_HEARTBEAT,
                    user=r.TXN_USER,
                    host=r.TXN_HOST,
                    agent_info=r.TXN_AGENT_INFO or "",
                    abort_reason=r.TXN_META_INFO,
                )
                for r in rows
            ]

    def seed_txn_id(self, txn_id: int) -> None:
        with self._store.write() as db:
            start_above(db, txn_id, self._now(db))

    def add_dynamic_partitions(
        self, txn_id: int, write_id: int, database: str, table: str, partitions: Sequence[str], operation: Operation
    ) -> None:
        with self._store.write(durable=False) as db:
            require_open(db, txn_id)
            components.name_partitions(db, txn_id, write_id, database, table, partitions, operation)

    def completed_writes(self, database: str, table: str) -> list[CompletedWrite]:
        with self._store.read() as db:
            return components.completed_writes(db, database, table)

    def forget_txn_components(self, txn_id: int) -> None:
        with self._store.write() as db:
            row = db.execute(_STATE, {"txn": txn_id}).first()
            if row is not None and row[0] == _ABORTED:
                components.forget(db, txn_id)
