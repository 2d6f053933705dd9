"""ACID files: written and read with pyorc, their keys read with pyarrow.

What is written is what Hive's ``OrcRecordUpdater`` writes: rows sorted by their key, and user metadata of which every
value is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from typing import Any

import pyarrow as pa
import pyorc
from pyarrow import orc

from acidsql.errors import AcidError, CorruptFile, UnsupportedError
from acidsql.format import bucket as bucket_codec
from acidsql.format.schema import (
    BUCKET,
    CURRENT_TRANSACTION,
    EVENT_COLUMNS,
    KEY_COLUMNS,
    AcidStats,
    Operation,
    RecordKey,
    acid_metadata,
    event_type,
    is_acid_schema,
)
from acidsql.format.tail import OrcFooter, Stripe, read_footer
from acidsql.format.values import CONVERTERS, json_reader, to_stored
from acidsql.fs import FileSystem
from acidsql.types import LOCAL_TIMESTAMP, Array, Char, Decimal, HiveType, Map, Primitive, Struct, Varchar

__all__ = [
    "Event",
    "OrcFooter",
    "Stripe",
    "read_events",
    "read_footer",
    "read_keys",
    "write_deletes",
    "write_empty",
    "write_inserts",
    "write_rows",
]

STRIPE_BYTES = 64 * 1024 * 1024
"""About how many bytes of Arrow data go into one stripe."""

_BATCH_ROWS = 1024
_NEVER = 1 << 50
"""A stripe size that is never reached: pyorc must not end a stripe where this module does not know of it."""

COMPRESSIONS = {
    "none": pyorc.CompressionKind.NONE,
    "zlib": pyorc.CompressionKind.ZLIB,
    "snappy": pyorc.CompressionKind.SNAPPY,
    "lz4": pyorc.CompressionKind.LZ4,
    "zstd": pyorc.CompressionKind.ZSTD,
}
_PYORC_PRIMITIVES: dict[str, type[pyorc.TypeDescription]] = {
    one.name: one
    for one in (
        pyorc.Boolean,
        pyorc.TinyInt,
        pyorc.SmallInt,
        pyorc.Int,
        pyorc.BigInt,
        pyorc.Float,
        pyorc.Double,
        pyorc.String,
        pyorc.Binary,
        pyorc.Date,
        pyorc.Timestamp,
    )
}
_FOR_SPARK = {"spark.sql.catalyst.type": "timestamp"}
"""An attribute of ORC's types, without which Spark fails at a column of instants (``OrcUtils.toCatalystSchema``)."""


@dataclass(frozen=True)
class Event:
    """One event of an ACID file, its values as JSON holds them. A file without ACID columns has ``row`` only."""

    row: dict[str, Any] | None
    operation: int | None = None
    original_transaction: int | None = None
    bucket: int | None = None
    row_id: int | None = None
    current_transaction: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The event under the names of the file's columns, in their order."""
        if self.operation is None:
            return {"row": self.row}
        key = (self.operation, self.original_transaction, self.bucket, self.row_id, self.current_transaction)
        return dict(zip(EVENT_COLUMNS, (*key, self.row), strict=True))


# --- writing ---------------------------------------------------------------------------------------------------------


def write_inserts(
    fs: FileSystem,
    path: str,
    row_type: Struct,
    rows: pa.Table,
    *,
    write_id: int,
    bucket: int,
    first_row_id: int = 0,
    compression: str = "zlib",
    stripe_bytes: int = STRIPE_BYTES,
) -> int:
    """Write a file of insert events.

    Args:
        fs: The file system of ``path``.
        path: The file to be written.
        row_type: The table's data columns.
        rows: The rows; columns by position, timestamps as wall clocks, days and timestamps before 1582 proleptic.
        write_id: The write id of the statement.
        bucket: The ``bucket`` value of the writer (see :mod:`acidsql.format.bucket`).
        first_row_id: ``rowId`` of the first row; the others count on.
        compression: ``none``, ``zlib``, ``snappy``, ``lz4`` or ``zstd``.
        stripe_bytes: The approximate size of a stripe, in bytes of Arrow data.

    Returns:
        The number of rows.

    Raises:
        AcidError: When a value does not fit its column's type.
        UnsupportedError: When the compression is not known.
    """
    count = int(rows.num_rows)
    stripes = _Stripes(count, rows.nbytes, stripe_bytes)

    def events(start: int, stop: int) -> Iterable[tuple[Any, ...]]:
        columns = _stored_columns(rows, row_type, start, stop)
        ids = range(first_row_id + start, first_row_id + stop)
        insert, same = repeat(int(Operation.INSERT)), repeat(write_id)
        return zip(insert, same, repeat(bucket), ids, same, zip(*columns, strict=True))

    last_keys = [RecordKey(write_id, bucket, first_row_id + end - 1) for end in stripes.ends]
    metadata = acid_metadata(AcidStats(inserts=count), last_keys)
    _write(fs, path, event_type(row_type), (events(*span) for span in stripes.spans), stripes, metadata, compression)
    return count


def write_deletes(
    fs: FileSystem,
    path: str,
    row_type: Struct,
    keys: pa.Table,
    *,
    write_id: int,
    compression: str = "zlib",
    stripe_bytes: int = STRIPE_BYTES,
) -> int:
    """Write a file of delete events.

    Args:
        fs: The file system of ``path``.
        path: The file to be written.
        row_type: The table's data columns; the rows are NULL.
        keys: Columns ``originalTransaction``, ``bucket`` and ``rowId`` of the rows to be deleted, in any order.
        write_id: The write id of the statement.
        compression: ``none``, ``zlib``, ``snappy``, ``lz4`` or ``zstd``.
        stripe_bytes: As for :func:`write_inserts`.

    Returns:
        The number of events.

    Raises:
        AcidError: When there is no key, a key stands there twice, or the keys are of several writers: Hive refuses such
            files, or loses rows with them.
        UnsupportedError: When the compression is not known.
    """
    ordered = keys.select(list(KEY_COLUMNS)).sort_by([(name, "ascending") for name in KEY_COLUMNS])
    events = list(zip(*(column.to_pylist() for column in ordered.columns), strict=True))
    _check_keys(path, events)
    stripes = _Stripes(len(events), ordered.nbytes, stripe_bytes)

    def deletes(start: int, stop: int) -> Iterable[tuple[Any, ...]]:
        return ((int(Operation.DELETE), *key, write_id, None) for key in events[start:stop])

    metadata = acid_metadata(AcidStats(deletes=len(events)), [RecordKey(*events[end - 1]) for end in stripes.ends])
    _write(fs, path, event_type(row_type), (deletes(*span) for span in stripes.spans), stripes, metadata, compression)
    return len(events)


def write_rows(fs: FileSystem, path: str, row_type: Struct, rows: pa.Table, *, compression: str = "zlib") -> int:
    """Write a file of bare rows, without events, as tables that only grow have them (``insert_only``).

    Args and errors are those of :func:`write_inserts`.

    Returns:
        The number of rows.
    """
    count = int(rows.num_rows)
    stripes = _Stripes(count, rows.nbytes)
    parts = (zip(*_stored_columns(rows, row_type, *span), strict=True) for span in stripes.spans)
    _write(fs, path, row_type, parts, stripes, {}, compression)
    return count


def write_empty(fs: FileSystem, path: str, row_type: Struct, *, events: bool = True, compression: str = "zlib") -> None:
    """Write a file that holds no events, or no rows. A base without any file would hide nothing from some readers
    (Trino).

    Raises:
        UnsupportedError: When the compression is not known.
    """
    metadata = acid_metadata(AcidStats(), ()) if events else {}
    _write(fs, path, event_type(row_type) if events else row_type, (), _Stripes(0, 0), metadata, compression)


def _stored_columns(rows: pa.Table, row_type: Struct, start: int, stop: int) -> list[Sequence[Any]]:
    """Some of the rows, column by column as pyorc stores them."""
    part = rows.slice(start, stop - start)
    return [to_stored(_one_chunk(column), t) for column, (_, t) in zip(part.columns, row_type.fields, strict=True)]


def _check_keys(path: str, keys: Sequence[tuple[int, int, int]]) -> None:
    if not keys:
        raise AcidError(f"No rows to delete for {path}: a file of deletes must not be empty")
    writers = {bucket_codec.decode(prop).writer_id for prop in {prop for _, prop, _ in keys}}
    if len(writers) > 1:
        raise AcidError(f"Deletes of several writers ({', '.join(map(str, sorted(writers)))}) for {path}")
    for one, other in zip(keys, islice(keys, 1, None), strict=False):
        if one == other:
            raise AcidError(f"The row {RecordKey(*one)} would be deleted twice in {path}")


class _Stripes:
    """Where stripes end, known before the first row is written: the key index must name the last row of each.

    Attributes:
        batch_rows: Rows of pyorc's buffer; only full buffers can be flushed, so all stripes but the last are multiples.
        spans: First row and row after the last of each stripe.
    """

    def __init__(self, rows: int, nbytes: int, stripe_bytes: int = STRIPE_BYTES) -> None:
        self.batch_rows = max(1, min(rows, _BATCH_ROWS))
        batches = -(-rows // self.batch_rows)
        each = max(1, batches * stripe_bytes // max(nbytes, 1)) * self.batch_rows
        self.spans = [(start, min(start + each, rows)) for start in range(0, rows, each)]

    @property
    def ends(self) -> list[int]:
        """The row after the last of each stripe."""
        return [end for _, end in self.spans]


def _write(
    fs: FileSystem,
    path: str,
    schema: Struct,
    parts: Iterable[Iterable[tuple[Any, ...]]],
    stripes: _Stripes,
    metadata: dict[str, bytes],
    compression: str,
) -> None:
    if compression not in COMPRESSIONS:
        raise UnsupportedError(
            f"Compression {compression!r} cannot be written", hint=f"Use one of {list(COMPRESSIONS)}"
        )
    with fs.open_write(path) as file:
        writer = pyorc.Writer(
            file,
            pyorc_type(schema),
            batch_size=stripes.batch_rows,
            stripe_size=_NEVER,
            compression=COMPRESSIONS[compression],
            converters=CONVERTERS,
        )
        for number, events in enumerate(parts):
            if number:
                writer.write_intermediate_footer()
            writer.writerows(events)
        writer.set_user_metadata(**metadata)
        writer.close()


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def pyorc_type(t: HiveType) -> pyorc.TypeDescription:
    """The type as pyorc has it. A tree, not a text: a text cannot hold every name."""
    if t == Primitive(LOCAL_TIMESTAMP):
        instant = pyorc.TimestampInstant()
        instant.set_attributes(_FOR_SPARK)
        return instant
    if isinstance(t, Primitive):
        return _PYORC_PRIMITIVES[t.name]()
    if isinstance(t, Decimal):
        return pyorc.Decimal(t.precision, t.scale)
    if isinstance(t, Char):
        return pyorc.Char(t.length)
    if isinstance(t, Varchar):
        return pyorc.VarChar(t.length)
    if isinstance(t, Array):
        return pyorc.Array(pyorc_type(t.element))
    if isinstance(t, Map):
        return pyorc.Map(pyorc_type(t.key), pyorc_type(t.value))
    return _Fields({name: pyorc_type(field) for name, field in t.fields})


class _Fields(pyorc.Struct):
    """A struct with fields of any name: pyorc's own takes them as keyword arguments and refuses ``self``."""

    _named: Mapping[str, pyorc.TypeDescription] = {}

    def __init__(self, fields: Mapping[str, pyorc.TypeDescription]) -> None:
        super().__init__()
        self._named = fields
        self.set_column_id(0)

    @property
    def fields(self) -> Mapping[str, pyorc.TypeDescription]:
        return self._named

    def set_column_id(self, val: int) -> int:
        self._column_id = val
        for field in self._named.values():
            val = field.set_column_id(val + 1)
        return val


# --- reading ---------------------------------------------------------------------------------------------------------


def read_keys(fs: FileSystem, path: str) -> pa.Table:
    """The keys of the events of a file, in the order of the file.

    Returns:
        Columns ``originalTransaction`` (int64), ``bucket`` (int32), ``rowId`` (int64), ``currentTransaction`` (int64).

    Raises:
        CorruptFile: When it is not an ORC file, or holds no events.
    """
    wanted = (*KEY_COLUMNS, CURRENT_TRANSACTION)
    try:
        file = orc.ORCFile(pa.BufferReader(fs.read_bytes(path)))
        names = [name.lower() for name in file.schema.names]
        if not is_acid_schema(names):
            raise CorruptFile(f"{path} has no events: its columns are {', '.join(file.schema.names)}")
        places = [names.index(name.lower()) for name in wanted]
        read = file.read(columns=places)
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, ValueError) as e:
        raise CorruptFile(f"{path} is not a complete ORC file") from e
    by_place = dict(zip(sorted(places), read.columns, strict=True))
    types = [pa.int32() if name == BUCKET else pa.int64() for name in wanted]
    return pa.table([by_place[p].cast(t) for p, t in zip(places, types, strict=True)], names=list(wanted))


def read_events(fs: FileSystem, path: str) -> Iterator[Event]:
    """The events of a file, or the rows of a file without ACID columns, in the order of the file.

    Raises:
        CorruptFile: When it is not an ORC file, or not a whole one.
        UnsupportedError: When its footer cannot be read here (see :func:`read_footer`).
    """
    footer = read_footer(fs, path)
    read_row = json_reader(footer.row_type, proleptic=footer.proleptic)
    lower = [name.lower() for name in footer.field_names]
    places = [lower.index(name.lower()) for name in EVENT_COLUMNS] if footer.is_acid else []
    with fs.open_read(path) as file:
        try:
            for stored in pyorc.Reader(file, converters=CONVERTERS):
                if footer.is_acid:
                    operation, original, prop, row_id, current, row = (stored[place] for place in places)
                    yield Event(read_row(row), operation, original, prop, row_id, current)
                else:
                    yield Event(read_row(stored))
        except (pyorc.errors.ORCError, RuntimeError, ValueError) as e:
            raise CorruptFile(f"{path} is not a complete ORC file: {e}") from e
