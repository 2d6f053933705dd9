"""Settings that Spark asks the session which runs a plan: they hold in changes as in queries, and as in Spark's own."""

from __future__ import annotations

from collections.abc import Iterator

import pyspark
import pytest
from pyspark.sql import SparkSession

from acidsql.session import AcidSession
from tests.oracle.spark_conf import settings
from tests.spark.answers import outcome, rows

CASES = {
    "legacy dates": (
        {"spark.sql.legacy.timeParserPolicy": "LEGACY", "spark.sql.ansi.enabled": "false"},
        "to_date(s, 'yyyy-MM-dd') = date'2020-02-04'",
    ),
    "corrected dates": (
        {"spark.sql.legacy.timeParserPolicy": "CORRECTED", "spark.sql.ansi.enabled": "false"},
        "to_date(s, 'yyyy-MM-dd') = date'2020-02-04'",
    ),
    "week years": (
        {"spark.sql.legacy.timeParserPolicy": "LEGACY"},
        "date_format(date'2020-01-01', 'YYYY-uu') = '2020-03'",
    ),
    "nulls in JSON": (
        {"spark.sql.jsonGenerator.ignoreNullFields": "false"},
        "to_json(named_struct('a', nullif(id, 2))) = '{\"a\":null}'",
    ),
    "arrays as text": (
        {"spark.sql.legacy.castComplexTypesToString.enabled": "true"},
        "CAST(array(id, NULL) AS string) = '[1,]'",
    ),
    "partial JSON": ({"spark.sql.json.enablePartialResults": "false"}, "from_json(j, 'a int, b string').b = 'y'"),
    "corrupt JSON": ({"spark.sql.columnNameOfCorruptRecord": "bad"}, "from_json(j, 'a int, bad string').bad = 'zz'"),
    "split by nothing": (
        {"spark.sql.legacy.truncateForEmptyRegexSplit": "true"},
        "array_join(split(concat(id, 'bc'), '', 2), ',') = '2,b'",
    ),
    "hashes of maps": ({"spark.sql.legacy.allowHashOnMapType": "true"}, "hash(map(1, id)) = hash(map(1, 2))"),
    "keys as they are": (
        {"spark.sql.legacy.disableMapKeyNormalization": "true"},
        "CAST(map_keys(map(-0.0D * id, id))[0] AS string) = '-0.0' AND id = 2",
    ),
    "nulls in CSV": (
        {"spark.sql.legacy.nullValueWrittenAsQuotedEmptyStringCsv": "true"},
        "to_csv(named_struct('a', nullif(id, 2), 'b', id)) = '\"\",2'",
    ),
    "keys twice": ({"spark.sql.mapKeyDedupPolicy": "LAST_WIN"}, "map(1, id, 1, id + 1)[1] = 2"),
}


if tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 1):
    CASES["times of day"] = (
        {"spark.sql.timeType.enabled": "true"},
        "make_time(id, 0, 0) BETWEEN TIME '01:30:00' AND CAST('02:30:00' AS time)",
    )


@pytest.fixture
def t(acid: AcidSession, spark: SparkSession) -> Iterator[AcidSession]:
    source = """(1, '2020-01-35', '{"a":1}'), (2, '2020-02-04', '{"a":"q","b":"y"}'), (3, 'x', 'zz')"""
    spark.sql(f"CREATE TABLE theirs USING parquet AS SELECT * FROM VALUES {source} v(id, s, j)")
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, s string, j string, hit boolean)")
    acid.sql("INSERT INTO t SELECT *, NULL FROM theirs")
    yield acid
    spark.sql("DROP TABLE theirs")


@pytest.mark.parametrize("writer", ["driver", "job"])
@pytest.mark.parametrize("case", CASES)
def test_a_setting_holds_in_every_statement(t: AcidSession, spark: SparkSession, case: str, writer: str) -> None:
    given, condition = CASES[case]
    t.sql(f"SET acidsql.write.driver.rows = {20000 if writer == 'driver' else 0}")
    with settings(spark, given):
        expected = outcome(lambda: sorted(map(tuple, spark.sql(f"SELECT id, {condition} FROM theirs").collect())))
        chosen = outcome(lambda: [r[0] for r in spark.sql(f"SELECT id FROM theirs WHERE {condition}").collect()])
        assert outcome(lambda: rows(t, f"SELECT id, {condition} FROM t")) == expected
        assert (
            outcome(lambda: t.sql(f"UPDATE t SET hit = {condition}") and rows(t, "SELECT id, hit FROM t")) == expected
        )
        inserted = f"INSERT OVERWRITE t SELECT id, s, j, {condition} FROM t"
        assert outcome(lambda: t.sql(inserted) and rows(t, "SELECT id, hit FROM t")) == expected
        merge = f"MERGE INTO t USING (SELECT 7 AS k) ON {condition} WHEN MATCHED THEN DELETE"
        assert outcome(lambda: t.sql(merge).collect()[0].num_affected_rows) == (
            chosen if chosen == "refused" else len(chosen)
        )
    left = [1, 2, 3] if chosen == "refused" else [n for n in (1, 2, 3) if n not in chosen]
    assert [r[0] for r in rows(t, "SELECT id FROM t")] == left
    assert chosen not in ("refused", []), "the case tells nothing"
