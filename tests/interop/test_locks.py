"""A statement of one side waits for a lock of the other; both list it, and whoever waited sees what was committed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import pytest

from acidsql.errors import LockTimeout
from acidsql.metastore.model import LockComponent, LockRequest, LockState, LockType, Operation
from tests.interop.both import ACIDSQL, HIVE, SIDES, Both, SharedTable
from tests.interop.conftest import OpenAcid, OpenHive
from tests.interop.waiting import PATIENCE, until

SLEEP = "reflect('java.lang.Thread', 'sleep', bigint({ms})) = 'null'"
"""Keeps Hive at a row for a while."""


def _locks(both: Both, side: str, t: SharedTable) -> list[tuple[str, str, str]]:
    """State, type and partition of the locks on a table, as a side lists them."""
    # Hive finds no locks of a table that is named with its database
    database, _, name = t.name.partition(".")
    rows = [r for r in both.ask(side, f"SHOW LOCKS DATABASE {database}") if r[2] == name]
    return sorted((r[4], r[6], str(r[3])) for r in rows)


def _waiting(both: Both, side: str, t: SharedTable) -> bool:
    return "WAITING" in [x[0] for x in _locks(both, side, t)]


@contextmanager
def _held(
    both: Both, t: SharedTable, type: LockType, operation: Operation, partition: str | None = None
) -> Iterator[int]:
    """A transaction opened through the metastore that holds one lock on the table; committed at the end."""
    store, (database, _, name) = both.acid.metastore, t.name.partition(".")
    [txn] = store.open_txns(user="holder", host="here", agent_info="acidsql-test")
    request = LockRequest(
        (LockComponent(type, database, name, partition, operation),), txn, "holder", "here", "acidsql-test"
    )
    try:
        assert store.lock(request).state is LockState.ACQUIRED
        yield txn
    finally:
        store.commit_txn(txn)


@pytest.fixture
def aside() -> Iterator[ThreadPoolExecutor]:
    """Threads for statements that wait; a test that fails does not wait for them."""
    pool = ThreadPoolExecutor(4)
    yield pool
    pool.shutdown(wait=False)


@pytest.mark.parametrize("keys", [False, True], ids=["plain", "partitioned"])
def test_an_update_of_acidsqls_waits_for_hives_and_sees_its_rows(
    both: Both, open_hive: OpenHive, aside: ThreadPoolExecutor, keys: bool
) -> None:
    t = both.table("id int, n int", "p int", by=HIVE) if keys else both.table("id int, n int, p int", by=HIVE)
    t.hive("INSERT INTO {t} VALUES (1, 10, 1)")
    other = open_hive()
    slow = aside.submit(other.run, t.text(f"UPDATE {{t}} SET n = n + 1 WHERE {SLEEP.format(ms=4000)}"))
    until(lambda: ("ACQUIRED", "EXCL_WRITE") in [x[:2] for x in _locks(both, ACIDSQL, t)], "Hive's lock")
    ours = aside.submit(both.run, ACIDSQL, t.text("UPDATE {t} SET n = n * 2"))
    for side in SIDES:
        until(partial(_waiting, both, side, t), f"our waiting lock in SHOW LOCKS of {side}")
    slow.result(PATIENCE)
    ours.result(PATIENCE)
    both.wrote(HIVE)
    t.holds((1, 22, 1))


@pytest.mark.parametrize(
    ("type", "statement"),
    [
        (LockType.EXCL_WRITE, "UPDATE {t} SET n = n + 1"),
        (LockType.EXCL_WRITE, "DELETE FROM {t} WHERE n = 99"),
        (LockType.EXCLUSIVE, "INSERT INTO {t} VALUES (2, 2)"),
        (LockType.EXCLUSIVE, "SELECT count(n + 0) FROM {t}"),
        (LockType.SHARED_READ, "INSERT OVERWRITE TABLE {t} SELECT 3, 3"),
        (LockType.EXCL_WRITE, "TRUNCATE TABLE {t}"),
    ],
)
def test_a_statement_of_hives_waits_for_a_lock_of_acidsqls(
    both: Both, open_hive: OpenHive, aside: ThreadPoolExecutor, type: LockType, statement: str
) -> None:
    t = both.table("id int, n int", by=ACIDSQL)
    t.acid("INSERT INTO {t} VALUES (1, 1)")
    other = open_hive()
    with _held(both, t, type, Operation.SELECT if type is LockType.SHARED_READ else Operation.UPDATE):
        waiting = aside.submit(other.run, t.text(statement))
        until(partial(_waiting, both, HIVE, t), f"Hive's {statement} waiting")
        assert _locks(both, HIVE, t) == _locks(both, ACIDSQL, t)
        assert not waiting.done()
    waiting.result(PATIENCE)
    both.wrote(HIVE)


@pytest.mark.parametrize(
    ("type", "statement"),
    [
        (LockType.SHARED_READ, "SELECT count(n + 0) FROM {t}"),
        (LockType.SHARED_READ, "INSERT INTO {t} VALUES (2, 2)"),
        (LockType.SHARED_READ, "UPDATE {t} SET n = n + 1"),
        (LockType.EXCL_WRITE, "SELECT count(n + 0) FROM {t}"),
        (LockType.EXCL_WRITE, "INSERT INTO {t} VALUES (2, 2)"),
    ],
)
def test_what_does_not_exclude_each_other_runs_beside_each_other(both: Both, type: LockType, statement: str) -> None:
    t = both.table("id int, n int", by=ACIDSQL)
    t.acid("INSERT INTO {t} VALUES (1, 1)")
    with _held(both, t, type, Operation.SELECT if type is LockType.SHARED_READ else Operation.UPDATE):
        for side in SIDES:
            (both.ask if statement.startswith("SELECT") else both.run)(side, t.text(statement))
    t.agree()


def test_locks_of_different_partitions_do_not_wait_for_each_other(both: Both) -> None:
    t = both.table("id int", "p int", by=HIVE)
    t.hive("INSERT INTO {t} VALUES (1, 1), (2, 2)")
    with _held(both, t, LockType.EXCL_WRITE, Operation.UPDATE, "p=1"):
        for side in SIDES:
            both.run(side, t.text("UPDATE {t} SET id = id + 10 WHERE p = 2"))
    t.holds((1, 1), (22, 2))


def test_a_wait_of_acidsqls_ends_with_the_name_of_hives_transaction(
    both: Both, open_hive: OpenHive, open_acid: OpenAcid, aside: ThreadPoolExecutor
) -> None:
    t = both.table("id int", by=HIVE)
    t.hive("INSERT INTO {t} VALUES (1)")
    impatient = open_acid(**{"acidsql.lock.timeout": "1s"})
    slow = aside.submit(open_hive().run, t.text(f"UPDATE {{t}} SET id = 2 WHERE {SLEEP.format(ms=5000)}"))
    until(lambda: "ACQUIRED" in [x[0] for x in _locks(both, ACIDSQL, t)], "Hive's lock")
    with pytest.raises(LockTimeout, match=t.name):
        impatient.sql(t.text("UPDATE {t} SET id = 3"))
    slow.result(PATIENCE)
    both.wrote(HIVE)
    both.wrote(ACIDSQL)
    assert _locks(both, HIVE, t) == []
    t.holds((2,))
