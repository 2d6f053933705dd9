"""Statements that Spark runs by itself: where Spark has a table of the same name as acidsql, none of them takes it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from acidsql.errors import UnsupportedError
from acidsql.session import AcidSession


@pytest.fixture
def same(acid: AcidSession, spark: SparkSession) -> Iterator[AcidSession]:
    acid.sql("CREATE TRANSACTIONAL TABLE same (who string, id int)")
    acid.sql("INSERT INTO same VALUES ('acid', 1)")
    spark.sql("CREATE TABLE same USING parquet AS SELECT 'spark' AS who, 1 AS id")
    spark.sql("CREATE TABLE other USING parquet AS SELECT 'other' AS who, 1 AS id")
    yield acid
    assert [tuple(r) for r in spark.sql("SELECT * FROM same").collect()] == [("spark", 1)]
    for name in ("same", "other"):
        spark.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize(
    "text",
    [
        "EXECUTE IMMEDIATE 'SELECT * FROM same'",
        "EXECUTE IMMEDIATE 'INSERT INTO same VALUES (''x'', 3)'",
        "BEGIN EXECUTE IMMEDIATE 'DELETE FROM same'; END",
        "BEGIN SELECT * FROM (same); END",
        "BEGIN SELECT * FROM ((same) JOIN other); END",
        "BEGIN SELECT * FROM (SELECT 1) AS s, same; END",
        "BEGIN SELECT * FROM range(1), same; END",
        "BEGIN SELECT * FROM IDENTIFIER('same'); END",
        "BEGIN SELECT * FROM IDENTIFIER(:name); END",
        "BEGIN DECLARE name = 'same'; SELECT * FROM IDENTIFIER(name); END",
        "BEGIN TABLE same; END",
        "BEGIN UPDATE same SET id = 2; END",
        "BEGIN INSERT INTO same (who, id) VALUES ('x', 2); END",
        "BEGIN DELETE FROM `same`; END",
        "BEGIN MERGE INTO same USING other ON false WHEN NOT MATCHED THEN INSERT *; END",
        "BEGIN DROP TABLE same; END",
        "DESCRIBE QUERY SELECT * FROM (same)",
        "DESCRIBE QUERY TABLE same",
        "DESCRIBE TABLE IDENTIFIER('sa' || 'me')",
        "CACHE TABLE cached AS SELECT * FROM (same)",
        "REFRESH TABLE IDENTIFIER('spark_catalog.default.same')",
        "CREATE TEMPORARY FUNCTION f() RETURNS STRING RETURN (SELECT max(who) FROM (same))",
        "SET VAR x = (SELECT max(id) FROM (same))",
        "DECLARE VARIABLE y INT DEFAULT (SELECT max(id) FROM (same))",
        "EXPLAIN CACHE TABLE cached AS SELECT * FROM (same)",
        "COMMENT ON COLUMN same.who IS 'x'",
        "COMMENT ON COLUMN spark_catalog.default.same.who IS 'x'",
    ],
)
def test_a_statement_that_spark_would_run_over_its_own_table_is_refused(same: AcidSession, text: str) -> None:
    with pytest.raises(UnsupportedError):
        same.sql(text, name="same")
    assert [tuple(r) for r in same.sql("SELECT * FROM same").collect()] == [("acid", 1)]


def test_statements_over_tables_of_spark_alone_run(same: AcidSession) -> None:
    assert same.sql("BEGIN SELECT who FROM (other); END").collect()[0][0] == "other"
    assert same.sql("BEGIN SELECT who FROM IDENTIFIER(:name); END", name="other").collect()[0][0] == "other"
    assert same.sql("DESCRIBE QUERY SELECT * FROM other").count() == 2
    assert same.sql("DESCRIBE TABLE IDENTIFIER('other')").count() >= 2


def test_a_partitioned_table_of_spark_is_repaired_by_spark(acid: AcidSession, spark: SparkSession) -> None:
    spark.sql("CREATE TABLE parts (a int, p int) USING parquet PARTITIONED BY (p)")
    try:
        for text in ("MSCK REPAIR TABLE parts", "REPAIR TABLE parts"):
            assert acid.sql(text).collect() == []
    finally:
        spark.sql("DROP TABLE parts")
