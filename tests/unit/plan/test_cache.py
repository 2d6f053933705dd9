"""What is read of immutable files is kept, as much of it as there is room for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from acidsql.format.data_files import AcidFile, DirectoryGone, acid_file
from acidsql.fs import LocalFileSystem
from acidsql.plan.cache import FileCache


def _file(number: int, modified_ns: int = 0) -> AcidFile:
    return AcidFile(f"/t/bucket_{number:05d}", f"bucket_{number:05d}", number, 10, modified_ns)


class Reader:
    """Gives texts of a length, and counts how often it is asked."""

    def __init__(self, length: int = 1) -> None:
        self.length = length
        self.reads = 0

    def __call__(self) -> str:
        self.reads += 1
        return "x" * self.length


def test_a_file_is_read_once_until_it_is_another() -> None:
    cache, read = FileCache[str](2), Reader()
    assert cache.get(_file(1), read) == cache.get(_file(1), read) == "x"
    assert read.reads == 1
    cache.get(_file(1, modified_ns=1), read)
    assert read.reads == 2


def test_what_was_not_asked_for_the_longest_goes_first() -> None:
    cache, read = FileCache[str](2), Reader()
    for number in (1, 2, 1, 3, 1):
        cache.get(_file(number), read)
    assert read.reads == 3
    cache.get(_file(2), read)
    assert read.reads == 4


def test_large_entries_take_the_room_of_many() -> None:
    cache, small, large = FileCache[str](10, weigh=len), Reader(), Reader(8)
    for number in range(10):
        cache.get(_file(number), small)
    cache.get(_file(10), large)
    for number in (8, 9):
        cache.get(_file(number), small)
    assert small.reads == 10
    cache.get(_file(7), small)
    assert small.reads == 11
    huge = Reader(11)
    assert len(cache.get(_file(11), huge)) == len(cache.get(_file(11), huge)) == 11
    assert huge.reads == 2


def test_a_file_that_is_gone_is_told_as_its_directory() -> None:
    with pytest.raises(DirectoryGone):
        FileCache[bytes](1).get(_file(1), lambda: Path("/nowhere/at all").read_bytes())


def test_a_value_that_two_have_read_is_weighed_once() -> None:
    cache = FileCache[int](10, weigh=lambda value: value)

    def read() -> int:
        cache.get(_file(1), lambda: 7)  # another thread has been quicker
        return 3

    assert cache.get(_file(1), read) == 3
    assert cache._weight == 3


def test_another_file_of_one_path_length_and_time_is_read(tmp_path: Path) -> None:
    """A directory was moved to the place of another: a local disk has a number for each file."""
    cache, seen = FileCache[int](10), []
    for number in (1, 2):
        path = tmp_path / f"{number}" / "bucket_00000"
        path.parent.mkdir()
        path.write_text(str(number))
        os.utime(path, ns=(10**18, 10**18))
    for name in ("1", "2"):
        (tmp_path / name).rename(tmp_path / "t")
        [entry] = LocalFileSystem().list(str(tmp_path / "t"))
        seen.append(cache.get(acid_file(entry), lambda: int((tmp_path / "t" / "bucket_00000").read_text())))
        (tmp_path / "t").rename(tmp_path / f"{name}-was-there")
    assert seen == [1, 2]
