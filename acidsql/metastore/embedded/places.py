"""Who has files where: no two tables or partitions share a directory, and none is below another's.

What one of them wrote would be rows of the other, and what a DROP, a compaction or the cleaner removes is removed for
both. The rule is kept in the transaction of the database that registers a place, so that of two at once only one can.
Places are compared as they are kept, in acidsql's own form (:func:`acidsql.fs.absolute`).
"""

# ruff: noqa: SIM300 (the upper-case names are columns, not constants)

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Connection, Select, and_, literal, or_, select

from acidsql import fs
from acidsql.errors import AlreadyExists
from acidsql.metastore.embedded.batches import batches
from acidsql.metastore.embedded.schema import DBS, PARTITIONS, RENAME_JOURNAL, TBLS

_HINT = "Tables and partitions cannot share a directory, nor be one within another."
_FEW = 8
"""So few partitions are looked for one by one; for more the table is looked through once."""
_AFTER_SLASH = "0"
"""The character after ``/``: what is below ``a/b`` is from ``a/b/`` on, before ``a/b0``."""


@dataclass(frozen=True)
class _Owner:
    """Whose place it is: a table (``partition`` None), a partition, or a database (``table`` None)."""

    place: str
    database: str
    table_id: int | None = None
    table: str | None = None
    partition: str | None = None

    def __str__(self) -> str:
        if self.table is None:
            return f"database {self.database}"
        name = f"table {self.database}.{self.table}"
        return name if self.partition is None else f"partition {self.partition} of {name}"


def check_table(db: Connection, place: str, table_id: int | None = None) -> None:
    """A table may have its files at a place.

    Args:
        db: The store.
        place: The place; empty for a view, which has none.
        table_id: The table, where it is known already. Its own partitions may be below the place.

    Raises:
        AlreadyExists: When it is, is within, or has within it a place of another table or partition; or when it is a
            database's, or has one within it.
    """
    if not place:
        return
    for owner in _overlapping(db, [place]):
        if owner.table_id is None:
            allowed = _is_below(place, owner.place)
        else:
            is_own_partition = owner.partition is not None and _is_below(owner.place, place)
            allowed = owner.table_id == table_id and (owner.partition is None or is_own_partition)
        if not allowed:
            raise _taken(place, owner)


def check_partitions(db: Connection, table_id: int, places: Mapping[str, str]) -> None:
    """Partitions of a table may have their files at places, by their names. Raises: AlreadyExists, also among them."""
    names = {place.rstrip("/"): name for name, place in places.items()}
    inner = next((one for one in names if any(above in names for above in above(one))), None)
    if inner is not None or len(names) < len(places):
        wanted = inner or next(iter(names))
        raise AlreadyExists(f"Location {wanted} is not free: another partition is to be there, or above it", hint=_HINT)
    root = db.execute(select(TBLS.c.LOCATION).where(TBLS.c.TBL_ID == table_id)).scalar() or ""
    inside = [place for place in names if _is_below(place, root)]
    if len(inside) <= _FEW:
        owners = list(_overlapping(db, list(names)))
    else:
        owners = [*_overlapping(db, [place for place in names if not _is_below(place, root)]), *_exactly(db, [root])]
        owners += _below(db, root, but_usual_of=table_id)
    for owner in owners:
        place = _first_overlap(names, owner.place)
        if place is None:
            continue
        if owner.partition is not None:
            allowed = owner.table_id == table_id and names.get(owner.place.rstrip("/")) == owner.partition
        else:
            allowed = owner.table_id in (None, table_id) and not _is_outside(names, owner.place)
        if not allowed:
            raise _taken(place, owner)


def _first_overlap(places: Mapping[str, str], other: str) -> str | None:
    """The first of some places that is another, above, or below it."""
    bare = other.rstrip("/")
    exact = next((one for one in (bare, *above(bare)) if one in places), None)
    return exact or next((one for one in places if _is_below(one, other)), None)


def _is_outside(places: Iterable[str], other: str) -> bool:
    """Whether one of some places overlaps with another, but is not below it."""
    return any(fs.overlap(one, other) and not _is_below(one, other) for one in places)


def check_database(db: Connection, place: str) -> None:
    """A database may have its tables at a place. Other databases may be around it, as ``default`` is around all.

    Raises:
        AlreadyExists: When it is, is within, or has within it a place of a table or partition.
    """
    for owner in _overlapping(db, [place]):
        if owner.table_id is not None:
            raise _taken(place, owner)


def has_owner(db: Connection, location: str) -> bool:
    """Whether a place is that of a database, a table or a partition."""
    path = fs.absolute(location)
    forms = {location, path, f"file:{path}", f"file://{path}"} if fs.is_local(path) else {location, path}
    return any(db.execute(query.where(column.in_(forms)).limit(1)).first() is not None for query, column in _QUERIES)


def _taken(place: str, owner: _Owner) -> AlreadyExists:
    return AlreadyExists(
        f"Location {place} is not free: {owner} is at {owner.place}",
        hint=_HINT,
    )


def above(place: str) -> list[str]:
    """The directories above a place, the nearest first."""
    parts = place.rstrip("/").split("/")
    return ["/".join(parts[:n]) or "/" for n in range(len(parts) - 1, 0, -1)]


def _is_below(place: str, other: str) -> bool:
    return place.rstrip("/").startswith(f"{other.rstrip('/')}/")


_T, _P, _D, _J = TBLS.c, PARTITIONS.c, DBS.c, RENAME_JOURNAL.c
_OF_TABLE = TBLS.join(DBS, _D.DB_ID == _T.DB_ID)
_TABLES = select(_T.LOCATION, _D.NAME, _T.TBL_ID, _T.TBL_NAME).select_from(_OF_TABLE).where(_T.LOCATION != "")
_PARTITIONS = select(_P.LOCATION, _D.NAME, _T.TBL_ID, _T.TBL_NAME, _P.PART_NAME).select_from(
    PARTITIONS.join(_OF_TABLE, _T.TBL_ID == _P.TBL_ID)
)
# Where a renamed table still has its directory, which is about to follow.
_LEFT_SOON = select(_J.RJ_SOURCE, _D.NAME, _T.TBL_ID, _T.TBL_NAME).select_from(
    RENAME_JOURNAL.join(_OF_TABLE, and_(_J.TBL_ID == _T.TBL_ID, _J.RJ_TARGET == _T.LOCATION))
)
_QUERIES: tuple[tuple[Select[Any], Column[str]], ...] = (
    (_TABLES, _T.LOCATION),
    (_LEFT_SOON, _J.RJ_SOURCE),
    (_PARTITIONS, _P.LOCATION),
    (select(_D.DB_LOCATION_URI, _D.NAME), _D.DB_LOCATION_URI),
)


def _overlapping(db: Connection, places: Sequence[str]) -> Iterator[_Owner]:
    """Everybody whose place is one of some, above, or below."""
    yield from _exactly(db, places)
    for place in places:
        yield from _below(db, place)


def _exactly(db: Connection, places: Sequence[str]) -> Iterator[_Owner]:
    """Everybody whose place is one of some, or above."""
    exact = list(dict.fromkeys(form for place in places for one in (place, *above(place)) for form in _forms(one)))
    for query, column in _QUERIES:
        for some in batches(exact):
            yield from (_Owner(*row) for row in db.execute(query.where(column.in_(some))))


def _below(db: Connection, place: str, *, but_usual_of: int | None = None) -> Iterator[_Owner]:
    """Everybody whose place is below another; not the partitions of a table there that are at their usual places."""
    bare = place.rstrip("/")
    for query, column in _QUERIES:
        found = query.where(column > f"{bare}/", column < f"{bare}{_AFTER_SLASH}")
        if but_usual_of is not None and column is _P.LOCATION:
            found = found.where(or_(_T.TBL_ID != but_usual_of, _P.LOCATION != literal(f"{bare}/") + _P.PART_NAME))
        yield from (_Owner(*row) for row in db.execute(found))


def _forms(place: str) -> tuple[str, str]:
    bare = place.rstrip("/")
    return bare or "/", f"{bare}/"
