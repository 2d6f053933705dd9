"""The JVM of Hadoop's file systems: passed in by its owner, since this room does not import Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from acidsql.errors import StorageError, UnsupportedError
from acidsql.fs.hadoop import HadoopFileSystem
from acidsql.fs.java import HadoopClasses, java_errors


class Hadoop:
    """Hadoop's file systems in one JVM, each opened once, as Hadoop itself keeps one for a scheme and authority."""

    def __init__(self, jvm: Any, configuration: Callable[[], Any]) -> None:
        self.jvm = jvm
        self._configuration = configuration
        self._opened: dict[str, HadoopFileSystem] = {}
        self._lock = threading.Lock()
        self._default: str | None = None
        self._classes: HadoopClasses | None = None

    def open(self, root: str) -> HadoopFileSystem:
        """The file system of a scheme and authority, ``hdfs://host:8020`` or ``hdfs:``.

        Raises:
            UnsupportedError: When Hadoop has no file system of that scheme.
            StorageError: When it cannot be opened.
        """
        with self._lock:
            if root not in self._opened:
                self._opened[root] = self._open(root)
            return self._opened[root]

    def default(self) -> str:
        """Hadoop's ``fs.defaultFS``: what Spark takes a path without a scheme to stand on."""
        with self._lock:
            if self._default is None:
                with java_errors("read the configuration of", "Hadoop"):
                    self._default = str(self._configuration().get("fs.defaultFS", "file:///"))
            return self._default

    def _open(self, root: str) -> HadoopFileSystem:
        scheme = root.partition(":")[0]
        try:
            with java_errors("open the file system", root):
                self._classes = self._classes or HadoopClasses(self.jvm)
                return HadoopFileSystem(self._classes, root, self._configuration())
        except StorageError as e:
            if not _is_missing(e.message) or self._classes is None:
                raise
            message = f"Spark's Hadoop has no file system for {scheme}: locations"
            raise UnsupportedError(message, hint=_hint(scheme, self._classes.version())) from e


_MODULES = {
    "s3a": "hadoop-aws",
    "abfs": "hadoop-azure",
    "abfss": "hadoop-azure",
    "wasb": "hadoop-azure",
    "wasbs": "hadoop-azure",
    "adl": "hadoop-azure-datalake",
    "oss": "hadoop-aliyun",
    "obs": "hadoop-huaweicloud",
    "cosn": "hadoop-cos",
}


def _is_missing(message: str) -> bool:
    """Whether Hadoop has no class for a scheme, or lacks its jar."""
    return "No FileSystem for scheme" in message or "ClassNotFoundException" in message


def _hint(scheme: str, version: str) -> str:
    if scheme in ("s3", "s3n"):
        return "Hadoop's file system for S3 is s3a: write s3a://bucket/…"
    if scheme in _MODULES:
        module = f"org.apache.hadoop:{_MODULES[scheme]}:{version}"
        return f"Start Spark with spark.jars.packages={module}, matching the version of its Hadoop."
    return f"Add its jar to Spark's class path, and set spark.hadoop.fs.{scheme}.impl to its class."


_attached: Hadoop | None = None
_start: Callable[[], None] | None = None
_starting = threading.RLock()


def attach(jvm: Any, configuration: Callable[[], Any]) -> None:
    """Hand in the JVM whose Hadoop is to be used from now on, in the whole process (PySpark has one JVM, too).

    Args:
        jvm: py4j's view of it (``SparkContext._jvm``).
        configuration: Answers Hadoop's ``Configuration``; asked when a file system is first used, so that what the user
            has set by then counts.
    """
    global _attached
    _attached = Hadoop(jvm, configuration)


def attach_when_needed(start: Callable[[], None] | None) -> None:
    """Start a JVM on the first access to a file system that is not local.

    Args:
        start: Starts one, and hands it in by :func:`attach`; None for no more.
    """
    global _start
    _start = start


def detach() -> None:
    """Forget the JVM, and how to start one: only local files can be reached then."""
    global _attached, _start
    _attached = _start = None


def needed() -> Hadoop | None:
    """The Hadoop passed in last, or one that is started now; None if it cannot be started."""
    with _starting:
        if _attached is None and _start is not None:
            _start()
        return _attached


def attached() -> Hadoop | None:
    """The Hadoop that was handed in last; None before."""
    return _attached


def needed_jvm() -> Any:
    """py4j's view of the JVM that was handed in, or is started now; None if none can be started."""
    hadoop = needed()
    return None if hadoop is None else hadoop.jvm
