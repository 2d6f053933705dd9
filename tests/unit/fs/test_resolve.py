"""From locations to paths, without a JVM."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import pytest

from acidsql import fs
from acidsql.errors import UnsupportedError
from acidsql.fs import jvm


@dataclass
class FakeFileSystem:
    root: str

    def home(self) -> str:
        return f"{self.root}/user/me"


@dataclass
class FakeHadoop:
    """Opens what it is asked for; ``hdfs:`` without an authority is on ``namenode``."""

    default_fs: str = "file:///"
    opened: list[str] = field(default_factory=list)

    def default(self) -> str:
        return self.default_fs

    def open(self, root: str) -> FakeFileSystem:
        self.opened.append(root)
        return FakeFileSystem("hdfs://namenode:8020" if root == "hdfs:" else root)


@pytest.fixture
def hadoop(monkeypatch: pytest.MonkeyPatch) -> FakeHadoop:
    fake = FakeHadoop()
    monkeypatch.setattr(jvm, "_attached", fake)
    return fake


@pytest.fixture
def _nothing_attached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jvm, "_attached", None)


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/a/b", "/a/b"),
        ("/a//b/./c/../d/", "/a/b/d"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("FILE:/a", "/a"),
        ("file:/a%20b/p=1%25", "/a%20b/p=1%25"),
        ("relative", os.path.abspath("relative")),
        ("hdfs://host:8020/a/b", "hdfs://host:8020/a/b"),
        ("HDFS://Host:8020/a", "hdfs://Host:8020/a"),
        ("hdfs://host:8020/a//b/./c/../d/", "hdfs://host:8020/a/b/d"),
        ("hdfs://host:8020", "hdfs://host:8020/"),
        ("hdfs:///a", "hdfs:/a"),
        ("s3a://bucket/a b/p=x%2Fy/żółć#?", "s3a://bucket/a b/p=x%2Fy/żółć#?"),
        ("abfss://box@account.dfs.core.windows.net/a", "abfss://box@account.dfs.core.windows.net/a"),
        ("hdfs://h/a\nb", "hdfs://h/a\nb"),
    ],
)
def test_a_location_has_one_full_path(location: str, path: str) -> None:
    assert fs.absolute(location) == path
    assert fs.absolute(path) == path


@pytest.mark.usefixtures("_nothing_attached")
def test_local_files_need_no_jvm() -> None:
    filesystem, path = fs.resolve("file:/a/b")
    assert isinstance(filesystem, fs.LocalFileSystem)
    assert path == "/a/b"
    assert fs.qualify("/a") == "/a"
    assert fs.qualify("a") == os.path.abspath("a")


@pytest.mark.usefixtures("_nothing_attached")
def test_other_file_systems_need_one() -> None:
    with pytest.raises(UnsupportedError, match=r"hdfs://host/a cannot be accessed: .* need Spark"):
        fs.resolve("hdfs://host/a")


def test_a_file_system_is_opened_by_scheme_and_authority(hadoop: FakeHadoop) -> None:
    assert fs.resolve("S3A://bucket/a/../b")[1] == "s3a://bucket/b"
    assert hadoop.opened == ["s3a://bucket"]


def test_a_location_without_an_authority_is_on_the_default_one_of_its_scheme(hadoop: FakeHadoop) -> None:
    assert fs.resolve("hdfs:///a/b")[1] == "hdfs://namenode:8020/a/b"
    assert fs.resolve("hdfs:/")[1] == "hdfs://namenode:8020/"


def test_a_path_without_a_scheme_is_local_inside(hadoop: FakeHadoop) -> None:
    hadoop.default_fs = "hdfs://namenode:8020"
    assert isinstance(fs.resolve("/a")[0], fs.LocalFileSystem)
    assert hadoop.opened == []


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/a/b", "hdfs://namenode:8020/a/b"),
        ("a/b", "hdfs://namenode:8020/user/me/a/b"),
        ("file:/a", "/a"),
        ("hdfs://other/a", "hdfs://other/a"),
        ("hdfs:///a", "hdfs://namenode:8020/a"),
    ],
)
@pytest.mark.parametrize("default", ["hdfs://namenode:8020", "hdfs://namenode:8020/"])
def test_a_users_path_without_a_scheme_is_on_the_default_file_system(
    hadoop: FakeHadoop, default: str, location: str, path: str
) -> None:
    hadoop.default_fs = default
    assert fs.qualify(location) == path


@pytest.mark.parametrize("default", ["file:///", "file:/"])
def test_which_is_the_local_one_by_default(hadoop: FakeHadoop, default: str) -> None:
    hadoop.default_fs = default
    assert fs.qualify("/a") == "/a"
    assert fs.qualify("a") == os.path.abspath("a")
    assert hadoop.opened == []


def test_spark_reads_paths_literally() -> None:
    assert fs.spark_path("/a b/p=1%25") == "file:/a b/p=1%25"
    assert fs.spark_path("hdfs://h:1/a b/p=1%25") == "hdfs://h:1/a b/p=1%25"


def test_join_puts_one_slash_between() -> None:
    assert fs.join("/", "a") == "/a"
    assert fs.join("/a/", "b", "c") == "/a/b/c"
    assert fs.join("hdfs://h:1/", "a") == "hdfs://h:1/a"


# --- a JVM that is started when it is needed -------------------------------------------------------------------------


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[FakeHadoop]:
    """Those that were started: at most one."""
    made: list[FakeHadoop] = []

    def start() -> None:
        made.append(FakeHadoop())
        monkeypatch.setattr(jvm, "_attached", made[-1])

    monkeypatch.setattr(jvm, "_attached", None)
    monkeypatch.setattr(jvm, "_start", None)
    fs.attach_when_needed(start)
    return made


def test_a_local_location_starts_no_jvm(started: list[FakeHadoop]) -> None:
    fs.resolve("/a/b")
    assert fs.qualify("/a/b") == "/a/b"
    assert started == []


def test_the_first_location_that_is_not_local_starts_the_jvm_and_the_next_ones_use_it(
    started: list[FakeHadoop],
) -> None:
    for _ in range(2):
        assert fs.resolve("hdfs://host:8020/a")[1] == "hdfs://host:8020/a"
    assert [one.opened for one in started] == [["hdfs://host:8020", "hdfs://host:8020"]]


def test_once_detached_none_is_started_any_more(started: list[FakeHadoop]) -> None:
    fs.detach()
    with pytest.raises(UnsupportedError, match="no session is running"):
        fs.resolve("hdfs://host:8020/a")
    assert started == []
