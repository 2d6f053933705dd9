"""Small results on the driver: fetched once, and passed back to Spark as a local relation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.errors import PySparkTypeError, UnsupportedOperationException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StructField, StructType

from acidsql.catalyst import Catalyst, rows_in_memory
from acidsql.plan.arrow import is_utf8, row_bytes
from acidsql.plan.fetch import fetch_few
from acidsql.plan.leaves import estimated_bytes, read_bytes

_UNPACKED = 8
"""How much larger than a file its rows may be."""
_MAX_ROWS = (1 << 31) - 2
"""One more is the largest LIMIT of Spark's."""
_OPAQUE = ("variant", "geometry", "geography")


@dataclass(frozen=True)
class DriverLimit:
    """What the driver fetches, and writes by itself: at most so many rows, of about so many bytes."""

    rows: int
    bytes: int

    def rows_of(self, types: Sequence[pa.DataType]) -> int:
        """The limit in rows of columns of these types."""
        return min(self.rows, self.bytes // max(1, row_bytes(types)), _MAX_ROWS)


def may_be_small(frame: DataFrame, limit: DriverLimit) -> bool:
    """Whether it may be worth while to fetch a result up to a limit, by what Spark estimates.

    Its estimate of a join multiplies the sizes: that of a small table of many partitions is far too large. It
    is made of the optimised plan, and the plan may have to be optimised for nothing else.
    """
    return read_bytes(frame) * _UNPACKED <= limit.bytes or estimated_bytes(frame) <= limit.bytes


def fetch_small(own: Catalyst, frame: DataFrame, limit: DriverLimit) -> pa.Table | None:
    """The rows of a small result, columns named by position; None if it is large or cannot be fetched.

    Args:
        own: A session of acidsql's own.
        frame: The result.
        limit: A larger result is not fetched, nor one that is surely larger (:func:`may_be_small`).
    """
    if any(_is_opaque(field.dataType) for field in frame.schema) or not may_be_small(frame, limit):
        return None
    names = [f"s{i}" for i in range(len(frame.columns))]
    named = _nullable(frame.toDF(*names))
    try:
        types = [to_arrow_type(field.dataType) for field in named.schema]
        rows = fetch_few(own, named, names, types, limit.rows_of(types))
    except (PySparkTypeError, UnsupportedOperationException, ValueError) as e:
        if isinstance(e, pa.ArrowException):
            raise
        return None  # raised before anything is evaluated: a type that Arrow does not have
    return rows if rows is not None and is_utf8(rows) else None


def _is_opaque(type: DataType, *, nested: bool = False) -> bool:
    """Whether rows of a type are not to be fetched: Arrow has for it, or one inside of it, a struct whose fields are
    never NULL, not even in a NULL; or Spark hands over wrong lists of it (of NULL without a type)."""
    if isinstance(type, ArrayType):
        return _is_opaque(type.elementType, nested=True)
    if isinstance(type, MapType):
        return _is_opaque(type.keyType, nested=True) or _is_opaque(type.valueType, nested=True)
    if isinstance(type, StructType):
        return any(_is_opaque(field.dataType, nested=True) for field in type)
    return type.typeName().startswith(_OPAQUE) or (nested and isinstance(type, NullType))


def _nullable(frame: DataFrame) -> DataFrame:
    """The frame with all that is inside of its columns nullable.

    Arrow has NULL in all fields of a struct that is NULL, and refuses it in those that a schema calls NOT NULL.
    """
    types = {field.name: _nullable_type(field.dataType) for field in frame.schema}
    cast = {f.name: F.col(f.name).cast(types[f.name]) for f in frame.schema if types[f.name] != f.dataType}
    return frame.withColumns(cast) if cast else frame


def _nullable_type(type: DataType) -> DataType:
    if isinstance(type, ArrayType):
        return ArrayType(_nullable_type(type.elementType))
    if isinstance(type, MapType):
        return MapType(_nullable_type(type.keyType), _nullable_type(type.valueType))
    if isinstance(type, StructType):
        return StructType([StructField(f.name, _nullable_type(f.dataType), metadata=f.metadata) for f in type])
    return type


def local_frame(spark: SparkSession, rows: pa.Table, like: DataFrame) -> DataFrame:
    """Fetched rows as a frame.

    Args:
        spark: A session of acidsql's own.
        rows: Rows of :func:`fetch_small`; further columns behind them keep their names.
        like: The frame that they were fetched from: its columns give names and marks (``char``).
    """
    fields = like.schema.fields
    names, further = rows.column_names[: len(fields)], rows.column_names[len(fields) :]
    # Arrow has no collations, and its types carry less information than Spark's
    types = [StructField(n, _nullable_type(f.dataType)) for n, f in zip(names, fields, strict=True)]
    types += [StructField(n, from_arrow_type(rows.schema.field(n).type)) for n in further]
    frame = rows_in_memory(spark, rows, StructType(types))
    if not any(f.metadata for f in fields):
        return frame.toDF(*[f.name for f in fields], *further)
    own = [F.col(n).alias(f.name, metadata=f.metadata) for n, f in zip(names, fields, strict=True)]
    return frame.select(*own, *[F.col(n) for n in further])
