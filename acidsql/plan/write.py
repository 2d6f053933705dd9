"""Writing events: small results by the driver, large ones by one Spark job; both into the same staged directories.

What is to be written arrives as a frame of *changes*: for each row the values to store (already of the table's types),
the partition it belongs to as path values, and, for rows that replace or delete another, that row's identity. Names:

* ``c0…``: the values, in the order of the table's data columns (absent for DELETE);
* ``k0…``: the partition's values as path text, NULL for the default partition;
* ``writeId``, ``bucketId``, ``rowId``: identity of the row that is replaced or deleted (absent for INSERT).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from acidsql import fs
from acidsql.errors import UnsupportedError
from acidsql.format.bucket import encode
from acidsql.format.names import BaseName, DeltaName, partition_name
from acidsql.format.orc import read_footer, write_deletes, write_empty, write_inserts
from acidsql.metastore.model import Table
from acidsql.plan.arrow import arrow_type, rows_to_table
from acidsql.plan.snapshot import row_type_of
from acidsql.plan.staging import Staging
from acidsql.plan.values import Zones, quote, to_orc_driver, to_orc_job, zones_of
from acidsql.types import to_spark

MAX_WRITERS = 4096
"""Twelve bits of the bucket property number the writer (``BucketCodec``)."""

_IDENTITY = ("writeId", "bucketId", "rowId")
_SPARK_CODECS = {"ZLIB": "zlib", "SNAPPY": "snappy", "ZSTD": "zstd", "LZ4": "lz4", "NONE": "none"}


@dataclass(frozen=True)
class Target:
    """Where events go: a table, the write id, the statement's number, and whether old data are hidden by a base."""

    table: Table
    write_id: int
    statement_id: int = 0
    overwrite: bool = False

    @property
    def inserts(self) -> BaseName | DeltaName:
        if self.overwrite:
            return BaseName(self.write_id)
        return DeltaName(self.write_id, self.write_id, self.statement_id)

    @property
    def deletes(self) -> DeltaName:
        return DeltaName(self.write_id, self.write_id, self.statement_id, is_delete=True)

    @property
    def compression(self) -> str:
        """The table's ``orc.compress``, ZLIB when it is not set (zstd, Spark's default, is nothing that Hive 3 reads)."""
        name = self.table.parameters.get("orc.compress", "ZLIB").upper()
        if name not in _SPARK_CODECS:
            raise UnsupportedError(
                f"Table {self.table.full_name} has orc.compress={name}, which cannot be written",
                hint=f"One of {', '.join(_SPARK_CODECS)}.",
            )
        return _SPARK_CODECS[name]


@dataclass(frozen=True)
class Written:
    """How many insert and delete events were written."""

    inserted: int
    deleted: int


class Writer:
    """Writes changes of one statement into a staging area."""

    def __init__(self, spark: SparkSession, target: Target, staging: Staging, driver_rows: int) -> None:
        self._spark = spark
        self._target = target
        self._staging = staging
        self._driver_rows = driver_rows
        self._row_type = row_type_of(target.table)
        self._key_count = len(target.table.partition_keys)

    def write(self, changes: DataFrame, *, deletes: bool, inserts: bool, small: bool | None = None) -> Written:
        """Write all changes.

        Args:
            changes: The changes, as the module's text describes them.
            deletes: Whether each one deletes the row of its identity.
            inserts: Whether each one inserts a row.
            small: True or False where the caller knows that the result is, or is not, for the driver to write; None to
                find out: at most ``driver_rows`` rows are fetched, and only when there are more is a job started.
        """
        if small is False:
            return self._job(changes, deletes, inserts)
        finished = self._for_driver(changes, inserts)
        if _is_local(finished):
            rows = finished.collect()
            names = [n for n in finished.columns]
            return self._driver(rows_to_table(rows, names, self._arrow_types(names)), deletes, inserts)
        if small:
            return self._driver(finished.toArrow(), deletes, inserts)
        fetched = finished.limit(self._driver_rows + 1).toArrow()
        if fetched.num_rows <= self._driver_rows:
            return self._driver(fetched, deletes, inserts)
        return self._job(changes, deletes, inserts)

    def write_nothing(self, partition: str) -> None:
        """A base without rows: one empty ORC file, because a base that holds no file hides nothing from Trino."""
        directory = self._staging.directory(partition, self._target.inserts)
        write_empty(self._staging.fs, directory.bucket(0), self._row_type)

    # --- by the driver -----------------------------------------------------------------------------------------------

    def _for_driver(self, changes: DataFrame, inserts: bool) -> DataFrame:
        values = []
        if inserts:
            for i, (_, type) in enumerate(self._row_type.fields):
                values.append(f"{to_orc_driver(f'c{i}', type)} AS c{i}")
        rest = [c for c in changes.columns if not re.fullmatch(r"c\d+", c)]
        return changes.selectExpr(*values, *[quote(c) for c in rest])

    def _arrow_types(self, names: Sequence[str]) -> list[pa.DataType]:
        fixed = {"writeId": pa.int64(), "bucketId": pa.int32(), "rowId": pa.int64()}
        fields = self._row_type.fields
        return [
            fixed[n] if n in fixed else pa.string() if n.startswith("k") else arrow_type(fields[int(n[1:])][1])
            for n in names
        ]

    def _driver(self, changes: pa.Table, deletes: bool, inserts: bool) -> Written:
        for partition, part in self._by_partition(changes):
            if deletes:
                self._driver_changes(partition, part, inserts)
            elif inserts:
                directory = self._staging.directory(partition, self._target.inserts)
                self._write_inserts(directory.bucket(0), part, encode(0, self._target.statement_id))
        rows = changes.num_rows
        return Written(rows if inserts else 0, rows if deletes else 0)

    def _driver_changes(self, partition: str, part: pa.Table, inserts: bool) -> None:
        """Delete events, and new versions, in the file of the writer that each old row came from."""
        part = part.sort_by([(name, "ascending") for name in _IDENTITY])
        writers = pc.shift_right(
            pc.bit_wise_and(part["bucketId"], pa.scalar(0x0FFF0000, pa.int32())), pa.scalar(16, pa.int32())
        )
        for number in sorted(pc.unique(writers).to_pylist()):
            rows = part.filter(pc.equal(writers, number))
            keys = pa.table(
                {"originalTransaction": rows["writeId"], "bucket": rows["bucketId"], "rowId": rows["rowId"]}
            )
            target = self._target
            write_deletes(
                self._staging.fs,
                self._staging.directory(partition, target.deletes).bucket(number),
                self._row_type,
                keys,
                write_id=target.write_id,
                compression=target.compression,
            )
            if inserts:
                path = self._staging.directory(partition, target.inserts).bucket(number)
                self._write_inserts(path, rows, encode(number, target.statement_id))

    def _write_inserts(self, path: str, rows: pa.Table, bucket: int) -> None:
        names = [f"c{i}" for i in range(len(self._row_type.fields))]
        write_inserts(
            self._staging.fs,
            path,
            self._row_type,
            rows.select(names),
            write_id=self._target.write_id,
            bucket=bucket,
            compression=self._target.compression,
        )

    def _by_partition(self, changes: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        if not self._key_count or not changes.num_rows:
            yield from [("", changes)] if changes.num_rows else []
            return
        keys = [f"k{i}" for i in range(self._key_count)]
        numbered = changes.append_column("__n", pa.array(range(changes.num_rows), type=pa.int64()))
        groups = numbered.group_by(keys, use_threads=False).aggregate([("__n", "list")])
        for group in groups.to_pylist():
            yield self._partition_of([group[k] for k in keys]), changes.take(pa.array(group["__n_list"]))

    def _partition_of(self, values: Sequence[str | None]) -> str:
        return partition_name([k.name for k in self._target.table.partition_keys], values)

    # --- by a Spark job ----------------------------------------------------------------------------------------------

    def _job(self, changes: DataFrame, deletes: bool, inserts: bool) -> Written:
        events = self._change_events(changes, inserts) if deletes else self._insert_events(changes)
        keys = [f"k{i}" for i in range(self._key_count)]
        output = fs.join(self._staging.path, "job")
        write = events.write.option("compression", self._target.compression).option("maxRecordsPerFile", "0")
        by = [*keys, *(["kind", "writer"] if deletes else [])]
        (write.partitionBy(*by) if by else write).orc(fs.spark_path(output))
        return self._collect_job(output, deletes)

    def _row(self, zones: Zones) -> str:
        fields = ", ".join(
            f"'{name}', {to_orc_job(f'c{i}', type, zones)}" for i, (name, type) in enumerate(self._row_type.fields)
        )
        return f"named_struct({fields})"

    def _insert_events(self, changes: DataFrame) -> DataFrame:
        """One file per task and partition; the task's number is the writer's. ``monotonically_increasing_id`` holds both
        the task's number and a row number in it, so no shuffle is needed."""
        count = changes.rdd.getNumPartitions() if not self._key_count else 0
        if count > MAX_WRITERS:
            changes = changes.coalesce(MAX_WRITERS)
        statement = encode(0, self._target.statement_id)
        keys = [f"k{i}" for i in range(self._key_count)]
        numbered = changes.selectExpr("*", "monotonically_increasing_id() AS id")
        events = numbered.selectExpr(
            "0 AS operation",
            f"{self._target.write_id}L AS originalTransaction",
            f"{statement} | (CAST(id >> 33 AS int) << 16) AS bucket",
            f"id & {(1 << 33) - 1}L AS rowId",
            f"{self._target.write_id}L AS currentTransaction",
            f"{self._row(zones_of(self._spark))} AS row",
            *keys,
        )
        return events.sortWithinPartitions(*keys, "rowId") if keys else events

    def _change_events(self, changes: DataFrame, inserts: bool) -> DataFrame:
        """Both directories of an UPDATE in one job: a delete event and, unless it is a DELETE, an insert event per row.

        All rows of a bucket meet in one task (one file a bucket), sorted as readers need them.
        """
        keys = [f"k{i}" for i in range(self._key_count)]
        write_id, statement = self._target.write_id, self._target.statement_id
        ddl = to_spark(self._row_type, plain_strings=True)
        writer = changes.selectExpr("*", "(bucketId & 268369920) >> 16 AS writer")
        placed = writer.repartition(*keys, "writer").selectExpr(
            "*", f"monotonically_increasing_id() & {(1 << 33) - 1}L AS number"
        )
        gone = (
            "named_struct('kind', 0, 'operation', 2, 'originalTransaction', writeId, 'bucket', bucketId, 'rowId', rowId,"
            f" 'currentTransaction', {write_id}L, 'row', CAST(NULL AS {ddl}))"
        )
        new = (
            (
                f"named_struct('kind', 1, 'operation', 0, 'originalTransaction', {write_id}L,"
                f" 'bucket', {encode(0, statement)} | (writer << 16), 'rowId', number, 'currentTransaction', {write_id}L,"
                f" 'row', CAST({self._row(zones_of(self._spark))} AS {ddl}))"
            )
            if inserts
            else ""
        )
        pair = f"explode(array({gone}, {new})) AS e" if inserts else f"{gone} AS e"
        events = placed.selectExpr(*keys, "writer", pair)
        names = ("operation", "originalTransaction", "bucket", "rowId", "currentTransaction", "row")
        flat = events.selectExpr(*keys, "e.kind AS kind", "writer", *[f"e.{n} AS {n}" for n in names])
        return flat.sortWithinPartitions(*keys, "kind", "writer", "originalTransaction", "bucket", "rowId")

    def _collect_job(self, output: str, deletes: bool) -> Written:
        """Move the job's part files into the staged directories, under their bucket names."""
        counts = {"inserted": 0, "deleted": 0}
        for path, parts in _part_files(output, self._staging.fs):
            values = dict(p.partition("=")[::2] for p in parts)
            partition = "/".join(
                f"{key.name}={values[f'k{i}']}" for i, key in enumerate(self._target.table.partition_keys)
            )
            is_delete = deletes and values["kind"] == "0"
            number = int(values["writer"]) if deletes else _task_number(path)
            rows = read_footer(self._staging.fs, path).row_count
            if not rows:
                continue
            name = self._target.deletes if is_delete else self._target.inserts
            self._staging.fs.rename(path, self._staging.directory(partition, name).bucket(number))
            counts["deleted" if is_delete else "inserted"] += rows
        self._staging.fs.delete(output)
        return Written(**counts)


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


def _is_local(frame: DataFrame) -> bool:
    """Whether Spark has the rows already (VALUES, constants): collecting them starts no job."""
    plan = frame._jdf.queryExecution().optimizedPlan()
    return bool(plan.getClass().getSimpleName() == "LocalRelation")
