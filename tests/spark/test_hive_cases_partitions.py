"""Partitions that are emptied, dropped and added, and the write ids of statements on them: TestTxnCommands,
TestTxnCommandsForMmTable.

Rows, names and write ids are Hive's (tests/HIVE_CASES.md). Hive keeps the files of a dropped partition under a base
until its cleaner comes; here they are gone at once, with the same rows left.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from acidsql.errors import AlreadyExists
from acidsql.metastore.model import Capabilities
from acidsql.session import AcidSession
from tests.spark.hive_cases import INSERT_ONLY, directories, make, rows


def bases(path: Path) -> list[str]:
    return [d for d in directories(path) if d.startswith("base_")]


def write_id(acid: AcidSession, table: str) -> int:
    """The high watermark; nothing below it is open or aborted."""
    [valid] = acid.metastore.get_valid_write_ids([table], acid.metastore.get_valid_txns())
    assert valid.exceptions == ()
    return valid.high_watermark


# --- TRUNCATE --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["acidtbl", "mmtbl"])
def test_a_truncated_table_has_the_next_base(acid: AcidSession, warehouse: Path, table: str) -> None:
    make(acid, table)
    acid.sql(f"INSERT INTO {table} VALUES (1, 2), (3, 4)")
    acid.sql(f"TRUNCATE TABLE {table}")
    assert bases(warehouse / table) == ["base_0000002"]
    assert rows(acid, f"SELECT * FROM {table}") == []


@pytest.mark.parametrize("table", ["acidtblpart", "mmtblpart"])
def test_one_partition_is_truncated_and_then_all(acid: AcidSession, warehouse: Path, table: str) -> None:
    make(acid, table)
    acid.sql(f"INSERT INTO {table} PARTITION (p = 'a') VALUES (1, 2), (3, 4)")
    acid.sql(f"INSERT INTO {table} PARTITION (p = 'b') VALUES (5, 5), (4, 4)")
    acid.sql(f"TRUNCATE TABLE {table} PARTITION (p = 'b')")
    assert bases(warehouse / table / "p=b") == ["base_0000003"]
    assert directories(warehouse / table / "p=a") == ["delta_0000001_0000001_0000"]
    assert rows(acid, f"SELECT * FROM {table}") == [(1, 2, "a"), (3, 4, "a")]
    acid.sql(f"TRUNCATE TABLE {table}")
    assert bases(warehouse / table / "p=a") == ["base_0000004"]
    assert rows(acid, f"SELECT * FROM {table}") == []


# --- DROP PARTITION, RENAME PARTITION --------------------------------------------------------------------------------


def test_a_dropped_partition_is_made_anew(acid: AcidSession, warehouse: Path) -> None:
    make(acid, "acidtblpart")
    acid.sql("INSERT INTO acidtblpart PARTITION (p = 'a') VALUES (1, 2), (3, 4)")
    acid.sql("INSERT INTO acidtblpart PARTITION (p = 'b') VALUES (5, 5), (4, 4)")
    acid.sql("ALTER TABLE acidtblpart DROP PARTITION (p = 'b')")
    assert rows(acid, "SELECT * FROM acidtblpart") == [(1, 2, "a"), (3, 4, "a")]
    assert not (warehouse / "acidtblpart" / "p=b").exists()
    acid.sql("INSERT INTO acidtblpart PARTITION (p = 'b') VALUES (3, 3)")
    assert rows(acid, "SELECT * FROM acidtblpart") == [(1, 2, "a"), (3, 3, "b"), (3, 4, "a")]


def test_partitions_of_three_keys_are_dropped_by_one_and_renamed(acid: AcidSession, warehouse: Path) -> None:
    make(acid, "acidtblnestedpart")
    root = warehouse / "acidtblnestedpart"
    for spec, values in {
        "p1='a', p2='a', p3='a'": "(1, 1), (2, 2)",
        "p1='a', p2='a', p3='b'": "(3, 3), (4, 4)",
        "p1='a', p2='b', p3='c'": "(7, 7), (8, 8)",
    }.items():
        acid.sql(f"INSERT INTO acidtblnestedpart PARTITION ({spec}) VALUES {values}")
    acid.sql("ALTER TABLE acidtblnestedpart DROP PARTITION (p2 = 'a')")
    assert rows(acid, "SELECT a FROM acidtblnestedpart") == [(7,), (8,)]
    assert rows(acid, "SHOW PARTITIONS acidtblnestedpart") == [("p1=a/p2=b/p3=c",)]
    assert bases(root / "p1=a/p2=b/p3=c") == []
    old, new = "p1='a', p2='b', p3='c'", "p1='a', p2='c', p3='c'"
    acid.sql(f"ALTER TABLE acidtblnestedpart PARTITION ({old}) RENAME TO PARTITION ({new})")
    assert rows(acid, "SELECT * FROM acidtblnestedpart") == [(7, 7, "a", "c", "c"), (8, 8, "a", "c", "c")]
    assert (bases(root / "p1=a/p2=c/p3=c"), (root / "p1=a/p2=b/p3=c").exists()) == ([], False)


# --- ADD PARTITION ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("properties", ["TBLPROPERTIES ('transactional'='true')", INSERT_ONLY], ids=["full", "mm"])
def test_partitions_that_are_there_are_left_alone(acid: AcidSession, properties: str) -> None:
    """TestTxnAddPartition, without the files that LOCATION brings there."""
    acid.sql(f"CREATE TABLE part (a int, b int) PARTITIONED BY (p int) STORED AS ORC {properties}")
    acid.sql("INSERT INTO part PARTITION (p = 0) VALUES (0, 2), (0, 4)")
    acid.sql("ALTER TABLE part ADD PARTITION (p = 1) PARTITION (p = 2)")
    with pytest.raises(AlreadyExists, match="Partition already exists"):
        acid.sql("ALTER TABLE part ADD PARTITION (p = 0)")
    acid.sql("ALTER TABLE part ADD IF NOT EXISTS PARTITION (p = 0) PARTITION (p = 2) PARTITION (p = 3)")
    assert rows(acid, "SHOW PARTITIONS part") == [(f"p={n}",) for n in range(4)]
    assert rows(acid, "SELECT * FROM part") == [(0, 2, 0), (0, 4, 0)]


# --- UPDATE ----------------------------------------------------------------------------------------------------------


def test_an_update_of_several_partitions(acid: AcidSession) -> None:
    make(acid, "acidtblpart")
    for p in (1, 2):
        acid.sql(f"INSERT INTO acidtblpart PARTITION (p = {p}) (a, b) VALUES (1, 2), (3, 4), (5, 6)")
    acid.sql("UPDATE acidtblpart SET b = b + 1 WHERE a = 3")
    assert rows(acid, "SELECT p, a, b FROM acidtblpart") == [
        (p, a, b) for p in "12" for a, b in ((1, 2), (3, 5), (5, 6))
    ]


# --- write ids -------------------------------------------------------------------------------------------------------


def test_statements_on_partitions_take_write_ids_where_others_go_by_them(
    acid: AcidSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engines of a Hive Metastore keep partitions by write ids; nobody does with the embedded store."""
    monkeypatch.setattr(type(acid.metastore), "capabilities", Capabilities(is_shared_with_hive=True))
    acid.sql(f"CREATE TABLE part (f1 string) PARTITIONED BY (ds string) STORED AS ORC {INSERT_ONLY}")
    assert write_id(acid, "default.part") == 0
    acid.sql("ALTER TABLE part ADD PARTITION (ds = '2013-04-05')")
    assert write_id(acid, "default.part") == 1
    acid.sql("ALTER TABLE part DROP PARTITION (ds = '2013-04-05')")
    assert write_id(acid, "default.part") == 2
    acid.sql("TRUNCATE TABLE part")
    assert write_id(acid, "default.part") == 3


def test_alterations_take_write_ids(acid: AcidSession) -> None:
    make(acid, "mmtblpart")
    acid.sql("INSERT INTO mmtblpart PARTITION (p = 'x') VALUES (1, 2)")
    acid.sql("ALTER TABLE mmtblpart SET TBLPROPERTIES ('a'='b')")
    assert write_id(acid, "default.mmtblpart") == 2
    acid.sql("ALTER TABLE mmtblpart PARTITION (p = 'x') RENAME TO PARTITION (p = 'y')")
    assert write_id(acid, "default.mmtblpart") == 3
