"""Opening and ending transactions (``TestTxnHandler``)."""

from __future__ import annotations

from contextlib import suppress

import pytest

from acidsql.errors import NoSuchLock, NoSuchTransaction, TransactionAborted, TransactionError
from acidsql.metastore.model import Operation, TxnState, TxnType
from acidsql.metastore.protocol import Metastore
from tests.metastore.conftest import OpenStore
from tests.metastore.situations import NEVER_GIVEN, READ, Clock, begin, read_write_ids, seen, table, take, tidy, write


class TestOpening:
    @pytest.mark.needs("counts from one")
    def test_ids_start_at_one(self, store: Metastore) -> None:
        assert begin(store) == 1

    def test_ids_rise_by_one(self, store: Metastore) -> None:
        first = begin(store)
        assert [begin(store) for _ in range(3)] == [first + 1, first + 2, first + 3]

    def test_several_are_opened_at_once(self, store: Metastore) -> None:
        first = begin(store)
        assert store.open_txns(3, user="ann", host="desk") == [first + 1, first + 2, first + 3]
        assert store.open_txns(2, user="ann", host="desk") == [first + 4, first + 5]

    def test_ids_are_never_handed_out_again(self, store: Metastore, clock: Clock) -> None:
        first = begin(store)
        store.abort_txns([first])
        tidy(store, clock)
        second = begin(store)
        store.commit_txn(second)
        tidy(store, clock)
        assert begin(store) == second + 1 == first + 2

    def test_shows_who_opened_them(self, store: Metastore) -> None:
        [txn_id] = store.open_txns(user="ann", host="desk")
        [shown] = store.show_txns()
        assert (shown.id, shown.state) == (txn_id, TxnState.OPEN)
        assert (shown.user, shown.host, shown.abort_reason) == ("ann", "desk", None)

    @pytest.mark.needs("describes transactions")
    def test_shows_their_type_and_agent(self, store: Metastore) -> None:
        store.open_txns(user="ann", host="desk", type=TxnType.READ_ONLY, agent_info="notebook")
        [shown] = store.show_txns()
        assert (shown.type, shown.agent_info) == (TxnType.READ_ONLY, "notebook")

    @pytest.mark.needs("own clock")
    def test_shows_when_they_were_opened(self, store: Metastore, clock: Clock) -> None:
        begin(store)
        [shown] = store.show_txns()
        assert (shown.started_ms, shown.heartbeat_ms) == (clock.ms, clock.ms)

    @pytest.mark.needs("own settings")
    def test_beyond_the_limit_is_refused(self, open_store: OpenStore) -> None:
        store = open_store({"hive.max.open.txns": "3"})
        first = begin(store)
        with pytest.raises(TransactionError, match="3"):
            store.open_txns(3, user="ann", host="desk")
        store.open_txns(2, user="ann", host="desk")
        with pytest.raises(TransactionError):
            begin(store)
        store.commit_txn(first)
        begin(store)


class TestCommit:
    def test_a_committed_transaction_is_no_longer_shown(self, store: Metastore) -> None:
        txn_id = begin(store)
        store.commit_txn(txn_id)
        assert store.show_txns() == []

    def test_committing_twice_is_no_error(self, store: Metastore) -> None:
        store.create_table(table())
        txn_id = write(store)
        store.commit_txn(txn_id)
        store.commit_txn(txn_id)
        assert seen(read_write_ids(store)) == [1]

    @pytest.mark.needs("commits of readers twice")
    def test_committing_twice_is_no_error_with_others_between(self, store: Metastore) -> None:
        txn_id = begin(store)
        store.commit_txn(txn_id)
        for _ in range(20):
            store.commit_txn(begin(store))
        store.commit_txn(txn_id)

    def test_one_that_was_never_opened_cannot_be_committed(self, store: Metastore) -> None:
        with pytest.raises(NoSuchTransaction, match=str(NEVER_GIVEN)):
            store.commit_txn(NEVER_GIVEN)

    def test_an_aborted_one_cannot_be_committed(self, store: Metastore) -> None:
        store.create_table(table())
        txn_id = write(store)
        store.abort_txns([txn_id])
        with pytest.raises(TransactionAborted, match=str(txn_id)):
            store.commit_txn(txn_id)
        assert seen(read_write_ids(store)) == []

    @pytest.mark.needs("keeps reasons")
    def test_an_aborted_one_tells_why(self, store: Metastore) -> None:
        store.create_table(table())
        txn_id = write(store)
        store.abort_txns([txn_id], "no more disk")
        with pytest.raises(TransactionAborted, match="no more disk"):
            store.commit_txn(txn_id)


class TestHeartbeat:
    """Without a clock; what they keep alive, and how long, is in :mod:`tests.metastore.test_time_outs`."""

    def test_of_an_open_transaction_and_its_locks_is_taken(self, store: Metastore) -> None:
        txn_id = begin(store)
        lock_id = take(store, txn_id, READ)
        store.heartbeat(txn_id=txn_id)
        store.heartbeat(txn_id=txn_id, lock_id=lock_id)
        store.heartbeat(lock_id=take(store, 0, READ))

    def test_of_a_transaction_that_is_not_open_is_an_error(self, store: Metastore) -> None:
        store.create_table(table())
        aborted, committed = write(store), write(store)
        store.abort_txns([aborted])
        store.commit_txn(committed)
        with pytest.raises(TransactionAborted, match=str(aborted)):
            store.heartbeat(txn_id=aborted)
        for txn_id in (committed, NEVER_GIVEN):
            with pytest.raises(NoSuchTransaction, match=str(txn_id)):
                store.heartbeat(txn_id=txn_id)

    def test_of_a_lock_that_is_not_there_is_an_error(self, store: Metastore) -> None:
        lock_id = take(store, 0, READ)
        store.unlock(lock_id)
        for one in (lock_id, NEVER_GIVEN):
            with pytest.raises(NoSuchLock, match=str(one)):
                store.heartbeat(lock_id=one)

    def test_of_many_tells_the_aborted_and_the_unknown(self, store: Metastore) -> None:
        store.create_table(table())
        aborted, opened, committed, other = write(store), begin(store), write(store), begin(store)
        store.abort_txns([aborted])
        store.commit_txn(committed)
        told = store.heartbeat_txns([other, aborted, committed, opened, NEVER_GIVEN])
        assert told == ([aborted], [committed, NEVER_GIVEN])


class TestAbort:
    def test_answers_those_that_are_aborted_now(self, store: Metastore) -> None:
        committed, one, other = (begin(store) for _ in range(3))
        store.commit_txn(committed)
        assert store.abort_txns([committed, one, other]) == [one, other]
        for txn_id in (one, other):
            with pytest.raises((TransactionAborted, NoSuchTransaction)):
                store.commit_txn(txn_id)

    def test_leaves_the_others_open(self, store: Metastore) -> None:
        aborted, opened = begin(store), begin(store)
        store.abort_txns([aborted])
        store.commit_txn(opened)

    @pytest.mark.needs("tells what it aborted")
    def test_answers_those_that_it_really_aborted(self, store: Metastore) -> None:
        committed, twice, opened = (begin(store) for _ in range(3))
        store.commit_txn(committed)
        store.abort_txns([twice])
        assert store.abort_txns([committed, twice, opened, NEVER_GIVEN]) == [opened]

    def test_naming_one_twice_aborts_it_once(self, store: Metastore) -> None:
        txn_id = begin(store)
        assert store.abort_txns([txn_id, txn_id]) == [txn_id]

    def test_a_committed_transaction_stays_committed(self, store: Metastore) -> None:
        store.create_table(table())
        txn_id = write(store)
        store.commit_txn(txn_id)
        assert store.abort_txns([txn_id]) == []
        assert seen(read_write_ids(store)) == [1]

    @pytest.mark.needs("keeps reasons")
    def test_keeps_its_reason(self, store: Metastore) -> None:
        store.create_table(table())
        txn_id = write(store)
        store.abort_txns([txn_id], "the operator's wish")
        [shown] = store.show_txns()
        assert (shown.state, shown.abort_reason) == (TxnState.ABORTED, "the operator's wish")

    def test_nothing_goes_on_after_it(self, store: Metastore) -> None:
        store.create_table(table())
        txn_id = write(store)
        store.abort_txns([txn_id])
        with pytest.raises(TransactionAborted):
            store.allocate_table_write_id(txn_id, "default", "t")
        with pytest.raises(TransactionAborted):
            store.add_dynamic_partitions(txn_id, 1, "default", "t", ["p=1"], Operation.INSERT)
        with pytest.raises(TransactionAborted):
            store.heartbeat(txn_id=txn_id)

    @pytest.mark.needs("keeps house when asked")
    def test_one_that_wrote_nothing_can_be_forgotten(self, store: Metastore, clock: Clock) -> None:
        txn_id = begin(store)
        store.abort_txns([txn_id])
        tidy(store, clock)
        assert store.show_txns() == []

    def test_one_that_wrote_is_not_forgotten_by_the_housekeeper(self, store: Metastore, clock: Clock) -> None:
        store.create_table(table())
        txn_id = write(store)
        store.abort_txns([txn_id])
        tidy(store, clock)
        assert [t.id for t in store.show_txns()] == [txn_id]


class TestForgetting:
    """Rule 5: an aborted transaction is forgotten only after its files are gone, and only on purpose."""

    pytestmark = pytest.mark.needs("forgets components")

    def test_an_aborted_transaction_is_gone_with_its_components(self, store: Metastore, clock: Clock) -> None:
        store.create_table(table())
        txn_id = write(store)
        store.abort_txns([txn_id])
        store.forget_txn_components(txn_id)
        tidy(store, clock)
        assert store.show_txns() == []

    def test_an_open_transaction_keeps_its_components(self, store: Metastore, clock: Clock) -> None:
        store.create_table(table())
        txn_id = write(store)
        with suppress(TransactionError):
            store.forget_txn_components(txn_id)
        store.abort_txns([txn_id])
        tidy(store, clock)
        assert seen(read_write_ids(store)) == []

    def test_a_transaction_that_is_not_there_is_no_error(self, store: Metastore) -> None:
        store.forget_txn_components(NEVER_GIVEN)
