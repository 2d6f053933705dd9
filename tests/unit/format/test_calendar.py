"""Days before the Gregorian reform, against Python's own calendar and the astronomers' Julian day numbers."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidsql.format.calendar import REFORM_DAY, from_days, to_hybrid, to_proleptic

EPOCH = date(1970, 1, 1)


def proleptic(day: date) -> int:
    return (day - EPOCH).days


def julian(year: int, month: int, day: int) -> int:
    """Days since 1970 of a label in the Julian calendar (Fliegel's formula, Julian day 2440588 is 1970-01-01)."""
    a = (14 - month) // 12
    y, m = year + 4800 - a, month + 12 * a - 3
    return day + (153 * m + 2) // 5 + 365 * y + y // 4 - 32083 - 2440588


@pytest.mark.parametrize(
    ("label", "stored"),
    [
        (date(1, 1, 1), -719164),
        (date(1582, 10, 4), -141428),
        (date(1582, 10, 15), -141427),
        (date(1970, 1, 1), 0),
        (date(9999, 12, 31), 2932896),
    ],
)
def test_stored_days_are_those_in_the_files_of_hive(label: date, stored: int) -> None:
    assert to_hybrid(proleptic(label)) == stored
    assert to_proleptic(stored) == proleptic(label)


def test_labels_that_the_reform_left_out_are_julian_and_come_back_ten_days_later() -> None:
    assert to_hybrid(proleptic(date(1582, 10, 5))) == REFORM_DAY
    assert to_proleptic(to_hybrid(proleptic(date(1582, 10, 10)))) == proleptic(date(1582, 10, 20))


def test_the_julian_leap_day_of_1500_comes_back_as_the_day_after() -> None:
    """Its label does not exist in the proleptic Gregorian calendar."""
    assert from_days(to_proleptic(julian(1500, 2, 29))) == (1500, 3, 1)


@given(st.dates())
def test_labels_agree_with_python(day: date) -> None:
    assert from_days(proleptic(day)) == (day.year, day.month, day.day)


@given(st.dates(max_value=date(1582, 10, 14)))
def test_before_the_reform_the_label_stays_and_the_number_is_julian(day: date) -> None:
    stored = to_hybrid(proleptic(day))
    assert stored == julian(day.year, day.month, day.day)
    if day <= date(1582, 10, 4):
        assert to_proleptic(stored) == proleptic(day)


@given(st.integers(REFORM_DAY, 10**7))
def test_from_the_reform_on_nothing_changes(day: int) -> None:
    assert to_hybrid(day) == to_proleptic(day) == day


@given(st.integers(-(10**7), REFORM_DAY - 11))
def test_years_before_christ_survive_the_way_there_and_back(day: int) -> None:
    assert to_proleptic(to_hybrid(day)) == day
