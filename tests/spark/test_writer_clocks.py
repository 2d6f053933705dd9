"""Timestamps in files of JVMs outside UTC: Java knows other offsets than ORC's reader in C++."""

from __future__ import annotations

import datetime as dt
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from acidsql.errors import UnsupportedError
from acidsql.format.writer_clocks import clock_of
from acidsql.session import AcidSession
from tests.oracle.spark_conf import setting
from tests.spark.answers import rows

pytestmark = pytest.mark.spark

ZONES = [
    *("Asia/Kathmandu", "Europe/Moscow", "Europe/Berlin", "Africa/Monrovia", "America/St_Johns", "Pacific/Apia"),
    *("Europe/Amsterdam", "Africa/Windhoek", "America/Asuncion", "Antarctica/Rothera", "Africa/Casablanca"),
    *("IST", "PST", "GMT+05:30", "US/Eastern"),
]
CLOCKS = [
    "0001-01-03 00:00:00",
    "1500-02-28 12:00:00.5",
    "1582-10-04 23:59:59",
    "1582-10-15 00:00:00",
    "1883-11-10 12:00:30",
    "1899-12-25 23:59:59.999999",
    "1900-01-05 00:00:00",
    "1910-06-01 00:00:00",
    "1935-06-01 00:00:00",
    "1967-12-30 23:59:59.000001",
    "1968-01-05 00:00:00",
    "1969-12-31 12:00:00.25",
    "1970-01-01 12:00:00.25",
    "1970-01-05 00:00:00",
    "1973-06-01 00:00:00",
    "1985-06-01 00:00:00.25",
    "2024-03-20 02:30:00",
    "2040-06-01 12:00:00",
    "2099-12-31 23:59:59.999999",
    "9999-12-31 00:00:00",
]


@pytest.fixture
def zone(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """The zone of the JVM and of the session."""
    java: Any = spark._jvm.java.util.TimeZone  # type: ignore[union-attr]
    before = java.getDefault()
    java.setDefault(java.getTimeZone(request.param))
    with setting(spark, "spark.sql.session.timeZone", request.param):
        yield request.param
    java.setDefault(before)


@pytest.mark.parametrize("zone", ZONES, indirect=True)
@pytest.mark.parametrize("type", ["timestamp", "array<struct<a:map<timestamp,int>,b:timestamp>>"])
def test_a_compaction_moves_no_clock(acid: AcidSession, zone: str, type: str) -> None:
    acid.sql("SET acidsql.write.driver.rows = 0")
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (id int, v {type})")
    values = f"element_at(array({', '.join(map(repr, CLOCKS))}), CAST(id % {len(CLOCKS)} + 1 AS int))"
    clock, shown = f"CAST({values} AS timestamp)", "CAST(v AS string)"
    if type != "timestamp":
        clock = f"array(named_struct('a', map({clock}, 1), 'b', {clock}), NULL)"
        shown = "CAST(v[0].b AS string), CAST(map_keys(v[0].a)[0] AS string), v[1] IS NULL"
    for part in ("0, 30", "30, 60"):
        acid.sql(f"INSERT INTO t SELECT CAST(id AS int), if(id = 5, NULL, {clock}) FROM range({part})")
    acid.sql("DELETE FROM t WHERE id % 3 = 0")
    before = rows(acid, f"SELECT id, {shown} FROM t")
    assert {str(row[1]) for row in before} >= set(CLOCKS)
    for kind in ("minor", "rebalance", "major"):
        acid.sql(f"ALTER TABLE t COMPACT '{kind}' AND WAIT")
        assert rows(acid, f"SELECT id, {shown} FROM t") == before
        acid.sql("INSERT INTO t SELECT 1000, v FROM t WHERE id = 1")
        acid.sql("DELETE FROM t WHERE id = 1000")


@pytest.mark.parametrize("zone", ["IST", "GMT+05:30", "Europe/Berlin"], indirect=True)
@pytest.mark.parametrize("driver_rows", [0, 100_000])
def test_rows_with_clocks_are_updated(acid: AcidSession, zone: str, driver_rows: int) -> None:
    """The files are searched for nanoseconds before."""
    acid.sql("SET acidsql.write.driver.rows = 0")
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v timestamp, w int)")
    values = f"element_at(array({', '.join(map(repr, CLOCKS))}), CAST(id AS int) + 1)"
    acid.sql(f"INSERT INTO t SELECT CAST(id AS int), CAST({values} AS timestamp), 1 FROM range({len(CLOCKS)})")
    acid.sql(f"SET acidsql.write.driver.rows = {driver_rows}")
    acid.sql("UPDATE t SET w = 2 WHERE id % 2 = 0")
    acid.sql("MERGE INTO t USING (SELECT id k FROM range(30)) s ON t.id = s.k WHEN MATCHED THEN UPDATE SET w = w + 1")
    expected = [(i, clock, 2 + (i + 1) % 2) for i, clock in enumerate(CLOCKS)]
    assert sorted(rows(acid, "SELECT id, CAST(v AS string), w FROM t")) == expected


@pytest.mark.parametrize("zone", ["Europe/Amsterdam"], indirect=True)
def test_tasks_of_spark_are_told_the_clock(acid: AcidSession, zone: str) -> None:
    """Workers have no JVM that they could ask."""
    acid.sql("SET acidsql.write.driver.rows = 0")
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v timestamp) CLUSTERED BY (id) INTO 3 BUCKETS")
    values = f"element_at(array({', '.join(map(repr, CLOCKS))}), CAST(id % {len(CLOCKS)} + 1 AS int))"
    acid.sql(f"INSERT INTO t SELECT CAST(id AS int), CAST({values} AS timestamp) FROM range(60)")
    acid.sql("DELETE FROM t WHERE id % 3 = 0")
    before = rows(acid, "SELECT id, CAST(v AS string) FROM t")
    acid.sql("SET acidsql.compactor.spark.size = 0")
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    assert rows(acid, "SELECT id, CAST(v AS string) FROM t") == before


def test_without_java_a_clock_is_not_guessed(acid: AcidSession, spark: SparkSession, tmp_path: Path) -> None:
    zone = spark._jvm.java.util.TimeZone  # type: ignore[union-attr]
    before = zone.getDefault()
    zone.setDefault(zone.getTimeZone("Europe/Berlin"))
    try:
        frame = spark.sql("SELECT CAST('1985-06-01 00:00:00' AS timestamp) AS v, 1 AS i")
        frame.coalesce(1).write.orc(str(tmp_path / "berlin"))
    finally:
        zone.setDefault(before)
    [file] = (tmp_path / "berlin").glob("*.orc")
    script = (
        "from acidsql.format.stripes import StripeSource\n"
        "import sys\n"
        "source = StripeSource(open(sys.argv[1], 'rb'), sys.argv[1])\n"
        "print(source.batch(0, ['i']).num_rows)\n"
        "source.batch(0)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(file)], capture_output=True, text=True, check=False)
    assert done.stdout == "1\n"
    assert "UnknownClock" in done.stderr
    assert "Europe/Berlin" in done.stderr


@pytest.mark.parametrize("name", [*ZONES, "Asia/Seoul", "Europe/Dublin", "Europe/Lisbon", "Asia/Kolkata", "Asia/Gaza"])
def test_the_clock_is_that_of_java(spark: SparkSession, name: str) -> None:
    jvm: Any = spark._jvm
    zone = jvm.java.util.TimeZone.getTimeZone(name)
    start = jvm.java.time.LocalDate.of(2015, 1, 1).atStartOfDay(zone.toZoneId()).toEpochSecond()
    draw = random.Random(name)
    years = [
        *range(1900, 2036, 3),
        *[2036] * 30,
        *[2037] * 60,
        *[2038] * 30,
        2050,
        2087,
        2088,
        2099,
        2399,
        2400,
        2437,
        2500,
        3000,
        9998,
    ]
    moments = [
        *(-62_000_000_000, -12_219_300_000, -2_300_000_000, -2_208_988_801, -2_208_988_800, -86_400, -1, 0, 86_400),
        *(dt.datetime(year, 1, 1, tzinfo=dt.timezone.utc).timestamp() + draw.randrange(366 * 86_400) for year in years),
    ]
    different = []
    for moment in map(int, moments):
        offset = zone.getOffset(moment * 1000) // 1000
        in_gmt = np.array([moment - start + 1_420_070_400])
        [found] = clock_of(name)(in_gmt, np.array([0])).tolist()
        if found != moment + offset:
            different.append((moment, found - moment - offset))
    assert different == []


def test_a_zone_that_java_does_not_know(spark: SparkSession) -> None:
    with pytest.raises(UnsupportedError, match="Nowhere"):
        clock_of("Europe/Nowhere")
