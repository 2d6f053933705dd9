"""Events stand in their files in the order of their identities: Hive's row-by-row reader merges by it, and a delete
event out of order is one that it misses."""

from __future__ import annotations

from pathlib import Path

import pytest

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
