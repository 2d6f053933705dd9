"""Statistics of columns between the model and Hive's Thrift structs: which kind a type has, and how values are told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from hive_metastore import ttypes

from acidsql.metastore.model import ColumnStatistics

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class _Kind:
    """One of the kinds in ``ColumnStatisticsData``.

    Attributes:
        field: Its name there.
        make: Its struct.
        fields: Names of its fields by those of the model.
        read: From a value's text to Hive's; None for a kind without a least and a greatest value.
        show: From Hive's value to its text.
    """

    field: str
    make: Callable[..., Any]
    fields: Mapping[str, str]
    read: Callable[[str], Any] | None = None
    show: Callable[[Any], str | None] = str


def _unscaled(text: str) -> Any:
    sign, digits, exponent = Decimal(text).as_tuple()
    number = int("".join(map(str, digits))) * (-1 if sign else 1)
    assert isinstance(exponent, int)
    size = (number if number >= 0 else ~number).bit_length() // 8 + 1  # as Java's BigInteger.toByteArray
    return ttypes.Decimal(unscaled=number.to_bytes(size, "big", signed=True), scale=-exponent)


def _scaled(value: Any) -> str:
    number = int.from_bytes(value.unscaled, "big", signed=True)
    return str(Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -value.scale)))


def _days(text: str) -> Any:
    return ttypes.Date(daysSinceEpoch=(date.fromisoformat(text) - _EPOCH.date()).days)


def _shown_days(value: Any) -> str | None:
    try:
        return (_EPOCH.date() + timedelta(days=value.daysSinceEpoch)).isoformat()
    except OverflowError:
        return None


def _seconds(text: str) -> Any:
    """Whole seconds of a wall clock, as if it stood in UTC."""
    found = datetime.fromisoformat(text.partition(".")[0]).replace(tzinfo=timezone.utc)
    return ttypes.Timestamp(secondsSinceEpoch=(found - _EPOCH) // timedelta(seconds=1))


def _shown_seconds(value: Any) -> str | None:
    try:
        return str((_EPOCH + timedelta(seconds=value.secondsSinceEpoch)).replace(tzinfo=None))
    except OverflowError:
        return None


_NULLS = {"nulls": "numNulls"}
_COUNTED = {**_NULLS, "distinct": "numDVs"}
_LENGTHS = {"average_length": "avgColLen", "max_length": "maxColLen"}
_BOOLEAN = _Kind("booleanStats", ttypes.BooleanColumnStatsData, {**_NULLS, "trues": "numTrues", "falses": "numFalses"})
_LONG = _Kind("longStats", ttypes.LongColumnStatsData, _COUNTED, int)
_DOUBLE = _Kind("doubleStats", ttypes.DoubleColumnStatsData, _COUNTED, float)
_STRING = _Kind("stringStats", ttypes.StringColumnStatsData, {**_COUNTED, **_LENGTHS})
_BINARY = _Kind("binaryStats", ttypes.BinaryColumnStatsData, {**_NULLS, **_LENGTHS})
_DECIMAL = _Kind("decimalStats", ttypes.DecimalColumnStatsData, _COUNTED, _unscaled, _scaled)
_DATE = _Kind("dateStats", ttypes.DateColumnStatsData, _COUNTED, _days, _shown_days)
_TIMESTAMP = _Kind("timestampStats", ttypes.TimestampColumnStatsData, _COUNTED, _seconds, _shown_seconds)
_KINDS: Mapping[str, _Kind] = {
    "boolean": _BOOLEAN,
    "tinyint": _LONG,
    "smallint": _LONG,
    "int": _LONG,
    "bigint": _LONG,
    "float": _DOUBLE,
    "double": _DOUBLE,
    "string": _STRING,
    "char": _STRING,
    "varchar": _STRING,
    "binary": _BINARY,
    "decimal": _DECIMAL,
    "date": _DATE,
    "timestamp": _TIMESTAMP,
}
"""By the word that a type begins with; of other types Hive keeps no statistics."""


def to_thrift(found: ColumnStatistics) -> Any | None:
    """A ``ColumnStatisticsObj``; None for a type of which Hive keeps no statistics.

    A least or greatest value that the struct cannot hold (a year with five digits) is left out.
    """
    kind = _KINDS.get(found.type.partition("(")[0])
    if kind is None:
        return None
    values = {name: getattr(found, own) or 0 for own, name in kind.fields.items()}
    for name, text in (("lowValue", found.low), ("highValue", found.high)):
        if kind.read is None or text is None:
            continue
        try:
            values[name] = kind.read(text)
        except ValueError:
            continue
    data = ttypes.ColumnStatisticsData(**{kind.field: kind.make(**values)})
    return ttypes.ColumnStatisticsObj(colName=found.column, colType=found.type, statsData=data)


def from_thrift(found: Any) -> ColumnStatistics | None:
    """The statistics in a ``ColumnStatisticsObj``; None for a kind that is not known."""
    for kind in _KINDS.values():
        data = getattr(found.statsData, kind.field)
        if data is None:
            continue
        values = {own: getattr(data, name) for own, name in kind.fields.items()}
        if kind.read is not None:
            for own, value in (("low", data.lowValue), ("high", data.highValue)):
                values[own] = None if value is None else kind.show(value)
        return ColumnStatistics(found.colName, found.colType, **values)
    return None
