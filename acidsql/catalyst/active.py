"""The session whose settings Spark's code uses.

Spark's parser, rules and expressions read settings from the active session of their thread, not from the session that
they belong to. Spark's public methods activate their session themselves; code that calls internals directly must do the
same.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from pyspark.sql import DataFrame, DataFrameReader, SparkSession

from acidsql.catalyst.java import Java

_SESSION = "org.apache.spark.sql.classic.SparkSession"
P = ParamSpec("P")
T = TypeVar("T")


class _Thread(threading.local):
    """The session activated by the innermost block of :func:`active`; None outside any block."""

    session: Any = None


_thread = _Thread()


@contextmanager
def active(spark: SparkSession) -> Iterator[None]:
    """Make a session the active one of this thread for the duration of a block."""
    session: Any = spark._jsparkSession
    outer = _thread.session
    if outer is session:
        yield
        return
    java = Java.of(spark)
    activate = java.static(_SESSION, "setActiveSession")
    before = outer
    if outer is None:
        current = java.static(_SESSION, "getActiveSession")()
        before = current.get() if current.isDefined() else None
    activate(session)
    _thread.session = session
    try:
        yield
    finally:
        _thread.session = outer
        if before is None:
            java.static(_SESSION, "clearActiveSession")()
        else:
            activate(before)


def reader(spark: SparkSession, schema: str) -> DataFrameReader:
    """``spark.read.schema(…)`` of columns as DDL; types such as ``timestamp`` mean what this session defines."""
    with active(spark):
        return spark.read.schema(schema)


def scan_of(reader: DataFrameReader, format: str, paths: Sequence[str]) -> DataFrame:
    """``reader.format(format).load(paths)``; PySpark would call the JVM for each path."""
    spark = reader._spark
    return DataFrame(reader._jreader.format(format).load(Java.of(spark).texts(paths)), spark)


def files_of(scan: DataFrame) -> list[str]:
    """``scan.inputFiles()``; PySpark would call the JVM for each one."""
    return Java.of(scan.sparkSession).texts_of(scan._jdf.inputFiles())


class _OfSession(Protocol):
    spark: SparkSession


S = TypeVar("S", bound=_OfSession)


def in_its_session(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Run a method while the object's session is active."""

    @wraps(method)
    def run(self: S, /, *arguments: P.args, **options: P.kwargs) -> T:
        with active(self.spark):
            return method(self, *arguments, **options)

    return run
