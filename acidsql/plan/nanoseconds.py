"""Timestamps that Spark cannot represent: rewriting a row must not lose the nanoseconds that Hive stored.

Spark counts microseconds. So before UPDATE (or MERGE) rewrites a row, the files that it may come from are searched for
timestamps that are finer; where one of these rows is to be rewritten, the statement fails, unless the user lets it
truncate. Files that Spark has written cannot hold any. What was found in a file is kept, as files do not change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from acidsql import fs
from acidsql.catalyst import rows_in_memory
from acidsql.format.directory import AcidFile
from acidsql.format.nanoseconds import Numbers, finer_rows, timestamp_columns
from acidsql.format.orc import read_footer, read_keys
from acidsql.format.schema import KEY_COLUMNS
from acidsql.metastore.model import Table
from acidsql.plan.cache import FileCache
from acidsql.plan.changes import KIND, ChangeSet, key_column
from acidsql.plan.failures import failing
from acidsql.plan.layout import Place, layout
from acidsql.plan.snapshot import TableSnapshot
from acidsql.plan.target import IDENTITY, Change
from acidsql.types import parse_type

WRITTEN_BY_SPARK = "org.apache.spark.version"
"""Spark's mark in the metadata of the files that it writes."""

_PREFIX, _FOUND = "__acid_finer_", "__acid_is_finer"
_Finer = tuple[Numbers, "pa.Table | None"]
_finer: dict[tuple[int, ...], FileCache[_Finer]] = {}


def kept_timestamps(table: Table, assigned: Collection[str]) -> tuple[int, ...]:
    """Positions of the columns with timestamps that a statement rewrites without setting them.

    Args:
        table: The table.
        assigned: The columns that it sets.
    """
    found = timestamp_columns([parse_type(c.type) for c in table.columns])
    return tuple(i for i in found if table.columns[i].name not in assigned)


def reject_sub_microsecond(
    spark: SparkSession, snapshot: TableSnapshot, columns: Sequence[int], changes: ChangeSet
) -> ChangeSet:
    """The changes, failing at a row that would lose nanoseconds.

    Args:
        spark: A session of acidsql's own.
        snapshot: What the changed rows come from.
        columns: Positions of the columns that keep their values (:func:`kept_timestamps`).
        changes: The changes, which are of rows that exist.
    """
    row = {name: name for name in (*changes.keys, *IDENTITY)}
    rewritten = "true" if changes.change is not None else f"{KIND} = {int(Change.UPDATE)}"
    checked = rejecting(spark, snapshot, columns, changes.frame, row, rewritten)
    return changes if checked is None else changes.over(checked.select(*changes.columns))


def rejecting(
    spark: SparkSession,
    snapshot: TableSnapshot,
    columns: Sequence[int],
    frame: DataFrame,
    row: Mapping[str, str],
    condition: str = "true",
) -> DataFrame | None:
    """Rows, and further columns, failing at one that would lose nanoseconds; None where no row would.

    Args:
        spark: A session of acidsql's own.
        snapshot: What the rows come from.
        columns: Positions of the columns with timestamps.
        frame: The rows.
        row: The columns of the frame with the row's partition as text and its identity, by their names.
        condition: Which rows are looked at.
    """
    parts = list(_finer_keys(spark, snapshot, tuple(columns))) if columns else []
    if not parts:
        return None
    finer = rows_in_memory(spark, pa.concat_tables(parts)).toDF(*[f"{_PREFIX}{n}" for n in row])
    marked = F.broadcast(finer.withColumn(_FOUND, F.lit(True)))
    same = F.lit(True)
    for name, column in row.items():
        same = same & F.col(column).eqNullSafe(F.col(f"{_PREFIX}{name}"))
    joined = frame.join(marked, same, "left")
    failure = failing("A row has a timestamp with nanoseconds, which Spark would truncate to microseconds")
    return joined.filter(f"CASE WHEN {_FOUND} AND {condition} THEN {failure} ELSE true END")


def _finer_keys(spark: SparkSession, snapshot: TableSnapshot, columns: tuple[int, ...]) -> Iterator[pa.Table]:
    """The keys and identities of the rows with finer timestamps, a table for each file that has some."""
    found = layout(spark, snapshot)
    for group in found.events:
        for file in group.files:
            numbers, keys = _search(file, columns)
            if len(numbers) and keys is not None:
                yield _placed(group.places[file.path], *keys.columns)
    for originals in (found.originals, found.merged_originals):
        for original in originals.files:
            numbers, _ = _search(original.file, columns)
            if len(numbers):
                write_ids = pa.array(np.full(len(numbers), original.write_id, dtype=np.int64))
                buckets = pa.array(np.full(len(numbers), original.bucket, dtype=np.int32))
                row_ids = pa.array(numbers + original.first_row_id)
                yield _placed(originals.places[original.file.path], write_ids, buckets, row_ids)


def _placed(place: Place, *identity: pa.Array) -> pa.Table:
    _, *values = place
    count = len(identity[0])
    keys = {key_column(i): pa.array([value] * count, type=pa.string()) for i, value in enumerate(values)}
    types = (pa.int64(), pa.int32(), pa.int64())
    named = zip(IDENTITY, identity, types, strict=True)
    return pa.table({**keys, **{n: _whole(a).cast(t) for n, a, t in named}})


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _search(file: AcidFile, columns: tuple[int, ...]) -> _Finer:
    """The numbers of the rows of a file, and for a file of events their identities."""

    def read() -> _Finer:
        filesystem, path = fs.resolve(file.path)
        footer = read_footer(filesystem, path)
        if WRITTEN_BY_SPARK in footer.metadata:
            return np.empty(0, dtype=np.int64), None
        numbers = finer_rows(filesystem, path, footer, columns)
        if not footer.is_acid or not len(numbers):
            return numbers, None
        return numbers, read_keys(filesystem, path).select(list(KEY_COLUMNS)).take(pa.array(numbers))

    return _finer.setdefault(columns, FileCache[_Finer](capacity=20000)).get(file, read)
