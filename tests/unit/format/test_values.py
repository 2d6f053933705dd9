"""Arrow columns as the ORC writer takes them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from acidsql.format.values import to_stored
from acidsql.types import parse_type


def _without_offsets(type: pa.DataType, child: pa.Array) -> pa.Array:
    """A nested array of no rows as Spark hands it out inside another: its buffer of offsets is empty."""
    return pa.Array.from_buffers(type, 0, [None, pa.py_buffer(b"")], children=[child])


def test_a_list_inside_a_null_has_no_offsets() -> None:
    empty = _without_offsets(pa.list_(pa.int32()), pa.array([], pa.int32()))
    assert list(to_stored(empty, parse_type("array<int>"))) == []
    outer = pa.StructArray.from_arrays([empty], names=["a"])
    rows = pa.ListArray.from_arrays(pa.array([0, 0, 0], pa.int32()), outer, mask=pa.array([True, False]))
    assert list(to_stored(rows, parse_type("array<struct<a:array<int>>>"))) == [None, ()]


@pytest.mark.parametrize("rows", [0, 2])
def test_a_map_inside_a_null_has_no_offsets(rows: int) -> None:
    type = pa.map_(pa.int32(), pa.string())
    some = pa.array([], type)
    pairs = pa.StructArray.from_arrays(
        [some.keys, some.items], fields=[pa.field("key", pa.int32(), False), pa.field("value", pa.string())]
    )
    outer = pa.StructArray.from_arrays([_without_offsets(type, pairs)], names=["m"])
    lists = pa.ListArray.from_arrays(pa.array([0] * (rows + 1), pa.int32()), outer)
    assert list(to_stored(lists, parse_type("array<struct<m:map<int,string>>>"))) == [()] * rows
