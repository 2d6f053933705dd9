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
from acidsql.format.flat import FLAT_COLUMNS, nest_inserts
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
