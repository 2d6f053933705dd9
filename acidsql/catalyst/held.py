"""Whether anything in Spark still reads files: frames, frames made of them, views and caches all share a scan's index.

A plan that is derived from a scan (a filter, a join, a view, a cache, a running query) refers to the same
``HadoopFsRelation.location``. When the last of them is garbage a JVM ``WeakReference`` on it is empty. An RDD
(``frame.rdd``, ``frame.toLocalIterator()``, the leaves of :mod:`acidsql.catalyst.subqueries`) refers to no plan, but to
the function that reads a file, which has the relation's ``partitionSchema``: an object of each scan's own, which stays
the same where Spark's optimiser replaces the relation by one with fewer columns.
"""

from __future__ import annotations

import gc
import logging
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from acidsql.catalyst.builder import Plan
from acidsql.catalyst.java import Java
from acidsql.catalyst.plans import Catalyst

logger = logging.getLogger(__name__)

LISTENERS_MS = 2000
"""Milliseconds that Spark's listeners get to catch up, before the JVM collects garbage."""


class HeldFiles:
    """What belongs to a scan alone, its file index and the schema of its partitions, by weak references."""

    def __init__(self, catalyst: Catalyst) -> None:
        self._weak = catalyst.java.type("java.lang.ref.WeakReference")
        self._references: list[Any] = []

    def add(self, scan: Plan) -> None:
        """Watch the relations of a scan."""
        for relation in Catalyst.base_relations(scan):
            self._references += [self._weak(relation.location()), self._weak(relation.partitionSchema())]

    def are_read(self) -> bool:
        """Whether anything refers to one of them."""
        return any(not reference.refersTo(None) for reference in self._references)


def collect_garbage(spark: SparkSession) -> None:
    """Have the JVM find out what is garbage: first of all what Python holds no longer.

    py4j's objects and their methods refer to each other, so Python itself has to look for cycles.
    """
    gc.collect()
    _release_what_python_dropped(spark)
    _let_listeners_hear(spark)
    Java.of(spark).static("java.lang.System", "gc")()


def _let_listeners_hear(spark: SparkSession) -> None:
    """Wait until Spark's listeners were told of the queries that have ended: the messages hold their plans."""
    try:
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(LISTENERS_MS)
    except Py4JJavaError as e:  # a listener that takes its time: its plans count as read
        logger.debug("Spark's listeners are behind: %s", e)


def _release_what_python_dropped(spark: SparkSession) -> None:
    """Tell the JVM now which of its objects Python has dropped; py4j's own thread does so once a second."""
    gateway: Any = spark.sparkContext._gateway
    waiting = getattr(getattr(gateway, "_gateway_client", None), "finalizer_deque", None)
    while waiting:
        try:
            task = waiting.pop()
        except IndexError:
            return
        if not isinstance(task, tuple):  # the sign for that thread to stop
            waiting.append(task)
            return
        client, target = task
        client.garbage_collect_object(target, False)
