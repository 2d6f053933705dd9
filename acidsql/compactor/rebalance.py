"""The rebalance compaction: distributes live rows evenly over new files (Hive's ``RebalanceQueryCompactor``)."""

from __future__ import annotations

import time
from dataclasses import replace

from acidsql import fs
from acidsql.compactor.compaction import Compaction, RefusedError, WorkerContext
from acidsql.compactor.ordering import SortItem, in_order, sort_items
from acidsql.compactor.plan import Layout, NewDirectory, Subject, plan
from acidsql.compactor.run import ShareTask, run_tasks, tasks_of
from acidsql.format.bucket import encode
from acidsql.format.directory import AcidState, acid_state
from acidsql.format.names import BaseName, DeltaName, bucket_file
from acidsql.format.rewrite import Rewritten
from acidsql.format.spread import Share, runs_of
from acidsql.metastore.model import CompactionInfo, CompactionType, Partition, Table
from acidsql.plan.snapshot import row_type_of
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList

ON_BUCKETED = "Cannot execute rebalancing compaction on bucketed tables."
"""Hive's message."""
_PAUSE = 0.1


def compaction_of(
    context: WorkerContext, entry: CompactionInfo, worker: str, table: Table, partition: Partition | None, txn_id: int
) -> Compaction:
    """The compaction of an entry. For an insert-only table, whose rows have no ids, a rebalance is a major compaction.

    Hive's ``CompactorFactory``.
    """
    kind = Rebalance if entry.type is CompactionType.REBALANCE and table.is_full_acid else Compaction
    if entry.type is CompactionType.REBALANCE and kind is Compaction:
        entry = replace(entry, type=CompactionType.MAJOR)
    return kind(context, entry, worker, table, partition, txn_id)


def check_rebalance(entry: CompactionInfo, table: Table) -> None:
    """Raises: RefusedError when the table is bucketed (``AcidCompactionService``)."""
    if entry.type is CompactionType.REBALANCE and table.num_buckets > 0:
        raise RefusedError(ON_BUCKETED)


class Rebalance(Compaction):
    """Gives the rows new ids, so no statement may still hold old ids to delete by.

    1. The worker holds the lock of UPDATE and DELETE: none is running, and those waiting for it will take a new
       snapshot, as the commit counts as a change of rows.
    2. Take the snapshot. In the layout of Hive 3 the new base has its own write id, as that of INSERT OVERWRITE: the
       commit makes it visible at once, and an abort makes it obsolete. For this, earlier writers that insert rows must
       have ended. In the layout of Hive 4 it is ``base_N_v<txn>``, as in Hive; then no delete above N may exist, since
       it would refer to old ids.
    3. Write one file of live rows for each old bucket, as a major compaction does.
    4. Sort the rows by write id, bucket and row id, or by the request's ORDER BY. Row n gets row id n, and
       goes into file n div ceil(rows / files). It keeps its write id; with ORDER BY all get the largest one.
    5. Write the new files independently.
    6. Publish and commit as any compaction does.
    """

    _marks_bases = False
    _write_id: int | None = None

    def _now(self) -> tuple[ValidTxnList, ValidWriteIdList]:
        """The committed state, including transactions that began later and changed rows while this one waited.

        A transaction's own snapshot ends at its id and would miss their deletes, which refer to old ids.
        """
        txns = self._context.metastore.get_valid_txns()
        [write_ids] = self._context.metastore.get_valid_write_ids([self._table.full_name], txns)
        return txns, write_ids

    def _snapshot(self) -> tuple[ValidTxnList, ValidWriteIdList]:
        if self._layout is Layout.HIVE4:
            return self._now()
        metastore, table = self._context.metastore, self._table
        self._write_id = metastore.allocate_table_write_id(self._txn_id, table.database, table.name)
        deadline = time.monotonic() + self._context.limits.writers_wait
        while True:
            txns, seen = self._now()
            seen = seen.as_of(self._write_id - 1)
            if not seen.open_ids:
                return txns, seen
            if time.monotonic() >= deadline:
                opened = ", ".join(map(str, seen.open_ids))
                raise RefusedError(f"Transactions that write to {table.full_name} are still open (write ids {opened})")
            self._context.sleep(_PAUSE)

    def _is_enough(self, state: AcidState) -> bool:
        """Always, unless there are no rows: the user decides whether to rebalance."""
        return state.base is not None or bool(state.deltas) or bool(state.originals)

    def _highest(self, write_ids: ValidWriteIdList) -> int:
        return write_ids.high_watermark if self._write_id is None else self._write_id

    def _planned(self, subject: Subject) -> list[NewDirectory]:
        if self._entry.order_by:
            self._items()
        self._check_deletes(subject)
        [major] = plan(subject, CompactionType.MAJOR, self._layout, self._txn_id)
        return [major if self._write_id is None else replace(major, name=BaseName(self._write_id))]

    def _check_deletes(self, subject: Subject) -> None:
        """Deletes above the watermark are not compacted, but refer to rows by their current ids."""
        txns, seen = self._now()
        top = subject.write_ids.high_watermark
        if self._write_id is not None or seen.high_watermark <= top:
            return
        state = acid_state(self._fs, self._path, seen, txns)
        late = [d.name for d in state.delete_deltas if isinstance(d.name, DeltaName) and d.name.max_write_id > top]
        if late:
            raise RefusedError(
                f"Rows of {self._table.full_name} were deleted while a transaction was writing that is still open: "
                f"{late[0]} is above write id {top}"
            )

    def _fill(self, subject: Subject, directories: list[NewDirectory], staging: str) -> Rewritten:
        [directory] = directories
        metastore, spark = self._context.metastore, self._spark_for(subject.state)
        metastore.set_job_id(self._entry.id, self._job, worker=self._worker)
        live = tasks_of(self._prepared(subject, directory, staging, spark), fs.join(staging, "live"))
        rows = sum(run_tasks(live, spark, self._job), Rewritten())
        path = self._new_directory(subject, directory, staging)
        files = [task.work.target for task in live]
        shares = self._shares(subject, files, path, len([one for one in directory.rewrites if one.inputs]))
        result = sum(run_tasks(shares, spark, self._job), Rewritten())
        if not shares:
            self._keep_one_file(subject, replace(directory, rewrites=()), path)
        return replace(result, dropped=rows.dropped, copied=rows.copied, bytes_read=rows.bytes_read)

    def _items(self) -> tuple[SortItem, ...]:
        keys = [key.name for key in self._table.partition_keys]
        return sort_items(self._entry.order_by or "", row_type_of(self._table), keys)

    def _shares(self, subject: Subject, files: list[str], path: str, buckets_now: int) -> list[ShareTask]:
        """The new files: as many as requested, or as there are now."""
        pieces = runs_of(self._fs, files)
        total = pieces.rows
        wanted = self._entry.buckets or max(1, buckets_now)
        each = max(1, -(-total // wanted))
        limit = self._context.limits.max_buckets
        if -(-total // each) > limit:
            raise RefusedError(f"A table has at most {limit} buckets, not {wanted}")
        if self._entry.order_by:
            pieces = in_order(self._fs, files, pieces, self._items())
        return [
            ShareTask(
                Share(
                    target=fs.join(path, bucket_file(number)),
                    row_type=subject.row_type,
                    compression=subject.compression,
                    bucket=encode(number),
                    first_row_id=start,
                    inputs=tuple(files),
                    pieces=pieces.slice(start, start + each),
                    is_sorted=bool(self._entry.order_by),
                )
            )
            for number, start in enumerate(range(0, total, each))
        ]
