"""Names and places that a statement gives: it reaches nothing beyond its own table (rule 10)."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import acidsql
from acidsql.errors import AcidError, AnalysisError
from acidsql.metastore.model import CompactionState as State
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


@pytest.mark.parametrize("place", ["t", "t/below", "p/k=1", "p/k=2", ""])
@pytest.mark.parametrize(
    "text",
    [
        "CREATE TRANSACTIONAL TABLE n LOCATION '{place}' AS SELECT 1 AS id",
        "ALTER TABLE q ADD PARTITION (k = 5) LOCATION '{place}'",
    ],
)
def test_no_statement_puts_files_where_anothers_are(shop: AcidSession, warehouse: Path, text: str, place: str) -> None:
    """More of them in tests/unit/commands."""
    before = tree(warehouse)
    with pytest.raises(AcidError, match=r"is not free|not empty"):
        shop.sql(text.format(place=f"{warehouse}/{place}"))
    assert tree(warehouse) == before
    assert shop.metastore.list_tables("default") == ["p", "q", "t", "u"]
    nothing_is_open(shop)


@pytest.mark.parametrize(
    "text", ["CREATE TRANSACTIONAL TABLE `a b` AS SELECT 1 AS id", "CREATE VIEW `a.b` AS SELECT * FROM t"]
)
def test_a_table_has_a_name_that_hive_takes(shop: AcidSession, warehouse: Path, text: str) -> None:
    before = tree(warehouse.parent)
    with pytest.raises(AnalysisError, match="is not a valid table name"):
        shop.sql(text)
    assert tree(warehouse.parent) == before
    nothing_is_open(shop)


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
    assert "p" in [one.entry.table for one in done.outcomes if one.state == State.READY_FOR_CLEANING]
    with acidsql.connect(spark, warehouse=warehouse) as other:
        assert rows(other, "SELECT * FROM p") == [(1, 1), (2, 1)]
    shop.sql("DROP TABLE t")
