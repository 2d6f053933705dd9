"""Who has files where: no two tables or partitions share a directory, and none is below another's.

What one of them wrote would be rows of the other, and what a DROP, a compaction or the cleaner removes is removed for
both. The rule is kept in the transaction of the database that registers a place, so that of two at once only one can.
Places are compared as they are kept, in acidsql's own form (:func:`acidsql.fs.absolute`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Column, ColumnElement, Connection, and_, or_, select

from acidsql.errors import AlreadyExists
from acidsql.metastore.embedded.batches import batches
from acidsql.metastore.embedded.schema import DBS, PARTITIONS, TBLS

_HINT = "Tables and partitions cannot share a directory, nor be one within another."
_BATCH = 100
"""Places that are looked for by one query: each is a range, and the database plans each on its own."""
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


def check_partitions(db: Connection, table_id: int, places: dict[str, str]) -> None:
    """Partitions of a table may have their files at places, by their names. Raises: AlreadyExists, also among them."""
    names = {place.rstrip("/"): name for name, place in places.items()}
    inner = next((one for one in names if any(above in names for above in _above(one))), None)
    if inner is not None or len(names) < len(places):
        wanted = inner or next(iter(names))
        raise AlreadyExists(f"Location {wanted} is not free: another partition is to be there, or above it", hint=_HINT)
    for owner in _overlapping(db, list(names)):
        place = next(one for one in names if _overlap(one, owner.place))
        if owner.table_id is None:
            allowed = all(_is_below(one, owner.place) for one in names if _overlap(one, owner.place))
        elif owner.partition is not None:
            allowed = owner.table_id == table_id and names.get(owner.place.rstrip("/")) == owner.partition
        else:
            allowed = owner.table_id == table_id and _is_below(place, owner.place)
        if not allowed:
            raise _taken(place, owner)


def check_database(db: Connection, place: str) -> None:
    """A database may have its tables at a place. Other databases may be around it, as ``default`` is around all.

    Raises:
        AlreadyExists: When it is, is within, or has within it a place of a table or partition.
    """
    for owner in _overlapping(db, [place]):
        if owner.table_id is not None:
            raise _taken(place, owner)


def _taken(place: str, owner: _Owner) -> AlreadyExists:
    return AlreadyExists(
        f"Location {place} is not free: {owner} is at {owner.place}",
        hint=_HINT,
    )


def _above(place: str) -> list[str]:
    """The directories above a place, the nearest first."""
    parts = place.rstrip("/").split("/")
    return ["/".join(parts[:n]) or "/" for n in range(len(parts) - 1, 0, -1)]


def _is_below(place: str, other: str) -> bool:
    return place.rstrip("/").startswith(f"{other.rstrip('/')}/")


def _overlap(place: str, other: str) -> bool:
    return place.rstrip("/") == other.rstrip("/") or _is_below(place, other) or _is_below(other, place)


def _overlapping(db: Connection, places: Sequence[str]) -> Iterator[_Owner]:
    """Everybody whose place is one of some, above, or below."""
    t, p, d = TBLS.c, PARTITIONS.c, DBS.c
    of_table = TBLS.join(DBS, d.DB_ID == t.DB_ID)
    table = select(t.LOCATION, d.NAME, t.TBL_ID, t.TBL_NAME).select_from(of_table).where(t.LOCATION != "")
    of_partition = PARTITIONS.join(of_table, t.TBL_ID == p.TBL_ID)
    partition = select(p.LOCATION, d.NAME, t.TBL_ID, t.TBL_NAME, p.PART_NAME).select_from(of_partition)
    database = select(d.DB_LOCATION_URI, d.NAME)
    for query, column in ((table, t.LOCATION), (partition, p.LOCATION), (database, d.DB_LOCATION_URI)):
        exact = dict.fromkeys(form for place in places for one in (place, *_above(place)) for form in _forms(one))
        for some in batches(list(exact)):
            yield from (_Owner(*row) for row in db.execute(query.where(column.in_(some))))
        for start in range(0, len(places), _BATCH):
            below = or_(*(_is_below_in(column, one) for one in places[start : start + _BATCH]))
            yield from (_Owner(*row) for row in db.execute(query.where(below)))


def _forms(place: str) -> tuple[str, str]:
    bare = place.rstrip("/")
    return bare or "/", f"{bare}/"


def _is_below_in(column: Column[str], place: str) -> ColumnElement[bool]:
    bare = place.rstrip("/")
    return and_(column > f"{bare}/", column < f"{bare}{_AFTER_SLASH}")
