"""The state of a directory: Hive's getAcidState, with the situations of its TestAcidUtils."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acidsql.errors import CorruptFile, SnapshotTooOld, StorageError
from acidsql.format.directory import AcidState, acid_state, qualifies
from acidsql.format.foreign import DirectorySummary, directory_summary
from acidsql.format.names import BaseName, DeltaName
from acidsql.fs import FileStatus, LocalFileSystem
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList

ALL_TXNS = ValidTxnList(1000)


class CountingFileSystem(LocalFileSystem):
    """Remembers which directories were listed, by their last name."""

    def __init__(self) -> None:
        self.listed: list[str] = []

    def list(self, path: str) -> list[FileStatus]:
        self.listed.append(Path(path).name)
        return super().list(path)


def build(root: Path, *paths: str) -> None:
    """Files of some bytes at the paths; a path that ends in a slash is an empty directory."""
    for path in paths:
        file = root / path
        if path.endswith("/"):
            file.mkdir(parents=True, exist_ok=True)
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(b"x" * 5)


def metadata(root: Path, base: str, data_format: str, version: str = "0") -> None:
    build(root, f"{base}/bucket_0")
    text = json.dumps({"thisFileVersion": version, "dataFormat": data_format})
    (root / base / "_metadata_acid").write_text(text)


def state_of(
    root: Path,
    high_watermark: int = 100,
    *,
    open: tuple[int, ...] = (),
    aborted: tuple[int, ...] = (),
    txns: ValidTxnList = ALL_TXNS,
) -> AcidState:
    return acid_state(LocalFileSystem(), str(root), ValidWriteIdList("db.t", high_watermark, open, aborted), txns)


def kept(state: AcidState) -> list[str]:
    return [Path(d.path).name for d in state.deltas]


def base_of(state: AcidState) -> str | None:
    return None if state.base is None else Path(state.base.path).name


def gone(state: AcidState) -> list[str]:
    return [Path(p).name for p in state.obsolete]


def aborted_of(state: AcidState) -> list[str]:
    return [Path(p).name for p in state.aborted]


# --- nothing, and original files ---


def test_a_directory_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert state_of(tmp_path / "none") == AcidState(str(tmp_path / "none"))


def test_originals_are_found_recursively_in_the_order_of_their_paths(tmp_path: Path) -> None:
    build(tmp_path, "000002_0", "000001_1", "000000_0_copy_2", "000000_0_copy_10", "000000_0_copy_1", "000000_0")
    build(tmp_path, "random", "_done", ".hidden/000000_0", "_tmp/000000_0", "subdir/000000_0", "subdir/deep/000001_0")
    state = state_of(tmp_path)
    found = [(str(Path(f.path).relative_to(tmp_path)), f.bucket_id) for f in state.originals]
    assert found == [
        ("000000_0", 0),
        ("000000_0_copy_1", 0),
        ("000000_0_copy_10", 0),
        ("000000_0_copy_2", 0),
        ("000001_1", 1),
        ("000002_0", 2),
        ("random", -1),
        ("subdir/000000_0", 0),
        ("subdir/deep/000001_0", 1),
    ]
    assert (state.base, state.deltas, state.obsolete) == (None, (), ())


def test_originals_and_deltas_are_read_together(tmp_path: Path) -> None:
    build(tmp_path, "000000_0", *[f"delta_{d}/bucket_0" for d in ("025_025", "029_029", "025_030", "050_100")])
    build(tmp_path, "delta_101_101/bucket_0")
    state = state_of(tmp_path)
    assert kept(state) == ["delta_025_030", "delta_050_100"]
    assert gone(state) == ["delta_025_025", "delta_029_029"]
    assert [f.name for f in state.originals] == ["000000_0"]


def test_a_base_makes_originals_and_older_bases_obsolete(tmp_path: Path) -> None:
    build(tmp_path, "base_10/bucket_0", "base_5/bucket_0", "000000_0", "000001_1", "HIVE_UNION_SUBDIR_1/000000_0")
    state = state_of(tmp_path, 150)
    assert base_of(state) == "base_10"
    assert state.originals == ()
    assert sorted(gone(state)) == ["000000_0", "000001_1", "HIVE_UNION_SUBDIR_1", "base_5"]


def test_an_acid_directory_below_an_ordinary_one_is_an_error_not_an_original(tmp_path: Path) -> None:
    build(tmp_path, "p=1/delta_1_1_0/bucket_00000")
    with pytest.raises(CorruptFile, match="delta_1_1_0 is an ACID directory inside"):
        state_of(tmp_path)


@pytest.mark.parametrize("name", ["delta_x", "base_", "delete_delta_1"])
def test_a_directory_whose_name_breaks_off_is_an_error_not_passed_over(tmp_path: Path, name: str) -> None:
    build(tmp_path, f"{name}/bucket_00000")
    with pytest.raises(CorruptFile, match="Not the name of a base or delta"):
        state_of(tmp_path)


# --- base ---


def test_of_several_bases_the_newest_valid_one_is_read_and_deltas_under_it_are_obsolete(tmp_path: Path) -> None:
    build(tmp_path, "base_5/bucket_0", "base_10/bucket_0", "base_49/bucket_0")
    build(tmp_path, *[f"delta_{d}/bucket_0" for d in ("025_025", "029_029", "025_030", "050_105", "90_120")])
    state = state_of(tmp_path)
    assert base_of(state) == "base_49"
    assert kept(state) == ["delta_050_105"]
    assert set(gone(state)) == {"base_5", "base_10", "delta_025_025", "delta_029_029", "delta_025_030"}


def test_a_base_with_delete_deltas(tmp_path: Path) -> None:
    build(tmp_path, "base_5/bucket_0", "base_10/bucket_0", "base_49/bucket_0")
    both = ("029_029", "025_030", "050_105")
    build(tmp_path, *[f"delta_{d}/bucket_0" for d in (*both, "025_025")])
    build(tmp_path, *[f"delete_delta_{d}/bucket_0" for d in (*both, "110_110")])
    state = state_of(tmp_path)
    assert base_of(state) == "base_49"
    assert kept(state) == ["delete_delta_050_105", "delta_050_105"]
    assert len(state.obsolete) == 7


def test_a_base_above_the_high_watermark_is_neither_read_nor_obsolete(tmp_path: Path) -> None:
    build(tmp_path, "base_5/bucket_0", "base_9/bucket_0")
    state = state_of(tmp_path, 7)
    assert (base_of(state), gone(state)) == ("base_5", [])


def test_an_overwrite_is_valid_although_an_id_below_it_is_open(tmp_path: Path) -> None:
    build(tmp_path, "base_5/bucket_0", "delta_3_3_0/bucket_0")
    state = state_of(tmp_path, 6, open=(3,))
    assert base_of(state) == "base_5"


def test_a_compacted_base_is_not_valid_when_an_id_below_it_is_open(tmp_path: Path) -> None:
    build(tmp_path, "base_2_v1/bucket_0", "base_5_v9/bucket_0", "delta_4_4_0/bucket_0")
    state = state_of(tmp_path, 6, open=(3,))
    assert (base_of(state), kept(state), gone(state)) == ("base_2_v1", ["delta_4_4_0"], [])


def test_a_base_below_the_smallest_open_id_is_valid(tmp_path: Path) -> None:
    build(tmp_path, "base_2_v1/bucket_0")
    assert base_of(state_of(tmp_path, 6, open=(3,))) == "base_2_v1"


def test_the_overwrite_of_an_open_transaction_is_not_read(tmp_path: Path) -> None:
    """Hive reads it when it is the smallest open id; an open write id is never visible here."""
    build(tmp_path, "delta_1_1_0/bucket_0", "base_3/bucket_0")
    state = state_of(tmp_path, 3, open=(3,))
    assert (base_of(state), kept(state), gone(state)) == (None, ["delta_1_1_0"], [])


def test_an_aborted_overwrite_is_aborted(tmp_path: Path) -> None:
    build(tmp_path, "delta_1_1_0/bucket_0", "base_2/bucket_0")
    state = state_of(tmp_path, 3, aborted=(2,))
    assert (base_of(state), kept(state), aborted_of(state)) == (None, ["delta_1_1_0"], ["base_2"])
    assert state.aborted_write_ids == {2}


@pytest.mark.parametrize("name", ["base_2_v7", "base_2"])
def test_a_compacted_base_may_end_in_an_aborted_id(tmp_path: Path, name: str) -> None:
    metadata(tmp_path, name, "compacted")
    build(tmp_path, "delta_1_1_0/bucket_0", "delta_2_2_0/bucket_0")
    state = state_of(tmp_path, 3, aborted=(2,))
    assert (base_of(state), gone(state), aborted_of(state)) == (name, ["delta_1_1_0"], ["delta_2_2_0"])


def test_the_base_of_an_uncommitted_compactor_is_passed_over(tmp_path: Path) -> None:
    build(tmp_path, "delta_1_1_0/bucket_0", "base_1_v8/bucket_0", "delta_1_2_v9/bucket_0")
    state = state_of(tmp_path, txns=ValidTxnList(10, (8,), (9,)))
    assert (base_of(state), kept(state)) == (None, ["delta_1_1_0"])
    assert (gone(state), aborted_of(state)) == ([], ["delta_1_2_v9"])
    assert base_of(state_of(tmp_path, txns=ValidTxnList(7))) is None
    assert base_of(state_of(tmp_path, txns=ValidTxnList(10, (), (9,)))) == "base_1_v8"


def test_a_compacted_base_replaces_an_overwrite_of_the_same_write_id(tmp_path: Path) -> None:
    build(tmp_path, "base_5/bucket_0", "base_5_v9/bucket_0")
    state = state_of(tmp_path)
    assert (base_of(state), gone(state)) == ("base_5_v9", ["base_5"])


def test_the_base_of_a_table_converted_and_never_written_is_always_valid(tmp_path: Path) -> None:
    build(tmp_path, "base_-9223372036854775808/bucket_0", "000000_0", "delta_1_1_0/bucket_0")
    state = state_of(tmp_path, 1)
    assert base_of(state) == "base_-9223372036854775808"
    assert (kept(state), gone(state)) == (["delta_1_1_0"], ["000000_0"])


@pytest.mark.parametrize("data_format", ["truncated", "dropped"])
def test_a_truncating_base_hides_what_was_before_it(tmp_path: Path, data_format: str) -> None:
    metadata(tmp_path, "base_3", data_format)
    build(tmp_path, "delta_1_1_0/bucket_0", "delta_4_4_0/bucket_0")
    state = state_of(tmp_path)
    assert (base_of(state), kept(state), gone(state)) == ("base_3", ["delta_4_4_0"], ["delta_1_1_0"])


def test_a_base_without_files_hides_what_was_before_it(tmp_path: Path) -> None:
    build(tmp_path, "base_3/", "delta_1_1_0/bucket_0")
    state = state_of(tmp_path)
    assert state.base is not None
    assert (state.base.files, kept(state)) == ((), [])


@pytest.mark.parametrize(("data_format", "version"), [("melted", "0"), ("compacted", "1")])
def test_unknown_base_metadata_are_an_error(tmp_path: Path, data_format: str, version: str) -> None:
    metadata(tmp_path, "base_5", data_format, version)
    with pytest.raises(CorruptFile, match="unknown version or format"):
        state_of(tmp_path, 6, open=(3,))


@pytest.mark.parametrize("text", ["", "{}", "[]", "not json"])
def test_broken_base_metadata_are_an_error(tmp_path: Path, text: str) -> None:
    metadata(tmp_path, "base_5", "compacted")
    (tmp_path / "base_5" / "_metadata_acid").write_text(text)
    with pytest.raises(CorruptFile, match="is invalid"):
        state_of(tmp_path, 6, open=(3,))


def test_a_snapshot_older_than_the_oldest_compacted_base_is_too_old(tmp_path: Path) -> None:
    build(tmp_path, "base_5_v9/bucket_0", "delta_6_6_0/bucket_0")
    with pytest.raises(SnapshotTooOld, match=r"write ids up to 6 \(open: 4\), but the oldest base is .*base_5_v9") as e:
        state_of(tmp_path, 6, open=(4,))
    assert e.value.code == 10327


def test_a_snapshot_held_by_an_open_transaction_reads_on_below_a_base_that_is_not_for_it(
    tmp_path: Path,
) -> None:
    build(tmp_path, "base_5/bucket_0", *(f"delta_{i}_{i}_0/bucket_0" for i in range(1, 7)))
    metadata(tmp_path, "base_5", "compacted")
    seen = ValidWriteIdList("db.t", 6, (4,))
    found = acid_state(LocalFileSystem(), str(tmp_path), seen, ValidTxnList(100), is_pinned=True)
    assert found.base is None
    assert [str(d.name) for d in found.deltas] == [f"delta_{i:07d}_{i:07d}_0000" for i in (1, 2, 3, 5, 6)]
    assert found.obsolete == ()


def test_an_overwrite_newer_than_the_snapshot_is_no_loss_of_history(tmp_path: Path) -> None:
    build(tmp_path, "base_5/bucket_0", "delta_1_1_0/bucket_0")
    assert kept(state_of(tmp_path, 4)) == ["delta_1_1_0"]


def test_a_compacted_base_of_an_aborted_transaction_is_no_loss_of_history(tmp_path: Path) -> None:
    build(tmp_path, "base_5_v9/bucket_0", "delta_1_1_0/bucket_0")
    assert kept(state_of(tmp_path, 4, txns=ValidTxnList(10, (), (9,)))) == ["delta_1_1_0"]


# --- deltas ---


def test_overlapping_deltas(tmp_path: Path) -> None:
    names = ("0000063_63", "000062_62", "00061_61", "40_60", "0060_60", "052_55")
    build(tmp_path, *[f"delta_{n}/bucket_0" for n in names], "base_50/bucket_0")
    state = state_of(tmp_path)
    assert kept(state) == ["delta_40_60", "delta_00061_61", "delta_000062_62", "delta_0000063_63"]
    assert gone(state) == ["delta_052_55", "delta_0060_60"]


def test_overlapping_deltas_of_several_statements(tmp_path: Path) -> None:
    names = ("0000063_63_0", "000062_62_0", "000062_62_3", "00061_61_0", "40_60")
    older = ("0060_60_1", "0060_60_4", "0060_60_7", "052_55", "058_58")
    build(tmp_path, *[f"delta_{n}/bucket_0" for n in (*names, *older)], "base_50/bucket_0")
    state = state_of(tmp_path)
    assert kept(state) == [f"delta_{n}" for n in ("40_60", "00061_61_0", "000062_62_0", "000062_62_3", "0000063_63_0")]
    assert gone(state) == [f"delta_{n}" for n in ("052_55", "058_58", "0060_60_1", "0060_60_4", "0060_60_7")]


def test_overlapping_deltas_and_delete_deltas(tmp_path: Path) -> None:
    names = ("0000063_63", "000062_62", "00061_61", "40_60", "0060_60", "052_55")
    build(tmp_path, *[f"delta_{n}/bucket_0" for n in names], "base_50/bucket_0")
    build(tmp_path, *[f"delete_delta_{n}/bucket_0" for n in ("00064_64", "40_60", "052_55")])
    state = state_of(tmp_path)
    assert kept(state) == [
        "delete_delta_40_60",
        "delta_40_60",
        "delta_00061_61",
        "delta_000062_62",
        "delta_0000063_63",
        "delete_delta_00064_64",
    ]
    assert [Path(d.path).name for d in state.insert_deltas] == [n for n in kept(state) if n.startswith("delta")]
    assert [Path(d.path).name for d in state.delete_deltas] == ["delete_delta_40_60", "delete_delta_00064_64"]
    assert gone(state) == ["delete_delta_052_55", "delta_052_55", "delta_0060_60"]


@pytest.mark.parametrize(("wide", "inside"), [("delta_40_60", "50_50"), ("delta_30_50", "40_40")])
def test_a_compacted_delta_makes_a_delete_delta_inside_its_range_obsolete(
    tmp_path: Path, wide: str, inside: str
) -> None:
    build(tmp_path, f"{wide}/bucket_0", f"delete_delta_{inside}/bucket_0")
    state = state_of(tmp_path)
    assert (kept(state), gone(state)) == ([wide], [f"delete_delta_{inside}"])


def test_a_delta_with_an_open_id_in_its_middle_is_read(tmp_path: Path) -> None:
    build(tmp_path, "delta_1_1/bucket_0", "delta_2_5/bucket_0")
    assert kept(state_of(tmp_path, open=(4,))) == ["delta_1_1", "delta_2_5"]


def test_deltas_of_the_open_id_and_beyond_the_high_watermark_are_not_read(tmp_path: Path) -> None:
    build(tmp_path, *[f"delta_{n}/bucket_0" for n in ("1_1", "2_5", "4_4_1", "4_4_3", "101_101_1")])
    state = state_of(tmp_path, open=(4,))
    assert kept(state) == ["delta_1_1", "delta_2_5"]
    assert (gone(state), aborted_of(state)) == ([], [])


def test_delete_deltas_with_an_open_id(tmp_path: Path) -> None:
    build(tmp_path, *[f"delta_{n}/bucket_0" for n in ("1_1", "2_5", "4_4_1", "4_4_3", "101_101_1")])
    build(tmp_path, "delete_delta_2_5/bucket_0", "delete_delta_3_3/bucket_0")
    state = state_of(tmp_path, open=(4,))
    assert kept(state) == ["delta_1_1", "delete_delta_2_5", "delta_2_5"]
    assert gone(state) == ["delete_delta_3_3"]


def test_aborted_deltas_are_set_aside_with_their_write_ids(tmp_path: Path) -> None:
    build(tmp_path, "delta_1_1_0/bucket_0", "delta_2_2_0/bucket_0", "delete_delta_2_2_0/bucket_0", "delta_3_4/bucket_0")
    state = state_of(tmp_path, aborted=(2, 3, 4))
    assert kept(state) == ["delta_1_1_0"]
    assert aborted_of(state) == ["delete_delta_2_2_0", "delta_2_2_0", "delta_3_4"]
    assert state.aborted_write_ids == {2, 3, 4}
    assert not state.has_partial_aborts


def test_a_delta_that_is_aborted_in_part_is_read(tmp_path: Path) -> None:
    build(tmp_path, "delta_2_5/bucket_0")
    state = state_of(tmp_path, aborted=(3,))
    assert (kept(state), aborted_of(state), state.aborted_write_ids) == (["delta_2_5"], [], frozenset())
    assert state.has_partial_aborts


def test_a_delta_that_adds_only_hidden_ids_is_neither_read_nor_obsolete(tmp_path: Path) -> None:
    build(tmp_path, "base_4/bucket_0", "delta_3_5/bucket_0")
    state = state_of(tmp_path, 5, open=(5,))
    assert (base_of(state), kept(state), gone(state)) == ("base_4", [], [])


def test_both_directories_of_an_update_and_later_statements_are_read(tmp_path: Path) -> None:
    names = ("delta_3_3_0000", "delete_delta_3_3_0000", "delta_3_3_0001", "delete_delta_3_3_0002")
    build(tmp_path, *[f"{n}/bucket_0" for n in names])
    assert kept(state_of(tmp_path)) == [names[1], names[0], names[2], names[3]]


def test_a_compacted_single_write_id_replaces_its_statements(tmp_path: Path) -> None:
    build(tmp_path, "delta_3_3_v9/bucket_0", "delete_delta_3_3_v9/bucket_0", "delta_3_3_0000/bucket_0")
    state = state_of(tmp_path)
    assert kept(state) == ["delete_delta_3_3_v9", "delta_3_3_v9"]
    assert gone(state) == ["delta_3_3_0000"]


# --- files of a directory ---


def test_files_of_a_delta_are_bucket_files_and_loaded_files_wherever_they_lie(tmp_path: Path) -> None:
    build(tmp_path, *[f"delta_2_2_0/{f}" for f in ("bucket_00001_0", "bucket_00000", "000000_0", "_orc_acid_version")])
    build(tmp_path, "delta_2_2_0/HIVE_UNION_SUBDIR_1/000001_0", "delta_2_2_0/.tmp/bucket_00003", "delta_2_2_0/notes")
    build(tmp_path, "delta_3_5/bucket_00000")
    side_file(tmp_path, "delta_3_5/bucket_00000", 5)
    first, second = state_of(tmp_path).deltas
    assert [(f.name, f.bucket_id) for f in first.files] == [
        ("000000_0", 0),
        ("000001_0", 1),
        ("bucket_00000", 0),
        ("bucket_00001_0", 1),
    ]
    assert first.name == DeltaName(2, 2, 0)
    assert [(f.name, f.length) for f in second.files] == [("bucket_00000", 5)]
    assert all(f.modified_ns > 0 and Path(f.path).is_file() for f in first.files)


def test_only_the_directory_and_what_is_read_of_it_is_listed(tmp_path: Path) -> None:
    build(tmp_path, "base_2/bucket_0", "base_5_v9/bucket_0", "delta_1_1_0/bucket_0", "delta_6_6_0/bucket_0")
    build(tmp_path, "delta_7_7_0/bucket_0", "delta_8_8_0/bucket_0", "sub/000000_0", "_tmp_1/delta_9_9_0/bucket_0")
    fs = CountingFileSystem()
    state = acid_state(fs, str(tmp_path), ValidWriteIdList("db.t", 8, (8,), (7,)), ALL_TXNS)
    assert (base_of(state), kept(state)) == ("base_5_v9", ["delta_6_6_0"])
    assert sorted(fs.listed) == sorted([tmp_path.name, "base_5_v9", "delta_6_6_0"])


# --- qualified deletes ---


@pytest.mark.parametrize(
    ("delete", "data", "expected"),
    [
        (DeltaName(2, 2, 0, is_delete=True), DeltaName(1, 1, 0), True),
        (DeltaName(2, 2, 0, is_delete=True), DeltaName(2, 2, 0), False),
        (DeltaName(2, 2, 1, is_delete=True), DeltaName(2, 2, 0), True),
        (DeltaName(2, 2, 0, is_delete=True), DeltaName(2, 2, 1), False),
        (DeltaName(2, 2, 0, is_delete=True), DeltaName(3, 3, 0), False),
        (DeltaName(1, 7, is_delete=True), DeltaName(1, 7), True),
        # a compaction of one transaction's statements; Hive 4.0.1 takes both for the first statement's
        (DeltaName(2, 2, is_delete=True), DeltaName(2, 2), True),
        (DeltaName(2, 2, is_delete=True), DeltaName(2, 2, 3), True),
        (DeltaName(2, 2, 1, is_delete=True), DeltaName(2, 2), True),
        (DeltaName(2, 2, is_delete=True), DeltaName(3, 3), False),
        (DeltaName(3, 3, 0, is_delete=True), DeltaName(1, 7), True),
        (DeltaName(2, 2, 0, is_delete=True), BaseName(9), True),
        (DeltaName(2, 2, 0, is_delete=True), None, True),
    ],
)
def test_a_delete_reaches_rows_of_smaller_write_ids_and_earlier_statements(
    delete: DeltaName, data: BaseName | DeltaName | None, expected: bool
) -> None:
    assert qualifies(delete, data) is expected


# --- summary ---


def test_the_summary_sees_the_largest_ids_in_all_partitions(tmp_path: Path) -> None:
    build(tmp_path, "p=1/base_5_v30/bucket_0", "p=1/delta_1_7_v20/bucket_0", "p=2/delete_delta_12_12_0/bucket_0")
    build(tmp_path, "p=2/000000_0", "_tmp/delta_99_99_0/bucket_0")
    assert directory_summary(LocalFileSystem(), str(tmp_path)) == DirectorySummary(12, 30)


def test_the_summary_of_original_files_alone_is_zero(tmp_path: Path) -> None:
    build(tmp_path, "000000_0", "base_-9223372036854775808/bucket_0")
    assert directory_summary(LocalFileSystem(), str(tmp_path)) == (0, 0)


def side_file(root: Path, file: str, *lengths: int) -> None:
    content = b"".join(length.to_bytes(8, "big", signed=True) for length in lengths)
    (root / f"{file}_flush_length").write_bytes(content)


def lengths(state: AcidState) -> list[tuple[str, int, bool]]:
    return [(f.name, f.length, f.is_prefix) for d in state.deltas for f in d.files]


def test_the_last_length_of_a_side_file_is_where_a_streamed_file_ends(tmp_path: Path) -> None:
    build(tmp_path, "delta_1_9/bucket_00000", "delta_1_9/bucket_00001", "delta_1_9/bucket_00002")
    side_file(tmp_path, "delta_1_9/bucket_00000", 2, 3)
    side_file(tmp_path, "delta_1_9/bucket_00001", 2, 5)
    assert lengths(state_of(tmp_path)) == [
        ("bucket_00000", 3, True),
        ("bucket_00001", 5, False),
        ("bucket_00002", 5, False),
    ]


def test_a_length_that_is_being_written_does_not_count_yet(tmp_path: Path) -> None:
    build(tmp_path, "delta_1_9/bucket_00000")
    (tmp_path / "delta_1_9/bucket_00000_flush_length").write_bytes((4).to_bytes(8, "big") + b"\0\0\0")
    assert lengths(state_of(tmp_path)) == [("bucket_00000", 4, True)]


def test_a_streamed_file_of_which_nothing_is_committed_holds_no_rows(tmp_path: Path) -> None:
    build(tmp_path, "delta_1_9/bucket_00000")
    side_file(tmp_path, "delta_1_9/bucket_00000", 0)
    assert lengths(state_of(tmp_path)) == [("bucket_00000", 0, True)]


def test_a_side_file_that_says_nothing_is_an_error(tmp_path: Path) -> None:
    build(tmp_path, "delta_1_9/bucket_00000")
    side_file(tmp_path, "delta_1_9/bucket_00000")
    with pytest.raises(CorruptFile, match="bucket_00000_flush_length exists, but contains no length"):
        state_of(tmp_path)


@pytest.mark.parametrize("directory", ["delta_3_3", "delta_1_9_v7", "delete_delta_1_9", "base_9"])
def test_side_files_count_in_uncompacted_deltas_of_several_transactions_only(tmp_path: Path, directory: str) -> None:
    build(tmp_path, f"{directory}/bucket_00000")
    side_file(tmp_path, f"{directory}/bucket_00000", 2)
    state = state_of(tmp_path)
    [found] = [f for d in (state.base, *state.deltas) if d for f in d.files]
    assert (found.name, found.length, found.is_prefix) == ("bucket_00000", 5, False)


def test_a_side_file_that_is_removed_after_the_listing_means_that_the_file_is_whole(tmp_path: Path) -> None:
    build(tmp_path, "delta_1_9/bucket_00000")
    side_file(tmp_path, "delta_1_9/bucket_00000", 2)

    class Closing(LocalFileSystem):
        def read_bytes(self, path: str) -> bytes:
            Path(path).unlink()
            return super().read_bytes(path)

    state = acid_state(Closing(), str(tmp_path), ValidWriteIdList("db.t", 100), ALL_TXNS)
    assert lengths(state) == [("bucket_00000", 5, False)]


def test_of_an_insert_only_table_files_of_any_name_are_data(tmp_path: Path) -> None:
    build(tmp_path, "delta_1_1_0/4b1f_data.0.orc", "delta_1_1_0/000000_0", "delta_1_1_0/_done", "delta_1_1_0/x/part-1")
    ids = ValidWriteIdList("db.t", 100)
    [delta] = acid_state(LocalFileSystem(), str(tmp_path), ids, ALL_TXNS, any_file_name=True).deltas
    assert [f.name for f in delta.files] == ["000000_0", "4b1f_data.0.orc", "part-1"]


def test_the_version_file_of_a_directory_is_noticed(tmp_path: Path) -> None:
    build(tmp_path, "delta_1_1_0/bucket_00000", "delta_1_1_0/_orc_acid_version", "delta_2_2_0/bucket_00000")
    assert [d.has_version_file for d in state_of(tmp_path).deltas] == [True, False]


def test_data_directories_are_the_base_and_the_deltas_with_rows(tmp_path: Path) -> None:
    build(tmp_path, "base_1/bucket_00000", "delta_2_2_0/bucket_00000", "delete_delta_2_2_0/bucket_00000")
    state = state_of(tmp_path)
    assert [Path(d.path).name for d in state.data_directories] == ["base_1", "delta_2_2_0"]
    assert not state.is_empty


@pytest.mark.parametrize("paths", [(), ("base_1/",), ("delete_delta_2_2_0/bucket_00000",)])
def test_a_state_without_any_data_file_is_empty(tmp_path: Path, paths: tuple[str, ...]) -> None:
    build(tmp_path, *paths)
    assert state_of(tmp_path).is_empty


def test_a_state_of_original_files_is_not_empty(tmp_path: Path) -> None:
    build(tmp_path, "000000_0")
    assert not state_of(tmp_path).is_empty


@pytest.mark.parametrize("moment", range(4))
@pytest.mark.parametrize(
    "deltas", [("delta_1_1", "delta_2_2"), ("base_1", "delete_delta_2_2"), ("1/000000_0", "delta_2_2")]
)
def test_a_directory_that_is_renamed_while_it_is_listed_is_an_error(
    tmp_path: Path, deltas: tuple[str, ...], moment: int
) -> None:
    """Readers take no locks: they found fewer rows, or none."""
    build(tmp_path / "t", *(f"{d}/bucket_00000" if "_0" not in d else d for d in deltas))
    listed = [0]

    class Renamed(LocalFileSystem):
        def list(self, path: str) -> list[FileStatus]:
            if listed[0] == moment:
                (tmp_path / "t").rename(tmp_path / "u")
            listed[0] += 1
            return super().list(path)

    write_ids = ValidWriteIdList("db.t", 100)
    if moment < 3 and moment > 0:
        with pytest.raises(StorageError, match="renamed, moved or dropped"):
            acid_state(Renamed(), str(tmp_path / "t"), write_ids, ALL_TXNS)
    else:  # before: its caller looks for the directory; later: it is found out when the files are read
        acid_state(Renamed(), str(tmp_path / "t"), write_ids, ALL_TXNS)


# --- what a running statement of Hive's has beside them ---

MANIFESTS = [
    "-tmp.delta_0000005_0000005_0000",
    "-tmp.delete_delta_0000005_0000005_0002",
    "-tmp.delta_0000005_0000005",
    "-tmp.base_0000005_0",
    "-tmp.base_0000005",
]


@pytest.mark.parametrize("name", MANIFESTS)
@pytest.mark.parametrize("based", [False, True], ids=["no base", "a base"])
@pytest.mark.parametrize("any_file_name", [False, True], ids=["full ACID", "insert-only"])
def test_manifests_of_a_running_statement_are_neither_read_nor_obsolete(
    tmp_path: Path, name: str, based: bool, any_file_name: bool
) -> None:
    build(tmp_path, "base_4/bucket_0" if based else "000000_0", f"{name}/000000_0.manifest")
    for ids in (ValidWriteIdList("db.t", 4), ValidWriteIdList("db.t", 9, (5,), ())):
        state = acid_state(LocalFileSystem(), str(tmp_path), ids, ALL_TXNS, any_file_name=any_file_name)
        assert [f.name for f in state.files] == ["bucket_0" if based else "000000_0"]
        assert (state.obsolete, state.aborted) == ((), ())


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifests_of_a_statement_that_is_over_may_go(tmp_path: Path, name: str) -> None:
    build(tmp_path, "base_4/bucket_0", f"{name}/000000_0.manifest")
    assert (gone(state_of(tmp_path)), aborted_of(state_of(tmp_path))) == ([name], [])
    state = state_of(tmp_path, aborted=(5,))
    assert (gone(state), aborted_of(state)) == ([], [name])


@pytest.mark.parametrize("name", ["-tmp.x", "-tmp.delta_x", "-tmp.delta_1_1_", "tmp.delta_5_5_0", "-tmp.delta_5_5.x"])
def test_other_names_are_ordinary(tmp_path: Path, name: str) -> None:
    build(tmp_path, f"{name}/000000_0")
    assert [f.name for f in state_of(tmp_path).originals] == ["000000_0"]
