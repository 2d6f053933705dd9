"""Whose files are where: no place of a table, partition or database may be in another's way. And what names may be."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from acidsql.errors import AcidError, AlreadyExists, AnalysisError
from acidsql.metastore.model import Database, Partition, Table
from acidsql.metastore.protocol import Metastore
from tests.metastore.conftest import OpenStore
from tests.metastore.situations import begin, home, partition, sweep, table

embedded = pytest.mark.needs("embedded")


def at(place: str, name: str = "u", *, partitioned: bool = False) -> Table:
    return replace(table(name, partitioned=partitioned), location=place)


def part_at(place: str, value: str = "9", name: str = "t") -> Partition:
    return replace(partition(value, name), location=place)


@embedded
class TestPlaces:
    @pytest.fixture(autouse=True)
    def taken(self, store: Metastore) -> None:
        """A table with a usual partition and one elsewhere, and a database beside it."""
        store.create_table(table(partitioned=True))
        store.add_partitions([partition("1"), part_at(f"{home()}/far/away", "2")])
        store.create_database(Database("hr", f"{home()}/hr.db"))

    TAKEN = ("t", "t/", "t/p=1", "t/p=1/deep", "t/new", "far/away", "far/away/below", "far")

    @pytest.mark.parametrize("place", [*TAKEN, "hr.db", ""])
    def test_no_table_is_made_or_put_in_anothers_place(self, store: Metastore, place: str) -> None:
        with pytest.raises(AlreadyExists, match="is not free"):
            store.create_table(at(f"{home()}/{place}"))
        assert store.find_table("default", "u") is None
        store.create_table(table("u"))
        with pytest.raises(AlreadyExists, match="is not free"):
            store.alter_table(at(f"{home()}/{place}"))
        with pytest.raises(AlreadyExists, match="is not free"):
            store.rename_table("default", "u", at(f"{home()}/{place}", "v"))
        assert store.get_table("default", "u") == table("u")

    @pytest.mark.parametrize("place", [*TAKEN, "hr.db", ""])
    def test_no_partition_is_added_in_anothers_place(self, store: Metastore, place: str) -> None:
        store.create_table(table("u", partitioned=True))
        with pytest.raises(AlreadyExists, match="is not free"):
            store.add_partitions([partition("1", "u"), part_at(f"{home()}/{place}", "2", "u")])
        assert store.list_partitions("default", "u") == []
        store.add_partitions([partition("1", "u")])
        with pytest.raises(AlreadyExists, match="is not free"):
            store.alter_partition(part_at(f"{home()}/{place}", "1", "u"))
        with pytest.raises(AlreadyExists, match="is not free"):
            store.rename_partition("p=1", part_at(f"{home()}/{place}", "3", "u"))
        assert store.list_partitions("default", "u") == [partition("1", "u")]

    @pytest.mark.parametrize("place", TAKEN)
    def test_no_database_is_made_in_a_tables_place(self, store: Metastore, place: str) -> None:
        with pytest.raises(AlreadyExists, match="is not free"):
            store.create_database(Database("d", f"{home()}/{place}"))
        assert store.list_databases() == ["default", "hr"]

    @pytest.mark.parametrize("place", ["t/p=1", "t/p=1/x", "far/away", "far", "t", ""])
    def test_nor_is_a_partition_in_that_of_another_one_of_its_table(self, store: Metastore, place: str) -> None:
        with pytest.raises(AlreadyExists, match="is not free"):
            store.add_partitions([part_at(f"{home()}/{place}")])

    def test_nor_are_two_that_are_added_together(self, store: Metastore) -> None:
        for place in ("x", "x/y"):
            with pytest.raises(AlreadyExists, match="is not free"):
                store.add_partitions([part_at(f"{home()}/x", "8"), part_at(f"{home()}/{place}")])

    def test_what_begins_alike_is_another_place(self, store: Metastore) -> None:
        store.create_table(at(f"{home()}/t2"))
        store.create_table(at(f"{home()}/t-old", "v"))
        store.create_table(at(f"{home()}/t%", "w"))
        store.create_table(at(f"{home()}/fa", "x"))
        store.create_database(Database("d", f"{home()}/far2"))
        store.add_partitions([part_at(f"{home()}/t/p=11", "11"), part_at(f"{home()}/far/away2", "12")])

    def test_a_place_is_free_again_when_its_table_is_gone_or_elsewhere(self, store: Metastore) -> None:
        store.alter_table(replace(table(partitioned=True), location=f"{home()}/moved"))
        with pytest.raises(AlreadyExists):  # its partition is still there
            store.create_table(at(f"{home()}/t"))
        store.drop_partitions("default", "t", ["p=1"])
        with pytest.raises(AlreadyExists, match="has not been removed yet"):
            store.create_table(at(f"{home()}/t"))
        sweep(store)
        store.create_table(at(f"{home()}/t"))
        store.drop_table("default", "t")
        sweep(store)
        store.create_table(at(f"{home()}/far/away", "v"))

    def test_a_table_may_move_to_the_directory_above_its_partitions(self, store: Metastore) -> None:
        store.drop_partitions("default", "t", ["p=1"])
        store.alter_table(replace(table(partitioned=True), location=f"{home()}/far"))

    def test_a_view_has_none(self, store: Metastore) -> None:
        for name in ("v", "w"):
            store.create_table(replace(at("", name), view_text="SELECT 1", table_type="VIRTUAL_VIEW"))

    def test_many_partitions_are_added_with_few_looks(self, store: Metastore) -> None:
        store.add_partitions([partition(str(n)) for n in range(1000, 2300)])
        with pytest.raises(AlreadyExists, match="p=1500"):
            store.create_table(at(f"{home()}/t/p=1500/x"))

    @pytest.mark.parametrize("place", ["old", "old/below", "old/p=3", "", "elsewhere/old"])
    @pytest.mark.parametrize("others", [0, 40], ids=["alone", "among many"])
    def test_a_partition_where_another_table_was_makes_write_ids_go_on(
        self, store: Metastore, place: str, others: int
    ) -> None:
        """Names of directories never come again at a place, above or below."""
        for name, ids in (("before", 2), ("old", 5)):
            location = {"before": "before", "old": "wide/old"}[name]
            store.create_table(at(f"{home()}/{location}", name, partitioned=True))
            store.add_partitions([part_at(f"{home()}/{location}/p=3", "3", name)])
            for _ in range(ids):
                txn_id = begin(store)
                store.allocate_table_write_id(txn_id, "default", name)
                store.commit_txn(txn_id)
            store.drop_table("default", name)
        sweep(store)
        store.create_table(table("u", partitioned=True))
        usual = [partition(str(number), "u") for number in range(others)]
        store.add_partitions([*usual, part_at(f"{home()}/wide/{place}", "x", "u")])
        expected = 1 if place == "elsewhere/old" else 6
        assert store.allocate_table_write_id(begin(store), "default", "u") == expected

    @pytest.mark.parametrize("rival", ["table", "partition", "database"])
    def test_of_many_that_want_one_place_at_once_one_has_it(
        self, store: Metastore, open_store: OpenStore, rival: str
    ) -> None:
        stores = [open_store() for _ in range(4)]
        store.create_table(table("u", partitioned=True))
        barrier = threading.Barrier(8)
        place = f"{home()}/wanted"
        wants: list[Callable[[Metastore, int], None]] = [lambda s, n: s.create_table(at(place, f"n{n}"))]
        if rival == "partition":
            wants.append(lambda s, n: s.add_partitions([part_at(f"{place}/below", str(n), "u")]))
        elif rival == "database":
            wants.append(lambda s, n: s.create_database(Database(f"d{n}", place)))

        def want(number: int) -> bool:
            barrier.wait()
            try:
                wants[number % len(wants)](stores[number // 2], number)
            except AlreadyExists:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            granted = list(pool.map(want, range(8)))
        tables = [name for name in store.list_tables("default") if name.startswith("n")]
        partitions = store.list_partitions("default", "u")
        assert bool(tables) + bool(partitions) + (len(store.list_databases()) > 2) == 1
        assert len(tables) <= 1
        assert len(partitions) <= 1
        assert any(granted)


class TestNames:
    BAD = ("../escape", "..", ".", "", "a.b", "a b", "größe", "a\n", "a%2Fb", "a\x00")

    @pytest.mark.parametrize("name", [*BAD, "a/b"])
    def test_of_a_database_is_one_directory(self, store: Metastore, name: str) -> None:
        with pytest.raises(AnalysisError, match="is not a valid database name"):
            store.create_database(Database(name, f"{home()}/somewhere"))
        assert store.list_databases() == ["default"]

    @pytest.mark.parametrize("name", BAD)
    def test_of_a_table_is_one_that_hive_takes(self, store: Metastore, name: str) -> None:
        with pytest.raises(AnalysisError, match="is not a valid table name"):
            store.create_table(replace(table(), name=name))
        store.create_table(table())
        with pytest.raises(AnalysisError, match="is not a valid table name"):
            store.rename_table("default", "t", replace(table(), name=name))
        assert store.list_tables("default") == ["t"]


@embedded
def test_ids_in_names_of_directories_do_not_bring_those_of_a_store_to_their_end(store: Metastore) -> None:
    before = store.get_valid_txns()
    with pytest.raises(AcidError, match="has ever given out transaction id"):
        store.seed_txn_id((1 << 63) - 2)
    assert store.get_valid_txns() == before
