"""The cleaner for one table, on demand: it removes what it says that it would, and what the cleaner would in time."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from acidsql.compactor.vacuum import TableCleaner
from acidsql.format.bucket import encode
from acidsql.format.names import BaseName
from acidsql.format.orc import write_inserts
from acidsql.metastore.model import CompactionState as State
from acidsql.metastore.model import CompactionType
from tests.unit.compactor.world import FS, ROW_TYPE, World, rows_of, values


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


def make_old(world: World) -> None:
    """Let all files have been written long ago."""
    for file in world.path().rglob("*"):
        os.utime(file, (0, 0))


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
    two.context.settings.set("hive.compactor.cleaner.retention.time.seconds", "999999d")
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
    assert world.states() == [State.READY_FOR_CLEANING]


# --- what no compaction has replaced ---------------------------------------------------------------------------------


@pytest.fixture(params=["hive3", "hive4"])
def overwritten(request: pytest.FixtureRequest, world: World) -> World:
    """A table whose rows were changed, and then replaced by others."""
    world.settings.set("acidsql.compactor.layout", request.param)
    world.table()
    world.original(0)
    world.insert(1, 2)
    world.delete(1)
    world.overwrite(3)
    return world


OVERWRITTEN = ["000000_0", "delete_delta_0000002_0000002_0000", "delta_0000001_0000001_0000"]


def test_given_an_overwrite_when_vacuumed_then_what_it_has_replaced_goes(overwritten: World) -> None:
    overwritten.insert(4)
    listed = cleaner(overwritten).removable()
    assert names(listed) == OVERWRITTEN
    assert cleaner(overwritten).remove() == listed
    assert overwritten.names() == ["base_0000003", "delta_0000004_0000004_0000"]
    assert overwritten.content() == [3, 4]
    assert cleaner(overwritten).removable() == cleaner(overwritten).remove() == []


def test_given_a_truncated_partition_when_vacuumed_then_its_files_go_and_those_of_others_stay(world: World) -> None:
    world.table("t", "a", "b")
    for part in ("a", "b"):
        world.insert(1, part=part)
    path = world.path(part="a") / f"base_{world.overwrite(part='a'):07d}" / "_metadata_acid"
    path.write_text('{"thisFileVersion":"0","dataFormat":"truncated"}')
    assert names(cleaner(world).removable()) == names(cleaner(world).remove()) == ["delta_0000001_0000001_0000"]
    assert world.names(part="a") == ["base_0000003"]
    assert world.names(part="b") == ["delta_0000002_0000002_0000"]


def test_given_an_overwrite_that_has_not_ended_or_was_aborted_when_vacuumed_then_the_rows_stay(world: World) -> None:
    world.table()
    world.insert(1)
    aborted, _ = (world.overwrite(2, end=end) for end in ("abort", "open"))
    assert names(cleaner(world).removable()) == names(cleaner(world).remove()) == [f"base_{aborted:07d}"]
    assert world.content() == [1]


def test_given_a_reader_of_before_the_overwrite_when_vacuumed_then_it_keeps_what_it_reads(world: World) -> None:
    world.table()
    world.insert(1)
    reader = world.reader()
    world.overwrite(2)
    assert cleaner(world).removable() == cleaner(world).remove() == []
    assert list(world.rows(reader).values()) == [1]
    world.end(reader.txn_id)
    assert len(cleaner(world).remove()) == 1


def test_given_a_reader_who_began_while_the_overwrite_was_open_when_vacuumed_then_it_keeps_what_it_reads(
    world: World,
) -> None:
    """The overwriter has the older transaction, and has ended: the oldest that is open is the reader's own."""
    world.table()
    world.insert(1)
    writer = world.begin()
    write_id = world.write_id(writer)
    reader = world.reader()
    path = f"{world.path()}/{BaseName(write_id)}/bucket_00000"
    write_inserts(FS, path, ROW_TYPE, values(2), write_id=write_id, bucket=encode(0))
    world.end(writer)
    assert world.store.min_open_txn() == reader.txn_id > writer
    assert cleaner(world).removable() == cleaner(world).remove() == []
    assert list(world.rows(reader).values()) == [1]
    world.end(reader.txn_id)
    assert len(cleaner(world).remove()) == 1
    assert world.content() == [2]


def test_given_a_reader_of_after_the_overwrite_when_vacuumed_then_it_is_in_nobodys_way(overwritten: World) -> None:
    reader = overwritten.reader()
    assert names(cleaner(overwritten).remove()) == OVERWRITTEN
    assert list(overwritten.rows(reader).values()) == [3]


def test_given_an_overwrite_below_a_compaction_that_waits_then_only_what_the_former_has_replaced_goes(
    overwritten: World,
) -> None:
    overwritten.insert(4)
    reader = overwritten.reader()
    overwritten.compact()
    late = overwritten.reader()
    overwritten.overwrite(9, end="open")
    assert names(cleaner(overwritten).removable()) == OVERWRITTEN
    assert names(cleaner(overwritten).remove()) == OVERWRITTEN
    assert sorted(rows_of(reader.states[0], reader.write_ids).values()) == [3, 4]
    overwritten.end(reader.txn_id)
    assert names(cleaner(overwritten).remove()) == ["base_0000003", "delta_0000004_0000004_0000"]
    assert sorted(overwritten.rows(late).values()) == [3, 4]


def test_given_a_retention_when_vacuumed_then_what_was_overwritten_later_stays(overwritten: World) -> None:
    assert cleaner(overwritten, hours=1).removable() == cleaner(overwritten, hours=1).remove() == []
    make_old(overwritten)
    assert names(cleaner(overwritten, hours=1).removable()) == OVERWRITTEN
    assert names(cleaner(overwritten, hours=1).remove()) == OVERWRITTEN


def test_given_a_retention_when_vacuumed_then_a_compaction_that_waits_for_it_keeps_all(world: World) -> None:
    """Nobody is there who may need it; but it is in the queue, and that says when."""
    world.table()
    world.insert(1)
    world.insert(2)
    world.compact()
    make_old(world)
    before = world.names()
    assert cleaner(world, hours=1).removable() == cleaner(world, hours=1).remove() == []
    assert world.names() == before


def test_given_a_retention_when_vacuumed_then_a_rebalance_that_waits_for_it_keeps_all(world: World) -> None:
    """In the layout of Hive 3 its base looks like one of an INSERT OVERWRITE."""
    world.settings.set("acidsql.compactor.layout", "hive3")
    world.table()
    world.insert(1)
    world.insert(2)
    world.compact(CompactionType.REBALANCE)
    make_old(world)
    assert [name for name in world.names() if name.startswith("base")] == ["base_0000003"]
    assert cleaner(world, hours=1).removable() == cleaner(world, hours=1).remove() == []
    assert len(cleaner(world).remove()) == 2


@pytest.mark.parametrize("layout", ["hive3", "hive4"])
def test_given_files_that_were_to_stay_when_they_need_not_any_more_then_they_go_as_soon_as_nobody_is_there(
    world: World, layout: str
) -> None:
    """Their compaction is not in the queue any more, so nobody knows who may have chosen them before it."""
    world.settings.set("acidsql.compactor.layout", layout)
    world.table("t", NO_CLEANUP="true")
    world.insert(1)
    world.insert(2)
    world.compact()
    world.clean()
    assert world.states() == [State.REFUSED]
    world.store.alter_table(replace(world.store.get_table("default", "t"), parameters={"transactional": "true"}))
    reader = world.reader()
    assert cleaner(world).removable() == cleaner(world).remove() == []
    world.end(reader.txn_id)
    expected = ["delta_0000001_0000001_0000", "delta_0000002_0000002_0000"]
    assert names(cleaner(world).removable()) == names(cleaner(world).remove()) == expected
    assert world.content() == [1, 2]
