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
        self._known: dict[str, str] = {}
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
            if not self._executors() - self._known.keys() and self._known:
                break
            self._known |= self._ask()
        zones = set(self._known.values())
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
        """The zone of each executor that got a task."""
        java = JavaExpressions(self._spark)
        zone = java.static("java.util.TimeZone", "getDefault", "java.util.TimeZone")
        executor = java.static("org.apache.spark.SparkEnv", "get", "org.apache.spark.SparkEnv")
        texts = (java.call(executor, "executorId", "java.lang.String"), java.call(zone, "getID", "java.lang.String"))
        tasks = max(1, self._spark.sparkContext.defaultParallelism) * _TASKS
        names = [java.text(text).alias(name) for text, name in zip(texts, ("executor", "zone"), strict=True)]
        rows = self._spark.range(0, tasks, 1, tasks).select(*names).distinct().collect()
        return {row[0]: row[1] for row in rows}
