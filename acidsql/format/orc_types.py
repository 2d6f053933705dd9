"""Types as the tail of an ORC file lists them, and as Arrow's reader gives them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa

from acidsql.format.tail import CHAR, DECIMAL, LIST, MAP, PRIMITIVE_KINDS, STRUCT, VARCHAR
from acidsql.format.values import LEAVES
from acidsql.protobuf import number_of, numbers_of, read_message, write_message
from acidsql.types import LOCAL_TIMESTAMP, Array, Char, Decimal, HiveType, Map, Primitive, Struct, Varchar, field_names

_KIND_NUMBERS = {name: number for number, name in PRIMITIVE_KINDS.items()}


def type_messages(root: HiveType) -> list[bytes]:
    """A type and all below it as the footer of a file lists them."""
    made: list[bytes] = []
    _add_type(root, made)
    return made


def _add_type(t: HiveType, made: list[bytes]) -> None:
    place = len(made)
    made.append(b"")
    fields: list[tuple[int, int | bytes]] = []
    below: list[HiveType] = []
    if isinstance(t, Primitive):
        fields.append((1, _KIND_NUMBERS[t.name]))
    elif isinstance(t, Decimal):
        fields += [(1, DECIMAL), (5, t.precision), (6, t.scale)]
    elif isinstance(t, Char | Varchar):
        fields += [(1, CHAR if isinstance(t, Char) else VARCHAR), (4, t.length)]
    elif isinstance(t, Array):
        fields.append((1, LIST))
        below = [t.element]
    elif isinstance(t, Map):
        fields.append((1, MAP))
        below = [t.key, t.value]
    else:
        fields.append((1, STRUCT))
        below = [child for _, child in t.fields]
    for child in below:
        fields.append((2, len(made)))
        _add_type(child, made)
    if isinstance(t, Struct):
        fields += [(3, name.encode()) for name, _ in t.fields]
    if t == Primitive(LOCAL_TIMESTAMP):  # without it Spark fails at the column (OrcUtils.toCatalystSchema)
        fields.append((7, write_message([(1, b"spark.sql.catalyst.type"), (2, b"timestamp")])))
    made[place] = write_message(fields)


@lru_cache(maxsize=256)
def shape_of(t: HiveType) -> list[tuple[Any, ...]]:
    """What a type says but for names and attributes, to be compared with :func:`shape`."""
    return shape(type_messages(t))


def shape(types: Sequence[bytes]) -> list[tuple[Any, ...]]:
    """What types say but for names and attributes."""
    found = [read_message(one) for one in types]
    return [(*(number_of(one, f) for f in (1, 4, 5, 6)), *numbers_of(one.get(2, []))) for one in found]


def are_same_columns(one: Struct, other: Struct) -> bool:
    """Whether files with these columns hold the same values: columns go by position, and fields of structs in them by
    name, in any letter case (orc-core's ``SchemaEvolution``)."""
    return shape_of(one) == shape_of(other) and [*_field_names(one)] == [*_field_names(other)]


def _field_names(columns: Struct) -> Iterator[str]:
    for _, type in columns.fields:
        yield from (name.lower() for name in field_names(type))


def arrow_type(t: HiveType) -> pa.DataType:
    """The type that Arrow's reader gives to a column."""
    if isinstance(t, Decimal):
        return pa.decimal128(t.precision, t.scale)
    if isinstance(t, Char | Varchar):
        return pa.string()
    if isinstance(t, Array):
        return pa.list_(arrow_type(t.element))
    if isinstance(t, Map):
        return pa.map_(arrow_type(t.key), arrow_type(t.value))
    if isinstance(t, Struct):
        return pa.struct([pa.field(name, arrow_type(field)) for name, field in t.fields])
    if t.name == LOCAL_TIMESTAMP:
        return pa.timestamp("ns", "UTC")
    return pa.timestamp("ns") if t.name == "timestamp" else LEAVES[t.name]
