"""Several workers on one queue, in threads and in processes; and two that got the same request one after the other."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from acidsql.compactor.worker import Outcome, Worker
from acidsql.errors import StorageError
from acidsql.fs import LocalFileSystem
from acidsql.metastore.model import CompactionState as State
from tests.unit.compactor.world import World, rows_of, unversioned

PARTS = [f"p{i}" for i in range(4)]
WORK = """
import sys
from pathlib import Path
from acidsql.compactor.worker import Worker
from tests.unit.compactor.world import World

world = World(Path(sys.argv[1]), {"acidsql.compactor.layout": sys.argv[2]})
worker = Worker(world.context, sys.argv[3])
while (outcome := worker.run_one()) is not None:
    assert outcome.state.is_done, outcome
    print(outcome.entry.id)
world.close()
"""


@pytest.fixture(params=["hive3", "hive4"])
def busy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """Four partitions that wait for a compaction."""
    world = World(tmp_path, {"acidsql.compactor.layout": request.param})
    world.table("t", *PARTS)
    for part in PARTS:
        world.insert(1, 2, part=part)
        world.insert(3, part=part)
        world.delete(2, part=part)
        world.ask(part=part)
    yield world
    world.close()


def base_of(world: World) -> str:
    """The base of the first partition: named after its own last write id, or as in Hive after the table's."""
    return {"hive3": "base_0000003", "hive4": "base_0000012"}[world.values["acidsql.compactor.layout"]]


def assert_all_are_done_once(world: World, ids: list[int]) -> None:
    assert sorted(ids) == sorted(entry.id for entry in world.entries())
    world.clock.pass_seconds(600)  # the clocks of other processes went on
    world.clean()
    assert set(world.states()) == {State.SUCCEEDED}
    assert [world.content(part=part) for part in PARTS] == [[1, 3]] * len(PARTS)
    assert all(len(world.names(part=part)) == 1 for part in PARTS)
    assert world.store.show_locks() == []


def test_given_three_threads_at_one_queue_when_they_work_it_off_then_each_request_is_done_once(busy: World) -> None:
    def work(number: int) -> list[Outcome]:
        worker, done = Worker(busy.context, f"desk-{number}"), []
        while (outcome := worker.run_one()) is not None:
            done.append(outcome)
        return done

    with ThreadPoolExecutor(3) as pool:
        outcomes = [one for done in pool.map(work, range(3)) for one in done]
    assert {one.state for one in outcomes} == {State.READY_FOR_CLEANING}
    assert_all_are_done_once(busy, [one.entry.id for one in outcomes])


def test_given_two_processes_at_one_queue_when_they_work_it_off_then_each_request_is_done_once(busy: World) -> None:
    layout = busy.values["acidsql.compactor.layout"]
    command = [sys.executable, "-c", WORK, str(busy.root), layout]
    working = [subprocess.Popen([*command, f"desk-{i}"], stdout=subprocess.PIPE, text=True) for i in range(2)]
    ids = [int(line) for process in working for line in process.communicate(timeout=120)[0].split()]
    assert [process.returncode for process in working] == [0, 0]
    assert_all_are_done_once(busy, ids)


class TestTwoWithTheSameRequest:
    """The first was taken for dead and given up, and goes on all the same."""

    def test_the_second_one_finishes_between_two_steps_of_the_first_and_nothing_is_lost(
        self, busy: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The first one has seen that nothing is at its place yet; then the other is faster."""
        part = PARTS[0]
        exists = LocalFileSystem.exists
        outcomes: list[Outcome | None] = []
        reader = busy.reader(part=part)

        def meanwhile(fs: LocalFileSystem, path: str) -> bool:
            answer = exists(fs, path)
            if path.rpartition("/")[2].startswith("base_") and not outcomes:
                outcomes.append(None)
                busy.store.revoke_from_local_workers("first")
                outcomes[0] = Worker(busy.context, "second-1").run_one()
            return answer

        with monkeypatch.context() as patch:
            patch.setattr(LocalFileSystem, "exists", meanwhile)
            first = Worker(busy.context, "first-1").run_one()
        [second] = outcomes
        assert first is not None
        assert second is not None
        assert (first.state, second.state) == (State.FAILED, State.READY_FOR_CLEANING)
        assert {n for n in unversioned(busy.names(part=part)) if n.startswith("base")} == {base_of(busy)}
        assert sorted(rows_of(reader.states[0], reader.write_ids).values()) == [1, 3]
        assert busy.content(part=part) == [1, 3]
        busy.end(reader.txn_id)
        busy.clean()
        assert unversioned(busy.names(part=part)) == [base_of(busy)]
        assert busy.content(part=part) == [1, 3]

    def test_two_cleaners_at_once_take_the_same_entry_and_the_slower_one_goes_on_with_the_next(
        self, busy: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        while busy.worker.run_one() is not None:
            pass
        delete = LocalFileSystem.delete
        begun: list[str] = []

        def meanwhile(fs: LocalFileSystem, path: str) -> None:
            if not begun:
                begun.append(path)
                busy.clean()
                raise StorageError("It was there a moment ago")
            delete(fs, path)

        with monkeypatch.context() as patch:
            patch.setattr(LocalFileSystem, "delete", meanwhile)
            busy.clean()
        assert_all_are_done_once(busy, [entry.id for entry in busy.entries()])

    def test_a_directory_that_a_reader_may_have_chosen_stays_when_its_rename_fails_after_it_was_done(
        self, busy: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        part, rename, readers = PARTS[0], LocalFileSystem.rename, []

        def done_and_lost(fs: LocalFileSystem, source: str, target: str) -> None:
            rename(fs, source, target)
            readers.append(busy.reader(part=part))
            raise StorageError("The connection was lost")

        with monkeypatch.context() as patch:
            patch.setattr(LocalFileSystem, "rename", done_and_lost)
            outcome = busy.worker.run_one()
        assert outcome is not None
        assert outcome.state == State.FAILED
        [reader] = readers
        assert sorted(rows_of(reader.states[0], reader.write_ids).values()) == [1, 3]
        busy.end(reader.txn_id)
        busy.ask(part=part)
        while busy.worker.run_one() is not None:
            pass
        busy.clean()
        assert unversioned(busy.names(part=part)) == [base_of(busy)]
        assert busy.content(part=part) == [1, 3]


def test_given_an_object_store_when_a_base_is_to_be_seen_from_its_rename_on_then_it_is_named_after_its_transaction(
    busy: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be copied file by file: a reader would find half of it."""
    monkeypatch.setattr("acidsql.fs.renames_in_one_step", lambda _: False)
    busy.worker.run_one()
    [entry] = [one for one in busy.entries() if one.state == State.READY_FOR_CLEANING]
    assert f"base_0000012_v{entry.txn_id:07d}" in busy.names(part=PARTS[0])
