"""DataFrames and views read later: the rows of their snapshot or a clear error, never the rows of something else."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

import acidsql
from acidsql.errors import AcidError
from acidsql.metastore.model import TxnState
from acidsql.session import AcidSession
from tests.oracle.choice import first_quick
from tests.oracle.spark_conf import setting
from tests.spark.answers import nothing_is_open, rows

pytestmark = pytest.mark.spark

BEFORE = [(n, n) for n in range(4)]


@pytest.fixture
def updated(acid: AcidSession) -> AcidSession:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v int)")
    for row in BEFORE:
        acid.sql(f"INSERT INTO t VALUES {row}")
    return acid


def compact_and_clean(acid: AcidSession) -> None:
    """Change all rows, and remove whatever no reader is known to need."""
    gc.collect()
    acid.sql("UPDATE t SET v = 9")
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    for _ in range(3):
        acid.compactor.run_once()


def read(frame: DataFrame) -> list[tuple[object, ...]] | None:
    """The rows; None where a clear error says that they are gone."""
    try:
        return sorted(tuple(r) for r in frame.collect())
    except (AcidError, PySparkException) as e:
        if "FILE_NOT_EXIST" in str(e) or "FileNotFound" in str(e):
            raise
        return None


@pytest.mark.parametrize("ignored", first_quick(["false", "true"]))
@pytest.mark.parametrize("derived", first_quick(["filter", "join", "cache", "union", "alias", "sql"], 2))
def test_a_derived_frame_keeps_its_files(updated: AcidSession, spark: SparkSession, derived: str, ignored: str) -> None:
    frame = updated.table("t")
    match derived:
        case "filter":
            frame = frame.filter("id >= 0").select("id", "v")
        case "join":
            frame = frame.join(spark.range(4).selectExpr("CAST(id AS int) AS id"), "id").select("id", "v")
        case "cache":
            frame = frame.cache()
        case "union":
            frame = frame.union(frame).distinct()
        case "alias":
            frame = frame.alias("x").selectExpr("x.id", "x.v")
        case "sql":
            frame = updated.sql("SELECT * FROM (SELECT * FROM t) WHERE id >= 0").filter("v >= 0")
    compact_and_clean(updated)
    with setting(spark, "spark.sql.files.ignoreMissingFiles", ignored):
        assert read(frame) == BEFORE
    frame.unpersist()


@pytest.mark.parametrize("kind", ["rdd", "iterator", "derived rdd"])
def test_an_rdd_keeps_the_files_of_a_frame_that_is_gone(updated: AcidSession, spark: SparkSession, kind: str) -> None:
    """It refers to no plan any more, and the tasks of an iterator start one after another."""
    with setting(spark, "spark.sql.files.minPartitionNum", "4"):  # a task for each file
        assert sorted(map(tuple, read_late(updated, kind))) == BEFORE
    if kind != "iterator" or not spark.version.startswith("4.3"):  # docs/limits.md
        nothing_is_open(updated)


def read_late(acid: AcidSession, kind: str) -> list[Row]:
    match kind:
        case "rdd":
            rest = acid.table("t").rdd
            compact_and_clean(acid)
            return rest.collect()
        case "derived rdd":
            derived = acid.sql("SELECT * FROM t WHERE v >= 0").rdd.filter(lambda row: row.id >= 0)
            compact_and_clean(acid)
            return derived.collect()
        case _:
            iterator = acid.sql("SELECT * FROM t").toLocalIterator()
            first = next(iterator)
            compact_and_clean(acid)
            return [first, *iterator]


@pytest.fixture
def view(updated: AcidSession, spark: SparkSession) -> Iterator[AcidSession]:
    updated.sql("CREATE TEMPORARY VIEW kept AS SELECT * FROM t")
    yield updated
    spark.catalog.dropTempView("kept")


def test_a_temporary_view_outlives_a_compaction(view: AcidSession, spark: SparkSession) -> None:
    compact_and_clean(view)
    assert rows(view, "SELECT * FROM kept") == BEFORE


@pytest.mark.parametrize("made_from", ["table", "sql"])
def test_a_view_of_a_frame_outlives_it(updated: AcidSession, spark: SparkSession, made_from: str) -> None:
    frame = updated.table("t") if made_from == "table" else updated.sql("SELECT id, v FROM t WHERE id >= 0")
    frame.createOrReplaceTempView("kept")
    del frame
    try:
        compact_and_clean(updated)
        assert rows(updated, "SELECT * FROM kept") == BEFORE
        assert sorted(tuple(r) for r in spark.sql("SELECT * FROM kept WHERE v < 9").collect()) == BEFORE
    finally:
        spark.catalog.dropTempView("kept")


def test_once_nothing_refers_to_a_scan_the_cleaner_goes_on(updated: AcidSession, warehouse: Path) -> None:
    derived = updated.table("t").filter("id >= 0")
    compact_and_clean(updated)
    held = {p.name for p in (warehouse / "t").iterdir()}
    del derived
    gc.collect()
    updated.sql("SELECT 1 FROM t WHERE id = 0").collect()
    gc.collect()
    for _ in range(3):
        updated.compactor.run_once()
    left = {p.name for p in (warehouse / "t").iterdir()}
    assert any(name.startswith("delta") for name in held)
    assert not any(name.startswith("delta") for name in left)


def test_the_next_table_of_a_name_is_not_the_one_before(acid: AcidSession) -> None:
    old, new = [(1, "old"), (2, "old")], [(7, "new"), (8, "new")]
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
    acid.sql("INSERT INTO t VALUES (1, 'old'), (2, 'old')")
    frame, cached = acid.sql("SELECT * FROM t"), acid.table("t").cache()
    cached.count()
    acid.sql("DROP TABLE t")
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
    acid.sql("INSERT INTO t VALUES (7, 'new'), (8, 'new')")
    try:
        assert read(frame) in (old, None)
        assert rows(acid, "SELECT * FROM t") == new
        assert read(acid.table("t")) == new
        assert acid.sql("UPDATE t SET v = concat(v, '+')").collect()[0].num_updated_rows == 2
        assert rows(acid, "SELECT * FROM t") == [(7, "new+"), (8, "new+")]
    finally:
        cached.unpersist()


def test_another_session_with_a_short_timeout_ends_only_its_own_transactions(
    spark: SparkSession, warehouse: Path
) -> None:
    with acidsql.connect(spark, warehouse=warehouse) as acid:
        acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
        for n in range(3):
            acid.sql(f"INSERT INTO t VALUES ({n})")
        frame = acid.sql("SELECT * FROM t")
        [own] = [txn.id for txn in acid.metastore.show_txns()]
        with acidsql.connect(spark, warehouse=warehouse, settings={"hive.txn.timeout": "1s"}) as other:
            time.sleep(1.5)  # longer than the other session's timeout, much shorter than this one's
            other.metastore.time_out_txns()
            assert [t.id for t in other.metastore.show_txns() if t.state is TxnState.OPEN] == [own]
            other.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
            for _ in range(2):
                other.compactor.run_once()
        assert sorted(r[0] for r in frame.collect()) == [0, 1, 2]
