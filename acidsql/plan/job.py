"""Writing events by one Spark job, for results that are too large for the driver.

The job writes part files below the staging directory; they are then moved into the staged directories under their
bucket names. What the frames of changes hold is told in :mod:`acidsql.plan.write`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from acidsql import fs
from acidsql.format.bucket import encode
from acidsql.format.orc import read_footer
from acidsql.format.schema import EVENT_COLUMNS
from acidsql.fs.java import java_errors
from acidsql.partition_names import DEFAULT_PARTITION
from acidsql.plan.snapshot import row_type_of
from acidsql.plan.staging import Staging
from acidsql.plan.target import Target, Written
from acidsql.plan.values import literal, to_orc_job, zones_of
from acidsql.types import to_spark

_ROW_NUMBER = (1 << 33) - 1
"""``monotonically_increasing_id`` keeps the task's number above these bits, and a row number in the task in them."""
_WRITER_BITS = 0x0FFF0000


def write_by_job(
    spark: SparkSession, target: Target, staging: Staging, changes: DataFrame, *, deletes: bool, inserts: bool
) -> Written:
    """Write all changes with one job.

    Raises:
        AcidError: When more than 4096 tasks would each write a bucket file (``BucketCodec`` numbers no more).
    """
    keys = [f"k{i}" for i in range(len(target.table.partition_keys))]
    row = _row(spark, target)
    if deletes:
        events, by = _change_events(target, changes, keys, row if inserts else None), [*keys, "kind", "writer"]
    else:
        events, by = _insert_events(target, changes, keys, row), keys
    output = fs.join(staging.path, "job")
    write = events.write.option("compression", target.compression).option("maxRecordsPerFile", "0")
    try:
        (write.partitionBy(*by) if by else write).orc(fs.spark_path(output))
    except Py4JJavaError as e:  # neither an error of Spark's own nor of a task: the driver could not write
        with java_errors("write", output):
            raise e from None
    return _collect(target, staging, output, deletes)


def _row(spark: SparkSession, target: Target) -> str:
    zones = zones_of(spark)
    fields = row_type_of(target.table).fields
    values = ", ".join(f"{literal(n)}, {to_orc_job(f'c{i}', t, zones)}" for i, (n, t) in enumerate(fields))
    return f"named_struct({values})"


def _insert_events(target: Target, changes: DataFrame, keys: list[str], row: str) -> DataFrame:
    """One file per task and partition, the task's number is the writer's: no shuffle is needed."""
    numbered = changes.selectExpr("*", "monotonically_increasing_id() AS id")
    events = numbered.selectExpr(
        "0 AS operation",
        f"{target.write_id}L AS originalTransaction",
        f"{encode(0, target.statement_id)} | (CAST(id >> 33 AS int) << 16) AS bucket",
        f"id & {_ROW_NUMBER}L AS rowId",
        f"{target.write_id}L AS currentTransaction",
        f"{row} AS row",
        *_directory_keys(keys, "id"),
    )
    return events.sortWithinPartitions(*keys, "rowId") if keys else events


def _directory_keys(keys: list[str], number: str) -> list[str]:
    """The keys as texts that Spark neither takes for constants nor for NULL.

    Of a constant, and of a string that can be NULL, Spark's writer sorts by its directories anew (``V1Writes``), and
    its optimiser then drops the sort below, which is ours: events would stand in the order in which they were read.
    ``number`` is a column that is never negative.
    """
    return [f"CASE WHEN {number} < 0 THEN '' ELSE coalesce({k}, {literal(DEFAULT_PARTITION)}) END AS {k}" for k in keys]


def _change_events(target: Target, changes: DataFrame, keys: list[str], row: str | None) -> DataFrame:
    """Both directories of an UPDATE in one job: a delete event and, unless it is a DELETE, an insert event per row.

    All rows of a bucket meet in one task (one file a bucket), sorted as readers need them.
    """
    ddl = to_spark(row_type_of(target.table), plain_strings=True)
    write_id = target.write_id
    kept = [c for c in changes.columns if c not in keys]
    placed = (
        changes.selectExpr(*kept, *_directory_keys(keys, "rowId"), f"(bucketId & {_WRITER_BITS}) >> 16 AS writer")
        .repartition(*keys, "writer")
        .selectExpr("*", f"monotonically_increasing_id() & {_ROW_NUMBER}L AS number")
    )
    pairs = [
        "named_struct('kind', 0, 'operation', 2,"
        " 'originalTransaction', writeId, 'bucket', bucketId, 'rowId', rowId,"
        f" 'currentTransaction', {write_id}L, 'row', CAST(NULL AS {ddl}))"
    ]
    if row is not None:
        pairs.append(
            "named_struct('kind', 1, 'operation', 0,"
            f" 'originalTransaction', {write_id}L, 'bucket', {encode(0, target.statement_id)} | (writer << 16),"
            f" 'rowId', number, 'currentTransaction', {write_id}L, 'row', CAST({row} AS {ddl}))"
        )
    events = placed.selectExpr(*keys, "writer", f"explode(array({', '.join(pairs)})) AS e")
    flat = events.selectExpr(*keys, "e.kind AS kind", "writer", *[f"e.{n} AS {n}" for n in EVENT_COLUMNS])
    return flat.sortWithinPartitions(*keys, "kind", "writer", "originalTransaction", "bucket", "rowId")


def _collect(target: Target, staging: Staging, output: str, deletes: bool) -> Written:
    """Move the job's part files into the staged directories, under their bucket names."""
    inserted = deleted = 0
    for path, above in _part_files(output, staging.fs):
        values = dict(name.partition("=")[::2] for name in above)
        # Spark escapes the values of partition directories as Hive does (it took the code over from there)
        keys = enumerate(target.table.partition_keys)
        partition = "/".join(f"{key.name}={values[f'k{i}']}" for i, key in keys)
        is_delete = deletes and values["kind"] == "0"
        number = int(values["writer"]) if deletes else _task_number(path)
        encode(number, target.statement_id)  # refuses a number that the bucket property cannot hold
        rows = read_footer(staging.fs, path).row_count
        if not rows:
            continue
        directory = staging.directory(partition, target.deletes if is_delete else target.inserts)
        staging.fs.rename(path, directory.bucket(number))
        staging.wrote(directory, rows)
        deleted, inserted = deleted + rows * is_delete, inserted + rows * (not is_delete)
    staging.fs.delete(output)
    return Written(inserted, deleted)


def _part_files(output: str, filesystem: fs.FileSystem) -> Iterator[tuple[str, list[str]]]:
    """Part files of a Spark write with the ``name=value`` directories above them."""

    def walk(path: str, above: list[str]) -> Iterator[tuple[str, list[str]]]:
        for entry in filesystem.list(path):
            if entry.is_dir:
                yield from walk(entry.path, [*above, entry.name])
            elif entry.name.startswith("part-"):
                yield entry.path, above

    yield from walk(output, [])


def _task_number(path: str) -> int:
    match = re.match(r"part-(\d+)-", path.rpartition("/")[2])
    assert match is not None
    return int(match[1])
