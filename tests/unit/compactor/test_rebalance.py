"""The rebalance compaction: even files, new row ids, and nobody who would delete by an old one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from acidsql.compactor import rebalance
from acidsql.compactor.compaction import Limits
from acidsql.compactor.rebalance import ON_BUCKETED
from acidsql.compactor.worker import Outcome
from acidsql.errors import StorageError
from acidsql.format.bucket import decode
from acidsql.format.names import METADATA_FILE
from acidsql.format.orc import write_rows
from acidsql.metastore.model import (
    CompactionRequest,
    CompactionType,
    LockComponent,
    LockRequest,
    LockState,
    LockType,
    Operation,
    TxnType,
)
from acidsql.metastore.model import CompactionState as State
from tests.unit.compactor.world import FS, MAJOR, MINOR, ROW_TYPE, World, rows_of, values, versioned

REBALANCE = CompactionType.REBALANCE


@pytest.fixture(params=["hive3", "hive4"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """In both layouts; a lock that is held is not waited for."""
    made = World(tmp_path, {"acidsql.compactor.layout": request.param, "acidsql.lock.timeout": "0s"})
    yield made
    made.close()


@pytest.fixture
def uneven(world: World) -> World:
    """Ten rows, seven of them in the first of three files, and two that are deleted."""
    world.table()
    world.insert(1, buckets=3)
    world.insert(2, 3, 4, 5)
    world.insert(6, 7, 8, 9)
    world.delete(3, 9)
    return world


def ask(world: World, buckets: int | None = None, order_by: str | None = None, part: str | None = None) -> int:
    place = None if part is None else f"p={part}"
    request = CompactionRequest("default", "t", place, REBALANCE, "ann", "desk", buckets=buckets, order_by=order_by)
    response = world.store.compact(request)
    assert response.accepted, response
    return response.id


def run(world: World, buckets: int | None = None, order_by: str | None = None, part: str | None = None) -> Outcome:
    id = ask(world, buckets, order_by, part)
    outcome = world.worker.run_one()
    assert outcome is not None
    assert outcome.entry.id == id
    return outcome


def is_hive3(world: World) -> bool:
    return world.values["acidsql.compactor.layout"] == "hive3"


def files(world: World, part: str | None = None) -> list[list[tuple[int, int, int]]]:
    """Row id, write id and value of the rows of each file, as one who comes now reads them."""
    seen = world.snapshot()
    found: dict[int, list[tuple[int, int, int]]] = {}
    for (write_id, bucket, row_id), value in sorted(world.rows(seen, part).items()):
        found.setdefault(decode(bucket).writer_id, []).append((row_id, write_id, value))
    return [found[number] for number in sorted(found)]


class TestRows:
    def test_are_spread_evenly_over_as_many_files_in_the_order_of_their_ids(self, uneven: World) -> None:
        outcome = run(uneven)
        assert (outcome.state, outcome.done.rows, outcome.done.dropped) == (State.READY_FOR_CLEANING, 9, 2)
        assert files(uneven) == [
            [(0, 1, 1), (1, 1, 1), (2, 1, 1)],
            [(3, 2, 2), (4, 2, 4), (5, 2, 5)],
            [(6, 3, 6), (7, 3, 7), (8, 3, 8)],
        ]
        uneven.clean()
        [name] = uneven.names()
        txn = outcome.entry.txn_id or uneven.entries()[0].txn_id or 0
        assert name == ("base_0000005" if is_hive3(uneven) else versioned("base_0000004", txn))
        listed = {p.name for p in (uneven.path() / name).iterdir()}
        assert listed == {"_orc_acid_version", "bucket_00000", "bucket_00001", "bucket_00002"}
        assert uneven.states() == [State.SUCCEEDED]
        assert uneven.store.show_txns() == []

    @pytest.mark.parametrize(("buckets", "sizes"), [(1, [9]), (2, [5, 4]), (4, [3, 3, 3]), (9, [1] * 9), (50, [1] * 9)])
    def test_are_spread_over_as_many_files_as_are_asked_for(
        self, uneven: World, buckets: int, sizes: list[int]
    ) -> None:
        before = uneven.content()
        run(uneven, buckets)
        assert [len(rows) for rows in files(uneven)] == sizes
        assert [row[0] for rows in files(uneven) for row in rows] == list(range(9))
        assert uneven.content() == before

    def test_in_an_order_of_their_own_all_get_the_largest_write_id(self, uneven: World) -> None:
        run(uneven, 2, "ORDER BY a DESC")
        assert files(uneven) == [
            [(0, 3, 8), (1, 3, 7), (2, 3, 6), (3, 3, 5), (4, 3, 4)],
            [(5, 3, 2), (6, 3, 1), (7, 3, 1), (8, 3, 1)],
        ]

    def test_of_the_highest_write_id_that_are_gone_do_not_count_in_an_order(self, uneven: World) -> None:
        uneven.delete(*uneven.content()[-3:])
        uneven.insert(77, end="abort")
        run(uneven, 1, "ORDER BY a")
        assert files(uneven) == [[(i, 2, a) for i, a in enumerate((1, 1, 1, 2, 4, 5))]]

    def test_from_before_the_table_was_transactional_take_part(self, world: World) -> None:
        world.table()
        world.original(1, 2, 3)
        world.original(4, file="000001_0")
        world.insert(5)
        run(world)
        assert files(world) == [[(0, 0, 1), (1, 0, 2), (2, 0, 3)], [(3, 0, 4), (4, 1, 5)]]
        world.delete(2)
        world.clean()
        assert world.content() == [1, 3, 4, 5]

    def test_where_none_is_left_the_new_base_hides_what_was_there(self, uneven: World) -> None:
        uneven.delete(*uneven.content())
        run(uneven, 3)
        uneven.clean()
        [name] = uneven.names()
        assert {p.name for p in (uneven.path() / name).iterdir()} == {"_orc_acid_version", "bucket_00000"}
        assert uneven.content() == []

    def test_of_a_partition_are_spread_and_the_others_left_alone(self, world: World) -> None:
        world.table("t", "x", "y")
        for part in "xy":
            world.insert(1, 2, 3, 4, part=part)
        others = world.names(part="y")
        run(world, 2, part="x")
        assert [len(rows) for rows in files(world, "x")] == [2, 2]
        assert world.names(part="y") == others
        assert world.content(part="y") == [1, 2, 3, 4]


class TestAfterwards:
    def test_deletes_find_their_rows_and_further_compactions_keep_the_ids(self, uneven: World) -> None:
        run(uneven, 2)
        uneven.clean()
        uneven.delete(4, 7)
        uneven.insert(10, 11)
        assert uneven.content() == [1, 1, 1, 2, 5, 6, 8, 10, 11]
        before = uneven.rows(uneven.snapshot())
        for type in (MINOR, MAJOR):
            uneven.compact(type)
            uneven.clean()
            assert uneven.rows(uneven.snapshot()) == before

    def test_it_can_be_done_again_without_a_write_between(self, uneven: World) -> None:
        before = uneven.content()
        uneven.compact(MAJOR)
        uneven.clean()
        for buckets in (4, 2):
            run(uneven, buckets)
            uneven.clean()
            assert len(uneven.names()) == 1
            assert uneven.content() == before
        assert [len(rows) for rows in files(uneven)] == [5, 4]

    def test_a_reader_from_before_reads_the_old_rows_until_it_is_gone(self, uneven: World) -> None:
        reader = uneven.reader()
        before = rows_of(reader.states[0], reader.write_ids)
        run(uneven, 2)
        assert uneven.rows(reader) == before
        uneven.clean()
        assert rows_of(reader.states[0], reader.write_ids) == before
        uneven.end(reader.txn_id)
        uneven.clean()
        assert len(uneven.names()) == 1
        assert uneven.content() == sorted(before.values())

    def test_a_writer_that_began_before_is_told_that_its_snapshot_is_outdated(self, uneven: World) -> None:
        txn = uneven.begin()
        run(uneven)
        lock = LockComponent(LockType.EXCL_WRITE, "default", "t", None, Operation.DELETE)
        granted = uneven.store.lock(LockRequest((lock,), txn, "ann", "desk", "test"))
        assert granted.state is LockState.ACQUIRED
        assert uneven.store.get_latest_txn_in_conflict(txn) == uneven.entries()[0].txn_id

    def test_rows_inserted_meanwhile_are_kept(self, uneven: World, monkeypatch: pytest.MonkeyPatch) -> None:
        fill = rebalance.Rebalance._fill

        def inserting(*args: Any) -> Any:
            uneven.insert(100)
            return fill(*args)

        monkeypatch.setattr(rebalance.Rebalance, "_fill", inserting)
        before = uneven.content()
        run(uneven, 2)
        uneven.clean()
        assert uneven.content() == [*before, 100]
        uneven.delete(100, 1)
        assert uneven.content() == before[3:]


class TestOthersAtWork:
    def test_one_who_changes_rows_is_waited_for_and_left_alone(self, uneven: World) -> None:
        before, names = uneven.content(), uneven.names()
        txn = uneven.begin()
        write_id = uneven.write_id(txn, operation=Operation.DELETE)
        outcome = run(uneven)
        assert outcome.state == State.FAILED
        assert "Lock not granted" in (outcome.message or "")
        assert (uneven.names(), uneven.content()) == (names, before)
        uneven.delete_as(write_id, txn, [2])
        uneven.end(txn)
        assert run(uneven).state == State.READY_FOR_CLEANING
        assert uneven.content() == [a for a in before if a != 2]

    @pytest.mark.parametrize("change", ["delete", "insert"])
    def test_what_was_committed_between_its_beginning_and_its_lock_takes_part(
        self, uneven: World, monkeypatch: pytest.MonkeyPatch, change: str
    ) -> None:
        """By a transaction that is later than the compactor's own, which its snapshot as of its id would leave out."""
        real = uneven.store.lock

        def overtaken(request: LockRequest) -> Any:
            monkeypatch.setattr(uneven.store, "lock", real)
            getattr(uneven, change)(2)
            return real(request)

        monkeypatch.setattr(uneven.store, "lock", overtaken)
        before = uneven.content()
        assert run(uneven, 2).state == State.READY_FOR_CLEANING
        after = [a for a in before if a != 2] if change == "delete" else sorted([*before, 2])
        assert uneven.content() == after
        uneven.clean()
        assert uneven.content() == after
        uneven.delete(1)
        assert uneven.content() == after[3:]

    def test_one_who_inserts_may_end_while_it_waits(self, uneven: World) -> None:
        before = uneven.content()
        txn = uneven.begin()
        uneven.write_id(txn)
        uneven.context.sleep = lambda _: uneven.end(txn)
        assert run(uneven).state == State.READY_FOR_CLEANING
        assert uneven.content() == before

    def test_one_who_goes_on_inserting_leaves_nothing_above_him_to_rebalance(self, world: World) -> None:
        world.context.limits = Limits(writers_wait=0.0)
        world.table()
        world.insert(1, 2, 3, 4)
        writer = world.begin()
        world.write_id(writer)
        world.insert(5)
        outcome = run(world, 2)
        if is_hive3(world):
            assert outcome.state == State.REFUSED
            assert "still open (write ids 2)" in (outcome.message or "")
            assert world.names() == ["delta_0000001_0000001_0000", "delta_0000003_0000003_0000"]
        else:
            assert [[row[2] for row in rows] for rows in files(world)] == [[1, 2, 5], [3, 4]]
        world.end(writer)
        assert world.content() == [1, 2, 3, 4, 5]

    def test_deletes_above_one_who_goes_on_inserting_must_find_the_old_ids(self, world: World) -> None:
        world.context.limits = Limits(writers_wait=0.0)
        world.table()
        world.insert(1, 2, 3, 4)
        writer = world.begin()
        world.write_id(writer)
        world.delete(2)
        names = world.names()
        outcome = run(world, 2)
        assert outcome.state == State.REFUSED
        assert "still open" in (outcome.message or "")
        assert (world.names(), world.content()) == (names, [1, 3, 4])
        world.end(writer)
        run(world, 2)
        assert [[row[2] for row in rows] for rows in files(world)] == [[1, 3], [4]]


class TestFailures:
    def test_while_writing_leave_all_as_it_was(self, uneven: World, monkeypatch: pytest.MonkeyPatch) -> None:
        before, names = uneven.rows(uneven.snapshot()), sorted(p.name for p in uneven.path().iterdir())

        def full(*_: object) -> None:
            raise StorageError("No space left")

        with monkeypatch.context() as patched:
            patched.setattr("acidsql.compactor.run.write_share", full)
            outcome = run(uneven)
        assert (outcome.state, outcome.message) == (State.FAILED, "No space left")
        assert sorted(p.name for p in uneven.path().iterdir()) == names
        assert uneven.rows(uneven.snapshot()) == before
        assert run(uneven).state == State.READY_FOR_CLEANING
        assert uneven.content() == sorted(before.values())

    def test_at_the_commit_leave_a_base_that_nobody_sees_and_the_cleaner_removes(
        self, uneven: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before, names = uneven.rows(uneven.snapshot()), uneven.names()
        commit = type(uneven.store).commit_txn

        def dead(store: Any, txn_id: int, *args: Any, **kw: Any) -> Any:
            if any(t.id == txn_id and t.type is TxnType.REBALANCE_COMPACTION for t in store.show_txns()):
                raise StorageError("gone")
            return commit(store, txn_id, *args, **kw)

        with monkeypatch.context() as patched:
            patched.setattr(type(uneven.store), "commit_txn", dead)
            assert run(uneven).state == State.FAILED
        assert len(uneven.names()) == len(names) + 1
        assert uneven.rows(uneven.snapshot()) == before
        uneven.delete(2)
        uneven.clean()
        assert not any(name.startswith("base") for name in uneven.names())
        assert uneven.content() == sorted(a for a in before.values() if a != 2)
        assert run(uneven, 2).state == State.READY_FOR_CLEANING
        assert [len(rows) for rows in files(uneven)] == [4, 4]


class TestRefusals:
    def test_a_table_that_says_itself_which_row_goes_where_is_refused_in_hives_words(self, world: World) -> None:
        world.table()
        bucketed = replace(world.store.get_table("default", "t"), bucket_columns=("a",), num_buckets=2)
        world.store.drop_table("default", "t", keep_files=True)
        world.store.create_table(bucketed)
        world.insert(1, buckets=2)
        outcome = run(world)
        assert (outcome.state, outcome.message) == (State.REFUSED, ON_BUCKETED)
        assert world.store.show_txns() == []

    def test_a_table_without_anything_in_it_is_refused(self, world: World) -> None:
        world.table()
        assert run(world).state == State.REFUSED
        assert world.names() == []

    def test_too_many_files_are_refused(self, world: World) -> None:
        world.context.limits = Limits(max_buckets=4)
        world.table()
        world.insert(*range(5))
        outcome = run(world, 5)
        assert (outcome.state, outcome.message) == (State.REFUSED, "A table has at most 4 buckets, not 5")
        assert run(world, 4).state == State.READY_FOR_CLEANING
        assert max(len(rows) for rows in files(world)) == 2

    def test_an_order_that_is_no_column_fails(self, uneven: World) -> None:
        names = uneven.names()
        outcome = run(uneven, order_by="ORDER BY a % 2")
        assert outcome.state == State.FAILED
        assert "cannot order rows by" in (outcome.message or "")
        assert uneven.names() == names


def test_an_insert_only_table_is_compacted_as_by_a_major_one(world: World) -> None:
    world.table(transactional_properties="insert_only")
    for number in (1, 2):
        write_id = world.write_id(txn := world.begin())
        path = world.path() / f"delta_{write_id:07d}_{write_id:07d}_0000" / "000000_0"
        write_rows(FS, str(path), ROW_TYPE, values(number))
        world.end(txn)
    assert run(world).state == State.READY_FOR_CLEANING
    world.clean()
    [name] = world.names()
    assert name.startswith("base_0000002")


def test_the_base_says_of_itself_that_it_is_compacted_only_where_its_name_does(uneven: World) -> None:
    """In the layout of Hive 3 it is seen by those who see its write id, as that of INSERT OVERWRITE."""
    run(uneven)
    uneven.clean()
    [name] = uneven.names()
    assert not (uneven.path() / name / METADATA_FILE).exists()
    assert ("_v" in name) is not is_hive3(uneven)


@pytest.mark.parametrize("kept", [False, True], ids=["cleaned", "no_cleanup"])
def test_one_that_was_aborted_after_it_had_published_is_never_seen(
    world: World, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    """Its base has rows under new ids: once it were seen, deletes by the old ones would hide nothing of it."""
    world.table("t", **({"NO_CLEANUP": "true"} if kept else {}))
    world.insert(1, 2, 3, 4, buckets=2)
    world.insert(5, 6)

    def lost(*_: object, **__: object) -> None:
        raise StorageError("the store is away")

    with monkeypatch.context() as patch:
        patch.setattr(type(world.store), "mark_compacted", lost)
        patch.setattr(type(world.store), "forget_txn_components", lost)
        ask(world)
        with suppress(StorageError):
            world.worker.run_one()
    world.delete(1, 3, 5)
    for _ in range(4):
        world.clean()
        world.insert(7)
        world.clock.pass_seconds(600)
    assert world.content() == [2, 2, 4, 4, 6, 7, 7, 7, 7]
