"""Types as the tail of an ORC file lists them, as Arrow has them, and as pyorc does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyorc

from acidsql.format.tail import CHAR, DECIMAL, LIST, MAP, PRIMITIVE_KINDS, STRUCT, VARCHAR
from acidsql.format.values import LEAVES
from acidsql.protobuf import number_of, numbers_of, read_message, write_message
from acidsql.types import LOCAL_TIMESTAMP, Array, Char, Decimal, HiveType, Map, Primitive, Struct, Varchar, field_names

COMPRESSIONS = {
    "none": pyorc.CompressionKind.NONE,
    "zlib": pyorc.CompressionKind.ZLIB,
    "snappy": pyorc.CompressionKind.SNAPPY,
    "lz4": pyorc.CompressionKind.LZ4,
    "zstd": pyorc.CompressionKind.ZSTD,
}
_PYORC_PRIMITIVES: dict[str, type[pyorc.TypeDescription]] = {
    one.name: one
    for one in (
        pyorc.Boolean,
        pyorc.TinyInt,
        pyorc.SmallInt,
        pyorc.Int,
        pyorc.BigInt,
        pyorc.Float,
        pyorc.Double,
        pyorc.String,
        pyorc.Binary,
        pyorc.Date,
        pyorc.Timestamp,
    )
}
_FOR_SPARK = {"spark.sql.catalyst.type": "timestamp"}
"""An attribute of ORC's types, without which Spark fails at a column of instants (``OrcUtils.toCatalystSchema``)."""

_KIND_NUMBERS = {name: number for number, name in PRIMITIVE_KINDS.items()}


@lru_cache(maxsize=64)
def type_messages(root: HiveType) -> tuple[bytes, ...]:
    """A type and all below it as the footer of a file lists them."""
    made: list[bytes] = []
    _add_type(root, made)
    return tuple(made)


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


def pyorc_type(t: HiveType) -> pyorc.TypeDescription:
    """The type as pyorc has it. A tree, not a text: a text cannot hold every name."""
    if t == Primitive(LOCAL_TIMESTAMP):
        instant = pyorc.TimestampInstant()
        instant.set_attributes(_FOR_SPARK)
        return instant
    if isinstance(t, Primitive):
        return _PYORC_PRIMITIVES[t.name]()
    if isinstance(t, Decimal):
        return pyorc.Decimal(t.precision, t.scale)
    if isinstance(t, Char):
        return pyorc.Char(t.length)
    if isinstance(t, Varchar):
        return pyorc.VarChar(t.length)
    if isinstance(t, Array):
        return pyorc.Array(pyorc_type(t.element))
    if isinstance(t, Map):
        return pyorc.Map(pyorc_type(t.key), pyorc_type(t.value))
    return _Fields({name: pyorc_type(field) for name, field in t.fields})


class _Fields(pyorc.Struct):
    """A struct with fields of any name: pyorc's own takes them as keyword arguments and refuses ``self``."""

    _named: Mapping[str, pyorc.TypeDescription] = {}

    def __init__(self, fields: Mapping[str, pyorc.TypeDescription]) -> None:
        super().__init__()
        self._named = fields
        self.set_column_id(0)

    @property
    def fields(self) -> Mapping[str, pyorc.TypeDescription]:
        return self._named

    def set_column_id(self, val: int) -> int:
        self._column_id = val
        for field in self._named.values():
            val = field.set_column_id(val + 1)
        return val
