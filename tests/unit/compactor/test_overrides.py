"""``compactor.…`` and ``tblprops.…``: what a table, or a request, says otherwise (Hive's ``testTableProperties``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from acidsql.format.tail import read_footer
from acidsql.metastore.model import CompactionRequest
from acidsql.metastore.model import CompactionState as State
from tests.unit.compactor.world import FS, MAJOR, World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def compacted(world: World, **properties: str) -> State:
    """The state of the entry, after a request with these properties."""
    names = {name.replace("__", "."): value for name, value in properties.items()}
    world.store.compact(CompactionRequest("default", "t", None, MAJOR, "ann", "desk", properties=names))
    outcome = world.worker.run_one()
    assert outcome is not None
    return outcome.state


def base(world: World) -> str:
    [name] = [n for n in world.names() if n.startswith("base_")]
    return f"{world.path()}/{name}/bucket_00000"


class TestARequest:
    def test_that_names_a_compression_writes_the_new_file_with_it(self, world: World) -> None:
        world.table()
        world.insert(*range(20_000))
        world.insert(1)
        assert compacted(world, tblprops__orc__compress="SNAPPY") == State.READY_FOR_CLEANING
        assert read_footer(FS, base(world)).compression == "snappy"
        assert len(world.content()) == 20_001

    def test_leaves_the_table_as_it_was(self, world: World) -> None:
        world.table()
        world.insert(1)
        world.insert(2)
        compacted(world, tblprops__orc__compress="SNAPPY")
        world.insert(3)
        compacted(world)
        world.clean()
        world.clean()
        assert read_footer(FS, base(world)).compression == "zstd"

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("compactor.hive.compactor.max.num.delta", "many"),
            ("compactor.acidsql.compactor.layout", "hive5"),
            ("tblprops.orc.compress", "LZO"),
        ],
    )
    def test_with_a_value_that_means_nothing_fails_and_says_which(self, world: World, name: str, value: str) -> None:
        world.table()
        world.insert(1)
        world.insert(2)
        before = world.names()
        assert compacted(world, **{name: value}) == State.FAILED
        [entry] = world.entries()
        assert entry.error is not None
        assert value in entry.error
        assert world.names() == before
        assert world.store.show_txns() == []

    def test_may_name_properties_of_mapreduce_which_mean_nothing_here(self, world: World) -> None:
        world.table()
        world.insert(1)
        world.insert(2)
        assert compacted(world, compactor__mapreduce__map__memory__mb="3072") == State.READY_FOR_CLEANING

    def test_goes_before_the_table(self, world: World) -> None:
        world.table(**{"compactor.acidsql.compactor.layout": "hive4"})
        world.insert(1)
        world.insert(2)
        compacted(world, compactor__acidsql__compactor__layout="hive3")
        assert [n for n in world.names() if n.startswith("base_")] == ["base_0000002"]


class TestTheInitiator:
    def test_given_a_threshold_of_the_table_that_means_nothing_then_it_says_so_and_goes_on(self, world: World) -> None:
        world.table(**{"compactorthreshold.hive.compactor.delta.num.threshold": "few"})
        world.table("u", **{"compactorthreshold.hive.compactor.delta.num.threshold": "2"})
        for name in ("t", "u"):
            for number in range(3):
                world.insert(number, name=name)
        assert world.initiate() == [("u", None, "MAJOR")]
        [entry] = [one for one in world.entries() if one.table == "t"]
        assert entry.state == State.DID_NOT_INITIATE
        assert "few" in (entry.error or "")

    @pytest.mark.parametrize(
        ("of_table", "of_database", "pool"), [("p", "q", "p"), (None, "q", "q"), (None, None, None)]
    )
    def test_asks_in_the_pool_of_the_table_or_of_the_database(
        self, world: World, of_table: str | None, of_database: str | None, pool: str | None
    ) -> None:
        name = "hive.compactor.worker.pool"
        world.table(**({name: of_table} if of_table else {}))
        for number in range(11):
            world.insert(number)
        database = replace(world.store.get_database("default"), parameters={name: of_database} if of_database else {})
        with patch.object(world.store, "get_database", return_value=database):
            world.initiate()
        [entry] = world.entries()
        assert entry.pool == pool
