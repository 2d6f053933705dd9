"""First committer wins, and what a writer that waited must know (``TestDbTxnManager2.testWriteSetTracking…``)."""

from __future__ import annotations

import random

import numpy as np
import pytest

from acidsql.errors import TransactionAborted, WriteConflict
from acidsql.metastore.model import LockState, Operation, TxnState
from acidsql.metastore.protocol import Metastore
from acidsql.row_set import RowSet
from tests.metastore.conftest import CountRows, OpenStore
from tests.metastore.situations import (
    EXCL_WRITE,
    READ,
    SHARED_WRITE,
    Clock,
    ask,
    ask_all,
    begin,
    component,
    lock_states,
    read_write_ids,
    seen,
    table,
    take,
    tidy,
    write,
)

INSERT, UPDATE, DELETE = Operation.INSERT, Operation.UPDATE, Operation.DELETE
T, P1, P2, OTHER = "default.t", "default.t/p=1", "default.t/p=2", "default.other"


@pytest.fixture
def both(optimistic: Metastore) -> Metastore:
    optimistic.create_table(table("t", partitioned=True))
    optimistic.create_table(table("other"))
    return optimistic


def overlapping(store: Metastore, first: tuple[str, Operation], second: tuple[str, Operation]) -> tuple[int, int]:
    """Two transactions, both with their locks and write ids; the first of them has committed."""
    one, two = begin(store), begin(store)
    write(store, *first, txn_id=one)
    write(store, *second, txn_id=two)
    store.commit_txn(one)
    return one, two


class TestTheSecondCommitterLoses:
    """Both under SHARED_WRITE, which lets them be at work at the same time."""

    pytestmark = pytest.mark.needs("shared writes go together")

    @pytest.mark.parametrize(
        ("first", "second"), [(UPDATE, UPDATE), (UPDATE, DELETE), (DELETE, UPDATE), (DELETE, DELETE)]
    )
    @pytest.mark.parametrize("place", [T, P1])
    def test_when_both_changed_the_same_object(
        self, both: Metastore, first: Operation, second: Operation, place: str
    ) -> None:
        _, loser = overlapping(both, (place, first), (place, second))
        with pytest.raises(WriteConflict):
            both.commit_txn(loser)
        assert seen(read_write_ids(both)) == [1]

    @pytest.mark.parametrize(("first", "second"), [(T, P1), (P1, T)])
    @pytest.mark.needs("table meets partition")
    def test_when_one_changed_the_table_and_one_a_partition(self, both: Metastore, first: str, second: str) -> None:
        _, loser = overlapping(both, (first, UPDATE), (second, UPDATE))
        with pytest.raises(WriteConflict):
            both.commit_txn(loser)

    def test_although_it_began_first(self, both: Metastore) -> None:
        early, late = begin(both), begin(both)
        write(both, T, UPDATE, txn_id=late)
        write(both, T, UPDATE, txn_id=early)
        both.commit_txn(late)
        with pytest.raises(WriteConflict):
            both.commit_txn(early)

    def test_although_the_first_one_ended_before_it_locked_anything(self, both: Metastore) -> None:
        loser = begin(both)
        both.commit_txn(write(both, T, UPDATE))
        write(both, T, UPDATE, txn_id=loser)
        with pytest.raises(WriteConflict):
            both.commit_txn(loser)

    def test_although_it_also_inserted(self, both: Metastore) -> None:
        one, loser = begin(both), begin(both)
        write(both, T, UPDATE, txn_id=one)
        write(both, OTHER, INSERT, txn_id=loser)
        write(both, T, DELETE, txn_id=loser)
        both.commit_txn(one)
        with pytest.raises(WriteConflict):
            both.commit_txn(loser)
        assert seen(read_write_ids(both, OTHER)) == []

    def test_with_a_dynamic_partition_write_too(self, both: Metastore) -> None:
        txns = [begin(both), begin(both)]
        for txn_id in txns:
            ask_all(both, txn_id, component(SHARED_WRITE, T, UPDATE, dynamic=True))
            write_id = both.allocate_table_write_id(txn_id, "default", "t")
            both.add_dynamic_partitions(txn_id, write_id, "default", "t", ["p=1"], UPDATE)
        both.commit_txn(txns[0])
        with pytest.raises(WriteConflict, match="default/t/p=1"):
            both.commit_txn(txns[1])

    def test_of_three_only_the_first_wins(self, both: Metastore) -> None:
        txns = [write(both, T, UPDATE) for _ in range(3)]
        both.commit_txn(txns[1])
        for loser in (txns[0], txns[2]):
            with pytest.raises(WriteConflict):
                both.commit_txn(loser)
        assert seen(read_write_ids(both)) == [2]


class TestBothCommit:
    @pytest.mark.parametrize("other", [INSERT, UPDATE, DELETE])
    @pytest.mark.parametrize("insert_first", [True, False])
    def test_when_one_of_them_only_inserted(self, both: Metastore, other: Operation, insert_first: bool) -> None:
        first, second = (INSERT, other) if insert_first else (other, INSERT)
        _, two = overlapping(both, (T, first), (T, second))
        both.commit_txn(two)
        assert seen(read_write_ids(both)) == [1, 2]

    @pytest.mark.parametrize(("first", "second"), [(P1, P2), (T, OTHER), (P1, OTHER)])
    def test_when_they_changed_different_objects(self, both: Metastore, first: str, second: str) -> None:
        _, two = overlapping(both, (first, UPDATE), (second, UPDATE))
        both.commit_txn(two)

    def test_when_the_second_began_after_the_first_had_committed(self, both: Metastore) -> None:
        for _ in range(3):
            both.commit_txn(write(both, T, UPDATE))
        assert seen(read_write_ids(both)) == [1, 2, 3]

    @pytest.mark.needs("shared writes go together")
    def test_when_the_first_one_was_aborted(self, both: Metastore) -> None:
        one, two = write(both, T, UPDATE), write(both, T, UPDATE)
        both.abort_txns([one])
        both.commit_txn(two)
        assert seen(read_write_ids(both)) == [2]

    def test_when_one_transaction_changed_the_same_object_twice(self, both: Metastore) -> None:
        txn_id = write(both, T, UPDATE)
        write(both, T, DELETE, txn_id=txn_id)
        both.commit_txn(txn_id)

    @pytest.mark.needs("shared writes go together")
    def test_when_dynamic_partition_writes_named_different_partitions(self, both: Metastore) -> None:
        txns = [begin(both), begin(both)]
        for txn_id, name in zip(txns, ("p=1", "p=2"), strict=True):
            take(both, txn_id, SHARED_WRITE, T, UPDATE)
            write_id = both.allocate_table_write_id(txn_id, "default", "t")
            both.add_dynamic_partitions(txn_id, write_id, "default", "t", [name], UPDATE)
        for txn_id in txns:
            both.commit_txn(txn_id)

    @pytest.mark.needs("tells conflicts", "exclusive writes")
    def test_with_exclusive_write_locks_when_the_second_has_waited(self, store: Metastore) -> None:
        """``hive.txn.xlock.write=true``: such a writer asks get_latest_txn_in_conflict, commit checks nothing."""
        store.create_table(table())
        one, two = begin(store), begin(store)
        write(store, T, UPDATE, txn_id=one, type=EXCL_WRITE)
        waiting = ask(store, two, EXCL_WRITE, T, UPDATE)
        store.commit_txn(one)
        assert store.check_lock(waiting.lock_id).state is LockState.ACQUIRED
        store.allocate_table_write_id(two, "default", "t")
        store.commit_txn(two)
        assert seen(read_write_ids(store)) == [1, 2]


class TestTheLoser:
    pytestmark = pytest.mark.needs("shared writes go together")

    def test_is_told_in_hives_words(self, both: Metastore) -> None:
        winner, loser = overlapping(both, (P1, UPDATE), (P1, DELETE))
        with pytest.raises(WriteConflict) as caught:
            both.commit_txn(loser)
        assert caught.value.message == (
            f"Aborting [txnid:{loser},{loser}] due to a write conflict on default/t/p=1"
            f" committed by [txnid:{winner},{loser}] d/u"
        )

    def test_is_told_the_latest_transaction_of_each_commit(self, both: Metastore) -> None:
        winner, loser = write(both, OTHER, UPDATE), write(both, OTHER, UPDATE)
        at_the_first = begin(both)
        both.commit_txn(winner)
        at_the_second = begin(both)
        with pytest.raises(WriteConflict) as caught:
            both.commit_txn(loser)
        assert caught.value.message == (
            f"Aborting [txnid:{loser},{at_the_second}] due to a write conflict on default/other"
            f" committed by [txnid:{winner},{at_the_first}] u/u"
        )

    @pytest.mark.needs("keeps reasons")
    def test_is_aborted_with_that_reason(self, both: Metastore) -> None:
        _, loser = overlapping(both, (T, UPDATE), (T, UPDATE))
        with pytest.raises(WriteConflict):
            both.commit_txn(loser)
        [shown] = both.show_txns()
        assert "write conflict on default/t" in (shown.abort_reason or "")
        with pytest.raises(TransactionAborted, match="write conflict"):
            both.commit_txn(loser)

    def test_is_aborted_and_has_no_locks(self, both: Metastore) -> None:
        _, loser = overlapping(both, (T, UPDATE), (T, UPDATE))
        with pytest.raises(WriteConflict):
            both.commit_txn(loser)
        [shown] = both.show_txns()
        assert (shown.id, shown.state) == (loser, TxnState.ABORTED)
        assert lock_states(both) == []
        assert read_write_ids(both).is_aborted(2)

    def test_cannot_be_committed_by_trying_again(self, both: Metastore) -> None:
        _, loser = overlapping(both, (T, UPDATE), (T, UPDATE))
        with pytest.raises(WriteConflict):
            both.commit_txn(loser)
        with pytest.raises(TransactionAborted, match=str(loser)):
            both.commit_txn(loser)

    def test_is_in_nobodys_way(self, both: Metastore) -> None:
        third = begin(both)
        _, loser = overlapping(both, (T, UPDATE), (T, UPDATE))
        with pytest.raises(WriteConflict):
            both.commit_txn(loser)
        write(both, OTHER, UPDATE, txn_id=third)
        both.commit_txn(third)
        both.commit_txn(write(both, T, UPDATE))


class TestTheLatestTransactionInConflict:
    """What a writer asks when it has waited for its lock (``TxnHandler.getLatestTxnIdInConflict``)."""

    pytestmark = pytest.mark.needs("tells conflicts")

    @pytest.fixture
    def t(self, store: Metastore) -> Metastore:
        store.create_table(table("t", partitioned=True))
        return store

    def change(self, store: Metastore, place: str = T, operation: Operation = UPDATE) -> int:
        txn_id = write(store, place, operation, type=EXCL_WRITE)
        store.commit_txn(txn_id)
        return txn_id

    def test_is_none_where_nothing_happened(self, t: Metastore) -> None:
        self.change(t)
        mine = write(t, T, UPDATE, type=EXCL_WRITE)
        assert t.get_latest_txn_in_conflict(mine) is None

    @pytest.mark.parametrize("operation", [UPDATE, DELETE])
    def test_is_the_latest_of_those_that_committed_since(self, t: Metastore, operation: Operation) -> None:
        mine = begin(t)
        self.change(t)
        latest = self.change(t, operation=operation)
        write(t, T, UPDATE, txn_id=mine, type=EXCL_WRITE)
        assert t.get_latest_txn_in_conflict(mine) == latest

    def test_is_an_earlier_one_that_committed_late(self, t: Metastore) -> None:
        earlier = write(t, T, UPDATE, type=EXCL_WRITE)
        mine = begin(t)
        waiting = ask(t, mine, EXCL_WRITE, T, UPDATE)
        t.commit_txn(earlier)
        t.check_lock(waiting.lock_id)
        assert t.get_latest_txn_in_conflict(mine) == earlier

    def test_is_none_for_inserts_on_either_side(self, t: Metastore) -> None:
        updating, inserting = begin(t), begin(t)
        self.change(t, operation=INSERT)
        write(t, T, UPDATE, txn_id=updating, type=EXCL_WRITE)
        assert t.get_latest_txn_in_conflict(updating) is None
        t.commit_txn(updating)
        write(t, T, INSERT, txn_id=inserting, type=READ)
        assert t.get_latest_txn_in_conflict(inserting) is None

    def test_is_none_for_other_partitions(self, t: Metastore) -> None:
        mine = begin(t)
        self.change(t, P1)
        write(t, P2, UPDATE, txn_id=mine, type=EXCL_WRITE)
        assert t.get_latest_txn_in_conflict(mine) is None

    @pytest.mark.needs("table meets partition")
    @pytest.mark.parametrize(("theirs", "mine"), [(P1, T), (T, P1)])
    def test_is_found_between_table_and_partition(self, t: Metastore, theirs: str, mine: str) -> None:
        txn_id = begin(t)
        latest = self.change(t, theirs)
        write(t, mine, UPDATE, txn_id=txn_id, type=EXCL_WRITE)
        assert t.get_latest_txn_in_conflict(txn_id) == latest

    def test_is_found_in_one_partition(self, t: Metastore) -> None:
        mine = begin(t)
        latest = self.change(t, P1)
        write(t, P1, UPDATE, txn_id=mine, type=EXCL_WRITE)
        assert t.get_latest_txn_in_conflict(mine) == latest

    def test_is_none_for_an_aborted_one(self, t: Metastore) -> None:
        mine = begin(t)
        t.abort_txns([write(t, T, UPDATE, type=EXCL_WRITE)])
        write(t, T, UPDATE, txn_id=mine, type=EXCL_WRITE)
        assert t.get_latest_txn_in_conflict(mine) is None

    def test_is_found_between_sessions_of_either_mode(self, t: Metastore, open_store: OpenStore) -> None:
        other = open_store({"hive.txn.xlock.write": "false"})
        mine = begin(t)
        latest = self.change(other)
        write(t, T, UPDATE, txn_id=mine, type=EXCL_WRITE)
        assert t.get_latest_txn_in_conflict(mine) == latest


class TestTheMemoryOfChanges:
    """WRITE_SET keeps a change as long as somebody may be in conflict with it, and no longer."""

    def test_lasts_while_a_transaction_from_before_is_open(self, both: Metastore, clock: Clock) -> None:
        old = begin(both)
        both.commit_txn(write(both, T, UPDATE))
        for _ in range(5):
            both.commit_txn(begin(both))
        tidy(both, clock)
        write(both, T, UPDATE, txn_id=old)
        with pytest.raises(WriteConflict):
            both.commit_txn(old)

    @pytest.mark.needs("embedded")
    def test_ends_with_the_last_transaction_from_before(
        self, both: Metastore, count_rows: CountRows, clock: Clock
    ) -> None:
        old = begin(both)
        for _ in range(3):
            both.commit_txn(write(both, T, UPDATE))
        assert count_rows("WRITE_SET") == 3
        both.commit_txn(old)
        tidy(both, clock)
        assert count_rows("WRITE_SET") == 0


class TestDynamicPartitions:
    def test_are_seen_as_the_write_of_the_whole_transaction(self, both: Metastore) -> None:
        txn_id = begin(both)
        ask_all(both, txn_id, component(READ, T, INSERT, dynamic=True))
        write_id = both.allocate_table_write_id(txn_id, "default", "t")
        both.add_dynamic_partitions(txn_id, write_id, "default", "t", ["p=1", "p=2"], INSERT)
        both.commit_txn(txn_id)
        assert seen(read_write_ids(both)) == [write_id]

    def test_hide_an_aborted_write_until_they_are_forgotten(self, both: Metastore, clock: Clock) -> None:
        txn_id = begin(both)
        ask_all(both, txn_id, component(READ, T, INSERT, dynamic=True))
        write_id = both.allocate_table_write_id(txn_id, "default", "t")
        both.add_dynamic_partitions(txn_id, write_id, "default", "t", ["p=1", "p=2"], INSERT)
        both.abort_txns([txn_id])
        tidy(both, clock)
        assert read_write_ids(both).is_aborted(write_id)

    def test_of_several_tables_are_named_each_for_itself(self, both: Metastore) -> None:
        txns = [begin(both), begin(both)]
        both.create_table(table("u", partitioned=True))
        for txn_id, name in zip(txns, ("t", "u"), strict=True):
            ask_all(both, txn_id, component(READ, f"default.{name}", DELETE, dynamic=True))
            write_id = both.allocate_table_write_id(txn_id, "default", name)
            both.add_dynamic_partitions(txn_id, write_id, "default", name, ["p=1"], DELETE)
        for txn_id in txns:
            both.commit_txn(txn_id)
        assert (seen(read_write_ids(both)), seen(read_write_ids(both, "default.u"))) == ([1], [1])

    def test_named_twice_are_committed_once(self, both: Metastore) -> None:
        txn_id = write(both, T, UPDATE)
        for _ in range(2):
            both.add_dynamic_partitions(txn_id, 1, "default", "t", ["p=1"], UPDATE)
        both.commit_txn(txn_id)
        assert seen(read_write_ids(both)) == [1]


class TestRowsThatAreTold:
    """``acidsql.write.conflicts=row``: who tells which rows it deletes is in conflict with who deletes one of them."""

    pytestmark = pytest.mark.needs("compares rows")

    @pytest.fixture
    def t(self, store: Metastore) -> Metastore:
        store.create_table(table("t", partitioned=True))
        store.create_table(table("other"))
        return store

    @staticmethod
    def rows(*ids: int, partition: str = "", name: str = T) -> dict[str, RowSet]:
        numbers = np.array(ids, np.int64)
        return {name: RowSet.of(partition, np.ones_like(numbers), np.full_like(numbers, 536870912), numbers)}

    def both_at_work(self, t: Metastore, first: str = T, second: str = T) -> tuple[int, int]:
        one, two = begin(t), begin(t)
        write(t, first, UPDATE, txn_id=one)
        write(t, second, DELETE, txn_id=two)
        return one, two

    def test_both_commit_where_they_differ(self, t: Metastore) -> None:
        one, two = self.both_at_work(t)
        t.commit_txn(one, self.rows(1, 3))
        t.commit_txn(two, self.rows(0, 2, 4))
        assert seen(read_write_ids(t)) == [1, 2]

    def test_the_second_one_loses_where_a_row_is_in_both(self, t: Metastore) -> None:
        one, two = self.both_at_work(t)
        t.commit_txn(one, self.rows(1, 3))
        with pytest.raises(WriteConflict, match="default/t"):
            t.commit_txn(two, self.rows(0, 3))
        assert seen(read_write_ids(t)) == [1]
        assert lock_states(t) == []

    def test_it_loses_to_any_of_several(self, t: Metastore) -> None:
        mine = begin(t)
        for ids in ((1,), (2,), (3,)):
            t.commit_txn(write(t, T, UPDATE), self.rows(*ids))
        write(t, T, UPDATE, txn_id=mine)
        with pytest.raises(WriteConflict):
            t.commit_txn(mine, self.rows(2))

    @pytest.mark.parametrize("tells", ["the first", "the second", "none"])
    def test_one_that_does_not_tell_is_in_conflict_with_all(self, t: Metastore, tells: str) -> None:
        one, two = self.both_at_work(t)
        t.commit_txn(one, self.rows(1) if tells == "the first" else None)
        with pytest.raises(WriteConflict):
            t.commit_txn(two, self.rows(2) if tells == "the second" else {})

    def test_what_is_told_of_one_table_says_nothing_of_another(self, t: Metastore) -> None:
        one, two = self.both_at_work(t)
        for txn_id in (one, two):
            write(t, OTHER, UPDATE, txn_id=txn_id)
        t.commit_txn(one, self.rows(1) | self.rows(1, name=OTHER))
        with pytest.raises(WriteConflict, match="default/other"):
            t.commit_txn(two, self.rows(2))

    def test_who_has_deleted_no_row_is_in_conflict_with_none(self, t: Metastore) -> None:
        one, two = self.both_at_work(t)
        t.commit_txn(one, self.rows())
        t.commit_txn(two, self.rows(1))
        three, four = self.both_at_work(t)
        t.commit_txn(three, self.rows(1))
        t.commit_txn(four, self.rows())

    @pytest.mark.parametrize(("first", "second"), [(P1, P1), (T, P1), (P1, T), (T, T)])
    def test_rows_are_told_by_partition(self, t: Metastore, first: str, second: str) -> None:
        one, two = self.both_at_work(t, first, second)
        t.commit_txn(one, self.rows(7, partition="p=1"))
        if (first, second) == (T, T):
            t.commit_txn(two, self.rows(7, partition="p=2"))
        else:
            with pytest.raises(WriteConflict, match="p=1"):
                t.commit_txn(two, self.rows(7, 8, partition="p=1"))

    def test_a_partition_that_was_locked_by_another_name_is_compared(self, t: Metastore) -> None:
        """Whatever the locks say, what counts is what was deleted."""
        one, two = self.both_at_work(t, P2, T)
        t.commit_txn(one, self.rows(7, partition="p=1"))
        with pytest.raises(WriteConflict):
            t.commit_txn(two, self.rows(7, partition="p=1"))

    def test_one_that_excluded_others_tells_its_rows_as_well(self, t: Metastore) -> None:
        early = begin(t)
        t.commit_txn(write(t, T, UPDATE, type=EXCL_WRITE), self.rows(1))
        write(t, T, UPDATE, txn_id=early)
        t.commit_txn(early, self.rows(2))

    def test_the_latest_in_conflict_is_one_that_tells_nothing(self, t: Metastore) -> None:
        mine = begin(t)
        untold = write(t, T, UPDATE)
        t.commit_txn(untold)
        told = write(t, T, UPDATE)
        t.commit_txn(told, self.rows(1))
        write(t, T, UPDATE, txn_id=mine)
        assert t.get_latest_txn_in_conflict(mine) == told
        assert t.get_latest_txn_in_conflict(mine, by_rows=[OTHER]) == told
        assert t.get_latest_txn_in_conflict(mine, by_rows=[T]) == untold
        assert t.get_latest_txn_in_conflict(mine, t.get_valid_txns(), by_rows=[T]) is None

    @pytest.mark.needs("embedded")
    def test_rows_are_forgotten_with_the_last_that_could_be_in_conflict(
        self, t: Metastore, count_rows: CountRows
    ) -> None:
        one, two = self.both_at_work(t)
        t.commit_txn(one, self.rows(1))
        assert count_rows("WRITE_SET") == 1
        t.commit_txn(two, self.rows(2))
        assert count_rows("WRITE_SET") == 0

    def test_what_all_snapshots_saw_is_in_conflict_with_nothing(self, t: Metastore) -> None:
        """A transaction that has waited for a lock sees what the one before it has done, though they overlap."""
        earlier, mine = begin(t), begin(t)
        t.commit_txn(write(t, T, UPDATE, txn_id=earlier, type=EXCL_WRITE))
        write(t, T, UPDATE, txn_id=mine)
        snapshot = t.get_valid_txns(mine)
        assert snapshot.is_valid(earlier)
        t.commit_txn(mine, self.rows(1), snapshot)
        early, late = self.both_at_work(t)
        snapshot = t.get_valid_txns(early)
        t.commit_txn(late, self.rows(1))
        with pytest.raises(WriteConflict):
            t.commit_txn(early, self.rows(1), snapshot)

    @pytest.mark.needs("embedded")
    def test_rows_that_many_partitions_are_compared_with_are_read_once(
        self, t: Metastore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        one, two = self.both_at_work(t)
        for number in range(30):
            take(t, two, SHARED_WRITE, f"default.t/p={number}", UPDATE)
        read = list[bytes]()
        unpacked = RowSet.unpacked

        def count(packed: bytes) -> RowSet:
            read.append(packed)
            return unpacked(packed)

        monkeypatch.setattr(RowSet, "unpacked", staticmethod(count))
        t.commit_txn(one, self.rows(1, partition="p=3"))
        t.commit_txn(two, self.rows(2, partition="p=3"))
        assert len(read) == 1

    @pytest.mark.parametrize("seed", range(20))
    def test_of_overlapping_ones_none_commits_that_deletes_a_row_of_another(self, t: Metastore, seed: int) -> None:
        chance = random.Random(seed)
        at_work = dict[int, dict[str, RowSet]]()
        committed = list[tuple[set[int], RowSet]]()  # those that were at work then, and the rows
        for _ in range(60):
            if not at_work or (len(at_work) < 4 and chance.random() < 0.5):
                at_work[write(t, T, UPDATE)] = self.rows(*chance.sample(range(30), chance.randint(0, 4)))
                continue
            txn_id = chance.choice(list(at_work))
            told = at_work.pop(txn_id)
            if any(txn_id in others and told[T].meets(rows) for others, rows in committed):
                with pytest.raises(WriteConflict):
                    t.commit_txn(txn_id, told)
            else:
                t.commit_txn(txn_id, told)
                committed.append((set(at_work), told[T]))
