"""The files that a compaction reads: their rows as events with the table's present columns, stripe by stripe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa

from acidsql.errors import CorruptFile, UnsupportedError
from acidsql.format.arrow_limits import counts_alike
from acidsql.format.delete_set import Mask, RowKeys
from acidsql.format.orc_types import are_same_columns, arrow_type
from acidsql.format.schema import EVENT_COLUMNS, Operation
from acidsql.format.stripes import DIVIDER, StripeSource
from acidsql.fs import FileSystem
from acidsql.types import Struct

SMALL_BYTES = 1 << 20
"""Files up to this size are held in memory."""


@dataclass(frozen=True)
class Original:
    """Identity of the rows of a file without event columns (see :mod:`acidsql.format.originals`)."""

    write_id: int
    bucket: int
    first_row_id: int


@dataclass(frozen=True)
class InputFile:
    """A file that is read.

    Attributes:
        path: The file.
        reach: :func:`~acidsql.format.delete_set.reach` of its directory.
        length: Where it ends, None for its physical end.
        original: Identity of its rows where it has no event columns.
    """

    path: str
    reach: int
    length: int | None = None
    original: Original | None = None


class StripeInput:
    """A file that is read, its rows as the events of the table's present columns.

    A small one is held in memory, so that a thousand of them are not a thousand open files; it can still be read when
    the ``with`` block is over.

    Attributes:
        file: The file.
        source: Its stripes.
        size: Its bytes.
        is_held: Whether it is in memory.
        is_whole: Whether its columns stand in it as they are to be written.
    """

    def __init__(self, fs: FileSystem, file: InputFile, row_type: Struct, *, has_events: bool) -> None:
        """
        Args:
            fs: The file system.
            file: The file.
            row_type: The table's data columns.
            has_events: Whether what is made of it holds events.

        Raises:
            CorruptFile: When it cannot be read, or has columns of events against what is expected, or has none.
            UnsupportedError: When it has columns of other types, or is compressed with LZO.
        """
        self.file = file
        self._has_events = has_events
        opened = fs.open_read(file.path)
        self.size = file.length if file.length is not None else opened.seek(0, 2)
        self.is_held = self.size <= SMALL_BYTES
        if self.is_held:
            with opened:
                opened.seek(0)
                opened = BytesIO(opened.read(self.size))
        self.source = StripeSource(opened, file.path, None if self.is_held else file.length)
        self._row_type = row_type
        footer = self.source.footer
        if footer.is_acid != (has_events and file.original is None):
            actual = "event columns" if footer.is_acid else "no event columns"
            raise CorruptFile(f"{file.path} has {actual}, which does not match its directory")
        names = [name.lower() for name in footer.field_names]
        self._places = [names.index(name.lower()) for name in EVENT_COLUMNS] if footer.is_acid else []
        self.is_whole = self._places == sorted(self._places) and footer.is_acid == has_events
        self._missing = [t for _, t in row_type.fields[len(footer.row_type.fields) :]]
        present = Struct(row_type.fields[: len(footer.row_type.fields)])
        if not are_same_columns(footer.row_type, present):
            raise UnsupportedError(f"{file.path} has columns of other types than the table has now")
        self._is_proleptic = footer.proleptic

    def __enter__(self) -> StripeInput:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.is_held:
            self.source.close()

    def keys(self, number: int) -> tuple[RowKeys, Mask]:
        """Identity of the rows of a stripe, and which of them are inserts."""
        original = self.file.original
        if original is None:
            batch = self.source.batch(number, sorted(self._places[:-1]))
            operations = np.asarray(batch.column(sorted(self._places[:-1]).index(self._places[0])))
            return RowKeys.of(batch), operations == int(Operation.INSERT)
        before = sum(stripe.rows for stripe in self.source.stripes[:number])
        rows = self.source.stripes[number].rows
        ids = np.arange(rows, dtype=np.int64) + original.first_row_id + before
        same = np.full(rows, original.write_id, np.int64)
        return RowKeys(same, np.full(rows, original.bucket, np.int64), ids, same), np.ones(rows, np.bool_)

    def batch(self, number: int) -> pa.RecordBatch:
        """The events of a stripe. Raises: pa.ArrowInvalid for what Arrow cannot hold (see :meth:`rows`)."""
        read = self.source.batch(number)
        if not self._has_events:
            made = pa.RecordBatch.from_struct_array(self._completed(read.to_struct_array()))
            self._check_calendar(made.columns)
            return made
        if self.file.original is None:
            arrays = [read.column(place) for place in self._places]
        else:
            keys, _ = self.keys(number)
            operation = pa.array(np.zeros(len(keys), np.int32))
            ids = (keys.originals, keys.buckets.astype(np.int32), keys.row_ids, keys.currents)
            arrays = [operation, *map(pa.array, ids), read.to_struct_array()]
        arrays[-1] = self._completed(arrays[-1])
        self._check_calendar(arrays)
        return pa.record_batch(arrays, names=list(EVENT_COLUMNS))

    def column(self, number: int, place: int) -> pa.Array | None:
        """One of the table's columns in a stripe; None where it cannot be read by itself. Raises: as :meth:`batch`."""
        footer, (_, wanted) = self.source.footer, self._row_type.fields[place]
        if place >= len(footer.row_type.fields):
            return pa.nulls(self.source.stripes[number].rows, arrow_type(wanted))
        name = footer.row_type.fields[place][0]
        if DIVIDER in name:  # it would be taken for a field in a struct
            return None
        if self.file.original is None:
            [rows] = self.source.batch(number, [f"{footer.field_names[self._places[-1]]}.{name}"]).columns
            if rows.null_count:
                return None
            column = rows.field(0)
        else:
            [column] = self.source.batch(number, [name]).columns
        self._check_calendar([column])
        return column if column.type == arrow_type(wanted) else column.view(arrow_type(wanted))

    def _check_calendar(self, arrays: Sequence[pa.Array]) -> None:
        if self._is_proleptic and not all(counts_alike(array) for array in arrays):
            raise UnsupportedError(f"{self.file.path} has dates before 1582 in the proleptic calendar")

    def _completed(self, rows: pa.StructArray) -> pa.StructArray:
        """With the columns that the table got later, and with its names, also of fields in structs."""
        wanted = arrow_type(self._row_type)
        columns = [*rows.flatten(), *(pa.nulls(len(rows), arrow_type(t)) for t in self._missing)]
        named = [c if c.type == field.type else c.view(field.type) for c, field in zip(columns, wanted, strict=True)]
        return pa.StructArray.from_arrays(named, fields=list(wanted), mask=rows.is_null())

    def rows(self, number: int) -> Iterator[tuple[Any, ...]]:
        """The events of a stripe as stored numbers."""
        if self._is_proleptic:
            raise UnsupportedError(f"{self.file.path} has dates in the proleptic calendar")
        added = (None,) * len(self._missing)
        if not self._has_events:
            yield from ((*row, *added) for row in self.source.rows(number))
        elif self.file.original is None:
            for stored in self.source.rows(number):
                *event, row = (stored[place] for place in self._places)
                yield (*event, None if row is None else (*row, *added))
        else:
            write_id, bucket, first = self.keys(number)[0].first()
            for row_id, row in enumerate(self.source.rows(number), first):
                yield int(Operation.INSERT), write_id, bucket, row_id, write_id, (*row, *added)
