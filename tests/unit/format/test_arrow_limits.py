"""What Arrow's ORC writer is given, so that it keeps every value."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest
from pyarrow import orc

from acidsql.format.arrow_limits import writable

STRUCTS = pa.array([None if n % 7 == 0 else {"a": n, "b": {"c": str(n)}} for n in range(100)])
LISTS = pa.array([[{"a": n}, None][: n % 3] for n in range(100)])
MAPS = pa.array([[(str(n), {"a": n})] for n in range(100)], pa.map_(pa.string(), pa.struct([("a", pa.int64())])))
CASES = {
    "struct": STRUCTS.slice(10, 50),
    "beginning of a struct": STRUCTS.slice(0, 50),
    "struct in a struct": pa.StructArray.from_arrays([STRUCTS], names=["x"]).slice(10, 50),
    "struct of a slice": pa.StructArray.from_arrays([STRUCTS.slice(10, 50)], names=["x"]),
    "list": LISTS.slice(10, 50),
    "list of a slice": pa.ListArray.from_arrays(pa.array([0, 3, 50], pa.int32()), STRUCTS.slice(10, 50)),
    "map": MAPS.slice(10, 50),
    "number": pa.array(range(100)).slice(10, 50),
}


@pytest.mark.parametrize("case", CASES)
def test_slices_and_null_structs_are_written_as_they_are(case: str) -> None:
    array, made = CASES[case], io.BytesIO()
    with orc.ORCWriter(made) as writer:
        writer.write(pa.table([writable(array)], names=["_"]))
    assert orc.ORCFile(io.BytesIO(made.getvalue())).read()["_"].to_pylist() == array.to_pylist()
