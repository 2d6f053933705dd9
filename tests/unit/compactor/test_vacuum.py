"""The cleaner for one table, on demand: it removes what it says that it would, and what the cleaner would in time."""

from __future__ import annotations

from pathlib import Path

import pytest

from acidsql.compactor.vacuum import TableCleaner
from tests.unit.compactor.world import World


@pytest.fixture
def two(world: World) -> World:
    """Two tables with a compaction and an aborted write behind them."""
    for name in ("t", "u"):
        world.table(name)
        world.insert(1, name=name)
        world.delete(1, name=name)
        world.compact(name=name)
        world.insert(2, name=name, end="abort")
        world.insert(3, name=name)
    return world


def cleaner(world: World, name: str = "t", hours: int = 0) -> TableCleaner:
    return TableCleaner(world.context, world.store.get_table("default", name), hours * 3_600_000)


def names(paths: list[str]) -> list[str]:
    return [Path(path).name for path in paths]


def test_given_two_tables_when_one_is_vacuumed_then_it_alone_loses_what_nobody_needs(two: World) -> None:
    others = two.names("u")
    expected = ["delete_delta_0000002_0000002_0000", "delta_0000001_0000001_0000", "delta_0000003_0000003_0000"]
    listed = cleaner(two).removable()
    assert names(listed) == expected
    assert set(two.names("t")) > set(expected)
    assert cleaner(two).remove() == listed
    assert [name.partition("_v")[0] for name in two.names("t")] == ["base_0000002", "delta_0000004_0000004_0000"]
    assert two.names("u") == others
    assert two.content("t") == [3]
    assert cleaner(two).removable() == cleaner(two).remove() == []


def test_given_a_reader_of_before_when_vacuumed_then_it_keeps_what_it_reads(two: World) -> None:
    two.table("w")
    two.insert(1, name="w")
    two.insert(2, name="w")
    reader = two.reader("w")
    two.compact(name="w")
    before = two.names("w")
    assert cleaner(two, "w").removable() == cleaner(two, "w").remove() == []
    assert two.names("w") == before
    two.end(reader.txn_id)
    assert len(cleaner(two, "w").remove()) == 2


def test_given_a_retention_when_vacuumed_then_what_aborted_writes_left_goes_all_the_same(two: World) -> None:
    two.context.settings.set("hive.compactor.delayed.cleanup.enabled", "true")
    two.context.settings.set("hive.compactor.cleaner.retention.time", "999999d")
    assert names(cleaner(two).removable()) == ["delta_0000003_0000003_0000"]
    assert names(cleaner(two).remove()) == ["delta_0000003_0000003_0000"]


def test_given_a_table_that_is_not_to_be_cleaned_when_vacuumed_then_nothing_goes(world: World) -> None:
    world.table("t", NO_CLEANUP="true")
    world.insert(1)
    world.insert(2)
    world.compact()
    before = world.names()
    assert cleaner(world).removable() == cleaner(world).remove() == []
    assert world.names() == before
    assert world.states() == ["ready for cleaning"]
