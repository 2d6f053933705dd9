"""How much a plan reads, and how much it gives, as far as Spark can tell."""

from __future__ import annotations

from pyspark.errors import UnsupportedOperationException
from pyspark.sql import DataFrame, SparkSession

from acidsql.catalyst import Catalyst, Plan, bytes_in_memory


def estimated_bytes(frame: DataFrame) -> int:
    """Spark's estimate of the size of a result."""
    return int(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())


def read_bytes(frame: DataFrame) -> int:
    """The size of all that a plan reads, as far as it is known without a look at the plan."""
    return sum(_leaf_bytes(frame.sparkSession, leaf) for leaf in Catalyst.leaves(Catalyst.analyzed(frame)))


def _leaf_bytes(spark: SparkSession, leaf: Plan) -> int:
    """The size of a leaf of a plan."""
    known = bytes_in_memory(leaf)
    if known is not None:
        return known
    try:
        return int(leaf.stats().sizeInBytes())
    except UnsupportedOperationException:  # rows such as VALUES (now()), which the optimiser makes
        return estimated_bytes(Catalyst(spark).frame(leaf))
