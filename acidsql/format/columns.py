"""A stripe of insert events encoded column by column: the values of one column are in memory, not those of all.

Streams of a column do not depend on those of others. So each column is encoded as a file of its own, with one stripe,
and their streams are put together. What tells which column a stream belongs to is its number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import pyarrow as pa
from pyarrow import orc

from acidsql.format.arrow_limits import writable
from acidsql.format.stripes import (
    CHUNK_BYTES,
    JUST_ENCODED,
    EncodedStripe,
    Stream,
    StripeSource,
    packed,
    statistics_of,
    streams_of,
    writer_options,
)
from acidsql.format.tail import as_errors_of
from acidsql.protobuf import bytes_of, write_message

_ENDLESS = 1 << 50
"""The size of a stripe that is never reached."""


class EncodedColumn:
    """A column as a file with one stripe and no other column: its root is a struct that is NULL nowhere.

    Attributes:
        rows: Its rows.
        width: How many columns it is in ORC's order: with those in it.
        encodings, statistics: ``ColumnEncoding`` and ``ColumnStatistics`` of the root and of each of these.
        zones: ``writerTimezone``.
    """

    def __init__(self, arrays: Iterable[pa.Array], compression: str) -> None:
        """``arrays`` are the values, one array after another, as :meth:`StripeFile.write` takes them."""
        made = pa.BufferOutputStream()
        with orc.ORCWriter(made, **{**writer_options(compression), "stripe_size": _ENDLESS}) as writer:
            for array in arrays:
                writer.write(pa.table([writable(array)], names=["_"]))
        content = made.getvalue()
        source = StripeSource(pa.BufferReader(content), JUST_ENCODED)
        self._content = memoryview(content)
        with as_errors_of(JUST_ENCODED):
            [stripe] = source.stripes
            self.rows = stripe.rows
            footer = source.stripe_footer(0)
            self.encodings = [bytes_of(one) for one in footer.get(2, [])]
            self.zones = [bytes_of(one) for one in footer.get(3, [])]
            self.statistics = statistics_of(stripe, JUST_ENCODED)
            self._streams = streams_of(footer)
            self._start = stripe.offset
        self.width = len(self.encodings) - 1

    def streams(self, number: int, *, index: bool, root: bool = False) -> Iterator[tuple[bytes, memoryview]]:
        """The streams of the index or of the data: each as a message, and its bytes.

        Args:
            number: The number that the column has in the stripe.
            index: Which of them.
            root: Whether those of the root are meant, and not those of the column.
        """
        at = self._start
        for stream in self._streams:
            end = at + stream.length
            if stream.is_index is index and (stream.column == 0) is root:
                own = number if root else number + stream.column - 1
                yield Stream(stream.kind, own, stream.length).message(), self._content[at:end]
            at = end


def stripe_of(events: Sequence[EncodedColumn], values: Sequence[EncodedColumn], compression: str) -> EncodedStripe:
    """The stripe with the event columns and those of the table, none of whose rows is NULL.

    The root, and ``row``, are structs that are NULL nowhere, as the root of each column is: its index is theirs.
    """
    [root, *_] = events
    row = 1 + sum(column.width for column in events)
    numbered: list[tuple[int, EncodedColumn, bool]] = [(0, root, True)]
    for first, columns in ((1, events), (row + 1, values)):
        for column in columns:
            numbered.append((first, column, False))
            first += column.width
    numbered.insert(1 + len(events), (row, root, True))
    parts = [
        [one for number, column, is_root in numbered for one in column.streams(number, index=index, root=is_root)]
        for index in (True, False)
    ]
    encodings = [own for _, column, is_root in numbered for own in _of(column.encodings, is_root)]
    footer = [(1, message) for message, _ in chain(*parts)]
    footer += [(2, one) for one in encodings]
    footer += [(3, zone) for zone in root.zones]
    end = packed(write_message(footer), compression)
    index_length, data_length = (sum(len(stream) for _, stream in part) for part in parts)
    content: list[bytes | memoryview] = [*(stream for _, stream in chain(*parts)), end]
    statistics = [own for _, column, is_root in numbered for own in _of(column.statistics, is_root)]
    return EncodedStripe(
        content, (index_length, data_length, len(end)), root.rows, statistics, CHUNK_BYTES, JUST_ENCODED
    )


def _of(messages: Sequence[bytes], is_root: bool) -> Sequence[bytes]:
    return messages[:1] if is_root else messages[1:]
