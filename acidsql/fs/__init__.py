"""The one room that talks to file systems.

Locations are kept as users and Hive write them (``/a/b``, ``file:/a/b``, ``hdfs://…``); :func:`resolve` turns one into
a file system and a path in it. Only the local file system is there in this version.
"""

from acidsql.fs.local import LocalFileSystem
from acidsql.fs.protocol import FileStatus, FileSystem
from acidsql.fs.resolve import join, resolve, spark_path

__all__ = ["FileStatus", "FileSystem", "LocalFileSystem", "join", "resolve", "spark_path"]
