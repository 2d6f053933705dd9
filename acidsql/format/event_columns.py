"""The event columns of inserted rows, encoded: they are the same in all rows, or count them.

A run of ORC's run length encoding (version 2) that begins at a value and goes on by a fixed difference takes five to
fifteen bytes for 512 rows, so that nothing has to be written row by row. Each run begins in the group of rows of one
index entry and ends in it: an entry's position is the beginning of a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from acidsql.format.orc_statistics import COUNT, HAS_NULL
from acidsql.format.stripes import CHUNK_BYTES, INDEX_STRIDE, packed
from acidsql.protobuf import write_message, write_varint, zigzag

_DIRECT, _DIRECT_V2 = 0, 2
"""``ColumnEncoding.Kind``."""
_MAX_RUN = 512
_DIRECT_RUN, _DELTA_RUN = 1 << 6, 3 << 6
_EIGHT_BYTES = 31 << 1
"""The code of a width of 64 bits."""
_MAX_LONG = (1 << 63) - 1


@dataclass(frozen=True)
class EventColumn:
    """A column of a stripe.

    Attributes:
        index: Its stream of index entries (``RowIndex``), in chunks of compression.
        data: Its stream of values, the same way; empty for a struct that is NULL nowhere.
        encoding: Its ``ColumnEncoding.Kind``.
        statistics: Its ``ColumnStatistics``.
    """

    index: bytes
    data: bytes
    encoding: int
    statistics: bytes


def insert_columns(rows: int, write_id: int, bucket: int, first_row_id: int, compression: str) -> list[EventColumn]:
    """The five columns of the insert events of one statement and bucket in front of ``row``, which is the sixth.

    Args:
        rows: How many events, at least one.
        write_id: The write id of the statement.
        bucket: The bucket property.
        first_row_id: The row id of the first event; the others count on.
        compression: That of the file.
    """
    of_write_id = _column(rows, write_id, 0, compression)
    return [
        _column(rows, 0, 0, compression),
        of_write_id,
        _column(rows, bucket, 0, compression),
        _column(rows, first_row_id, 1, compression),
        of_write_id,
        whole_struct(rows, compression),
    ]


def whole_struct(rows: int, compression: str) -> EventColumn:
    """A struct that is NULL nowhere: it has no streams, so that index entries have no positions in any."""
    entries = [write_message([(2, _counted(count))]) for _, count in _groups(rows)]
    return EventColumn(_index(entries, compression), b"", _DIRECT, _counted(rows))


def _column(rows: int, first: int, step: int, compression: str) -> EventColumn:
    """Integers from ``first`` on, each greater by ``step`` than the one before."""
    data = bytearray()
    starts: list[int] = []
    for start, count in _groups(rows):
        starts.append(len(data))
        data += _runs(first + start * step, step, count)
    chunks = [packed(bytes(data[at : at + CHUNK_BYTES]), compression) for at in range(0, len(data), CHUNK_BYTES)]
    begins = [0]
    for chunk in chunks:
        begins.append(begins[-1] + len(chunk))
    entries: list[bytes] = []
    for (start, count), at in zip(_groups(rows), starts, strict=True):
        number, inside = divmod(at, CHUNK_BYTES)
        place = [at, 0] if compression == "none" else [begins[number], inside, 0]
        low = first + start * step
        fields = [(1, b"".join(write_varint(one) for one in place)), (2, _integers(low, step, count))]
        entries.append(write_message(fields))
    return EventColumn(_index(entries, compression), b"".join(chunks), _DIRECT_V2, _integers(first, step, rows))


def _groups(rows: int) -> Iterator[tuple[int, int]]:
    """The first row of each index entry, and its rows."""
    return ((start, min(INDEX_STRIDE, rows - start)) for start in range(0, rows, INDEX_STRIDE))


def _index(entries: Sequence[bytes], compression: str) -> bytes:
    return packed(write_message((1, entry) for entry in entries), compression)


@lru_cache(maxsize=64)
def _constant_runs(value: int, count: int) -> bytes:
    return b"".join(_run(value, 0, length) for _, length in _lengths(count))


def _runs(first: int, step: int, count: int) -> bytes:
    if not step:
        return _constant_runs(first, count)
    return b"".join(_run(first + start * step, step, length) for start, length in _lengths(count))


def _lengths(count: int) -> Iterator[tuple[int, int]]:
    return ((start, min(_MAX_RUN, count - start)) for start in range(0, count, _MAX_RUN))


def _run(first: int, step: int, length: int) -> bytes:
    """A run of the kind DELTA with a fixed difference; of one or two values the kind DIRECT, as writers have it."""
    more = length - 1
    if length <= 2:
        values = (zigzag(first + i * step).to_bytes(8, "big") for i in range(length))
        return bytes([_DIRECT_RUN | _EIGHT_BYTES | more >> 8, more & 0xFF]) + b"".join(values)
    return bytes([_DELTA_RUN | more >> 8, more & 0xFF]) + write_varint(zigzag(first)) + write_varint(zigzag(step))


def _integers(first: int, step: int, count: int) -> bytes:
    """The statistics of a column or of one of its groups."""
    last = first + (count - 1) * step
    bounds = [(1, zigzag(first)), (2, zigzag(last))]
    total = count * (first + last) // 2
    if total <= _MAX_LONG:
        bounds.append((3, zigzag(total)))
    return write_message([(COUNT, count), (2, write_message(bounds)), (HAS_NULL, 0)])


def _counted(count: int) -> bytes:
    return write_message([(COUNT, count), (HAS_NULL, 0)])
