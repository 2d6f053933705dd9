"""Hadoop's file systems through Spark's JVM: the rules of every file system, on ``file:`` without the fast path."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import acidsql
from acidsql import fs
from acidsql.errors import InvalidValue, StorageError, UnsupportedError
from acidsql.fs.jvm import Hadoop
from tests.filesystem_rules import FileSystemRules, Place


def hadoop_of(spark: SparkSession, **conf: str) -> Hadoop:
    """Hadoop with settings on top of Spark's own; an empty text takes a setting away."""

    def configuration() -> Any:
        made = spark._jsparkSession.sessionState().newHadoopConf()
        for name, value in conf.items():
            made.set(name, value) if value else made.unset(name)
        return made

    return Hadoop(spark._jvm, configuration)


class TestFilesThroughTheJvm(FileSystemRules):
    @pytest.fixture
    def place(self, spark: SparkSession, tmp_path: Path) -> Place:
        return Place(hadoop_of(spark).open("file:"), f"file:{tmp_path}")


class TestFilesWithoutFileContext(FileSystemRules):
    """As with file systems of others, which have no ``AbstractFileSystem``."""

    @pytest.fixture
    def place(self, spark: SparkSession, tmp_path: Path) -> Place:
        hadoop = hadoop_of(spark, **{"fs.AbstractFileSystem.file.impl": ""})
        return Place(hadoop.open("file:"), f"file:{tmp_path}")


@pytest.fixture
def _attached(spark: SparkSession) -> Iterator[None]:
    fs.attach(spark._jvm, lambda: spark._jsparkSession.sessionState().newHadoopConf())
    yield
    fs.detach()


@pytest.mark.usefixtures("_attached")
@pytest.mark.parametrize(
    ("location", "hint"),
    [
        ("s3a://bucket/warehouse", "spark.jars.packages=org.apache.hadoop:hadoop-aws:3."),
        ("abfss://box@account.dfs.core.windows.net/w", "hadoop-azure"),
        ("s3://bucket/warehouse", "write s3a://"),
        ("nosuch://host/a", "spark.hadoop.fs.nosuch.impl"),
    ],
)
def test_a_scheme_whose_jar_is_missing_is_told_in_our_words(spark: SparkSession, location: str, hint: str) -> None:
    with pytest.raises(UnsupportedError) as error:
        acidsql.connect(spark, warehouse=location, metastore="/nowhere/x.db")
    scheme = location.partition(":")[0]
    assert error.value.message == f"Spark's Hadoop has no file system for {scheme}: locations"
    assert hint in str(error.value.hint)


@pytest.mark.usefixtures("_attached")
def test_an_error_of_java_is_one_line_without_a_stack_trace(spark: SparkSession) -> None:
    with pytest.raises(StorageError, match=r"Cannot open the file system hdfs://no-such-host\.invalid:8020") as error:
        fs.resolve("hdfs://no-such-host.invalid:8020/a")
    assert "no-such-host.invalid (UnknownHostException)" in error.value.message
    assert "\n" not in error.value.message


@pytest.mark.usefixtures("_attached")
def test_a_closed_java_process_is_told(spark: SparkSession) -> None:
    from py4j.java_gateway import GatewayParameters, JavaGateway

    filesystem = hadoop_of(spark).open("file:")
    filesystem._top = JavaGateway(gateway_parameters=GatewayParameters(port=1)).jvm
    with pytest.raises(StorageError, match="the Java process of Spark does not answer"):
        filesystem.list("file:/tmp")


def test_the_embedded_store_wants_a_local_disk(spark: SparkSession) -> None:
    with pytest.raises(InvalidValue, match="SQLite needs a local disk") as error:
        acidsql.connect(spark, warehouse="hdfs://127.0.0.1:1/warehouse")
    assert "metastore='/local/path/acidsql.db'" in str(error.value.hint)


def test_a_warehouse_without_a_scheme_is_on_the_default_file_system(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Hadoop, "default", lambda self: "nosuch://host")
    with pytest.raises(UnsupportedError, match="no file system for nosuch: locations"):
        acidsql.connect(spark, warehouse="/warehouse")


@pytest.mark.parametrize("name", ["w[1]", "w{1}", "w{1,2}", "w*", "w?", "w}", "back\\slash", "odd %20 näme"])
def test_a_path_that_looks_like_a_pattern_is_taken_literally(spark: SparkSession, tmp_path: Path, name: str) -> None:
    for warehouse in (tmp_path / "w1", tmp_path / name):  # the first one is what some of the patterns would match
        store = str(tmp_path / f"{warehouse.name == name}.db")
        with acidsql.connect(spark, warehouse=warehouse, metastore=store) as acid:
            acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p string)")
            acid.sql("INSERT INTO t VALUES (1, 'a'), (2, 'cur}ly')")
            acid.sql("INSERT INTO t VALUES (3, 'cur}ly')")
            acid.sql("UPDATE t SET id = id + 10 WHERE id > 1")
            found = sorted(tuple(r) for r in acid.sql("SELECT * FROM t").collect())
            assert found == [(1, "a"), (12, "cur}ly"), (13, "cur}ly")]
