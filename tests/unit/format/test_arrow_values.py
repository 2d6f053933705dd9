"""What Arrow writes is what pyorc writes, value by value; what Arrow would change is left to pyorc."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal as Number
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyorc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acidsql.errors import AcidError
from acidsql.format import orc
from acidsql.format.arrow_values import arrow_values
from acidsql.format.values import CONVERTERS
from acidsql.fs import LocalFileSystem
from acidsql.types import Char, Decimal, HiveType, Primitive, Struct, Varchar

FS = LocalFileSystem()
TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=9)
LEAVES: list[tuple[HiveType, pa.DataType, st.SearchStrategy[Any]]] = [
    (Primitive("boolean"), pa.bool_(), st.booleans()),
    (Primitive("tinyint"), pa.int8(), st.integers(-128, 127)),
    (Primitive("smallint"), pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    (Primitive("int"), pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (Primitive("bigint"), pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (Primitive("float"), pa.float32(), st.floats(width=32)),
    (Primitive("double"), pa.float64(), st.floats()),
    (Primitive("string"), pa.string(), TEXTS),
    (Primitive("binary"), pa.binary(), st.binary(max_size=9)),
    (Primitive("date"), pa.date32(), st.dates(date(1, 1, 1), date(9999, 12, 31))),
    (Primitive("timestamp"), pa.timestamp("us"), st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59))),
    (Primitive("timestamp"), pa.timestamp("us"), st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31, 23, 59))),
    (Decimal(7, 2), pa.decimal128(7, 2), st.decimals(-99999, 99999, places=2)),
    (Decimal(38, 18), pa.decimal128(38, 18), st.decimals(Number("-1e19"), Number("1e19"), places=18)),
    (Char(9), pa.string(), TEXTS),
    (Varchar(9), pa.string(), TEXTS),
]


@st.composite
def columns(draw: st.DrawFn, rows: int, depth: int = 0) -> tuple[HiveType, pa.Array]:
    """A column of some type; structs are NULL at places where their fields are not."""
    if depth < 3 and draw(st.integers(0, 2)) == 0:
        fields = [draw(columns(rows, depth + 1)) for _ in range(draw(st.integers(1, 3)))]
        names = [f"f{i}" for i in range(len(fields))]
        mask = pa.array(draw(st.lists(st.booleans(), min_size=rows, max_size=rows)), pa.bool_())
        made = pa.StructArray.from_arrays([array for _, array in fields], names=names, mask=mask)
        return Struct(tuple(zip(names, (type for type, _ in fields), strict=True))), made
    type, of_arrow, values = draw(st.sampled_from(LEAVES))
    found = draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
    return type, pa.array(found, of_arrow)


@st.composite
def tables(draw: st.DrawFn) -> tuple[Struct, pa.Table]:
    """Rows, some of a larger table's."""
    rows = draw(st.integers(1, 12))
    found = [draw(columns(rows)) for _ in range(draw(st.integers(1, 4)))]
    names = [f"c{i}" for i in range(len(found))]
    table = pa.table([array for _, array in found], names=names)
    first = draw(st.integers(0, rows - 1))
    return Struct(tuple(zip(names, (type for type, _ in found), strict=True))), table.slice(first)


def stored(path: Path) -> list[Any]:
    with path.open("rb") as file:
        return [nan_free(row) for row in pyorc.Reader(file, converters=CONVERTERS)]


def nan_free(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(nan_free, value))
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(tables())
def test_both_write_the_same(tmp_path: Path, drawn: tuple[Struct, pa.Table]) -> None:
    row_type, rows = drawn
    files = []
    for number, way in enumerate((arrow_values, lambda *_: None)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(orc, "arrow_values", way)
            files.append(tmp_path / f"bucket_{number}")
            files[-1].unlink(missing_ok=True)
            options = {"write_id": 3, "bucket": 536870912, "stripe_bytes": 100}
            assert orc.write_inserts(FS, str(files[-1]), row_type, rows, **options) == rows.num_rows
    assert stored(files[0]) == stored(files[1])
    by_arrow, by_pyorc = (orc.read_footer(FS, str(path)) for path in files)
    assert by_arrow.row_type == by_pyorc.row_type
    assert by_arrow.metadata == by_pyorc.metadata


@pytest.mark.parametrize(
    ("type", "array"),
    [
        (Primitive("date"), pa.array([date(1582, 10, 4)])),
        (Primitive("timestamp"), pa.array([datetime(1969, 12, 31, 23, 59, 59, 1)])),
        (Primitive("timestamp"), pa.array([datetime(1200, 1, 1)])),
        (Primitive("timestamp with local time zone"), pa.array([1])),
    ],
)
def test_what_arrow_would_change_it_is_not_given(type: HiveType, array: pa.Array) -> None:
    rows = pa.record_batch([array], names=["c"])
    assert arrow_values(rows, Struct((("c", type),))) is None


def test_a_text_that_is_too_long_is_refused() -> None:
    rows = pa.record_batch([pa.array(["abc"])], names=["c"])
    for type in (Char(2), Varchar(2)):
        with pytest.raises(AcidError, match="3 characters does not fit"):
            arrow_values(rows, Struct((("c", type),)))
