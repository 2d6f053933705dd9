"""Small results on the driver: fetched once, and handed back to Spark as a local relation."""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import StructField, StructType

from acidsql.plan.arrow import fetched

SMALL_BYTES = 4 << 20
"""A result that Spark estimates below this is worth fetching, unless it has too many rows."""


def estimated_bytes(frame: DataFrame) -> int:
    """How large Spark takes a result to be."""
    return int(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())


def fetch_small(frame: DataFrame, most: int) -> pa.Table | None:
    """The rows of a small result, columns named by their position; None for one that is large, or cannot be fetched.

    Args:
        frame: The result.
        most: It is not fetched when there are more rows than this.
    """
    if estimated_bytes(frame) > SMALL_BYTES:
        return None
    named = frame.toDF(*[f"s{i}" for i in range(len(frame.columns))])
    try:
        to_arrow_schema(named.schema)
    except PySparkException:  # a type that Arrow does not have
        return None
    rows = fetched(named.limit(most + 1))
    return rows if rows.num_rows <= most else None


def local_frame(spark: SparkSession, rows: pa.Table, like: DataFrame) -> DataFrame:
    """Fetched rows as a frame.

    Args:
        spark: The session.
        rows: Rows of :func:`fetch_small`; further columns behind them keep their names.
        like: The frame that they were fetched from: its columns give names and marks (``char``).
    """
    fields = like.schema.fields
    names, further = rows.column_names[: len(fields)], rows.column_names[len(fields) :]
    # Arrow has no collations, and says less of a type than Spark knows
    types = [StructField(n, f.dataType) for n, f in zip(names, fields, strict=True)]
    types += [StructField(n, from_arrow_type(rows.schema.field(n).type)) for n in further]
    frame = spark.createDataFrame(rows, StructType(types))
    own = [F.col(n).alias(f.name, metadata=f.metadata) for n, f in zip(names, fields, strict=True)]
    return frame.select(*own, *[F.col(n) for n in further])
