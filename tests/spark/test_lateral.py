"""LATERAL subqueries in statements that change rows: Spark takes scans for non-deterministic, and would refuse."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from acidsql.session import AcidSession
from tests.spark.answers import rows

MATCHING = "id IN (SELECT x.id FROM {t} x, LATERAL (SELECT max(k) m FROM {u} AS u WHERE u.k = x.a) l WHERE l.m > 0)"
SOURCE = "(SELECT CAST(x.id AS int) k, l.m w FROM {t} x, LATERAL (SELECT max(w) m FROM {u} AS u WHERE u.k = x.id) l)"
INNER = "SELECT max(l.k) FROM {t} x, LATERAL (SELECT k FROM {u} AS u WHERE u.k = x.a) l WHERE x.id = t.id"


@pytest.mark.parametrize("driver_rows", [0, 3, 1_000_000])
def test_lateral_subqueries(acid: AcidSession, spark: SparkSession, driver_rows: int) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, a int, c char(3))")
    acid.sql("CREATE TRANSACTIONAL TABLE u (k int, w string)")
    acid.sql("INSERT INTO t SELECT id, CAST(id AS int) % 5, 'x' FROM range(20)")
    acid.sql("INSERT INTO u SELECT CAST(id AS int), concat('b', id) FROM range(9)")
    acid.sql("DELETE FROM t WHERE id = 3")
    acid.sql("DELETE FROM u WHERE k = 8")
    acid.sql(f"SET acidsql.write.driver.rows = {driver_rows}")

    def expected(query: str) -> list[tuple[object, ...]]:
        for name in ("t", "u"):
            acid.table(name).localCheckpoint().createOrReplaceTempView(f"model_{name}")
        named = f"{query} FROM {{t}} AS t".format(t="model_t", u="model_u")
        return sorted(map(tuple, spark.sql(named).collect()))

    matching, source, inner = (text.format(t="t", u="u") for text in (MATCHING, SOURCE, INNER))

    deleted = [one[:2] for one in expected(f"SELECT id, a, {MATCHING} AND id > 15") if not one[2]]
    acid.sql(f"DELETE FROM t WHERE {matching} AND id > 15")
    assert sorted(rows(acid, "SELECT id, a FROM t")) == deleted
    updated = expected(f"SELECT id, if({MATCHING}, 7, a), if({MATCHING}, 'y  ', c)")
    acid.sql(f"UPDATE t SET a = 7, c = 'y' WHERE {matching}")
    assert sorted(rows(acid, "SELECT * FROM t")) == updated
    merged = expected("SELECT id, if(id > 5, CAST(id AS int), a)")
    counts = acid.sql(f"MERGE INTO t USING {source} s ON t.id = s.k WHEN MATCHED AND s.k > 5 THEN UPDATE SET a = s.k")
    assert counts.collect()[0].num_updated_rows == len([one for one in merged if one[0] > 5])
    assert sorted(rows(acid, "SELECT id, a FROM t")) == merged
    acid.sql("UPDATE t SET a = 1 WHERE id > 3")
    acid.sql(f"UPDATE t SET a = ({inner}) WHERE id > 3")
    assert rows(acid, "SELECT DISTINCT a FROM t WHERE id > 3") == [(1,)]


def test_an_error_that_shows_the_plan_is_none_of_values(acid: AcidSession) -> None:
    """A plan that Spark prints has the messages of errors in it that it might raise."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, c char(3))")
    acid.sql("INSERT INTO t VALUES (1, 'x')")
    random = "SELECT x.id FROM t x, LATERAL (SELECT rand() r WHERE x.id > 0) l"
    with pytest.raises(Exception, match="NON_DETERMINISTIC_LATERAL_SUBQUERIES"):
        acid.sql(f"UPDATE t SET c = 'y' WHERE id IN ({random})")
