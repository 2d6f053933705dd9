"""After compactions and aborts: what there is to compact and to clean, and what may be forgotten when it is done.

The rule behind all of it: what an aborted transaction wrote is forgotten after its files are gone, never before.
"""

# ruff: noqa: SIM300 (the upper-case names are columns, not constants)

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta, timezone
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    delete,
    distinct,
    exists,
    func,
    or_,
    select,
    update,
)

from acidsql.metastore.embedded import queue, txns
from acidsql.metastore.embedded.batches import batches
from acidsql.metastore.embedded.client import EmbeddedClient
from acidsql.metastore.embedded.queue import COMPACTS, READY, Columns
from acidsql.metastore.embedded.schema import (
    COMPACTION_QUEUE,
    COMPLETED_COMPACTIONS,
    COMPLETED_TXN_COMPONENTS,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    TXNS,
)
from acidsql.metastore.model import AbortedComponent, CompactionCandidate, CompactionInfo, CompactionType, TxnState
from acidsql.metastore.model import CompactionState as State
from acidsql.settings import FETCH_SIZE

LATE_MS = 2000
"""A commit's time is taken before the commit: one that is seen now may be stamped some time ago."""

_Q, _C, _T = COMPACTION_QUEUE.c, TXN_COMPONENTS.c, TXNS.c
_DONE, _W = COMPLETED_TXN_COMPONENTS.c, TXN_TO_WRITE_ID.c
_OTHER = TXN_TO_WRITE_ID.alias("OTHER")

_ABORTED_TXNS = select(_T.TXN_ID).where(_T.TXN_STATE == TxnState.ABORTED.value)
_OF_ABORTED = _C.TC_TXNID.in_(_ABORTED_TXNS)
_MIN_OPEN = select(func.min(_T.TXN_ID)).where(_T.TXN_STATE == TxnState.OPEN.value)
_MIN_ABORTED = select(func.min(_T.TXN_ID)).where(_T.TXN_STATE == TxnState.ABORTED.value)
_MIN_SEEN_OPEN = select(func.min(func.coalesce(_T.TXN_MIN_OPEN, 0))).where(_T.TXN_STATE == TxnState.OPEN.value)


# --- cleaner ---------------------------------------------------------------------------------------------------------


def _waits(entry: Columns, retention: int, now: int) -> ColumnElement[bool]:
    """Whether an entry waits for cleaning, and its time has come."""
    return and_(
        entry.CQ_STATE == READY,
        entry.CQ_TYPE != CompactionType.ABORT_TXN_CLEANUP.value,
        queue.is_committed(entry),
        or_(entry.CQ_COMMIT_TIME.is_(None), entry.CQ_COMMIT_TIME <= now - retention),
        or_(entry.CQ_RETRIES == 0, _since(entry) + entry.CQ_RETRY_RETENTION <= now),
    )


def _since(entry: Columns) -> ColumnElement[int]:
    """From when the pause of a retry counts."""
    return func.coalesce(entry.CQ_COMMIT_TIME, entry.CQ_ENQUEUE_TIME)


# --- aborted transactions --------------------------------------------------------------------------------------------


def _limited(places: Select[Any], limit: int, table: str | None) -> Select[Any]:
    """The first places, or all of one ``database.table``."""
    if table is None:
        return places.limit(limit)
    database, _, name = table.partition(".")
    return places.where(_C.TC_DATABASE == database, _C.TC_TABLE == name)


def _component(
    db: Connection, database: str, table: str, partition: str | None, *, is_compaction: bool
) -> AbortedComponent:
    compacts = _C.TC_OPERATION_TYPE == COMPACTS
    found = db.execute(
        select(_C.TC_TXNID, _C.TC_WRITEID).where(
            queue.same_place(TXN_COMPONENTS, "TC", database, table, partition),
            _OF_ABORTED,
            compacts if is_compaction else and_(~compacts, _C.TC_WRITEID.is_not(None)),
        )
    ).all()
    ids = frozenset(int(row[0]) for row in found)
    write_ids = frozenset() if is_compaction else frozenset(int(row[1]) for row in found)
    return AbortedComponent(database, table, partition, write_ids, min(ids), ids)


def forget_unwritten(db: Connection) -> None:
    """Drop components of aborted transactions that got no write id in the table: they cannot have written there.

    Hive allocates write ids before it locks; here the lock comes first, and the end may come between them.
    """
    db.execute(delete(TXN_COMPONENTS).where(_OF_ABORTED, _C.TC_TABLE.is_not(None), _C.TC_WRITEID.is_(None)))


# --- initiator -------------------------------------------------------------------------------------------------------


def _written(since: int | None) -> Select[Any]:
    query = select(_DONE.CTC_DATABASE, _DONE.CTC_TABLE, _DONE.CTC_PARTITION).distinct()
    query = query.where(_DONE.CTC_TABLE.is_not(None), _DONE.CTC_WRITEID.is_not(None))  # without one nothing was written
    if since is None:
        return query
    h = COMPLETED_COMPACTIONS.c
    latest = select(func.max(h.CC_ID)).group_by(h.CC_DATABASE, h.CC_TABLE, h.CC_PARTITION)
    failed = exists(
        select(1).where(
            h.CC_DATABASE == _DONE.CTC_DATABASE,
            h.CC_TABLE == _DONE.CTC_TABLE,
            h.CC_PARTITION.is_not_distinct_from(_DONE.CTC_PARTITION),
            h.CC_ID.in_(latest),
            h.CC_STATE.in_([State.DID_NOT_INITIATE.value, State.FAILED.value]),
        )
    )
    return query.where(or_(_DONE.CTC_TIMESTAMP >= utc(since - LATE_MS), failed))


def utc(ms: int) -> datetime:
    """A time as COMPLETED_TXN_COMPONENTS keeps it."""
    return (datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=ms)).replace(tzinfo=None)


# --- housekeeping ----------------------------------------------------------------------------------------------------


class EmbeddedCleaning(EmbeddedClient):
    """:class:`~acidsql.metastore.protocol.Compactions`: what the initiator, the cleaner and the housekeeper ask for."""

    # --- cleaner -----------------------------------------------------------------------------------------------------

    def min_open_txn(self) -> int:
        with self._store.read() as db:
            oldest = db.execute(_MIN_OPEN).scalar()
            return txns.newest_txn(db) + 1 if oldest is None else int(oldest)

    def min_unseen_txn(self) -> int:
        """As the protocol says. A transaction of an older store, which did not record what was open, holds back all."""
        with self._store.read() as db:
            oldest = db.execute(_MIN_SEEN_OPEN).scalar()
            return txns.newest_txn(db) + 1 if oldest is None else int(oldest)

    def find_ready_to_clean(self, min_open_txn: int, retention_ms: int, *, after: int = 0) -> list[CompactionInfo]:
        """As the protocol says (Hive: ``ReadyToCleanHandler``).

        Besides Hive's conditions, the compactor's transaction must have committed: its worker says that it is done
        before that.
        """
        limit = self._settings.value(FETCH_SIZE)
        with self._store.read() as db:
            now = self._now(db)
            first = COMPACTION_QUEUE.alias("FIRST")
            is_later = exists(
                select(1).where(
                    _waits(first.c, retention_ms, now),
                    first.c.CQ_DATABASE == _Q.CQ_DATABASE,
                    first.c.CQ_TABLE == _Q.CQ_TABLE,
                    first.c.CQ_PARTITION.is_not_distinct_from(_Q.CQ_PARTITION),
                    first.c.CQ_HIGHEST_WRITE_ID < _Q.CQ_HIGHEST_WRITE_ID,
                )
            )
            # Hive has <=: it lets one go that began as the last before the commit, and may still see what was compacted
            is_unneeded = or_(_Q.CQ_NEXT_TXN_ID.is_(None), _Q.CQ_NEXT_TXN_ID < min_open_txn)
            ready = select(COMPACTION_QUEUE).where(
                _waits(_Q, retention_ms, now), is_unneeded, ~is_later, _Q.CQ_ID > after
            )
            return [queue.info(row) for row in db.execute(ready.order_by(_Q.CQ_ID).limit(limit))]

    def set_cleaner_retry(self, id: int, *, retry_at_ms: int, message: str) -> None:
        with self._store.write() as db:
            queue.require(db, id, [State.READY_FOR_CLEANING])
            values = {
                "CQ_RETRY_RETENTION": retry_at_ms - _since(_Q),
                "CQ_RETRIES": _Q.CQ_RETRIES + 1,
                "CQ_CLEANER_START": self._now(db),
                "CQ_ERROR_MESSAGE": message,
            }
            db.execute(update(COMPACTION_QUEUE).where(_Q.CQ_ID == id).values(values))

    def mark_cleaned(self, id: int, *, keep_aborted: bool = False) -> None:
        """As the protocol says (Hive: ``MarkCleanedFunction``).

        Without a highest write id nothing is known to be compacted, and nothing is forgotten; Hive then forgets all.
        """
        with self._store.write() as db:
            if queue.find(db, id) is None:
                return
            row = queue.require(db, id, State.SUCCEEDED.origins)
            queue.end(db, id, State.SUCCEEDED, self._now(db))
            highest = row.CQ_HIGHEST_WRITE_ID
            if highest is None:
                return
            place = (row.CQ_DATABASE, row.CQ_TABLE, row.CQ_PARTITION)
            covered = queue.same_place(COMPLETED_TXN_COMPONENTS, "CTC", *place)
            is_done = or_(_DONE.CTC_WRITEID <= highest, _DONE.CTC_WRITEID.is_(None))
            db.execute(delete(COMPLETED_TXN_COMPONENTS).where(covered, is_done))
            if not keep_aborted:
                aborted = and_(queue.same_place(TXN_COMPONENTS, "TC", *place), _OF_ABORTED)
                db.execute(delete(TXN_COMPONENTS).where(aborted, _C.TC_WRITEID <= highest))

    # --- aborted transactions ----------------------------------------------------------------------------------------

    def aborted_components(
        self, *, threshold: int = 0, age_ms: int | None = None, table: str | None = None
    ) -> list[AbortedComponent]:
        limit = self._settings.value(FETCH_SIZE)
        with self._store.read() as db:
            started_before = None if age_ms is None else self._now(db) - age_ms
            is_due = func.count(distinct(_C.TC_TXNID)) > threshold
            if started_before is not None:
                is_due = or_(is_due, func.min(_T.TXN_STARTED) < started_before)
            places = (
                select(_C.TC_DATABASE, _C.TC_TABLE, _C.TC_PARTITION)
                .join(TXNS, _T.TXN_ID == _C.TC_TXNID)
                .where(
                    _T.TXN_STATE == TxnState.ABORTED.value, _C.TC_OPERATION_TYPE != COMPACTS, _C.TC_WRITEID.is_not(None)
                )
                .group_by(_C.TC_DATABASE, _C.TC_TABLE, _C.TC_PARTITION)
                .having(is_due)
                .order_by(func.min(_C.TC_TXNID))
            )
            found = db.execute(_limited(places, limit, table)).all()
            return [_component(db, *place, is_compaction=False) for place in found]

    def aborted_compactions(self, *, table: str | None = None) -> list[AbortedComponent]:
        limit = self._settings.value(FETCH_SIZE)
        with self._store.read() as db:
            places = (
                select(_C.TC_DATABASE, _C.TC_TABLE, _C.TC_PARTITION)
                .where(_OF_ABORTED, _C.TC_OPERATION_TYPE == COMPACTS)
                .group_by(_C.TC_DATABASE, _C.TC_TABLE, _C.TC_PARTITION)
                .order_by(func.min(_C.TC_TXNID))
            )
            found = db.execute(_limited(places, limit, table)).all()
            return [_component(db, *place, is_compaction=True) for place in found]

    def forget_aborted(
        self,
        database: str,
        table: str,
        partition: str | None,
        write_ids: Collection[int],
        txn_ids: Collection[int] | None = None,
    ) -> None:
        with self._store.write() as db:
            place = queue.same_place(TXN_COMPONENTS, "TC", database, table, partition)
            rows = and_(place, _OF_ABORTED, _C.TC_OPERATION_TYPE != COMPACTS)
            found = db.execute(select(_C.TC_TXNID, _C.TC_WRITEID).where(rows)).all()
            gone = {t for t, w in found if w in write_ids and (txn_ids is None or t in txn_ids)}
            for some in batches(sorted(gone)):
                db.execute(delete(TXN_COMPONENTS).where(rows, _C.TC_TXNID.in_(some)))

    def forget_aborted_compactions(self, txn_ids: Collection[int]) -> None:
        with self._store.write() as db:
            for some in batches(sorted(txn_ids)):
                its = and_(_OF_ABORTED, _C.TC_OPERATION_TYPE == COMPACTS, _C.TC_TXNID.in_(some))
                db.execute(delete(TXN_COMPONENTS).where(its))

    # --- initiator, housekeeping -------------------------------------------------------------------------------------

    def find_potential_compactions(
        self, *, aborted_threshold: int, aborted_age_ms: int | None, since_ms: int | None = None
    ) -> list[CompactionCandidate]:
        """By name; and complete (Hive: ``FindPotentialCompactionsFunction``).

        Hive cuts the list off at ``hive.compactor.fetch.size``, and then may never reach the rest.
        """
        with self._store.read() as db:
            aborted_before = None if aborted_age_ms is None else self._now(db) - aborted_age_ms
            found: dict[tuple[str, str, str | None], CompactionCandidate] = {
                (database, table, partition): CompactionCandidate(database, table, partition)
                for database, table, partition in db.execute(_written(since_ms))
            }
            counted = (
                select(
                    _C.TC_DATABASE,
                    _C.TC_TABLE,
                    _C.TC_PARTITION,
                    func.count(distinct(_C.TC_TXNID)),
                    func.min(_T.TXN_STARTED),
                )
                .join(TXNS, _T.TXN_ID == _C.TC_TXNID)
                .where(_T.TXN_STATE == TxnState.ABORTED.value, _C.TC_TABLE.is_not(None))
                .group_by(_C.TC_DATABASE, _C.TC_TABLE, _C.TC_PARTITION)
            )
            for database, table, partition, count, started in db.execute(counted):
                too_many = count > aborted_threshold
                is_old = aborted_before is not None and started < aborted_before
                if too_many or is_old:
                    found[database, table, partition] = CompactionCandidate(
                        database, table, partition, too_many, is_old
                    )
            return sorted(found.values(), key=lambda one: (one.database, one.table, one.partition or ""))

    def prune_txn_to_write_id(self) -> int:
        """As the protocol says (Hive: ``CleanTxnToWriteIdTableFunction``).

        Every snapshot sees a transaction that is older than any aborted one, and older than any that was open when one
        that is still open began: such a one may have a snapshot without it. Two rules more than Hive's:

        - A write id stays on record while there is a lower one that not everybody sees. Transactions need not get their
          write ids in their own order, and a table's high watermark is the highest one on record.
        - Transactions of an older store, which did not note what was open, hold everything until they end.
        """
        with self._store.write() as db:
            limits: Iterable[int | None] = [db.execute(query).scalar() for query in (_MIN_ABORTED, _MIN_SEEN_OPEN)]
            limit = min([txns.newest_txn(db) + 1, *(one for one in limits if one is not None)])
            lowest_hidden = db.execute(
                select(_W.T2W_DATABASE, _W.T2W_TABLE, func.min(_W.T2W_WRITEID))
                .where(_W.T2W_TXNID >= limit)
                .group_by(_W.T2W_DATABASE, _W.T2W_TABLE)
            ).all()
            pruned = 0
            for database, table, write_id in lowest_hidden:
                of_table = and_(_W.T2W_DATABASE == database, _W.T2W_TABLE == table)
                below = and_(of_table, _W.T2W_TXNID < limit, _W.T2W_WRITEID < write_id)
                pruned += db.execute(delete(TXN_TO_WRITE_ID).where(below)).rowcount
            same_table = and_(_OTHER.c.T2W_DATABASE == _W.T2W_DATABASE, _OTHER.c.T2W_TABLE == _W.T2W_TABLE)
            hides_some = exists(select(1).where(same_table, _OTHER.c.T2W_TXNID >= limit))
            return pruned + db.execute(delete(TXN_TO_WRITE_ID).where(_W.T2W_TXNID < limit, ~hides_some)).rowcount
