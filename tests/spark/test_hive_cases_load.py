"""LOAD DATA in the situations of Hive's TestTxnLoadData; rows, row ids and names are Hive's (tests/HIVE_CASES.md)."""

from __future__ import annotations

from pathlib import Path

from acidsql.session import AcidSession
from tests.spark.hive_cases import ids, make, rows
from tests.spark.hive_files import BUCKET_0, Row, write_orc

FIELDS = "struct<a:int,b:int>"


def export(folder: Path, *values: Row) -> Path:
    """What EXPORT TABLE leaves of a table without transactions."""
    write_orc(folder / "data" / "000000_0", FIELDS, values)
    return folder / "data"


def test_loaded_rows_are_beside_inserted_ones(acid: AcidSession, warehouse: Path, tmp_path: Path) -> None:
    make(acid, "t")
    acid.sql("INSERT INTO t VALUES (0, 2), (0, 4)")
    acid.sql(f"LOAD DATA LOCAL INPATH '{export(tmp_path / '1', (1, 2), (3, 4))}' INTO TABLE t")
    assert ids(acid) == [
        (1, BUCKET_0, 0, 0, 2),
        (1, BUCKET_0, 1, 0, 4),
        (2, BUCKET_0, 0, 1, 2),
        (2, BUCKET_0, 1, 3, 4),
    ]
    assert (warehouse / "t/delta_0000002_0000002_0000/000000_0").is_file()
    acid.sql("INSERT INTO t VALUES (2, 2)")
    acid.sql(f"LOAD DATA INPATH '{export(tmp_path / '2', (5, 6), (7, 8))}' OVERWRITE INTO TABLE t")
    assert ids(acid) == [(4, BUCKET_0, 0, 5, 6), (4, BUCKET_0, 1, 7, 8)]
    assert (warehouse / "t/base_0000004/000000_0").is_file()
    acid.sql("INSERT INTO t VALUES (6, 6)")
    assert ids(acid)[2:] == [(5, BUCKET_0, 0, 6, 6)]


def test_loaded_rows_are_changed(acid: AcidSession, warehouse: Path, tmp_path: Path) -> None:
    make(acid, "t")
    data = export(tmp_path / "1", (1, 2), (3, 4))
    acid.sql(f"LOAD DATA LOCAL INPATH '{data}' INTO TABLE t")
    assert ids(acid) == [(1, BUCKET_0, 0, 1, 2), (1, BUCKET_0, 1, 3, 4)]
    acid.sql("UPDATE t SET b = 17 WHERE a = 1")
    assert ids(acid) == [(1, BUCKET_0, 1, 3, 4), (2, BUCKET_0, 0, 1, 17)]
    assert (warehouse / "t/delta_0000002_0000002_0000/bucket_00000").is_file()
    acid.sql("INSERT INTO t VALUES (2, 2)")
    acid.sql("DELETE FROM t WHERE a = 3")
    assert ids(acid) == [(2, BUCKET_0, 0, 1, 17), (3, BUCKET_0, 0, 2, 2)]
    acid.sql(f"LOAD DATA LOCAL INPATH '{data}' OVERWRITE INTO TABLE t")
    assert ids(acid) == [(5, BUCKET_0, 0, 1, 2), (5, BUCKET_0, 1, 3, 4)]
    acid.sql(f"LOAD DATA LOCAL INPATH '{data}' INTO TABLE t")
    acid.sql("UPDATE t SET b = 17 WHERE a = 1")
    acid.sql("DELETE FROM t WHERE a = 3")
    acid.sql("INSERT INTO t VALUES (2, 2)")
    assert ids(acid) == [(7, BUCKET_0, 0, 1, 17), (7, BUCKET_0, 1, 1, 17), (9, BUCKET_0, 0, 2, 2)]


def test_partitions_are_loaded(acid: AcidSession, warehouse: Path, tmp_path: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (a int, b int) PARTITIONED BY (p int)")
    for number, p in ((0, 0), (1, 1), (2, 1)):
        data = export(tmp_path / str(number), (number, 2), (number, 4))
        acid.sql(f"LOAD DATA LOCAL INPATH '{data}' INTO TABLE t PARTITION (p = {p})")
    columns = "p, a, b"
    first = [(1, BUCKET_0, 0, 0, 0, 2), (1, BUCKET_0, 1, 0, 0, 4)]
    assert ids(acid, columns=columns) == [
        *first,
        (2, BUCKET_0, 0, 1, 1, 2),
        (2, BUCKET_0, 1, 1, 1, 4),
        (3, BUCKET_0, 0, 1, 2, 2),
        (3, BUCKET_0, 1, 1, 2, 4),
    ]
    assert (warehouse / "t/p=1/delta_0000003_0000003_0000/000000_0").is_file()
    data = export(tmp_path / "4", (5, 2), (5, 4))
    acid.sql(f"LOAD DATA INPATH '{data}' OVERWRITE INTO TABLE t PARTITION (p = 1)")
    assert ids(acid, columns=columns) == [*first, (4, BUCKET_0, 0, 1, 5, 2), (4, BUCKET_0, 1, 1, 5, 4)]
    assert (warehouse / "t/p=1/base_0000004/000000_0").is_file()


def test_a_file_is_loaded_beside_the_files_of_a_converted_table(
    acid: AcidSession, warehouse: Path, tmp_path: Path
) -> None:
    write_orc(tmp_path / "t" / "000000_0", FIELDS, [(0, 2), (0, 4)])
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (a int, b int) LOCATION '{tmp_path / 't'}'")
    acid.sql(f"LOAD DATA LOCAL INPATH '{export(tmp_path / '1', (1, 2), (3, 4))}' INTO TABLE t")
    converted: list[Row] = [(0, BUCKET_0, 0, 0, 2), (0, BUCKET_0, 1, 0, 4)]
    assert ids(acid) == [*converted, (1, BUCKET_0, 0, 1, 2), (1, BUCKET_0, 1, 3, 4)]
    acid.sql(f"LOAD DATA LOCAL INPATH '{export(tmp_path / '2', (5, 6), (7, 8))}' OVERWRITE INTO TABLE t")
    assert ids(acid) == [(2, BUCKET_0, 0, 5, 6), (2, BUCKET_0, 1, 7, 8)]
    acid.sql("INSERT INTO t VALUES (9, 9)")
    assert ids(acid)[2:] == [(3, BUCKET_0, 0, 9, 9)]


def test_an_insert_only_table_has_its_rows(acid: AcidSession) -> None:
    make(acid, "mmtbl")
    acid.sql("INSERT INTO mmtbl VALUES (1, 2), (3, 4)")
    assert rows(acid, "SELECT a, b FROM mmtbl") == [(1, 2), (3, 4)]
