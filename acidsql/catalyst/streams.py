"""Streaming DataFrames whose micro-batches a Python object makes: one of Spark's sources, as files and Kafka are.

Spark calls the object through py4j's callback server, in the thread of the streaming query, as it calls
``foreachBatch``. A batch is planned and run as any other DataFrame; the streaming query sees its rows as an RDD. So its
operators never meet the scan's plan: an aggregation in the batch is none of theirs, that has a state.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any, Protocol

from py4j.java_gateway import JavaClass
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from acidsql.catalyst.active import active
from acidsql.catalyst.java import SPARK, Java
from acidsql.errors import UnsupportedError

STREAMING = f"{SPARK}.sql.execution.streaming"
RELATION, OFFSET = "StreamingExecutionRelation", "SerializedOffset"
"""The node of a plan that stands for a source, and an offset that is a text."""
_READ_ALL = "ReadAllAvailable"
QUERY_ID = "sql.streaming.queryId"
"""Spark's local property with the id of a streaming query, in its thread; the checkpoint keeps it. No two runs of one
are active at once."""
_KEPT = 2
"""Answers to a query that are kept until the JVM has looked them up (:mod:`acidsql.catalyst.rules`)."""


class MicroBatches(Protocol):
    """What a streaming DataFrame reads, for any number of queries at once, which have ids.

    Offsets are texts that Spark keeps in a query's checkpoint, and gives back when the query is started again.
    """

    def newest(self, query: str, start: str | None, *, is_limited: bool) -> str | None:
        """The end of the next batch: ``start`` where there is nothing new, None where nothing is there at all.

        Args:
            query: Its id.
            start: Up to where it is; None at its beginning.
            is_limited: Whether limits of batches hold; otherwise the batch takes all that is there.
        """
        ...

    def end_with_now(self, query: str) -> None:
        """Give a run of a query nothing that comes after now."""
        ...

    def rows(self, query: str, start: str | None, end: str) -> DataFrame:
        """The rows from behind one offset to another one. It is asked for in order, the last batch more than once."""
        ...

    def stop(self, query: str) -> None:
        """A run of a query has ended."""
        ...


def streaming_frame(spark: SparkSession, batches: MicroBatches, schema: StructType, name: str) -> DataFrame:
    """A streaming DataFrame.

    Args:
        spark: Its session.
        batches: What it reads.
        schema: Its columns.
        name: What Spark calls it in plans and errors.
    """
    java = Java.of(spark)
    source = _Source(spark, batches, java.static(f"{SPARK}.sql.types.DataType", "fromJson")(schema.json()), name)
    relation = java.static(f"{moved(java, RELATION)}$", "MODULE$")
    with active(spark):
        plan = relation.apply(source, spark._jsparkSession)
        return DataFrame(java.static(f"{SPARK}.sql.classic.Dataset", "ofRows")(spark._jsparkSession, plan), spark)


def moved(java: Java, name: str) -> str:
    """The full name of a class of streaming queries, most of which Spark 4.1 has moved.

    Raises:
        UnsupportedError: When this Spark has none.
    """
    for place in (f"{STREAMING}.runtime.{name}", f"{STREAMING}.{name}"):
        if isinstance(java.type(place), JavaClass):
            return place
    raise UnsupportedError(f"This Spark is not supported: it has no {STREAMING}.{name}")


class _Source:
    """Spark's ``Source``."""

    def __init__(self, spark: SparkSession, batches: MicroBatches, schema: Any, name: str) -> None:
        self._spark, self._batches, self._schema, self._name = spark, batches, schema, name
        self._java = Java.of(spark)
        self._offset = self._java.type(moved(self._java, OFFSET))
        self._answers: defaultdict[str, deque[Any]] = defaultdict(lambda: deque(maxlen=_KEPT))

    def _answer(self, made: Any) -> Any:
        self._answers[self._query].append(made)
        return made

    @property
    def _query(self) -> str:
        return str(self._spark.sparkContext.getLocalProperty(QUERY_ID))

    def _as_offset(self, json: str | None) -> Any:
        return None if json is None else self._answer(self._offset(json))

    # --- Source ------------------------------------------------------------------------------------------------------

    def schema(self) -> Any:
        return self._schema

    def getOffset(self) -> Any:
        raise NotImplementedError("only asked of sources without limits")

    def getBatch(self, start: Any, end: Any) -> Any:
        begin = start.get().json() if start.isDefined() else None
        rows = self._batches.rows(self._query, begin, end.json())
        with active(self._spark):
            rdd = rows._jdf.queryExecution().toRdd()
            session: Any = self._spark._jsparkSession
            return self._answer(session.internalCreateDataFrame(rdd, self._schema, True))

    def commit(self, end: Any) -> None:
        """Nothing: the offset is in the checkpoint."""

    def stop(self) -> None:
        self._answers.pop(self._query, None)
        self._batches.stop(self._query)

    def initialOffset(self) -> Any:
        raise NotImplementedError("only asked of newer sources")

    def deserializeOffset(self, json: str) -> Any:
        return self._as_offset(json)

    # --- SupportsTriggerAvailableNow ---------------------------------------------------------------------------------

    def latestOffset(self, start: Any, limit: Any) -> Any:
        is_limited = limit.getClass().getSimpleName() != _READ_ALL
        begin = None if start is None else start.json()
        return self._as_offset(self._batches.newest(self._query, begin, is_limited=is_limited))

    def getDefaultReadLimit(self) -> Any:
        """Any limit but "all": the object knows its own."""
        return self._answer(self._java.static(f"{SPARK}.sql.connector.read.streaming.ReadLimit", "maxFiles")(1))

    def reportLatestOffset(self) -> Any:
        return None

    def prepareForTriggerAvailableNow(self) -> None:
        self._batches.end_with_now(self._query)

    # --- Object ------------------------------------------------------------------------------------------------------

    def toString(self) -> str:
        return self._name

    def hashCode(self) -> int:
        return hash(id(self)) & 0x7FFFFFFF

    def equals(self, other: Any) -> bool:
        return False  # asked of other objects only

    class Java:
        implements = (
            f"{STREAMING}.Source",
            f"{SPARK}.sql.connector.read.streaming.SupportsTriggerAvailableNow",
        )
