"""Old wall clocks in files of writers outside UTC: what Java's writers meant, and ORC's reader in C++ takes for others.

A stripe names the zone of its writer, and has moments: seconds since 2015 began there. Java's writers (Spark's, and
Hive's before version 4) know a zone by ``java.util.TimeZone``: before 1900 each has the offset that is its standard
time today, and from then on those of Java's own time zone database. The reader in C++ takes the first standard time of
the zone for all times before its first transition, and the database of the system, which has merged zones that are
alike since 1970. So sentinels such as ``1900-01-01`` came out minutes or hours earlier.
"""

from __future__ import annotations

import datetime
import zoneinfo
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from acidsql.errors import UnsupportedError
from acidsql.format.calendar import SECONDS_PER_DAY
from acidsql.types import Array, HiveType, Map, Primitive, Struct

ALIKE = -2 * SECONDS_PER_DAY
"""1969-12-30 as a wall clock in seconds since 1970: from here on both know the same offsets."""

_UTC = ("", "UTC", "GMT", "Etc/UTC", "Etc/GMT", "Z")
_START_OF_1900 = -2_208_988_800
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_A_YEAR = [datetime.date(2024, 1, 1) + datetime.timedelta(days=10 * i) for i in range(36)]

Fix: TypeAlias = Callable[[Any, Any], Any]
"""Makes the right value of one that was read as the stripe says, and of the same read as if its writer were in GMT."""


def is_utc(zone: str) -> bool:
    """Whether clocks of a writer's zone are those of UTC."""
    return zone in _UTC


def has_old_clocks(values: pa.Array) -> bool:
    """Whether there is a timestamp before :data:`ALIKE` in a column, at any depth."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        least = pc.min(values.cast(pa.timestamp("ns")).cast(pa.int64())).as_py()
        return least is not None and least < ALIKE * 10**9
    if pa.types.is_struct(kind):
        return any(has_old_clocks(field) for field in values.flatten())
    if pa.types.is_map(kind):
        return has_old_clocks(values.keys) or has_old_clocks(values.items)
    return pa.types.is_list(kind) and has_old_clocks(values.values)


def fix_of(type: HiveType, zone: str) -> Fix | None:
    """How stored values of a type are put right in a stripe whose writer was in a zone; None where none has a clock.

    It raises UnsupportedError for an old clock of a zone whose offset at that time is not known here.
    """
    if type == Primitive("timestamp"):
        return lambda read, gmt: (_clock_of(zone)(gmt[0]), gmt[1]) if read is not None and read[0] < ALIKE else read
    if isinstance(type, Array):
        element = fix_of(type.element, zone)
        return None if element is None else lambda read, gmt: _each(element, read, gmt)
    if isinstance(type, Map):
        return _fix_of_map(fix_of(type.key, zone), fix_of(type.value, zone))
    if isinstance(type, Struct):
        fields = [fix_of(field, zone) for _, field in type.fields]
        return None if not any(fields) else lambda read, gmt: _fields(fields, read, gmt)
    return None


def _each(element: Fix, read: Any, gmt: Any) -> Any:
    return None if read is None else [element(one, other) for one, other in zip(read, gmt, strict=True)]


def _fields(fields: list[Fix | None], read: Any, gmt: Any) -> Any:
    if read is None:
        return None
    given = zip(fields, read, gmt, strict=True)
    return tuple(one if fix is None else fix(one, other) for fix, one, other in given)


def _fix_of_map(key: Fix | None, item: Fix | None) -> Fix | None:
    if key is None and item is None:
        return None

    def fix(read: Any, gmt: Any) -> Any:
        if read is None:
            return None
        pairs = zip(read.items(), gmt.items(), strict=True)
        return {
            (k if key is None else key(k, other)): (v if item is None else item(v, beside))
            for (k, v), (other, beside) in pairs
        }

    return fix


@lru_cache(maxsize=64)
def _clock_of(zone: str) -> Callable[[int], int]:
    """From seconds, as a reader gives them that takes the writer to be in GMT, to the writer's wall clock."""
    try:
        known = zoneinfo.ZoneInfo(zone)
    except (KeyError, ValueError, OSError) as e:  # ZoneInfoNotFoundError is a KeyError
        raise UnsupportedError(
            f"The time zone {zone} of a file's writer is not known here",
            hint="Install the time zone database: pip install tzdata.",
        ) from e
    is_told_apart = zone in _zones_told_apart() or zone.startswith("Etc/")
    start = _seconds(datetime.datetime(2015, 1, 1, tzinfo=known))
    standard = min(_seconds(datetime.datetime(day.year, day.month, day.day, 12, tzinfo=known)) for day in _A_YEAR)

    def clock(read: int) -> int:
        moment = read - start
        if moment < _START_OF_1900:
            return moment + standard
        if not is_told_apart:
            raise UnsupportedError(
                f"A file has times between 1900 and 1970 that were written in the time zone {zone}: what its offset was"
                " then is not known here",
                hint="Write the rows anew (INSERT OVERWRITE) from a Spark that runs with -Duser.timezone=UTC.",
            )
        return moment + _seconds((_EPOCH + datetime.timedelta(seconds=moment)).astimezone(known))

    return clock


@lru_cache(maxsize=1)
def _zones_told_apart() -> frozenset[str]:
    """The zones whose clocks before 1970 are their own in the time zone database, not those of a zone that they were
    merged with (``zone1970.tab``)."""
    places: list[Any] = [Path(root) for root in zoneinfo.TZPATH]
    with suppress(ModuleNotFoundError):
        places.append(resources.files("tzdata.zoneinfo"))
    for place in places:
        with suppress(OSError):
            lines = (place / "zone1970.tab").read_text().splitlines()
            return frozenset(line.split("\t")[2] for line in lines if line and not line.startswith("#"))
    return frozenset()


def _seconds(moment: datetime.datetime) -> int:
    offset = moment.utcoffset()
    assert offset is not None
    return offset // datetime.timedelta(seconds=1)
