"""Which transactions have made a partition, until one of them is committed.

A partition is registered before its transaction is committed: its files need a place. What was undone stays registered,
as in Hive; that somebody has committed it is known here.
"""

# ruff: noqa: SIM300 (the upper-case names are columns, not constants)

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from sqlalchemy import Connection, and_, delete, select

from acidsql.metastore.embedded.batches import batches
from acidsql.metastore.embedded.databases import insert_rows
from acidsql.metastore.embedded.schema import PARTITION_CREATORS, TXNS
from acidsql.metastore.model import TxnState

_C = PARTITION_CREATORS.c
_OF_OPEN = and_(TXNS.c.TXN_ID == _C.TXN_ID, TXNS.c.TXN_STATE == TxnState.OPEN.value)
_FIND = select(_C.PART_NAME, TXNS.c.TXN_ID).select_from(PARTITION_CREATORS.outerjoin(TXNS, _OF_OPEN))
NOBODY = 0
"""In the place of a transaction that has undone what it wrote."""


def find(db: Connection, table_id: int) -> dict[str, frozenset[int]]:
    """The open transactions that have made partitions of a table, by name; none of those has been committed."""
    found: dict[str, set[int]] = {}
    for name, txn_id in db.execute(_FIND.where(_C.TBL_ID == table_id)):
        found.setdefault(name, set()).update(() if txn_id is None else (txn_id,))
    return {name: frozenset(open_) for name, open_ in found.items()}


def add(db: Connection, table_id: int, names: Sequence[str], txn_id: int) -> None:
    """Note that a transaction has made partitions, of which it is not noted yet."""
    rows = [{"TBL_ID": table_id, "PART_NAME": name, "TXN_ID": txn_id} for name in names]
    insert_rows(db, PARTITION_CREATORS, rows)


def forget(db: Connection, table_id: int, names: Sequence[str]) -> None:
    """Note that partitions are committed."""
    for some in batches(names):
        db.execute(delete(PARTITION_CREATORS).where(_C.TBL_ID == table_id, _C.PART_NAME.in_(some)))


def disown(db: Connection, table_id: int, names: Sequence[str], txn_id: int) -> None:
    """Note that a transaction has undone what it wrote to partitions: they are not committed with it."""
    for some in batches(names):
        same = and_(_C.TBL_ID == table_id, _C.PART_NAME.in_(some))
        found = db.execute(select(_C.PART_NAME, _C.TXN_ID).where(same)).all()
        mine = {name for name, made_by in found if made_by == txn_id}
        nobodys = {name for name, made_by in found if made_by == NOBODY}
        db.execute(delete(PARTITION_CREATORS).where(same, _C.TXN_ID == txn_id))
        add(db, table_id, sorted(mine - nobodys), NOBODY)


def commit(db: Connection, txn_id: int) -> None:
    """Note that the partitions are committed that a transaction has made."""
    query = select(_C.TBL_ID, _C.PART_NAME).where(_C.TXN_ID == txn_id).order_by(_C.TBL_ID)
    for table_id, rows in groupby(db.execute(query).all(), lambda row: int(row.TBL_ID)):
        forget(db, table_id, [row.PART_NAME for row in rows])
