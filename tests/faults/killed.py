"""A process that dies between writing and committing: run by test_kill.py with the warehouse and a statement."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from pyspark.sql import SparkSession

import acidsql


def main(warehouse: str, statement: str) -> None:
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    acid = acidsql.connect(spark, warehouse=warehouse, settings={"hive.txn.timeout": "1s"})

    def die(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    type(acid.metastore).commit_txn = die  # type: ignore[method-assign]
    acid.sql(statement)


if __name__ == "__main__":
    main(*sys.argv[1:])
