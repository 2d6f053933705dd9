"""Workers and the queue of compactions (``TestCompactionTxnHandler`` in Hive)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from acidsql.errors import CompactionError
from acidsql.metastore.model import CompactionFilter, CompactionMetrics, CompactionType
from acidsql.metastore.model import CompactionState as State
from acidsql.metastore.protocol import Metastore
from tests.metastore.compacting import MAJOR, MINOR, asked, committed, compacted, entry, request, states, taken
from tests.metastore.conftest import OpenStore
from tests.metastore.situations import Clock, begin, partition, table

pytestmark = pytest.mark.needs("hands compactions to workers")
OURS = pytest.mark.needs("cleans compactions")
"""The store gives entries back, and knows whose they are."""


@pytest.fixture
def queue(store: Metastore) -> Metastore:
    """A store with a plain table ``t`` and a table ``p`` of three partitions."""
    store.create_table(table("t"))
    store.create_table(table("p", partitioned=True))
    store.add_partitions([partition(value, "p") for value in "123"])
    return store


class TestAWorker:
    def test_finds_nothing_in_an_empty_queue(self, queue: Metastore) -> None:
        assert queue.find_next_compact("desk-1") is None

    def test_takes_a_request(self, queue: Metastore) -> None:
        id = asked(queue, "p", "p=1", MINOR)
        found = queue.find_next_compact("desk-1")
        assert found is not None
        assert (found.id, found.database, found.table, found.partition) == (id, "default", "p", "p=1")
        assert (found.type, found.state, found.worker) == (MINOR, State.WORKING, "desk-1")
        assert queue.find_next_compact("desk-1") is None
        after = entry(queue, id)
        assert (after.state, after.worker) == (State.WORKING, "desk-1")

    def test_takes_the_oldest_request_first(self, queue: Metastore) -> None:
        ids = [asked(queue, "p", name) for name in ("p=2", "p=1", "p=3")]
        found = [queue.find_next_compact("desk-1") for _ in range(4)]
        assert [one and one.id for one in found] == [*ids, None]

    def test_is_told_all_that_was_asked_for(self, queue: Metastore) -> None:
        properties = {
            "compactor.mapreduce.map.memory.mb": "500",
            "tblprops.orc.compress.size": "8192",
            "ä\U0001f600": "",
        }
        rebalance = CompactionType.REBALANCE
        asked(queue, type=rebalance, properties=properties, buckets=7, order_by="ORDER BY a DESC")
        found = queue.find_next_compact("desk-1")
        assert found is not None
        assert (found.type, dict(found.properties)) == (rebalance, properties)
        assert (found.buckets, found.order_by) == (7, "ORDER BY a DESC")

    def test_names_its_job(self, queue: Metastore) -> None:
        id = taken(queue)
        queue.set_job_id(id, "desk-compactor-default.t")
        assert entry(queue, id).job_id == "desk-compactor-default.t"

    def test_says_that_it_is_done(self, queue: Metastore) -> None:
        id = compacted(queue)
        after = entry(queue, id)
        assert (after.state, after.worker) == (State.READY_FOR_CLEANING, None)
        assert queue.find_next_compact("desk-1") is None

    def test_says_that_it_failed(self, queue: Metastore) -> None:
        id = taken(queue)
        queue.mark_failed(id, "no more disk")
        after = entry(queue, id)
        assert (after.state, after.error) == (State.FAILED, "no more disk")
        assert queue.find_next_compact("desk-1") is None

    def test_says_that_it_refuses(self, queue: Metastore) -> None:
        id = taken(queue, "p", "p=1")
        queue.mark_refused(id, "nothing to compact")
        after = entry(queue, id)
        assert (after.state, after.error) == (State.REFUSED, "nothing to compact")

    @pytest.mark.parametrize("end", ["mark_failed", "mark_refused"])
    def test_is_followed_by_the_next_request_of_the_same(self, queue: Metastore, end: str) -> None:
        getattr(queue, end)(taken(queue), "why")
        assert queue.compact(request()).accepted

    def test_keeps_others_from_asking_for_the_same(self, queue: Metastore) -> None:
        id = taken(queue)
        response = queue.compact(request(type=MINOR))
        assert (response.accepted, response.id, response.state) == (False, id, State.WORKING)
        assert response.message == f"Compaction is already scheduled with state='working' and id={id}"

    @pytest.mark.needs("describes compactions")
    def test_leaves_the_time_of_the_request_alone(self, queue: Metastore) -> None:
        id = asked(queue)
        enqueued = entry(queue, id).enqueued_ms
        assert enqueued is not None
        queue.find_next_compact("desk-1")
        queue.update_compactor_state(id, begin(queue), 0)
        assert entry(queue, id).enqueued_ms == enqueued
        queue.mark_compacted(id)
        assert entry(queue, id).enqueued_ms == enqueued
        other = taken(queue, "p", "p=1")
        before = entry(queue, other).enqueued_ms
        queue.mark_failed(other, "why")
        assert entry(queue, other).enqueued_ms == before


class TestPools:
    def test_have_their_own_workers(self, queue: Metastore) -> None:
        night, plain = asked(queue, "p", "p=1", pool="night"), asked(queue, "p", "p=2")
        assert queue.find_next_compact("desk-1", pool="day") is None
        [first, second] = (queue.find_next_compact("desk-1"), queue.find_next_compact("desk-2", pool="night"))
        assert (first and first.id, second and (second.id, second.pool)) == (plain, (night, "night"))

    def test_that_is_called_default_is_that_of_requests_without_any(self, queue: Metastore) -> None:
        id = asked(queue)
        assert queue.find_next_compact("desk-1", pool="night") is None
        found = queue.find_next_compact("desk-1", pool="default")
        assert found is not None
        assert found.id == id
        assert [one.id for one in queue.show_compactions(CompactionFilter(pool="default"))] == [id]

    @pytest.mark.needs("own clock", "own settings")
    def test_without_workers_are_served_by_the_others_after_a_while(
        self, queue: Metastore, open_store: OpenStore, clock: Clock
    ) -> None:
        id = asked(queue, pool="nihgt")
        session = open_store({"hive.compactor.worker.pool.timeout": "1h"})
        clock.pass_seconds(3600)
        assert session.find_next_compact("desk-1") is None
        clock.pass_seconds(1)
        assert queue.find_next_compact("desk-1") is None, "12 hours are the default"
        found = session.find_next_compact("desk-1")
        assert found is not None
        assert found.id == id


class TestAnEntryThatIsGivenBack:
    pytestmark = OURS

    def test_is_one_of_a_worker_that_is_silent(self, queue: Metastore, clock: Clock) -> None:
        old = taken(queue, "p", "p=1")
        clock.pass_seconds(0.2)
        young = taken(queue, "p", "p=2")
        assert queue.revoke_timed_out_workers(100) == 1
        after = entry(queue, old)
        assert (after.state, after.worker, after.started_ms) == (State.INITIATED, None, None)
        assert entry(queue, young).state == State.WORKING

    def test_is_one_of_a_host_that_is_started_anew(self, queue: Metastore) -> None:
        workers = ("fred-193892", "bob-193892", "fred-193893", "freddy-1", "fr_d-2")
        ids = []
        for number, worker in enumerate(workers):
            queue.create_table(table(f"t{number}"))
            ids.append(taken(queue, f"t{number}", worker=worker))
        assert queue.revoke_from_local_workers("fred") == 2
        assert [entry(queue, id).state for id in ids] == [
            State.INITIATED,
            State.WORKING,
            State.INITIATED,
            State.WORKING,
            State.WORKING,
        ]
        assert queue.revoke_from_local_workers("fr_d") == 1

    def test_is_taken_by_the_next_one(self, queue: Metastore, clock: Clock) -> None:
        id = taken(queue)
        queue.set_job_id(id, "job")
        clock.pass_seconds(10)
        queue.revoke_timed_out_workers(1000)
        found = queue.find_next_compact("desk-2")
        assert found is not None
        assert (found.id, found.worker, found.started_ms, found.job_id) == (id, "desk-2", clock.ms, None)

    def test_is_lost_to_the_worker_that_had_it(self, queue: Metastore, clock: Clock) -> None:
        id, txn_id = taken(queue, worker="desk-1"), begin(queue)
        clock.pass_seconds(10)
        queue.revoke_timed_out_workers(1000)
        with pytest.raises(CompactionError, match=f"Compaction {id} was taken from desk-1: it went back"):
            queue.mark_failed(id, "why", worker="desk-1")
        queue.find_next_compact("desk-2")
        calls: tuple[Callable[[], object], ...] = (
            lambda: queue.update_compactor_state(id, txn_id, 3, worker="desk-1"),
            lambda: queue.set_job_id(id, "job", worker="desk-1"),
            lambda: queue.mark_compacted(id, worker="desk-1"),
            lambda: queue.mark_failed(id, "why", worker="desk-1"),
            lambda: queue.mark_refused(id, "why", worker="desk-1"),
        )
        for call in calls:
            with pytest.raises(CompactionError, match=f"Compaction {id} was taken from desk-1: it belongs to desk-2"):
                call()
        assert entry(queue, id).state == State.WORKING
        queue.mark_compacted(id, worker="desk-2")

    def test_is_one_whose_transaction_was_aborted_after_its_workers_last_word(self, queue: Metastore) -> None:
        id = compacted(queue, commits=False)
        assert queue.revoke_timed_out_workers(1000) == 0, "its transaction is still open"
        txn_id = entry(queue, id).txn_id
        assert txn_id is not None
        queue.abort_txns([txn_id])
        assert queue.revoke_timed_out_workers(1000) == 1
        after = entry(queue, id)
        assert (after.state, after.txn_id, after.highest_write_id) == (State.INITIATED, None, None)


@OURS
class TestWhatWasReplaced:
    """The metrics of a worker: in the queue, and in the history."""

    METRICS = CompactionMetrics(files_before=12, bytes_before=5_000_000_000, files_after=2, bytes_after=70, rows=3)

    def test_is_not_known_before_the_worker_is_done(self, queue: Metastore) -> None:
        id = taken(queue)
        assert entry(queue, id).metrics is None

    def test_is_known_from_then_on(self, queue: Metastore) -> None:
        id = compacted(queue, metrics=self.METRICS)
        assert (entry(queue, id).state, entry(queue, id).metrics) == (State.READY_FOR_CLEANING, self.METRICS)
        queue.mark_cleaned(id)
        assert (entry(queue, id).state, entry(queue, id).metrics) == (State.SUCCEEDED, self.METRICS)

    def test_is_kept_when_its_files_are_not_removed(self, queue: Metastore) -> None:
        first, second = compacted(queue, metrics=self.METRICS), compacted(queue, "p", "p=1", metrics=self.METRICS)
        queue.mark_refused(first, "marked no_cleanup")
        queue.mark_failed(second, "no permission")
        assert [entry(queue, id).metrics for id in (first, second)] == [self.METRICS] * 2

    def test_is_forgotten_when_it_is_undone(self, queue: Metastore) -> None:
        first = compacted(queue, metrics=self.METRICS, commits=False)
        second = compacted(queue, "p", "p=1", metrics=self.METRICS, commits=False)
        queue.abort_txns([txn for id in (first, second) if (txn := entry(queue, id).txn_id) is not None])
        queue.mark_failed(first, "the disk is full")
        assert queue.revoke_timed_out_workers(1000) == 1
        assert [(entry(queue, id).state, entry(queue, id).metrics) for id in (first, second)] == [
            (State.FAILED, None),
            (State.INITIATED, None),
        ]


@OURS
@pytest.mark.parametrize("call", ["mark_compacted", "mark_failed", "mark_refused", "set_job_id"])
def test_what_is_not_in_the_queue_cannot_be_worked_on(queue: Metastore, call: str) -> None:
    id = taken(queue)
    queue.mark_failed(id, "why")
    more = () if call == "mark_compacted" else ("word",)
    with pytest.raises(CompactionError, match=f"No record with CQ_ID={id} found"):
        getattr(queue, call)(id, *more)
    assert states(queue) == [State.FAILED]


@OURS
def test_what_nobody_has_taken_cannot_be_done(queue: Metastore) -> None:
    id = asked(queue)
    with pytest.raises(CompactionError, match=f"Compaction {id} is initiated, and not working"):
        queue.mark_compacted(id)
    assert entry(queue, id).state == State.INITIATED


@OURS
@pytest.mark.parametrize(
    ("ends", "state"),
    [
        (lambda store, id: None, State.WORKING),
        (lambda store, id: store.mark_compacted(id), State.READY_FOR_CLEANING),
        (lambda store, id: store.mark_failed(id, "why"), State.FAILED),
    ],
)
def test_only_what_nobody_has_taken_can_be_taken_back(queue: Metastore, ends: object, state: State) -> None:
    id = taken(queue)
    ends(queue, id)  # type: ignore[operator]
    assert queue.abort_compactions([id, 4711, id]) == {
        id: f"Error while aborting compaction as compaction is in state-{state}",
        4711: "No Such Compaction Id Available",
    }
    assert entry(queue, id).state == state


@OURS
def test_what_covers_nothing_more_is_refused_until_something_was_written(queue: Metastore) -> None:
    """A compaction that waits for cleaning has done all that another one could."""
    committed(queue)
    id = compacted(queue)
    response = queue.compact(request(type=MAJOR))
    assert (response.accepted, response.id, response.state) == (False, id, State.READY_FOR_CLEANING)
    committed(queue)
    assert queue.compact(request()).accepted


def test_threads_never_get_the_same_entry(queue: Metastore) -> None:
    count, threads = 30, 6
    for number in range(count):
        queue.create_table(table(f"t{number}"))
        asked(queue, f"t{number}")
    start = threading.Barrier(threads)

    def work(number: int) -> list[int]:
        start.wait()
        found = []
        while (one := queue.find_next_compact(f"desk-{number}")) is not None:
            found.append(one.id)
        return found

    with ThreadPoolExecutor(threads) as pool:
        ids = [id for found in pool.map(work, range(threads)) for id in found]
    assert len(ids) == len(set(ids)) == count


class TestTheLatestThatIsDone:
    """Hive's ``getLatestCommittedCompactionInfo``."""

    def test_is_none_where_nothing_was_compacted(self, queue: Metastore) -> None:
        taken(queue)
        assert queue.latest_compactions("default", "t") == []
        assert queue.latest_compactions("default", "nowhere") == []

    def test_is_told_before_its_cleaning(self, queue: Metastore) -> None:
        id = compacted(queue)
        assert [one.id for one in queue.latest_compactions("default", "t")] == [id]

    @OURS
    def test_is_told_after_its_cleaning(self, queue: Metastore) -> None:
        id = compacted(queue)
        queue.mark_cleaned(id)
        assert [(one.id, one.state) for one in queue.latest_compactions("default", "t")] == [(id, State.SUCCEEDED)]
        queue.mark_failed(taken(queue), "why")
        assert [one.id for one in queue.latest_compactions("default", "t")] == [id]

    def test_is_told_by_partition_and_above_an_id(self, queue: Metastore) -> None:
        one, two = compacted(queue, "p", "p=1"), compacted(queue, "p", "p=2")
        assert {found.id for found in queue.latest_compactions("default", "p")} == {one, two}
        assert [found.id for found in queue.latest_compactions("default", "p", ["p=1", "p=3"])] == [one]
        assert [found.id for found in queue.latest_compactions("default", "p", after=one)] == [two]
