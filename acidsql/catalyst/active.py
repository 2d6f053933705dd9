"""The session whose settings Spark's code uses.

Spark's parser, rules and expressions read settings from the active session of their thread, not from the session that
they belong to. Spark's public methods activate their session themselves; code that calls internals directly must do the
same.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

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
        try:  # nearly always there is one: to ask whether there is costs as much as to get it
            before = current.get()
        except Py4JJavaError:
            before = None
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
