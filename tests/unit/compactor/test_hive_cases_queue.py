"""Hive's cases about the queue, that no other test here is about."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import func, select

import acidsql
from acidsql.compactor.initiator import Initiator
from acidsql.compactor.worker import Worker
from acidsql.errors import StorageError
from acidsql.fs import LocalFileSystem
from acidsql.metastore.embedded.schema import TXN_TO_WRITE_ID
from acidsql.metastore.model import CompactionState as State
from acidsql.metastore.model import LockComponent, LockRequest, LockState, LockType, Operation
from tests.unit.compactor.world import MAJOR, MINOR, World

VERSION = f"acidsql {acidsql.__version__}"


class TestWhoDidIt:
    """TestWorker.testWorkerAndInitiatorVersion, TestInitiator.testInitiatorHostAndVersion."""

    def test_is_remembered_with_the_version_of_both_also_in_the_history(self, world: World) -> None:
        world.table()
        for number in range(11):
            world.insert(number)
        Initiator(world.context, "desk-7").run()
        [entry] = world.entries()
        assert (entry.initiator, entry.initiator_version, entry.worker_version) == ("desk-7", VERSION, None)
        world.worker.run_one()
        for state in (State.READY_FOR_CLEANING, State.SUCCEEDED):
            [entry] = world.entries()
            assert entry.state == state
            assert (entry.initiator, entry.initiator_version, entry.worker_version) == ("desk-7", VERSION, VERSION)
            world.clean()

    def test_of_what_was_refused_or_could_not_be_asked_for_is_remembered(self, world: World) -> None:
        world.table()
        world.insert(1)
        world.compact()
        [refused] = world.entries()
        assert (refused.state, refused.worker_version, refused.initiator_version) == (State.REFUSED, VERSION, None)
        world.path().rename(world.root / "away")
        world.path().write_bytes(b"no directory")
        world.initiate()
        [attempt, _] = world.entries()
        assert (attempt.state, attempt.initiator_version) == (State.DID_NOT_INITIATE, VERSION)

    def test_of_a_request_that_was_given_back_is_that_of_the_next_worker(self, world: World) -> None:
        world.table()
        world.ask()
        world.store.find_next_compact("gone-1", worker_version="4.0.1")
        [entry] = world.entries()
        assert (entry.worker, entry.worker_version) == ("gone-1", "4.0.1")
        world.store.revoke_from_local_workers("gone")
        [entry] = world.entries()
        assert (entry.worker, entry.worker_version) == (None, None)
        Worker(world.context, "desk-2").run_one()
        [entry] = world.entries()
        assert entry.worker_version == VERSION


class TestFailuresInARow:
    def test_keep_the_initiator_away_until_one_that_a_user_asks_for_succeeds(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """TestTxnCommands2: testInitiatorWithMultipleFailedCompactions."""
        world.table()
        for number in range(11):
            world.insert(number)

        def full(*_: object) -> None:
            raise StorageError("No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(LocalFileSystem, "rename", full)
            for _ in range(2):
                world.compact(MINOR)
            assert world.initiate() == []
            assert Counter(world.states()) == {State.FAILED: 2, State.DID_NOT_INITIATE: 1}
            world.store.purge_compaction_history()
            assert Counter(world.states()) == {State.FAILED: 2, State.DID_NOT_INITIATE: 1}
            world.compact(MAJOR)
            world.compact(MINOR)
            for _ in range(2):
                world.initiate()
            assert Counter(world.states()) == {State.FAILED: 4, State.DID_NOT_INITIATE: 3}
            world.store.purge_compaction_history()
            assert Counter(world.states()) == {State.FAILED: 3, State.DID_NOT_INITIATE: 2}
        world.compact(MINOR)
        assert world.states()[0] == State.READY_FOR_CLEANING
        world.clean()
        world.store.purge_compaction_history()
        assert Counter(world.states()) == {State.FAILED: 3, State.DID_NOT_INITIATE: 2, State.SUCCEEDED: 1}
        assert world.content() == list(range(11))

    def test_leave_nothing_of_an_aborted_compaction_for_the_next_one_to_meet(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """TestTxnCommands3: testCompactionAbort, testMajorCompactionAbortLeftoverFiles, testMinor…: Hive forgets what
        the worker did with the next compaction; here nothing is left to know of."""
        world.table()
        world.insert(1)
        world.insert(2)
        world.delete(1)
        names, rename = world.names(), LocalFileSystem.rename
        seen: list[tuple[int, int]] = []

        def left_over() -> list[Path]:
            return [p for p in world.path().iterdir() if p.name not in names]

        for type_, count, is_done in [(MINOR, 2, False), (MINOR, 2, True), (MAJOR, 1, False), (MAJOR, 1, True)]:
            calls: list[str] = []

            def fails_the_last(
                fs: LocalFileSystem,
                source: str,
                target: str,
                calls: list[str] = calls,
                count: int = count,
                is_done: bool = is_done,
            ) -> None:
                calls.append(target)
                if len(calls) < count or is_done:
                    rename(fs, source, target)
                if len(calls) == count:
                    hidden = [p for p in left_over() if p.name[0] in "._"]
                    seen.append((len(left_over()) - len(hidden), len(hidden)))
                    raise StorageError("Will cause it to fail after it has made its directories")

            with monkeypatch.context() as patch:
                patch.setattr(LocalFileSystem, "rename", fails_the_last)
                assert world.compact(type_).state == State.FAILED
            assert left_over() == []
            assert world.store.show_locks() == []
            assert world.store.aborted_compactions() == []
        assert seen == [(1, 1), (2, 1), (0, 1), (1, 1)], "directories at their places, and hidden ones"
        world.clean()
        assert (world.names(), world.content()) == (names, [2])
        assert world.compact(MINOR).state == State.READY_FOR_CLEANING
        world.clean()
        assert world.states() == [State.SUCCEEDED, *[State.FAILED] * 4]
        assert world.content() == [2]


def test_given_an_insert_only_table_with_a_base_when_the_initiator_looks_then_a_minor_compaction_is_due(
    world: World,
) -> None:
    """TestTxnCommands2: testInitiatorWithMinorCompactionForInsertOnlyTable."""
    world.table(transactional_properties="insert_only")
    world.overwrite(*range(1000))
    for number in range(11):
        world.insert(number)
    world.settings.set("hive.compactor.delta.pct.threshold", "100")
    assert world.initiate() == [("t", None, "MINOR")]


def test_given_committed_aborted_and_open_transactions_when_all_is_cleaned_then_no_write_id_is_remembered(
    world: World,
) -> None:
    """TestTxnCommands2: testCleanerForTxnToWriteId."""

    def remembered() -> int:
        world.store.clean_empty_aborted_txns()
        world.store.prune_txn_to_write_id()
        with world.store._store.read() as db:
            return int(db.execute(select(func.count()).select_from(TXN_TO_WRITE_ID)).scalar_one())

    world.table()
    for number in range(3):
        world.insert(number)
    world.compact()
    world.clean()
    assert remembered() == 0
    world.insert(4, end="abort")
    reader = world.reader()
    world.insert(5, end="abort")
    world.insert(6)
    assert remembered() == 3
    world.compact()
    world.clean()
    assert remembered() == 3
    world.end(reader.txn_id)
    later = world.begin()
    world.clean()
    world.clock.pass_seconds(10)
    assert remembered() == 0
    assert world.content() == [0, 1, 2, 6]
    world.end(later)


class TestWhatHappensWhileAWorkerWrites:
    """TestTxnCommands2: test{Drop,Truncate}{Table,Partition}AndCompactionConcurrent."""

    @pytest.mark.parametrize("part", [None, "test"])
    def test_a_drop_waits_for_it_and_takes_its_entry_along(
        self, world: World, monkeypatch: pytest.MonkeyPatch, part: str | None
    ) -> None:
        world.table("t", *([part] if part else []))
        world.insert(1, part=part)
        world.insert(2, part=part)
        place = None if part is None else f"p={part}"
        exclusive = LockComponent(LockType.EXCLUSIVE, "default", "t", place, Operation.NO_TXN)
        dropper = world.begin()
        asked = []
        set_job_id = type(world.store).set_job_id

        def meets_a_drop(*args: object, **kwargs: object) -> None:
            set_job_id(*args, **kwargs)  # type: ignore[arg-type]
            asked.append(world.store.lock(LockRequest((exclusive,), dropper, "ann", "desk", "test")))

        monkeypatch.setattr(type(world.store), "set_job_id", meets_a_drop)
        assert world.compact(part=part).state == State.READY_FOR_CLEANING
        [lock] = asked
        assert lock.state is LockState.WAITING
        assert world.store.check_lock(lock.lock_id).state is LockState.ACQUIRED
        if part is None:
            world.store.drop_table("default", "t")
        else:
            world.store.drop_partitions("default", "t", ["p=test"])
        world.end(dropper)
        assert world.entries() == []
        world.clean()
        assert [t for t in world.store.show_txns() if t.state.value == "o"] == []

    @pytest.mark.parametrize("type_", [MINOR, MAJOR])
    @pytest.mark.parametrize("part", [None, "test"])
    def test_a_truncate_hides_what_it_makes(
        self, world: World, monkeypatch: pytest.MonkeyPatch, part: str | None, type_: object
    ) -> None:
        world.table("t", *([part] if part else []))
        world.insert(1, part=part)
        world.insert(2, part=part)
        set_job_id = type(world.store).set_job_id

        def meets_a_truncate(*args: object, **kwargs: object) -> None:
            set_job_id(*args, **kwargs)  # type: ignore[arg-type]
            world.overwrite(part=part)

        with monkeypatch.context() as patch:
            patch.setattr(type(world.store), "set_job_id", meets_a_truncate)
            assert world.compact(MINOR if type_ is MINOR else MAJOR, part=part).state == State.READY_FOR_CLEANING
        assert world.content(part=part) == []
        world.clean()
        assert world.content(part=part) == []
        world.compact(part=part)
        world.clean()
        assert (world.names(part=part), world.content(part=part)) == (["base_0000003"], [])
