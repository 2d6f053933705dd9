"""Fail the Nth step of a compaction and its cleaning for N = 1, 2, 3 …: no reader sees it, and the next round mends it.

A step is a call of the metastore or of the file system; it fails before it is done, or right after, when the caller
cannot know that it was. Two of the four combinations are in every run, all of them in ``make test-faults``. At every
step there are a reader who began before the compaction, one who began after it, and one who comes now.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from acidsql.compactor.worker import Worker
from acidsql.fs import LocalFileSystem
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.model import CompactionRequest, CompactionType, TxnState
from acidsql.metastore.model import CompactionState as State
from tests.injection import Injector
from tests.unit.compactor.world import MAJOR, MINOR, Rows, Snapshot, World, rows_of, unversioned

FS_STEPS = (
    "list",
    "exists",
    "mkdirs",
    "rename",
    "sync",
    "write_bytes",
    "open_write",
    "open_read",
    "read_bytes",
    "delete",
)
METASTORE_STEPS = (
    "find_table",
    "list_partitions",
    "open_txns",
    "lock",
    "unlock",
    "get_valid_txns",
    "get_valid_write_ids",
    "heartbeat",
    "commit_txn",
    "abort_txns",
    "forget_txn_components",
    "compact",
    "find_next_compact",
    "update_compactor_state",
    "set_job_id",
    "mark_compacted",
    "mark_failed",
    "mark_refused",
    "min_open_txn",
    "find_ready_to_clean",
    "set_cleaner_retry",
    "mark_cleaned",
    "aborted_components",
    "forget_aborted",
    "aborted_compactions",
    "clean_empty_aborted_txns",
)


STEPS = {LocalFileSystem: FS_STEPS, EmbeddedMetastore: METASTORE_STEPS}


class Trial:
    """A world in which one step fails."""

    def __init__(self, world: World, type: CompactionType) -> None:
        self.world = world
        self.type = type
        self.readers: list[tuple[Snapshot, Rows]] = []
        self.next = 100

    def write(self) -> None:
        """What there is to be compacted: rows, deletes, and what was aborted."""
        world, first = self.world, self.next
        self.next += 10
        world.insert(first, first + 1)
        world.insert(first + 2)
        world.insert(first + 3, end="abort")
        world.delete(first - 10, first)

    def begin_reader(self) -> None:
        reader = self.world.reader()
        self.readers.append((reader, self.world.rows(reader)))

    def end_readers(self) -> None:
        for reader, _ in self.readers:
            self.world.end(reader.txn_id)
        self.readers.clear()

    def check(self, expected: Rows, fired: str | None) -> None:
        """Every reader sees what it saw, in the files that it chose and in those that it would choose now."""
        world = self.world
        for reader, rows in self.readers:
            assert rows_of(reader.states[0], reader.write_ids) == rows, fired
            assert world.rows(reader) == rows, fired
        assert world.rows(world.snapshot()) == expected, fired

    def compact(self) -> None:
        self.world.store.compact(CompactionRequest("default", "t", None, self.type, "ann", "desk"))
        Worker(self.world.context, "desk-1").run_one()

    def recover(self) -> None:
        """As after some time: what nobody is alive behind is ended; who asked asks again; workers and cleaner run."""
        world, own = self.world, {reader.txn_id for reader, _ in self.readers}
        world.store.abort_txns([t.id for t in world.store.show_txns() if t.id not in own and t.state.value == "o"])
        world.clock.pass_seconds(10)
        world.housekeeper.run()
        self.compact()
        while world.worker.run_one() is not None:
            pass


@pytest.mark.parametrize(
    ("layout", "type", "after"),
    [
        pytest.param("hive3", MAJOR, False, id="hive3-major-before the step", marks=pytest.mark.long),
        pytest.param("hive3", MAJOR, True, id="hive3-major-after the step", marks=pytest.mark.long),
        pytest.param("hive4", MINOR, False, id="hive4-minor-before the step", marks=pytest.mark.long),
        pytest.param("hive4", MINOR, True, id="hive4-minor-after the step"),
    ],
)
def test_an_error_at_any_step_costs_no_row_and_the_next_round_mends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str, type: CompactionType, after: bool
) -> None:
    world = World(
        tmp_path,
        {
            "acidsql.compactor.layout": layout,
            "hive.txn.timeout": "100000s",
            "hive.compactor.worker.timeout": "1s",
            "hive.compactor.cleaner.retry.retention.time": "1s",
            "acidsql.staging.retention": "1s",
        },
    )
    world.context.clock = lambda: world.clock.ms / 1000
    injector = Injector(monkeypatch, STEPS)
    world.table()
    trial = Trial(world, type)
    fired = set()
    for number in itertools.count(1):
        trial.write()
        expected = world.rows(world.snapshot())
        trial.begin_reader()
        injector.arm(number, after)
        with injector.on():
            trial.compact()
        trial.check(expected, injector.fired)
        if injector.fired is not None:
            trial.recover()
            trial.check(expected, injector.fired)
        trial.end_readers()
        trial.begin_reader()
        was_compacting = injector.fired is not None
        with injector.on():
            world.clean()
        assert [lock for lock in world.store.show_locks() if not lock.txn_id] == [], injector.fired
        if not was_compacting:
            trial.check(expected, injector.fired)
            trial.recover()
        trial.end_readers()
        for _ in range(2):
            world.clock.pass_seconds(10)
            world.clean()
        trial.check(expected, injector.fired)
        assert_tidy(world, type, injector.fired)
        if injector.fired is None:
            break
        fired.add(injector.fired)
    assert {"open_txns", "update_compactor_state", "mark_compacted", "commit_txn", "mark_cleaned", "rename"} <= fired
    world.close()


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
@pytest.mark.parametrize("after", [pytest.param(False, marks=pytest.mark.long), True])
@pytest.mark.parametrize("layout", ["hive3", "hive4"])
def test_a_rebalance_that_ends_at_any_step_shows_no_row_twice_and_brings_none_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str, after: bool, error: type[BaseException] | None
) -> None:
    """Its rows have new ids: a delete by the old ones would hide nothing of a base that is seen too late."""
    injector = Injector(monkeypatch, STEPS, error=error)
    fired = set[str]()
    for number in itertools.count(1):
        root = tmp_path / str(number)
        root.mkdir()
        world = World(root, {"acidsql.compactor.layout": layout, "acidsql.lock.timeout": "0s"})
        world.table()
        world.insert(1, 2, buckets=2)
        world.insert(3, 4)
        world.delete(1)
        world.store.compact(CompactionRequest("default", "t", None, CompactionType.REBALANCE, "ann", "desk"))
        injector.arm(number, after)
        with injector.on():
            world.worker.run_one()
        assert world.content() == [2, 2, 3, 4], injector.fired
        world.store.abort_txns([t.id for t in world.store.show_txns() if t.state is TxnState.OPEN])
        world.delete(3)
        for _ in range(3):
            assert world.content() == [2, 2, 4], injector.fired
            world.clock.pass_seconds(600)
            world.clean()
            world.end(world.begin())
        assert world.content() == [2, 2, 4], injector.fired
        world.close()
        if injector.fired is None:
            break
        fired.add(injector.fired)
    assert {"rename", "delete", "mark_compacted", "commit_txn"} <= fired


def assert_tidy(world: World, type: CompactionType, fired: str | None) -> None:
    """Nothing is left but what was compacted; of the minor ones what the last major one could have made of it."""
    names = unversioned(world.names())
    assert [name.split("_")[0] for name in names] == (["base"] if type is MAJOR else ["delete", "delta"]), fired
    assert {e.state for e in world.entries()} <= {State.SUCCEEDED, State.FAILED, State.REFUSED}, fired
    assert [t for t in world.store.show_txns() if t.state.value == "o"] == [], fired
    assert world.store.show_locks() == [], fired
    world.cleaner.sweep_staging()
    assert [p.name for p in world.path().iterdir() if p.name.startswith(".")] == [], fired
    if type is MAJOR:
        assert world.remembered() == set(), fired
