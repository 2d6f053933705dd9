"""Wall clocks in stripes of writers outside UTC.

A stripe names the zone of its writer, and has moments: seconds since 2015 began there. What wall clocks these are,
ORC's readers in Java say by ``java.util.TimeZone``, and so everybody who reads such a file in Spark. The reader in C++
has the time zone database of the system, which differs: by its version, by zones that it has merged, by the times
before the first and after the last change that it lists, by names that only Java knows. So such stripes are read as if
their writer had been in GMT, and the moments get the clocks that the JVM says.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acidsql import fs
from acidsql.errors import UnsupportedError
from acidsql.types import Array, HiveType, Map, Primitive, Struct

Longs: TypeAlias = npt.NDArray[np.int64]
Clock: TypeAlias = Callable[[Longs, Longs], Longs]
"""From seconds, as a reader gives them that takes the writer to be in GMT, and the nanoseconds beside them, to the
seconds of the writer's wall clock, as if it stood in UTC."""
Fix: TypeAlias = Callable[[Any], Any]
"""Makes the right value of one that was read as if its writer were in GMT."""

_UTC = ("", "UTC", "GMT", "Etc/UTC", "Etc/GMT", "Z")
_START_OF_1900 = -2_208_988_800
_START_OF_2015 = 1_420_070_400
_LONG_AGO = -5_000_000_000
"""Seconds: in 1811."""
_START_OF_2038 = 2_145_916_800
_SOME_DAYS = 10 * 86_400
"""No offset lasts for less by a rule; and ``java.util.TimeZone`` goes by a rule from some day of 2037 on."""
_NANOS, _MILLION = 1_000_000_000, 1_000_000
_UTC_ZONE = datetime.timezone.utc
_TRANSITION = re.compile(r"Transition\[(?:Gap|Overlap) at (\d{4}-\d\d-\d\dT[\d:]+)(\S+) to ([^\]]+)\]")
_OFFSET = re.compile(r"([+-])(\d\d):(\d\d)(?::(\d\d))?")


def is_utc(zone: str) -> bool:
    """Whether clocks of a writer's zone are those of UTC."""
    return zone in _UTC


def clock_of(zone: str) -> Clock:
    """The clock of a zone by the JVM of the session.

    Raises:
        UnknownClock, UnsupportedError: As :func:`rules_of`.
    """
    rules = rules_of(zone)
    start = rules.start

    def clock(seconds: Longs, nanos: Longs) -> Longs:
        # readers take one second off a time before 1970 that has a fraction; what counts as before, the zone decides
        has_fraction = nanos >= _MILLION
        stored = seconds + ((seconds < 0) & has_fraction)
        moments = stored - start
        moments -= (moments < 0) & has_fraction
        return moments + rules.offsets(moments)

    return clock


class UnknownClock(UnsupportedError):
    """Raised where a writer's clock is not known, and no JVM can be asked."""

    def __init__(self, zone: str) -> None:
        super().__init__(
            f"A file has times that were written in the time zone {zone}: to read them takes Java's rules of it, and no"
            " Spark is running"
        )
        self.zone = zone


@dataclass(frozen=True)
class ZoneRules:
    """The offsets of a zone, in seconds. They can be pickled for another process.

    Attributes:
        early: That before 1900.
        changes: The moments from which on each of ``after`` holds, from 1900 to the end of :data:`YEARS_ALIKE`. Later
            years are each like one of the last of these: at most a rule is left, which knows a year by its length and
            the day of the week that it begins with.
    """

    early: int
    changes: Longs
    after: Longs

    def offsets(self, moments: Longs) -> Longs:
        """Those at some moments, in seconds since 1970."""
        late = moments >= _START_OF_2038
        if late.any():
            moments = np.where(late, in_a_year_alike(moments, YEARS_ALIKE), moments)
        places = np.searchsorted(self.changes, moments, side="right") - 1
        found: Longs = np.where(moments < _START_OF_1900, self.early, self.after[np.maximum(places, 0)])
        return found

    @property
    def start(self) -> int:
        """The offset when 2015 began there."""
        near = self.offsets(np.array([_START_OF_2015], np.int64))
        return int(self.offsets(_START_OF_2015 - near)[0])


def in_a_year_alike(moments: Longs, years: range) -> Longs:
    """Moments of other years in one of some, which are of each length and of each first day."""
    starts, kinds = _starts_and_kinds(moments.astype("datetime64[s]").astype("datetime64[Y]"))
    made: Longs = moments - starts + _starts_alike(years)[kinds]
    return made


@cache
def _starts_alike(years: range) -> Longs:
    """When one year of each kind begins."""
    made = np.zeros(14, np.int64)
    starts, kinds = _starts_and_kinds(np.array([f"{year}" for year in years], "datetime64[Y]"))
    assert len(set(kinds.tolist())) == len(made), f"a kind of years is not among {years}"
    made[kinds] = starts
    return made


def _starts_and_kinds(years: npt.NDArray[np.datetime64]) -> tuple[Longs, Longs]:
    """When years begin, in seconds, and of which kind they are: by their first day, and their length."""
    days, ends = (one.astype("datetime64[D]").astype(np.int64) for one in (years, years + 1))
    return days * 86_400, (days + 4) % 7 + 7 * (ends - days == 366)


def start_of_year(year: int) -> int:
    """When it begins in UTC, in seconds since 1970."""
    return int(np.datetime64(f"{year:04d}", "s").astype(np.int64))


YEARS_ALIKE = range(2038, 2066)
"""Years of each length and of each first day."""

_known: dict[str, ZoneRules] = {}


def rules_of(name: str) -> ZoneRules:
    """The rules of a zone: those that are known, or those of the ``java.util.TimeZone`` of the session's JVM.

    Raises:
        UnknownClock: When there is no JVM.
        UnsupportedError: When it does not know the zone.
    """
    if name not in _known:
        java: Any = fs.needed_jvm()
        if java is None:
            raise UnknownClock(name)
        zone = java.java.util.TimeZone.getTimeZone(name)
        if zone.getID() != name:  # what it does not know, it takes for GMT
            raise UnsupportedError(f"The time zone {name} of a file's writer is unknown to this Java")
        learn({name: _asked(zone)})
    return _known[name]


def learn(rules: Mapping[str, ZoneRules]) -> None:
    """Know the rules of zones, in a process that has no JVM to ask."""
    _known.update(rules)


def _asked(zone: Any) -> ZoneRules:
    changes = [at for at in _changes(zone) if _START_OF_1900 < at < _START_OF_2038]
    later = range(start_of_year(2037), start_of_year(YEARS_ALIKE.stop), _SOME_DAYS)
    points = sorted({_START_OF_1900, *changes, *later, start_of_year(YEARS_ALIKE.stop)})
    found: dict[int, int] = {}
    for start, end in pairwise(points):
        found |= _between(zone, start, end)
    moments, after = (np.array(column, np.int64) for column in zip(*found.items(), strict=True))
    return ZoneRules(_offset(zone, _LONG_AGO), moments, after)


def _between(zone: Any, start: int, end: int) -> dict[int, int]:
    """When offsets begin, and which, where one changes at most once."""
    before, last = _offset(zone, start), _offset(zone, end - 1)
    if last == before:
        return {start: before}
    low, high = start, end - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset(zone, middle) == before else (low, middle)
    return {start: before, high: last}


def _offset(zone: Any, moment: int) -> int:
    return int(zone.getOffset(moment * 1000)) // 1000


def _changes(zone: Any) -> list[int]:
    """When a zone's offset changes by ``java.time``, to the end of 2037."""
    rules = zone.toZoneId().getRules()
    listed, last = listed_changes(rules)
    return sorted({*listed, *lasting_changes(rules, range(last, 2038))})


def listed_changes(rules: Any) -> tuple[dict[int, int], int]:
    """The changes that ``java.time`` lists of a zone, and the offsets from then on; and the year of the last one."""
    made = _transitions(str(rules.getTransitions().toString()))
    last = datetime.datetime.fromtimestamp(made[-1][0], _UTC_ZONE).year if made else 1900
    return dict(made), last


def lasting_changes(rules: Any, years: range) -> dict[int, int]:
    """The same of those that each year has by a rule, for some years."""
    made = [str(rule.createTransition(year).toString()) for rule in rules.getTransitionRules() for year in years]
    return dict(_transitions("".join(made)))


def _transitions(text: str) -> list[tuple[int, int]]:
    """The moments of changes in Java's words, and the offsets from then on."""
    found = _TRANSITION.findall(text)
    return [
        (
            int(datetime.datetime.fromisoformat(local).replace(tzinfo=_UTC_ZONE).timestamp())
            - seconds_of_offset(before),
            seconds_of_offset(after),
        )
        for local, before, after in found
    ]


def seconds_of_offset(offset: str) -> int:
    """An offset in Java's words, in seconds."""
    if offset == "Z":
        return 0
    found = _OFFSET.fullmatch(offset)
    assert found is not None, offset
    sign, *parts = found.groups("0")
    hours, minutes, seconds = map(int, parts)
    total = hours * 3600 + minutes * 60 + seconds
    return -total if sign == "-" else total


# --- columns of Arrow's ----------------------------------------------------------------------------------------------


def has_clocks(values: pa.Array) -> bool:
    """Whether there are timestamps in a column, at any depth."""
    kind = values.type
    if pa.types.is_nested(kind):
        return any(has_clocks(one) for one in _children(values))
    return bool(pa.types.is_timestamp(kind) and kind.tz is None)


def with_clocks(values: pa.Array, clock: Clock) -> pa.Array:
    """A column that was read as if its writer were in GMT.

    Raises:
        pa.ArrowInvalid: When a clock is out of the range of Arrow's nanoseconds.
    """
    if not has_clocks(values):
        return values
    if not pa.types.is_nested(values.type):
        return _with_clocks(values, clock)
    children = [with_clocks(child, clock) for child in _children(values)]
    if pa.types.is_struct(values.type):
        return pa.StructArray.from_arrays(children, fields=list(values.type), mask=values.is_null())
    if pa.types.is_map(values.type):
        return pa.MapArray.from_arrays(_offsets(values), *children)
    return pa.ListArray.from_arrays(_offsets(values), *children)


def _children(values: pa.Array) -> list[pa.Array]:
    if pa.types.is_struct(values.type):
        return [values.field(i) for i in range(values.type.num_fields)]
    return [values.keys, values.items] if pa.types.is_map(values.type) else [values.values]


def _offsets(values: pa.Array) -> pa.Array:
    """Where each list begins, as Arrow wants it: with NULL for a list that is NULL."""
    offsets = values.offsets
    if not values.null_count:
        return offsets
    is_null = pa.concat_arrays([values.is_null(), pa.array([False])])
    return pc.if_else(is_null, pa.scalar(None, offsets.type), offsets)


def _with_clocks(values: pa.Array, clock: Clock) -> pa.Array:
    counted = values.cast(pa.timestamp("ns")).cast(pa.int64())
    numbers = counted.fill_null(0).to_numpy(zero_copy_only=False)
    seconds, nanos = np.divmod(numbers, _NANOS)
    clocks = clock(seconds, nanos)
    if len(clocks) and max(abs(int(clocks.max())), abs(int(clocks.min()))) >= 2**63 // _NANOS:
        raise pa.ArrowInvalid("a timestamp is out of range")
    made = pa.array(clocks * _NANOS + nanos, mask=counted.is_null().to_numpy(zero_copy_only=False))
    return made.cast(pa.timestamp("ns")).cast(values.type)


# --- stored values ---------------------------------------------------------------------------------------------------


def fix_of(type: HiveType, clock: Clock) -> Fix | None:
    """The same for stored values of a type (:mod:`acidsql.format.values`); None where none has a clock."""
    if type == Primitive("timestamp"):
        return lambda value: None if value is None else (_one(clock, *value), value[1])
    if isinstance(type, Array):
        element = fix_of(type.element, clock)
        return None if element is None else lambda value: None if value is None else [element(one) for one in value]
    if isinstance(type, Map):
        return _fix_of_map(fix_of(type.key, clock), fix_of(type.value, clock))
    if isinstance(type, Struct):
        return _fix_of_struct([fix_of(field, clock) for _, field in type.fields])
    return None


def _one(clock: Clock, seconds: int, nanos: int) -> int:
    return int(clock(np.array([seconds], np.int64), np.array([nanos], np.int64))[0])


def _fix_of_struct(fields: Sequence[Fix | None]) -> Fix | None:
    if not any(fields):
        return None

    def fix(value: Any) -> Any:
        if value is None:
            return None
        return tuple(one if field is None else field(one) for field, one in zip(fields, value, strict=True))

    return fix


def _fix_of_map(key: Fix | None, item: Fix | None) -> Fix | None:
    if key is None and item is None:
        return None

    def fix(value: Any) -> Any:
        if value is None:
            return None
        return {(k if key is None else key(k)): (v if item is None else item(v)) for k, v in value.items()}

    return fix
