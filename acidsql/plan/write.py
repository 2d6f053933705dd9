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

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from acidsql.format.bucket import encode
from acidsql.format.orc import write_deletes, write_empty, write_inserts
from acidsql.partition_names import partition_name
from acidsql.plan.arrow import arrow_type, rows_to_table
from acidsql.plan.job import write_by_job
from acidsql.plan.snapshot import row_type_of
from acidsql.plan.staging import Staging
from acidsql.plan.target import Target, Written
from acidsql.plan.values import quote, to_orc_driver

_IDENTITY = ("writeId", "bucketId", "rowId")


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
            names = list(finished.columns)
            return self._driver(rows_to_table(rows, names, self._arrow_types(names)), deletes, inserts)
        if small:
            return self._driver(finished.toArrow(), deletes, inserts)
        fetched = finished.limit(self._driver_rows + 1).toArrow()
        if fetched.num_rows <= self._driver_rows:
            return self._driver(fetched, deletes, inserts)
        return self._job(changes, deletes, inserts)

    def _job(self, changes: DataFrame, deletes: bool, inserts: bool) -> Written:
        return write_by_job(self._spark, self._target, self._staging, changes, deletes=deletes, inserts=inserts)

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
                self._write_inserts(partition, part, 0)
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
            directory = self._staging.directory(partition, target.deletes)
            written = write_deletes(
                self._staging.fs,
                directory.bucket(number),
                self._row_type,
                keys,
                write_id=target.write_id,
                compression=target.compression,
            )
            self._staging.wrote(directory, written)
            if inserts:
                self._write_inserts(partition, rows, number)

    def _write_inserts(self, partition: str, rows: pa.Table, number: int) -> None:
        names = [f"c{i}" for i in range(len(self._row_type.fields))]
        directory = self._staging.directory(partition, self._target.inserts)
        written = write_inserts(
            self._staging.fs,
            directory.bucket(number),
            self._row_type,
            rows.select(names),
            write_id=self._target.write_id,
            bucket=encode(number, self._target.statement_id),
            compression=self._target.compression,
        )
        self._staging.wrote(directory, written)

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


def _is_local(frame: DataFrame) -> bool:
    """Whether Spark has the rows already (VALUES, constants): collecting them starts no job."""
    plan = frame._jdf.queryExecution().optimizedPlan()
    return bool(plan.getClass().getSimpleName() == "LocalRelation")
