"""EXPLAIN of statements that change a table: what they would lock, read and write; nothing of it happens."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException as SparkAnalysisException

from acidsql.errors import AcidError, AnalysisError, ColumnNotFound, NotTransactional, UnsupportedError
from acidsql.session import AcidSession
from tests.spark.answers import nothing_is_open
from tests.spark.tree import tree


@pytest.fixture(autouse=True)
def emp(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE emp (id int, salary int) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO emp PARTITION (p) VALUES (1, 10, 1), (2, 20, 2), (3, 30, 3)")
    acid.sql("DELETE FROM emp WHERE id = 3")
    acid.sql("CREATE TRANSACTIONAL TABLE dept (id int)")
    acid.sql("INSERT INTO dept VALUES (1)")


def plan(acid: AcidSession, text: str) -> list[str]:
    frame = acid.sql(text)
    assert frame.columns == ["plan"]
    [[found]] = frame.collect()
    return [line.rstrip() for line in found.split("\n")]


def section(found: list[str], title: str) -> list[str]:
    """The indented lines below a title."""
    at = found.index(title) + 1
    end = next((i for i in range(at, len(found)) if not found[i].startswith("  ")), len(found))
    return [line.strip() for line in found[at:end]]


def test_an_update_tells_its_phases_locks_partitions_and_files(acid: AcidSession) -> None:
    found = plan(acid, "EXPLAIN UPDATE emp SET salary = 0 WHERE p = 2 AND id IN (SELECT id FROM dept WHERE id > 1)")
    assert found[0] == "== UPDATE =="
    assert found[1].startswith("1. Open a transaction. Resolve the table and the SET columns")
    at = found.index("Locks:")
    assert found[at - 1] == "== default.emp =="
    assert found[at + 1 : found.index("== Spark's plan of the changes ==")] == [
        "  EXCL_WRITE default.emp partition p=2 (UPDATE)",
        "  SHARED_READ default.dept (SELECT)",
        "Writes:",
        "  delete_delta",
        "  delta",
        "Target: default.emp",
        "  snapshot: write ids up to 2",
        "  partitions: 1 of 3",
        next(line for line in found if line.startswith("  files: 0 bases, 1 deltas, 0 delete deltas; 1 files, ")),
        "    p=2: delta_0000001_0000001_0000",
        "  search in ORC files: none",
        "Reads: default.dept",
        "  snapshot: write ids up to 1",
        next(line for line in found if line.startswith("  files: 0 bases, 1 deltas") and line != found[at + 9]),
        "    directories: delta_0000001_0000001_0000",
        next(line for line in found if "id > 1" in line and line.endswith("files of less than 4 MB are read whole)")),
        "",
    ]
    assert any("Scan ExistingRDD default.emp" in line for line in found)


def test_a_delete_shows_its_delete_deltas_and_the_search(acid: AcidSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acidsql.plan.search.MIN_BYTES", 0)
    found = plan(acid, "EXPLAIN DELETE FROM emp WHERE salary >= 30 AND p = 3")
    assert found[0] == "== DELETE =="
    assert sum(line[:2] in ("1.", "2.", "3.", "4.", "5.", "6.") for line in found) == 6
    assert "    p=3: delta_0000001_0000001_0000, delete_delta_0000002_0000002_0000" in found
    [told] = [line for line in found if line.startswith("  search in ORC files: ")]
    assert "salary IS NOT NULL" in told
    assert "salary >= 30" in told
    assert "not planned" not in told


def test_an_insert_tells_what_it_reads(acid: AcidSession) -> None:
    found = plan(acid, "EXPLAIN INSERT OVERWRITE TABLE emp PARTITION (p = 7) SELECT id, 1 FROM dept")
    assert found[0] == "== INSERT =="
    assert "  EXCLUSIVE default.emp partition p=7 (UPDATE)" in found
    assert found[found.index("Writes:") + 1] == "  base in p=7"
    assert "Reads: default.dept" in found
    assert not [line for line in found if line.startswith("Target:")]


def test_an_insert_into_a_partition_that_is_there_may_do_nothing(acid: AcidSession) -> None:
    text = "EXPLAIN INSERT OVERWRITE TABLE emp PARTITION (p = {p}) IF NOT EXISTS SELECT 1, 1"
    found = plan(acid, text.replace("{p}", "1"))
    assert section(found, "Locks:") == section(found, "Writes:") == ["nothing"]
    assert found[-1] == "(none: the partition already exists)"
    assert section(plan(acid, text.replace("{p}", "9")), "Writes:") == ["base in p=9"]


def test_an_insert_of_values_has_a_plan_without_a_scan(acid: AcidSession) -> None:
    found = plan(acid, "EXPLAIN INSERT INTO emp PARTITION (p) VALUES (1, 2, 3)")
    assert "  SHARED_READ default.emp (INSERT, dynamic partitions)" in found
    assert any("LocalTableScan" in line for line in found)


def test_several_inserts_are_told_one_by_one(acid: AcidSession) -> None:
    text = "FROM dept INSERT INTO emp PARTITION (p = 1) SELECT id, 1 INSERT INTO dept SELECT id + 1 WHERE id > 0"
    found = plan(acid, f"EXPLAIN {text}")
    titles = [line for line in found if line.startswith("== default.")]
    assert titles == ["== default.emp ==", "== default.dept =="]
    assert [found[i + 1] for i, line in enumerate(found) if line == "Writes:"] == ["  delta in p=1", "  delta"]


def test_nothing_left_to_change_is_said(acid: AcidSession) -> None:
    found = plan(acid, "EXPLAIN DELETE FROM emp WHERE p = 99")
    assert "  partitions: 0 of 3" in found
    assert found[-1] == "(none: there are no rows to change)"


def test_a_truncate_tells_what_it_hides(acid: AcidSession) -> None:
    found = plan(acid, "EXPLAIN TRUNCATE TABLE emp PARTITION (p = 3)")
    assert found[0] == "== TRUNCATE =="
    assert section(found, "Locks:") == ["EXCL_WRITE default.emp partition p=3 (UPDATE)"]
    assert section(found, "Writes:") == ["base without rows in p=3"]
    assert "    p=3: delta_0000001_0000001_0000, delete_delta_0000002_0000002_0000" in found
    assert found[-1] == "(none: no row is read)"
    found = plan(acid, "EXPLAIN TRUNCATE emp")
    assert section(found, "Locks:") == ["EXCL_WRITE default.emp (UPDATE, dynamic partitions)"]
    assert section(found, "Writes:") == [f"base without rows in p={p}" for p in (1, 2, 3)]
    acid.sql("CREATE TABLE mm (a int) TBLPROPERTIES ('transactional'='true','transactional_properties'='insert_only')")
    assert plan(acid, "EXPLAIN DELETE FROM mm")[0] == "== TRUNCATE ==", "which is what it is to an insert-only table"


def test_a_table_made_as_a_query(acid: AcidSession, warehouse: Path) -> None:
    made = "TRANSACTIONAL TABLE copy PARTITIONED BY (p) AS SELECT id, p FROM emp WHERE p = 1"
    found = plan(acid, f"EXPLAIN CREATE {made}")
    assert found[0] == "== CREATE TABLE … AS query =="
    assert section(found, "Locks:") == [
        "SHARED_READ default (NO_TXN)",
        "EXCL_WRITE default.copy (INSERT)",
        "SHARED_READ default.emp (SELECT)",
    ]
    assert section(found, "Writes:") == [
        f"delta in the partitions of its rows, in the new directory {warehouse / 'copy'}"
    ]
    assert "  partitions: 1 of 3" in found
    assert any("FileScan orc" in line for line in found)
    assert not (warehouse / "copy").exists()
    assert acid.metastore.find_table("default", "copy") is None
    found = plan(acid, "EXPLAIN CREATE TRANSACTIONAL TABLE IF NOT EXISTS dept AS SELECT 1 AS id")
    assert found[-1] == "(none: the table already exists)"


def test_a_load_tells_what_becomes_of_the_files(acid: AcidSession, tmp_path: Path) -> None:
    acid.spark.sql("SELECT 7 AS id").coalesce(1).write.orc(f"file:{tmp_path}/in")
    found = plan(acid, f"EXPLAIN LOAD DATA INPATH '{tmp_path}/in' OVERWRITE INTO TABLE dept")
    assert found[0].startswith("== LOAD DATA")
    assert section(found, "Locks:") == ["EXCLUSIVE default.dept (UPDATE)"]
    assert section(found, "Writes:") == ["base"]
    [file] = section(found, "Loads:")
    assert file.endswith(".orc as 000000_0, 1 rows")
    assert list((tmp_path / "in").glob("*.orc"))


def test_a_compaction_is_a_request(acid: AcidSession) -> None:
    found = plan(acid, "EXPLAIN ALTER TABLE emp PARTITION (p = 3) COMPACT 'minor'")
    assert found[0].startswith("== ALTER TABLE")
    assert section(found, "Locks:") == ["nothing"]
    assert section(found, "Writes:") == ["a request for a MINOR compaction of p=3"]
    nothing = "None of the compaction thresholds met, compaction request is refused!"
    assert section(found, "Compacts:") == [f"p=3: MINOR would be refused: {nothing}"]
    assert found[-1] == "(none: compactions do not run as part of the statement)"
    assert acid.sql("SHOW COMPACTIONS").collect() == []


def test_a_compaction_of_all_partitions_tells_what_becomes_of_each(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("UPDATE emp SET salary = 0 WHERE id = 1")
    acid.sql("ALTER TABLE emp PARTITION (p = 1) COMPACT 'minor'")
    size = sum(p.stat().st_size for p in (warehouse / "emp" / "p=3").rglob("bucket_*"))
    before = tree(warehouse)
    found = plan(acid, "EXPLAIN FORMATTED ALTER TABLE emp COMPACT 'major'")
    assert section(found, "Writes:") == [f"a request for a MAJOR compaction of p={p}" for p in (2, 3)]
    assert section(found, "Compacts:") == [
        f"1 of 3 partitions, 2 files, {size} bytes",
        "p=1: not accepted: Compaction is already scheduled with state='initiated' and id=1",
        "p=2: MAJOR would be refused: None of the compaction thresholds met, compaction request is refused!",
        "p=3: MAJOR of delta_0000001_0000001_0000, delete_delta_0000002_0000002_0000"
        f" (2 files, {size} bytes) writes base_0000002 (1 file at most)",
    ]
    assert tree(warehouse) == before
    assert len(acid.sql("SHOW COMPACTIONS").collect()) == 1


def test_optimize_asks_only_where_there_is_something_to_do(acid: AcidSession, warehouse: Path) -> None:
    before = tree(warehouse)
    found = plan(acid, "EXPLAIN OPTIMIZE emp WHERE p > 1")
    assert found[0] == "== OPTIMIZE =="
    assert section(found, "Writes:") == ["a request for a MAJOR compaction of p=3"]
    assert [line.partition(" of ")[0] for line in section(found, "Compacts:")][:2] == [
        "1",
        "p=2: MAJOR would be refused: None",
    ]
    assert (tree(warehouse), acid.sql("SHOW COMPACTIONS").collect()) == (before, [])
    acid.sql("OPTIMIZE emp PARTITION (p = 3)")
    assert section(plan(acid, "EXPLAIN OPTIMIZE emp PARTITION (p = 3)"), "Compacts:") == [
        "p=3: not accepted: Compaction is already scheduled with state='ready for cleaning' and id=1"
    ]


def test_vacuum_tells_what_it_would_remove_and_what_it_would_keep(acid: AcidSession, warehouse: Path) -> None:
    frame = acid.table("dept")
    acid.sql("INSERT INTO dept VALUES (2)")
    acid.sql("OPTIMIZE dept")
    before = tree(warehouse)
    found = plan(acid, "EXPLAIN VACUUM dept")
    assert (found[0], section(found, "Removes:")) == ("== VACUUM ==", ["nothing"])
    [kept] = section(found, "Keeps:")
    assert kept.startswith("files replaced by compaction 1: transaction ")
    assert frame.count() == 1
    del frame
    gc.collect()
    found = plan(acid, "EXPLAIN VACUUM dept")
    listed = [row.path for row in acid.sql("VACUUM dept DRY RUN").collect()]
    assert section(found, "Removes:") == listed == [f"{warehouse}/dept/delta_000000{n}_000000{n}_0000" for n in (1, 2)]
    assert (section(found, "Keeps:"), tree(warehouse)) == (["nothing"], before)
    acid.sql("INSERT OVERWRITE TABLE emp PARTITION (p = 3) VALUES (9, 9)")
    replaced = [f"{warehouse}/emp/p=3/{n}" for n in ("delete_delta_0000002_0000002_0000", "delta_0000001_0000001_0000")]
    assert section(plan(acid, "EXPLAIN VACUUM emp"), "Removes:") == replaced
    assert [row.path for row in acid.sql("VACUUM emp").collect()] == replaced
    assert sorted(map(tuple, acid.table("emp").collect())) == [(1, 10, 1), (2, 20, 2), (9, 9, 3)]


def test_analyze_has_the_plan_of_its_aggregate(acid: AcidSession) -> None:
    found = plan(acid, "EXPLAIN ANALYZE TABLE emp COMPUTE STATISTICS FOR COLUMNS id")
    assert section(found, "Locks:") == ["SHARED_READ default.emp (NO_TXN)"]
    assert section(found, "Writes:") == ["statistics, in the metastore"]
    assert any("HashAggregate" in line for line in found)
    assert plan(acid, "EXPLAIN ANALYZE TABLE emp COMPUTE STATISTICS NOSCAN")[-1] == "(none: NOSCAN reads no rows)"


@pytest.mark.parametrize(
    ("mode", "mark"),
    [
        ("FORMATTED", "(1) Scan orc"),
        ("EXTENDED", "== Analyzed Logical Plan =="),
        ("COST", "Statistics("),
        ("CODEGEN", "WholeStageCodegen"),
    ],
)
@pytest.mark.usefixtures("compiled")
def test_the_modes_are_sparks(acid: AcidSession, mode: str, mark: str) -> None:
    found = "\n".join(plan(acid, f"EXPLAIN {mode} UPDATE emp SET salary = id + 1 WHERE p = 1"))
    assert mark in found


def test_a_query_and_a_statement_on_a_table_of_sparks_are_explained_by_spark(acid: AcidSession) -> None:
    assert any("FileScan orc" in line for line in plan(acid, "EXPLAIN SELECT * FROM emp"))
    acid.spark.sql("CREATE TABLE IF NOT EXISTS of_spark (a int) USING orc")
    try:
        assert any("INSERT" in line.upper() for line in plan(acid, "EXPLAIN INSERT INTO of_spark SELECT id FROM dept"))
        acid.sql("EXPLAIN TRUNCATE TABLE of_spark")
        acid.sql("EXPLAIN CREATE TABLE another USING orc AS SELECT id FROM dept")
        acid.sql("EXPLAIN SHOW FUNCTIONS")
    finally:
        acid.spark.sql("DROP TABLE of_spark")
    assert acid.sql("SHOW TABLES LIKE 'another'").collect() == []


def test_nothing_happens(acid: AcidSession, warehouse: Path) -> None:
    before = tree(warehouse / "emp")
    [write_ids] = acid.metastore.get_valid_write_ids(["default.emp"], acid.metastore.get_valid_txns())
    for text in (
        "UPDATE emp SET salary = 1",
        "DELETE FROM emp",
        "INSERT INTO emp PARTITION (p = 9) SELECT id, 1 FROM dept",
        "INSERT OVERWRITE TABLE dept VALUES (5)",
        "TRUNCATE TABLE emp",
        "ANALYZE TABLE emp COMPUTE STATISTICS",
        "CREATE TRANSACTIONAL TABLE new AS SELECT * FROM emp",
    ):
        plan(acid, f"EXPLAIN {text}")
    assert tree(warehouse / "emp") == before
    nothing_is_open(acid)
    [after] = acid.metastore.get_valid_write_ids(["default.emp"], acid.metastore.get_valid_txns())
    assert after == write_ids
    assert acid.sql("SELECT count(*) FROM emp").collect() == [(2,)]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("UPDATE emp SET nope = 1", ColumnNotFound),
        ("UPDATE emp SET p = 1", AnalysisError),
        ("DELETE FROM emp WHERE nope = 1", SparkAnalysisException),
        ("INSERT INTO emp PARTITION (p = 1) VALUES (1)", AnalysisError),
        ("DELETE FROM nowhere", AnalysisError),
        ("DROP TABLE emp", UnsupportedError),
    ],
)
def test_the_errors_are_those_of_the_statement(acid: AcidSession, text: str, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        acid.sql(f"EXPLAIN {text}")
    if isinstance(caught.value, AcidError):
        assert caught.value.line == 1
    nothing_is_open(acid)


def test_a_table_that_is_not_transactional(acid: AcidSession) -> None:
    acid.spark.sql("CREATE TABLE IF NOT EXISTS plain (a int) USING orc")
    try:
        with pytest.raises(NotTransactional):
            acid.sql("EXPLAIN UPDATE plain SET a = 1")
    finally:
        acid.spark.sql("DROP TABLE plain")
