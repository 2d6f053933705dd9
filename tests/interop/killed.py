"""A process that dies between writing and committing; run as a module with the metastore and a statement."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from tests.spark.processes import ROOT, run


def kill_before_commit(metastore_uri: str, statement: str) -> None:
    """Run a statement in a process of its own, which is killed when everything is written and nothing committed."""
    done = run([sys.executable, "-m", "tests.interop.killed", metastore_uri, statement], ROOT)
    assert done.returncode == -signal.SIGKILL, done.stderr[-3000:]


def main(metastore_uri: str, statement: str) -> None:
    from pyspark.sql import SparkSession

    import acidsql

    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    acid = acidsql.connect(spark, metastore=metastore_uri)

    def die(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    type(acid.metastore).commit_txn = die  # type: ignore[assignment,method-assign]
    acid.sql(statement)


if __name__ == "__main__":
    main(*sys.argv[1:])
