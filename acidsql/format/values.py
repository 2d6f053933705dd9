"""Values on their way to and from ORC: Arrow columns to what pyorc writes, and what pyorc reads to JSON.

pyorc's own converters lose nanoseconds and know no calendar but Python's; here they are switched off, and pyorc gets
and gives the stored numbers: days, seconds with nanoseconds, unscaled decimals.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyorc import TypeKind
from pyorc.converters import ORCConverter

from acidsql.errors import AcidError
from acidsql.format.calendar import REFORM_DAY, SECONDS_PER_DAY, from_days, to_hybrid, to_proleptic
from acidsql.types import LOCAL_TIMESTAMP, Array, Char, Decimal, HiveType, Map, Primitive, Struct, Varchar

LEAVES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
}
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class _Stored(ORCConverter):
    """Takes and gives the number that stands in the file."""

    @staticmethod
    def from_orc(*args: Any, **_: Any) -> Any:
        return args[0]

    @staticmethod
    def to_orc(*args: Any, **_: Any) -> Any:
        return args[0]


class _StoredTimestamp(_Stored):
    @staticmethod
    def from_orc(*args: Any, **_: Any) -> Any:
        return args[:2]


class _StoredDecimal(_Stored):
    """Gives a text, as pyorc has it; takes that or the unscaled number."""

    @staticmethod
    def to_orc(*args: Any, **_: Any) -> Any:
        _, scale, value = args
        return _unscaled(value, scale) if isinstance(value, str) else value


def _unscaled(text: str, scale: int) -> int:
    whole, _, fraction = text.partition(".")
    return int(whole + fraction.ljust(scale, "0"))


CONVERTERS: dict[TypeKind, type[ORCConverter]] = {
    TypeKind.DATE: _Stored,
    TypeKind.DECIMAL: _StoredDecimal,
    TypeKind.TIMESTAMP: _StoredTimestamp,
    TypeKind.TIMESTAMP_INSTANT: _StoredTimestamp,
}


# --- Arrow to ORC ----------------------------------------------------------------------------------------------------


def to_stored(column: pa.Array, t: HiveType) -> Sequence[Any]:
    """The values of an Arrow column as pyorc stores them under :data:`CONVERTERS`, None for NULL.

    Timestamps must be wall clocks (no zone), of any unit; those with local time zone instants: microseconds since 1970
    in UTC, or timestamps with a zone. Numbers and strings of another width are cast where nothing
    is lost.

    Raises:
        AcidError: When a value does not fit the type.
    """
    try:
        return _convert(column, t)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as e:
        raise AcidError(f"A value does not fit its column's type: {e}") from e


def _convert(column: pa.Array, t: HiveType) -> Sequence[Any]:
    if isinstance(t, Array):
        return _lists(column, t)
    if isinstance(t, Map):
        return _maps(column, t)
    if isinstance(t, Struct):
        return _structs(column, t)
    if isinstance(t, Decimal):
        return _decimals(column, t)
    if isinstance(t, (Char, Varchar)):
        return fitting_texts(column, t).to_pylist()  # type: ignore[no-any-return]
    if t.name == "timestamp":
        return _timestamps(column)
    if t.name == LOCAL_TIMESTAMP:
        return _instants(column)
    if t.name not in LEAVES:
        raise AcidError(f"Values of type {t.name} cannot be written")
    values = _cast(column, LEAVES[t.name])
    if t.name == "date":
        return _dates(values)
    return values.to_pylist()  # type: ignore[no-any-return]


def _cast(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    return column if column.type == wanted else column.cast(wanted)


def _with_nulls(values: Sequence[Any], column: pa.Array) -> Sequence[Any]:
    """The values, None where the column has NULL."""
    if column.null_count == 0:
        return values
    return [value if valid else None for value, valid in zip(values, column.is_valid().to_pylist(), strict=True)]


def fitting_texts(column: pa.Array, t: Char | Varchar) -> pa.Array:
    """The texts of a char or varchar column, those of a char padded.

    Raises:
        AcidError: When one is too long.
    """
    column = _cast(column, pa.string())
    if isinstance(t, Char):
        column = pc.utf8_rtrim(column, " ")
    longest = pc.max(pc.utf8_length(column)).as_py()
    if longest is not None and longest > t.length:
        raise AcidError(f"A value of {longest} characters does not fit into {type(t).__name__.lower()}({t.length})")
    return pc.utf8_rpad(column, t.length, " ") if isinstance(t, Char) else column


def _dates(column: pa.Array) -> Sequence[Any]:
    days = column.cast(pa.int32())
    first = pc.min(days).as_py()
    if first is None or first >= REFORM_DAY:
        return days.to_pylist()  # type: ignore[no-any-return]
    return [day if day is None else to_hybrid(day) for day in days.to_pylist()]


def _timestamps(column: pa.Array) -> Sequence[Any]:
    if not pa.types.is_timestamp(column.type) or column.type.tz is not None:
        raise AcidError(f"Timestamps to be written must have no time zone, not {column.type}")
    return _seconds_and_nanos(column.cast(pa.int64()), _PER_SECOND[column.type.unit])


def _instants(column: pa.Array) -> Sequence[Any]:
    if column.type == pa.int64():
        return _seconds_and_nanos(column, _PER_SECOND["us"])
    if not pa.types.is_timestamp(column.type) or column.type.tz is None:
        raise AcidError(f"Timestamps with local time zone to be written must be instants, not {column.type}")
    return _seconds_and_nanos(column.cast(pa.int64()), _PER_SECOND[column.type.unit])


def _seconds_and_nanos(column: pa.Array, per_second: int) -> Sequence[Any]:
    """What ORC stores of ticks since 1970, in its calendar with Julian days before 1582."""
    to_nanos = 10**9 // per_second
    values: list[tuple[int, int] | None] = []
    for ticks in column.to_pylist():
        if ticks is None:
            values.append(None)
            continue
        seconds, rest = divmod(ticks, per_second)
        day, second = divmod(seconds, SECONDS_PER_DAY)
        if day < REFORM_DAY:
            seconds = to_hybrid(day) * SECONDS_PER_DAY + second
        values.append((seconds, rest * to_nanos))
    return values


def _decimals(column: pa.Array, t: Decimal) -> Sequence[Any]:
    """Unscaled values, straight from the 16 little-endian bytes that Arrow holds of each."""
    column = _cast(column, pa.decimal128(t.precision, t.scale))
    data = column.buffers()[1]
    if data is None:
        return [None] * len(column)
    here = slice(2 * column.offset, 2 * (column.offset + len(column)))
    low = memoryview(data).cast("Q")[here][::2].tolist()
    high = memoryview(data).cast("q")[here][1::2].tolist()
    return _with_nulls([upper << 64 | lower for upper, lower in zip(high, low, strict=True)], column)


def _lists(column: pa.Array, t: Array) -> Sequence[Any]:
    # tuples, so that an array can be the key of a map
    first, offsets = _offsets(column)
    values = tuple(_convert(column.values.slice(first, offsets[-1]), t.element))
    return _with_nulls([values[a:b] for a, b in pairwise(offsets)], column)


def _maps(column: pa.Array, t: Map) -> Sequence[Any]:
    first, offsets = _offsets(column)
    keys = _convert(column.keys.slice(first, offsets[-1]), t.key)
    values = _convert(column.items.slice(first, offsets[-1]), t.value)
    pairs = tuple(zip(keys, values, strict=True))
    return _with_nulls([dict(pairs[a:b]) for a, b in pairwise(offsets)], column)


def _offsets(column: pa.Array) -> tuple[int, list[int]]:
    """Where the elements of the column begin, and the offsets of each row counted from there."""
    # Java's Arrow may leave out the offsets of an array without elements, and pyarrow then reads whatever is there
    offsets = column.offsets.to_pylist() if len(column) else [0]
    return offsets[0], [offset - offsets[0] for offset in offsets]


def _structs(column: pa.Array, t: Struct) -> Sequence[Any]:
    fields = [_convert(field, type_) for field, (_, type_) in zip(column.flatten(), t.fields, strict=True)]
    return _with_nulls(list(zip(*fields, strict=True)), column)


# --- ORC to JSON -----------------------------------------------------------------------------------------------------


def json_reader(t: HiveType, *, proleptic: bool = False) -> Callable[[Any], Any]:
    """A function from a stored value (as pyorc gives it under :data:`CONVERTERS`) to one that JSON can hold.

    Dates, timestamps and decimals are texts as Hive prints them, binary is ``hex:…``, a struct is an object, a map is
    an object whose keys are texts, and a number that JSON cannot hold is its name.

    Args:
        t: The type of the values.
        proleptic: Whether the file counts days before 1582 in the proleptic Gregorian calendar.
    """
    read = _json_leaf(t, proleptic) if isinstance(t, Primitive) else _json_nested(t, proleptic)
    return lambda value: None if value is None else read(value)


def _json_leaf(t: Primitive, proleptic: bool) -> Callable[[Any], Any]:
    if t.name == "date":
        return lambda day: _date_text(day if proleptic else to_proleptic(day))
    if t.name.startswith("timestamp"):
        return lambda value: _timestamp_text(*value, proleptic=proleptic)
    if t.name == "binary":
        return lambda value: f"hex:{bytes(value).hex()}"
    if t.name in ("float", "double"):
        return lambda value: _float_json(value, single=t.name == "float")
    return lambda value: value


def _json_nested(t: HiveType, proleptic: bool) -> Callable[[Any], Any]:
    if isinstance(t, Array):
        element = json_reader(t.element, proleptic=proleptic)
        return lambda values: [element(value) for value in values]
    if isinstance(t, Map):
        key, item = json_reader(t.key, proleptic=proleptic), json_reader(t.value, proleptic=proleptic)
        return lambda values: {_key_text(key(k)): item(v) for k, v in values.items()}
    if isinstance(t, Struct):
        fields = [(name, json_reader(type_, proleptic=proleptic)) for name, type_ in t.fields]
        return lambda values: {name: read(value) for (name, read), value in zip(fields, values, strict=True)}
    return lambda value: value  # decimals come as texts from pyorc, char and varchar are texts


def _key_text(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key)


def _date_text(day: int) -> str:
    year, month, day_of_month = from_days(day)
    return f"{year:04d}-{month:02d}-{day_of_month:02d}"


def _timestamp_text(seconds: int, nanos: int, *, proleptic: bool) -> str:
    day, second = divmod(seconds, SECONDS_PER_DAY)
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    clock = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    return f"{_date_text(day if proleptic else to_proleptic(day))} {clock}{fraction}"


def _float_json(value: float, *, single: bool) -> float | str:
    """The number; for a float the shortest text that is that float (1.1, not 1.100000023841858)."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if not single:
        return value
    candidates = (float(f"{value:.{digits}g}") for digits in range(1, 10))
    return next((c for c in candidates if abs(c) < 3.5e38 and _as_single(c) == value), value)


def _as_single(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.inf
