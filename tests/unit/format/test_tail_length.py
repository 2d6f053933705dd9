"""Footers of streamed files, which have one after each commit."""

from __future__ import annotations

from pathlib import Path

import pyorc
import pytest

from acidsql.errors import CorruptFile
from acidsql.format.schema import AcidStats, parse_stats
from acidsql.format.tail import read_footer
from acidsql.fs import LocalFileSystem

FS = LocalFileSystem()


def streamed(path: Path) -> list[int]:
    """A file of three commits of ten rows, still open; the lengths after each of them."""
    ends = []
    with path.open("wb") as file:
        writer = pyorc.Writer(file, "struct<a:int>", batch_size=10, stripe_size=1 << 40)
        for number in range(3):
            writer.writerows((number * 10 + i,) for i in range(10))
            writer.write_intermediate_footer()
            file.flush()
            ends.append(file.tell())
        path.with_name("copy").write_bytes(path.read_bytes() + b"what comes next")
        writer.close()
    return ends


def test_the_footer_at_a_length_tells_of_the_rows_up_to_it(tmp_path: Path) -> None:
    ends = streamed(tmp_path / "file")
    counts = [read_footer(FS, str(tmp_path / "copy"), end).row_count for end in ends]
    assert counts == [10, 20, 30]


def test_without_a_length_a_file_that_goes_on_behind_its_footer_is_none(tmp_path: Path) -> None:
    streamed(tmp_path / "file")
    with pytest.raises(CorruptFile):
        read_footer(FS, str(tmp_path / "copy"))


def test_a_length_beyond_the_end_of_the_file_is_an_error(tmp_path: Path) -> None:
    ends = streamed(tmp_path / "file")
    with pytest.raises(CorruptFile):
        read_footer(FS, str(tmp_path / "copy"), ends[-1] + 1000)


@pytest.mark.parametrize(
    ("value", "stats"), [(b"1,2,3", AcidStats(1, 2, 3)), (b"", None), (b"1,2", None), (b"a,b,c", None)]
)
def test_counts_of_events_are_read_where_they_can_be(value: bytes, stats: AcidStats | None) -> None:
    assert parse_stats(value) == stats
