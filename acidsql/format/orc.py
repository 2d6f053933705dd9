"""ACID files: written by Arrow, and by pyorc where that changes a value; read with pyorc, their keys by Arrow.

What is written is what Hive's ``OrcRecordUpdater`` writes: rows sorted by their key, and user metadata of which every
value is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyorc
from pyarrow import orc

from acidsql.errors import AcidError, CorruptFile
from acidsql.format import bucket as bucket_codec
from acidsql.format.arrow_values import arrow_values, stored_values
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
from acidsql.format.stripes import StripeFile, delete_events, insert_events
from acidsql.format.tail import OrcFooter, Stripe, read_footer
from acidsql.format.values import CONVERTERS, json_reader
from acidsql.fs import FileSystem
from acidsql.types import Struct

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
    last_keys: list[RecordKey] = []
    with StripeFile.create(fs, path, event_type(row_type), compression=compression) as file:
        for part in _parts(rows, stripe_bytes):
            first, count = first_row_id + file.rows, part.num_rows
            ids = range(first, first + count)
            values = arrow_values(part, row_type)
            if values is None:
                same = (repeat(int(Operation.INSERT)), repeat(write_id), repeat(bucket), ids, repeat(write_id))
                ends = file.write_rows(zip(*same, zip(*stored_values(part, row_type), strict=True), strict=False))
            else:
                ends = file.write([insert_events(values, write_id, bucket, first)])
            last_keys += [RecordKey(write_id, bucket, first + int(end) - 1) for end in np.cumsum(ends)]
        file.close(acid_metadata(AcidStats(inserts=file.rows), last_keys))
    return file.rows


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
    order = [(name, "ascending") for name in KEY_COLUMNS]
    ordered = keys.select(list(KEY_COLUMNS)).sort_by(order)
    _check_keys(path, ordered)
    last_keys = []
    with StripeFile.create(fs, path, event_type(row_type), compression=compression) as file:
        for part in _parts(ordered, stripe_bytes):
            same = pa.array(np.full(part.num_rows, write_id, np.int64))
            batch = pa.record_batch([*part.columns, same], names=[*KEY_COLUMNS, CURRENT_TRANSACTION])
            ends = np.cumsum(file.write([delete_events(batch, row_type)]))
            last_keys += [RecordKey(*(batch[name][int(end) - 1].as_py() for name in KEY_COLUMNS)) for end in ends]
        file.close(acid_metadata(AcidStats(deletes=file.rows), last_keys))
    return file.rows


def write_rows(fs: FileSystem, path: str, row_type: Struct, rows: pa.Table, *, compression: str = "zlib") -> int:
    """Write a file of bare rows, without events, as tables that only grow have them (``insert_only``).

    Args and errors are those of :func:`write_inserts`.

    Returns:
        The number of rows.
    """
    with StripeFile.create(fs, path, row_type, compression=compression) as file:
        for part in _parts(rows, STRIPE_BYTES):
            values = arrow_values(part, row_type)
            if values is None:
                file.write_rows(zip(*stored_values(part, row_type), strict=True))
            else:
                file.write([pa.RecordBatch.from_struct_array(values)])
        file.close({})
    return file.rows


def write_empty(fs: FileSystem, path: str, row_type: Struct, *, events: bool = True, compression: str = "zlib") -> None:
    """Write a file that holds no events, or no rows. A base without any file would hide nothing from some readers
    (Trino).

    Raises:
        UnsupportedError: When the compression is not known.
    """
    types = event_type(row_type) if events else row_type
    with StripeFile.create(fs, path, types, compression=compression) as file:
        file.close(acid_metadata(AcidStats(), ()) if events else {})


def _parts(rows: pa.Table, stripe_bytes: int) -> Iterator[pa.RecordBatch]:
    """The rows of each stripe."""
    each = max(1, rows.num_rows * stripe_bytes // max(rows.nbytes, 1))
    for start in range(0, rows.num_rows, each):
        part = rows.slice(start, each)
        yield pa.record_batch([_one_chunk(column) for column in part.columns], names=part.column_names)


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _check_keys(path: str, ordered: pa.Table) -> None:
    if not ordered.num_rows:
        raise AcidError(f"No rows to delete for {path}: a file of deletes must not be empty")
    writers = {bucket_codec.decode(prop).writer_id for prop in pc.unique(ordered[BUCKET]).to_pylist()}
    if len(writers) > 1:
        raise AcidError(f"Deletes of several writers ({', '.join(map(str, sorted(writers)))}) for {path}")
    columns = [np.asarray(ordered[name]) for name in KEY_COLUMNS]
    twice = np.flatnonzero(np.logical_and.reduce([column[1:] == column[:-1] for column in columns]))
    if len(twice):
        key = RecordKey(*(int(column[twice[0]]) for column in columns))
        raise AcidError(f"The row {key} would be deleted twice in {path}")


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
