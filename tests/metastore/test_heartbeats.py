"""The heartbeat thread of a session (:mod:`acidsql.metastore.heartbeat`; Hive: ``testHeartbeater``)."""

from __future__ import annotations

import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from acidsql.errors import MetastoreError, TransactionAborted
from acidsql.metastore.heartbeat import Heartbeats
from acidsql.metastore.model import LockComponent, LockRequest, LockType, TxnState
from acidsql.metastore.protocol import Metastore
from tests.metastore.situations import begin, table, write
from tests.metastore.stores import STORES

TIMEOUT = 0.1
"""Seconds; a heartbeat goes out every half of it."""


class Watched:
    """A metastore that tells when it was called, and can be made to fail."""

    def __init__(self, store: Metastore) -> None:
        self.store = store
        self._called = threading.Condition()
        self.beats: list[list[int]] = []
        self.locks_kept: list[int] = []
        self.failures = 0
        self.failing = {"commit_txn": 0, "abort_txns": 0}
        self.error: Exception = MetastoreError("the disk is gone")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def heartbeat_txns(self, txn_ids: list[int]) -> tuple[list[int], list[int]]:
        with self._called:
            self.beats.append(list(txn_ids))
            self._called.notify_all()
            if self.failures:
                self.failures -= 1
                raise self.error
        return self.store.heartbeat_txns(txn_ids)

    def heartbeat(self, *, txn_id: int = 0, lock_id: int = 0) -> None:
        with self._called:
            self.locks_kept.append(lock_id)
            self._called.notify_all()
        self.store.heartbeat(txn_id=txn_id, lock_id=lock_id)

    def commit_txn(self, txn_id: int) -> None:
        self._fail_or_not("commit_txn")
        self.store.commit_txn(txn_id)
        with self._called:
            self._called.notify_all()

    def abort_txns(self, txn_ids: list[int], reason: str = "") -> list[int]:
        self._fail_or_not("abort_txns")
        done = self.store.abort_txns(txn_ids, reason)
        with self._called:
            self._called.notify_all()
        return done

    def _fail_or_not(self, call: str) -> None:
        if self.failing[call] > 0:
            self.failing[call] -= 1
            raise MetastoreError("the store is busy")

    def wait(self, until: Callable[[], bool]) -> None:
        """Wait for a call after which a condition holds."""
        with self._called:
            assert self._called.wait_for(until, timeout=20)

    def wait_for_beats(self, count: int) -> None:
        wanted = len(self.beats) + count
        self.wait(lambda: len(self.beats) >= wanted)


@pytest.fixture
def watched(store: Metastore) -> Watched:
    store.create_table(table())
    return Watched(store)


@pytest.fixture
def heartbeats(watched: Watched) -> Iterator[Heartbeats]:
    made = Heartbeats(cast(Metastore, watched), TIMEOUT)
    yield made
    made.close()


def open_ids(store: Metastore) -> list[int]:
    return [t.id for t in store.show_txns() if t.state is TxnState.OPEN]


def reading() -> LockRequest:
    return LockRequest((LockComponent(LockType.SHARED_READ, "default", "t"),), 0, "ann", "desk")


class TestALockOfNoTransaction:
    def test_is_kept_alive_until_it_is_let_go_and_one_that_was_lost_stops_nothing(
        self, watched: Watched, heartbeats: Heartbeats
    ) -> None:
        lost, held = (watched.store.lock(reading()).lock_id for _ in range(2))
        for lock_id in (lost, held):
            heartbeats.hold_lock(lock_id)
        watched.store.unlock(lost)
        watched.wait(lambda: watched.locks_kept.count(held) > 1)
        assert lost in watched.locks_kept
        heartbeats.let_lock_go(held)
        heartbeats.let_lock_go(lost)
        txn_id = begin(watched.store)
        with heartbeats.keep_alive(txn_id):
            watched.wait_for_beats(1)
            kept = len(watched.locks_kept)
            watched.wait_for_beats(2)
        assert len(watched.locks_kept) == kept


class TestAReaderThatIsGone:
    def test_is_ended_though_an_interrupt_comes_while_it_is(self, watched: Watched, heartbeats: Heartbeats) -> None:
        txn_id = begin(watched.store)
        heartbeats.close()  # its thread
        heartbeats.pin(txn_id, 3600)
        heartbeats.release(txn_id)

        def interrupted(txn_id: int) -> None:
            raise KeyboardInterrupt

        watched.commit_txn = interrupted  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            heartbeats.end_released()
        heartbeats.close()
        assert open_ids(watched.store) == []

    def test_is_ended_before_a_signal_is_answered(self, watched: Watched, heartbeats: Heartbeats) -> None:
        txn_id = begin(watched.store)
        heartbeats.close()  # its thread
        heartbeats.pin(txn_id, 3600)
        heartbeats.release(txn_id)
        commit = watched.store.commit_txn

        def beside_a_signal(txn_id: int) -> None:
            signal.raise_signal(signal.SIGINT)
            commit(txn_id)

        watched.commit_txn = beside_a_signal  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            heartbeats.end_released()
        assert open_ids(watched.store) == []


class TestAStatement:
    def test_is_kept_alive_while_it_runs_and_not_after(self, watched: Watched, heartbeats: Heartbeats) -> None:
        first, second = begin(watched.store), begin(watched.store)
        with heartbeats.keep_alive(first):
            watched.wait_for_beats(2)
            assert watched.beats[-1] == [first]
        with heartbeats.keep_alive(second):
            watched.wait_for_beats(2)
            assert watched.beats[-1] == [second]

    def test_is_not_committed_at_its_end(self, watched: Watched, heartbeats: Heartbeats) -> None:
        txn_id = begin(watched.store)
        with heartbeats.keep_alive(txn_id):
            pass
        heartbeats.end_released()
        heartbeats.close()
        assert open_ids(watched.store) == [txn_id]

    @pytest.mark.parametrize("error", [MetastoreError("the disk is gone"), KeyError("not one of ours"), OSError(28)])
    def test_stays_alive_when_a_heartbeat_fails(
        self, watched: Watched, heartbeats: Heartbeats, error: Exception
    ) -> None:
        watched.failures, watched.error = 2, error
        with heartbeats.keep_alive(begin(watched.store)):
            watched.wait_for_beats(4)

    def test_stays_alive_whatever_else_fails_in_its_round(
        self, watched: Watched, heartbeats: Heartbeats, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*args: object) -> None:
            raise ZeroDivisionError

        for name in ("time_out_txns", "clean_empty_aborted_txns", "commit_txn"):
            monkeypatch.setattr(watched, name, fail, raising=False)
        heartbeats.pin(begin(watched.store), 0)  # its lease is over at once, and it cannot be ended
        with heartbeats.keep_alive(begin(watched.store)):
            watched.wait_for_beats(4)

    def test_meets_its_abort_itself_and_others_live_on(self, watched: Watched, heartbeats: Heartbeats) -> None:
        aborted, alive = write(watched.store), begin(watched.store)
        with heartbeats.keep_alive(aborted), heartbeats.keep_alive(alive):
            watched.store.abort_txns([aborted])
            watched.wait_for_beats(2)
        with pytest.raises(TransactionAborted):
            watched.store.commit_txn(aborted)
        watched.store.commit_txn(alive)


class TestAReader:
    def test_is_pinned_until_released(self, watched: Watched, heartbeats: Heartbeats) -> None:
        txn_id = begin(watched.store)
        heartbeats.pin(txn_id, lease=3600)
        watched.wait_for_beats(2)
        assert open_ids(watched.store) == [txn_id]
        heartbeats.release(txn_id)
        heartbeats.end_released()
        assert open_ids(watched.store) == []

    def test_ends_by_itself_after_its_release(self, watched: Watched, heartbeats: Heartbeats) -> None:
        txn_id = begin(watched.store)
        heartbeats.pin(txn_id, lease=3600)
        heartbeats.release(txn_id)
        watched.wait(lambda: open_ids(watched.store) == [])

    def test_ends_after_a_garbage_collection_where_the_jvm_makes_none_by_itself(self, watched: Watched) -> None:
        garbage = threading.Event()
        heartbeats = Heartbeats(cast(Metastore, watched), TIMEOUT, collect=garbage.set, loose_seconds=TIMEOUT)
        txn = begin(watched.store)
        heartbeats.pin(txn, 1000, lambda: not garbage.is_set())
        watched.wait_for_beats(3)
        assert not garbage.is_set()
        heartbeats.release(txn)
        watched.wait(lambda: open_ids(watched.store) == [])
        assert garbage.is_set()
        heartbeats.close()

    def test_whose_frame_is_a_cycle_ends_where_readers_that_are_gone_are_asked_for(
        self, watched: Watched, heartbeats: Heartbeats
    ) -> None:
        class Frame:
            itself: Frame

        txn = begin(watched.store)
        heartbeats.pin(txn, 1000)
        frame = Frame()
        frame.itself = frame
        weakref.finalize(frame, heartbeats.release, txn)
        del frame
        heartbeats.end_released(collect=True)
        assert open_ids(watched.store) == []

    def test_that_another_thread_is_about_to_end_is_waited_for(
        self, watched: Watched, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        heartbeats = Heartbeats(cast(Metastore, watched), 3600)
        txn, commits, go_on = begin(watched.store), threading.Event(), threading.Event()

        def commit(txn_id: int) -> None:
            commits.set()
            assert go_on.wait(30)
            watched.store.commit_txn(txn_id)

        monkeypatch.setattr(watched, "commit_txn", commit)
        heartbeats.pin(txn, 1000)
        heartbeats.release(txn)
        first = threading.Thread(target=heartbeats.end_released)
        first.start()
        assert commits.wait(30)
        seen: list[list[int]] = []

        def look() -> None:
            heartbeats.end_released(collect=True)
            seen.append(open_ids(watched.store))

        second = threading.Thread(target=look)
        second.start()
        second.join(0.2)
        go_on.set()
        first.join()
        second.join()
        assert seen == [[]]
        heartbeats.close()

    def test_that_a_collection_finds_ends_with_the_others(self, watched: Watched) -> None:
        first, second = begin(watched.store), begin(watched.store)
        heartbeats = Heartbeats(cast(Metastore, watched), TIMEOUT, collect=lambda: heartbeats.release(second))
        for txn in (first, second):
            heartbeats.pin(txn, 1000)
        heartbeats.release(first)
        heartbeats.end_released(collect=True)
        assert open_ids(watched.store) == []
        heartbeats.close()

    def test_ends_with_its_lease(self, watched: Watched, heartbeats: Heartbeats) -> None:
        short, long = begin(watched.store), begin(watched.store)
        heartbeats.pin(short, lease=0)
        heartbeats.pin(long, lease=3600)
        watched.wait(lambda: open_ids(watched.store) == [long])

    def test_that_is_released_twice_ends_once(self, watched: Watched, heartbeats: Heartbeats) -> None:
        txn_id = begin(watched.store)
        heartbeats.pin(txn_id, lease=3600)
        for _ in range(2):
            heartbeats.release(txn_id)
            heartbeats.end_released()
        assert open_ids(watched.store) == []

    def test_that_was_never_pinned_is_not_ended(self, watched: Watched, heartbeats: Heartbeats) -> None:
        txn_id = begin(watched.store)
        heartbeats.release(txn_id)
        heartbeats.end_released()
        assert open_ids(watched.store) == [txn_id]

    def test_that_was_aborted_meanwhile_is_given_up_with_a_warning(
        self, watched: Watched, heartbeats: Heartbeats, caplog: pytest.LogCaptureFixture
    ) -> None:
        lost, other = begin(watched.store), begin(watched.store)
        heartbeats.pin(lost, 1000)
        heartbeats.pin(other, 1000)
        watched.store.abort_txns([lost])
        watched.wait(lambda: watched.beats[-1:] == [[other]])
        assert [r.getMessage() for r in caplog.records if str(lost) in r.getMessage().split()] == [
            f"reader's transaction {lost} was ended by others, or had timed out: its DataFrames may fail"
        ]

    def test_that_was_aborted_meanwhile_is_no_error(self, watched: Watched, heartbeats: Heartbeats) -> None:
        txn_id = write(watched.store)
        heartbeats.pin(txn_id, lease=3600)
        watched.store.abort_txns([txn_id])
        heartbeats.release(txn_id)
        heartbeats.end_released()
        assert open_ids(watched.store) == []

    def test_that_cannot_be_ended_now_ends_soon(self, watched: Watched) -> None:
        watched.failing["commit_txn"] = 1
        heartbeats = Heartbeats(cast(Metastore, watched), 3600)  # not at its next beat only
        txn = begin(watched.store)
        heartbeats.end(txn)
        watched.wait(lambda: open_ids(watched.store) == [])
        heartbeats.close()


class TestAnAbort:
    def test_that_could_not_be_done_is_tried_until_it_is(
        self, watched: Watched, heartbeats: Heartbeats, store_name: str
    ) -> None:
        watched.failing["abort_txns"] = 3
        txn = write(watched.store)
        heartbeats.abort_later(txn, "its statement failed")
        watched.wait(lambda: open_ids(watched.store) == [])
        [left] = [t for t in watched.store.show_txns() if t.id == txn]
        assert left.state is TxnState.ABORTED
        if "keeps reasons" in STORES[store_name].capabilities:
            assert left.abort_reason == "its statement failed"

    def test_that_waits_is_done_at_the_close(self, watched: Watched) -> None:
        watched.failures = 1  # the first beat, which would do it
        heartbeats = Heartbeats(cast(Metastore, watched), 3600)
        txn = begin(watched.store)
        with heartbeats.keep_alive(begin(watched.store)):
            heartbeats.abort_later(txn, "its statement failed")
            watched.wait_for_beats(1)
        watched.store.abort_txns([t for t in open_ids(watched.store) if t != txn])
        heartbeats.close()
        assert open_ids(watched.store) == []


class TestClosing:
    def test_ends_all_readers_and_the_thread(self, watched: Watched) -> None:
        heartbeats = Heartbeats(cast(Metastore, watched), TIMEOUT)
        readers = [begin(watched.store) for _ in range(3)]
        for txn_id in readers:
            heartbeats.pin(txn_id, lease=3600)
        heartbeats.close()
        assert open_ids(watched.store) == []
        assert not [t for t in threading.enumerate() if t is heartbeats._thread]

    def test_without_anything_alive_is_no_error(self, watched: Watched) -> None:
        heartbeats = Heartbeats(cast(Metastore, watched), TIMEOUT)
        heartbeats.close()
        heartbeats.close()

    def test_leaves_statements_to_themselves(self, watched: Watched) -> None:
        heartbeats = Heartbeats(cast(Metastore, watched), TIMEOUT)
        txn_id = begin(watched.store)
        with heartbeats.keep_alive(txn_id):
            heartbeats.close()
        assert open_ids(watched.store) == [txn_id]
