"""ANALYZE TABLE: numbers of rows, files and bytes, statistics of columns, and what later writes make of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import acidsql
from acidsql.errors import AnalysisError, ColumnNotFound, PartitionNotFound, WriteConflict
from acidsql.metastore.model import LockComponent, LockRequest, LockType, Operation
from acidsql.session import AcidSession


def parameters(acid: AcidSession, table: str = "t") -> dict[str, str]:
    return {r[1]: r[2] for r in acid.sql(f"DESCRIBE FORMATTED {table}").collect() if r[0] == "" and r[1]}


def of_column(acid: AcidSession, column: str, place: str = "t") -> dict[str, str]:
    found = acid.sql(f"DESCRIBE FORMATTED {place} {column}").collect()
    return {r[0]: r[1] for r in found if r[1]}


def size_of(directory: Path) -> int:
    return sum(f.stat().st_size for f in directory.rglob("bucket_*"))


class TestOfATableWithoutPartitions:
    @pytest.fixture(autouse=True)
    def _made(self, acid: AcidSession) -> None:
        acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
        acid.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)")
        acid.sql("DELETE FROM t WHERE id = 1")

    def test_counts_rows_files_and_bytes(self, acid: AcidSession, warehouse: Path) -> None:
        acid.sql("ANALYZE TABLE t COMPUTE STATISTICS")
        found = parameters(acid)
        assert (found["numRows"], found["numFiles"]) == ("2", "2")
        assert int(found["totalSize"]) == size_of(warehouse / "t")
        assert json.loads(found["COLUMN_STATS_ACCURATE"]) == {"BASIC_STATS": "true"}

    def test_noscan_does_not_count_rows(self, acid: AcidSession) -> None:
        acid.sql("ANALYZE TABLE t COMPUTE STATISTICS NOSCAN")
        found = parameters(acid)
        assert found["numFiles"] == "2"
        assert "numRows" not in found
        assert "COLUMN_STATS_ACCURATE" not in found

    @pytest.mark.parametrize(
        ("write", "rows"),
        [
            ("INSERT INTO t VALUES (9, 'x'), (10, 'y')", "4"),
            ("DELETE FROM t WHERE id = 2", "1"),
            ("UPDATE t SET v = 'z'", "2"),
            ("INSERT OVERWRITE TABLE t VALUES (9, 'x')", "1"),
        ],
    )
    def test_a_write_carries_the_number_on_and_ends_that_it_is_exact(
        self, acid: AcidSession, write: str, rows: str
    ) -> None:
        acid.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS")
        acid.sql(write)
        found = parameters(acid)
        assert found["numRows"] == rows
        assert "COLUMN_STATS_ACCURATE" not in found
        acid.sql("ANALYZE TABLE t COMPUTE STATISTICS")
        again = parameters(acid)
        assert again["numRows"] == rows
        assert json.loads(again["COLUMN_STATS_ACCURATE"]) == {"BASIC_STATS": "true"}

    def test_is_not_exact_beside_an_open_writer(self, acid: AcidSession) -> None:
        """He has said that nothing is exact before the ANALYZE, perhaps, and will not say it again."""
        store = acid.metastore
        [txn_id] = store.open_txns(user="ann", host="desk")
        component = LockComponent(LockType.SHARED_READ, "default", "t", None, Operation.INSERT)
        store.lock(LockRequest((component,), txn_id, "ann", "desk"))
        store.allocate_table_write_id(txn_id, "default", "t")
        acid.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS id")
        found = parameters(acid)
        assert found["numRows"] == "2"
        assert "COLUMN_STATS_ACCURATE" not in found
        assert of_column(acid, "id")["max"] == "3"
        store.abort_txns([txn_id])
        acid.sql("ANALYZE TABLE t COMPUTE STATISTICS")
        assert "COLUMN_STATS_ACCURATE" in parameters(acid)

    def test_leaves_no_transaction_and_no_file(self, acid: AcidSession, warehouse: Path) -> None:
        before = sorted(str(p) for p in (warehouse / "t").rglob("*"))
        acid.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS")
        assert sorted(str(p) for p in (warehouse / "t").rglob("*")) == before
        assert acid.sql("SHOW TRANSACTIONS").collect() == acid.sql("SHOW LOCKS").collect() == []

    @pytest.mark.parametrize(
        ("text", "error"),
        [
            ("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS id, nope", ColumnNotFound),
            ("ANALYZE TABLE t PARTITION (p = 1) COMPUTE STATISTICS", AnalysisError),
        ],
    )
    def test_bad_input(self, acid: AcidSession, text: str, error: type[Exception]) -> None:
        with pytest.raises(error, match="line 1:"):
            acid.sql(text)
        assert "numRows" not in parameters(acid)


class TestOfColumns:
    def test_of_each_type_what_hive_keeps_of_it(self, acid: AcidSession) -> None:
        acid.sql(
            "CREATE TRANSACTIONAL TABLE t (i bigint, d decimal(10,2), f double, s string, c char(4), b boolean,"
            " dt date, ts timestamp, bin binary, a array<int>)"
        )
        acid.sql(
            "INSERT INTO t VALUES (-5, 1.50, 0.5, 'żó', 'ab', true, DATE'1500-01-01', TIMESTAMP'2024-02-29 12:00:00.5',"
            " X'010203', array(1)), (7, 2.25, double('NaN'), '', NULL, false, DATE'2024-02-29', NULL, X'', NULL),"
            " (NULL, NULL, NULL, NULL, NULL, true, NULL, NULL, NULL, NULL)"
        )
        acid.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS")

        def some(column: str, *names: str) -> list[Any]:
            found = of_column(acid, column)
            return [found.get(n) for n in names]

        assert some("i", "min", "max", "num_nulls", "distinct_count") == ["-5", "7", "1", "2"]
        assert some("d", "min", "max", "num_nulls") == ["1.50", "2.25", "1"]
        assert some("f", "min", "max") == ["0.5", "NaN"]
        assert some("s", "min", "avg_col_len", "max_col_len", "num_nulls") == [None, "1.0", "2", "1"]
        assert some("c", "max_col_len", "num_nulls") == ["4", "2"]
        assert some("b", "num_trues", "num_falses", "num_nulls", "distinct_count") == ["2", "1", "0", None]
        assert some("dt", "min", "max") == ["1500-01-01", "2024-02-29"]
        assert some("ts", "min", "num_nulls") == ["2024-02-29 12:00:00.5", "2"]
        assert some("bin", "max_col_len", "distinct_count") == ["3", None]
        assert some("a", "num_nulls") == [None], "nested types have none, as in Hive"
        with pytest.raises(AnalysisError, match="primitive types"):
            acid.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS a")


class TestOfPartitions:
    @pytest.fixture(autouse=True)
    def _made(self, acid: AcidSession) -> None:
        acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p int, q string)")
        acid.sql("INSERT INTO t PARTITION (p, q) VALUES (1, 1, 'a/b'), (2, 1, NULL), (3, 2, 'x'), (4, 2, 'x')")
        acid.sql("ALTER TABLE t ADD PARTITION (p = 3, q = 'empty')")

    def of(self, acid: AcidSession, name: str) -> dict[str, str]:
        return dict(acid.metastore.partition_parameters("default", "t", [name])[name])

    def test_each_is_counted_and_the_table_is_their_sum(self, acid: AcidSession) -> None:
        acid.sql("ANALYZE TABLE t COMPUTE STATISTICS")
        names = ("p=1/q=a%2Fb", "p=1/q=__HIVE_DEFAULT_PARTITION__", "p=2/q=x", "p=3/q=empty")
        assert [self.of(acid, n)["numRows"] for n in names] == ["1", "1", "2", "0"]
        found = parameters(acid)
        assert (found["numRows"], found["numPartitions"], found["numFiles"]) == ("4", "4", "3")

    @pytest.mark.parametrize("spec", ["p = 1, q", "p = 1"])
    def test_those_of_a_clause(self, acid: AcidSession, spec: str) -> None:
        acid.sql(f"ANALYZE TABLE t PARTITION ({spec}) COMPUTE STATISTICS")
        assert self.of(acid, "p=1/q=a%2Fb")["numRows"] == "1"
        assert self.of(acid, "p=2/q=x") == {}
        assert "numRows" not in parameters(acid), "not all partitions are counted"
        with pytest.raises(PartitionNotFound):
            acid.sql("ANALYZE TABLE t PARTITION (p = 99) COMPUTE STATISTICS")

    def test_a_write_concerns_its_own_partition(self, acid: AcidSession) -> None:
        acid.sql("ANALYZE TABLE t COMPUTE STATISTICS")
        acid.sql("DELETE FROM t WHERE p = 2 AND id = 3")
        assert "COLUMN_STATS_ACCURATE" not in self.of(acid, "p=2/q=x")
        assert self.of(acid, "p=2/q=x")["numRows"] == "1"
        assert "COLUMN_STATS_ACCURATE" in self.of(acid, "p=1/q=a%2Fb")

    def test_columns_of_the_table_and_of_one_partition(self, acid: AcidSession) -> None:
        acid.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS id")
        assert of_column(acid, "id")["max"] == "4"
        assert of_column(acid, "id", "t PARTITION (p = 1, q = 'a/b')")["max"] == "1"
        with pytest.raises(ColumnNotFound):
            acid.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS p")

    def test_what_is_dropped_is_forgotten(self, acid: AcidSession) -> None:
        acid.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS")
        acid.sql("ALTER TABLE t DROP PARTITION (p = 2, q = 'x')")
        acid.sql("ALTER TABLE t ADD PARTITION (p = 2, q = 'x')")
        assert self.of(acid, "p=2/q=x") == {}
        assert "max" not in of_column(acid, "id", "t PARTITION (p = 2, q = 'x')")


def test_what_is_not_committed_does_not_count(acid: AcidSession, warehouse: Path) -> None:
    """A DELETE that had lost once, and ran again by itself, counted twice; so did a refused COMMIT, for ever."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v int)")
    acid.sql("INSERT INTO t SELECT id, 1 FROM range(10)")
    acid.sql("ANALYZE TABLE t COMPUTE STATISTICS")
    settings = {"acidsql.write.conflicts": "row"}
    with acidsql.connect(acid.spark, warehouse=warehouse, settings=settings) as first:
        second = acidsql.connect(acid.spark, warehouse=warehouse, settings=settings)
        real, lost = first.metastore.commit_txn, list[int]()

        def commit(*given: Any) -> None:
            if not lost:
                lost.append(given[0])
                second.sql("DELETE FROM t WHERE id = 3")
            real(*given)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(first.metastore, "commit_txn", commit)
            assert first.sql("DELETE FROM t WHERE id IN (3, 4)").collect()[0].num_deleted_rows == 1
        assert lost
        assert parameters(acid)["numRows"] == "8"
        first.sql("START TRANSACTION")
        first.sql("DELETE FROM t WHERE id < 9")
        second.sql("UPDATE t SET v = 2 WHERE id = 1")
        with pytest.raises(WriteConflict):
            first.sql("COMMIT")
        first.sql("START TRANSACTION")
        first.sql("INSERT INTO t SELECT id, 2 FROM range(1000)")
        first.sql("ROLLBACK")
        second.close()
    assert parameters(acid)["numRows"] == str(acid.table("t").count()) == "8"


def test_a_table_of_sparks_is_analyzed_by_spark(acid: AcidSession) -> None:
    acid.spark.sql("CREATE TABLE IF NOT EXISTS plain (a int) USING orc")
    try:
        acid.sql("ANALYZE TABLE plain COMPUTE STATISTICS")
    finally:
        acid.spark.sql("DROP TABLE plain")
