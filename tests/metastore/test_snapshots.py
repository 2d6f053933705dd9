"""Which transactions a snapshot sees (``TestTxnHandler.testValidTxns…``, ``TestDbTxnManagerIsolationProperties``)."""

from __future__ import annotations

import pytest

from acidsql.metastore.protocol import Metastore
from acidsql.valid_ids import ValidTxnList
from tests.metastore.situations import Clock, begin, table, tidy, write


@pytest.mark.needs("counts from one")
def test_a_new_store_has_an_empty_snapshot(store: Metastore) -> None:
    assert store.get_valid_txns() == ValidTxnList(0)


def test_a_snapshot_without_a_transaction_goes_to_the_latest(store: Metastore) -> None:
    first, second, third = (begin(store) for _ in range(3))
    store.commit_txn(second)
    assert store.get_valid_txns() == ValidTxnList(third, (first, third))


def test_a_snapshot_ends_at_its_own_transaction(store: Metastore) -> None:
    mine, later = begin(store), begin(store)
    store.commit_txn(later)
    snapshot = store.get_valid_txns(mine)
    assert snapshot.high_watermark == mine
    assert not snapshot.is_valid(later)


def test_a_transaction_sees_itself(store: Metastore) -> None:
    mine = begin(store)
    snapshot = store.get_valid_txns(mine)
    assert snapshot == ValidTxnList(mine)
    assert snapshot.is_valid(mine)


def test_open_transactions_are_not_seen(store: Metastore) -> None:
    opened, mine = begin(store), begin(store)
    snapshot = store.get_valid_txns(mine)
    assert snapshot == ValidTxnList(mine, (opened,))
    store.commit_txn(opened)
    assert store.get_valid_txns(mine).is_valid(opened)


def test_a_snapshot_is_a_value_that_later_commits_do_not_change(store: Metastore) -> None:
    opened, mine = begin(store), begin(store)
    snapshot = store.get_valid_txns(mine)
    store.commit_txn(opened)
    assert not snapshot.is_valid(opened)


def test_open_and_aborted_transactions_are_told_apart(store: Metastore) -> None:
    store.create_table(table())
    aborted, opened, committed, mine = write(store), write(store), write(store), begin(store)
    store.abort_txns([aborted])
    store.commit_txn(committed)
    assert store.get_valid_txns(mine) == ValidTxnList(mine, (opened,), (aborted,))


def test_an_aborted_transaction_is_not_seen_in_any_snapshot(store: Metastore) -> None:
    store.create_table(table())
    before, aborted = begin(store), write(store)
    store.abort_txns([aborted])
    for current in (0, before, begin(store)):
        assert not store.get_valid_txns(current).is_valid(aborted)


def test_the_high_watermark_is_at_most_the_latest_transaction(store: Metastore) -> None:
    latest = begin(store)
    assert store.get_valid_txns(latest + 7).high_watermark == latest


def test_the_high_watermark_stays_when_the_latest_are_forgotten(store: Metastore, clock: Clock) -> None:
    begin(store)
    latest = begin(store)
    store.commit_txn(latest)
    tidy(store, clock)
    snapshot = store.get_valid_txns()
    assert snapshot.high_watermark == latest
    assert snapshot.is_valid(latest)
