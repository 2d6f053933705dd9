"""A running HDFS, and acidsql sessions with their warehouse on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import acidsql
from tests.services.hdfs import Hdfs, start_hdfs
from tests.services.maven import DownloadError
from tests.services.runs import ServiceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from acidsql.session import AcidSession


@pytest.fixture(scope="session")
def hdfs() -> Iterator[Hdfs]:
    try:
        server = start_hdfs()
    except (ServiceError, DownloadError) as e:
        pytest.skip(f"NOTHING WAS TESTED ON HDFS, it could not be started: {e}")
    yield server
    server.stop()


@dataclass(frozen=True)
class Directory:
    """A directory on HDFS as Hadoop itself sees it: nothing here goes through acidsql's own room."""

    uri: str
    spark: SparkSession

    @property
    def _jvm(self) -> Any:
        return self.spark._jvm

    @property
    def hadoop(self) -> Any:
        """Its ``DistributedFileSystem``."""
        conf = self.spark._jsparkSession.sessionState().newHadoopConf()
        return self.path().getFileSystem(conf)

    def path(self, *names: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path("/".join([self.uri, *names]))

    def files(self, *below: str) -> list[str]:
        """Paths of all files below it, relative to it, sorted."""
        found = []
        listed = self.hadoop.listFiles(self.path(*below), True)
        while listed.hasNext():
            found.append(str(listed.next().getPath().toString()).removeprefix(f"{self.uri}/"))
        return sorted(found)

    def names(self, *below: str) -> list[str]:
        """Names of the entries of a directory, sorted."""
        return sorted(str(status.getPath().getName()) for status in self.hadoop.listStatus(self.path(*below)))

    def download(self, target: Path, *below: str) -> Path:
        """A copy of a directory on the local disk."""
        local = self._jvm.org.apache.hadoop.fs.Path(f"file:{target}")
        self.hadoop.copyToLocalFile(False, self.path(*below), local, True)
        return target


_DELAY = "dfs.client.block.write.locateFollowingBlock.initial.delay.ms"


@pytest.fixture
def directory(hdfs: Hdfs, spark: SparkSession, tmp_path: Path) -> Iterator[Directory]:
    """An empty directory of this test alone, with an odd name."""
    # A client that closes a file before the datanode has reported its block waits 400 ms, unless this is set as HDFS
    # is first opened. With all of it on one machine that happens all the time.
    spark.conf.set(_DELAY, "5")
    made = Directory(f"{hdfs.uri}/{tmp_path.name}/odd %20 näme [1]{{2}}*", spark)
    made.hadoop.mkdirs(made.path())
    yield made
    made.hadoop.delete(made.path(), True)
    spark.conf.unset(_DELAY)


@pytest.fixture
def store(tmp_path: Path) -> str:
    """The file of the embedded store: SQLite stands on a local disk."""
    return str(tmp_path / "acidsql.db")


@pytest.fixture
def acid(spark: SparkSession, directory: Directory, store: str) -> Iterator[AcidSession]:
    with acidsql.connect(spark, warehouse=directory.uri, metastore=store) as session:
        yield session
