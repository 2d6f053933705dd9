"""Spark rows as an Arrow table: fetched, or taken from a local relation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row

from acidsql.catalyst import with_copied_lists
from acidsql.types import LOCAL_TIMESTAMP, Array, Char, Decimal, HiveType, Map, Struct, Varchar

_REPLACED = "\N{REPLACEMENT CHARACTER}"

_PRIMITIVES: dict[str, pa.DataType] = {
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
    "timestamp": pa.timestamp("us"),
    LOCAL_TIMESTAMP: pa.int64(),
}


def arrow_type(type: HiveType) -> pa.DataType:
    """The Arrow type of a Hive type; timestamps are wall clocks without a zone, instants microseconds."""
    if isinstance(type, Decimal):
        return pa.decimal128(type.precision, type.scale)
    if isinstance(type, Char | Varchar):
        return pa.string()
    if isinstance(type, Array):
        return pa.list_(arrow_type(type.element))
    if isinstance(type, Map):
        return pa.map_(arrow_type(type.key), arrow_type(type.value))
    if isinstance(type, Struct):
        return pa.struct([pa.field(name, arrow_type(t)) for name, t in type.fields])
    return _PRIMITIVES[type.name]


_TEXT_BYTES = 24
"""What a text, a list or a map counts as, where only its type is known."""


def row_bytes(types: Sequence[pa.DataType]) -> int:
    """About the bytes of a row, by its types."""
    return sum(_value_bytes(type) for type in types)


def _value_bytes(type: pa.DataType) -> int:
    if pa.types.is_struct(type):
        return sum(_value_bytes(field.type) for field in type)
    return type.bit_width // 8 + 1 if pa.types.is_primitive(type) or pa.types.is_decimal(type) else _TEXT_BYTES


def fetched(frame: DataFrame) -> pa.Table:
    """The rows of a frame."""
    return with_copied_lists(frame.toArrow())


def is_utf8(rows: pa.Table) -> bool:
    """Whether all texts are valid UTF-8: Spark makes others, of ``CAST(X'ff' AS string)`` or from a file of Latin 1."""
    try:
        rows.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def rows_to_table(rows: Sequence[Row], names: Sequence[str], types: Sequence[pa.DataType]) -> pa.Table:
    """Collected rows as an Arrow table.

    Raises:
        ValueError: When a text may have been one that is not UTF-8: PySpark has put another character into it.
    """
    columns = [pa.array([_plain(row[i], type) for row in rows], type=type) for i, type in enumerate(types)]
    return pa.table(columns, names=list(names))


def _plain(value: Any, type: pa.DataType) -> Any:
    """A value as pyarrow's converters take it: maps as pairs, structs as dictionaries."""
    if value is None:
        return None
    if pa.types.is_map(type):
        return [(_plain(k, type.key_type), _plain(v, type.item_type)) for k, v in value.items()]
    if pa.types.is_struct(type):
        return {type.field(i).name: _plain(value[i], type.field(i).type) for i in range(type.num_fields)}
    if pa.types.is_list(type):
        return [_plain(v, type.value_type) for v in value]
    if isinstance(value, str) and _REPLACED in value:
        raise ValueError("a text that may have been altered")
    return bytes(value) if isinstance(value, bytearray) else value
