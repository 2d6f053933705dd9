"""Which locks statements ask for: TestDbTxnManager, TestDbTxnManager2 (tests/HIVE_CASES.md).

How locks exclude each other is tested with the stores, in tests/metastore.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from acidsql.metastore.model import LockComponent, LockRequest, LockType, Operation
from acidsql.session import AcidSession

Asked = Callable[[str], list[tuple[str, str, "str | None"]]]


@pytest.fixture
def asked(acid: AcidSession, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Runs a statement; the locks that it asks for: type, table, partition."""
    found: list[LockComponent] = []
    real = acid.metastore.lock

    def lock(request: LockRequest) -> object:
        found.extend(request.components)
        return real(request)

    monkeypatch.setattr(acid.metastore, "lock", lock)

    def run(statement: str) -> list[tuple[str, str, str | None]]:
        found.clear()
        acid.sql(statement)
        return sorted((c.type.name, c.table or "", c.partition) for c in found)

    return run


SHARED = pytest.mark.parametrize("shared", [False, True], ids=["exclusive writes", "shared writes"])


@SHARED
def test_what_is_read_and_what_is_written(acid: AcidSession, asked: Asked, shared: bool) -> None:
    change, insert, overwrite = (
        ("SHARED_WRITE", "SHARED_WRITE", "EXCL_WRITE") if shared else ("EXCL_WRITE", "SHARED_READ", "EXCLUSIVE")
    )
    acid.sql(f"SET hive.txn.xlock.write = {str(not shared).lower()}")
    for table in ("t", "s", "r"):
        acid.sql(f"CREATE TRANSACTIONAL TABLE {table} (a int, b int) CLUSTERED BY (b) INTO 2 BUCKETS")
    acid.sql("CREATE TRANSACTIONAL TABLE part (a int, b int) PARTITIONED BY (p string)")
    chosen = "a IN (SELECT a FROM t WHERE b = 1)"
    reads_t = ("SHARED_READ", "t", None)
    assert asked(f"DELETE FROM s WHERE {chosen}") == sorted([reads_t, (change, "s", None)])
    assert asked(f"UPDATE s SET a = 7 WHERE {chosen}") == sorted([reads_t, (change, "s", None)])
    reads = [reads_t, ("SHARED_READ", "s", None)]
    assert asked(f"INSERT INTO r SELECT * FROM s WHERE {chosen}") == sorted([*reads, (insert, "r", None)])
    assert asked("INSERT OVERWRITE TABLE r SELECT * FROM t") == sorted([reads_t, (overwrite, "r", None)])
    text = "INSERT OVERWRITE TABLE part PARTITION (p) SELECT a, b, 'x' FROM t"
    assert asked(text) == sorted([reads_t, (overwrite, "part", None)])
    assert asked("INSERT INTO part PARTITION (p) VALUES (1, 2, 3)") == [(insert, "part", None)]
    assert asked("INSERT INTO part PARTITION (p = 1) VALUES (5, 6)") == [(insert, "part", "p=1")]
    assert {lock[0] for lock in asked("UPDATE part SET b = 17 WHERE a = 1")} == {change}
    assert asked("UPDATE part SET b = 17 WHERE p = 1") == [(change, "part", "p=1")]


def test_looking_at_a_table_waits_for_nobody(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (a int)")
    [txn] = acid.metastore.open_txns(user="far", host="away")
    component = LockComponent(LockType.EXCLUSIVE, "default", "t", None, Operation.NO_TXN)
    acid.metastore.lock(LockRequest((component,), txn, "far", "away"))
    acid.sql("SET acidsql.lock.timeout = 100ms")
    assert [r.tableName for r in acid.sql("SHOW TABLES").collect()] == ["t"]
    assert acid.sql("DESCRIBE t").collect()[0].col_name == "a"
    assert acid.sql("EXPLAIN DELETE FROM t").collect() != []
    acid.sql("DROP TABLE IF EXISTS nope")
    assert len(acid.sql("SHOW LOCKS").collect()) == 1
    acid.metastore.abort_txns([txn])
