"""The rows of original files, with the row ids that Hive gives them.

A row's number in its file is not in the file, and Spark counts none for ORC. But every reader begins at a byte that is
known (``_metadata.file_block_start``), reads the stripes that begin in its part of the file, in their order, and no
rows are skipped as long as nothing is pushed down to it. So the number is that of the rows in the stripes before, which
the footer tells, and a count from there: ``monotonically_increasing_id``, which begins anew with each task. It remains
to have one part of one file in each task; Spark packs small parts together, up to a size that counts an "open cost" for
each. The scan is planned under a copy of the session in which that cost is as large as the part. A count that is not
below the rows of its part is an error: a task would have read another part before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame

from acidsql import fs
from acidsql.catalyst import Catalyst, Draft, copied, files_of
from acidsql.format.originals import OriginalFile
from acidsql.metastore.model import Table
from acidsql.plan.files import AT, PATH, plain_scan, spellings, with_values
from acidsql.plan.layout import OriginalFiles
from acidsql.plan.text import required, row_number_of

_START = "_metadata.file_block_start"
_MOST_TASKS = (1 << 31) - 1
_MAX_PART_BYTES = 1 << 40
"""Of a part: Spark adds the sizes and costs of two parts, as longs."""
_IN_ITS_PART = required("__acid_number < __acid_rows", "acidsql: rows of original files cannot be numbered")


def original_rows(
    own: Catalyst, table: Table, originals: OriginalFiles, place_columns: dict[str, pa.DataType]
) -> Draft:
    """All rows of original files.

    Args:
        own: A session of acidsql's own.
        table: Their table.
        originals: The files.
        place_columns: Names and types of the columns for :data:`~acidsql.plan.layout.Place`.

    Returns:
        Columns ``originalTransaction``, ``bucket``, ``rowId``, ``c0…`` as the ORC reader gives them, and the place.
        Filters above it do not reach the reader: the count is not deterministic for Spark.
    """
    state: Any = own.spark._jsparkSession.sessionState()
    part_bytes = min(int(state.conf().filesMaxPartitionBytes()), _MAX_PART_BYTES)
    scanned, urls = _one_part_a_task(own, table, originals, part_bytes)
    values = [f"c{i}" for i in range(len(table.columns))]
    number = f"{row_number_of()} AS __acid_number"
    found = [f"{AT}{i} AS {c}" for i, c in enumerate(values)]
    counted = Draft.of(own, scanned).select(*found, f"{PATH} AS __acid_path", f"{_START} AS __acid_start", number)
    types = {"originalTransaction": pa.int64(), "bucket": pa.int32(), "__acid_first": pa.int64()}
    types |= {"__acid_rows": pa.int64(), **place_columns}
    rows = list(_parts(originals, urls, part_bytes))
    keys = {"__acid_path": pa.string(), "__acid_start": pa.int64()}
    identified = with_values(counted, rows, keys, types, "a file, or of a part of one,").filter(_IN_ITS_PART)
    identity = ["originalTransaction", "bucket", "__acid_first + __acid_number AS rowId"]
    return identified.select(*identity, *values, *place_columns)


def _one_part_a_task(
    own: Catalyst, table: Table, originals: OriginalFiles, part_bytes: int
) -> tuple[DataFrame, list[str]]:
    """The scan, and the URLs of its files. A scan keeps the session that it was read with, and that one's settings."""
    settings = {
        "spark.sql.files.maxPartitionBytes": str(part_bytes),
        "spark.sql.files.openCostInBytes": str(part_bytes),
        "spark.sql.files.maxPartitionNum": str(_MOST_TASKS),
    }
    session = copied(own.spark, settings)._jsparkSession
    files = [f.file for f in originals.files]
    frame = plain_scan(own, files, table.columns, originals.width, session=session)
    return frame, files_of(frame)


def _parts(originals: OriginalFiles, urls: Sequence[str], part_bytes: int) -> Iterator[list[Any]]:
    """URL and first byte of each part of each file, with what its rows have in common."""
    by_path = {f.file.path: f for f in originals.files}
    for url in urls:
        path = fs.absolute(unquote(url))
        file = by_path[path]
        for start in _starts(file, part_bytes):
            first, end = file.row_id_at(start), file.row_id_at(start + part_bytes)
            common = [file.write_id, file.bucket, first, end - first, *originals.places[path]]
            for spelling in spellings(url):
                yield [spelling, start, *common]


def _starts(file: OriginalFile, part_bytes: int) -> Iterator[int]:
    """The first bytes of the parts that Spark cuts a file into, of those in which a stripe begins."""
    return iter(sorted({s.offset // part_bytes * part_bytes for s in file.stripes}))
