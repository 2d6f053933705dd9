"""The row ids of original files, as ``VectorizedOrcAcidRowBatchReader`` makes them up."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidsql.errors import UnsupportedError
from acidsql.format.bucket import encode
from acidsql.format.directory import AcidFile
from acidsql.format.names import MIN_LONG, BaseName, DeltaName, parse_bucket_id
from acidsql.format.originals import OriginalFile, number_originals
from acidsql.format.tail import Stripe


def file(path: str, length: int = 100) -> AcidFile:
    name = path.rpartition("/")[2]
    return AcidFile(path, name, parse_bucket_id(name), length, 0)


def numbered(paths: Sequence[str], directory: BaseName | DeltaName | None = None) -> list[OriginalFile]:
    """Files of ten rows each, in two stripes of four and six."""
    stripes = (Stripe(3, 50, 4), Stripe(53, 40, 6))
    return list(number_originals([file(p) for p in paths], directory, lambda _: stripes))


def test_files_of_the_table_have_write_id_0_and_the_bucket_of_their_number() -> None:
    found = numbered(["/t/000000_0", "/t/000003_0"])
    assert [(f.write_id, f.bucket) for f in found] == [(0, encode(0, 0)), (0, encode(3, 0))]


def test_rows_are_counted_through_all_files_of_a_number_by_path() -> None:
    found = numbered(["/t/000000_0_copy_2", "/t/000000_0_copy_10", "/t/000000_0", "/t/000001_0"])
    assert [(f.file.name, f.first_row_id) for f in found] == [
        ("000000_0", 0),
        ("000000_0_copy_10", 10),
        ("000000_0_copy_2", 20),
        ("000001_0", 0),
    ]


def test_files_of_sub_directories_are_counted_with_those_beside_them() -> None:
    found = numbered(["/t/HIVE_UNION_SUBDIR_1/000000_0", "/t/HIVE_UNION_SUBDIR_2/000000_0", "/t/000000_1"])
    assert [(f.file.path, f.first_row_id) for f in found] == [
        ("/t/000000_1", 0),
        ("/t/HIVE_UNION_SUBDIR_1/000000_0", 10),
        ("/t/HIVE_UNION_SUBDIR_2/000000_0", 20),
    ]


@pytest.mark.parametrize(
    ("directory", "write_id", "statement_id"),
    [
        (DeltaName(7, 7, 3), 7, 3),
        (DeltaName(7, 7), 7, 0),
        (BaseName(9), 9, 0),
        (BaseName(MIN_LONG), MIN_LONG, 0),
    ],
)
def test_loaded_files_have_the_ids_of_their_directory(
    directory: BaseName | DeltaName, write_id: int, statement_id: int
) -> None:
    [found] = numbered(["/t/d/000002_0"], directory)
    assert (found.write_id, found.bucket, found.first_row_id) == (write_id, encode(2, statement_id), 0)


def test_files_without_bytes_are_passed_over() -> None:
    found = number_originals([file("/t/000000_0", 0), file("/t/000000_1")], None, lambda _: (Stripe(3, 50, 4),))
    assert [(f.file.name, f.first_row_id) for f in found] == [("000000_1", 0)]


def test_a_file_without_bucket_number_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"/t/part-00000\.orc has no bucket number in its name"):
        numbered(["/t/part-00000.orc"])


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 9)), max_size=8), st.integers(1, 60))
def test_whoever_reads_a_part_of_a_file_counts_on_from_the_stripes_before(
    sizes: list[tuple[int, int]], part: int
) -> None:
    stripes, at = [], 3
    for length, rows in sizes:
        stripes.append(Stripe(at, length, rows))
        at += length
    original = OriginalFile(file("/t/000000_0", at), 0, encode(0, 0), 1000, tuple(stripes))

    read = []
    for start in range(0, at, part):  # a part reads the stripes that begin in it
        first = original.row_id_at(start)
        rows = sum(s.rows for s in stripes if start <= s.offset < start + part)
        read += list(range(first, first + rows))
    assert read == list(range(1000, 1000 + sum(s.rows for s in stripes)))
