"""Renamed tables and partitions: all that is known of the old name is known of the new one (``onRename`` of Hive)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from acidsql.errors import AlreadyExists, DatabaseNotFound, PartitionNotFound, TableNotFound
from acidsql.metastore.model import Column, Database, DirectoryMove, LockState, Operation, Partition
from acidsql.metastore.protocol import Metastore
from acidsql.valid_ids import ValidWriteIdList
from tests.metastore.conftest import CountRows
from tests.metastore.situations import (
    EXCLUSIVE,
    READ,
    SHARED_WRITE,
    ask,
    begin,
    home,
    locks_of,
    partition,
    read_write_ids,
    seen,
    table,
    take,
    write,
)


def names_of(store: Metastore, name: str) -> list[str]:
    return [p.values[0] for p in store.list_partitions("default", name)]


def renamed(store: Metastore, old: str = "t", new: str = "u", database: str = "default") -> None:
    """Rename a table as a statement does, in a transaction of its own that holds the lock."""
    txn_id = begin(store)
    take(store, txn_id, EXCLUSIVE, f"default.{old}")
    write_id = store.allocate_table_write_id(txn_id, "default", old)
    [valid] = store.get_valid_write_ids([f"default.{old}"], store.get_valid_txns(txn_id))
    place = f"{home(database)}/{new}"
    made = replace(store.get_table("default", old), database=database, name=new, location=place)
    store.rename_table("default", old, made, write_id=write_id, write_ids=valid)
    store.commit_txn(txn_id)


class TestARenamedTable:
    def test_is_found_under_its_new_name_only(self, store: Metastore) -> None:
        store.create_table(table())
        renamed(store)
        assert store.find_table("default", "t") is None
        assert store.get_table("default", "u").columns == table().columns
        assert store.list_tables("default") == ["u"]

    def test_keeps_its_write_ids_open_aborted_and_committed(self, store: Metastore) -> None:
        store.create_table(table())
        store.commit_txn(write(store))
        aborted = write(store)
        store.abort_txns([aborted])
        store.commit_txn(write(store))
        renamed(store)
        valid = read_write_ids(store, "default.u")
        assert seen(valid, 4) == [1, 3, 4]
        assert valid.is_aborted(2)
        assert store.allocate_table_write_id(begin(store), "default", "u") == 5

    def test_keeps_its_partitions(self, store: Metastore) -> None:
        store.create_table(table(partitioned=True))
        store.add_partitions([partition("1"), partition("2")])
        renamed(store)
        assert names_of(store, "u") == ["1", "2"]
        assert {p.table for p in store.list_partitions("default", "u")} == {"u"}

    def test_goes_into_another_database(self, store: Metastore) -> None:
        store.create_database(Database("hr", home("hr")))
        store.create_table(table())
        store.commit_txn(write(store))
        renamed(store, database="hr")
        assert store.list_tables("default") == []
        assert store.list_tables("hr") == ["u"]
        assert seen(read_write_ids(store, "hr.u")) == [1, 2]

    def test_takes_its_aborted_transactions_along(self, store: Metastore) -> None:
        store.create_table(table())
        store.abort_txns([write(store)])
        renamed(store)
        assert not read_write_ids(store, "default.u").is_valid(1)

    def test_leaves_the_tables_beside_it_alone(self, store: Metastore) -> None:
        store.create_table(table("t"))
        store.create_table(table("other"))
        store.commit_txn(write(store, "default.other"))
        renamed(store)
        assert seen(read_write_ids(store, "default.other")) == [1]
        assert store.list_tables("default") == ["other", "u"]

    def test_must_be_there_and_its_new_name_free(self, store: Metastore) -> None:
        store.create_table(table("t"))
        store.create_table(table("taken"))
        with pytest.raises(TableNotFound):
            store.rename_table("default", "nope", table("u"))
        with pytest.raises(AlreadyExists):
            store.rename_table("default", "t", table("taken"))
        with pytest.raises(DatabaseNotFound):
            store.rename_table("default", "t", table("u", "nowhere"))
        assert store.list_tables("default") == ["t", "taken"]

    @pytest.mark.needs("embedded")
    def test_is_locked_under_its_new_name(self, store: Metastore) -> None:
        store.create_table(table())
        txn_id = begin(store)
        take(store, txn_id, READ, "default.t")
        store.rename_table("default", "t", table("u"))
        assert [(k.database, k.table) for k in locks_of(store)] == [("default", "u")]

    @pytest.mark.needs("tells conflicts")
    def test_brings_its_write_conflicts(self, optimistic: Metastore) -> None:
        optimistic.create_table(table())
        late = begin(optimistic)
        first = write(optimistic, operation=Operation.UPDATE)
        optimistic.commit_txn(first)
        renamed(optimistic)
        take(optimistic, late, SHARED_WRITE, "default.u", Operation.UPDATE)
        assert optimistic.get_latest_txn_in_conflict(late) == first

    @pytest.mark.needs("embedded")
    def test_takes_the_places_of_partitions_below_it_along_and_no_others(self, store: Metastore) -> None:
        old = table(partitioned=True)
        store.create_table(old)
        below = Partition("default", "t", ("1",), f"{old.location}/p=1")
        beside = Partition("default", "t", ("2",), f"{old.location}2/p=2")
        store.add_partitions([below, beside])
        store.rename_table("default", "t", replace(old, name="u", location=f"{home()}/moved"))
        assert [p.location for p in store.list_partitions("default", "u")] == [f"{home()}/moved/p=1", beside.location]

    @pytest.mark.needs("embedded")
    def test_leaves_no_write_id_to_the_next_of_its_name(self, store: Metastore) -> None:
        """Directories of the next one are never called as those that DataFrames of the old one may still look for."""
        store.create_table(table())
        for _ in range(3):
            store.commit_txn(write(store))
        renamed(store)
        store.create_table(table())
        assert read_write_ids(store).high_watermark == 4
        assert store.allocate_table_write_id(begin(store), "default", "t") == 5
        renamed(store, "u", "v")
        assert store.allocate_table_write_id(begin(store), "default", "v") == 6

    @pytest.mark.needs("embedded")
    def test_may_be_followed_by_one_that_takes_in_a_directory(self, store: Metastore) -> None:
        store.create_table(table())
        store.commit_txn(write(store))
        renamed(store)
        store.create_table(table())
        store.seed_write_id(ValidWriteIdList("default.t", 7, (), (5,)))
        assert seen(read_write_ids(store), 8) == [1, 2, 3, 4, 6, 7]
        assert store.allocate_table_write_id(begin(store), "default", "t") == 8


class TestARenamedPartition:
    @pytest.fixture(autouse=True)
    def partitioned(self, store: Metastore) -> None:
        store.create_table(table(partitioned=True))
        store.add_partitions([partition("1"), partition("2")])

    def test_is_found_under_its_new_values_only(self, store: Metastore) -> None:
        store.rename_partition("p=1", partition("3"))
        assert names_of(store, "t") == ["2", "3"]

    def test_must_be_there_and_its_new_values_free(self, store: Metastore) -> None:
        with pytest.raises(PartitionNotFound):
            store.rename_partition("p=9", partition("3"))
        with pytest.raises(AlreadyExists):
            store.rename_partition("p=1", partition("2"))
        assert names_of(store, "t") == ["1", "2"]

    @pytest.mark.needs("tells conflicts")
    def test_brings_its_write_conflicts(self, optimistic: Metastore, store: Metastore) -> None:
        late = begin(optimistic)
        first = write(optimistic, "default.t/p=1", Operation.UPDATE)
        optimistic.commit_txn(first)
        optimistic.rename_partition("p=1", partition("3"))
        take(optimistic, late, SHARED_WRITE, "default.t/p=3", Operation.UPDATE)
        assert optimistic.get_latest_txn_in_conflict(late) == first

    @pytest.mark.needs("embedded")
    def test_tells_how_its_directory_follows_until_that_is_done(self, store: Metastore) -> None:
        [old], new = store.list_partitions("default", "t", ["p=1"]), replace(partition("3"), location="/w/t/p=3")
        move = DirectoryMove(old.location, new.location, "1")
        store.rename_partition("p=1", new, move=move)
        moving = store.get_table("default", "t")
        assert moving.moves == (move,)
        store.alter_table(replace(moving, moves=()))
        assert store.get_table("default", "t").moves == (move,)  # only the store's own steps change it
        store.forget_moves(moving)
        assert store.get_table("default", "t").moves == ()

    @pytest.mark.needs("embedded")
    def test_and_taken_back_has_no_directory_on_its_way(self, store: Metastore) -> None:
        [old], new = store.list_partitions("default", "t", ["p=1"]), replace(partition("3"), location="/w/t/p=3")
        store.rename_partition("p=1", new, move=DirectoryMove(old.location, new.location, "1"))
        store.rename_partition("p=3", old)
        assert store.get_table("default", "t").moves == ()

    def test_that_is_not_renamed_may_get_another_place(self, store: Metastore) -> None:
        place = f"{home()}/elsewhere"
        store.alter_partition(replace(partition("1"), location=place))
        assert [p.location.removeprefix("file:") for p in store.list_partitions("default", "t", ["p=1"])] == [
            place.removeprefix("file:")
        ]
        with pytest.raises(PartitionNotFound):
            store.alter_partition(partition("9"))


@pytest.mark.needs("embedded")
class TestARenameAndThoseWhoWait:
    """They get the lock on the name that they have asked for, and look it up again."""

    @pytest.fixture
    def partitioned(self, store: Metastore) -> None:
        store.create_table(table(partitioned=True))
        store.add_partitions([partition("1"), partition("2")])

    @pytest.mark.usefixtures("partitioned")
    def test_for_a_partition(self, store: Metastore) -> None:
        renaming, waiting = begin(store), begin(store)
        take(store, renaming, EXCLUSIVE, "default.t")
        lock_id = ask(store, waiting, READ, "default.t/p=1", Operation.INSERT).lock_id
        store.rename_partition("p=1", partition("3"))
        assert [one.partition for one in locks_of(store) if one.lock_id == lock_id] == ["p=1"]
        store.commit_txn(renaming)
        assert store.check_lock(lock_id).state is LockState.ACQUIRED
        write_id = store.allocate_table_write_id(waiting, "default", "t")
        store.abort_txns([waiting])
        [left] = store.aborted_components()
        assert (left.partition, left.write_ids) == ("p=1", {write_id})

    def test_for_a_table(self, store: Metastore) -> None:
        store.create_table(table())
        renaming, waiting = begin(store), begin(store)
        take(store, renaming, EXCLUSIVE, "default.t")
        lock_id = ask(store, waiting, EXCLUSIVE, "default.t", Operation.UPDATE).lock_id
        store.rename_table("default", "t", replace(table("u"), location=f"{home()}/u"))
        found = {one.lock_id: one.table for one in locks_of(store)}
        assert (found.pop(lock_id), list(found.values())) == ("t", ["u"])
        store.commit_txn(renaming)
        store.create_table(table())
        take(store, waiting, EXCLUSIVE, "default.u")  # it has that of the new table t only
        assert ask(store, begin(store), READ, "default.t").state is LockState.WAITING

    @pytest.mark.usefixtures("partitioned")
    def test_and_what_was_aborted_is_looked_for_under_both_names(self, store: Metastore) -> None:
        """Its files may lie where the next partition of the old name is going to be."""
        aborted = write(store, "default.t/p=1")
        store.abort_txns([aborted])
        for old, new in (("p=1", "3"), ("p=3", "4")):
            store.rename_partition(old, partition(new))
        found = {one.partition: one.txn_ids for one in store.aborted_components()}
        assert found == {name: {aborted} for name in ("p=1", "p=3", "p=4")}

    @pytest.mark.needs("embedded")
    @pytest.mark.usefixtures("partitioned")
    def test_once_under_each_however_often_it_is_renamed(self, store: Metastore, count_rows: CountRows) -> None:
        store.abort_txns([write(store, "default.t/p=1")])
        for _ in range(6):
            store.rename_partition("p=1", partition("3"))
            store.rename_partition("p=3", partition("1"))
        assert count_rows("TXN_COMPONENTS") == 2


@pytest.mark.needs("embedded")
class TestTheVersionOfATable:
    """It tells a reader whether anything was elsewhere meanwhile."""

    @pytest.fixture
    def partitioned(self, store: Metastore) -> None:
        store.create_table(table(partitioned=True))
        store.add_partitions([partition("1"), partition("2")])

    @pytest.mark.usefixtures("partitioned")
    def test_changes_with_the_table_and_the_places_of_its_partitions(self, store: Metastore) -> None:
        found = [store.get_table("default", "t").version]

        def changed(name: str = "t") -> bool:
            found.append(store.get_table("default", name).version)
            assert found[-1] <= (store.latest_version() or 0)
            return found[-1] > max(found[:-1])

        now = store.get_table("default", "t")
        store.alter_table(replace(now, columns=(*now.columns, Column("new", "int"))))
        assert changed()
        store.rename_partition("p=1", partition("3"))
        assert changed()
        store.rename_partition("p=3", partition("1"))
        assert changed()
        store.alter_partition(replace(partition("1"), location=f"{home()}/elsewhere"))
        assert changed()
        store.drop_partitions("default", "t", ["p=1"])
        assert changed()
        store.rename_table("default", "t", replace(store.get_table("default", "t"), name="u"))
        assert changed("u")
        store.rename_table("default", "u", replace(store.get_table("default", "u"), name="t"))
        assert changed()
        store.drop_table("default", "t", keep_files=True)
        store.create_table(table(partitioned=True))
        assert changed()

    @pytest.mark.usefixtures("partitioned")
    def test_stays_where_rows_or_partitions_come(self, store: Metastore) -> None:
        before = store.get_table("default", "t").version
        store.commit_txn(write(store, "default.t/p=1"))
        store.add_partitions([partition("3")])
        now = store.get_table("default", "t")
        store.alter_table(replace(now, parameters={**now.parameters, "numRows": "7"}, comment="new"))
        assert store.get_table("default", "t").version == before
