"""ACID tables under names that Spark's analyser knows, for as long as one statement is being analysed."""

from __future__ import annotations

import itertools
import uuid
from types import TracebackType

from pyspark.sql import DataFrame, SparkSession

from acidsql.catalyst import ZONE, Catalyst, is_same_session
from acidsql.errors import InvalidValue, TransactionError


def require_frame(rows: object) -> None:
    """Raises: InvalidValue for what is no DataFrame, such as the name of a table that was given first."""
    if not isinstance(rows, DataFrame):
        raise InvalidValue(f"The rows are to be a DataFrame, not {type(rows).__name__}")


class Views:
    """Temporary views with names of their own; gone when the ``with`` block ends.

    Spark puts a view's plan into the plan of whatever is analysed over it, so the frames stay good after that.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._catalyst = Catalyst(spark)
        self._prefix = f"__acidsql_{uuid.uuid4().hex[:12]}"
        self._numbers = itertools.count()
        self._names: list[str] = []

    def add(self, frame: DataFrame) -> str:
        """Make a frame known to Spark, also one of another session (Spark gives foreachBatch such ones); its name.

        Raises:
            InvalidValue: When it is no DataFrame.
            TransactionError: When that one is in another time zone: a streaming query keeps the one that it was started
                in.
        """
        require_frame(frame)
        if not is_same_session(frame.sparkSession, self._spark):
            theirs, ours = (one.conf.get(ZONE) for one in (frame.sparkSession, self._spark))
            if theirs != ours:
                raise TransactionError(
                    f"The rows are of a session in the time zone {theirs}, and that of acidsql is in {ours} now",
                    hint="Start the streaming query again, or set the zone back.",
                )
        name = f"{self._prefix}_{next(self._numbers)}"
        self._catalyst.own(frame).createTempView(name)
        self._names.append(name)
        return name

    def __enter__(self) -> Views:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in self._names:
            self._spark.catalog.dropTempView(name)
