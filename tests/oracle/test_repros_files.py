"""Files and directories: searches, crafted footers, strangers' directories, kills, Hive's compactions."""

from __future__ import annotations

import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pyarrow.orc as orc
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import acidsql
from acidsql.errors import AcidError
from acidsql.session import AcidSession
from tests.oracle import crafted
from tests.oracle.choice import first_quick
from tests.oracle.spark_conf import setting, settings
from tests.spark.answers import rows
from tests.spark.processes import environment
from tests.spark.test_golden_tables import adopt

pytestmark = pytest.mark.spark


def count(acid: AcidSession, text: str, **parameters: object) -> int:
    return int(acid.sql(f"SELECT count(*) FROM t WHERE {text}", **parameters).collect()[0][0])


# --- names of columns in files ---------------------------------------------------------------------------------------


def test_a_new_column_may_have_a_renamed_ones_old_name(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (a int, x int)")
    acid.sql("INSERT INTO t VALUES (1, 2)")
    acid.sql("ALTER TABLE t CHANGE COLUMN a b int")
    acid.sql("ALTER TABLE t ADD COLUMNS (a int)")
    assert rows(acid, "SELECT b, x, a FROM t") == [(1, 2, None)]
    assert rows(acid, "SELECT b FROM t WHERE a IS NULL") == [(1,)]
    acid.sql("INSERT INTO t VALUES (7, 8, 9)")
    acid.sql("UPDATE t SET a = 5 WHERE a IS NULL")
    assert rows(acid, "SELECT * FROM t") == [(1, 2, 5), (7, 8, 9)]


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TRANSACTIONAL TABLE u (`a``b` int)",
        "CREATE TRANSACTIONAL TABLE u (s struct<`a``b`: int>)",
        "CREATE TRANSACTIONAL TABLE u AS SELECT 1 AS `a``b`",
        "ALTER TABLE t ADD COLUMNS (`a``b` int)",
        "ALTER TABLE t CHANGE COLUMN id `a``b` int",
    ],
)
def test_names_that_sparks_reader_would_not_find_are_refused(acid: AcidSession, text: str) -> None:
    """It reads NULL in such columns, and an UPDATE would write that."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    with pytest.raises(AcidError, match="back-quote"):
        acid.sql(text)
    assert rows(acid, "SELECT * FROM t") == []
    assert acid.metastore.list_tables("default") == ["t"]


# --- searches --------------------------------------------------------------------------------------------------------

WIDE, SMILE = "\uff21", "\U0001f600"
"""UTF-8 and UTF-16 do not agree on which of them comes first."""


@pytest.mark.usefixtures("search")
@pytest.mark.parametrize("search", ["searched files"], indirect=True)
@pytest.mark.parametrize("kind", ["events", "insert-only", "originals"])
def test_a_subquery_that_gives_null_compares_with_no_row(
    acid: AcidSession, spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    """Spark's own push-down into ORC dies of such a value."""
    properties = "'transactional'='true', 'transactional_properties'='insert_only'" if kind == "insert-only" else ""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, b int)" + (f" TBLPROPERTIES ({properties})" if properties else ""))
    acid.sql("CREATE TRANSACTIONAL TABLE u (id int)")
    acid.sql("INSERT INTO u VALUES (1)")
    if kind == "originals":
        spark.sql("SELECT 1 AS id, 1 AS b UNION ALL SELECT 2, NULL").coalesce(1).write.orc(f"file:{tmp_path}/in")
        acid.sql(f"LOAD DATA INPATH '{tmp_path}/in' INTO TABLE t")
    else:
        acid.sql("INSERT INTO t VALUES (1, 1), (2, NULL)")
    highest = "(SELECT max(id) FROM u WHERE id > :least)"
    for comparison in ("b >= {0}", "{0} > b", "b = {0}", "b <> {0}", "b IN ({0})", "NOT b < {0}", "b > 0 OR b = {0}"):
        condition = comparison.format(highest)
        expected = [(1,)] if " OR " in condition else []
        assert rows(acid, f"SELECT id FROM t WHERE {condition}", least=100) == expected, condition
    assert rows(acid, f"SELECT id FROM t WHERE b <=> {highest}", least=100) == [(2,)]
    assert rows(acid, f"SELECT id FROM t WHERE b >= {highest}", least=0) == [(1,)]
    if kind != "insert-only":
        for text in (
            f"UPDATE t SET b = 7 WHERE b >= {highest}",
            f"DELETE FROM t WHERE b < {highest}",
            f"MERGE INTO t USING {highest.replace('max(id)', 'max(id) AS m')} s ON t.b >= s.m WHEN MATCHED THEN DELETE",
            f"MERGE INTO t USING u ON t.b >= {highest} WHEN MATCHED THEN DELETE",
            f"INSERT INTO t SELECT * FROM t WHERE b <= {highest}",
            f"INSERT INTO t SELECT t.* FROM t JOIN u ON t.b >= {highest}",
        ):
            assert acid.sql(text, least=100).collect()[0].num_affected_rows == 0, text
    assert rows(acid, "SELECT * FROM t") == [(1, 1), (2, None)]


@pytest.mark.usefixtures("search")
@pytest.mark.parametrize("search", ["searched files"], indirect=True)
def test_a_search_finds_texts_beyond_the_basic_plane(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (k string, v string)")
    acid.sql(f"INSERT INTO t SELECT concat(if(id % 2 = 0, '{WIDE}', '{SMILE}'), '-', id), 'v' FROM range(100)")
    for key in (f"{WIDE}-10", f"{SMILE}-11"):
        assert count(acid, "k = :k", k=key) == 1
    assert count(acid, "k >= :k", k=SMILE) == 50
    assert count(acid, "k < :k", k=SMILE) == 50
    assert count(acid, "k >= :k", k=WIDE) == 100
    key = f"{WIDE}-10"
    assert acid.sql("UPDATE t SET v = 'u' WHERE k = :k", k=key).collect()[0].num_updated_rows == 1
    acid.sql(
        "MERGE INTO t USING (SELECT :k AS k) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = 'm'"
        " WHEN NOT MATCHED THEN INSERT VALUES (s.k, 'twice')",
        k=key,
    )
    assert rows(acid, f"SELECT v FROM t WHERE k = '{key}'") == [("m",)]


@pytest.mark.usefixtures("search")
@pytest.mark.parametrize("search", ["searched files"], indirect=True)
@pytest.mark.parametrize("odd", ["C4", "FF", "80", "41C4"])
def test_a_search_finds_the_neighbours_of_a_text_that_is_not_utf_8(
    acid: AcidSession, spark: SparkSession, odd: str
) -> None:
    """ORC's statistics have U+FFFD in the place of its bytes."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (k string, v string)")
    key = f"if(id = 50, CAST(X'{odd}' AS string), concat(if(id % 2 = 0, '中', 'Ä'), id))"
    source = f"SELECT {key} AS k, 'v' AS v FROM range(100)"
    acid.sql(f"INSERT INTO t {source}")
    spark.sql(f"{source} UNION ALL SELECT 'Az', 'v'").createOrReplaceTempView("theirs")
    acid.sql("INSERT INTO t VALUES ('Az', 'v')")
    for condition in (
        "k = '中50'",
        "k = '中52'",
        "k IN ('Ä1', '中4')",
        "k < 'é'",
        "k >= '中'",
        "k < 'Az'",
        "k > 'Ay'",
        "k = 'Az'",
    ):
        [(expected,)] = spark.sql(
            f"SELECT count(*) FROM theirs WHERE concat(k, '') IS NOT NULL AND {condition}"
        ).collect()
        assert count(acid, condition) == expected, condition
    acid.sql(
        "MERGE INTO t USING (SELECT '中52' AS k) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = 'm'"
        " WHEN NOT MATCHED THEN INSERT VALUES (s.k, 'twice')"
    )
    assert rows(acid, "SELECT v FROM t WHERE concat(k, '') = '中52'") == [("m",)]
    assert acid.sql("DELETE FROM t WHERE k = 'Ä51'").collect()[0].num_deleted_rows == 1
    spark.catalog.dropTempView("theirs")


@pytest.mark.usefixtures("search")
@pytest.mark.parametrize("search", ["searched files"], indirect=True)
def test_a_search_finds_dates_before_the_gregorian_calendar(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (d date, ts timestamp)")
    acid.sql(
        "INSERT INTO t SELECT date_add(DATE'1400-01-01', CAST(id AS int)),"
        " CAST(date_add(DATE'1400-01-01', CAST(id AS int)) AS timestamp) FROM range(20)"
    )
    for day in ("1400-01-01", "1400-01-02", "1400-01-11", "1400-01-20"):
        assert count(acid, f"d = DATE'{day}'") == 1, day
        assert count(acid, f"ts = TIMESTAMP'{day} 00:00:00'") == 1, day
    assert count(acid, "d <= DATE'1400-01-02'") == 2
    assert count(acid, "d > DATE'1400-01-18'") == 2
    assert acid.sql("DELETE FROM t WHERE d = DATE'1400-01-02'").collect()[0].num_deleted_rows == 1


@pytest.mark.usefixtures("search")
@pytest.mark.parametrize("search", ["searched files"], indirect=True)
def test_a_search_by_old_days_in_a_file_with_bloom_filters(acid: AcidSession, warehouse: Path) -> None:
    """They have days of the old calendar, and orc-core asks for one of the new."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, d date)")
    acid.sql(
        "INSERT INTO t SELECT CAST(id AS int), date_add(DATE'1400-01-01', CAST(id % 5 AS int) * 31) FROM range(100)"
    )
    [path] = (warehouse / "t").glob("delta_*/bucket_*")
    orc.write_table(orc.read_table(path), path, bloom_filter_columns=[8])  # the number of `d`, below `row`
    assert count(acid, "d = DATE'1400-02-01'") == 20
    assert count(acid, "d IN (DATE'1400-01-01', DATE'1400-02-01')") == 40
    assert acid.sql("DELETE FROM t WHERE d = DATE'1400-02-01'").collect()[0].num_deleted_rows == 20


@pytest.mark.usefixtures("search")
@pytest.mark.parametrize("search", ["searched files"], indirect=True)
@pytest.mark.parametrize(
    ("first", "days"), [("1582-10-15", 1), ("0001-01-01", 5), ("9999-12-31", 5), ("2011-12-30", 1)]
)
def test_a_search_by_days_that_orc_does_not_have(
    acid: AcidSession, spark: SparkSession, request: pytest.FixtureRequest, first: str, days: int
) -> None:
    """Days before year 1, those that the Gregorian reform left out, and one that Samoa did: orc-core takes them for
    others."""
    if first == "2011-12-30":
        request.getfixturevalue("in_samoa")
    acid.sql("CREATE TRANSACTIONAL TABLE t (d date, v int)")
    theirs = f"SELECT date_add(DATE'{first}', CAST(id % {days} AS int)) AS d, 0 AS v FROM range(10)"
    acid.sql(f"INSERT INTO t {theirs}")
    spark.sql(theirs).localCheckpoint().createOrReplaceTempView("theirs")
    odd = ("1582-10-05", "1582-10-14", "0000-12-31", "-0044-03-15", "+10000-01-02", "2011-12-30")
    conditions = [f"d {compare} DATE'{day}'" for day in odd for compare in ("<", ">", "=")]
    conditions += [
        "d BETWEEN DATE'1582-10-10' AND DATE'1582-10-17'",
        "d > '-0001-01-01'",
        "NOT d <= DATE'1582-10-12'",
        "d IN (DATE'1582-10-12', DATE'1582-10-16')",
        f"d NOT IN ({', '.join(f'date_add(DATE{chr(39)}1582-10-05{chr(39)}, {i})' for i in range(15))})",
    ]
    for condition in conditions:
        [(expected,)] = spark.sql(f"SELECT count(*) FROM theirs WHERE {condition}").collect()
        assert count(acid, condition) == expected, condition
    for condition in conditions[1::3]:
        [(expected,)] = spark.sql(f"SELECT count(*) FROM theirs WHERE {condition}").collect()
        assert acid.sql(f"UPDATE t SET v = v + 1 WHERE {condition}").collect()[0].num_updated_rows == expected, (
            condition
        )
    source = "SELECT date_add(DATE'1582-10-12', CAST(id AS int)) AS k FROM range(700)"
    if first == "0001-01-01":
        source = "SELECT date_add(DATE'0000-12-01', CAST(id AS int)) AS k FROM range(700)"
    [(expected,)] = spark.sql(f"SELECT count(*) FROM theirs JOIN ({source}) ON d = k").collect()
    merged = acid.sql(f"MERGE INTO t USING ({source}) s ON t.d = s.k WHEN MATCHED THEN UPDATE SET v = -1")
    assert merged.collect()[0].num_updated_rows == expected
    spark.catalog.dropTempView("theirs")


@pytest.mark.usefixtures("search")
@pytest.mark.parametrize("search", ["searched files"], indirect=True)
@pytest.mark.parametrize(
    ("text", "affected"),
    [
        ("UPDATE t SET pad = 'x' WHERE id = 5", 1),
        ("DELETE FROM t WHERE id = 6", 1),
        ("MERGE INTO t USING (SELECT 7 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE", 1),
    ],
)
def test_statements_search_files_on_every_spark(acid: AcidSession, text: str, affected: int) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, pad string)")
    acid.sql("INSERT INTO t SELECT id, uuid() FROM range(0, 100, 1, 1)")
    assert count(acid, "id = 5") == 1
    assert acid.sql(text).collect()[0].num_affected_rows == affected


# --- footers ---------------------------------------------------------------------------------------------------------


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "types", [crafted.doubling(40), crafted.nested(5000), crafted.circle()], ids=["doubling", "nested", "circle"]
)
def test_a_crafted_footer_is_refused_at_once(acid: AcidSession, tmp_path: Path, types: list[bytes]) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint)")
    acid.sql("INSERT INTO t VALUES (1)")
    file = crafted.write_orc(tmp_path / "crafted" / "000000_0", types)
    with pytest.raises((AcidError, PySparkException)):
        acid.sql(f"LOAD DATA LOCAL INPATH '{file}' INTO TABLE t")
    assert rows(acid, "SELECT id FROM t") == [(1,)]


# --- directories -----------------------------------------------------------------------------------------------------


def test_repair_shows_a_strangers_partition_wholly_or_not_at_all(acid: AcidSession, warehouse: Path) -> None:
    """A copied directory has write ids of the other table: later ones of this table must not uncover its rows."""
    for name in "tu":
        acid.sql(f"CREATE TRANSACTIONAL TABLE {name} (id int) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO t VALUES (1, 1)")
    for n in range(4):
        acid.sql(f"INSERT INTO u VALUES ({n}, 2)")
    shutil.copytree(warehouse / "u" / "p=2", warehouse / "t" / "p=2")
    try:
        acid.sql("MSCK REPAIR TABLE t")
    except (AcidError, PySparkException):
        shutil.rmtree(warehouse / "t" / "p=2")
    before = rows(acid, "SELECT * FROM t WHERE p = 2")
    assert before in ([], [(n, 2) for n in range(4)])
    for n in range(3):
        acid.sql(f"INSERT INTO t VALUES ({n}, 1)")
    assert rows(acid, "SELECT * FROM t WHERE p = 2") == before


def test_two_tables_on_one_directory_do_not_destroy_each_other(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    acid.sql("INSERT INTO t VALUES (1), (2)")
    try:
        acid.sql(f"CREATE TRANSACTIONAL TABLE u (id int) LOCATION '{warehouse}/t'")
    except AcidError:
        return
    acid.sql("DELETE FROM t WHERE id = 1")
    assert rows(acid, "SELECT * FROM u") == [(2,)]
    acid.sql("DROP TABLE u")
    assert rows(acid, "SELECT * FROM t") == [(2,)]


KILLED = """
import os, sys
import acidsql
from tests.oracle.small_spark import small_spark
acid = acidsql.connect(small_spark(), warehouse=sys.argv[1], settings={"hive.txn.timeout": "1s"})
method, when = sys.argv[2:]
real = getattr(acid.metastore, method)
def step(*args, **kwargs):
    if when == "after":
        real(*args, **kwargs)
    os._exit(9)
setattr(acid.metastore, method, step)
acid.sql("ALTER TABLE t DROP PARTITION (p = 1)")
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "when"), [(m, w) for m in ("drop_partitions", "commit_txn") for w in ("before", "after")]
)
def test_a_partition_whose_drop_was_killed_does_not_come_back(
    spark: SparkSession, warehouse: Path, method: str, when: str
) -> None:
    with acidsql.connect(spark, warehouse=warehouse) as acid:
        acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p int)")
        acid.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(warehouse), method, when],
        env=environment(),
        capture_output=True,
        timeout=200,
    )
    if done.returncode == 0:
        pytest.skip(f"DROP PARTITION does not call {method}")
    assert done.returncode == 9, done.stderr[-2000:]
    with acidsql.connect(spark, warehouse=warehouse, settings={"hive.txn.timeout": "1s"}) as acid:
        acid.metastore.time_out_txns()
        before = rows(acid, "SELECT * FROM t")
        assert before in ([(2, 2)], [(1, 1), (2, 2)])
        acid.sql("INSERT INTO t VALUES (5, 1)")
        assert rows(acid, "SELECT * FROM t") == sorted([*before, (5, 1)])


# --- settings of Spark that change files -----------------------------------------------------------------------------


@pytest.mark.parametrize("step", first_quick(["emp/13_major_cleaned", "emp/11_minor_cleaned"]))
def test_files_of_hives_query_compaction_are_read_case_sensitively(
    acid: AcidSession, spark: SparkSession, tmp_path: Path, step: str
) -> None:
    table = adopt(acid, step, tmp_path / "hive")
    expected = rows(acid, f"SELECT * FROM {table}")
    assert expected
    with setting(spark, "spark.sql.caseSensitive", "true"):
        assert rows(acid, f"SELECT * FROM {table}") == expected
        acid.sql(f"INSERT OVERWRITE TABLE {table} SELECT * FROM {table}")
    assert rows(acid, f"SELECT * FROM {table}") == expected


@pytest.mark.parametrize("step", first_quick(["emp/13_major_cleaned", "emp/11_minor_cleaned"]))
def test_files_of_hives_query_compaction_are_changed_case_sensitively(
    acid: AcidSession, spark: SparkSession, tmp_path: Path, step: str
) -> None:
    table = adopt(acid, step, tmp_path / "hive")
    before = rows(acid, f"SELECT id FROM {table}")
    [(first,), (second,), *_] = before
    with setting(spark, "spark.sql.caseSensitive", "true"):
        assert acid.sql(f"UPDATE {table} SET name = 'new' WHERE id = {first}").collect()[0].num_updated_rows == 1
        assert acid.sql(f"DELETE FROM {table} WHERE id = {second}").collect()[0].num_deleted_rows == 1
        merged = acid.sql(
            f"MERGE INTO {table} USING (SELECT {first} AS id) s ON {table}.id = s.id"
            " WHEN MATCHED THEN UPDATE SET name = 'merged' WHEN NOT MATCHED THEN INSERT (id) VALUES (-1)"
        )
        assert (merged.collect()[0].num_updated_rows, merged.collect()[0].num_inserted_rows) == (1, 0)
    assert rows(acid, f"SELECT id FROM {table}") == [row for row in before if row != (second,)]
    assert rows(acid, f"SELECT name FROM {table} WHERE id = {first}") == [("merged",)]


@pytest.mark.parametrize(
    "given",
    first_quick(
        [
            {"spark.sql.requireAllClusterKeysForDistribution": "true", "spark.sql.adaptive.enabled": "false"},
            {"spark.sql.maxConcurrentOutputFileWriters": "2"},
            {"spark.sql.optimizer.plannedWrite.enabled": "false"},
            {"spark.sql.files.maxRecordsPerFile": "10"},
        ]
    ),
    ids=lambda s: next(iter(s)).split(".")[-1],
)
def test_a_jobs_files_are_in_order_whatever_spark_is_told(
    acid: AcidSession, spark: SparkSession, warehouse: Path, given: dict[str, str]
) -> None:
    acid.sql("SET acidsql.write.driver.rows = 0")
    with settings(spark, given):
        acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v int) PARTITIONED BY (p int)")
        acid.sql("INSERT INTO t SELECT id, 0, id % 7 FROM range(500)")
        acid.sql("UPDATE t SET v = 1 WHERE id % 2 = 0")
        acid.sql(
            "MERGE INTO t USING (SELECT CAST(id AS int) AS id FROM range(250, 600)) s ON t.id = s.id"
            " WHEN MATCHED THEN UPDATE SET v = 2 WHEN NOT MATCHED THEN INSERT VALUES (s.id, 3, s.id % 7)"
        )
    assert rows(acid, "SELECT v, count(*) FROM t GROUP BY v") == [(0, 125), (1, 125), (2, 250), (3, 100)]
    files = list((warehouse / "t").glob("p=*/*delta*/bucket_*"))
    assert files
    for file in files:
        table = orc.read_table(file).select(["originalTransaction", "bucket", "rowId"])
        keys = list(zip(*table.to_pydict().values(), strict=True))
        assert all(a < b for a, b in pairwise(keys)), file
