"""Hive's cases about what a compaction makes of tables of all kinds that SQL has written."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path

import pytest

from acidsql.session import AcidSession
from tests.spark.answers import Rows, nothing_is_open, rows
from tests.spark.tree import shown

IDENTITY = "ROW__ID.writeId w, ROW__ID.bucketId bk, ROW__ID.rowId r"


@pytest.fixture(autouse=True)
def as_hive_4(acid: AcidSession) -> None:
    """Two deltas of a minor compaction, where the layout of Hive 3 would take one base instead."""
    acid.sql("SET acidsql.compactor.layout = hive4")


def all_of(acid: AcidSession, table: str) -> Rows:
    return rows(acid, f"SELECT *, {IDENTITY} FROM {table}")


def compact_and_clean(acid: AcidSession, table: str, type: str, *partitions: str) -> None:
    for clause in [f"PARTITION ({p}) " for p in partitions] or [""]:
        acid.sql(f"ALTER TABLE {table} {clause}COMPACT '{type}' AND WAIT")
    gc.collect()
    acid.sql("SET hive.compactor.initiator.on = false")
    acid.compactor.run_once()


def names(directory: Path) -> list[str]:
    return sorted(name.partition("_v")[0] for name in shown(directory))


def states(acid: AcidSession) -> list[str]:
    return [row.state for row in acid.sql("SHOW COMPACTIONS").collect()]


def test_rows_from_before_and_after_a_column_was_added_are_put_together_by_partitions(
    acid: AcidSession, warehouse: Path
) -> None:
    """testCompactionWithSchemaEvolutionAndBuckets, …NoBucketsMultipleReducers, TestTxnCommands2:
    testACIDwithSchemaEvolutionAndCompaction, testSchemaEvolutionCompaction."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (a int, b int) PARTITIONED BY (ds string) CLUSTERED BY (a) INTO 2 BUCKETS")
    acid.sql("INSERT INTO t VALUES (1, 2, 'today'), (1, 3, 'today'), (2, 2, 'old'), (2, 3, 'today')")
    acid.sql("ALTER TABLE t ADD COLUMNS (c int, d string)")
    acid.sql("INSERT INTO t VALUES (3, 2, 1000, 'x', 'old'), (3, 3, 1001, 'y', 'today')")
    acid.sql("DELETE FROM t WHERE b = 2")
    acid.sql("UPDATE t SET c = 999 WHERE a = 1")
    before = all_of(acid, "t")
    assert [row[:4] for row in before] == [(1, 3, 999, None), (2, 3, None, None), (3, 3, 1001, "y")]
    compact_and_clean(acid, "t", "major", "ds = 'today'", "ds = 'old'")
    assert all_of(acid, "t") == before
    assert states(acid) == ["succeeded", "succeeded"]
    assert names(warehouse / "t" / "ds=today") == names(warehouse / "t" / "ds=old") == ["base_0000005"]
    nothing_is_open(acid)


def test_columns_and_fields_called_like_words_of_sql_and_a_partition_of_booleans_are_no_obstacle(
    acid: AcidSession, warehouse: Path
) -> None:
    """testCompactionShouldNotFailOnKeywordField, …OnStructField, …OnPartitionsWithBooleanField: Hive's compactor puts
    the names into queries."""
    acid.sql(
        "CREATE TRANSACTIONAL TABLE t (`row` int, `select` bigint, `bucket` array<struct<f: int, `timestamp`: string>>)"
        " PARTITIONED BY (yes boolean)"
    )
    for number in (1, 2):
        value = f"{number}, 21111111111, array(named_struct('f', {number}, 'timestamp', '2022-07-05 21:51:20.371'))"
        acid.sql(f"INSERT INTO t SELECT {value}, true UNION ALL SELECT {value}, false")
    before = all_of(acid, "t")
    compact_and_clean(acid, "t", "major", "yes = true")
    assert names(warehouse / "t" / "yes=true") == ["base_0000002"]
    assert len(names(warehouse / "t" / "yes=false")) == 2
    assert all_of(acid, "t") == before
    assert rows(acid, "SELECT `row`, bucket[0].`timestamp` FROM t WHERE yes") == [
        (1, "2022-07-05 21:51:20.371"),
        (2, "2022-07-05 21:51:20.371"),
    ]


def merge(acid: AcidSession, ids: Sequence[int], value: str) -> None:
    source = ", ".join(f"({id}, '{value}_{id}')" for id in ids)
    acid.sql(
        f"MERGE INTO t USING (VALUES {source}) AS s(id, v) ON t.id = s.id"
        " WHEN MATCHED AND t.v <> s.v THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)"
    )


def test_what_several_merges_have_updated_and_inserted_is_compacted_by_either_type(
    acid: AcidSession, warehouse: Path
) -> None:
    """testMinorCompactionAfterMultipleMergeStatements, testMajorCompactionAfterTwoMergeStatements: statements of
    several ids, and rows that were updated again and again."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
    acid.sql("INSERT INTO t SELECT id, 'value' FROM range(1, 9)")
    merge(acid, [1, 2, 4, 6, 9, 10, 11, 12], "new")
    merge(acid, [2, 4, 6, 10, 11, 13, 14], "newest")
    compact_and_clean(acid, "t", "minor")
    assert names(warehouse / "t") == ["delete_delta_0000001_0000003", "delta_0000001_0000003"]
    merge(acid, [1, 4, 5, 9, 11, 13, 15], "latest")
    before = all_of(acid, "t")
    compact_and_clean(acid, "t", "minor")
    assert names(warehouse / "t") == ["delete_delta_0000001_0000004", "delta_0000001_0000004"]
    assert all_of(acid, "t") == before
    compact_and_clean(acid, "t", "major")
    assert names(warehouse / "t") == ["base_0000004"]
    assert all_of(acid, "t") == before
    latest = {1: "latest", 2: "newest", 3: "value", 4: "latest", 5: "latest", 6: "newest", 7: "value", 8: "value"}
    latest |= {9: "latest", 10: "newest", 11: "latest", 12: "new", 13: "latest", 14: "newest", 15: "latest"}
    assert {row[0]: str(row[1]).partition("_")[0] for row in before} == latest


def test_tables_of_the_same_name_in_two_databases_are_told_apart(acid: AcidSession, warehouse: Path) -> None:
    """testMajorCompactionDb, testMinorCompactionDb."""
    acid.sql("CREATE DATABASE my")
    for database in ("default", "my"):
        acid.sql(f"CREATE TRANSACTIONAL TABLE {database}.t (id int)")
        for number in range(2):
            acid.sql(f"INSERT INTO {database}.t VALUES ({number})")
    compact_and_clean(acid, "my.t", "minor")
    assert names(warehouse / "my.db" / "t") == ["delta_0000001_0000002"]
    assert len(names(warehouse / "t")) == 2
    assert rows(acid, "SELECT id FROM my.t") == rows(acid, "SELECT id FROM t") == [(0,), (1,)]
