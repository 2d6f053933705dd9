"""Days before 1582-10-15: Spark and Arrow count them in one calendar, Hive's ORC files in another.

Arrow's dates are proleptic Gregorian. ORC files without the proleptic flag (Hive's default, and all that pyorc writes)
count the days before the Gregorian reform in the Julian calendar, as Java's ``GregorianCalendar`` does. The *label*
(year, month, day) stays, the day number changes. Hive does the same in ``CalendarUtils``.

Days are counted from 1970-01-01. The ten labels that the reform left out (1582-10-05 to 1582-10-14) are days of
the Julian calendar to Hive and to this module; they come back ten days later.
"""

from __future__ import annotations

REFORM_DAY = -141427
"""1582-10-15, the first day of the Gregorian calendar."""

SECONDS_PER_DAY = 86400

_DAYS_FROM_MARCH_OF_YEAR_0 = 719468
"""Days from 0000-03-01 (proleptic Gregorian) to 1970-01-01; the Julian 0000-03-01 was two days before it."""


def to_hybrid(day: int) -> int:
    """The day number in a file without the proleptic flag of a proleptic Gregorian day number."""
    return day if day >= REFORM_DAY else _from_julian(*from_days(day))


def to_proleptic(day: int) -> int:
    """The proleptic Gregorian day number of a day number in a file without the proleptic flag."""
    return day if day >= REFORM_DAY else _from_gregorian(*_to_julian(day))


def from_days(day: int) -> tuple[int, int, int]:
    """Year, month and day of month of a proleptic Gregorian day number; year 0 is 1 BC."""
    era, day_of_era = divmod(day + _DAYS_FROM_MARCH_OF_YEAR_0, 146097)
    year = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year + year // 4 - year // 100)
    return _label(year + era * 400, day_of_year)


def _from_gregorian(year: int, month: int, day: int) -> int:
    year, day_of_year = _from_march(year, month, day)
    return 365 * year + year // 4 - year // 100 + year // 400 + day_of_year - _DAYS_FROM_MARCH_OF_YEAR_0


def _from_julian(year: int, month: int, day: int) -> int:
    year, day_of_year = _from_march(year, month, day)
    return 365 * year + year // 4 + day_of_year - _DAYS_FROM_MARCH_OF_YEAR_0 - 2


def _to_julian(day: int) -> tuple[int, int, int]:
    cycle, day_of_cycle = divmod(day + _DAYS_FROM_MARCH_OF_YEAR_0 + 2, 1461)
    year = min(day_of_cycle // 365, 3)
    return _label(year + cycle * 4, day_of_cycle - 365 * year)


def _from_march(year: int, month: int, day: int) -> tuple[int, int]:
    """A label as a year that begins with March and the day in it, from 0: the leap day is the last day then."""
    return year - (month <= 2), (153 * ((month - 3) % 12) + 2) // 5 + day - 1


def _label(year: int, day_of_year: int) -> tuple[int, int, int]:
    """The inverse of :func:`_from_march`."""
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    return (year, month + 3, day) if month < 10 else (year + 1, month - 9, day)
