"""Owners that are gone: time-outs and heartbeats (``testLockTimeout``, ``testRecoverManyTimeouts``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from acidsql.errors import NoSuchLock, NoSuchTransaction, TransactionAborted
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.model import LockState, Operation, TxnState
from acidsql.metastore.protocol import Metastore
from acidsql.metastore.waiting import wait_for_earlier_writers
from acidsql.settings import Settings
from tests.metastore.conftest import OpenStore
from tests.metastore.situations import (
    EXCLUSIVE,
    NEVER_GIVEN,
    READ,
    Clock,
    ask,
    begin,
    lock_states,
    read_write_ids,
    table,
    take,
    write,
)

pytestmark = pytest.mark.needs("own clock", "own settings")


@pytest.fixture
def store(open_store: OpenStore) -> Metastore:
    made = open_store({"hive.txn.timeout": "300s"})
    made.create_table(table())
    return made


class TestATransactionWithoutHeartbeats:
    def test_lives_as_long_as_the_time_out(self, store: Metastore, clock: Clock) -> None:
        txn_id = begin(store)
        clock.pass_seconds(300)
        assert store.time_out_txns() == []
        store.commit_txn(txn_id)

    def test_is_aborted_after_it(self, store: Metastore, clock: Clock) -> None:
        txn_id = write(store)
        clock.pass_seconds(300.001)
        assert store.time_out_txns() == [txn_id]
        with pytest.raises(TransactionAborted):
            store.commit_txn(txn_id)
        [shown] = store.show_txns()
        assert shown.state is TxnState.ABORTED
        assert shown.abort_reason
        assert read_write_ids(store).is_aborted(1)

    def test_is_aborted_by_who_waits_for_it_without_a_lock(self, store: Metastore, clock: Clock) -> None:
        """Until then a session's heartbeats had to do it, each ``hive.txn.timeout`` / 2."""
        silent = write(store)
        clock.pass_seconds(300.001)
        mine = begin(store)
        write_id = store.allocate_table_write_id(mine, "default", "t")
        wait_for_earlier_writers(store, Settings({"acidsql.lock.timeout": "1s"}), table(), write_id, mine)
        assert {txn.id: txn.state for txn in store.show_txns()} == {silent: TxnState.ABORTED, mine: TxnState.OPEN}

    def test_does_not_take_who_waits_for_it_with_it(self, store: Metastore, clock: Clock) -> None:
        """The clock was set forward, or the machine had slept: nobody had a heartbeat in time."""
        silent, mine = write(store), begin(store)
        write_id = store.allocate_table_write_id(mine, "default", "t")
        clock.pass_seconds(3600)
        wait_for_earlier_writers(store, Settings({"acidsql.lock.timeout": "1s"}), table(), write_id, mine)
        assert {txn.id: txn.state for txn in store.show_txns()} == {silent: TxnState.ABORTED, mine: TxnState.OPEN}

    def test_is_aborted_after_it_although_the_clock_was_set_back_meanwhile(
        self, store: Metastore, clock: Clock
    ) -> None:
        txn_id = write(store)
        clock.pass_seconds(-3600)
        assert store.time_out_txns() == []
        clock.pass_seconds(300)
        assert store.time_out_txns() == []
        clock.pass_seconds(0.001)
        assert store.time_out_txns() == [txn_id]

    @pytest.mark.parametrize("in_txn", [True, False])
    def test_gives_way_to_one_that_waits_although_the_clock_was_set_back(
        self, store: Metastore, clock: Clock, in_txn: bool
    ) -> None:
        take(store, begin(store) if in_txn else 0, EXCLUSIVE)
        clock.pass_seconds(-3600)
        mine = begin(store)
        waiting = ask(store, mine, EXCLUSIVE)
        assert waiting.state is LockState.WAITING
        for _ in range(3):
            assert store.check_lock(waiting.lock_id).state is LockState.WAITING
            clock.pass_seconds(100)
            store.heartbeat(txn_id=mine)
        clock.pass_seconds(1)
        assert store.check_lock(waiting.lock_id).state is LockState.ACQUIRED

    def test_is_timed_out_once(self, store: Metastore, clock: Clock) -> None:
        write(store)
        clock.pass_seconds(301)
        assert len(store.time_out_txns()) == 1
        assert store.time_out_txns() == []

    def test_loses_its_locks(self, store: Metastore, clock: Clock) -> None:
        take(store, begin(store), EXCLUSIVE)
        clock.pass_seconds(301)
        store.time_out_txns()
        assert lock_states(store) == []

    def test_makes_way_for_the_next_that_checks_its_lock(self, store: Metastore, clock: Clock) -> None:
        take(store, begin(store), EXCLUSIVE)
        clock.pass_seconds(200)
        waiting = ask(store, begin(store), READ)
        clock.pass_seconds(101)
        assert store.check_lock(waiting.lock_id).state is LockState.ACQUIRED

    def test_takes_many_others_along_at_once(self, store: Metastore, clock: Clock) -> None:
        dead = store.open_txns(50, user="ann", host="desk")
        clock.pass_seconds(301)
        alive = begin(store)
        assert sorted(store.time_out_txns()) == dead
        assert [t.id for t in store.show_txns() if t.state is TxnState.OPEN] == [alive]


class TestHeartbeats:
    def test_keep_a_transaction_alive(self, store: Metastore, clock: Clock) -> None:
        txn_id = write(store)
        for _ in range(5):
            clock.pass_seconds(200)
            store.heartbeat(txn_id=txn_id)
            assert store.time_out_txns() == []
        store.commit_txn(txn_id)

    def test_keep_the_locks_of_a_transaction_alive(self, store: Metastore, clock: Clock) -> None:
        txn_id = begin(store)
        lock_id = take(store, txn_id, EXCLUSIVE)
        for _ in range(3):
            clock.pass_seconds(200)
            store.heartbeat(txn_id=txn_id)
            store.time_out_txns()
        assert lock_states(store) == [(lock_id, "a")]

    def test_keep_a_lock_without_transaction_alive(self, store: Metastore, clock: Clock) -> None:
        lock_id = take(store, 0, EXCLUSIVE)
        for _ in range(3):
            clock.pass_seconds(200)
            store.heartbeat(lock_id=lock_id)
            store.time_out_txns()
        assert lock_states(store) == [(lock_id, "a")]

    def test_are_shown(self, store: Metastore, clock: Clock) -> None:
        txn_id = begin(store)
        started = clock.ms
        clock.pass_seconds(10)
        store.heartbeat(txn_id=txn_id)
        [shown] = store.show_txns()
        assert (shown.started_ms, shown.heartbeat_ms) == (started, clock.ms)

    def test_of_many_transactions_tell_the_aborted_and_the_unknown(self, store: Metastore, clock: Clock) -> None:
        aborted, opened, other = write(store), begin(store), begin(store)
        store.abort_txns([aborted])
        clock.pass_seconds(200)
        assert store.heartbeat_txns([aborted, opened, NEVER_GIVEN]) == ([aborted], [NEVER_GIVEN])
        clock.pass_seconds(200)
        assert store.time_out_txns() == [other]

    def test_of_a_transaction_that_is_not_open_are_errors(self, store: Metastore) -> None:
        aborted = write(store)
        store.abort_txns([aborted], "enough")
        with pytest.raises(TransactionAborted, match="enough"):
            store.heartbeat(txn_id=aborted)
        with pytest.raises(NoSuchTransaction):
            store.heartbeat(txn_id=NEVER_GIVEN)

    def test_of_a_lock_that_is_not_there_are_errors(self, store: Metastore) -> None:
        with pytest.raises(NoSuchLock):
            store.heartbeat(lock_id=NEVER_GIVEN)

    def test_of_a_timed_out_transaction_come_too_late(self, store: Metastore, clock: Clock) -> None:
        txn_id = write(store, operation=Operation.UPDATE)
        clock.pass_seconds(301)
        store.time_out_txns()
        with pytest.raises(TransactionAborted):
            store.heartbeat(txn_id=txn_id)


class TestALockWithoutTransaction:
    def test_is_released_after_the_time_out(self, store: Metastore, clock: Clock) -> None:
        lock_id = take(store, 0, EXCLUSIVE)
        clock.pass_seconds(300)
        store.time_out_txns()
        assert lock_states(store) == [(lock_id, "a")]
        clock.pass_seconds(0.001)
        assert store.time_out_txns() == []
        assert lock_states(store) == []

    def test_is_alive_while_it_is_checked(self, store: Metastore, clock: Clock) -> None:
        holder = begin(store)
        take(store, holder, EXCLUSIVE)
        waiting = ask(store, 0, READ)
        for _ in range(3):
            clock.pass_seconds(200)
            store.heartbeat(txn_id=holder)
            assert store.check_lock(waiting.lock_id).state is LockState.WAITING

    def test_is_gone_for_who_checks_it_too_late(self, store: Metastore, clock: Clock) -> None:
        holder = begin(store)
        take(store, holder, EXCLUSIVE)
        waiting = ask(store, 0, READ)
        clock.pass_seconds(301)
        store.time_out_txns()
        with pytest.raises(NoSuchLock):
            store.check_lock(waiting.lock_id)


def test_checking_a_lock_is_a_heartbeat_of_its_transaction(store: Metastore, clock: Clock) -> None:
    holder, waiter = begin(store), begin(store)
    take(store, holder, EXCLUSIVE)
    waiting = ask(store, waiter, READ)
    for _ in range(3):
        clock.pass_seconds(200)
        store.heartbeat(txn_id=holder)
        store.check_lock(waiting.lock_id)
    store.commit_txn(waiter)


class TestTheTimeOutIsThatOfTheOwner:
    """Heartbeats go out by the setting of the session that owns a transaction or lock: nobody else knows how often."""

    def test_so_a_session_with_a_shorter_one_leaves_others_alone(
        self, store: Metastore, open_store: OpenStore, clock: Clock
    ) -> None:
        hasty = open_store({"hive.txn.timeout": "2s"})
        txn_id, lock_id = begin(store), take(store, 0, EXCLUSIVE)
        clock.pass_seconds(299)
        assert hasty.time_out_txns() == []
        assert ask(hasty, begin(hasty), READ).state is LockState.WAITING
        assert lock_states(store)[0] == (lock_id, "a")
        store.commit_txn(txn_id)

    def test_so_a_session_with_a_longer_one_ends_what_died(
        self, store: Metastore, open_store: OpenStore, clock: Clock
    ) -> None:
        patient, hasty = open_store({"hive.txn.timeout": "1h"}), open_store({"hive.txn.timeout": "2s"})
        lasting, txn_id, short = begin(patient), begin(store), begin(hasty)
        clock.pass_seconds(3)
        assert patient.time_out_txns() == [short]
        clock.pass_seconds(300)
        assert patient.time_out_txns() == [txn_id]
        clock.pass_seconds(3600)
        assert store.time_out_txns() == [lasting]

    @pytest.mark.parametrize("longest", ["106751991167d", "9223372036854775807ms"])
    def test_of_one_who_never_dies_harms_nobody(self, store: Metastore, open_store: OpenStore, longest: str) -> None:
        lasting = begin(open_store({"hive.txn.timeout": longest}))
        assert store.time_out_txns() == []
        assert [one.id for one in store.show_txns()] == [lasting]

    def test_and_the_reason_names_it(self, open_store: OpenStore, clock: Clock) -> None:
        patient, hasty = open_store({"hive.txn.timeout": "1h"}), open_store({"hive.txn.timeout": "2s"})
        patient.create_table(table())
        write(hasty)
        clock.pass_seconds(3)
        patient.time_out_txns()
        [shown] = patient.show_txns()
        assert shown.abort_reason == "timed out: no heartbeat for more than 2 s"

    def test_as_it_was_when_the_session_began_for_its_heartbeats_go_by_that(self, tmp_path: Path, clock: Clock) -> None:
        settings = Settings({"hive.txn.timeout": "300s"})
        store = EmbeddedMetastore(str(tmp_path / "store.db"), settings, str(tmp_path), clock)
        settings.set("hive.txn.timeout", "2s")
        txn_id = begin(store)
        clock.pass_seconds(299)
        assert store.time_out_txns() == []
        settings.set("hive.txn.timeout", "1h")
        longer = begin(store)
        clock.pass_seconds(301)
        assert store.time_out_txns() == [txn_id]
        store.commit_txn(longer)
        store.close()
