"""Files with an open streaming writer: Spark reads a copy of the finished part.

The file ends, for a reader, at the last length in its side file; there a whole ORC footer stands, and behind it what a
writer is at work on. orc-core can be told so (``orc.max.file.length``), but Spark reads the file's end itself before it
hands over that option. Such files are few and short-lived: writers remove the side file when they close the file.
"""

from __future__ import annotations

import tempfile
import threading
import uuid
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from acidsql import fs
from acidsql.errors import CorruptFile
from acidsql.format.directory import AcidFile
from acidsql.metastore.model import Table

_CHUNK = 8 << 20
_copies: dict[tuple[str, str, int], str] = {}
_lock = threading.Lock()


def whole_file(spark: SparkSession, table: Table, file: AcidFile) -> AcidFile:
    """The file itself, or for one that is being written a copy of its finished part.

    A copy stays until Spark's JVM ends, because whoever holds a frame may read it again. It is made in a temporary
    directory of this machine where Spark runs on this machine alone, else in a hidden directory of the table.

    Raises:
        CorruptFile: When the file is shorter than its side file says.
        StorageError: When the copy cannot be written.
    """
    if not file.is_prefix:
        return file
    key = (str(spark.sparkContext.applicationId), file.path, file.length)
    with _lock:
        if key not in _copies:
            _copies[key] = _copied(spark, table, file)
        return replace(file, path=_copies[key], is_prefix=False)


def _copied(spark: SparkSession, table: Table, file: AcidFile) -> str:
    directory = _scratch(spark, table)
    _delete_at_exit(spark, directory)
    path = fs.join(directory, file.name)
    source, source_path = fs.resolve(file.path)
    target, target_path = fs.resolve(path)
    left = file.length
    with source.open_read(source_path) as reader, target.open_write(target_path) as writer:
        while left:
            part = reader.read(min(left, _CHUNK))
            if not part:
                raise CorruptFile(f"{file.path} ends {left} bytes before the length in its side file")
            writer.write(part)
            left -= len(part)
    return path


def runs_here_alone(spark: SparkSession) -> bool:
    """Whether all of Spark runs on this machine, so that its local files are those of every task."""
    return (spark.sparkContext.master or "").startswith("local")


def _scratch(spark: SparkSession, table: Table) -> str:
    if runs_here_alone(spark):
        return tempfile.mkdtemp(prefix="acidsql_")
    return fs.join(fs.absolute(table.location), f"_tmp_{uuid.uuid4().hex}")


def _delete_at_exit(spark: SparkSession, directory: str) -> None:
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(fs.spark_path(directory))
    filesystem = path.getFileSystem(spark._jsc.hadoopConfiguration())
    if not filesystem.exists(path):
        filesystem.mkdirs(path)  # only an existing path can be marked
    filesystem.deleteOnExit(path)
