"""A timestamp of Hive's is a wall clock: no zone of driver, executor or session moves it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import acidsql
from acidsql.errors import AcidError
from acidsql.session import AcidSession
from tests.oracle.choice import first_quick
from tests.oracle.spark_conf import setting
from tests.oracle.zone_run import STATEMENTS
from tests.spark.answers import rows
from tests.spark.processes import ROOT, environment

pytestmark = pytest.mark.spark

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Apia"]
COMBINATIONS = [(d, e, ZONES[(i + j) % 5]) for i, d in enumerate(ZONES) for j, e in enumerate(ZONES)]
"""Every pair of two of the three, once."""
CLOCKS = [
    "2024-07-01 12:00:00",
    "2024-03-31 02:30:00",  # a gap in Berlin
    "2024-10-27 02:30:00",  # twice in Berlin
    "2024-03-10 02:30:00",  # a gap in New York
    "2024-11-03 01:30:00",  # twice in New York
    "2011-12-30 12:00:00",  # a day that Apia does not have
    "1945-01-01 00:00:00",
    "1883-11-18 12:02:00",  # New York's clocks were put back to the hour
    "1582-10-04 23:59:59.999999",
    "1500-02-28 00:00:00",
    "0001-01-01 00:00:00",
]


DAYS = ("2024-03-01", "2024-03-02", "2024-03-03")


def fill(acid: AcidSession) -> None:
    """Wall clocks as a session in UTC writes them, and days, each in a file of its own."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, ts timestamp)")
    acid.sql(f"INSERT INTO t VALUES {', '.join(f'''({n + 2}, TIMESTAMP'{c}')''' for n, c in enumerate(CLOCKS))}")
    acid.sql("CREATE TRANSACTIONAL TABLE own (id int, ts timestamp)")
    acid.sql("CREATE TRANSACTIONAL TABLE days (d date)")
    for day in DAYS:
        acid.sql(f"INSERT INTO days VALUES (DATE'{day}')")


def clocks(acid: AcidSession) -> list[tuple[object, ...]]:
    return rows(acid, "SELECT id % 100, CAST(ts AS string) FROM t")


EXPECTED = sorted(((n + 2, c) for n, c in enumerate(CLOCKS)), key=repr)


@pytest.mark.parametrize("zone", first_quick(ZONES[1:]))
@pytest.mark.parametrize("written_by", ["driver", "job"])
def test_an_update_of_another_column_moves_no_clock(
    acid: AcidSession, spark: SparkSession, zone: str, written_by: str
) -> None:
    fill(acid)
    acid.sql(f"SET acidsql.write.driver.rows = {20000 if written_by == 'driver' else 0}")
    with setting(spark, "spark.sql.session.timeZone", zone):
        refused = ""
        try:
            acid.sql("UPDATE t SET id = id + 100")
        except AcidError as e:
            refused = str(e)
        assert not refused or "zone" in refused
    assert clocks(acid) == EXPECTED


def check(spark: SparkSession, warehouse: Path, driver: str, executor: str, session: str) -> None:
    """Statements in another process leave all clocks where they were, or are refused for the sake of the zones."""
    with acidsql.connect(spark, warehouse=warehouse) as acid:
        fill(acid)
    command = [sys.executable, "-m", "tests.oracle.zone_run", str(warehouse), driver, executor, session]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    for name, message in answer["refused"].items():
        assert "zone" in message, f"{name} failed, and not for the zones: {message}"
    with acidsql.connect(spark, warehouse=warehouse) as acid:
        assert clocks(acid) == EXPECTED
        stored = rows(acid, "SELECT id, CAST(ts AS string) FROM own")
        if "connect" not in answer["refused"]:
            assert answer["day"] == 1
            assert rows(acid, "SELECT CAST(d AS string) FROM days") == [(day,) for day in DAYS[:2]]
    inserted = [
        n for n, name in enumerate(("insert by the driver", "insert by a job"), 1) if name not in answer["refused"]
    ]
    if "connect" not in answer["refused"]:
        assert stored == [(n, "2024-07-01 12:00:00") for n in inserted]
        assert answer.get("own", [list(row) for row in stored]) == [list(row) for row in stored]
    assert answer["refused"].keys() <= {*STATEMENTS, "read t", "read own", "connect"}


@pytest.mark.long  # .ci/run has one cluster (tests/smoke)
def test_driver_executor_and_session_in_zones_of_their_own_move_no_clock(spark: SparkSession, warehouse: Path) -> None:
    check(spark, warehouse, "Europe/Berlin", "UTC", "America/New_York")


@pytest.mark.parametrize("rows_on_driver", [20000, 0])
def test_a_clock_that_the_files_zone_does_not_have_is_refused(
    acid: AcidSession, spark: SparkSession, rows_on_driver: int
) -> None:
    """Spark's JVM would store it an hour later."""
    acid.sql(f"SET acidsql.write.driver.rows = {rows_on_driver}")
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, ts timestamp)")
    java = spark._jvm.java.util.TimeZone  # type: ignore[union-attr]
    java.setDefault(java.getTimeZone("America/New_York"))
    try:
        with setting(spark, "spark.sql.session.timeZone", "Europe/Berlin"):
            for text in ("INSERT INTO t VALUES (1, TIMESTAMP'2024-03-10 02:30:00')", "UPDATE t SET ts = :gap"):
                acid.sql("INSERT INTO t VALUES (2, TIMESTAMP'2024-11-03 01:30:00')")  # twice in New York
                with pytest.raises(AcidError, match="does not exist in America/New_York"):
                    acid.sql(text.replace(":gap", "TIMESTAMP'2024-03-10 02:30:00'"))
            clocks = rows(acid, "SELECT id, CAST(ts AS string) FROM t")
            assert clocks == [(2, "2024-11-03 01:30:00")] * 2
    finally:
        java.setDefault(java.getTimeZone("UTC"))


@pytest.mark.long
@pytest.mark.parametrize(("driver", "executor", "session"), COMBINATIONS)
def test_no_combination_of_zones_moves_a_clock(
    spark: SparkSession, warehouse: Path, driver: str, executor: str, session: str
) -> None:
    check(spark, warehouse, driver, executor, session)
