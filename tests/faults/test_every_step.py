"""Fail the Nth step of a statement for N = 1, 2, 3 …: the table is wholly before it or wholly after it, no traces.

A step is a call of the metastore or of the file system. What is injected is an error at its entry, and in a second run
right after it was done: the caller then cannot know that it was.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import acidsql
from acidsql.fs import LocalFileSystem
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.session import AcidSession
from tests.injection import Injector
from tests.spark.answers import nothing_is_open
from tests.spark.tree import tree

FS_STEPS = ("list", "exists", "mkdirs", "rename", "sync", "write_bytes", "open_write")
METASTORE_STEPS = (
    "open_txns",
    "get_valid_txns",
    "get_valid_write_ids",
    "allocate_table_write_id",
    "lock",
    "get_latest_txn_in_conflict",
    "add_partitions",
    "add_dynamic_partitions",
    "commit_txn",
)


STEPS = {LocalFileSystem: FS_STEPS, EmbeddedMetastore: METASTORE_STEPS}
DECIDING = ("lock", "allocate_table_write_id", "rename", "add_dynamic_partitions", "commit_txn")
"""The steps after which others see that something is under way, or done."""

STATEMENTS = {
    "insert": "INSERT INTO t VALUES (9, 'new', 1)",
    "insert by a job": "INSERT INTO t SELECT id, 'bulk', 1 FROM range(30000)",
    "update": "UPDATE t SET v = 'changed' WHERE id = 1",
    "delete": "DELETE FROM t WHERE id = 2",
    "overwrite": "INSERT OVERWRITE t VALUES (7, 'only', 3)",
    "partitioned insert": "INSERT INTO p VALUES (9, 'new', 1), (9, 'new', 5)",
    "partitioned update": "UPDATE p SET v = 'changed' WHERE id = 1",
}


IN_EVERY_RUN = {("insert by a job", False)}
"""Statements, and whether they fail right after each step or before it; the others do so in ``make test-faults``."""
CASES = [
    pytest.param(
        name,
        after,
        id=f"{name}-{'after' if after else 'before'} the step",
        marks=[] if (name, after) in IN_EVERY_RUN else [pytest.mark.long],
    )
    for name in STATEMENTS
    for after in (False, True)
]


def rows(acid: AcidSession) -> list[list[tuple[Any, ...]]]:
    return [sorted(tuple(r) for r in acid.table(t).collect()) for t in ("t", "p")]


def prepared(spark: SparkSession, warehouse: Path) -> AcidSession:
    acid = acidsql.connect(spark, warehouse=warehouse)
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string, p int)")
    acid.sql("CREATE TRANSACTIONAL TABLE p (id int, v string) PARTITIONED BY (p int)")
    for table in ("t", "p"):
        acid.sql(f"INSERT INTO {table} VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 2)").collect()
    return acid


def files_of(warehouse: Path) -> list[str]:
    return [f for f in tree(warehouse) if not f.startswith("acidsql.db")]


def each_step_fails(
    acid: AcidSession, warehouse: Path, injector: Injector, run: Callable[[], object], *, after: bool, stays: str = ""
) -> list[str]:
    """Run something with an error at its first step, its second, and so on, until it is committed.

    Args:
        acid: A session with the tables of :func:`prepared`.
        warehouse: Where they are.
        injector: Throws the errors.
        run: Runs it.
        after: Whether a step is done before it fails.
        stays: Part of the paths that may be left by a run that failed.

    Returns:
        The steps that have failed. But for the last, none has left a row, a transaction, a lock or a file.
    """
    before, files = rows(acid), files_of(warehouse)
    fired: list[str] = []
    for number in itertools.count(1):
        injector.arm(number, after)
        with injector.on():
            run()
        if injector.fired is None:
            return fired
        fired.append(injector.fired)
        # it was committed, whatever the caller saw; a second commit is that of a reader's transaction
        is_committed = injector.fired == "commit_txn" and (after or fired.count("commit_txn") > 1)
        assert (rows(acid) != before) is is_committed, injector.fired
        if is_committed:
            return fired
        if injector.fired == "open_txns" and after:
            # nobody was told its id, so nobody sends heartbeats: it ends with hive.txn.timeout, which is too long here
            acid.metastore.abort_txns([t.id for t in acid.metastore.show_txns()])
            acid.metastore.clean_empty_aborted_txns()
        nothing_is_open(acid)
        left = files_of(warehouse)
        assert [f for f in left if not stays or stays not in f] == files, injector.fired
    raise AssertionError


@pytest.mark.parametrize(("name", "after"), CASES)
def test_an_error_at_any_step_leaves_all_or_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, after: bool
) -> None:
    acid = prepared(spark, tmp_path / "w")
    injector = Injector(monkeypatch, STEPS)
    before = rows(acid)
    fired = each_step_fails(acid, tmp_path / "w", injector, lambda: acid.sql(STATEMENTS[name]), after=after)
    assert fired.count("commit_txn") == 1
    assert {"open_txns", "lock", "allocate_table_write_id", "commit_txn", "rename"} <= set(fired)
    assert rows(acid) != before
    acid.close()


@pytest.mark.parametrize(
    ("after", "counted"),
    [
        pytest.param(False, DECIDING, id="before some"),
        pytest.param(False, None, id="before any", marks=pytest.mark.long),
        pytest.param(True, None, id="after any", marks=pytest.mark.long),
    ],
)
def test_an_error_at_any_step_of_a_transaction_leaves_all_or_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool, counted: Collection[str] | None
) -> None:
    """Four statements over two tables, the last of which replaces the rows of the second one."""
    acid = prepared(spark, tmp_path / "w")
    injector = Injector(monkeypatch, STEPS, counted=counted)

    def run() -> None:
        with acid.transaction():
            acid.sql("INSERT INTO t SELECT id + 10, v, p FROM p WHERE id < 3")
            acid.sql("INSERT INTO p VALUES (9, 'new', 1), (9, 'new', 5)")
            acid.sql("UPDATE t SET v = 'changed' WHERE id > 2")
            acid.sql("INSERT OVERWRITE TABLE p PARTITION (p) SELECT id, v, 1 FROM t")

    stays = "/p=5"  # the partition's directory
    fired = each_step_fails(acid, tmp_path / "w", injector, run, after=after, stays=stays)
    assert set(counted or ("open_txns", *DECIDING)) <= set(fired)
    assert fired.count("commit_txn") == (1 if after else 2)
    assert rows(acid) == [
        [(1, "a", 1), (2, "b", 1), (3, "changed", 2), (11, "changed", 1), (12, "changed", 1)],
        [
            (1, "a", 1),
            (2, "b", 1),
            (3, "c", 2),
            (3, "changed", 1),
            (9, "new", 5),
            (11, "changed", 1),
            (12, "changed", 1),
        ],
    ]
    acid.close()


@pytest.mark.parametrize("after", [False, pytest.param(True, marks=pytest.mark.long)])
def test_an_error_at_any_step_of_a_read_leaves_nothing_open(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    acid = prepared(spark, tmp_path / "w")
    ends = ("commit_txn", "heartbeat_txns") if not after else ()
    steps = {LocalFileSystem: FS_STEPS, EmbeddedMetastore: (*METASTORE_STEPS[:-1], "list_partitions", *ends)}
    injector = Injector(monkeypatch, steps)
    fired: list[str] = []
    for number in itertools.count(1):
        injector.arm(number, after)
        with injector.on():
            assert len(rows(acid)[0]) == 3
            acid.sql("SELECT * FROM p WHERE p = 1").collect()
        if injector.fired is None:
            break
        fired.append(injector.fired)
        if injector.fired == "open_txns" and after:
            acid.metastore.abort_txns([t.id for t in acid.metastore.show_txns()])
        nothing_is_open(acid)
    expected = {"open_txns"} if after else {"open_txns", "get_valid_txns", "list_partitions"}
    assert expected <= set(fired)
    acid.close()


LAST_STEPS = {
    LocalFileSystem: (*FS_STEPS, "delete"),
    EmbeddedMetastore: (*METASTORE_STEPS, "abort_txns", "forget_txn_components", "heartbeat"),
}
"""What a process that is killed does not do any more, either."""

KILLED = {
    "merge": "MERGE INTO p USING (SELECT 1 AS id UNION ALL SELECT 50) s ON p.id = s.id WHEN MATCHED THEN UPDATE SET"
    " v = 'm' WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'm', 2)",
    "merge into a new partition": "MERGE INTO p USING (SELECT 1 AS id UNION ALL SELECT 50) s ON p.id = s.id"
    " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'm', 7)",
    "inserts": "FROM t INSERT INTO p SELECT id, 'x', 1 INSERT INTO p SELECT id, 'y', 2 INSERT INTO p SELECT id, 'z', 8",
    "insert and overwrite": "FROM t INSERT INTO p SELECT id, 'x', 1 INSERT OVERWRITE TABLE p SELECT id, 'y', 2",
    "partitioned insert": STATEMENTS["partitioned insert"],
    "partitioned overwrite": "INSERT OVERWRITE TABLE p VALUES (9, 'new', 1), (9, 'new', 2)",
    "truncate": "TRUNCATE TABLE p",
}
TELLING = ("add_dynamic_partitions", "rename")
"""Steps at which a partition is in the store but not on the disk, or the other way round."""
KILLS = [
    pytest.param("merge", True, TELLING, id="merge-after some"),
    *(
        pytest.param(name, after, None, id=f"{name}-{'after' if after else 'before'} any", marks=pytest.mark.long)
        for name in KILLED
        for after in (False, True)
    ),
]


@pytest.mark.parametrize(("name", "after", "counted"), KILLS)
def test_a_kill_at_any_step_leaves_all_or_nothing_also_when_it_was_cleaned(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    after: bool,
    counted: Collection[str] | None,
) -> None:
    """The transaction is found dead and aborted; what it has published is never seen, in whichever partition."""
    acid = prepared(spark, tmp_path / "w")
    injector = Injector(monkeypatch, LAST_STEPS, kills=True, counted=counted)
    before = rows(acid)
    fired: list[str] = []
    for number in itertools.count(1):
        injector.arm(number, after)
        with injector.on():
            acid.sql(KILLED[name])
        if injector.fired is None or (injector.fired == "commit_txn" and after):
            break
        fired.append(injector.fired)
        acid.metastore.abort_txns([t.id for t in acid.metastore.show_txns()])
        for _ in range(3):
            assert rows(acid) == before, (injector.fired, number)
            acid.compactor.run_once()
        assert rows(acid) == before, (injector.fired, number)
    assert set(counted or {"open_txns", "lock", "allocate_table_write_id", "rename"}) <= set(fired)
    assert rows(acid) != before
    acid.close()
