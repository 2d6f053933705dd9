"""Sessions that overlap: what comes out is what some order of whole statements gives."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from acidsql.errors import AcidError
from tests.oracle.choice import first_quick
from tests.oracle.interleaving import Held, Moment, start_until_it_waits, two_sessions
from tests.spark.answers import rows

pytestmark = pytest.mark.spark

SNAPSHOT = ("open_txns", "get_valid_txns", "get_valid_write_ids", "list_partitions", "lock")
"""Moments around a statement's snapshot and its locks."""
ALL = (*SNAPSHOT, "find_table", "get_table", "allocate_table_write_id", "add_dynamic_partitions", "commit_txn")
MERGE = (
    "MERGE INTO t USING (SELECT 1 AS id, 1 AS p UNION ALL SELECT 9, 2) s ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET v = v + 10 WHEN NOT MATCHED THEN INSERT VALUES (s.id, 0, s.p)"
)
BOTH_PARTITIONS = "INSERT INTO t VALUES (2, 'new', 1), (2, 'new', 2)"
"""One transaction, of which one sees both rows or none; partition 2 is new."""


@pytest.mark.parametrize("moment", first_quick(SNAPSHOT))
def test_a_query_sees_all_of_an_insert_or_nothing(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    with two_sessions(spark, warehouse) as (acid, other):
        acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string) PARTITIONED BY (p int)")
        acid.sql("INSERT INTO t VALUES (1, 'old', 1)")
        Moment(monkeypatch, acid, moment, lambda: other.sql(BOTH_PARTITIONS))
        frame = acid.sql("SELECT id, p FROM t WHERE id = 2")
        seen = sorted(tuple(r) for r in frame.collect())
        assert seen in ([], [(2, 1), (2, 2)])
        assert sorted(tuple(r) for r in frame.collect()) == seen, "read again, it is the same snapshot"


@pytest.mark.long
@pytest.mark.parametrize("moment", ALL)
@pytest.mark.parametrize(
    ("text", "outcomes"),
    [
        ("DELETE FROM t", [[], [(2, "new", 1), (2, "new", 2)]]),
        ("DELETE FROM t WHERE p > 0", [[], [(2, "new", 1), (2, "new", 2)]]),
        (
            "UPDATE t SET v = 'set'",
            [[(1, "set", 1), (2, w, 1), (2, w, 2)] for w in ("set", "new")],
        ),
        (
            "MERGE INTO t USING (SELECT 1 AS k) s ON t.id > 0 WHEN MATCHED THEN UPDATE SET v = 'set'",
            [[(1, "set", 1), (2, w, 1), (2, w, 2)] for w in ("set", "new")],
        ),
        (
            "INSERT OVERWRITE TABLE t SELECT id, 'set', p FROM t",
            [[(1, "set", 1), (2, w, 1), (2, w, 2)] for w in ("set", "new")],
        ),
        ("INSERT INTO t SELECT 3, v, p FROM t WHERE id = 2", [[(1, "old", 1), (2, "new", 1), (2, "new", 2)]]),
    ],
)
def test_a_change_sees_all_of_an_insert_or_nothing(
    spark: SparkSession,
    warehouse: Path,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
    text: str,
    outcomes: list[list[tuple[object, ...]]],
) -> None:
    with two_sessions(spark, warehouse) as (acid, other):
        acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string) PARTITIONED BY (p int)")
        acid.sql("INSERT INTO t VALUES (1, 'old', 1)")
        insert = Moment(monkeypatch, acid, moment, lambda: other.sql(BOTH_PARTITIONS))
        try:
            acid.sql(text)
        except AcidError as e:
            pytest.fail(f"the statement was not repeated: {e}")
        left = rows(acid, "SELECT * FROM t WHERE id < 3")
        if insert.done:
            assert left in outcomes
        copied = rows(acid, "SELECT p FROM t WHERE id = 3")
        assert copied in ([], [(1,), (2,)])


def test_an_update_that_waited_for_an_overwrite_sees_the_partitions_that_it_made(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with two_sessions(spark, warehouse) as (acid, other):
        acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string) PARTITIONED BY (p int)")
        acid.sql("INSERT INTO t VALUES (1, 'a', 1)")
        text = "INSERT OVERWRITE TABLE t PARTITION (p) SELECT 2, 'b', 1 UNION ALL SELECT 3, 'b', 2"
        overwrite = Held(monkeypatch, other, "commit_txn", lambda: other.sql(text).collect())
        update = start_until_it_waits(monkeypatch, acid, lambda: acid.sql("UPDATE t SET v = 'updated'").collect())
        overwrite.release()
        overwrite.result.result()
        update.result(60)
        assert rows(acid, "SELECT * FROM t") in (
            [(2, "b", 1), (3, "b", 2)],
            [(2, "updated", 1), (3, "updated", 2)],
        )


@pytest.mark.parametrize("partitions", first_quick(["1", "1000"]))
def test_an_update_after_a_merge_over_many_partitions_keeps_what_it_set(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, partitions: str
) -> None:
    """Beyond ``hive.locks.max.partitions`` the whole table is locked: that was an update, too."""
    with two_sessions(spark, warehouse, {"hive.locks.max.partitions": partitions}) as (acid, other):
        acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v int) PARTITIONED BY (p int)")
        acid.sql("INSERT INTO t VALUES (1, 100, 1), (2, 100, 2)")
        merge = Moment(monkeypatch, acid, "lock", lambda: other.sql(MERGE))
        acid.sql("UPDATE t SET v = v + 1")
        assert merge.done
        [first, second, ninth] = rows(acid, "SELECT id, v, p FROM t")
        assert (first, second) == ((1, 111, 1), (2, 101, 2))
        assert ninth in ((9, 0, 2), (9, 1, 2))


def test_of_two_overlapping_changes_without_exclusive_locks_one_gives_way(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    optimistic = {"hive.locks.max.partitions": "1", "hive.txn.xlock.write": "false"}
    with two_sessions(spark, warehouse, optimistic) as (acid, other):
        acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v int) PARTITIONED BY (p int)")
        acid.sql("INSERT INTO t VALUES (1, 100, 1), (2, 100, 2)")
        merge = Moment(monkeypatch, acid, "commit_txn", lambda: other.sql(MERGE))
        try:
            acid.sql("UPDATE t SET v = v + 1")
        except AcidError:
            updated = False
        else:
            updated = True
        assert merge.done
        found = rows(acid, "SELECT id, v FROM t")
        if updated:
            assert found in ([(1, 111), (2, 101), (9, 1)], [(1, 111), (2, 101), (9, 0)])
        else:
            assert found == [(1, 110), (2, 100), (9, 0)]


def test_two_equal_merges_insert_a_row_once(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``hive.txn.xlock.mergeinsert`` promises it, also for a partition that neither of them finds."""
    text = (
        "MERGE INTO t USING (SELECT 7 AS id, 'x' AS v, 2 AS p) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET v = 'matched' WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v, s.p)"
    )
    with two_sessions(spark, warehouse, {"hive.txn.xlock.mergeinsert": "true"}) as (acid, other):
        acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string) PARTITIONED BY (p int)")
        acid.sql("INSERT INTO t VALUES (1, 'a', 1)")
        first = Held(monkeypatch, other, "commit_txn", lambda: other.sql(text).collect())
        second = start_until_it_waits(monkeypatch, acid, lambda: acid.sql(text).collect())
        first.release()
        first.result.result()
        second.result(60)
        assert rows(acid, "SELECT * FROM t WHERE id = 7") == [(7, "matched", 2)]


@pytest.mark.parametrize(
    "moment", first_quick(["allocate_table_write_id", "open_txns", "lock", "create_table", "commit_txn"])
)
def test_create_as_never_takes_the_table_that_another_session_made_meanwhile(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    with two_sessions(spark, warehouse) as (acid, other):

        def make() -> None:
            other.sql("CREATE TRANSACTIONAL TABLE x (id int)")
            other.sql("INSERT INTO x VALUES (1), (2)")

        made = Moment(monkeypatch, acid, moment, make)
        try:
            acid.sql("CREATE TRANSACTIONAL TABLE x AS SELECT 7 AS id")
        except (AcidError, PySparkException):
            assert made.done, "it failed without reason"
            assert rows(other, "SELECT * FROM x") == [(1,), (2,)]
        else:
            assert not made.done
            assert rows(other, "SELECT * FROM x") == [(7,)]


def test_an_overwrite_from_the_table_itself_keeps_rows_that_came_before_its_lock(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with two_sessions(spark, warehouse) as (acid, other):
        acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
        acid.sql("INSERT INTO t VALUES (1), (1)")
        insert = Moment(monkeypatch, acid, "lock", lambda: other.sql("INSERT INTO t VALUES (2)"))
        acid.sql("INSERT OVERWRITE TABLE t SELECT DISTINCT id FROM t")
        assert insert.done
        assert rows(acid, "SELECT * FROM t") == [(1,), (2,)]


def test_an_insert_that_commits_after_a_truncate_is_there(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with two_sessions(spark, warehouse) as (acid, other):
        acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
        acid.sql("INSERT INTO t VALUES (1)")
        truncate = Moment(monkeypatch, acid, "commit_txn", lambda: other.sql("TRUNCATE TABLE t"))
        acid.sql("INSERT INTO t VALUES (2)")
        assert truncate.came
        assert rows(acid, "SELECT * FROM t") == ([(2,)] if truncate.done else [(1,), (2,)])


@pytest.mark.parametrize("moment", first_quick(["lock", "alter_table", "allocate_table_write_id", "commit_txn"]))
def test_two_merges_that_add_columns_keep_the_columns_of_both(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    text = (
        "MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT {} AS id, '{}' AS {}) s ON t.id = s.id"
        " WHEN NOT MATCHED THEN INSERT *"
    )
    with two_sessions(spark, warehouse) as (acid, other):
        acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
        acid.sql("INSERT INTO t VALUES (1)")
        inner = Moment(monkeypatch, acid, moment, lambda: other.sql(text.format(2, "salary 5000", "a")))
        try:
            acid.sql(text.format(3, "phone 123", "b"))
        except (AcidError, PySparkException):
            assert inner.done, "it failed without reason"
        else:
            assert inner.came
            assert rows(acid, "SELECT id, b FROM t WHERE id > 2") == [(3, "phone 123")]
        if inner.done:
            assert rows(acid, "SELECT id, a FROM t WHERE id = 2") == [(2, "salary 5000")]
