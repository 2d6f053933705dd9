"""Write ids: the numbers of a table's changes. TXN_TO_WRITE_ID says whose they are, NEXT_WRITE_ID which comes next."""

# ruff: noqa: SIM300 (the upper-case names are columns, not constants)

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlalchemy import Connection, and_, bindparam, delete, insert, select, update

from acidsql.errors import TransactionError
from acidsql.metastore.embedded import components, txns
from acidsql.metastore.embedded.batches import batches
from acidsql.metastore.embedded.client import EmbeddedClient
from acidsql.metastore.embedded.schema import NEXT_WRITE_ID, TXN_TO_WRITE_ID, TXNS
from acidsql.metastore.model import TxnState, TxnType
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList

SEEDED_TXN = 0
"""Owner of write ids that were committed elsewhere: a transaction that every snapshot sees."""

_W, _N = TXN_TO_WRITE_ID.c, NEXT_WRITE_ID.c
_OF_TABLE = and_(_W.T2W_DATABASE == bindparam("database"), _W.T2W_TABLE == bindparam("table"))
_NEXT_OF_TABLE = and_(_N.NWI_DATABASE == bindparam("database"), _N.NWI_TABLE == bindparam("table"))

# "+ 0" keeps an index out of it. By write id the way to the highest is short, by transaction it goes over all; and what
# a snapshot does not see are few transactions, but most of the write ids may be below its highest.
_HIGHEST = (
    select(_W.T2W_WRITEID)
    .where(_OF_TABLE, _W.T2W_TXNID + 0 <= bindparam("txn"))
    .order_by(_W.T2W_WRITEID.desc())
    .limit(1)
)
_BY_TXN = select(_W.T2W_TXNID, _W.T2W_WRITEID).where(_OF_TABLE, _W.T2W_WRITEID + 0 <= bindparam("high"))
_LATER = _BY_TXN.where(_W.T2W_TXNID > bindparam("txn"))
_OF_TXNS = _BY_TXN.where(_W.T2W_TXNID.in_(bindparam("txns", expanding=True)))
_ANY = select(_W.T2W_WRITEID).where(_OF_TABLE).limit(1)
_OWN = select(_W.T2W_WRITEID).where(_OF_TABLE, _W.T2W_TXNID == bindparam("txn"))
_OPEN_BELOW = (
    select(_W.T2W_TXNID)
    .join(TXNS, TXNS.c.TXN_ID == _W.T2W_TXNID)
    .where(_OF_TABLE, _W.T2W_WRITEID < bindparam("below"), TXNS.c.TXN_STATE == TxnState.OPEN.value)
)
_GIVE_BACK = delete(TXN_TO_WRITE_ID).where(_OF_TABLE, _W.T2W_TXNID == bindparam("txn"))
_NEXT = select(_N.NWI_NEXT).where(_NEXT_OF_TABLE)
_SET_NEXT = update(NEXT_WRITE_ID).where(_NEXT_OF_TABLE).values(NWI_NEXT=bindparam("next"))


def valid_write_ids(db: Connection, table: str, valid: ValidTxnList) -> ValidWriteIdList:
    """The write ids of ``database.table`` that a snapshot sees (Hive: ``GetValidWriteIdsForTableFunction``).

    Only what the snapshot does not see is read; a table has many write ids, and few of those. All of it is listed: Hive
    ends the list with the lowest where nothing that is seen is left on record, and a cleaner with such a list would
    leave files of aborted write ids above it, which are then forgotten with the compaction that it cleans up after.
    """
    database, _, name = table.partition(".")
    key = {"database": database, "table": name}
    high = db.execute(_HIGHEST, {**key, "txn": valid.high_watermark}).scalar()
    if high is None:
        following = db.execute(_NEXT, key).scalar()
        high = 0 if following is None else following - 1
    hidden = sorted(_hidden(db, {**key, "high": high}, valid))
    aborted = tuple(w for w, txn in hidden if valid.is_aborted(txn))
    opened = tuple(w for w, txn in hidden if not valid.is_aborted(txn))
    return ValidWriteIdList(table, high, opened, aborted)


def _hidden(db: Connection, key: dict[str, object], valid: ValidTxnList) -> Iterator[tuple[int, int]]:
    """Write id and transaction of what a snapshot does not see."""
    for some in batches(valid.exceptions):
        for txn, write_id in db.execute(_OF_TXNS, {**key, "txns": list(some)}):
            yield write_id, txn
    for txn, write_id in db.execute(_LATER, {**key, "txn": valid.high_watermark}):
        yield write_id, txn


def seed(db: Connection, valid: ValidWriteIdList, *, now: int) -> None:
    """Start a table's write ids above those in files made elsewhere.

    Those that must not be seen get an aborted transaction each, whose component says that files are there. The highest
    one that is seen goes on record too, or the snapshots would end with the highest one that is not seen.

    Raises:
        TransactionError: When the table has write ids already.
        AnalysisError: As :func:`~acidsql.metastore.embedded.txns.seed_txn_id`.
    """
    txns.check_seed("write", valid.high_watermark)
    database, _, table = valid.table.partition(".")
    key: dict[str, object] = {"database": database, "table": table}
    following = db.execute(_NEXT, key).scalar()
    if following is not None and db.execute(_ANY, key).first() is not None:
        raise TransactionError(f"Table {valid.table} has write ids already")
    if following is None:
        _start_at(db, database, table, valid.high_watermark + 1)
    else:  # of a table of that name that was renamed or dropped, or had the place (dropped_places.take)
        db.execute(_SET_NEXT, {**key, "next": max(valid.high_watermark + 1, int(following))})
    seen = next((w for w in range(valid.high_watermark, 0, -1) if valid.is_valid(w)), None)
    if seen is not None:
        _add(db, database, table, {SEEDED_TXN: seen})
    hidden = [w for w in valid.exceptions if 0 < w <= valid.high_watermark]
    if hidden:
        ids = txns.add_aborted(db, len(hidden), reason=f"write ids of {valid.table} made elsewhere", now=now)
        owners = dict(zip(ids, hidden, strict=True))
        _add(db, database, table, owners)
        components.back_seeded(db, database, table, owners)


def of_txn(db: Connection, txn_id: int, database: str, table: str) -> int | None:
    """A transaction's write id for a table; None where it has none."""
    found = db.execute(_OWN, {"database": database, "table": table, "txn": txn_id}).scalar()
    return None if found is None else int(found)


def open_writers(db: Connection, database: str, table: str, below: int) -> list[int]:
    """The open transactions that have a write id of a table below some other."""
    found = db.execute(_OPEN_BELOW, {"database": database, "table": table, "below": below})
    return [int(txn_id) for txn_id in found.scalars()]


def following(db: Connection, database: str, table: str) -> int | None:
    """The next write id of a table, also of one that was dropped or renamed; None where there was never one."""
    found = db.execute(_NEXT, {"database": database, "table": table}).scalar()
    return None if found is None else int(found)


def start_above(db: Connection, database: str, table: str, write_id: int) -> None:
    """Let the next write id of a table be this one, unless it is a higher one already."""
    known = following(db, database, table)
    if known is None:
        _start_at(db, database, table, write_id)
    elif known < write_id:
        db.execute(_SET_NEXT, {"database": database, "table": table, "next": write_id})


def _start_at(db: Connection, database: str, table: str, write_id: int) -> None:
    db.execute(insert(NEXT_WRITE_ID), {"NWI_DATABASE": database, "NWI_TABLE": table, "NWI_NEXT": write_id})


def _add(db: Connection, database: str, table: str, write_ids: dict[int, int]) -> None:
    """Put write ids on record: transaction -> write id."""
    db.execute(
        insert(TXN_TO_WRITE_ID),
        [
            {"T2W_TXNID": txn, "T2W_DATABASE": database, "T2W_TABLE": table, "T2W_WRITEID": write_id}
            for txn, write_id in write_ids.items()
        ],
    )


class EmbeddedWriteIds(EmbeddedClient):
    """The write ids of :class:`~acidsql.metastore.protocol.Transactions`."""

    def get_valid_write_ids(self, tables: Sequence[str], valid_txns: ValidTxnList) -> list[ValidWriteIdList]:
        with self._store.read() as db:
            return [valid_write_ids(db, table, valid_txns) for table in tables]

    def allocate_table_write_id(self, txn_id: int, database: str, table: str, *, reallocate: bool = False) -> int:
        """Hive: ``AllocateTableWriteIdsFunction``."""
        with self._store.write() as db:
            if txns.require_open(db, txn_id) is TxnType.READ_ONLY:
                name = txns.txn_name(txn_id)
                raise TransactionError(
                    f"Write ID allocation failed on {database}.{table}: transaction {name} is read-only"
                )
            key: dict[str, object] = {"database": database, "table": table}
            own = db.execute(_OWN, {**key, "txn": txn_id}).scalar()
            if own is not None:
                db.execute(_GIVE_BACK, {**key, "txn": txn_id})
                if not reallocate:
                    # Taken again rather than looked up, so that this commit writes, and makes all before it durable:
                    # files may be written from now on, and what the lock has recorded of them must outlive a power cut
                    _add(db, database, table, {txn_id: int(own)})
                    return int(own)
            following = db.execute(_NEXT, key).scalar()
            write_id = 1 if following is None else int(following)
            if following is None:
                _start_at(db, database, table, write_id + 1)
            else:
                db.execute(_SET_NEXT, {**key, "next": write_id + 1})
            _add(db, database, table, {txn_id: write_id})
            components.set_write_id(db, txn_id, database, table, write_id)
            return write_id

    def seed_write_id(self, valid_write_ids: ValidWriteIdList) -> None:
        with self._store.write() as db:
            seed(db, valid_write_ids, now=self._now(db))
