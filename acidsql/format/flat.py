"""Files of events whose values stand beside the event columns, made files of events.

Spark's ORC writer takes twice as long for a struct as for the same columns by themselves: it parses the text of the
struct's schema for every row (``OrcSerializer.createOrcValue``). So its tasks write flat files. What tells the columns
of the two apart is the list of types, one more number for ``row``, and what a stripe says about its streams: their
bytes are the same, and are copied as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow.compute as pc

from acidsql.errors import CorruptFile
from acidsql.format.bucket import decode
from acidsql.format.orc_statistics import COUNT, HAS_NULL, integers_of
from acidsql.format.schema import (
    BUCKET,
    CURRENT_TRANSACTION,
    EVENT_COLUMNS,
    KEY_COLUMNS,
    ROW,
    AcidStats,
    RecordKey,
    acid_metadata,
    event_type,
)
from acidsql.format.stripes import (
    INDEX_STRIDE,
    EncodedStripe,
    StripeFile,
    StripeSource,
    delete_events,
    packed,
    statistics_of,
)
from acidsql.format.tail import as_errors_of
from acidsql.fs import FileSystem
from acidsql.protobuf import Message, bytes_of, number_of, read_message, write_message
from acidsql.types import Struct

FLAT_COLUMNS = EVENT_COLUMNS[:-1]
"""The first columns of a flat file; those of the table follow."""

_ROW = EVENT_COLUMNS.index(ROW) + 1
"""The number of ``row`` among the columns of a file of events, the whole of an event being 0."""
_ROW_INDEX = 6
"""``Stream.Kind``."""
_INDEX_KINDS = (_ROW_INDEX, 7, 8)
_DIRECT = write_message([(1, 0)])
"""A ``ColumnEncoding``; that of structs."""


def nest_inserts(fs: FileSystem, path: str, target: str, names: Sequence[str], bucket: int) -> int:
    """Make a file of insert events of a flat one.

    Args:
        fs: The file system of both.
        path: The flat file, sorted by row id.
        target: The file to be written.
        names: Names of the table's columns.
        bucket: The number of the bucket file that it becomes.

    Returns:
        The number of events; nothing is written for none.

    Raises:
        CorruptFile: When it is not such a file, or its events belong to another bucket file: readers look for delete
            events by its number.
    """
    with fs.open_read(path) as file:
        source = StripeSource(file, path)
        if not source.footer.row_count:
            return 0
        keys = _last_keys(source, bucket)
        with _new_file(fs, source, target, names) as made:
            for number in range(len(source.stripes)):
                made.append(_nested(source, number))
            made.close(acid_metadata(AcidStats(inserts=made.rows), keys))
        return made.rows


def nest_deletes(fs: FileSystem, path: str, target: str, names: Sequence[str], bucket: int) -> int:
    """Make a file of delete events, whose rows are NULL, of a flat one. Arguments and errors as above."""
    with fs.open_read(path) as file:
        source = StripeSource(file, path)
        if not source.footer.row_count:
            return 0
        columns = [FLAT_COLUMNS.index(name) for name in (*KEY_COLUMNS, CURRENT_TRANSACTION)]
        keys: list[RecordKey] = []
        with _new_file(fs, source, target, names) as made:
            for number in range(len(source.stripes)):
                batch = source.batch(number, columns)
                _check_bucket(source, bucket, pc.unique(batch.column(BUCKET)).to_pylist())
                end = 0
                for rows in made.write([delete_events(batch, made.row_type)]):
                    end += rows
                    keys.append(RecordKey(*(batch.column(name)[end - 1].as_py() for name in KEY_COLUMNS)))
            made.close(acid_metadata(AcidStats(deletes=made.rows), keys))
        return made.rows


def _new_file(fs: FileSystem, source: StripeSource, target: str, names: Sequence[str]) -> StripeFile:
    fields, count = source.footer.row_type.fields, len(FLAT_COLUMNS)
    if tuple(name for name, _ in fields[:count]) != FLAT_COLUMNS:
        raise CorruptFile(f"{source.name} has no event columns")
    row_type = Struct(tuple(zip(names, (type for _, type in fields[count:]), strict=True)))
    footer = source.footer
    return StripeFile.create(
        fs, target, event_type(row_type), compression=footer.compression, proleptic=footer.proleptic
    )


def _check_bucket(source: StripeSource, bucket: int, properties: Iterable[int]) -> None:
    found = sorted(properties)
    if {decode(one).writer_id for one in found} != {bucket}:
        raise CorruptFile(f"Events of {source.name}, written as bucket {bucket}, have bucket properties {found}")


def _last_keys(source: StripeSource, bucket: int) -> list[RecordKey]:
    """The identity of the last event of each stripe, by the statistics."""
    keys: list[RecordKey] = []
    for stripe in source.stripes:
        with as_errors_of(source.name):
            statistics = statistics_of(stripe, source.name)
            ranges = [integers_of(statistics[EVENT_COLUMNS.index(name) + 1]) for name in KEY_COLUMNS]
        known = [found for found in ranges if found is not None]
        if len(known) < len(ranges):
            raise CorruptFile(f"{source.name} does not tell the row ids of its stripes")
        (first_id, write_id), (first_bucket, last_bucket), (first_row, last_row) = known
        _check_bucket(source, bucket, {first_bucket, last_bucket})
        if first_id != write_id or first_bucket != last_bucket or (keys and first_row <= keys[-1].row_id):
            raise CorruptFile(f"{source.name} is not sorted by row id")
        keys.append(RecordKey(write_id, last_bucket, last_row))
    return keys


def _nested(source: StripeSource, number: int) -> EncodedStripe:
    """A stripe with the column ``row``, whose index is one more stream: it is NULL nowhere."""
    stripe = source.stripes[number]
    footer = source.stripe_footer(number)
    index = _row_index(stripe.rows, source.footer.compression)
    with as_errors_of(source.name):
        streams, before = _streams(footer, len(index))
        encodings = [bytes_of(one) for one in footer.get(2, [])]
        fields: list[tuple[int, int | bytes]] = [(1, one) for one in streams]
        fields += [(2, one) for one in [*encodings[:_ROW], _DIRECT, *encodings[_ROW:]]]
        fields += [(3, bytes_of(zone)) for zone in footer.get(3, [])]
        statistics = list(statistics_of(stripe, source.name))
    statistics.insert(_ROW, write_message([(COUNT, stripe.rows), (HAS_NULL, 0)]))
    end = packed(write_message(fields), source.footer.compression)
    index_length, data_length, _ = stripe.lengths

    def content() -> Iterator[bytes]:
        yield from source.content(number, 0, before)
        yield index
        yield from source.content(number, before, index_length + data_length)
        yield end

    lengths = (index_length + len(index), data_length, len(end))
    return EncodedStripe(content(), lengths, stripe.rows, statistics, source.block_size, source.name)


def _streams(footer: Message, length: int) -> tuple[list[bytes], int]:
    """The streams with that of the index of ``row``, and how many bytes stand in front of it."""
    if 4 in footer:
        raise ValueError("its stripes are encrypted")
    made: list[bytes] = []
    before, at = None, 0
    own = write_message([(1, _ROW_INDEX), (2, _ROW), (3, length)])
    for one in footer.get(1, []):
        stream = read_message(bytes_of(one))
        column = number_of(stream, 2)
        if before is None and (column >= _ROW or number_of(stream, 1) not in _INDEX_KINDS):
            before = at
            made.append(own)
        at += number_of(stream, 3)
        shifted = column + 1 if column >= _ROW else column
        made.append(write_message([(1, number_of(stream, 1)), (2, shifted), (3, number_of(stream, 3))]))
    if before is None:
        before = at
        made.append(own)
    return made, before


def _row_index(rows: int, compression: str) -> bytes:
    """The index of a struct that is NULL nowhere: it has no streams, so that there are no positions in any."""
    counts = [min(INDEX_STRIDE, rows - start) for start in range(0, rows, INDEX_STRIDE)]
    entries = [write_message([(2, write_message([(COUNT, count), (HAS_NULL, 0)]))]) for count in counts]
    return packed(write_message((1, entry) for entry in entries), compression)
