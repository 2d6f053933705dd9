"""OPTIMIZE, VACUUM and DESCRIBE DETAIL: the compactor as Delta's users know it."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from pyspark.sql import Row

from acidsql.errors import AcidError, AnalysisError, PartitionNotFound, TableNotFound, UnsupportedError
from acidsql.format.names import STAGING_PREFIX
from acidsql.metastore.model import LockComponent, LockRequest, LockType, Operation
from acidsql.session import AcidSession
from tests.spark.answers import nothing_is_open, rows
from tests.spark.tree import shown


@pytest.fixture
def busy(acid: AcidSession) -> AcidSession:
    """A table with three inserts, an update and a delete behind it."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
    for i in range(3):
        acid.sql(f"INSERT INTO t VALUES ({i}, 'a'), ({i + 10}, 'b')")
    acid.sql("UPDATE t SET v = 'new' WHERE id = 1")
    acid.sql("DELETE FROM t WHERE id IN (2, 10)")
    return acid


@pytest.fixture
def parted(acid: AcidSession) -> AcidSession:
    """A table with two partitions of two deltas each, and one of a single delta."""
    acid.sql("CREATE TRANSACTIONAL TABLE p (id int) PARTITIONED BY (day int, region string)")
    for i in range(2):
        acid.sql(f"INSERT INTO p VALUES ({i}, 1, 'eu'), ({i}, 2, 'eu')")
    acid.sql("INSERT INTO p VALUES (9, 2, 'us')")
    return acid


def names(directory: Path) -> list[str]:
    return shown(directory)


def detail(acid: AcidSession, table: str = "t") -> Row:
    [found] = acid.sql(f"DESCRIBE DETAIL {table}").collect()
    return found


def paths(acid: AcidSession, text: str, below: Path) -> list[str]:
    """What VACUUM answers, relative to a directory."""
    gc.collect()
    return [row.path.removeprefix(f"{below}/") for row in acid.sql(text).collect()]


# --- OPTIMIZE --------------------------------------------------------------------------------------------------------


def test_optimize_compacts_now_and_tells_in_deltas_words_which_files_came_and_went(
    busy: AcidSession, warehouse: Path
) -> None:
    before = rows(busy, "SELECT ROW__ID, * FROM t")
    files = detail(busy)
    [row] = busy.sql("OPTIMIZE t").collect()
    assert row.path == str(warehouse / "t")
    assert (row.partition, row.compaction_id, row.state, row.message) == (None, 1, "ready for cleaning", None)
    assert (row.metrics.numFilesAdded, row.metrics.numFilesRemoved) == (1, files.numFiles)
    assert row.metrics.filesRemoved.totalSize == files.sizeInBytes
    [base] = (warehouse / "t" / "base_0000005").glob("bucket_*")
    assert row.metrics.filesAdded == Row(
        min=base.stat().st_size, max=base.stat().st_size, avg=float(base.stat().st_size), totalFiles=1,
        totalSize=base.stat().st_size,
    )  # fmt: skip
    assert (row.metrics.partitionsOptimized, row.metrics.totalConsideredFiles) == (1, files.numFiles)
    assert rows(busy, "SELECT ROW__ID, * FROM t") == before


def test_where_there_is_nothing_to_put_together_a_row_says_so_and_nothing_is_asked_for(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    for _ in range(2):  # without any row, and with one delta
        [row] = acid.sql("OPTIMIZE t").collect()
        assert (row.compaction_id, row.state, row.message) == (None, None, "Nothing to compact")
        assert (row.metrics.numFilesAdded, row.metrics.numFilesRemoved) == (0, 0)
        acid.sql("INSERT INTO t VALUES (1)")
    acid.sql("OPTIMIZE t")
    [again] = acid.sql("OPTIMIZE t").collect()
    assert (again.state, again.message) == ("ready for cleaning", None) or again.compaction_id in (None, 1)
    nothing_is_open(acid)


def test_optimize_waits_for_a_compaction_that_was_asked_for_before_and_then_makes_a_major_one(
    busy: AcidSession, warehouse: Path
) -> None:
    busy.sql("ALTER TABLE t COMPACT 'minor'")
    [row] = busy.sql("OPTIMIZE t").collect()
    assert row.state == "ready for cleaning"
    assert "base_0000005" in names(warehouse / "t")


def test_optimize_takes_the_partitions_that_its_clauses_choose(parted: AcidSession, warehouse: Path) -> None:
    done = parted.sql("OPTIMIZE p PARTITION (day = 1) WHERE region LIKE 'e%'").collect()
    assert [(r.partition, r.state) for r in done] == [("day=1/region=eu", "ready for cleaning")]
    done = parted.sql("OPTIMIZE p WHERE day > :day AND p.region <> 'cn'", day=1).collect()
    assert [(r.partition, r.state) for r in done] == [
        ("day=2/region=eu", "ready for cleaning"),
        ("day=2/region=us", None),
    ]
    assert parted.sql("OPTIMIZE p WHERE day = 7").collect() == []
    assert [r.state for r in parted.sql("OPTIMIZE p").collect()].count(None) >= 1
    bases = sorted(str(p.relative_to(warehouse / "p")) for p in (warehouse / "p").rglob("base_*"))
    assert bases == ["day=1/region=eu/base_0000002", "day=2/region=eu/base_0000002"]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("OPTIMIZE nope", TableNotFound, "nope"),
        ("OPTIMIZE p WHERE id = 1", AnalysisError, "not over partition keys"),
        ("OPTIMIZE p PARTITION (day = 7)", PartitionNotFound, "{day=7}"),
        ("OPTIMIZE p PARTITION (id = 7)", AnalysisError, "non-partition columns"),
        ("OPTIMIZE p ZORDER BY (id)", UnsupportedError, "OPTIMIZE … ZORDER"),
        ("OPTIMIZE w", AnalysisError, "non-ACID table"),
        ("VACUUM p LITE", UnsupportedError, "VACUUM … LITE"),
        ("VACUUM nope", TableNotFound, "nope"),
        ("VACUUM w", AnalysisError, "non-ACID table"),
        ("DESCRIBE DETAIL nope", TableNotFound, "nope"),
    ],
)
def test_what_cannot_be_done_is_an_error_at_its_place_and_nothing_is_asked_for(
    parted: AcidSession, text: str, error: type[AcidError], message: str
) -> None:
    parted.sql("CREATE VIEW w AS SELECT * FROM p")
    with pytest.raises(error) as caught:
        parted.sql(text)
    assert message in caught.value.message
    assert caught.value.line == 1
    assert parted.sql("SHOW COMPACTIONS").collect() == []
    nothing_is_open(parted)


def test_an_unpartitioned_table_takes_no_condition(busy: AcidSession) -> None:
    with pytest.raises(AnalysisError, match="is not partitioned: OPTIMIZE applies to all of it"):
        busy.sql("OPTIMIZE t WHERE id = 1")


def test_tables_called_like_the_statements_are_read_and_written(acid: AcidSession) -> None:
    for name in ("optimize", "vacuum", "detail"):
        acid.sql(f"CREATE TRANSACTIONAL TABLE {name} (optimize int, vacuum int)")
        acid.sql(f"INSERT INTO {name} VALUES (1, 2)")
        acid.sql(f"UPDATE {name} SET vacuum = optimize WHERE vacuum = 2")
        assert rows(acid, f"SELECT optimize, {name}.vacuum FROM {name}") == [(1, 1)]
        assert acid.sql(f"DESCRIBE {name}").count() == 2
        acid.sql(f"OPTIMIZE {name}")
        acid.sql(f"VACUUM {name}")
        assert detail(acid, name).numFiles == 1


# --- VACUUM ----------------------------------------------------------------------------------------------------------


def test_vacuum_removes_what_its_dry_run_lists_and_nothing_that_an_open_reader_needs(
    busy: AcidSession, warehouse: Path
) -> None:
    reader = busy.sql("SELECT * FROM t")
    old = names(warehouse / "t")
    busy.sql("OPTIMIZE t")
    gc.collect()
    assert paths(busy, "VACUUM t DRY RUN", warehouse / "t") == []
    assert paths(busy, "VACUUM t", warehouse / "t") == []
    before = sorted(map(tuple, reader.collect()))
    del reader
    assert paths(busy, "VACUUM t DRY RUN", warehouse / "t") == old
    assert names(warehouse / "t") == sorted(["base_0000005", *old])
    assert paths(busy, "VACUUM t", warehouse / "t") == old
    assert names(warehouse / "t") == ["base_0000005"]
    assert sorted(rows(busy, "SELECT * FROM t")) == before
    [row] = busy.sql("SHOW COMPACTIONS").collect()
    assert row.state == "succeeded"


def test_retain_lengthens_the_retention_and_never_shortens_it(busy: AcidSession, warehouse: Path) -> None:
    busy.sql("OPTIMIZE t")
    assert paths(busy, "VACUUM t RETAIN 1 HOURS DRY RUN", warehouse / "t") == []
    assert paths(busy, "VACUUM t RETAIN 1 HOURS", warehouse / "t") == []
    busy.sql("SET hive.compactor.delayed.cleanup.enabled = true")
    assert paths(busy, "VACUUM t RETAIN 0 HOURS", warehouse / "t") == []
    busy.sql("SET hive.compactor.cleaner.retention.time.seconds = 0s")
    assert len(paths(busy, "VACUUM t RETAIN 0 HOURS", warehouse / "t")) == 6


def test_vacuum_is_about_one_table_alone(busy: AcidSession, parted: AcidSession, warehouse: Path) -> None:
    busy.sql("OPTIMIZE p")
    assert paths(busy, "VACUUM t", warehouse) == []
    found = paths(busy, "VACUUM p DRY RUN", warehouse)
    assert len(found) == 4
    assert all(path.startswith("p/day=") for path in found)
    assert paths(busy, "VACUUM p", warehouse) == found


def test_vacuum_removes_what_aborted_transactions_and_dead_writers_left(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    acid.sql("INSERT INTO t VALUES (1)")
    metastore = acid.metastore
    [txn] = metastore.open_txns(user="ann", host="desk")
    metastore.allocate_table_write_id(txn, "default", "t")
    left = warehouse / "t" / "delta_0000002_0000002_0000"
    left.mkdir()
    (left / "bucket_00000").write_bytes(b"")
    stale = warehouse / "t" / f"{STAGING_PREFIX}{'dead' * 8}"
    stale.mkdir()
    _lock_and_abort(acid, txn)
    assert detail(acid).aborted == [left.name]
    assert paths(acid, "VACUUM t DRY RUN", warehouse / "t") == [left.name]  # the writer may be alive
    acid.sql("SET acidsql.staging.retention = 0s")
    assert paths(acid, "VACUUM t DRY RUN", warehouse / "t") == sorted([stale.name, left.name])
    assert paths(acid, "VACUUM t", warehouse / "t") == sorted([stale.name, left.name])
    assert detail(acid).aborted == []
    assert not stale.exists()
    assert rows(acid, "SELECT id FROM t") == [(1,)]


def _lock_and_abort(acid: AcidSession, txn: int) -> None:
    component = LockComponent(LockType.SHARED_WRITE, "default", "t", None, Operation.INSERT)
    acid.metastore.lock(LockRequest((component,), txn, "ann", "desk"))
    acid.metastore.abort_txns([txn])


# --- DESCRIBE DETAIL -------------------------------------------------------------------------------------------------


def test_detail_of_a_table_tells_its_files_and_which_compaction_is_due(busy: AcidSession, warehouse: Path) -> None:
    found = detail(busy)
    files = list((warehouse / "t").rglob("bucket_*"))
    assert (found.format, found.name, found.location) == ("orc", "default.t", str(warehouse / "t"))
    assert (found.numFiles, found.sizeInBytes) == (len(files), sum(p.stat().st_size for p in files))
    assert (found.bases, found.numDeltas, found.numDeleteDeltas, found.numOriginalFiles) == ([], 4, 2, 0)
    assert (found.partitionColumns, found.numPartitions, found.writeId) == ([], None, 5)
    assert found.properties["transactional"] == "true"
    assert (found.transactional, found.autoCompaction) == ("full", True)
    assert (found.compactionDue, found.lastCompaction, found.compactionsByState) == ({}, None, {})
    busy.sql("ALTER TABLE t SET TBLPROPERTIES ('compactorthreshold.hive.compactor.delta.num.threshold' = '4')")
    assert detail(busy).compactionDue == {"": "MAJOR"}


def test_detail_after_a_compaction_names_the_base_and_what_it_replaces(busy: AcidSession, warehouse: Path) -> None:
    old = names(warehouse / "t")
    busy.sql("OPTIMIZE t")
    found = detail(busy)
    assert (found.bases, found.obsolete, found.numFiles) == (["base_0000005"], old, 1)
    last = found.lastCompaction
    assert (last.id, last.partition, last.type, last.state) == (1, None, "MAJOR", "ready for cleaning")
    sizes = [
        sum(p.stat().st_size for name in n for p in (warehouse / "t" / name).glob("bucket_*"))
        for n in (old, found.bases)
    ]
    assert (last.filesBefore, last.filesAfter, last.rowsWritten) == (6, 1, 4)
    assert [last.bytesBefore, last.bytesAfter] == sizes
    assert found.compactionsByState == {"ready for cleaning": 1}
    nothing_is_open(busy)


def test_detail_of_a_partitioned_table_is_about_all_partitions(parted: AcidSession) -> None:
    parted.sql("ALTER TABLE p SET TBLPROPERTIES ('NO_AUTO_COMPACTION' = 'true')")
    parted.sql("SET hive.compactor.delta.num.threshold = 1")
    parted.sql("OPTIMIZE p PARTITION (day = 1, region = 'eu')")
    found = detail(parted, "p")
    assert (found.partitionColumns, found.numPartitions) == (["day", "region"], 3)
    assert found.bases == ["day=1/region=eu/base_0000002"]
    assert (found.compactionDue, found.autoCompaction) == ({"day=2/region=eu": "MAJOR"}, False)
    assert found.lastCompaction.partition == "day=1/region=eu"
    assert (found.numDeltas, found.numFiles) == (3, 4)


def test_tables_of_sparks_own_are_sparks_to_answer_for(acid: AcidSession) -> None:
    acid.sql("CREATE TABLE own (id int) USING parquet")
    try:
        for text in ("OPTIMIZE own", "VACUUM own", "DESCRIBE DETAIL own"):
            with pytest.raises(Exception, match=r"PARSE_SYNTAX_ERROR|TABLE_OR_VIEW_NOT_FOUND") as caught:
                acid.sql(text)  # Spark itself knows none of them: Delta's parser does
            assert not isinstance(caught.value, AcidError)
    finally:
        acid.sql("DROP TABLE own")
