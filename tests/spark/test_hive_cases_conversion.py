"""Tables whose files are older than their transactions: TestTxnCommands, TestTxnCommands2, TestTxnNoBuckets.

Hive converts such a table in place and gives its first write id as 10000001; here the directory is taken in with that
same list of write ids. Files, rows and row ids are those of Hive's tests (tests/HIVE_CASES.md). A new version of a row
stays with its writer and its statement id, as in Hive 3; Hive 4 gives it statement id 1 and any writer.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from acidsql.session import AcidSession
from tests.spark.hive_cases import BUCKET_1, check_unique, directories, ids, rows
from tests.spark.hive_files import BUCKET_0, Row, inserts, write_events, write_orc

WRITTEN = 10_000_000
FIELDS = "struct<a:int,b:int>"
BUCKETED = "CLUSTERED BY (a) INTO 2 BUCKETS"


def originals(root: Path, files: dict[str, list[Row]]) -> None:
    """Files without event columns, by name."""
    for name, values in files.items():
        write_orc(root / name, FIELDS, values)


def convert(acid: AcidSession, root: Path, clauses: str = "", version: str = "1") -> None:
    """The table ``t`` of a directory; by default with Hive's old hash, by which ``a`` lies in bucket ``a % 2``."""
    acid.sql(
        f"CREATE TABLE t (a int, b int) {clauses} STORED AS ORC LOCATION '{root}' TBLPROPERTIES"
        f" ('transactional'='true', 'bucketing_version'='{version}',"
        f" 'acidsql.valid.write.ids'='default.t:{WRITTEN}:9223372036854775807::')"
    )


# --- row ids ---------------------------------------------------------------------------------------------------------


def test_files_of_one_bucket_are_numbered_on_and_a_new_delta_begins_anew(acid: AcidSession, tmp_path: Path) -> None:
    root = tmp_path / "t"
    originals(root, {"000000_0": [], "000001_0": [(1, 2)], "000001_0_copy_1": [(0, 12), (1, 5)]})
    convert(acid, root, BUCKETED, version="2")
    acid.sql("INSERT INTO t VALUES (1, 17)")
    assert ids(acid) == [
        (0, BUCKET_1, 0, 1, 2),
        (0, BUCKET_1, 1, 0, 12),
        (0, BUCKET_1, 2, 1, 5),
        (10000001, BUCKET_1, 0, 1, 17),
    ]
    assert (root / "delta_10000001_10000001_0000/bucket_00001").is_file()


STATEMENTS = [
    "INSERT INTO t (a, b) VALUES (0, 15), (1, 16)",
    "UPDATE t SET b = 120 WHERE a = 0 AND b = 12",
    "INSERT INTO t (a, b) VALUES (0, 17)",
    "DELETE FROM t WHERE a = 1 AND b = 3",
]


def test_both_buckets_of_a_converted_table_are_changed(acid: AcidSession, tmp_path: Path) -> None:
    root = tmp_path / "t"
    originals(root, {"000000_0": [], "000000_0_copy_1": [(0, 13), (0, 12)]})
    originals(root, {"000001_0": [(1, 3), (1, 2)], "000001_0_copy_1": [(1, 5), (1, 4)], "000001_0_copy_2": [(1, 6)]})
    convert(acid, root, BUCKETED)
    for statement in STATEMENTS:
        acid.sql(statement)
    assert ids(acid) == [
        (0, BUCKET_0, 0, 0, 13),
        (0, BUCKET_1, 1, 1, 2),
        (0, BUCKET_1, 2, 1, 5),
        (0, BUCKET_1, 3, 1, 4),
        (0, BUCKET_1, 4, 1, 6),
        (10000001, BUCKET_0, 0, 0, 15),
        (10000001, BUCKET_1, 0, 1, 16),
        (10000002, BUCKET_0, 0, 0, 120),
        (10000003, BUCKET_0, 0, 0, 17),
    ]
    check_unique(acid, "t")


def test_a_table_without_buckets_is_changed(acid: AcidSession, tmp_path: Path) -> None:
    root = tmp_path / "t"
    originals(root, {"000000_0": [(1, 2), (1, 3)], "000000_0_copy_1": [(0, 12), (0, 13), (1, 4), (1, 5)]})
    originals(root, {"000000_0_copy_2": [(1, 6)]})
    convert(acid, root)
    for statement in STATEMENTS:
        acid.sql(statement)
    assert ids(acid) == [
        (0, BUCKET_0, 0, 1, 2),
        (0, BUCKET_0, 3, 0, 13),
        (0, BUCKET_0, 4, 1, 4),
        (0, BUCKET_0, 5, 1, 5),
        (0, BUCKET_0, 6, 1, 6),
        (10000001, BUCKET_0, 0, 0, 15),
        (10000001, BUCKET_0, 1, 1, 16),
        (10000002, BUCKET_0, 0, 0, 120),
        (10000003, BUCKET_0, 0, 0, 17),
    ]


def test_files_at_several_levels_are_numbered_in_the_order_of_their_paths(acid: AcidSession, tmp_path: Path) -> None:
    root = tmp_path / "t"
    originals(root, {"000000_0": [(12, 12)], "HIVE_UNION_SUBDIR_1/000000_0": [(1, 2), (2, 4)]})
    originals(root, {"HIVE_UNION_SUBDIR_2/000000_0": [(5, 6)], "HIVE_UNION_SUBDIR_2/000001_0": [(6, 8)]})
    originals(root, {"HIVE_UNION_SUBDIR_3/000000_0": [(9, 10)], "HIVE_UNION_SUBDIR_15/000000_0": [(10, 20), (20, 40)]})
    originals(root, {"HIVE_UNION_SUBDIR_16/000000_0": [(50, 60)], "HIVE_UNION_SUBDIR_16/000001_0": [(60, 80)]})
    convert(acid, root)
    first = [
        (0, BUCKET_0, 0, 12, 12),
        (0, BUCKET_0, 1, 1, 2),
        (0, BUCKET_0, 2, 2, 4),
        (0, BUCKET_0, 3, 10, 20),
        (0, BUCKET_0, 4, 20, 40),
        (0, BUCKET_0, 5, 50, 60),
        (0, BUCKET_0, 6, 5, 6),
        (0, BUCKET_0, 7, 9, 10),
    ]
    assert ids(acid) == [*first, (0, BUCKET_1, 0, 60, 80), (0, BUCKET_1, 1, 6, 8)]
    acid.sql("UPDATE t SET b = 88 WHERE b = 80")
    acid.sql("DELETE FROM t WHERE b = 8")
    assert ids(acid) == [*first, (10000001, BUCKET_1, 0, 60, 88)]


@pytest.mark.usefixtures("search")
def test_a_condition_does_not_change_row_ids(acid: AcidSession, tmp_path: Path) -> None:
    originals(tmp_path / "t", {"000000_0": [(1, 2), (2, 4), (5, 6), (6, 8), (9, 10)]})
    convert(acid, tmp_path / "t")
    assert rows(acid, "SELECT a FROM t WHERE b > 6") == [(6,), (9,)]
    assert ids(acid, columns="a", where="b > 6") == [(0, BUCKET_0, 3, 6), (0, BUCKET_0, 4, 9)]
    assert ids(acid, columns="a", where="b > 0") == [(0, BUCKET_0, n, a) for n, a in enumerate((1, 2, 5, 6, 9))]
    acid.sql("UPDATE t SET b = 17 WHERE a = 1")
    left = [(0, BUCKET_0, n, b) for n, b in ((1, 4), (2, 6), (3, 8), (4, 10))]
    assert ids(acid, columns="b", where="b > 0") == [*left, (10000001, BUCKET_0, 0, 17)]


# --- rows and directories --------------------------------------------------------------------------------------------


def test_rows_of_a_converted_table_are_updated_and_deleted(acid: AcidSession, tmp_path: Path) -> None:
    originals(tmp_path / "t", {"000000_0": [], "000001_0": [(1, 2), (3, 4), (5, 6), (7, 8), (9, 10)]})
    convert(acid, tmp_path / "t", BUCKETED)
    acid.sql("UPDATE t SET b = b * 2 WHERE b IN (4, 10)")
    acid.sql("DELETE FROM t WHERE a = 7")
    assert rows(acid, "SELECT a, b FROM t") == [(1, 2), (3, 8), (5, 6), (9, 20)]
    acid.sql("DELETE FROM t WHERE a = 1")
    assert rows(acid, "SELECT a, b FROM t") == [(3, 8), (5, 6), (9, 20)]


def test_an_insert_makes_a_delta_beside_the_files(acid: AcidSession, tmp_path: Path) -> None:
    root = tmp_path / "t"
    originals(root, {"000000_0": [], "000001_0": [(1, 2)]})
    convert(acid, root, BUCKETED)
    assert sorted(p.name for p in root.iterdir()) == ["000000_0", "000001_0"]
    assert rows(acid, "SELECT a, b FROM t") == [(1, 2)]
    acid.sql("INSERT INTO t (a, b) VALUES (3, 4)")
    assert sorted(p.name for p in root.iterdir()) == ["000000_0", "000001_0", "delta_10000001_10000001_0000"]
    assert [p.name for p in root.glob("delta*/bucket*")] == ["bucket_00001"]
    assert rows(acid, "SELECT a, b FROM t") == [(1, 2), (3, 4)]
    assert acid.table("t").count() == 2


def test_an_update_makes_both_directories_with_the_bucket_of_the_row(acid: AcidSession, tmp_path: Path) -> None:
    root = tmp_path / "t"
    originals(root, {"000000_0": [], "000001_0": [(1, 2)]})
    convert(acid, root, BUCKETED)
    acid.sql("UPDATE t SET b = 3 WHERE a = 1")
    assert len(list(root.iterdir())) == 4
    assert sorted(str(p.relative_to(root)) for p in root.glob("*/bucket*")) == [
        "delete_delta_10000001_10000001_0000/bucket_00001",
        "delta_10000001_10000001_0000/bucket_00001",
    ]
    assert rows(acid, "SELECT a, b FROM t") == [(1, 3)]


def test_a_compaction_before_the_first_write_leaves_a_base_that_always_counts(
    acid: AcidSession, tmp_path: Path
) -> None:
    root = tmp_path / "t"
    originals(root, {"000000_0": [], "000001_0": [(1, 2)]})
    base = root / "base_-9223372036854775808/bucket_00001"
    write_events(base, "a:int,b:int", inserts(0, [(1, 2)], BUCKET_1))
    convert(acid, root, BUCKETED)
    assert rows(acid, "SELECT a, b FROM t") == [(1, 2)]
    acid.sql("UPDATE t SET b = 3 WHERE a = 1")
    acid.sql("INSERT INTO t (a, b) VALUES (3, 4)")
    assert directories(root) == [
        "base_-9223372036854775808",
        "delete_delta_10000001_10000001_0000",
        "delta_10000001_10000001_0000",
        "delta_10000002_10000002_0000",
    ]
    assert [p.name for p in root.glob("de*/bucket*")] == ["bucket_00001"] * 3
    assert rows(acid, "SELECT a, b FROM t") == [(1, 3), (3, 4)]


def test_a_partition_below_a_partition_is_converted(acid: AcidSession, tmp_path: Path) -> None:
    root = tmp_path / "t" / "p=p1" / "q=q1"
    originals(root, {"000000_0": [], "000001_0": [(1, 2)]})
    convert(acid, tmp_path / "t", f"PARTITIONED BY (p string, q string) {BUCKETED}", version="2")
    assert rows(acid, "SELECT a, b, p, q FROM t") == [(1, 2, "p1", "q1")]
    acid.sql("UPDATE t SET b = 3 WHERE a = 1")
    acid.sql("INSERT INTO t (a, b, p, q) VALUES (3, 4, 'p1', 'q1')")
    assert sorted(str(p.relative_to(root)) for p in root.glob("*/bucket*")) == [
        "delete_delta_10000001_10000001_0000/bucket_00001",
        "delta_10000001_10000001_0000/bucket_00001",
        "delta_10000002_10000002_0000/bucket_00000",
    ]
    assert rows(acid, "SELECT a, b FROM t") == [(1, 3), (3, 4)]


def test_loaded_files_are_numbered_in_their_own_directory(acid: AcidSession, tmp_path: Path) -> None:
    """TestTxnLoadData: files that an export left as ``_copy_N``."""
    root, loaded = tmp_path / "t", tmp_path / "t" / "delta_0000024_0000024_0000"
    originals(root, {"000000_0": [(0, 2), (0, 4)]})
    originals(
        loaded, {"000000_0": [(1, 2), (3, 4)], "000000_0_copy_1": [(2, 2), (3, 3)], "000000_0_copy_2": [(4, 4), (5, 5)]}
    )
    convert(acid, root)
    first = [(0, BUCKET_0, 0, 0, 2), (0, BUCKET_0, 1, 0, 4)]
    data = [(1, 2), (3, 4), (2, 2), (3, 3), (4, 4), (5, 5)]
    assert ids(acid) == [*first, *[(24, BUCKET_0, n, *row) for n, row in enumerate(data)]]


def test_an_overwrite_by_loaded_files_hides_all_others(acid: AcidSession, tmp_path: Path) -> None:
    """TestTxnLoadData, after the above."""
    root = tmp_path / "t"
    originals(root, {"000000_0": [(0, 2), (0, 4)]})
    originals(root / "delta_0000024_0000024_0000", {"000000_0": [(1, 2), (3, 4)]})
    originals(root / "base_0000030", {"000000_0": [(5, 6), (7, 8)], "000000_0_copy_1": [(8, 8)]})
    convert(acid, root)
    acid.sql("INSERT INTO t VALUES (9, 9)")
    assert ids(acid) == [
        (30, BUCKET_0, 0, 5, 6),
        (30, BUCKET_0, 1, 7, 8),
        (30, BUCKET_0, 2, 8, 8),
        (10000001, BUCKET_0, 0, 9, 9),
    ]
