"""What a job has written becomes a bucket file only if its events say the same."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from acidsql.errors import CorruptFile
from acidsql.format.bucket import encode
from acidsql.format.orc import write_inserts
from acidsql.format.orc_statistics import integer_range
from acidsql.format.tail import read_tail
from acidsql.fs.local import LocalFileSystem
from acidsql.plan.job_files import rows_of
from acidsql.types import Primitive, Struct

FS = LocalFileSystem()
ROW = Struct((("bucket", Primitive("bigint")), ("v", Primitive("string"))))


@pytest.fixture
def events(tmp_path: Path) -> str:
    rows = pa.table({"bucket": [-7, 99, None], "v": ["a", "b", None]})
    write_inserts(FS, str(tmp_path / "part"), ROW, rows, write_id=5, bucket=encode(3, 2), first_row_id=10)
    return str(tmp_path / "part")


def test_a_file_has_the_number_of_its_events(events: str) -> None:
    assert rows_of(FS, events, 3) == rows_of(FS, events, None) == 3
    for other in (0, 2, 4, 4095):
        with pytest.raises(CorruptFile, match=f"written as bucket {other}, have bucket properties"):
            rows_of(FS, events, other)


def test_the_range_of_a_column_is_that_of_its_statistics(events: str) -> None:
    with FS.open_read(events) as file:
        tail = read_tail(file, events)
    assert [integer_range(tail, i) for i in range(1, 6)] == [(0, 0), (5, 5), (encode(3, 2),) * 2, (10, 12), (5, 5)]
    assert integer_range(tail, 7) == (-7, 99)
    assert integer_range(tail, 8) is None  # of texts
    assert integer_range(tail, 9) is None  # there is none
