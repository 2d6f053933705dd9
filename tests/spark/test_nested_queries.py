"""Subqueries of statements that change rows, where Spark refuses what is not deterministic, as it takes scans to be."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from acidsql.errors import UnsupportedError
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


PLACES = {
    "on": "id IN (SELECT x.id FROM t x JOIN u ON x.id = u.k AND x.a IN (SELECT k FROM u))",
    "on exists": "id IN (SELECT x.id FROM t x JOIN u ON x.id = u.k AND EXISTS (SELECT 1 FROM u q WHERE q.k = x.a))",
    "aggregate": "a < (SELECT max((SELECT max(k) FROM u)) FROM t)",
    "group by": "a IN (SELECT count(*) FROM t GROUP BY (SELECT max(k) FROM u), a)",
    "order by": "id IN (SELECT id FROM t ORDER BY (SELECT max(k) FROM u), id LIMIT 3)",
    "window": "id IN (SELECT id FROM (SELECT id, max(a) OVER (ORDER BY (SELECT max(k) FROM u)) m FROM t))",
    "filter": "a < (SELECT count(*) FILTER (WHERE k IN (SELECT a FROM t)) FROM u)",
    "with in lateral": "id IN (SELECT x.id FROM t x, LATERAL"
    " (WITH q AS (SELECT k FROM u) SELECT max(k) FROM q WHERE k < x.a) l)",
    "lateral in with": "id IN (WITH c AS (SELECT x.id, l.z FROM t x, LATERAL (SELECT max(k) z FROM u WHERE k = x.a) l)"
    " SELECT one.id FROM c one JOIN c two ON one.id = two.id WHERE two.z > 0)",
    "with in on": "id IN (SELECT x.id FROM t x JOIN u ON x.id = u.k AND x.a IN (WITH q AS (SELECT k FROM u) TABLE q))",
    "lateral view": "id IN (SELECT e FROM t LATERAL VIEW explode(array(a, (SELECT max(k) FROM u))) q AS e)",
}


@pytest.mark.parametrize("driver_rows", [0, 1_000_000])
@pytest.mark.parametrize("place", PLACES)
def test_subqueries_at_all_places(acid: AcidSession, place: str, driver_rows: int) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, a int, c string)")
    acid.sql("CREATE TRANSACTIONAL TABLE u (k int)")
    acid.sql("INSERT INTO t SELECT id, CAST(id AS int) % 5, 'x' FROM range(20)")
    acid.sql("INSERT INTO u SELECT CAST(id AS int) FROM range(9)")
    acid.sql("DELETE FROM t WHERE id = 3")
    acid.sql("DELETE FROM u WHERE k = 3")
    acid.sql(f"SET acidsql.write.driver.rows = {driver_rows}")
    condition = PLACES[place]
    found = rows(acid, f"SELECT id FROM t WHERE {condition}")
    assert found
    assert acid.sql(f"UPDATE t SET c = c WHERE {condition}").collect()[0].num_updated_rows == len(found)
    merge = f"MERGE INTO t USING (SELECT id k FROM t WHERE {condition}) s ON t.id = s.k WHEN MATCHED"
    assert acid.sql(f"{merge} THEN UPDATE SET c = 'y'").collect()[0].num_updated_rows == len(found)
    assert rows(acid, "SELECT id FROM t WHERE c = 'y'") == found
    assert acid.sql(f"DELETE FROM t WHERE {condition}").collect()[0].num_deleted_rows == len(found)
    assert rows(acid, "SELECT id FROM t WHERE c = 'y'") == []


@pytest.mark.parametrize("driver_rows", [0, 1_000_000])
def test_a_with_clause_that_is_used_twice(acid: AcidSession, driver_rows: int) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, a int)")
    acid.sql("CREATE TRANSACTIONAL TABLE d (id bigint, z int)")
    acid.sql("INSERT INTO t SELECT id, CAST(id AS int) % 5 FROM range(20)")
    acid.sql("DELETE FROM t WHERE id = 3")
    acid.sql(f"SET acidsql.write.driver.rows = {driver_rows}")
    clause = "WITH c AS (SELECT x.id, l.z FROM t x, LATERAL (SELECT max(y.a) z FROM t y WHERE y.id = x.a) l)"
    query = f"{clause} SELECT one.id, two.z FROM c one JOIN c two ON one.id = two.id WHERE two.z IS NOT NULL"
    expected = rows(acid, query)
    assert len(expected) == 16
    acid.sql(f"INSERT INTO d {query}")
    assert rows(acid, "SELECT * FROM d") == expected
    acid.sql(f"INSERT OVERWRITE d {query}")
    assert rows(acid, "SELECT * FROM d") == expected
    acid.sql(f"CREATE TABLE e TBLPROPERTIES ('transactional'='true') AS {query}")
    assert rows(acid, "SELECT * FROM e") == expected
    random = (
        "WITH c AS (SELECT id, rand() r FROM t) SELECT one.id, 1 FROM c one JOIN c two USING (id) WHERE one.r <> two.r"
    )
    acid.sql(f"INSERT OVERWRITE d {random}")
    assert rows(acid, "SELECT * FROM d") == []  # it is evaluated once


def test_an_error_that_shows_the_plan_is_none_of_values(acid: AcidSession) -> None:
    """A plan that Spark prints has the messages of errors in it that it might raise."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, c char(3))")
    acid.sql("INSERT INTO t VALUES (1, 'x')")
    random = "SELECT x.id FROM t x, LATERAL (SELECT rand() r WHERE x.id > 0) l"
    with pytest.raises(Exception, match="NON_DETERMINISTIC_LATERAL_SUBQUERIES"):
        acid.sql(f"UPDATE t SET c = 'y' WHERE id IN ({random})")


@pytest.mark.parametrize(
    "statement",
    [
        "MERGE INTO d USING c s ON d.id = s.id WHEN MATCHED THEN UPDATE SET z = (SELECT max(id) FROM c)",
        "MERGE INTO d USING u s ON d.id = s.id WHEN MATCHED THEN UPDATE SET z = (SELECT max(id) FROM c)"
        " WHEN NOT MATCHED THEN INSERT VALUES (s.id, (SELECT max(id) FROM c))",
        "FROM c INSERT INTO d SELECT id, (SELECT max(id) FROM c) INSERT INTO e SELECT id, 1",
        "FROM u INSERT INTO d SELECT id, (SELECT max(id) FROM c) INSERT INTO e SELECT id, (SELECT max(id) FROM f)"
        " INSERT INTO e SELECT 7, (SELECT min(id) FROM c)",
    ],
)
@pytest.mark.parametrize("rows_of", ["SELECT id FROM u WHERE rand() < 0.5", "SELECT id FROM u LIMIT 1"])
def test_a_with_clause_that_changes_is_not_evaluated_twice(acid: AcidSession, statement: str, rows_of: str) -> None:
    for name in ("d", "e"):
        acid.sql(f"CREATE TRANSACTIONAL TABLE {name} (id int, z int)")
    acid.sql("CREATE TRANSACTIONAL TABLE u (id int)")
    acid.sql("INSERT INTO u VALUES (1), (2)")
    acid.sql("INSERT INTO d VALUES (1, 0)")
    with pytest.raises(UnsupportedError, match="WITH c may give other rows each time"):
        acid.sql(f"WITH c AS ({rows_of}), f AS (SELECT * FROM c WHERE id > 0) {statement}")
    assert rows(acid, "SELECT * FROM d") == [(1, 0)]
    same = "SELECT id FROM u WHERE id > 0"
    acid.sql(f"WITH c AS ({same}), f AS (SELECT * FROM c WHERE id > 0) {statement}")
    assert rows(acid, "SELECT * FROM d") != [(1, 0)]


def test_a_table_of_sparks_from_a_with_clause(acid: AcidSession, spark: SparkSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, a int)")
    acid.sql("INSERT INTO t SELECT id, CAST(id AS int) % 5 FROM range(20)")
    clause = "WITH c AS (SELECT x.id, l.z FROM t x, LATERAL (SELECT max(y.a) z FROM t y WHERE y.id = x.a) l)"
    acid.sql(f"CREATE TABLE made USING parquet AS {clause} SELECT one.id, two.z FROM c one JOIN c two USING (id)")
    assert spark.table("made").count() == 20
    spark.sql("DROP TABLE made")


def test_a_with_clause_before_an_insert_into_a_table_of_sparks(acid: AcidSession, spark: SparkSession) -> None:
    """Only the WITH clause names the ACID table; Spark has another table of that name."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint)")
    acid.sql("INSERT INTO t SELECT id FROM range(60)")
    spark.sql("CREATE TABLE made (id bigint) USING parquet")
    spark.range(1000, 1001).write.saveAsTable("spark_catalog.default.t")
    try:
        insert = "WITH c AS (SELECT id FROM t), d AS (SELECT * FROM c) INSERT INTO made SELECT id FROM d"
        plan = acid.sql(f"EXPLAIN {insert}").collect()[0][0]
        assert "orc" in plan.lower()
        acid.sql(insert)
        assert tuple(spark.sql("SELECT count(*), sum(id) FROM made").collect()[0]) == (60, 1770)
        acid.sql("WITH c AS (SELECT id FROM t) INSERT OVERWRITE made SELECT id FROM c WHERE id < 2")
        assert tuple(spark.sql("SELECT count(*), sum(id) FROM made").collect()[0]) == (2, 1)
    finally:
        spark.sql("DROP TABLE made")
        spark.sql("DROP TABLE t")


def test_a_view_or_a_frame_with_a_with_clause_is_used_twice(acid: AcidSession, spark: SparkSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, a int, b int)")
    acid.sql("INSERT INTO t SELECT id, CAST(id AS int) % 5, 7 FROM range(20)")
    acid.sql("DELETE FROM t WHERE id = 3")
    query = "WITH c AS (SELECT id, a, b FROM t) SELECT x.id, x.a, y.b FROM c x JOIN c y ON x.id = y.id"
    acid.sql(f"CREATE OR REPLACE TEMPORARY VIEW held AS {query}")
    frame = acid.sql(query)
    twice = "SELECT l.a, r.b FROM held l JOIN held r ON l.id = r.id"
    try:
        assert len(rows(acid, twice)) == 19
        acid.sql("CREATE TRANSACTIONAL TABLE d (a int, b int)")
        acid.sql(f"INSERT INTO d {twice}")
        assert len(rows(acid, "SELECT * FROM d")) == 19
    finally:
        spark.catalog.dropTempView("held")
    one, other = frame.alias("one"), frame.alias("other")
    assert one.join(other, "id").selectExpr("one.a", "other.b").count() == 19
    assert frame.select("a").union(frame.select("b")).count() == 38


def test_with_clauses_below_with_clauses(acid: AcidSession) -> None:
    """Spark's optimiser exchanges columns where such clauses are not in their places."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, a int, b int)")
    acid.sql("INSERT INTO t SELECT id, CAST(id AS int) % 5, CAST(id AS int) FROM range(40)")
    acid.sql("DELETE FROM t WHERE id = 3")
    clause = "WITH c AS (SELECT id, a, b FROM t WHERE a > 0) SELECT x.id, y.a, x.b FROM c x JOIN c y ON x.id = y.id"
    acid.sql(f"CREATE VIEW v AS {clause}")
    expected = sorted((id, id % 5) for id in range(40) if id % 5 and id != 3)
    for body in ("SELECT * FROM v", clause):
        query = f"WITH q AS ({body}) SELECT x.id, y.a FROM q x JOIN q y ON x.id = y.id JOIN ({body}) m ON m.id = x.id"
        assert sorted(rows(acid, query)) == expected
        acid.sql(f"CREATE TABLE made TBLPROPERTIES ('transactional'='true') AS {query}")
        assert sorted(rows(acid, "SELECT * FROM made")) == expected
        acid.sql("DROP TABLE made")


NULLS = "SELECT id, k IN (SELECT k FROM {n}) AS b FROM {t}"
AS_SPARK = {
    "not of a column": f"SELECT id FROM ({NULLS}) WHERE NOT b",
    "a query with a name": f"WITH c AS ({NULLS}) SELECT x.id FROM c x JOIN c y ON x.id = y.id AND NOT x.b",
    "distinct": "SELECT count(DISTINCT a + (SELECT max(k) FROM {n})), count(DISTINCT k) FROM {t}",
    "two distinct": "SELECT count(DISTINCT a + (SELECT max(k) FROM {n})), count(DISTINCT k + (SELECT min(k) FROM {n}))"
    " FROM {t}",
    "filter": "SELECT count(DISTINCT a + (SELECT max(k) FROM {n})) FILTER (WHERE k > 1) FROM {t}",
    "rollup": "SELECT (SELECT max(k) FROM {n}) m, k, count(*) FROM {t} GROUP BY ROLLUP ((SELECT max(k) FROM {n}), k)",
    "group by": "SELECT a + (SELECT max(k) FROM {n}) m, count(*) FROM {t} GROUP BY a + (SELECT max(k) FROM {n})",
    "correlated": "SELECT (SELECT max(z.k) FROM {n} z WHERE z.k = x.a) m, count(*) FROM {t} x"
    " GROUP BY (SELECT max(z.k) FROM {n} z WHERE z.k = x.a)",
    "count": "SELECT id, (SELECT count(*) FROM {n} m LEFT JOIN {t} y ON y.k = x.a) c FROM {t} x",
}


@pytest.mark.parametrize("name", AS_SPARK)
def test_subqueries_answer_as_over_tables_of_spark(acid: AcidSession, spark: SparkSession, name: str) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, k int, a int)")
    acid.sql("CREATE TRANSACTIONAL TABLE n (k int)")
    acid.sql("INSERT INTO t VALUES (1, 1, 1), (2, 2, 5), (3, NULL, 5), (4, 4, NULL)")
    acid.sql("INSERT INTO n VALUES (1), (NULL), (4)")
    for table in ("t", "n"):
        acid.table(table).localCheckpoint().createOrReplaceTempView(f"own_{table}")
    expected = sorted(map(tuple, spark.sql(AS_SPARK[name].format(t="own_t", n="own_n")).collect()), key=repr)
    assert rows(acid, AS_SPARK[name].format(t="t", n="n")) == expected


def test_rows_are_deleted_by_what_a_subquery_says(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, k int)")
    acid.sql("CREATE TRANSACTIONAL TABLE n (k int)")
    acid.sql("INSERT INTO t VALUES (1, 1), (2, 2), (3, NULL)")
    acid.sql("INSERT INTO n VALUES (1), (NULL)")
    column = "(SELECT id, k IN (SELECT k FROM n) AS b FROM t)"
    acid.sql(f"DELETE FROM t WHERE id IN (SELECT id FROM {column} WHERE NOT b)")
    acid.sql("DELETE FROM t WHERE 0 = (SELECT count(DISTINCT k + (SELECT max(k) FROM n)) FILTER (WHERE k > 1) FROM t)")
    acid.sql(f"MERGE INTO t USING (SELECT * FROM {column} WHERE NOT b) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    assert rows(acid, "SELECT id FROM t") == [(1,), (2,), (3,)]


@pytest.mark.parametrize("limit", ["0", "-1"])
def test_batches_of_arrow_without_a_limit(acid: AcidSession, limit: str) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    acid.sql(f"SET spark.sql.execution.arrow.maxRecordsPerBatch = {limit}")
    try:
        assert acid.sql("INSERT INTO t VALUES (1)").collect()[0].num_inserted_rows == 1
        assert len(acid.sql("SHOW TABLES").collect()) == 1
    finally:
        acid.sql("RESET spark.sql.execution.arrow.maxRecordsPerBatch")
