"""Old timestamps in files of JVMs outside UTC: Java knows another offset of that time than ORC's reader in C++."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from acidsql.errors import CompactionError
from acidsql.format.old_clocks import _clock_of
from acidsql.session import AcidSession
from tests.oracle.spark_conf import setting
from tests.spark.answers import rows

pytestmark = pytest.mark.spark

ZONES = ["Asia/Kathmandu", "Europe/Moscow", "Europe/Berlin", "Africa/Monrovia", "America/St_Johns", "Pacific/Apia"]
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
    "1970-01-05 00:00:00",
    "1985-06-01 00:00:00.25",
    "2024-03-20 02:30:00",
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


@pytest.mark.parametrize("zone", ["Europe/Amsterdam"], indirect=True)
def test_a_clock_that_is_not_known_is_not_copied(acid: AcidSession, zone: str) -> None:
    """The database of the system has merged Amsterdam with Brussels, Java's has not."""
    acid.sql("SET acidsql.write.driver.rows = 0")
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v timestamp)")
    insert = "INSERT INTO t SELECT id + 1, CAST(element_at(array('{}', '{}', NULL), CAST(id + 1 AS int)) AS timestamp)"
    acid.sql(f"{insert.format(CLOCKS[0], CLOCKS[-1])} FROM range(3)")
    acid.sql("DELETE FROM t WHERE id = 3")
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    assert rows(acid, "SELECT id, CAST(v AS string) FROM t") == [(1, CLOCKS[0]), (2, CLOCKS[-1])]
    old = "1910-06-01 00:00:00"
    acid.sql(f"{insert.format(old, old)} FROM range(3)")
    acid.sql("DELETE FROM t WHERE id = 3")
    with pytest.raises(CompactionError, match=r"between 1900 and 1970 .* Europe/Amsterdam"):
        acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    assert rows(acid, "SELECT count(*) FROM t WHERE CAST(v AS string) = :old", old=old) == [(2,)]


def test_the_clock_is_that_of_java(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    zones = jvm.java.util.TimeZone
    moments = [-62_000_000_000, -12_219_300_000, -2_300_000_000, -2_208_988_801, -2_208_988_800, -1_800_000_000,
               -1_200_000_000, -700_000_000, -200_000_000, -63_158_400]  # fmt: skip
    different = []
    for name in [*ZONES, "Asia/Seoul", "Europe/Dublin", "Africa/Casablanca", "Europe/Lisbon", "Asia/Kolkata"]:
        zone = zones.getTimeZone(name)
        base = jvm.java.time.LocalDate.of(2015, 1, 1).atStartOfDay(zone.toZoneId()).toEpochSecond()
        for moment in moments:
            wall = moment + zone.getOffset(moment * 1000) // 1000
            in_gmt = moment - base + 1_420_070_400
            if _clock_of(name)(in_gmt) != wall:
                different.append((name, moment, wall - _clock_of(name)(in_gmt)))
    assert different == []
