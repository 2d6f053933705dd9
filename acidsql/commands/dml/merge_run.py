"""MERGE inside its transaction: the rows of the target that may matter, the join, and what is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from acidsql.commands.inspect.explained import TargetRead
from acidsql.commands.resolve.binding import (
    Snapshot,
    search_of,
)
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.metastore.model import Operation, Partition
from acidsql.plan.local import local_frame
from acidsql.plan.merge import SOURCE_MARK, SOURCE_NUMBER, Fits, Join, MergePlan
from acidsql.plan.nanoseconds import kept_timestamps, refuse_finer
from acidsql.plan.prune import prune
from acidsql.plan.scan import snapshot_frame
from acidsql.plan.search import Search, key_conditions
from acidsql.plan.target import Change, Target, Written
from acidsql.plan.views import Views
from acidsql.plan.write import Writer
from acidsql.settings import (
    DRIVER_WRITE_ROWS,
    NANOSECONDS,
)
from acidsql.sql.join_keys import Side, equal_columns

if TYPE_CHECKING:
    from acidsql.commands.dml.merge import MergeCommand


@dataclass(frozen=True)
class MergeRows:
    """The rows of USING; ``rows`` with their numbers, where they are few enough to be on the driver."""

    frame: DataFrame
    rows: pa.Table | None


class MergeRun:
    """Phases 4 to 8, inside the transaction."""

    def __init__(
        self,
        command: MergeCommand,
        snapshot: Snapshot,
        views: Views,
        plan: MergePlan,
        source: MergeRows,
    ) -> None:
        self._command = command
        self._env = command.env
        self._table = command.table
        self._snapshot = snapshot
        self._views = views
        self._plan = plan
        self._source = source
        self._inserts = any(b.fits is Fits.SOURCE for b in plan.branches)

    def run(self, txn: WriteTransaction, partitions: tuple[Partition, ...] | None) -> Written:
        """Write and publish.

        Args:
            txn: The transaction that holds the locks.
            partitions: Those that ON leaves of the target.
        """
        command, rows = self._command, self._source.rows
        if rows is not None and not rows.num_rows and command.prunes:
            return Written()
        target, _ = self._target_view(partitions)
        write_id = txn.allocate_write_id(self._table)
        staging = txn.stage(self._table)
        limit = self._env.settings.value(DRIVER_WRITE_ROWS)
        to = Target(self._table, write_id)
        self._changer = Writer(self._env.spark, to, staging, limit)
        self._inserter = Writer(self._env.spark, to.next if command.changes_rows else to, staging, limit)
        written = self._by_fetched_source(target) if rows is not None else None
        if written is None:
            written = self._by_one_join(target)
        dynamic = Operation.INSERT if self._inserts and self._table.partition_keys else None
        txn.publish(self._table, staging, dynamic=dynamic)
        return written

    # --- the target --------------------------------------------------------------------------------------------------

    def _key_conditions(self) -> tuple[tuple[str, str], ...]:
        """What the keys of a fetched source leave of the target."""
        rows, command = self._source.rows, self._command
        if rows is None:
            return ()
        columns = [c.lower() for c in self._source.frame.columns]
        one = Side(command.target_name.lower(), frozenset(c.name for c in self._table.all_columns))
        other = Side(command.source_name.lower(), frozenset(c for c in columns if columns.count(c) == 1))
        pairs = equal_columns(command.statement.on, one, other)
        types = {f.name.lower(): f.dataType.simpleString() for f in self._source.frame.schema.fields}
        keys = {t: (rows.column(columns.index(s)), types[s]) for t, s in pairs}
        return key_conditions(self._table, self._plan.target, keys)

    def _prune(self, partitions: Sequence[Partition], conditions: Sequence[tuple[str, str]]) -> list[Partition]:
        keys = {k.name for k in self._table.partition_keys}
        texts = [text for name, text in conditions if name in keys]
        return prune(
            self._env.spark,
            self._table,
            partitions,
            texts,
            alias=self._command.target_name,
            parameters=self._command.parameters,
        )

    def _target_view(self, partitions: tuple[Partition, ...] | None) -> tuple[str, TargetRead]:
        """A view of the target's rows that may matter, and what is read for it."""
        command, table = self._command, self._table
        conditions = self._key_conditions() if command.prunes else ()
        if partitions is not None and conditions:
            partitions = tuple(self._prune(partitions, conditions))
        seen = self._seen = self._snapshot.of(table, partitions)
        search = Search((), command.target_name, command.parameters)
        if command.prunes:
            search = search_of(table, command.on, None, command.target_name, command.parameters)
            data = {c.name for c in table.columns}
            search = replace(search, conjuncts=(*search.conjuncts, *(t for n, t in conditions if n in data)))
        changes = command.changes_rows
        frame = snapshot_frame(self._env.spark, seen, row_id=changes, raw_keys=changes, search=search)
        return self._views.add(frame), TargetRead(partitions, search)

    def explain(self, partitions: tuple[Partition, ...] | None) -> tuple[TargetRead, DataFrame]:
        """What is read of the target, and the changes as one join gives them."""
        target, read = self._target_view(partitions)
        return read, self._joined(target)[1]

    # --- one join ----------------------------------------------------------------------------------------------------

    def _by_one_join(self, target: str) -> Written:
        """Every pair in one query: for a source that is not on the driver, or more changes than the driver writes."""
        join, changes = self._joined(target)
        if join is Join.SOURCE_ALONE:
            return self._inserter.write(changes, Change.INSERT)
        return self._changer.write(changes, None)

    def _joined(self, target: str) -> tuple[Join, DataFrame]:
        join = _join({b.fits for b in self._plan.branches})
        marked = self._source.frame.withColumn(SOURCE_MARK, F.lit(True))
        source = self._views.add(self._source.frame if join is Join.SOURCE_ALONE else marked)
        return join, self._changes(join, target, source, self._plan)

    def _changes(self, join: Join, target: str, source: str, plan: MergePlan) -> DataFrame:
        raw = self._env.sql(plan.query(join, target, source), self._command.parameters)
        changes = plan.changes(self._env.spark, raw, join, self._command.not_storable)
        if join in (Join.SOURCE_ALONE, Join.NO_TARGET) or self._env.settings.value(NANOSECONDS) == "truncate":
            return changes
        updates = [b.values.keys() for b in plan.branches if b.change is Change.UPDATE]
        kept = {i for assigned in updates for i in kept_timestamps(self._table, assigned)}
        return refuse_finer(self._env.spark, self._seen, sorted(kept), changes, None)

    # --- a fetched source --------------------------------------------------------------------------------------------

    def _by_fetched_source(self, target: str) -> Written | None:
        """The source is broadcast; its rows without a partner are told by their numbers. None for too many changes."""
        rows = self._source.rows
        assert rows is not None
        local = self._local(rows)
        marked = local.withColumn(SOURCE_MARK, F.lit(True))
        source = self._views.add(F.broadcast(marked))
        written = Written()
        if not self._command.changes_rows:
            raw = self._env.sql(self._plan.matched_query(target, source), self._command.parameters)
            numbers = raw.toArrow()["n"]
        else:
            fits = {b.fits for b in self._plan.branches}
            join = Join.PAIRS_AND_TARGET if Fits.TARGET in fits else Join.PAIRS
            plan = replace(self._plan, numbered=True, all_pairs=self._plan.all_pairs or self._inserts)
            changes = self._changes(join, target, source, plan)
            fetched = self._changer.fetch(changes, None)
            if fetched is None:
                return None
            numbers = fetched["n"]
            if not self._plan.all_pairs:
                fetched = fetched.filter(pc.not_equal(fetched["kind"], int(Change.NOTHING)))
            written = self._changer.write_fetched(fetched, None)
        if not self._inserts:
            return written
        rest = rows.filter(pc.invert(pc.is_in(rows[SOURCE_NUMBER], pc.unique(numbers))))
        return written + self._insert(rest, target)

    def _insert(self, rows: pa.Table, target: str) -> Written:
        """Rows of the source that have no partner."""
        if not rows.num_rows:
            return Written()
        changes = self._changes(Join.NO_TARGET, target, self._views.add(self._local(rows)), self._plan)
        return self._inserter.write(changes, Change.INSERT, small=True)

    def _local(self, rows: pa.Table) -> DataFrame:
        return local_frame(self._env.spark, rows, self._source.frame)


def _join(fits: set[Fits]) -> Join:
    """The pairs that clauses of these kinds need."""
    if fits == {Fits.SOURCE}:
        return Join.SOURCE_ALONE
    if Fits.SOURCE not in fits:
        return Join.PAIRS_AND_TARGET if Fits.TARGET in fits else Join.PAIRS
    return Join.ALL if Fits.TARGET in fits else Join.PAIRS_AND_SOURCE
