"""The worker: which directories a compaction writes, what is in them, and what it refuses (Hive: ``TestWorker``)."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from acidsql.compactor.worker import Worker
from acidsql.errors import MetastoreError, StorageError
from acidsql.format.names import MIN_LONG
from acidsql.fs import LocalFileSystem
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.model import CompactionRequest, TxnState
from acidsql.metastore.model import CompactionState as State
from tests.unit.compactor.world import MAJOR, MINOR, World, unversioned, versioned

REFUSED = "None of the compaction thresholds met, compaction request is refused!"


@pytest.fixture
def based(world: World) -> World:
    """A base, and two deltas above it."""
    world.table()
    world.insert(1, 2)
    world.insert(3)
    world.compact()
    world.clean()
    world.insert(4)
    world.insert(5)
    return world


def test_given_an_empty_queue_when_a_worker_looks_then_nothing_happens(world: World) -> None:
    world.table()
    assert world.worker.run_one() is None
    assert world.store.show_txns() == []


class TestMinor:
    def test_over_a_base_writes_one_delta_beside_what_is_there(self, based: World) -> None:
        before, names = based.content(), based.names()
        outcome = based.compact(MINOR)
        [entry, _] = based.entries()
        assert (outcome.state, entry.state, entry.highest_write_id) == (
            State.READY_FOR_CLEANING,
            State.READY_FOR_CLEANING,
            4,
        )
        assert based.names() == sorted([*names, versioned("delta_0000003_0000004", entry.txn_id or 0)])
        assert based.content() == before == [1, 2, 3, 4, 5]

    def test_of_deletes_and_inserts_writes_one_delta_of_each_with_the_same_range(self, based: World) -> None:
        based.delete(1, 4)
        based.compact(MINOR)
        based.clean()
        expected = ["base_0000002", "delete_delta_0000003_0000005", "delta_0000003_0000005"]
        assert unversioned(based.names()) == expected
        assert based.content() == [2, 3, 5]

    def test_without_a_base_writes_one_delta(self, world: World) -> None:
        world.table()
        world.stream("commit", "commit")
        world.stream("commit", "commit")
        world.compact(MINOR)
        world.clean()
        assert unversioned(world.names()) == ["delta_0000001_0000004"]
        assert world.content() == [1, 2, 3, 4]

    def test_of_a_partition_leaves_the_others_alone(self, world: World) -> None:
        world.table("t", "today", "tomorrow")
        for part in ("today", "tomorrow", "today", "tomorrow"):
            world.insert(1, part=part)
        world.compact(MINOR, part="today")
        world.clean()
        assert unversioned(world.names(part="today")) == ["delta_0000001_0000004"]
        assert world.names(part="tomorrow") == ["delta_0000002_0000002_0000", "delta_0000004_0000004_0000"]
        assert world.content(part="today") == [1, 1]

    def test_over_original_files_leaves_them(self, world: World) -> None:
        world.table()
        world.original(7, 8)
        world.insert(1)
        world.insert(2)
        world.compact(MINOR)
        world.clean()
        assert unversioned(world.names()) == ["000000_0", "delta_0000001_0000002"]
        assert world.content() == [1, 2, 7, 8]

    def test_with_an_open_transaction_in_the_middle_is_refused_where_one_delta_is_below_it(self, based: World) -> None:
        based.compact()
        based.clean()
        based.stream("commit", "commit")
        based.stream("open", "commit", "commit")
        based.stream("commit", "commit")
        names = based.names()
        outcome = based.compact(MINOR)
        assert (outcome.state, outcome.message) == (State.REFUSED, REFUSED)
        assert based.names() == names

    def test_leaves_out_what_was_aborted_inside_of_a_delta(self, based: World) -> None:
        based.stream("commit", "abort", "abort")
        based.stream("commit", "commit")
        before = based.content()
        based.compact(MINOR)
        based.clean()
        assert unversioned(based.names()) == ["base_0000002", "delta_0000003_0000009"]
        assert based.content() == before == [1, 2, 3, 4, 5, 5, 8, 9]

    def test_of_one_insert_and_its_delete_is_not_worth_it(self, world: World) -> None:
        world.table()
        world.insert(1, 2)
        world.delete(1)
        assert world.compact(MINOR).message == REFUSED


class TestMajor:
    def test_over_a_base_writes_the_next_base(self, based: World) -> None:
        rows = based.rows(based.snapshot())
        based.delete(1)
        names = based.names()
        based.compact()
        [entry, _] = based.entries()
        assert based.names() == sorted([*names, versioned("base_0000005", entry.txn_id or 0)])
        based.clean()
        assert unversioned(based.names()) == ["base_0000005"]
        assert based.rows(based.snapshot()) == {key: value for key, value in rows.items() if value != 1}

    def test_without_a_base_writes_one(self, world: World) -> None:
        world.table()
        world.stream("commit", "commit")
        world.stream("commit", "commit")
        world.compact()
        world.clean()
        assert unversioned(world.names()) == ["base_0000004"]
        assert world.content() == [1, 2, 3, 4]

    def test_of_many_deltas_needs_one_round_also_where_one_was_compacted_and_not_cleaned(self, world: World) -> None:
        world.table("t", "today")
        for number in range(3):
            world.insert(number, part="today")
        world.compact(MINOR, part="today")
        world.stream("commit", "commit", part="today")
        for number in range(20, 40):
            world.insert(number, part="today")
        before = world.content(part="today")
        world.compact(part="today")
        world.clean()
        world.clean()
        assert unversioned(world.names(part="today")) == ["base_0000025"]
        assert world.content(part="today") == before

    def test_of_a_partition_with_buckets_that_some_deltas_do_not_have_keeps_them_apart(self, world: World) -> None:
        world.table("t", "today")
        world.insert(1, part="today")
        world.insert(2, part="today", buckets=2)
        rows = world.rows(world.snapshot(), "today")
        world.compact(part="today")
        world.clean()
        [base] = world.path(part="today").glob("base_0000002_v*")
        assert sorted(p.name for p in base.glob("bucket_*")) == ["bucket_00000", "bucket_00001"]
        assert world.rows(world.snapshot(), "today") == rows
        assert sorted(rows.values()) == [1, 2, 2]

    def test_of_original_files_gives_their_rows_their_ids_for_good(self, world: World) -> None:
        world.table()
        world.original(7, 8)
        world.original(9, file="000000_0_copy_1")
        world.insert(1)
        world.delete(8)
        rows = world.rows(world.snapshot())
        world.compact()
        world.clean()
        assert unversioned(world.names()) == ["base_0000002"]
        assert world.rows(world.snapshot()) == rows
        assert sorted(rows.values()) == [1, 7, 9]

    def test_of_original_files_alone_writes_the_base_that_is_below_all_write_ids(self, world: World) -> None:
        world.table()
        world.original(7)
        world.compact()
        world.clean()
        assert unversioned(world.names()) == [f"base_{MIN_LONG}"]
        world.insert(1)
        assert world.content() == [1, 7]

    def test_goes_no_further_than_to_an_open_transaction(self, based: World) -> None:
        based.stream("commit", "commit")
        based.stream("open", "commit", "commit")
        based.stream("commit", "commit")
        before = based.content()
        based.compact()
        [entry, _] = based.entries()
        assert entry.highest_write_id == 6
        assert versioned("base_0000006", entry.txn_id or 0) in based.names()
        assert based.content() == before

    def test_leaves_out_what_was_aborted_also_at_the_end(self, based: World) -> None:
        based.stream("commit", "abort")
        based.insert(99, end="abort")
        before = based.content()
        based.compact()
        based.clean()
        assert unversioned(based.names()) == ["base_0000007"]
        assert based.content() == before == [1, 2, 3, 4, 5, 5]
        assert based.remembered() == set()

    def test_of_one_delta_beside_an_aborted_one_cleans_only(self, world: World) -> None:
        world.table()
        world.insert(1)
        world.insert(2, end="abort")
        assert world.compact().state == State.READY_FOR_CLEANING
        world.clean()
        assert world.names() == ["delta_0000001_0000001_0000"]
        assert (world.states(), world.remembered()) == ([State.SUCCEEDED], set())

    def test_of_one_delta_is_refused(self, world: World) -> None:
        world.table()
        world.insert(1)
        assert (world.compact().message, world.states()) == (REFUSED, [State.REFUSED])
        assert world.store.show_txns() == []

    def test_of_a_table_with_hidden_files_in_it_leaves_them_out_and_alone(self, based: World) -> None:
        for hidden in (".hive-staging_1/000000_0", "_tmp_space/000000_0"):
            path = based.path() / hidden
            path.parent.mkdir()
            path.write_bytes(b"not to be read")
        based.compact()
        based.clean()
        assert unversioned(based.names()) == ["base_0000004"]
        assert (based.path() / ".hive-staging_1" / "000000_0").exists()


class TestWhatIsGone:
    def test_a_dropped_table_takes_its_requests_with_it(self, based: World) -> None:
        based.ask()
        based.store.drop_table("default", "t")
        assert based.worker.run_one() is None

    def test_a_dropped_partition_takes_its_requests_with_it(self, world: World) -> None:
        world.table("t", "today")
        world.insert(1, part="today")
        world.ask(part="today")
        world.store.drop_partitions("default", "t", ["p=today"])
        assert world.worker.run_one() is None

    def test_a_table_that_is_not_transactional_any_more_is_refused(self, based: World) -> None:
        based.ask()
        table = based.store.get_table("default", "t")
        parameters = {k: v for k, v in table.parameters.items() if k != "transactional"}
        based.store.alter_table(replace(table, parameters=parameters))
        outcome = based.worker.run_one()
        assert outcome is not None
        assert outcome.state == State.REFUSED


class TestWhatGoesWrong:
    def test_an_error_is_told_by_the_entry_and_leaves_nothing_else(
        self, based: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        names, before = based.names(), based.content()

        def full(*_: object) -> None:
            raise StorageError("No space left on device")

        monkeypatch.setattr(LocalFileSystem, "rename", full)
        outcome = based.compact()
        [entry, _] = based.entries()
        assert (outcome.state, entry.state, entry.error) == (State.FAILED, State.FAILED, "No space left on device")
        assert [p.name for p in based.path().iterdir() if p.name.startswith(".")] == []
        assert (based.names(), based.content()) == (names, before)
        based.store.clean_empty_aborted_txns()
        based.clock.pass_seconds(10)
        based.store.clean_empty_aborted_txns()
        assert based.store.show_txns() == []
        assert based.store.show_locks() == []

    def test_an_abort_that_the_store_has_no_time_for_is_done_soon(
        self, based: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        abort, times, done = type(based.store).abort_txns, iter(range(2)), threading.Event()

        def busy(store: EmbeddedMetastore, *args: Any, **kwargs: Any) -> list[int]:
            if next(times, None) is not None:
                raise MetastoreError("the store is busy")
            aborted = abort(store, *args, **kwargs)
            done.set()
            return aborted

        def full(*_: object) -> None:
            raise StorageError("No space left on device")

        monkeypatch.setattr(LocalFileSystem, "rename", full)
        monkeypatch.setattr(type(based.store), "abort_txns", busy)
        assert based.compact().message == "No space left on device"
        assert done.wait(20)
        assert [t for t in based.store.show_txns() if t.state is TxnState.OPEN] == based.store.show_locks() == []

    def test_a_store_that_is_away_when_a_worker_asks_is_the_askers_affair(
        self, based: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def away(*_: object, **__: object) -> None:
            raise StorageError("away")

        based.ask()
        with monkeypatch.context() as patch:
            patch.setattr(type(based.store), "find_next_compact", away)
            with pytest.raises(StorageError):
                based.worker.run_one()
        assert based.states()[0] == State.INITIATED

    def test_who_was_taken_for_dead_publishes_nothing(self, based: World, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its transaction was ended while it wrote, and its request given to the next one."""
        names, before = based.names(), based.content()
        set_job_id = type(based.store).set_job_id

        def dies(*args: object, **kwargs: object) -> None:
            set_job_id(*args, **kwargs)  # type: ignore[arg-type]
            based.clock.pass_seconds(90_000)
            based.housekeeper.run()

        with monkeypatch.context() as patch:
            patch.setattr(type(based.store), "set_job_id", dies)
            outcome = based.compact()
        assert outcome.state == State.FAILED
        assert (based.names(), based.content(), based.states()[0]) == (names, before, State.INITIATED)
        again = Worker(based.context, "other-1").run_one()
        assert again is not None
        assert again.state == State.READY_FOR_CLEANING
        based.clean()
        assert unversioned(based.names()) == ["base_0000004"]
        assert based.content() == before

    def test_a_request_that_takes_too_long_goes_back_into_the_queue(self, based: World) -> None:
        based.ask()
        assert based.store.find_next_compact("nosuchhost-193892") is not None
        based.clock.pass_seconds(86_399)
        based.housekeeper.run()
        assert based.states()[0] == State.WORKING
        based.clock.pass_seconds(2)
        based.housekeeper.run()
        assert (based.states()[0], based.entries()[0].worker) == (State.INITIATED, None)


def test_given_pools_when_a_worker_of_one_looks_then_it_takes_requests_of_that_pool_only(based: World) -> None:
    based.store.compact(CompactionRequest("default", "t", None, MAJOR, "ann", "desk", pool="night"))
    assert based.worker.run_one() is None
    outcome = Worker(based.context, "desk-2", "night").run_one()
    assert outcome is not None
    assert outcome.state == State.READY_FOR_CLEANING


@pytest.mark.parametrize("type", [MINOR, MAJOR])
def test_in_the_layout_of_hive_3_names_carry_no_transaction_and_a_base_says_who_made_it(
    tmp_path: Path, type: object
) -> None:
    world = World(tmp_path, {"acidsql.compactor.layout": "hive3"})
    world.table()
    world.insert(1)
    world.insert(2)
    world.compact(MINOR if type is MINOR else MAJOR)
    world.clean()
    expected = "delta_0000001_0000002" if type is MINOR else "base_0000002"
    assert world.names() == [expected]
    assert (world.path() / expected / "_metadata_acid").exists() is (type is MAJOR)
    assert world.content() == [1, 2]
    world.close()
