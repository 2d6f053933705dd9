"""What aborted transactions wrote: removed by the cleaner, and forgotten by the store after that, never before.

Hive: ``TestAbortedTxnCleaner`` and the cases of ``TestCompactor`` about aborted writes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from acidsql.compactor.vacuum import TableCleaner
from acidsql.errors import StorageError
from acidsql.format.names import BaseName
from acidsql.fs import LocalFileSystem
from acidsql.metastore.model import CompactionState as State
from acidsql.metastore.model import CompactionType, TxnType
from tests.unit.compactor.world import FS, MAJOR, MINOR, World, unversioned

COMMITTED = "delta_0000003_0000003_0000"


def three_aborted(world: World, name: str = "t", part: str | None = None) -> None:
    """Three aborted deltas, and a committed one before the last."""
    for number, end in enumerate(("abort", "abort", "commit", "abort"), start=1):
        world.insert(number, name=name, part=part, end=end)


def known(world: World) -> list[int]:
    """The aborted transactions that the store knows, after it has forgotten what it may."""
    world.clock.pass_seconds(10)
    world.housekeeper.run()
    return [t.id for t in world.store.show_txns() if t.state.value == "a"]


@pytest.mark.parametrize("layout", ["hive3", "hive4"])
@pytest.mark.parametrize("type", [MINOR, MAJOR])
@pytest.mark.parametrize("reads", [False, True])
def test_what_was_aborted_does_not_come_back_where_all_that_is_seen_is_old(
    tmp_path: Path, layout: str, type: CompactionType, reads: bool
) -> None:
    """The store's list of write ids ended with the lowest aborted one: the cleaner left the others' files, and the
    compaction's end forgot them all."""
    world = World(tmp_path, {"acidsql.compactor.layout": layout})
    world.table()
    reader = world.reader() if reads else None
    world.overwrite(1)
    world.overwrite(7, end="abort")
    world.insert(8, end="abort")
    world.insert(9, end="abort")
    world.compact(type)
    if reader is not None:
        world.end(reader.txn_id)
    known(world)  # what is seen, and older than what was aborted, is forgotten
    world.end(world.begin())
    world.clean()
    assert (world.content(), world.names(), known(world)) == ([1], ["base_0000001"], [])
    world.close()


class TestDirectoriesOfAbortedWrites:
    def test_of_a_table_go_and_the_transactions_are_forgotten(self, world: World) -> None:
        world.table()
        three_aborted(world)
        assert len(known(world)) == 3
        world.clean()
        assert (world.names(), world.content()) == ([COMMITTED], [3])
        assert (world.remembered(), known(world), world.entries()) == (set(), [], [])

    def test_of_a_partition_go(self, world: World) -> None:
        world.table("t", "today", "tomorrow")
        three_aborted(world, part="today")
        world.clean()
        assert world.names(part="today") == [COMMITTED]
        assert world.names(part="tomorrow") == []
        assert world.remembered() == set()

    def test_of_several_partitions_and_tables_go(self, world: World) -> None:
        world.table("t", "today1", "today2")
        world.table("u")
        three_aborted(world, part="today1")
        three_aborted(world, part="today2")
        three_aborted(world, name="u")
        assert world.clean() == 3
        assert world.names(part="today1") == world.names(name="u") == [COMMITTED]
        assert world.names(part="today2") == ["delta_0000007_0000007_0000"]
        assert known(world) == []

    def test_above_an_open_writer_stay_as_long_as_he_is_open(self, world: World) -> None:
        world.table()
        three_aborted(world)
        txn_id = world.begin()
        assert world.write_id(txn_id) == 5
        world.insert(6, end="abort")
        world.clean()
        assert world.names() == [COMMITTED, "delta_0000006_0000006_0000"]
        assert 6 in world.remembered()
        world.end(txn_id)
        world.clean()
        assert (world.names(), world.remembered()) == ([COMMITTED], set())

    def test_on_top_of_a_base_go_with_what_it_replaced(self, world: World) -> None:
        world.table()
        for number in range(4):
            world.insert(number)
        world.compact()
        assert len(world.names()) == 5
        for number in range(3):
            world.insert(number, end="abort")
        world.clean()
        assert unversioned(world.names()) == ["base_0000004"]
        assert (world.content(), known(world)) == ([0, 1, 2, 3], [])

    def test_below_a_base_go_with_what_it_replaced(self, world: World) -> None:
        world.table()
        for number, end in enumerate(("commit", "abort", "abort", "commit")):
            world.insert(number, end=end)
        world.compact()
        assert len(world.names()) == 5
        world.clean()
        assert unversioned(world.names()) == ["base_0000004"]
        assert (world.content(), world.remembered()) == ([0, 3], set())

    def test_stay_while_an_older_transaction_is_open_also_where_write_ids_come_in_another_order(
        self, world: World
    ) -> None:
        world.table()
        for number, end in enumerate(("commit", "abort", "abort", "commit"), start=1):
            world.insert(number, end=end)
        first, second, third = world.begin(), world.begin(), world.begin()
        ids = {txn: world.write_id(txn) for txn in (second, third, first)}
        assert list(ids.values()) == [5, 6, 7]
        for write_id in ids.values():
            (world.path() / f"delta_{write_id:07d}_{write_id:07d}_0000").mkdir()
        world.end(second, "abort")
        world.end(third)
        world.clean()
        assert [int(name[6:13]) for name in world.names()] == [1, 4, 5, 6, 7]
        assert 5 in world.remembered()
        world.end(first)
        world.clean()
        assert [int(name[6:13]) for name in world.names()] == [1, 4, 6, 7]

    def test_that_cannot_be_removed_are_remembered(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        world.table()
        three_aborted(world)
        delete = LocalFileSystem.delete

        def stuck(fs: LocalFileSystem, path: str) -> None:
            if "0000004" in path:
                raise StorageError("Cannot delete it")
            delete(fs, path)

        with monkeypatch.context() as patch:
            patch.setattr(LocalFileSystem, "delete", stuck)
            world.clean()
        assert world.remembered() == {1, 2, 4}
        assert (world.content(), len(known(world))) == ([3], 3)
        world.clean()
        assert (world.names(), world.remembered(), known(world)) == ([COMMITTED], set(), [])

    def test_of_an_overwrite_go_and_what_it_would_have_replaced_stays(self, world: World) -> None:
        world.table()
        world.insert(1)
        world.overwrite(2, end="abort")
        world.clean()
        assert (world.names(), world.content()) == (["delta_0000001_0000001_0000"], [1])

    def test_of_an_overwrite_have_no_name_that_a_compaction_uses(self, tmp_path: Path) -> None:
        world = World(tmp_path, {"acidsql.compactor.layout": "hive3"})
        world.table()
        world.insert(1)
        world.insert(2)
        reader = world.reader()
        world.overwrite(3, end="abort")
        assert world.compact().state is State.READY_FOR_CLEANING
        world.clean()
        assert {"base_0000002", "base_0000003"} < set(world.names())
        assert world.content() == [1, 2]
        world.end(reader.txn_id)
        world.end(world.begin())
        world.clean()
        assert (world.names(), world.content()) == (["base_0000002"], [1, 2])
        world.close()

    @pytest.mark.parametrize("part", [None, "1"])
    @pytest.mark.parametrize("type", [MAJOR, MINOR])
    def test_of_an_overwrite_that_is_suspended_may_be_removed_at_any_time(
        self, tmp_path: Path, type: CompactionType, part: str | None
    ) -> None:
        """Of an INSERT OVERWRITE, a TRUNCATE, or a cleaner with an old listing: each removes the base by its name."""
        world = World(tmp_path, {"acidsql.compactor.layout": "hive3"})
        world.table("t", *([] if part is None else [part]))
        for number in (1, 2, 3):
            world.insert(number, part=part)
        suspended = world.overwrite(9, part=part, end="abort")
        world.end(world.begin())
        world.clean()
        assert not world.remembered()
        path = world.path(part=part) / str(BaseName(suspended))
        assert not path.exists()
        world.compact(type, part=part)
        world.clean()
        FS.delete(str(path))
        assert world.content(part=part) == [1, 2, 3]
        world.insert(4, part=part)
        world.overwrite(9, part=part, end="abort")
        assert world.compact(part=part).state is State.READY_FOR_CLEANING
        world.clean()
        assert world.names(part=part) == ["base_0000005"]
        assert world.content(part=part) == [1, 2, 3, 4]
        world.close()

    def test_are_left_by_vacuum_while_a_reader_is_older_than_the_first_base(self, tmp_path: Path) -> None:
        world = World(tmp_path, {"acidsql.compactor.layout": "hive3"})
        world.table()
        world.insert(1)
        world.insert(2, end="abort")
        reader = world.reader()
        world.insert(3)
        world.compact()
        vacuum = TableCleaner(world.context, world.store.get_table("default", "t"))
        assert vacuum.removable() == vacuum.remove() == []
        assert world.remembered() == {2}
        world.end(reader.txn_id)
        world.end(world.begin())
        TableCleaner(world.context, world.store.get_table("default", "t")).remove()
        assert (unversioned(world.names()), world.content()) == (["base_0000003"], [1, 3])
        world.close()

    def test_that_were_never_made_are_nothing_to_remove(self, world: World) -> None:
        """The writer died between its write id and its first file."""
        world.table()
        txn_id = world.begin()
        world.write_id(txn_id)
        world.end(txn_id, "abort")
        world.clean()
        assert known(world) == []

    def test_of_a_partition_that_was_never_registered_go(self, world: World) -> None:
        """A write that finds its partitions while it runs locks the table, and adds them before its commit."""
        world.table("t", "today")
        txn_id = world.begin()
        write_id = world.write_id(txn_id)
        made = world.path(part="new") / f"delta_{write_id:07d}_{write_id:07d}_0000" / "bucket_00000"
        LocalFileSystem().write_bytes(str(made), b"half a file")
        world.end(txn_id, "abort")
        world.clean()
        assert world.names(part="new") == []
        assert known(world) == []


class TestADeltaThatIsAbortedInPart:
    def test_stays_and_its_transactions_are_remembered_until_a_base_has_taken_its_rows(self, world: World) -> None:
        world.table()
        world.stream("commit", "abort", "commit")
        before = world.content()
        world.clean()
        assert (world.names(), world.content(), world.remembered()) == (["delta_0000001_0000003"], before, {2})
        world.insert(9)
        world.compact(MINOR)
        world.clean()
        assert unversioned(world.names()) == ["delta_0000001_0000004"]
        assert world.content() == [*before, 9]
        assert known(world)  # by its name the delta may still hold them
        world.insert(10)
        world.compact()
        world.clean()
        assert (world.content(), world.remembered(), known(world)) == ([*before, 9, 10], set(), [])

    @pytest.mark.parametrize("type", [MINOR, MAJOR])
    def test_is_not_brought_back_by_a_compaction_of_either_type(self, world: World, type: object) -> None:
        world.table()
        world.stream("commit", "commit")
        world.stream("commit", "abort")
        world.stream("abort", "abort")
        world.compact(MINOR if type is MINOR else MAJOR)
        world.clean()
        name = "delta_0000001_0000004" if type is MINOR else "base_0000006"
        assert [n.rpartition("_")[0] for n in unversioned(world.names())] == [name.rpartition("_")[0]]
        assert world.content() == [1, 2, 3]

    def test_is_remembered_when_a_compaction_had_nothing_to_do_but_to_clean(self, world: World) -> None:
        """Hive's testSkippedCompactionCleanerKeepsAborted: the delta stays, so its aborted ids must."""
        world.table()
        world.stream("commit", "abort")
        world.insert(9, end="abort")
        assert world.compact().state == State.READY_FOR_CLEANING
        world.clean()
        assert (world.names(), world.content()) == (["delta_0000001_0000002"], [1])
        assert 2 in world.remembered()


class TestAnAbortedCompaction:
    def test_leaves_directories_that_nobody_sees_and_that_go_as_soon_as_no_older_transaction_is_open(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world.table()
        world.insert(1)
        world.insert(2)
        reader = world.reader()

        def lost(*_: object, **__: object) -> None:
            raise StorageError("the store is away")

        with monkeypatch.context() as patch:
            patch.setattr(type(world.store), "mark_compacted", lost)
            assert world.compact().state == State.FAILED
        assert [n for n in world.names() if n.startswith("base")]
        assert world.content() == [1, 2]
        world.clean()
        assert [n for n in world.names() if n.startswith("base")]
        world.end(reader.txn_id)
        world.clean()
        assert world.names() == [f"delta_{i:07d}_{i:07d}_0000" for i in (1, 2)]
        assert known(world) == []

    def test_that_was_refused_leaves_nothing_to_remember(self, world: World) -> None:
        world.table()
        world.insert(1)
        assert world.compact().state == State.REFUSED
        assert known(world) == []
        assert world.store.aborted_compactions() == []


class TestForgetting:
    def test_a_write_id_that_was_aborted_and_cleaned_never_shows_its_rows_again(self, world: World) -> None:
        """Were it forgotten before its files are gone, everybody would take it for committed."""
        world.table()
        world.insert(1)
        world.insert(2, end="abort")
        snapshot = world.reader()
        world.clean()
        world.store.prune_txn_to_write_id()
        assert world.content() == [1]
        assert list(world.rows(snapshot).values()) == [1]
        world.end(snapshot.txn_id)
        world.clean()
        world.store.prune_txn_to_write_id()
        assert world.content() == [1]

    def test_an_abort_after_the_cleaning_of_a_compaction_is_not_forgotten_with_it(self, world: World) -> None:
        world.table()
        world.insert(1)
        txn_id = world.begin()
        write_id = world.write_id(txn_id)
        world.insert(3)
        world.compact()
        world.end(txn_id, "abort")
        (world.path() / f"delta_{write_id:07d}_{write_id:07d}_0000").mkdir()
        assert world.remembered() == {write_id}
        world.clean()
        assert f"delta_{write_id:07d}_{write_id:07d}_0000" not in world.names()

    def test_a_readers_transaction_that_was_aborted_leaves_nothing(self, world: World) -> None:
        world.table()
        world.end(world.begin(TxnType.READ_ONLY), "abort")
        assert known(world) == []
