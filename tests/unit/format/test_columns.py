"""Stripes encoded column by column are those encoded at once: rows, statistics, and where indexes lead to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyorc
import pytest

from acidsql.format import delete_set, rewrite
from acidsql.format.bucket import encode
from acidsql.format.delete_set import reach
from acidsql.format.inputs import InputFile
from acidsql.format.names import DeltaName
from acidsql.format.orc import write_deletes, write_inserts
from acidsql.format.rewrite import Rewrite, StripeSizes, rewrite_rows
from acidsql.format.schema import EVENT_COLUMNS, KEY_COLUMNS, event_type
from acidsql.format.stripes import StripeFile, StripeSource, insert_events, statistics_of
from acidsql.format.tail import COMPRESSION_CODES, read_tail
from acidsql.format.values import CONVERTERS
from acidsql.fs import LocalFileSystem
from acidsql.protobuf import Message, bytes_of, number_of, read_message
from acidsql.types import Struct, parse_type
from acidsql.valid_ids import ValidWriteIdList

FS = LocalFileSystem()
ROWS = 25_000
"""Three entries of each index."""
BUCKET = encode(0)
TYPE = parse_type(
    "struct<l:bigint,i:int,s:smallint,b:tinyint,o:boolean,d:double,f:float,e:decimal(38,10),m:decimal(10,2),t:string,"
    "few:varchar(20),c:char(3),x:binary,y:date,a:timestamp,st:struct<p:int,q:string>,li:array<int>,"
    "ma:map<string,array<struct<z:bigint>>>>"
)
assert isinstance(TYPE, Struct)
ROW_TYPE: Struct = TYPE
WHOLE, BY_COLUMN = StripeSizes(column_bytes=1 << 60), StripeSizes(column_bytes=0)


def row(n: int) -> dict[str, Any]:
    values = {
        "l": n * 7919 - 10**6,
        "i": n % 1000,
        "s": n % 7 - 3,
        "b": n % 100 - 50,
        "o": n % 3 == 0,
        "d": n / 3,
        "f": n / 4,
        "e": Decimal(n) ** 5,
        "m": Decimal(n) / 100,
        "t": f"text {n * 31 % 65537} é😀",
        "few": f"value {n % 5}",
        "c": "abc"[: n % 4].ljust(3),
        "x": bytes([n % 256, n // 256]),
        "y": date(1970 + n % 100, 1 + n % 12, 1 + n % 28),
        "a": datetime(1990 + n % 50, 1 + n % 12, 1 + n % 28, n % 24, n % 60, n % 60, n),
        "st": {"p": n if n % 2 else None, "q": str(n)},
        "li": [n, None, -n][: n % 4],
        "ma": [(str(n), [{"z": n}, None][: n % 3])][: n % 2],
    }
    return {name: None if (n + place) % 11 == 0 else value for place, (name, value) in enumerate(values.items())}


ARROW = pa.schema(
    [
        ("l", pa.int64()),
        ("i", pa.int32()),
        ("s", pa.int16()),
        ("b", pa.int8()),
        ("o", pa.bool_()),
        ("d", pa.float64()),
        ("f", pa.float32()),
        ("e", pa.decimal128(38, 10)),
        ("m", pa.decimal128(10, 2)),
        ("t", pa.string()),
        ("few", pa.string()),
        ("c", pa.string()),
        ("x", pa.binary()),
        ("y", pa.date32()),
        ("a", pa.timestamp("ns")),
        ("st", pa.struct([("p", pa.int32()), ("q", pa.string())])),
        ("li", pa.list_(pa.int32())),
        ("ma", pa.map_(pa.string(), pa.list_(pa.struct([("z", pa.int64())])))),
    ]
)


@pytest.fixture(scope="module", params=COMPRESSION_CODES[:3] + COMPRESSION_CODES[4:])
def work(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Rewrite:
    """Two files, and deletes of rows of both."""
    root = tmp_path_factory.mktemp(request.param)
    inputs = []
    for write_id, rows in ((1, range(ROWS)), (2, range(50))):
        name = DeltaName(write_id, write_id, 0)
        path = str(root / str(name) / "bucket_00000")
        values = pa.array([row(n) for n in rows], pa.struct(list(ARROW)))
        with StripeFile.create(FS, path, event_type(ROW_TYPE), compression=request.param) as file:
            file.write([insert_events(values, write_id, BUCKET, 0)])
            file.close({})
        inputs.append(InputFile(path, reach(name)))
    ids = [(1, n) for n in range(0, ROWS, 9)] + [(2, 7)]
    keys = pa.table([[w for w, _ in ids], [BUCKET] * len(ids), [n for _, n in ids]], names=KEY_COLUMNS)
    name = DeltaName(3, 3, 0, is_delete=True)
    path = str(root / str(name) / "bucket_00000")
    write_deletes(FS, path, ROW_TYPE, keys, write_id=3)
    deletes = (InputFile(path, reach(name, deletes=True)),)
    ids_seen = ValidWriteIdList("d.t", 3)
    return Rewrite(str(root / "target"), ROW_TYPE, request.param, ids_seen, tuple(inputs), deletes)


def both(work: Rewrite) -> Iterator[str]:
    for number, sizes in enumerate((WHOLE, BY_COLUMN)):
        path = f"{work.target}{number}"
        Path(path).unlink(missing_ok=True)
        made = rewrite_rows(FS, replace(work, target=path, sizes=sizes))
        assert (made.rows, made.copied) == (ROWS + 50 - (ROWS + 8) // 9 - 1, 0)
        yield path


@pytest.fixture(autouse=True)
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows go to the writer, and are looked up among the deleted ones, in several blocks."""
    monkeypatch.setattr(rewrite, "_BLOCK", 1024)
    monkeypatch.setattr(delete_set, "_BLOCK", 1000)


def read(path: str) -> list[Any]:
    with open(path, "rb") as file:
        return list(pyorc.Reader(file, converters=CONVERTERS))


def test_given_all_types_when_rows_are_deleted_then_the_others_stay_as_they_were(work: Rewrite) -> None:
    inputs = [event for file in work.inputs for event in read(file.path)]
    left = [event for event in inputs if not (event[1] == 1 and event[3] % 9 == 0) and event[1:4:2] != (2, 7)]
    for path in both(work):
        assert read(path) == left


def test_given_all_types_when_they_are_encoded_by_column_then_types_statistics_and_metadata_are_the_same(
    work: Rewrite,
) -> None:
    whole, by_column = ([*_told(path)] for path in both(work))
    assert whole == by_column


def _told(path: str) -> Iterator[Any]:
    with open(path, "rb") as file:
        source = StripeSource(file, path)
        yield source.footer.metadata, source.footer.row_type
        yield [stripe.rows for stripe in source.stripes]
        of_stripes = [statistics_of(stripe, path) for stripe in source.stripes]
        for statistics in (*of_stripes, [bytes_of(one) for one in read_tail(file, path).footer[7]]):
            yield [_without_size(one) for one in statistics]
        footer = source.stripe_footer(0)
        yield [read_message(bytes_of(one)) for one in footer[2]], footer.get(3)
        streams = [read_message(bytes_of(one)) for one in footer[1]]
        yield [(number_of(s, 2), number_of(s, 1)) for s in streams if number_of(s, 1) == 6]
        yield sorted((number_of(s, 2), number_of(s, 1)) for s in streams)


def _without_size(statistics: bytes) -> Message:
    found = read_message(statistics)
    found.pop(11, None)
    return found


def test_given_more_rows_than_an_entry_of_an_index_when_a_reader_goes_to_a_row_then_it_is_that_row(
    work: Rewrite,
) -> None:
    *_, path = both(work)
    columns = [f"row.{name}" for name, _ in ROW_TYPE.fields if name != "st"]  # pyorc cannot skip a text in a struct
    for name in (*EVENT_COLUMNS[:-1], *columns):
        with open(path, "rb") as file:
            rows = list(pyorc.Reader(file, converters=CONVERTERS, column_names=[name]))
            reader = pyorc.Reader(file, converters=CONVERTERS, column_names=[name])
            for place in (20_001, 9_999, 10_000, 1, 19_999, 20_000, len(rows) - 1, 0):
                reader.seek(place)
                assert next(reader) == rows[place], name


def test_given_a_name_with_a_dot_when_rows_are_deleted_then_it_is_not_taken_for_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewrite, "stripe_of", None)
    row_type = Struct((("a.b", parse_type("int")), ("a", parse_type("struct<b:int>"))))
    rows = pa.table([pa.array([1, 2], pa.int32()), [{"b": 3}, {"b": 4}]], names=["a.b", "a"])
    path, deletes = str(tmp_path / "source"), str(tmp_path / "deletes")
    write_inserts(FS, path, row_type, rows, write_id=1, bucket=BUCKET)
    write_deletes(FS, deletes, row_type, pa.table([[1], [BUCKET], [0]], names=KEY_COLUMNS), write_id=2)
    files = InputFile(path, 0), InputFile(deletes, 1 << 20)
    target = str(tmp_path / "target")
    ids = ValidWriteIdList("d.t", 2)
    rewrite_rows(FS, Rewrite(target, row_type, "zlib", ids, files[:1], files[1:], sizes=BY_COLUMN))
    assert read(target) == [(0, 1, BUCKET, 1, 1, (2, (4,)))]


def test_given_another_compression_when_no_row_is_deleted_then_each_stays_as_it_was(work: Rewrite) -> None:
    """Blocks are slices then, of which Arrow's writer takes a struct's values from the beginning of the whole."""
    other = "snappy" if work.compression == "zlib" else "zlib"
    for sizes in (WHOLE, BY_COLUMN):
        Path(work.target).unlink(missing_ok=True)
        made = rewrite_rows(FS, replace(work, compression=other, deletes=(), sizes=sizes))
        assert (made.rows, made.copied) == (ROWS + 50, 0)
        assert read(work.target) == [event for file in work.inputs for event in read(file.path)]
