"""A worker of a mutation: it writes changes of rows, whose ids it is told, into files of somebody else's transaction.

It needs neither Spark nor the transaction store, and may run in any process that reaches the table's directory. What it
has written is seen by nobody before the client has committed it (:mod:`acidsql.streaming.mutation`).
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import TracebackType
from typing import Any

import pyarrow as pa

from acidsql.errors import InvalidValue, TransactionError
from acidsql.format.bucket import MAX_STATEMENT_ID, decode
from acidsql.metastore.model import Table
from acidsql.partition_names import DEFAULT_PARTITION, NO_NUL, key_texts, parse_partition_name, partition_name
from acidsql.plan.arrow import arrow_type
from acidsql.plan.changes import BUCKET, KIND, key_column, value_column
from acidsql.plan.event_writer import EventWriter
from acidsql.plan.session_zone import SessionZone
from acidsql.plan.staging import StagedPart, Staging
from acidsql.plan.target import IDENTITY, Change, RowCounts, Target
from acidsql.streaming.records import Field, Rows
from acidsql.streaming.values import BadValue, Converter, converter
from acidsql.types import WHOLE_NUMBERS, Char, HiveType, Primitive, Varchar, parse_type

ROW_ID_COLUMN = "row__id"
"""What rows have in front of all else, and records may have, too."""
STATEMENTS = MAX_STATEMENT_ID + 1
"""So many statements the workers of a mutation have, all together."""
_EACH = 2
"""Statements of what is written at once: one for what is changed, and one for what is inserted."""
MOST_TASKS = STATEMENTS // _EACH
_BUFFER_BYTES = 64 << 20
"""About so many bytes of values are held in memory."""

Key = tuple[Any, ...]
"""The values of a row's partition keys."""
RowId = tuple[int, int, int]
"""writeId, bucketId and rowId."""


class OutOfOrder(InvalidValue):
    """Raised when a worker is given row ids that do not rise, or those of a file that it has left."""


@dataclass(frozen=True)
class Written:
    """What a worker has written, for the client's commit. It can be pickled.

    Attributes:
        txn_id: The transaction.
        task: The number of the worker's task.
        part: Its files.
        counts: How many rows it has inserted, updated and deleted.
    """

    txn_id: int
    task: int
    part: StagedPart
    counts: RowCounts


@dataclass(frozen=True)
class MutationTask:
    """What one worker needs to know. It can be pickled, and opened again where a worker has failed.

    Attributes:
        number: The number of the task, from 0 on.
        count: How many tasks there are.
        txn_id, write_id: The transaction, and its write id in the table.
        table: The table.
        compression: How files are compressed.
        zone: The session's zone, whose wall clock a moment has.
        partitions: The names of the partitions that are there, by the values of their keys; None where two are alike.
        buffer_rows: So many rows are held in memory before files are written; fewer of large ones.
    """

    number: int
    count: int
    txn_id: int
    write_id: int
    table: Table
    compression: str
    zone: SessionZone
    partitions: Mapping[Key, str | None]
    buffer_rows: int

    def open(self) -> MutationWorker:
        """A worker: a context manager. Raises: StorageError when the table's directory cannot be reached."""
        return MutationWorker(self)


@dataclass
class MutationWorker:
    """Inserts, updates and deletes rows. Made by :meth:`MutationTask.open`.

    ::

        with task.open() as worker:
            for row in rows:
                worker.update(row["ROW__ID"], changed(row))
        return worker.written

    Row ids that are updated or deleted come in the order of the files: all of one partition and bucket file behind one
    another, those of one file rising. No row comes twice. Each partition and bucket file is one worker's alone.

    Records are dicts by column name, or tuples of all columns, partition keys last. They have a value for every column.
    """

    task: MutationTask
    _rows: list[_Row] = field(default_factory=list)
    _bytes: int = 0
    _left: set[tuple[str, int]] = field(default_factory=set)
    """Files whose rows have come to an end, by partition and bucket."""
    _last: tuple[str, int, RowId] | None = None
    _statement: int = 0
    _counts: RowCounts = field(default_factory=RowCounts)
    _written: Written | None = None
    _is_over: bool = False

    def __post_init__(self) -> None:
        task = self.task
        self._table = task.table
        self._columns = task.table.all_columns
        self._types: list[HiveType] = [parse_type(c.type) for c in self._columns]
        self._fields = [Field(c.name, t) for c, t in zip(self._columns, self._types, strict=True)]
        self._convert: list[Converter] = [converter(t, task.zone) for t in self._types]
        each = MOST_TASKS // task.count * _EACH
        self._statement = task.number * each
        self._end = self._statement + each
        self._staging = Staging(self._table, task.txn_id)

    # --- changes -----------------------------------------------------------------------------------------------------

    def insert(self, record: Mapping[str, Any] | Sequence[Any], *, bucket: int | None = None) -> None:
        """Insert a row.

        Args:
            record: The row.
            bucket: The number of its bucket in a bucketed table, as ``mutation.bucketed()`` gives it.

        Raises:
            BadValue: When a value cannot be stored, or is not there; the worker goes on without the row.
            UnsupportedError: When the row needs a new partition of a key whose text Spark makes.
        """
        values, key = self._read(record)
        if (bucket is None) == bool(self._table.bucket_columns):
            raise BadValue("Rows that are inserted into a bucketed table have a bucket, and no others")
        if bucket is not None and not 0 <= bucket < self._table.num_buckets:
            raise BadValue(f"The table has no bucket {bucket!r}")
        self._add(_Row(Change.INSERT, self._partition(key, new=True), None, values, bucket))

    def update(self, row_id: Any, record: Mapping[str, Any] | Sequence[Any]) -> None:
        """Replace a row.

        Args:
            row_id: Its ``ROW__ID``.
            record: The new row. The values of partition keys are those of the old one: they say where it is.

        Raises:
            BadValue: As :meth:`insert`, and when there is no such partition.
            OutOfOrder: When the row id is not to come now.
        """
        values, key = self._read(record)
        self._add_change(Change.UPDATE, row_id, key, values)

    def delete(self, row_id: Any, partition: Mapping[str, Any] | None = None) -> None:
        """Delete a row.

        Args:
            row_id: Its ``ROW__ID``.
            partition: The values of its partition keys; other columns may be there, too.

        Raises:
            BadValue: When there is no such partition.
            OutOfOrder: When the row id is not to come now.
        """
        given = {str(name).lower(): value for name, value in (partition or {}).items()}
        key = []
        for i in range(len(self._table.columns), len(self._columns)):
            name = self._columns[i].name
            if name not in given:
                raise BadValue(f"Partition key {name} has no value")
            key.append(self._converted(i, given[name]))
        self._add_change(Change.DELETE, row_id, tuple(key), None)

    # --- the end -----------------------------------------------------------------------------------------------------

    @property
    def written(self) -> Written:
        """What it has written, once it is closed. Raises: TransactionError before that, or where it has failed."""
        if self._written is None:
            raise TransactionError("The worker is not closed, or has failed")
        return self._written

    def close(self) -> Written:
        """Write what is held; what has been written. Raises the errors of files: then nothing is."""
        if not self._is_over:
            try:
                self._flush()
            except BaseException:
                self.discard()
                raise
            self._is_over = True
            part = self._staging.handed_over()
            self._written = Written(self.task.txn_id, self.task.number, part, self._counts)
        return self.written

    def discard(self) -> None:
        """Remove what has been written."""
        self._is_over, self._written, self._rows = True, None, []
        self._staging.discard()

    def __enter__(self) -> MutationWorker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.discard()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _read(self, record: Any) -> tuple[list[Any], Key]:
        """The values of a record as Arrow takes them: those of data columns, and those of partition keys."""
        if isinstance(record, Mapping):
            record = {name: value for name, value in record.items() if str(name).lower() != ROW_ID_COLUMN}
        given = Rows().read(record, self._fields)
        missing = [c.name for c in self._columns if c.name not in given]
        if missing:
            raise BadValue(f"Column {missing[0]} has no value")
        made = [self._converted(i, given[c.name]) for i, c in enumerate(self._columns)]
        count = len(self._table.columns)
        for column, value in zip(self._columns, made, strict=True):
            if value is None and column.not_null:
                raise BadValue(f"NULL value in column {column.name}, which is NOT NULL")
        return made[:count], tuple(made[count:])

    def _converted(self, position: int, value: Any) -> Any:
        try:
            return None if value is None else self._convert[position](value)
        except BadValue as e:
            raise BadValue(f"Column {self._columns[position].name}: {e.message}") from e

    def _partition(self, key: Key, *, new: bool = False) -> str:
        """The name of the partition with these values."""
        if not key:
            return ""
        types = self._key_types
        known = signs(key, types)
        name = self.task.partitions.get(known)
        if name is not None:
            return name
        keys = [c.name for c in self._table.partition_keys]
        shown = ", ".join(f"{k}={v!r}" for k, v in zip(keys, key, strict=True))
        if known in self.task.partitions:
            raise BadValue(f"Several partitions have the values {shown}: which is meant cannot be told")
        if not new:
            raise BadValue(f"{self._table.full_name} has no partition {shown}")
        return partition_name(keys, [new_key_text(v, t) for v, t in zip(key, types, strict=True)])

    @cached_property
    def _key_types(self) -> list[HiveType]:
        return self._types[len(self._table.columns) :]

    def _add_change(self, change: Change, row_id: Any, key: Key, values: list[Any] | None) -> None:
        at, partition = _row_id(row_id), self._partition(key)
        bucket = decode(at[1]).writer_id
        place = partition, bucket
        if self._last is not None and self._last[:2] != place:
            self._left.add(self._last[:2])
        if place in self._left or (self._last is not None and self._last[:2] == place and at <= self._last[2]):
            where = f" of {partition}" if partition else ""
            raise OutOfOrder(
                f"The row id {at}{where} does not come behind the last one of its bucket file, in one piece",
                hint="Sort the rows by partition, ROW__ID.bucketId and the rest of ROW__ID: mutation.sorted().",
            )
        self._last = (*place, at)
        self._add(_Row(change, partition, at, values, None))

    def _add(self, row: _Row) -> None:
        if self._is_over:
            raise TransactionError("The worker is closed")
        self._rows.append(row)
        self._bytes += 0 if row.values is None else _size(row.values)
        is_full = len(self._rows) >= self.task.buffer_rows or self._bytes >= _BUFFER_BYTES
        if is_full and self._statement + _EACH < self._end:  # the last statement has all the rest
            try:
                self._flush()
            except BaseException:
                self.discard()
                raise

    def _flush(self) -> None:
        """Write what is held."""
        if not self._rows:
            return
        target = Target(self._table, self.task.write_id, self.task.compression, self._statement)
        rows, self._rows, self._bytes = self._rows, [], 0
        self._counts += EventWriter(target, self._staging).write(self._arrow(rows), None)
        self._statement += _EACH

    def _arrow(self, rows: Sequence[_Row]) -> pa.Table:
        made: dict[str, pa.Array] = {}
        for i in range(len(self._table.columns)):
            values = [None if row.values is None else row.values[i] for row in rows]
            made[value_column(i)] = pa.array(values, type=arrow_type(self._types[i]))
        for i, name in enumerate(IDENTITY):
            type = pa.int32() if name == "bucketId" else pa.int64()
            made[name] = pa.array([None if row.at is None else row.at[i] for row in rows], type=type)
        texts = [_texts(row.partition, len(self._table.partition_keys)) for row in rows]
        for i in range(len(self._table.partition_keys)):
            made[key_column(i)] = pa.array([text[i] for text in texts], type=pa.string())
        made[KIND] = pa.array([int(row.change) for row in rows], type=pa.int32())
        if self._table.bucket_columns:
            made[BUCKET] = pa.array([row.bucket for row in rows], type=pa.int32())
        return pa.table(made)


@dataclass(frozen=True)
class _Row:
    change: Change
    partition: str
    at: RowId | None
    values: list[Any] | None
    bucket: int | None


def _size(value: Any) -> int:
    """About how many bytes a value takes."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(_size, value.values()))
    return sum(map(_size, value)) if isinstance(value, list | tuple) else 8


def _texts(partition: str, count: int) -> list[str | None]:
    return key_texts([value for _, value in parse_partition_name(partition)]) if count else []


def _row_id(given: Any) -> RowId:
    """A ``ROW__ID``: a row of Spark's, a dict, or a tuple of the three numbers."""
    parts: Any = [given.get(name) for name in IDENTITY] if isinstance(given, Mapping) else given
    if isinstance(parts, Sequence) and not isinstance(parts, str) and len(parts) == len(IDENTITY):
        write_id, bucket, row_id = parts
        are_ints = all(isinstance(part, int) and not isinstance(part, bool) for part in parts)
        if are_ints and abs(write_id) < 1 << 63 and abs(bucket) < 1 << 31 and abs(row_id) < 1 << 63:
            return write_id, bucket, row_id
    raise BadValue(f"{given!r:.80} is no ROW__ID")


def signs(key: Key, types: Sequence[HiveType]) -> Key:
    """By which values of partition keys are known."""

    def sign(value: Any, type: HiveType) -> Any:
        if isinstance(type, Char) and value is not None:
            return value.ljust(type.length)
        return repr(value) if isinstance(value, float) else value

    return tuple(sign(value, type) for value, type in zip(key, types, strict=True))


def new_key_text(value: Any, type: HiveType) -> str | None:
    """What stands in paths for a value of a key (:func:`acidsql.plan.values.key_text`), where that is plain.

    Raises:
        BadValue: When it is not: the partition has to be there.
    """
    name = type.name if isinstance(type, Primitive) else ""
    if value is None or value in ("", DEFAULT_PARTITION):
        return None
    if isinstance(value, str) and "\0" in value:
        raise BadValue(f"A partition key has {NO_NUL}")
    if name in WHOLE_NUMBERS or name == "string" or isinstance(type, Varchar):
        return str(value)
    if name == "boolean":
        return "true" if value else "false"
    if name == "date" and isinstance(value, datetime.date):
        return value.isoformat()
    raise BadValue(
        f"There is no partition for {value!r}", hint="ALTER TABLE … ADD PARTITION makes it: a worker cannot."
    )
