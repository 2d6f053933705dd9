"""TRUNCATE beside INSERT: by Hive's locks they run at once, and the base would hide what was committed after it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acidsql.commands.transaction import write_transaction
from acidsql.errors import Deadlock, LockTimeout, TransactionAborted
from acidsql.metastore.model import LockComponent, LockRequest, LockState, LockType, Operation
from acidsql.metastore.waiting import wait_for_earlier_writers
from tests.unit.commands.session import Session


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Session]:
    made = Session(tmp_path / "warehouse")
    made.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    made.insert("t", 1)
    yield made
    made.close()


def test_waits_for_an_insert_that_began_before(shop: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    waits, ended = threading.Event(), list[str]()

    def waiting(*args: Any) -> None:
        waits.set()
        wait_for_earlier_writers(*args)
        [seen] = shop.metastore.get_valid_write_ids(["default.t"], shop.metastore.get_valid_txns())
        ended.append(f"waited until {2 in seen.open_ids or 'the insert had ended'}")

    monkeypatch.setattr(write_transaction, "wait_for_earlier_writers", waiting)
    thread = threading.Thread(target=shop.sql, args=["TRUNCATE TABLE t"])

    def begin() -> None:
        thread.start()
        assert waits.wait(60)
        assert ended == []

    shop.insert("t", 2, before_publish=begin)
    thread.join(60)
    assert ended == ["waited until the insert had ended"]
    assert (shop.warehouse / "t" / "base_0000003").is_dir()
    assert shop.nothing_is_open()


def test_does_not_wait_for_an_insert_that_begins_later(shop: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows are above the base."""

    def overtaken(*args: Any) -> None:
        [txn] = shop.metastore.open_txns(user="olga", host="far")
        assert shop.metastore.allocate_table_write_id(txn, "default", "t") == 3
        wait_for_earlier_writers(*args)

    monkeypatch.setattr(write_transaction, "wait_for_earlier_writers", overtaken)
    shop.sql("TRUNCATE TABLE t")
    assert (shop.warehouse / "t" / "base_0000002").is_dir()


def test_does_not_wait_longer_than_for_locks(shop: Session) -> None:
    [txn] = shop.metastore.open_txns(user="olga", host="far")
    shop.metastore.allocate_table_write_id(txn, "default", "t")
    shop.sql("SET acidsql.lock.timeout = 200ms")
    with pytest.raises(LockTimeout, match=r"have not ended in time \(write ids 2\)"):
        shop.sql("TRUNCATE TABLE t")
    assert not list((shop.warehouse / "t").glob("base*"))
    shop.metastore.abort_txns([txn])
    shop.sql("TRUNCATE TABLE t")
    assert shop.nothing_is_open()


def ask_for_t(shop: Session, txn_id: int) -> LockState:
    """Ask for the lock that TRUNCATE takes."""
    part = LockComponent(LockType.EXCL_WRITE, "default", "t", None, Operation.UPDATE)
    return shop.metastore.lock(LockRequest((part,), txn_id, "olga", "far")).state


def test_tells_of_the_deadlock_that_ended_its_last_attempt(shop: Session) -> None:
    """Not of an outdated snapshot: there was none."""
    store = shop.metastore
    [txn] = store.open_txns(user="olga", host="far")
    store.allocate_table_write_id(txn, "default", "t")
    shop.sql("SET hive.txn.retrysnapshot.max.count = 0")

    def ask() -> None:
        while not store.show_locks():
            time.sleep(0.01)
        assert ask_for_t(shop, txn) is LockState.WAITING

    thread = threading.Thread(target=ask)
    thread.start()
    with pytest.raises(Deadlock, match=rf"waits for earlier writers of default.t, and {txn} for it"):
        shop.sql("TRUNCATE TABLE t")
    thread.join(60)
    store.abort_txns([txn])
    assert shop.nothing_is_open()


def test_that_others_end_while_it_waits_for_its_lock_says_so(shop: Session) -> None:
    """Its lock is gone with its transaction."""
    store = shop.metastore
    [txn] = store.open_txns(user="olga", host="far")
    assert ask_for_t(shop, txn) is LockState.ACQUIRED

    def end() -> None:
        while not (found := [k.txn_id for k in store.show_locks() if k.state is LockState.WAITING]):
            time.sleep(0.01)
        store.abort_txns(found, reason="ABORT TRANSACTIONS by olga@far")

    thread = threading.Thread(target=end)
    thread.start()
    with pytest.raises(TransactionAborted, match="ABORT TRANSACTIONS by olga@far"):
        shop.sql("TRUNCATE TABLE t")
    thread.join(60)
    store.abort_txns([txn])
    assert shop.nothing_is_open()
