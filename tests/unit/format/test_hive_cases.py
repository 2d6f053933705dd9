"""What Hive's TestAcidUtils, TestBucketCodec and TestVectorizedOrcAcidRowBatchReader say of names, numbers and deletes.

The values are Hive's. Which of Hive's cases is tested where: tests/HIVE_CASES.md.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from acidsql.format.bucket import decode, encode
from acidsql.format.directory import acid_state, qualifies
from acidsql.format.names import (
    BaseName,
    DeltaName,
    bucket_file,
    original_file,
    parse_bucket_id,
    parse_directory,
)
from acidsql.fs.local import LocalFileSystem
from acidsql.fs.protocol import FileStatus
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList

# --- bucket values ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("writer", "statement", "value"), [(7, 16, 537329680), (1, 0, 536936448), (2, 0, 537001984), (0, 0, 536870912)]
)
def test_a_writer_and_a_statement_make_hives_value(writer: int, statement: int, value: int) -> None:
    assert encode(writer, statement) == value
    assert (decode(value).writer_id, decode(value).statement_id) == (writer, statement)


def test_each_part_of_a_value_has_bits_of_its_own() -> None:
    found = decode(1 << 29 | 0x0ABC0ABC)
    assert (found.version, found.writer_id, found.statement_id) == (1, 2748, 2748)


@pytest.mark.parametrize("value", [7, 100])
def test_a_value_of_version_0_is_the_writer_and_its_statement_is_0(value: int) -> None:
    found = decode(value)
    assert (found.version, found.writer_id, found.statement_id) == (0, value, 0)


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("directory", "bucket", "path"),
    [
        (None, 1, "000001_0"),
        (None, 123, "000123_0"),
        (None, 123456789, "123456789_0"),
        (BaseName(200), 23, "base_0000200/bucket_00023"),
        (BaseName(1234567890), 23, "base_1234567890/bucket_00023"),
        (DeltaName(100, 200, 0), 23, "delta_0000100_0000200_0000/bucket_00023"),
        (DeltaName(100, 200, 0, is_delete=True), 23, "delete_delta_0000100_0000200_0000/bucket_00023"),
        (DeltaName(100, 200), 23, "delta_0000100_0000200/bucket_00023"),
        (DeltaName(100, 200, is_delete=True), 23, "delete_delta_0000100_0000200/bucket_00023"),
        (DeltaName(100, 200, 7), 23, "delta_0000100_0000200_0007/bucket_00023"),
        (DeltaName(100, 200, 7, is_delete=True), 23, "delete_delta_0000100_0000200_0007/bucket_00023"),
        (DeltaName(1234567880, 1234567890, 0), 23, "delta_1234567880_1234567890_0000/bucket_00023"),
    ],
)
def test_where_a_writer_writes(directory: BaseName | DeltaName | None, bucket: int, path: str) -> None:
    if directory is None:
        assert original_file(bucket) == path
    else:
        assert f"{directory}/{bucket_file(bucket)}" == path


@pytest.mark.parametrize(
    ("path", "name", "bucket"),
    [
        ("base_567/bucket_123", BaseName(567), 123),
        ("delta_000005_000006/bucket_00001", DeltaName(5, 6), 1),
        ("delete_delta_000005_000006/bucket_00001", DeltaName(5, 6, is_delete=True), 1),
        ("tmp/000123_0", None, 123),
    ],
)
def test_what_a_path_says(path: str, name: BaseName | DeltaName | None, bucket: int) -> None:
    directory, file = path.split("/")
    assert parse_directory(directory) == name
    assert parse_bucket_id(file) == bucket


# --- which deletes concern which file --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "delete", "expected"),
    [
        (None, "delete_delta_000012_000012_0000", True),
        (None, "delete_delta_000001_000001", True),
        ("base_00000002", "delete_delta_0000012_0000012_0000", True),
        ("base_0000002_v123", "delete_delta_0000012_0000012_0000", True),
        ("delta_00000002_0000002", "delete_delta_0000012_0000012_0000", True),
        ("delta_00000002_0000002", "delete_delta_0000002_0000002", True),
        ("delta_00000002_0000002", "delete_delta_0000001_0000001_0001", False),
        ("delta_0000002_0000002_124", "delete_delta_000012_000012_0000", True),
        ("delta_0000002_0000002_124", "delete_delta_000002_000002", True),
        ("delta_0000002_0000002_124", "delete_delta_000001_000001_0001", False),
        ("delta_0000002_0000002_0000", "delete_delta_0000012_0000012_0000", True),
        ("delta_0000002_0000002_0000", "delete_delta_0000002_0000002", True),
        ("delta_0000002_0000002_0000", "delete_delta_0000001_0000001_0001", False),
        ("delta_0000002_0000005_124", "delete_delta_0000012_0000012_0000", True),
        ("delta_0000002_0000005_124", "delete_delta_0000003_0000003", True),
        ("delta_0000002_0000005_124", "delete_delta_0000002_0000005", True),
        ("delta_0000002_0000005_124", "delete_delta_0000002_0000002", True),
        ("delta_0000002_0000005_124", "delete_delta_0000001_0000001_0001", False),
        ("delta_0000002_0000002_0000", "delete_delta_0000002_0000002_0000", False),
        ("delta_0000002_0000002_0001", "delete_delta_0000002_0000002_0000", False),
        ("delta_0000002_0000002_0001", "delete_delta_0000002_0000002_0002", True),
        ("delta_0000002_0000002_0001", "delete_delta_0000002_0000002", True),
        ("delta_0000002_0000002", "delete_delta_0000002_0000002", True),
        ("delta_0000002_0000002", "delete_delta_0000002_0000002_0001", True),
    ],
)
def test_which_delete_deltas_concern_the_files_of_a_directory(data: str | None, delete: str, expected: bool) -> None:
    """As Hive's test has it, but for a ``delete_delta_2_2`` without a statement, which Hive takes for the first one's:
    it may be the compacted deletes of several statements of a transaction, and then concerns the rows of that."""
    name = parse_directory(delete)
    assert isinstance(name, DeltaName)
    assert name.is_delete
    assert qualifies(name, parse_directory(data) if data else None) is expected


# --- directories of others that come and go --------------------------------------------------------------------------


class _Vanishing(LocalFileSystem):
    """Directories of a query in progress are gone when one looks into them."""

    def list(self, path: str) -> list[FileStatus]:
        if "/." in path or "/_" in path:
            raise FileNotFoundError(path)
        return super().list(path)


def test_staging_directories_that_vanish_while_a_table_is_listed_do_not_matter(tmp_path: Path) -> None:
    for name in (".hive-staging_hive_2020/-ext-10002", "_tmp.ext", "delta_0000001_0000001_0000/.hive-staging_x"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "000000_0").write_bytes(b"x")
    (tmp_path / "delta_0000001_0000001_0000" / "bucket_00000").write_bytes(b"x")
    (tmp_path / "000000_0").write_bytes(b"x")
    write_ids, txns = ValidWriteIdList("db.t", 1), ValidTxnList(1)
    state = acid_state(_Vanishing(), str(tmp_path), write_ids, txns)
    assert [f.name for f in state.originals] == ["000000_0"]
    assert [f.name for d in state.deltas for f in d.files] == ["bucket_00000"]
