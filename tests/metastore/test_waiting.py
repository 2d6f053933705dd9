"""A statement that no longer waits for its locks has nobody wait behind it, also in a transaction that goes on."""

from __future__ import annotations

import os
import signal

import pytest

from acidsql.errors import LockTimeout, MetastoreError
from acidsql.metastore.model import LockRequest, LockResponse, LockState
from acidsql.metastore.protocol import Metastore
from acidsql.metastore.waiting import wait_for_lock
from acidsql.settings import Settings
from tests.metastore.situations import EXCL_WRITE, READ, ask, begin, component, take


def wait(store: Metastore, txn_id: int) -> LockResponse:
    settings = Settings({"acidsql.lock.timeout": "200ms"})
    return wait_for_lock(store, settings, LockRequest((component(EXCL_WRITE, "default.a"),), txn_id, "ann", "desk"))


@pytest.fixture
def waiter(store: Metastore) -> int:
    """A transaction that holds a lock; another one holds ``default.a``."""
    holder, waiter = begin(store), begin(store)
    take(store, holder, EXCL_WRITE, "default.a")
    take(store, waiter, READ, "default.b")
    return waiter


def nobody_waits(store: Metastore, waiter: int) -> bool:
    return [(k.txn_id, k.state) for k in store.show_locks() if k.txn_id == waiter] == [(waiter, LockState.ACQUIRED)]


def test_that_has_waited_too_long(store: Metastore, waiter: int) -> None:
    with pytest.raises(LockTimeout):
        wait(store, waiter)
    assert nobody_waits(store, waiter)


def test_that_was_interrupted_while_it_asked(store: Metastore, waiter: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes when the request is on record, and nobody has its id yet."""
    lock = store.lock

    def interrupted(request: LockRequest) -> LockResponse:
        response = lock(request)
        os.kill(os.getpid(), signal.SIGINT)
        return response

    monkeypatch.setattr(store, "lock", interrupted)
    with pytest.raises(KeyboardInterrupt):
        wait(store, waiter)
    assert nobody_waits(store, waiter)


def test_whose_answer_was_lost(store: Metastore, waiter: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = store.lock

    def lost(request: LockRequest) -> LockResponse:
        raise MetastoreError(f"The connection was lost before the answer: {lock(request)}")

    waits = ask(store, begin(store), EXCL_WRITE, "default.a")
    monkeypatch.setattr(store, "lock", lost)
    with pytest.raises(MetastoreError, match="was lost"):
        wait(store, waiter)
    assert nobody_waits(store, waiter)
    assert store.check_lock(waits.lock_id).state is LockState.WAITING, "that of another transaction"
