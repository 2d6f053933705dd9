"""What writers of many columns leave in memory."""

from __future__ import annotations

import ctypes
import io
import re
from pathlib import Path

import pyarrow as pa
import pytest

from acidsql.format.stripes import StripeFile
from acidsql.types import Struct, parse_type

STATUS = Path("/proc/self/status")
COLUMNS, FILES = 300, 12
MOST_MB = 150
"""What one writer touches; without giving any back it would be some 900 after all of them."""


@pytest.mark.skipif(not STATUS.exists() or not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="not glibc")
def test_files_of_many_columns_leave_no_memory_behind() -> None:
    names = [f"c{i}" for i in range(COLUMNS)]
    types = Struct(tuple((name, parse_type("int")) for name in names))
    row = pa.record_batch([pa.array([1], pa.int32())] * COLUMNS, names=names)

    def write() -> int:
        with StripeFile(io.BytesIO(), types, compression="zlib") as file:
            file.write([row])
        return int(re.findall(r"VmRSS:\s+(\d+)", STATUS.read_text())[0]) >> 10

    before = write()
    after = [write() for _ in range(FILES)]
    assert max(after) - before < MOST_MB, after
