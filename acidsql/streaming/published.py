"""What workers have written for a mutation, held against its table before the commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from acidsql.catalyst import Catalyst
from acidsql.commands.environment import Environment
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.errors import ConstraintViolation, InvalidValue
from acidsql.metastore.model import Table
from acidsql.plan.bucketing import bucket_number
from acidsql.plan.changes import NUMBER, key_column, value_column
from acidsql.plan.checks import of_row, violations
from acidsql.plan.job import writer_of
from acidsql.plan.scan import RAW_KEY, ROW_ID, ScanColumns, snapshot_frame
from acidsql.plan.snapshot import TableSnapshot, partition_names, take_snapshot
from acidsql.plan.target import RowCounts
from acidsql.plan.text import quote
from acidsql.plan.values import Zones
from acidsql.streaming.worker import Written


class NoSuchRow(InvalidValue):
    """Raised when a row id that was to be updated or deleted names no row, or was named twice."""


@dataclass(frozen=True)
class Published:
    """Files of a transaction that are in their places, before its commit.

    Attributes:
        env: The session.
        txn: The transaction.
        seen: The table as the transaction has found it.
        parts: What its workers have written.
    """

    env: Environment
    txn: WriteTransaction
    seen: TableSnapshot
    parts: Sequence[Written]

    @property
    def counts(self) -> RowCounts:
        """How many rows were inserted, updated and deleted."""
        return sum((part.counts for part in self.parts), RowCounts())

    def check(self) -> None:
        """Hold it against the table.

        Raises:
            NoSuchRow: When not every row id that was named hides a row.
            ConstraintViolation: When a new row does not meet a CHECK constraint.
            InvalidValue: When a new row is in the wrong bucket.
        """
        counts = self.counts
        if named := counts.updated + counts.deleted:
            self._check_ids(named)
        if counts.updated + counts.inserted:
            if self._table.bucket_columns:
                self._check_buckets()
            if self._table.checks:
                self._check_conditions()

    @property
    def _table(self) -> Table:
        return self.seen.table

    @property
    def _is_new(self) -> Column:
        """Whether a row was written by the transaction."""
        return F.col(f"{ROW_ID}.writeId") == self.txn.allocate_write_id(self._table)

    @cached_property
    def _partitions(self) -> set[str]:
        """The names of the partitions that were written to."""
        return {directory.partition for one in self.parts for directory, _ in one.part.directories}

    @property
    def _before(self) -> TableSnapshot:
        """What was written to, as the transaction has found it."""
        if not self._table.partition_keys:
            return self.seen
        places = [p for p in self.seen.partitions if p.partition is not None]
        known = [p for p in places if p.partition and partition_names(self._table, p.partition) in self._partitions]
        return replace(self.seen, partitions=tuple(known))

    @cached_property
    def _after(self) -> TableSnapshot:
        """The same as the transaction leaves it."""
        table, metastore, listed = self._table, self.env.metastore, None
        if table.partition_keys:
            listed = metastore.list_partitions(table.database, table.name, sorted(self._partitions))
        write_ids = self.txn.valid_write_ids(table)  # its own among them, now that it has one
        return take_snapshot(table, write_ids, self.txn.valid_txns, listed, is_pinned=True)

    def _check_ids(self, named: int) -> None:
        own, zones, columns = self.env.sessions.own, self.env.zones, ScanColumns(row_id=True)
        left = snapshot_frame(own, self._after, zones, columns).where(~self._is_new).count()
        hidden = snapshot_frame(own, self._before, zones, columns).count() - left
        if hidden != named:
            raise NoSuchRow(
                f"Of {named} row ids to be updated or deleted, {named - hidden} name no row, or one named before",
                hint="Row ids are those of mutation.rows(); others may be of rows that were changed since.",
            )

    def _new_rows(self, own: Catalyst, zones: Zones) -> DataFrame:
        """Values, texts of keys, ``ROW__ID``, and a number."""
        rows = snapshot_frame(own, self._after, zones, ScanColumns(row_id=True, raw_keys=RAW_KEY)).where(self._is_new)
        values = [f"{quote(c.name)} AS {value_column(i)}" for i, c in enumerate(self._table.columns)]
        keys = [f"{RAW_KEY}{i} AS {key_column(i)}" for i in range(len(self._table.partition_keys))]
        return rows.selectExpr(*values, *keys, ROW_ID, f"monotonically_increasing_id() AS {NUMBER}")

    def _check_buckets(self) -> None:
        utc = self.env.sessions.in_zone("UTC")
        rows = self._new_rows(utc, replace(self.env.zones, session="UTC"))
        wrong = bucket_number(utc.spark, self._table, rows) != F.expr(writer_of(f"{ROW_ID}.bucketId"))
        if count := rows.where(wrong).count():
            raise InvalidValue(f"{count} new rows of {self._table.full_name} are in buckets that are not theirs")

    def _check_conditions(self) -> None:
        own = self.env.sessions.own
        rows = self._new_rows(own, self.env.zones).drop(ROW_ID)
        values = [of_row(value_column(i)) for i in range(len(self._table.columns))]
        for message in violations(own.spark, rows, self._table, values).values():
            raise ConstraintViolation(message)
