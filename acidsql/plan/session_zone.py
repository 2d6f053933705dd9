"""The clocks of a session's zone, where rows do not pass through Spark: by the rules of Java's, which INSERT goes by.

Python and Arrow take theirs from the machine, and have other ones for the time before 1970; Arrow knows no rule that
holds from 2037 on, and Python no year after 9999.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from acidsql.catalyst import Java
from acidsql.format.delete_set import Longs
from acidsql.format.writer_clocks import (
    in_a_year_alike,
    lasting_changes,
    listed_changes,
    seconds_of_offset,
    start_of_year,
)

_DATE_TIME_UTILS = "org.apache.spark.sql.catalyst.util.DateTimeUtils"


@dataclass(frozen=True)
class SessionZone:
    """The offsets of a zone, in seconds. It can be pickled for another process.

    Attributes:
        name: Its name in Spark.
        first: The offset before all changes.
        moments: From which moments on, in seconds since 1970, each of ``after`` holds.
        after: Those offsets.
        alike: The last years of ``moments``, like one of which each later one is; None where nothing changes any more.
    """

    name: str
    first: int = 0
    moments: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    alike: range | None = None

    def offsets(self, moments: Longs) -> Longs:
        """The offsets at some moments."""
        if self.alike is not None and (late := moments >= start_of_year(self.alike.stop)).any():
            moments = np.where(late, in_a_year_alike(moments, self.alike), moments)
        known, offsets = self._arrays
        found: Longs = offsets[np.searchsorted(known, moments, side="right")]
        return found

    def offset_of_clock(self, seconds: int, *, later: bool = False) -> int:
        """The offset of what a clock shows: of a time that is passed over, the one before that, as Java has it.

        Args:
            seconds: What it shows, in seconds as if it stood in UTC.
            later: Of a time that it shows twice, the second one.
        """
        if self.alike is not None and seconds >= start_of_year(self.alike.stop):
            seconds = int(in_a_year_alike(np.array([seconds], np.int64), self.alike)[0])
        shown = self._shown_later if later else self._shown
        return (self.first, *self.after)[bisect_right(shown, seconds)]

    @cached_property
    def _shown(self) -> list[int]:
        """What a clock shows from when on the next offset counts."""
        return [m + max(b, a) for m, b, a in zip(self.moments, (self.first, *self.after), self.after, strict=False)]

    @cached_property
    def _shown_later(self) -> list[int]:
        """The same, where of a time that is shown twice the second one counts."""
        return [m + min(b, a) for m, b, a in zip(self.moments, (self.first, *self.after), self.after, strict=False)]

    @cached_property
    def _arrays(self) -> tuple[Longs, Longs]:
        return np.array(self.moments, np.int64), np.array((self.first, *self.after), np.int64)


@lru_cache(maxsize=64)
def _zone(java: Java, name: str) -> SessionZone:
    rules: Any = java.static(_DATE_TIME_UTILS, "getZoneId")(name).getRules()
    listed, last = listed_changes(rules)
    years = range(last, last + 1 + _YEARS_ALIKE)  # some zones have changes of their own up to 2086
    lasting = lasting_changes(rules, years)
    found = dict(sorted({**lasting, **listed}.items()))
    first = seconds_of_offset(
        str(rules.getOffset(java.static("java.time.Instant", "ofEpochSecond")(_LONG_AGO)).getId())
    )
    return SessionZone(name, first, tuple(found), tuple(found.values()), years[1:] if lasting else None)


_LONG_AGO = -(1 << 40)
_YEARS_ALIKE = 60
"""In so many years each kind of year is there, also around one that is no leap year, such as 2100."""


def session_zone(spark: SparkSession, name: str) -> SessionZone:
    """A zone of a session, by its name in Spark."""
    return _zone(Java.of(spark), name)
