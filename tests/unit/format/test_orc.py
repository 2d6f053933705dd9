"""ACID files written by acidsql, read back by pyorc, pyarrow and acidsql itself."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from datetime import date, datetime, timedelta
from decimal import Decimal as Number
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyorc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import orc as arrow_orc

from acidsql.errors import AcidError, CorruptFile, UnsupportedError
from acidsql.format.bucket import encode
from acidsql.format.orc import (
    Event,
    read_events,
    read_footer,
    read_keys,
    write_deletes,
    write_empty,
    write_inserts,
)
from acidsql.format.schema import EVENT_COLUMNS, AcidSchema, RecordKey, parse_key_index
from acidsql.format.values import CONVERTERS
from acidsql.fs import LocalFileSystem
from acidsql.types import Struct, parse_type

FS = LocalFileSystem()
GOLDEN = Path(__file__).parents[2] / "golden" / "data"


def row_type(text: str) -> Struct:
    found = parse_type(f"struct<{text}>")
    assert isinstance(found, Struct)
    return found


def keys_table(*keys: tuple[int, int, int]) -> pa.Table:
    names = ("originalTransaction", "bucket", "rowId")
    types = (pa.int64(), pa.int32(), pa.int64())
    columns = [pa.array([key[i] for key in keys], t) for i, t in enumerate(types)]
    return pa.table(columns, names=list(names))


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "delta_0000001_0000001_0000" / "bucket_00000")


def insert(path: str, types: str, **columns: Any) -> None:
    """One file of insert events of write id 1, bucket 0, from Arrow arrays by column name, not beside another."""
    rows = pa.table(columns)
    FS.delete(path)
    write_inserts(FS, path, row_type(types), rows, write_id=1, bucket=encode(0, 0))


def stored(path: str) -> list[tuple[Any, ...]]:
    with open(path, "rb") as file:
        return list(pyorc.Reader(file, converters=CONVERTERS))


def stored_column(path: str) -> list[Any]:
    return [row[5][0] for row in stored(path)]


def rows_of(path: str) -> list[dict[str, Any] | None]:
    return [event.row for event in read_events(FS, path)]


# --- insert events ---


def test_insert_events_count_their_rows_from_zero(path: str) -> None:
    types = row_type("id:int,name:string")
    rows = pa.table({"a": pa.array([7, 8], pa.int32()), "b": ["x", None]})
    assert write_inserts(FS, path, types, rows, write_id=5, bucket=encode(3, 2)) == 2
    prop = encode(3, 2)
    assert stored(path) == [(0, 5, prop, 0, 5, (7, "x")), (0, 5, prop, 1, 5, (8, None))]
    footer = read_footer(FS, path)
    assert footer.field_names == EVENT_COLUMNS
    assert footer.row_type == types
    assert footer.acid_schema is AcidSchema.EXACT
    assert footer.metadata == {
        "hive.acid.key.index": f"5,{prop},1;".encode(),
        "hive.acid.stats": b"2,0,0",
        "hive.acid.version": b"2",
    }


def test_row_ids_may_go_on_from_another_number(path: str) -> None:
    rows = pa.table({"a": pa.array([1, 2], pa.int32())})
    write_inserts(FS, path, row_type("a:int"), rows, write_id=1, bucket=encode(0, 0), first_row_id=10)
    assert [row[3] for row in stored(path)] == [10, 11]
    assert read_footer(FS, path).metadata["hive.acid.key.index"] == b"1,536870912,11;"


def test_an_insert_of_no_rows_is_an_empty_file_of_events(path: str) -> None:
    rows = pa.table({"a": pa.array([], pa.int32())})
    assert write_inserts(FS, path, row_type("a:int"), rows, write_id=1, bucket=encode(0, 0)) == 0
    assert read_footer(FS, path).metadata["hive.acid.key.index"] == b""


@pytest.mark.parametrize("rows", [1, 1023, 1024, 1025, 4096, 5000])
def test_the_key_index_names_the_last_row_of_every_stripe(path: str, rows: int) -> None:
    values = pa.table({"a": pa.array(range(rows))})
    write_inserts(FS, path, row_type("a:bigint"), values, write_id=1, bucket=encode(0, 0), stripe_bytes=1024 * 8)
    footer = read_footer(FS, path)
    assert sum(s.rows for s in footer.stripes) == rows
    assert len(footer.stripes) == -(-rows // 1024)
    with open(path, "rb") as file:
        last = [list(stripe)[-1] for stripe in pyorc.Reader(file).iter_stripes()]
    keys = parse_key_index(footer.metadata["hive.acid.key.index"])
    assert keys == tuple(RecordKey(*row[1:4]) for row in last)
    assert [row[3] for row in stored(path)] == list(range(rows))


def test_the_key_index_of_deletes_is_exact_over_several_stripes(path: str) -> None:
    keys = [(1 + i % 3, encode(0, i % 2), i) for i in range(3000)]
    write_deletes(FS, path, row_type("a:int"), keys_table(*keys), write_id=9, stripe_bytes=1024 * 20)
    with open(path, "rb") as file:
        last = [list(stripe)[-1] for stripe in pyorc.Reader(file).iter_stripes()]
    assert len(last) == 3
    index = parse_key_index(read_footer(FS, path).metadata["hive.acid.key.index"])
    assert index == tuple(RecordKey(*row[1:4]) for row in last)


@pytest.mark.parametrize("compression", ["none", "zlib", "snappy", "lz4", "zstd"])
def test_every_compression_is_written_and_its_footer_read(path: str, compression: str) -> None:
    names = [f"column_{i}" for i in range(300)]
    types = row_type(",".join(f"{n}:int" for n in names))
    rows = pa.table({n: pa.array([1, 2], pa.int32()) for n in names})
    write_inserts(FS, path, types, rows, write_id=1, bucket=encode(0, 0), compression=compression)
    footer = read_footer(FS, path)
    assert (footer.compression, footer.row_type, footer.row_count) == (compression, types, 2)
    assert arrow_orc.ORCFile(path).nrows == 2


@pytest.mark.parametrize("compression", ["lzo", "ZLIB", "gzip"])
def test_another_compression_is_refused_before_a_file_is_made(path: str, compression: str) -> None:
    with pytest.raises(UnsupportedError, match="cannot be written"):
        write_empty(FS, path, row_type("a:int"), compression=compression)
    assert not Path(path).exists()


def test_an_empty_file_of_events(path: str) -> None:
    write_empty(FS, path, row_type("a:int,b:string"))
    footer = read_footer(FS, path)
    assert (footer.row_count, footer.stripes, footer.is_acid) == (0, (), True)
    assert footer.metadata == {
        "hive.acid.key.index": b"",
        "hive.acid.stats": b"0,0,0",
        "hive.acid.version": b"2",
    }
    assert list(read_events(FS, path)) == []
    assert read_keys(FS, path).num_rows == 0


# --- values ---


def test_char_is_padded_to_its_length_and_varchar_is_not(path: str) -> None:
    insert(path, "c:char(4),v:varchar(4)", c=["żó", "abcd", "ab  ", None], v=["żó", "abcd", "a ", None])
    assert [row[5] for row in stored(path)] == [("żó  ", "żó"), ("abcd", "abcd"), ("ab  ", "a "), (None, None)]


@pytest.mark.parametrize("name", ["char", "varchar"])
def test_a_text_that_is_too_long_is_an_error_not_cut(path: str, name: str) -> None:
    with pytest.raises(AcidError, match=rf"5 characters does not fit into {name}\(3\)"):
        insert(path, f"c:{name}(3)", c=["abcde"])


def test_decimals_of_38_digits_keep_every_digit(path: str) -> None:
    values = [Number(f"{'9' * 28}.{'9' * 10}"), Number(f"-{'9' * 28}.{'9' * 10}"), Number("-1E-10"), Number(0), None]
    insert(path, "d:decimal(38,10)", d=pa.array(values, pa.decimal128(38, 10)))
    assert [None if v is None else Number(v) for v in stored_column(path)] == values


def test_a_decimal_of_another_scale_is_cast_where_nothing_is_lost(path: str) -> None:
    insert(path, "d:decimal(10,4)", d=pa.array([Number("1.5")], pa.decimal128(5, 1)))
    assert stored_column(path) == ["1.5000"]
    with pytest.raises(AcidError, match="does not fit its column's type"):
        insert(path, "d:decimal(10,1)", d=pa.array([Number("1.55")], pa.decimal128(5, 2)))


def test_a_number_that_does_not_fit_is_an_error(path: str) -> None:
    with pytest.raises(AcidError, match="does not fit its column's type"):
        insert(path, "a:tinyint", a=pa.array([300]))


@pytest.mark.parametrize(
    ("unit", "ticks", "expected"),
    [
        ("s", 5, (5, 0)),
        ("ms", -1, (-1, 999000000)),
        ("us", 1500001, (1, 500001000)),
        ("ns", 1123456789, (1, 123456789)),
        ("us", -62135596800 * 10**6, (-719164 * 86400, 0)),
        ("us", 253402300799999999, (253402300799, 999999000)),
        ("us", (-141428 + 10) * 86400 * 10**6, (-141418 * 86400, 0)),
        ("us", -12219292800000001, (-12219292800 + 10 * 86400 - 1, 999999000)),
    ],
)
def test_timestamps_are_stored_as_hybrid_wall_clocks_to_the_nanosecond(
    path: str, unit: str, ticks: int, expected: tuple[int, int]
) -> None:
    insert(path, "t:timestamp", t=pa.array([ticks, None], pa.int64()).cast(pa.timestamp(unit)))
    if expected[0] == -1:
        # ORC itself cannot tell the last second before 1970 from the first one after it (Hive has the same)
        expected = (0, expected[1])
    assert stored_column(path) == [expected, None]


def test_a_timestamp_with_a_zone_is_an_error(path: str) -> None:
    with pytest.raises(AcidError, match="must have no time zone"):
        insert(path, "t:timestamp", t=pa.array([0], pa.timestamp("us", tz="UTC")))


def test_float_and_double_are_told_apart(path: str) -> None:
    insert(path, "f:float,d:double", f=pa.array([1.1, float("nan")], pa.float32()), d=[1.1, float("-inf")])
    assert rows_of(path) == [{"f": 1.1, "d": 1.1}, {"f": "NaN", "d": "-Infinity"}]


def test_null_and_empty_in_every_nested_place(path: str) -> None:
    types = "l:array<array<int>>,m:map<string,int>,s:struct<x:int,y:array<int>>"
    columns = {
        "l": pa.array([[[1, None], None, []], [], None], pa.list_(pa.list_(pa.int32()))),
        "m": pa.array([[("a", None), ("b", 2)], [], None], pa.map_(pa.string(), pa.int32())),
        "s": pa.array(
            [{"x": None, "y": [3]}, {"x": 1, "y": None}, None],
            pa.struct([("x", pa.int32()), ("y", pa.list_(pa.int32()))]),
        ),
    }
    insert(path, types, **columns)
    assert rows_of(path) == [
        {"l": [[1, None], None, []], "m": {"a": None, "b": 2}, "s": {"x": None, "y": [3]}},
        {"l": [], "m": {}, "s": {"x": 1, "y": None}},
        {"l": None, "m": None, "s": None},
    ]


def test_slices_and_several_chunks_are_written_like_a_whole_column(path: str) -> None:
    t = pa.struct([("x", pa.list_(pa.decimal128(20, 2))), ("y", pa.map_(pa.string(), pa.timestamp("us")))])
    made = [{"x": [Number(i), None], "y": [(str(i), datetime(2020, 1, 1))]} if i % 3 else None for i in range(12)]
    whole = pa.array(made, t)
    rows = pa.table({"s": pa.chunked_array([whole.slice(2, 3), whole.slice(5, 0), whole.slice(5, 6)])})
    types = row_type("s:struct<x:array<decimal(20,2)>,y:map<string,timestamp>>")
    write_inserts(FS, path, types, rows, write_id=1, bucket=encode(0, 0))
    expected = [
        None if m is None else {"x": [f"{m['x'][0]}.00", None], "y": {m["y"][0][0]: "2020-01-01 00:00:00"}}
        for m in made[2:11]
    ]
    assert rows_of(path) == [{"s": e} for e in expected]


@pytest.mark.parametrize("name", ["self", "a b", "a.b", "a`b", "a:b", "a<b", "żółć", "row", "bucket", "x,y"])
def test_columns_and_fields_may_have_any_name(path: str, name: str) -> None:
    inner = parse_type("int")
    types = Struct(((name, Struct(((name, inner),))),))
    rows = pa.table({"c": pa.array([{"f": 1}], pa.struct([("f", pa.int32())]))})
    write_inserts(FS, path, types, rows, write_id=1, bucket=encode(0, 0))
    assert read_footer(FS, path).row_type == types
    assert rows_of(path) == [{name: {name: 1}}]
    assert read_keys(FS, path).num_rows == 1


def test_the_time_zone_of_the_process_does_not_matter(tmp_path: Path) -> None:
    code = (
        "import sys, pyarrow as pa\n"
        "from acidsql.format.orc import read_events, write_inserts\n"
        "from acidsql.fs import LocalFileSystem\n"
        "from acidsql.types import parse_type\n"
        "stamps = pa.array([0, 1583632800000000, -2208988800000000, -62135596800000000], pa.int64())\n"
        "rows = pa.table({'t': stamps.cast(pa.timestamp('us')), 'd': pa.array([0, 1, -141428, -719162], pa.int32())})\n"
        "t, fs = parse_type('struct<t:timestamp,d:date>'), LocalFileSystem()\n"
        "write_inserts(fs, sys.argv[1], t, rows.cast(pa.schema([('t', pa.timestamp('us')), ('d', pa.date32())])), "
        "write_id=1, bucket=536870912)\n"
        "print([e.row for e in read_events(fs, sys.argv[1])])"
    )
    written = []
    for zone in ("UTC", "America/New_York", "Asia/Kathmandu"):
        file = str(tmp_path / zone.replace("/", "_"))
        done = subprocess.run(
            [sys.executable, "-c", code, file],
            env={**os.environ, "TZ": zone},
            capture_output=True,
            text=True,
            check=True,
        )
        written.append((done.stdout, Path(file).read_bytes()))
    assert written[0] == written[1] == written[2]
    assert "'t': '2020-03-08 02:00:00'" in written[0][0]
    assert "{'t': '0001-01-01 00:00:00', 'd': '0001-01-01'}" in written[0][0]


# --- any values ---

LONGEST = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
_MICROS = st.integers(0, (date(9999, 12, 31) - date(1, 1, 1)).days * 86400 * 10**6).map(
    lambda m: datetime(1, 1, 1) + timedelta(microseconds=m)
)


def _gap(day: date) -> bool:
    """Whether the label is one of the ten that the Gregorian reform left out."""
    return date(1582, 10, 4) < day < date(1582, 10, 15)


def _bug(moment: datetime) -> bool:
    """Whether ORC takes the moment for one a second later."""
    return datetime(1969, 12, 31, 23, 59, 59) <= moment < datetime(1970, 1, 1)


def leaf(name: str) -> tuple[pa.DataType, st.SearchStrategy[Any], Any]:
    """Arrow type, values and what a dump shows of a value."""
    if name in LONGEST:
        bound = 2 ** LONGEST[name]
        return getattr(pa, f"int{LONGEST[name] + 1}")(), st.integers(-bound, bound - 1), lambda v: v
    return {
        "boolean": (pa.bool_(), st.booleans(), lambda v: v),
        "double": (pa.float64(), st.floats(allow_nan=False, allow_infinity=False), lambda v: v),
        "string": (pa.string(), st.text(st.characters(exclude_categories=["Cs"]), max_size=8), lambda v: v),
        "binary": (pa.binary(), st.binary(max_size=8), lambda v: f"hex:{v.hex()}"),
        "date": (pa.date32(), st.dates().filter(lambda d: not _gap(d)), lambda v: v.isoformat()),
        "timestamp": (pa.timestamp("us"), _MICROS.filter(lambda m: not _gap(m.date()) and not _bug(m)), _timestamp),
        "decimal(38,9)": (pa.decimal128(38, 9), st.decimals(-(10**28), 10**28, places=9), lambda v: f"{v:.9f}"),
        "char(6)": (pa.string(), st.text("ażb 日", max_size=6), lambda v: v.rstrip(" ").ljust(6)),
        "varchar(6)": (pa.string(), st.text("ażb 日", max_size=6), lambda v: v),
    }[name]


def _timestamp(moment: datetime) -> str:
    text = moment.isoformat(" ")
    return text.rstrip("0").rstrip(".") if moment.microsecond else text


LEAVES = [*LONGEST, "boolean", "double", "string", "binary", "date", "timestamp", "decimal(38,9)"]
LEAVES += ["char(6)", "varchar(6)"]


@st.composite
def typed_columns(draw: st.DrawFn, depth: int = 2) -> tuple[str, pa.DataType, st.SearchStrategy[Any], Any]:
    """A type: Hive's text, Arrow's, values, and what a dump shows of a value."""
    kind = draw(st.sampled_from(["leaf", "array", "map", "struct"] if depth else ["leaf"]))
    if kind == "leaf":
        name = draw(st.sampled_from(LEAVES))
        arrow, values, show = leaf(name)
        return name, arrow, st.none() | values, lambda v: None if v is None else show(v)
    inner, arrow, values, show = draw(typed_columns(depth - 1))
    if kind == "array":
        lists = st.lists(values, max_size=3)
        return f"array<{inner}>", pa.list_(arrow), st.none() | lists, lambda v: v and [show(x) for x in v]
    if kind == "map":
        maps = st.dictionaries(st.text("ab", max_size=2), values, max_size=3)
        shown = lambda v: v and {k: show(x) for k, x in v.items()}  # noqa: E731
        return f"map<string,{inner}>", pa.map_(pa.string(), arrow), st.none() | maps.map(_Pairs), shown
    structs = st.fixed_dictionaries({"x": values})
    return (
        f"struct<x:{inner}>",
        pa.struct([("x", arrow)]),
        st.none() | structs,
        lambda v: v and {"x": show(v["x"])},
    )


class _Pairs(dict[str, Any]):
    """A map that Arrow takes as one: it iterates over pairs."""

    def __iter__(self) -> Any:
        return iter(self.items())


def _pairs(value: Any) -> Any:
    """Maps as lists of pairs, all through a value, as Arrow wants them."""
    if isinstance(value, _Pairs):
        return [(k, _pairs(v)) for k, v in dict.items(value)]
    if isinstance(value, list):
        return [_pairs(v) for v in value]
    if isinstance(value, dict):
        return {k: _pairs(v) for k, v in value.items()}
    return value


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(data=st.data())
def test_any_value_of_any_type_comes_back(path: str, data: st.DataObject) -> None:
    name, arrow, values, show = data.draw(typed_columns())
    rows = data.draw(st.lists(values, max_size=5))
    insert(path, f"c:{name}", c=pa.array([_pairs(v) for v in rows], arrow))
    found = [None if row is None else row["c"] for row in rows_of(path)]
    assert found == [show(v) for v in rows]
    json.dumps(found)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(values=st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=20))
def test_floats_are_shown_by_a_shortest_number_that_is_that_float(path: str, values: list[float]) -> None:
    insert(path, "f:float", f=pa.array(values, pa.float32()))
    shown = [(row or {})["f"] for row in rows_of(path)]
    assert [struct.pack("f", v) for v in shown] == [struct.pack("f", v) for v in values]
    assert all(len(repr(s)) <= len(repr(v)) for s, v in zip(shown, values, strict=True))


# --- delete events ---


def test_delete_events_are_sorted_and_have_no_row(path: str) -> None:
    keys = [(3, encode(1, 0), 5), (1, encode(1, 1), 0), (1, encode(1, 0), 9), (1, encode(1, 0), 2)]
    assert write_deletes(FS, path, row_type("a:int"), keys_table(*keys), write_id=7) == 4
    assert stored(path) == [(2, *key, 7, None) for key in sorted(keys)]
    assert read_footer(FS, path).metadata == {
        "hive.acid.key.index": f"3,{encode(1, 0)},5;".encode(),
        "hive.acid.stats": b"0,0,4",
        "hive.acid.version": b"2",
    }
    assert read_keys(FS, path).to_pylist() == [
        {"originalTransaction": o, "bucket": b, "rowId": r, "currentTransaction": 7} for o, b, r in sorted(keys)
    ]


def test_the_same_delete_twice_is_an_error(path: str) -> None:
    keys = [(1, encode(0, 0), 2), (1, encode(0, 0), 3), (1, encode(0, 0), 2)]
    with pytest.raises(AcidError, match=r"row_id=2\) would be deleted twice"):
        write_deletes(FS, path, row_type("a:int"), keys_table(*keys), write_id=7)
    assert not Path(path).exists()


def test_deletes_of_two_writers_in_one_file_are_an_error(path: str) -> None:
    keys = [(1, encode(0, 0), 2), (1, encode(1, 0), 2)]
    with pytest.raises(AcidError, match=r"Deletes of several writers \(0, 1\)"):
        write_deletes(FS, path, row_type("a:int"), keys_table(*keys), write_id=7)
    assert not Path(path).exists()


def test_a_file_of_no_deletes_is_an_error(path: str) -> None:
    with pytest.raises(AcidError, match="must not be empty"):
        write_deletes(FS, path, row_type("a:int"), keys_table(), write_id=7)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(keys=st.sets(st.tuples(st.integers(0, 2**62), st.integers(0, 4095), st.integers(0, 2**62)), min_size=1))
def test_any_set_of_keys_comes_back_sorted(path: str, keys: set[tuple[int, int, int]]) -> None:
    made = [(txn, encode(5, statement), row) for txn, statement, row in keys]
    FS.delete(path)
    write_deletes(FS, path, row_type("a:int"), keys_table(*made), write_id=1)
    assert [tuple(row.values())[:3] for row in read_keys(FS, path).to_pylist()] == sorted(made)


# --- reading what others wrote ---


def test_keys_are_read_from_the_lower_case_columns_of_query_based_compaction() -> None:
    [file] = GOLDEN.glob("emp/11_minor_cleaned/data/delete_delta_*/bucket_00000")
    assert read_footer(FS, str(file)).acid_schema is AcidSchema.ANY_CASE
    keys = read_keys(FS, str(file))
    assert keys.column_names == ["originalTransaction", "bucket", "rowId", "currentTransaction"]
    assert keys.schema.types == [pa.int64(), pa.int32(), pa.int64(), pa.int64()]
    events = list(read_events(FS, str(file)))
    assert [e.operation for e in events] == [2] * keys.num_rows
    assert [e.row_id for e in events] == keys["rowId"].to_pylist()


def test_keys_are_not_mistaken_for_table_columns_of_the_same_names(path: str) -> None:
    types = row_type("operation:string,bucket:string,rowId:string,originalTransaction:string,row:string")
    rows = pa.table({n: ["x"] for n, _ in types.fields})
    write_inserts(FS, path, types, rows, write_id=4, bucket=encode(0, 0))
    assert read_keys(FS, path).to_pylist() == [
        {"originalTransaction": 4, "bucket": encode(0, 0), "rowId": 0, "currentTransaction": 4}
    ]


def plain_file(path: Path, schema: str, *rows: tuple[Any, ...], **options: Any) -> str:
    """An ORC file without ACID columns, as it lies in a table that was not transactional."""
    with open(path, "wb") as file, pyorc.Writer(file, schema, converters=CONVERTERS, **options) as writer:
        writer.writerows(rows)
    return str(path)


def test_a_file_without_acid_columns_is_told_and_its_rows_are_read(tmp_path: Path) -> None:
    file = plain_file(tmp_path / "000000_0", "struct<a:int,b:char(3)>", (1, "x"), (2, None))
    footer = read_footer(FS, file)
    assert (footer.is_acid, footer.row_type, footer.row_count) == (False, row_type("a:int,b:char(3)"), 2)
    assert [e.to_dict() for e in read_events(FS, file)] == [{"row": {"a": 1, "b": "x  "}}, {"row": {"a": 2, "b": None}}]
    with pytest.raises(CorruptFile, match="has no events: its columns are a, b"):
        read_keys(FS, file)


def test_events_are_printed_under_the_names_of_the_columns_in_their_order(path: str) -> None:
    insert(path, "a:int", a=pa.array([1], pa.int32()))
    [event] = read_events(FS, path)
    assert event == Event({"a": 1}, 0, 1, 536870912, 0, 1)
    assert json.dumps(event.to_dict()) == (
        '{"operation": 0, "originalTransaction": 1, "bucket": 536870912, "rowId": 0, "currentTransaction": 1, '
        '"row": {"a": 1}}'
    )


def test_dates_of_a_proleptic_file_are_taken_as_they_are(tmp_path: Path) -> None:
    file = Path(plain_file(tmp_path / "f", "struct<d:date>", (-719162,), compression=pyorc.CompressionKind.NONE))
    assert rows_of(str(file)) == [{"d": "0001-01-03"}]
    data = file.read_bytes()
    postscript = data[-1 - data[-1] : -1]
    assert postscript[0] == 0x08  # the length of the footer comes first
    assert postscript[1] < 0x7E
    longer = bytes([0x08, postscript[1] + 2]) + postscript[2:]
    file.write_bytes(data[: -1 - data[-1]] + b"\x58\x02" + longer + data[-1:])  # field 11: the calendar
    assert read_footer(FS, str(file)).proleptic
    assert rows_of(str(file)) == [{"d": "0001-01-01"}]


def test_a_column_of_a_union_type_is_refused_with_its_file(tmp_path: Path) -> None:
    file = plain_file(tmp_path / "f", "struct<u:uniontype<int,string>>")
    with pytest.raises(UnsupportedError, match=f"{file}: it has a column of a type that cannot be read"):
        read_footer(FS, file)


def test_lzo_is_refused_with_a_hint(tmp_path: Path) -> None:
    file = Path(plain_file(tmp_path / "f", "struct<a:int>", (1,), compression=pyorc.CompressionKind.NONE))
    data = file.read_bytes()
    head = data[-1 - data[-1] : -1]
    assert head[2:4] == b"\x10\x00"  # field 2: the compression
    at = len(data) - 1 - data[-1] + 3
    file.write_bytes(data[:at] + b"\x03" + data[at + 1 :])
    with pytest.raises(UnsupportedError, match="LZO"):
        read_footer(FS, str(file))


# --- files that are not what they should be ---

READERS = [read_footer, lambda fs, path: list(read_events(fs, path)), read_keys]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("content", [b"", b"ORC", b"1,Ann,5000\n" * 10, b"ORC" + bytes(100), bytes(100)])
def test_a_file_that_is_not_orc_is_corrupt(path: str, reader: Any, content: bytes) -> None:
    FS.write_bytes(path, content)
    with pytest.raises(CorruptFile, match=f"{path} is not a complete ORC file"):
        reader(FS, path)


@pytest.mark.parametrize("reader", READERS)
def test_a_file_cut_off_anywhere_is_corrupt(path: str, reader: Any) -> None:
    insert(path, "a:int,b:string", a=pa.array(range(50), pa.int32()), b=[f"name {i}" for i in range(50)])
    whole = Path(path).read_bytes()
    for length in range(0, len(whole), 7):
        Path(path).write_bytes(whole[:length])
        with pytest.raises(CorruptFile):
            reader(FS, path)


def test_a_broken_stripe_is_corrupt_when_its_rows_are_read(path: str) -> None:
    insert(path, "b:string", b=[f"name {i}" for i in range(5000)])
    data = bytearray(Path(path).read_bytes())
    stripe = read_footer(FS, path).stripes[0]
    for at in range(stripe.offset, stripe.offset + stripe.length):
        data[at] ^= 0x5A
    Path(path).write_bytes(bytes(data))
    assert read_footer(FS, path).row_count == 5000
    for reader in READERS[1:]:
        with pytest.raises(CorruptFile, match="is not a complete ORC file"):
            reader(FS, path)


@pytest.mark.parametrize("reader", READERS)
def test_a_file_that_is_gone_is_not_called_corrupt(path: str, reader: Any) -> None:
    with pytest.raises(FileNotFoundError):
        reader(FS, path)
