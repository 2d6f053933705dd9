"""The initiator: for what it asks, and for what it does not (Hive: ``TestInitiator``)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from acidsql.compactor.initiator import Initiator
from acidsql.errors import StorageError
from acidsql.fs import LocalFileSystem
from acidsql.metastore.model import CompactionState as State
from acidsql.metastore.model import LockComponent, LockRequest, LockType, Operation
from tests.unit.compactor.world import MAJOR, World

MANY = tuple(range(1000))


def based(world: World, *numbers: int, name: str = "t", part: str | None = None) -> None:
    """A base of these rows and nothing else."""
    world.insert(*numbers[:1], name=name, part=part)
    world.insert(*numbers[1:], name=name, part=part)
    world.compact(name=name, part=part)
    world.clean()


def aborts(world: World, count: int, part: str | None = None) -> None:
    """Transactions that had their lock and were aborted before they wrote."""
    world.settings.set("hive.compactor.abortedtxn.threshold", "10")
    for _ in range(count):
        txn_id = world.begin()
        place = None if part is None else f"p={part}"
        lock = LockComponent(LockType.SHARED_WRITE, "default", "t", place, Operation.UPDATE)
        world.store.lock(LockRequest((lock,), txn_id, "me", "localhost", "test"))
        world.end(txn_id, "abort")


def test_given_nothing_written_when_it_looks_then_nothing_is_asked_for(world: World) -> None:
    assert world.initiate() == []
    world.table()
    assert world.initiate() == []


class TestFailedWorkers:
    def test_of_this_host_can_be_taken_back_and_those_of_others_stay(self, world: World) -> None:
        world.table("mine")
        world.table("other")
        world.ask(name="mine")
        world.store.find_next_compact("desk-193892")
        world.ask(name="other")
        world.store.find_next_compact("nosuchhost-193892")
        assert world.store.revoke_from_local_workers("desk") == 1
        assert [(e.table, e.state, e.worker) for e in world.entries()] == [
            ("other", State.WORKING, "nosuchhost-193892"),
            ("mine", State.INITIATED, None),
        ]

    def test_of_other_hosts_lose_their_requests_by_the_timeout(self, world: World) -> None:
        world.table()
        world.ask()
        world.store.find_next_compact("nosuchhost-193892")
        world.clock.pass_seconds(1)
        world.settings.set("hive.compactor.worker.timeout", "1ms")
        world.housekeeper.run()
        assert world.states() == [State.INITIATED]


class TestAbortedTransactions:
    def test_too_many_of_a_table_make_a_major_compaction(self, world: World) -> None:
        world.table()
        aborts(world, 10)
        assert world.initiate() == []
        aborts(world, 1)
        assert world.initiate() == [("t", None, "MAJOR")]

    def test_too_many_of_a_partition_make_a_major_compaction_of_it(self, world: World) -> None:
        world.table("t", "today")
        aborts(world, 11, "today")
        assert world.initiate() == [("t", "p=today", "MAJOR")]

    def test_of_many_partitions_are_not_added_up(self, world: World) -> None:
        days = [f"day-{i}" for i in range(11)]
        world.table("t", *days)
        for day in days:
            aborts(world, 1, day)
        assert world.initiate() == []

    def test_that_are_old_make_a_minor_compaction(self, world: World) -> None:
        world.table()
        aborts(world, 1)
        assert world.initiate() == []
        world.clock.pass_seconds(3600)
        world.settings.set("hive.compactor.aborted.txn.time.threshold", "0s")
        assert world.initiate() == []
        world.settings.set("hive.compactor.aborted.txn.time.threshold", "1h")
        world.clock.pass_seconds(1)
        assert world.initiate() == [("t", None, "MINOR")]

    @pytest.mark.parametrize("name", ["NO_AUTO_COMPACTION", "no_auto_compaction", "No_Auto_Compaction"])
    def test_of_a_table_that_opts_out_make_none(self, world: World, name: str) -> None:
        world.table(**{name: "true"})
        aborts(world, 11)
        assert world.initiate() == []

    def test_of_a_table_that_waits_already_make_no_second_one(self, world: World) -> None:
        world.table()
        aborts(world, 11)
        id = world.ask()
        assert world.initiate() == [("t", None, "MAJOR")]
        assert [entry.id for entry in world.entries()] == [id]


class TestTheShareOfTheDeltas:
    def test_that_is_high_makes_a_major_compaction(self, world: World) -> None:
        world.table()
        based(world, 1, 2, 3)
        world.insert(4)
        assert world.initiate() == [("t", None, "MAJOR")]

    def test_that_is_high_in_a_partition_makes_one_of_it(self, world: World) -> None:
        world.table("t", "today", "tomorrow")
        based(world, 1, 2, 3, part="today")
        world.insert(4, part="today")
        assert world.initiate() == [("t", "p=today", "MAJOR")]

    def test_of_a_partition_of_camel_case_counts_as_any(self, world: World) -> None:
        world.table("t", "ToDay")
        based(world, 1, 2, 3, part="ToDay")
        world.insert(4, part="ToDay")
        assert world.initiate() == [("t", "p=ToDay", "MAJOR")]

    def test_that_is_low_makes_none(self, world: World) -> None:
        world.table()
        based(world, *MANY)
        world.settings.set("hive.compactor.delta.pct.threshold", "2.0")
        world.insert(1)
        assert world.initiate() == []

    def test_goes_by_the_tables_own_threshold(self, world: World) -> None:
        world.table(**{"compactorthreshold.hive.compactor.delta.pct.threshold": "100"})
        based(world, 1, 2, 3)
        world.insert(4)
        assert world.initiate() == []

    def test_goes_before_their_number(self, world: World) -> None:
        world.table()
        based(world, 1, 2, 3)
        for i in range(11):
            world.insert(i)
        assert world.initiate() == [("t", None, "MAJOR")]


class TestTheNumberOfTheDeltas:
    @pytest.fixture(autouse=True)
    def by_number_only(self, world: World) -> None:
        world.settings.set("hive.compactor.delta.pct.threshold", "1000")

    def test_that_is_high_makes_a_minor_compaction(self, world: World) -> None:
        world.table()
        based(world, 1, 2)
        for i in range(10):
            world.insert(i)
        assert world.initiate() == []
        world.insert(11)
        assert world.initiate() == [("t", None, "MINOR")]

    def test_that_is_high_in_a_partition_makes_one_of_it(self, world: World) -> None:
        world.table("t", "today")
        based(world, 1, 2, part="today")
        for i in range(11):
            world.insert(i, part="today")
        assert world.initiate() == [("t", "p=today", "MINOR")]

    def test_counts_directories_and_not_write_ids(self, world: World) -> None:
        world.table()
        based(world, 1, 2)
        world.stream(*["commit"] * 5)
        world.stream(*["commit"] * 6)
        assert world.initiate() == []

    def test_goes_by_the_tables_own_threshold(self, world: World) -> None:
        world.table(**{"compactorthreshold.hive.compactor.delta.num.threshold": "1"})
        based(world, 1, 2)
        world.insert(3)
        world.insert(4)
        assert world.initiate() == [("t", None, "MINOR")]

    def test_without_a_base_makes_a_major_compaction(self, world: World) -> None:
        world.table("t", "today")
        world.stream(*["commit"] * 20, part="today")
        for i in range(10):
            world.insert(i, part="today")
        assert world.initiate() == [("t", "p=today", "MAJOR")]

    def test_leaves_out_what_only_aborted_transactions_wrote(self, world: World) -> None:
        world.table()
        for i in range(11):
            world.insert(i, end="abort" if i else "commit")
        assert world.initiate() == []


def test_given_two_writes_to_one_partition_when_it_looks_then_it_asks_once(world: World) -> None:
    world.table("t", "today")
    based(world, 1, 2, part="today")
    world.insert(3, part="today")
    world.insert(4, part="today")
    assert world.initiate() == [("t", "p=today", "MAJOR")]
    assert world.initiate() == [("t", "p=today", "MAJOR")]


def test_given_a_write_to_a_partitioned_table_as_a_whole_when_it_looks_then_it_asks_for_nothing(world: World) -> None:
    """A write to partitions that are found while it runs; theirs are the entries that count."""
    world.table("t", "today")
    txn = world.begin()
    world.write_id(txn, operation=Operation.UPDATE)
    world.end(txn)
    assert world.initiate() == []


def test_given_a_table_that_was_dropped_when_it_looks_then_it_asks_for_nothing(world: World) -> None:
    world.table()
    based(world, 1, 2)
    world.insert(3)
    world.store.drop_table("default", "t", keep_files=True)
    assert world.initiate() == []


def test_given_a_partition_that_was_dropped_when_it_looks_then_it_asks_for_nothing(world: World) -> None:
    world.table("t", "today")
    based(world, 1, 2, part="today")
    world.insert(3, part="today")
    world.store.drop_partitions("default", "t", ["p=today"])
    assert world.initiate() == []


def test_given_ten_partitions_when_it_looks_then_it_asks_for_each(world: World) -> None:
    parts = [f"part{i}" for i in range(10)]
    world.table("t", *parts)
    for part in parts:
        based(world, 1, 2, part=part)
        world.insert(3, part=part)
    assert world.initiate() == [("t", f"p={part}", "MAJOR") for part in parts]


def test_given_several_bases_and_no_delta_when_it_looks_then_it_asks_for_a_major_compaction(world: World) -> None:
    """What an INSERT OVERWRITE replaced is to be cleaned."""
    world.table()
    world.overwrite(1)
    world.overwrite(2)
    assert world.initiate() == [("t", None, "MAJOR")]
    outcome = world.worker.run_one()
    assert outcome is not None
    world.clean()
    assert world.names() == ["base_0000002"]
    assert world.initiate() == []


def test_given_an_insert_only_table_when_it_looks_then_it_asks_as_for_any(world: World) -> None:
    world.table(transactional_properties="insert_only")
    for i in range(11):
        world.insert(i)
    assert world.initiate() == [("t", None, "MAJOR")]


def test_given_a_request_of_its_own_when_it_is_shown_then_it_names_the_initiator(world: World) -> None:
    world.table()
    based(world, 1, 2)
    world.insert(3)
    Initiator(world.context, "desk-7").run()
    assert world.entries()[0].initiator == "desk-7"


def test_given_a_database_that_opts_out_when_it_looks_then_it_asks_for_nothing(world: World) -> None:
    """Hive takes the property from the database, too (HIVE-21266)."""
    world.table()
    world.insert(1)
    database = world.store.get_database("default")
    answers = replace(database, parameters={"no_auto_compaction": "TRUE"})
    world.store.get_database = lambda name: answers  # type: ignore[method-assign]
    for i in range(12):
        world.insert(i)
    assert world.initiate() == []


def test_given_a_directory_that_cannot_be_read_when_it_looks_then_the_history_says_so_and_others_are_asked_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        world.table(name)
        based(world, 1, 2, name=name)
        world.insert(3, name=name)
    listed = LocalFileSystem.list

    def broken(fs: LocalFileSystem, path: str) -> object:
        if path.endswith("/a"):
            raise StorageError("Cannot list it")
        return listed(fs, path)

    monkeypatch.setattr(LocalFileSystem, "list", broken)
    assert world.initiate() == [("b", None, "MAJOR")]
    [failed] = [one for one in world.entries() if one.state == State.DID_NOT_INITIATE]
    assert (failed.table, failed.error) == ("a", "Cannot list it")


def test_given_compactions_that_failed_twice_when_it_looks_then_it_waits_a_week(world: World) -> None:
    world.table()
    based(world, 1, 2)
    world.insert(3)
    for _ in range(2):
        world.ask(MAJOR)
        entry = world.store.find_next_compact("desk-1")
        assert entry is not None
        world.store.mark_failed(entry.id, "no")
    assert world.initiate() == []
    assert world.states()[0] == State.DID_NOT_INITIATE
    world.clock.pass_seconds(8 * 24 * 3600)
    assert world.initiate() == [("t", None, "MAJOR")]
