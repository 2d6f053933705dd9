"""Races that once lost rows, or brought back what was aborted: found by review, each told as it happened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import pyorc
import pytest

from acidsql.commands.environment import Environment
from acidsql.commands.resolve.context import StartOver, StatementContext, StatementSnapshot
from acidsql.commands.transaction.run import write_transaction
from acidsql.compactor.compaction import Compaction
from acidsql.compactor.worker import Worker
from acidsql.errors import AcidError, SnapshotTooOld
from acidsql.format.bucket import encode
from acidsql.format.directory import AcidState, acid_state
from acidsql.format.names import DeltaName
from acidsql.format.orc import read_events, write_inserts, write_rows
from acidsql.fs import LocalFileSystem
from acidsql.metastore import waiting
from acidsql.metastore.model import (
    CompactionRequest,
    CompactionType,
    LockComponent,
    LockRequest,
    LockType,
    TxnState,
    TxnType,
)
from acidsql.metastore.model import CompactionState as State
from acidsql.metastore.model import Operation as Writes
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList
from tests.unit.compactor.world import EVENT, FS, MAJOR, MINOR, ROW_TYPE, World, values
from tests.unit.sleeping import this_thread_instead

TYPES = pytest.mark.parametrize("type", [MAJOR, MINOR], ids=["major", "minor"])
LAYOUTS = pytest.mark.parametrize("layout", ["hive3", "hive4"])


@pytest.fixture
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    layout = getattr(request.node, "callspec", None) and request.node.callspec.params.get("layout")
    made = World(tmp_path, {"acidsql.compactor.layout": layout or "hive3"})
    yield made
    made.close()


def end_by_others(world: World, txn_id: int) -> None:
    """A transaction that sends no heartbeat any more is ended, cleaned up after, and forgotten."""
    world.store.abort_txns([txn_id], reason="timed out")
    world.clean()
    world.end(world.begin())
    world.clock.pass_seconds(10)
    world.end(world.begin())
    world.store.clean_empty_aborted_txns()


# --- insert-only tables: rows do not tell whose they are -------------------------------------------------------------


class TestTheCompactedDeltaOfAnInsertOnlyTable:
    @staticmethod
    def insert(world: World, number: int, end: str = "commit") -> int:
        txn_id = world.begin()
        write_id = world.write_id(txn_id)
        path = f"{world.path()}/{DeltaName(write_id, write_id, 0)}/000000_0"
        write_rows(FS, path, ROW_TYPE, values(number))
        world.end(txn_id, end)
        return txn_id

    @staticmethod
    def state(world: World, write_ids: ValidWriteIdList, txns: ValidTxnList, *, is_pinned: bool = False) -> AcidState:
        return acid_state(FS, str(world.path()), write_ids, txns, any_file_name=True, is_pinned=is_pinned)

    @staticmethod
    def rows(state: AcidState) -> list[int]:
        found = [e.row for d in state.data_directories for f in d.files for e in read_events(FS, f.path)]
        return sorted(row["a"] for row in found if row is not None)

    @LAYOUTS
    @TYPES
    def test_is_not_for_a_reader_who_began_while_one_of_its_writers_was_open(
        self, world: World, layout: str, type: CompactionType
    ) -> None:
        world.table(transactional_properties="insert_only")
        self.insert(world, 1)
        self.insert(world, 2)
        still_open = self.insert(world, 3, "open")
        reader = world.snapshot(world.begin(TxnType.READ_ONLY))  # who has not listed the directory yet
        world.end(still_open)
        self.insert(world, 4)
        world.compact(type)
        assert self.rows(self.state(world, reader.write_ids, reader.txns, is_pinned=True)) == [1, 2]
        now = world.snapshot()
        assert self.rows(self.state(world, now.write_ids, now.txns)) == [1, 2, 3, 4]

    @LAYOUTS
    def test_is_not_for_a_version_that_ends_within_it(self, world: World, layout: str) -> None:
        world.table(transactional_properties="insert_only")
        for number in (1, 2, 3):
            self.insert(world, number)
        world.compact(MINOR)
        now = world.snapshot()
        assert self.rows(self.state(world, now.write_ids.as_of(2), now.txns)) == [1, 2]
        world.clean()
        assert self.rows(self.state(world, now.write_ids.as_of(3), now.txns)) == [1, 2, 3]
        with pytest.raises(SnapshotTooOld):
            self.state(world, now.write_ids.as_of(2), now.txns)

    def test_with_an_aborted_write_id_in_its_range_is_read(self, world: World) -> None:
        world.table(transactional_properties="insert_only")
        self.insert(world, 1)
        self.insert(world, 2, "abort")
        self.insert(world, 3)
        world.compact(MINOR)
        world.clean()
        now = world.snapshot()
        assert self.rows(self.state(world, now.write_ids, now.txns)) == [1, 3]


# --- what is still streamed to ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", [("commit", "commit"), ("abort", "abort"), ("commit", "abort")], ids="-".join)
@TYPES
@LAYOUTS
def test_given_a_delta_of_which_a_part_is_committed_when_compacted_then_that_part_stays_to_be_read(
    world: World, layout: str, type: CompactionType, ends: tuple[str, str]
) -> None:
    world.table()
    for number in (100, 101, 102):
        world.insert(number)
    txns = [world.begin() for _ in range(3)]
    ids = [world.write_id(txn) for txn in txns]
    path = world.path() / str(DeltaName(ids[0], ids[-1])) / "bucket_00000"
    path.parent.mkdir(parents=True)
    with path.open("wb") as file, pyorc.Writer(file, EVENT) as writer:
        writer.writerows([(0, one, encode(0), 0, one, (one,)) for one in ids])
    world.end(txns[0])
    expected = [ids[0], 100, 101, 102]
    assert world.content() == expected
    world.compact(type)
    assert world.content() == expected
    for txn, write_id, end in zip(txns[1:], ids[1:], ends, strict=True):
        world.end(txn, end)
        expected = sorted([*expected, *([write_id] if end == "commit" else [])])
        assert world.content() == expected
    world.clean()
    assert world.content() == expected
    world.insert(200)
    world.compact(MAJOR)
    world.clean()
    assert world.content() == [*expected, 200]


# --- who was taken for dead ------------------------------------------------------------------------------------------


@TYPES
@LAYOUTS
@pytest.mark.parametrize("at", [1, 2])
def test_given_a_worker_that_sleeps_before_a_rename_when_others_have_cleaned_up_after_it_then_no_row_is_lost(
    world: World, layout: str, type: CompactionType, at: int
) -> None:
    world.table()
    world.insert(1, 2, 3)
    world.insert(4, 5)
    world.delete(2)
    world.delete(4)
    publish, names = Compaction._publish, list[str]()

    def asleep(self: Compaction, staging: str, name: str, published: list[str]) -> None:
        names.append(name)
        if len(names) == at:
            end_by_others(world, self._txn_id)
        publish(self, staging, name, published)

    world.ask(type)
    with patch.object(Compaction, "_publish", asleep):
        outcome = world.worker.run_one()
    assert outcome is not None
    assert outcome.state == (State.FAILED if len(names) >= at else State.READY_FOR_CLEANING)
    assert world.content() == [1, 3, 5]
    world.clean()
    assert world.content() == [1, 3, 5]
    world.insert(6)
    world.compact(MAJOR)
    world.clean()
    assert world.content() == [1, 3, 5, 6]


def environment(world: World) -> Environment:
    """As much of it as a transaction needs."""
    own = SimpleNamespace(
        metastore=world.store,
        heartbeats=world.heartbeats,
        settings=world.settings,
        user="ann",
        host="desk",
        agent="test",
        compactor=SimpleNamespace(wrote=lambda *_: None),
    )
    return cast(Environment, own)


def test_given_a_writer_that_sleeps_before_its_rename_when_others_have_forgotten_it_then_its_row_is_not_there(
    world: World,
) -> None:
    table = world.table()
    world.insert(1)
    env = environment(world)
    rename = LocalFileSystem.rename

    def asleep(self: LocalFileSystem, source: str, target: str) -> None:
        if "delta_0000002" in target:
            [writer] = [one.id for one in world.store.show_txns() if one.state is TxnState.OPEN]
            end_by_others(world, writer)
        rename(self, source, target)

    def write() -> None:
        with write_transaction(env, [LockComponent(LockType.SHARED_READ, "default", "t", None, Writes.INSERT)]) as txn:
            write_id = txn.allocate_write_id(table)
            staging = txn.stage(table)
            directory = staging.directory("", DeltaName(write_id, write_id, 0))
            write_inserts(staging.fs, directory.bucket(0), ROW_TYPE, values(666), write_id=write_id, bucket=encode(0))
            txn.publish(table, staging)

    with patch.object(LocalFileSystem, "rename", asleep), pytest.raises(AcidError):
        write()
    assert world.content() == [1]
    assert world.names() == ["delta_0000001_0000001_0000"]


# --- what was changed while somebody waited --------------------------------------------------------------------------


def while_it_waits(world: World, change: Callable[[], None]) -> Any:
    """Somebody holds the table exclusively when a worker comes, and lets it go when a change is done."""
    holder = world.begin()
    world.store.lock(LockRequest((LockComponent(LockType.EXCLUSIVE, "default", "t"),), holder, "bob", "desk", "alter"))
    done: list[bool] = []

    def asleep(_: float) -> None:
        if not done:
            done.append(True)
            change()
            world.end(holder)

    return patch.object(waiting.time, "sleep", this_thread_instead(asleep))


def test_given_a_table_that_is_renamed_while_the_worker_waits_then_it_is_left_alone(world: World) -> None:
    table = world.table()
    world.insert(1)
    world.insert(666, end="abort")
    world.insert(2)
    world.ask(MAJOR)
    with while_it_waits(world, lambda: world.store.rename_table("default", "t", replace(table, name="u"))):
        outcome = world.worker.run_one()
    assert outcome is not None
    assert (outcome.state, outcome.message) == (
        State.REFUSED,
        "default.t was renamed or dropped while the worker waited for its lock",
    )
    assert [txn for txn in world.store.show_txns() if txn.state is TxnState.OPEN] == []
    now = world.snapshot(name="u")
    state = acid_state(FS, str(world.path()), now.write_ids, now.txns)
    assert [d.name.max_write_id for d in state.deltas if isinstance(d.name, DeltaName)] == [1, 3]


def test_given_a_table_that_gets_a_column_while_the_worker_waits_then_it_compacts_with_that_column(
    world: World,
) -> None:
    table = world.table()
    world.insert(1)
    world.insert(2)
    world.ask(MAJOR)
    wider = replace(table, columns=(*table.columns, replace(table.columns[0], name="b")))
    seen: list[int] = []
    init = Compaction.__init__

    def spied(self: Compaction, *args: Any) -> None:
        init(self, *args)
        seen.append(len(self._table.columns))

    with (
        while_it_waits(world, lambda: world.store.alter_table(wider)),
        patch.object(Compaction, "__init__", spied),
    ):
        world.worker.run_one()
    assert seen == [2]


def test_given_a_table_that_is_renamed_after_a_query_has_found_it_then_the_query_does_not_take_its_aborted_rows(
    world: World,
) -> None:
    world.table()
    world.insert(1)
    world.insert(666, end="abort")
    table = world.store.get_table("default", "t")
    snapshot = StatementContext(environment(world), StatementSnapshot(world.store.get_valid_txns()))
    world.store.rename_table("default", "t", replace(table, name="u"))
    with pytest.raises(StartOver, match="was changed, renamed, moved or dropped"):
        snapshot.table_snapshot(table, None)


# --- passes, properties, workers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", ["2", "500"])
def test_given_delete_files_without_events_when_put_together_in_passes_then_there_are_none(
    tmp_path: Path, limit: str
) -> None:
    world = World(tmp_path, {"hive.compactor.max.num.delta": limit})
    world.table()
    world.insert(1, 2, 3)
    for _ in range(4):
        txn_id = world.begin()
        write_id = world.write_id(txn_id, operation=Writes.DELETE)
        path = world.path() / str(DeltaName(write_id, write_id, 0, is_delete=True)) / "bucket_00000"
        path.parent.mkdir()
        with path.open("wb") as file, pyorc.Writer(file, EVENT):
            pass
        world.end(txn_id)
    assert world.compact(MINOR).state == State.READY_FOR_CLEANING
    assert world.content() == [1, 2, 3]
    world.close()


def test_given_a_request_that_calls_the_table_insert_only_when_compacted_then_it_is_what_it_is(world: World) -> None:
    world.table()
    world.original(1, 2, 3)
    world.burn("t", 1)
    world.delete(2)
    properties = {"tblprops.transactional_properties": "insert_only"}
    world.store.compact(CompactionRequest("default", "t", None, MAJOR, "ann", "desk", properties))
    world.worker.run_one()
    world.clean()
    assert world.content() == [1, 3]


def test_given_a_request_that_another_worker_has_meanwhile_when_the_first_is_done_then_it_is_not_its_to_end(
    world: World,
) -> None:
    world.table()
    for number in (1, 2, 3):
        world.insert(number)
    write, readers = Compaction._write, []

    def slow(self: Compaction, subject: Any) -> Any:
        done = write(self, subject)
        readers.append(world.reader())
        world.clock.pass_seconds(90_000)
        for txn_id in (self._txn_id, readers[0].txn_id):
            world.store.heartbeat(txn_id=txn_id)
        world.store.revoke_timed_out_workers(86_400_000)
        assert world.store.find_next_compact("desk-2") is not None
        return done

    world.ask()
    with patch.object(Compaction, "_write", slow):
        outcome = Worker(world.context, "desk-1").run_one()
    assert outcome is not None
    assert outcome.state == State.FAILED
    world.clean()
    assert sorted(world.rows(readers[0]).values()) == [1, 2, 3]
    assert world.content() == [1, 2, 3]
