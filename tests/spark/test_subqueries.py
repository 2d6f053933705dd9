"""Subqueries, wherever they stand: as Spark answers over tables of its own; in ON of MERGE as SQL means it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

import pytest
from pyspark.errors import AnalysisException
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


def of_spark(spark: SparkSession, text: str) -> list[tuple[object, ...]]:
    """The answer of a query over Spark's own rows."""
    own = re.sub(r"\b(FROM|JOIN|,) t\b", r"\1 own", text)
    return sorted(map(tuple, spark.sql(own).collect()), key=repr)


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
        assert rows(both, text) == of_spark(spark, text), text


@pytest.mark.parametrize("test", ["IN", "EXISTS"])
def test_a_subquery_without_columns_keeps_its_conditions(both: AcidSession, test: str) -> None:
    inner = "(SELECT 1 AS k, a FROM t)"
    what = f"x.k IN (SELECT z.k FROM {inner} z WHERE z.k < x.k)"
    if test == "EXISTS":
        what = f"EXISTS (SELECT 1 FROM {inner} z WHERE z.k < x.k)"
    assert rows(both, f"SELECT x.k FROM {inner} x JOIN t y ON x.k = y.k AND {what}") == []


MEMBER = "(SELECT id, k, k IN (SELECT k FROM t) AS b FROM t)"
"""A column that is true or NULL, and false nowhere."""
COUNT = "(SELECT count(*) FROM t z WHERE z.k = u.k)"
QUERIES = [
    f"SELECT id FROM {MEMBER} u WHERE NOT b",
    f"SELECT id, {COUNT} c FROM {MEMBER} u WHERE NOT b",
    f"SELECT id FROM {MEMBER} u WHERE NOT b AND EXISTS (SELECT 1 FROM t z WHERE z.k = u.k)",
    f"SELECT id FROM {MEMBER} u, LATERAL (SELECT count(*) c FROM t) WHERE NOT b",
    f"SELECT id FROM {MEMBER} u, LATERAL (SELECT count(*) c FROM t z WHERE z.k = u.k) WHERE NOT b",
    f"SELECT x.id FROM t x LEFT JOIN {MEMBER} u ON u.id = x.id WHERE NOT u.b",
    f"SELECT x.id, u.id FROM t x LEFT JOIN {MEMBER} u ON u.id = x.id AND NOT u.b",
    f"SELECT x.id FROM {MEMBER} u JOIN t x ON u.id = x.id WHERE NOT (u.b OR x.k = 3)",
    f"SELECT x.id FROM {MEMBER} u JOIN t x ON u.id = x.id WHERE (NOT u.b AND x.k = 2) OR (NOT u.b AND x.a < 9)",
    f"SELECT id FROM (SELECT id, b FROM {MEMBER} EXCEPT ALL SELECT 1, true) WHERE NOT b",
    f"SELECT id FROM (SELECT id, b FROM {MEMBER} INTERSECT SELECT id, false FROM t) WHERE NOT b",
    f"SELECT k FROM {MEMBER} u GROUP BY k, b HAVING NOT (b OR count(*) > 9)",
    f"SELECT id, sum(k) OVER (ORDER BY id) s FROM {MEMBER} WHERE CASE WHEN b THEN false WHEN NOT b THEN true END",
    f"WITH m AS (SELECT * FROM {MEMBER}) SELECT x.id FROM m x, m y WHERE NOT x.b AND x.id = y.id",
    f"SELECT x.id FROM t x WHERE EXISTS (SELECT 1 FROM {MEMBER} u WHERE u.id = x.id AND NOT u.b)",
    f"SELECT x.id FROM t x WHERE x.id NOT IN (SELECT id FROM {MEMBER} WHERE NOT b)",
    "FROM t |> EXTEND k IN (SELECT k FROM t) AS b |> WHERE NOT b |> SELECT id",
    "FROM t |> SET k = (SELECT max(z.a) FROM t z WHERE z.k <= 2) |> SELECT id, k",
    "FROM t |> SET k = k IN (WITH w AS (SELECT k FROM t) SELECT k FROM w) |> SELECT id, k",
    "SELECT id, sum(a) OVER w s FROM t WINDOW w AS (PARTITION BY k > (SELECT min(k) FROM t) ORDER BY id)",
    "SELECT id, count(*) OVER w s FROM t WINDOW w AS (PARTITION BY k IN (SELECT a FROM t WINDOW v AS (ORDER BY a)))",
    "SELECT count(DISTINCT a + (SELECT max(k) FROM t)), count(DISTINCT k) FROM t",
    "SELECT count(DISTINCT a) FILTER (WHERE k IN (SELECT id FROM t)), count(DISTINCT k) FROM t",
    "SELECT x.id, (SELECT count(DISTINCT z.a) FILTER (WHERE z.k IN (SELECT k FROM t)) + count(DISTINCT z.k)"
    " FROM t z WHERE z.k = x.k) c FROM t x",
    "SELECT (SELECT max(k) FROM t) m, k, count(*) FROM t GROUP BY ROLLUP ((SELECT max(k) FROM t), k)",
    "SELECT x.id, (SELECT max((SELECT min(w.a) FROM t w WHERE w.k <= 2)) FROM t z WHERE z.k = x.k) FROM t x",
    "SELECT max(a) FROM t WHERE (id, k) IN (SELECT id, k FROM t)",
    "SELECT * FROM (SELECT k, a > (SELECT avg(a) FROM t) AS big FROM t) PIVOT (count(*) FOR big IN (true, false))",
]


@pytest.mark.parametrize("text", QUERIES)
def test_queries_with_subqueries_answer_as_of_spark(both: AcidSession, spark: SparkSession, text: str) -> None:
    assert rows(both, text) == of_spark(spark, text)


@pytest.mark.parametrize("limit", ["0", "1000000"])
@pytest.mark.parametrize(
    "statement",
    [
        f"DELETE FROM t x WHERE EXISTS (SELECT 1 FROM {MEMBER} u WHERE u.id = x.id AND NOT u.b)",
        f"DELETE FROM t WHERE id IN (SELECT u.id FROM {MEMBER} u WHERE NOT b AND {COUNT} >= 0)",
        f"UPDATE t SET a = -1 WHERE id IN (SELECT u.id FROM t x LEFT JOIN {MEMBER} u ON u.id = x.id WHERE NOT u.b)",
        f"MERGE INTO t USING (SELECT u.* FROM {MEMBER} u WHERE NOT b AND {COUNT} >= 0) s ON t.id = s.id"
        " WHEN MATCHED THEN DELETE",
        f"MERGE INTO t USING t s ON t.id = s.id WHEN MATCHED AND s.id IN (SELECT id FROM {MEMBER} WHERE NOT b)"
        " THEN DELETE",
        f"INSERT INTO t SELECT id, k, 0 FROM {MEMBER} u WHERE NOT b AND {COUNT} >= 0",
        "DELETE FROM t WHERE 0 = (SELECT count(DISTINCT a + (SELECT max(k) FROM t)) FROM t)",
    ],
)
def test_statements_whose_subqueries_name_no_row_change_nothing(both: AcidSession, statement: str, limit: str) -> None:
    both.sql(f"SET acidsql.write.driver.rows = {limit}")
    both.sql(statement)
    assert rows(both, "SELECT * FROM t") == sorted(T, key=repr)


def test_frames_over_subqueries_are_filtered_as_of_spark(both: AcidSession, spark: SparkSession) -> None:
    text = "SELECT id, k IN (SELECT k FROM t) AS b FROM t"
    frame = both.sql(text)
    assert frame.filter("NOT b").collect() == []
    assert frame.filter("b").count() == len([row for row in of_spark(spark, text) if row[1]])
    assert sorted(row[0] for row in frame.select("t.id").collect()) == [1, 2, 3, 4, 5]
    with pytest.raises(AnalysisException, match="a"):  # the statement has not selected it, and does not read it
        frame.orderBy("a")


@pytest.mark.parametrize("text", QUERIES)
def test_queries_over_temporary_views_of_acid_tables_answer_as_of_spark(
    both: AcidSession, spark: SparkSession, text: str
) -> None:
    both.sql("DELETE FROM t WHERE id = 5")
    both.sql("INSERT INTO t VALUES (5, 5, 1)")
    both.table("t").createOrReplaceTempView("v")
    try:
        with suppress(AnalysisException):  # Spark refuses some (docs/limits.md), but gives no other rows
            assert rows(both, re.sub(r"\b(FROM|JOIN|,) t\b", r"\1 v", text)) == of_spark(spark, text)
    finally:
        spark.catalog.dropTempView("v")


def test_statements_over_temporary_views_of_acid_tables_change_what_sql_says(both: AcidSession) -> None:
    both.sql("CREATE OR REPLACE TEMPORARY VIEW v AS SELECT * FROM t")
    member = MEMBER.replace("FROM t", "FROM v")
    both.sql(f"DELETE FROM t WHERE id IN (SELECT u.id FROM {member} u WHERE NOT b AND {COUNT} >= 0)")
    both.sql(f"INSERT INTO t SELECT u.id, u.k, 0 FROM {member} u LEFT JOIN v ON u.id = v.id WHERE NOT u.b")
    assert rows(both, "SELECT * FROM t") == sorted(T, key=repr)


def test_columns_that_a_statement_with_subqueries_does_not_read_stay_what_they_are(both: AcidSession) -> None:
    both.sql("UPDATE t SET k = 9 WHERE id IN (SELECT id FROM t WHERE a = 10)")
    assert rows(both, "SELECT * FROM t") == sorted([(1, 9, 10), *T[1:]], key=repr)
    both.sql("MERGE INTO t USING (SELECT id FROM t WHERE id IN (SELECT k FROM t)) s ON t.id = s.id"
             " WHEN MATCHED THEN UPDATE SET k = 7")  # fmt: skip
    assert rows(both, "SELECT * FROM t") == sorted([(1, 9, 10), (2, 7, None), *T[2:4], (5, 7, 1)], key=repr)


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
