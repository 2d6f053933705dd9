"""What Arrow's ORC writer cannot carry without a change, or takes wrong."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from acidsql.format.calendar import REFORM_DAY, SECONDS_PER_DAY

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def encodes_exactly(array: pa.Array) -> bool:
    """Whether :meth:`~acidsql.format.stripes.StripeFile.write` keeps each value.

    Arrow's writer stores fractions of seconds before 1970 wrongly, as a negative number of nanoseconds.
    """
    kind = array.type
    if pa.types.is_timestamp(kind):
        ticks = np.asarray(array.cast(pa.int64()).fill_null(0))
        per_second = _PER_SECOND[kind.unit]
        return not bool(np.any((ticks < 0) & (ticks % per_second != 0)))
    return all(encodes_exactly(below) for below in _below(array))


def counts_alike(array: pa.Array) -> bool:
    """Whether no day in a column is before 1582-10-15: the same number then is the same day in both calendars."""
    kind = array.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        per_day = 1 if pa.types.is_date(kind) else SECONDS_PER_DAY * _PER_SECOND[kind.unit]
        ticks = np.asarray(array.cast(pa.int32() if per_day == 1 else pa.int64()).fill_null(0))
        return not bool(np.any(ticks // per_day < REFORM_DAY))
    return all(counts_alike(below) for below in _below(array))


def writable(array: pa.Array) -> pa.Array:
    """The same values as Arrow's writer takes them right.

    Of a struct that is a slice of an array it takes fields from the beginning of the whole, and where a struct is NULL
    and its fields are not, it takes what they hold there for the next row's (both seen with pyarrow 26).
    """
    whole = array.take(pa.array(np.arange(len(array)))) if _has_slice(array) else array
    if not pa.types.is_struct(array.type):
        return whole
    fields = [writable(field) for field in whole.flatten()]
    mask = whole.is_null() if whole.null_count else None
    return pa.StructArray.from_arrays(fields, names=[field.name for field in array.type], mask=mask)


def _has_slice(array: pa.Array) -> bool:
    kind = array.type
    if pa.types.is_struct(kind):
        fields = [array.field(i) for i in range(kind.num_fields)]
        return array.offset != 0 or any(field.offset != 0 or _has_slice(field) for field in fields)
    if pa.types.is_list(kind):
        return _has_slice(array.values)
    return pa.types.is_map(kind) and (_has_slice(array.keys) or _has_slice(array.items))


def _below(array: pa.Array) -> list[pa.Array]:
    """The arrays inside of one."""
    kind = array.type
    if pa.types.is_struct(kind):
        return list(array.flatten())
    if pa.types.is_list(kind):
        return [array.flatten()]
    return [array.keys, array.items] if pa.types.is_map(kind) else []
