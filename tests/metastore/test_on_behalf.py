"""Changes of the catalog on behalf of a transaction: made while it is open, and so holds its locks; not later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Thread

import pytest

from acidsql.errors import AlreadyExists, NoSuchTransaction, TableNotFound, TransactionAborted
from acidsql.metastore.model import Column, Database, LockType, Operation, Statistics, Table, WrittenBy
from acidsql.metastore.protocol import Metastore
from tests.metastore.situations import ask, begin, home, partition, sweep, table


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


# --- a table that is seen from the commit on -------------------------------------------------------------------------


@pytest.fixture
def created(full: Metastore) -> tuple[Metastore, int]:
    """A store, and the transaction that is creating ``new`` in it."""
    txn_id = begin(full)
    ask(full, txn_id, LockType.EXCL_WRITE, "default.new", Operation.INSERT)
    with full.on_behalf_of(txn_id):
        full.create_table(table("new", partitioned=True), at_commit=True, makes_directory=True)
        assert full.allocate_table_write_id(txn_id, "default", "new") == 1
        full.add_partitions([partition("1", "new")])
        assert full.list_tables("default") == ["new", "t"]
        assert full.get_table("default", "new").partition_keys
    return full, txn_id


def is_hidden(store: Metastore) -> bool:
    names = store.list_tables("default") == ["t"] and store.list_views("default") == []
    return names and store.find_table("default", "new") is None


@pytest.mark.needs("hides new tables")
class TestATableThatIsSeenFromTheCommitOn:
    def test_is_not_seen_before_by_others(self, created: tuple[Metastore, int]) -> None:
        store, txn_id = created
        other = begin(store)
        with store.on_behalf_of(other):
            assert is_hidden(store)
        assert is_hidden(store)
        with pytest.raises(TableNotFound):
            store.get_table("default", "new")
        store.commit_txn(txn_id)
        assert store.list_tables("default") == ["new", "t"]
        assert [p.values for p in store.list_partitions("default", "new")] == [("1",)]
        assert store.dropped_directories() == []

    def test_keeps_its_name_and_its_place(self, created: tuple[Metastore, int]) -> None:
        store, _ = created
        for other in (table("new"), replace(table("u"), location=f"{home()}/new")):
            with pytest.raises(AlreadyExists):
                store.create_table(other)
        with pytest.raises(AlreadyExists):
            store.rename_table("default", "t", table("new", partitioned=True))

    @pytest.mark.parametrize("asked", [True, False])
    def test_is_dropped_where_that_never_comes(self, created: tuple[Metastore, int], asked: bool) -> None:
        store, txn_id = created
        store.abort_txns([txn_id])
        assert is_hidden(store)
        if asked:
            assert [d.location for d in store.dropped_directories()] == [f"{home()}/new"]
        with pytest.raises(AlreadyExists, match="has not been removed"):
            store.create_table(table("new"))
        sweep(store)
        store.create_table(table("new"))
        assert store.list_partitions("default", "new") == []
        assert store.allocate_table_write_id(begin(store), "default", "new") == 2  # its names do not come again

    def test_leaves_a_directory_that_was_there_before(self, full: Metastore) -> None:
        txn_id = begin(full)
        with full.on_behalf_of(txn_id):
            full.create_table(table("new"), at_commit=True)
        full.abort_txns([txn_id])
        assert is_hidden(full)
        assert [(d.location, d.made_by) for d in full.dropped_directories()] == [
            (f"{home()}/new", WrittenBy(txn_id, None))
        ]
        sweep(full)
        full.create_table(table("new"))

    def test_that_was_forgotten_with_its_transaction_is_dropped(self, created: tuple[Metastore, int]) -> None:
        store, txn_id = created
        store.abort_txns([txn_id])
        store.forget_txn_components(txn_id)
        store.commit_txn(begin(store))
        store.clean_empty_aborted_txns()
        assert is_hidden(store)
        assert [d.location for d in store.dropped_directories()] == [f"{home()}/new"]

    def test_has_its_rows_where_it_waited_for_another_of_its_name_to_be_dropped(self, full: Metastore) -> None:
        """What it writes is recorded when it asks for its lock."""
        dropper, txn_id = begin(full), begin(full)
        ask(full, dropper, LockType.EXCLUSIVE, "default.t")
        ask(full, txn_id, LockType.EXCL_WRITE, "default.t", Operation.INSERT)
        full.drop_table("default", "t", keep_files=True)
        full.commit_txn(dropper)
        with full.on_behalf_of(txn_id):
            full.create_table(table("t"), at_commit=True)
            write_id = full.allocate_table_write_id(txn_id, "default", "t")
        full.commit_txn(txn_id)
        assert full.list_tables("default") == ["t"]
        assert [w.write_id for w in full.completed_writes("default", "t") or ()] == [write_id]

    def test_leaves_its_name_to_one_that_is_renamed(self, created: tuple[Metastore, int]) -> None:
        store, txn_id = created
        store.abort_txns([txn_id])
        sweep(store)
        store.rename_table("default", "t", replace(table("new", partitioned=True), location=f"{home()}/t"))
        assert store.list_tables("default") == ["new"]
