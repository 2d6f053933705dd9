"""Write ids: who gets which, and which a snapshot sees (``TestTxnHandler.…WriteId``, ``testValidWriteIdListSnapshot``).

What a list says is compared id by id: where no write id is seen, Hive keeps only the smallest that is not, while others
may keep all of them.
"""

from __future__ import annotations

import pytest

from acidsql.errors import NoSuchTransaction, TransactionError
from acidsql.metastore.model import Operation, TxnType
from acidsql.metastore.protocol import Metastore
from acidsql.valid_ids import ValidWriteIdList
from tests.metastore.situations import (
    NEVER_GIVEN,
    READ,
    Clock,
    ask_all,
    begin,
    component,
    read_write_ids,
    seen,
    table,
    take,
    tidy,
    write,
)


@pytest.fixture
def tables(store: Metastore) -> Metastore:
    store.create_table(table("t"))
    store.create_table(table("other"))
    return store


def allocate(store: Metastore, txn_id: int, name: str = "t") -> int:
    return store.allocate_table_write_id(txn_id, "default", name)


class TestAllocation:
    def test_each_table_counts_from_one(self, tables: Metastore) -> None:
        assert [allocate(tables, begin(tables), name) for name in ("t", "t", "other", "t")] == [1, 2, 1, 3]

    def test_a_transaction_has_one_write_id_in_a_table(self, tables: Metastore) -> None:
        first, second = begin(tables), begin(tables)
        assert allocate(tables, second) == 1
        assert allocate(tables, first) == 2
        assert (allocate(tables, second), allocate(tables, first)) == (1, 2)
        assert allocate(tables, begin(tables)) == 3

    def test_an_aborted_write_id_is_not_handed_out_again(self, tables: Metastore) -> None:
        aborted = write(tables)
        tables.abort_txns([aborted])
        assert allocate(tables, begin(tables)) == 2

    def test_a_forgotten_write_id_is_not_handed_out_again(self, tables: Metastore, clock: Clock) -> None:
        tables.commit_txn(write(tables))
        tidy(tables, clock)
        assert allocate(tables, begin(tables)) == 2

    @pytest.mark.needs("read-only transactions")
    def test_a_read_only_transaction_gets_none(self, tables: Metastore) -> None:
        reader = begin(tables, TxnType.READ_ONLY)
        with pytest.raises(TransactionError, match="read-only"):
            allocate(tables, reader)
        assert allocate(tables, begin(tables)) == 1

    def test_a_transaction_that_is_not_open_gets_none(self, tables: Metastore) -> None:
        committed = begin(tables)
        tables.commit_txn(committed)
        for txn_id in (committed, NEVER_GIVEN):
            with pytest.raises(NoSuchTransaction):
                allocate(tables, txn_id)
        assert allocate(tables, begin(tables)) == 1

    @pytest.mark.needs("reallocate")
    def test_reallocation_gives_back_the_old_and_takes_a_new_one(self, tables: Metastore) -> None:
        mine, other = begin(tables), begin(tables)
        assert allocate(tables, mine) == 1
        assert allocate(tables, other) == 2
        assert tables.allocate_table_write_id(mine, "default", "t", reallocate=True) == 3
        assert allocate(tables, mine) == 3
        tables.commit_txn(mine)
        valid = read_write_ids(tables)
        assert valid.is_valid(3)
        assert not valid.is_valid(2)

    @pytest.mark.needs("reallocate")
    def test_reallocation_without_a_first_allocation_is_an_allocation(self, tables: Metastore) -> None:
        assert tables.allocate_table_write_id(begin(tables), "default", "t", reallocate=True) == 1


class TestWhatASnapshotSees:
    def test_a_table_without_write_ids(self, tables: Metastore) -> None:
        assert read_write_ids(tables) == ValidWriteIdList("default.t", 0)

    def test_lists_come_in_the_order_in_which_they_are_asked_for(self, tables: Metastore) -> None:
        tables.commit_txn(write(tables, "default.other"))
        lists = tables.get_valid_write_ids(["default.t", "default.other", "default.t"], tables.get_valid_txns())
        assert [(one.table, one.high_watermark) for one in lists] == [
            ("default.t", 0),
            ("default.other", 1),
            ("default.t", 0),
        ]

    def test_many_tables_are_asked_for_at_once(self, tables: Metastore) -> None:
        names = [f"default.t{i}" for i in range(30)]
        for name in names[::3]:
            tables.commit_txn(write(tables, name))
        lists = tables.get_valid_write_ids(names, tables.get_valid_txns())
        assert [one.table for one in lists] == names
        assert [one.high_watermark for one in lists] == [1, 0, 0] * 10

    def test_committed_open_and_aborted_write_ids_are_told_apart(self, tables: Metastore) -> None:
        committed, opened, aborted, last = (write(tables) for _ in range(4))
        for txn_id in (committed, last):
            tables.commit_txn(txn_id)
        tables.abort_txns([aborted])
        assert read_write_ids(tables) == ValidWriteIdList("default.t", 4, (2,), (3,))
        assert opened in tables.get_valid_txns().open_ids

    def test_a_transaction_sees_its_own_write_id(self, tables: Metastore) -> None:
        tables.commit_txn(write(tables))
        mine = write(tables)
        assert seen(read_write_ids(tables, txn_id=mine)) == [1, 2]
        assert seen(read_write_ids(tables)) == [1]

    def test_what_later_transactions_commit_is_not_seen(self, tables: Metastore) -> None:
        mine = begin(tables)
        tables.commit_txn(write(tables))
        assert seen(read_write_ids(tables, txn_id=mine)) == []
        assert seen(read_write_ids(tables)) == [1]

    def test_write_ids_out_of_the_order_of_their_transactions(self, tables: Metastore) -> None:
        early, mine, late = begin(tables), begin(tables), begin(tables)
        assert [allocate(tables, txn_id) for txn_id in (late, early)] == [1, 2]
        tables.commit_txn(late)
        tables.commit_txn(early)
        assert seen(read_write_ids(tables, txn_id=mine)) == [2]
        assert seen(read_write_ids(tables)) == [1, 2]

    def test_open_write_ids_only(self, tables: Metastore) -> None:
        write(tables)
        write(tables)
        assert seen(read_write_ids(tables)) == []

    def test_aborted_write_ids_only(self, tables: Metastore) -> None:
        txns = [write(tables) for _ in range(2)]
        tables.abort_txns(txns)
        valid = read_write_ids(tables)
        assert seen(valid) == []
        assert valid.is_aborted(1)

    def test_only_later_transactions_have_write_ids(self, tables: Metastore) -> None:
        mine = begin(tables)
        write(tables)
        tables.commit_txn(write(tables))
        assert seen(read_write_ids(tables, txn_id=mine)) == []

    def test_an_old_snapshot_answers_for_its_own_time(self, tables: Metastore) -> None:
        opened = write(tables)
        snapshot = tables.get_valid_txns()
        tables.commit_txn(opened)
        tables.commit_txn(write(tables))
        [then] = tables.get_valid_write_ids(["default.t"], snapshot)
        assert seen(then) == []
        assert seen(read_write_ids(tables)) == [1, 2]

    def test_a_long_list_of_open_and_aborted_ids(self, tables: Metastore) -> None:
        txns = [txn for _ in range(2) for txn in tables.open_txns(600, user="ann", host="desk")]
        for txn_id in (txns[0], txns[-1]):
            write(tables, txn_id=txn_id)
        tables.commit_txn(txns[-1])
        assert read_write_ids(tables) == ValidWriteIdList("default.t", 2, (1,))


class TestAbortedWriteIds:
    """Rule 5: what an aborted transaction may have left in files is not seen until they are known to be gone."""

    def test_are_not_seen_even_after_house_keeping(self, tables: Metastore, clock: Clock) -> None:
        aborted = write(tables)
        tables.abort_txns([aborted])
        tables.commit_txn(write(tables))
        tidy(tables, clock)
        assert read_write_ids(tables) == ValidWriteIdList("default.t", 2, (), (1,))

    @pytest.mark.needs("remembers write ids without locks")
    def test_of_a_transaction_without_a_lock_are_not_seen(self, tables: Metastore, clock: Clock) -> None:
        aborted = begin(tables)
        allocate(tables, aborted)
        tables.abort_txns([aborted])
        tidy(tables, clock)
        tables.commit_txn(write(tables))
        assert seen(read_write_ids(tables)) == [2]

    def test_of_a_dynamic_partition_write_that_died_before_naming_its_partitions_are_not_seen(
        self, tables: Metastore, clock: Clock
    ) -> None:
        aborted = begin(tables)
        ask_all(tables, aborted, component(READ, "default.t", Operation.INSERT, dynamic=True))
        assert allocate(tables, aborted) == 1
        tables.abort_txns([aborted])
        tidy(tables, clock)
        tables.commit_txn(write(tables))
        assert seen(read_write_ids(tables)) == [2]
        assert [t.id for t in tables.show_txns()] == [aborted]

    def test_of_a_dynamic_partition_write_to_no_partition_are_not_seen(self, tables: Metastore, clock: Clock) -> None:
        aborted = begin(tables)
        ask_all(tables, aborted, component(READ, "default.t", Operation.INSERT, dynamic=True))
        write_id = allocate(tables, aborted)
        tables.add_dynamic_partitions(aborted, write_id, "default", "t", [], Operation.INSERT)
        tables.abort_txns([aborted])
        tidy(tables, clock)
        assert seen(read_write_ids(tables)) == []

    def test_in_a_second_table_are_not_seen(self, tables: Metastore, clock: Clock) -> None:
        aborted = write(tables, "default.t")
        allocate(tables, aborted, "other")
        tables.abort_txns([aborted])
        tidy(tables, clock)
        tables.commit_txn(write(tables, "default.other"))
        assert seen(read_write_ids(tables, "default.other")) == [2]

    @pytest.mark.needs("forgets components")
    def test_count_as_committed_once_their_files_are_gone(self, tables: Metastore, clock: Clock) -> None:
        aborted = write(tables)
        tables.abort_txns([aborted])
        tables.forget_txn_components(aborted)
        begin(tables)
        tidy(tables, clock)
        valid = read_write_ids(tables)
        assert (valid.open_ids, valid.aborted_ids) == ((), ())

    @pytest.mark.needs("forgets components")
    def test_of_the_others_stay_hidden_when_one_is_forgotten(self, tables: Metastore, clock: Clock) -> None:
        first, second = write(tables), write(tables)
        tables.abort_txns([first, second])
        tables.forget_txn_components(first)
        tidy(tables, clock)
        assert not read_write_ids(tables).is_valid(2)


def test_a_lock_after_the_write_id_is_enough_to_hide_an_aborted_one(tables: Metastore) -> None:
    """The two calls come in any order: the component gets its write id from either."""
    aborted = begin(tables)
    allocate(tables, aborted)
    take(tables, aborted, READ, "default.t", Operation.INSERT)
    tables.abort_txns([aborted])
    assert read_write_ids(tables).is_aborted(1)
