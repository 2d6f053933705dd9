"""Hive's events written once more by acidsql: the same stored values, statistics and user metadata, byte for byte."""

from __future__ import annotations

import random
from decimal import Decimal as Number
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyorc
import pytest
from pyarrow import orc

from acidsql.format.calendar import SECONDS_PER_DAY, to_proleptic
from acidsql.format.orc import OrcFooter, read_footer, read_keys, write_deletes, write_empty, write_inserts
from acidsql.format.values import CONVERTERS
from acidsql.fs import LocalFileSystem
from acidsql.types import Array, Char, Decimal, HiveType, Map, Primitive, Struct, Varchar

DATA = Path(__file__).parent / "data"
FS = LocalFileSystem()
LEAVES = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}


def written_once(prefix: str) -> list[str]:
    """Directories of one statement in ``emp`` and ``wide``, each once though it stands in many steps."""
    found = {}
    for table in ("emp", "wide"):
        for file in sorted((DATA / table).glob(f"*/data/{prefix}_*/bucket_*")):
            if "_v" not in file.parent.name:
                found.setdefault((table, file.parent.name, file.name), str(file.relative_to(DATA)))
    return sorted(found.values())


def stored_rows(path: str) -> list[tuple[Any, ...]]:
    with open(path, "rb") as file:
        return list(pyorc.Reader(file, converters=CONVERTERS))


def statistics(path: str) -> list[dict[str, Any]]:
    """Column statistics of the five event columns, which Hive filters deletes by."""
    with open(path, "rb") as file:
        reader = pyorc.Reader(file)
        return [reader[column].statistics for column in range(1, 6)]


def arrow_type(t: HiveType) -> pa.DataType:
    if isinstance(t, Primitive):
        return LEAVES[t.name]
    if isinstance(t, Decimal):
        return pa.decimal128(t.precision, t.scale)
    if isinstance(t, (Char, Varchar)):
        return pa.string()
    if isinstance(t, Array):
        return pa.list_(arrow_type(t.element))
    if isinstance(t, Map):
        return pa.map_(arrow_type(t.key), arrow_type(t.value))
    return pa.struct([pa.field(name, arrow_type(field)) for name, field in t.fields])


def arrow_value(value: Any, t: HiveType) -> Any:
    """A stored value as Spark would hand it over: proleptic days, wall clocks in microseconds."""
    if value is None:
        return None
    if isinstance(t, Array):
        return [arrow_value(v, t.element) for v in value]
    if isinstance(t, Map):
        return [(arrow_value(k, t.key), arrow_value(v, t.value)) for k, v in value.items()]
    if isinstance(t, Struct):
        return {name: arrow_value(v, field) for (name, field), v in zip(t.fields, value, strict=True)}
    if isinstance(t, Decimal):
        return Number(value)
    if isinstance(t, Char):
        return value.rstrip(" ")
    if t == Primitive("date"):
        return to_proleptic(value)
    if t == Primitive("timestamp"):
        day, second = divmod(value[0], SECONDS_PER_DAY)
        return (to_proleptic(day) * SECONDS_PER_DAY + second) * 10**6 + value[1] // 1000
    return value


def in_micros(value: Any, t: HiveType) -> Any:
    """A stored value as Spark can hold it: without the last three digits of nanoseconds."""
    if value is None:
        return None
    if isinstance(t, Array):
        return [in_micros(v, t.element) for v in value]
    if isinstance(t, Map):
        return {k: in_micros(v, t.value) for k, v in value.items()}
    if isinstance(t, Struct):
        return tuple(in_micros(v, field) for (_, field), v in zip(t.fields, value, strict=True))
    if t == Primitive("timestamp"):
        return value[0], value[1] // 1000 * 1000
    return value


def row_table(rows: list[tuple[Any, ...]], t: Struct) -> pa.Table:
    columns = [
        pa.array([arrow_value(row[i], field) for row in rows], arrow_type(field))
        for i, (_, field) in enumerate(t.fields)
    ]
    return pa.table(columns, names=[f"c{i}" for i in range(len(columns))])


def assert_same_file(ours: str, hives: str) -> OrcFooter:
    mine, theirs = read_footer(FS, ours), read_footer(FS, hives)
    assert mine.metadata == theirs.metadata
    assert mine.row_type == theirs.row_type
    assert (mine.field_names, mine.row_count) == (theirs.field_names, theirs.row_count)
    assert [s.rows for s in mine.stripes] == [s.rows for s in theirs.stripes]
    assert (mine.proleptic, mine.compression) == (theirs.proleptic, theirs.compression)
    assert statistics(ours) == statistics(hives)
    return mine


@pytest.mark.parametrize("name", written_once("delta"))
def test_insert_events_of_hive_written_again(name: str, tmp_path: Path) -> None:
    hives, ours = str(DATA / name), str(tmp_path / "bucket_00000")
    events = stored_rows(hives)
    row_type = read_footer(FS, hives).row_type
    _, write_id, bucket, first_row_id, _, _ = events[0]
    rows = row_table([event[5] for event in events], row_type)
    count = write_inserts(FS, ours, row_type, rows, write_id=write_id, bucket=bucket, first_row_id=first_row_id)
    assert count == len(events)
    assert_same_file(ours, hives)
    assert repr(stored_rows(ours)) == repr([(*event[:5], in_micros(event[5], row_type)) for event in events])


@pytest.mark.parametrize("name", written_once("delete_delta"))
def test_delete_events_of_hive_written_again_from_unsorted_keys(name: str, tmp_path: Path) -> None:
    hives, ours = str(DATA / name), str(tmp_path / "bucket_00000")
    keys = read_keys(FS, hives)
    [write_id] = set(keys["currentTransaction"].to_pylist())
    order = random.Random(1).sample(range(keys.num_rows), keys.num_rows)
    assert write_deletes(FS, ours, read_footer(FS, hives).row_type, keys.take(order), write_id=write_id) == len(order)
    assert_same_file(ours, hives)
    assert stored_rows(ours) == stored_rows(hives)
    assert read_keys(FS, ours) == keys


def test_pyarrow_reads_the_same_from_both_files(tmp_path: Path) -> None:
    hives, ours = str(DATA / "emp/01_insert/data/delta_0000001_0000001_0000/bucket_00000_0"), str(tmp_path / "ours")
    events = stored_rows(hives)
    row_type = read_footer(FS, hives).row_type
    write_inserts(FS, ours, row_type, row_table([e[5] for e in events], row_type), write_id=1, bucket=536870912)
    mine, theirs = orc.ORCFile(ours), orc.ORCFile(hives)
    assert mine.read() == theirs.read()
    assert dict(mine.metadata) == dict(theirs.metadata)


def test_the_empty_base_of_an_overwrite_differs_from_hives_in_saying_more(tmp_path: Path) -> None:
    hives, ours = str(DATA / "ow/07_overwrite_empty/data/base_0000009/bucket_00000_0"), str(tmp_path / "bucket_00000")
    theirs = read_footer(FS, hives)
    write_empty(FS, ours, theirs.row_type)
    mine = read_footer(FS, ours)
    assert (mine.row_count, mine.stripes, mine.row_type) == (0, (), theirs.row_type)
    assert mine.metadata["hive.acid.key.index"] == theirs.metadata["hive.acid.key.index"] == b""
    assert mine.metadata["hive.acid.version"] == b"2"


@pytest.mark.parametrize("name", [n for n in written_once("delta") if n.startswith("wide/01")])
def test_dates_before_1582_are_stored_as_the_days_that_hive_stores(name: str, tmp_path: Path) -> None:
    hives, ours = str(DATA / name), str(tmp_path / "bucket_00000")
    row_type = read_footer(FS, hives).row_type
    at = [n for n, _ in row_type.fields].index("dt")
    days = [event[5][at] for event in stored_rows(hives)]
    column = pa.table([pa.array([arrow_value(d, Primitive("date")) for d in days], pa.date32())], names=["dt"])
    write_inserts(FS, ours, Struct((("dt", Primitive("date")),)), column, write_id=1, bucket=536870912)
    assert [event[5][0] for event in stored_rows(ours)] == days


def test_the_files_compared_hold_the_dates_that_matter() -> None:
    found = set()
    for name in written_once("delta"):
        if name.startswith("wide/01"):
            rows = stored_rows(str(DATA / name))
            found |= {event[5][14] for event in rows}
    assert {-719164, -141428, -141427, 2932896} <= found
