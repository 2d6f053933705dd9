"""A compaction is durable before it is committed: the cleaner removes what it replaces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from acidsql.metastore.model import CompactionState as State
from acidsql.metastore.model import CompactionType
from tests.power_cut import Disk, watch_commits
from tests.unit.compactor.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("layout", ["hive3", "hive4"])
@pytest.mark.parametrize("type", list(CompactionType), ids=lambda type: type.name.lower())
def test_whatever_the_setting_says(
    world: World, monkeypatch: pytest.MonkeyPatch, type: CompactionType, layout: str
) -> None:
    world.settings.set("acidsql.compactor.layout", layout)
    world.settings.set("acidsql.sync", "false")
    world.table()
    for number in range(4):
        world.insert(number)
    world.delete(1)
    root = world.path()
    disk = Disk(monkeypatch, root)
    lost = watch_commits(monkeypatch, disk)
    assert world.compact(type).state == State.READY_FOR_CLEANING
    assert lost == [[]]
    assert disk.syncs > 2
