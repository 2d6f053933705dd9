"""Changes of the catalog on behalf of a transaction: made while it is open, and so holds its locks; not later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Thread

import pytest

from acidsql.errors import NoSuchTransaction, TransactionAborted
from acidsql.metastore.model import Column, Database, Statistics, Table
from acidsql.metastore.protocol import Metastore
from tests.metastore.situations import begin, home, partition, table


def wider(store: Metastore) -> Table:
    found = store.get_table("default", "t")
    return replace(found, columns=(*found.columns, Column("late", "int")))


def analyse(store: Metastore) -> None:
    found = store.get_table("default", "t")
    [seen] = store.get_valid_write_ids(["default.t"], store.get_valid_txns())
    store.set_statistics(found, 1, seen, {"p=1": Statistics({"numRows": "77"})})


CHANGES: dict[str, Callable[[Metastore], None]] = {
    "create_database": lambda store: store.create_database(Database("late", f"{home()}/late.db")),
    "drop_database": lambda store: store.drop_database("other"),
    "create_table": lambda store: store.create_table(table("late")),
    "alter_table": lambda store: store.alter_table(wider(store)),
    "drop_table": lambda store: store.drop_table("default", "t"),
    "rename_table": lambda store: store.rename_table("default", "t", table("late", partitioned=True)),
    "add_partitions": lambda store: store.add_partitions([partition("late")]),
    "drop_partitions": lambda store: store.drop_partitions("default", "t", ["p=1"]),
    "rename_partition": lambda store: store.rename_partition("p=1", partition("late")),
    "alter_partition": lambda store: store.alter_partition(replace(partition("1"), location=f"{home()}/t/late")),
    "set_statistics": analyse,
}


@pytest.fixture
def full(store: Metastore) -> Metastore:
    store.create_database(Database("other", f"{home()}/other.db"))
    store.create_table(table(partitioned=True))
    store.add_partitions([partition("1"), partition("2")])
    return store


def content(store: Metastore) -> object:
    """All that the changes are about."""
    tables = [store.get_table("default", name) for name in store.list_tables("default")]
    parts = [(store.list_partitions("default", t.name), store.partition_parameters("default", t.name)) for t in tables]
    return store.list_databases(), tables, parts


@pytest.mark.parametrize("change", CHANGES)
def test_of_a_transaction_that_has_ended_nothing_is_changed(full: Metastore, change: str) -> None:
    before = content(full)
    aborted, committed = begin(full), begin(full)
    full.abort_txns([aborted])
    full.commit_txn(committed)
    for txn_id in (aborted, committed):
        with pytest.raises((TransactionAborted, NoSuchTransaction)), full.on_behalf_of(txn_id):
            CHANGES[change](full)
    assert content(full) == before


@pytest.mark.parametrize("change", [c for c in CHANGES if c != "set_statistics"])
def test_of_an_open_transaction_everything_is(full: Metastore, change: str) -> None:
    before, txn_id = content(full), begin(full)
    with full.on_behalf_of(txn_id):
        CHANGES[change](full)
    assert content(full) != before
    full.commit_txn(txn_id)


def test_it_is_that_of_the_innermost_block_and_of_its_thread_alone(full: Metastore) -> None:
    gone, open_ = begin(full), begin(full)
    full.abort_txns([gone])
    with full.on_behalf_of(gone):
        with full.on_behalf_of(open_):
            full.add_partitions([partition("a")])
        other = Thread(target=full.add_partitions, args=([partition("b")],))
        other.start()
        other.join()
        with pytest.raises(TransactionAborted):
            full.add_partitions([partition("c")])
    full.add_partitions([partition("d")])
    assert [p.values[0] for p in full.list_partitions("default", "t")] == ["1", "2", "a", "b", "d"]
    full.commit_txn(open_)
