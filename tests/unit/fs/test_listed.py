"""A file system that is listed once: what happens to a directory later is not seen."""

from __future__ import annotations

from pathlib import Path

from acidsql.fs import ListedOnce, LocalFileSystem, resolve


def test_a_directory_stays_as_it_was_when_it_was_first_listed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    seen = ListedOnce(LocalFileSystem())
    assert [f.name for f in seen.list(str(tmp_path))] == ["a"]
    (tmp_path / "b").touch()
    (tmp_path / "a").unlink()
    assert [f.name for f in seen.list(str(tmp_path))] == ["a"]
    assert [f.name for f in resolve(str(tmp_path))[0].list(str(tmp_path))] == ["b"]


def test_all_else_is_the_other_file_systems(tmp_path: Path) -> None:
    seen, path = ListedOnce(LocalFileSystem()), f"{tmp_path}/d/f"
    assert seen.root == ""
    seen.mkdirs(f"{tmp_path}/d")
    seen.write_bytes(path, b"12")
    with seen.open_write(path + "2") as file:
        file.write(b"3")
    with seen.open_read(path + "2") as file:
        assert (seen.read_bytes(path), file.read()) == (b"12", b"3")
    seen.rename(path, path + "3")
    assert (seen.exists(path), seen.exists(path + "3")) == (False, True)
    assert not seen.delete_if_empty(f"{tmp_path}/d")
    seen.delete(f"{tmp_path}/d")
    assert not (tmp_path / "d").exists()
