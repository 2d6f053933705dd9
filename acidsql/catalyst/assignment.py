"""Which values Spark stores in a column of another type."""

from __future__ import annotations

from functools import lru_cache

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType

from acidsql.catalyst.active import active
from acidsql.catalyst.java import Java

_TYPE = "org.apache.spark.sql.types.DataType"


def can_store(own: SparkSession, source: DataType, target: str) -> bool:
    """Whether a value of one type may be stored in a column of another, by Spark's ANSI rules.

    Args:
        own: A session of acidsql's own, which fixes what types mean.
        source: The type of the value.
        target: The type of the column, as DDL.
    """
    with active(own):
        return _can_store(Java.of(own), source.json(), target)


@lru_cache(maxsize=4096)
def _can_store(java: Java, source: str, target: str) -> bool:
    given, wanted = java.static(_TYPE, "fromJson")(source), java.static(_TYPE, "fromDDL")(target)
    return bool(java.static("org.apache.spark.sql.catalyst.expressions.Cast", "canANSIStoreAssign")(given, wanted))
