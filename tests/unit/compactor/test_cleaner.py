"""The cleaner after compactions: what is gone, what stays, and when (Hive: ``TestCleaner``)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from acidsql.errors import StorageError
from acidsql.fs import LocalFileSystem
from acidsql.metastore.model import CompactionRequest, TxnType
from acidsql.metastore.model import CompactionState as State
from tests.unit.compactor.world import MAJOR, MINOR, World, unversioned

READY, DONE = State.READY_FOR_CLEANING, State.SUCCEEDED


@pytest.fixture
def based(world: World) -> World:
    """A base of two write ids, and two deltas above it; one compaction in the history."""
    world.table()
    fill(world)
    return world


def fill(world: World, name: str = "t", part: str | None = None) -> None:
    world.insert(1, name=name, part=part)
    world.insert(2, name=name, part=part)
    world.compact(name=name, part=part)
    world.clean()
    world.insert(3, name=name, part=part)
    world.insert(4, name=name, part=part)


Seen = TypeVar("Seen")


def at_each(world: World, monkeypatch: pytest.MonkeyPatch, look: Callable[[], Seen]) -> list[Seen]:
    """What ``look`` returns whenever the cleaner has removed the files of a compaction, and marks it."""
    seen: list[Seen] = []
    mark_cleaned = type(world.store).mark_cleaned

    def noted(*args: object, **kwargs: object) -> None:
        seen.append(look())
        mark_cleaned(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(type(world.store), "mark_cleaned", noted)
    return seen


@pytest.fixture
def wall(world: World) -> None:
    """The cleaner's own clock is the store's."""
    world.context.clock = lambda: world.clock.ms / 1000


def test_given_nothing_in_the_queue_when_it_runs_then_nothing_happens(world: World) -> None:
    assert world.clean() == 0
    world.table()
    world.insert(1)
    assert world.clean() == 0
    assert world.names() == ["delta_0000001_0000001_0000"]


class TestAfterAMajorCompaction:
    def test_of_a_table_the_base_is_left(self, based: World) -> None:
        before = based.content()
        based.compact()
        assert based.clean() == 1
        assert unversioned(based.names()) == ["base_0000004"]
        assert (based.content(), based.states()) == (before, [DONE, DONE])

    def test_of_a_table_that_was_overwritten_the_base_is_left(self, based: World) -> None:
        based.overwrite(8)
        based.insert(9)
        based.compact()
        based.clean()
        assert unversioned(based.names()) == ["base_0000006"]
        assert based.content() == [8, 9]

    def test_nothing_goes_while_one_reads_who_began_before_the_compaction_was_committed(
        self, based: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        begun = []
        mark_compacted = type(based.store).mark_compacted

        def meanwhile(*args: object, **kwargs: object) -> None:
            mark_compacted(*args, **kwargs)  # type: ignore[arg-type]
            begun.append(based.reader())

        names = based.names()
        with monkeypatch.context() as patch:
            patch.setattr(type(based.store), "mark_compacted", meanwhile)
            based.compact()
        [reader] = begun
        assert (based.clean(), based.states()[0]) == (0, READY)
        assert set(names) < set(based.names())
        assert sorted(based.rows(reader).values()) == [1, 2, 3, 4]
        based.end(reader.txn_id)
        assert (based.clean(), based.states()[0]) == (1, DONE)
        assert unversioned(based.names()) == ["base_0000004"]

    def test_one_who_reads_since_then_keeps_nothing_from_going(self, based: World) -> None:
        based.compact()
        reader = based.reader()
        assert based.clean() == 1
        assert sorted(based.rows(reader).values()) == [1, 2, 3, 4]

    def test_of_a_partition_the_base_is_left_with_or_without_one_before(self, world: World) -> None:
        world.table("t", "today", "new", "other")
        fill(world, part="today")
        for part in ("new", "new", "other", "other"):
            world.insert(1, part=part)
        others = world.names(part="other")
        world.compact(part="today")
        world.compact(part="new")
        world.clean()
        assert [unversioned(world.names(part=p)) for p in ("today", "new")] == [["base_0000008"], ["base_0000008"]]
        assert world.names(part="other") == others

    def test_what_was_written_since_stays(self, based: World) -> None:
        based.compact()
        based.insert(5)
        based.overwrite(6)
        based.clean()
        names = ["base_0000004", "base_0000006", "delta_0000005_0000005_0000"]
        assert unversioned(based.names()) == names
        assert based.content() == [6]

    def test_of_one_base_alone_there_is_nothing_to_remove(self, world: World) -> None:
        world.table()
        world.overwrite(1)
        assert world.compact().state == State.REFUSED
        world.clean()
        assert world.names() == ["base_0000001"]

    def test_a_second_request_for_the_same_waits_for_the_cleaner(self, based: World) -> None:
        based.compact()
        id = based.entries()[0].id
        answer = based.store.compact(CompactionRequest("default", "t", None, MAJOR, "ann", "desk"))
        assert (answer.accepted, answer.id) == (False, id)
        assert answer.message == f"Compaction is already scheduled with state='ready for cleaning' and id={id}"
        based.clean()
        assert unversioned(based.names()) == ["base_0000004"]

    @pytest.mark.parametrize("has_base", [True, False])
    def test_of_nothing_but_what_was_aborted_that_is_removed(self, world: World, has_base: bool) -> None:
        world.table()
        if has_base:
            world.overwrite(1)
        else:
            world.insert(1)
        names = world.names()
        world.insert(2, end="abort")
        world.insert(3, end="abort")
        world.compact()
        assert world.states() == [READY]
        world.clean()
        assert (world.names(), world.states(), world.remembered()) == (names, [DONE], set())


class TestAfterAMinorCompaction:
    def test_of_a_table_base_and_delta_are_left(self, based: World) -> None:
        based.compact(MINOR)
        based.clean()
        assert unversioned(based.names()) == ["base_0000002", "delta_0000003_0000004"]
        assert based.content() == [1, 2, 3, 4]

    def test_of_ten_partitions_base_and_delta_of_each_are_left(self, world: World) -> None:
        parts = [f"today{i}" for i in range(10)]
        world.table("t", *parts)
        for part in parts:
            fill(world, part=part)
        for part in parts:
            world.compact(MINOR, part=part)
        assert world.clean() == 10
        for part in parts:
            assert [n.partition("_0")[0] for n in world.names(part=part)] == ["base", "delta"]
            assert world.content(part=part) == [1, 2, 3, 4]

    def test_a_reader_from_before_keeps_all_and_after_it_one_round_cleans_both(self, world: World) -> None:
        world.table("t", "today")
        fill(world, part="today")
        reader = world.reader(part="today")
        world.compact(MINOR, part="today")
        assert (world.clean(), len(world.names(part="today"))) == (0, 4)
        world.insert(5, part="today")
        world.insert(6, part="today")
        world.compact(part="today")
        assert (world.clean(), len(world.names(part="today"))) == (0, 7)
        assert world.states() == [READY, READY, DONE]
        assert sorted(world.rows(reader, "today").values()) == [1, 2, 3, 4]
        world.end(reader.txn_id)
        assert world.clean() == 2
        assert unversioned(world.names(part="today")) == ["base_0000006"]
        assert world.states() == [DONE] * 3

    def test_two_compactions_are_cleaned_in_one_round_the_lower_one_first_and_only_up_to_its_own_write_id(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world.table("t", "today")
        fill(world, part="today")
        world.compact(MINOR, part="today")
        world.insert(5, part="today")
        world.insert(6, part="today")
        world.compact(MINOR, part="today")
        left = at_each(world, monkeypatch, lambda: unversioned(world.names(part="today")))
        assert world.clean() == 2
        assert world.states() == [DONE] * 3
        deltas = ["delta_0000003_0000004", "delta_0000003_0000006"]
        written_since = ["delta_0000005_0000005_0000", "delta_0000006_0000006_0000"]
        assert left == [
            ["base_0000002", *deltas, *written_since],
            ["base_0000002", deltas[-1]],
        ]

    def test_of_more_compactions_than_are_fetched_at_once_one_round_cleans_all(self, world: World) -> None:
        world.settings.set("hive.compactor.fetch.size", "2")
        tables = ["t", "u", "v"]
        for name in tables:
            world.table(name)
        for number in range(1, 9):
            for name in tables:
                world.insert(number, name=name)
                if number % 2 == 0:
                    world.compact(MINOR, name=name)
        assert world.clean() == 12
        for name in tables:
            assert unversioned(world.names(name)) == ["delta_0000001_0000008"]
            assert world.content(name) == list(range(1, 9))

    def test_of_those_that_cannot_be_cleaned_each_is_tried_once_in_a_round(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world.table()
        for number in range(1, 5):
            world.insert(number)
            if number % 2 == 0:
                world.compact(MINOR)

        def fails(*_: object, **__: object) -> None:
            raise StorageError("no one may remove anything here")

        monkeypatch.setattr(LocalFileSystem, "delete", fails)
        assert world.clean() == 0
        assert [(one.state, one.retries) for one in world.entries()] == [(READY, 1), (READY, 1)]
        assert world.content() == [1, 2, 3, 4]

    def test_once_it_is_to_stop_no_further_one_is_cleaned(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        world.table()
        for number in range(1, 7):
            world.insert(number)
            if number % 2 == 0:
                world.compact(MINOR)
        stop = threading.Event()
        at_each(world, monkeypatch, stop.set)
        assert world.cleaner.run(stop) == 1
        assert world.states() == [READY, READY, DONE]

    def test_of_two_workers_at_once_the_later_delta_is_left(self, based: World) -> None:
        """As after a worker that was given up and finished all the same."""
        based.compact(MINOR)
        [done, _] = based.entries()
        txn_id = based.begin(TxnType.COMPACTION)
        [made] = based.path().glob("delta_*_v*")
        LocalFileSystem().rename(str(made), str(made).replace(f"{done.txn_id:07d}", f"{txn_id:07d}"))
        based.end(txn_id)
        based.clean()
        assert unversioned(based.names()) == ["base_0000002", "delta_0000003_0000004"]
        assert based.content() == [1, 2, 3, 4]


class TestTheWatermark:
    def test_is_honoured_with_an_open_writer_and_forgotten_write_ids(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Three compactions wait; the store has forgotten whose the write ids are; a writer is open."""
        world.table()
        for _ in range(3):
            for i in range(3):
                world.insert(i)
            world.compact()
        world.store.prune_txn_to_write_id()
        txn_id = world.begin()
        assert world.write_id(txn_id) == 10
        deltas = {i: f"delta_{i:07d}_{i:07d}_0000" for i in range(1, 10)}
        assert set(deltas.values()) < set(world.names())
        seen = at_each(world, monkeypatch, lambda: (world.names(), world.content()))
        assert world.clean() == 3
        for number, (names, content) in enumerate(seen, start=1):
            assert [i for i, name in deltas.items() if name in names] == list(range(3 * number + 1, 10))
            assert [n for n in unversioned(names) if n[0] == "b"] == [f"base_{3 * i:07d}" for i in range(number, 4)]
            assert content == [0, 0, 0, 1, 1, 1, 2, 2, 2]
        assert world.states() == [DONE] * 3

    def test_keeps_an_aborted_overwrite_above_it_until_that_is_cleaned_for_itself(self, world: World) -> None:
        world.table()
        for i in range(3):
            world.insert(i)
        world.compact()
        reader = world.reader()
        world.overwrite(9, end="abort")
        world.clean()
        assert unversioned(world.names()) == ["base_0000003", "base_0000004"]
        assert world.remembered() == {4}
        world.end(reader.txn_id)
        world.clean()
        assert unversioned(world.names()) == ["base_0000003"]
        assert (world.remembered(), world.content()) == (set(), [0, 1, 2])

    def test_of_one_from_before_the_first_base_leaves_all_to_the_one_that_made_it(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Below it there is no base that the lower one's view could begin with: Hive's 10327 to a reader."""
        world.table()
        for i in range(2):
            world.insert(i)
        world.stream("commit", "abort")
        reader = world.reader()
        world.compact(MINOR)
        world.insert(5)
        world.compact()
        world.end(reader.txn_id)
        before = world.names()
        seen = at_each(world, monkeypatch, lambda: (world.names(), world.remembered()))
        assert (world.clean(), world.states()) == (2, [DONE, DONE])
        assert seen[0] == (before, {4})
        assert unversioned(world.names()) == ["base_0000005"]
        assert (world.content(), world.remembered()) == ([0, 1, 3, 5], set())


class TestAfterADrop:
    def test_of_the_table_nothing_is_left_to_clean(self, based: World) -> None:
        based.compact(MINOR)
        based.store.drop_table("default", "t")
        assert based.clean() == 0
        assert based.states() == []

    def test_of_the_partition_nothing_is_left_to_clean(self, world: World) -> None:
        world.table("t", "today")
        fill(world, part="today")
        world.compact(MINOR, part="today")
        world.store.drop_partitions("default", "t", ["p=today"])
        assert world.clean() == 0
        assert [e for e in world.entries() if e.state == READY] == []


class TestWithRetention:
    @pytest.fixture(autouse=True)
    def delayed(self, world: World) -> None:
        world.settings.set("hive.compactor.delayed.cleanup.enabled", "true")
        world.settings.set("hive.compactor.cleaner.retention.time.seconds", "5s")

    @pytest.mark.parametrize(("type", "left"), [(MAJOR, 1), (MINOR, 2)])
    def test_the_files_stay_for_its_time(self, world: World, type: object, left: int) -> None:
        world.table("t", "today")
        world.settings.set("hive.compactor.delayed.cleanup.enabled", "false")
        fill(world, part="today")
        world.settings.set("hive.compactor.delayed.cleanup.enabled", "true")
        world.compact(MAJOR if type is MAJOR else MINOR, part="today")
        assert (world.clean(), world.states()[0]) == (0, READY)
        world.clock.pass_seconds(5)
        assert (world.clean(), world.states()[0]) == (1, DONE)
        assert len(world.names(part="today")) == left

    def test_a_minor_compaction_is_cleaned_and_a_later_major_one_waits(self, world: World) -> None:
        world.table()
        world.overwrite(1)
        world.insert(2)
        world.insert(3)
        world.compact(MINOR)
        world.insert(4)
        world.clock.pass_seconds(5)
        world.compact()
        assert world.clean() == 1
        assert world.states() == [READY, DONE]
        names = ["base_0000001", "base_0000004", "delta_0000002_0000003", "delta_0000004_0000004_0000"]
        assert unversioned(world.names()) == names
        world.clock.pass_seconds(5)
        assert world.clean() == 1
        assert unversioned(world.names()) == ["base_0000004"]


class TestAfterAnError:
    @pytest.mark.usefixtures("wall")
    @pytest.mark.parametrize("delayed", ["true", "false"])
    def test_it_tries_again_after_a_pause_that_doubles_and_gives_up_in_the_end(
        self, based: World, monkeypatch: pytest.MonkeyPatch, delayed: str
    ) -> None:
        based.settings.set("hive.compactor.delayed.cleanup.enabled", delayed)
        based.settings.set("hive.compactor.cleaner.retention.time.seconds", "2s")
        based.settings.set("hive.compactor.cleaner.retry.maxattempts", "3")
        based.settings.set("hive.compactor.cleaner.retry.retention.time", "10s")

        def never(*_: object, **__: object) -> None:
            raise StorageError("No cleanup here!")

        monkeypatch.setattr(type(based.store), "mark_cleaned", never)
        based.compact()
        based.clock.pass_seconds(2)
        for tries, pause in enumerate((10, 20, 40), start=1):
            based.clean()
            [entry, _] = based.entries()
            assert (entry.state, entry.error, entry.retries) == (READY, "No cleanup here!", tries)
            based.clock.pass_seconds(pause - 1)
            based.clean()
            assert based.entries()[0].retries == tries
            based.clock.pass_seconds(1)
        based.clean()
        [entry, _] = based.entries()
        assert (entry.state, entry.error) == (State.FAILED, "No cleanup here!")

    @pytest.mark.usefixtures("wall")
    def test_of_one_file_the_rest_goes_and_that_one_in_the_next_round(
        self, based: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        delete = LocalFileSystem.delete

        def stuck(fs: LocalFileSystem, path: str) -> None:
            if path.endswith("delta_0000004_0000004_0000"):
                raise StorageError("Cannot delete it")
            delete(fs, path)

        before = based.content()
        based.compact()
        with monkeypatch.context() as patch:
            patch.setattr(LocalFileSystem, "delete", stuck)
            based.clean()
        assert based.entries()[0].error == "Cannot delete it"
        assert based.content() == before
        based.clock.pass_seconds(301)
        based.clean()
        assert unversioned(based.names()) == ["base_0000004"]
        assert based.states()[0] == DONE


@pytest.mark.parametrize(("name", "value"), [("no_cleanup", "true"), ("NO_CLEANUP", "True")])
def test_given_a_table_that_is_not_to_be_cleaned_when_it_runs_then_it_refuses_until_that_is_over(
    based: World, name: str, value: str
) -> None:
    table = based.store.get_table("default", "t")
    based.store.alter_table(replace(table, parameters={**table.parameters, name: value}))
    based.compact()
    names = based.names()
    based.insert(7, end="abort")
    based.clean()
    assert based.states() == [State.REFUSED, DONE]
    assert set(names) < set(based.names())
    assert based.remembered() == {5}
    based.store.alter_table(table)
    based.compact()
    based.clean()
    assert unversioned(based.names()) == ["base_0000004"]
    assert (based.states()[0], based.remembered()) == (DONE, set())
