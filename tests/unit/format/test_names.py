"""Names of directories and files (Hive: AcidUtils, TestAcidUtils)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidsql.format.names import (
    MIN_LONG,
    BaseName,
    BucketFile,
    DeltaName,
    bucket_file,
    is_hidden,
    is_side_file,
    is_staged,
    parse_bucket_file,
    parse_bucket_id,
    parse_directory,
    parse_original_file,
    side_file,
)

# --- directories ---


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (BaseName(200), "base_0000200"),
        (BaseName(200, 3038), "base_0000200_v0003038"),
        (BaseName(1234567890), "base_1234567890"),
        (BaseName(MIN_LONG), "base_-9223372036854775808"),
        (DeltaName(100, 200, 0), "delta_0000100_0000200_0000"),
        (DeltaName(100, 200, 7, is_delete=True), "delete_delta_0000100_0000200_0007"),
        (DeltaName(100, 200), "delta_0000100_0000200"),
        (DeltaName(1, 10, is_delete=True), "delete_delta_0000001_0000010"),
        (DeltaName(1, 7, visibility_txn=2726), "delta_0000001_0000007_v0002726"),
        (DeltaName(1, 7, visibility_txn=12345678, is_delete=True), "delete_delta_0000001_0000007_v12345678"),
        (DeltaName(1234567880, 1234567890, 12345), "delta_1234567880_1234567890_12345"),
    ],
)
def test_directories_are_named_as_hive_names_them(name: BaseName | DeltaName, text: str) -> None:
    assert str(name) == text
    assert parse_directory(text) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("base_000123", BaseName(123)),
        ("base_5", BaseName(5)),
        ("base_5_v0", BaseName(5)),
        ("delta_025_030", DeltaName(25, 30)),
        ("delta_0000063_63_0", DeltaName(63, 63, 0)),
        ("delta_1_2_3_v4", DeltaName(1, 2, 3, 4)),
        ("delete_delta_40_60", DeltaName(40, 60, is_delete=True)),
    ],
)
def test_other_widths_are_read(text: str, name: BaseName | DeltaName) -> None:
    assert parse_directory(text) == name


@pytest.mark.parametrize(
    "text",
    [
        *("", "base", "base_", "base_x", "base_1_2", "base_1_v", "base_1_vx", "base_ 1", "base_1_000"),
        *("delta_", "delta_1", "delta_1_", "delta_1_2_3_4", "delta_x_1", "delta_1_2_v", "delete_delta_1"),
        *("bucket_00000", "p=1", "_tmp", "delta", "adelta_1_1", "base_٣"),
    ],
)
def test_other_names_are_no_acid_directories(text: str) -> None:
    assert parse_directory(text) is None


_IDS = st.integers(0, 2**63 - 1)


@given(st.builds(BaseName, _IDS, _IDS))
def test_base_names_round_trip(name: BaseName) -> None:
    assert parse_directory(str(name)) == name


@given(st.builds(DeltaName, _IDS, _IDS, st.integers(-1, 10000), _IDS, st.booleans()))
def test_delta_names_round_trip(name: DeltaName) -> None:
    assert parse_directory(str(name)) == name


@given(st.text("bdelta_v0123456789-", max_size=40))
def test_any_text_is_a_name_or_none_and_a_name_stays_itself(text: str) -> None:
    name = parse_directory(text)
    assert name is None or parse_directory(str(name)) == name


# --- files ---


def test_bucket_files_are_written_without_an_attempt_id() -> None:
    assert [bucket_file(n) for n in (0, 23, 123456)] == ["bucket_00000", "bucket_00023", "bucket_123456"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bucket_00001", BucketFile(1)),
        ("bucket_123", BucketFile(123)),
        ("bucket_00002_7", BucketFile(2, 7)),
        ("bucket_00002_flush_length", None),
        ("bucket_00002_7_1", None),
        ("bucket_", None),
        ("000001_0", None),
    ],
)
def test_bucket_files_are_read_with_and_without_an_attempt_id(name: str, expected: BucketFile | None) -> None:
    assert parse_bucket_file(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("000000_0", 0),
        ("000012_3", 12),
        ("123456789_0", 123456789),
        ("000001_0_copy_2", 1),
        ("000001_0_copy_", None),
        ("000001", None),
        ("random", None),
        ("bucket_00001", None),
    ],
)
def test_original_files_carry_their_bucket_number(name: str, expected: int | None) -> None:
    assert parse_original_file(name) == expected


@pytest.mark.parametrize(("name", "expected"), [("000012_3", 12), ("bucket_00003_1", 3), ("random", -1)])
def test_the_bucket_id_of_either_kind(name: str, expected: int) -> None:
    assert parse_bucket_id(name) == expected


def test_hidden_and_side_files() -> None:
    assert [n for n in ("_orc_acid_version", ".crc", "bucket_00000", "a_b") if is_hidden(n)] == [
        "_orc_acid_version",
        ".crc",
    ]
    assert side_file("bucket_00000") == "bucket_00000_flush_length"
    assert is_side_file(side_file("bucket_00000"))
    assert not is_side_file("bucket_00000")


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("_tmp_7_" + 32 * "a", True),
        ("_tmp_" + 32 * "0", True),
        ("_tmp_k=1", False),
        ("_tmp_=1", False),
        ("_tmp_notes", False),
        ("_tmp_7_notes", False),
        ("tmp_1", False),
    ],
)
def test_a_partition_or_a_directory_of_somebody_is_not_taken_for_a_staging_directory(name: str, is_one: bool) -> None:
    """The housekeeper removed it once its files were old enough."""
    assert is_staged(name) is is_one
