"""Wrong statements: a clear error at its place with Hive's code, and nothing left behind."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import acidsql
from acidsql.errors import (
    AcidError,
    CorruptFile,
    InvalidValue,
    LockTimeout,
    MetastoreError,
    NotTransactional,
    ParseError,
    StorageError,
    UnsupportedError,
)
from acidsql.metastore.model import LockComponent, LockRequest, LockType
from acidsql.session import AcidSession
from tests.spark.answers import check_refusal, nothing_is_open
from tests.spark.refusals import assert_nothing_left


@pytest.fixture
def shop(acid: AcidSession, warehouse: Path) -> AcidSession:
    acid.sql("CREATE TRANSACTIONAL TABLE emp (id int, name string, salary int)")
    acid.sql("INSERT INTO emp VALUES (1, 'Ann', 5000), (2, 'Bob', 5500)").collect()
    acid.sql("CREATE TRANSACTIONAL TABLE part (id int, v varchar(3)) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO part VALUES (1, 'a', 7)").collect()
    acid.sql("CREATE TRANSACTIONAL TABLE strict (id int NOT NULL, c char(2))")
    return acid


# statement, Hive's code, line:column, a piece of the message
REFUSED = [
    ("SELEC 1", None, None, ""),
    ("UPDATE emp SET salary = 1 WHERE", 40000, None, ""),
    ("UPDATE nope SET a = 1", 10001, "1:8", "default.nope"),
    ("DELETE FROM nope", 10001, "1:13", "default.nope"),
    ("INSERT INTO nope VALUES (1)", 10001, "1:13", "default.nope"),
    ("UPDATE emp SET nope = 5", 10408, "1:16", 'Target column "nope"'),
    ("UPDATE emp SET salary = 1, name = 'x', SALARY = 2", 40000, "1:40", "set twice"),
    ("UPDATE part SET p = 5 WHERE id = 1", 10292, "1:17", "partition columns"),
    ("UPDATE plain SET a = 1", 10297, "1:8", "not transactional"),
    ("DELETE FROM plain", 10297, "1:13", "not transactional"),
    ("INSERT INTO emp VALUES (1, 'a')", 10044, "1:13", "takes 3 columns, but the query has 2"),
    ("INSERT INTO emp SELECT 1", 10044, "1:13", "takes 3 columns, but the query has 1"),
    ("INSERT INTO emp (id, zzz) VALUES (1, 'a')", 40000, "1:22", "'zzz' in insert schema specification"),
    ("INSERT INTO emp (id, id) VALUES (1, 2)", 40000, "1:22", "named twice"),
    ("INSERT INTO emp VALUES ('notint', 'z', 1)", 40000, "1:25", "Cannot store STRING in column id"),
    ("UPDATE emp SET name = 'y', salary = 'x'", 40000, "1:37", "Cannot store STRING in column salary"),
    ("INSERT INTO part PARTITION (zz = 1) VALUES (1, 'a')", 10098, "1:29", "not a partition key"),
    ("MERGE INTO emp t USING part s ON t.id = s.id WHEN MATCHED THEN UPDATE SET nope = 1", 10408, "1:75", "nope"),
    ("ALTER TABLE emp RENAME TO nowhere.people", None, None, "nowhere"),
    ("CREATE TABLE emp (a int) TBLPROPERTIES ('transactional'='true')", 40000, None, "already exists"),
    ("CREATE TRANSACTIONAL TABLE t (a int, A string)", 10036, "1:38", "Duplicate column name"),
    ("CREATE TRANSACTIONAL TABLE t (`\u00b5` int, `\u03bc` int)", 10036, "1:40", "Duplicate column name"),
    ("CREATE TRANSACTIONAL TABLE t AS SELECT 1 AS `\u0131`, 2 AS i", 10036, None, "Duplicate column name: i"),
    ("ALTER TABLE emp ADD COLUMNS (`\u0131d` int)", 10036, "1:30", "Duplicate column name"),
    ("CREATE TRANSACTIONAL TABLE t (a zint)", None, "1:33", "zint"),
    ("CREATE TRANSACTIONAL TABLE no_such_db.t (a int)", 10072, None, "no_such_db"),
    ("USE no_such_db", 10072, "1:5", "no_such_db"),
    ("SET acidsql.lock.timeoot = 1s", None, None, "acidsql.lock.timeoot"),
    ("SET hive.txn.timeout = soon", None, None, "a duration"),
]


@pytest.mark.parametrize(("text", "code", "place", "piece"), REFUSED, ids=[r[0][:50] for r in REFUSED])
def test_a_wrong_statement_is_refused_and_leaves_nothing(
    shop: AcidSession, spark: SparkSession, warehouse: Path, text: str, code: int | None, place: str | None, piece: str
) -> None:
    spark.createDataFrame([(1,)], "a int").createOrReplaceTempView("plain")
    error = assert_nothing_left(shop, warehouse, lambda: shop.sql(text))
    check_refusal(error, code, place, piece)


# found only when Spark looks at the expressions, or at the values
FAILING = [
    ("UPDATE emp SET salary = nope + 1", "nope"),
    ("DELETE FROM emp WHERE nope = 1", "nope"),
    ("SELECT nope FROM emp", "nope"),
    ("SELECT * FROM nope", "nope"),
    ("INSERT INTO emp SELECT id, name, zzz FROM emp", "zzz"),
    ("INSERT INTO emp VALUES (99999999999, 'big', 1)", "OVERFLOW"),
    ("UPDATE emp SET salary = 99999999999", "OVERFLOW"),
    ("UPDATE emp SET salary = 1 / 0", "DIVIDE_BY_ZERO"),
    ("INSERT INTO part VALUES (1, 'four', 7)", "exceeds the length"),
    ("INSERT INTO strict VALUES (NULL, 'a')", "NOT NULL"),
    ("INSERT INTO strict (c) VALUES ('a')", "NOT NULL"),
    ("INSERT INTO strict VALUES (1, 'abc')", "exceeds the length"),
    ("DELETE FROM emp WHERE id IN (SELECT x FROM part)", "x"),
]


@pytest.mark.parametrize(("text", "piece"), FAILING, ids=[f[0][:50] for f in FAILING])
def test_a_failing_statement_leaves_nothing(shop: AcidSession, warehouse: Path, text: str, piece: str) -> None:
    error = assert_nothing_left(shop, warehouse, lambda: shop.sql(text).collect())
    assert piece.lower() in str(error).lower()
    assert shop.table("emp").count() == 2


def test_without_ansi_mode_nothing_wraps_around(shop: AcidSession, spark: SparkSession, warehouse: Path) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        error = assert_nothing_left(
            shop, warehouse, lambda: shop.sql("INSERT INTO emp VALUES (99999999999, 'big', 1)").collect()
        )
        assert "CAST_OVERFLOW" in str(error)
        shop.sql("INSERT INTO emp VALUES (3L, 'small', 1)").collect()
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert shop.table("emp").count() == 3


def test_an_error_shows_the_line_the_column_and_a_mark(shop: AcidSession) -> None:
    with pytest.raises(AcidError) as caught:
        shop.sql("UPDATE emp\nSET salary = 1,\n    nope = 2\nWHERE id = 1")
    assert "line 3:5" in str(caught.value)
    assert "    nope = 2\n    ^^^^" in str(caught.value)
    with pytest.raises(ParseError) as parsed:
        shop.sql("DELETE emp")
    assert parsed.value.line == 1


def test_a_table_of_sparks_own_is_not_transactional(shop: AcidSession, spark: SparkSession) -> None:
    spark.sql("CREATE TABLE own (a int) USING orc")
    try:
        with pytest.raises(NotTransactional):
            shop.sql("UPDATE own SET a = 1")
    finally:
        spark.sql("DROP TABLE own")


def test_a_held_lock_is_waited_for_and_its_holder_named(shop: AcidSession, warehouse: Path) -> None:
    [txn] = shop.metastore.open_txns(user="olga", host="farhost")
    held = LockComponent(LockType.EXCLUSIVE, "default", "emp")
    shop.metastore.lock(LockRequest((held,), txn, "olga", "farhost", "nightly-load"))
    shop.sql("SET acidsql.lock.timeout = 300ms").collect()
    with pytest.raises(LockTimeout) as caught:
        shop.sql("UPDATE emp SET salary = 1")
    for piece in ("default.emp", "olga@farhost", "nightly-load", str(txn)):
        assert piece in str(caught.value)
    assert [r.txnid for r in shop.sql("SHOW TRANSACTIONS").collect()] == [str(txn)]
    shop.metastore.commit_txn(txn)
    assert shop.sql("UPDATE emp SET salary = 1").collect()[0].num_updated_rows == 2


def test_a_warehouse_that_cannot_be_made_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(StorageError):
        acidsql.connect(spark, warehouse=tmp_path / "file" / "warehouse")


@pytest.mark.file_store
def test_a_store_that_is_no_database_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "acidsql.db").write_bytes(b"this is not a database file, but it is long enough to look like one" * 40)
    with pytest.raises(MetastoreError) as caught:
        acidsql.connect(spark, warehouse=tmp_path)
    assert "acidsql.db" in str(caught.value)


@pytest.mark.file_store
def test_a_store_locked_by_another_process_is_waited_for_and_then_an_error(spark: SparkSession, tmp_path: Path) -> None:
    with acidsql.connect(spark, warehouse=tmp_path, settings={"acidsql.metastore.busy.timeout": "200ms"}) as acid:
        acid.sql("CREATE TRANSACTIONAL TABLE t (a int)")
        other = sqlite3.connect(tmp_path / "acidsql.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        try:
            with pytest.raises(MetastoreError):
                acid.sql("INSERT INTO t VALUES (1)")
        finally:
            other.close()
        assert acid.sql("INSERT INTO t VALUES (1)").collect()[0].num_inserted_rows == 1


@pytest.mark.parametrize("content", [b"", b"ORC", b"this is no ORC file at all" * 100], ids=["empty", "short", "text"])
def test_a_corrupt_file_is_named(shop: AcidSession, warehouse: Path, content: bytes) -> None:
    [file] = (warehouse / "emp").glob("delta_*/bucket_00000")
    file.write_bytes(content)
    with pytest.raises(CorruptFile) as caught:
        shop.sql("SELECT * FROM emp").collect()
    assert str(file) in str(caught.value)
    nothing_is_open(shop)


def test_statements_of_later_versions_say_so(shop: AcidSession) -> None:
    with pytest.raises(UnsupportedError):
        shop.sql("ALTER TABLE emp ADD COLUMN x int CHECK (x > 0)")


@pytest.mark.parametrize("given", [None, 1, b"SELECT 1", ["SELECT 1"]])
def test_a_statement_that_is_no_string_is_refused(shop: AcidSession, given: object) -> None:
    with pytest.raises(InvalidValue, match="is not the statement: a string is expected"):
        shop.sql(given)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="is not the table's name"):
        shop.table(given)  # type: ignore[arg-type]


def test_reset_goes_back_to_the_beginning(spark: SparkSession, tmp_path: Path) -> None:
    given = {"hive.txn.timeout": "77s", "acidsql.timestamp.nanoseconds": "error"}
    with acidsql.connect(spark, warehouse=tmp_path / "w", settings=given) as acid:

        def value(name: str) -> str:
            return str(acid.sql(f"SET {name}").collect()[0][1])

        names = ("hive.txn.timeout", "acidsql.timestamp.nanoseconds", "hive.lock.numretries", "spark.sql.ansi.enabled")
        before = [value(name) for name in names]
        for reset in ("RESET", *[f"RESET {name}" for name in names]):
            acid.sql("SET metastore.txn.timeout = 99s")
            acid.sql("SET acidsql.timestamp.nanoseconds = truncate")
            acid.sql("SET hive.lock.numretries = 3")
            acid.sql("SET hive.compactor.worker.p.threads = 3")
            acid.sql("SET spark.sql.ansi.enabled = false")
            acid.sql(reset)
            now = [value(name) for name in names]
            expected = [
                b if reset in ("RESET", f"RESET {n}") else w for n, b, w in zip(names, before, WORSE, strict=True)
            ]
            assert now == expected, reset
            assert acid.settings.worker_pools == ({} if reset == "RESET" else {"p": 3})
        acid.sql("RESET")
        with pytest.raises(InvalidValue, match="Unknown setting"):
            acid.sql("RESET acidsql.nope")


WORSE = ["99s", "truncate", "3", "false"]


def test_what_java_cannot_hold_is_said_before_it_is_asked(acid: AcidSession) -> None:
    """It was an error of py4j's, with a trace of Java's."""
    half = "\ud800"
    for text, given in (
        (f"SELECT '{half}'", {}),
        ("SELECT :v", {"v": f"a{half}"}),
        ("SELECT :v", {"v": [f"a{half}"]}),
        ("SELECT :v", {"v": 2**63}),
        ("SELECT :v", {"v": -(2**63) - 1}),
    ):
        with pytest.raises(InvalidValue, match=r"is not valid Unicode: '\\ud800'|is no bigint"):
            acid.sql(text, **given)
    assert acid.sql("SELECT :v", v=2**63 - 1).collect()[0][0] == 2**63 - 1
    assert acid.sql("SELECT :v", v="😀").collect()[0][0] == "😀"
    nothing_is_open(acid)
