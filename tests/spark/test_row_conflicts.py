"""``acidsql.write.conflicts=row``: who changes different rows of a table does so side by side."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import acidsql
from acidsql.errors import CompactionError, WriteConflict
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.model import LockState
from acidsql.plan.staging import Staging
from acidsql.session import AcidSession
from tests.spark.answers import nothing_is_open, rows

pytestmark = pytest.mark.spark

BY_ROWS = {"acidsql.write.conflicts": "row", "acidsql.lock.timeout": "20s"}
UPSERT = "MERGE INTO t USING (SELECT {0} AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = v + 1"
SHAPES = {
    "plain": "(id int, v int, p int)",
    "partitioned": "(id int, v int) PARTITIONED BY (p int)",
    "bucketed": "(id int, v int, p int) CLUSTERED BY (id) INTO 2 BUCKETS",
}
START = [(i, 0, i % 2) for i in range(6)]


@pytest.fixture
def acid(acid: AcidSession) -> AcidSession:
    for name, value in BY_ROWS.items():
        acid.sql(f"SET {name}={value}")
    return acid


@pytest.fixture
def other(acid: AcidSession, warehouse: Path) -> Iterator[AcidSession]:
    with acidsql.connect(acid.spark, warehouse=str(warehouse), settings=BY_ROWS) as session:
        yield session


def make(acid: AcidSession, shape: str = "plain") -> None:
    acid.sql(f"CREATE TRANSACTIONAL TABLE t {SHAPES[shape]}")
    acid.sql(f"INSERT INTO t VALUES {', '.join(map(str, START))}")


def before_commit(acid: AcidSession, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> list[str]:
    """Do something before the next commit of a session's statement; the types of locks that each attempt held."""
    real, held = EmbeddedMetastore.commit_txn, list[str]()

    def suspended(txn_id: int, *args: Any) -> None:
        if mine := {k.type.name for k in acid.metastore.show_locks("default", "t") if k.txn_id == txn_id}:
            held.append("+".join(sorted(mine)))
            if len(held) == 1:
                meanwhile()
        real(acid.metastore, txn_id, *args)

    monkeypatch.setattr(acid.metastore, "commit_txn", suspended)
    return held


def ended(acid: AcidSession) -> list[tuple[Any, ...]]:
    return rows(acid, "SELECT id, v, p FROM t ORDER BY id, v")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("jobs", [False, True])
def test_different_rows_are_changed_side_by_side(
    acid: AcidSession, other: AcidSession, monkeypatch: pytest.MonkeyPatch, shape: str, jobs: bool
) -> None:
    make(acid, shape)
    if jobs:
        for session in (acid, other):
            session.sql("SET acidsql.write.driver.rows=0")

    def meanwhile() -> None:
        other.sql("UPDATE t SET v = 7 WHERE id = 1")
        other.sql("DELETE FROM t WHERE id = 3")
        other.sql(UPSERT.format(5))

    held = before_commit(acid, monkeypatch, meanwhile)
    [done] = acid.sql("UPDATE t SET v = v + 10 WHERE id IN (0, 2)").collect()
    assert done.num_updated_rows == 2
    assert held[0] == "SHARED_WRITE"
    assert len(held) == 1, "nobody lost"
    assert ended(acid) == [(0, 10, 0), (1, 7, 1), (2, 10, 0), (4, 0, 0), (5, 1, 1)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("mine", "row"),
    [
        ("UPDATE t SET v = v + 10 WHERE id IN (0, 1)", [(1, 11, 1)]),
        ("DELETE FROM t WHERE id = 1 AND v = 0", [(1, 1, 1)]),
        ("DELETE FROM t WHERE id = 1", []),
        (UPSERT.format(1), [(1, 2, 1)]),
        ("MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED AND v = 1 THEN DELETE", []),
    ],
)
def test_who_loses_a_row_runs_again_and_excludes_others(
    acid: AcidSession,
    other: AcidSession,
    monkeypatch: pytest.MonkeyPatch,
    shape: str,
    mine: str,
    row: list[tuple[int, ...]],
) -> None:
    make(acid, shape)
    held = before_commit(acid, monkeypatch, lambda: other.sql("UPDATE t SET v = v + 1 WHERE id = 1"))
    acid.sql(mine)
    if "v = 1" in mine:  # it had deleted no row: it was before the other one
        assert held == ["SHARED_WRITE"]
        row = [(1, 1, 1)]
    else:
        assert held == ["SHARED_WRITE", "EXCL_WRITE"]
    assert [r for r in ended(acid) if r[0] == 1] == row
    nothing_is_open(acid)


def test_who_runs_again_is_not_overtaken_while_it_plans(
    acid: AcidSession, other: AcidSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By others, before its first commit, and each time that it has begun again and not yet locked."""
    make(acid)
    real_open, real_find = EmbeddedMetastore.open_txns, EmbeddedMetastore.find_table
    begun, waiting = list[int](), list[threading.Thread]()

    def opened(*args: Any, **kwargs: Any) -> Any:
        begun.append(1)
        return real_open(acid.metastore, *args, **kwargs)

    def found(*args: Any) -> Any:
        if len(begun) > len(waiting) + 1:
            thread = threading.Thread(target=lambda: other.sql("UPDATE t SET v = v + 1 WHERE id = 1"))
            waiting.append(thread)
            thread.start()
            while thread.is_alive() and not [k for k in acid.metastore.show_locks() if k.state is LockState.WAITING]:
                thread.join(0.01)
        return real_find(acid.metastore, *args)

    monkeypatch.setattr(acid.metastore, "open_txns", opened)
    monkeypatch.setattr(acid.metastore, "find_table", found)
    held = before_commit(acid, monkeypatch, lambda: other.sql("UPDATE t SET v = v + 1 WHERE id = 1"))
    acid.sql("UPDATE t SET v = v + 10 WHERE id IN (1, 2)")
    monkeypatch.undo()
    for thread in waiting:
        thread.join()
    assert held == ["SHARED_WRITE", "EXCL_WRITE"]
    assert (len(begun), len(waiting)) == (2, 1)
    assert ended(acid)[1:3] == [(1, 12, 1), (2, 10, 0)]
    nothing_is_open(acid)


def test_a_merge_that_inserts_excludes_others(
    acid: AcidSession, other: AcidSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(acid)
    text = UPSERT.format(9) + " WHEN NOT MATCHED THEN INSERT VALUES (s.id, 1, 1)"
    waits = threading.Thread(target=lambda: other.sql(text))
    held = before_commit(acid, monkeypatch, waits.start)
    acid.sql(text)
    waits.join()
    assert held == ["EXCL_WRITE"]
    assert [r for r in ended(acid) if r[0] == 9] == [(9, 2, 1)]


def test_more_rows_than_are_compared_are_in_conflict_with_all(
    acid: AcidSession, other: AcidSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(acid)
    acid.sql("SET acidsql.write.conflicts.rows.max=1")
    held = before_commit(acid, monkeypatch, lambda: other.sql("UPDATE t SET v = 7 WHERE id = 1"))
    acid.sql("UPDATE t SET v = v + 10 WHERE id IN (2, 3)")
    assert held == ["SHARED_WRITE", "EXCL_WRITE"]
    assert [r[1] for r in ended(acid)] == [0, 7, 10, 10, 0, 0]


def test_a_session_of_the_default_waits_and_is_waited_for(
    acid: AcidSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(acid)
    with acidsql.connect(acid.spark, warehouse=str(warehouse)) as default:
        waits = threading.Thread(target=lambda: default.sql("UPDATE t SET v = v + 1"))
        held = before_commit(acid, monkeypatch, waits.start)
        acid.sql("UPDATE t SET v = v + 10 WHERE id = 1")
        waits.join()
        assert held == ["SHARED_WRITE"]
        assert [r[1] for r in ended(acid)] == [1, 11, 1, 1, 1, 1]


@pytest.mark.parametrize("kind", ["minor", "major", "rebalance"])
def test_compaction_in_the_middle(
    acid: AcidSession, other: AcidSession, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    make(acid)

    def meanwhile() -> None:
        other.sql("UPDATE t SET v = 7 WHERE id = 1")
        if kind != "rebalance":  # which waits for the writer
            other.sql(f"ALTER TABLE t COMPACT '{kind}'")
            other.compactor.run_once()
        other.sql("UPDATE t SET v = 8 WHERE id IN (1, 2)")

    held = before_commit(acid, monkeypatch, meanwhile)
    acid.sql("UPDATE t SET v = v + 10 WHERE id IN (2, 3)")
    assert held == ["SHARED_WRITE", "EXCL_WRITE"]
    other.sql(f"ALTER TABLE t COMPACT '{kind}'")
    other.compactor.run_once()
    assert [r[1] for r in ended(acid)] == [0, 8, 18, 10, 0, 0]


@pytest.mark.parametrize(
    ("text", "lock"),
    [
        (UPSERT.format(1), "SHARED_WRITE default.t (UPDATE)"),
        ("DELETE FROM t", "SHARED_WRITE default.t (DELETE)"),
        (UPSERT.format(1) + " WHEN NOT MATCHED THEN INSERT VALUES (9, 9, 9)", "EXCL_WRITE default.t (UPDATE)"),
    ],
)
def test_explain_shows_the_lock(acid: AcidSession, text: str, lock: str) -> None:
    make(acid)
    assert lock in "\n".join(r[0] for r in acid.sql(f"EXPLAIN {text}").collect())


class TestTransactions:
    """Of several statements."""

    def test_of_different_rows_both_commit(self, acid: AcidSession, other: AcidSession) -> None:
        make(acid)
        for session, id in ((acid, 1), (other, 2)):
            session.sql("START TRANSACTION")
            session.sql(f"UPDATE t SET v = v + 1 WHERE id = {id}")
            session.sql(f"UPDATE t SET v = v + 1 WHERE id = {id}")
        acid.sql("COMMIT")
        other.sql("DELETE FROM t WHERE id = 3")
        other.sql("COMMIT")
        assert ended(acid) == [(0, 0, 0), (1, 2, 1), (2, 2, 0), (4, 0, 0), (5, 0, 1)]

    def test_of_one_row_the_second_commit_is_in_conflict(self, acid: AcidSession, other: AcidSession) -> None:
        make(acid)
        for session, id in ((acid, 1), (other, 2)):
            session.sql("START TRANSACTION")
            session.sql(f"UPDATE t SET v = v + 1 WHERE id = {id}")
        other.sql("DELETE FROM t WHERE id = 1")
        acid.sql("COMMIT")
        with pytest.raises(WriteConflict):
            other.sql("COMMIT")
        assert not other.in_transaction
        assert ended(acid)[1:3] == [(1, 1, 1), (2, 0, 0)]
        for session in (acid, other):
            session._env.heartbeats.end_released(collect=True)
        nothing_is_open(acid)

    def test_what_a_statement_deleted_that_was_undone_does_not_count(
        self, acid: AcidSession, other: AcidSession, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make(acid)
        acid.sql("START TRANSACTION")
        acid.sql("UPDATE t SET v = v + 1 WHERE id = 1")
        _undone(acid, monkeypatch, "UPDATE t SET v = v + 1 WHERE id = 2")
        other.sql("UPDATE t SET v = 7 WHERE id = 2")
        acid.sql("COMMIT")
        assert ended(acid)[1:3] == [(1, 1, 1), (2, 7, 0)]

    def test_a_statement_that_was_undone_is_in_conflict_with_nobody(
        self, acid: AcidSession, other: AcidSession, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make(acid)
        acid.sql("CREATE TRANSACTIONAL TABLE u AS SELECT 1 AS id")
        acid.sql("START TRANSACTION")
        acid.sql("UPDATE u SET id = 2")
        _undone(acid, monkeypatch, "UPDATE t SET v = v + 1 WHERE id = 2")
        other.sql("UPDATE t SET v = 7 WHERE id = 2")
        acid.sql("COMMIT")
        assert rows(acid, "SELECT id FROM u") == [(2,)]
        assert ended(acid)[2] == (2, 7, 0)

    @pytest.mark.parametrize(
        "after",
        [
            UPSERT.format(9) + " WHEN NOT MATCHED THEN INSERT VALUES (s.id, 1, 1)",
            "INSERT OVERWRITE TABLE t SELECT id, v + 1, p FROM t",
        ],
    )
    def test_a_statement_that_tells_no_rows_is_in_conflict_with_all(
        self, acid: AcidSession, other: AcidSession, after: str
    ) -> None:
        make(acid)
        acid.sql("START TRANSACTION")
        acid.sql("UPDATE t SET v = v + 1 WHERE id = 1")
        other.sql("UPDATE t SET v = 7 WHERE id = 2")
        with pytest.raises(WriteConflict):
            acid.sql(after)
        acid.sql("ROLLBACK")
        assert ended(acid)[1:3] == [(1, 0, 1), (2, 7, 0)]

    def test_who_has_waited_for_another_one_sees_it_and_is_in_no_conflict(
        self, acid: AcidSession, warehouse: Path
    ) -> None:
        make(acid)
        with acidsql.connect(acid.spark, warehouse=str(warehouse)) as default:
            default.sql("START TRANSACTION")
            default.sql("UPDATE t SET v = 1 WHERE id = 1")
            acid.sql("START TRANSACTION")
            waits = threading.Thread(target=lambda: acid.sql("UPDATE t SET v = 2 WHERE id = 2"))
            waits.start()
            while not [k for k in default.metastore.show_locks() if k.state is LockState.WAITING]:
                assert waits.is_alive()
            default.sql("COMMIT")
            waits.join()
        acid.sql("COMMIT")
        assert [r[1] for r in ended(acid)] == [0, 1, 2, 0, 0, 0]

    def test_it_is_in_conflict_with_one_that_told_no_rows(self, acid: AcidSession, other: AcidSession) -> None:
        make(acid)
        acid.sql("START TRANSACTION")
        assert len(acid.sql("SELECT * FROM t").collect()) == len(START)
        other.sql(UPSERT.format(9) + " WHEN NOT MATCHED THEN INSERT VALUES (s.id, 1, 1)")
        with pytest.raises(WriteConflict):
            acid.sql("UPDATE t SET v = v + 1 WHERE id = 1")
        acid.sql("ROLLBACK")


def _undone(acid: AcidSession, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """A statement that fails once it has published."""

    real = Staging.publish

    def fail(*args: Any) -> None:
        real(*args)
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(Staging, "publish", fail)
        with pytest.raises(ZeroDivisionError):
            acid.sql(text)


@pytest.mark.parametrize("shape", SHAPES)
def test_many_at_once_lose_nothing(acid: AcidSession, warehouse: Path, shape: str) -> None:
    """Increments of few rows, deletions and compactions: each row counts what was acknowledged."""
    make(acid, shape)
    seed = random.randrange(10**6)
    counted, problems = list[int](), list[str]()

    def work(number: int) -> None:
        chance = random.Random(seed + number)
        try:
            with acidsql.connect(acid.spark, warehouse=str(warehouse), settings=BY_ROWS) as session:
                for _ in range(6):
                    ids = chance.sample(range(len(START)), chance.choice((1, 1, 2)))
                    where = f"id IN ({', '.join(map(str, ids))})"
                    text = chance.choice((f"UPDATE t SET v = v + 1 WHERE {where}", UPSERT.format(ids[0])))
                    [done] = session.sql(text).collect()
                    touched = ids if text.startswith("UPDATE") else ids[:1]
                    assert done.num_updated_rows == len(touched), text
                    counted.extend(touched)
                    if number == 0:
                        try:
                            session.sql(f"ALTER TABLE t{partition} COMPACT '{chance.choice(('minor', 'major'))}'")
                        except CompactionError as e:  # nothing was written there since the last one
                            if "already scheduled with state='ready for cleaning'" not in e.message:
                                raise
                        session.compactor.run_once()
        except Exception as e:
            problems.append(f"{seed}/{number}: {e!r}")

    partition = " PARTITION (p = 1)" if shape == "partitioned" else ""
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert [r[1] for r in ended(acid)] == [counted.count(id) for id, _, _ in START], seed
    nothing_is_open(acid)
