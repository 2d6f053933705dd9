"""Subqueries in the conditions of joins: as Spark answers over tables of its own; in MERGE as ON means it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from acidsql.session import AcidSession
from tests.spark.answers import rows

T = [(1, 1, 10), (2, 2, None), (3, None, 30), (4, 2, 20), (5, 5, 1)]
"""id, k, a."""


@pytest.fixture
def both(acid: AcidSession, spark: SparkSession) -> Iterator[AcidSession]:
    """Table ``t``, and the same rows where Spark finds them, as ``own``."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, k int, a int)")
    spark.createDataFrame(T, "id int, k int, a int").createOrReplaceTempView("own")
    acid.sql("INSERT INTO t SELECT * FROM own")
    yield acid
    spark.catalog.dropTempView("own")


ON = [
    "x.a NOT IN (SELECT k FROM t)",
    "y.a NOT IN (SELECT k FROM t)",
    "NOT (x.a IN (SELECT k FROM t))",
    "x.a NOT IN (SELECT k FROM t WHERE k IS NOT NULL)",
    "x.a NOT IN (SELECT z.k FROM t z WHERE z.id = x.id)",
    "x.k IN (SELECT z.k FROM t z WHERE z.a < x.a)",
    "EXISTS (SELECT 1 FROM t z WHERE z.k < y.k)",
    "NOT EXISTS (SELECT 1 FROM t z WHERE z.k < x.k)",
    "x.id > (SELECT min(z.id) FROM t z)",
]


@pytest.mark.parametrize("condition", ON)
def test_joins_with_a_subquery_in_on_answer_as_of_spark(both: AcidSession, spark: SparkSession, condition: str) -> None:
    for kind in ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"):
        chosen = "x.id" if "SEMI" in kind or "ANTI" in kind else "x.id, y.id"
        text = f"SELECT {chosen} FROM t x {kind} t y ON x.k = y.k AND {condition}"
        expected = spark.sql(
            text.replace("FROM t ", "FROM own ").replace("FROM t)", "FROM own)").replace("JOIN t ", "JOIN own ")
        )
        assert rows(both, text) == sorted(map(tuple, expected.collect()), key=repr), text


@pytest.mark.parametrize("test", ["IN", "EXISTS"])
def test_a_subquery_without_columns_keeps_its_conditions(both: AcidSession, test: str) -> None:
    inner = "(SELECT 1 AS k, a FROM t)"
    what = f"x.k IN (SELECT z.k FROM {inner} z WHERE z.k < x.k)"
    if test == "EXISTS":
        what = f"EXISTS (SELECT 1 FROM {inner} z WHERE z.k < x.k)"
    assert rows(both, f"SELECT x.k FROM {inner} x JOIN t y ON x.k = y.k AND {what}") == []


CONDITIONS = {
    "s.a NOT IN (SELECT k FROM t)": [],
    "t.a NOT IN (SELECT k FROM t)": [],
    "s.a NOT IN (SELECT k FROM t WHERE k IS NOT NULL)": [1, 3, 4],
    "t.a NOT IN (SELECT k FROM t WHERE k IS NOT NULL)": [1, 3, 4],
    "s.a IN (SELECT id FROM t)": [5],
    "EXISTS (SELECT 1 FROM t z WHERE z.a = s.id)": [1],
    "NOT EXISTS (SELECT 1 FROM t z WHERE z.a = t.id) AND s.id > 1": [2, 3, 4, 5],
}
"""What stands in ON behind ``t.id = s.id``, and the ids of the pairs."""


@pytest.mark.parametrize("limit", ["0", pytest.param("1000000", marks=pytest.mark.long)])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_on_of_merge_holds_for_the_pairs_that_it_says(both: AcidSession, condition: str, limit: str) -> None:
    both.sql(f"SET acidsql.write.driver.rows = {limit}")
    pairs = CONDITIONS[condition]
    rest = [row[0] for row in T if row[0] not in pairs]
    matched, new, by_source = (
        "WHEN MATCHED THEN UPDATE SET state = 'pair'",
        "WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.a, 'new')",
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET state = 'alone'",
    )
    for clauses in ([matched], [new], [matched, by_source], [matched, new, by_source]):
        both.sql("DROP TABLE IF EXISTS target")
        both.sql("CREATE TRANSACTIONAL TABLE target (id int, a int, state string)")
        both.sql("INSERT INTO target SELECT id, a, 'old' FROM t")
        both.sql(f"MERGE INTO target t USING t s ON t.id = s.id AND {condition} {' '.join(clauses)}")
        expected = [(i, "pair" if matched in clauses else "old") for i in pairs]
        expected += [(i, "alone" if by_source in clauses else "old") for i in rest]
        expected += [(i, "new") for i in rest if new in clauses]
        assert rows(both, "SELECT id, state FROM target") == sorted(expected, key=repr), clauses
