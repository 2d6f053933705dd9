"""Whether what is in a store fits together: for whoever has restored one from a backup, or mistrusts a disk.

Every rule here is one that each call of the store keeps; what breaks one was not made by acidsql's calls alone.
"""

# ruff: noqa: SIM300 (the upper-case names are columns, not constants)

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, Table, and_, exists, func, select

from acidsql.metastore.embedded import schema
from acidsql.metastore.embedded.client import EmbeddedClient
from acidsql.metastore.model import TxnState
from acidsql.row_set import RowSet

_OPEN, _ABORTED = TxnState.OPEN.value, TxnState.ABORTED.value
_PARTS_OF_TABLES = (
    schema.TABLE_PARAMS,
    schema.RENAME_JOURNAL,
    schema.COLUMNS_V2,
    schema.BUCKETING_COLS,
    schema.CHECK_CONSTRAINTS,
    schema.KEY_CONSTRAINTS,
    schema.PARTITIONS,
    schema.TAB_COL_STATS,
)


@dataclass(frozen=True)
class StoreCheck:
    """What a check has found.

    Attributes:
        name: The store.
        version: The version of its tables.
        counts: How many there are of what.
        problems: What does not fit, in a sentence each.
    """

    name: str
    version: int
    counts: dict[str, int]
    problems: tuple[str, ...]


def _orphans(db: Connection, table: Table, is_missing: ColumnElement[bool], what: str) -> Iterator[str]:
    count = int(db.execute(select(func.count()).select_from(table).where(is_missing)).scalar_one())
    if count:
        yield f"{table.name}: {count} {what}"


def _catalog(db: Connection) -> Iterator[str]:
    tables, databases = schema.TBLS.c, schema.DBS.c
    no_database = ~exists(select(1).where(databases.DB_ID == tables.DB_ID))
    yield from _orphans(db, schema.TBLS, no_database, "tables of no database")
    gone = ~exists(select(1).where(databases.DB_ID == schema.DATABASE_PARAMS.c.DB_ID))
    yield from _orphans(db, schema.DATABASE_PARAMS, gone, "properties of no database")
    for part in _PARTS_OF_TABLES:
        gone = ~exists(select(1).where(tables.TBL_ID == part.c.TBL_ID))
        yield from _orphans(db, part, gone, "rows of no table")
    parts = schema.PARTITIONS.c
    for part, what in ((schema.PARTITION_PARAMS, "properties"), (schema.PARTITION_CREATORS, "creators")):
        gone = ~exists(select(1).where(parts.TBL_ID == part.c.TBL_ID, parts.PART_NAME == part.c.PART_NAME))
        yield from _orphans(db, part, gone, f"{what} of no partition")
    unfinished = and_(tables.CREATING_TXN.is_not(None), ~_is_txn(tables.CREATING_TXN, _OPEN, _ABORTED))
    yield from _orphans(db, schema.TBLS, unfinished, "tables that wait for a transaction that is over")


def _is_txn(txn_id: ColumnElement[int], *states: str) -> ColumnElement[bool]:
    return exists(select(1).where(schema.TXNS.c.TXN_ID == txn_id, schema.TXNS.c.TXN_STATE.in_(states)))


def _transactions(db: Connection) -> Iterator[str]:
    locks, parts, ids = schema.HIVE_LOCKS.c, schema.TXN_COMPONENTS.c, schema.TXN_TO_WRITE_ID.c
    left = and_(locks.HL_TXNID != 0, ~_is_txn(locks.HL_TXNID, _OPEN))
    yield from _orphans(db, schema.HIVE_LOCKS, left, "locks of transactions that are not open")
    left = ~_is_txn(parts.TC_TXNID, _OPEN, _ABORTED)
    yield from _orphans(db, schema.TXN_COMPONENTS, left, "components of transactions that are neither open nor aborted")
    following = schema.NEXT_WRITE_ID.c
    is_below = and_(
        following.NWI_DATABASE == ids.T2W_DATABASE,
        following.NWI_TABLE == ids.T2W_TABLE,
        following.NWI_NEXT > ids.T2W_WRITEID,
    )
    yield from _orphans(
        db, schema.TXN_TO_WRITE_ID, ~exists(select(1).where(is_below)), "write ids that could be given again"
    )
    newest = select(func.max(schema.TXNS.c.TXN_ID)).scalar_subquery()
    for table, column in (
        (schema.TXN_TO_WRITE_ID, ids.T2W_TXNID),
        (schema.COMPLETED_TXN_COMPONENTS, schema.COMPLETED_TXN_COMPONENTS.c.CTC_TXNID),
        (schema.WRITE_SET, schema.WRITE_SET.c.WS_TXNID),
    ):
        yield from _orphans(db, table, column > newest, "transactions whose ids could be given again")
    written = schema.WRITE_SET.c
    for txn_id, rows in db.execute(select(written.WS_TXNID, written.WS_ROWS).where(written.WS_ROWS.is_not(None))):
        try:
            RowSet.unpacked(rows)
        except ValueError as e:
            yield f"WRITE_SET: what transaction {txn_id} has deleted is {e}"


def _numbers(db: Connection) -> Iterator[str]:
    queue, history = schema.COMPACTION_QUEUE.c.CQ_ID, schema.COMPLETED_COMPACTIONS.c.CC_ID
    for table, column, used in (
        (schema.NEXT_LOCK_ID, schema.NEXT_LOCK_ID.c.NL_NEXT, (schema.HIVE_LOCKS.c.HL_LOCK_EXT_ID,)),
        (schema.NEXT_TBL_VERSION, schema.NEXT_TBL_VERSION.c.NTV_NEXT, (schema.TBLS.c.TBL_VERSION,)),
        (schema.NEXT_COMPACTION_QUEUE_ID, schema.NEXT_COMPACTION_QUEUE_ID.c.NCQ_NEXT, (queue, history)),
    ):
        found = list(db.execute(select(column)).scalars())
        highest = max((db.execute(select(func.max(one))).scalar() or 0 for one in used), default=0)
        if len(found) != 1:
            yield f"{table.name}: {len(found)} rows, where one is"
        elif found[0] <= highest:
            yield f"{table.name}: {found[0]} is next, but {highest} was given already"
    if db.execute(select(schema.TXNS.c.TXN_ID).limit(1)).first() is None:
        yield "TXNS: no row, so that ids of transactions would begin anew"


def _counts(db: Connection) -> dict[str, int]:
    def count(table: Table, *where: ColumnElement[bool]) -> int:
        return int(db.execute(select(func.count()).select_from(table).where(*where)).scalar_one())

    state = schema.TXNS.c.TXN_STATE
    return {
        "databases": count(schema.DBS),
        "tables": count(schema.TBLS),
        "partitions": count(schema.PARTITIONS),
        "open transactions": count(schema.TXNS, state == _OPEN),
        "aborted transactions": count(schema.TXNS, state == _ABORTED),
        "locks": count(schema.HIVE_LOCKS),
        "queued compactions": count(schema.COMPACTION_QUEUE),
    }


class EmbeddedCheck(EmbeddedClient):
    """The check of a store of acidsql's own."""

    def check(self) -> StoreCheck:
        """Look whether all that is in the store fits together; of one state of it, beside others who use it.

        Raises:
            MetastoreError: When the database cannot be read.
        """
        with self._store.read() as db:
            problems = [*self._store.check(db), *_catalog(db), *_transactions(db), *_numbers(db)]
            return StoreCheck(self._store.name, schema.SCHEMA_VERSION, _counts(db), tuple(problems))
