"""Spark's view of event files: one place that hands paths to Spark's ORC reader."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from acidsql import fs
from acidsql.metastore.model import Table
from acidsql.plan.values import quote
from acidsql.types import parse_type, to_spark

EVENT_COLUMNS = ("operation", "originalTransaction", "bucket", "rowId", "currentTransaction", "row")
_EVENT_DDL = "operation int, originalTransaction bigint, bucket int, rowId bigint, currentTransaction bigint"
_THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_threshold_lock = threading.Lock()


@contextmanager
def _listing_on_the_driver(spark: SparkSession) -> Iterator[None]:
    """Keep Spark from starting a job that looks at files which acidsql has just listed."""
    with _threshold_lock:
        before = spark.conf.get(_THRESHOLD, None)
        spark.conf.set(_THRESHOLD, "1000000")
        try:
            yield
        finally:
            if before is None:
                spark.conf.unset(_THRESHOLD)
            else:
                spark.conf.set(_THRESHOLD, before)


def event_frame(
    spark: SparkSession, table: Table, paths: Sequence[str], columns: Sequence[tuple[str, str]]
) -> DataFrame:
    """The events of some files: the six event columns, then the partition keys as the text that stands in the path.

    Whoever reads the frame must keep all six event columns alive up to the scan (see
    :func:`acidsql.plan.scan.visible_events`): orc-core recognises an ACID file by them, and reads wrongly without.

    Args:
        spark: The session.
        table: The table that the files belong to.
        paths: The files.
        columns: Names and Hive types to read of ``row``; names are those in the files.
    """
    fields = ", ".join(f"{quote(n)}: {to_spark(parse_type(t), plain_strings=True)}" for n, t in columns)
    keys = "".join(f", {quote(k.name)} string" for k in table.partition_keys)
    _, root = fs.resolve(table.location)
    reader = spark.read.schema(f"{_EVENT_DDL}, row struct<{fields}>{keys}").option("__globPaths__", "false")
    if table.partition_keys:
        reader = reader.option("basePath", fs.spark_path(root))
    with _listing_on_the_driver(spark):
        return reader.orc([fs.spark_path(p) for p in paths])
