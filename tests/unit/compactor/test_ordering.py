"""ORDER BY of a rebalance compaction: how it is read, and the order of rows."""

from __future__ import annotations

import math
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acidsql.compactor.ordering import SortItem, in_order, sort_items
from acidsql.errors import AcidError, AnalysisError, ParseError
from acidsql.format.rewrite import Rewrite, rewrite_rows
from acidsql.format.spread import runs_of
from acidsql.types import Primitive, Struct, parse_type
from acidsql.valid_ids import ValidWriteIdList
from tests.examples import examples
from tests.unit.format.test_spread import (
    FS,
    SIMPLE,
    WIDE,
    Row,
    hives_case,
    live_file,
    stored,
    stripes,
    tables,
    wide,
    written,
)

__all__ = ["hives_case", "stripes"]

SORTED_BY = [0, 1, 2, 3, 5, 6]
"""The columns that rows can be ordered by."""
TABLE = Struct((("a", parse_type("int")), ("B c", parse_type("string")), ("l", parse_type("array<int>"))))
INT, STRING = Primitive("int"), Primitive("string")

READ = [
    ("ORDER BY a", [SortItem(0, INT, False, False)]),
    ("order  by /* x */ A asc", [SortItem(0, INT, False, False)]),
    ("ORDER BY a DESC", [SortItem(0, INT, True, True)]),
    ("ORDER BY a NULLS FIRST", [SortItem(0, INT, False, True)]),
    ("ORDER BY `b C` desc nulls last, a", [SortItem(1, STRING, True, False), SortItem(0, INT, False, False)]),
    ("ORDER BY p, a, `q` DESC", [SortItem(0, INT, False, False)]),
    ("ORDER BY P", []),
]


@pytest.mark.parametrize(("clause", "expected"), READ, ids=[clause for clause, _ in READ])
def test_given_columns_when_the_clause_is_read_then_nulls_go_where_hive_puts_them(
    clause: str, expected: list[SortItem]
) -> None:
    assert list(sort_items(clause, TABLE, ("p", "q"))) == expected


REFUSED = [
    ("ORDER BY a + 1", AnalysisError, "cannot order rows by 'ORDER BY a \\+ 1'"),
    ("ORDER BY abs(a)", AnalysisError, "cannot order"),
    ("ORDER BY t.a", AnalysisError, "cannot order"),
    ("ORDER BY 1", AnalysisError, "cannot order"),
    ("ORDER BY a,", AnalysisError, "cannot order"),
    ("ORDER BY", AnalysisError, "cannot order"),
    ("SORT BY a", AnalysisError, "cannot order"),
    ("ORDER BY a DESC ASC", AnalysisError, "cannot order"),
    ("ORDER BY nope", AnalysisError, "Unknown column nope"),
    ("ORDER BY l", AnalysisError, "column l of type array<int>"),
    ("ORDER BY `a", ParseError, "not closed|quoted"),
]


@pytest.mark.parametrize(("clause", "kind", "piece"), REFUSED, ids=[r[0] for r in REFUSED])
def test_given_more_than_columns_when_the_clause_is_read_then_it_is_refused(
    clause: str, kind: type[AcidError], piece: str
) -> None:
    with pytest.raises(kind, match=piece):
        sort_items(clause, TABLE, ("p",))


def comparable(value: Any, item: SortItem) -> tuple[Any, ...]:
    """What Hive compares, of a stored value: NULL by its place, NaN as the greatest number."""
    if value is None:
        return (0 if item.nulls_first != item.descending else 2,)
    if isinstance(value, float):
        return 1, math.isnan(value), 0.0 if math.isnan(value) else value
    if isinstance(value, str) and item.column == 1:
        return 1, value.rstrip(" ").encode()
    return 1, Decimal(value) if isinstance(value, str) else value


@settings(deadline=None, max_examples=examples(12))
@given(
    tables,
    st.integers(1, 7),
    st.lists(st.tuples(st.sampled_from(SORTED_BY), st.booleans(), st.booleans()), min_size=1, max_size=2),
)
def test_given_any_files_when_their_rows_are_ordered_then_all_are_there_in_that_order_under_the_largest_write_id(
    buckets: list[dict[int, list[Row]]], each: int, keys: list[tuple[int, bool, bool]]
) -> None:
    items = [SortItem(column, WIDE.fields[column][1], down, first) for column, down, first in keys]
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        files = [
            live_file(root, i, WIDE, {w: wide(rows) for w, rows in sorted(one.items())})
            for i, one in enumerate(buckets)
        ]
        expected = sorted(((row[1:4], row[5]) for path in files for row in stored(path)), key=lambda pair: pair[0])
        for item in reversed(items):
            expected.sort(key=lambda pair: comparable(pair[1][item.column], item), reverse=item.descending)
        pieces = in_order(FS, files, runs_of(FS, files), items)
        made = written(root, WIDE, files, pieces, each, is_sorted=True)
        assert [repr(row) for rows in made for *_, row in rows] == [repr(row) for _, row in expected]
        assert {w for rows in made for w, *_ in rows} == {max(w for one in buckets for w in one)}


def test_given_hives_case_when_it_is_rebalanced_in_an_order_then_ids_and_order_are_hives(
    hives_case: list[str], tmp_path: Path
) -> None:
    items = sort_items("ORDER BY b DESC", SIMPLE, ())
    pieces = in_order(FS, hives_case, runs_of(FS, hives_case), items)
    made = written(tmp_path, SIMPLE, hives_case, pieces, 5, is_sorted=True)
    values = [row[1] for rows in made for *_, row in rows]
    assert values == [17, 16, 15, 14, 13, 12, 4, 4, 4, 4, 4, 3, 3, 3, 3, 3, 2, 2]
    assert [len(rows) for rows in made] == [5, 5, 5, 3]
    assert {w for rows in made for w, *_ in rows} == {7}


def test_given_no_rows_when_they_are_ordered_then_there_are_none(tmp_path: Path) -> None:
    path = str(tmp_path / "bucket_00000")
    rewrite_rows(FS, Rewrite(path, SIMPLE, "zlib", ValidWriteIdList("db.t", 1).for_compaction(), ()))
    pieces = in_order(FS, [path], runs_of(FS, [path]), sort_items("order by a", SIMPLE, ()))
    assert pieces.rows == 0
