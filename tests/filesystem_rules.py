"""What every file system of acidsql must do, as a class of tests: the suite of each one inherits it."""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acidsql import fs
from acidsql.errors import StorageError
from acidsql.format.orc import read_footer, read_keys, write_deletes
from acidsql.types import Primitive, Struct

ODD_NAMES = [
    " a b ",
    "p=1",
    "100%",
    "%20",
    "p=a%2Fb%25",
    "żółć 😀",
    "q?a=1#b&c+d",
    "[x]{y}*",
    'it\'s "so"',
    "back\\slash",
    "_hidden",
    ".dot",
]

# A slash parts names; Hadoop has no names with a colon, and Hive writes %3A for it.
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/:\0"), min_size=1, max_size=20).filter(
    lambda name: name not in (".", "..") and len(name.encode()) < 100
)


@dataclass(frozen=True)
class Place:
    """A file system, and a directory on it that is empty."""

    fs: fs.FileSystem
    root: str

    def at(self, *names: str) -> str:
        return fs.join(self.root, *names)

    def names(self, *below: str) -> list[str]:
        return [entry.name for entry in self.fs.list(self.at(*below) if below else self.root)]


class FileSystemRules:
    """Wants a fixture ``place``."""

    def test_a_listing_has_all_entries_sorted_with_what_they_are(self, place: Place) -> None:
        before = time.time_ns()
        for name, content in (("b", b"12345"), ("_hidden", b""), (".dot", b"1"), ("Z", b"12")):
            place.fs.write_bytes(place.at(name), content)
        place.fs.mkdirs(place.at("a dir"))
        found = place.fs.list(place.root)
        assert [(e.name, e.is_dir, e.length) for e in found] == [
            (".dot", False, 1),
            ("Z", False, 2),
            ("_hidden", False, 0),
            ("a dir", True, 0),
            ("b", False, 5),
        ]
        assert [e.path for e in found] == [place.at(e.name) for e in found]
        assert all(abs(e.modified_ns - before) < 600 * 10**9 for e in found)

    def test_a_long_listing_is_whole(self, place: Place) -> None:
        names = [f"{number:04}-{'é' * 40}" for number in range(80)]
        for name in names:
            place.fs.mkdirs(place.at(name))
        assert place.names() == names

    def test_a_listing_is_empty_where_nothing_is(self, place: Place) -> None:
        place.fs.mkdirs(place.at("empty"))
        assert place.fs.list(place.at("empty")) == []
        assert place.fs.list(place.at("missing")) == []
        assert place.fs.list(place.at("missing", "below")) == []

    def test_a_file_is_not_listed_as_a_directory(self, place: Place) -> None:
        place.fs.write_bytes(place.at("d", "file"), b"1")
        with pytest.raises(StorageError, match="Not a directory"):
            place.fs.list(place.at("d", "file"))

    def test_a_file_inside_a_directory_of_its_own_name_is_an_entry(self, place: Place) -> None:
        place.fs.write_bytes(place.at("same", "same"), b"1")
        assert [(e.path, e.is_dir) for e in place.fs.list(place.at("same"))] == [(place.at("same", "same"), False)]

    @pytest.mark.parametrize("name", ODD_NAMES)
    def test_odd_names_stay_as_they_are(self, place: Place, name: str) -> None:
        self._round_trip(place, name)

    def test_any_name_stays_as_it_is(self, place: Place) -> None:
        @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
        @given(NAMES)
        def check(name: str) -> None:
            self._round_trip(place, name)

        check()

    def _round_trip(self, place: Place, name: str) -> None:
        path = place.at(name, name)
        place.fs.write_bytes(path, name.encode())
        assert place.names() == [name]
        [entry] = place.fs.list(place.at(name))
        assert (entry.path, entry.name) == (path, name)
        assert place.fs.read_bytes(entry.path) == name.encode()
        place.fs.rename(place.at(name), place.at("moved"))
        assert place.names() == ["moved"]
        place.fs.rename(place.at("moved", name), place.at(name))
        place.fs.delete(place.at(name))
        place.fs.delete(place.at("moved"))
        assert place.names() == []

    def test_exists_knows_files_and_directories(self, place: Place) -> None:
        place.fs.write_bytes(place.at("d", "f"), b"")
        found = [place.fs.exists(place.at(*p)) for p in (["d"], ["d", "f"], ["x"], ["d", "x"], ["x", "f"])]
        assert found == [True, True, False, False, False]

    def test_mkdirs_makes_parents_and_may_be_repeated(self, place: Place) -> None:
        for _ in range(2):
            place.fs.mkdirs(place.at("a", "b", "c"))
        assert place.names("a", "b") == ["c"]

    def test_no_directory_is_made_where_a_file_stands(self, place: Place) -> None:
        place.fs.write_bytes(place.at("file"), b"1")
        for path in (place.at("file"), place.at("file", "below")):
            with pytest.raises(StorageError):
                place.fs.mkdirs(path)
        with pytest.raises(StorageError):
            place.fs.write_bytes(place.at("file", "below"), b"2")
        assert place.fs.read_bytes(place.at("file")) == b"1"

    def test_rename_moves_a_directory_with_all_that_is_in_it(self, place: Place) -> None:
        place.fs.write_bytes(place.at("from", "x", "f"), b"1")
        place.fs.mkdirs(place.at("to"))
        place.fs.rename(place.at("from"), place.at("to", "there"))
        assert place.names() == ["to"]
        assert place.fs.read_bytes(place.at("to", "there", "x", "f")) == b"1"

    @pytest.mark.parametrize("target", ["empty directory", "full directory", "file"])
    @pytest.mark.parametrize("source", ["directory", "file"])
    def test_rename_never_replaces_nor_moves_into_what_is_there(self, place: Place, source: str, target: str) -> None:
        place.fs.write_bytes(place.at("source", "f") if source == "directory" else place.at("source"), b"1")
        if target == "empty directory":
            place.fs.mkdirs(place.at("target"))
        else:
            place.fs.write_bytes(place.at("target", "g") if target == "full directory" else place.at("target"), b"2")
        before = self._tree(place)
        with pytest.raises(StorageError):
            place.fs.rename(place.at("source"), place.at("target"))
        assert self._tree(place) == before

    def test_rename_of_nothing_is_an_error(self, place: Place) -> None:
        with pytest.raises(FileNotFoundError):
            place.fs.rename(place.at("missing"), place.at("x"))
        place.fs.write_bytes(place.at("f"), b"1")
        with pytest.raises(FileNotFoundError):
            place.fs.rename(place.at("f"), place.at("missing", "f"))
        assert place.names() == ["f"]

    def test_delete_takes_files_and_whole_directories_and_may_be_repeated(self, place: Place) -> None:
        for path in (place.at("d", "x", "f"), place.at("d", "g"), place.at("f")):
            place.fs.write_bytes(path, b"1")
        for path in (place.at("d"), place.at("f"), place.at("missing"), place.at("d"), place.at("d", "x")):
            place.fs.delete(path)
        assert place.names() == []

    def test_only_an_empty_directory_is_deleted_if_empty(self, place: Place) -> None:
        place.fs.mkdirs(place.at("empty"))
        place.fs.write_bytes(place.at("full", "_hidden"), b"1")
        assert place.fs.delete_if_empty(place.at("empty"))
        assert not place.fs.delete_if_empty(place.at("full"))
        assert place.fs.delete_if_empty(place.at("missing"))
        assert place.names() == ["full"]
        assert place.names("full") == ["_hidden"]

    def test_a_file_that_is_not_there_cannot_be_read(self, place: Place) -> None:
        with pytest.raises(FileNotFoundError):
            place.fs.read_bytes(place.at("missing"))
        with pytest.raises(FileNotFoundError):
            place.fs.open_read(place.at("missing", "f"))
        place.fs.mkdirs(place.at("d"))
        with pytest.raises((StorageError, FileNotFoundError)):
            place.fs.read_bytes(place.at("d"))

    @pytest.mark.parametrize("size", [0, 1, (8 << 20) - 1, 8 << 20, (8 << 20) + 1])
    def test_bytes_come_back_as_they_were_written(self, place: Place, size: int) -> None:
        content = random.Random(size).randbytes(size)
        place.fs.write_bytes(place.at("new", "f"), content)
        assert place.fs.read_bytes(place.at("new", "f")) == content
        assert place.fs.list(place.at("new"))[0].length == size
        with place.fs.open_read(place.at("new", "f")) as file:
            assert file.read() == content

    def test_writing_replaces_a_whole_file(self, place: Place) -> None:
        place.fs.write_bytes(place.at("f"), b"a longer text")
        place.fs.write_bytes(place.at("f"), b"short")
        assert place.fs.read_bytes(place.at("f")) == b"short"
        assert place.names() == ["f"]

    def test_a_file_is_read_at_any_offset(self, place: Place) -> None:
        content = random.Random(1).randbytes(700_000)
        place.fs.write_bytes(place.at("f"), content)
        with place.fs.open_read(place.at("f")) as file:
            assert file.seek(0, os.SEEK_END) == len(content)
            assert file.read(10) == b""
            for offset, length in ((0, 3), (300_000, 5), (10, 600_000), (699_990, 100), (5, 1), (0, 700_000)):
                assert file.seek(offset) == offset
                assert file.read(length) == content[offset : offset + length]
                assert file.tell() == min(offset + length, len(content))
            file.seek(-5, os.SEEK_END)
            assert file.read() == content[-5:]

    def test_a_file_is_written_in_pieces(self, place: Place) -> None:
        with place.fs.open_write(place.at("new", "f")) as file:
            for piece in (b"one ", b"", b"two ", b"three"):
                file.write(piece)
        assert place.fs.read_bytes(place.at("new", "f")) == b"one two three"

    def test_a_new_file_replaces_no_other(self, place: Place) -> None:
        place.fs.write_bytes(place.at("f"), b"first")

        def write() -> None:
            with place.fs.open_write(place.at("f")) as file:
                file.write(b"second")

        with pytest.raises(StorageError):
            write()
        assert place.fs.read_bytes(place.at("f")) == b"first"

    def test_orc_files_are_written_and_read(self, place: Place) -> None:
        keys = pa.table(
            {
                "originalTransaction": pa.array(range(1, 5001), pa.int64()),
                "bucket": pa.array([536870912] * 5000, pa.int32()),
                "rowId": pa.array(range(5000), pa.int64()),
            }
        )
        path = place.at("delete_delta_0005001_0005001_0000", "bucket_00000")
        write_deletes(place.fs, path, Struct((("a", Primitive("int")),)), keys, write_id=5001)
        assert read_footer(place.fs, path).row_count == 5000
        assert read_keys(place.fs, path).select(keys.column_names).equals(keys)

    def _tree(self, place: Place) -> list[tuple[str, bytes | None]]:
        found: list[tuple[str, bytes | None]] = []
        directories = [place.root]
        for directory in directories:
            for entry in place.fs.list(directory):
                found.append((entry.path, None if entry.is_dir else place.fs.read_bytes(entry.path)))
                if entry.is_dir:
                    directories.append(entry.path)
        return sorted(found)
