"""The cleaner for one table, on demand."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from acidsql import fs
from acidsql.compactor.cleaner import Cleaner, keeps_all, write_ids_of
from acidsql.compactor.compaction import WorkerContext
from acidsql.errors import SnapshotTooOld
from acidsql.format.names import parse_directory
from acidsql.metastore.model import AbortedComponent, CompactionFilter, CompactionInfo, CompactionType, Table
from acidsql.settings import CLEANER_DELAYED, CLEANER_RETENTION, STAGING_RETENTION


class TableCleaner(Cleaner):
    """What the cleaner does, for one table: by the same rules, but whoever asks need not wait for its next round.

    A longer retention than that of the settings may be asked for, never a shorter one. Of a table that is marked
    ``NO_CLEANUP`` nothing is removed.
    """

    def __init__(self, context: WorkerContext, table: Table, retain_ms: int = 0) -> None:
        """
        Args:
            context: What the services share.
            table: The table.
            retain_ms: How long after a compaction what it has replaced stays, at least.
        """
        super().__init__(context)
        settings = context.settings
        delay = settings.value(CLEANER_RETENTION) if settings.value(CLEANER_DELAYED) else 0.0
        self._table = table
        self._retain_ms = max(retain_ms, int(delay * 1000))
        self._oldest_staging = time.time() - max(settings.value(STAGING_RETENTION), self._retain_ms / 1000)
        self._removed: list[str] = []

    def remove(self) -> list[str]:
        """Remove what nobody can need any more; the paths that are gone."""
        metastore = self._context.metastore
        if keeps_all(self._table):
            return []
        min_open = metastore.min_open_txn()
        for entry in self._ready(min_open):
            self._clean_entry(entry, min_open)
        for component in self._own(metastore.aborted_components()):
            self._clean_aborted(component, min_open)
        for component in self._own(metastore.aborted_compactions()):
            self._clean_aborted_compaction(component, min_open)
        for location in self._all_locations():
            self._sweep(location, self._oldest_staging)
        metastore.clean_empty_aborted_txns()
        return sorted(self._removed)

    def removable(self) -> list[str]:
        """The paths that :meth:`remove` would remove now."""
        metastore = self._context.metastore
        if keeps_all(self._table):
            return []
        min_open = metastore.min_open_txn()
        found: set[str] = set()
        for entry in self._ready(min_open):
            found.update(self._replaced(entry, min_open))
        for component in self._own(metastore.aborted_components()):
            found.update(self._aborted(component, min_open))
        for component in self._own(metastore.aborted_compactions()):
            found.update(self._unseen(component, min_open))
        for location in self._all_locations():
            found.update(self._stale_staging(location, self._oldest_staging))
        return sorted(found)

    def _remove(self, location: str, paths: list[str]) -> None:
        super()._remove(location, paths)
        self._removed += paths

    # --- what there is -----------------------------------------------------------------------------------------------

    def _ready(self, min_open: int) -> list[CompactionInfo]:
        """This table's entries that can be cleaned, in the order in which they have to be.

        An error of an earlier round puts the cleaner off, not the user who asks.
        """
        wanted = CompactionFilter(database=self._table.database, table=self._table.name, state="ready for cleaning")
        latest = time.time() * 1000 - self._retain_ms
        ready = [
            entry
            for entry in self._context.metastore.show_compactions(wanted)
            if entry.type is not CompactionType.ABORT_TXN_CLEANUP
            and (entry.txn_id is None if entry.next_txn_id is None else entry.next_txn_id < min_open)
            and (entry.committed_ms is None or entry.committed_ms <= latest)
        ]
        return sorted(ready, key=lambda entry: (entry.highest_write_id or 0, entry.id))

    def _own(self, components: Iterable[AbortedComponent]) -> Iterator[AbortedComponent]:
        place = (self._table.database, self._table.name)
        return (one for one in components if (one.database, one.table) == place)

    def _all_locations(self) -> set[str]:
        return {self._table.location, *self._locations(self._table, None)}

    def _replaced(self, entry: CompactionInfo, min_open: int) -> Iterator[str]:
        txns, write_ids = self._seen(self._table, min_open)
        if entry.highest_write_id is not None:
            write_ids = write_ids.for_cleaning(entry.highest_write_id)
        for location in self._locations(self._table, entry.partition):
            try:
                state = self._state(self._table, location, write_ids, txns)
            except SnapshotTooOld:  # all of it goes with what a later compaction has left
                continue
            yield from (*state.obsolete, *state.aborted)

    def _aborted(self, component: AbortedComponent, min_open: int) -> Iterator[str]:
        table, place = self._table, component.partition
        txns, write_ids = self._seen(table, min_open)
        known = component.write_ids.intersection(write_ids.aborted_ids)
        for location in {*self._locations(table, place), *self._unregistered(table, place)}:
            state = self._state(table, location, write_ids, txns)
            yield from (path for path in state.aborted if write_ids_of(path) <= known)

    def _unseen(self, component: AbortedComponent, min_open: int) -> Iterator[str]:
        gone = {txn for txn in component.txn_ids if txn < min_open}
        for location in self._locations(self._table, component.partition):
            filesystem, path = fs.resolve(location)
            for entry in filesystem.list(path):
                name = parse_directory(entry.name) if entry.is_dir else None
                if name is not None and name.visibility_txn in gone:
                    yield entry.path
