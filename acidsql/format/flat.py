"""Files whose columns are those of a table, made files of events.

Spark's ORC writer takes twice as long for a struct as for the same columns by themselves: it parses the text of the
struct's schema for every row (``OrcSerializer.createOrcValue``). So its tasks write flat files: those of a plain INSERT
have the table's columns alone, of which the event columns can be told; others have the event columns in front of them.
What tells the columns of a flat file from those of a file of events is the list of types, the numbers of columns, and
what a stripe says about its streams: their bytes are the same, and are copied as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import pyarrow.compute as pc

from acidsql.errors import CorruptFile
from acidsql.format.bucket import decode
from acidsql.format.event_columns import EventColumn, insert_columns, whole_struct
from acidsql.format.orc_statistics import integers_of
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
    Stream,
    StripeFile,
    StripeSource,
    delete_events,
    packed,
    statistics_of,
    streams_of,
)
from acidsql.format.tail import as_errors_of
from acidsql.fs import FileSystem
from acidsql.protobuf import Message, bytes_of, write_message
from acidsql.types import Struct

FLAT_COLUMNS = EVENT_COLUMNS[:-1]
"""The first columns of a flat file; those of the table follow."""

_ROW = EVENT_COLUMNS.index(ROW) + 1
"""The number of ``row`` among the columns of a file of events, the whole of an event being 0."""
_DATA, _ROW_INDEX = 1, 6
"""``Stream.Kind``."""


def nest_rows(fs: FileSystem, path: str, target: str, names: Sequence[str], *, write_id: int, bucket: int) -> int:
    """Make a file of insert events of a file of rows, which get the row ids 0, 1, 2, … in their order.

    Args:
        fs: The file system of both.
        path: The file of rows.
        target: The file to be written.
        names: Names of the table's columns.
        write_id: The write id of the statement.
        bucket: The bucket property of the events.

    Returns:
        The number of events; nothing is written for none.

    Raises:
        CorruptFile: When it is not such a file.
    """
    with fs.open_read(path) as file:
        source = StripeSource(file, path)
        compression = source.footer.compression
        if not source.footer.row_count:
            return 0
        keys: list[RecordKey] = []
        with _new_file(fs, source, target, names, skipped=0) as made:
            for number, stripe in enumerate(source.stripes):
                own = insert_columns(stripe.rows, write_id, bucket, made.rows, compression)
                made.append(_spliced(source, number, own, 1))
                keys.append(RecordKey(write_id, bucket, made.rows - 1))
            made.close(acid_metadata(AcidStats(inserts=made.rows), keys))
        return made.rows


def nest_inserts(fs: FileSystem, path: str, target: str, names: Sequence[str], bucket: int) -> int:
    """Make a file of insert events of a flat one that has the event columns.

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
                own = whole_struct(source.stripes[number].rows, source.footer.compression)
                made.append(_spliced(source, number, [own], _ROW))
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


def _new_file(
    fs: FileSystem, source: StripeSource, target: str, names: Sequence[str], *, skipped: int = len(FLAT_COLUMNS)
) -> StripeFile:
    """The file to be made; ``skipped`` columns of the source are event columns.

    Raises:
        CorruptFile: When they are not, when it has other columns than the table, or when its index entries are not as
            far from each other as those of the file will be.
    """
    fields, footer = source.footer.row_type.fields, source.footer
    if tuple(name for name, _ in fields[:skipped]) != FLAT_COLUMNS[:skipped] or len(fields) - skipped != len(names):
        raise CorruptFile(f"{source.name} has other columns than those to be written")
    if source.index_stride != INDEX_STRIDE:
        raise CorruptFile(f"{source.name} has an index entry for each {source.index_stride} rows")
    row_type = Struct(tuple(zip(names, (type for _, type in fields[skipped:]), strict=True)))
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


def _spliced(source: StripeSource, number: int, own: Sequence[EventColumn], first: int) -> EncodedStripe:
    """A stripe with further columns, the first of which has the number ``first``; those from there on move up."""
    stripe = source.stripes[number]
    footer = source.stripe_footer(number)
    index_length, data_length, _ = stripe.lengths
    with as_errors_of(source.name):
        index, values = _streams(footer)
        encodings = [bytes_of(one) for one in footer.get(2, [])]
        encodings[first:first] = [write_message([(1, column.encoding)]) for column in own]
        statistics = list(statistics_of(stripe, source.name))
        statistics[first:first] = [column.statistics for column in own]
        splits = [_Area(index, first), _Area(values, first)]
    if (splits[0].length, splits[1].length) != (index_length, data_length):
        raise CorruptFile(f"The streams of a stripe of {source.name} are not all of it")
    ours = [
        [(_ROW_INDEX, first + i, column.index) for i, column in enumerate(own)],
        [(_DATA, first + i, column.data) for i, column in enumerate(own) if column.data],
    ]
    streams: list[bytes] = []
    for area, new in zip(splits, ours, strict=True):
        streams += [stream.message() for stream in area.before]
        streams += [Stream(kind, column, len(data)).message() for kind, column, data in new]
        streams += [Stream(s.kind, s.column + len(own), s.length).message() for s in area.behind]
    zones = [bytes_of(zone) for zone in footer.get(3, [])]
    fields = [(kind, one) for kind, parts in ((1, streams), (2, encodings), (3, zones)) for one in parts]
    end = packed(write_message(fields), source.footer.compression)

    def content() -> Iterator[bytes]:
        start = 0
        for area, new in zip(splits, ours, strict=True):
            yield from source.content(number, start, start + area.cut)
            yield from (data for *_, data in new)
            yield from source.content(number, start + area.cut, start + area.length)
            start += area.length
        yield end

    added = [sum(len(data) for *_, data in new) for new in ours]
    lengths = (index_length + added[0], data_length + added[1], len(end))
    return EncodedStripe(content(), lengths, stripe.rows, statistics, source.block_size, source.name)


class _Area:
    """The streams of a stripe's index, or of its data, in the order of their columns.

    Attributes:
        before, behind: Those of columns before a certain one, and from it on.
        cut: Bytes of those before.
        length: Bytes of all.
    """

    def __init__(self, streams: Sequence[Stream], column: int) -> None:
        """Raises: ValueError when the streams are in another order."""
        if any(one.column > other.column for one, other in pairwise(streams)):
            raise ValueError("its streams are not in the order of their columns")
        self.before = [s for s in streams if s.column < column]
        self.behind = [s for s in streams if s.column >= column]
        self.cut = sum(s.length for s in self.before)
        self.length = sum(s.length for s in streams)


def _streams(footer: Message) -> tuple[list[Stream], list[Stream]]:
    """The streams of a stripe's index, and those of its data."""
    if 4 in footer:
        raise ValueError("its stripes are encrypted")
    streams = streams_of(footer)
    index = [stream for stream in streams if stream.is_index]
    if streams[: len(index)] != index:
        raise ValueError("its index is not in front of its data")
    return index, streams[len(index) :]
