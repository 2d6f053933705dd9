"""Tables whose files were made elsewhere (``testReplAllocWriteId``, ``testReplOpenTxn``; Hive's ``seedWriteId``)."""

from __future__ import annotations

import pytest

from acidsql.errors import TransactionError
from acidsql.metastore.protocol import Metastore
from acidsql.valid_ids import ValidWriteIdList
from tests.metastore.situations import Clock, begin, read_write_ids, seen, sweep, table, tidy, write
from tests.metastore.stores import StoreKind

pytestmark = pytest.mark.needs("seeds write ids")


@pytest.fixture
def t(store: Metastore) -> Metastore:
    store.create_table(table())
    return store


def test_write_ids_up_to_the_high_watermark_count_as_committed(t: Metastore) -> None:
    t.seed_write_id(ValidWriteIdList("default.t", 7))
    assert read_write_ids(t) == ValidWriteIdList("default.t", 7)
    assert t.allocate_table_write_id(begin(t), "default", "t") == 8


def test_aborted_and_open_ids_count_as_aborted(t: Metastore) -> None:
    t.seed_write_id(ValidWriteIdList("default.t", 7, (5,), (2, 3)))
    assert read_write_ids(t) == ValidWriteIdList("default.t", 7, (), (2, 3, 5))


@pytest.mark.parametrize("aborted", [(7,), (6, 7), (1,), (3, 7), tuple(range(1, 8))], ids=str)
def test_what_is_not_aborted_is_seen(t: Metastore, aborted: tuple[int, ...]) -> None:
    t.seed_write_id(ValidWriteIdList("default.t", 7, (), aborted))
    valid = read_write_ids(t)
    assert seen(valid, up_to=7) == [i for i in range(1, 8) if i not in aborted]
    assert all(valid.is_aborted(i) or i > valid.high_watermark for i in aborted)


def test_the_first_write_after_a_seed_is_seen_beside_it(t: Metastore) -> None:
    t.seed_write_id(ValidWriteIdList("default.t", 3, (), (3,)))
    writing = write(t)
    assert seen(read_write_ids(t)) == [1, 2]
    t.commit_txn(writing)
    assert seen(read_write_ids(t)) == [1, 2, 4]


def test_seeded_aborted_ids_outlive_house_keeping(t: Metastore, clock: Clock) -> None:
    t.seed_write_id(ValidWriteIdList("default.t", 3, (), (2,)))
    tidy(t, clock)
    t.time_out_txns()
    t.commit_txn(write(t))
    assert seen(read_write_ids(t)) == [1, 3, 4]


@pytest.mark.needs("seeds are for all")
def test_a_snapshot_from_before_the_seed_sees_its_files_too(t: Metastore) -> None:
    mine = begin(t)
    t.seed_write_id(ValidWriteIdList("default.t", 3))
    assert seen(read_write_ids(t, txn_id=mine)) == [1, 2, 3]


def test_a_snapshot_from_before_the_seed_does_not_see_its_aborted_ids(t: Metastore) -> None:
    mine = begin(t)
    t.seed_write_id(ValidWriteIdList("default.t", 3, (), (3,)))
    assert not read_write_ids(t, txn_id=mine).is_valid(3)


def test_a_table_with_write_ids_is_not_seeded(t: Metastore) -> None:
    t.commit_txn(write(t))
    with pytest.raises(TransactionError, match=r"default\.t"):
        t.seed_write_id(ValidWriteIdList("default.t", 7))
    assert seen(read_write_ids(t)) == [1]


def test_a_table_is_seeded_once(t: Metastore) -> None:
    t.seed_write_id(ValidWriteIdList("default.t", 7))
    with pytest.raises(TransactionError):
        t.seed_write_id(ValidWriteIdList("default.t", 9))
    assert read_write_ids(t).high_watermark == 7


def test_a_seed_of_one_table_leaves_the_others_alone(t: Metastore) -> None:
    t.create_table(table("other"))
    t.seed_write_id(ValidWriteIdList("default.t", 7, (), (2,)))
    assert read_write_ids(t, "default.other") == ValidWriteIdList("default.other", 0)


def test_dropping_a_seeded_table_forgets_the_seed_but_for_its_end(t: Metastore, kind: StoreKind) -> None:
    t.seed_write_id(ValidWriteIdList("default.t", 7, (), (2,)))
    t.drop_table("default", "t")
    sweep(t)
    t.create_table(table())
    before = 7 if "counts on" in kind.capabilities else 0
    assert read_write_ids(t) == ValidWriteIdList("default.t", before)
    assert t.allocate_table_write_id(begin(t), "default", "t") == before + 1


@pytest.mark.needs("keeps house when asked")
def test_dropping_a_seeded_table_forgets_its_aborted_transactions(t: Metastore) -> None:
    t.seed_write_id(ValidWriteIdList("default.t", 7, (), (2,)))
    t.drop_table("default", "t")
    assert t.show_txns() == []


@pytest.mark.needs("seeds transaction ids")
def test_transaction_ids_start_above_the_seed(store: Metastore) -> None:
    store.seed_txn_id(100)
    assert begin(store) == 101


@pytest.mark.needs("seeds transaction ids")
def test_what_is_below_the_seed_counts_as_committed(store: Metastore) -> None:
    opened = begin(store)
    store.seed_txn_id(100)
    snapshot = store.get_valid_txns()
    assert (snapshot.high_watermark, snapshot.open_ids, snapshot.aborted_ids) == (100, (opened,), ())
    assert snapshot.is_valid(57)


@pytest.mark.needs("seeds transaction ids")
def test_a_seed_never_takes_transaction_ids_back(store: Metastore) -> None:
    store.seed_txn_id(100)
    store.seed_txn_id(50)
    assert begin(store) == 101
    store.seed_txn_id(101)
    assert begin(store) == 102


def test_a_seed_below_the_latest_transaction_changes_nothing(store: Metastore) -> None:
    latest = begin(store)
    store.seed_txn_id(latest)
    assert begin(store) == latest + 1
