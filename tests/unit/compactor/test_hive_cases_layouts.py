"""Hive's cases about what several compactions in a row make of a directory (``TestCrudCompactorOnTez``, and others)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from acidsql.format.bucket import encode
from acidsql.format.directory import acid_state
from acidsql.format.names import MIN_LONG, DeltaName
from acidsql.format.orc import write_deletes, write_inserts, write_rows
from acidsql.metastore.model import CompactionState as State
from acidsql.metastore.model import CompactionType
from acidsql.valid_ids import CompactorWriteIds, ValidTxnList, ValidWriteIdList
from tests.unit.compactor.world import FS, MAJOR, MINOR, ROW_TYPE, Rows, World, unversioned, values


def loaded(world: World, *numbers: int, part: str | None = None) -> int:
    """LOAD DATA or IMPORT: a delta whose file holds bare rows."""
    write_id = world.write_id(txn := world.begin(), part=part)
    path = world.path(part=part) / f"delta_{write_id:07d}_{write_id:07d}_0000" / "000000_0"
    write_rows(FS, str(path), ROW_TYPE, values(*numbers))
    world.end(txn)
    return write_id


def rows(world: World, part: str | None = None) -> Rows:
    return world.rows(world.snapshot(), part)


def three_inserts(world: World, part: str | None = None) -> None:
    for number in range(3):
        world.insert(number, part=part, buckets=2)


def changes(world: World) -> None:
    """Two inserts, a delete, an insert, a delete: five write ids."""
    world.insert(1, 2)
    world.insert(3, 4)
    world.delete(1)
    world.insert(5, 6)
    world.delete(3, 6)


class TestOneCompactionAfterAnother:
    @pytest.mark.parametrize("part", [None, "today"])
    @pytest.mark.parametrize(
        ("first", "second", "left"),
        [
            (MINOR, MINOR, [["delta_0000001_0000003"], ["delta_0000001_0000006"]]),
            (MINOR, MAJOR, [["delta_0000001_0000003"], ["base_0000006"]]),
            (MAJOR, MINOR, [["base_0000003"], ["base_0000003", "delta_0000004_0000006"]]),
            (MAJOR, MAJOR, [["base_0000003"], ["base_0000006"]]),
        ],
    )
    def test_of_inserts_covers_what_came_since_and_keeps_buckets_and_ids(
        self, world: World, part: str | None, first: CompactionType, second: CompactionType, left: list[list[str]]
    ) -> None:
        world.table("t", *([part] if part else []))
        for type, expected in zip((first, second), left, strict=True):
            three_inserts(world, part)
            before = rows(world, part)
            world.compact(type, part=part)
            world.clean()
            assert unversioned(world.names(part=part)) == expected
            [newest] = [p for p in world.path(part=part).iterdir() if p.name.startswith(expected[-1])]
            assert sorted(p.name for p in newest.glob("bucket_*")) == ["bucket_00000", "bucket_00001"]
            assert (newest / "_orc_acid_version").exists()
            assert rows(world, part) == before
        assert world.states() == [State.SUCCEEDED, State.SUCCEEDED]

    @pytest.mark.parametrize(
        ("types", "left"),
        [
            ([MINOR] * 3, ["delete_delta_0000001_0000015", "delta_0000001_0000015"]),
            ([MINOR, MAJOR], ["base_0000010"]),
            ([MAJOR, MINOR], ["base_0000005", "delete_delta_0000006_0000010", "delta_0000006_0000010"]),
        ],
    )
    def test_of_inserts_and_deletes_leaves_one_directory_of_each_kind(
        self, world: World, types: list[CompactionType], left: list[str]
    ) -> None:
        world.table()
        for type in types:
            changes(world)
            before = rows(world)
            world.compact(type)
            assert rows(world) == before
            world.clean()
            assert rows(world) == before
        assert unversioned(world.names()) == left

    def test_of_ten_inserts_and_five_deletes_at_once(self, world: World) -> None:
        world.table()
        for number in range(10):
            world.insert(number)
        for number in range(0, 10, 2):
            world.delete(number)
        world.compact(MINOR)
        world.clean()
        assert unversioned(world.names()) == ["delete_delta_0000001_0000015", "delta_0000001_0000015"]
        assert world.content() == [1, 3, 5, 7, 9]

    def test_names_the_directories_of_a_partition_from_its_first_delta_to_the_tables_last(self, world: World) -> None:
        """TestTxnCommands2: testCompactionOutputDirectoryNamesOnPartitionsAndOldDeltasDeleted.

        Hive's compactor by MapReduce ends the range with the partition's last delta, that by queries as we do.
        """
        world.table("t", "p1", "p2")
        for part in ("p1", "p1", "p2", "p2"):
            world.insert(1, part=part)
        world.compact(MINOR, part="p1")
        world.compact(MINOR, part="p2")
        world.clean()
        assert unversioned(world.names(part="p1")) == ["delta_0000001_0000004"]
        assert unversioned(world.names(part="p2")) == ["delta_0000003_0000004"]


class TestAboveAnOverwrite:
    def test_deletes_alone_become_one_delete_delta_and_no_delta(self, world: World) -> None:
        """testJustDeletes; TestTxnCommands2: testNoDeltaAfterDeleteAndMinorCompaction."""
        world.table()
        world.overwrite(1, 2, 3, 4)
        world.delete(2)
        world.delete(4)
        world.compact(MINOR)
        world.clean()
        assert unversioned(world.names()) == ["base_0000001", "delete_delta_0000002_0000003"]
        assert world.insert(5) == 4
        assert world.content() == [1, 3, 5]

    def test_a_minor_and_then_a_major_compaction_begin_above_it(self, world: World) -> None:
        """testIowMinorMajor: a delta that began at 1 was taken for older than the base."""
        world.table()
        world.overwrite(1, 2, 3, 4)
        world.delete(2)
        world.delete(4)
        for number in (5, 6, 7):
            world.insert(number)
        before = rows(world)
        world.compact(MINOR)
        world.clean()
        expected = ["base_0000001", "delete_delta_0000002_0000006", "delta_0000002_0000006"]
        assert unversioned(world.names()) == expected
        assert rows(world) == before
        world.compact()
        world.clean()
        assert unversioned(world.names()) == ["base_0000006"]
        assert rows(world) == before

    def test_there_is_nothing_to_write_but_to_clean(self, world: World) -> None:
        """TestTxnCommands2: testInsertOverwrite1; TestTxnCommandsForMmTable: testInsertOverwriteForMmTable."""
        world.table()
        world.insert(1)
        world.insert(2)
        world.overwrite(5)
        names = world.names()
        assert world.compact().state == State.READY_FOR_CLEANING
        assert world.names() == names == ["base_0000003", "delta_0000001_0000001_0000", "delta_0000002_0000002_0000"]
        world.clean()
        assert (world.names(), world.content()) == (["base_0000003"], [5])

    def test_that_came_after_a_compaction_the_compacted_base_goes_too(self, world: World) -> None:
        """TestTxnCommands2: testInsertOverwrite2."""
        world.table()
        world.insert(1)
        world.insert(2)
        world.compact()
        world.overwrite(5)
        assert len(world.names()) == 4
        world.compact()
        world.clean()
        world.clean()
        assert (world.names(), world.content()) == (["base_0000003"], [5])


class TestWhileOneStreams:
    @pytest.mark.parametrize("type", [MINOR, MAJOR])
    def test_his_delta_is_left_alone_with_all_that_he_has_committed_or_aborted_in_it(
        self, world: World, type: CompactionType
    ) -> None:
        """testMinorCompactionWhileStreaming: the range ends before his delta, though some of its write ids are done.

        Hive names it by the first open one; then what he has committed would seem to be in it. What he has aborted
        stays known, for its rows are still there.
        """
        world.table()
        world.stream("commit", "commit")
        world.stream("commit", "commit")
        world.stream("abort", "open")
        [writer] = [t.id for t in world.store.show_txns() if t.state.value == "o"]
        world.compact(type)
        new = "delta_0000001_0000004" if type is MINOR else "base_0000004"
        old = ["delta_0000001_0000002", "delta_0000003_0000004"]
        assert unversioned(world.names()) == sorted([new, *old, "delta_0000005_0000006"])
        assert world.content() == [1, 2, 3, 4]
        world.end(writer)
        world.clean()
        assert unversioned(world.names()) == sorted([new, "delta_0000005_0000006"])
        world.housekeeper.run()
        assert 5 in world.remembered()
        assert world.content() == [1, 2, 3, 4, 6]
        world.compact()
        world.clean()
        assert (unversioned(world.names()), world.content()) == (["base_0000006"], [1, 2, 3, 4, 6])
        assert world.remembered() == set()

    @pytest.mark.parametrize(
        "batches",
        [
            (("commit", "commit"), ("commit", "commit"), ("abort", "abort")),
            (("commit", "commit"), ("abort", "abort"), ("commit", "commit")),
            (("commit", "abort", "commit"), ("commit",)),
            (("commit",), ("abort",), ("commit",)),
        ],
    )
    def test_what_he_has_aborted_is_left_out_wherever_it_stands(
        self, world: World, batches: tuple[tuple[str, ...], ...]
    ) -> None:
        """testMinorCompactionWhileStreamingAfterAbort, …WithAbort, …WithAbortInMiddle."""
        world.table()
        for ends in batches:
            world.stream(*ends)
        all_ends = [end for ends in batches for end in ends]
        world.compact(MINOR)
        world.clean()
        assert unversioned(world.names()) == [f"delta_0000001_{len(all_ends):07d}"]
        assert world.content() == [w for w, end in enumerate(all_ends, 1) if end == "commit"]


class TestBareRows:
    @pytest.mark.parametrize("type", [MINOR, MAJOR])
    def test_in_a_delta_keep_the_ids_that_readers_gave_them(self, world: World, type: CompactionType) -> None:
        """Hive's query-based compactor refuses a minor one (testMinorCompactionShouldBeRefusedOnTablesWithRawData)."""
        world.table()
        loaded(world, 7, 8)
        world.insert(1)
        loaded(world, 9)
        write_id = world.write_id(txn := world.begin())
        event = pa.table({"originalTransaction": [1], "bucket": [encode(0)], "rowId": [1]})
        write_deletes(
            FS, f"{world.path()}/{DeltaName(4, 4, 0, is_delete=True)}/bucket_00000", ROW_TYPE, event, write_id=write_id
        )
        world.end(txn)
        world.compact(type)
        world.clean()
        left = ["delete_delta_0000001_0000004", "delta_0000001_0000004"] if type is MINOR else ["base_0000004"]
        assert unversioned(world.names()) == left
        assert rows(world) == {(1, encode(0), 0): 7, (2, encode(0), 0): 1, (3, encode(0), 0): 9}

    def test_at_several_levels_of_a_converted_table_become_the_base_below_all_write_ids(self, world: World) -> None:
        """testNonAcidToAcidConversionWithNestedTableWithUnionSubdir."""
        world.table()
        for level in (1, 2):
            world.original(level, level, file=f"HIVE_UNION_SUBDIR_{level}/000000_0")
        before = rows(world)
        world.compact()
        world.clean()
        assert unversioned(world.names()) == [f"base_{MIN_LONG}"]
        assert rows(world) == before
        assert sorted(before.values()) == [1, 1, 2, 2]


def test_given_deltas_whose_files_are_gone_when_they_are_compacted_then_the_base_is_empty_and_still_hides_them(
    world: World,
) -> None:
    """TestTxnNoBuckets: testEmptyCompactionResult."""
    world.table()
    world.insert(1)
    world.insert(2)
    for file in world.path().glob("delta_*/bucket_*"):
        file.unlink()
    assert world.compact().state == State.READY_FOR_CLEANING
    world.clean()
    assert (unversioned(world.names()), world.content()) == (["base_0000002"], [])
    world.insert(3)
    assert world.content() == [3]


def test_given_a_refused_compaction_when_a_delete_and_an_update_follow_then_the_next_one_is_carried_out(
    world: World,
) -> None:
    """TestTxnCommands2: testCompactWithDelete."""
    world.table()
    world.insert(1, 3)
    world.compact()
    world.delete(3)
    write_id = world.write_id(txn := world.begin())
    world.delete_as(write_id, txn, [1])
    path = f"{world.path()}/{DeltaName(write_id, write_id, 0)}/bucket_00000"
    write_inserts(FS, path, ROW_TYPE, values(-2), write_id=write_id, bucket=encode(0))
    world.end(txn)
    world.compact(MINOR)
    assert world.states() == [State.READY_FOR_CLEANING, State.REFUSED]
    assert world.content() == [-2]


class TestOpenTransactionsInADirectory:
    """TestAcidUtils: deltasWithOpenTxnsNotInCompact and its two sisters."""

    @pytest.mark.parametrize(
        ("names", "highest", "chosen"),
        [
            (["delta_1_1", "delta_2_5"], 4, ["delta_1_1"]),
            (["delta_1_1", "delta_2_5", "delta_6_10"], 3, ["delta_1_1"]),
            (
                ["delta_1_1", "delta_2_5", "delete_delta_2_5", "delta_3_3", "delete_delta_3_3", "delta_7_7"],
                6,
                ["delete_delta_2_5", "delta_1_1", "delta_2_5"],
            ),
            (
                ["delta_1_1", "delete_delta_2_2", "delta_3_7", "delete_delta_6_8"],
                7,
                ["delete_delta_2_2", "delta_1_1", "delta_3_7"],
            ),
        ],
    )
    def test_a_delta_that_reaches_above_what_a_compactor_sees_is_not_compacted(
        self, tmp_path: Path, names: list[str], highest: int, chosen: list[str]
    ) -> None:
        for name in names:
            FS.write_bytes(str(tmp_path / name / "bucket_00000"), b"rows")
        seen = ValidWriteIdList("db.t", 20, (highest + 1, 9)).for_compaction()
        assert isinstance(seen, CompactorWriteIds)
        state = acid_state(FS, str(tmp_path), seen, ValidTxnList(99))
        assert sorted(Path(d.path).name for d in state.deltas) == chosen
