"""What a job writes is read by what is known of it, whatever the application has set for ORC's writer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from acidsql.session import AcidSession
from tests.spark.answers import row_ids_are_unique, rows


@pytest.fixture(params=["1000", "0"])
def stride(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    """Spark was started with ``spark.hadoop.orc.row.index.stride``."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
    hadoop.set("orc.row.index.stride", request.param)
    yield
    hadoop.unset("orc.row.index.stride")


@pytest.mark.usefixtures("stride")
@pytest.mark.parametrize("kind", ["", "PARTITIONED BY (p int)", "CLUSTERED BY (id) INTO 2 BUCKETS"])
def test_index_entries_are_as_far_from_each_other_as_the_footer_says(
    acid: AcidSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("acidsql.plan.search.MIN_BYTES", 0)
    acid.sql("SET acidsql.write.driver.rows = 0")
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (id int, v string) {kind}")
    more = ", id % 2" if "PART" in kind else ""
    acid.sql(f"INSERT INTO t SELECT id, 'v'{more} FROM range(0, 45000, 1, 1)")
    for id in (0, 999, 1000, 12_345, 30_000, 44_999):
        assert rows(acid, f"SELECT id FROM t WHERE id = {id}") == [(id,)]
    acid.sql("UPDATE t SET v = 'w' WHERE id % 2 = 0")
    acid.sql("DELETE FROM t WHERE id BETWEEN 20000 AND 29999")
    assert rows(acid, "SELECT v, count(*) FROM t GROUP BY v") == [("v", 17_500), ("w", 17_500)]
    assert rows(acid, "SELECT id FROM t WHERE id = 30000") == [(30_000,)]
    row_ids_are_unique(acid, "t", "p" if more else "0")
