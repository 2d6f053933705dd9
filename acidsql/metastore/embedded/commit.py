"""Commit, and the rule that of two transactions that changed the same rows only the first commits.

WRITE_SET keeps what committed transactions changed, for as long as an open one may be in conflict with it: tables or
partitions, and the rows that were deleted there where they were told (a Hive store knows no rows). A transaction lasts
from its id to its commit id, the newest transaction id at that time. Two overlap where the later one to commit has an
id not above the commit id of the other. Hive's words for all this are in ``CommitTxnFunction``.
"""

# ruff: noqa: SIM300 (the upper-case names are columns, not constants)

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import (
    CHAR,
    BigInteger,
    Connection,
    DateTime,
    and_,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from acidsql.errors import MetastoreError, WriteConflict
from acidsql.metastore.embedded import (
    aborts,
    catalog,
    cleaning,
    components,
    locks,
    partition_creators,
    queue,
    statistics,
    txns,
    versions,
)
from acidsql.metastore.embedded.client import EmbeddedClient
from acidsql.metastore.embedded.schema import (
    COMPLETED_TXN_COMPONENTS,
    HIVE_LOCKS,
    TBLS,
    TXN_COMPONENTS,
    WRITE_SET,
)
from acidsql.metastore.model import CHANGES, LockType, TableChanges, TxnType
from acidsql.row_set import RowSet
from acidsql.settings import XLOCK_WRITE
from acidsql.valid_ids import ValidTxnList

_C, _S = TXN_COMPONENTS.c, WRITE_SET.c
_CHANGES = sorted(o.value for o in CHANGES)

NO_WRITE_SET = frozenset({TxnType.READ_ONLY, TxnType.SOFT_DELETE, TxnType.COMPACTION})
"""Transactions that change no rows."""
NOT_COMPLETED = frozenset({TxnType.READ_ONLY, TxnType.COMPACTION, TxnType.REBALANCE_COMPACTION})
"""Transactions that leave nothing to compact."""
_IN_QUEUE = frozenset({TxnType.COMPACTION, TxnType.REBALANCE_COMPACTION, TxnType.SOFT_DELETE})
"""Transactions that an entry of the queue may be waiting for."""

_OPERATIONS = select(_C.TC_OPERATION_TYPE).where(_C.TC_TXNID == bindparam("txn")).distinct()
_MINE = and_(_C.TC_TXNID == bindparam("txn"), _C.TC_OPERATION_TYPE.in_(_CHANGES))
# an entry for the whole table stands for every partition: a statement over too many of them locks the table
_SAME = and_(
    _S.WS_DATABASE == _C.TC_DATABASE,
    _S.WS_TABLE == _C.TC_TABLE,
    or_(_S.WS_PARTITION == _C.TC_PARTITION, _S.WS_PARTITION.is_(None), _C.TC_PARTITION.is_(None)),
)
_OVERLAPPING = and_(_MINE, _S.WS_COMMIT_ID >= bindparam("txn"), _S.WS_TXNID != bindparam("txn"))
_CONFLICTS = (
    select(
        _S.WS_TXNID,
        _S.WS_COMMIT_ID,
        _S.WS_DATABASE,
        _S.WS_TABLE,
        func.coalesce(_S.WS_PARTITION, _C.TC_PARTITION),
        _C.TC_OPERATION_TYPE,
        _S.WS_OPERATION_TYPE,
        _S.WS_PARTITION,
        _S.WS_ROWS.is_not(None),
    )
    .select_from(WRITE_SET.join(TXN_COMPONENTS, _SAME))
    .where(_OVERLAPPING)
    .order_by(_S.WS_COMMIT_ID, _S.WS_TXNID, _S.WS_PARTITION, _C.TC_OPERATION_TYPE, _S.WS_OPERATION_TYPE)
)
_TXNS_IN_CONFLICT = (
    select(_S.WS_TXNID, _S.WS_DATABASE, _S.WS_TABLE, _S.WS_ROWS.is_not(None))
    .distinct()
    .select_from(WRITE_SET.join(TXN_COMPONENTS, _SAME))
    .where(_OVERLAPPING)
)
_HOLDS_SHARED_WRITE = (
    select(1)
    .where(HIVE_LOCKS.c.HL_TXNID == bindparam("txn"), HIVE_LOCKS.c.HL_LOCK_TYPE == locks.LETTERS[LockType.SHARED_WRITE])
    .limit(1)
)
_WRITE_SET = insert(WRITE_SET).from_select(
    ["WS_DATABASE", "WS_TABLE", "WS_PARTITION", "WS_TXNID", "WS_COMMIT_ID", "WS_OPERATION_TYPE"],
    select(
        _C.TC_DATABASE,
        _C.TC_TABLE,
        _C.TC_PARTITION,
        _C.TC_TXNID,
        bindparam("commit", type_=BigInteger()),
        _C.TC_OPERATION_TYPE,
    )
    .where(_MINE)
    .distinct(),
)
_OF_TABLE = and_(
    _S.WS_TXNID == bindparam("txn"), _S.WS_DATABASE == bindparam("database"), _S.WS_TABLE == bindparam("table")
)
_OF_PLACE = and_(_OF_TABLE, _S.WS_PARTITION.is_not_distinct_from(bindparam("place")))
_ROWS = select(_S.WS_ROWS).where(_OF_PLACE).limit(1)
_PARTITIONS = select(_S.WS_PARTITION).where(_OF_TABLE).distinct()
_TELL = update(WRITE_SET).where(_OF_PLACE).values(WS_ROWS=bindparam("rows"))
_COMPLETE = insert(COMPLETED_TXN_COMPONENTS).from_select(
    ["CTC_TXNID", "CTC_DATABASE", "CTC_TABLE", "CTC_PARTITION", "CTC_WRITEID", "CTC_UPDATE_DELETE", "CTC_TIMESTAMP"],
    select(
        _C.TC_TXNID,
        _C.TC_DATABASE,
        _C.TC_TABLE,
        _C.TC_PARTITION,
        _C.TC_WRITEID,
        bindparam("changed", type_=CHAR(1)),
        bindparam("at", type_=DateTime()),
    )
    .where(_C.TC_TXNID == bindparam("txn"), _C.TC_OPERATION_TYPE != queue.COMPACTS)
    .distinct(),
)


def _commit(
    db: Connection,
    txn_id: int,
    deleted: Mapping[str, RowSet],
    seen: ValidTxnList | None,
    changes: Sequence[TableChanges],
    *,
    exclusive_writes: bool,
    now: int,
) -> WriteConflict | None:
    """Commit a transaction, or abort it for a conflict and answer that. One that is committed already stays so.

    Args:
        db: The store.
        txn_id: The transaction.
        deleted: The rows that it has deleted, by table (``database.table``), of those of which it tells them.
        seen: What all its snapshots saw.
        changes: What it does to the rows of tables.
        exclusive_writes: ``hive.txn.xlock.write``: those who change rows lock each other out. Their conflicts were
            found when the locks were granted (``get_latest_txn_in_conflict``), and are not looked for here, except
            where the transaction has changed rows under a shared lock all the same.
        now: Milliseconds since 1970.

    Raises:
        NoSuchTransaction, TransactionAborted: When it cannot be committed.
    """
    type = txns.open_type(db, txn_id)
    if type is None:
        return None
    operations = set(db.execute(_OPERATIONS, {"txn": txn_id}).scalars())
    changed = type not in NO_WRITE_SET and not operations.isdisjoint(_CHANGES)
    commit_id = txns.newest_txn(db) if changed else 0
    if changed and (not exclusive_writes or db.execute(_HOLDS_SHARED_WRITE, {"txn": txn_id}).first() is not None):
        conflict = _conflict(db, txn_id, commit_id, deleted, seen)
        if conflict is not None:
            aborts.abort(db, [txn_id], reason=conflict.message)
            return conflict
    txns.set_committed(db, txn_id)
    for one in changes:
        statistics.carry_on(db, one.table, one.rows)
    if changed:
        _keep_write_set(db, txn_id, commit_id, deleted)
    if operations:
        if type not in NOT_COMPLETED:
            stamp = {"changed": "Y" if changed else "N", "at": cleaning.utc(now)}
            db.execute(_COMPLETE, {"txn": txn_id, **stamp})
        components.forget(db, txn_id)
    for table_id in db.execute(_CREATED, {"txn": txn_id}).scalars().all():
        db.execute(_SHOW, {"id": table_id})
        versions.set_new_version(db, table_id)
    if type not in NO_WRITE_SET:
        partition_creators.commit(db, txn_id)
    if type in _IN_QUEUE:
        queue.set_committed(db, txn_id, txns.newest_txn(db), now)
    locks.release_of(db, txn_id)
    return None


def _conflict(
    db: Connection, txn_id: int, commit_id: int, deleted: Mapping[str, RowSet], seen: ValidTxnList | None
) -> WriteConflict | None:
    """The first transaction that has changed the same, unseen, as far as both tell."""
    apart = set[tuple[int, str, str, str | None]]()
    for found in db.execute(_CONFLICTS, {"txn": txn_id}).all():
        other, other_commit, database, table, partition, mine, theirs, their_partition, tells_rows = found
        if seen is not None and seen.is_valid(other):
            continue
        place = (other, database, table, their_partition)
        own = deleted.get(f"{database}.{table}")
        if place not in apart and own is not None and tells_rows and not own.meets(_rows_of(db, *place)):
            apart.add(place)
        if place in apart:
            continue
        name = "/".join(p for p in (database, table, partition) if p)
        return WriteConflict(
            f"Aborting [{txns.txn_name(txn_id)},{commit_id}] due to a write conflict on {name}"
            f" committed by [{txns.txn_name(other)},{other_commit}] {mine}/{theirs}",
            code=txns.TRANSACTION_ABORTED,
            hint="The statement can be run again: it will then see the other's changes.",
        )
    return None


def _rows_of(db: Connection, txn_id: int, database: str, table: str, partition: str | None) -> RowSet:
    """What a transaction has told that it has deleted. Raises: MetastoreError when that is not readable."""
    place = {"txn": txn_id, "database": database, "table": table, "place": partition}
    try:
        return RowSet.unpacked(db.execute(_ROWS, place).scalar_one())
    except ValueError as e:
        raise MetastoreError(f"The store is damaged: what transaction {txn_id} has deleted is {e}") from e


def _keep_write_set(db: Connection, txn_id: int, commit_id: int, deleted: Mapping[str, RowSet]) -> None:
    """Record what a transaction changed, if an open one may be in conflict with it, and drop what none can."""
    oldest = txns.oldest_open_writer(db)
    if oldest is not None and oldest <= commit_id:
        db.execute(_WRITE_SET, {"txn": txn_id, "commit": commit_id})
        for name, rows in deleted.items():
            _tell(db, txn_id, name, rows)
    _prune_write_set(db)


def _tell(db: Connection, txn_id: int, name: str, rows: RowSet) -> None:
    """Record the rows that a transaction has deleted from a table, with each entry those of its partition."""
    database, _, table = name.partition(".")
    of_table = {"txn": txn_id, "database": database, "table": table}
    places = db.execute(_PARTITIONS, of_table).scalars().all()
    parts = {place: rows if place is None else rows.of_partition(place) for place in places}
    if sum(map(len, parts.values())) < len(rows):  # rows in partitions that were not named
        parts = dict.fromkeys(places, rows)
    for place, part in parts.items():
        db.execute(_TELL, {**of_table, "place": place, "rows": part.packed()})


def _prune_write_set(db: Connection) -> None:
    """Drop entries that no open transaction can be in conflict with (Hive: ``performWriteSetGC``)."""
    oldest = txns.oldest_open_writer(db)
    needed = txns.newest_txn(db) + 1 if oldest is None else oldest
    db.execute(delete(WRITE_SET).where(_S.WS_COMMIT_ID < needed))


_CREATED = select(TBLS.c.TBL_ID).where(TBLS.c.CREATING_TXN == bindparam("txn"))
_SHOW = update(TBLS).where(TBLS.c.TBL_ID == bindparam("id")).values(CREATING_TXN=None)


class EmbeddedCommits(EmbeddedClient):
    """:class:`~acidsql.metastore.protocol.Transactions`: commit, conflicts, and clean-up after the end."""

    def commit_txn(
        self,
        txn_id: int,
        deleted: Mapping[str, RowSet] | None = None,
        seen: ValidTxnList | None = None,
        first_wins: bool = False,
        changes: Sequence[TableChanges] = (),
    ) -> None:
        exclusive = self._settings.value(XLOCK_WRITE)
        with self._store.write() as db:
            conflict = _commit(db, txn_id, deleted or {}, seen, changes, exclusive_writes=exclusive, now=self._now(db))
        if conflict is not None:  # raised only here: the abort has to stay
            raise conflict

    def get_latest_txn_in_conflict(
        self, txn_id: int, seen: ValidTxnList | None = None, *, by_rows: Collection[str] = ()
    ) -> int | None:
        with self._store.read() as db:
            found = db.execute(_TXNS_IN_CONFLICT, {"txn": txn_id}).all()
        unseen = [
            other
            for other, database, table, tells_rows in found
            if not (tells_rows and f"{database}.{table}" in by_rows) and (seen is None or not seen.is_valid(other))
        ]
        return max(unseen, default=None)

    def clean_empty_aborted_txns(self) -> None:
        with self._store.write() as db:
            catalog.drop_unfinished(db)  # of a process with an older version
            cleaning.forget_unwritten(db)
            txns.forget_empty(db, self._now(db))
            _prune_write_set(db)
