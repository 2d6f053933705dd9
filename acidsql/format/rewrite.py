"""A bucket's files made one: what a compaction does, without decoding what it can leave as it is.

The files of a bucket are sorted by row id, and those of later write ids come behind those of earlier ones. So the new
file is their stripes, one after another. A stripe without a deleted row is copied byte by byte; one with some is
decoded, and encoded without them; small ones are put together, so that a file of many small changes does not stay one
of many small stripes. Only where files overlap, as those of ACID version 1 do, all rows of the bucket are sorted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from itertools import compress, groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acidsql.format.arrow_limits import encodes_exactly
from acidsql.format.columns import EncodedColumn, stripe_of
from acidsql.format.delete_set import DeleteSet, Longs, RowKeys
from acidsql.format.inputs import InputFile, StripeInput
from acidsql.format.orc import read_keys
from acidsql.format.orc_types import arrow_type
from acidsql.format.schema import (
    CURRENT_TRANSACTION,
    KEY_COLUMNS,
    AcidStats,
    Operation,
    RecordKey,
    acid_metadata,
    event_type,
)
from acidsql.format.stripes import EncodedStripe, StripeFile, delete_events
from acidsql.fs import FileSystem
from acidsql.types import HiveType, Struct
from acidsql.valid_ids import ValidWriteIdList

_BLOCK = 1 << 16
"""Rows that go to the writer at once."""

Mask = npt.NDArray[np.bool_]
Position = tuple[int, int, int]


@dataclass(frozen=True)
class StripeSizes:
    """The sizes of the stripes of new files.

    Attributes:
        small_rows, small_bytes: Stripes below both limits are merged.
        group_rows, group_bytes: The approximate size of a new stripe, in rows and in bytes as they were stored.
        column_bytes: From so many bytes a column on, as they were stored, a stripe is encoded column by column, which
            takes a fraction of the memory.
    """

    small_rows: int = 10_000
    small_bytes: int = 1 << 20
    group_rows: int = 1_000_000
    group_bytes: int = 32 << 20
    column_bytes: int = 1 << 16


STRIPE_SIZES = StripeSizes()


@dataclass(frozen=True)
class Rewrite:
    """One bucket of a compaction.

    Attributes:
        target: The file to be written.
        row_type: The table's data columns.
        compression: ``none``, ``zlib``, ``snappy``, ``lz4`` or ``zstd``.
        write_ids: What the compaction sees; rows and events of other write ids are left out.
        inputs: The files with rows, in the order of their write ids.
        deletes: The files with delete events for them.
        applies_deletes: Whether deletes are applied and only live rows written; otherwise all events are kept.
        has_events: Whether the files have events. Those of insert-only tables have plain rows, which are merged.
        sizes: The sizes of stripes.
    """

    target: str
    row_type: Struct
    compression: str
    write_ids: ValidWriteIdList
    inputs: tuple[InputFile, ...]
    deletes: tuple[InputFile, ...] = ()
    applies_deletes: bool = True
    has_events: bool = True
    sizes: StripeSizes = STRIPE_SIZES

    def new_file(self, fs: FileSystem) -> StripeFile:
        """The file to be written, without any row yet."""
        return StripeFile.create(fs, self.target, self.file_type, compression=self.compression)

    @property
    def file_type(self) -> Struct:
        """Types of the new file."""
        return event_type(self.row_type) if self.has_events else self.row_type


@dataclass(frozen=True)
class Rewritten:
    """What came of it.

    Attributes:
        rows: Rows, or events, that were written.
        dropped: Those that were left out: deleted, or of a write id that is not seen.
        copied: Stripes that were copied as they were.
        encoded: Stripes that were newly encoded.
        bytes_read: Size of the files that were read.
        bytes_written: Size of the new file.
        files_read: Of a compaction as a whole, how many files it replaces; ``bytes_read`` is their size then.
        files_written: Of a compaction as a whole, how many files it has made.
    """

    rows: int = 0
    dropped: int = 0
    copied: int = 0
    encoded: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    files_read: int = 0
    files_written: int = 0

    def __add__(self, other: Rewritten) -> Rewritten:
        return Rewritten(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


def rewrite_rows(fs: FileSystem, work: Rewrite) -> Rewritten:
    """Write the rows of a bucket's files, with or without events, into one file.

    A file is there even where no row is left. Nothing is left of it after an error but a file that is not whole.

    Raises:
        CorruptFile: When a file cannot be read.
        UnsupportedError: When a file has columns of other types than the table, or days that are counted in another
            calendar, or is compressed with LZO.
    """
    deletes = _delete_set(fs, work)
    try:
        made = _Concatenation(fs, work, deletes).run()
    except _OverlapError:
        fs.delete(work.target)
        made = _Sorting(fs, work, deletes).run()
    return replace(made, bytes_written=size_of(fs, work.target))


def _open(fs: FileSystem, work: Rewrite, file: InputFile) -> StripeInput:
    return StripeInput(fs, file, work.row_type, has_events=work.has_events)


def rewrite_deletes(fs: FileSystem, work: Rewrite) -> Rewritten:
    """Write the delete events of a bucket's files into one file, sorted, each once. Nothing is written for none.

    Args and errors as for :func:`rewrite_rows`; ``deletes`` is what is read.
    """
    tables, size = [], 0
    for file in work.deletes:
        keys = read_keys(fs, file.path)
        size += size_of(fs, file.path)
        tables.append(keys.filter(pa.array(RowKeys.of(keys).seen_by(work.write_ids))))
    if not tables:
        return Rewritten()
    columns = [*KEY_COLUMNS, CURRENT_TRANSACTION]
    order = [*((name, "ascending") for name in KEY_COLUMNS), (CURRENT_TRANSACTION, "descending")]
    count = sum(len(table) for table in tables)
    events = _each_once(pa.concat_tables(tables).select(columns).sort_by(order).combine_chunks())
    dropped = count - len(events)
    if not len(events):
        return Rewritten(dropped=dropped, bytes_read=size)
    keys = RowKeys.of(events)
    target = work.new_file(fs)
    ends = []
    for start in range(0, len(events), work.sizes.group_rows):
        part = events.slice(start, work.sizes.group_rows).combine_chunks().to_batches()
        ends += target.write(delete_events(batch, work.row_type) for batch in part)
    last = [RecordKey(*keys.at(int(end) - 1)) for end in np.cumsum(ends)]
    target.close(acid_metadata(AcidStats(deletes=len(events)), last))
    return Rewritten(len(events), dropped, 0, len(ends), size, size_of(fs, work.target))


def _each_once(events: pa.Table) -> pa.Table:
    """Sorted rows of numbers without those that are equal to the one before."""
    is_new = np.zeros(len(events), dtype=bool)
    is_new[:1] = True
    for column in events.columns:
        values = column.to_numpy()
        is_new[1:] |= values[1:] != values[:-1]
    return events if is_new.all() else events.filter(pa.array(is_new)).combine_chunks()


def _delete_set(fs: FileSystem, work: Rewrite) -> DeleteSet:
    found = []
    for file in work.deletes if work.applies_deletes else ():
        keys = RowKeys.of(read_keys(fs, file.path))
        found.append((file.reach, keys.where(keys.seen_by(work.write_ids))))
    return DeleteSet(found)


def size_of(fs: FileSystem, path: str) -> int:
    """Bytes of a file."""
    with fs.open_read(path) as file:
        return file.seek(0, 2)


class _OverlapError(Exception):
    """The files of a bucket are not one behind another."""


# --- one behind another ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
    """A stripe, or what is left of it.

    Attributes:
        input: The file.
        number: The stripe.
        keys: Identity of all its rows; None where they have none.
        kept: Which rows are left, None for all.
    """

    input: StripeInput
    number: int
    keys: RowKeys | None = None
    kept: Mask | None = None

    @property
    def left(self) -> RowKeys | None:
        """Identity of the rows that are left."""
        return self.keys if self.keys is None or self.kept is None else self.keys.where(self.kept)

    @cached_property
    def _mask(self) -> pa.BooleanArray | None:
        return None if self.kept is None else pa.array(self.kept)

    def batch(self) -> pa.RecordBatch:
        """The rows that are left."""
        batch = self.input.batch(self.number)
        return batch if self._mask is None else batch.filter(self._mask)

    def column(self, place: int) -> Iterator[pa.Array]:
        """One of the table's columns of the rows that are left, block by block. Raises: _NotAloneError."""
        column = self.input.column(self.number, place)
        if column is None:
            raise _NotAloneError
        for start in range(0, len(column), _BLOCK):
            block = column.slice(start, _BLOCK)
            if self._mask is not None:
                block = block.filter(self._mask.slice(start, _BLOCK))
            if not encodes_exactly(block):
                raise _NotAloneError
            yield block

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows that are left, as stored numbers."""
        rows = self.input.rows(self.number)
        return rows if self.kept is None else compress(rows, self.kept)


class _Concatenation:
    """The stripes of the files, one behind another."""

    def __init__(self, fs: FileSystem, work: Rewrite, deletes: DeleteSet) -> None:
        self._fs = fs
        self._work = work
        self._deletes = deletes
        self._target = work.new_file(fs)
        self._pending: list[_Part] = []
        self._pending_rows = self._pending_bytes = 0
        self._last_keys: list[RecordKey] = []
        self._done = Rewritten()
        self._end: Position = (-(1 << 63), 0, 0)

    def run(self) -> Rewritten:
        """Raises: _OverlapError when the rows would not come out sorted."""
        with self._target:
            self._concatenate()
            stats = AcidStats(inserts=self._target.rows)
            self._target.close(acid_metadata(stats, self._last_keys) if self._work.has_events else {})
        return replace(self._done, rows=self._target.rows)

    def _concatenate(self) -> None:
        for file in self._work.inputs:
            with _open(self._fs, self._work, file) as one:
                self._done += Rewritten(bytes_read=one.size)
                fits = one.is_whole and self._target.accepts(one.source)
                for number in range(len(one.source.stripes)):
                    part = self._part(one, number)
                    if part is not None:
                        self._take(part, fits)
                if not one.is_held:  # it will be closed
                    self._flush()
        self._flush()

    def _part(self, one: StripeInput, number: int) -> _Part | None:
        """What is left of a stripe; None for nothing."""
        if not self._work.has_events:
            return _Part(one, number)
        keys, inserts = one.keys(number)
        seen = keys.seen_by(self._work.write_ids)
        if not bool(np.all(inserts[seen])) or not keys.are_sorted():
            raise _OverlapError
        kept = seen & ~self._deletes.hides(keys, one.file.reach)
        count = int(np.count_nonzero(kept))
        self._done += Rewritten(dropped=len(keys) - count)
        if not count:
            return None
        left = keys.where(kept)
        if left.first() <= self._end:
            raise _OverlapError
        self._end = left.at(-1)
        return _Part(one, number, keys, None if count == len(keys) else kept)

    def _take(self, part: _Part, fits: bool) -> None:
        stripe = part.input.source.stripes[part.number]
        sizes = self._work.sizes
        is_small = stripe.rows < sizes.small_rows and stripe.length < sizes.small_bytes
        if fits and part.kept is None and not is_small:
            self._flush()
            self._copy(part)
            return
        self._pending.append(part)
        self._pending_rows += stripe.rows
        self._pending_bytes += stripe.length
        if self._pending_rows >= sizes.group_rows or self._pending_bytes >= sizes.group_bytes:
            self._flush()

    def _copy(self, part: _Part) -> None:
        self._target.copy(part.input.source, part.number)
        if part.keys is not None:
            self._last_keys.append(RecordKey(*part.keys.at(-1)))
        self._done += Rewritten(copied=1)

    def _flush(self) -> None:
        """Write what is pending: as it is where it is one whole stripe."""
        parts, self._pending = self._pending, []
        self._pending_rows = self._pending_bytes = 0
        if not parts:
            return
        [first, *others] = parts
        if not others and first.kept is None and first.input.is_whole and self._target.accepts(first.input.source):
            self._copy(first)
            return
        left = [part.left for part in parts]
        keys = RowKeys.joined([of_part for of_part in left if of_part is not None]) if self._work.has_events else None
        ends = np.cumsum(self._encode(parts, keys))
        if keys is not None:
            self._last_keys += [RecordKey(*keys.at(int(end) - 1)) for end in ends]
        self._done += Rewritten(encoded=len(ends))

    def _encode(self, parts: Sequence[_Part], keys: RowKeys | None) -> list[int]:
        """Write parts as new stripes; the rows of each. By Arrow where it keeps every value."""
        try:
            if keys is not None and self._is_large(parts):
                stripe = _by_columns(parts, keys, self._work)
                if stripe is not None:
                    self._target.append(stripe)
                    return [stripe.rows]
            batches = [part.batch() for part in parts]
        except pa.ArrowInvalid:  # a timestamp that nanoseconds of 64 bits cannot hold
            batches = []
        if batches and all(encodes_exactly(column) for batch in batches for column in batch.columns):
            return self._target.write(batches)
        return self._target.write_rows(row for part in parts for row in part.rows())

    def _is_large(self, parts: Sequence[_Part]) -> bool:
        size = sum(part.input.source.stripes[part.number].length for part in parts)
        return size >= self._work.sizes.column_bytes * len(self._work.row_type.fields)


class _NotAloneError(Exception):
    """A column cannot be read by itself, or Arrow would not keep a value of it."""


def _by_columns(parts: Sequence[_Part], keys: RowKeys, work: Rewrite) -> EncodedStripe | None:
    """Parts as one stripe, ``keys`` being the identity of their rows; None where that cannot be."""

    def encoded(blocks: Iterable[pa.Array]) -> EncodedColumn:
        return EncodedColumn(blocks, work.compression)

    operations = np.broadcast_to(np.int64(Operation.INSERT), len(keys))
    ids = (operations, keys.originals, keys.buckets, keys.row_ids, keys.currents)
    places = range(len(work.row_type.fields))
    try:
        values = [encoded(block for part in parts for block in part.column(place)) for place in places]
    except _NotAloneError:
        return None
    events = [encoded(_blocks(column, t)) for column, (_, t) in zip(ids, work.file_type.fields, strict=False)]
    return stripe_of(events, values, work.compression)


def _blocks(column: Longs, t: HiveType) -> Iterator[pa.Array]:
    return (pa.array(column[start : start + _BLOCK], arrow_type(t)) for start in range(0, len(column), _BLOCK))


# --- sorted ----------------------------------------------------------------------------------------------------------


class _Sorting:
    """All events of the files, sorted; the latest of each row where only live rows are wanted.

    For files of ACID version 1, which have updates and deletes among their inserts, and for a bucket whose files were
    put together in another order. It needs memory for the whole bucket.
    """

    def __init__(self, fs: FileSystem, work: Rewrite, deletes: DeleteSet) -> None:
        self._fs = fs
        self._work = work
        self._deletes = deletes

    def run(self) -> Rewritten:
        fs, work = self._fs, self._work
        rows: list[tuple[Any, ...]] = []
        total = size = 0
        for file in work.inputs:
            with _open(fs, work, file) as one:
                size += one.size
                for number, stripe in enumerate(one.source.stripes):
                    total += stripe.rows
                    keys, _ = one.keys(number)
                    kept = keys.seen_by(work.write_ids) & ~self._deletes.hides(keys, one.file.reach)
                    rows.extend(compress(one.rows(number), kept))
        rows.sort(key=_event_order)
        if work.applies_deletes:
            latest = (next(events) for _, events in groupby(rows, key=_identity))
            rows = [_as_insert(event) for event in latest if event[0] != int(Operation.DELETE)]
        target = work.new_file(fs)
        ends = np.cumsum(target.write_rows(rows)) if rows else np.empty(0, np.int64)
        stats = Counter(event[0] for event in rows)
        kinds = AcidStats(stats[Operation.INSERT], stats[Operation.UPDATE], stats[Operation.DELETE])
        target.close(acid_metadata(kinds, [RecordKey(*_identity(rows[int(end) - 1])) for end in ends]))
        return Rewritten(len(rows), total - len(rows), 0, len(ends), size)


def _identity(event: tuple[Any, ...]) -> Position:
    return event[1], event[2], event[3]


def _event_order(event: tuple[Any, ...]) -> tuple[Any, ...]:
    """``ReaderKey.compareTo`` of Hive: by identity, later transactions first, deletes before the rest."""
    return (*_identity(event), -event[4], -event[0])


def _as_insert(event: tuple[Any, ...]) -> tuple[Any, ...]:
    return (int(Operation.INSERT), *event[1:])
