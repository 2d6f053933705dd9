"""Live rows of several files spread over new files, with new row ids: what a rebalance compaction writes.

A new file is written block by block, a block being one stripe's rows or, where the rows come in an order of their own,
the whole file. The stripes that hold a block's rows are decoded one after another, and what is taken of each is put
together in the block's order. So what is in memory is a block, and a stripe of each file that is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from acidsql.format.arrow_limits import encodes_exactly
from acidsql.format.delete_set import Longs
from acidsql.format.rewrite import STRIPE_SIZES, Rewritten, StripeSizes, size_of
from acidsql.format.schema import (
    BUCKET,
    EVENT_COLUMNS,
    ORIGINAL_TRANSACTION,
    AcidStats,
    Operation,
    RecordKey,
    acid_metadata,
    event_type,
)
from acidsql.format.stripes import StripeFile, StripeSource
from acidsql.fs import FileSystem
from acidsql.row_set import runs
from acidsql.types import Struct

_KEYS = [EVENT_COLUMNS.index(ORIGINAL_TRANSACTION), EVENT_COLUMNS.index(BUCKET)]
_ROW = len(EVENT_COLUMNS) - 1

_Taken = tuple[Longs, pa.StructArray]
"""Places of rows, ascending, and the rows."""


@dataclass(frozen=True)
class Pieces:
    """Rows in an order: piece after piece, each some rows that stand one behind another in a file.

    Attributes:
        files, firsts, counts: Of each piece the number of its file, its first row there, and how many rows it has.
        write_ids: The write id that its rows get.
    """

    files: Longs
    firsts: Longs
    counts: Longs
    write_ids: Longs

    @property
    def rows(self) -> int:
        """Rows of all pieces."""
        return int(self.counts.sum())

    def slice(self, start: int, stop: int) -> Pieces:
        """The rows with these numbers in the order."""
        ends = np.cumsum(self.counts)
        begins = ends - self.counts
        hit = (ends > start) & (begins < stop)
        skipped = np.maximum(start - begins[hit], 0)
        counts = np.minimum(ends[hit], stop) - begins[hit] - skipped
        return Pieces(self.files[hit], self.firsts[hit] + skipped, counts, self.write_ids[hit])

    def each(self) -> Pieces:
        """Every row a piece of its own."""
        begins = np.cumsum(self.counts) - self.counts
        within = np.arange(self.rows, dtype=np.int64) - np.repeat(begins, self.counts)
        firsts = np.repeat(self.firsts, self.counts) + within
        files, write_ids = (np.repeat(column, self.counts) for column in (self.files, self.write_ids))
        return Pieces(files, firsts, np.ones(len(firsts), np.int64), write_ids)


@dataclass(frozen=True)
class Share:
    """One new file.

    Attributes:
        target: The file to be written.
        row_type: The table's data columns.
        compression: ``none``, ``zlib``, ``snappy``, ``lz4`` or ``zstd``.
        bucket: ``bucket`` value of its rows.
        first_row_id: ``rowId`` of its first row; the others count on.
        inputs: The files with the rows: such as :func:`~acidsql.format.rewrite.rewrite_rows` writes.
        pieces: Its rows, by the number of the input.
        is_sorted: Whether they come in an order of their own, and not file by file in theirs.
        sizes: The sizes of stripes.
    """

    target: str
    row_type: Struct
    compression: str
    bucket: int
    first_row_id: int
    inputs: tuple[str, ...]
    pieces: Pieces
    is_sorted: bool = False
    sizes: StripeSizes = STRIPE_SIZES


def runs_of(fs: FileSystem, paths: Sequence[str]) -> Pieces:
    """The rows of files in the order of their ids, as Hive has it: by write id, ``bucket`` and row id.

    Files are sorted so, and two of them have no ``bucket`` value in common: a piece is what a statement wrote into one.
    """
    found: list[tuple[int, int, int, int, int]] = []
    for number, path in enumerate(paths):
        source = StripeSource(fs.open_read(path), path)
        try:
            found += ((w, b, number, first, count) for w, b, first, count in _runs(source))
        finally:
            source.close()
    columns = np.array(sorted(found), np.int64).reshape(-1, 5).T
    write_ids, _, files, firsts, counts = columns
    return Pieces(files, firsts, counts, write_ids)


def _runs(source: StripeSource) -> Iterator[tuple[int, int, int, int]]:
    """Write id, ``bucket``, first row and number of rows of what stands together; a stripe's end parts it, too."""
    before = 0
    for number, stripe in enumerate(source.stripes):
        batch = source.batch(number, _KEYS)
        originals, buckets = (np.asarray(column.cast(pa.int64())) for column in batch.columns)
        for start, end in runs(originals, buckets):
            yield int(originals[start]), int(buckets[start]), before + start, end - start
        before += stripe.rows


def row_batches(fs: FileSystem, path: str) -> Iterator[pa.StructArray | list[Any]]:
    """The rows of a file, stripe by stripe; as stored numbers where Arrow cannot hold a value."""
    source = StripeSource(fs.open_read(path), path)
    try:
        for number in range(len(source.stripes)):
            try:
                yield source.batch(number).column(_ROW)
            except pa.ArrowInvalid:  # a timestamp that nanoseconds of 64 bits cannot hold
                yield [event[_ROW] for event in source.rows(number)]
    finally:
        source.close()


def write_share(fs: FileSystem, share: Share) -> Rewritten:
    """Write one new file, also where it has no row.

    Raises:
        CorruptFile: When a file cannot be read.
    """
    with ExitStack() as stack:
        inputs = [stack.enter_context(_Input(fs, path)) for path in share.inputs]
        types = event_type(share.row_type)
        target = stack.enter_context(StripeFile.create(fs, share.target, types, compression=share.compression))
        last_keys = _Writer(share, inputs, target).run()
        target.close(acid_metadata(AcidStats(inserts=target.rows), last_keys))
    return Rewritten(target.rows, 0, 0, len(last_keys), 0, size_of(fs, share.target))


class _Input:
    """A file with rows, of which the stripe that was decoded last is kept: the next block may go on in it."""

    def __init__(self, fs: FileSystem, path: str) -> None:
        self.source = StripeSource(fs.open_read(path), path)
        self.ends: Longs = np.cumsum([stripe.rows for stripe in self.source.stripes], dtype=np.int64)
        self.bytes = sum(stripe.length for stripe in self.source.stripes)
        self._kept: tuple[int, pa.StructArray] | None = None

    def __enter__(self) -> _Input:
        return self

    def __exit__(self, *_: object) -> None:
        self.source.close()

    @property
    def rows(self) -> int:
        """Its rows."""
        return int(self.ends[-1]) if len(self.ends) else 0

    def stripe(self, number: int) -> pa.StructArray:
        """The rows of a stripe. Raises: pa.ArrowInvalid for what Arrow cannot hold."""
        if self._kept is None or self._kept[0] != number:
            self._kept = None
            self._kept = number, self.source.batch(number).column(_ROW)
        return self._kept[1]

    def split(self, rows: Longs) -> Iterator[tuple[int, Longs, Longs]]:
        """Each stripe that has any of some rows: its number, which of them they are, and their numbers in it."""
        stripes = np.searchsorted(self.ends, rows, side="right")
        for number in np.unique(stripes).tolist():
            which = np.flatnonzero(stripes == number)
            yield number, which, rows[which] - (self.ends[number] - self.source.stripes[number].rows)


class _Writer:
    def __init__(self, share: Share, inputs: Sequence[_Input], target: StripeFile) -> None:
        self._share = share
        self._inputs = inputs
        self._target = target
        rows, size = (sum(getattr(one, name) for one in inputs) for name in ("rows", "bytes"))
        sizes = share.sizes
        self._stripe_rows = max(1, min(sizes.group_rows, sizes.group_bytes * rows // max(1, size)))

    def run(self) -> list[RecordKey]:
        """The key of the last row of each stripe."""
        share, last_keys = self._share, list[RecordKey]()
        total = share.pieces.rows
        for start in range(0, total, total if share.is_sorted else self._stripe_rows):
            block = share.pieces.slice(start, total if share.is_sorted else start + self._stripe_rows).each()
            taken = self._taken(block)
            for at in range(0, block.rows, self._stripe_rows):
                rows = block.slice(at, at + self._stripe_rows)
                first_row_id = share.first_row_id + start + at
                batch = None if taken is None else self._events(rows, first_row_id, _in_order(taken, at, rows.rows))
                ends = self._write_stored(rows, first_row_id) if batch is None else self._target.write([batch])
                for last in (np.cumsum(ends) - 1).tolist():
                    last_keys.append(RecordKey(int(rows.write_ids[last]), share.bucket, first_row_id + last))
        return last_keys

    def _taken(self, block: Pieces) -> list[_Taken] | None:
        """The rows of a block, stripe by stripe; None where Arrow cannot hold a value."""
        try:
            return [
                (which, source.stripe(number).take(pa.array(within)))
                for which, number, within, source in self._places(block)
            ]
        except pa.ArrowInvalid:  # a timestamp that nanoseconds of 64 bits cannot hold
            return None

    def _places(self, rows: Pieces) -> Iterator[tuple[Longs, int, Longs, _Input]]:
        """Which of the rows stand in a stripe, the stripe's number, the rows' numbers in it, and its file."""
        for number in np.unique(rows.files).tolist():
            of_file = np.flatnonzero(rows.files == number)
            for stripe, which, within in self._inputs[number].split(rows.firsts[of_file]):
                yield of_file[which], stripe, within, self._inputs[number]

    def _events(self, rows: Pieces, first_row_id: int, values: pa.StructArray | None) -> pa.RecordBatch | None:
        """None where Arrow's writer would not keep every value."""
        if values is None or not encodes_exactly(values):
            return None
        write_ids, count = pa.array(rows.write_ids), rows.rows
        arrays = [
            pa.array(np.full(count, int(Operation.INSERT), np.int32)),
            write_ids,
            pa.array(np.full(count, self._share.bucket, np.int32)),
            pa.array(np.arange(first_row_id, first_row_id + count, dtype=np.int64)),
            write_ids,
            values,
        ]
        return pa.record_batch(arrays, names=list(EVENT_COLUMNS))

    def _write_stored(self, rows: Pieces, first_row_id: int) -> list[int]:
        """Write rows as stored numbers: slow, but exact for every type."""
        found: list[Any] = [None] * rows.rows
        for which, number, within, source in self._places(rows):
            wanted = dict(zip(within.tolist(), which.tolist(), strict=True))
            for at, event in enumerate(source.source.rows(number)):
                if at in wanted:
                    found[wanted[at]] = event[_ROW]
        write_ids, bucket = rows.write_ids.tolist(), self._share.bucket
        return self._target.write_rows(
            (int(Operation.INSERT), write_id, bucket, row_id, write_id, row)
            for row_id, (write_id, row) in enumerate(zip(write_ids, found, strict=True), first_row_id)
        )


def _in_order(taken: Sequence[_Taken], start: int, count: int) -> pa.StructArray | None:
    """Some of the rows that were taken, by their places; None for text of more than 2 GB.

    The rows of each chunk are in the order of their places, so that those of a range stand together.
    """
    bounds = [(*np.searchsorted(which, (start, start + count)).tolist(), which, chunk) for which, chunk in taken]
    parts = [(which[low:high], chunk.slice(low, high - low)) for low, high, which, chunk in bounds if high > low]
    places = np.concatenate([which for which, _ in parts])
    try:
        values = pa.concat_arrays([chunk for _, chunk in parts])
    except pa.ArrowInvalid:
        return None
    return values if len(parts) == 1 else values.take(pa.array(np.argsort(places)))
