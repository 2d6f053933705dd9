"""How lock requests queue, wait, are granted and released (``TestTxnHandler``, ``TestDbTxnManager2.testFairness``)."""

from __future__ import annotations

import pytest

from acidsql.errors import NoSuchLock, NoSuchTransaction, TransactionAborted, TransactionError
from acidsql.metastore.model import LockRequest, LockState, LockType, Operation
from acidsql.metastore.protocol import Metastore
from tests.metastore.situations import (
    AGENT,
    EXCL_WRITE,
    EXCLUSIVE,
    NEVER_GIVEN,
    READ,
    SHARED_WRITE,
    Clock,
    ask,
    ask_all,
    begin,
    component,
    lock_states,
    locks_of,
    table,
    take,
    write,
)


class TestFairness:
    """Who asked first is served first: waiting locks block like granted ones."""

    def test_a_reader_does_not_overtake_a_waiting_writer(self, store: Metastore) -> None:
        reader, dropper = begin(store), begin(store)
        take(store, reader, READ)
        drop = ask(store, dropper, EXCLUSIVE)
        late = ask(store, begin(store), READ)
        assert (drop.state, late.state) == (LockState.WAITING, LockState.WAITING)
        assert late.blocked_by is not None
        assert late.blocked_by.lock_id == drop.lock_id
        assert late.blocked_by.state is LockState.WAITING

    def test_the_queue_is_served_in_its_order(self, store: Metastore) -> None:
        txns = [begin(store) for _ in range(3)]
        locks = [ask(store, txn_id, EXCLUSIVE).lock_id for txn_id in txns]
        for i, txn_id in enumerate(txns):
            assert store.check_lock(locks[i]).state is LockState.ACQUIRED
            assert all(store.check_lock(lock).state is LockState.WAITING for lock in locks[i + 1 :])
            store.commit_txn(txn_id)

    def test_a_later_lock_is_never_in_the_way_of_an_earlier_one(self, store: Metastore) -> None:
        first = begin(store)
        take(store, first, EXCL_WRITE)
        waiting = ask(store, begin(store), EXCL_WRITE)
        ask(store, begin(store), EXCLUSIVE)
        store.commit_txn(first)
        assert store.check_lock(waiting.lock_id).state is LockState.ACQUIRED

    def test_who_gives_up_waiting_lets_the_next_one_pass(self, store: Metastore) -> None:
        take(store, begin(store), READ)
        drop = ask(store, begin(store), EXCLUSIVE)
        late = ask(store, begin(store), READ)
        store.unlock(drop.lock_id)
        assert store.check_lock(late.lock_id).state is LockState.ACQUIRED

    def test_the_id_of_a_lock_says_when_it_was_asked_for(self, store: Metastore) -> None:
        ids = [ask(store, begin(store), EXCLUSIVE).lock_id for _ in range(4)]
        assert ids == sorted(set(ids))


class TestSeveralObjects:
    """All objects of a request are granted together, or none is (``testMultipleLock``, ``testMultipleLockWait``)."""

    def test_are_granted_together(self, store: Metastore) -> None:
        response = ask_all(
            store, begin(store), component(READ, "default.a"), component(EXCL_WRITE, "default.b"), component(READ, "d2")
        )
        assert response.state is LockState.ACQUIRED
        shown = locks_of(store)
        assert [(one.lock_id, one.internal_id, one.state) for one in shown] == [
            (response.lock_id, i, LockState.ACQUIRED) for i in (1, 2, 3)
        ]

    def test_wait_together_while_one_is_taken(self, store: Metastore) -> None:
        holder = begin(store)
        take(store, holder, EXCLUSIVE, "default.b")
        waiting = ask_all(store, begin(store), component(READ, "default.a"), component(READ, "default.b"))
        assert waiting.state is LockState.WAITING
        assert {one.state for one in locks_of(store, "default", "a")} == {LockState.WAITING}
        store.commit_txn(holder)
        assert store.check_lock(waiting.lock_id).state is LockState.ACQUIRED
        assert {one.state for one in locks_of(store)} == {LockState.ACQUIRED}

    def test_of_a_waiting_request_block_others_although_they_were_free(self, store: Metastore) -> None:
        take(store, begin(store), EXCLUSIVE, "default.b")
        ask_all(store, begin(store), component(EXCLUSIVE, "default.a"), component(READ, "default.b"))
        assert ask(store, begin(store), READ, "default.a").state is LockState.WAITING

    def test_may_overlap_within_one_request(self, store: Metastore) -> None:
        response = ask_all(
            store, 0, component(EXCL_WRITE, "default.t"), component(READ, "default.t"), component(EXCLUSIVE, "default")
        )
        assert response.state is LockState.ACQUIRED


class TestShownLocks:
    """SHOW LOCKS (``showLocks``, ``testLockBlockedBy``, ``testShowLocksFilterOptions``, ``testShowLocksAgentInfo``)."""

    @pytest.mark.parametrize(
        "type",
        [READ, SHARED_WRITE, pytest.param(EXCL_WRITE, marks=pytest.mark.needs("exclusive writes")), EXCLUSIVE],
    )
    def test_tell_object_type_and_owner(self, store: Metastore, type: LockType) -> None:
        txn_id = begin(store)
        lock_id = take(store, txn_id, type, "default.t/p=1", Operation.UPDATE)
        [shown] = locks_of(store)
        assert (shown.lock_id, shown.internal_id, shown.txn_id) == (lock_id, 1, txn_id)
        assert (shown.database, shown.table, shown.partition) == ("default", "t", "p=1")
        assert (shown.type, shown.state) == (type, LockState.ACQUIRED)
        assert (shown.user, shown.host, shown.agent_info) == ("ann", "desk", AGENT)
        assert (shown.blocked_by_lock_id, shown.blocked_by_internal_id) == (None, None)

    @pytest.mark.needs("own clock")
    def test_tell_when_they_were_granted(self, store: Metastore, clock: Clock) -> None:
        holder = begin(store)
        take(store, holder, EXCLUSIVE)
        asked = ask(store, 0, READ)
        assert locks_of(store)[1].acquired_ms is None
        store.commit_txn(holder)
        clock.pass_seconds(7)
        store.check_lock(asked.lock_id)
        [shown] = locks_of(store)
        assert (shown.acquired_ms, shown.heartbeat_ms) == (clock.ms, clock.ms)

    def test_name_the_lock_that_they_wait_for(self, store: Metastore) -> None:
        holder = ask_all(store, begin(store), component(READ, "default.a"), component(EXCLUSIVE, "default.b"))
        ask(store, begin(store), READ, "default.b")
        waiting = locks_of(store)[-1]
        assert waiting.state is LockState.WAITING
        assert (waiting.blocked_by_lock_id, waiting.blocked_by_internal_id) == (holder.lock_id, 2)

    def test_name_nobody_once_granted(self, store: Metastore) -> None:
        holder = begin(store)
        take(store, holder, EXCLUSIVE)
        waiting = ask(store, begin(store), READ)
        store.commit_txn(holder)
        store.check_lock(waiting.lock_id)
        [shown] = locks_of(store)
        assert (shown.blocked_by_lock_id, shown.blocked_by_internal_id) == (None, None)

    def test_name_one_lock_in_the_way_and_the_other_when_that_is_gone(self, store: Metastore) -> None:
        """Which one comes first is nobody's promise: Hive takes what its database finds first."""
        first, second = begin(store), begin(store)
        txns = {take(store, first, EXCLUSIVE, "default.a"): first, take(store, second, EXCLUSIVE, "default.b"): second}
        waiting = ask_all(store, begin(store), component(READ, "default.a"), component(READ, "default.b"))
        assert waiting.blocked_by is not None
        store.commit_txn(txns.pop(waiting.blocked_by.lock_id))
        again = store.check_lock(waiting.lock_id)
        assert again.blocked_by is not None
        assert [again.blocked_by.lock_id] == list(txns)

    @pytest.mark.needs("keeps blockers up to date")
    def test_name_no_lock_that_is_gone(self, store: Metastore) -> None:
        first, second = begin(store), begin(store)
        take(store, first, EXCLUSIVE, "default.a")
        b = take(store, second, EXCLUSIVE, "default.b")
        waiting = ask_all(store, begin(store), component(READ, "default.a"), component(READ, "default.b"))
        store.commit_txn(first)
        store.check_lock(waiting.lock_id)
        blockers = {one.blocked_by_lock_id for one in locks_of(store) if one.lock_id == waiting.lock_id}
        assert blockers - {None} == {b}

    def test_are_filtered_by_database_table_and_partition(self, store: Metastore) -> None:
        for place in ("d1", "d1.t1", "d1.t1/p=1", "d1.t2", "d2.t1"):
            take(store, begin(store), READ, place)

        def places(*filters: str) -> list[tuple[str, str | None, str | None]]:
            return [(one.database, one.table, one.partition) for one in locks_of(store, *filters)]

        assert len(places()) == 5
        assert places("d1") == [("d1", None, None), ("d1", "t1", None), ("d1", "t1", "p=1"), ("d1", "t2", None)]
        assert places("d1", "t1") == [("d1", "t1", None), ("d1", "t1", "p=1")]
        assert places("d1", "t1", "p=1") == [("d1", "t1", "p=1")]
        assert places("d3") == []


class TestZeroWaitReads:
    """A read that would have to wait is answered at once (``testFairnessZeroWaitRead``)."""

    pytestmark = pytest.mark.needs("zero-wait reads")

    def test_are_not_acquired_and_leave_nothing_in_the_queue(self, store: Metastore) -> None:
        holder = take(store, begin(store), EXCLUSIVE)
        response = ask(store, begin(store), READ, zero_wait=True)
        assert response.state is LockState.NOT_ACQUIRED
        assert response.blocked_by is not None
        assert response.blocked_by.lock_id == holder
        assert lock_states(store) == [(holder, "a")]

    def test_are_acquired_where_nothing_is_in_the_way(self, store: Metastore) -> None:
        assert ask(store, begin(store), READ, zero_wait=True).state is LockState.ACQUIRED

    def test_let_writes_wait_all_the_same(self, store: Metastore) -> None:
        take(store, begin(store), EXCLUSIVE)
        assert ask(store, begin(store), EXCL_WRITE, zero_wait=True).state is LockState.WAITING

    def test_leave_an_insert_that_did_not_get_its_lock_open(self, store: Metastore) -> None:
        holder = take(store, begin(store), EXCLUSIVE)
        insert = begin(store)
        response = ask(store, insert, READ, operation=Operation.INSERT, zero_wait=True)
        assert response.state is LockState.NOT_ACQUIRED
        assert lock_states(store) == [(holder, "a")]
        store.commit_txn(insert)

    @pytest.mark.needs("keeps house when asked")
    def test_leave_nothing_of_an_insert_that_did_not_get_its_lock(self, store: Metastore) -> None:
        take(store, begin(store), EXCLUSIVE)
        insert = begin(store)
        ask(store, insert, READ, operation=Operation.INSERT, zero_wait=True)
        store.abort_txns([insert])
        assert insert not in [t.id for t in store.show_txns()]


class TestRelease:
    @pytest.mark.parametrize("end", ["commit", "abort"])
    def test_the_end_of_a_transaction_releases_all_its_locks(self, store: Metastore, end: str) -> None:
        txn_id = begin(store)
        take(store, txn_id, EXCLUSIVE, "default.a")
        take(store, txn_id, EXCLUSIVE, "default.b")
        waiting = ask_all(store, begin(store), component(READ, "default.a"), component(READ, "default.b"))
        store.commit_txn(txn_id) if end == "commit" else store.abort_txns([txn_id])
        assert store.check_lock(waiting.lock_id).state is LockState.ACQUIRED
        assert len(locks_of(store)) == 2

    def test_the_end_of_a_transaction_takes_its_waiting_lock_along(self, store: Metastore) -> None:
        take(store, begin(store), READ)
        giving_up = begin(store)
        drop = ask(store, giving_up, EXCLUSIVE)
        late = ask(store, begin(store), READ)
        store.abort_txns([giving_up])
        assert store.check_lock(late.lock_id).state is LockState.ACQUIRED
        with pytest.raises((NoSuchLock, TransactionAborted)):
            store.check_lock(drop.lock_id)

    def test_a_lock_without_a_transaction_is_unlocked(self, store: Metastore) -> None:
        lock_id = take(store, 0, EXCLUSIVE)
        store.unlock(lock_id)
        assert locks_of(store) == []
        take(store, 0, EXCLUSIVE)

    def test_a_waiting_lock_of_a_transaction_is_unlocked(self, store: Metastore) -> None:
        holder = take(store, begin(store), EXCLUSIVE)
        waiting = ask(store, begin(store), READ)
        store.unlock(waiting.lock_id)
        assert lock_states(store) == [(holder, "a")]

    @pytest.mark.needs("embedded")
    @pytest.mark.parametrize("partition", ["", "p=1"])
    @pytest.mark.parametrize("changes_before", [False, True])
    def test_what_was_asked_for_in_vain_was_not_changed(
        self, store: Metastore, changes_before: bool, partition: str
    ) -> None:
        """A transaction of several statements goes on, and what it has changed before counts."""
        store.create_table(table("t", partitioned=bool(partition)))
        place = f"default.t/{partition}" if partition else "default.t"
        mine = begin(store)
        take(store, begin(store), READ, place, Operation.SELECT)
        if changes_before:
            write(store, place, Operation.UPDATE, txn_id=mine, type=SHARED_WRITE)
        wanted = (component(EXCLUSIVE, place, Operation.UPDATE), component(EXCL_WRITE, "default.t", Operation.DELETE))
        request = LockRequest(wanted, mine, "ann", "desk", AGENT)
        waiting = store.lock(request)
        assert waiting.state is LockState.WAITING
        store.unlock(waiting.lock_id, request)
        store.commit_txn(mine)
        done = [(one.txn_id, one.partition, one.changes_rows) for one in store.completed_writes("default", "t") or ()]
        assert done == ([(mine, partition, True)] if changes_before else [])

    def test_a_granted_lock_of_a_transaction_is_not_unlocked(self, store: Metastore) -> None:
        txn_id = begin(store)
        lock_id = take(store, txn_id, EXCLUSIVE)
        with pytest.raises(TransactionError, match=str(txn_id)):
            store.unlock(lock_id)
        assert lock_states(store) == [(lock_id, "a")]

    @pytest.mark.needs("unlocks once")
    def test_a_lock_is_unlocked_once(self, store: Metastore) -> None:
        lock_id = take(store, 0, READ)
        store.unlock(lock_id)
        with pytest.raises(NoSuchLock):
            store.unlock(lock_id)


class TestErrors:
    def test_a_lock_that_was_never_asked_for_is_not_checked(self, store: Metastore) -> None:
        with pytest.raises(NoSuchLock, match=str(NEVER_GIVEN)):
            store.check_lock(NEVER_GIVEN)

    @pytest.mark.needs("unlocks once")
    def test_a_lock_that_was_never_asked_for_is_not_unlocked(self, store: Metastore) -> None:
        with pytest.raises(NoSuchLock, match=str(NEVER_GIVEN)):
            store.unlock(NEVER_GIVEN)

    def test_a_transaction_that_was_never_opened_gets_no_lock(self, store: Metastore) -> None:
        with pytest.raises(NoSuchTransaction):
            ask(store, NEVER_GIVEN, READ)
        assert locks_of(store) == []

    def test_an_aborted_transaction_gets_no_lock(self, store: Metastore) -> None:
        txn_id = begin(store)
        take(store, txn_id, SHARED_WRITE, operation=Operation.INSERT)
        store.abort_txns([txn_id])
        with pytest.raises(TransactionAborted, match=str(txn_id)):
            ask(store, txn_id, READ)
        assert locks_of(store) == []

    @pytest.mark.needs("keeps reasons")
    def test_an_aborted_transaction_is_told_why_it_gets_no_lock(self, store: Metastore) -> None:
        txn_id = begin(store)
        take(store, txn_id, SHARED_WRITE, operation=Operation.INSERT)
        store.abort_txns([txn_id], "by hand")
        with pytest.raises(TransactionAborted, match="by hand"):
            ask(store, txn_id, READ)

    @pytest.mark.needs("refuses locks after the end")
    def test_a_committed_transaction_gets_no_lock(self, store: Metastore) -> None:
        txn_id = begin(store)
        store.commit_txn(txn_id)
        with pytest.raises(NoSuchTransaction):
            ask(store, txn_id, READ)

    @pytest.mark.parametrize("type", list(LockType))
    def test_a_granted_lock_may_be_checked_again(self, store: Metastore, type: LockType) -> None:
        lock_id = take(store, begin(store), type)
        assert store.check_lock(lock_id).state is LockState.ACQUIRED


class TestSeveralRequestsOfATransaction:
    """A transaction of several statements asks for locks while it holds some."""

    def test_two_that_wait_for_each_other_are_told_at_once(self, store: Metastore) -> None:
        one, two = begin(store), begin(store)
        take(store, one, EXCL_WRITE, "default.a")
        take(store, two, EXCL_WRITE, "default.b")
        waiting = ask(store, one, EXCL_WRITE, "default.b")
        assert (waiting.state, waiting.circle) == (LockState.WAITING, ())
        last = ask(store, two, EXCL_WRITE, "default.a")
        assert (last.state, last.circle) == (LockState.WAITING, (two, one))
        assert store.check_lock(waiting.lock_id).circle == (), "one of them is ended"
        assert store.check_lock(last.lock_id).circle == (two, one)
        store.abort_txns([two])
        assert store.check_lock(waiting.lock_id).state is LockState.ACQUIRED

    def test_a_circle_of_three_with_readers_and_partitions(self, store: Metastore) -> None:
        one, two, three = (begin(store) for _ in range(3))
        take(store, one, EXCL_WRITE, "default.a/p=1")
        take(store, two, READ, "default.b")
        take(store, three, EXCL_WRITE, "default.c")
        assert ask(store, one, EXCLUSIVE, "default.b").circle == ()
        assert ask(store, two, SHARED_WRITE, "default.c").circle == ()
        assert ask(store, three, SHARED_WRITE, "default.a/p=2").state is LockState.ACQUIRED
        assert ask(store, three, SHARED_WRITE, "default.a").circle == (three, one, two)

    def test_who_waits_for_a_writer_is_in_a_circle_too(self, store: Metastore) -> None:
        """As TRUNCATE does, which no lock keeps apart from INSERT: two waits for its lock, and the writer for two."""
        writer, two, truncate, beside = (begin(store) for _ in range(4))
        store.allocate_table_write_id(writer, "default", "a")
        take(store, writer, READ, "default.a")
        take(store, two, EXCL_WRITE, "default.b")
        take(store, truncate, EXCL_WRITE, "default.a")
        take(store, beside, READ, "default.b")
        own = store.allocate_table_write_id(truncate, "default", "a")

        def circle() -> tuple[int, ...]:
            return store.circle_with_writers(truncate, "default", "a", own)

        assert ask(store, two, EXCL_WRITE, "default.a").state is LockState.WAITING
        assert circle() == ()
        assert ask(store, writer, EXCL_WRITE, "default.b").circle == ()
        assert circle() == (truncate, writer, two)
        assert store.circle_with_writers(beside, "default", "a", own) == ()
        store.abort_txns([two])
        assert circle() == ()

    @pytest.mark.needs("tells who writes")
    def test_two_that_wait_for_each_others_writers(self, store: Metastore) -> None:
        """None of them has asked for a lock that it does not hold: the store keeps who waits for whom."""
        one, two, beside = (begin(store) for _ in range(3))
        for txn_id, name in ((one, "a"), (two, "b")):
            store.allocate_table_write_id(txn_id, "default", name)
            take(store, txn_id, READ, f"default.{name}")
        below = {}
        for txn_id, name in ((one, "b"), (two, "a")):
            take(store, txn_id, EXCL_WRITE, f"default.{name}")
            below[txn_id, name] = store.allocate_table_write_id(txn_id, "default", name)

        def circle(txn_id: int, table: str) -> tuple[int, ...]:
            return store.circle_with_writers(txn_id, "default", table, below[txn_id, table])

        assert circle(one, "b") == ()
        assert {k.blocked_by_lock_id for k in store.show_locks(table="b") if k.txn_id == one} != {None}
        assert circle(two, "a") == (two, one)
        assert circle(one, "b") == (), "the younger one is ended"
        assert store.circle_with_writers(one, "default", "b", 0) == ()
        assert circle(two, "a") == (), "the other one does not wait any more"
        assert circle(one, "b") == ()
        assert ask(store, beside, EXCL_WRITE, "default.a").circle == ()
        store.abort_txns([two])
        assert circle(one, "b") == ()
        assert {k.blocked_by_lock_id for k in store.show_locks() if k.txn_id == one} == {None}

    @pytest.mark.parametrize("first", [EXCL_WRITE, READ])
    def test_its_own_lock_hides_none_of_others(self, store: Metastore, first: LockType) -> None:
        """Hive 3 grants at once what meets a lock of the same transaction."""
        one, two = begin(store), begin(store)
        take(store, one, first, "default.a/p=1")
        take(store, two, first, "default.a/p=2")
        waiting = ask(store, two, EXCLUSIVE, "default.a")
        assert waiting.state is LockState.WAITING
        assert store.check_lock(waiting.lock_id).state is LockState.WAITING
        store.commit_txn(one)
        assert store.check_lock(waiting.lock_id).state is LockState.ACQUIRED

    def test_who_holds_nothing_is_in_no_circle(self, store: Metastore) -> None:
        one, two, three = (begin(store) for _ in range(3))
        take(store, one, EXCL_WRITE, "default.a")
        take(store, two, EXCL_WRITE, "default.b")
        ask(store, two, EXCL_WRITE, "default.a")
        assert ask(store, three, EXCLUSIVE, "default.a").circle == ()
        assert ask(store, three, EXCLUSIVE, "default.b").circle == ()

    def test_it_overtakes_those_who_wait_for_it(self, store: Metastore) -> None:
        """In Hive, which has no such transactions in earnest, that is a deadlock."""
        writer, dropper, other = (begin(store) for _ in range(3))
        take(store, writer, READ)
        drop = ask(store, dropper, EXCLUSIVE)
        change = ask(store, writer, EXCL_WRITE)
        if store.capabilities.is_shared_with_hive:
            assert change.state is LockState.WAITING
            assert store.check_lock(drop.lock_id).circle == (dropper, writer)
            return
        assert change.state is LockState.ACQUIRED
        assert ask(store, other, READ).state is LockState.WAITING, "behind the dropper"
        assert store.check_lock(drop.lock_id).state is LockState.WAITING
        store.commit_txn(writer)
        assert store.check_lock(drop.lock_id).state is LockState.ACQUIRED

    @pytest.mark.needs("exclusive writes")
    def test_it_overtakes_those_who_wait_behind_others_for_it(self, store: Metastore) -> None:
        writer, of_all, behind = (begin(store) for _ in range(3))
        take(store, writer, EXCL_WRITE, "default.t/p=1")
        whole = ask(store, of_all, EXCL_WRITE)
        second = ask(store, behind, EXCL_WRITE, "default.t/p=2")
        assert (whole.state, second.state) == (LockState.WAITING, LockState.WAITING)
        state = ask(store, writer, EXCL_WRITE, "default.t/p=2").state
        if store.capabilities.is_shared_with_hive:
            assert state is LockState.WAITING
            return
        assert state is LockState.ACQUIRED
        store.abort_txns([of_all])
        assert store.check_lock(second.lock_id).state is LockState.WAITING, "for the one that has overtaken it"
        store.commit_txn(writer)
        assert store.check_lock(second.lock_id).state is LockState.ACQUIRED

    def test_it_does_not_overtake_those_who_wait_for_somebody_else(self, store: Metastore) -> None:
        writer, reader, dropper = (begin(store) for _ in range(3))
        take(store, writer, READ, "default.other")
        take(store, reader, READ)
        drop = ask(store, dropper, EXCLUSIVE)
        late = ask(store, writer, READ)
        assert (late.state, late.circle) == (LockState.WAITING, ())
        store.commit_txn(reader)
        assert store.check_lock(drop.lock_id).state is LockState.ACQUIRED
        store.commit_txn(dropper)
        assert store.check_lock(late.lock_id).state is LockState.ACQUIRED
