"""Names and places that a statement gives: it reaches nothing beyond its own table (rule 10)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from acidsql.errors import AcidError, AlreadyExists, AnalysisError
from tests.spark.tree import tree
from tests.unit.commands.session import Session


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "warehouse"


@pytest.fixture
def shop(warehouse: Path) -> Iterator[Session]:
    made = Session(warehouse)
    made.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    made.insert("t", 1)
    made.sql("CREATE TRANSACTIONAL TABLE p (id int) PARTITIONED BY (k int)")
    made.insert("p", 1, part=1)
    made.sql("CREATE TRANSACTIONAL TABLE u (id int)")
    made.sql("CREATE TRANSACTIONAL TABLE q (id int) PARTITIONED BY (k int)")
    yield made
    made.close()


@pytest.mark.parametrize("place", ["t", "t/below", "p", "p/k=1", "p/k=2", ""])
@pytest.mark.parametrize(
    "text",
    [
        "CREATE TRANSACTIONAL TABLE n (id int) LOCATION '{place}'",
        "CREATE TABLE n LIKE u LOCATION '{place}'",
        "ALTER TABLE u SET LOCATION '{place}'",
        "CREATE DATABASE d LOCATION '{place}'",
    ],
)
def test_no_statement_puts_files_where_anothers_are(shop: Session, warehouse: Path, text: str, place: str) -> None:
    before = tree(warehouse)
    with pytest.raises(AcidError, match=r"is not free|has write ids|acidsql.db is not a complete ORC file"):
        shop.sql(text.format(place=f"{warehouse}/{place}"))
    assert tree(warehouse) == before
    assert shop.metastore.list_databases() == ["default"]
    assert shop.metastore.list_tables("default") == ["p", "q", "t", "u"]
    assert shop.nothing_is_open()


@pytest.mark.parametrize("name", ["../escape", "a b", ".", "x/y"])
def test_a_database_is_one_directory_below_the_warehouse(shop: Session, warehouse: Path, name: str) -> None:
    before = tree(warehouse.parent)
    with pytest.raises(AnalysisError, match=r"line 1:17 .* is not a valid database name"):
        shop.sql(f"CREATE DATABASE `{name}`")
    assert tree(warehouse.parent) == before


@pytest.mark.parametrize("text", ["CREATE TRANSACTIONAL TABLE `../n` (id int)", "ALTER TABLE t RENAME TO `../n`"])
def test_a_table_has_a_name_that_hive_takes(shop: Session, warehouse: Path, text: str) -> None:
    before = tree(warehouse.parent)
    with pytest.raises(AnalysisError, match="is not a valid table name"):
        shop.sql(text)
    assert tree(warehouse.parent) == before
    assert shop.nothing_is_open()


def test_a_place_is_free_for_another_table_once_its_own_is_dropped(shop: Session, warehouse: Path) -> None:
    shop.sql("DROP TABLE t")
    shop.sql(f"CREATE TRANSACTIONAL TABLE n (id int) LOCATION '{warehouse}/t'")
    with pytest.raises(AlreadyExists, match=r"default\.n"):
        shop.sql("CREATE TRANSACTIONAL TABLE t (id int)")


@pytest.mark.parametrize("value", ['["{home}/victim", "{home}/stolen"]', "no json"])
def test_no_property_of_a_table_moves_a_directory(shop: Session, warehouse: Path, value: str) -> None:
    """It did, in the first session that looked at the table, whoever had set it."""
    (warehouse / "victim").mkdir()
    text = f"'acidsql.move.x' = '{value.format(home=warehouse)}'"
    shop.sql(f"CREATE TRANSACTIONAL TABLE crafted (id int) TBLPROPERTIES ({text})")
    shop.sql("CREATE TABLE alike LIKE crafted")
    shop.sql(f"ALTER TABLE t SET TBLPROPERTIES ({text})")
    shop.sql("ALTER TABLE crafted RENAME TO made")
    for table in ("made", "alike", "t"):
        shop.sql(f"DROP TABLE {table}")
    assert (warehouse / "victim").is_dir()
    assert not (warehouse / "stolen").exists()


# --- MSCK REPAIR TABLE -----------------------------------------------------------------------------------------------


def test_repair_refuses_a_directory_of_another_table_by_its_name(shop: Session, warehouse: Path) -> None:
    """Its rows would have come to be seen one after another, as this table is written to."""
    for number in range(4):
        shop.insert("q", number, part=2)
    shutil.copytree(warehouse / "q" / "k=2", warehouse / "p" / "k=2")
    (warehouse / "p" / "k=3").mkdir()
    with pytest.raises(AnalysisError, match=r"p/k=2 does not belong to default.p: it has write id 4, .* is 1"):
        shop.sql("MSCK REPAIR TABLE p")
    assert shop.partitions("p") == ["1"]
    shutil.rmtree(warehouse / "p" / "k=2")
    shop.sql("MSCK REPAIR TABLE p")
    assert shop.partitions("p") == ["1", "3"]
    assert shop.nothing_is_open()


def test_repair_of_a_table_that_never_gave_out_a_write_id_takes_them_for_its_first(
    shop: Session, warehouse: Path
) -> None:
    shop.insert("p", 2, part=1)
    shop.insert("p", 3, part=1)
    shutil.copytree(warehouse / "p" / "k=1", warehouse / "q" / "k=1")
    shop.sql("MSCK REPAIR TABLE q")
    [seen] = shop.metastore.get_valid_write_ids(["default.q"], shop.metastore.get_valid_txns())
    assert [w for w in range(1, 5) if seen.is_valid(w)] == [1, 2, 3]
    shop.insert("q", 5, part=1)
    assert (warehouse / "q" / "k=1" / "delta_0000004_0000004_0000").is_dir()


def test_repair_refuses_what_a_compaction_of_another_store_made(shop: Session, warehouse: Path) -> None:
    made = warehouse / "p" / "k=2" / "base_0000001_v0099999"
    shutil.copytree(next((warehouse / "p" / "k=1").glob("delta*")), made)
    with pytest.raises(AnalysisError, match="transaction 99999"):
        shop.sql("MSCK REPAIR TABLE p")
