"""Hive's cases about aborted writes between compactions (``TestTxnCommands2``)."""

from __future__ import annotations

from pathlib import Path

import pyorc
import pytest

from acidsql.format.directory import acid_state
from acidsql.format.names import BaseName, DeltaName
from acidsql.format.orc import write_inserts, write_rows
from acidsql.metastore.model import CompactionCandidate, CompactionRequest, CompactionType
from acidsql.metastore.model import CompactionState as State
from acidsql.metastore.model import Operation as Writes
from tests.unit.compactor.world import FS, MAJOR, MINOR, ROW_TYPE, World, unversioned, values


def known(world: World) -> list[int]:
    """The aborted transactions that the store knows, after it has forgotten what it may."""
    world.clock.pass_seconds(10)
    world.housekeeper.run()
    return [t.id for t in world.store.show_txns() if t.state.value == "a"]


class TestOfAFullAcidTable:
    def test_a_minor_and_a_major_compaction_leave_them_out_and_the_base_lets_them_be_forgotten(
        self, world: World
    ) -> None:
        """testFullACIDAbortWithMinorMajorCompaction, testFullACIDAbortWithMajorCompaction.

        What a delta's name covers stays known until a base has taken its rows; Hive forgets it before.
        """
        world.table()
        world.insert(1)
        world.insert(3, end="abort")
        world.insert(5)
        world.compact(MINOR)
        assert world.content() == [1, 5]
        world.clean()
        assert unversioned(world.names()) == ["delta_0000001_0000003"]
        assert (world.content(), len(known(world))) == ([1, 5], 1)
        world.insert(7)
        world.insert(9, end="abort")
        world.delete(1, end="abort")
        world.compact(MAJOR)
        assert world.content() == [1, 5, 7]
        world.clean()
        assert unversioned(world.names()) == ["base_0000006"]
        assert (world.content(), known(world)) == ([1, 5, 7], [])

    def test_a_second_request_before_the_cleaning_is_not_taken(self, world: World) -> None:
        """testFullACIDAbortWithCompactionNoCleanup, testMmTableAbortWithCompactionNoCleanup."""
        world.table()
        world.insert(1)
        world.insert(5)
        world.insert(3, end="abort")
        world.compact(MINOR)
        assert world.content() == [1, 5]
        world.insert(7)
        world.insert(9, end="abort")
        world.compact(MAJOR)
        answer = world.store.compact(CompactionRequest("default", "t", None, MAJOR, "ann", "desk"))
        assert not answer.accepted
        assert answer.message == "Compaction is already scheduled with state='ready for cleaning' and id=2"
        world.clean()
        world.clean()
        assert (unversioned(world.names()), world.content()) == (["base_0000005"], [1, 5, 7])

    def test_a_base_may_end_in_one(self, world: World) -> None:
        """testNoHistory: an aborted transaction must not make a reader take the base for too new (HIVE-14350)."""
        world.table()
        world.insert(1)
        world.insert(2)
        world.insert(3, end="abort")
        world.compact()
        world.clean()
        assert (unversioned(world.names()), world.content()) == (["base_0000003"], [1, 2])

    def test_one_between_the_worker_and_the_cleaner_stays_aborted(self, world: World) -> None:
        """writeBetweenWorkerAndCleaner (HIVE-12352): its delete had become committed."""
        world.table()
        world.insert(1, 2, 3)
        world.delete(3)
        world.insert(33)
        world.compact(MINOR)
        world.delete(1, end="abort")
        assert world.content() == [1, 2, 33]
        world.clean()
        expected = ["delete_delta_0000001_0000003", "delta_0000001_0000003"]
        assert unversioned(world.names()) == expected  # Hive's keeps the aborted one until the next compaction
        world.insert(4)
        world.compact(MINOR)
        world.clean()
        assert unversioned(world.names()) == ["delete_delta_0000001_0000005", "delta_0000001_0000005"]
        world.initiate()
        assert known(world) == []
        assert world.content() == [1, 2, 4, 33]

    def test_those_of_many_partitions_are_cleaned_in_one_round(self, world: World) -> None:
        """testFullACIDAbortWithManyPartitions."""
        parts = [f"p{i}" for i in range(3)]
        world.table("t", *parts)
        for part in parts:
            world.insert(1, part=part)
            world.insert(2, part=part)
            world.insert(3, part=part, end="abort")
            world.compact(part=part)
        world.clean()
        for part in parts:
            assert [n.partition("_")[0] for n in world.names(part=part)] == ["base"]
            assert world.content(part=part) == [1, 2]
        assert known(world) == []


class TestOfADynamicPartitionWrite:
    @pytest.mark.parametrize("is_compacted", [False, True])
    @pytest.mark.parametrize("kind", ["insert", "overwrite", "update"])
    def test_that_died_before_it_named_its_partitions_all_directories_go(
        self, world: World, kind: str, is_compacted: bool
    ) -> None:
        """testDynPart{Insert,IOW,Update,Merge}WithAborts and …WithMultiPartitionAborts, the new partition among them.

        With and without a compaction of a partition before the cleaner comes by.
        """
        world.table("t", "p1", "p2")
        for part in ("p1", "p2"):
            world.insert(1, part=part)
            world.insert(2, part=part)
        txn = world.begin()
        operation = Writes.INSERT if kind == "insert" else Writes.UPDATE
        write_id = world.write_id(txn, operation=operation)
        for part in ("p1", "p2", "newpart"):
            name = BaseName(write_id) if kind == "overwrite" else DeltaName(write_id, write_id, 0)
            path = f"{world.path(part=part)}/{name}/bucket_00000"
            write_inserts(FS, path, ROW_TYPE, values(3), write_id=write_id, bucket=536870912)
            if kind == "update" and part != "newpart":
                world.delete_as(write_id, txn, [2], part=part)
        world.end(txn, "abort")
        assert world.content(part="p1") == world.content(part="p2") == [1, 2]
        assert world.initiate() == []
        if is_compacted:
            world.compact(part="p1")
            assert world.content(part="p1") == [1, 2]
        world.clean()
        assert world.content(part="p1") == world.content(part="p2") == [1, 2]
        assert unversioned(world.names(part="p1")) == (
            ["base_0000005"] if is_compacted else [f"delta_{i:07d}_{i:07d}_0000" for i in (1, 2)]
        )
        assert world.names(part="p2") == [f"delta_{i:07d}_{i:07d}_0000" for i in (3, 4)]
        assert world.names(part="newpart") == []
        assert (world.remembered(), known(world)) == (set(), [])


class TestOfAnInsertOnlyTable:
    @pytest.fixture
    def bare(self, world: World) -> World:
        world.table(transactional_properties="insert_only")
        return world

    def insert(self, world: World, number: int, end: str = "commit") -> None:
        write_id = world.write_id(txn := world.begin())
        path = world.path() / str(DeltaName(write_id, write_id, 0)) / "000000_0"
        write_rows(FS, str(path), ROW_TYPE, values(number))
        world.end(txn, end)

    def content(self, world: World) -> list[int]:
        seen = world.snapshot()
        state = acid_state(FS, str(world.path()), seen.write_ids, seen.txns, any_file_name=True)
        found = []
        for file in [f for directory in state.data_directories for f in directory.files]:
            with Path(file.path).open("rb") as opened:
                found += [row[0] for row in pyorc.Reader(opened)]
        return sorted(found)

    @pytest.mark.parametrize(("type_", "left"), [(MINOR, "delta_0000001_0000003"), (MAJOR, "base_0000003")])
    def test_either_compaction_leaves_them_out(self, bare: World, type_: CompactionType, left: str) -> None:
        """testMmTableAbortWithCompaction; TestTxnConcatenate.testConcatenateMM."""
        self.insert(bare, 1)
        self.insert(bare, 3, "abort")
        self.insert(bare, 5)
        assert self.content(bare) == [1, 5]
        bare.compact(type_)
        assert self.content(bare) == [1, 5]
        bare.clean()
        assert unversioned(bare.names()) == [left]
        assert (self.content(bare), len(known(bare))) == ([1, 5], 1 if type_ is MINOR else 0)
        self.insert(bare, 7)
        self.insert(bare, 9, "abort")
        bare.compact()
        bare.clean()
        assert (unversioned(bare.names()), self.content(bare)) == (["base_0000005"], [1, 5, 7])
        assert known(bare) == []

    def test_what_committed_transactions_wrote_is_forgotten_by_the_cleaning(self, bare: World) -> None:
        """TestTxnCommandsForMmTable: testOperationsOnCompletedTxnComponentsForMmTable, testInsertOverwriteForMmTable,
        testInsertOverwriteWithUnionAll."""
        self.insert(bare, 1)
        self.insert(bare, 2)
        places = [(c.table, c.partition) for c in self.written(bare)]
        assert places == [("t", None)]
        write_id = bare.write_id(txn := bare.begin())
        write_rows(FS, str(bare.path() / str(BaseName(write_id)) / "000000_0"), ROW_TYPE, values(5))
        bare.end(txn)
        bare.compact()
        assert len(bare.names()) == 3
        bare.clean()
        assert (bare.names(), self.content(bare)) == (["base_0000003"], [5])
        assert self.written(bare) == []

    def written(self, world: World) -> list[CompactionCandidate]:
        return list(world.store.find_potential_compactions(aborted_threshold=1000, aborted_age_ms=None))

    def test_a_file_that_is_not_orc_makes_it_fail_with_a_word_about_it(self, bare: World) -> None:
        """testFallbackForMergeCompactionOnParquetTables: tables of Parquet are Hive's to compact."""
        for number in (1, 2):
            self.insert(bare, number)
        for file in bare.path().glob("delta_*/000000_0"):
            file.write_bytes(b"PAR1 and so on PAR1")
        names = bare.names()
        outcome = bare.compact()
        assert outcome.state == State.FAILED
        assert "is not a complete ORC file" in (outcome.message or "")
        assert bare.names() == names
