"""The local file system keeps the rules."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from acidsql.errors import StorageError
from acidsql.fs import LocalFileSystem
from tests.filesystem_rules import FileSystemRules, Place
from tests.power_cut import Disk


class TestLocal(FileSystemRules):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        return Place(LocalFileSystem(), str(tmp_path))


def test_a_directory_that_goes_while_it_is_listed_is_as_empty_as_one_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of its names would look like all of them."""
    for name in "abc":
        (tmp_path / "x" / name).mkdir(parents=True)
    scan = os.scandir

    def scandir(path: str) -> MagicMock:
        def entries() -> Iterator[os.DirEntry[str]]:
            with scan(path) as found:
                yield next(found)
                (tmp_path / "x").rename(tmp_path / "y")
                yield from found

        listing = MagicMock()
        listing.__enter__.return_value = listing
        listing.__iter__.side_effect = entries
        return listing

    monkeypatch.setattr(os, "scandir", scandir)
    assert LocalFileSystem().list(str(tmp_path / "x")) == []
    monkeypatch.undo()
    assert len(LocalFileSystem().list(str(tmp_path / "y"))) == 3


class TestDurability:
    """What survives a power cut, by the least that POSIX promises (:mod:`tests.power_cut`)."""

    @pytest.fixture
    def disk(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Disk:
        (tmp_path / "root").mkdir()
        return Disk(monkeypatch, tmp_path / "root")

    @pytest.mark.parametrize("count", [1, 50], ids=["few", "many, by threads"])
    def test_of_a_tree_are_its_contents_and_of_a_directory_its_names(self, disk: Disk, count: int) -> None:
        local = LocalFileSystem()
        for number in range(count):
            local.write_bytes(f"{disk.root}/tree/below/{number}", b"rows")
        assert disk.lost() == ["tree"]
        local.sync(trees=[f"{disk.root}/tree"])
        assert disk.lost() == ["tree"]
        local.sync(directories=[str(disk.root)])
        assert disk.lost() == []
        local.rename(f"{disk.root}/tree", f"{disk.root}/renamed")
        assert disk.lost() == ["renamed"]
        local.sync(directories=[str(disk.root)])
        local.write_bytes(f"{disk.root}/renamed/below/0", b"other rows")
        assert disk.lost() == ["renamed/below/0"]

    def test_a_new_directory_is_durable_with_its_parents_unless_the_caller_syncs(self, disk: Disk) -> None:
        local = LocalFileSystem()
        local.mkdirs(f"{disk.root}/a/b/c")
        assert disk.lost() == []
        local.mkdirs(f"{disk.root}/x/y", durable=False)
        assert disk.lost() == ["x"]

    def test_a_file_that_cannot_be_synced_is_an_error(self, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
        """The statement must not commit: the disk may be full or broken."""

        def refuse(descriptor: int) -> None:
            raise OSError(errno.EIO, "Input/output error")

        LocalFileSystem().write_bytes(f"{disk.root}/file", b"rows")
        monkeypatch.setattr(os, "fsync", refuse)
        with pytest.raises(StorageError, match="Cannot sync"):
            LocalFileSystem().sync(trees=[str(disk.root)])

    def test_of_many_that_cannot_be_synced_the_first_is_told(self, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
        paths = [f"{disk.root}/{number}" for number in range(1000)]
        for number, path in enumerate(paths):
            if number not in (470, 471, 900):
                os.mkdir(path)
        with pytest.raises(FileNotFoundError, match="/470'"):
            LocalFileSystem().sync(directories=paths)

    def test_a_file_system_that_does_not_sync_directories_is_none(
        self, disk: Disk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(descriptor: int) -> None:
            raise OSError(errno.EINVAL, "Invalid argument")

        monkeypatch.setattr(os, "fsync", refuse)
        LocalFileSystem().sync(directories=[str(disk.root)])
