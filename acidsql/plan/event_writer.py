"""Changes in memory as bucket files of a staging area: written by this process, with no need of Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from acidsql.errors import InvalidValue
from acidsql.format.bucket import VERSION_SHIFT, WRITER_MASK, WRITER_SHIFT, encode
from acidsql.format.orc import write_deletes, write_inserts, write_rows
from acidsql.format.schema import KEY_COLUMNS
from acidsql.partition_names import NO_NUL, partition_name
from acidsql.plan.changes import BUCKET, KIND, key_column, value_column
from acidsql.plan.job import matched_twice
from acidsql.plan.snapshot import row_type_of
from acidsql.plan.staging import Staging
from acidsql.plan.target import IDENTITY, Change, RowCounts, Target


class EventWriter:
    """Writes changes of one statement into a staging area.

    They are a table of the columns of a :class:`~acidsql.plan.changes.ChangeSet`; texts, days and wall clocks as
    :func:`acidsql.format.orc.write_inserts` takes them.
    """

    def __init__(self, target: Target, staging: Staging) -> None:
        self._target, self._staging = target, staging
        self._row_type = row_type_of(target.table)
        self._key_count = len(target.table.partition_keys)

    def write(self, changes: pa.Table, change: Change | None) -> RowCounts:
        """Write changes.

        Args:
            changes: The changes.
            change: What happens to all rows; None if the column ``kind`` has it: then what is inserted becomes the next
                statement of the transaction.

        Raises:
            CardinalityViolation: When a row is named twice.
            InvalidValue: When a partition cannot have a directory.
        """
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
        if any("\0" in value for value in values if value is not None):
            raise InvalidValue(f"A partition key has {NO_NUL}")
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
