"""The cleaner for one table, on demand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from acidsql import fs
from acidsql.compactor.cleaner import NO_CLEANUP, Cleaner, changes_retention, keeps_all, newest_below, retention_of
from acidsql.compactor.cleaner_lock import CleanerLock
from acidsql.compactor.compaction import WorkerContext
from acidsql.errors import AcidError, NoSuchLock, SnapshotTooOld, TableNotFound
from acidsql.format.data_files import DirectoryGone
from acidsql.format.directory import AcidState, acid_state, data_format, look_again
from acidsql.format.names import BaseName, parse_directory, write_ids_of
from acidsql.metastore.model import (
    AbortedComponent,
    CompactionFilter,
    CompactionInfo,
    CompactionState,
    CompactionType,
    Table,
)
from acidsql.plan.snapshot import partition_names
from acidsql.settings import STAGING_RETENTION
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList

_LONGEST = 1e10
"""Seconds that are longer than any table lives."""


@dataclass(frozen=True)
class _Place:
    """A table without partition keys, or one partition, as it was listed.

    Attributes:
        partition: Name of the partition.
        location: Its directory.
        files: Its file system, which keeps the listing.
        state: Its state as seen by all future readers.
    """

    partition: str | None
    location: str
    files: fs.ListedOnce
    state: AcidState

    @property
    def chosen(self) -> Iterator[str]:
        """The directories that are read."""
        if self.state.base is not None:
            yield self.state.base.path
        yield from (delta.path for delta in self.state.deltas)


class TableCleaner(Cleaner):
    """The cleaner for one table: by the same rules, but at once, and also for files without a queue entry.

    1. Files replaced by compactions that wait for cleaning.
    2. Files left by aborted transactions, aborted compactions and dead writers.
    3. Files replaced by an INSERT OVERWRITE or TRUNCATE, once it is visible to everyone: it had ended when the oldest
       open transaction began.
    4. If no transaction is open, everything else that is obsolete. It may be from a compaction that is no longer in the
       queue, because its cleaning was given up or disabled, or from elsewhere.

    The retention may be longer than that of the settings, never shorter. Nothing is removed from a table marked
    ``NO_CLEANUP``.
    """

    def __init__(self, context: WorkerContext, table: Table, retain_ms: int = 0) -> None:
        """
        Args:
            context: The shared context of the services.
            table: The table.
            retain_ms: Minimum time that replaced files are kept.
        """
        super().__init__(context)
        settings = context.settings
        self._table = table
        delay = max(retention_of(settings), changes_retention(table))
        self._retain_ms = max(retain_ms, int(min(delay, _LONGEST) * 1000))
        self._oldest_staging = context.clock() - max(settings.value(STAGING_RETENTION), self._retain_ms / 1000)
        self._removed: list[str] = []

    def remove(self) -> list[str]:
        """Remove obsolete files; returns the removed paths.

        Raises:
            LockTimeout: When the lock was not granted in time.
            TableNotFound: When it was dropped or renamed.
            NoSuchLock: When its lock timed out: the rest is kept.
        """
        with CleanerLock(self._context, self._table.database, self._table.name, owner="vacuum") as lock:
            lock.wait()
            found = self._current_table(self._table.database, self._table.name)
            if found is None:
                raise TableNotFound(f"Table not found {self._table.full_name}")
            self._table = found
            if not keeps_all(found):
                self._remove_all(lock)
        return sorted(self._removed)

    def _remove_all(self, lock: CleanerLock) -> None:
        metastore = self._context.metastore
        min_open = metastore.min_open_txn()
        ready = self._ready(min_open)
        unlisted = list(self._unlisted(ready))
        for entry in ready:
            try:
                self._clean_entry(entry, min_open, lock)
            except NoSuchLock:
                raise
            except AcidError as e:
                self._retry_later(entry, e.message)
        for component in metastore.aborted_components(table=self._table.full_name):
            with suppress(SnapshotTooOld):  # left to the cleaning after the readers have gone
                self._clean_aborted(component, min_open, lock)
        for component in metastore.aborted_compactions(table=self._table.full_name):
            self._clean_aborted_compaction(component, min_open, lock)
        for location in self._all_locations(self._table):
            self._sweep(location, self._oldest_staging, min_open, lock)
        for state in unlisted:
            left = [path for path in state.obsolete if path not in self._removed]
            if left:
                self._forget_changes(self._table, state)
                self._remove(state.path, left, lock)
        metastore.clean_empty_aborted_txns()

    def removable(self) -> list[str]:
        """The paths that :meth:`remove` would remove now."""
        metastore = self._context.metastore
        if keeps_all(self._table):
            return []
        min_open = metastore.min_open_txn()
        ready = self._ready(min_open)
        found = {path for state in self._unlisted(ready) for path in state.obsolete}
        for entry in ready:
            found.update(self._replaced(entry, min_open))
        for component in metastore.aborted_components(table=self._table.full_name):
            found.update(self._aborted(component, min_open))
        for component in metastore.aborted_compactions(table=self._table.full_name):
            found.update(self._unseen(component, min_open))
        for location in self._all_locations(self._table):
            found.update(self._stale_staging(location, self._oldest_staging, min_open))
        return sorted(found)

    def kept(self) -> list[str]:
        """Replaced files that are kept, with the reason, one sentence each."""
        if keeps_all(self._table):
            return [f"everything: the table is marked {NO_CLEANUP}"]
        min_open = self._context.metastore.min_open_txn()
        ready = self._ready(min_open)
        held = [entry for entry in self._queued() if entry not in ready]
        return [f"files replaced by compaction {entry.id}: {self._why(entry, min_open)}" for entry in held]

    def _why(self, entry: CompactionInfo, min_open: int) -> str:
        if entry.next_txn_id is None:
            return f"its transaction {entry.txn_id} is not committed"
        if entry.next_txn_id >= min_open:
            return f"transaction {min_open}, which began before its commit, is open"
        return "the retention time has not passed"

    def _remove(self, location: str, paths: list[str], lock: CleanerLock) -> None:
        super()._remove(location, paths, lock)
        self._removed += paths

    # --- what there is -----------------------------------------------------------------------------------------------

    def _ready(self, min_open: int) -> list[CompactionInfo]:
        """This table's entries that can be cleaned, in the required order.

        An earlier failure delays the cleaner, but not an explicit VACUUM.
        """
        latest = self._context.clock() * 1000 - self._retain_ms
        ready = [
            entry
            for entry in self._queued()
            if (entry.txn_id is None if entry.next_txn_id is None else entry.next_txn_id < min_open)
            and (entry.committed_ms is None or entry.committed_ms <= latest)
        ]
        return sorted(ready, key=lambda entry: (entry.highest_write_id or 0, entry.id))

    def _queued(self) -> list[CompactionInfo]:
        """All entries that wait for cleaning, whether they can be cleaned or not."""
        state = CompactionState.READY_FOR_CLEANING
        wanted = CompactionFilter(database=self._table.database, table=self._table.name, state=state)
        found = self._context.metastore.show_compactions(wanted)
        return [entry for entry in found if entry.type is not CompactionType.ABORT_TXN_CLEANUP]

    def _unlisted(self, ready: Collection[CompactionInfo]) -> Iterator[AcidState]:
        """States with obsolete paths without a queue entry: steps 3 and 4 of the class.

        A base in the layout of Hive 3 is visible to some while others still need what it replaces. So only bases of
        INSERT OVERWRITE, whose transaction is known, are considered; or all, once every transaction has ended that may
        have listed the directory before: therefore list first, and then check for open transactions.

        Args:
            ready: The queue entries that are cleaned now. Files of other entries are left to those.
        """
        metastore = self._context.metastore
        txns, write_ids = self._seen(self._table, metastore.min_unseen_txn())
        listed = [place for place in self._places(txns, write_ids) if place.state.obsolete]
        newest = metastore.get_valid_txns().high_watermark
        is_anybody_there = metastore.min_open_txn() <= newest
        waiting: dict[str | None, set[int | None]] = defaultdict(set)
        for entry in self._queued():
            if entry not in ready:
                waiting[entry.partition].add(entry.highest_write_id)
        for place in listed:
            left_to = waiting[place.partition]
            if is_anybody_there or left_to or not all(self._is_old(place, path) for path in place.chosen):
                state = self._overwritten(place, txns, write_ids, left_to)
            else:
                state = place.state
            if state is not None and state.obsolete:
                yield state

    def _places(self, txns: ValidTxnList, write_ids: ValidWriteIdList) -> Iterator[_Place]:
        table, seen = self._table, write_ids.for_cleaning(write_ids.high_watermark)
        locations: list[tuple[str | None, str]] = [(None, table.location)]
        if table.partition_keys:
            found = self._context.metastore.list_partitions(table.database, table.name)
            locations = [(partition_names(table, one), one.location) for one in found]
        for partition, location in locations:
            filesystem, path = fs.resolve(location)
            try:
                files, state = look_again(filesystem, path, partial(self._look, filesystem, path, seen, txns))
            except SnapshotTooOld:  # an open transaction may not see everything in its only base
                continue
            yield _Place(partition, location, files, state)

    def _look(
        self, filesystem: fs.FileSystem, path: str, seen: ValidWriteIdList, txns: ValidTxnList
    ) -> tuple[fs.ListedOnce, AcidState]:
        files = fs.ListedOnce(filesystem)
        return files, acid_state(files, path, seen, txns, any_file_name=self._table.is_insert_only)

    def _overwritten(
        self, place: _Place, txns: ValidTxnList, write_ids: ValidWriteIdList, waiting: Collection[int | None]
    ) -> AcidState | None:
        """The state as of the latest base that everyone sees and that is not from a compaction; None: there is none."""
        ids = [
            name.write_id
            for entry in place.files.list(place.state.path)
            if entry.is_dir
            and isinstance(name := parse_directory(entry.name), BaseName)
            and not name.visibility_txn
            and write_ids.is_valid(name.write_id)
            and name.write_id not in waiting  # it is from a rebalance
            and self._is_old(place, entry.path)
            and data_format(place.files, entry.path) != "compacted"
        ]
        if not ids:
            return None
        seen, any_name = write_ids.for_cleaning(max(ids)), self._table.is_insert_only
        try:
            return acid_state(place.files, place.state.path, seen, txns, any_file_name=any_name)
        except DirectoryGone:  # somebody cleans here
            return None

    def _is_old(self, place: _Place, path: str) -> bool:
        """Whether the retention time of what a directory has replaced is over."""
        if not self._retain_ms:
            return True
        written = [newest_below(place.files, entry) for entry in place.files.list(path)]
        return bool(written) and max(written) <= (self._context.clock() - self._retain_ms / 1000) * 1e9

    def _replaced(self, entry: CompactionInfo, min_open: int) -> Iterator[str]:
        txns, write_ids = self._seen(self._table, min_open)
        if entry.highest_write_id is not None:
            write_ids = write_ids.for_cleaning(entry.highest_write_id)
        for location in self._locations(self._table, entry.partition):
            try:
                state = self._state(self._table, location, write_ids, txns)
            except SnapshotTooOld:  # left to the cleaning of a later compaction
                continue
            yield from (*state.obsolete, *state.aborted)

    def _aborted(self, component: AbortedComponent, min_open: int) -> Iterator[str]:
        table, place = self._table, component.partition
        txns, write_ids = self._seen(table, min_open)
        known = component.write_ids.intersection(write_ids.aborted_ids)
        for location in self._places_of(table, place):
            try:
                state = self._state(table, location, write_ids, txns)
            except SnapshotTooOld:  # as above
                return
            yield from (path for path in state.aborted if write_ids_of(path) <= known)

    def _unseen(self, component: AbortedComponent, min_open: int) -> Iterator[str]:
        gone = {txn for txn in component.txn_ids if txn < min_open}
        for location in self._places_of(self._table, component.partition):
            filesystem, path = fs.resolve(location)
            for entry in filesystem.list(path):
                name = parse_directory(entry.name) if entry.is_dir else None
                if name is not None and name.visibility_txn in gone:
                    yield entry.path
