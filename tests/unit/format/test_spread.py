"""Rows of several files spread over new ones: in which order, under which ids, and every value as it was stored."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyorc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acidsql.format.bucket import encode
from acidsql.format.inputs import InputFile
from acidsql.format.names import DeltaName
from acidsql.format.orc import write_inserts
from acidsql.format.rewrite import Rewrite, StripeSizes, rewrite_rows
from acidsql.format.schema import KEY_INDEX_KEY, STATS_KEY, parse_key_index
from acidsql.format.spread import Pieces, Share, runs_of, write_share
from acidsql.format.tail import read_footer
from acidsql.format.values import CONVERTERS
from acidsql.fs import LocalFileSystem
from acidsql.types import Struct, parse_type
from acidsql.valid_ids import ValidWriteIdList
from tests.examples import examples

FS = LocalFileSystem()
SIZES = {"read": StripeSizes(), "written": StripeSizes()}
"""Of the files that are read and written, in this run (:func:`stripes`)."""
SIMPLE = Struct((("a", parse_type("string")), ("b", parse_type("int"))))
TYPE = parse_type(
    "struct<id:bigint,name:char(6),price:decimal(20,2),at:timestamp,tags:array<string>,share:double,day:date>"
)
assert isinstance(TYPE, Struct)
WIDE: Struct = TYPE
Row = tuple[Any, ...]

moments = st.one_of(
    st.integers(0, 4 * 10**15),
    st.integers(-(10**15), -(10**6)),
    st.sampled_from([-62135596800 * 10**6, 253402300799 * 10**6]),
)
"""Microseconds since 1970: also before, where Arrow's ORC writer is wrong, and beyond what its nanoseconds can hold."""
rows_of = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)),
        st.one_of(st.none(), st.text("aé😀 ", max_size=5)),
        st.one_of(st.none(), st.decimals(-(10**17), 10**17, places=2)),
        st.one_of(st.none(), moments),
        st.one_of(st.none(), st.lists(st.one_of(st.none(), st.text("xy", max_size=2)), max_size=2)),
        st.one_of(st.none(), st.sampled_from([0.0, 1.5, -2.0, math.inf, -math.inf, math.nan])),
        st.one_of(st.none(), st.integers(-700_000, 40_000)),
    ),
    min_size=1,
    max_size=6,
)


def wide(rows: Sequence[Row]) -> pa.Table:
    types = [pa.int64(), pa.string(), pa.decimal128(20, 2), pa.int64(), pa.list_(pa.string()), pa.float64(), pa.int32()]
    columns = [pa.array([row[i] for row in rows], t) for i, t in enumerate(types)]
    columns[3] = columns[3].cast(pa.timestamp("us"))
    columns[6] = columns[6].cast(pa.date32())
    return pa.table(columns, names=[name for name, _ in WIDE.fields])


def simple(*rows: tuple[str, int]) -> pa.Table:
    return pa.table({"a": [a for a, _ in rows], "b": pa.array([b for _, b in rows], pa.int32())})


def stored(path: Path | str) -> list[Row]:
    with open(path, "rb") as file:
        return list(pyorc.Reader(file, converters=CONVERTERS))


def live_file(root: Path, bucket: int, row_type: Struct, statements: dict[int, pa.Table]) -> str:
    """A bucket's file as a compaction leaves it, of what statements with these write ids wrote."""
    inputs = []
    for write_id, rows in statements.items():
        path = str(root / str(DeltaName(write_id, write_id, 0)) / f"bucket_{bucket:05d}")
        write_inserts(FS, path, row_type, rows, write_id=write_id, bucket=encode(bucket))
        inputs.append(InputFile(path, 0))
    ids = ValidWriteIdList("db.t", max(statements)).for_compaction()
    target = str(root / "live" / f"bucket_{bucket:05d}")
    rewrite_rows(FS, Rewrite(target, row_type, "zlib", ids, tuple(inputs), sizes=SIZES["read"]))
    return target


def written(root: Path, row_type: Struct, files: Sequence[str], pieces: Pieces, each: int, *, is_sorted: bool) -> Any:
    """The rows of each new file, after a look at what every reader relies on."""
    found = []
    for number, start in enumerate(range(0, pieces.rows, each)):
        path = str(root / "made" / f"bucket_{number:05d}")
        part = pieces.slice(start, start + each)
        write_share(
            FS, Share(path, row_type, "zlib", encode(number), start, tuple(files), part, is_sorted, SIZES["written"])
        )
        rows = stored(path)
        keys = [row[1:4] for row in rows]
        assert keys == sorted(keys)
        assert all(row[0] == 0 and row[1] == row[4] and row[2] == encode(number) for row in rows)
        footer = read_footer(FS, path)
        ends = [sum(s.rows for s in footer.stripes[: i + 1]) for i in range(len(footer.stripes))]
        assert list(parse_key_index(footer.metadata[KEY_INDEX_KEY])) == [keys[end - 1] for end in ends]
        assert footer.metadata[STATS_KEY] == b"%d,0,0" % len(rows)
        found.append([(row[1], row[3], row[5]) for row in rows])
    assert [row_id for rows in found for _, row_id, _ in rows] == list(range(pieces.rows))
    return found


# --- any rows --------------------------------------------------------------------------------------------------------

tables = st.lists(st.dictionaries(st.integers(1, 4), rows_of, min_size=1, max_size=3), min_size=1, max_size=3)


@pytest.fixture(params=["many stripes", "one stripe"], autouse=True)
def stripes(request: pytest.FixtureRequest) -> None:
    many = request.param == "many stripes"
    SIZES["read"] = StripeSizes(small_rows=1) if many else StripeSizes()
    SIZES["written"] = StripeSizes(group_rows=3) if many else StripeSizes()


@settings(deadline=None, max_examples=examples(12))
@given(tables, st.integers(1, 7))
def test_given_any_files_when_their_rows_are_spread_then_all_are_there_in_the_order_of_their_old_ids(
    buckets: list[dict[int, list[Row]]], each: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        files = [
            live_file(root, i, WIDE, {w: wide(rows) for w, rows in sorted(one.items())})
            for i, one in enumerate(buckets)
        ]
        before = sorted((row[1:4], repr(row[5])) for path in files for row in stored(path))
        made = written(root, WIDE, files, runs_of(FS, files), each, is_sorted=False)
        assert [(w, repr(row)) for rows in made for w, _, row in rows] == [(key[0], row) for key, row in before]
        assert [len(rows) for rows in made[:-1]] == [each] * (len(made) - 1)


# --- Hive's own case -------------------------------------------------------------------------------------------------

FIRST = (
    [("5", 4), ("6", 2), ("6", 3), ("6", 4), ("5", 2), ("5", 3)],
    [("2", 4)],
    [("3", 3), ("4", 4), ("4", 3)],
    [("2", 3), ("3", 4)],
)


@pytest.fixture
def hives_case(tmp_path: Path) -> list[str]:
    """Four buckets of one statement, and six rows more in the first (``TestCrudCompactorOnTez``)."""
    made = []
    for bucket, rows in enumerate(FIRST):
        single = {w: simple((str(w + 10), w + 10)) for w in range(2, 8)} if bucket == 0 else {}
        made.append(live_file(tmp_path, bucket, SIMPLE, {1: simple(*rows), **single}))
    return made


def test_given_hives_case_when_it_is_rebalanced_then_rows_and_ids_are_hives(
    hives_case: list[str], tmp_path: Path
) -> None:
    made = written(tmp_path, SIMPLE, hives_case, runs_of(FS, hives_case), 5, is_sorted=False)
    first = [row for rows in FIRST for row in rows]
    expected = [(1, *pair) for pair in enumerate(first)]
    expected += [(w, 10 + w, (str(w + 10), w + 10)) for w in range(2, 8)]
    assert made == [expected[:5], expected[5:10], expected[10:15], expected[15:]]
