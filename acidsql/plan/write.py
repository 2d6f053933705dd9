"""Writing events: small results by the driver, large ones by one Spark job; both into the same staged directories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from acidsql.catalyst import Catalyst, Draft
from acidsql.errors import InvalidValue
from acidsql.format.bucket import VERSION_SHIFT, WRITER_MASK, WRITER_SHIFT, encode
from acidsql.format.orc import write_deletes, write_empty, write_inserts, write_rows
from acidsql.format.schema import KEY_COLUMNS
from acidsql.partition_names import partition_name
from acidsql.plan.arrow import fetched, is_utf8, rows_to_table
from acidsql.plan.bucketing import bucket_number
from acidsql.plan.changes import BUCKET, KIND, ChangeSet, key_column, value_column
from acidsql.plan.fetch import fetch_few
from acidsql.plan.job import matched_twice, write_by_job
from acidsql.plan.local import DriverLimit
from acidsql.plan.snapshot import row_type_of
from acidsql.plan.staging import Staging
from acidsql.plan.target import IDENTITY, Change, RowCounts, Target
from acidsql.plan.values import only_driver_writes, to_orc_driver

_PYTHON_ROWS = 4096
"""So many rows come from Spark one by one sooner than by a job."""


class Writer:
    """Writes changes of one statement into a staging area."""

    def __init__(self, catalyst: Catalyst, target: Target, staging: Staging, limit: DriverLimit) -> None:
        """``catalyst`` is the session of the changes; changes below the limit are written by the driver."""
        self._catalyst = catalyst
        self._target = target
        self._staging = staging
        self._limit = limit
        self._row_type = row_type_of(target.table)
        self._only_driver = only_driver_writes(self._row_type)
        self._key_count = len(target.table.partition_keys)

    def write(self, changes: ChangeSet, *, large: bool = False) -> RowCounts:
        """Write all changes.

        Args:
            changes: The changes.
            large: Whether the caller knows that there are more than the driver writes. Else this finds out: no more are
                fetched than the driver writes, and only when there are more is a job started.

        Raises:
            CardinalityViolation: When a row is named twice.
        """
        found = None if large and not self._only_driver else self.fetch(changes)
        if found is not None:
            return self.write_fetched(found, changes.change)
        return write_by_job(self._catalyst, self._target, self._staging, self._completed(changes))

    def fetch(self, changes: ChangeSet) -> pa.Table | None:
        """The changes as the driver writes them; None when there are more than it should, or some that it cannot.

        Raises:
            InvalidValue: When nobody can write them.
        """
        found = self._fetched(changes)
        if found is None or is_utf8(found):
            return found
        if self._only_driver:
            raise InvalidValue(
                f"A text for {self._target.table.full_name} is not valid UTF-8",
                hint="Tables with instants, or with dates in the keys of maps, take valid texts only.",
            )
        return None

    def _fetched(self, changes: ChangeSet) -> pa.Table | None:
        completed = self._completed(changes)
        finished = self._for_driver(completed)
        most = self._limit.rows_of(changes.arrow_types())
        if (local := _local_rows(finished)) is not None:
            if local <= _PYTHON_ROWS:
                try:
                    return rows_to_table(finished.collect(), completed.columns, completed.arrow_types())
                except (ValueError, OverflowError):  # a date, time or text that Python cannot represent
                    pass
            return fetched(finished) if self._only_driver or local <= most else None
        if self._only_driver:
            return fetched(finished)
        return fetch_few(self._catalyst, finished, completed.columns, completed.arrow_types(), most)

    def _completed(self, changes: ChangeSet) -> ChangeSet:
        """The changes with the bucket of each new row."""
        table, spark = self._target.table, self._catalyst.spark
        if not table.bucket_columns or changes.change in (Change.UPDATE, Change.DELETE):
            return changes
        return changes.with_bucket(changes.frame.withColumn(BUCKET, bucket_number(spark, table, changes.frame)))

    def write_nothing(self, partition: str) -> None:
        """A base without rows: one empty ORC file, because a base that holds no file hides nothing from Trino."""
        directory = self._staging.directory(partition, self._target.inserts)
        full_acid = self._target.table.is_full_acid
        write_empty(self._staging.fs, directory.bucket(0), self._row_type, events=full_acid)

    # --- by the driver -----------------------------------------------------------------------------------------------

    def write_fetched(self, changes: pa.Table, change: Change | None) -> RowCounts:
        """Write changes that :meth:`fetch` has given. Raises as :meth:`write`."""
        written = RowCounts()
        for partition, part in self._by_partition(changes):
            if change is None:
                _refuse_twice(part)
            new = _of_kind(part, change, Change.INSERT)
            written += self._replace(partition, part, change)
            if new.num_rows:
                target = self._target.next if change is None else self._target
                for number, rows in _by_number(new, new[BUCKET] if BUCKET in new.column_names else None):
                    self._write_values(target, partition, rows, number)
                written += RowCounts(inserted=new.num_rows)
        return written

    def _for_driver(self, changes: ChangeSet) -> DataFrame:
        """The columns of the changes, with values as the driver's ORC writer takes them."""
        types = dict(zip(changes.values, (t for _, t in self._row_type.fields), strict=False))
        made = [f"{to_orc_driver(n, types[n])} AS {n}" if n in types else n for n in changes.columns]
        return Draft.of(self._catalyst, changes.frame).select(*made).frame()

    def _replace(self, partition: str, part: pa.Table, change: Change | None) -> RowCounts:
        """Delete events, and new versions, in the file of the writer that each old row came from."""
        target = self._target
        old = _of_kind(part, change, Change.UPDATE, Change.DELETE)
        if not old.num_rows:
            return RowCounts()
        updated = 0
        for number, rows in _by_number(old, _writers(old)):
            keys = pa.table({key: rows[name] for key, name in zip(KEY_COLUMNS, IDENTITY, strict=True)})
            directory = self._staging.directory(partition, target.deletes)
            events = write_deletes(
                self._staging.fs,
                directory.bucket(number),
                self._row_type,
                keys,
                write_id=target.write_id,
                compression=target.compression,
            )
            self._staging.wrote(directory, events)
            versions = _of_kind(rows, change, Change.UPDATE)
            if versions.num_rows:
                order = [(name, "ascending") for name in IDENTITY]
                self._write_values(target, partition, versions.sort_by(order), number)
                updated += versions.num_rows
        return RowCounts(updated=updated, deleted=old.num_rows - updated)

    def _write_values(self, target: Target, partition: str, rows: pa.Table, number: int) -> None:
        """One bucket file of insert events, or of bare rows for an insert-only table."""
        values = rows.select([value_column(i) for i in range(len(self._row_type.fields))])
        directory = self._staging.directory(partition, target.inserts)
        path, compression = directory.bucket(number), target.compression
        if target.table.is_full_acid:
            written = write_inserts(
                self._staging.fs,
                path,
                self._row_type,
                values,
                write_id=target.write_id,
                bucket=encode(number, target.statement_id),
                compression=compression,
            )
        else:
            written = write_rows(self._staging.fs, path, self._row_type, values, compression=compression)
        self._staging.wrote(directory, written)

    def _by_partition(self, changes: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        if not self._key_count or not changes.num_rows:
            yield from [("", changes)] if changes.num_rows else []
            return
        keys = [key_column(i) for i in range(self._key_count)]
        numbered = changes.append_column("__n", pa.array(range(changes.num_rows), type=pa.int64()))
        groups = numbered.group_by(keys, use_threads=False).aggregate([("__n", "list")])
        ordered, start = changes.take(pc.list_flatten(groups["__n_list"])), 0
        sizes = pc.list_value_length(groups["__n_list"]).to_pylist()
        for group, size in zip(groups.select(keys).to_pylist(), sizes, strict=True):
            yield self._partition_of([group[k] for k in keys]), ordered.slice(start, size)
            start += size

    def _partition_of(self, values: Sequence[str | None]) -> str:
        return partition_name([k.name for k in self._target.table.partition_keys], values)


def _of_kind(changes: pa.Table, change: Change | None, *wanted: Change) -> pa.Table:
    """The rows to which one of these things happens."""
    if change is not None:
        return changes if change in wanted else changes.slice(0, 0)
    return changes.filter(pc.is_in(changes[KIND], pa.array([int(w) for w in wanted], pa.int32())))


def _writers(old: pa.Table) -> pa.ChunkedArray:
    """The number of the writer of each row: the bucket file that its delete event belongs to."""
    bits = old["bucketId"]
    mask, shift, version = (pa.scalar(n, pa.int32()) for n in (WRITER_MASK, WRITER_SHIFT, VERSION_SHIFT))
    number = pc.shift_right(pc.bit_wise_and(bits, mask), shift)
    is_v0 = pc.equal(pc.shift_right(bits, version), pa.scalar(0, pa.int32()))
    return pc.if_else(is_v0, bits, number)


def _by_number(rows: pa.Table, numbers: pa.ChunkedArray | None) -> Iterator[tuple[int, pa.Table]]:
    """Rows by the number of their bucket file."""
    if numbers is None:
        yield 0, rows
        return
    distinct = sorted(pc.unique(numbers).to_pylist())
    if len(distinct) == 1:
        yield distinct[0], rows
        return
    for number in distinct:
        yield number, rows.filter(pc.equal(numbers, number))


def _refuse_twice(part: pa.Table) -> None:
    """Raises: CardinalityViolation when a row of the table is in the changes twice."""
    old = part.filter(pc.is_valid(part["rowId"])).select(list(IDENTITY))
    counts = old.group_by(list(IDENTITY), use_threads=False).aggregate([([], "count_all")])
    twice = counts.filter(pc.greater(counts["count_all"], 1))
    if twice.num_rows:
        raise matched_twice(*(twice[name][0].as_py() for name in IDENTITY))


def _local_rows(frame: DataFrame) -> int | None:
    """How many rows there are where Spark has them already (VALUES, constants): collecting them starts no job."""
    execution = frame._jdf.queryExecution()
    if any(leaf.nodeName().startswith("LogicalRelation") for leaf in Catalyst.leaves(execution.analyzed())):
        return None  # files are read: there is no need to optimise it
    plan = execution.optimizedPlan()
    return int(plan.data().size()) if plan.nodeName() == "LocalRelation" else None
