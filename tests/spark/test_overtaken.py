"""Statements that others overtake: while they wait, or while their process is suspended for longer than its timeout."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import acidsql
from acidsql.commands.ddl import renames
from acidsql.errors import AlreadyExists, LockTimeout, TransactionAborted
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.model import LockRequest, TxnState
from acidsql.plan.staging import Staging
from acidsql.plan.write import Writer
from acidsql.session import AcidSession
from tests.spark.answers import nothing_is_open, overtake_next_lock, rows


@pytest.fixture
def shop(acid: AcidSession) -> AcidSession:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (k int)")
    acid.sql("INSERT INTO t VALUES (10, 1), (20, 2)")
    return acid


def at_step(acid: AcidSession, monkeypatch: pytest.MonkeyPatch, step: str, meanwhile: Callable[[], object]) -> None:
    """Do something before the next call of a step of the store."""
    real = getattr(EmbeddedMetastore, step)

    def suspended(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(acid.metastore, step, partial(real, acid.metastore))
        meanwhile()
        return real(acid.metastore, *args, **kwargs)

    monkeypatch.setattr(acid.metastore, step, suspended)


def time_out(acid: AcidSession) -> None:
    acid.metastore.abort_txns([t.id for t in acid.metastore.show_txns() if t.state is TxnState.OPEN])


# --- suspended -------------------------------------------------------------------------------------------------------

OVERTAKEN = {
    "ADD COLUMNS": ("ALTER TABLE t ADD COLUMNS (x string)", "alter_table", ["ALTER TABLE t ADD COLUMNS (y string)"]),
    "SET TBLPROPERTIES": (
        "ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')",
        "alter_table",
        ["ALTER TABLE t ADD COLUMNS (y string)"],
    ),
    "RENAME": ("ALTER TABLE t RENAME TO u", "rename_table", ["ALTER TABLE t ADD COLUMNS (y string)"]),
    "DROP TABLE": (
        "DROP TABLE t",
        "drop_table",
        ["ALTER TABLE t RENAME TO old", "CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (k int)"],
    ),
    "DROP DATABASE": (
        "DROP DATABASE d CASCADE",
        "drop_table",
        ["CREATE TRANSACTIONAL TABLE d.u (id int)", "DROP TABLE d.t"],
    ),
    "CREATE TABLE": ("CREATE TRANSACTIONAL TABLE d.u (id int)", "create_table", ["DROP DATABASE d CASCADE"]),
    "SET LOCATION": ("ALTER TABLE t SET LOCATION '{warehouse}/else'", "alter_table", ["ALTER TABLE t RENAME TO u"]),
    "of a partition": (
        "ALTER TABLE t PARTITION (k = 1) SET LOCATION '{warehouse}/else'",
        "alter_partition",
        ["ALTER TABLE t DROP PARTITION (k = 1)", "ALTER TABLE t ADD PARTITION (k = 1)"],
    ),
    "ADD PARTITION": ("ALTER TABLE t ADD PARTITION (k = 3)", "add_partitions", ["ALTER TABLE t RENAME TO u"]),
    "DROP PARTITION": (
        "ALTER TABLE t DROP PARTITION (k = 1)",
        "drop_partitions",
        ["ALTER TABLE t DROP PARTITION (k = 1)", "ALTER TABLE t ADD PARTITION (k = 1)"],
    ),
    "MSCK": ("MSCK REPAIR TABLE t", "add_partitions", ["ALTER TABLE t RENAME TO u"]),
    "ANALYZE": ("ANALYZE TABLE t COMPUTE STATISTICS", "set_statistics", ["INSERT INTO t VALUES (11, 1)"]),
    "CREATE VIEW": ("CREATE VIEW d.v AS SELECT * FROM t", "create_table", ["DROP DATABASE d CASCADE"]),
    "DROP VIEW": (
        "DROP VIEW w",
        "drop_table",
        ["DROP VIEW w", "CREATE TRANSACTIONAL TABLE w (id int)", "INSERT INTO w VALUES (5)"],
    ),
    "MERGE WITH SCHEMA EVOLUTION": (
        "MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT 5 AS id, 1 AS k, 'e' AS x) s ON t.id = s.id"
        " WHEN NOT MATCHED THEN INSERT *",
        "alter_table",
        ["ALTER TABLE t ADD COLUMNS (y string)", "INSERT INTO t VALUES (2, 'why', 2)"],
    ),
    "RENAME PARTITION": (
        "ALTER TABLE t PARTITION (k = 1) RENAME TO PARTITION (k = 3)",
        "rename_partition",
        ["ALTER TABLE t ADD PARTITION (k = 4)"],
    ),
}
"""A statement, the call of the store before which it is suspended, and what others do meanwhile."""


def _catalog(acid: AcidSession) -> object:
    store = acid.metastore
    tables = [store.get_table(d, name) for d in store.list_databases() for name in store.list_tables(d)]
    return store.list_databases(), tables, [store.list_partitions(t.database, t.name) for t in tables]


def _tree(warehouse: Path) -> set[str]:
    return {str(p.relative_to(warehouse)) for p in warehouse.rglob("*") if "acidsql" not in p.name}


@pytest.mark.parametrize("case", OVERTAKEN)
def test_a_statement_whose_locks_are_gone_changes_nothing_in_the_catalog(
    shop: AcidSession, spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    text, step, meanwhile = OVERTAKEN[case]
    for one in ("CREATE DATABASE d", "CREATE TRANSACTIONAL TABLE d.t (id int)", "CREATE VIEW w AS SELECT * FROM t"):
        shop.sql(one)
    (warehouse / "t" / "k=7").mkdir()
    seen = list[tuple[object, set[str]]]()

    def others() -> None:
        time_out(shop)
        with acidsql.connect(spark, warehouse=warehouse) as other:
            for one in meanwhile:
                other.sql(one)
        seen.append((_catalog(shop), _tree(warehouse)))

    at_step(shop, monkeypatch, step, others)
    with pytest.raises(TransactionAborted):
        shop.sql(text.format(warehouse=warehouse))
    [(catalog, tree)] = seen
    assert _catalog(shop) == catalog
    assert _tree(warehouse) <= tree  # its own directories are gone
    nothing_is_open(shop)


@pytest.mark.parametrize("text", ["UPDATE t SET id = id + 1", "DELETE FROM t", "INSERT INTO t SELECT * FROM t"])
def test_an_error_of_a_statement_that_was_ended_is_that_it_was_ended(
    shop: AcidSession, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """The cleaner has removed what Spark was reading."""

    def gone(*_: object, **__: object) -> None:
        time_out(shop)
        raise RuntimeError("java.io.FileNotFoundException")

    monkeypatch.setattr(Writer, "write", gone)
    with pytest.raises(TransactionAborted) as error:
        shop.sql(text)
    assert isinstance(error.value.__cause__, RuntimeError)
    assert rows(shop, "SELECT * FROM t") == [(10, 1), (20, 2)]


# --- partitions ------------------------------------------------------------------------------------------------------


def test_if_not_exists_is_asked_again_under_the_lock(shop: AcidSession, monkeypatch: pytest.MonkeyPatch) -> None:
    overtake_next_lock(shop, monkeypatch, "INSERT INTO t VALUES (30, 3)")
    [counts] = shop.sql("INSERT OVERWRITE t PARTITION (k = 3) IF NOT EXISTS VALUES (31)").collect()
    assert counts.num_inserted_rows == 0
    overtake_next_lock(shop, monkeypatch, "INSERT INTO t VALUES (40, 4)")
    [counts] = shop.sql(
        "FROM (SELECT 41 AS id) s INSERT OVERWRITE t PARTITION (k = 4) IF NOT EXISTS SELECT id"
        " INSERT OVERWRITE t PARTITION (k = 5) IF NOT EXISTS SELECT id + 10"
    ).collect()
    assert counts.num_inserted_rows == 1
    assert rows(shop, "SELECT * FROM t WHERE k > 2") == [(30, 3), (40, 4), (51, 5)]
    nothing_is_open(shop)


INSERTS = {
    "static": "INSERT INTO t PARTITION (k = 3) VALUES (30)",
    "dynamic": "INSERT INTO t VALUES (30, 3)",
    "merge": "MERGE INTO t USING (SELECT 30 AS id, 3 AS k) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
    "overwrite": "INSERT OVERWRITE t PARTITION (k = 3) VALUES (30)",
    "from": "FROM (SELECT 30 AS id, 3 AS k) s INSERT INTO t SELECT id, k",
}


@pytest.mark.parametrize("text", INSERTS.values(), ids=INSERTS)
def test_rows_are_where_a_partition_that_was_added_meanwhile_is(
    shop: AcidSession, spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    def add() -> None:
        with acidsql.connect(spark, warehouse=warehouse) as other:
            if "OVERWRITE" not in text:
                other.sql(f"ALTER TABLE t ADD PARTITION (k = 3) LOCATION '{warehouse}/elsewhere'")

    at_step(shop, monkeypatch, "add_partitions", add)
    assert shop.sql(text).collect()[0].num_inserted_rows == 1
    assert rows(shop, "SELECT * FROM t") == [(10, 1), (20, 2), (30, 3)]
    shop.sql("ALTER TABLE t DROP PARTITION (k = 3)")
    shop.sql("INSERT INTO t VALUES (31, 3)")
    assert rows(shop, "SELECT * FROM t") == [(10, 1), (20, 2), (31, 3)]
    nothing_is_open(shop)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("UPDATE t SET id = id + 1000 WHERE k > 0", lambda id: id + 1000),
        ("DELETE FROM t WHERE k > 0", None),
        (
            "MERGE INTO t USING (SELECT 0 AS k) s ON t.k > s.k WHEN MATCHED THEN UPDATE SET id = t.id + 1000"
            " WHEN NOT MATCHED THEN INSERT VALUES (1, 0)",
            lambda id: id + 1000,
        ),
    ],
)
@pytest.mark.parametrize("in_transaction", [False, True])
def test_partitions_may_be_added_each_time_that_it_asks_for_locks(
    shop: AcidSession,
    warehouse: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    changed: Callable[[int], int] | None,
    in_transaction: bool,
) -> None:
    real, added = shop.metastore.lock, list[int]()

    def lock(request: LockRequest) -> object:
        added.append(100 + len(added))
        with acidsql.connect(shop.spark, warehouse=warehouse) as other:
            monkeypatch.setattr(other.metastore, "lock", partial(EmbeddedMetastore.lock, other.metastore))
            other.sql(f"INSERT INTO t VALUES ({added[-1]}, {added[-1]})")
        return real(request)

    monkeypatch.setattr(shop.metastore, "lock", lock)
    with shop.transaction() if in_transaction else nullcontext():
        shop.sql(text)
    assert len(added) == 3, "the third time it locks the whole table"
    before = [(10, 1), (20, 2), *((n, n) for n in added)]
    assert rows(shop, "SELECT * FROM t ORDER BY k") == ([] if changed is None else [(changed(n), k) for n, k in before])
    nothing_is_open(shop)


def test_apply_changes_comes_through_beside_partitions_that_are_added(
    shop: AcidSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its MERGE is another one at each attempt."""
    real, added = shop.metastore.lock, list[int]()

    def lock(request: LockRequest) -> object:
        if any(c.table == "t" for c in request.components):
            added.append(100 + len(added))
            with acidsql.connect(shop.spark, warehouse=warehouse) as other:
                monkeypatch.setattr(other.metastore, "lock", partial(EmbeddedMetastore.lock, other.metastore))
                other.sql(f"INSERT INTO t VALUES ({added[-1]}, {added[-1]})")
        return real(request)

    changes = shop.spark.createDataFrame([(10, 1, 1), (11, 1, 1)], "id int, k int, n int")
    monkeypatch.setattr(shop.metastore, "lock", lock)
    shop.apply_changes("t", changes, keys=["id", "k"], sequence_by="n", except_columns=["n"])
    monkeypatch.undo()
    assert rows(shop, "SELECT * FROM t WHERE k < 100") == [(10, 1), (11, 1), (20, 2)]
    assert rows(shop, "SELECT id FROM t WHERE k >= 100") == [(n,) for n in added]
    nothing_is_open(shop)


@pytest.mark.parametrize("through", ["apply_changes", "sink"])
def test_changes_come_through_beside_partitions_that_are_overwritten_after_the_snapshot(
    shop: AcidSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, through: str
) -> None:
    """They are there when it looks for what it has to lock, and its snapshot is older: that of its first lock."""
    changes = shop.spark.sql("SELECT 0 AS id, explode(array(1, 2) || sequence(100, 150)) AS k, 1 AS n")
    sink = shop.sink("t", mode="merge", keys=["k"])
    sink(changes.select("id", "k").where("k = 1"), 0)
    real, added = shop.metastore.list_partitions, list[int]()

    def list_partitions(database: str, table: str, *rest: Any) -> object:
        if table == "t" and len(added) < 50:
            added.append(100 + len(added))
            with acidsql.connect(shop.spark, warehouse=warehouse, settings={"acidsql.lock.timeout": "100ms"}) as other:
                try:
                    other.sql(f"INSERT OVERWRITE TABLE t PARTITION (k = {added[-1]}) SELECT {added[-1]}")
                except LockTimeout:
                    added.pop()
        return real(database, table, *rest)

    monkeypatch.setattr(shop.metastore, "list_partitions", list_partitions)
    if through == "sink":
        sink(changes.select("id", "k"), 1)
    else:
        shop.apply_changes("t", changes, keys=["k"], sequence_by="n", except_columns=["n"])
    monkeypatch.undo()
    assert added
    assert rows(shop, "SELECT * FROM t WHERE k < 100") == [(0, 1), (0, 2)]
    assert rows(shop, "SELECT k FROM t WHERE id = 0 AND k >= 100") == [(n,) for n in range(100, 151)]
    nothing_is_open(shop)


@pytest.mark.parametrize(
    "meanwhile", ["ALTER TABLE t ADD PARTITION (k = 3)", "INSERT INTO t VALUES (30, 3)"], ids=["empty", "with a row"]
)
def test_a_partition_added_after_the_snapshot_is_no_conflict(
    shop: AcidSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    """With what others have changed in places that the statement does not change."""
    with acidsql.connect(shop.spark, warehouse=warehouse) as other:
        with shop.transaction():
            rows(shop, "SELECT * FROM t")
            other.sql("UPDATE t SET id = 21 WHERE k = 2")
            with monkeypatch.context() as patch:
                real, asked = shop.metastore.lock, list[LockRequest]()

                def lock(request: LockRequest) -> object:
                    if not asked:
                        other.sql(meanwhile)
                    asked.append(request)
                    return real(request)

                patch.setattr(shop.metastore, "lock", lock)
                [done] = shop.sql("UPDATE t SET id = id + 1 WHERE k = 1 OR k = 3").collect()
            assert len(asked) == 1
            assert done.num_updated_rows == 1
            assert rows(shop, "SELECT * FROM t") == [(11, 1), (20, 2)]
        assert rows(shop, "SELECT * FROM t WHERE k < 3") == [(11, 1), (21, 2)]
        assert rows(shop, "SELECT * FROM t WHERE k = 3") == ([(30, 3)] if "INSERT" in meanwhile else [])
    nothing_is_open(shop)


def test_truncate_leaves_a_partition_that_was_added_after_the_snapshot(
    acid: AcidSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (q int, p int)")
    acid.sql("INSERT INTO t VALUES (1, 1, 1), (2, 2, 2)")
    with acidsql.connect(acid.spark, warehouse=warehouse) as other:
        with acid.transaction():
            rows(acid, "SELECT * FROM t")
            other.sql("UPDATE t SET id = 20 WHERE q = 2")
            real = acid.metastore.lock

            def lock(request: LockRequest) -> object:
                monkeypatch.setattr(acid.metastore, "lock", real)
                other.sql("INSERT INTO t VALUES (9, 1, 9)")
                return real(request)

            monkeypatch.setattr(acid.metastore, "lock", lock)
            acid.sql("TRUNCATE TABLE t PARTITION (q = 1)")
            assert rows(acid, "SELECT * FROM t") == [(2, 2, 2)]
        assert rows(acid, "SELECT * FROM t") == [(20, 2, 2), (9, 1, 9)]
    nothing_is_open(acid)


def test_a_partition_that_is_dropped_meanwhile_is_not_missed(
    shop: AcidSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    overtake_next_lock(shop, monkeypatch, "ALTER TABLE t DROP PARTITION (k = 1)")
    [done] = shop.sql("UPDATE t SET id = id + 1").collect()
    assert done.num_updated_rows == 1
    assert rows(shop, "SELECT * FROM t") == [(21, 2)]
    nothing_is_open(shop)


def test_of_two_that_add_a_partition_one_is_told_that_it_exists(
    shop: AcidSession, spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add() -> None:
        with acidsql.connect(spark, warehouse=warehouse) as other:
            other.sql(f"ALTER TABLE t ADD PARTITION (k = 3) LOCATION '{warehouse}/one'")

    for clause in ("", "IF NOT EXISTS"):
        at_step(shop, monkeypatch, "add_partitions", add)
        text = f"ALTER TABLE t ADD {clause} PARTITION (k = 3) LOCATION '{warehouse}/other'"
        if clause:
            shop.sql(text)
        else:
            with pytest.raises(AlreadyExists, match="k=3"):
                shop.sql(text)
        [added] = shop.metastore.list_partitions("default", "t", ["k=3"])
        assert added.location.endswith("/one")
        assert not (warehouse / "other").exists()
        shop.sql("ALTER TABLE t DROP PARTITION (k = 3)")
    nothing_is_open(shop)


# --- names -----------------------------------------------------------------------------------------------------------

IMPATIENT = {"hive.lock.numretries": "1", "hive.lock.sleep.between.retries": "1ms"}


@pytest.mark.parametrize("create", ["(id int)", "AS SELECT 1 AS id"])
def test_the_new_name_of_a_table_is_locked(
    shop: AcidSession, spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, create: str
) -> None:
    """The directory of the table that is to be created was taken for the one that was renamed."""
    refused = list[bool]()

    def others() -> None:
        with acidsql.connect(spark, warehouse=warehouse, settings=IMPATIENT) as other:
            with pytest.raises(LockTimeout):
                other.sql(f"CREATE TRANSACTIONAL TABLE u {create}")
            refused.append(not (warehouse / "u").exists())

    at_step(shop, monkeypatch, "rename_table", others)
    shop.sql("ALTER TABLE t RENAME TO u")
    assert refused == [True]
    assert rows(shop, "SELECT * FROM u") == [(10, 1), (20, 2)]


def test_an_empty_directory_of_the_new_name_is_not_the_one_that_moved(
    shop: AcidSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As CREATE TABLE … LOCATION makes one before it asks whether the place is free."""
    carry_out = renames.carry_out_announced

    def overtaken(*args: Any, **kwargs: Any) -> None:
        (warehouse / "u").mkdir()
        carry_out(*args, **kwargs)

    monkeypatch.setattr(renames, "carry_out_announced", overtaken)
    shop.sql("ALTER TABLE t RENAME TO u")
    assert rows(shop, "SELECT * FROM u") == [(10, 1), (20, 2)]
    assert not (warehouse / "t").exists()


@pytest.mark.parametrize("location", ["", "LOCATION '{warehouse}/elsewhere'"])
@pytest.mark.parametrize("pruned", [False, True])
def test_a_table_gets_a_name_that_another_was_not_created_under(
    shop: AcidSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, pruned: bool, location: str
) -> None:
    """The write ids of a CREATE TABLE … AS that failed, or was killed, are not those of the table that is renamed."""
    if pruned:
        shop.compactor.run_once()
    if location:
        monkeypatch.setattr(Staging, "discard", lambda self: False)
    place = location.format(warehouse=warehouse)
    with pytest.raises(Exception, match="no such luck"):
        shop.sql(f"CREATE TRANSACTIONAL TABLE u {place} AS SELECT raise_error('no such luck') AS id")
    monkeypatch.undo()
    shop.sql("ALTER TABLE t RENAME TO u")
    assert rows(shop, "SELECT * FROM u") == [(10, 1), (20, 2)]
    shop.compactor.run_once()
    assert rows(shop, "SELECT * FROM u") == [(10, 1), (20, 2)]
    shop.sql("INSERT INTO u VALUES (30, 3)")
    shop.sql("UPDATE u SET id = id + 1")
    assert rows(shop, "SELECT * FROM u") == [(11, 1), (21, 2), (31, 3)]
    nothing_is_open(shop)
