"""ORC files composed of stripes: copied byte by byte from other files, or newly encoded.

A stripe holds all that is needed to decode it but for what the file's tail says: types, compression, calendar, the
distance of index entries. Where these agree, stripes can be moved from file to file as they are, which is exact
whatever they hold and as fast as copying files. The layout is that of ORC's ``orc_proto.proto``.
"""

from __future__ import annotations

import io
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyorc
from pyarrow import orc

from acidsql.errors import CorruptFile, UnsupportedError
from acidsql.format.arrow_limits import writable
from acidsql.format.memory import give_back
from acidsql.format.orc_statistics import merged
from acidsql.format.orc_types import COMPRESSIONS, arrow_type, pyorc_type, shape, shape_of, type_messages
from acidsql.format.schema import CURRENT_TRANSACTION, EVENT_COLUMNS, KEY_COLUMNS, Operation
from acidsql.format.tail import (
    COMPRESSION_CODES,
    MAGIC,
    MAX_FOOTER,
    UNREADABLE,
    OrcFooter,
    as_errors_of,
    expand,
    footer_of,
    read_tail,
    types_of,
)
from acidsql.format.values import CONVERTERS
from acidsql.format.writer_clocks import clock_of, fix_of, is_utc, with_clocks
from acidsql.fs import FileSystem
from acidsql.protobuf import Message, bytes_of, number_of, numbers_of, read_message, write_message
from acidsql.types import HiveType, Struct, contains

INDEX_STRIDE = 10_000
"""Rows between two entries of an index, as Hive's writers and Spark's have it by default."""

_OLDEST_WRITER = 4
"""Statistics and streams of writers before this one (``HIVE_12055``) are read by rules of their own."""
_WRITER, _WRITER_VERSION = 1, 6
"""Which writer a file claims: ORC's in C++, in its one version, which promises the least to readers."""
_HYBRID, _PROLEPTIC = 1, 2
CHUNK_BYTES = 1 << 18
"""Bytes of a chunk of compression."""
_SMALL_BYTES = 1 << 16
"""Rows of fewer bytes make no larger chunks. The writer takes memory for a whole chunk of each stream at once, which
takes longer than to encode a few rows; it knows no smaller chunks."""
_COPY_BYTES = 1 << 20
_KEPT_BYTES = 64 << 20
"""Of stripes of a file that are kept in memory, because their columns are read one by one."""
DIVIDER = "."
"""Stands between the names in a path of Arrow's; a name that has one would be taken for such a path."""
JUST_ENCODED = "what was just encoded"
"""The name of a file in memory, for errors."""
_DICTIONARY_THRESHOLD = 0.8
_FILE_VERSION = (0, 12)


@dataclass(frozen=True)
class SourceStripe:
    """A stripe of a file that is read.

    Attributes:
        offset: Its first byte.
        lengths: Bytes of its index, its data and its footer.
        rows: Its rows.
        statistics: ``StripeStatistics`` as it stands in the file, None where the file has none.
    """

    offset: int
    lengths: tuple[int, int, int]
    rows: int
    statistics: bytes | None

    @property
    def length(self) -> int:
        """All bytes."""
        return sum(self.lengths)


@dataclass(frozen=True)
class EncodedStripe:
    """A stripe as it is to stand in a file.

    Attributes:
        content: Its bytes, in pieces.
        lengths: Bytes of its index, its data and its footer.
        rows: Its rows.
        statistics: ``ColumnStatistics`` of each column.
        block_size: The most bytes of a chunk of compression.
        origin: The file that it comes from, for errors.
    """

    content: Iterable[bytes | memoryview]
    lengths: tuple[int, int, int]
    rows: int
    statistics: Sequence[bytes]
    block_size: int
    origin: str


@dataclass(frozen=True)
class Stream:
    """A stream of a stripe, as its footer has it: ``Stream.Kind``, the number of its column, and its bytes."""

    kind: int
    column: int
    length: int

    @property
    def is_index(self) -> bool:
        """Whether it is one of the index, which stands in front of the data: of rows, or a Bloom filter."""
        return self.kind in (6, 7, 8)

    def message(self) -> bytes:
        """Itself in a footer."""
        return write_message([(1, self.kind), (2, self.column), (3, self.length)])


def streams_of(footer: Message) -> list[Stream]:
    """The streams of a stripe in their order, by :meth:`StripeSource.stripe_footer`."""
    found = (read_message(bytes_of(one)) for one in footer.get(1, []))
    return [Stream(number_of(one, 1), number_of(one, 2), number_of(one, 3)) for one in found]


class StripeSource:
    """An ORC file whose stripes are copied or decoded. It reads no more than it is asked for.

    Attributes:
        footer: What the file says about itself.
        stripes: Its stripes.
    """

    def __init__(self, file: BinaryIO, name: str, length: int | None = None) -> None:
        """``length`` where the file ends before its physical end (see :func:`~acidsql.format.tail.read_footer`).

        Raises:
            CorruptFile, UnsupportedError: As by :func:`~acidsql.format.tail.read_footer`.
        """
        self.name = name
        self._file = file if length is None else io.BytesIO(_first(file, length))
        self._tail = read_tail(self._file, name, statistics=True)
        self.footer: OrcFooter = footer_of(self._tail, name)
        with as_errors_of(name):
            statistics: list[bytes] = self._tail.stripe_statistics
        infos = [read_message(bytes_of(one)) for one in self._tail.footer.get(3, [])]
        known = statistics if len(statistics) == len(infos) else repeat(None, len(infos))
        self.stripes = [
            SourceStripe(
                number_of(info, 1),
                (number_of(info, 2), number_of(info, 3), number_of(info, 4)),
                number_of(info, 5),
                found,
            )
            for info, found in zip(infos, known, strict=True)
        ]
        self._arrow: orc.ORCFile | None = None
        self._rows: pyorc.Reader | None = None
        self._gmt: OrderedDict[int, orc.ORCFile] = OrderedDict()
        """Stripes of which single columns were read, as if their writer were in GMT: the last ones."""

    @property
    def block_size(self) -> int:
        """The most bytes of a chunk of compression."""
        return number_of(self._tail.postscript, 3)

    @property
    def index_stride(self) -> int:
        """Rows between two entries of an index."""
        return number_of(self._tail.footer, 8)

    def fits(self, types: HiveType, compression: str, *, proleptic: bool) -> bool:
        """Whether the stripes mean in another file what they mean here: names of fields may differ."""
        return (
            self.footer.compression == compression
            and self.footer.proleptic == proleptic
            and self.index_stride == INDEX_STRIDE
            and number_of(self._tail.postscript, 6) >= _OLDEST_WRITER
            and tuple(numbers_of(self._tail.postscript.get(4, []))) <= _FILE_VERSION
            and 10 not in self._tail.footer  # encryption
            and shape([bytes_of(one) for one in self._tail.footer.get(4, [])]) == shape_of(types)
            and all(stripe.statistics is not None for stripe in self.stripes)
        )

    def content(self, number: int, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """The bytes of a stripe, or some of them, in pieces."""
        stripe = self.stripes[number]
        at, end = stripe.offset + start, stripe.offset + (stripe.length if stop is None else stop)
        while at < end:
            self._file.seek(at)
            piece = self._file.read(min(end - at, _COPY_BYTES))
            if not piece:
                raise CorruptFile(f"{self.name} is truncated")
            at += len(piece)
            yield piece

    def stripe_footer(self, number: int) -> Message:
        """What a stripe says about its streams and columns (``StripeFooter``)."""
        length = self.stripes[number].lengths[2]
        packed = b"".join(self.content(number, self.stripes[number].length - length))
        with as_errors_of(self.name):
            return read_message(expand(packed, self.footer.compression, MAX_FOOTER))

    def batch(self, number: int, columns: Sequence[int] | Sequence[str] | None = None) -> pa.RecordBatch:
        """A stripe decoded; only some columns where given: those at the top by number, any by its path.

        Raises:
            pa.ArrowInvalid: When a timestamp is out of Arrow's range of nanoseconds: see :meth:`rows`.
            UnsupportedError: When what its writer's clocks say is not known (:mod:`acidsql.format.writer_clocks`).
        """
        wanted: list[int | str] | None = None if columns is None else list(columns)
        zone = self._zone(number) if self._read_clocks(wanted) else ""
        if is_utc(zone):
            if self._arrow is None:
                self._arrow = orc.ORCFile(pa.PythonFile(self._file, mode="r"))
            return self._arrow.read_stripe(number, columns=wanted)
        in_gmt = self._gmt.pop(number, None) or orc.ORCFile(pa.BufferReader(self._in_gmt(number)))
        read = in_gmt.read_stripe(0, columns=wanted)
        if wanted is not None:  # other columns may be next, of this stripe or of those before it
            self._gmt[number] = in_gmt
            while len(self._gmt) > 1 and sum(self.stripes[n].length for n in self._gmt) > _KEPT_BYTES:
                self._gmt.popitem(last=False)
        clock = clock_of(zone)
        return pa.record_batch([with_clocks(column, clock) for column in read.columns], names=read.schema.names)

    def _read_clocks(self, columns: Sequence[int | str] | None) -> bool:
        """Whether there are timestamps in some columns; in doubt there are."""
        if columns is None or not self._has_clocks:
            return self._has_clocks
        return any(contains(self._type_of(column), "timestamp") for column in columns)

    def _type_of(self, column: int | str) -> HiveType:
        """The type of a column, by its number at the top or by its path; that of the whole row for an unknown path."""
        assert isinstance(self._root, Struct)
        if isinstance(column, int):
            return self._root.fields[column][1]
        found: HiveType = self._root
        for name in column.split(DIVIDER):
            fields = dict(found.fields) if isinstance(found, Struct) else {}
            if name not in fields:
                return self._root
            found = fields[name]
        return found

    def rows(self, number: int) -> Iterator[tuple[Any, ...]]:
        """A stripe's rows as the stored numbers (see :mod:`acidsql.format.values`): slow, but exact for every type.

        Raises:
            UnsupportedError: As :meth:`batch`.
        """
        zone = self._zone(number) if self._has_clocks else ""
        if is_utc(zone):
            if self._rows is None:
                self._rows = pyorc.Reader(self._file, converters=CONVERTERS)
            return iter(self._rows.read_stripe(number))
        in_gmt = pyorc.Reader(io.BytesIO(self._in_gmt(number)), converters=CONVERTERS)
        fix = fix_of(self._root, clock_of(zone))
        assert fix is not None
        return map(fix, in_gmt.read_stripe(0))

    @cached_property
    def _root(self) -> HiveType:
        with as_errors_of(self.name):
            return types_of(tuple(map(bytes_of, self._tail.footer.get(4, []))))

    @cached_property
    def _has_clocks(self) -> bool:
        return contains(self._root, "timestamp")

    def _zone(self, number: int) -> str:
        """The zone of a stripe's writer (``writerTimezone``)."""
        zones = self.stripe_footer(number).get(3, [])
        return bytes_of(zones[0]).decode() if zones else ""

    def _in_gmt(self, number: int) -> bytes:
        """A file with one stripe, whose writer it puts into GMT."""
        stripe, compression = self.stripes[number], self.footer.compression
        said = [
            (field, value) for field, values in self.stripe_footer(number).items() for value in values if field != 3
        ]
        end = packed(write_message([*said, (3, b"GMT")]), compression, self.block_size or CHUNK_BYTES)
        content = b"".join(self.content(number, 0, stripe.length - stripe.lengths[2]))
        lengths = (*stripe.lengths[:2], len(end))
        info = write_message(zip((1, 2, 3, 4, 5), (len(MAGIC), *lengths, stripe.rows), strict=True))
        footer = self._tail.footer | {2: [len(MAGIC) + sum(lengths)], 3: [info], 6: [stripe.rows]}
        tail = packed(_message(footer), compression, self.block_size or CHUNK_BYTES)
        postscript = _message(self._tail.postscript | {1: [len(tail)], 5: [0]})
        return MAGIC + content + end + tail + postscript + bytes([len(postscript)])

    def close(self) -> None:
        self._file.close()


def _message(fields: Message) -> bytes:
    return write_message((field, value) for field, values in fields.items() for value in values)


def _first(file: BinaryIO, length: int) -> bytes:
    file.seek(0)
    return file.read(length)


class StripeFile:
    """A new ORC file, stripe after stripe. What is written is whole once :meth:`close` has been called."""

    def __init__(self, file: BinaryIO, types: Struct, *, compression: str, proleptic: bool = False) -> None:
        """
        Args:
            file: The file to be written.
            types: Types of the rows.
            compression: ``none``, ``zlib``, ``snappy``, ``lz4`` or ``zstd``.
            proleptic: How days before 1582 are counted in what comes.

        Raises:
            UnsupportedError: When the compression is not known.
        """
        _check_compression(compression)
        self._file = file
        self._types = types
        self._compression = compression
        self._proleptic = proleptic
        self._infos: list[bytes] = []
        self._statistics: list[tuple[str, Sequence[bytes]]] = []
        self._at = len(MAGIC)
        self._block_size = CHUNK_BYTES
        self.rows = 0
        file.write(MAGIC)

    @classmethod
    def create(
        cls, fs: FileSystem, path: str, types: Struct, *, compression: str, proleptic: bool = False
    ) -> StripeFile:
        """A new file at a path. Errors as above, before there is a file."""
        _check_compression(compression)
        return cls(fs.open_write(path), types, compression=compression, proleptic=proleptic)

    def __enter__(self) -> StripeFile:
        return self

    def __exit__(self, *_: object) -> None:
        """Close what is not closed yet: after an error it is not whole."""
        self._file.close()

    @property
    def row_type(self) -> Struct:
        """Types of the table's columns, in a file of events."""
        [*_, (_, row)] = self._types.fields
        assert isinstance(row, Struct)
        return row

    def accepts(self, source: StripeSource) -> bool:
        """Whether stripes of a file can be copied."""
        return source.fits(self._types, self._compression, proleptic=self._proleptic)

    def copy(self, source: StripeSource, number: int) -> None:
        """Append a stripe of a file that :meth:`accepts` says yes to, byte by byte."""
        stripe = source.stripes[number]
        self.append(
            EncodedStripe(
                source.content(number),
                stripe.lengths,
                stripe.rows,
                statistics_of(stripe, source.name),
                source.block_size,
                source.name,
            )
        )

    def append(self, stripe: EncodedStripe) -> None:
        """Append a stripe as it is."""
        self._statistics.append((stripe.origin, stripe.statistics))
        for piece in stripe.content:
            self._file.write(piece)
        fields = zip((1, 2, 3, 4, 5), (self._at, *stripe.lengths, stripe.rows), strict=True)
        self._infos.append(write_message(fields))
        self._block_size = max(self._block_size, stripe.block_size)
        self._at += sum(stripe.lengths)
        self.rows += stripe.rows

    def write(self, batches: Iterable[pa.RecordBatch]) -> list[int]:
        """Encode rows as one stripe, or as more where they are many; the rows of each.

        The batches have the file's columns in its order, char padded, days and seconds as the calendar of the file
        counts them, and no timestamp that :func:`~acidsql.format.arrow_limits.encodes_exactly` says no to.
        """
        made = io.BytesIO()
        is_small = isinstance(batches, list) and sum(batch.nbytes for batch in batches) < _SMALL_BYTES
        options = writer_options(self._compression, _SMALL_BYTES if is_small else CHUNK_BYTES)
        with orc.ORCWriter(made, **options) as writer:
            for batch in batches:
                writer.write(pa.table([writable(column) for column in batch.columns], names=batch.schema.names))
        del writer
        give_back(len(type_messages(self._types)))
        return self._append(made)

    def write_rows(self, rows: Iterable[tuple[Any, ...]]) -> list[int]:
        """Encode rows of stored numbers, as :meth:`StripeSource.rows` gives them; the rows of each stripe."""
        made = io.BytesIO()
        writer = pyorc.Writer(
            made, pyorc_type(self._types), compression=COMPRESSIONS[self._compression], converters=CONVERTERS
        )
        writer.writerows(rows)
        writer.close()
        return self._append(made)

    def _append(self, made: io.BytesIO) -> list[int]:
        source = StripeSource(made, JUST_ENCODED)
        for number in range(len(source.stripes)):
            self.copy(source, number)
        return [stripe.rows for stripe in source.stripes]

    def close(self, metadata: Mapping[str, bytes]) -> None:
        """Write the tail: statistics of the stripes, footer with types, statistics of the file and user metadata."""
        of_stripes = [write_message((1, one) for one in columns) for _, columns in self._statistics]
        stripes = self._packed(write_message((1, one) for one in of_stripes))
        self._file.write(stripes)
        types = type_messages(self._types)
        columns = [self._merged(number) for number in range(len(types))]
        footer = write_message(
            [
                (1, len(MAGIC)),
                (2, self._at),
                *((3, info) for info in self._infos),
                *((4, one) for one in types),
                *((5, write_message([(1, key.encode()), (2, value)])) for key, value in metadata.items()),
                (6, self.rows),
                *((7, one) for one in columns),
                (8, INDEX_STRIDE),
                (9, _WRITER),
                (11, _PROLEPTIC if self._proleptic else _HYBRID),
            ]
        )
        footer_chunks = self._packed(footer)
        self._file.write(footer_chunks)
        postscript = write_message(
            [
                (1, len(footer_chunks)),
                (2, COMPRESSION_CODES.index(self._compression)),
                (3, self._block_size),
                *((4, number) for number in _FILE_VERSION),
                (5, len(stripes)),
                (6, _WRITER_VERSION),
                (8000, MAGIC),
            ]
        )
        self._file.write(postscript + bytes([len(postscript)]))
        self._file.close()

    def _merged(self, number: int) -> bytes:
        """Statistics of a column. Raises: CorruptFile, which names the file that those came from that mean nothing."""
        try:
            return merged([columns[number] for _, columns in self._statistics])
        except UNREADABLE:
            for name, columns in self._statistics:
                with as_errors_of(name):
                    merged([columns[number]])
            raise

    def _packed(self, data: bytes) -> bytes:
        return packed(data, self._compression, self._block_size)


def writer_options(compression: str, block_size: int = CHUNK_BYTES) -> dict[str, Any]:
    """The options of Arrow's ORC writer; ``block_size`` is that of a chunk of compression."""
    return {
        "compression": "uncompressed" if compression == "none" else compression,
        "compression_block_size": block_size,
        "row_index_stride": INDEX_STRIDE,
        "dictionary_key_size_threshold": _DICTIONARY_THRESHOLD,
    }


def _check_compression(compression: str) -> None:
    if compression not in COMPRESSIONS:
        raise UnsupportedError(
            f"Compression {compression!r} cannot be written", hint=f"Use one of {list(COMPRESSIONS)}"
        )


def packed(data: bytes, compression: str, block_size: int = CHUNK_BYTES) -> bytes:
    """Chunks as readers of a compression expect them; those of LZ4 and SNAPPY hold plain bytes."""
    if compression == "none":
        return data
    made = bytearray()
    for start in range(0, len(data), block_size):
        piece = data[start : start + block_size]
        smaller = _deflated(piece) if compression == "zlib" else piece
        if compression == "zstd":
            smaller = pa.compress(piece, codec="zstd", asbytes=True)
        is_plain = len(smaller) >= len(piece)
        chunk = piece if is_plain else smaller
        made += (len(chunk) << 1 | is_plain).to_bytes(3, "little") + chunk
    return bytes(made)


def _deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def statistics_of(stripe: SourceStripe, name: str) -> Sequence[bytes]:
    """The statistics of the columns of a stripe (``ColumnStatistics``)."""
    with as_errors_of(name):
        return [bytes_of(one) for one in read_message(stripe.statistics or b"").get(1, [])]


def delete_events(keys: pa.RecordBatch, row_type: Struct) -> pa.RecordBatch:
    """Delete events as :meth:`StripeFile.write` takes them, of the four columns of their keys and of who deletes."""
    count = len(keys)
    operation = pa.array(np.full(count, int(Operation.DELETE), np.int32))
    arrays = [operation, *(keys.column(name) for name in (*KEY_COLUMNS, CURRENT_TRANSACTION))]
    return pa.record_batch([*arrays, pa.nulls(count, arrow_type(row_type))], names=list(EVENT_COLUMNS))


def insert_events(rows: pa.StructArray, write_id: int, bucket: int, first_row_id: int) -> pa.RecordBatch:
    """Insert events of one statement, as :meth:`StripeFile.write` takes them."""
    count = len(rows)
    write_ids = pa.array(np.full(count, write_id, np.int64))
    operation = pa.array(np.full(count, int(Operation.INSERT), np.int32))
    buckets = pa.array(np.full(count, bucket, np.int32))
    ids = pa.array(np.arange(first_row_id, first_row_id + count, dtype=np.int64))
    return pa.record_batch([operation, write_ids, buckets, ids, write_ids, rows], names=list(EVENT_COLUMNS))
