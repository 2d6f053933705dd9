"""Tables of the catalog."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from acidsql.errors import AlreadyExists, DatabaseNotFound, MetastoreError, TableNotFound
from acidsql.metastore.embedded import catalog
from acidsql.metastore.model import Column, Database, Import, LockType, Operation, Table
from acidsql.metastore.protocol import Metastore
from acidsql.valid_ids import ValidWriteIdList
from tests.metastore.situations import (
    begin,
    check,
    home,
    partition,
    read_write_ids,
    seen,
    sweep,
    table,
    take,
    unstamped,
    write,
)
from tests.metastore.stores import StoreKind


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
        table_constraints=(check("id > 0"), check("name <> 'x' OR id < 10"), check("id <> 7")),
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
        sweep(store)
        store.create_table(table(partitioned=True))
        assert store.list_partitions("default", "t") == []

    def test_starts_where_the_store_says(self, store: Metastore, kind: StoreKind) -> None:
        """Hive counts from 1 again. Ours goes on: somebody's DataFrame may still look for files by their names."""
        before = 3 if "counts on" in kind.capabilities else 0
        store.create_table(table())
        for _ in range(3):
            store.commit_txn(write(store))
        store.drop_table("default", "t")
        sweep(store)
        store.create_table(table())
        assert read_write_ids(store).high_watermark == before
        assert store.allocate_table_write_id(begin(store), "default", "t") == before + 1

    @pytest.mark.needs("counts on")
    @pytest.mark.parametrize("inside", ["", "/below", "/p=1"])
    def test_leaves_no_write_id_to_the_next_at_its_place_whatever_its_name(self, store: Metastore, inside: str) -> None:
        store.create_table(table())
        for _ in range(3):
            store.commit_txn(write(store))
        store.drop_table("default", "t")
        sweep(store)
        store.create_table(replace(table("u"), location=f"{home()}/t{inside}"))
        store.create_table(table("other"))
        assert store.allocate_table_write_id(begin(store), "default", "u") == 4
        assert store.allocate_table_write_id(begin(store), "default", "other") == 1

    @pytest.mark.needs("counts on")
    def test_leaves_no_write_id_to_the_next_database_of_its_name(self, store: Metastore) -> None:
        for before in (0, 1):
            store.create_database(Database("hr", home("hr")))
            store.create_table(table("t", "hr"))
            assert store.allocate_table_write_id(begin(store), "hr", "t") == before + 1
            store.drop_table("hr", "t")
            store.drop_database("hr")
            sweep(store)

    @pytest.mark.needs("counts on")
    def test_shows_nothing_of_the_next_one_to_a_snapshot_from_before(self, store: Metastore) -> None:
        store.create_table(table())
        store.commit_txn(write(store))
        reader = begin(store)
        store.drop_table("default", "t")
        sweep(store)
        store.create_table(table())
        store.commit_txn(write(store))
        assert not read_write_ids(store, txn_id=reader).is_valid(2)
        assert read_write_ids(store).is_valid(2)

    @pytest.mark.needs("embedded")
    def test_leaves_its_directory_to_nobody_before_it_is_gone(self, store: Metastore) -> None:
        store.create_table(table(partitioned=True))
        store.create_table(table("u", partitioned=True))
        store.add_partitions([replace(partition("1"), location=f"{home()}/elsewhere")])
        store.drop_table("default", "t")
        found = [d.location for d in store.dropped_directories()]
        assert found == [f"{home()}/t", f"{home()}/elsewhere"]
        takers: list[Callable[[], None]] = [
            lambda: store.create_table(table()),
            lambda: store.create_table(replace(table("v"), location=f"{home()}/t/below")),
            lambda: store.alter_table(replace(table("u", partitioned=True), location=f"{home()}/elsewhere")),
            lambda: store.rename_table("default", "u", table(partitioned=True)),
            lambda: store.add_partitions([replace(partition("1", "u"), location=f"{home()}/elsewhere")]),
        ]
        for take_place in takers:
            with pytest.raises(AlreadyExists, match="has not been removed yet"):
                take_place()
        assert store.list_tables("default") == ["u"]
        sweep(store)
        store.create_table(table())

    @pytest.mark.needs("embedded")
    def test_whose_files_are_kept_leaves_its_place_free(self, store: Metastore) -> None:
        store.create_table(table())
        store.drop_table("default", "t", keep_files=True)
        assert store.dropped_directories() == []
        store.create_table(table())

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
        sweep(optimistic)
        optimistic.create_table(table())
        optimistic.commit_txn(write(optimistic, operation=Operation.UPDATE, txn_id=late))

    def test_leaves_the_write_ids_of_other_tables_alone(self, store: Metastore) -> None:
        store.create_table(table("t"))
        store.create_table(table("other"))
        store.commit_txn(write(store, "default.other"))
        store.drop_table("default", "t")
        assert seen(read_write_ids(store, "default.other")) == [1]


class TestATableThatTakesInADirectory:
    """Its ids, itself and its partitions are there in one step: who is killed leaves all of it or nothing."""

    @pytest.fixture
    def imported(self, store: Metastore) -> Import:
        return Import(ValidWriteIdList("default.t", 7, (), (2,)), 0, (partition("1"),))

    @pytest.mark.needs("seeds write ids")
    def test_starts_above_what_is_there(self, store: Metastore, imported: Import) -> None:
        store.create_table(table(partitioned=True), holds_rows=True, imported=imported)
        assert seen(read_write_ids(store), 8) == [1, 3, 4, 5, 6, 7]
        assert [p.values for p in store.list_partitions("default", "t")] == [("1",)]
        assert store.allocate_table_write_id(begin(store), "default", "t") == 8

    @pytest.mark.needs("embedded")
    @pytest.mark.parametrize("step", ["insert_table", "insert_partitions"])
    def test_leaves_nothing_when_a_step_fails(
        self, store: Metastore, imported: Import, monkeypatch: pytest.MonkeyPatch, step: str
    ) -> None:
        original = getattr(catalog, step)

        def failing(*args: Any, **kwargs: Any) -> None:
            original(*args, **kwargs)
            raise MetastoreError("the disk is full")

        with monkeypatch.context() as patched:
            patched.setattr(catalog, step, failing)
            with pytest.raises(MetastoreError, match="disk"):
                store.create_table(table(partitioned=True), imported=imported)
        assert store.list_tables("default") == []
        assert store.show_txns() == []
        store.create_table(table(partitioned=True), imported=imported)

    @pytest.mark.needs("embedded")
    def test_counts_on_where_another_one_had_its_name(self, store: Metastore, imported: Import) -> None:
        store.create_table(table(partitioned=True))
        for _ in range(9):
            store.commit_txn(write(store))
        store.drop_table("default", "t")
        sweep(store)
        store.create_table(table(partitioned=True), imported=imported)
        assert store.allocate_table_write_id(begin(store), "default", "t") == 10


class TestATableWhoseStatementFailed:
    @pytest.fixture
    def txn_id(self, store: Metastore) -> int:
        txn_id = begin(store)
        take(store, txn_id, LockType.EXCL_WRITE, operation=Operation.INSERT)
        store.allocate_table_write_id(txn_id, "default", "t")
        store.create_table(table())
        return txn_id

    @pytest.mark.lacks("hides new tables")
    @pytest.mark.parametrize("aborted", [False, True])
    def test_is_forgotten(self, store: Metastore, txn_id: int, aborted: bool) -> None:
        if aborted:
            store.abort_txns([txn_id])
        assert store.discard_table(store.get_table("default", "t"), txn_id)
        assert store.list_tables("default") == []
        assert store.dropped_directories() == []
        assert not store.discard_table(table(), txn_id)

    def test_stays_when_it_is_another_one_by_now(self, store: Metastore, txn_id: int) -> None:
        store.abort_txns([txn_id])
        store.drop_table("default", "t")
        sweep(store)
        store.create_table(replace(table(), columns=(Column("b", "int"),)))
        assert not store.discard_table(table(), txn_id)
        assert store.list_tables("default") == ["t"]

    def test_stays_when_somebody_has_written_to_it(self, store: Metastore, txn_id: int) -> None:
        store.commit_txn(write(store))
        assert not store.discard_table(store.get_table("default", "t"), txn_id)
        assert store.list_tables("default") == ["t"]

    def test_stays_when_somebody_has_it_locked(self, store: Metastore, txn_id: int) -> None:
        take(store, begin(store), LockType.SHARED_READ)
        assert not store.discard_table(store.get_table("default", "t"), txn_id)

    def test_stays_when_it_was_committed_after_all(self, store: Metastore, txn_id: int) -> None:
        store.commit_txn(txn_id)
        assert not store.discard_table(store.get_table("default", "t"), txn_id)
