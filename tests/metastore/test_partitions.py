"""Partitions of the catalog."""

from __future__ import annotations

import pytest

from acidsql.errors import AlreadyExists, PartitionNotFound, TableNotFound
from acidsql.metastore.model import Column, Partition, Table
from acidsql.metastore.protocol import Metastore
from acidsql.partition_names import DEFAULT_PARTITION, partition_name
from tests.metastore.situations import home, partition, sweep, table


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


@pytest.mark.parametrize(
    "value",
    ["ä ö", "a=b", "a/b", "50%", "%41", "'quoted'", 'say "x"', "a:b", "x" * 100, "2024-02-29", "#[]{}^*?\\", "NULL"],
)
def test_odd_values_are_found_and_dropped_by_their_name(by_p: Metastore, value: str) -> None:
    name = partition_name(["p"], [value])
    odd = Partition("default", "t", (value,), f"{home()}/t/{name}")
    by_p.add_partitions([odd, partition("1")])
    assert by_p.list_partitions("default", "t", [name]) == [odd]
    by_p.drop_partitions("default", "t", [name])
    assert by_p.list_partitions("default", "t") == [partition("1")]


def test_a_partition_may_lie_anywhere(by_p: Metastore) -> None:
    elsewhere = Partition("default", "t", ("2",), f"{home()}/else where/2024")
    by_p.add_partitions([partition("1"), elsewhere, partition("3")])
    assert by_p.list_partitions("default", "t") == [partition("1"), elsewhere, partition("3")]
    assert by_p.list_partitions("default", "t", ["p=2"]) == [elsewhere]


def test_hundreds_of_partitions_are_added_listed_and_dropped(by_p: Metastore) -> None:
    many = [partition(f"{i:04}") for i in range(400)]
    by_p.add_partitions(many)
    assert by_p.list_partitions("default", "t") == many
    names = [f"p={i:04}" for i in range(399)]
    assert by_p.list_partitions("default", "t", names) == many[:-1]
    by_p.drop_partitions("default", "t", names)
    assert by_p.list_partitions("default", "t") == many[-1:]


def test_partitions_of_several_keys_are_ordered_by_name(store: Metastore) -> None:
    keys = (Column("p", "string"), Column("q", "int"))
    store.create_table(Table("default", "t", f"{home()}/t", (Column("a", "int"),), keys, {"transactional": "true"}))
    values = [("b", "1"), ("a", "10"), ("a", "2"), ("a b", "1")]
    store.add_partitions([Partition("default", "t", v, f"{home()}/t/p={v[0]}/q={v[1]}") for v in values])
    found = [one.values for one in store.list_partitions("default", "t")]
    assert found == sorted(values, key=lambda v: partition_name(["p", "q"], v))
    assert [one.values for one in store.list_partitions("default", "t", ["p=a b/q=1"])] == [("a b", "1")]


def test_a_table_without_keys_has_no_partitions(store: Metastore) -> None:
    store.create_table(table())
    assert store.list_partitions("default", "t") == []


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


@pytest.mark.needs("embedded")
def test_a_directory_is_done_with_by_a_slow_session_only_if_it_is_the_one_that_it_saw(by_p: Metastore) -> None:
    """Two sessions remove what was dropped first; the slower one says so when the next is dropped."""
    by_p.add_partitions([partition("1"), partition("2")])
    by_p.drop_partitions("default", "t", ["p=2"])
    seen = by_p.dropped_directories()
    sweep(by_p)
    by_p.drop_partitions("default", "t", ["p=1"])
    [dropped] = by_p.dropped_directories()
    by_p.set_aside(seen)
    by_p.forget_dropped(seen)
    assert by_p.dropped_directories() == [dropped]
    assert (dropped.location, dropped.is_aside) == (partition("1").location, False)


def creators(store: Metastore, *names: str) -> list[list[int] | None]:
    """Of a Hive Metastore's None; it does not tell."""
    found = store.list_partitions("default", "t", [f"p={name}" for name in names])
    return [None if p.created_by is None else sorted(p.created_by) for p in found]


def test_a_partition_exists_once_one_of_those_who_have_made_it_is_committed(by_p: Metastore) -> None:
    tells = by_p.capabilities.tells_creators
    undone, done, late = by_p.open_txns(3, user="u", host="h")
    with by_p.on_behalf_of(undone):
        by_p.add_partitions([partition("1"), partition("2"), partition("3")])
    by_p.add_partitions([partition("0")])
    assert creators(by_p, "0", "1", "2", "3") == [None, *[[undone] if tells else None] * 3]
    with by_p.on_behalf_of(done):
        by_p.add_partitions([partition("0"), partition("1"), Partition("default", "t", ("2",), f"{home()}/elsewhere")])
    assert creators(by_p, "0", "1", "3") == ([None, [undone, done], [undone]] if tells else [None] * 3)
    with pytest.raises(AlreadyExists), by_p.on_behalf_of(late):
        by_p.add_partitions([partition("3")], if_not_exists=False)  # that one may commit it
    by_p.abort_txns([undone])
    assert creators(by_p, "0", "1", "3") == ([None, [done], []] if tells else [None] * 3)
    by_p.commit_txn(done)
    assert creators(by_p, "0", "1", "2", "3") == [None, None, None, [] if tells else None]
    assert by_p.list_partitions("default", "t") == [partition(v) for v in "0123"]
    for name in ("0", "1") if tells else ("0", "1", "3"):
        with pytest.raises(AlreadyExists):
            by_p.add_partitions([partition(name)], if_not_exists=False)
    if tells:
        by_p.add_partitions([partition("3")], if_not_exists=False)
        assert creators(by_p, "3") == [None]
    by_p.abort_txns([late])


def test_a_partition_is_nobodys_where_its_transaction_has_undone_what_it_wrote(by_p: Metastore) -> None:
    tells = by_p.capabilities.tells_creators
    mine, other = by_p.open_txns(2, user="u", host="h")
    with by_p.on_behalf_of(other):
        by_p.add_partitions([partition("1"), partition("2")])
    with by_p.on_behalf_of(mine):
        by_p.add_partitions([partition("2"), partition("3"), partition("4")])
        by_p.disown_partitions("default", "t", ["p=1", "p=2", "p=3", "p=7"])
        by_p.disown_partitions("default", "t", ["p=3"])
    by_p.commit_txn(mine)
    assert by_p.list_partitions("default", "t") == [partition(v) for v in "1234"]
    assert creators(by_p, "1", "2", "3", "4") == ([[other], [other], [], None] if tells else [None] * 4)
    by_p.commit_txn(other)
    assert creators(by_p, "1", "2", "3", "4") == ([None, None, [], None] if tells else [None] * 4)


def test_a_partition_that_is_renamed_or_moved_or_made_anew_exists(by_p: Metastore) -> None:
    [undone] = by_p.open_txns(user="u", host="h")
    with by_p.on_behalf_of(undone):
        by_p.add_partitions([partition("1"), partition("2"), partition("3")])
    by_p.abort_txns([undone])
    by_p.rename_partition("p=1", partition("8"))
    by_p.drop_partitions("default", "t", ["p=3"])
    sweep(by_p)
    by_p.add_partitions([partition("1"), partition("3")])
    assert creators(by_p, "1", "3", "8") == [None] * 3
    by_p.alter_partition(partition("2"))
    assert creators(by_p, "2") == [None]
