"""Writing events: small results by the driver, large ones by one Spark job; both into the same staged directories."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame

from acidsql.catalyst import Catalyst, Draft
from acidsql.errors import InvalidValue
from acidsql.format.orc import write_empty
from acidsql.plan.arrow import fetched, is_utf8, rows_to_table
from acidsql.plan.bucketing import bucket_number
from acidsql.plan.changes import BUCKET, ChangeSet
from acidsql.plan.event_writer import EventWriter
from acidsql.plan.fetch import fetch_few
from acidsql.plan.job import write_by_job
from acidsql.plan.local import DriverLimit
from acidsql.plan.snapshot import row_type_of
from acidsql.plan.staging import Staging
from acidsql.plan.target import Change, RowCounts, Target
from acidsql.plan.values import only_driver_writes, to_orc_driver

_PYTHON_ROWS = 4096
"""So many rows come from Spark one by one sooner than by a job."""


class Writer:
    """Writes changes of one statement into a staging area."""

    def __init__(self, catalyst: Catalyst, target: Target, staging: Staging, limit: DriverLimit) -> None:
        """``catalyst`` is the session of the changes; changes below the limit are written by the driver."""
        self._catalyst = catalyst
        self._target = target
        self._staging = staging
        self._limit = limit
        self._row_type = row_type_of(target.table)
        self._only_driver = only_driver_writes(self._row_type)

    def write(self, changes: ChangeSet, *, large: bool = False) -> RowCounts:
        """Write all changes.

        Args:
            changes: The changes.
            large: Whether the caller knows that there are more than the driver writes. Else this finds out: no more are
                fetched than the driver writes, and only when there are more is a job started.

        Raises:
            CardinalityViolation: When a row is named twice.
        """
        found = None if large and not self._only_driver else self.fetch(changes)
        if found is not None:
            return self.write_fetched(found, changes.change)
        return write_by_job(self._catalyst, self._target, self._staging, self._completed(changes))

    def fetch(self, changes: ChangeSet) -> pa.Table | None:
        """The changes as the driver writes them; None when there are more than it should, or some that it cannot.

        Raises:
            InvalidValue: When nobody can write them.
        """
        found = self._fetched(changes)
        if found is None or is_utf8(found):
            return found
        if self._only_driver:
            raise InvalidValue(
                f"A text for {self._target.table.full_name} is not valid UTF-8",
                hint="Tables with instants, or with dates in the keys of maps, take valid texts only.",
            )
        return None

    def _fetched(self, changes: ChangeSet) -> pa.Table | None:
        completed = self._completed(changes)
        finished = self._for_driver(completed)
        most = self._limit.rows_of(changes.arrow_types())
        if (local := _local_rows(finished)) is not None:
            if local <= _PYTHON_ROWS:
                try:
                    return rows_to_table(finished.collect(), completed.columns, completed.arrow_types())
                except (ValueError, OverflowError):  # a date, time or text that Python cannot represent
                    pass
            return fetched(finished) if self._only_driver or local <= most else None
        if self._only_driver:
            return fetched(finished)
        return fetch_few(self._catalyst, finished, completed.columns, completed.arrow_types(), most)

    def _completed(self, changes: ChangeSet) -> ChangeSet:
        """The changes with the bucket of each new row."""
        table, spark = self._target.table, self._catalyst.spark
        if not table.bucket_columns or changes.change in (Change.UPDATE, Change.DELETE):
            return changes
        return changes.with_bucket(changes.frame.withColumn(BUCKET, bucket_number(spark, table, changes.frame)))

    def write_nothing(self, partition: str) -> None:
        """A base without rows: one empty ORC file, because a base that holds no file hides nothing from Trino."""
        directory = self._staging.directory(partition, self._target.inserts)
        full_acid = self._target.table.is_full_acid
        write_empty(self._staging.fs, directory.bucket(0), self._row_type, events=full_acid)

    # --- by the driver -----------------------------------------------------------------------------------------------

    def write_fetched(self, changes: pa.Table, change: Change | None) -> RowCounts:
        """Write changes that :meth:`fetch` has given. Raises as :meth:`write`."""
        return EventWriter(self._target, self._staging).write(changes, change)

    def _for_driver(self, changes: ChangeSet) -> DataFrame:
        """The columns of the changes, with values as the driver's ORC writer takes them."""
        types = dict(zip(changes.values, (t for _, t in self._row_type.fields), strict=False))
        made = [f"{to_orc_driver(n, types[n])} AS {n}" if n in types else n for n in changes.columns]
        return Draft.of(self._catalyst, changes.frame).select(*made).frame()


def _local_rows(frame: DataFrame) -> int | None:
    """How many rows there are where Spark has them already (VALUES, constants): collecting them starts no job."""
    execution = frame._jdf.queryExecution()
    if any(leaf.nodeName().startswith("LogicalRelation") for leaf in Catalyst.leaves(execution.analyzed())):
        return None  # files are read: there is no need to optimise it
    plan = execution.optimizedPlan()
    return int(plan.data().size()) if plan.nodeName() == "LocalRelation" else None
