"""DESCRIBE HISTORY: what is on record, and in the directories, of each write id; never more than that."""

from __future__ import annotations

import shutil
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row

from acidsql.errors import AcidError, SnapshotTooOld, TableNotFound, UnsupportedError
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.session import AcidSession
from tests.spark.answers import nothing_is_open
from tests.spark.test_golden_tables import adopt

COLUMNS = [
    "write_id",
    "transaction_id",
    "timestamp",
    "operation",
    "partitions",
    "directories",
    "inserted_rows",
    "deleted_rows",
    "readable",
]


def history(acid: AcidSession, table: str, more: str = "") -> list[Row]:
    frame = acid.sql(f"DESCRIBE HISTORY {table}{more}")
    assert frame.columns == COLUMNS
    return frame.collect()


def told(acid: AcidSession, table: str) -> list[tuple[Any, ...]]:
    """Write id, operation, inserted and deleted rows, readable; the oldest first."""
    return [(r[0], r[3], r[6], r[7], r[8]) for r in reversed(history(acid, table))]


def check_readable(acid: AcidSession, table: str) -> None:
    """What is said to be readable can be read, and what is not cannot."""
    for row in history(acid, table):
        if row.readable:
            acid.table(table, version=row.write_id).collect()
        else:
            with pytest.raises(SnapshotTooOld):
                acid.table(table, version=row.write_id)


def test_each_write_is_told_by_what_it_left(acid: AcidSession) -> None:
    before = int(time.time())
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 2)")
    acid.sql("UPDATE t SET v = 'x' WHERE id = 3")
    acid.sql("DELETE FROM t WHERE p = 1 AND id = 1")
    acid.sql("ANALYZE TABLE t COMPUTE STATISTICS")
    acid.sql(
        "MERGE INTO t USING (VALUES (2), (7)) AS s (id) ON t.id = s.id"
        " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'm', 3)"
    )
    acid.sql("INSERT OVERWRITE TABLE t PARTITION (p = 2) SELECT 9, 'z'")
    acid.sql("INSERT INTO t SELECT 1, 'n', 1 WHERE false")
    assert told(acid, "t") == [
        (1, "INSERT", 3, 0, True),
        (2, "UPDATE", 1, 1, True),
        (3, "DELETE", 0, 1, True),
        (5, "UPDATE", 1, 1, True),
        (6, "OVERWRITE", 1, None, True),
        (7, "INSERT", None, None, True),
    ], "4 is the write id of ANALYZE, which writes no rows; 7 is on record, and has left nothing"
    rows = {r.write_id: r for r in history(acid, "t")}
    assert list(rows) == [7, 6, 5, 3, 2, 1]
    assert rows[1].partitions == ["p=1", "p=2"]
    assert rows[5].partitions == ["p=1", "p=3"]
    assert rows[5].directories == ["p=1/delete_delta_0000005_0000005_0000", "p=3/delta_0000005_0000005_0001"]
    assert rows[6].directories == ["p=2/base_0000006"]
    ids = [r.transaction_id for r in rows.values()]
    assert ids == sorted(set(ids), reverse=True)
    times = [r.timestamp for r in rows.values()]
    assert times == sorted(times, reverse=True)
    assert datetime.fromtimestamp(before) <= times[-1] <= times[0] <= datetime.fromtimestamp(time.time() + 1)
    assert [r.write_id for r in history(acid, "t", " LIMIT 2")] == [7, 6]
    check_readable(acid, "t")
    nothing_is_open(acid)


def test_what_is_aborted_or_open_is_not_told(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int CHECK (id < 5))")
    acid.sql("INSERT INTO t VALUES (1)")
    with pytest.raises(AcidError):
        acid.sql("INSERT INTO t SELECT 7")
    [open_txn] = acid.metastore.open_txns(user="ann", host="desk")
    acid.metastore.allocate_table_write_id(open_txn, "default", "t")
    assert [r[0] for r in told(acid, "t")] == [1]
    [row] = history(acid, "t")
    assert row.partitions is None, "the table has no partition keys"
    acid.metastore.abort_txns([open_txn])


def test_files_that_are_gone_make_versions_unreadable(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    acid.sql("INSERT INTO t VALUES (1)")
    acid.sql("INSERT INTO t VALUES (2), (3)")
    acid.sql("TRUNCATE TABLE t")
    acid.sql("INSERT INTO t VALUES (4)")
    assert [r[4] for r in told(acid, "t")] == [True] * 4
    for old in (warehouse / "t").glob("delta_000000[12]*"):
        shutil.rmtree(old)
    assert told(acid, "t") == [
        (1, "INSERT", None, None, False),
        (2, "INSERT", None, None, False),
        (3, "OVERWRITE", 0, None, True),
        (4, "INSERT", 1, 0, True),
    ]
    check_readable(acid, "t")


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("emp/07_delete2", []),
        ("emp/11_minor_cleaned", ["COMPACTION"]),
        ("emp/12_major", ["COMPACTION"]),
        ("emp/13_major_cleaned", ["COMPACTION"]),
        ("ow/09_noop_update_delete", []),
        ("ab/11_minor_cleaned", ["COMPACTION"]),
    ],
)
def test_a_table_that_hive_wrote_is_told_by_its_directories(
    acid: AcidSession, tmp_path: Path, step: str, expected: list[str]
) -> None:
    """Nothing is on record of it here: no times, no transactions but those of compactors."""
    name = adopt(acid, step, tmp_path / "adopted")
    found = history(acid, name)
    assert {r.timestamp for r in found} == {None}
    compacted = [r for r in found if r.operation == "COMPACTION"]
    assert all(r.transaction_id is not None and r.inserted_rows is None for r in compacted)
    assert all(r.transaction_id is None for r in found if r not in compacted)
    assert [r.operation for r in compacted] == expected
    assert found[0].readable
    check_readable(acid, name)


def test_a_store_that_does_not_tell_leaves_the_directories(acid: AcidSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a Hive Metastore: its calls tell nothing of committed writes."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    acid.sql("INSERT INTO t VALUES (1)")
    acid.sql("DELETE FROM t WHERE id = 1")
    monkeypatch.setattr(EmbeddedMetastore, "completed_writes", lambda *_: None)
    assert [tuple(r) for r in history(acid, "t")] == [
        (2, None, None, "DELETE", None, ["delete_delta_0000002_0000002_0000"], 0, 1, True),
        (1, None, None, "INSERT", None, ["delta_0000001_0000001_0000"], 1, 0, True),
    ]


def test_what_has_no_write_ids_is_refused(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    assert history(acid, "t") == []
    acid.sql("CREATE VIEW v AS SELECT id FROM t")
    with pytest.raises(UnsupportedError, match=r"line 1:18 .*is a view"):
        acid.sql("DESCRIBE HISTORY v")
    with pytest.raises(TableNotFound, match="line 1:18"):
        acid.sql("DESCRIBE HISTORY nowhere")
    nothing_is_open(acid)
