"""Column statistics of ORC files, merged from those of their stripes.

Readers skip files and stripes by them, so a number that cannot be told is left out. Fields and kinds are those of
``orc_proto.proto``; the rules of putting together those of ``ColumnStatisticsImpl``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal, localcontext
from functools import lru_cache

from acidsql.format.orc_types import type_messages
from acidsql.format.schema import EVENT_COLUMNS
from acidsql.format.tail import OrcFooter, Tail, as_errors_of
from acidsql.protobuf import Message, bytes_of, number_of, numbers_of, read_message, unzigzag, write_message, zigzag
from acidsql.types import WHOLE_NUMBERS, Primitive

COUNT, HAS_NULL, BYTES_ON_DISK = 1, 10, 11
_MAX_LONG = (1 << 63) - 1
_KNOWN_BYTES = 1 << 8
_EVENT_COLUMNS = tuple(name.lower() for name in EVENT_COLUMNS)


def integer_range(tail: Tail, column: int) -> tuple[int, int] | None:
    """The least and the greatest value of an integer column in a file; None where the file does not tell.

    Args:
        tail: The file's tail.
        column: The number of the column in ORC's order, that of the whole row being 0.
    """
    columns = tail.footer.get(7, [])
    return integers_of(bytes_of(columns[column])) if column < len(columns) else None


def ranges_of_row(tail: Tail, footer: OrcFooter, name: str) -> dict[int, tuple[int, int]]:
    """The least and the greatest value of columns of whole numbers, by their positions in the table's row; none where a
    file has no events, or their columns in another order.

    Args:
        tail: The file's tail.
        footer: The same, as it was understood.
        name: The file.

    Raises:
        CorruptFile: When the statistics cannot be read.
    """
    columns, found = tail.footer.get(7, []), dict[int, tuple[int, int]]()
    if tuple(map(str.lower, footer.field_names)) != _EVENT_COLUMNS:
        return found
    number = len(EVENT_COLUMNS) + 1  # in ORC's order: behind the root, and the columns of events
    with as_errors_of(name):
        for position, (_, type) in enumerate(footer.row_type.fields):
            if isinstance(type, Primitive) and type.name in WHOLE_NUMBERS and number < len(columns):
                bounds = integers_of(bytes_of(columns[number]))
                if bounds is not None:
                    found[position] = bounds
            number += len(type_messages(type))
    return found


def integers_of(statistics: bytes) -> tuple[int, int] | None:
    """The least and the greatest value of an integer column by its statistics; None where these do not tell."""
    found = read_message(statistics).get(2)
    bounds = read_message(bytes_of(found[-1])) if found else {}
    if not bounds.keys() >= {1, 2}:
        return None
    return unzigzag(number_of(bounds, 1)), unzigzag(number_of(bounds, 2))


def merged(parts: Sequence[bytes]) -> bytes:
    """The statistics of a column over several parts, from those of each part (``ColumnStatistics``)."""
    if len(parts) == 1 and len(parts[0]) <= _KNOWN_BYTES:
        return _merged_alone(parts[0])
    return _merged(parts)


@lru_cache(maxsize=512)
def _merged_alone(part: bytes) -> bytes:
    """Small files have one stripe, and the event columns of those that a statement writes have much in common."""
    return _merged([part])


def _merged(parts: Sequence[bytes]) -> bytes:
    found = [read_message(part) for part in parts]
    counted = [part for part in found if number_of(part, COUNT)]
    fields: list[tuple[int, int | bytes]] = [(COUNT, sum(number_of(part, COUNT) for part in found))]
    for kind, merge in _KINDS.items():
        values = [read_message(bytes_of(part[kind][-1])) for part in counted if kind in part]
        if values and len(values) == len(counted):
            fields.append((kind, merge(values)))
    # an absent flag means unknown (ColumnStatisticsImpl treats it as true)
    fields.append((HAS_NULL, int(any(part.get(HAS_NULL, [1])[-1] for part in found))))
    if all(BYTES_ON_DISK in part for part in found):
        fields.append((BYTES_ON_DISK, sum(number_of(part, BYTES_ON_DISK) for part in found)))
    return write_message(fields)


def _numbers(parts: Iterable[Message], field: int) -> list[int] | None:
    """A signed number of each part; None where one does not tell."""
    found = [unzigzag(number_of(part, field)) if field in part else None for part in parts]
    return None if any(one is None for one in found) else [one for one in found if one is not None]


def _texts(parts: Iterable[Message], field: int) -> list[bytes] | None:
    found = [bytes_of(part[field][-1]) if part.get(field) else None for part in parts]
    return None if any(one is None for one in found) else [one for one in found if one is not None]


def _signed(low: int | None, high: int | None, total: int | None) -> Callable[[Sequence[Message]], bytes]:
    """Minimum, maximum and sum, each in a field of its own if the kind has it."""

    def merge(parts: Sequence[Message]) -> bytes:
        made: list[tuple[int, int | bytes]] = []
        for field, choose in ((low, min), (high, max), (total, sum)):
            values = None if field is None else _numbers(parts, field)
            if field is not None and values is not None:
                value = choose(values)
                if -_MAX_LONG - 1 <= value <= _MAX_LONG:
                    made.append((field, zigzag(value)))
        return write_message(made)

    return merge


def _doubles(parts: Sequence[Message]) -> bytes:
    made = b""
    for field, choose in ((1, min), (2, max), (3, sum)):
        texts = _texts(parts, field)
        values = [] if texts is None else [struct.unpack("<d", text)[0] for text in texts]
        if values and not any(value != value for value in values):
            made += bytes([field << 3 | 1]) + struct.pack("<d", choose(values))
    return made


def _strings(parts: Sequence[Message]) -> bytes:
    """Whole bounds where each part has them; else bounds that may be cut (``lowerBound`` and ``upperBound``)."""
    made: list[tuple[int, int | bytes]] = []
    for whole, cut, choose in ((1, 4, min), (2, 5, max)):
        bounds = _texts([{cut: part.get(whole) or part.get(cut, [])} for part in parts], cut)
        if bounds is not None:
            made.append((whole if all(whole in part for part in parts) else cut, choose(bounds)))
    lengths = _numbers(parts, 3)
    if lengths is not None:
        made.append((3, zigzag(sum(lengths))))
    return write_message(sorted(made))


def _booleans(parts: Sequence[Message]) -> bytes:
    counts = [next(numbers_of(part.get(1, [])), None) for part in parts]
    known = [count for count in counts if count is not None]
    return write_message([(1, sum(known))]) if len(known) == len(counts) else b""


def _decimals(parts: Sequence[Message]) -> bytes:
    made: list[tuple[int, int | bytes]] = []
    with localcontext() as context:
        context.prec = 80
        for field, choose in ((1, min), (2, max), (3, sum)):
            texts = _texts(parts, field)
            if texts is not None:
                values = [Decimal(text.decode()) for text in texts]
                if any(not one.is_finite() or abs(one.adjusted()) > 38 for one in values):
                    continue  # no decimal of Hive, and written out it would fill the memory
                value = choose(values)
                # a sum that no decimal of Hive can be is left out, as by Java's HiveDecimal
                if len(Decimal(value).as_tuple().digits) <= 38:
                    made.append((field, format(value, "f").encode()))
    return write_message(made)


def _timestamps(parts: Sequence[Message]) -> bytes:
    """Bounds in UTC: milliseconds, and the digits below one, which a file of an older writer does not have."""
    made: list[tuple[int, int | bytes]] = []
    for field, rest, choose, unknown in ((3, 5, min, 1), (4, 6, max, 1_000_000)):
        values = _numbers(parts, field)
        if values is not None:
            fine = [number_of(part, rest) or unknown for part in parts]
            value, digits = choose(zip(values, fine, strict=True))
            made += [(field, zigzag(value)), (rest, digits)]
    return write_message(sorted(made))


def _collections(parts: Sequence[Message]) -> bytes:
    if not all({1, 2, 3} <= part.keys() for part in parts):
        return b""
    values = [[number_of(part, field) for part in parts] for field in (1, 2, 3)]
    return write_message([(1, min(values[0])), (2, max(values[1])), (3, sum(values[2]))])


_KINDS: dict[int, Callable[[Sequence[Message]], bytes]] = {
    2: _signed(1, 2, 3),
    3: _doubles,
    4: _strings,
    5: _booleans,
    6: _decimals,
    7: _signed(1, 2, None),
    8: _signed(None, None, 1),
    9: _timestamps,
    12: _collections,
}
"""By the field of ``ColumnStatistics``: integers, doubles, strings, booleans, decimals, dates, binary, timestamps, and
arrays and maps."""
