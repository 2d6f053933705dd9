"""Random histories of a bucket, written as statements write them, compacted, read with pyorc: the rows that live."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyorc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acidsql.errors import CorruptFile, UnsupportedError
from acidsql.format.bucket import encode
from acidsql.format.delete_set import reach
from acidsql.format.inputs import InputFile, Original
from acidsql.format.names import BaseName, DeltaName
from acidsql.format.orc import write_deletes, write_inserts, write_rows
from acidsql.format.rewrite import Rewrite, StripeSizes, rewrite_deletes, rewrite_rows
from acidsql.format.schema import KEY_COLUMNS, KEY_INDEX_KEY, parse_key_index
from acidsql.format.tail import read_footer
from acidsql.format.values import CONVERTERS
from acidsql.fs import LocalFileSystem
from acidsql.types import Struct, parse_type
from acidsql.valid_ids import ValidWriteIdList
from tests.examples import examples

FS = LocalFileSystem()
SIZES = [StripeSizes()]
"""The one that all tests of a run go by (:func:`small`)."""
BUCKET = encode(0)
TYPE = parse_type("struct<id:bigint,name:varchar(20),price:decimal(20,2),at:timestamp,tags:array<string>>")
assert isinstance(TYPE, Struct)
ROW_TYPE: Struct = TYPE

Row = tuple[Any, ...]
Key = tuple[int, int, int]

moments = st.one_of(
    st.integers(0, 4 * 10**15),
    st.integers(-(10**15), -(10**6)),
    st.sampled_from([-62135596800 * 10**6, 253402300799 * 10**6]),
)
"""Microseconds since 1970: also before, where Arrow's ORC writer is wrong, and beyond what its nanoseconds can hold.

Not in the last second before 1970, of which ORC itself loses the sign.
"""
rows_of = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
        st.one_of(st.none(), st.text("aé😀 ", max_size=5)),
        st.one_of(st.none(), st.decimals(-(10**17), 10**17, places=2)),
        st.one_of(st.none(), moments),
        st.one_of(st.none(), st.lists(st.one_of(st.none(), st.text("xy", max_size=2)), max_size=2)),
    ),
    min_size=1,
    max_size=12,
)


@dataclass(frozen=True)
class Statement:
    """What a write id does: new rows, and which of the rows that live then it deletes; whether it is aborted."""

    rows: list[Row]
    deleted: list[int]
    is_aborted: bool = False


statements = st.lists(
    st.builds(Statement, rows_of, st.lists(st.integers(0, 40), max_size=6), st.sampled_from([False, False, True])),
    min_size=1,
    max_size=5,
)


def table_of(rows: list[Row]) -> pa.Table:
    types = [pa.int64(), pa.string(), pa.decimal128(20, 2), pa.timestamp("us"), pa.list_(pa.string())]
    arrays = [pa.array([row[i] for row in rows], pa.int64() if i == 3 else t) for i, t in enumerate(types)]
    arrays[3] = arrays[3].cast(types[3])
    return pa.table(arrays, names=[name for name, _ in ROW_TYPE.fields])


def stored(path: str) -> list[Row]:
    with open(path, "rb") as file:
        return list(pyorc.Reader(file, converters=CONVERTERS))


class History:
    """The files of a bucket, and the rows that live in them."""

    def __init__(self, root: str, first: int = 1) -> None:
        self.root = root
        self.next_id = first
        self.inputs: list[InputFile] = []
        self.deletes: list[InputFile] = []
        self.aborted: list[int] = []
        self.live: dict[Key, Row] = {}
        self.events: dict[Key, int] = {}

    def run(self, statement: Statement) -> None:
        """Write the files of one write id: a delete delta and a delta of the same statement."""
        write_id = self.next_id
        self.next_id += 1
        keys = sorted({key for at in statement.deleted for key in list(self.live)[at : at + 1]})
        if keys:
            name = DeltaName(write_id, write_id, 0, is_delete=True)
            path = f"{self.root}/{name}/bucket_00000"
            columns = {column: [key[i] for key in keys] for i, column in enumerate(KEY_COLUMNS)}
            write_deletes(FS, path, ROW_TYPE, pa.table(columns), write_id=write_id)
            self.deletes.append(InputFile(path, reach(name, deletes=True)))
        name = DeltaName(write_id, write_id, 0)
        path = f"{self.root}/{name}/bucket_00000"
        write_inserts(FS, path, ROW_TYPE, table_of(statement.rows), write_id=write_id, bucket=BUCKET)
        self.inputs.append(InputFile(path, reach(name)))
        if statement.is_aborted:
            self.aborted.append(write_id)
            return
        for key in keys:
            del self.live[key]
            self.events[key] = write_id
        self.live.update({event[1:4]: event[5] for event in stored(path)})

    def rewrite(self, target: str, *, applies_deletes: bool = True) -> Rewrite:
        ids = ValidWriteIdList("db.t", self.next_id - 1, (), tuple(self.aborted)).for_compaction()
        return Rewrite(
            target, ROW_TYPE, "zlib", ids, tuple(self.inputs), tuple(self.deletes), applies_deletes, sizes=SIZES[0]
        )


def live_rows(path: str) -> list[tuple[Key, Row]]:
    """Keys and values of a file of inserts, after a look at what every reader relies on."""
    events = stored(path)
    keys = [event[1:4] for event in events]
    assert keys == sorted(set(keys))
    assert all(event[0] == 0 and event[1] == event[4] for event in events)
    footer = read_footer(FS, path)
    ends = [sum(s.rows for s in footer.stripes[: i + 1]) for i in range(len(footer.stripes))]
    assert list(parse_key_index(footer.metadata[KEY_INDEX_KEY])) == [keys[end - 1] for end in ends]
    return [(event[1:4], event[5]) for event in events]


SMALL = {
    "few rows are small": StripeSizes(small_rows=3, group_rows=4),
    "all rows are small": StripeSizes(),
    "column by column": StripeSizes(column_bytes=0),
}


@pytest.fixture(params=SMALL, autouse=True)
def small(request: pytest.FixtureRequest) -> None:
    """Stripes of more than two rows are copied in one of the runs, merged in the others."""
    SIZES[0] = SMALL[request.param]


@settings(deadline=None, max_examples=examples(25))
@given(statements, st.integers(1, 4))
def test_given_any_history_when_it_is_compacted_once_or_twice_then_just_the_live_rows_are_left_as_they_were(
    history: list[Statement], first: int
) -> None:
    with tempfile.TemporaryDirectory() as root:
        bucket = History(root)
        for statement in history[:first]:
            bucket.run(statement)
        rewrite_rows(FS, bucket.rewrite(f"{root}/base_1/bucket_00000"))
        assert live_rows(f"{root}/base_1/bucket_00000") == sorted(bucket.live.items())
        base = InputFile(f"{root}/base_1/bucket_00000", reach(BaseName(bucket.next_id - 1)))
        bucket.inputs, bucket.deletes = [base], []
        for statement in history[first:]:
            bucket.run(statement)
        made = rewrite_rows(FS, bucket.rewrite(f"{root}/base_2/bucket_00000"))
        assert live_rows(f"{root}/base_2/bucket_00000") == sorted(bucket.live.items())
        assert made.rows == len(bucket.live)


@settings(deadline=None, max_examples=examples(25))
@given(statements)
def test_given_any_history_when_its_deltas_are_put_together_then_all_events_but_the_aborted_are_there(
    history: list[Statement],
) -> None:
    with tempfile.TemporaryDirectory() as root:
        bucket = History(root)
        for statement in history:
            bucket.run(statement)
        work = bucket.rewrite(f"{root}/delta/bucket_00000", applies_deletes=False)
        rewrite_rows(FS, work)
        everything = dict(live_rows(work.target))
        assert everything.keys() == bucket.live.keys() | bucket.events.keys()
        assert bucket.live.items() <= everything.items()
        if not bucket.deletes:
            return
        work = replace(work, target=f"{root}/delete_delta/bucket_00000")
        made = rewrite_deletes(FS, work)
        assert made.rows == len(bucket.events)
        if bucket.events:
            expected = [(2, *key, write_id, None) for key, write_id in sorted(bucket.events.items())]
            assert stored(work.target) == expected
        else:
            assert not Path(work.target).exists()


# --- other files than those of events --------------------------------------------------------------------------------

SIMPLE = Struct((("a", parse_type("int")), ("t", parse_type("timestamp"))))
OLD = Struct(SIMPLE.fields[:1])
IDS = ValidWriteIdList("db.t", 9).for_compaction()


def numbers(*values: int) -> pa.Table:
    return pa.table({"a": pa.array(values, pa.int32())})


def work_of(tmp_path: Path, *files: InputFile, row_type: Struct = SIMPLE, has_events: bool = True) -> Rewrite:
    return Rewrite(
        str(tmp_path / "made" / "bucket_00000"), row_type, "zlib", IDS, files, has_events=has_events, sizes=SIZES[0]
    )


def test_given_original_files_of_an_old_schema_when_they_are_compacted_then_their_row_ids_stay_and_new_columns_are_null(
    tmp_path: Path,
) -> None:
    for name, values in (("000000_0", (7, 8)), ("000000_0_copy_1", (9,))):
        write_rows(FS, str(tmp_path / name), OLD, numbers(*values))
    first = InputFile(str(tmp_path / "000000_0"), 0, original=Original(0, BUCKET, 0))
    second = InputFile(str(tmp_path / "000000_0_copy_1"), 0, original=Original(0, BUCKET, 2))
    work = work_of(tmp_path, first, second)
    rewrite_rows(FS, work)
    assert stored(work.target) == [(0, 0, BUCKET, i, 0, (a, None)) for i, a in enumerate((7, 8, 9))]


def test_given_bare_rows_when_they_are_put_together_then_they_stay_bare(tmp_path: Path) -> None:
    files = []
    for number, row_type in enumerate((OLD, SIMPLE)):
        path = str(tmp_path / f"{number}" / "000000_0")
        rows = numbers(number, number + 10)
        if row_type is SIMPLE:
            rows = rows.append_column("t", pa.array([-1_500_000, None], pa.timestamp("us")))
        write_rows(FS, path, row_type, rows)
        files.append(InputFile(path, 0))
    work = work_of(tmp_path, *files, has_events=False)
    made = rewrite_rows(FS, work)
    assert stored(work.target) == [(0, None), (10, None), (1, (-2, 500_000_000)), (11, None)]
    assert (made.rows, made.dropped) == (4, 0)


def v1_file(tmp_path: Path, *events: Row) -> InputFile:
    """A file of ACID version 1, where updates and deletes stand among the inserts."""
    path = tmp_path / "delta_0000001_0000003" / "bucket_00000"
    path.parent.mkdir()
    schema = "struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint,"
    with path.open("wb") as file, pyorc.Writer(file, schema + "row:struct<a:int>>") as writer:
        writer.writerows(events)
    return InputFile(str(path), 0)


def test_given_a_file_of_version_1_when_it_is_compacted_then_the_latest_version_of_each_row_is_left(
    tmp_path: Path,
) -> None:
    events = [
        (1, 1, BUCKET, 0, 3, (12,)),
        (1, 1, BUCKET, 0, 2, (11,)),
        (0, 1, BUCKET, 0, 1, (10,)),
        (2, 1, BUCKET, 1, 2, None),
        (0, 1, BUCKET, 1, 1, (20,)),
        (0, 1, BUCKET, 2, 1, (30,)),
        (2, 1, BUCKET, 2, 10, None),
    ]
    work = work_of(tmp_path, v1_file(tmp_path, *events), row_type=OLD)
    made = rewrite_rows(FS, work)
    assert stored(work.target) == [(0, 1, BUCKET, 0, 3, (12,)), (0, 1, BUCKET, 2, 1, (30,))]
    assert (made.rows, made.dropped) == (2, 5)


def test_given_a_file_of_version_1_when_its_deltas_are_put_together_then_all_events_are_left(tmp_path: Path) -> None:
    events = [(1, 1, BUCKET, 0, 2, (11,)), (0, 1, BUCKET, 0, 1, (10,)), (2, 1, BUCKET, 1, 2, None)]
    work = replace(work_of(tmp_path, v1_file(tmp_path, *events), row_type=OLD), applies_deletes=False)
    rewrite_rows(FS, work)
    assert stored(work.target) == events


def test_given_a_delete_of_an_earlier_write_id_than_the_row_when_it_is_compacted_then_it_hides_nothing_as_for_readers(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "delta_0000005_0000005_0000" / "bucket_00000")
    write_inserts(FS, path, OLD, numbers(1), write_id=5, bucket=BUCKET)
    deletes = str(tmp_path / "delete_delta_0000004_0000004_0000" / "bucket_00000")
    keys = pa.table({"originalTransaction": [5], "bucket": pa.array([BUCKET], pa.int32()), "rowId": [0]})
    write_deletes(FS, deletes, OLD, keys, write_id=4)
    work = work_of(tmp_path, InputFile(path, reach(DeltaName(5, 5, 0))), row_type=OLD)
    late = InputFile(deletes, reach(DeltaName(4, 4, 0, is_delete=True), deletes=True))
    assert rewrite_rows(FS, replace(work, deletes=(late,))).rows == 1


def test_given_no_row_left_when_it_is_compacted_then_the_file_is_there_and_empty(tmp_path: Path) -> None:
    work = work_of(tmp_path)
    assert rewrite_rows(FS, work).rows == 0
    assert stored(work.target) == []
    assert read_footer(FS, work.target).metadata[KEY_INDEX_KEY] == b""


def test_given_a_file_of_other_types_when_it_is_compacted_then_it_is_refused(tmp_path: Path) -> None:
    write_inserts(FS, str(tmp_path / "f"), OLD, numbers(1), write_id=1, bucket=BUCKET)
    other = Struct((("a", parse_type("string")),))
    with pytest.raises(UnsupportedError, match="columns of other types"):
        rewrite_rows(FS, work_of(tmp_path, InputFile(str(tmp_path / "f"), 0), row_type=other))


def test_given_a_file_without_events_where_there_should_be_some_when_it_is_compacted_then_it_is_refused(
    tmp_path: Path,
) -> None:
    write_rows(FS, str(tmp_path / "f"), OLD, numbers(1))
    with pytest.raises(CorruptFile, match="no event columns"):
        rewrite_rows(FS, work_of(tmp_path, InputFile(str(tmp_path / "f"), 0), row_type=OLD))


def test_given_a_file_of_another_compression_when_it_is_compacted_then_it_is_encoded_anew(tmp_path: Path) -> None:
    files = []
    for number, compression in enumerate(("zlib", "snappy", "zstd", "lz4", "none"), start=1):
        path = str(tmp_path / f"delta_{number:07d}_{number:07d}_0000" / "bucket_00000")
        write_inserts(FS, path, OLD, numbers(number), write_id=number, bucket=BUCKET, compression=compression)
        files.append(InputFile(path, reach(DeltaName(number, number, 0))))
    for compression in ("zlib", "snappy", "zstd", "lz4", "none"):
        work = replace(work_of(tmp_path, *files, row_type=OLD), compression=compression)
        work = replace(work, target=str(tmp_path / compression))
        rewrite_rows(FS, work)
        assert [event[5] for event in stored(work.target)] == [(n,) for n in range(1, 6)]
        assert read_footer(FS, work.target).compression == compression


def test_given_ten_thousand_rows_and_one_delete_when_they_are_compacted_then_only_the_stripe_with_it_is_encoded(
    tmp_path: Path,
) -> None:
    path, deletes = str(tmp_path / "base" / "bucket_00000"), str(tmp_path / "deletes" / "bucket_00000")
    write_inserts(FS, path, OLD, numbers(*range(20_000)), write_id=1, bucket=BUCKET, stripe_bytes=16 * 1024)
    keys = pa.table({"originalTransaction": [1], "bucket": pa.array([BUCKET], pa.int32()), "rowId": [7000]})
    write_deletes(FS, deletes, OLD, keys, write_id=2)
    late = InputFile(deletes, reach(DeltaName(2, 2, 0, is_delete=True), deletes=True))
    work = replace(work_of(tmp_path, InputFile(path, 0), row_type=OLD), sizes=StripeSizes(small_rows=100))
    made = rewrite_rows(FS, replace(work, deletes=(late,)))
    assert made.copied == len(read_footer(FS, path).stripes) - 1
    assert (made.encoded, made.rows, made.dropped) == (1, 19_999, 1)
    ids = [event[3] for event in stored(str(tmp_path / "made" / "bucket_00000"))]
    assert ids == [i for i in range(20_000) if i != 7000]
