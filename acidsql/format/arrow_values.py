"""Arrow columns as Arrow's ORC writer keeps every value of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from acidsql.format.arrow_limits import counts_alike, encodes_exactly
from acidsql.format.orc_types import arrow_type
from acidsql.format.values import fitting_texts, to_stored
from acidsql.types import LOCAL_TIMESTAMP, Array, Char, HiveType, Map, Primitive, Struct, Varchar


def stored_values(rows: pa.RecordBatch, row_type: Struct) -> list[Sequence[Any]]:
    """The rows column by column as pyorc stores them. Errors as by :func:`~acidsql.format.values.to_stored`."""
    return [to_stored(column, t) for column, (_, t) in zip(rows.columns, row_type.fields, strict=True)]


def arrow_values(rows: pa.RecordBatch, row_type: Struct) -> pa.StructArray | None:
    """The rows as :meth:`~acidsql.format.stripes.StripeFile.write` takes them; None where Arrow would change a value.

    Args:
        rows: The rows; columns by position, as :func:`~acidsql.format.values.to_stored` takes them.
        row_type: The columns' types.

    Raises:
        AcidError: When a text is too long for its column.
    """
    try:
        columns = [_exact(column, t) for column, (_, t) in zip(rows.columns, row_type.fields, strict=True)]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return None  # whoever stores them value by value says which does not fit
    known = [column for column in columns if column is not None]
    if len(known) < len(columns):
        return None
    return pa.StructArray.from_arrays(known, names=[name for name, _ in row_type.fields])


def _exact(column: pa.Array, t: HiveType) -> pa.Array | None:
    """None where Arrow would change a value, and for what it is not asked for: lists, maps, instants."""
    if isinstance(t, Struct):
        return _struct(column, t)
    if isinstance(t, Array | Map) or t == Primitive(LOCAL_TIMESTAMP):
        return None
    if isinstance(t, Char | Varchar):
        return fitting_texts(column, t)
    if t == Primitive("timestamp"):
        is_clock = pa.types.is_timestamp(column.type) and column.type.tz is None
        return column if is_clock and counts_alike(column) and encodes_exactly(column) else None
    wanted = arrow_type(t)
    made = column if column.type == wanted else column.cast(wanted)
    return made if counts_alike(made) else None


def _struct(column: pa.Array, t: Struct) -> pa.Array | None:
    """None as above; NULL where it was (see :func:`~acidsql.format.arrow_limits.writable`)."""
    fields = [_exact(field, type) for field, (_, type) in zip(column.flatten(), t.fields, strict=True)]
    known = [field for field in fields if field is not None]
    if len(known) < len(fields):
        return None
    mask = column.is_null() if column.null_count else None
    return pa.StructArray.from_arrays(known, names=[name for name, _ in t.fields], mask=mask)
