"""Open and aborted transactions of one side are invisible to the other, whatever of them lies on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from acidsql.errors import AcidError
from acidsql.metastore.model import TxnState, TxnType
from acidsql.session import AcidSession
from tests.interop.both import ACIDSQL, HIVE, Both, Row, SharedTable
from tests.interop.conftest import OpenAcid, Service
from tests.interop.killed import kill_before_commit
from tests.services.hiveserver2 import HiveError

STATEMENTS = {
    "insert": "INSERT INTO {t} VALUES (9, 'new', 1), (9, 'new', 3)",
    "update": "UPDATE {t} SET v = 'changed' WHERE id < 3",
    "delete": "DELETE FROM {t} WHERE id = 1",
    "overwrite": "INSERT OVERWRITE TABLE {t} SELECT 7, 'only', 1",
}


class Stopped(Exception):
    """Raised in a statement's place of commit."""


@contextmanager
def _before_commit(acid: AcidSession, act: Callable[[int], None], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Act when everything of a statement is written and published, and nothing committed."""
    store = type(acid.metastore)
    commit = store.commit_txn

    def stop(self: object, txn_id: int, *args: Any) -> None:
        if self is acid.metastore:
            act(txn_id)
        commit(self, txn_id, *args)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(store, "commit_txn", stop)
        yield


def _prepared(both: Both, keys: bool) -> SharedTable:
    t = both.table("id int, v string", "k int", by=HIVE) if keys else both.table("id int, v string, k int", by=HIVE)
    return t.acid("INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 2)")


@pytest.mark.parametrize("kind", ["insert", "update", "delete"])  # INSERT OVERWRITE lets nobody read
@pytest.mark.parametrize("keys", [False, True], ids=["plain", "partitioned"])
def test_hive_sees_a_statement_of_acidsqls_at_its_commit_and_not_before(
    both: Both, open_acid: OpenAcid, monkeypatch: pytest.MonkeyPatch, keys: bool, kind: str
) -> None:
    t = _prepared(both, keys)
    before = sorted(t.read(HIVE), key=repr)
    writer, seen = open_acid(), list[list[Row]]()
    with _before_commit(writer, lambda _: seen.append(sorted(t.read(HIVE), key=repr)), monkeypatch):
        writer.sql(t.text(STATEMENTS[kind]))
    assert seen == [before]
    both.wrote(ACIDSQL)
    assert sorted(t.read(HIVE), key=repr) != before
    t.agree()


@pytest.mark.parametrize("keys", [False, True], ids=["plain", "partitioned"])
def test_an_aborted_statement_of_acidsqls_leaves_nothing_for_hive(
    both: Both, open_acid: OpenAcid, monkeypatch: pytest.MonkeyPatch, keys: bool
) -> None:
    t = _prepared(both, keys)
    writer = open_acid()

    def fail(_: int) -> None:
        raise Stopped

    for statement in STATEMENTS.values():
        with _before_commit(writer, fail, monkeypatch), pytest.raises(Stopped):
            writer.sql(t.text(statement))
        t.holds((1, "a", 1), (2, "b", 1), (3, "c", 2))
    t.hive("UPDATE {t} SET v = 'h' WHERE id = 1").acid("UPDATE {t} SET v = 'a' WHERE id = 2")
    t.holds((1, "h", 1), (2, "a", 1), (3, "c", 2))


def test_a_transaction_that_hive_aborts_takes_its_statement_with_it(
    both: Both, open_acid: OpenAcid, monkeypatch: pytest.MonkeyPatch
) -> None:
    t = _prepared(both, keys=False)
    writer = open_acid()

    def abort(txn_id: int) -> None:
        both.run(HIVE, f"ABORT TRANSACTIONS {txn_id}")

    with _before_commit(writer, abort, monkeypatch), pytest.raises(AcidError, match="abort"):
        writer.sql(t.text(STATEMENTS["update"]))
    t.holds((1, "a", 1), (2, "b", 1), (3, "c", 2))


@pytest.mark.parametrize("kind", ["update", "overwrite"])
def test_a_process_killed_between_writing_and_committing(both: Both, hive_service: Service, kind: str) -> None:
    t = _prepared(both, keys=True)
    before = {x.id for x in both.acid.metastore.show_txns()}
    kill_before_commit(
        hive_service.metastore_uri, t.text(STATEMENTS[kind].replace("{t} SELECT", "{t} PARTITION (k) SELECT"))
    )
    left = [p for p in t.directory.rglob("bucket_*") if "0000002" in p.parent.name]
    assert left, "it had published its files"
    if kind == "update":  # INSERT OVERWRITE lets nobody read before it is aborted
        t.holds((1, "a", 1), (2, "b", 1), (3, "c", 2))
    found = both.acid.metastore.show_txns()
    [orphan] = [x for x in found if x.id not in before and (x.state, x.type) == (TxnState.OPEN, TxnType.DEFAULT)]
    both.run(HIVE, f"ABORT TRANSACTIONS {orphan.id}")
    t.holds((1, "a", 1), (2, "b", 1), (3, "c", 2))
    t.hive("UPDATE {t} SET v = 'h' WHERE id = 1").acid("UPDATE {t} SET v = 'a' WHERE id = 2")
    t.holds((1, "h", 1), (2, "a", 1), (3, "c", 2))
    assert all(p.exists() for p in left), "they are invisible, not gone"


def test_a_failing_statement_of_hives_is_invisible_to_acidsql(both: Both) -> None:
    t = _prepared(both, keys=False)
    for statement in (
        "INSERT INTO {t} SELECT id + 10, v, CAST(assert_true(id < 3) AS int) FROM {t}",
        "INSERT OVERWRITE TABLE {t} SELECT id + 10, v, CAST(assert_true(id < 3) AS int) FROM {t}",
    ):
        with pytest.raises(HiveError):
            both.run(HIVE, t.text(statement))
        t.holds((1, "a", 1), (2, "b", 1), (3, "c", 2))
    t.acid("UPDATE {t} SET v = 'u'").hive("DELETE FROM {t} WHERE id = 2").holds((1, "u", 1), (3, "u", 2))


def test_transactions_are_listed_alike(both: Both) -> None:
    store = both.acid.metastore
    opened = store.open_txns(2, user="somebody", host="somewhere", agent_info="a test")
    try:
        store.abort_txns(opened[:1])
        states = {r[0]: r[1] for r in both.ask(HIVE, "SHOW TRANSACTIONS")}
        assert states[str(opened[1])] == "OPEN"
        [listed] = [r for r in both.ask(HIVE, "SHOW TRANSACTIONS") if r[0] == str(opened[1])]
        [ours] = [r for r in both.ask(ACIDSQL, "SHOW TRANSACTIONS") if r[0] == str(opened[1])]
        assert listed == ours
    finally:
        store.abort_txns(opened)


def test_rows_of_a_transaction_that_stays_open_for_long_come_at_its_commit(both: Both) -> None:
    """Write ids above the open one are visible meanwhile, to both sides."""
    t = _prepared(both, keys=False)
    txn, open_id = t.begun_write()
    t.hive("INSERT INTO {t} VALUES (4, 'd', 1)").acid("INSERT INTO {t} VALUES (5, 'e', 1)")
    assert {r[0] for r in t.read(ACIDSQL)} == {1, open_id + 1, open_id + 2}
    t.hive("UPDATE {t} SET v = 'h' WHERE id = 5").acid("DELETE FROM {t} WHERE id = 4")
    both.acid.metastore.commit_txn(txn)
    t.holds((1, "a", 1), (2, "b", 1), (3, "c", 2), (5, "h", 1))


def test_a_dataframe_keeps_its_snapshot_while_hive_writes(both: Both) -> None:
    t = _prepared(both, keys=True)
    frame = both.acid.table(t.name)
    before = sorted(map(tuple, frame.collect()))
    t.hive("UPDATE {t} SET v = 'h'", "DELETE FROM {t} WHERE k = 1", "INSERT INTO {t} VALUES (8, 'h', 8)")
    assert sorted(map(tuple, frame.collect())) == before
    both.run(HIVE, t.text("INSERT OVERWRITE TABLE {t} PARTITION (k=2) SELECT 99, 'h'"))
    assert sorted(map(tuple, frame.collect())) == before
    t.agree()
