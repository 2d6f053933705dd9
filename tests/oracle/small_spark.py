"""A Spark as small as it gets, for processes of their own."""

from __future__ import annotations

from pyspark.sql import SparkSession


def small_spark(master: str = "local[1]", **settings: str) -> SparkSession:
    """Start one; ``settings`` are Spark's, with ``__`` in the place of dots."""
    builder = SparkSession.builder.master(master).appName("acidsql-tests")
    given = {
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.log.level": "OFF",
        **{name.replace("__", "."): value for name, value in settings.items()},
    }
    for name, value in given.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
