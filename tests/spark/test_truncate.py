"""TRUNCATE: a base without rows hides what was there, from every engine, and nothing else."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import acidsql
from acidsql.commands.dml.truncate import TruncateCommand
from acidsql.commands.transaction import write_transaction
from acidsql.errors import AcidError, LockTimeout
from acidsql.metastore.model import LockComponent, LockRequest, LockType, Operation
from acidsql.metastore.waiting import wait_for_earlier_writers
from acidsql.plan.staging import Staging
from acidsql.session import AcidSession
from tests.spark.answers import check_refusal, emp_and_part, nothing_is_open, overtake_next_lock, rows
from tests.spark.hive_rules import check_table
from tests.spark.tree import tree, with_version


@pytest.fixture
def shop(acid: AcidSession) -> AcidSession:
    return emp_and_part(acid, "(4, 'd', NULL, 'x')")


@pytest.mark.parametrize("text", ["TRUNCATE TABLE emp", "TRUNCATE emp"])
def test_a_truncated_table_is_empty_and_its_base_holds_one_file(shop: AcidSession, warehouse: Path, text: str) -> None:
    before = shop.table("emp")
    assert shop.sql(text).columns == []
    assert rows(shop, "SELECT * FROM emp") == []
    assert tree(warehouse / "emp") == with_version("base_0000002", "delta_0000001_0000001_0000")
    check_table(warehouse / "emp")
    assert sorted(r.id for r in before.collect()) == [1, 2]
    shop.sql("INSERT INTO emp VALUES (3, 'Eve')")
    shop.sql("UPDATE emp SET name = upper(name)")
    assert rows(shop, "SELECT ROW__ID.writeId, * FROM emp") == [(4, 3, "EVE")]
    check_table(warehouse / "emp")


def test_a_truncated_table_keeps_its_partitions(shop: AcidSession, warehouse: Path) -> None:
    shop.sql("TRUNCATE TABLE part")
    assert rows(shop, "SELECT * FROM part") == []
    assert len(rows(shop, "SHOW PARTITIONS part")) == 4
    assert len([f for f in tree(warehouse / "part") if "base_0000002/bucket_00000" in f]) == 4
    check_table(warehouse / "part")
    shop.sql("INSERT INTO part VALUES (5, 'e', 1, 'x')")
    assert rows(shop, "SELECT id FROM part") == [(5,)]
    nothing_is_open(shop)


@pytest.mark.parametrize(
    ("spec", "left"),
    [
        ("p = 1, q = 'x'", [2, 3, 4]),
        ("q = 'x'", [2]),
        ("P = 01", [3, 4]),
        ("p = NULL", [1, 2, 3]),
        ("p = 77", [1, 2, 3, 4]),
    ],
)
@pytest.mark.parametrize("most", ["1000", "1"], ids=["locks partitions", "locks the table"])
def test_partitions_are_truncated_by_their_values(
    shop: AcidSession, warehouse: Path, spec: str, left: list[int], most: str
) -> None:
    shop.sql(f"SET hive.locks.max.partitions = {most}")
    shop.sql(f"TRUNCATE TABLE part PARTITION ({spec})")
    assert [r[0] for r in rows(shop, "SELECT id FROM part")] == left
    check_table(warehouse / "part")
    nothing_is_open(shop)


def test_an_insert_only_table_is_truncated_too(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TABLE mm (id int) TBLPROPERTIES ('transactional'='true','transactional_properties'='insert_only')")
    acid.sql("INSERT INTO mm VALUES (1), (2)")
    acid.sql("TRUNCATE TABLE mm")
    assert rows(acid, "SELECT * FROM mm") == []
    assert "base_0000002/000000_0" in tree(warehouse / "mm")
    acid.sql("INSERT INTO mm VALUES (3)")
    TruncateCommand(acid._env, acid.metastore.get_table("default", "mm")).run()
    assert rows(acid, "SELECT * FROM mm") == []


def test_a_bucketed_table_is_truncated(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE b (id int) CLUSTERED BY (id) INTO 2 BUCKETS")
    acid.sql("INSERT INTO b VALUES (1), (2), (3)")
    acid.sql("TRUNCATE TABLE b")
    acid.sql("INSERT INTO b VALUES (4)")
    assert rows(acid, "SELECT * FROM b") == [(4,)]
    check_table(warehouse / "b")


def test_updates_wait_and_inserts_do_not(shop: AcidSession) -> None:
    """Hive's ``hive.acid.truncate.usebase``: the lock is EXCL_WRITE."""
    shop.sql("SET acidsql.lock.timeout = 200ms")
    for type, operation, waits in (
        (LockType.SHARED_READ, Operation.INSERT, False),
        (LockType.EXCL_WRITE, Operation.UPDATE, True),
    ):
        [txn] = shop.metastore.open_txns(user="olga", host="far")
        shop.metastore.lock(LockRequest((LockComponent(type, "default", "emp", None, operation),), txn, "o", "f"))
        if waits:
            with pytest.raises(LockTimeout):
                shop.sql("TRUNCATE TABLE emp")
        else:
            shop.sql("TRUNCATE TABLE emp")
        shop.metastore.abort_txns([txn])


def test_an_update_that_was_overtaken_finds_no_rows(shop: AcidSession, monkeypatch: pytest.MonkeyPatch) -> None:
    overtake_next_lock(shop, monkeypatch, "TRUNCATE TABLE emp")
    assert shop.sql("UPDATE emp SET name = 'x'").collect()[0].num_updated_rows == 0
    assert rows(shop, "SELECT * FROM emp") == []


REFUSED = [
    ("TRUNCATE TABLE part PARTITION (p = 77, q = 'x')", 10006, "1:21", "Partition not found {p=77, q=x}"),
    ("TRUNCATE TABLE part PARTITION (r = 1)", 40000, "1:21", "non-partition columns"),
    ("TRUNCATE TABLE part PARTITION (p = 'abc')", 10248, "1:32", "type int"),
    ("TRUNCATE TABLE emp PARTITION (p = 1)", 10148, "1:20", "Partition spec for non partitioned table default.emp."),
    ("TRUNCATE TABLE nope", 10001, "1:16", "Table not found default.nope"),
    ("TRUNCATE TABLE v", 10146, "1:16", "Cannot truncate non-managed table v."),
]


@pytest.mark.parametrize(("text", "code", "place", "piece"), REFUSED, ids=[r[0] for r in REFUSED])
def test_a_wrong_truncate_is_refused_and_leaves_nothing(
    shop: AcidSession, warehouse: Path, text: str, code: int, place: str, piece: str
) -> None:
    shop.sql("CREATE VIEW v AS SELECT * FROM emp")
    before = tree(warehouse / "emp") + tree(warehouse / "part")
    with pytest.raises(AcidError) as caught:
        shop.sql(text)
    check_refusal(caught.value, code, place, piece)
    assert tree(warehouse / "emp") + tree(warehouse / "part") == before
    nothing_is_open(shop)


def test_a_table_of_sparks_own_is_truncated_by_spark(acid: AcidSession, spark: SparkSession) -> None:
    spark.sql("CREATE TABLE own USING parquet AS SELECT 1 AS a")
    try:
        acid.sql("TRUNCATE TABLE own")
        assert spark.table("own").count() == 0
    finally:
        spark.sql("DROP TABLE own")


# --- INSERT at the same time -----------------------------------------------------------------------------------------


def test_an_insert_that_began_before_is_waited_for(
    acid: AcidSession, spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock does not keep INSERT away (Hive's table): what it has acknowledged must not be gone afterwards."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    acid.sql("INSERT INTO t VALUES (1)")
    publish, ended = Staging.publish, []
    waits = threading.Event()

    def waiting(*args: Any) -> None:
        waits.set()
        wait_for_earlier_writers(*args)

    def truncate_it() -> None:
        with acidsql.connect(spark, warehouse=warehouse) as other:
            other.sql("TRUNCATE TABLE t")
        ended.append("truncate")

    thread = threading.Thread(target=truncate_it)

    def publish_late(self: Staging, *args: Any) -> None:
        if not thread.ident:
            thread.start()
            assert waits.wait(60)
        publish(self, *args)

    monkeypatch.setattr(write_transaction, "wait_for_earlier_writers", waiting)
    monkeypatch.setattr(Staging, "publish", publish_late)
    acid.sql("INSERT INTO t VALUES (2)")
    ended.append("insert")
    thread.join(60)
    assert rows(acid, "SELECT * FROM t") == []
    acid.sql("INSERT INTO t VALUES (3)")
    assert rows(acid, "SELECT * FROM t") == [(3,)]
    nothing_is_open(acid)
