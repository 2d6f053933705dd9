"""EXPLAIN of statements that change a table: what they would lock, read and write; nothing of it happens."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException as SparkAnalysisException

from acidsql.errors import AcidError, AnalysisError, ColumnNotFound, NotTransactional, UnsupportedError
from acidsql.plan import search
from acidsql.session import AcidSession
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


def test_an_update_tells_its_phases_locks_partitions_and_files(acid: AcidSession) -> None:
    found = plan(acid, "EXPLAIN UPDATE emp SET salary = 0 WHERE p = 2 AND id IN (SELECT id FROM dept WHERE id > 1)")
    assert found[0] == "== UPDATE =="
    assert found[1].startswith("1. Resolve the table and the SET columns")
    at = found.index("Locks:")
    assert found[at - 1] == "== default.emp =="
    assert found[at + 1 : found.index("== Spark's plan of the changes ==")] == [
        "  EXCL_WRITE default.emp partition p=2 (UPDATE)",
        "  SHARED_READ default.dept (SELECT)",
        "Target: default.emp",
        "  snapshot: write ids up to 2",
        "  partitions: 1 of 3",
        next(line for line in found if line.startswith("  files: 0 bases, 1 deltas, 0 delete deltas; 1 files, ")),
        "    p=2: delta_0000001_0000001_0000",
        "  search in ORC files: none",
        "Reads: default.dept",
        "  snapshot: write ids up to 1",
        next(line for line in found if line.startswith("  files: 0 bases, 1 deltas") and line != found[at + 6]),
        "    directories: delta_0000001_0000001_0000",
        "  search in ORC files: id > 1 (not planned: files of less than 4 MB are read whole)",
        "",
    ]
    assert any("FileScan orc" in line for line in found)


def test_a_delete_shows_its_delete_deltas_and_the_search(acid: AcidSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acidsql.commands.explain.MIN_BYTES", 0)
    found = plan(acid, "EXPLAIN DELETE FROM emp WHERE salary >= 30 AND p = 3")
    assert found[0] == "== DELETE =="
    assert sum(line[:2] in ("1.", "2.", "3.", "4.", "5.", "6.") for line in found) == 6
    assert "    p=3: delta_0000001_0000001_0000, delete_delta_0000002_0000002_0000" in found
    assert "  search in ORC files: salary >= 30" in found
    assert search.MIN_BYTES > 0


def test_an_insert_tells_what_it_reads(acid: AcidSession) -> None:
    found = plan(acid, "EXPLAIN INSERT OVERWRITE TABLE emp PARTITION (p = 7) SELECT id, 1 FROM dept")
    assert found[0] == "== INSERT =="
    assert "  EXCLUSIVE default.emp partition p=7 (UPDATE)" in found
    assert "Reads: default.dept" in found
    assert not [line for line in found if line.startswith("Target:")]


def test_an_insert_of_values_has_a_plan_without_a_scan(acid: AcidSession) -> None:
    found = plan(acid, "EXPLAIN INSERT INTO emp PARTITION (p) VALUES (1, 2, 3)")
    assert "  SHARED_READ default.emp (INSERT, partitions as they come)" in found
    assert any("LocalTableScan" in line for line in found)


def test_several_inserts_are_told_one_by_one(acid: AcidSession) -> None:
    text = "FROM dept INSERT INTO emp PARTITION (p = 1) SELECT id, 1 INSERT INTO dept SELECT id + 1 WHERE id > 0"
    found = plan(acid, f"EXPLAIN {text}")
    titles = [line for line in found if line.startswith("== default.")]
    assert titles == ["== default.emp ==", "== default.dept =="]


def test_nothing_left_to_change_is_said(acid: AcidSession) -> None:
    found = plan(acid, "EXPLAIN DELETE FROM emp WHERE p = 99")
    assert "  partitions: 0 of 3" in found
    assert found[-1] == "(none: there are no rows to change)"


@pytest.mark.parametrize(
    ("mode", "mark"),
    [
        ("FORMATTED", "(1) Scan orc"),
        ("EXTENDED", "== Analyzed Logical Plan =="),
        ("COST", "Statistics("),
        ("CODEGEN", "WholeStageCodegen"),
    ],
)
def test_the_modes_are_sparks(acid: AcidSession, mode: str, mark: str) -> None:
    found = "\n".join(plan(acid, f"EXPLAIN {mode} UPDATE emp SET salary = id + 1 WHERE p = 1"))
    assert mark in found


def test_a_query_and_a_statement_on_a_table_of_sparks_are_explained_by_spark(acid: AcidSession) -> None:
    assert any("FileScan orc" in line for line in plan(acid, "EXPLAIN SELECT * FROM emp"))
    acid.spark.sql("CREATE TABLE IF NOT EXISTS of_spark (a int) USING orc")
    try:
        assert any("INSERT" in line.upper() for line in plan(acid, "EXPLAIN INSERT INTO of_spark SELECT id FROM dept"))
    finally:
        acid.spark.sql("DROP TABLE of_spark")


def test_nothing_happens(acid: AcidSession, warehouse: Path) -> None:
    before = tree(warehouse / "emp")
    [write_ids] = acid.metastore.get_valid_write_ids(["default.emp"], acid.metastore.get_valid_txns())
    for text in (
        "UPDATE emp SET salary = 1",
        "DELETE FROM emp",
        "INSERT INTO emp PARTITION (p = 9) SELECT id, 1 FROM dept",
        "INSERT OVERWRITE TABLE dept VALUES (5)",
    ):
        plan(acid, f"EXPLAIN {text}")
    assert tree(warehouse / "emp") == before
    assert acid.sql("SHOW LOCKS").collect() == acid.sql("SHOW TRANSACTIONS").collect() == []
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
    assert acid.sql("SHOW TRANSACTIONS").collect() == []


def test_a_table_that_is_not_transactional(acid: AcidSession) -> None:
    acid.spark.sql("CREATE TABLE IF NOT EXISTS plain (a int) USING orc")
    try:
        with pytest.raises(NotTransactional):
            acid.sql("EXPLAIN UPDATE plain SET a = 1")
    finally:
        acid.spark.sql("DROP TABLE plain")
