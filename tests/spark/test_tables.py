"""DDL, INSERT in all its forms, partitions: rows, partitions and directory trees."""

from __future__ import annotations

import datetime as dt
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from acidsql.errors import AcidError, AlreadyExists, AnalysisError
from acidsql.session import AcidSession
from tests.spark.answers import nothing_is_open, rows
from tests.spark.hive_rules import check_table
from tests.spark.tree import tree, with_version

PART = "CREATE TRANSACTIONAL TABLE part (id int, v string) PARTITIONED BY (p int, q string)"


def test_show_and_describe_know_the_table(acid: AcidSession) -> None:
    acid.sql(
        """CREATE TABLE IF NOT EXISTS emp (id INT NOT NULL COMMENT 'the key', d decimal(10, 2) DEFAULT 1.5,
           s STRUCT<a: int, B: array<string>>) COMMENT 'people' PARTITIONED BY (p date)
           STORED AS ORC TBLPROPERTIES ('transactional' = 'true', 'owner.team' = 'x')"""
    )
    acid.sql("CREATE TABLE IF NOT EXISTS emp (a int) STORED AS ORC TBLPROPERTIES ('transactional' = 'true')")
    assert ("default", "emp", False) in rows(acid, "SHOW TABLES")
    described = [tuple(r) for r in acid.sql("DESCRIBE emp").collect()]
    assert described[:4] == [
        ("id", "int", "the key"),
        ("d", "decimal(10,2)", None),
        ("s", "struct<a:int,B:array<string>>", None),
        ("p", "date", None),
    ]
    formatted = [tuple(r) for r in acid.sql("DESCRIBE FORMATTED emp").collect()]
    assert ("", "transactional", "true") in formatted
    assert ("# Not Null Constraints", None, None) in formatted
    [[text]] = acid.sql("SHOW CREATE TABLE emp").collect()
    acid.sql("DROP TABLE emp")
    assert rows(acid, "SHOW TABLES LIKE 'emp'") == []
    acid.sql(text)
    assert [tuple(r) for r in acid.sql("DESCRIBE emp").collect()] == described


def test_databases(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE DATABASE IF NOT EXISTS hr COMMENT 'c'")
    acid.sql("CREATE DATABASE IF NOT EXISTS hr")
    with pytest.raises(AlreadyExists):
        acid.sql("CREATE DATABASE hr")
    acid.sql("USE hr")
    acid.sql("CREATE TRANSACTIONAL TABLE t (a int)")
    acid.sql("INSERT INTO t VALUES (1)")
    assert (warehouse / "hr.db" / "t").is_dir()
    with pytest.raises(AnalysisError):
        acid.sql("DROP DATABASE hr")
    acid.sql("DROP DATABASE hr CASCADE")
    assert not (warehouse / "hr.db").exists()
    assert acid.database == "default"
    assert ("hr",) not in rows(acid, "SHOW DATABASES")
    acid.sql("DROP DATABASE IF EXISTS hr")


def test_a_table_made_anew_has_none_of_the_old_rows(acid: AcidSession, warehouse: Path) -> None:
    for number in (1, 2):
        acid.sql("CREATE TRANSACTIONAL TABLE t (a int)")
        acid.sql(f"INSERT INTO t VALUES ({number})")
        assert rows(acid, "SELECT a FROM t") == [(number,)]
        acid.sql("DROP TABLE t")
        assert not (warehouse / "t").exists()
    acid.sql("DROP TABLE IF EXISTS t")


def test_a_directory_that_is_there_is_not_taken_in_by_accident(acid: AcidSession, warehouse: Path) -> None:
    (warehouse / "t" / "delta_0000001_0000001_0000").mkdir(parents=True)
    with pytest.raises(AlreadyExists):
        acid.sql("CREATE TRANSACTIONAL TABLE t (a int)")


def test_insert_forms(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (a int, b string DEFAULT concat('d', 'x'), c double)")
    acid.sql("INSERT INTO t VALUES (1, 'one', 1.5), (2, DEFAULT, 2)")
    acid.sql("INSERT INTO TABLE t (c, a) VALUES (3.5, 3)")
    acid.sql("INSERT INTO t SELECT a + 10, b, c FROM t WHERE a < 3")
    acid.sql("INSERT INTO t BY NAME SELECT 5 AS a, 0.5 AS c")
    acid.sql("WITH w AS (SELECT 6 AS n, 'w' AS s) INSERT INTO t SELECT n, s, NULL FROM w")
    acid.sql("CREATE TRANSACTIONAL TABLE u (a int, b string, c double)")
    acid.sql("INSERT INTO u TABLE t")
    expected = [
        (1, "one", 1.5),
        (2, "dx", 2.0),
        (3, "dx", 3.5),
        (5, "dx", 0.5),
        (6, "w", None),
        (11, "one", 1.5),
        (12, "dx", 2.0),
    ]
    assert rows(acid, "SELECT * FROM t") == rows(acid, "SELECT * FROM u") == sorted(expected, key=repr)
    acid.sql("UPDATE t SET b = DEFAULT WHERE a = 1")
    assert rows(acid, "SELECT b FROM t WHERE a = 1") == [("dx",)]
    check_table(warehouse / "t")


def test_insert_values_runs_no_spark_job(acid: AcidSession, spark: SparkSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (a int, b string, ts timestamp, m map<string,array<int>>, s struct<x:int>)")
    tracker = spark.sparkContext.statusTracker()
    before = len(tracker.getJobIdsForGroup())
    counts = acid.sql(
        "INSERT INTO t VALUES (1, 'x', timestamp '2024-01-02 03:04:05.678901', map('k', array(1, NULL)),"
        " named_struct('x', 2))"
    )
    assert counts.collect()[0].num_inserted_rows == 1
    assert len(tracker.getJobIdsForGroup()) == before
    [row] = acid.sql("SELECT * FROM t").collect()
    assert (row.a, row.b, row.m, tuple(row.s)) == (1, "x", {"k": [1, None]}, (2,))
    assert row.ts == dt.datetime(2024, 1, 2, 3, 4, 5, 678901)


def test_a_large_insert_is_written_by_one_job(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (a bigint, b string)")
    assert acid.sql("INSERT INTO t SELECT id, 'v' FROM range(50000)").collect()[0].num_inserted_rows == 50000
    assert rows(acid, "SELECT count(*), sum(a), count(DISTINCT ROW__ID) FROM t") == [(50000, 1249975000, 50000)]
    assert check_table(warehouse / "t") == 50000
    assert acid.sql("UPDATE t SET b = 'w' WHERE a % 2 = 0").collect()[0].num_updated_rows == 25000
    assert acid.sql("DELETE FROM t WHERE a % 4 = 0").collect()[0].num_deleted_rows == 12500
    assert rows(acid, "SELECT b, count(*) FROM t GROUP BY b") == [("v", 25000), ("w", 12500)]
    check_table(warehouse / "t")


def test_insert_overwrite_hides_what_was_there(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (a int)")
    acid.sql("INSERT INTO t VALUES (1), (2)")
    acid.sql("INSERT OVERWRITE TABLE t SELECT a + 10 FROM t")
    assert rows(acid, "SELECT a FROM t") == [(11,), (12,)]
    acid.sql("INSERT OVERWRITE t SELECT a FROM t WHERE false")
    assert rows(acid, "SELECT a FROM t") == []
    acid.sql("INSERT INTO t VALUES (3)")
    assert rows(acid, "SELECT ROW__ID.writeId, a FROM t") == [(4, 3)]
    assert tree(warehouse / "t") == with_version(
        "base_0000002", "base_0000003", "delta_0000001_0000001_0000", "delta_0000004_0000004_0000"
    )
    check_table(warehouse / "t")


def test_partitions_static_dynamic_and_odd(acid: AcidSession, warehouse: Path) -> None:
    acid.sql(PART)
    acid.sql("INSERT INTO part PARTITION (p = 1, q = 'a') VALUES (1, 'static')")
    acid.sql("INSERT INTO part PARTITION (p = 1, q) VALUES (2, 'half', 'b')")
    acid.sql("INSERT INTO part VALUES (3, 'dyn', 2, 'a=b/c%[x]'), (4, 'null', NULL, NULL), (5, 'empty', 2, '')")
    acid.sql("INSERT INTO part (q, id, p) VALUES ('z', 6, 3)")
    found = rows(acid, "SHOW PARTITIONS part")
    default = "__HIVE_DEFAULT_PARTITION__"
    assert found == [
        ("p=1/q=a",),
        ("p=1/q=b",),
        ("p=2/q=" + default,),
        ("p=2/q=a%3Db%2Fc%25%5Bx%5D",),
        ("p=3/q=z",),
        (f"p={default}/q={default}",),
    ]
    assert rows(acid, "SHOW PARTITIONS part PARTITION (p = 1)") == [("p=1/q=a",), ("p=1/q=b",)]
    assert rows(acid, "SELECT * FROM part") == sorted(
        [
            (1, "static", 1, "a"),
            (2, "half", 1, "b"),
            (3, "dyn", 2, "a=b/c%[x]"),
            (4, "null", None, None),
            (5, "empty", 2, None),
            (6, None, 3, "z"),
        ],
        key=repr,
    )
    assert acid.sql("UPDATE part SET v = concat(q, '!') WHERE p = 2").collect()[0].num_updated_rows == 2
    assert acid.sql("DELETE FROM part WHERE p IS NULL").collect()[0].num_deleted_rows == 1
    assert rows(acid, "SELECT id, v FROM part WHERE p = 2 OR p IS NULL") == [(3, "a=b/c%[x]!"), (5, None)]
    check_table(warehouse / "part")


@pytest.mark.parametrize("within", ["a statement", "a transaction"])
@pytest.mark.parametrize("kind", ["full ACID", "insert-only"])
def test_a_partition_that_is_named_is_there_without_rows(acid: AcidSession, kind: str, within: str) -> None:
    """As with Hive and Spark. INSERT made none, in a transaction OVERWRITE neither: IF NOT EXISTS wrote to it."""
    marks = {"full ACID": "", "insert-only": ", 'transactional_properties'='insert_only'"}[kind]
    acid.sql(
        f"CREATE TABLE part (id int) PARTITIONED BY (p int) STORED AS ORC TBLPROPERTIES ('transactional'='true'{marks})"
    )
    nobody = "SELECT id FROM part WHERE id > 5"
    with acid.transaction() if within == "a transaction" else nullcontext():
        acid.sql(f"INSERT OVERWRITE TABLE part PARTITION (p = 1) {nobody}")
        acid.sql(f"INSERT INTO part PARTITION (p = 2) {nobody}")
        acid.sql(
            "FROM part INSERT INTO part PARTITION (p = 3) SELECT id WHERE id > 5"
            " INSERT INTO part PARTITION (p) SELECT id, 4 WHERE id > 5"
        )
        acid.sql(f"INSERT INTO part PARTITION (p) {nobody.replace('id FROM', 'id, p FROM')}")
        acid.sql(f"INSERT INTO part PARTITION (p = 2) {nobody}")
    assert rows(acid, "SHOW PARTITIONS part") == [("p=1",), ("p=2",), ("p=3",)]
    for p in (1, 2, 3):
        acid.sql(f"INSERT OVERWRITE TABLE part PARTITION (p = {p}) IF NOT EXISTS SELECT 9")
    assert rows(acid, "SELECT * FROM part") == []
    acid.sql("INSERT INTO part VALUES (1, 2)")
    assert rows(acid, "SELECT * FROM part") == [(1, 2)]
    nothing_is_open(acid)


def test_the_same_row_id_in_two_partitions_is_two_rows(acid: AcidSession) -> None:
    acid.sql(PART)
    acid.sql("INSERT INTO part VALUES (1, 'x', 1, 'a'), (2, 'x', 2, 'a'), (3, 'x', 3, NULL)")
    assert rows(acid, "SELECT DISTINCT ROW__ID FROM part")[0][0] is not None
    acid.sql("DELETE FROM part WHERE p = 1")
    acid.sql("UPDATE part SET v = 'y' WHERE q IS NULL")
    assert rows(acid, "SELECT id, v FROM part") == [(2, "x"), (3, "y")]


def test_only_the_partitions_that_a_condition_leaves_are_listed(acid: AcidSession, warehouse: Path) -> None:
    acid.sql(PART)
    acid.sql("INSERT INTO part VALUES (1, 'x', 1, 'a'), (2, 'x', 2, 'a'), (3, 'x', 3, 'b')")
    [broken] = (warehouse / "part" / "p=3" / "q=b").glob("delta_*/bucket_00000")
    broken.write_bytes(b"broken")
    assert rows(acid, "SELECT id FROM part WHERE p < 3 AND id > 0") == [(1,), (2,)]
    assert rows(acid, "SELECT x.id FROM part x WHERE x.q = 'a' AND x.p IN (1, 3)") == [(1,)]
    assert acid.sql("UPDATE part SET v = 'y' WHERE p = 1").collect()[0].num_updated_rows == 1
    assert acid.sql("DELETE FROM part WHERE q = :q", q="a").collect()[0].num_deleted_rows == 2
    with pytest.raises(AcidError):
        acid.sql("SELECT id FROM part WHERE p >= 3")


def test_overwrite_of_partitions(acid: AcidSession, warehouse: Path) -> None:
    acid.sql(PART)
    acid.sql("INSERT INTO part VALUES (1, 'x', 1, 'a'), (2, 'x', 2, 'a'), (3, 'x', 2, 'b')")
    acid.sql("INSERT OVERWRITE part PARTITION (p = 2, q) VALUES (9, 'new', 'a')")
    assert rows(acid, "SELECT id FROM part") == [(1,), (3,), (9,)]
    acid.sql("INSERT OVERWRITE part PARTITION (p = 2, q = 'b') SELECT id, v FROM part WHERE false")
    assert rows(acid, "SELECT id FROM part") == [(1,), (9,)]
    acid.sql("INSERT OVERWRITE part PARTITION (p = 1, q = 'a') IF NOT EXISTS VALUES (7, 'no')")
    assert rows(acid, "SELECT id FROM part") == [(1,), (9,)]
    check_table(warehouse / "part")


def test_values_of_every_type_survive_insert_update_and_read(acid: AcidSession, warehouse: Path) -> None:
    acid.sql(
        """CREATE TRANSACTIONAL TABLE w (id int, ti tinyint, si smallint, bi bigint, f float, d double,
           de decimal(38,18), s string, vc varchar(5), ch char(4), bo boolean, bin binary, dt date, ts timestamp,
           ai array<int>, m map<string,int>, st struct<a:int,b:timestamp>, x int)"""
    )
    acid.sql(
        """INSERT INTO w VALUES (1, -128Y, 32767S, -9223372036854775808L, float('NaN'), double('-Infinity'),
           12345678901234567890.123456789012345678BD, 'żółć 😀', 'abc', 'ab', true, X'00ff', date '0001-01-01',
           timestamp '1582-10-04 23:59:59.999999', array(1, NULL), map('a', NULL), named_struct('a', 1, 'b',
           timestamp '0001-01-01 00:00:00'), 0), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
           NULL, NULL, NULL, NULL, NULL, 0)"""
    )
    text = """SELECT id, ti, si, bi, f, d, de, s, vc, ch, bo, hex(bin), string(dt), string(ts), ai, m, st.a,
              string(st.b) FROM w ORDER BY id"""
    before = [tuple(r) for r in acid.sql(text).collect()]
    assert str(before[0][4]) == "nan"
    assert before[0][5] == float("-inf")
    assert before[0][6] == Decimal("12345678901234567890.123456789012345678")
    assert before[0][7:10] == ("żółć 😀", "abc", "ab  ")
    assert before[0][11:14] == ("00FF", "0001-01-01", "1582-10-04 23:59:59.999999")
    assert before[0][14:] == ([1, None], {"a": None}, 1, "0001-01-01 00:00:00")
    assert before[1] == (2, *[None] * 17)
    for driver_rows in ("20000", "0"):
        acid.sql(f"SET acidsql.write.driver.rows = {driver_rows}")
        acid.sql("UPDATE w SET x = x + 1")
        assert [repr(tuple(r)) for r in acid.sql(text).collect()] == [repr(r) for r in before]
    check_table(warehouse / "w")


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
@pytest.mark.parametrize("driver_rows", ["20000", "0"], ids=["driver", "job"])
def test_a_wall_clock_is_the_same_under_every_session_zone(
    acid: AcidSession, spark: SparkSession, zone: str, driver_rows: str
) -> None:
    acid.sql(f"SET acidsql.write.driver.rows = {driver_rows}")
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, ts timestamp, a array<timestamp>)")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        acid.sql(
            "INSERT INTO t VALUES (1, timestamp '2024-07-01 12:34:56.789', array(timestamp '1900-01-01 00:00:00'))"
        )
        acid.sql("UPDATE t SET id = 2")
        spark.conf.set("spark.sql.session.timeZone", "Europe/Warsaw")
        [row] = acid.sql("SELECT string(ts), string(a[0]) FROM t").collect()
        assert tuple(row) == ("2024-07-01 12:34:56.789", "1900-01-01 00:00:00")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_table_of_sparks_own_is_written_by_spark_from_acid_tables(acid: AcidSession, spark: SparkSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (a int)")
    acid.sql("INSERT INTO t VALUES (1), (2)")
    acid.sql("CREATE TABLE own USING orc AS SELECT a FROM t")
    try:
        acid.sql("INSERT INTO own SELECT a + 10 FROM t")
        assert rows(acid, "SELECT own.a FROM own LEFT JOIN t ON own.a = t.a") == [(1,), (11,), (12,), (2,)]
        acid.sql("DELETE FROM t WHERE a IN (SELECT a FROM own)")
        assert rows(acid, "SELECT * FROM t") == []
    finally:
        spark.sql("DROP TABLE own")


def test_subqueries_in_update_and_delete_read_acid_and_ordinary_tables(acid: AcidSession, spark: SparkSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (a int, b int)")
    acid.sql("CREATE TRANSACTIONAL TABLE o (k int, v int)")
    acid.sql("INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)")
    acid.sql("INSERT INTO o VALUES (1, 100), (2, 200)")
    spark.createDataFrame([(3,)], "n int").createOrReplaceTempView("ns")
    acid.sql("UPDATE t AS x SET b = (SELECT max(v) FROM o WHERE o.k = x.a) WHERE x.a IN (SELECT k FROM o)")
    assert rows(acid, "SELECT * FROM t") == [(1, 100), (2, 200), (3, 0)]
    acid.sql("DELETE FROM t WHERE a = (SELECT n FROM ns) OR NOT EXISTS (SELECT 1 FROM o WHERE o.k <= t.a + 5)")
    assert rows(acid, "SELECT * FROM t") == [(1, 100), (2, 200)]


def test_an_update_of_nothing_writes_nothing(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (a int)")
    assert acid.sql("UPDATE t SET a = 1").collect()[0].num_updated_rows == 0
    acid.sql("INSERT INTO t VALUES (1)")
    before = tree(warehouse / "t")
    assert acid.sql("UPDATE t SET a = 2 WHERE a = 7").collect()[0].num_affected_rows == 0
    assert acid.sql("DELETE FROM t WHERE false").collect()[0].num_affected_rows == 0
    assert tree(warehouse / "t") == before


def test_columns_called_as_the_event_columns_are(acid: AcidSession) -> None:
    acid.sql(
        "CREATE TRANSACTIONAL TABLE t (bucket int, row struct<bucket:int>, operation int, rowid bigint, `date` int)"
    )
    acid.sql("INSERT INTO t VALUES (1, named_struct('bucket', 5), 2, 3, 4), (7, named_struct('bucket', 8), 2, 3, 4)")
    acid.sql("DELETE FROM t WHERE bucket = 7")
    assert rows(acid, "SELECT t.row.bucket, operation, rowid, `date` FROM t WHERE row.bucket = 5") == [(5, 2, 3, 4)]
    assert rows(acid, "SELECT bucket FROM t WHERE ROW__ID.bucketId = 536870912") == [(1,)]


def test_a_statement_whose_table_changed_while_it_waited_starts_over(
    acid: AcidSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (a int)")
    acid.sql("INSERT INTO t VALUES (1)")
    lock = type(acid.metastore).lock
    pending = ["DROP TABLE t", "CREATE TRANSACTIONAL TABLE t (b string)"]

    def changed_first(*args: Any, **kwargs: Any) -> Any:
        first, pending[:] = list(pending), []
        for statement in first:
            acid.sql(statement)
        return lock(*args, **kwargs)

    monkeypatch.setattr(type(acid.metastore), "lock", changed_first)
    assert acid.sql("INSERT INTO t VALUES (2)").collect()[0].num_inserted_rows == 1
    assert rows(acid, "SELECT b FROM t") == [("2",)]
    assert len([name for name in tree(warehouse / "t") if "bucket" in name]) == 1
