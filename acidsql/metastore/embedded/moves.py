"""The journal of directories that follow a rename. It is a table of the store: no statement writes to it.

Up to version 4 of the store it was a property of the table, which any user could set: a crafted one moved any directory
in the first session that looked at the table.
"""

# ruff: noqa: SIM300 (the upper-case names are columns, not constants)

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from sqlalchemy import Connection, delete, insert, select

from acidsql.metastore.embedded.batches import batches
from acidsql.metastore.embedded.schema import DBS, PARTITIONS, RENAME_JOURNAL, TABLE_PARAMS, TBLS
from acidsql.metastore.model import DirectoryMove

_J = RENAME_JOURNAL.c
_OLD_PREFIX = "acidsql.move."


def store(db: Connection, table_id: int, move: DirectoryMove) -> None:
    """Record that a directory of a table is being moved."""
    row = {"RJ_ID": move.id, "TBL_ID": table_id, "RJ_SOURCE": move.source, "RJ_TARGET": move.target}
    db.execute(insert(RENAME_JOURNAL), row)


def of_table(db: Connection, table_id: int) -> tuple[DirectoryMove, ...]:
    """The moves of a table that may be incomplete."""
    found = db.execute(select(_J.RJ_SOURCE, _J.RJ_TARGET, _J.RJ_ID).where(_J.TBL_ID == table_id).order_by(_J.RJ_ID))
    return tuple(DirectoryMove(*row) for row in found)


def forget(db: Connection, moves: Iterable[DirectoryMove]) -> None:
    """Remove moves that are complete."""
    for some in batches([move.id for move in moves]):
        db.execute(delete(RENAME_JOURNAL).where(_J.RJ_ID.in_(some)))


def forget_leading_to(db: Connection, table_id: int, place: str) -> None:
    """Remove moves to a place that the table leaves."""
    db.execute(delete(RENAME_JOURNAL).where(_J.TBL_ID == table_id, _J.RJ_TARGET == place))


def forget_all(db: Connection, table_id: int) -> None:
    """Remove all moves of a dropped table."""
    db.execute(delete(RENAME_JOURNAL).where(_J.TBL_ID == table_id))


def take_over_properties(db: Connection) -> None:
    """Take renames that were under way in a store of version 4 into the journal, and their properties from the tables.

    Only what such a rename can have written is taken over: the target is the place of the table, or of one of its
    partitions, the source is beside it where tables are, or below the table, and no other table or
    partition is there.
    """
    p = TABLE_PARAMS.c
    old = db.execute(
        select(p.TBL_ID, p.PARAM_KEY, p.PARAM_VALUE).where(p.PARAM_KEY.startswith(_OLD_PREFIX, autoescape=True))
    ).all()
    for table_id, key, value in old:
        for move in _plausible(db, table_id, key.removeprefix(_OLD_PREFIX), value):
            store(db, table_id, move)
        db.execute(delete(TABLE_PARAMS).where(p.TBL_ID == table_id, p.PARAM_KEY == key))


def _plausible(db: Connection, table_id: int, id: str, value: str) -> Iterator[DirectoryMove]:
    try:
        source, target = json.loads(value)
    except (ValueError, TypeError):
        return
    if not (isinstance(source, str) and isinstance(target, str)) or ".." in source.split("/"):
        return
    tables: dict[int, str] = {r[0]: r[1] for r in db.execute(select(TBLS.c.TBL_ID, TBLS.c.LOCATION))}
    parts = db.execute(select(PARTITIONS.c.TBL_ID, PARTITIONS.c.LOCATION)).all()
    homes = [home.rstrip("/") for home in db.execute(select(DBS.c.DB_LOCATION_URI)).scalars()]
    is_table = target == tables[table_id] and source.rpartition("/")[0] in homes
    is_partition = (table_id, target) in [(r[0], r[1]) for r in parts] and source.startswith(f"{tables[table_id]}/")
    others = [place for number, place in tables.items() if number != table_id]
    taken = _overlaps(source, [*others, *(r[1] for r in parts), *homes])
    if (is_table or is_partition) and not taken:
        yield DirectoryMove(source, target, id[:64])


def _overlaps(place: str, homes: Sequence[str]) -> bool:
    """Whether a place is one of some, or has one of them below it."""
    return any(home == place or home.startswith(f"{place}/") for home in homes)
