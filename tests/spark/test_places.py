"""Names and places that a statement gives: it reaches nothing beyond its own table (rule 10)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import acidsql
from acidsql.errors import AcidError, AlreadyExists, AnalysisError
from acidsql.session import AcidSession
from tests.spark.answers import nothing_is_open, rows
from tests.spark.tree import tree


@pytest.fixture
def shop(acid: AcidSession) -> AcidSession:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    acid.sql("INSERT INTO t VALUES (1)")
    acid.sql("CREATE TRANSACTIONAL TABLE p (id int) PARTITIONED BY (k int)")
    acid.sql("INSERT INTO p VALUES (1, 1)")
    acid.sql("CREATE TRANSACTIONAL TABLE u (id int)")
    acid.sql("CREATE TRANSACTIONAL TABLE q (id int) PARTITIONED BY (k int)")
    return acid


@pytest.mark.parametrize("place", ["t", "t/below", "p", "p/k=1", "p/k=2", ""])
@pytest.mark.parametrize(
    "text",
    [
        "CREATE TRANSACTIONAL TABLE n (id int) LOCATION '{place}'",
        "CREATE TRANSACTIONAL TABLE n LOCATION '{place}' AS SELECT 1 AS id",
        "CREATE TABLE n LIKE u LOCATION '{place}'",
        "ALTER TABLE u SET LOCATION '{place}'",
        "ALTER TABLE q ADD PARTITION (k = 5) LOCATION '{place}'",
        "CREATE DATABASE d LOCATION '{place}'",
    ],
)
def test_no_statement_puts_files_where_anothers_are(shop: AcidSession, warehouse: Path, text: str, place: str) -> None:
    before = tree(warehouse)
    with pytest.raises(AcidError, match=r"is not free|not empty|holds write ids|never gave out"):
        shop.sql(text.format(place=f"{warehouse}/{place}"))
    assert tree(warehouse) == before
    assert shop.metastore.list_databases() == ["default"]
    assert shop.metastore.list_tables("default") == ["p", "q", "t", "u"]
    nothing_is_open(shop)


@pytest.mark.parametrize("name", ["../escape", "a b", ".", "x/y"])
def test_a_database_is_one_directory_below_the_warehouse(shop: AcidSession, warehouse: Path, name: str) -> None:
    before = tree(warehouse.parent)
    with pytest.raises(AnalysisError, match=r"line 1:17 .* is not a valid database name"):
        shop.sql(f"CREATE DATABASE `{name}`")
    assert tree(warehouse.parent) == before


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TRANSACTIONAL TABLE `../n` (id int)",
        "CREATE TRANSACTIONAL TABLE `a b` AS SELECT 1 AS id",
        "ALTER TABLE t RENAME TO `../n`",
        "CREATE VIEW `a.b` AS SELECT * FROM t",
    ],
)
def test_a_table_has_a_name_that_hive_takes(shop: AcidSession, warehouse: Path, text: str) -> None:
    before = tree(warehouse.parent)
    with pytest.raises(AnalysisError, match="is not a valid table name"):
        shop.sql(text)
    assert tree(warehouse.parent) == before
    nothing_is_open(shop)


def test_a_place_is_free_for_another_table_once_its_own_is_dropped(shop: AcidSession, warehouse: Path) -> None:
    shop.sql("DROP TABLE t")
    shop.sql(f"CREATE TRANSACTIONAL TABLE n (id int) LOCATION '{warehouse}/t'")
    with pytest.raises(AlreadyExists, match=r"default\.n"):
        shop.sql("CREATE TRANSACTIONAL TABLE t (id int)")


# --- MSCK REPAIR TABLE -----------------------------------------------------------------------------------------------


def test_repair_refuses_a_directory_of_another_table_by_its_name(shop: AcidSession, warehouse: Path) -> None:
    """Its rows would have come to be seen one after another, as this table is written to."""
    for number in range(4):
        shop.sql(f"INSERT INTO q VALUES ({number}, 2)")
    shutil.copytree(warehouse / "q" / "k=2", warehouse / "p" / "k=2")
    (warehouse / "p" / "k=3").mkdir()
    with pytest.raises(AnalysisError, match=r"p/k=2 is not of default.p: it holds write id 4, .* is 1"):
        shop.sql("MSCK REPAIR TABLE p")
    assert rows(shop, "SHOW PARTITIONS p") == [("k=1",)]
    shop.sql("INSERT INTO p VALUES (9, 1)")
    assert rows(shop, "SELECT * FROM p") == [(1, 1), (9, 1)]
    shutil.rmtree(warehouse / "p" / "k=2")
    shop.sql("MSCK REPAIR TABLE p")
    assert rows(shop, "SHOW PARTITIONS p") == [("k=1",), ("k=3",)]
    nothing_is_open(shop)


def test_repair_of_a_table_that_never_gave_out_a_write_id_takes_them_for_its_first(
    shop: AcidSession, warehouse: Path
) -> None:
    shop.sql("INSERT INTO p VALUES (2, 1)")
    shop.sql("UPDATE p SET id = id + 10")
    shutil.copytree(warehouse / "p" / "k=1", warehouse / "q" / "k=1")
    shop.sql("MSCK REPAIR TABLE q")
    assert rows(shop, "SELECT * FROM q") == [(11, 1), (12, 1)]
    shop.sql("INSERT INTO q VALUES (5, 1)")
    assert (warehouse / "q" / "k=1" / "delta_0000004_0000004_0000").is_dir()
    assert rows(shop, "SELECT * FROM q") == [(11, 1), (12, 1), (5, 1)]


def test_repair_refuses_what_a_compaction_of_another_store_made(shop: AcidSession, warehouse: Path) -> None:
    made = warehouse / "p" / "k=2" / "base_0000001_v0099999"
    shutil.copytree(next((warehouse / "p" / "k=1").glob("delta*")), made)
    with pytest.raises(AnalysisError, match="transaction 99999"):
        shop.sql("MSCK REPAIR TABLE p")


# --- properties that the engine acts upon ----------------------------------------------------------------------------

PROPERTIES = (
    "acidsql.move.x",
    "acidsql.valid.write.ids",
    "acid.fetch.deleted.rows",
    "orc.compress",
    "hive.compactor.worker.pool",
    "compactor.acidsql.compactor.layout",
    "compactor.hive.compactor.max.num.delta",
    "compactorthreshold.hive.compactor.delta.num.threshold",
    "NO_AUTO_COMPACTION",
    "no_cleanup",
    "numRows",
    "totalSize",
    "COLUMN_STATS_ACCURATE",
    "external.table.purge",
)


@pytest.mark.parametrize("value", ["", "../../x", "-1", "{", "[1]", "9" * 400])
def test_no_value_of_a_property_breaks_more_than_its_own_table(
    shop: AcidSession, spark: SparkSession, warehouse: Path, value: str
) -> None:
    """Statements on the table work, or say what is wrong; those on others, and the compactor, work."""
    for name in PROPERTIES:
        try:
            shop.sql(f"ALTER TABLE t SET TBLPROPERTIES ('{name}' = '{value}')")
        except AcidError:
            continue
    for text in ("INSERT INTO t VALUES (2)", "UPDATE t SET id = 3", "SELECT * FROM t", "DESCRIBE EXTENDED t"):
        try:
            shop.sql(text).collect()
        except AcidError:
            continue
    for text in (
        "ALTER TABLE t COMPACT 'major'",
        "ANALYZE TABLE t COMPUTE STATISTICS",
    ):
        try:
            shop.sql(text)
        except AcidError:
            continue
    shop.sql("INSERT INTO p VALUES (2, 1)")
    shop.sql("ALTER TABLE p PARTITION (k = 1) COMPACT 'major'")
    done = shop.compactor.run_once()
    assert "p" in [one.entry.table for one in done.outcomes if one.state == "ready for cleaning"]
    with acidsql.connect(spark, warehouse=warehouse) as other:
        assert rows(other, "SELECT * FROM p") == [(1, 1), (2, 1)]
    shop.sql("DROP TABLE t")
