"""RowSet, compared with Python's own sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidsql.row_set import RowSet

Row = tuple[str, int, int, int]
BUCKETS = st.sampled_from((536870912, 536936448, 536870913, -1, 2**31 - 1))
IDS = st.one_of(st.integers(0, 12), st.integers(0, 2**40), st.sampled_from((0, 2**63 - 1)))
ROWS = st.lists(st.tuples(st.sampled_from(("", "p=1", "p=%2F")), st.integers(0, 3), BUCKETS, IDS), max_size=30)


def row_set(rows: list[Row]) -> RowSet:
    made = RowSet()
    for partition in {row[0] for row in rows}:
        columns = zip(*(row[1:] for row in rows if row[0] == partition), strict=True)
        made |= RowSet.of(partition, *(np.array(column, np.int64) for column in columns))
    return made


def rows_of(rows: RowSet) -> set[Row]:
    return {(*origin, int(one)) for origin, ids in rows.ids.items() for one in ids}


@given(ROWS)
def test_a_set_has_each_row_once(rows: list[Row]) -> None:
    made = row_set(rows)
    assert rows_of(made) == set(rows)
    assert len(made) == len(set(rows))
    assert bool(made) == bool(rows)
    assert all((np.diff(ids) > 0).all() for ids in made.ids.values())


@given(ROWS)
def test_what_was_packed_is_unpacked(rows: list[Row]) -> None:
    assert rows_of(RowSet.unpacked(row_set(rows).packed())) == set(rows)


@given(ROWS, ROWS)
def test_two_meet_where_a_row_is_in_both(one: list[Row], other: list[Row]) -> None:
    assert row_set(one).meets(row_set(other)) == bool(set(one) & set(other))


@given(ROWS, ROWS)
def test_a_union_has_the_rows_of_both(one: list[Row], other: list[Row]) -> None:
    assert rows_of(row_set(one) | row_set(other)) == set(one) | set(other)


@given(ROWS)
def test_of_a_partition_those_rows_stay(rows: list[Row]) -> None:
    assert rows_of(row_set(rows).of_partition("p=1")) == {row for row in rows if row[0] == "p=1"}


def test_no_rows_are_a_set() -> None:
    nothing = RowSet.of("", *[np.array([], np.int64)] * 3)
    assert not nothing
    assert not RowSet.unpacked(nothing.packed())


@pytest.mark.parametrize("damaged", [b"", b"no", RowSet().packed()[:-3], row_set([("", 1, 2, 3)]).packed()[:-5]])
def test_what_was_not_packed_is_an_error(damaged: bytes) -> None:
    with pytest.raises(ValueError, match="not a set of rows"):
        RowSet.unpacked(damaged)


def test_a_million_rows_stay_small() -> None:
    scattered = np.cumsum(np.random.default_rng(1).integers(1, 20, 1_000_000))
    assert len(RowSet({("", 1, 536870912): np.arange(1_000_000)}).packed()) < 20_000
    assert len(RowSet({("", 1, 536870912): scattered}).packed()) < 1_000_000
