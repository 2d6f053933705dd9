"""Directories and who had them: those of dropped tables and partitions, and the write ids in names below a place.

A directory cannot be removed in the step in which the store forgets its table or partition. So that step records it in
DROPPED_DIRECTORIES, where it stays until it is gone; until then its place is not given to anybody else, or its rows
would be theirs.

A DataFrame knows files by their names, and so does Spark's cache. Names below a place must not come again when another
table has it: PLACE_WRITE_IDS keeps the write id that its next table has to start with.
"""

# ruff: noqa: SIM300 (the upper-case names are columns, not constants)

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, or_, select, true, update

from acidsql import fs
from acidsql.errors import AlreadyExists
from acidsql.metastore.embedded import places, write_ids
from acidsql.metastore.embedded.batches import batches
from acidsql.metastore.embedded.client import EmbeddedClient
from acidsql.metastore.embedded.places import above
from acidsql.metastore.embedded.schema import DROPPED_DIRECTORIES, PLACE_WRITE_IDS
from acidsql.metastore.model import DroppedDirectory, WrittenBy

_FEW = 8
"""So few locations are looked for one by one; for more all that was left around them is looked through once."""

_D, _P = DROPPED_DIRECTORIES.c, PLACE_WRITE_IDS.c
_DROPPED = select(_D.DD_LOCATION, _D.DD_TOKEN, _D.DD_IS_ASIDE, _D.DD_MADE_BY, _D.DD_WRITE_ID).order_by(_D.DD_ID)


def drop(db: Connection, locations: Iterable[str], *, made_by: WrittenBy | None = None) -> None:
    """Record directories that are to be removed; of those that stay what a transaction has put into them."""
    txn_id, write_id = made_by or (None, None)
    whose = {"DD_MADE_BY": txn_id, "DD_WRITE_ID": write_id}
    rows = [
        {"DD_LOCATION": one, "DD_TOKEN": uuid.uuid4().hex, "DD_IS_ASIDE": False, **whose} for one in locations if one
    ]
    if rows:
        db.execute(insert(DROPPED_DIRECTORIES), rows)


def dropped(db: Connection) -> list[DroppedDirectory]:
    """The directories that are to be removed, in the order in which they were dropped."""
    return [
        DroppedDirectory(location, token, is_aside, None if txn_id is None else WrittenBy(txn_id, write_id))
        for location, token, is_aside, txn_id, write_id in db.execute(_DROPPED)
    ]


def leave(db: Connection, database: str, table: str, locations: Iterable[str]) -> None:
    """A table leaves places: whoever has one next goes on with the write ids where it ends."""
    following = write_ids.following(db, database, table)
    for location in {_whole(one) for one in locations if one} if following is not None else ():
        own_and_below = or_(_P.PW_LOCATION == location, _below(location))
        known = db.execute(select(_P.PW_NEXT).where(own_and_below)).scalars().all()
        db.execute(delete(PLACE_WRITE_IDS).where(own_and_below))
        db.execute(insert(PLACE_WRITE_IDS), {"PW_LOCATION": location, "PW_NEXT": max([following, *known])})


def take(db: Connection, database: str, table: str, locations: Iterable[str]) -> None:
    """A table gets places: its write ids start above those of the tables that had them.

    Raises:
        AlreadyExists: When the directory of a dropped table or partition still stands there, above or below.
    """
    wanted = [_whole(one) for one in locations if one]
    require_free(db, wanted)
    following = _highest_next(db, wanted)
    if following is not None:
        write_ids.start_above(db, database, table, following)


def _highest_next(db: Connection, locations: Sequence[str]) -> int | None:
    """The highest of what :func:`_next` says of some locations."""
    if len(locations) <= _FEW:
        found = [_next(db, location) for location in locations]
    else:
        wanted = set(locations)
        above_wanted = {place for location in wanted for place in above(location)}
        rows = db.execute(select(_P.PW_LOCATION, _P.PW_NEXT).where(_around(_beginning(locations))))
        found = [n for place, n in rows if place in above_wanted or not wanted.isdisjoint((place, *above(place)))]
    return max((one for one in found if one is not None), default=None)


def _beginning(texts: Sequence[str]) -> str:
    """What all of some texts begin with."""
    first, last = min(texts), max(texts)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[:same]


def _around(prefix: str) -> ColumnElement[bool]:
    """What begins with a text, and the directories above that."""
    if not prefix:
        return true()
    within = func.substr(_P.PW_LOCATION, 1, len(prefix)) == prefix
    return or_(within, _P.PW_LOCATION.in_(above(f"{prefix}x")))


def _next(db: Connection, location: str, within: str = "") -> int | None:
    """The first write id for the next table at a location; None if no table has been there."""
    places = [place for place in (location, *above(location)) if place.startswith(within and f"{_whole(within)}/")]
    there = or_(_P.PW_LOCATION.in_(places), _below(location))
    following = db.execute(select(func.max(_P.PW_NEXT)).where(there)).scalar()
    return None if following is None else int(following)


def _below(location: str) -> ColumnElement[bool]:
    return and_(_P.PW_LOCATION > f"{location}/", _P.PW_LOCATION < f"{location}0")  # "0" follows "/"


def require_free(db: Connection, locations: Iterable[str]) -> None:
    """Raises: AlreadyExists when the directory of a dropped table or partition stands at a place, above or below."""
    standing = [d for d in dropped(db) if not d.is_aside]
    for location in map(_whole, locations) if standing else ():
        other = next((d for d in standing if fs.overlap(_whole(d.location), location)), None)
        if other is not None:
            raise AlreadyExists(
                f"Directory {other.location} of a dropped table or partition has not been removed yet",
                hint="It is removed by whoever needs the place: run the statement again.",
            )


def _whole(location: str) -> str:
    return fs.absolute(location).rstrip("/")


class EmbeddedDroppedPlaces(EmbeddedClient):
    """The part of :class:`~acidsql.metastore.protocol.Catalog` about directories of what was dropped."""

    def set_aside(self, dropped: Sequence[DroppedDirectory]) -> None:
        with self._store.write() as db:
            for some in batches([d.token for d in dropped]):  # SQLite uses ids again
                db.execute(update(DROPPED_DIRECTORIES).where(_D.DD_TOKEN.in_(some)).values(DD_IS_ASIDE=True))

    def forget_dropped(self, dropped: Sequence[DroppedDirectory]) -> None:
        with self._store.write() as db:
            for some in batches([d.token for d in dropped]):
                db.execute(delete(DROPPED_DIRECTORIES).where(_D.DD_TOKEN.in_(some)))

    def has_owner(self, location: str) -> bool:
        with self._store.read() as db:
            return places.has_owner(db, location)

    def was_used(self, location: str, within: str = "") -> bool:
        with self._store.read() as db:
            return _next(db, _whole(location), within) is not None

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._store.write():
            yield
