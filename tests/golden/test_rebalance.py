"""What Hive 4.0.1 wrote, spread over new files: the rows of Hive's own major compaction, value for value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from acidsql.compactor.ordering import SortItem, in_order
from acidsql.format.bucket import encode
from acidsql.format.spread import Share, runs_of, write_share
from tests.golden.test_compaction import FS, MAJOR, by_hive, compacted, events, last_row_type, stored, tables

FULL_ACID = [name for name in tables("12_major/data/base_*_v*") if not name.startswith("mm")]
FILES = 3


@pytest.mark.parametrize("is_sorted", [False, True], ids=["by row id", "by first column"])
@pytest.mark.parametrize("table", FULL_ACID)
def test_given_a_table_of_hives_when_it_is_spread_then_the_rows_are_those_of_hives_compaction(
    table: str, is_sorted: bool, tmp_path: Path
) -> None:
    [(directory, live)] = compacted(table, "11_minor_cleaned", MAJOR, tmp_path / "live")
    by_id = sorted(row for rows in events(by_hive(table, "12_major", directory)).values() for row in map(_keyed, rows))
    files, row_type = [str(path) for path in sorted(live.glob("bucket_*"))], last_row_type(table)
    pieces = runs_of(FS, files)
    assert pieces.rows == len(by_id)
    if is_sorted:
        pieces = in_order(FS, files, pieces, [SortItem(0, row_type.fields[0][1], False, False)])
    each = -(-pieces.rows // FILES)
    made = []
    for number, start in enumerate(range(0, pieces.rows, each)):
        target = str(tmp_path / "made" / f"bucket_{number:05d}")
        part = pieces.slice(start, start + each)
        share = Share(target, row_type, "zlib", encode(number), start, tuple(files), part, is_sorted)
        assert write_share(FS, share).rows == min(each, pieces.rows - start)
        made += stored(Path(target))
    assert [row[3] for row in made] == list(range(len(made)))
    if is_sorted:
        assert sorted(repr(row[5]) for row in made) == sorted(row for _, row in by_id)
        assert {row[1] for row in made} == {max(key[0] for key, _ in by_id)}
    else:
        assert [(row[1], repr(row[5])) for row in made] == [(key[0], row) for key, row in by_id]


def _keyed(event: tuple[Any, ...]) -> tuple[tuple[Any, ...], str]:
    return event[1:4], repr(event[5])


def test_the_golden_tables_are_there() -> None:
    assert {"wide", "ab", "emp"} <= set(FULL_ACID)
