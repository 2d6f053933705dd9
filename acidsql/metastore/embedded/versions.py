"""Versions of tables: the changes of all of them are counted up, so that a reader can tell what came after it began."""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, select, update

from acidsql.metastore.embedded.schema import NEXT_TBL_VERSION, TBLS

_NEXT = select(NEXT_TBL_VERSION.c.NTV_NEXT)
_SET_NEXT = update(NEXT_TBL_VERSION).values(NTV_NEXT=bindparam("next"))
_SET = update(TBLS).where(bindparam("id") == TBLS.c.TBL_ID).values(TBL_VERSION=bindparam("version"))


def latest_version(db: Connection) -> int:
    """The number of the latest change of a table."""
    return int(db.execute(_NEXT).scalar_one()) - 1


def set_new_version(db: Connection, table_id: int) -> None:
    """Note that a table has changed, or the places of its partitions, or that others see it from now on."""
    version = latest_version(db) + 1
    db.execute(_SET_NEXT, {"next": version + 1})
    db.execute(_SET, {"id": table_id, "version": version})
