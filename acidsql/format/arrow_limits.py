"""What Arrow's ORC writer cannot carry without a change."""

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


def _below(array: pa.Array) -> list[pa.Array]:
    """The arrays inside of one."""
    kind = array.type
    if pa.types.is_struct(kind):
        return list(array.flatten())
    if pa.types.is_list(kind):
        return [array.flatten()]
    return [array.keys, array.items] if pa.types.is_map(kind) else []
