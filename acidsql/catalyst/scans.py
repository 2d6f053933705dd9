"""Scans of files that are known already.

``spark.read`` looks for each path that it is given in forty threads, made for this one call, and then for partitions in
the names of directories. acidsql has listed the files, and knows where they belong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from acidsql import fs
from acidsql.catalyst.builder import Plan
from acidsql.catalyst.java import SPARK, Java
from acidsql.catalyst.plans import Catalyst
from acidsql.format.data_files import DirectoryGone

_SOURCES = f"{SPARK}.sql.execution.datasources"
_FORMATS = {
    "orc": f"{_SOURCES}.orc.OrcFileFormat",
    "parquet": f"{_SOURCES}.parquet.ParquetFileFormat",
    "binaryFile": f"{_SOURCES}.binaryfile.BinaryFileFormat",
}

_STRICT = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
"""A file that cannot be read is an error, whatever the settings of the session are that runs the plan."""


def file_scan(
    catalyst: Catalyst,
    format: str,
    schema: str,
    paths: Sequence[str],
    options: Mapping[str, str],
    *,
    session: Any = None,
) -> DataFrame:
    """The rows of some files; their hidden column is ``_metadata``.

    Args:
        catalyst: The session of the frame; its time zone and meaning of types are those of the scan.
        format: ``orc`` or ``parquet``; ``binaryFile``: a row for each file.
        schema: The columns to read, as DDL.
        paths: The files, as :func:`acidsql.fs.spark_path` spells them: no character has another meaning.
        options: Of the reader.
        session: A session in the JVM whose settings the scan follows; that of the frame, when left out.

    Raises:
        DirectoryGone: When one does not exist any longer: Spark leaves it out.
    """
    java, spark = catalyst.java, catalyst.spark
    own: Any = spark._jsparkSession if session is None else session
    with catalyst.active():
        type = java.static(f"{SPARK}.sql.types.StructType", "fromDDL")(schema)
        read = _options(java, tuple(options.items()))
        roots = _roots(java, paths) if paths else java.nothing
        cache = java.static(f"{_SOURCES}.NoopCache$", "MODULE$")
        nowhere = java.static(f"{_SOURCES}.PartitionSpec", "emptySpec")()
        index = java.type(f"{_SOURCES}.InMemoryFileIndex")(
            own, roots, read, java.option(type), cache, java.option(nowhere), java.none
        )
        if index.allFiles().size() != len(paths):
            raise DirectoryGone(_missing(java, index, paths))
        keys = java.type(f"{SPARK}.sql.types.StructType")()  # an object of its own: see acidsql.catalyst.held
        reader = java.type(_FORMATS[format])()
        relation = java.type(f"{_SOURCES}.HadoopFsRelation")(index, keys, type, java.none, reader, read, own)
        user: Any = spark._jsparkSession
        return DataFrame(user.baseRelationToDataFrame(relation), spark)


@lru_cache(maxsize=64)
def _options(java: Java, options: tuple[tuple[str, str], ...]) -> Any:
    """Options as Spark's, and those that hold for every scan."""
    made = java.static(f"{SPARK}.api.python.PythonUtils", "toScalaMap")(dict(options or _STRICT.items()))
    return made.concat(_options(java, ())) if options else made


def files_of(scan: DataFrame) -> list[str]:
    """``scan.inputFiles()``; PySpark would call the JVM for each one."""
    return Java.of(scan.sparkSession).texts_of(scan._jdf.inputFiles())


def max_scan_tasks(leaf: Plan) -> int | None:
    """How many tasks read a relation of files (``LogicalRelation``), at most and about, besides the least number of
    tasks of a scan; None for one of something else, and for a table of Spark's whose files are not listed yet.

    After ``FilePartition``: files are cut and packed by their bytes and a cost to open each one.
    """
    relation = leaf.relation()
    try:
        files = int(relation.location().allFiles().size())
    except Py4JError:  # no such method
        return None
    settings = relation.sparkSession().sessionState().conf()
    part, cost = int(settings.filesMaxPartitionBytes()), int(settings.filesOpenCostInBytes())
    return (int(relation.sizeInBytes()) + files * min(cost, part)) // part + 1


def _missing(java: Java, index: Any, paths: Sequence[str]) -> str:
    """The first of some paths that an index does not have."""
    found = {fs.absolute(unquote(url)) for url in java.texts_of(index.inputFiles())}
    return next((one for one in map(fs.absolute, paths) if one not in found), paths[0])


def _roots(java: Java, paths: Sequence[str]) -> Any:
    """Paths as Hadoop's, in a few calls however many they are."""
    listed = java.static("org.apache.hadoop.util.StringUtils", "stringToPath")(java.texts(paths))
    return java.static("scala.collection.immutable.ArraySeq", "unsafeWrapArray")(listed)
