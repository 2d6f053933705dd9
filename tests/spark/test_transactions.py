"""START TRANSACTION … COMMIT: several statements over several tables, of which all are there, or none."""

from __future__ import annotations

import concurrent.futures
import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame

import acidsql
from acidsql.commands.environment import Environment
from acidsql.commands.transaction import control, held_locks, write_transaction
from acidsql.commands.transaction.held import HeldTransactions
from acidsql.commands.transaction.session_transaction import SessionTransaction
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.errors import (
    AcidError,
    AnalysisError,
    Deadlock,
    InvalidValue,
    LockTimeout,
    NotTransactional,
    ParseError,
    TransactionAborted,
    TransactionError,
    UnsupportedError,
    WriteConflict,
)
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.heartbeat import Heartbeats
from acidsql.metastore.model import (
    LockComponent,
    LockRequest,
    LockResponse,
    LockState,
    LockType,
    Operation,
    Table,
)
from acidsql.plan.staging import Staging
from acidsql.plan.views import Views
from acidsql.session import AcidSession
from acidsql.sql.statements import TableName
from tests.spark.answers import nothing_is_open, rows

pytestmark = pytest.mark.spark


@pytest.fixture
def bank(acid: AcidSession) -> AcidSession:
    for name in ("a", "b"):
        acid.sql(f"CREATE TRANSACTIONAL TABLE {name} (id int, v int)")
        acid.sql(f"INSERT INTO {name} VALUES (1, 100), (2, 100)")
    return acid


@pytest.fixture
def other(acid: AcidSession, warehouse: Path) -> Iterator[AcidSession]:
    """A second session over the same store."""
    settings = {"acidsql.lock.timeout": "20s"}
    with acidsql.connect(acid.spark, warehouse=str(warehouse), settings=settings) as session:
        yield session


def nothing_is_left(*sessions: AcidSession) -> None:
    """Each session ends the transactions of its own readers."""
    for session in sessions:
        session._env.heartbeats.end_released(collect=True)
    nothing_is_open(sessions[0])


def opened(acid: AcidSession) -> list[int]:
    """The ids of all open transactions."""
    return [int(r.txnid) for r in acid.sql("SHOW TRANSACTIONS").collect() if r.state == "OPEN"]


def fail_after(acid: AcidSession, text: str) -> None:
    acid.sql(text)
    raise ZeroDivisionError


def values(acid: AcidSession, table: str) -> list[tuple[int, int]]:
    return sorted((r.id, r.v) for r in acid.sql(f"SELECT id, v FROM {table}").collect())


def test_all_statements_are_seen_at_once(bank: AcidSession, other: AcidSession) -> None:
    bank.sql("START TRANSACTION")
    bank.sql("UPDATE a SET v = v - 10 WHERE id = 1")
    bank.sql("UPDATE b SET v = v + 10 WHERE id = 1")
    assert (values(bank, "a"), values(bank, "b")) == ([(1, 90), (2, 100)], [(1, 110), (2, 100)])
    assert (values(other, "a"), values(other, "b")) == ([(1, 100), (2, 100)], [(1, 100), (2, 100)])
    bank.sql("COMMIT")
    assert (values(other, "a"), values(other, "b")) == ([(1, 90), (2, 100)], [(1, 110), (2, 100)])
    nothing_is_left(other, bank)


def test_none_is_there_after_a_rollback(bank: AcidSession, warehouse: Path) -> None:
    before = sorted(str(p) for p in warehouse.rglob("*delta_*"))
    bank.sql("START TRANSACTION")
    bank.sql("INSERT INTO a VALUES (3, 1)")
    bank.sql("DELETE FROM b")
    assert values(bank, "b") == []
    bank.sql("ROLLBACK")
    assert (values(bank, "a"), values(bank, "b")) == ([(1, 100), (2, 100)], [(1, 100), (2, 100)])
    assert sorted(str(p) for p in warehouse.rglob("*delta_*")) == before
    nothing_is_open(bank)


def test_a_block(bank: AcidSession) -> None:
    with bank.transaction():
        bank.sql("INSERT INTO a VALUES (3, 1)")
        bank.table("a").count()
    with pytest.raises(ZeroDivisionError), bank.transaction():
        fail_after(bank, "INSERT INTO a VALUES (4, 1)")
    assert values(bank, "a") == [(1, 100), (2, 100), (3, 1)]
    with pytest.raises(TransactionError, match="ended within its block"), bank.transaction():
        list(bank.script("INSERT INTO a VALUES (5, 1); COMMIT"))
    assert len(values(bank, "a")) == 4
    nothing_is_open(bank)


@pytest.mark.parametrize("fails", [False, True])
def test_a_transaction_that_is_begun_within_the_block_of_another_one(bank: AcidSession, fails: bool) -> None:
    error = pytest.raises(ZeroDivisionError) if fails else pytest.raises(TransactionError, match="within its block")
    with error, bank.transaction():
        for text in ("ROLLBACK", "START TRANSACTION", "INSERT INTO a VALUES (6, 1)"):
            bank.sql(text)
        if fails:
            fail_after(bank, "INSERT INTO a VALUES (7, 1)")
    assert not bank.in_transaction
    assert values(bank, "a") == [(1, 100), (2, 100)]
    nothing_is_open(bank)


def _closes(acid: AcidSession) -> None:
    acid.close()


def _fails(acid: AcidSession) -> None:
    raise ValueError("in the child")


def _exits(acid: AcidSession) -> None:
    sys.exit(3)


def _commits(acid: AcidSession) -> None:
    """Go on to the end of the block."""


def _runs_a_statement(acid: AcidSession) -> None:
    acid.sql("ROLLBACK")


@pytest.mark.parametrize("child", [_closes, _fails, _exits, _commits, _runs_a_statement])
def test_a_forked_child_cannot_end_it(bank: AcidSession, child: Callable[[AcidSession], None]) -> None:
    """Its copy of the block, or of the session, ended the transaction of its parent."""
    stream = bank.streaming("b")
    stream.begin()
    stream.write([{"id": 70, "v": 7}])
    parent = os.getpid()
    try:
        with stream, bank.transaction():
            bank.sql("INSERT INTO a VALUES (71, 1)")
            pid = os.fork()
            if pid == 0:
                child(bank)
            else:
                os.waitpid(pid, 0)
                bank.sql("INSERT INTO a VALUES (72, 1)")
                stream.commit()
    finally:
        if os.getpid() != parent:
            os._exit(0)
    assert values(bank, "a")[2:] == [(71, 1), (72, 1)]
    assert values(bank, "b")[2:] == [(70, 7)]
    nothing_is_left(bank)


def test_later_statements_change_rows_of_earlier_ones(bank: AcidSession) -> None:
    """Inserted, updated twice, deleted, merged: many directories of one write id."""
    bank.sql("START TRANSACTION")
    bank.sql("INSERT INTO a VALUES (3, 1), (4, 1), (5, 1)")
    bank.sql("UPDATE a SET v = 2 WHERE id >= 3")
    bank.sql("UPDATE a SET v = v + 1 WHERE id IN (1, 3)")
    bank.sql("DELETE FROM a WHERE id IN (2, 4)")
    assert values(bank, "a") == [(1, 101), (3, 3), (5, 2)]
    bank.sql(
        "MERGE INTO a USING (SELECT * FROM VALUES (1, 0), (3, 33), (6, 66) AS s(id, v)) s ON a.id = s.id"
        " WHEN MATCHED AND s.v = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
    )
    bank.sql("INSERT INTO a SELECT id + 10, v FROM a")
    bank.sql("FROM a INSERT INTO b SELECT id, v WHERE id < 10 INSERT INTO a SELECT id + 100, 0 WHERE id > 10")
    expected = [(3, 33), (5, 2), (6, 66), (13, 33), (15, 2), (16, 66), (113, 0), (115, 0), (116, 0)]
    assert values(bank, "a") == expected
    bank.sql("COMMIT")
    assert values(bank, "a") == expected
    assert values(bank, "b") == sorted([(1, 100), (2, 100), (3, 33), (5, 2), (6, 66)])
    assert rows(bank, "SELECT count(DISTINCT ROW__ID) FROM a") == [(9,)]
    bank.sql("ALTER TABLE a COMPACT 'major' AND WAIT")
    bank.compactor.run_once()
    assert values(bank, "a") == expected
    nothing_is_open(bank)


def test_the_snapshot_is_that_of_the_first_statement(bank: AcidSession, other: AcidSession) -> None:
    bank.sql("START TRANSACTION")
    other.sql("INSERT INTO a VALUES (3, 3)")
    assert len(values(bank, "a")) == 3, "no statement has run before"
    other.sql("INSERT INTO a VALUES (4, 4)")
    other.sql("UPDATE b SET v = 0")
    assert (len(values(bank, "a")), values(bank, "b")) == (3, [(1, 100), (2, 100)])
    bank.sql("INSERT INTO a SELECT id + 10, v FROM a WHERE id = 3")
    bank.sql("COMMIT")
    assert values(bank, "a") == [(1, 100), (2, 100), (3, 3), (4, 4), (13, 3)]
    nothing_is_left(other, bank)


def test_who_changes_the_same_rows_later_is_in_conflict(bank: AcidSession, other: AcidSession) -> None:
    bank.sql("START TRANSACTION")
    bank.sql("INSERT INTO b VALUES (3, 3)")
    other.sql("UPDATE a SET v = 1 WHERE id = 1")
    with pytest.raises(WriteConflict):
        bank.sql("UPDATE a SET v = v + 1")
    for text in ("SELECT * FROM a", "INSERT INTO a VALUES (9, 9)"):
        with pytest.raises(TransactionError, match="ROLLBACK"):
            bank.sql(text)
    with pytest.raises(TransactionError, match="nothing of it is kept"):
        bank.sql("COMMIT")
    assert (values(bank, "a"), len(values(bank, "b"))) == ([(1, 1), (2, 100)], 2)
    with bank.transaction():
        bank.sql("UPDATE a SET v = v + 1")
    assert values(bank, "a") == [(1, 2), (2, 101)]
    nothing_is_left(other, bank)


def test_the_first_statement_starts_over_by_itself(bank: AcidSession, other: AcidSession) -> None:
    """It waits for another one's lock, and then sees what that one has changed."""
    other.sql("START TRANSACTION")
    other.sql("UPDATE a SET v = 1 WHERE id = 1")
    bank.sql("START TRANSACTION")
    thread = threading.Thread(target=lambda: (time.sleep(1), other.sql("COMMIT")))
    thread.start()
    bank.sql("UPDATE a SET v = v + 1")
    thread.join()
    bank.sql("UPDATE a SET v = v + 1")
    bank.sql("COMMIT")
    assert values(bank, "a") == [(1, 3), (2, 102)]


def test_two_that_wait_for_each_other(bank: AcidSession, other: AcidSession) -> None:
    bank.sql("START TRANSACTION")
    other.sql("START TRANSACTION")
    bank.sql("UPDATE a SET v = 1")
    other.sql("UPDATE b SET v = 2")
    errors: list[AcidError] = []

    def change(session: AcidSession, text: str) -> None:
        try:
            session.sql(text)
            session.sql("COMMIT")
        except AcidError as e:
            errors.append(e)

    threads = [
        threading.Thread(target=change, args=(bank, "UPDATE b SET v = 1")),
        threading.Thread(target=change, args=(other, "UPDATE a SET v = 2")),
    ]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [error] = errors
    assert isinstance(error, Deadlock)
    assert time.monotonic() - begun < 15
    loser = bank if bank.in_transaction else other
    loser.sql("ROLLBACK")
    winner = {v for _, v in values(bank, "a")} | {v for _, v in values(bank, "b")}
    assert len(winner) == 1
    nothing_is_left(other, bank)


def test_a_statement_that_fails_is_undone_alone(bank: AcidSession, warehouse: Path) -> None:
    bank.sql("CREATE TRANSACTIONAL TABLE c (id int NOT NULL)")
    bank.sql("START TRANSACTION")
    bank.sql("INSERT INTO a VALUES (3, 3)")
    for text in (
        "INSERT INTO c SELECT CASE WHEN id < 2 THEN id END FROM a",
        "SELECT nope FROM a",
        "UPDATE a SET v = raise_error('x')",
        "INSERT INTO nowhere VALUES (1)",
        "MERGE INTO a USING (SELECT * FROM VALUES (1), (1) AS s(k)) s ON a.id = s.k WHEN MATCHED THEN UPDATE SET v = 1",
    ):
        with pytest.raises(Exception, match=r".") as raised:
            bank.sql(text).collect()
        assert not isinstance(raised.value, TransactionAborted)
    bank.sql("UPDATE a SET v = 4 WHERE id = 3")
    bank.sql("COMMIT")
    assert values(bank, "a") == [(1, 100), (2, 100), (3, 4)]
    assert bank.table("c").count() == 0
    assert list(warehouse.rglob("_tmp_*")) == []
    nothing_is_open(bank)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CREATE TABLE d (id int)", 20007),
        ("DROP TABLE a", 20007),
        ("ALTER TABLE a ADD COLUMNS (w int)", 20007),
        ("ALTER TABLE a COMPACT 'major'", 20007),
        ("START TRANSACTION", 20007),
        ("CREATE DATABASE d", 20007),
        ("ANALYZE TABLE a COMPUTE STATISTICS", 20007),
        ("CREATE TABLE d USING parquet AS SELECT 1 AS id", 20007),
    ],
)
def test_definitions_are_refused(bank: AcidSession, text: str, code: int) -> None:
    bank.sql("START TRANSACTION")
    bank.sql("INSERT INTO a VALUES (3, 3)")
    with pytest.raises(TransactionError) as raised:
        bank.sql(text)
    assert raised.value.code == code
    bank.sql("COMMIT WORK")
    assert len(values(bank, "a")) == 3
    nothing_is_open(bank)


def test_tables_that_others_change_under_it(bank: AcidSession, other: AcidSession) -> None:
    """Of one that was altered the snapshot says nothing any more; the transaction goes on with others."""
    bank.sql("START TRANSACTION")
    assert len(values(bank, "a")) == 2
    other.sql("ALTER TABLE a ADD COLUMNS (w int)")
    other.sql("CREATE TRANSACTIONAL TABLE later (id int)")
    other.sql("INSERT INTO later VALUES (1)")
    for text in ("SELECT * FROM a", "INSERT INTO a VALUES (3, 3, 3)", "SELECT * FROM later"):
        with pytest.raises(TransactionError, match="was changed") as raised:
            bank.sql(text)
        assert str(raised.value.hint).startswith("COMMIT or ROLLBACK")
    other.sql("DROP TABLE later")
    with pytest.raises(AnalysisError):
        bank.sql("INSERT INTO later VALUES (1)")
    bank.sql("INSERT INTO b VALUES (3, 3)")
    bank.sql("COMMIT")
    assert len(values(bank, "b")) == 3
    nothing_is_left(other, bank)


def test_merge_adds_no_columns(bank: AcidSession) -> None:
    bank.spark.sql("SELECT 1 AS id, 2 AS v, 3 AS w").createOrReplaceTempView("wide")
    text = "MERGE WITH SCHEMA EVOLUTION INTO a USING wide ON a.id = wide.id WHEN MATCHED THEN UPDATE SET *"
    with bank.transaction(), pytest.raises(TransactionError, match="cannot add the column w"):
        bank.sql(text)
    bank.sql(text)
    assert bank.table("a").columns == ["id", "v", "w"]
    bank.spark.catalog.dropTempView("wide")


def test_there_is_nothing_to_end(bank: AcidSession) -> None:
    for text in ("COMMIT", "ROLLBACK", "ROLLBACK WORK"):
        with pytest.raises(TransactionError) as raised:
            bank.sql(text)
        assert raised.value.code == 20008
    with bank.transaction(), pytest.raises(TransactionError) as raised, bank.transaction():
        pass
    assert raised.value.code == 20007
    nothing_is_open(bank)


def test_read_only(bank: AcidSession) -> None:
    bank.sql("START TRANSACTION READ ONLY, ISOLATION LEVEL SNAPSHOT")
    assert len(values(bank, "a")) == 2
    for text in ("INSERT INTO a VALUES (1, 1)", "DELETE FROM a WHERE id = 1", "TRUNCATE TABLE a"):
        with pytest.raises(TransactionError, match="READ ONLY"):
            bank.sql(text)
    bank.sql("COMMIT")
    with bank.transaction(read_only=True), pytest.raises(TransactionError, match="READ ONLY"):
        bank.sql("UPDATE a SET v = 1")
    nothing_is_open(bank)


def test_without_autocommit_a_statement_begins_a_transaction(bank: AcidSession, other: AcidSession) -> None:
    for text in ("SET autocommit=0", "SET AUTOCOMMIT = FALSE", "SET AUTOCOMMIT OFF"):
        with pytest.raises(ParseError, match="TRUE or FALSE"):
            bank.sql(text)
    bank.sql("SET AUTOCOMMIT FALSE")
    bank.sql("INSERT INTO a VALUES (3, 3)")
    assert len(values(other, "a")) == 2
    with pytest.raises(TransactionError) as raised:
        bank.sql("DROP TABLE b")
    assert raised.value.code == 20006
    bank.sql("COMMIT")
    assert len(values(other, "a")) == 3
    bank.sql("DELETE FROM a")
    bank.sql("ROLLBACK")
    bank.sql("INSERT INTO a VALUES (4, 4)")
    bank.sql("SET AUTOCOMMIT TRUE")
    assert len(values(other, "a")) == 4
    bank.sql("DELETE FROM a WHERE id = 4")
    assert len(values(other, "a")) == 3
    nothing_is_left(other, bank)


def test_tables_of_spark_are_read_and_not_written(bank: AcidSession) -> None:
    bank.spark.sql("CREATE TABLE plain (id int) USING parquet")
    bank.spark.sql("INSERT INTO plain VALUES (7)")
    with bank.transaction():
        bank.sql("INSERT INTO a SELECT id, 0 FROM plain")
        for text in ("INSERT INTO plain SELECT id FROM a", "INSERT INTO plain VALUES (1)", "TRUNCATE TABLE plain"):
            with pytest.raises(NotTransactional):
                bank.sql(text)
        with pytest.raises(AnalysisError):
            bank.sql("UPDATE plain SET id = 1")
    assert rows(bank, "SELECT * FROM plain") == [(7,)]
    bank.spark.sql("DROP TABLE plain")
    assert len(values(bank, "a")) == 3


def test_temporary_views_and_functions_are_the_sessions(bank: AcidSession, tmp_path: Path) -> None:
    """Some were refused, as if they were definitions."""
    bank.spark.range(3).write.parquet(f"file:{tmp_path}/files")
    with bank.transaction():
        bank.sql("INSERT INTO a VALUES (3, 3)")
        bank.sql("CREATE GLOBAL TEMP VIEW g AS SELECT * FROM a")
        assert bank.sql("SELECT count(*) FROM global_temp.g").collect()[0][0] == 3
        bank.sql("DROP VIEW global_temp.g")
        for head in ("CREATE", "CREATE OR REPLACE"):
            bank.sql(f"{head} TEMPORARY VIEW files USING parquet OPTIONS (path 'file:{tmp_path}/files')")
        assert bank.sql("SELECT count(*) FROM files").collect()[0][0] == 3
        bank.sql("DROP VIEW files")
        for text in ("DROP VIEW nowhere", "CREATE VIEW v AS SELECT * FROM a", "DROP VIEW default.v"):
            with pytest.raises(TransactionError, match="not allowed"):
                bank.sql(text)
    assert len(values(bank, "a")) == 3


def test_frames_see_their_moment_and_outlive_a_commit(bank: AcidSession, other: AcidSession) -> None:
    bank.sql("START TRANSACTION")
    before = bank.sql("SELECT * FROM a")
    bank.sql("INSERT INTO a VALUES (3, 3)")
    between = bank.sql("SELECT * FROM a")
    bank.sql("DELETE FROM a")
    after = bank.table("a")
    bank.sql("CREATE TEMPORARY VIEW seen AS SELECT * FROM a")
    for _ in range(2):
        assert [frame.count() for frame in (before, between, after)] == [2, 3, 0]
        assert bank.spark.sql("SELECT * FROM seen").count() == 0
        if bank.in_transaction:
            bank.sql("COMMIT")
    bank.sql("INSERT INTO a VALUES (4, 4)")
    other.sql("ALTER TABLE a COMPACT 'major' AND WAIT")
    other.compactor.run_once()
    assert [frame.count() for frame in (before, between, after)] == [2, 3, 0]
    with bank.transaction():
        bank.sql("DROP VIEW seen")
    del before, between, after


@pytest.mark.parametrize(
    "text", ["INSERT INTO a VALUES (3, 3)", "DELETE FROM a WHERE id = 1", "DELETE FROM a", "TRUNCATE TABLE a"]
)
def test_frames_with_rows_of_a_rolled_back_transaction_fail(bank: AcidSession, text: str) -> None:
    """They would show what never was."""
    bank.sql("START TRANSACTION")
    before = bank.sql("SELECT * FROM a")
    bank.sql(text)
    after = [
        bank.sql("SELECT * FROM a"),
        bank.sql("SELECT count(*) FROM a WHERE id = 2"),
        bank.sql("SELECT b.id FROM b LEFT JOIN a ON a.id = b.id WHERE b.v > (SELECT coalesce(min(v), 0) - 1 FROM a)"),
        bank.table("a").where("id > 1").select("v"),
    ]
    assert after[0].count() >= 0
    bank.sql("ROLLBACK")
    for frame in after:
        with pytest.raises((PySparkException, Py4JJavaError), match="FILE_NOT_EXIST"):
            frame.collect()
    assert before.count() == 2
    assert values(bank, "a") == [(1, 100), (2, 100)]
    del before, after, frame
    nothing_is_open(bank)


def pairs(acid: AcidSession) -> list[tuple[int, int]]:
    return sorted((r.id, r.d) for r in acid.table("p").collect())


def test_partitions_that_statements_have_made(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE p (id int) PARTITIONED BY (d int)")
    acid.sql("INSERT INTO p VALUES (1, 1)")
    with acid.transaction():
        acid.sql("INSERT INTO p VALUES (2, 2), (3, 1)")
        acid.sql("INSERT INTO p VALUES (4, 2), (5, 3)")
        acid.sql("UPDATE p SET id = id + 10 WHERE d >= 2")
        acid.sql("DELETE FROM p WHERE id = 12")
        acid.sql("INSERT INTO p PARTITION (d = 3) VALUES (6)")
        assert pairs(acid) == [(1, 1), (3, 1), (6, 3), (14, 2), (15, 3)]
    assert pairs(acid) == [(1, 1), (3, 1), (6, 3), (14, 2), (15, 3)]
    nothing_is_open(acid)


@pytest.mark.parametrize("again", [True, False])
def test_all_rows_are_replaced(bank: AcidSession, other: AcidSession, again: bool) -> None:
    """TRUNCATE and INSERT OVERWRITE hide what was there, and nothing that comes after them; others read and insert."""
    bank.sql("START TRANSACTION")
    bank.sql("INSERT INTO a VALUES (3, 3)")
    bank.sql("TRUNCATE TABLE a")
    assert values(bank, "a") == []
    bank.sql("INSERT INTO a VALUES (4, 4), (5, 5)")
    assert values(bank, "a") == [(4, 4), (5, 5)]
    bank.sql("INSERT OVERWRITE TABLE b SELECT id * 10, v FROM a")
    bank.sql("UPDATE b SET v = v + 1 WHERE id = 40")
    expected = [(40, 5), (50, 5)]
    if again:
        bank.sql("INSERT OVERWRITE TABLE b SELECT id + 1, v FROM b")
        bank.sql("INSERT INTO b VALUES (1, 1)")
        expected = [(1, 1), (41, 5), (51, 5)]
    assert values(bank, "b") == expected
    assert values(other, "b") == [(1, 100), (2, 100)]
    other.sql("INSERT INTO b VALUES (0, 0)")
    expected = [(0, 0), *expected]
    bank.sql("COMMIT")
    assert (values(other, "a"), values(other, "b")) == ([(4, 4), (5, 5)], expected)
    bank.sql("ALTER TABLE b COMPACT 'major' AND WAIT")
    bank.compactor.run_once()
    assert values(bank, "b") == expected
    nothing_is_left(other, bank)


def test_partitions_are_replaced(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE p (id int) PARTITIONED BY (d int)")
    acid.sql("INSERT INTO p VALUES (1, 1), (2, 2), (3, 3)")
    with acid.transaction():
        acid.sql("INSERT INTO p VALUES (4, 1), (4, 4)")
        acid.sql("INSERT OVERWRITE TABLE p PARTITION (d) VALUES (5, 1), (6, 5)")
        assert pairs(acid) == [(2, 2), (3, 3), (4, 4), (5, 1), (6, 5)]
        acid.sql("INSERT OVERWRITE TABLE p PARTITION (d = 2) SELECT id + 10 FROM p WHERE d = 2")
        acid.sql("INSERT OVERWRITE TABLE p PARTITION (d = 4) SELECT id FROM p WHERE id < 0")
        acid.sql("TRUNCATE TABLE p PARTITION (d = 3)")
        acid.sql("INSERT INTO p VALUES (7, 3)")
        acid.sql(
            "FROM p INSERT OVERWRITE TABLE p PARTITION (d = 5) SELECT id WHERE d = 1"
            " INSERT INTO p SELECT 8, 1 WHERE d = 3"
        )
        expected = [(5, 1), (5, 5), (7, 3), (8, 1), (12, 2)]
        assert pairs(acid) == expected
    assert pairs(acid) == expected
    with acid.transaction():
        acid.sql("TRUNCATE TABLE p")
        acid.sql("INSERT INTO p VALUES (9, 9)")
    assert pairs(acid) == [(9, 9)]
    nothing_is_open(acid)


def test_an_insert_only_table_is_overwritten_once(acid: AcidSession) -> None:
    """It has no deletes: a base hides whatever its transaction writes after it."""
    properties = "TBLPROPERTIES ('transactional_properties'='insert_only')"
    acid.sql(f"CREATE TRANSACTIONAL TABLE p (id int) PARTITIONED BY (d int) {properties}")
    acid.sql("INSERT INTO p VALUES (1, 1), (2, 2)")
    with acid.transaction():
        acid.sql("INSERT INTO p VALUES (3, 1)")
        acid.sql("INSERT OVERWRITE TABLE p PARTITION (d = 1) VALUES (4)")
        again = "INSERT OVERWRITE TABLE p PARTITION (d = 1) VALUES (5)"
        for text in ("INSERT INTO p VALUES (5, 1)", again, "TRUNCATE TABLE p"):
            with pytest.raises(UnsupportedError, match="was overwritten in this transaction"):
                acid.sql(text)
        acid.sql("INSERT INTO p VALUES (6, 2)")
        assert pairs(acid) == [(2, 2), (4, 1), (6, 2)]
    assert pairs(acid) == [(2, 2), (4, 1), (6, 2)]
    nothing_is_open(acid)


@pytest.mark.parametrize("text", ["TRUNCATE TABLE q", "INSERT OVERWRITE TABLE q VALUES (7)"])
def test_a_base_hides_no_row_that_the_snapshot_does_not_see(bank: AcidSession, other: AcidSession, text: str) -> None:
    """A queue that is drained: what comes in between is not thrown away unseen."""
    bank.sql("CREATE TRANSACTIONAL TABLE q (id int) TBLPROPERTIES ('transactional_properties'='insert_only')")
    bank.sql("INSERT INTO q VALUES (1)")
    bank.sql("START TRANSACTION")
    bank.sql("INSERT INTO a SELECT id + 10, 0 FROM q")
    other.sql("INSERT INTO q VALUES (2)")
    with pytest.raises(WriteConflict):
        bank.sql(text)
    bank.sql("ROLLBACK")
    assert rows(bank, "SELECT * FROM q") == [(1,), (2,)]
    nothing_is_left(other, bank)


@pytest.mark.parametrize(
    "text",
    [
        "INSERT OVERWRITE TABLE p PARTITION (d = 1) VALUES (4)",
        "INSERT OVERWRITE TABLE p PARTITION (d) SELECT 4, 1",
        "INSERT OVERWRITE TABLE p PARTITION (d = 1) SELECT sum(id) FROM p WHERE d = 1 AND id = 4 OR d = 2",
        "FROM (SELECT 4 AS id) s INSERT OVERWRITE TABLE p PARTITION (d = 1) SELECT id",
        "TRUNCATE TABLE p PARTITION (d = 1)",
    ],
)
def test_a_base_of_one_partition_is_no_conflict_with_another_one(
    bank: AcidSession, other: AcidSession, text: str
) -> None:
    bank.sql("SET hive.exec.dynamic.partition.mode = nonstrict")
    bank.sql(
        "CREATE TRANSACTIONAL TABLE p (id int) PARTITIONED BY (d int)"
        " TBLPROPERTIES ('transactional_properties'='insert_only')"
    )
    bank.sql("INSERT INTO p VALUES (1, 1), (4, 2)")
    bank.sql("START TRANSACTION")
    assert len(rows(bank, "SELECT * FROM p")) == 2
    other.sql("INSERT INTO p VALUES (5, 2)")
    bank.sql(text)
    bank.sql("COMMIT")
    written = [] if text.startswith("TRUNCATE") else [(4, 1)]
    assert sorted(rows(bank, "SELECT * FROM p")) == [*written, (4, 2), (5, 2)]

    bank.sql("START TRANSACTION")
    assert len(rows(bank, "SELECT * FROM p")) == 2 + len(written)
    other.sql("INSERT INTO p VALUES (6, 1)")
    with pytest.raises(WriteConflict):
        bank.sql(text)
    bank.sql("ROLLBACK")
    assert sorted(rows(bank, "SELECT * FROM p")) == [*written, (4, 2), (5, 2), (6, 1)]
    nothing_is_left(other, bank)


@pytest.mark.parametrize("properties", ["", "TBLPROPERTIES ('transactional_properties'='insert_only')"])
@pytest.mark.parametrize(
    "added", ["PARTITION (p = 2) VALUES (6)", "PARTITION (p) SELECT id + 4, 2 FROM t WHERE id = 2"]
)
def test_a_later_base_hides_no_row_of_an_earlier_write_id(
    bank: AcidSession, other: AcidSession, properties: str, added: str
) -> None:
    """The write id is the transaction's, allocated for another partition: the row was gone after the COMMIT."""
    bank.sql(f"CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p int) {properties}")
    bank.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    bank.sql("START TRANSACTION")
    bank.sql("INSERT INTO t PARTITION (p = 1) VALUES (5)")
    other.sql("INSERT INTO t PARTITION (p = 2) VALUES (7)")
    bank.sql("INSERT INTO t PARTITION (p = 2) VALUES (8)")
    bank.sql("COMMIT")
    expected = [(1, 1), (2, 2), (5, 1), (7, 2), (8, 2)]
    assert sorted(rows(bank, "SELECT * FROM t")) == expected
    bank.sql("START TRANSACTION")
    bank.sql("INSERT INTO t PARTITION (p = 1) VALUES (9)")
    other.sql("INSERT OVERWRITE TABLE t PARTITION (p = 2) VALUES (3)")
    with pytest.raises(WriteConflict):
        bank.sql(f"INSERT INTO t {added}")
    bank.sql("ROLLBACK")
    assert sorted(rows(bank, "SELECT * FROM t")) == [(1, 1), (3, 2), (5, 1)]
    nothing_is_left(other, bank)


@pytest.mark.parametrize("conflicts", ["SET acidsql.write.conflicts = partition", "SET hive.txn.xlock.write = false"])
def test_what_was_never_locked_counts_for_nothing(bank: AcidSession, other: AcidSession, conflicts: str) -> None:
    """The transaction went on, and each later statement, or its commit, was a conflict with who had held the lock."""
    bank.sql(conflicts)
    bank.sql("SET acidsql.lock.timeout = 100ms")
    bank.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    bank.sql("INSERT INTO t VALUES (1)")
    bank.sql("START TRANSACTION")
    bank.sql("UPDATE a SET v = v + 1 WHERE id = 1")
    other.sql("START TRANSACTION")
    other.sql("UPDATE b SET v = v - 1 WHERE id = 1")
    other.sql("UPDATE t SET id = 2")
    for text in ("UPDATE t SET id = 3", "DELETE FROM b", "INSERT OVERWRITE TABLE t VALUES (4)", "DELETE FROM t"):
        with pytest.raises(LockTimeout):
            bank.sql(text)
    other.sql("COMMIT")
    bank.sql("UPDATE a SET v = v + 1 WHERE id = 1")
    bank.sql("COMMIT")
    assert sorted(rows(bank, "SELECT * FROM a")) == [(1, 102), (2, 100)]
    assert (sorted(rows(bank, "SELECT * FROM b")), rows(bank, "SELECT * FROM t")) == ([(1, 99), (2, 100)], [(2,)])
    nothing_is_left(other, bank)


@pytest.mark.parametrize("is_last", [True, False])
def test_a_statement_without_an_answer_is_undone(bank: AcidSession, is_last: bool) -> None:
    """Ctrl-C came after its rows were published: they stayed, and were there twice when it was run again."""
    counts = Environment.counts

    def interrupted(self: Environment, **counted: int) -> DataFrame:
        if not is_last:
            with ThreadPoolExecutor(1) as pool, pytest.MonkeyPatch.context() as patch:
                patch.setattr(Environment, "counts", counts)
                pool.submit(bank.sql, "INSERT INTO a VALUES (4, 0)").result()
        raise KeyboardInterrupt

    bank.sql("START TRANSACTION")
    bank.sql("INSERT INTO a VALUES (3, 0)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Environment, "counts", interrupted)
        for text in ("INSERT INTO a VALUES (5, 0)", "UPDATE a SET v = 0", "DELETE FROM b"):
            with pytest.raises(KeyboardInterrupt):
                bank.sql(text)
            if not is_last:
                break
    if is_last:
        frame, drop = bank.spark.sql("SELECT 6 AS id, 0 AS v"), Views.__exit__

        def interrupted_later(self: Views, *error: Any) -> None:
            drop(self, *error)
            raise KeyboardInterrupt

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Views, "__exit__", interrupted_later)
            with pytest.raises(KeyboardInterrupt):
                bank.insert(frame, "a")
            with pytest.raises(KeyboardInterrupt):
                bank.merge("a", frame).on("a.id = source.id").when_not_matched_insert_all().execute()
        bank.sql("INSERT INTO b VALUES (5, 0)")
        bank.sql("COMMIT")
    else:
        with pytest.raises(TransactionError, match="could not be undone"):
            bank.sql("SELECT * FROM a")
        bank.sql("ROLLBACK")
    kept = ([(3, 0)], [(5, 0)]) if is_last else ([], [])
    assert [sorted(rows(bank, f"SELECT * FROM {t}")) for t in "ab"] == [[(1, 100), (2, 100), *more] for more in kept]
    nothing_is_left(bank)


def test_an_interrupt_after_a_commit_says_so(bank: AcidSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing told that all had been committed: who ran it again had its rows twice."""

    def interrupted(*args: Any, **options: Any) -> DataFrame:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Environment, "nothing", interrupted)
        patch.setattr(Environment, "counts", interrupted)
        with pytest.raises(KeyboardInterrupt, match="after its commit"):
            bank.sql("INSERT INTO a VALUES (3, 0)")
        with pytest.raises(KeyboardInterrupt, match=r"^$"):
            bank.sql("START TRANSACTION")
        with pytest.raises(KeyboardInterrupt, match=r"^$"):
            bank.sql("INSERT INTO a VALUES (4, 0)")
        with pytest.raises(KeyboardInterrupt, match="after its commit"):
            bank.sql("COMMIT")

    def broken(*args: Any, **options: Any) -> DataFrame:
        raise Py4JError("An error occurred while calling z:x.y")

    with monkeypatch.context() as patch:  # as PySpark answers Ctrl-C
        patch.setattr(Environment, "counts", broken)
        with pytest.raises(AcidError, match=r"failed after its commit, .* stays: An error occurred while calling"):
            bank.sql("INSERT INTO a VALUES (8, 0)")
        bank.sql("START TRANSACTION")
        with pytest.raises(Py4JError, match="An error occurred"):
            bank.sql("INSERT INTO a VALUES (9, 0)")
        bank.sql("COMMIT")

    commit_txn = EmbeddedMetastore.commit_txn

    def commit_interrupted(self: EmbeddedMetastore, *args: Any, **options: Any) -> None:
        commit_txn(self, *args, **options)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(EmbeddedMetastore, "commit_txn", commit_interrupted)
        with pytest.raises(KeyboardInterrupt, match="after its commit"):
            bank.sql("INSERT INTO a VALUES (6, 0)")
        with pytest.raises(KeyboardInterrupt, match="after its commit"), bank.transaction():
            bank.insert(bank.spark.sql("SELECT 7 AS id, 0 AS v"), "a")
    assert sorted(rows(bank, "SELECT id FROM a")) == [(1,), (2,), (3,), (6,), (7,), (8,)]
    nothing_is_left(bank)


def test_an_interrupt_just_behind_a_statement_leaves_nothing_of_it(bank: AcidSession) -> None:
    """Its rows had been published, and nobody had noted yet that they were to be undone: run again, they doubled."""
    codes = [f.__code__ for f in (SessionTransaction._whole, SessionTransaction._statement, SessionTransaction.write)]
    met = 0
    for step in itertools.count(1):
        seen = 0

        def line(frame: FrameType, event: str, argument: Any, step: int = step) -> Any:
            nonlocal seen
            txn = frame.f_locals["self"]._txn
            if event == "line" and txn is not None and any(staging.is_published for staging in txn.stagings):
                seen += 1
                if seen == step:
                    raise KeyboardInterrupt
            return line

        bank.sql("START TRANSACTION")
        sys.settrace(lambda frame, event, argument, line=line: line if frame.f_code in codes else None)  # type: ignore[misc]
        try:
            bank.sql("INSERT INTO a VALUES (3, 3)")
            break
        except KeyboardInterrupt:
            met = step
        finally:
            sys.settrace(None)
        assert sorted(rows(bank, "SELECT id FROM a")) == [(1,), (2,)]
        bank.sql("ROLLBACK")
    bank.sql("COMMIT")
    assert met > 4
    assert sorted(rows(bank, "SELECT id FROM a")) == [(1,), (2,), (3,)]
    nothing_is_left(bank)


def test_a_lock_of_the_table_is_one_of_its_partitions(bank: AcidSession) -> None:
    """On a Hive Metastore a second request waits behind who waits for this transaction: a deadlock without need."""
    bank.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p int)")
    bank.sql("START TRANSACTION")
    bank.sql("INSERT INTO t SELECT 1, 1 WHERE false")
    held = len(locks_of(bank, "t"))
    bank.sql("INSERT INTO t PARTITION (p = 2) VALUES (1)")
    assert len(locks_of(bank, "t")) == held
    bank.sql("COMMIT")
    written = bank._env.metastore.completed_writes("default", "t")
    assert {write.partition for write in written} == {"p=2"}  # the store was told all the same
    bank.sql("START TRANSACTION")
    bank.sql("TRUNCATE TABLE t")
    held = len(locks_of(bank, "t"))
    bank.sql("INSERT INTO t VALUES (3, 2), (4, 2), (5, 4)")
    bank.sql("UPDATE t SET id = id + 10 WHERE p = 2 AND id = 3")
    bank.sql("DELETE FROM t WHERE p = 2 AND id = 4")
    assert len(locks_of(bank, "t")) == held
    bank.sql("COMMIT")
    assert sorted(rows(bank, "SELECT * FROM t")) == [(5, 4), (13, 2)]
    nothing_is_left(bank)


@contextmanager
def before_each_lock(act: Callable[[WriteTransaction], None]) -> Iterator[None]:
    """Another thread does something whenever a statement of this one, planned, is about to ask for its locks."""
    lock, mine = WriteTransaction.lock, threading.get_ident()

    def late(self: WriteTransaction, *args: Any, **options: Any) -> None:
        if threading.get_ident() == mine:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(act, self).result(60)
        lock(self, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WriteTransaction, "lock", late)
        yield


def test_a_first_statement_sees_who_has_committed_before_its_lock(bank: AcidSession, other: AcidSession) -> None:
    """It started over, without its lock, and lost again each time: a conflict, though it had seen nothing."""
    locked = list[int]()

    def update(txn: WriteTransaction) -> None:
        locked.append(txn.id)
        other.sql("UPDATE a SET v = v + 1")

    bank.sql("START TRANSACTION")
    with before_each_lock(update):
        bank.sql("UPDATE a SET v = v * 10 WHERE id = 1")
    assert len(locked) == 1
    bank.sql("COMMIT")
    assert sorted(rows(bank, "SELECT * FROM a")) == [(1, 1010), (2, 101)]
    nothing_is_left(other, bank)


def test_a_first_statement_that_has_waited_sees_the_state_of_a_moment(
    acid: AcidSession, bank: AcidSession, other: AcidSession, warehouse: Path
) -> None:
    """It saw who had committed last, and none of those who had begun later and committed before (a long fork)."""
    with acidsql.connect(acid.spark, warehouse=str(warehouse)) as third:
        other.sql("START TRANSACTION")
        other.sql("UPDATE a SET v = 1 WHERE id = 1")
        third.sql("START TRANSACTION")
        with ThreadPoolExecutor(1) as pool:
            waits = pool.submit(lambda: third.sql("UPDATE a SET v = v + 1 WHERE id = 1"))
            while not any(row.lock_state == "WAITING" for row in acid.sql("SHOW LOCKS").collect()):
                time.sleep(0.05)
            acid.sql("INSERT INTO b VALUES (9, 9)")
            acid.sql("CREATE TRANSACTIONAL TABLE new (id int)")
            acid.sql("INSERT INTO new VALUES (1)")
            other.sql("COMMIT")
            waits.result(60)
        assert (9, 9) in rows(third, "SELECT * FROM b")
        assert rows(third, "SELECT * FROM new") == [(1,)]
        acid.sql("INSERT INTO b VALUES (10, 10)")
        assert (10, 10) not in rows(third, "SELECT * FROM b")
        third.sql("UPDATE b SET v = 0 WHERE id = 9")
        third.sql("COMMIT")
        assert sorted(rows(acid, "SELECT * FROM a")) == [(1, 2), (2, 100)]
        assert sorted(rows(acid, "SELECT * FROM b")) == [(1, 100), (2, 100), (9, 0), (10, 10)]


@pytest.mark.parametrize("properties", ["", "TBLPROPERTIES ('transactional_properties'='insert_only')"])
@pytest.mark.parametrize("text", ["TRUNCATE TABLE p", "INSERT OVERWRITE TABLE p PARTITION (d = 2) VALUES (9)"])
@pytest.mark.parametrize("change", ["DROP PARTITION (d = 2)", "PARTITION (d = 2) RENAME TO PARTITION (d = 3)"])
def test_what_replaces_rows_notices_changed_partitions(
    bank: AcidSession, other: AcidSession, properties: str, text: str, change: str
) -> None:
    """TRUNCATE of an insert-only table did not, and hid rows that the transaction had never seen."""
    bank.sql(f"CREATE TRANSACTIONAL TABLE p (id int) PARTITIONED BY (d int) {properties}")
    bank.sql("INSERT INTO p VALUES (1, 1), (2, 2)")
    bank.sql("START TRANSACTION")
    assert len(rows(bank, "SELECT * FROM p")) == 2
    other.sql(f"ALTER TABLE p {change}")
    with pytest.raises(TransactionError, match="was changed"):
        bank.sql(text)
    bank.sql("COMMIT")
    assert sorted(rows(bank, "SELECT * FROM p")) == [(1, 1), *([(2, 3)] if "RENAME" in change else [])]
    nothing_is_left(other, bank)


def test_a_base_of_a_killed_writer_is_no_conflict(bank: AcidSession, other: AcidSession, warehouse: Path) -> None:
    """Nothing has been replaced: its write id is aborted."""
    bank.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p int)")
    bank.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    bank.sql("START TRANSACTION")
    bank.sql("INSERT INTO t PARTITION (p = 1) VALUES (5)")

    def killed(*_: object) -> None:
        raise RuntimeError("killed")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Staging, "discard", lambda self: False)
        patch.setattr(other._env.metastore, "commit_txn", killed)
        with pytest.raises(RuntimeError, match="killed"):
            other.sql("INSERT OVERWRITE TABLE t PARTITION (p = 2) VALUES (3)")
    assert len(list(warehouse.glob("t/p=2/base_*"))) == 1
    bank.sql("INSERT INTO t PARTITION (p = 2) VALUES (8)")
    bank.sql("COMMIT")
    assert sorted(rows(bank, "SELECT * FROM t")) == [(1, 1), (2, 2), (5, 1), (8, 2)]


@pytest.mark.parametrize("setting", ["hive.txn.xlock.write", "hive.txn.xlock.iow"])
@pytest.mark.parametrize(
    ("added", "overwriting"),
    [
        ("INSERT INTO t PARTITION (p = 2) VALUES (5)", "INSERT OVERWRITE TABLE t PARTITION (p = 2) VALUES (9)"),
        ("INSERT INTO t VALUES (5, 2)", "INSERT OVERWRITE TABLE t PARTITION (p) SELECT id + 7, p FROM t WHERE p = 2"),
        (
            "MERGE INTO t USING (SELECT 5 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, 2)",
            "FROM t INSERT OVERWRITE TABLE t PARTITION (p = 2) SELECT id + 7 WHERE p = 2",
        ),
    ],
)
def test_a_base_hides_nothing_that_is_being_inserted(
    bank: AcidSession, other: AcidSession, setting: str, added: str, overwriting: str
) -> None:
    """EXCL_WRITE does not keep out INSERT's SHARED_READ: the row of an acknowledged COMMIT was gone."""
    bank.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p int)")
    bank.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    other.sql(f"SET {setting} = false")
    bank.sql("START TRANSACTION")
    bank.sql(added)
    other.sql("SET acidsql.lock.timeout = 1s")
    with pytest.raises(LockTimeout, match="have not ended in time"):
        other.sql(overwriting)
    other.sql("SET acidsql.lock.timeout = 60s")
    with ThreadPoolExecutor(1) as pool:
        waits = pool.submit(lambda: other.sql(overwriting))
        assert not concurrent.futures.wait([waits], timeout=2).done, "it waits"
        bank.sql("COMMIT")
        waits.result(60)
    read = [(12, 2)] if "FROM" in overwriting else []
    assert sorted(rows(bank, "SELECT * FROM t")) == [(1, 1), (9, 2), *read]
    nothing_is_left(other, bank)


@pytest.mark.parametrize("within", [False, True], ids=["alone", "first of a transaction"])
@pytest.mark.parametrize(
    ("setting", "added"),
    [("true", "PARTITION (p = 1)"), ("false", "PARTITION (p = 1)"), ("false", "PARTITION (p = 2)")],
    ids=["another partition", "another partition, EXCL_WRITE", "the same partition, EXCL_WRITE"],
)
@pytest.mark.parametrize(
    "partition", ["PARTITION (p = 2) SELECT id", "PARTITION (p) SELECT id, p"], ids=["one", "dynamic"]
)
def test_an_overwrite_of_what_it_reads_comes_through_beside_inserts(
    bank: AcidSession,
    other: AcidSession,
    monkeypatch: pytest.MonkeyPatch,
    setting: str,
    added: str,
    partition: str,
    within: bool,
) -> None:
    """It failed after five attempts, each of which had missed what was inserted while it was planned, or waited."""
    insert_only = " TBLPROPERTIES ('transactional_properties'='insert_only')" if within else ""
    bank.sql(f"CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p int){insert_only}")
    bank.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    other.sql(f"SET hive.txn.xlock.iow = {setting}")
    other.sql("SET acidsql.lock.timeout = 60s")
    lock, waits_for, inserted = WriteTransaction.lock, WriteTransaction.exclude_writers, list[int]()
    overwriting = threading.get_ident()

    def insert() -> None:
        inserted.append(10 + len(inserted))
        bank.sql(f"INSERT INTO t {added} VALUES ({inserted[-1]})")

    def beside(step: Callable[..., None], self: WriteTransaction, *args: Any, **options: Any) -> None:
        if threading.get_ident() != overwriting:
            step(self, *args, **options)
            return
        held = {c.type for c in self.locks.components}
        with ThreadPoolExecutor(1) as pool:
            if LockType.EXCLUSIVE not in held:
                pool.submit(insert).result(60)
            step(self, *args, **options)

    if within:
        other.sql("START TRANSACTION")
    with monkeypatch.context() as patch:
        patch.setattr(WriteTransaction, "lock", lambda self, *args, **options: beside(lock, self, *args, **options))
        patch.setattr(WriteTransaction, "exclude_writers", lambda self, *args: beside(waits_for, self, *args))
        other.sql(f"INSERT OVERWRITE TABLE t {partition} FROM t WHERE p = 2")
    if within:
        other.sql("COMMIT")
    assert inserted
    expected = [(1, 1), (2, 2), *((id, 1 if "p = 1" in added else 2) for id in inserted)]
    assert sorted(rows(bank, "SELECT * FROM t")) == sorted(expected)
    nothing_is_left(other, bank)


@pytest.mark.parametrize(
    ("source", "column", "written"),
    [("t WHERE p = 2", "n", (2, 1, 2)), ("VALUES (9, 2) AS v(id, p)", "0", (9, 0, 2))],
    ids=["of itself", "of others"],
)
def test_a_dynamic_overwrite_comes_through_beside_updates(
    bank: AcidSession, other: AcidSession, monkeypatch: pytest.MonkeyPatch, source: str, column: str, written: Any
) -> None:
    """It did not ask for its lock before it was planned again, and lost each time."""
    bank.sql("CREATE TRANSACTIONAL TABLE t (id int, n int) PARTITIONED BY (p int)")
    bank.sql("INSERT INTO t VALUES (1, 0, 1), (2, 0, 2)")
    other.sql("SET hive.txn.xlock.iow = false")
    updates = list[int]()

    def update(txn: WriteTransaction) -> None:
        if not txn.locks.components:
            updates.append(txn.id)
            bank.sql("UPDATE t SET n = n + 1 WHERE p = 2")

    request, asked = EmbeddedMetastore.lock, list[tuple[int, LockComponent]]()

    def lock_in_store(self: EmbeddedMetastore, wanted: LockRequest) -> LockResponse:
        asked.extend((wanted.txn_id, c) for c in wanted.components if c.operation is Operation.UPDATE)
        return request(self, wanted)

    with before_each_lock(update), monkeypatch.context() as patch:
        patch.setattr(EmbeddedMetastore, "lock", lock_in_store)
        other.sql(f"INSERT OVERWRITE TABLE t PARTITION (p) SELECT id, {column}, p FROM {source}")
    assert len(updates) == 1
    assert len(asked) == len(set(asked)), "a second request would stand behind those that wait for the first"
    assert sorted(rows(bank, "SELECT * FROM t")) == [(1, 0, 1), written]
    nothing_is_left(other, bank)


@pytest.mark.parametrize("keys", ["", " PARTITIONED BY (p int)"], ids=["plain", "partitioned"])
def test_a_merge_that_excludes_others_comes_through_beside_inserts(
    bank: AcidSession, other: AcidSession, keys: str
) -> None:
    """It failed after five attempts, each of which had missed what was inserted while it was planned."""
    bank.sql(f"CREATE TRANSACTIONAL TABLE t (id int{'' if keys else ', p int'}){keys}")
    bank.sql("INSERT INTO t VALUES (1, 1)")
    other.sql("SET hive.txn.xlock.mergeinsert = true")
    inserted = list[int]()

    def insert(txn: WriteTransaction) -> None:
        inserted.append(10 + len(inserted))
        bank.sql(f"INSERT INTO t VALUES ({inserted[-1]}, 1)")

    with before_each_lock(insert):
        source = "(SELECT id, 2 AS p FROM range(1, 12))"
        other.sql(f"MERGE INTO t USING {source} s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.p)")
    assert inserted == [10]
    assert sorted(rows(bank, "SELECT id FROM t")) == [(id,) for id in range(1, 12)]
    nothing_is_left(other, bank)


@pytest.mark.parametrize("setting", ["", "hive.txn.xlock.iow", "hive.txn.xlock.write"])
@pytest.mark.parametrize(
    "text", ["INSERT OVERWRITE TABLE b SELECT * FROM a", "FROM a INSERT OVERWRITE TABLE b SELECT id, v"]
)
@pytest.mark.parametrize("moment", ["before its lock", "while it waits"])
def test_an_overwrite_sees_those_whose_rows_it_hides(
    bank: AcidSession, other: AcidSession, setting: str, text: str, moment: str
) -> None:
    """It hid the row in one table of who had inserted into two, and had not seen the one in the table that it read."""
    if setting:
        other.sql(f"SET {setting} = false")
    begun = list[int]()

    def insert(txn: WriteTransaction) -> None:
        if begun:
            return
        begun.append(txn.id)
        bank.sql("START TRANSACTION")
        bank.sql("INSERT INTO a VALUES (3, 3)")
        bank.sql("INSERT INTO b VALUES (3, 3)")
        if moment == "before its lock":
            bank.sql("COMMIT")
        else:
            threading.Timer(1, bank.sql, ("COMMIT",)).start()

    with before_each_lock(insert):
        other.sql(text)
    assert begun
    assert rows(bank, "SELECT * FROM b ORDER BY id") == rows(bank, "SELECT * FROM a ORDER BY id")
    assert (3, 3) in rows(bank, "SELECT * FROM b")
    nothing_is_left(other, bank)


@pytest.mark.parametrize("is_read", [False, True])
def test_the_snapshot_of_a_single_statement_is_a_state_that_was(
    bank: AcidSession, other: AcidSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, is_read: bool
) -> None:
    """It saw who had begun before and committed late, and not who had begun later and committed before him."""
    bank.sql("CREATE TRANSACTIONAL TABLE counted (x bigint, y bigint)")
    bank.sql("INSERT INTO counted VALUES (0, 0)")
    counts = "(SELECT count(*) FROM a WHERE id > 2) AS x, (SELECT count(*) FROM b WHERE id > 2) AS y"
    open_txns, mine, met = EmbeddedMetastore.open_txns, threading.get_ident(), list[int]()

    def others(self: EmbeddedMetastore, *args: Any, **options: Any) -> Any:
        made = open_txns(self, *args, **options)
        if threading.get_ident() == mine and not met:
            met.append(made[0])
            with ThreadPoolExecutor(1) as pool:
                pool.submit(other.sql, "INSERT INTO b VALUES (3, 3)").result(60)
                pool.submit(bank.sql, "COMMIT").result(60)
        return made

    bank.sql("START TRANSACTION")
    bank.sql("INSERT INTO a VALUES (3, 3)")
    with acidsql.connect(bank.spark, warehouse=str(warehouse)) as third, monkeypatch.context() as patch:
        patch.setattr(EmbeddedMetastore, "open_txns", others)
        if is_read:
            seen = rows(third, f"SELECT {counts}")
        else:
            third.sql(f"INSERT INTO counted SELECT {counts}")
            seen = rows(third, "SELECT * FROM counted WHERE x + y > 0")
        assert met
        assert seen == [(1, 1)]
        nothing_is_left(other, bank, third)


def test_an_interrupt_while_a_transaction_opens_leaves_one_of_several_statements(
    bank: AcidSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its TRUNCATE wrote a base, which hid what it inserted later."""
    ids = list[int]()
    with monkeypatch.context() as patch:
        hold = Heartbeats.hold

        def interrupted(self: Heartbeats, txn_id: int) -> None:
            hold(self, txn_id)
            ids.append(txn_id)
            os.kill(os.getpid(), signal.SIGINT)

        bank.sql("START TRANSACTION")
        patch.setattr(Heartbeats, "hold", interrupted)
        with pytest.raises(KeyboardInterrupt):
            bank.sql("SELECT * FROM a")
    assert len(ids) == 1
    bank.sql("TRUNCATE TABLE a")
    bank.sql("INSERT INTO a VALUES (4, 4)")
    bank.sql("COMMIT")
    assert rows(bank, "SELECT * FROM a") == [(4, 4)]
    nothing_is_left(bank)


def test_autocommit_that_is_set_beside_another_thread_leaves_no_transaction(
    bank: AcidSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came after it joined a transaction that the other thread had begun just before, and nobody committed it."""
    current, mine, begun = control.current, threading.get_ident(), list[int]()

    def beside(env: Environment) -> Any:
        if threading.get_ident() == mine and not begun and not control._beginning.locked():
            begun.append(1)
            with ThreadPoolExecutor(1) as pool:
                pool.submit(bank.sql, "INSERT INTO a VALUES (5, 5)").result(60)
        return current(env)

    bank.sql("SET AUTOCOMMIT FALSE")
    with monkeypatch.context() as patch:
        patch.setattr(control, "current", beside)
        bank.sql("SET AUTOCOMMIT TRUE")
    assert begun
    assert not bank.in_transaction
    assert (5, 5) in rows(bank, "SELECT * FROM a")
    nothing_is_left(bank)


def test_a_rollback_that_is_interrupted_keeps_no_lock(bank: AcidSession, other: AcidSession) -> None:
    """Nobody sent heartbeats for it any more, and nobody aborted it: others waited until it had timed out."""
    for step in range(3):
        bank.sql("START TRANSACTION")
        bank.sql("UPDATE a SET v = 7")
        owner, name = [(HeldTransactions, "ended"), (EmbeddedMetastore, "abort_txns"), (Staging, "discard")][step]
        real = getattr(owner, name)

        def interrupted(self: Any, *args: Any, real: Any = real, **options: Any) -> Any:
            os.kill(os.getpid(), signal.SIGINT)
            return real(self, *args, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, name, interrupted)
            with pytest.raises(KeyboardInterrupt):
                bank.sql("ROLLBACK")
        assert not bank.in_transaction
        assert locks_of(other) == []
    assert sorted(rows(other, "SELECT * FROM a")) == [(1, 100), (2, 100)]
    nothing_is_left(other, bank)


def test_a_statement_that_overwrites_two_tables_hides_all_of_a_transaction_or_nothing(
    bank: AcidSession, other: AcidSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its write id was below the other's in one table, and above it in the second one, where it waited."""
    other.sql("SET hive.txn.xlock.iow = false")
    wait_for, met = write_transaction.wait_for_earlier_writers, list[str]()

    def waiting(metastore: Any, settings: Any, table: Table, *args: Any) -> None:
        if table.name == "b" and not met:
            met.append(table.name)
            with ThreadPoolExecutor(1) as pool:
                pool.submit(bank.sql, "INSERT INTO a VALUES (7, 7)").result(60)
                pool.submit(bank.sql, "COMMIT").result(60)
        wait_for(metastore, settings, table, *args)

    bank.sql("START TRANSACTION")
    bank.sql("INSERT INTO b VALUES (7, 7)")
    with monkeypatch.context() as patch:
        patch.setattr(write_transaction, "wait_for_earlier_writers", waiting)
        other.sql(
            "FROM (VALUES (50, 0)) s(id, v) INSERT OVERWRITE TABLE a SELECT id, v INSERT OVERWRITE TABLE b SELECT id, v"
        )
    assert met
    assert rows(bank, "SELECT * FROM a") == rows(bank, "SELECT * FROM b") == [(50, 0)]
    nothing_is_left(other, bank)


def test_truncate_comes_through_beside_inserts_into_new_partitions(
    bank: AcidSession, other: AcidSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It failed after six attempts, each of which had found another partition."""
    bank.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p int, q int)")
    bank.sql("INSERT INTO t VALUES (1, 1, 1), (2, 2, 1)")
    excludes, added = WriteTransaction.exclude_writers, list[int]()

    def beside(self: WriteTransaction, table: Table) -> None:
        if self.env.session is other._env:
            added.append(10 + len(added))
            with ThreadPoolExecutor(1) as pool:
                pool.submit(bank.sql, f"INSERT INTO t VALUES (3, 1, {added[-1]})").result(60)
        excludes(self, table)

    with monkeypatch.context() as patch:
        patch.setattr(WriteTransaction, "exclude_writers", beside)
        other.sql("TRUNCATE TABLE t PARTITION (p = 1)")
    assert 1 < len(added) < 5
    assert (1, 1, 1) not in rows(bank, "SELECT * FROM t")
    assert (2, 2, 1) in rows(bank, "SELECT * FROM t")
    nothing_is_left(other, bank)


_ALL = [(1, 1, 1), (2, 2, 1), (50, 1, 1), (51, 1, 3)]
_BESIDE_AN_INSERT: dict[str, list[tuple[int, int, int]]] = {
    "TRUNCATE TABLE t": [],
    "TRUNCATE TABLE t PARTITION (p = 1)": [(2, 2, 1)],
    "INSERT OVERWRITE TABLE t PARTITION (p = 1, q = 3) IF NOT EXISTS SELECT 70": _ALL,
    "FROM (SELECT 70 AS id) INSERT OVERWRITE TABLE t PARTITION (p = 1, q = 3) IF NOT EXISTS SELECT id": _ALL,
}


@pytest.mark.parametrize(("text", "left"), _BESIDE_AN_INSERT.items(), ids=["all", "some", "new", "several"])
def test_all_of_an_insert_that_is_waited_for_is_there_or_hidden(
    bank: AcidSession, other: AcidSession, monkeypatch: pytest.MonkeyPatch, text: str, left: list[Any]
) -> None:
    """What the INSERT had written into a new partition stayed, and the rest of it went; or the other way round."""
    bank.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p int, q int)")
    bank.sql("INSERT INTO t VALUES (1, 1, 1), (2, 2, 1)")
    other.sql("SET hive.txn.xlock.iow = false")
    publish, reached, waits = Staging.publish, threading.Event(), threading.Event()
    wait_for, mine = write_transaction.wait_for_earlier_writers, threading.get_ident()
    ask = held_locks.wait_for_lock

    def published(self: Staging, *args: Any) -> Any:
        if threading.get_ident() != mine:
            reached.set()
            waits.wait(60)
        return publish(self, *args)

    def waiting(*args: Any) -> None:
        waits.set()
        wait_for(*args)

    def asking(*args: Any) -> Any:
        if threading.get_ident() == mine and "IF NOT EXISTS" in text:  # that one waits for its lock
            waits.set()
        return ask(*args)

    with monkeypatch.context() as patch, ThreadPoolExecutor(1) as pool:
        patch.setattr(Staging, "publish", published)
        patch.setattr(write_transaction, "wait_for_earlier_writers", waiting)
        patch.setattr(held_locks, "wait_for_lock", asking)
        inserted = pool.submit(bank.sql, "INSERT INTO t VALUES (50, 1, 1), (51, 1, 3)")
        assert reached.wait(60)
        other.sql(text)
        inserted.result(60)
    assert sorted(rows(other, "SELECT * FROM t")) == left
    nothing_is_left(other, bank)


@pytest.mark.parametrize("within", [False, True], ids=["alone", "first of a transaction"])
def test_a_merge_that_excludes_others_comes_through_beside_inserts_in_its_last_moment(
    bank: AcidSession, other: AcidSession, monkeypatch: pytest.MonkeyPatch, within: bool
) -> None:
    """Its lock lets others insert, and what came between its snapshot and its look at it made it fail each time."""
    bank.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    other.sql("SET hive.txn.xlock.mergeinsert = true")
    inserted, require, merging = list[int](), WriteTransaction.require_all_seen, threading.get_ident()

    def beside(self: WriteTransaction, table: Table) -> None:
        if threading.get_ident() == merging and LockType.EXCLUSIVE not in {c.type for c in self.locks.components}:
            inserted.append(10 + len(inserted))
            with ThreadPoolExecutor(1) as pool:
                pool.submit(bank.sql, f"INSERT INTO t VALUES ({inserted[-1]})").result(60)
        require(self, table)

    if within:
        other.sql("START TRANSACTION")
    with monkeypatch.context() as patch:
        patch.setattr(WriteTransaction, "require_all_seen", beside)
        source = "(SELECT id FROM range(9, 12))"
        other.sql(f"MERGE INTO t USING {source} s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id)")
    if within:
        other.sql("COMMIT")
    assert inserted == [10]
    assert sorted(rows(bank, "SELECT id FROM t")) == [(9,), (10,), (11,)]
    nothing_is_left(other, bank)


@pytest.mark.parametrize("format", ["orc", "text"])
def test_a_load_that_is_ended_for_a_deadlock_runs_again(
    bank: AcidSession, other: AcidSession, tmp_path: Path, format: str
) -> None:
    """It has its lock, and waits for a write id that is open; its owner asks for that lock."""
    written = other.spark.sql("SELECT 7 AS id, 8 AS v").coalesce(1).write.option("sep", "\x01")
    written.save(str(tmp_path / "files"), "orc" if format == "orc" else "csv")
    bank.sql("SET hive.txn.xlock.iow = false")
    other.sql("SET hive.txn.xlock.iow = false")
    text = (
        " INPUTFORMAT 'org.apache.hadoop.mapred.TextInputFormat'"
        " SERDE 'org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe'"
    )
    kind = "" if format == "orc" else text
    bank.sql("START TRANSACTION")
    bank.sql("INSERT INTO a VALUES (3, 3)")
    with ThreadPoolExecutor(1) as pool:
        loaded = pool.submit(other.sql, f"LOAD DATA LOCAL INPATH '{tmp_path}/files' OVERWRITE INTO TABLE a{kind}")
        while not any(row.lock_state == "ACQUIRED" and row.lock_type == "EXCL_WRITE" for row in locks_of(bank)):
            assert not loaded.done(), loaded.result()
            time.sleep(0.05)
        bank.sql("UPDATE a SET v = 4 WHERE id = 3")
        bank.sql("COMMIT")
        loaded.result(120)
    assert rows(bank, "SELECT * FROM a") == [(7, 8)]
    nothing_is_left(other, bank)


def test_who_waits_for_earlier_writers_is_in_a_deadlock_too(bank: AcidSession, other: AcidSession) -> None:
    """TRUNCATE has its lock, and waits for a write id that is open; its owner asks for that lock."""
    bank.sql("START TRANSACTION")
    bank.sql("INSERT INTO a VALUES (3, 3)")
    thread = threading.Thread(target=lambda: other.sql("TRUNCATE TABLE a"))
    thread.start()
    while not any(row.lock_state == "ACQUIRED" and row.lock_type == "EXCL_WRITE" for row in locks_of(bank)):
        time.sleep(0.05)
    begun = time.monotonic()
    bank.sql("UPDATE a SET v = 4 WHERE id = 3")
    assert time.monotonic() - begun < 15
    bank.sql("COMMIT")
    thread.join()
    assert values(bank, "a") == []
    nothing_is_left(other, bank)


def test_who_waits_for_earlier_writers_is_in_a_deadlock_of_three_too(
    bank: AcidSession, other: AcidSession, warehouse: Path
) -> None:
    """The owner of the write id waits for a third one, which waits for TRUNCATE's lock: that lock is given up."""
    ended = list[str]()
    with ThreadPoolExecutor(2) as pool, acidsql.connect(bank.spark, warehouse=str(warehouse)) as third:
        bank.sql("START TRANSACTION")
        bank.sql("INSERT INTO a VALUES (3, 3)")
        other.sql("START TRANSACTION")
        other.sql("UPDATE b SET v = 7")
        truncated = pool.submit(third.sql, "TRUNCATE TABLE a")
        while not any(row.lock_state == "ACQUIRED" and row.lock_type == "EXCL_WRITE" for row in locks_of(bank)):
            time.sleep(0.05)

        def update() -> None:
            other.sql("UPDATE a SET v = v + 1")
            other.sql("COMMIT")
            ended.append("other")

        updated = pool.submit(update)
        while not any(row.lock_state == "WAITING" for row in locks_of(bank)):
            time.sleep(0.05)
        begun = time.monotonic()
        with pytest.raises(WriteConflict, match="b"):  # it has waited for its lock, and its snapshot is an older one
            bank.sql("UPDATE b SET v = 8")
        ended.append("bank")
        bank.sql("ROLLBACK")
        truncated.result()
        updated.result()
        assert time.monotonic() - begun < 60
    assert ended == ["other", "bank"]
    assert values(bank, "a") == []
    assert {v for _, v in values(bank, "b")} == {7}
    nothing_is_left(other, bank)


def test_two_that_wait_for_each_others_writers(bank: AcidSession, other: AcidSession) -> None:
    """Neither asks for a lock that it does not hold: it was found by the time-out alone."""
    for name in ("p", "q"):
        bank.sql(f"CREATE TRANSACTIONAL TABLE {name} (id int) TBLPROPERTIES ('transactional_properties'='insert_only')")
        bank.sql(f"INSERT INTO {name} VALUES (1)")
    for session, name in ((bank, "p"), (other, "q")):
        session.sql("START TRANSACTION")
        session.sql(f"INSERT INTO {name} VALUES (2)")

    def emptied(session: AcidSession, name: str) -> str:
        try:
            session.sql(f"TRUNCATE TABLE {name}")
        except Deadlock:
            session.sql("ROLLBACK")
            return "lost"
        session.sql("COMMIT")
        return "won"

    begun = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        ends = list(pool.map(emptied, (bank, other), ("q", "p")))
    assert time.monotonic() - begun < 60  # acidsql.lock.timeout is 300
    assert ends == ["won", "lost"], "the younger one"
    assert (rows(bank, "SELECT * FROM p"), rows(bank, "SELECT * FROM q")) == ([(1,), (2,)], [])
    nothing_is_left(other, bank)


def locks_of(acid: AcidSession, table: str = "a") -> list[Any]:
    return [row for row in acid.sql("SHOW LOCKS").collect() if row.table == table]


def test_who_is_ended_by_others_while_a_statement_waits_is_told(bank: AcidSession, other: AcidSession) -> None:
    other.sql("START TRANSACTION")
    other.sql("UPDATE a SET v = 7")
    bank.sql("START TRANSACTION")
    bank.sql("INSERT INTO b VALUES (3, 3)")

    def end() -> None:
        while not (waiting := [k.txn_id for k in other.metastore.show_locks() if k.state is LockState.WAITING]):
            time.sleep(0.05)
        other.metastore.abort_txns(waiting, reason="ABORT TRANSACTIONS by olga@far")

    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(end)
        with pytest.raises(TransactionAborted, match="ABORT TRANSACTIONS by olga@far"):
            bank.sql("UPDATE a SET v = 8")
        ended.result()
    with pytest.raises(TransactionError, match="The transaction is over"):
        bank.sql("SELECT * FROM a")
    bank.sql("ROLLBACK")
    other.sql("COMMIT")
    assert {v for _, v in values(bank, "a")} == {7}
    assert len(values(bank, "b")) == 2
    nothing_is_left(other, bank)


def test_a_statement_that_waited_too_long_waits_no_more(bank: AcidSession, other: AcidSession) -> None:
    """Its request is taken back: nobody has to wait behind it."""
    other.sql("SET acidsql.lock.timeout = 1s")
    bank.sql("START TRANSACTION")
    bank.sql("UPDATE a SET v = 1")
    other.sql("START TRANSACTION")
    other.sql("INSERT INTO b VALUES (3, 3)")
    with pytest.raises(LockTimeout):
        other.sql("UPDATE a SET v = 2")
    bank.sql("COMMIT")
    bank.sql("UPDATE a SET v = 3")
    assert not any(row.lock_state == "WAITING" for row in locks_of(bank))
    other.sql("COMMIT")
    assert len(values(bank, "b")) == 3
    nothing_is_left(other, bank)


def test_changes_tell_what_a_transaction_has_left(bank: AcidSession) -> None:
    """Not the rows that it has inserted and deleted again; a follower would keep them."""
    with bank.transaction():
        for text in (
            "INSERT INTO a VALUES (3, 3), (4, 4)",
            "DELETE FROM a WHERE id = 3",
            "UPDATE a SET v = 44 WHERE id = 4",
            "UPDATE a SET v = 1 WHERE id = 1",
            "UPDATE a SET v = 2 WHERE id = 1",
        ):
            bank.sql(text)
    expected = [(1, 2, "update_postimage"), (1, 100, "update_preimage"), (4, 44, "insert")]
    for keys in (["id"], []):
        told = [(r.id, r.v, r._change_type) for r in bank.changes("a", 2, 2, keys=keys).collect()]
        kinds = {"update_postimage": "insert", "update_preimage": "delete"} if not keys else {}
        assert sorted(told) == sorted((i, v, kinds.get(kind, kind)) for i, v, kind in expected)


def test_changes_of_an_open_transaction_are_not_final_in_itself_either(bank: AcidSession, other: AcidSession) -> None:
    """A follower in it would never be told what comes later, and keep what is rolled back."""
    bank.sql("START TRANSACTION")
    bank.sql("INSERT INTO a VALUES (3, 3)")
    bank.sql("UPDATE a SET v = 0 WHERE id = 1")
    assert bank.newest_version("a") == 1
    assert sorted(tuple(r)[:4] for r in bank.changes("a", 1).collect()) == [
        (1, 100, "insert", 1),
        (2, 100, "insert", 1),
    ]
    for query in (lambda: bank.changes("a", 1, 2), lambda: bank.sql("SELECT * FROM table_changes('a', 2, 2)")):
        with pytest.raises(InvalidValue, match="write id 1, 2 was asked for") as caught:
            query()
        assert "write id 2 is open" in str(caught.value)
    other.sql("INSERT INTO b VALUES (3, 3)")
    assert (bank.newest_version("b"), other.newest_version("b")) == (1, 2)
    assert len(bank.table("b", version=bank.newest_version("b")).collect()) == 2
    bank.sql("COMMIT")
    assert bank.newest_version("b") == 2
    assert sorted((r.id, r.v) for r in bank.changes("a", 2).collect()) == [(1, 0), (1, 100), (3, 3)]


def test_a_compaction_of_a_transaction_alone_keeps_what_it_has_deleted_of_its_own(
    acid: AcidSession,
) -> None:
    """In Hive 4's layout the compacted names do not tell which statement came later: all of it came back."""
    acid.sql("SET acidsql.compactor.layout=hive4")
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v int)")
    with acid.transaction():
        for text in (
            "INSERT INTO t VALUES (10, 1), (11, 1), (12, 1)",
            "UPDATE t SET v = 5 WHERE id = 10",
            "DELETE FROM t WHERE id = 11",
            "UPDATE t SET v = 6 WHERE id = 10",
            "INSERT INTO t VALUES (13, 1)",
            "DELETE FROM t WHERE id = 13",
        ):
            acid.sql(text)
    told = sorted(r[:3] for r in acid.changes("t", 1, 1).collect())
    acid.sql("ALTER TABLE t COMPACT 'minor' AND WAIT")
    assert rows(acid, "SELECT * FROM t") == [(10, 6), (12, 1)]
    assert sorted(r[:3] for r in acid.changes("t", 1, 1).collect()) == told
    acid.sql("UPDATE t SET v = v + 1")
    assert rows(acid, "SELECT * FROM t") == [(10, 7), (12, 2)]
    acid.compactor.run_once()
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    assert rows(acid, "SELECT * FROM t") == [(10, 7), (12, 2)]


def test_without_autocommit_methods_begin_a_transaction_as_statements_do(bank: AcidSession, other: AcidSession) -> None:
    feed = bank.spark.createDataFrame([(3, 3, 1)], "id int, v int, n int")
    options: dict[str, Any] = {"keys": ["id"], "sequence_by": "n", "except_columns": ["n"]}
    bank.apply_changes("a", feed.limit(0), **options)
    bank.sql("SET AUTOCOMMIT FALSE")
    bank.apply_changes("a", feed, **options)
    assert len(values(other, "a")) == 2
    bank.sql("ROLLBACK")
    assert len(values(other, "a")) == 2
    for read in (lambda: bank.table("a").count(), lambda: bank.changes("a", 1).count()):
        read()
        other.sql("INSERT INTO b VALUES (7, 7)")
        assert (7, 7) not in rows(bank, "SELECT * FROM b")
        bank.sql("ROLLBACK")
        other.sql("DELETE FROM b WHERE id = 7")


def test_a_statement_is_of_the_transaction_that_it_began_in(
    bank: AcidSession, other: AcidSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took the weak lock of a transaction that another thread began meanwhile, and hid the rows of others."""
    other.sql("START TRANSACTION")
    other.sql("INSERT INTO a VALUES (9, 9)")
    bank.sql("SET acidsql.lock.timeout=1s")
    find_table = type(bank._env).get_table

    def while_another_thread_begins(env: Environment, name: TableName) -> Table:
        monkeypatch.setattr(Environment, "get_table", find_table)
        bank.sql("START TRANSACTION")
        return env.get_table(name)

    monkeypatch.setattr(Environment, "get_table", while_another_thread_begins)
    with pytest.raises(LockTimeout):
        bank.sql("INSERT OVERWRITE TABLE a SELECT 7, 7")
    other.sql("COMMIT")
    bank.sql("ROLLBACK")
    assert values(bank, "a") == [(1, 100), (2, 100), (9, 9)]
    nothing_is_left(other, bank)


def test_a_database_that_is_dropped_or_used_in_a_statement_is_so_for_the_session(acid: AcidSession) -> None:
    acid.sql("CREATE DATABASE d")
    acid.sql("USE d")
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    with acid.transaction():
        acid.sql("INSERT INTO t VALUES (1)")
        acid.sql("USE default")
        acid.sql("INSERT INTO d.t VALUES (2)")
        acid.sql("USE d")
    assert rows(acid, "SELECT * FROM t") == [(1,), (2,)]
    acid.sql("DROP DATABASE d CASCADE")
    acid.sql("CREATE TRANSACTIONAL TABLE u (id int)")
    assert acid._env.metastore.find_table("default", "u") is not None


def test_a_transaction_that_others_have_ended(bank: AcidSession, other: AcidSession) -> None:
    bank.sql("START TRANSACTION")
    bank.sql("INSERT INTO a VALUES (3, 3)")
    frame = bank.sql("SELECT * FROM b")
    opened = [r.txnid for r in other.sql("SHOW TRANSACTIONS").collect() if r.txnid.isdigit()]
    other.sql(f"ABORT TRANSACTIONS {' '.join(opened)}")
    with pytest.raises(TransactionAborted):
        bank.sql("INSERT INTO a VALUES (4, 4)")
    with pytest.raises(TransactionError, match="ROLLBACK ends it"):
        bank.sql("SELECT * FROM a")
    bank.sql("ROLLBACK")
    assert len(values(bank, "a")) == 2
    assert frame.count() == 2
    nothing_is_left(other, bank)


def test_sessions_side_by_side_and_threads_of_one(bank: AcidSession, other: AcidSession) -> None:
    with bank.transaction(), other.transaction():
        threads = [
            threading.Thread(target=session.sql, args=(f"INSERT INTO a VALUES ({n}, 0)",))
            for n, session in enumerate((bank, other, bank, other), 10)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [r[0] for r in values(bank, "a")] == [1, 2, 10, 12]
        assert [r[0] for r in values(other, "a")] == [1, 2, 11, 13]
    assert len(values(bank, "a")) == 6
    nothing_is_left(other, bank)


def test_a_statement_that_meets_the_end_of_its_transaction_is_no_part_of_another_one(bank: AcidSession) -> None:
    """What is acknowledged is there, whoever has ended the transaction meanwhile."""
    told: list[int] = []
    stop = threading.Event()

    def insert() -> None:
        for number in itertools.count(100):
            if stop.is_set():
                return
            try:
                bank.sql(f"INSERT INTO a VALUES ({number}, 0)")
            except TransactionError as e:
                assert "ended by another thread" in e.message  # noqa: PT017
            else:
                told.append(number)

    thread = threading.Thread(target=insert)
    thread.start()
    for _ in range(12):
        bank.sql("START TRANSACTION")
        time.sleep(0.1)
        bank.sql("COMMIT")
    stop.set()
    thread.join()
    assert told
    assert [i for i, _ in values(bank, "a") if i >= 100] == told
    nothing_is_open(bank)


def test_scripts(bank: AcidSession, tmp_path: Path) -> None:
    list(bank.script("START TRANSACTION; INSERT INTO a VALUES (3, 3); COMMIT;"))
    with pytest.raises(TransactionError, match="rolled back"):
        list(bank.script("START TRANSACTION;\nINSERT INTO a VALUES (4, 4);\n"))
    with pytest.raises(AnalysisException):
        list(bank.script("START TRANSACTION;\nINSERT INTO a VALUES (4, 4);\nSELECT nope FROM a;\nCOMMIT;"))
    assert len(values(bank, "a")) == 3
    assert not bank.in_transaction
    list(bank.script("START TRANSACTION; INSERT INTO a VALUES (4, 4);", keeps_transaction=True))
    bank.sql("COMMIT")
    assert len(values(bank, "a")) == 4
    nothing_is_open(bank)


def test_streams_and_sinks_have_transactions_of_their_own(bank: AcidSession) -> None:
    bank.sql("START TRANSACTION")
    bank.sql("INSERT INTO a VALUES (3, 3)")
    with bank.streaming("a") as stream:
        stream.begin()
        stream.write([(4, 4)])
        stream.commit()
    bank.sink("a")(bank.spark.sql("SELECT 5 AS id, 5 AS v"), 0)
    bank.sql("ROLLBACK")
    assert values(bank, "a") == [(1, 100), (2, 100), (4, 4), (5, 5)]
    nothing_is_open(bank)


def test_a_session_that_is_closed_rolls_back(bank: AcidSession, warehouse: Path) -> None:
    session: Any = acidsql.connect(bank.spark, warehouse=str(warehouse))
    session.sql("START TRANSACTION")
    session.sql("INSERT INTO a VALUES (3, 3)")
    session.close()
    assert len(values(bank, "a")) == 2
    nothing_is_open(bank)


MASS = "UPDATE t SET v = v + 1"
NEW = "INSERT INTO t VALUES (9, 9, 9)"
ONE = "INSERT OVERWRITE TABLE t SELECT id, v, p FROM t WHERE p = 0"


@pytest.fixture
def many(acid: AcidSession) -> AcidSession:
    """A table of more partitions than a statement locks one by one."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v int) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO t VALUES (0, 0, 0), (1, 0, 1), (2, 0, 2), (3, 0, 3)")
    acid.sql("SET hive.locks.max.partitions=2")
    return acid


@pytest.mark.parametrize("texts", [(MASS, NEW), (NEW, MASS), (ONE, MASS), (MASS, ONE, MASS)])
def test_what_was_locked_as_a_whole_is_in_conflict_though_partitions_were_named(
    many: AcidSession, other: AcidSession, texts: tuple[str, ...]
) -> None:
    other.sql("START TRANSACTION")
    assert len(values(other, "t")) == 4
    many.sql("START TRANSACTION")
    for text in texts:
        many.sql(text)
    many.sql("COMMIT")
    with pytest.raises(WriteConflict):
        other.sql("UPDATE t SET v = v + 10 WHERE p = 1")
    other.sql("ROLLBACK")
    assert dict(values(many, "t"))[1] == texts.count(MASS)


@pytest.mark.parametrize(("texts", "partition"), [((MASS, NEW), 9), ((NEW, MASS), 9), ((ONE, MASS), 0)])
def test_such_a_transaction_is_not_forgotten_as_long_as_a_partition_has_its_files(
    many: AcidSession, texts: tuple[str, ...], partition: int
) -> None:
    """One partition of an aborted transaction is cleaned, of those whose names were told."""
    many.sql("START TRANSACTION")
    for text in texts:
        many.sql(text)
    many.metastore.abort_txns(opened(many))  # as if it was killed: nobody removes its files
    many._env.transaction = None
    many.sql(f"ALTER TABLE t PARTITION (p = {partition}) COMPACT 'major'")
    for _ in range(2):
        many.compactor.run_once()
        many.metastore.clean_empty_aborted_txns()
        assert values(many, "t") == [(0, 0), (1, 0), (2, 0), (3, 0)]


def test_a_commit_of_what_is_over_does_not_ask_for_a_rollback(bank: AcidSession) -> None:
    bank.sql("START TRANSACTION")
    bank.sql("UPDATE a SET v = 1 WHERE id = 1")
    bank.metastore.abort_txns(opened(bank))
    with pytest.raises(TransactionError):
        bank.sql("SELECT * FROM a").collect()
    with pytest.raises(TransactionError, match="is over") as failed:
        bank.sql("COMMIT")
    assert "ROLLBACK" not in str(failed.value)
    assert not bank.in_transaction
