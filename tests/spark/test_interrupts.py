"""Ctrl-C while a job of Spark writes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from threading import Thread

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from acidsql.session import AcidSession
from tests.spark.answers import nothing_is_open, rows

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("partitioned", [False, True])
def test_an_interrupted_job_writes_nothing_any_more(
    acid: AcidSession, spark: SparkSession, warehouse: Path, partitioned: bool
) -> None:
    """It went on after the statement had removed what was staged, and made that directory again."""
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (id bigint, p int){' PARTITIONED BY (q int)' if partitioned else ''}")
    acid.sql(f"INSERT INTO t SELECT id, 0{', 1' if partitioned else ''} FROM range(3)")
    acid.sql("SET acidsql.write.driver.rows = 0")
    before = rows(acid, "SELECT * FROM t")

    slowly = udf(lambda number: (time.sleep(0.02), number)[1], "bigint")
    frame = spark.range(0, 400, 1, 2).select(slowly("id").alias("id")).selectExpr("id", "1", *["2"] * partitioned)

    def interrupt() -> None:
        end = time.monotonic() + 60
        while not any("_temporary" in path for path, _, _ in os.walk(warehouse)) and time.monotonic() < end:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = Thread(target=interrupt)
    thread.start()
    with pytest.raises((KeyboardInterrupt, Py4JError)):  # which of them is PySpark's own doing
        acid.insert(frame, "t")
    thread.join()
    left = sorted(str(path) for path in warehouse.rglob("_tmp*"))
    time.sleep(1)  # its tasks would have taken four seconds
    assert (left, sorted(str(path) for path in warehouse.rglob("_tmp*"))) == ([], [])
    assert rows(acid, "SELECT * FROM t") == before
    nothing_is_open(acid)
