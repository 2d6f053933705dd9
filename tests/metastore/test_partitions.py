"""Partitions of the catalog."""

from __future__ import annotations

import pytest

from acidsql.errors import PartitionNotFound, TableNotFound
from acidsql.metastore.model import Column, Partition, Table
from acidsql.metastore.protocol import Metastore
from acidsql.partition_names import DEFAULT_PARTITION
from tests.metastore.situations import home, partition, table


@pytest.fixture
def by_p(store: Metastore) -> Metastore:
    store.create_table(table(partitioned=True))
    return store


def test_partitions_are_listed_by_name(by_p: Metastore) -> None:
    by_p.add_partitions([partition("b"), partition("a"), partition("10"), partition("9")])
    assert by_p.list_partitions("default", "t") == [partition(v) for v in ("10", "9", "a", "b")]


def test_only_the_partitions_that_are_asked_for_are_listed(by_p: Metastore) -> None:
    by_p.add_partitions([partition("1"), partition("2"), partition("3")])
    assert by_p.list_partitions("default", "t", ["p=3", "p=1", "p=7"]) == [partition("1"), partition("3")]
    assert by_p.list_partitions("default", "t", []) == []


def test_a_partition_that_is_there_already_is_left_alone(by_p: Metastore) -> None:
    by_p.add_partitions([partition("1")])
    by_p.add_partitions([Partition("default", "t", ("1",), f"{home()}/elsewhere"), partition("2")])
    assert by_p.list_partitions("default", "t") == [partition("1"), partition("2")]


def test_adding_nothing_is_no_error(by_p: Metastore) -> None:
    by_p.add_partitions([])
    assert by_p.list_partitions("default", "t") == []


def test_values_with_path_characters_and_null_are_kept(store: Metastore) -> None:
    keys = (Column("p", "string"), Column("q", "string"))
    store.create_table(Table("default", "t", f"{home()}/t", (Column("a", "int"),), keys))
    odd = Partition("default", "t", ("a/b=c d%", DEFAULT_PARTITION), f"{home()}/t/x")
    store.add_partitions([odd])
    name = f"p=a%2Fb%3Dc d%25/q={DEFAULT_PARTITION}"
    assert store.list_partitions("default", "t", [name]) == [odd]


def test_partitions_of_a_table_that_is_not_there(store: Metastore) -> None:
    with pytest.raises(TableNotFound):
        store.list_partitions("default", "t")
    with pytest.raises(TableNotFound):
        store.add_partitions([partition("1")])
    with pytest.raises(TableNotFound):
        store.drop_partitions("default", "t", ["p=1"])


def test_all_partitions_of_a_call_are_added_or_none(by_p: Metastore) -> None:
    with pytest.raises(TableNotFound):
        by_p.add_partitions([partition("1"), partition("1", "nowhere")])
    assert by_p.list_partitions("default", "t") == []


def test_dropped_partitions_are_gone(by_p: Metastore) -> None:
    by_p.add_partitions([partition("1"), partition("2"), partition("3")])
    by_p.drop_partitions("default", "t", ["p=1", "p=3"])
    assert by_p.list_partitions("default", "t") == [partition("2")]


def test_dropping_one_that_is_not_there_drops_none(by_p: Metastore) -> None:
    by_p.add_partitions([partition("1")])
    with pytest.raises(PartitionNotFound, match="p=2"):
        by_p.drop_partitions("default", "t", ["p=1", "p=2"])
    assert by_p.list_partitions("default", "t") == [partition("1")]
