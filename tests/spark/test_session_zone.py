"""The clocks of zones by :mod:`acidsql.plan.session_zone` are those of Spark, at all times."""

from __future__ import annotations

import random

import numpy as np
import pytest
from pyspark.sql import SparkSession

from acidsql.plan.session_zone import session_zone

pytestmark = pytest.mark.spark

ODD = (
    *(
        "Africa/Casablanca",
        "Africa/El_Aaiun",
        "Asia/Gaza",
        "Asia/Hebron",
        "Asia/Tehran",
        "Africa/Cairo",
        "Europe/Dublin",
    ),
    *(
        "America/New_York",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "Antarctica/Troll",
        "Africa/Monrovia",
        "Asia/Pyongyang",
    ),
    *("UTC", "+05:30", "-18:00", "GMT+8", "PST", "America/Nuuk", "America/Scoresbysund", "Europe/Amsterdam"),
)


@pytest.mark.parametrize("zones", ["odd ones", pytest.param("all", marks=pytest.mark.long)])
def test_offsets_are_those_of_spark(spark: SparkSession, zones: str) -> None:
    chance = random.Random(zones)
    java = spark._jvm.java.time.ZoneId  # type: ignore[union-attr]
    names = list(ODD) if zones == "odd ones" else sorted(java.getAvailableZoneIds())
    years = [*range(1850, 2120, 3), 2400, 2999, 9998, 12_345, 200_000]
    moments = [int((year - 1970) * 31_556_952) + chance.randrange(31_556_952) for year in years for _ in range(4)]
    frame = spark.createDataFrame([(m,) for m in moments], "m bigint").coalesce(1)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    for name in names:
        shown = frame.selectExpr(f"unix_seconds(from_utc_timestamp(timestamp_seconds(m), '{name}')) - m AS offset")
        expected = [row.offset for row in shown.collect()]
        zone = session_zone(spark, name)
        assert zone.offsets(np.array(moments, np.int64)).tolist() == expected, name
        clocks = [m + offset for m, offset in zip(moments, expected, strict=True)]
        shown = spark.createDataFrame([(c,) for c in clocks], "c bigint").coalesce(1)
        back = shown.selectExpr(f"unix_seconds(to_utc_timestamp(timestamp_seconds(c), '{name}')) AS m").collect()
        assert [c - zone.offset_of_clock(c) for c in clocks] == [row.m for row in back], name
