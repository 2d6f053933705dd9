"""COMPACTION_QUEUE: requests for compactions, and which worker has them (Hive's ``CompactionTxnHandler``).

An entry is in the queue until it is cleaned; when it ends, one way or another, it goes into COMPLETED_COMPACTIONS.
"""

# ruff: noqa: SIM300 (the upper-case names are columns, not constants)

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    delete,
    exists,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy import Table as Entity
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from acidsql.errors import CompactionError
from acidsql.metastore import stringable_map
from acidsql.metastore.compaction_protocol import latest_done
from acidsql.metastore.embedded import catalog, meta_info, txns, write_ids
from acidsql.metastore.embedded.batches import batches
from acidsql.metastore.embedded.client import EmbeddedClient
from acidsql.metastore.embedded.schema import (
    COMPACTION_QUEUE,
    COMPLETED_COMPACTIONS,
    NEXT_COMPACTION_QUEUE_ID,
    TXN_COMPONENTS,
    TXNS,
)
from acidsql.metastore.model import (
    DEFAULT_POOL,
    CompactionFilter,
    CompactionInfo,
    CompactionMetrics,
    CompactionRequest,
    CompactionResponse,
    CompactionType,
    TxnState,
)
from acidsql.metastore.model import CompactionState as State
from acidsql.settings import POOL_TIMEOUT

Columns = ReadOnlyColumnCollection[str, Column[Any]]

INITIATED, WORKING, READY = (state.value for state in (State.INITIATED, State.WORKING, State.READY_FOR_CLEANING))
COMPACTS = "c"
"""Hive's letter for what a compactor's transaction does."""

_Q, _H = COMPACTION_QUEUE.c, COMPLETED_COMPACTIONS.c
_NEXT = NEXT_COMPACTION_QUEUE_ID.c.NCQ_NEXT
_KEPT = tuple(c.name[3:] for c in COMPLETED_COMPACTIONS.columns if c.name not in ("CC_STATE", "CC_END"))
"""What both tables say of an entry, without the prefixes."""

_ANY_INITIATED = select(_Q.CQ_ID).where(_Q.CQ_STATE == INITIATED).limit(1)
_BY_ID = select(COMPACTION_QUEUE).where(_Q.CQ_ID == bindparam("id"))
_TAKE = update(COMPACTION_QUEUE).where(_Q.CQ_ID == bindparam("id"))
_TAKE = _TAKE.values(
    CQ_STATE=WORKING,
    CQ_WORKER_ID=bindparam("worker"),
    CQ_WORKER_VERSION=bindparam("version"),
    CQ_START=bindparam("now"),
)
_BACK = {
    "CQ_STATE": INITIATED,
    "CQ_WORKER_ID": None,
    "CQ_WORKER_VERSION": None,
    "CQ_START": None,
    "CQ_HADOOP_JOB_ID": None,
    "CQ_TXN_ID": None,
    "CQ_HIGHEST_WRITE_ID": None,
    "CQ_META_INFO": None,
}
"""An entry as if nobody had taken it. Without its transaction: that one's end must not count as the next one's."""


def same_place(entity: Entity, prefix: str, database: str, table: str, partition: str | None) -> ColumnElement[bool]:
    """Rows of exactly this table or partition."""
    of_partition = entity.c[f"{prefix}_PARTITION"]
    return and_(
        entity.c[f"{prefix}_DATABASE"] == database,
        entity.c[f"{prefix}_TABLE"] == table,
        of_partition.is_(None) if partition is None else of_partition == partition,
    )


def is_committed(columns: Columns) -> ColumnElement[bool]:
    """Whether the compactor's transaction is committed, of an entry that has one."""
    return or_(columns.CQ_NEXT_TXN_ID.is_not(None), columns.CQ_TXN_ID.is_(None))


# --- requests --------------------------------------------------------------------------------------------------------


def next_id(db: Connection) -> int:
    """The id of a new entry, of the queue or of the history."""
    id = int(db.execute(select(_NEXT)).scalar_one())
    db.execute(update(NEXT_COMPACTION_QUEUE_ID).values(NCQ_NEXT=id + 1))
    return id


def _request_row(id: int, request: CompactionRequest) -> dict[str, object]:
    return {
        "ID": id,
        "DATABASE": request.database,
        "TABLE": request.table,
        "PARTITION": request.partition,
        "TYPE": request.type.value,
        "TBLPROPERTIES": stringable_map.to_text(request.properties),
        "INITIATOR_ID": request.initiator_id,
        "INITIATOR_VERSION": request.initiator_version,
        "POOL_NAME": request.pool or None,
        "NUMBER_OF_BUCKETS": request.buckets,
        "ORDER_BY": request.order_by,
    }


def _abort(db: Connection, id: int, state: State | None, now: int) -> str:
    if state is None:
        return "No Such Compaction Id Available"
    if state not in State.ABORTED.origins:
        return f"Error while aborting compaction as compaction is in state-{state}"
    end(db, id, State.ABORTED, now, "Compaction aborted by an ABORT COMPACTIONS request")
    return "Successfully aborted compaction"


# --- showing ---------------------------------------------------------------------------------------------------------


def _matching(db: Connection, entity: Entity, wanted: CompactionFilter) -> Sequence[Row[Any]]:
    c, prefix = entity.c, entity.columns[0].name[:2]
    conditions: tuple[tuple[object, str], ...] = (
        (wanted.id, "ID"),
        (wanted.database, "DATABASE"),
        (wanted.table, "TABLE"),
        (wanted.partition, "PARTITION"),
        (wanted.type and wanted.type.value, "TYPE"),
        (wanted.state and wanted.state.value, "STATE"),
    )
    query = select(entity).where(*(c[f"{prefix}_{name}"] == want for want, name in conditions if want is not None))
    if wanted.pool is not None:
        query = query.where(_of_pool(c[f"{prefix}_POOL_NAME"], wanted.pool))
    return _latest(query, c[f"{prefix}_ID"], wanted.limit, db)


def _latest(query: Select[Any], id: Column[Any], limit: int | None, db: Connection) -> Sequence[Row[Any]]:
    return db.execute(query.order_by(id.desc()).limit(limit)).all()


def info(row: Row[Any]) -> CompactionInfo:
    """An entry of either table."""
    values = {name[3:]: value for name, value in row._mapping.items()}
    return CompactionInfo(
        id=values["ID"],
        database=values["DATABASE"],
        table=values["TABLE"],
        partition=values["PARTITION"],
        type=CompactionType(values["TYPE"]),
        state=State(values["STATE"]),
        worker=values["WORKER_ID"],
        enqueued_ms=values["ENQUEUE_TIME"],
        started_ms=values["START"],
        ended_ms=values.get("END"),
        job_id=values["HADOOP_JOB_ID"],
        error=values["ERROR_MESSAGE"],
        initiator=values["INITIATOR_ID"],
        pool=values["POOL_NAME"],
        txn_id=values["TXN_ID"],
        next_txn_id=values["NEXT_TXN_ID"],
        committed_ms=values["COMMIT_TIME"],
        highest_write_id=values["HIGHEST_WRITE_ID"],
        properties=stringable_map.from_text(values["TBLPROPERTIES"]),
        buckets=values["NUMBER_OF_BUCKETS"],
        order_by=values["ORDER_BY"],
        retries=values.get("RETRIES", 0),
        worker_version=values["WORKER_VERSION"],
        initiator_version=values["INITIATOR_VERSION"],
        metrics=meta_info.from_bytes(values["META_INFO"]),
    )


# --- workers ---------------------------------------------------------------------------------------------------------


def _of_pool(column: ColumnElement[Any], pool: str | None) -> ColumnElement[bool]:
    if not pool or pool == DEFAULT_POOL:
        return or_(column.is_(None), column == DEFAULT_POOL)
    return column == pool


def set_committed(db: Connection, txn_id: int, newest: int, now: int) -> None:
    """Tell the entry of a compactor's transaction that this one is committed.

    Those that began up to ``newest`` may have a snapshot from before the commit.
    """
    row = {"CQ_NEXT_TXN_ID": newest, "CQ_COMMIT_TIME": now}
    db.execute(update(COMPACTION_QUEUE).where(_Q.CQ_TXN_ID == txn_id).values(row))


# --- one entry -------------------------------------------------------------------------------------------------------


def find(db: Connection, id: int) -> Row[Any] | None:
    """An entry of the queue."""
    return db.execute(_BY_ID, {"id": id}).first()


def require(db: Connection, id: int, states: Sequence[State], worker: str | None = None) -> Row[Any]:
    """An entry of the queue in one of some states, and of a worker where one is given.

    Raises:
        CompactionError: When there is none such.
    """
    row = find(db, id)
    if row is None:
        raise CompactionError(f"No record with CQ_ID={id} found in COMPACTION_QUEUE")
    state = State(row.CQ_STATE)
    if state not in states:
        raise CompactionError(f"Compaction {id} is {state}, and not {' or '.join(map(str, states))}")
    is_done = state is State.READY_FOR_CLEANING and row.CQ_NEXT_TXN_ID is None  # by whom is not on record any more
    if worker is not None and row.CQ_WORKER_ID != worker and not is_done:
        whose = f"belongs to {row.CQ_WORKER_ID}" if row.CQ_WORKER_ID else "went back into the queue"
        raise CompactionError(f"Compaction {id} was taken from {worker}: it {whose}")
    return row


def end(db: Connection, id: int, state: State, now: int, message: str | None = None) -> None:
    """Move an entry from the queue into the history. Its message is kept where there is no other."""
    row = db.execute(_BY_ID, {"id": id}).one()._mapping
    ended = {f"CC_{name}": row[f"CQ_{name}"] for name in _KEPT}
    ended |= {"CC_STATE": state.value, "CC_END": now}
    if state is not State.SUCCEEDED and row["CQ_NEXT_TXN_ID"] is None:  # what its worker has done was not committed
        ended["CC_META_INFO"] = None
    if message is not None:
        ended["CC_ERROR_MESSAGE"] = message
    db.execute(insert(COMPLETED_COMPACTIONS), ended)
    db.execute(delete(COMPACTION_QUEUE).where(_Q.CQ_ID == id))


def _set(db: Connection, id: int, **values: object) -> None:
    db.execute(update(COMPACTION_QUEUE).where(_Q.CQ_ID == id).values(values))


class EmbeddedQueue(EmbeddedClient):
    """:class:`~acidsql.metastore.protocol.Compactions`: requests, and the workers that take them."""

    def compact(self, request: CompactionRequest) -> CompactionResponse:
        """Hive: ``CompactFunction``."""
        with self._store.write() as db:
            catalog.table_id_of(db, request.database, request.table)
            seen = write_ids.valid_write_ids(db, f"{request.database}.{request.table}", txns.valid_txns(db, 0))
            coverable = seen.for_compaction().high_watermark
            standing = db.execute(
                select(_Q.CQ_ID, _Q.CQ_STATE)
                .where(
                    same_place(COMPACTION_QUEUE, "CQ", request.database, request.table, request.partition),
                    or_(
                        _Q.CQ_STATE.in_([INITIATED, WORKING]),
                        and_(_Q.CQ_STATE == READY, _Q.CQ_HIGHEST_WRITE_ID == coverable),
                    ),
                )
                .order_by(_Q.CQ_ID)
                .limit(1)
            ).first()
            if standing is not None:
                id, state = int(standing[0]), State(standing[1])
                message = f"Compaction is already scheduled with state='{state}' and id={id}"
                return CompactionResponse(id, state, False, message)
            id = next_id(db)
            row = {f"CQ_{name}": value for name, value in _request_row(id, request).items()}
            db.execute(insert(COMPACTION_QUEUE), {**row, "CQ_STATE": INITIATED, "CQ_ENQUEUE_TIME": self._now(db)})
            return CompactionResponse(id, State.INITIATED, True)

    def show_compactions(self, wanted: CompactionFilter) -> list[CompactionInfo]:
        with self._store.read() as db:
            found = [
                info(row)
                for entity in (COMPACTION_QUEUE, COMPLETED_COMPACTIONS)
                for row in _matching(db, entity, wanted)
            ]
            found.sort(key=lambda one: one.id, reverse=True)
            return found[: wanted.limit]

    def abort_compactions(self, ids: Sequence[int]) -> dict[int, str]:
        """The answers are those of Hive (``AbortCompactionFunction``)."""
        with self._store.write() as db:
            now, states = self._now(db), dict[int, State]()
            for some in batches(list(dict.fromkeys(ids))):
                for column, state in ((_Q.CQ_ID, _Q.CQ_STATE), (_H.CC_ID, _H.CC_STATE)):
                    states.update(
                        (row[0], State(row[1])) for row in db.execute(select(column, state).where(column.in_(some)))
                    )
            return {id: _abort(db, id, states.get(id), now) for id in dict.fromkeys(ids)}

    def latest_compactions(
        self, database: str, table: str, partitions: Collection[str] | None = None, *, after: int = 0
    ) -> list[CompactionInfo]:
        return latest_done(self.show_compactions(CompactionFilter(database=database, table=table)), partitions, after)

    def find_next_compact(
        self, worker: str, *, pool: str | None = None, worker_version: str | None = None
    ) -> CompactionInfo | None:
        """Hive: ``NextCompactionFunction``."""
        with self._store.read() as db:  # an idle worker asks every second, and must not make a writer wait for that
            if db.execute(_ANY_INITIATED).first() is None:
                return None
        pool_timeout = int(self._settings.value(POOL_TIMEOUT) * 1000)
        with self._store.write() as db:
            now = self._now(db)
            of_pool = _of_pool(_Q.CQ_POOL_NAME, pool)
            if not pool or pool == DEFAULT_POOL:
                of_pool = or_(of_pool, _Q.CQ_ENQUEUE_TIME < now - pool_timeout)
            oldest = select(_Q.CQ_ID).where(_Q.CQ_STATE == INITIATED, of_pool).order_by(_Q.CQ_ID).limit(1)
            id = db.execute(oldest).scalar()
            if id is None:
                return None
            db.execute(_TAKE, {"id": id, "worker": worker, "version": worker_version, "now": now})
            return info(db.execute(_BY_ID, {"id": id}).one())

    def update_compactor_state(self, id: int, txn_id: int, highest_write_id: int, *, worker: str | None = None) -> None:
        with self._store.write() as db:
            row = require(db, id, [State.WORKING], worker)
            txns.require_open(db, txn_id)
            _set(
                db, id, CQ_TXN_ID=txn_id, CQ_HIGHEST_WRITE_ID=highest_write_id, CQ_NEXT_TXN_ID=None, CQ_COMMIT_TIME=None
            )
            db.execute(
                insert(TXN_COMPONENTS),
                {
                    "TC_TXNID": txn_id,
                    "TC_DATABASE": row.CQ_DATABASE,
                    "TC_TABLE": row.CQ_TABLE,
                    "TC_PARTITION": row.CQ_PARTITION,
                    "TC_OPERATION_TYPE": COMPACTS,
                    "TC_WRITEID": highest_write_id,
                },
            )

    def set_job_id(self, id: int, job: str, *, worker: str | None = None) -> None:
        with self._store.write(durable=False) as db:
            require(db, id, [State.WORKING], worker)
            _set(db, id, CQ_HADOOP_JOB_ID=job)

    def mark_compacted(self, id: int, *, worker: str | None = None, metrics: CompactionMetrics | None = None) -> None:
        with self._store.write() as db:
            require(db, id, State.READY_FOR_CLEANING.origins, worker)
            _set(db, id, CQ_STATE=READY, CQ_WORKER_ID=None, CQ_META_INFO=meta_info.to_bytes(metrics))

    def mark_failed(self, id: int, message: str, *, worker: str | None = None) -> None:
        self._give_up(id, State.FAILED, message, worker)

    def mark_refused(self, id: int, message: str, *, worker: str | None = None) -> None:
        self._give_up(id, State.REFUSED, message, worker)

    def _give_up(self, id: int, state: State, message: str, worker: str | None) -> None:
        with self._store.write() as db:
            require(db, id, state.origins, worker)
            end(db, id, state, self._now(db), message)

    def mark_did_not_initiate(self, request: CompactionRequest, message: str) -> None:
        with self._store.write() as db:
            now = self._now(db)
            row = {f"CC_{name}": value for name, value in _request_row(next_id(db), request).items()}
            ended = {
                "CC_STATE": State.DID_NOT_INITIATE.value,
                "CC_ERROR_MESSAGE": message,
                "CC_START": now,
                "CC_END": now,
            }
            db.execute(insert(COMPLETED_COMPACTIONS), {**row, **ended})

    def revoke_timed_out_workers(self, timeout_ms: int) -> int:
        with self._store.write() as db:
            is_open = exists(select(1).where(TXNS.c.TXN_ID == _Q.CQ_TXN_ID, TXNS.c.TXN_STATE == TxnState.OPEN.value))
            undone = and_(_Q.CQ_STATE == READY, ~is_committed(_Q), ~is_open)
            timed_out = and_(_Q.CQ_STATE == WORKING, _Q.CQ_START < self._now(db) - timeout_ms)
            return db.execute(update(COMPACTION_QUEUE).where(or_(timed_out, undone)).values(_BACK)).rowcount

    def revoke_from_local_workers(self, host: str) -> int:
        with self._store.write() as db:
            its = or_(_Q.CQ_WORKER_ID == host, _Q.CQ_WORKER_ID.startswith(f"{host}-", autoescape=True))
            return db.execute(update(COMPACTION_QUEUE).where(_Q.CQ_STATE == WORKING, its).values(_BACK)).rowcount
