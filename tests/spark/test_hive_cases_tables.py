"""INSERT OVERWRITE, UNION ALL, CREATE TABLE AS, RENAME: TestTxnCommands2 and 3, TestTxnCommandsForMmTable,
TestTxnNoBuckets.

Rows and directories are Hive's (tests/HIVE_CASES.md). Where Hive gives each branch of a UNION ALL a delta of its own,
here all of them are rows of one statement.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from acidsql.session import AcidSession
from tests.spark.answers import nothing_is_open
from tests.spark.hive_cases import BUCKET_1, check_unique, directories, ids, make, nonacid, rows
from tests.spark.hive_files import BUCKET_0, inserts, write_events
from tests.spark.hive_rules import check_table
from tests.spark.hive_tables import register

FIVE = [(1, 2), (2, 4), (5, 6), (6, 8), (9, 10)]
UNION = (
    "SELECT a, b FROM {0} WHERE a BETWEEN 1 AND 3 GROUP BY a, b UNION ALL SELECT a, b FROM {0} WHERE a BETWEEN 5 AND 7"
    " UNION ALL SELECT a, b FROM {0} WHERE a >= 9"
)

# --- INSERT OVERWRITE ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["acidtbl", "mmtbl"])
def test_an_overwrite_makes_a_base_beside_the_deltas(acid: AcidSession, warehouse: Path, table: str) -> None:
    make(acid, table)
    acid.sql(f"INSERT INTO {table} (a, b) VALUES (1, 2)")
    acid.sql(f"INSERT INTO {table} (a, b) VALUES (3, 4)")
    deltas = ["delta_0000001_0000001_0000", "delta_0000002_0000002_0000"]
    assert directories(warehouse / table) == deltas
    nonacid(acid, [(5, 6), (7, 8)])
    acid.sql(f"INSERT OVERWRITE TABLE {table} SELECT a, b FROM nonacid")
    assert directories(warehouse / table) == ["base_0000003", *deltas]
    assert rows(acid, f"SELECT a, b FROM {table}") == [(5, 6), (7, 8)]
    nonacid(acid, FIVE)
    text = UNION.format("nonacid").rpartition(" UNION")[0]
    acid.sql(f"INSERT OVERWRITE TABLE {table} {text}")
    assert rows(acid, f"SELECT a, b FROM {table}") == [(1, 2), (2, 4), (5, 6), (6, 8)]
    assert directories(warehouse / table) == ["base_0000003", "base_0000004", *deltas]


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_an_overwrite_of_partitions_of_an_insert_only_table(acid: AcidSession, warehouse: Path, dynamic: bool) -> None:
    make(acid, "mmtblpart")
    acid.sql("INSERT INTO mmtblpart PARTITION (p = 'odd') VALUES (5, 6), (7, 8)")
    acid.sql("INSERT INTO mmtblpart PARTITION (p = 'even') VALUES (2, 1), (4, 3)")
    for name in ("p=odd", "p=even"):
        [delta] = directories(warehouse / "mmtblpart" / name)
        assert delta.startswith("delta_")
    nonacid(acid, [(5, 5, "'odd'"), (11, 11, "'odd'"), (2, 2, "'even'")], "a, b, p")
    if dynamic:
        acid.sql("INSERT OVERWRITE TABLE mmtblpart PARTITION (p) SELECT a, b, p FROM nonacid")
    else:
        for p in ("odd", "even"):
            acid.sql(f"INSERT OVERWRITE TABLE mmtblpart PARTITION (p = '{p}') SELECT a, b FROM nonacid WHERE p = '{p}'")
    for name in ("p=odd", "p=even"):
        [base, delta] = directories(warehouse / "mmtblpart" / name)
        assert (base[:5], delta[:6]) == ("base_", "delta_")
    assert rows(acid, "SELECT a, b FROM mmtblpart WHERE p = 'even'") == [(2, 2)]
    assert rows(acid, "SELECT a, b FROM mmtblpart WHERE p = 'odd'") == [(11, 11), (5, 5)]
    assert rows(acid, "SELECT a, b FROM mmtblpart") == [(11, 11), (2, 2), (5, 5)]


def test_a_table_is_overwritten_by_a_join_with_itself(acid: AcidSession) -> None:
    make(acid, "t", "acidtblpart")
    acid.sql("INSERT INTO t (a, b) VALUES (1, 7)")
    acid.sql("INSERT OVERWRITE TABLE t SELECT 2, 9 FROM t T INNER JOIN t S ON T.a = S.a")
    assert rows(acid, "SELECT a, b FROM t") == [(2, 9)]
    acid.sql("INSERT INTO acidtblpart PARTITION (p = 1) (a, b) VALUES (1, 7)")
    acid.sql("INSERT INTO acidtblpart PARTITION (p = 2) (a, b) VALUES (1, 8)")
    acid.sql("INSERT OVERWRITE TABLE acidtblpart PARTITION (p = 1) SELECT a, b FROM acidtblpart")
    assert rows(acid, "SELECT a, b FROM acidtblpart") == [(1, 7), (1, 8), (1, 8)]


# --- INSERT … SELECT -------------------------------------------------------------------------------------------------


def test_rows_go_from_a_partition_into_a_table(acid: AcidSession) -> None:
    make(acid, "acidtbl", "acidtblpart", "mmtbl")
    acid.sql("INSERT INTO acidtblpart PARTITION (p = 1) (a, b) VALUES (1, 2)")
    for table in ("acidtbl", "mmtbl"):
        acid.sql(f"INSERT INTO {table} (a, b) SELECT a, b FROM acidtblpart WHERE p = 1")
        assert rows(acid, f"SELECT a, b FROM {table}") == [(1, 2)]


@pytest.mark.parametrize("driver_rows", ["20000", "0"], ids=["driver", "job"])
def test_rows_of_a_union_get_row_ids_of_their_own(acid: AcidSession, warehouse: Path, driver_rows: str) -> None:
    acid.sql(f"SET acidsql.write.driver.rows = {driver_rows}")
    make(acid, "acidtbl", "t")
    acid.sql("INSERT INTO acidtbl VALUES " + ", ".join(map(str, FIVE)))
    acid.sql(f"INSERT INTO t (a, b) {UNION.format('acidtbl')}")
    assert rows(acid, "SELECT a, b FROM t") == sorted(FIVE, key=repr)
    check_unique(acid, "t")
    check_table(warehouse / "t")
    acid.sql(f"INSERT OVERWRITE TABLE t {UNION.format('acidtbl')}")  # Hive refuses OVERWRITE with UNION ALL
    assert rows(acid, "SELECT a, b FROM t") == sorted(FIVE, key=repr)
    check_unique(acid, "t")


# --- tables without buckets ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("driver_rows", ["20000", "0"], ids=["driver", "job"])
def test_updates_and_deletes_stay_with_the_writer_of_their_row(
    acid: AcidSession, tmp_path: Path, driver_rows: str
) -> None:
    acid.sql(f"SET acidsql.write.driver.rows = {driver_rows}")
    root, fields = tmp_path / "nobuckets", "c1:int,c2:int,c3:int"
    for writer, key, values in ((0, BUCKET_0, (0, 3)), (1, BUCKET_1, (1, 2))):
        file = root / f"delta_0000001_0000001_0000/bucket_{writer:05d}_0"
        write_events(file, fields, inserts(1, [(v, v, v) for v in values], key))
    register(acid, root, [(c, "int") for c in ("c1", "c2", "c3")], name="nobuckets")
    columns = "c1, c2, c3"
    assert ids(acid, "nobuckets", columns) == [
        (1, BUCKET_0, 0, 0, 0, 0),
        (1, BUCKET_0, 1, 3, 3, 3),
        (1, BUCKET_1, 0, 1, 1, 1),
        (1, BUCKET_1, 1, 2, 2, 2),
    ]
    acid.sql("UPDATE nobuckets SET c3 = 17 WHERE c3 IN (0, 1)")
    found = ids(acid, "nobuckets", columns)
    if driver_rows == "0":  # a task of a job counts all of its events, where Hive begins anew in each file
        found = [(*r[:2], r[2] if r[0] == 1 else 0, *r[3:]) for r in found]
        check_unique(acid, "nobuckets")
    assert found == [
        (1, BUCKET_0, 1, 3, 3, 3),
        (1, BUCKET_1, 1, 2, 2, 2),
        (2, BUCKET_0, 0, 0, 0, 17),
        (2, BUCKET_1, 0, 1, 1, 17),
    ]
    assert sorted(str(p.relative_to(root)) for p in root.glob("*2_0000/bucket*")) == [
        f"{d}_0000002_0000002_0000/bucket_0000{n}" for d in ("delete_delta", "delta") for n in (0, 1)
    ]


def test_an_update_over_many_partitions(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE nobuckets (c1 int, c2 int) PARTITIONED BY (c3 int)")
    nonacid(acid, [(n, n, n) for n in (0, 3, 1, 2, 3, 4, 5, 6)], "c1, c2, c3", "tmp")
    acid.sql("INSERT INTO nobuckets PARTITION (c3) SELECT * FROM tmp")
    assert acid.table("nobuckets").count() == 8
    assert len(rows(acid, "SELECT * FROM nobuckets WHERE c2 IN (0, 3)")) == 3
    acid.sql("UPDATE nobuckets SET c2 = 17 WHERE c2 IN (0, 3)")
    assert rows(acid, "SELECT * FROM nobuckets WHERE c2 = 17") == [(0, 17, 0), (3, 17, 3), (3, 17, 3)]
    check_table(warehouse / "nobuckets")


def test_a_table_of_a_query_over_tables_of_all_kinds(acid: AcidSession, warehouse: Path) -> None:
    make(acid, "acidtbl")
    acid.sql("INSERT INTO acidtbl VALUES (1, 2), (3, 4)")
    nonacid(acid, [(1, 2), (3, 4)])
    twice = [(1, 2), (1, 2), (3, 4), (3, 4)]
    queries = {
        "SELECT a, b FROM nonacid": [(1, 2), (3, 4)],
        "SELECT a, b FROM acidtbl": [(1, 2), (3, 4)],
        "SELECT a, b FROM nonacid UNION ALL SELECT a, b FROM acidtbl": twice,
        "SELECT a, b FROM nonacid UNION DISTINCT SELECT a, b FROM acidtbl": [(1, 2), (3, 4)],
    }
    for number, (query, expected) in enumerate(queries.items()):
        table = f"myctas{number}"
        properties = "TBLPROPERTIES ('transactional'='true', 'transactional_properties'='default')"
        acid.sql(f"CREATE TABLE {table} STORED AS ORC {properties} AS {query}")
        assert rows(acid, f"SELECT a, b FROM {table}") == expected
        assert directories(warehouse / table) == ["delta_0000001_0000001_0000"]
        check_unique(acid, table)
        check_table(warehouse / table)


# --- the catalog -----------------------------------------------------------------------------------------------------


def test_a_table_keeps_its_row_ids_through_two_renames(acid: AcidSession, warehouse: Path) -> None:
    for database in ("mydb1", "mydb2"):
        acid.sql(f"CREATE DATABASE {database}")
    acid.sql("CREATE TRANSACTIONAL TABLE mydb1.T (a int, b int)")
    acid.sql("INSERT INTO mydb1.T VALUES (1, 2), (4, 5)")
    acid.sql("UPDATE mydb1.T SET b = 6 WHERE b = 5")
    expected = [(1, BUCKET_0, 0, 1, 2), (2, BUCKET_0, 0, 4, 6)]
    acid.sql("ALTER TABLE mydb1.T RENAME TO mydb1.S")
    assert ids(acid, "mydb1.S") == expected
    acid.sql("ALTER TABLE mydb1.S RENAME TO mydb2.bar")
    assert ids(acid, "mydb2.bar") == expected
    [valid] = acid.metastore.get_valid_write_ids(["mydb2.bar"], acid.metastore.get_valid_txns())
    assert valid.high_watermark == 4, "each rename takes a write id"


def test_a_query_without_acid_tables_opens_no_transaction(acid: AcidSession) -> None:
    nonacid(acid, [(1, 2)])
    frame = acid.sql("SELECT * FROM nonacid")
    nothing_is_open(acid)
    assert frame.count() == 1
