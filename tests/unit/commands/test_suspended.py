"""A writer that was suspended between its heartbeat and its rename, longer than ``hive.txn.timeout``, and then goes on.

Its transaction was aborted, cleaned and forgotten meanwhile: whatever it published now would count as committed, and be
seen for good if the process died before its next heartbeat.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from acidsql.commands.transaction import outcome
from acidsql.commands.transaction.run import open_transaction
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.compactor.cleaner import Cleaner
from acidsql.compactor.compaction import WorkerContext
from acidsql.compactor.worker import Worker
from acidsql.errors import NoSuchTransaction, TransactionAborted
from acidsql.fs import LocalFileSystem
from acidsql.metastore.embedded import EmbeddedMetastore, txns
from acidsql.metastore.model import (
    CompactionRequest,
    CompactionType,
    LockComponent,
    LockType,
    Operation,
    Table,
    TxnState,
)
from acidsql.plan.target import Change, Target
from acidsql.plan.write import Writer
from tests.unit.commands.session import Session


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Session]:
    made = Session(tmp_path / "warehouse")
    made.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (k int)")
    for part in (1, 2):
        made.insert("t", 1, part=part)
    yield made
    made.close()


def services(shop: Session) -> WorkerContext:
    return WorkerContext(shop.metastore, shop.heartbeats, shop.env.settings, "far", "olga")


def ends_it(shop: Session) -> None:
    """What others do with a transaction whose owner is silent: time-out, cleaner, and nothing is remembered of it."""
    shop.metastore.abort_txns([t.id for t in shop.metastore.show_txns() if t.state is TxnState.OPEN])
    Cleaner(services(shop)).run()
    [later] = shop.metastore.open_txns(user="olga", host="far")
    shop.metastore.commit_txn(later)
    assert shop.metastore.show_txns() == []
    assert shop.metastore.aborted_components() == []


def vacuums_it(shop: Session) -> None:
    shop.metastore.abort_txns([t.id for t in shop.metastore.show_txns() if t.state is TxnState.OPEN])
    shop.sql("VACUUM t RETAIN 0 HOURS")
    assert shop.metastore.aborted_components() == []


def compacts_it(shop: Session) -> None:
    """The cleaning after a compaction forgets what was aborted below it, too."""
    shop.metastore.abort_txns([t.id for t in shop.metastore.show_txns() if t.state is TxnState.OPEN])
    for part in (1, 2):
        shop.insert("t", 5, part=part)
        request = CompactionRequest("default", "t", f"k={part}", CompactionType.MAJOR, "olga", "far")
        assert shop.metastore.compact(request).accepted
        assert Worker(services(shop), "far-1").run_one() is not None
    ends_it(shop)


def insert_twice(shop: Session, txn: WriteTransaction, table: Table) -> None:
    """Rows of both partitions."""
    target, staging = Target(table, txn.allocate_write_id(table), "zstd"), txn.stage(table)
    rows = pa.table({"c0": pa.array([666, 667], pa.int32()), "k0": pa.array(["1", "2"])})
    Writer(shop.env.sessions.own, target, staging, shop.env.driver_limit).write_fetched(rows, Change.INSERT)
    txn.publish(table, staging, dynamic=True)


@pytest.mark.parametrize("renamed", [0, 1])
@pytest.mark.parametrize("meanwhile", [ends_it, vacuums_it, compacts_it])
def test_publishes_nothing_any_more(
    shop: Session, monkeypatch: pytest.MonkeyPatch, renamed: int, meanwhile: Callable[[Session], None]
) -> None:
    rename, count, late = LocalFileSystem.rename, 0, list[set[Path]]()

    def suspended(fs: LocalFileSystem, source: str, target: str) -> Any:
        nonlocal count
        if "delta_0000003" not in target:
            return rename(fs, source, target)
        count += 1
        if count == renamed + 1:
            meanwhile(shop)
        try:
            return rename(fs, source, target)
        finally:
            if count > renamed:  # it may die here
                late.append(set(shop.warehouse.glob("t/k=*/delta_*3_*3_*")))

    staged_when_forgotten = list[object]()
    for forgets in ("forget_aborted", "mark_cleaned"):

        def forget(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            staged_when_forgotten.extend(shop.warehouse.glob("t/_tmp_*"))
            return real(shop.metastore, *args, **kwargs)

        monkeypatch.setattr(shop.metastore, forgets, partial(forget, getattr(EmbeddedMetastore, forgets)))
    table = shop.metastore.get_table("default", "t")
    lock = LockComponent(LockType.SHARED_READ, "default", "t", None, Operation.INSERT)
    monkeypatch.setattr(LocalFileSystem, "rename", suspended)
    with pytest.raises(TransactionAborted), open_transaction(shop.env) as txn:  # noqa: PT012
        txn.lock([lock])
        insert_twice(shop, txn, table)
    assert late == [set()]
    assert staged_when_forgotten == []
    assert not list(shop.warehouse.glob("t/_tmp_*"))
    assert shop.nothing_is_open()


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_a_commit_that_was_refused_is_known_to_be(
    shop: Session, monkeypatch: pytest.MonkeyPatch, is_interrupted: bool
) -> None:
    """It counted as one whose outcome is unknown; with Ctrl-C, which took the place of the answer, as made."""
    real = shop.metastore.commit_txn

    def late(*args: Any, **options: Any) -> None:
        monkeypatch.undo()
        ends_it(shop)
        with monkeypatch.context() as patch:
            patch.setattr(txns, "OPEN_TXN_WINDOW_MS", -1)
            shop.metastore.clean_empty_aborted_txns()
        if is_interrupted:
            signal.raise_signal(signal.SIGINT)
        real(*args, **options)

    monkeypatch.setattr(shop.metastore, "commit_txn", late)
    table, before = shop.metastore.get_table("default", "t"), outcome.commits()
    error = KeyboardInterrupt if is_interrupted else NoSuchTransaction
    with pytest.raises(error), open_transaction(shop.env) as txn:  # noqa: PT012
        txn.lock([LockComponent(LockType.SHARED_READ, "default", "t", None, Operation.INSERT)])
        insert_twice(shop, txn, table)
    assert txn.is_aborted
    assert outcome.commits() == before
    assert shop.nothing_is_open()
