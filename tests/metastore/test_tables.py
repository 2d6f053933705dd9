"""Tables of the catalog."""

from __future__ import annotations

from dataclasses import replace

import pytest

from acidsql.errors import AlreadyExists, DatabaseNotFound, TableNotFound
from acidsql.metastore.model import Column, Database, Operation, Table
from acidsql.metastore.protocol import Metastore
from tests.metastore.situations import begin, home, partition, read_write_ids, seen, table, unstamped, write


@pytest.fixture
def emp(store: Metastore) -> Table:
    """A table that has everything; it is not registered yet."""
    return Table(
        "default",
        "emp",
        f"{home()}/emp",
        (
            Column("id", "int", "the key", not_null=True),
            Column("name", "varchar(20)", default="'nobody'"),
            Column("größe", "struct<a:int,b:decimal(10,2)>"),
        ),
        (Column("p", "string", "day"), Column("q", "int")),
        {"transactional": "true", "bucketing_version": "2", "quote": "a \"b\" 'c' \\ \n"},
        comment="people",
        bucket_columns=("id",),
        num_buckets=4,
        owner="ann",
        created_at=1_700_000_000,
        checks=("id > 0", "name <> 'x' OR id < 10", "id <> 7"),
    )


def test_a_table_is_found_as_it_was_created(store: Metastore, emp: Table) -> None:
    store.create_table(emp)
    assert unstamped(store.get_table("default", "emp")) == unstamped(emp)
    found = store.find_table("default", "emp")
    assert found == store.get_table("default", "emp")


@pytest.mark.needs("keeps tables to the letter")
def test_a_table_is_found_as_it_was_created_to_the_letter(store: Metastore, emp: Table) -> None:
    store.create_table(emp)
    assert store.get_table("default", "emp") == emp


def test_a_table_that_is_not_there(store: Metastore, emp: Table) -> None:
    assert store.find_table("default", "emp") is None
    assert store.find_table("nowhere", "emp") is None
    for database in ("default", "nowhere"):
        with pytest.raises(TableNotFound, match=f"{database}.emp"):
            store.get_table(database, "emp")
    with pytest.raises(TableNotFound):
        store.alter_table(emp)
    with pytest.raises(TableNotFound):
        store.drop_table("default", "emp")


def test_a_table_is_created_once(store: Metastore, emp: Table) -> None:
    store.create_table(emp)
    with pytest.raises(AlreadyExists, match=r"default\.emp"):
        store.create_table(replace(emp, location=f"{home()}/elsewhere"))
    assert unstamped(store.get_table("default", "emp")) == unstamped(emp)


def test_a_table_needs_its_database(store: Metastore) -> None:
    with pytest.raises(DatabaseNotFound, match="hr"):
        store.create_table(table("emp", "hr"))


def test_tables_of_one_name_in_two_databases_are_two(store: Metastore) -> None:
    store.create_database(Database("hr", home("hr")))
    store.create_table(table("emp"))
    store.create_table(table("emp", "hr"))
    store.drop_table("hr", "emp")
    assert store.list_tables("default") == ["emp"]
    assert store.list_tables("hr") == []


def test_tables_are_listed_by_name(store: Metastore) -> None:
    for name in ("c", "a", "b"):
        store.create_table(table(name))
    assert store.list_tables("default") == ["a", "b", "c"]


@pytest.mark.needs("keeps constraints")
def test_altering_replaces_columns_parameters_comment_and_location(store: Metastore, emp: Table) -> None:
    store.create_table(emp)
    altered = replace(
        emp,
        columns=(*emp.columns, Column("salary", "decimal(10,2)")),
        parameters={"transactional": "true"},
        comment=None,
        location=f"{home()}/moved",
    )
    store.alter_table(altered)
    assert unstamped(store.get_table("default", "emp")) == unstamped(altered)


def test_altering_in_a_transaction_is_altering(store: Metastore) -> None:
    """A store that keeps statistics may refuse to change a table without the write id of the change."""
    store.create_table(table())
    txn_id = begin(store)
    write_id = store.allocate_table_write_id(txn_id, "default", "t")
    [valid] = store.get_valid_write_ids(["default.t"], store.get_valid_txns(txn_id))
    altered = replace(table(), comment="changed", parameters={"transactional": "true", "x": "y"})
    store.alter_table(altered, write_id=write_id, write_ids=valid)
    store.commit_txn(txn_id)
    assert unstamped(store.get_table("default", "t")) == unstamped(altered)


def test_altering_one_table_leaves_the_others_alone(store: Metastore) -> None:
    store.create_table(table("a"))
    store.create_table(table("b"))
    store.alter_table(replace(table("a"), comment="changed"))
    assert unstamped(store.get_table("default", "b")) == unstamped(table("b"))


def test_altering_keeps_partitions_and_write_ids(store: Metastore) -> None:
    store.create_table(table(partitioned=True))
    store.add_partitions([partition("1")])
    store.commit_txn(write(store))
    store.alter_table(replace(table(partitioned=True), comment="changed"))
    assert store.list_partitions("default", "t") == [partition("1")]
    assert seen(read_write_ids(store)) == [1]


class TestADroppedTable:
    """Nothing of a dropped table may reach the next one of its name (``testAcidDirCacheOnDropTable``)."""

    def test_is_forgotten_with_its_partitions(self, store: Metastore) -> None:
        store.create_table(table(partitioned=True))
        store.add_partitions([partition("1")])
        store.drop_table("default", "t")
        assert store.find_table("default", "t") is None
        store.create_table(table(partitioned=True))
        assert store.list_partitions("default", "t") == []

    def test_starts_again_at_write_id_one(self, store: Metastore) -> None:
        store.create_table(table())
        for _ in range(3):
            store.commit_txn(write(store))
        store.drop_table("default", "t")
        store.create_table(table())
        assert seen(read_write_ids(store)) == []
        assert read_write_ids(store).high_watermark == 0
        assert store.allocate_table_write_id(begin(store), "default", "t") == 1

    @pytest.mark.needs("keeps house when asked")
    def test_takes_its_aborted_transactions_along(self, store: Metastore) -> None:
        store.create_table(table())
        aborted = write(store)
        store.abort_txns([aborted])
        assert [t.id for t in store.show_txns()] == [aborted]
        store.drop_table("default", "t")
        assert store.show_txns() == []

    def test_leaves_an_aborted_transaction_that_wrote_elsewhere_too(self, store: Metastore) -> None:
        store.create_table(table("t"))
        store.create_table(table("other"))
        aborted = write(store, "default.t")
        write(store, "default.other", txn_id=aborted)
        store.abort_txns([aborted])
        store.drop_table("default", "t")
        assert [t.id for t in store.show_txns()] == [aborted]
        assert not read_write_ids(store, "default.other").is_valid(1)

    @pytest.mark.needs("drops write sets")
    def test_leaves_no_write_conflict_to_the_next_of_its_name(self, optimistic: Metastore) -> None:
        optimistic.create_table(table())
        late = begin(optimistic)
        optimistic.commit_txn(write(optimistic, operation=Operation.UPDATE))
        optimistic.drop_table("default", "t")
        optimistic.create_table(table())
        optimistic.commit_txn(write(optimistic, operation=Operation.UPDATE, txn_id=late))

    def test_leaves_the_write_ids_of_other_tables_alone(self, store: Metastore) -> None:
        store.create_table(table("t"))
        store.create_table(table("other"))
        store.commit_txn(write(store, "default.other"))
        store.drop_table("default", "t")
        assert seen(read_write_ids(store, "default.other")) == [1]
