"""The default time zone of the JVMs that read and write files: that of Spark's executors."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from acidsql.catalyst.expressions import JavaExpressions
from acidsql.errors import UnsupportedError

_TASKS = 4
"""Tasks for each slot of the cluster, so that every executor gets one."""
_ATTEMPTS = 3


class ExecutorZones:
    """Asks the executors for their zone, each of them once. In local mode they are the driver's JVM."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._zones: dict[str, str] = {}
        """By JVM."""
        self._asked: set[str] = set()
        """Executors whose zones are known."""
        self._is_local = bool(spark.sparkContext._jsc.sc().isLocal())

    @property
    def zone(self) -> str | None:
        """The zone that all executors share; None for the driver's own.

        Raises:
            UnsupportedError: When they have different ones: the wall clocks in files would depend on who wrote them.
        """
        if self._is_local:
            return None
        for _ in range(_ATTEMPTS):
            executors = self._executors()
            if executors <= self._asked and self._zones:
                break
            answers = self._ask()
            self._zones |= answers
            if len(answers) >= len(executors) and self._executors() == executors:
                self._asked |= executors
        zones = set(self._zones.values())
        if len(zones) > 1:
            raise UnsupportedError(
                f"The executors of this Spark run in different time zones: {', '.join(sorted(zones))}",
                hint="Start them with one: spark.executor.extraJavaOptions=-Duser.timezone=UTC.",
            )
        return zones.pop() if zones else None

    def _executors(self) -> set[str]:
        """The executors that there are now, without the driver."""
        infos: Any = self._spark.sparkContext._jsc.sc().getExecutorIds()
        return {infos.apply(i) for i in range(infos.size())}

    def _ask(self) -> dict[str, str]:
        """The zone of each JVM that got a task.

        A JVM is known by its process and host: the class with an executor's own name (``SparkEnv``) refers to classes
        that PySpark 4.3 lacks.
        """
        java = JavaExpressions(self._spark)
        bean = "java.lang.management.RuntimeMXBean"
        zone = java.static("java.util.TimeZone", "getDefault", "java.util.TimeZone")
        process = java.static("java.lang.management.ManagementFactory", "getRuntimeMXBean", bean)
        texts = (java.call(process, "getName", "java.lang.String"), java.call(zone, "getID", "java.lang.String"))
        tasks = max(1, self._spark.sparkContext.defaultParallelism) * _TASKS
        names = [java.text(text).alias(name) for text, name in zip(texts, ("jvm", "zone"), strict=True)]
        rows = self._spark.range(0, tasks, 1, tasks).select(*names).distinct().collect()
        return {row[0]: row[1] for row in rows}
