"""ALTER TABLE … COMPACT 'rebalance': the same rows in even files, under new row ids, whoever reads or writes beside."""

from __future__ import annotations

from pathlib import Path

import pyorc
import pytest

from acidsql.errors import AnalysisError, CompactionError
from acidsql.format.values import CONVERTERS
from acidsql.session import AcidSession
from tests.spark.answers import nothing_is_open, row_ids_are_unique, rows
from tests.spark.hive_tables import register_golden
from tests.spark.test_compactor import all_of, clean, compact, layout, names, states

__all__ = ["layout"]

IDENTITY = "ROW__ID.writeId w, ROW__ID.bucketId b, ROW__ID.rowId r"


@pytest.fixture
def skewed(acid: AcidSession) -> AcidSession:
    """Twelve rows in one file of each statement; some were changed."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
    acid.sql("INSERT INTO t SELECT id, 'a' FROM range(10)")
    acid.sql("INSERT INTO t SELECT id, 'a' FROM range(10, 14)")
    acid.sql("UPDATE t SET v = 'new' WHERE id IN (1, 7)")
    acid.sql("DELETE FROM t WHERE id IN (2, 9)")
    return acid


def rebalance(acid: AcidSession, clauses: str = "", tail: str = "", table: str = "t") -> None:
    acid.sql(f"ALTER TABLE {table} COMPACT 'rebalance' {clauses} AND WAIT {tail}")


def sizes(acid: AcidSession, table: str = "t") -> list[int]:
    """Rows of each bucket."""
    found = acid.sql(f"SELECT ROW__ID.bucketId b, count(*) n FROM {table} GROUP BY 1 ORDER BY 1").collect()
    return [row.n for row in found]


@pytest.mark.usefixtures("layout")
def test_rows_stay_the_same_and_are_spread_evenly_under_ids_that_are_unique(
    skewed: AcidSession, warehouse: Path
) -> None:
    before = rows(skewed, "SELECT * FROM t")
    reader = skewed.sql(f"SELECT *, {IDENTITY} FROM t")
    old = sorted(map(tuple, reader.collect()))
    rebalance(skewed, "CLUSTERED INTO 5 BUCKETS")
    assert rows(skewed, "SELECT * FROM t") == before
    assert sizes(skewed) == [3] * 4
    row_ids_are_unique(skewed, "t")
    clean(skewed)
    assert sorted(map(tuple, reader.collect())) == old
    del reader
    clean(skewed)
    rebalance(skewed, "CLUSTERED INTO 2 BUCKETS")
    clean(skewed)
    assert rows(skewed, "SELECT * FROM t") == before
    assert sizes(skewed) == [6, 6]
    assert len(names(warehouse / "t")) == 1
    assert states(skewed) == [("REBALANCE", "succeeded")] * 2
    nothing_is_open(skewed)


@pytest.mark.usefixtures("layout")
def test_what_is_rebalanced_can_be_changed_and_a_major_compaction_keeps_its_ids(
    skewed: AcidSession, warehouse: Path
) -> None:
    rebalance(skewed, "CLUSTERED INTO 3 BUCKETS", "ORDER BY v DESC, id")
    found = skewed.sql(f"SELECT id, v, {IDENTITY} FROM t ORDER BY r").collect()
    assert [(row.v, row.id) for row in found][:3] == [("new", 1), ("new", 7), ("a", 0)]
    assert len({row.w for row in found}) == 1
    skewed.sql("UPDATE t SET v = 'newer' WHERE id IN (0, 13)")
    skewed.sql("DELETE FROM t WHERE id = 7")
    skewed.sql("MERGE INTO t USING (VALUES (1, 'm'), (77, 'm'), (3, 'gone')) AS s (id, v) ON t.id = s.id"
               " WHEN MATCHED AND s.v = 'gone' THEN DELETE"
               " WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)")  # fmt: skip
    changed = {0: "newer", 13: "newer", 1: "m", 77: "m"}
    expected = [(i, changed.get(i, "a")) for i in (0, 1, 4, 5, 6, 8, 10, 11, 12, 13, 77)]
    assert rows(skewed, "SELECT * FROM t ORDER BY id") == sorted(expected, key=repr)
    before = all_of(skewed)
    clean(skewed)
    compact(skewed, "major")
    clean(skewed)
    assert all_of(skewed) == before
    row_ids_are_unique(skewed, "t")
    assert len(names(warehouse / "t")) == 1


@pytest.mark.usefixtures("layout")
def test_partitions_are_rebalanced_one_by_one(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p string)")
    acid.sql("INSERT INTO t SELECT /*+ REPARTITION(1) */ id, if(id < 8, 'x', 'y') FROM range(10)")
    before, others = rows(acid, "SELECT * FROM t"), names(warehouse / "t" / "p=y")
    acid.sql("SET acidsql.compactor.spark.size = 0")  # the new files are written by Spark's tasks
    acid.sql(
        "ALTER TABLE t PARTITION (p='x') COMPACT 'rebalance' CLUSTERED INTO 2 BUCKETS AND WAIT ORDER BY p, id DESC"
    )
    assert rows(acid, "SELECT * FROM t") == before
    found = acid.sql("SELECT id FROM t WHERE p = 'x' ORDER BY ROW__ID.rowId").collect()
    assert [row.id for row in found] == [7, 6, 5, 4, 3, 2, 1, 0]
    assert sizes(acid, "t WHERE p = 'x'") == [4, 4]
    assert names(warehouse / "t" / "p=y") == others
    row_ids_are_unique(acid, "t", "p")
    clean(acid)
    acid.sql("DELETE FROM t WHERE id IN (0, 7, 9)")
    assert [row[0] for row in rows(acid, "SELECT * FROM t")] == [1, 2, 3, 4, 5, 6, 8]


def test_a_delete_that_waits_for_it_deletes_by_the_new_ids(
    skewed: AcidSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TestCrudCompactorOnTez: testRebalanceCompactionWithParallelDeleteAsSecond."""
    before = rows(skewed, "SELECT * FROM t")
    real = skewed.metastore.lock

    def overtaken(request: object) -> object:
        monkeypatch.setattr(skewed.metastore, "lock", real)
        rebalance(skewed, "CLUSTERED INTO 4 BUCKETS", "ORDER BY id DESC")
        return real(request)  # type: ignore[arg-type]

    monkeypatch.setattr(skewed.metastore, "lock", overtaken)
    skewed.sql("DELETE FROM t WHERE id IN (1, 12)")
    assert rows(skewed, "SELECT * FROM t") == [row for row in before if row[0] not in (1, 12)]
    assert sizes(skewed) == [2, 3, 3, 2]
    nothing_is_open(skewed)


def test_values_of_hives_are_kept_to_the_nanosecond(acid: AcidSession, tmp_path: Path) -> None:
    """Read with pyorc, which has no part in writing them through Arrow."""
    place = tmp_path / "golden"
    table = register_golden(acid, "wide/11_minor_cleaned", place)

    def stored() -> list[str]:
        files = [f for d in place.glob("base_*") for f in d.glob("bucket_*")]
        return sorted(repr(event[5]) for f in files for event in pyorc.Reader(f.open("rb"), converters=CONVERTERS))

    compact(acid, "major", table.name)
    clean(acid)
    expected = stored()
    compact(acid, "rebalance", table.name)
    clean(acid)
    assert expected
    assert stored() == expected


def test_what_cannot_be_rebalanced_is_refused(skewed: AcidSession) -> None:
    skewed.sql("CREATE TRANSACTIONAL TABLE b (id int) CLUSTERED BY (id) INTO 2 BUCKETS")
    skewed.sql("INSERT INTO b VALUES (1)")
    with pytest.raises(CompactionError, match="Cannot execute rebalancing compaction on bucketed tables"):
        rebalance(skewed, table="b")
    for clause, piece in (("ORDER BY id % 2", "cannot order rows by"), ("ORDER BY nope", "Unknown column nope")):
        with pytest.raises(AnalysisError, match=piece) as caught:
            skewed.sql(f"ALTER TABLE t COMPACT 'rebalance' {clause}")
        assert (caught.value.line, caught.value.column) == (1, 35)
    assert states(skewed) == [("REBALANCE", "refused")]
    nothing_is_open(skewed)
