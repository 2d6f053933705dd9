"""acidsql on a live Hive Metastore 3.1.3; a strict parser with the rules of Hive 3.1 stands in for its engine."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

import acidsql
from acidsql.errors import UnsupportedError, WriteConflict
from acidsql.metastore.model import LockComponent, LockRequest, LockState, LockType, Operation
from tests.interop.waiting import until
from tests.services.metastore31 import Metastore31, metastore31_is_possible
from tests.spark.hive_rules import check_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from acidsql.session import AcidSession


@pytest.fixture(scope="module")
def metastore() -> Iterator[Metastore31]:
    if reason := metastore31_is_possible():
        pytest.skip(f"NO METASTORE 3.1, nothing of this module was run: {reason}")
    with Metastore31() as started:
        yield started


@pytest.fixture
def acid(spark: SparkSession, metastore: Metastore31) -> Iterator[AcidSession]:
    """A session in a database of its own."""
    with acidsql.connect(spark, metastore=metastore.metastore_uri) as session:
        session.sql("CREATE DATABASE hr")
        session.sql("USE hr")
        yield session
        session.sql("DROP DATABASE hr CASCADE")
        assert not (metastore.warehouse / "hr.db").exists()


def rows(acid: AcidSession, table: str) -> list[tuple[object, ...]]:
    return sorted(tuple(r) for r in acid.table(table).collect())


@pytest.mark.parametrize("by", ["driver", "job"])
def test_statements_on_a_plain_table(acid: AcidSession, metastore: Metastore31, by: str) -> None:
    acid.sql("CREATE TABLE emp (id int, name string NOT NULL, pay int DEFAULT 7) TBLPROPERTIES('transactional'='true')")
    acid.sql(f"SET acidsql.write.driver.rows = {0 if by == 'job' else 20000}")
    acid.sql("INSERT INTO emp (id, name) VALUES (1, 'Ann'), (2, 'Bob'), (3, 'Cid')")
    acid.sql("UPDATE emp SET pay = pay + 1 WHERE id = 2")
    acid.sql("DELETE FROM emp WHERE id = 3")

    assert rows(acid, "emp") == [(1, "Ann", 7), (2, "Bob", 8)]
    assert check_table(metastore.warehouse / "hr.db" / "emp") == 6
    acid.sql("INSERT OVERWRITE emp SELECT id + 10, name, pay FROM emp")
    assert rows(acid, "emp") == [(11, "Ann", 7), (12, "Bob", 8)]
    assert check_table(metastore.warehouse / "hr.db" / "emp") == 8


def test_statements_on_partitions(acid: AcidSession, metastore: Metastore31) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE p (id int) PARTITIONED BY (k int, q string)")
    acid.sql("INSERT INTO p PARTITION (k=1, q='a b/c') VALUES (1), (2)")
    acid.sql("INSERT INTO p VALUES (3, 2, NULL), (4, 2, 'z')")
    acid.sql("UPDATE p SET id = id + 10 WHERE k = 2")
    acid.sql("DELETE FROM p WHERE id = 2")
    acid.sql("ALTER TABLE p ADD PARTITION (k=9, q='n')")
    acid.sql("ALTER TABLE p DROP PARTITION (k=2, q='z')")

    shown = [r[0] for r in acid.sql("SHOW PARTITIONS p").collect()]
    assert shown == ["k=1/q=a b%2Fc", "k=2/q=__HIVE_DEFAULT_PARTITION__", "k=9/q=n"]
    assert sorted((r.id, r.k, r.q) for r in acid.table("p").collect()) == [(1, 1, "a b/c"), (13, 2, None)]
    assert check_table(metastore.warehouse / "hr.db" / "p") > 0


def test_who_waited_for_another_change_of_the_same_rows_fails_at_the_commit(acid: AcidSession) -> None:
    """A metastore 3 has no EXCL_WRITE, and does not tell who changed what meanwhile: its commit finds the conflict."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, n int)")
    acid.sql("INSERT INTO t VALUES (1, 0)")
    store = acid.metastore
    [other] = store.open_txns(user="u", host="h")
    locked = LockComponent(LockType.EXCL_WRITE, "hr", "t", None, Operation.UPDATE)
    assert store.lock(LockRequest((locked,), other, "u", "h")).state is LockState.ACQUIRED
    store.allocate_table_write_id(other, "hr", "t")

    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(acid.sql, "UPDATE t SET n = n + 1")
        until(lambda: [x for x in store.show_locks() if x.state is LockState.WAITING], "a waiting lock")
        store.commit_txn(other)
        with pytest.raises(WriteConflict, match="write conflict"):
            waiting.result(60)

    assert rows(acid, "t") == [(1, 0)]
    acid.sql("UPDATE t SET n = n + 1")
    assert rows(acid, "t") == [(1, 1)]


def test_a_failed_statement_leaves_no_open_transaction_and_no_lock(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        acid.sql("INSERT INTO t SELECT id / 0 FROM range(3)")

    assert [r.state for r in acid.sql("SHOW TRANSACTIONS").collect() if r.state == "OPEN"] == []
    assert acid.sql("SHOW LOCKS").collect() == []
    assert rows(acid, "t") == []


def test_compaction_is_put_into_the_queue(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    acid.sql("ALTER TABLE t COMPACT 'major'")

    [queued] = acid.sql("SHOW COMPACTIONS DATABASE hr").collect()
    assert (queued.tabname, queued.type, queued.state) == ("t", "MAJOR", "initiated")
    with pytest.raises(UnsupportedError, match="rebalance"):
        acid.sql("ALTER TABLE t COMPACT 'rebalance'")
