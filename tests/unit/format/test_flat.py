"""A flat file of events becomes one of events: all readers find the same values, and metadata that are exact."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyorc
import pytest
from pyarrow import orc

from acidsql.errors import CorruptFile
from acidsql.format.bucket import encode
from acidsql.format.flat import FLAT_COLUMNS, nest_inserts, nest_rows
from acidsql.format.orc import read_footer
from acidsql.format.schema import KEY_INDEX_KEY, STATS_KEY
from acidsql.fs import LocalFileSystem

FS = LocalFileSystem()
NAMES = ("id", "text", "nested", "list", "map", "day", "price", "flag")
SCHEMA = (
    "struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint,"
    "c0:bigint,c1:string,c2:struct<x:int,y:string>,c3:array<string>,c4:map<string,int>,c5:date,c6:decimal(10,2),"
    "c7:boolean>"
)


def values(chance: random.Random, row: int) -> tuple[Any, ...]:
    """A row; some values are NULL."""
    made = (
        row * 7,
        chance.choice(["a", "b", "é" * 20, f"text {row}"]),
        (row, f"{row % 11}"),
        [str(n) for n in range(row % 4)],
        {"k": row},
        None,
        None,
        row % 3 == 0,
    )
    return tuple(None if chance.random() < 0.1 else one for one in made)


def flat(path: Path, rows: int, *, bucket: int = 3, stripe: int = 1 << 14, write_id: int = 5, **how: Any) -> list[Any]:
    """Write a flat file; its rows."""
    chance = random.Random(rows)
    made = [(0, write_id, encode(bucket), row, write_id, *values(chance, row)) for row in range(rows)]
    with path.open("wb") as file:
        writer = pyorc.Writer(file, SCHEMA, stripe_size=stripe, batch_size=256, **how)
        writer.writerows(made)
        writer.close()
    return made


@pytest.mark.parametrize("compression", ["NONE", "ZLIB", "SNAPPY", "LZ4", "ZSTD"])
@pytest.mark.parametrize("rows", [1, 10_000, 25_001])
def test_all_readers_find_what_was_there(tmp_path: Path, rows: int, compression: str) -> None:
    made = flat(tmp_path / "flat", rows, compression=pyorc.CompressionKind[compression])
    target = str(tmp_path / "bucket_00003")
    assert nest_inserts(FS, str(tmp_path / "flat"), target, NAMES, 3) == rows
    with open(target, "rb") as file:
        found = list(pyorc.Reader(file))
    assert [(*event[:5], *event[5]) for event in found] == made
    table = orc.ORCFile(target).read()
    plain = orc.ORCFile(str(tmp_path / "flat")).read()
    assert table.column_names == [*FLAT_COLUMNS, "row"]
    assert pa.concat_arrays(table["row"].chunks).flatten() == [
        pa.concat_arrays(plain[f"c{i}"].chunks) for i in range(len(NAMES))
    ]
    assert [f.name for f in table.schema.field("row").type] == list(NAMES)


def test_the_metadata_tell_the_last_key_of_each_stripe(tmp_path: Path) -> None:
    flat(tmp_path / "flat", 45_001)
    target = str(tmp_path / "bucket_00003")
    nest_inserts(FS, str(tmp_path / "flat"), target, NAMES, 3)
    footer = read_footer(FS, target)
    assert footer.is_acid
    assert len(footer.stripes) > 2
    ends, end = [], 0
    for stripe in footer.stripes:
        end += stripe.rows
        ends.append(f"5,{encode(3)},{end - 1};")
    assert footer.metadata[KEY_INDEX_KEY].decode() == "".join(ends)
    assert footer.metadata[STATS_KEY] == b"45001,0,0"


def test_one_stripe_after_another_can_be_sought(tmp_path: Path) -> None:
    """Readers that pass over rows look into the indexes, of ``row`` too."""
    made = flat(tmp_path / "flat", 25_001, stripe=1 << 24)
    target = str(tmp_path / "bucket_00003")
    nest_inserts(FS, str(tmp_path / "flat"), target, NAMES, 3)
    with open(target, "rb") as file:
        reader = pyorc.Reader(file)
        for row in (0, 9_999, 10_000, 20_123, 25_000):
            reader.seek(row)
            assert next(reader)[5][:5] == made[row][5:10]


@pytest.mark.parametrize(("made_for", "becomes"), [(3, 4), (0, 1)])
def test_events_of_another_bucket_are_refused(tmp_path: Path, made_for: int, becomes: int) -> None:
    flat(tmp_path / "flat", 10, bucket=made_for)
    with pytest.raises(CorruptFile, match="bucket"):
        nest_inserts(FS, str(tmp_path / "flat"), str(tmp_path / "x"), NAMES, becomes)
    assert not (tmp_path / "x").exists()


def test_nothing_is_written_for_no_row(tmp_path: Path) -> None:
    flat(tmp_path / "flat", 0)
    assert nest_inserts(FS, str(tmp_path / "flat"), str(tmp_path / "x"), NAMES, 3) == 0
    assert not (tmp_path / "x").exists()


# --- files of rows ---------------------------------------------------------------------------------------------------

WRITE_ID, BUCKET = 7, encode(3, 2)


def rows_file(path: Path, rows: int, **how: Any) -> list[Any]:
    """Write a file with the table's columns alone; its rows."""
    chance = random.Random(rows)
    made = [values(chance, row) for row in range(rows)]
    schema = SCHEMA[: len("struct<")] + SCHEMA[SCHEMA.index("c0:") :]
    with path.open("wb") as file:
        writer = pyorc.Writer(file, schema, **{"stripe_size": 1 << 14, "batch_size": 256, **how})
        writer.writerows(made)
        writer.close()
    return made


def nest(tmp_path: Path) -> str:
    target = str(tmp_path / "bucket_00003")
    nest_rows(FS, str(tmp_path / "rows"), target, NAMES, write_id=WRITE_ID, bucket=BUCKET)
    return target


def events_of(made: list[Any]) -> list[Any]:
    return [(0, WRITE_ID, BUCKET, number, WRITE_ID, row) for number, row in enumerate(made)]


@pytest.mark.parametrize("compression", ["NONE", "ZLIB", "SNAPPY", "LZ4", "ZSTD"])
@pytest.mark.parametrize("rows", [1, 2, 3, 513, 514, 10_000, 10_001, 25_001])
def test_rows_are_numbered_as_they_stand(tmp_path: Path, rows: int, compression: str) -> None:
    made = rows_file(tmp_path / "rows", rows, compression=pyorc.CompressionKind[compression])
    target = nest(tmp_path)
    with open(target, "rb") as file:
        assert list(pyorc.Reader(file)) == events_of(made)
    table = orc.ORCFile(target).read()
    assert table["rowId"].to_pylist() == list(range(rows))
    for name, value in zip(FLAT_COLUMNS, (0, WRITE_ID, BUCKET, None, WRITE_ID), strict=True):
        assert value is None or set(table[name].to_pylist()) == {value}
    plain = orc.ORCFile(str(tmp_path / "rows")).read()
    assert pa.concat_arrays(table["row"].chunks).flatten() == [
        pa.concat_arrays(plain[f"c{i}"].chunks) for i in range(len(NAMES))
    ]


def test_their_metadata_are_those_of_events(tmp_path: Path) -> None:
    rows_file(tmp_path / "rows", 45_001)
    footer = read_footer(FS, nest(tmp_path))
    assert footer.is_acid
    assert len(footer.stripes) > 2
    ends = [sum(stripe.rows for stripe in footer.stripes[: i + 1]) for i in range(len(footer.stripes))]
    assert footer.metadata[KEY_INDEX_KEY].decode() == "".join(f"{WRITE_ID},{BUCKET},{end - 1};" for end in ends)
    assert footer.metadata[STATS_KEY] == b"45001,0,0"


@pytest.mark.parametrize("compression", ["NONE", "ZLIB", "ZSTD"])
def test_any_of_them_can_be_sought(tmp_path: Path, compression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Index entries tell where the event columns go on, also behind the first chunk of compression."""
    monkeypatch.setattr("acidsql.format.event_columns.CHUNK_BYTES", 37)
    made = events_of(
        rows_file(tmp_path / "rows", 45_001, stripe_size=1 << 24, compression=pyorc.CompressionKind[compression])
    )
    with open(nest(tmp_path), "rb") as file:
        reader = pyorc.Reader(file)
        for row in (0, 9_999, 10_000, 20_123, 25_000, 39_999, 40_000, 45_000):
            reader.seek(row)
            assert next(reader) == made[row]


def test_the_statistics_are_those_that_another_writer_gives(tmp_path: Path) -> None:
    made = events_of(rows_file(tmp_path / "rows", 25_001, stripe_size=1 << 24))
    with (tmp_path / "other").open("wb") as file:
        schema = ",".join(
            f"{n}:{t}" for n, t in zip(FLAT_COLUMNS, ("int", "bigint", "int", "bigint", "bigint"), strict=True)
        )
        writer = pyorc.Writer(file, f"struct<{schema}>")
        writer.writerows(row[:5] for row in made)
        writer.close()
    with open(nest(tmp_path), "rb") as ours, (tmp_path / "other").open("rb") as theirs:
        found, expected = pyorc.Reader(ours), pyorc.Reader(theirs)
        for column in range(1, 6):
            assert found[column].statistics == expected[column].statistics, column
            assert next(found.iter_stripes())[column].statistics == next(expected.iter_stripes())[column].statistics


def test_no_row_no_file(tmp_path: Path) -> None:
    rows_file(tmp_path / "rows", 0)
    target = str(tmp_path / "x")
    assert nest_rows(FS, str(tmp_path / "rows"), target, NAMES, write_id=WRITE_ID, bucket=BUCKET) == 0
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("how", "names", "problem"),
    [
        ({"row_index_stride": 5_000}, NAMES, "an index entry for each 5000 rows"),
        ({"row_index_stride": 0}, NAMES, "an index entry for each 0 rows"),
        ({}, NAMES[:-1], "other columns"),
        ({}, (*NAMES, "more"), "other columns"),
    ],
)
def test_files_of_another_kind_are_refused(
    tmp_path: Path, how: dict[str, Any], names: tuple[str, ...], problem: str
) -> None:
    rows_file(tmp_path / "rows", 10, **how)
    with pytest.raises(CorruptFile, match=problem):
        nest_rows(FS, str(tmp_path / "rows"), str(tmp_path / "x"), names, write_id=WRITE_ID, bucket=BUCKET)
    assert not (tmp_path / "x").exists()
