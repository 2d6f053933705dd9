"""The one room that talks to file systems.

Locations are kept as users and Hive write them (``/a/b``, ``file:/a/b``, ``hdfs://…``); :func:`resolve` turns one into
a file system and a path in it. Local files are reached directly. All others are reached through Hadoop's ``FileSystem``
in the JVM that Spark runs in, which the session hands in by :func:`attach`.
"""

from acidsql.fs.hadoop import HadoopFileSystem
from acidsql.fs.jvm import attach, attach_when_needed, detach, needed_jvm
from acidsql.fs.listed import ListedOnce
from acidsql.fs.local import LocalFileSystem
from acidsql.fs.protocol import FileStatus, FileSystem
from acidsql.fs.resolve import (
    absolute,
    is_local,
    join,
    overlap,
    qualify,
    renames_in_one_step,
    resolve,
    spark_path,
    up_to,
)
from acidsql.fs.side_by_side import side_by_side

__all__ = [
    "FileStatus",
    "FileSystem",
    "HadoopFileSystem",
    "ListedOnce",
    "LocalFileSystem",
    "absolute",
    "attach",
    "attach_when_needed",
    "detach",
    "is_local",
    "join",
    "needed_jvm",
    "overlap",
    "qualify",
    "renames_in_one_step",
    "resolve",
    "side_by_side",
    "spark_path",
    "up_to",
]
