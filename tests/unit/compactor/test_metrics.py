"""What a compaction says of itself: files and bytes that it has replaced, and those that came instead."""

from __future__ import annotations

import pytest

from acidsql.metastore.model import CompactionMetrics, CompactionRequest, CompactionType
from acidsql.metastore.model import CompactionState as State
from tests.unit.compactor.world import MINOR, World

REBALANCE = CompactionType.REBALANCE


def sizes(world: World, *patterns: str) -> list[int]:
    """Lengths of the data files in some directories."""
    return [p.stat().st_size for pattern in patterns for p in world.path().glob(f"{pattern}/bucket_*")]


def metrics(world: World) -> CompactionMetrics:
    """Those of the latest entry."""
    found = world.entries()[0].metrics
    assert found is not None
    return found


@pytest.fixture(params=["hive4", "hive3"])
def written(request: pytest.FixtureRequest, world: World) -> World:
    """Two buckets of rows, an original file, and a delete."""
    world.settings.set("acidsql.compactor.layout", request.param)
    world.table()
    world.original(7, 8)
    world.insert(1, 2, buckets=2)
    world.insert(3)
    world.delete(8)
    return world


def test_a_major_compaction_replaces_originals_deltas_and_deletes(written: World) -> None:
    original = (written.path() / "000000_0").stat().st_size
    before = [original, *sizes(written, "delta_*", "delete_delta_*")]
    written.compact()
    after = sizes(written, "base_*")
    assert (len(before), len(after)) == (5, 2)
    assert metrics(written) == CompactionMetrics(5, sum(before), 2, sum(after), 6)
    ready = metrics(written)
    written.clean()
    assert written.states() == [State.SUCCEEDED]
    assert metrics(written) == ready


def test_the_next_one_counts_the_base_and_not_what_waits_for_the_cleaner(written: World) -> None:
    written.compact()
    written.insert(9)
    before = sizes(written, "base_*", "delta_0000004_*")
    reader = written.reader()
    written.clean()
    written.end(reader.txn_id)
    written.compact()
    after = [size for p in written.path().glob("base_0000004*") for size in sizes(written, p.name)]
    assert metrics(written) == CompactionMetrics(3, sum(before), 2, sum(after), 7)


def test_a_minor_compaction_leaves_base_and_originals_out(world: World) -> None:
    world.table()
    world.original(7, 8)
    for n in range(3):
        world.insert(n)
    world.delete(7)
    before = sizes(world, "delta_*", "delete_delta_*")
    world.compact(MINOR)
    after = sizes(world, "delta_0000001_0000004_v*", "delete_delta_0000001_0000004_v*")
    assert (len(before), len(after)) == (4, 2)
    assert metrics(world) == CompactionMetrics(4, sum(before), 2, sum(after), 4)


def test_when_no_row_is_left_there_is_one_file_without_any(world: World) -> None:
    world.table()
    world.insert(1, 2, buckets=2)
    world.delete(1, 2)
    before = sizes(world, "delta_*", "delete_delta_*")
    world.compact()
    assert metrics(world) == CompactionMetrics(4, sum(before), 1, sum(sizes(world, "base_*")), 0)


def test_a_rebalance_counts_its_own_files_alone(written: World) -> None:
    written.store.compact(CompactionRequest("default", "t", None, REBALANCE, "ann", "desk", buckets=3))
    original = (written.path() / "000000_0").stat().st_size
    before = [original, *sizes(written, "delta_*", "delete_delta_*")]
    assert written.worker.run_one() is not None
    after = sizes(written, "base_*")
    assert metrics(written) == CompactionMetrics(5, sum(before), 3, sum(after), 6)


def test_where_there_is_only_something_to_clean_nothing_is_replaced(world: World) -> None:
    world.table()
    world.insert(1)
    world.overwrite(2)
    world.compact()
    assert world.states() == [State.READY_FOR_CLEANING]
    assert metrics(world) == CompactionMetrics()


def test_what_was_refused_has_nothing_to_say(world: World) -> None:
    world.table()
    world.insert(1)
    world.compact()
    [entry] = world.entries()
    assert (entry.state, entry.metrics) == (State.REFUSED, None)
