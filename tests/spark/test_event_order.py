"""Events stand in their files in the order of their identities: Hive's row-by-row reader merges by it, and a delete
event out of order is one that it misses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from acidsql.session import AcidSession
from tests.spark.hive_rules import check_table


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("keys", ["", "p int", "p int, q string"], ids=["plain", "one key", "two keys"])
def test_a_job_sorts_what_it_writes(acid: AcidSession, warehouse: Path, keys: str, partitions: int) -> None:
    """Spark reads large files first, so the rows of later transactions come before those of earlier ones."""
    columns = "id bigint, v string" + ("" if keys else ", p int")
    acid.sql(f"CREATE TRANSACTIONAL TABLE t ({columns})" + (f" PARTITIONED BY ({keys})" if keys else ""))
    tail = ", if(id % 2 = 0, NULL, 'b c')" if "q" in keys else ""
    acid.sql("SET acidsql.write.driver.rows = 0")
    for rows in (10, 100, 3000):
        acid.sql(f"INSERT INTO t SELECT id, repeat('v', 9), CAST(id % {partitions} AS int){tail} FROM range({rows})")
    acid.sql("UPDATE t SET v = 'u' WHERE id % 3 = 0")
    acid.sql("UPDATE t SET v = 'w' WHERE p = 0")
    acid.sql("DELETE FROM t WHERE id % 5 = 0")
    assert check_table(warehouse / "t") > 4000
    assert acid.sql("SELECT count(*) FROM t").collect()[0][0] == 2488


@pytest.fixture
def many(spark: SparkSession) -> Iterator[DataFrame]:
    """Rows that Spark has already: too many for the driver to write, and some tasks' for Spark."""
    numbers = list(range(150_000))
    columns = {"id": pa.array(numbers, pa.int64()), "v": [f"{n}" for n in numbers]}
    frame = spark.createDataFrame(pa.table({**columns, "p": pa.array([n % 2 for n in numbers], pa.int32())}))
    frame.createOrReplaceTempView("many")
    yield frame
    spark.catalog.dropTempView("many")


MANY = {
    "insert": lambda acid, frame: acid.insert(frame, "t"),
    "query": lambda acid, frame: acid.sql("INSERT INTO t SELECT id + 0, v, p FROM many"),
    "condition": lambda acid, frame: acid.sql("INSERT INTO t SELECT * FROM many WHERE id >= 0 ORDER BY id"),
    "overwrite": lambda acid, frame: acid.sql("INSERT OVERWRITE TABLE t SELECT * FROM many"),
    "union": lambda acid, frame: acid.sql("INSERT INTO t SELECT * FROM many UNION ALL SELECT 5, 'x', 0 FROM range(0)"),
    "merge": lambda acid, frame: acid.sql(
        "MERGE INTO t USING many s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (id, v, p)"
    ),
}


@pytest.mark.parametrize(
    "partitioned", [pytest.param(False, id="plain"), pytest.param(True, id="partitioned", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("way", MANY)
def test_rows_that_spark_has_already_are_numbered_by_the_tasks_that_write_them(
    acid: AcidSession, warehouse: Path, many: DataFrame, way: str, partitioned: bool
) -> None:
    """Spark's optimiser would number them all as the first task's: deletes of the other files' rows went to the first
    file, and a compaction brought those rows back."""
    keys = " PARTITIONED BY (p int)" if partitioned else ""
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (id bigint, v string{'' if partitioned else ', p int'}){keys}")
    acid.sql("SET acidsql.write.driver.rows = 1000")
    MANY[way](acid, many)
    assert check_table(warehouse / "t") == 150_000
    # what is sorted as a whole, or joined with an empty table, is one task's
    assert partitioned or way in ("condition", "merge") or len(list((warehouse / "t").rglob("bucket_*"))) > 1
    acid.sql("DELETE FROM t WHERE id % 3 = 0")
    for part in [f" PARTITION (p = {n})" for n in (0, 1)] if partitioned else [""]:
        acid.sql(f"ALTER TABLE t{part} COMPACT 'major' AND WAIT")
    assert acid.sql("SELECT count(*), count(DISTINCT id), min(id) FROM t").collect()[0][:] == (100_000, 100_000, 1)
