"""Values of Python's as a table's columns hold them: strictly, so that none is stored as another one.

The rules are those of ``INSERT``: what does not fit is an error, and a text is never taken for a number, a day or a
time. Arrow alone would store 1.5 as 1, a moment as its day, and the letters of a text as a list.
"""

from __future__ import annotations

import datetime
import decimal
import math
import numbers
import struct
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acidsql.errors import InvalidValue
from acidsql.plan.arrow import arrow_type
from acidsql.plan.session_zone import SessionZone
from acidsql.types import (
    LOCAL_TIMESTAMP,
    WHOLE_NUMBERS,
    Array,
    Char,
    Decimal,
    HiveType,
    Map,
    Primitive,
    Struct,
    Varchar,
    to_hive,
)

Converter: TypeAlias = Callable[[Any], Any]
"""Makes of a value what Arrow takes as it is; raises :class:`BadValue`."""

_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_MOST_DIGITS = 38
_EXACT: dict[str, frozenset[type]] = {
    **dict.fromkeys(WHOLE_NUMBERS, frozenset({int})),
    "boolean": frozenset({bool}),
    "double": frozenset({float}),
    "date": frozenset({datetime.date}),
    "binary": frozenset({bytes}),
}
"""Types of Python's whose values Arrow stores as they are, or refuses."""


class BadValue(InvalidValue):
    """Raised when a value cannot be stored in a column."""


def column_of(values: Sequence[Any], type: HiveType, zone: SessionZone) -> pa.Array:
    """Values as a column of a table.

    Args:
        values: The values; None is NULL.
        type: The column's type.
        zone: The zone whose wall clock a moment (a ``datetime`` with a zone) has in a ``timestamp``.

    Returns:
        What :func:`acidsql.format.orc.write_inserts` takes: wall clocks without a zone, texts as they are given.

    Raises:
        BadValue: When one of them cannot be stored.
    """
    wanted = arrow_type(type)
    if isinstance(type, Primitive) and set(map(_type, values)) <= {*_EXACT.get(type.name, ()), None.__class__}:
        try:
            return pa.array(values, type=wanted)
        except (pa.ArrowException, OverflowError, ValueError):
            pass  # the converter says which it is
    convert = converter(type, zone)
    made = [None if value is None else convert(value) for value in values]
    try:
        return pa.array(made, type=wanted)
    except (pa.ArrowException, OverflowError, ValueError) as e:
        raise BadValue(f"A value does not fit the type {to_hive(type)}: {e}") from e


_type = type


def of_arrow(column: pa.Array, type: HiveType, zone: SessionZone) -> pa.Array:
    """A column of Arrow's as one of a table. Arguments and errors as for :func:`column_of`."""
    wanted, given = arrow_type(type), column.type
    is_moment = pa.types.is_timestamp(given) and given.tz is not None
    try:
        if type == Primitive("timestamp") and is_moment:
            return _wall_clocks(column, zone).cast(wanted)
        if type == Primitive(LOCAL_TIMESTAMP) and is_moment:
            return column.cast(pa.timestamp("us", "UTC")).cast(wanted)
        if isinstance(type, Primitive) and type.name != LOCAL_TIMESTAMP and _is_alike(given, wanted):
            return column.cast(wanted)
    except pa.ArrowException:
        pass  # the converter says which value it is, and knows further zones
    try:
        listed = column.to_pylist(maps_as_pydicts="strict")
    except (ValueError, OverflowError, KeyError) as e:  # nanoseconds, times that Python does not have, a key twice
        raise BadValue(f"A value does not fit the type {to_hive(type)}: {e}") from e
    return column_of(listed, type, zone)


def _wall_clocks(moments: pa.Array, zone: SessionZone) -> pa.Array:
    """What the clocks of a zone show, as timestamps without one. Raises: ArrowInvalid when none can show it."""
    unit = moments.type.unit
    a_second = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}[unit]
    ticks = moments.cast(pa.int64())
    counted = pc.fill_null(ticks, 0).to_numpy(zero_copy_only=False)
    offsets = zone.offsets(counted // a_second) * a_second
    shown = counted + offsets
    if ((shown < counted) != (offsets < 0)).any():
        raise pa.ArrowInvalid("a moment at the end of all that can be stored")
    return pa.array(shown, mask=ticks.is_null().to_numpy(zero_copy_only=False)).cast(pa.timestamp(unit))


def _is_alike(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Arrow casts values of a type to another one, or refuses them, as :func:`column_of` does."""
    kinds = pa.types
    same = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_null, kinds.is_date32, kinds.is_date64)
    if kinds.is_string(wanted):
        return bool(kinds.is_string(given) or kinds.is_large_string(given))
    if kinds.is_binary(wanted):
        return bool(kinds.is_binary(given) or kinds.is_large_binary(given))
    if kinds.is_timestamp(wanted):
        return bool(kinds.is_timestamp(given) and given.tz == wanted.tz)
    return any(is_kind(given) and is_kind(wanted) for is_kind in same) and wanted != pa.float32()


def converter(type: HiveType, zone: SessionZone) -> Converter:
    """A function that makes of a value, which is not None, what Arrow takes for a column of a type as it is.

    Args:
        type: The type.
        zone: As for :func:`column_of`.
    """
    if isinstance(type, Array):
        return _lists(converter(type.element, zone), type)
    if isinstance(type, Map):
        return _maps(converter(type.key, zone), converter(type.value, zone), type)
    if isinstance(type, Struct):
        return _structs({name: converter(field, zone) for name, field in type.fields}, type)
    if isinstance(type, Decimal):
        return lambda value: _decimal(value, type)
    if isinstance(type, Char | Varchar):
        return lambda value: _fitting(value, type)
    if type.name in _BITS:
        limit = 1 << (_BITS[type.name] - 1)
        return lambda value: _integer(value, type, limit)
    if type.name in ("timestamp", LOCAL_TIMESTAMP):
        clock = _clock if type.name == "timestamp" else _moment
        return lambda value: clock(value, type, zone)
    return {"boolean": _boolean, "float": _float, "double": _double, "string": _text, "binary": _bytes, "date": _day}[
        type.name
    ]


def _refused(value: Any, type: HiveType | str, why: str = "") -> BadValue:
    name = type if isinstance(type, str) else to_hive(type)
    return BadValue(f"{shown(value)} of type {value.__class__.__name__} is no {name}{why}")


def shown(value: Any) -> str:
    """A value in an error's message."""
    try:
        text = repr(value)
    except Exception:  # Python writes no numbers of thousands of digits, and a class may have any error in it
        return "A value"
    return text if len(text) <= 60 else f"{text[:57]}…"


def _integer(value: Any, type: HiveType, limit: int) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise _refused(value, type)
    made = int(value)
    if not -limit <= made < limit:
        raise _refused(value, type, ": out of range")
    return made


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _refused(value, "boolean")
    return value


def _double(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise _refused(value, "double")
    try:
        made = float(value)
    except OverflowError:
        raise _refused(value, "double", ": out of range") from None
    if isinstance(value, numbers.Integral) and int(made) != value:
        raise _refused(value, "double", ": it would be rounded")
    return made


def _float(value: Any) -> float:
    made = _double(value)
    try:
        struct.pack("<f", made)
    except OverflowError:
        raise _refused(value, "float", ": out of range") from None
    return made


def _decimal(value: Any, type: Decimal) -> decimal.Decimal:
    """As ``INSERT``: digits beyond the scale are rounded half up, those before it must fit."""
    if isinstance(value, bool) or not isinstance(value, int | decimal.Decimal):
        raise _refused(value, type)
    exact = decimal.Decimal(value)
    if not exact.is_finite():
        raise _refused(value, type)
    whole = type.precision - type.scale
    if exact and exact.adjusted() >= whole:
        raise _refused(value, type, ": out of range")
    with decimal.localcontext() as context:
        context.prec = 2 * _MOST_DIGITS
        made = exact.quantize(decimal.Decimal(1).scaleb(-type.scale), rounding=decimal.ROUND_HALF_UP)
    if made and made.adjusted() >= whole:
        raise _refused(value, type, ": out of range")
    return made


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _refused(value, "string")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _refused(value, "string", ": not valid Unicode") from None
    return value


def _fitting(value: Any, type: Char | Varchar) -> str:
    """As ``INSERT``: blanks beyond the length are cut, all else must fit; files hold a ``char`` without padding."""
    text = _text(value)
    if len(text) > type.length:
        if len(text.rstrip(" ")) > type.length:
            raise _refused(value, type, ": too long")
        text = text[: type.length]
    return text


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise _refused(value, "binary")
    return bytes(value)


def _day(value: Any) -> datetime.date:
    if isinstance(value, datetime.datetime) or not isinstance(value, datetime.date):
        raise _refused(value, "date")
    return value


def _clock(value: Any, type: HiveType, zone: SessionZone) -> datetime.datetime:
    """A wall clock: a time without a zone is that one, a moment is that of the session's zone."""
    if not isinstance(value, datetime.datetime):
        raise _refused(value, type)
    if value.tzinfo is None:
        return value
    try:
        micros = _micros(value)
        offset = int(zone.offsets(np.array([micros // 1_000_000], np.int64))[0])
        return _EPOCH + datetime.timedelta(seconds=offset, microseconds=micros)
    except OverflowError:
        raise _refused(value, type, f": in {zone.name} its year is none of 1 to 9999") from None


def _moment(value: Any, type: HiveType, zone: SessionZone) -> int:
    """A moment, as microseconds since 1970: a time without a zone is one of the session's zone."""
    if not isinstance(value, datetime.datetime):
        raise _refused(value, type)
    micros = _micros(value)
    if value.tzinfo is None:
        micros -= zone.offset_of_clock(micros // 1_000_000, later=bool(value.fold)) * 1_000_000
    return micros


def _micros(value: datetime.datetime) -> int:
    """Microseconds since 1970; of what a clock without a zone shows, as if it stood in UTC."""
    return (value.replace(tzinfo=None) - _EPOCH - (value.utcoffset() or _NOTHING)) // _MICROSECOND


_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND, _NOTHING = datetime.timedelta(microseconds=1), datetime.timedelta(0)


def _some(convert: Converter, value: Any) -> Any:
    return None if value is None else convert(value)


def _lists(element: Converter, type: Array) -> Converter:
    def convert(value: Any) -> list[Any]:
        if isinstance(value, str | bytes | bytearray) or not isinstance(value, Sequence):
            raise _refused(value, type)
        return [_some(element, one) for one in value]

    return convert


def _maps(key: Converter, item: Converter, type: Map) -> Converter:
    def convert(value: Any) -> list[tuple[Any, Any]]:
        if not isinstance(value, Mapping):
            raise _refused(value, type)
        if None in value:
            raise _refused(value, type, ": a key is None")
        made = [(key(k), _some(item, v)) for k, v in value.items()]
        if len({_identity(k, type.key) for k, _ in made}) < len(made):
            raise _refused(value, type, ": two keys are equal as they are stored")
        return made

    return convert


def _identity(value: Any, type: HiveType) -> Hashable:
    """Equal for converted keys of a map that are the same one in a file, as Spark compares them."""
    if isinstance(type, Char):
        return str(value).rstrip(" ")
    if type in (Primitive("float"), Primitive("double")):
        stored = struct.unpack("<f", struct.pack("<f", value))[0] if type == Primitive("float") else value
        return "NaN" if math.isnan(stored) else stored
    return value  # type: ignore[no-any-return]


def _structs(fields: Mapping[str, Converter], type: Struct) -> Converter:
    by_name = {name.lower(): name for name in fields}

    def convert(value: Any) -> dict[str, Any]:
        if isinstance(value, Mapping):
            given = {by_name.get(str(name).lower(), str(name)): one for name, one in value.items()}
            unknown = [name for name in given if name not in fields]
            if unknown or len(given) < len(value):
                raise _refused(value, type, f": it has no field {', '.join(unknown)}" if unknown else ": a field twice")
        elif isinstance(value, tuple) and len(value) == len(fields):
            given = dict(zip(fields, value, strict=True))
        else:
            raise _refused(value, type)
        return {name: _some(field, given.get(name)) for name, field in fields.items()}

    return convert
