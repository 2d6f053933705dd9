"""Ctrl-C while a job of Spark writes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import DataFrameWriter, SparkSession
from pyspark.sql.functions import udf

from acidsql.cli.interrupt import interruptible
from acidsql.errors import StorageError
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


def test_a_job_that_is_still_being_planned_does_not_run_on(
    acid: AcidSession, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It started after the statement had ended, in a thread of Spark's for broadcasts, and kept all cores busy."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, n bigint)")
    acid.sql("SET acidsql.write.driver.rows = 0")
    many = " UNION ALL ".join(f"SELECT id + {i} AS id FROM range(2000) WHERE id % {i + 2} <> 1" for i in range(150))
    orc, threads = DataFrameWriter.orc, list[Thread]()

    def interrupted(self: DataFrameWriter, path: str) -> None:
        thread = Thread(target=lambda: (time.sleep(0.2), os.kill(os.getpid(), signal.SIGINT)))
        thread.start()
        threads.append(thread)
        orc(self, path)

    monkeypatch.setattr(DataFrameWriter, "orc", interrupted)
    # a job that runs already would be cancelled, and is not what is tested
    with interruptible(spark, patience=0.0), pytest.raises((KeyboardInterrupt, Py4JError, StorageError)):
        acid.sql(f"INSERT INTO t SELECT a.id, count(*) FROM ({many}) a CROSS JOIN range(3000000) GROUP BY a.id")
    for thread in threads:
        thread.join()

    def active() -> list[int]:
        return list(spark.sparkContext.statusTracker().getActiveJobsIds())

    try:
        _within(6, lambda: bool(active()))  # after some two seconds, if it comes
        _within(10, lambda: not active())
        assert active() == []
    finally:
        spark.sparkContext.cancelAllJobs()
    assert rows(acid, "SELECT * FROM t") == []
    nothing_is_open(acid)


def _within(seconds: float, is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + seconds
    while not is_so() and time.monotonic() < end:
        time.sleep(0.1)
