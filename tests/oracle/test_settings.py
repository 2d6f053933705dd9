"""No setting of the Spark session changes what statements store and answer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import acidsql
from acidsql.errors import AcidError
from acidsql.session import AcidSession
from tests.oracle import statements
from tests.oracle.answers import Answer, Refusal, Run, ask
from tests.oracle.choice import first_quick
from tests.oracle.spark_conf import settings
from tests.oracle.spark_settings import CHECKED, IRRELEVANT, OF_HADOOP, reason
from tests.spark.answers import rows

pytestmark = pytest.mark.spark

HOSTILE = {
    "spark.sql.caseSensitive": "true",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.storeAssignmentPolicy": "STRICT",
    "spark.sql.orc.enableVectorizedReader": "false",
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
}
"""Some at once: the long test tells them apart."""
EACH = [(name, value) for name, values in CHECKED.items() for value in values]


class Defaults:
    """What the program answers under the settings of the run, by who writes."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder = spark, folder
        self._answers: dict[str, dict[str, Answer]] = {}

    def answers(self, written_by: str) -> dict[str, Answer]:
        if written_by not in self._answers:
            with acidsql.connect(self._spark, warehouse=self._folder / written_by) as acid:
                self._answers[written_by] = statements.run(acid, written_by, self._folder / f"files of {written_by}")
        return self._answers[written_by]


@pytest.fixture(scope="module")
def defaults(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Defaults:
    return Defaults(spark, tmp_path_factory.mktemp("defaults"))


def check(spark: SparkSession, warehouse: Path, defaults: Defaults, given: Mapping[str, str], written_by: str) -> None:
    """Answers under the settings, and what is stored as the defaults read it."""
    expected = defaults.answers(written_by)
    with acidsql.connect(spark, warehouse=warehouse) as acid:
        with settings(spark, given):
            found = statements.run(acid, written_by, warehouse.with_name("files"))
        stored = statements.questions(acid)
    assert not statements.differences({t: a for t, a in expected.items() if t in stored}, stored), "stored"
    assert not statements.differences(expected, found), "answered"


def test_every_setting_is_tried_or_has_a_reason(spark: SparkSession) -> None:
    names = {r[0].removeprefix("spark.sql.") for r in spark.sql("SET -v").collect() if r[0].startswith("spark.sql.")}
    assert len(names) > 100
    assert all(reason(name) or name in CHECKED for name in names)
    rest = IRRELEVANT[-1][1]
    doubtful = [n for n in names if reason(n) == rest and n.split(".")[0] in ("ansi", "parser", "orc", "files")]
    assert doubtful == [], "settings about parsing, typing or files that are not looked at"


@pytest.mark.parametrize("written_by", first_quick(["driver", "job"], 0))
def test_the_program_itself_makes_sense(defaults: Defaults, written_by: str) -> None:
    refused = {text: a for text, a in defaults.answers(written_by).items() if isinstance(a, Refusal)}
    assert refused == {}


@pytest.mark.long
def test_driver_and_job_store_the_same(defaults: Defaults) -> None:
    by_driver, by_job = (
        {t: a for t, a in defaults.answers(w).items() if not t.startswith("SELECT p, count(ROW__ID")}
        for w in ("driver", "job")
    )
    assert not statements.differences(by_driver, by_job)


def test_hostile_settings_at_once_change_nothing(spark: SparkSession, warehouse: Path, defaults: Defaults) -> None:
    check(spark, warehouse, defaults, {**HOSTILE, **OF_HADOOP}, "driver")


def test_a_job_loses_nothing_under_settings_of_hadoop(spark: SparkSession, acid: AcidSession) -> None:
    acid.sql("SET acidsql.write.driver.rows = 0")
    acid.sql("CREATE TRANSACTIONAL TABLE t (a string, b string, c int, d int)")
    with settings(spark, OF_HADOOP):
        acid.sql("INSERT INTO t SELECT concat('a', id), concat('b', id), id, id + 10 FROM range(1, 4)")
        acid.sql("UPDATE t SET b = 'new' WHERE d = 12")
        acid.sql("INSERT OVERWRITE TABLE t SELECT * FROM t WHERE d <> 13")
        assert rows(acid, "SELECT b, d FROM t") == [("b1", 11), ("new", 12)]
    assert rows(acid, "SELECT * FROM t") == [("a1", "b1", 1, 11), ("a2", "new", 2, 12)]


@pytest.mark.long
@pytest.mark.parametrize("written_by", ["driver", "job"])
def test_settings_of_hadoop_change_nothing(
    spark: SparkSession, warehouse: Path, defaults: Defaults, written_by: str
) -> None:
    check(spark, warehouse, defaults, OF_HADOOP, written_by)


def test_what_is_no_longer_set_for_hadoop_is_no_longer_followed(spark: SparkSession, acid: AcidSession) -> None:
    own = acid._env.sessions.own.spark
    for value in ("a", None):
        with settings(spark, {} if value is None else {"fs.acidsql.of.the.test": value}):
            acid.sql("SELECT 1").collect()
            acid.sql("SHOW TABLES").collect()
            assert acid._env.sessions.own.spark is own
            assert own.conf.get("fs.acidsql.of.the.test", None) == value


@pytest.mark.long
@pytest.mark.parametrize("written_by", ["driver", "job"])
@pytest.mark.parametrize(("name", "value"), EACH, ids=[f"{n}={v}" for n, v in EACH])
def test_a_setting_changes_nothing(
    spark: SparkSession, warehouse: Path, defaults: Defaults, name: str, value: str, written_by: str
) -> None:
    try:
        with settings(spark, {f"spark.sql.{name}": value}):
            pass
    except Exception as e:  # of Java or of Spark
        pytest.skip(f"Spark {spark.version} has no such setting or value: {e}")
    check(spark, warehouse, defaults, {f"spark.sql.{name}": value}, written_by)


# --- where a setting changes what the user's own expression means ----------------------------------------------------

STORED = [
    "3000000000",
    "'x'",
    "'12'",
    "CAST(3000000000 AS int)",
    "2147483647 + 1",
    "1.9",
    "true",
    "DATE'2024-01-01'",
    "CAST('1O' AS int)",
    "NULL",
]


def stored(run: Run, table: str, value: str) -> Answer:
    """What an INSERT OVERWRITE leaves in a table of one integer; only that it was refused, where it was."""
    done = ask(run, f"INSERT OVERWRITE TABLE {table} SELECT {value}")
    return Refusal("refused", done.message) if isinstance(done, Refusal) else ask(run, f"SELECT id FROM {table}")


@pytest.mark.parametrize("policy", first_quick(["ANSI", "STRICT", "LEGACY"]))
@pytest.mark.parametrize("ansi", first_quick(["false", "true"]))
def test_an_insert_stores_what_spark_stores_in_its_own_table(
    spark: SparkSession, plain: SparkSession, warehouse: Path, ansi: str, policy: str
) -> None:
    """Under these settings, or under the defaults."""
    given = {"spark.sql.ansi.enabled": ansi, "spark.sql.storeAssignmentPolicy": policy}
    plain.sql("CREATE TABLE stored (id int) USING parquet")
    try:
        with acidsql.connect(spark, warehouse=warehouse) as acid:
            acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
            for value in STORED:
                with settings(spark, given), settings(plain, given):
                    ours, theirs = stored(acid.sql, "t", value), stored(plain.sql, "stored", value)
                assert ours in (theirs, stored(plain.sql, "stored", value)), f"{value}: {ours}, Spark: {theirs}"
    finally:
        plain.sql("DROP TABLE stored")


@pytest.mark.parametrize("expression", ["2147483647 + id", "CAST(3000000000 AS int)", "CAST(s AS int)", "id / 0"])
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.long
def test_update_evaluates_as_the_session_says(spark: SparkSession, warehouse: Path, ansi: str, expression: str) -> None:
    """As a SELECT of the same expression does: what it gives, or its error."""
    with acidsql.connect(spark, warehouse=warehouse) as acid, settings(spark, {"spark.sql.ansi.enabled": ansi}):
        acid.sql("CREATE TRANSACTIONAL TABLE t (id int, s string, v bigint)")
        acid.sql("INSERT INTO t VALUES (1, 'x', 7)")
        selected = ask(acid.sql, f"SELECT CAST({expression} AS bigint) AS v FROM t")
        text = f"UPDATE t SET v = CAST({expression} AS bigint)"
        if isinstance(selected, Refusal):
            with pytest.raises((AcidError, PySparkException)):
                acid.sql(text)
            assert rows(acid, "SELECT v FROM t") == [(7,)]
        else:
            acid.sql(text)
            assert rows(acid, "SELECT v FROM t") == list(selected.rows)


@pytest.mark.parametrize("zone", first_quick(["America/New_York", "UTC"]))
@pytest.mark.parametrize("written_by", ["driver", "job"])
def test_a_timestamp_column_is_one_whatever_spark_calls_timestamp(
    spark: SparkSession, warehouse: Path, written_by: str, zone: str
) -> None:
    shown = "SELECT id, CAST(ts AS string) FROM t"
    with acidsql.connect(spark, warehouse=warehouse) as acid, settings(spark, {"spark.sql.session.timeZone": zone}):
        acid.sql(f"SET acidsql.write.driver.rows = {20000 if written_by == 'driver' else 0}")
        with settings(spark, {"spark.sql.timestampType": "TIMESTAMP_NTZ"}):
            acid.sql("CREATE TRANSACTIONAL TABLE t (id int, ts timestamp)")
            acid.sql("INSERT INTO t SELECT 1, TIMESTAMP'2024-01-01 10:00:00'")
            assert rows(acid, shown) == [(1, "2024-01-01 10:00:00")]
            acid.sql("UPDATE t SET id = 2")
        assert rows(acid, shown) == [(2, "2024-01-01 10:00:00")]
        acid.sql("UPDATE t SET id = 3")
        assert rows(acid, shown) == [(3, "2024-01-01 10:00:00")]
