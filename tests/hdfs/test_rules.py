"""HDFS keeps the rules of every file system."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from acidsql import fs
from acidsql.errors import StorageError
from tests.filesystem_rules import FileSystemRules, Place
from tests.hdfs.conftest import Directory
from tests.services.hdfs import Hdfs


@pytest.fixture
def place(spark: SparkSession, directory: Directory) -> Iterator[Place]:
    fs.attach(spark._jvm, lambda: spark._jsparkSession.sessionState().newHadoopConf())
    yield Place(*fs.resolve(directory.uri))
    fs.detach()


class TestHdfs(FileSystemRules):
    pass


def test_the_root_of_a_path_may_be_left_out(place: Place, spark: SparkSession, hdfs: Hdfs) -> None:
    def configuration() -> object:
        made = spark._jsparkSession.sessionState().newHadoopConf()
        made.set("fs.defaultFS", hdfs.uri)
        return made

    fs.attach(spark._jvm, configuration)
    place.fs.write_bytes(place.at("f"), b"1")
    below = place.root.removeprefix(hdfs.uri)
    for location in (f"hdfs://{below}", f"hdfs:{below}", below):
        filesystem, path = fs.resolve(fs.qualify(location))
        assert path == place.root
        assert [e.path for e in filesystem.list(path)] == [place.at("f")]
    assert fs.qualify("a/b").startswith(f"{hdfs.uri}/user/")
    assert isinstance(fs.resolve(fs.qualify(f"file:{below}"))[0], fs.LocalFileSystem)


def test_a_refusal_is_one_line_of_the_namenodes(place: Place) -> None:
    with pytest.raises(StorageError) as error:
        place.fs.write_bytes(place.at("a:b"), b"1")
    assert error.value.message.startswith(f"Cannot write {place.at('a:b')}: ")
    assert "\n" not in error.value.message


def test_a_file_system_that_somebody_closed_is_opened_again(place: Place, directory: Directory) -> None:
    place.fs.write_bytes(place.at("f"), b"1")
    directory.hadoop.close()
    assert place.names() == ["f"]
    assert place.fs.read_bytes(place.at("f")) == b"1"
