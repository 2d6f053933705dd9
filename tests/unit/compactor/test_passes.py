"""``hive.compactor.max.num.delta``: more deltas than that are put together in several passes, and nobody sees it."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from acidsql.compactor import passes
from acidsql.metastore.model import CompactionState as State
from acidsql.metastore.model import CompactionType
from tests.unit.compactor.world import MAJOR, MINOR, World, unversioned


def written(root: Path, limit: str, **parameters: str) -> World:
    """A table with eleven deltas of inserts, five of deletes, and what was aborted; stream of two transactions."""
    root.mkdir(exist_ok=True)
    world = World(root, {"hive.compactor.max.num.delta": limit})
    world.table(**parameters)
    world.insert(1, 2, 3, buckets=2)
    for number in range(10, 60, 10):
        world.insert(number, number + 1)
        world.delete(number)
        world.insert(number + 2, end="abort")
    world.stream("commit", "abort", "commit")
    world.delete(11, end="abort")
    for number in range(60, 90, 10):
        world.insert(number)
    return world


@pytest.mark.parametrize("limit", ["1", "2", "3", "7"])
@pytest.mark.parametrize("type", [MAJOR, MINOR], ids=["major", "minor"])
def test_given_more_deltas_than_the_limit_when_compacted_then_rows_and_directories_are_the_same(
    tmp_path: Path, type: CompactionType, limit: str
) -> None:
    one, several = written(tmp_path / "one", "500"), written(tmp_path / "several", limit)
    with patch.object(passes.Passes, "_task", autospec=True, side_effect=passes.Passes._task) as task:
        for world in (one, several):
            assert world.compact(type).state == State.READY_FOR_CLEANING
    now = one.snapshot()
    assert several.rows(several.snapshot()) == one.rows(now)
    world_names = [unversioned(world.names()) for world in (one, several)]
    assert world_names[0] == world_names[1]
    assert [len(call.args[2]) <= max(2, int(limit)) for call in task.call_args_list] == [True] * task.call_count
    assert task.call_count >= 2
    several.clean()
    assert several.rows(several.snapshot()) == one.rows(now)
    assert not [p for p in several.path().iterdir() if p.name.startswith(".")]
    one.close()
    several.close()


def test_given_a_limit_of_the_table_when_compacted_then_it_goes_before_that_of_the_session(tmp_path: Path) -> None:
    world = written(tmp_path, "500", **{"compactor.hive.compactor.max.num.delta": "4"})
    before = world.content()
    with patch.object(passes.Passes, "_task", autospec=True, side_effect=passes.Passes._task) as task:
        world.compact(MAJOR)
    assert world.content() == before
    assert {len(call.args[2]) for call in task.call_args_list} >= {4}
    world.close()
