"""The cleaner: removes obsolete files of compactions and aborted transactions (Hive's ``Cleaner``)."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterable, Iterator

from acidsql import fs
from acidsql.compactor.cleaner_lock import CleanerLock
from acidsql.compactor.compaction import WorkerContext, place_of
from acidsql.compactor.rename_journal import find_table
from acidsql.errors import AcidError, CompactionError, SnapshotTooOld
from acidsql.format.data_files import require_there
from acidsql.format.directory import AcidState, acid_state
from acidsql.format.history import forget_changes
from acidsql.format.names import BaseName, DeltaName, is_staged, parse_directory, staging_txn, write_ids_of
from acidsql.metastore.model import (
    AbortedComponent,
    CompactionFilter,
    CompactionInfo,
    CompactionState,
    Table,
    is_marked,
)
from acidsql.partition_names import escape_path_name
from acidsql.plan.snapshot import new_partition
from acidsql.settings import (
    CHANGES_RETENTION,
    CLEANER_DELAYED,
    CLEANER_MAX_RETRIES,
    CLEANER_RETENTION,
    CLEANER_RETRY,
    STAGING_RETENTION,
    Settings,
)
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList

logger = logging.getLogger(__name__)

NO_CLEANUP = "no_cleanup"
"""Table property, in any letter case, that keeps obsolete files (Hive: ``MetaStoreUtils.isNoCleanUpSet``)."""


class Cleaner:
    """Removes obsolete and aborted files once no transaction can need them.

    VACUUM does this for a single table. Otherwise only DROP removes a table or partition, LOAD DATA the files that it
    has loaded, and a failed statement or compaction what it has written itself; nothing else removes files.

    After a compaction:

    1. Wait until every transaction that began before the commit of the compaction has ended, readers included.
    2. Remove what transactions that have ended left staged. One of them may only be suspended: what it has published is
       in the listing that follows, and it publishes nothing any more.
    3. List the directory as seen by all later transactions, up to the compaction's highest write id.
    4. Remove what is obsolete, and what only aborted transactions wrote.
    5. List it again; only then delete the records of those write ids in the store.

    After an aborted transaction steps 2 to 5 apply to its write ids only.

    From step 2 on the table or partition is locked as by a reader (:class:`CleanerLock`), and looked up again: DROP and
    RENAME wait. If others hold conflicting locks, it is left for the next round.
    """

    def __init__(self, context: WorkerContext) -> None:
        self._context = context

    def run(self, stop: threading.Event | None = None) -> int:
        """Run one round; returns how many compactions and aborted components were cleaned.

        Of a table or partition that has several compactions they are cleaned one after the other, in one round; Hive
        cleans one of them in a round, and does not keep up with a table that is compacted more often.

        Args:
            stop: When set, no further compaction is cleaned after.
        """
        metastore = self._context.metastore
        min_open = metastore.min_open_txn()
        done = self._clean_due(min_open, stop or threading.Event())
        for component in metastore.aborted_components():
            done += self._clean_component(component, min_open, self._clean_aborted)
        for component in metastore.aborted_compactions():
            done += self._clean_component(component, min_open, self._clean_aborted_compaction)
        metastore.clean_empty_aborted_txns()
        return done

    def _clean_component(
        self,
        component: AbortedComponent,
        min_open: int,
        clean: Callable[[AbortedComponent, int, CleanerLock], bool],
    ) -> bool:
        place = (component.database, component.table, component.partition)
        if component.min_txn >= min_open:  # an older open transaction may not know that it is aborted
            return False
        try:
            with CleanerLock(self._context, *place) as lock:
                return lock.is_free() and clean(component, min_open, lock)
        except SnapshotTooOld:  # a later base is the first one, and older readers cannot use it
            logger.info("cleaning of aborts in %s.%s waits for readers", component.database, component.table)
        except Exception as e:
            message = "aborted transactions in %s.%s could not be cleaned yet: %s"
            logger.warning(message, component.database, component.table, e, exc_info=not isinstance(e, AcidError))
        return False

    # --- after a compaction ------------------------------------------------------------------------------------------

    def _clean_due(self, min_open: int, stop: threading.Event) -> int:
        retention_ms, done = int(retention_of(self._context.settings) * 1000), 0
        kept: dict[tuple[str, str], float] = {}
        tried = set[int]()
        while due := [entry for entry in self._due(min_open, retention_ms) if entry.id not in tried]:
            for entry in due:
                if stop.is_set():
                    return done
                tried.add(entry.id)
                done += self._try_to_clean(entry, min_open, kept)
        return done

    def _try_to_clean(self, entry: CompactionInfo, min_open: int, kept: dict[tuple[str, str], float]) -> bool:
        """A failure does not block the other entries: this one is tried again later."""
        try:
            if self._is_kept(entry, kept):
                return False
            with CleanerLock(self._context, entry.database, entry.table, entry.partition) as lock:
                return lock.is_free() and self._clean_entry(entry, min_open, lock)
        except Exception as e:
            if not isinstance(e, AcidError):
                logger.exception("compaction %s of %s could not be cleaned", entry.id, place_of(entry))
            self._retry_later(entry, e.message if isinstance(e, AcidError) else repr(e))
            return False

    def _clean_entry(self, entry: CompactionInfo, min_open: int, lock: CleanerLock) -> bool:
        state = CompactionState.READY_FOR_CLEANING
        wanted = CompactionFilter(entry.id, entry.database, entry.table, entry.partition, state=state)
        if not self._context.metastore.show_compactions(wanted):  # cleaned, dropped or renamed before the lock
            return False
        try:
            return self._clean_compacted(entry, min_open, lock)
        except SnapshotTooOld:  # a later compaction wrote the first base: its cleaning removes everything
            logger.info("obsolete files of compaction %s of %s are left to a later one", entry.id, place_of(entry))
            self._context.metastore.mark_cleaned(entry.id, keep_aborted=True)
            return True

    def _clean_compacted(self, entry: CompactionInfo, min_open: int, lock: CleanerLock) -> bool:
        metastore = self._context.metastore
        table = self._current_table(entry.database, entry.table)
        locations = [] if table is None else list(self._locations(table, entry.partition))
        if table is None or not locations:
            metastore.mark_cleaned(entry.id, keep_aborted=True)  # the directory of a partition may still exist
            return True
        if keeps_all(table):
            metastore.mark_refused(entry.id, f"Table {table.full_name} is marked {NO_CLEANUP}: its files are kept")
            return False
        txns, write_ids = self._seen(table, min_open)
        partial = self._places_of(table, entry.partition) > set(locations)  # aborts are purged for all
        if entry.highest_write_id is not None:
            partial |= write_ids.high_watermark < entry.highest_write_id  # nor are those seen as aborted above it
            write_ids = write_ids.for_cleaning(entry.highest_write_id)
        self._require_there({table.location, *locations})
        self._remove_staged({table.location, *locations}, min_open, lock)
        for location in locations:
            state = self._state(table, location, write_ids, txns)
            self._forget_changes(table, state)
            self._remove(location, [*state.obsolete, *state.aborted], lock)
            left = self._state(table, location, write_ids, txns)
            if left.obsolete or left.aborted:
                self._retry_later(entry, f"some files of {place_of(entry)} could not be removed")
                return False
            partial |= left.has_partial_aborts
        lock.revalidate()
        metastore.mark_cleaned(entry.id, keep_aborted=partial)
        logger.info("compaction %s of %s is cleaned", entry.id, place_of(entry))
        return True

    def _due(self, min_open: int, retention_ms: int) -> list[CompactionInfo]:
        """All compactions that can be cleaned, those included whose files a property of the table keeps."""
        find, found, last = self._context.metastore.find_ready_to_clean, list[CompactionInfo](), 0
        while more := find(min_open, retention_ms, after=last):
            found += more
            last = more[-1].id
        return found

    def _is_kept(self, entry: CompactionInfo, known: dict[tuple[str, str], float]) -> bool:
        """Whether the table's property keeps the files that a compaction has replaced; ``known`` tells for how long."""
        place = entry.database, entry.table
        if place not in known:
            table = self._current_table(*place)
            known[place] = 0.0 if table is None else changes_retention(table)
        if not known[place] or entry.committed_ms is None:
            return False
        return entry.committed_ms / 1000 + known[place] > self._context.clock()

    def _retry_later(self, entry: CompactionInfo, message: str) -> None:
        """Retry after a pause that doubles; give up after some attempts."""
        metastore, settings = self._context.metastore, self._context.settings
        tries = entry.retries
        try:
            if tries >= settings.value(CLEANER_MAX_RETRIES):
                logger.error("cleaning after compaction %s of %s failed: %s", entry.id, place_of(entry), message)
                metastore.mark_failed(entry.id, message)
                return
            pause = settings.value(CLEANER_RETRY) * 2**tries
            logger.warning("cleaning after compaction %s of %s will be retried: %s", entry.id, place_of(entry), message)
            metastore.set_cleaner_retry(
                entry.id, retry_at_ms=int((self._context.clock() + pause) * 1000), message=message
            )
        except CompactionError as e:
            logger.info("compaction %s of %s was cleaned in the meantime: %s", entry.id, place_of(entry), e.message)

    # --- after an aborted transaction --------------------------------------------------------------------------------

    def _clean_aborted(self, component: AbortedComponent, min_open: int, lock: CleanerLock) -> bool:
        metastore = self._context.metastore
        place = (component.database, component.table, component.partition)
        table = self._current_table(component.database, component.table)
        if table is None:
            metastore.forget_aborted(*place, component.write_ids, component.txn_ids)
            return True
        if keeps_all(table):
            return False
        txns, write_ids = self._seen(table, min_open)
        known = component.write_ids.intersection(write_ids.aborted_ids)
        kept = False
        self._require_there({table.location, *self._locations(table, component.partition)})
        places = self._places_of(table, component.partition)
        self._remove_staged({table.location, *places}, min_open, lock)
        for location in places:
            state = self._state(table, location, write_ids, txns)
            self._remove(location, [path for path in state.aborted if write_ids_of(path) <= known], lock)
            left = self._state(table, location, write_ids, txns)
            kept |= left.has_partial_aborts or any(write_ids_of(path) & component.write_ids for path in left.aborted)
        if not kept and known == component.write_ids:
            lock.revalidate()
            metastore.forget_aborted(*place, component.write_ids, component.txn_ids)
        return not kept

    def _clean_aborted_compaction(self, component: AbortedComponent, min_open: int, lock: CleanerLock) -> bool:
        """Its directories carry its transaction's id, which is visible to no one."""
        metastore = self._context.metastore
        gone = [txn for txn in component.txn_ids if txn < min_open]
        table = self._current_table(component.database, component.table)
        if table is not None and keeps_all(table):
            return False
        places = set()
        if table is not None:
            self._require_there({table.location, *self._locations(table, component.partition)})
            places = self._places_of(table, component.partition)
        self._remove_staged(places, min_open, lock)
        for location in places:
            filesystem, path = fs.resolve(location)
            for entry in filesystem.list(path):
                name = parse_directory(entry.name) if entry.is_dir else None
                if name is not None and name.visibility_txn in gone:
                    self._remove(location, [entry.path], lock)
        lock.revalidate()
        # of a rebalance only that: it has written under a write id, too, whose files are not these
        metastore.forget_aborted_compactions(gone)
        return bool(gone)

    # --- files -------------------------------------------------------------------------------------------------------

    def _current_table(self, database: str, name: str) -> Table | None:
        """The table that currently has this name."""
        table = find_table(self._context.metastore, database, name)
        return table if table is not None and table.is_transactional else None

    def _seen(self, table: Table, min_open: int) -> tuple[ValidTxnList, ValidWriteIdList]:
        """The snapshot of all future readers: only transactions older than every open one."""
        now = self._context.metastore.get_valid_txns()
        top = min(now.high_watermark, min_open - 1)
        txns = ValidTxnList(top, (), tuple(txn for txn in now.aborted_ids if txn <= top))
        [write_ids] = self._context.metastore.get_valid_write_ids([table.full_name], txns)
        return txns, write_ids

    def _locations(self, table: Table, partition: str | None) -> Iterator[str]:
        if not table.partition_keys:
            yield table.location
            return
        names = None if partition is None else [partition]
        yield from (p.location for p in self._context.metastore.list_partitions(table.database, table.name, names))

    def _require_there(self, locations: Iterable[str]) -> None:
        """Raises: DirectoryGone."""
        for location in locations:
            require_there(*fs.resolve(location))

    def _places_of(self, table: Table, partition: str | None) -> set[str]:
        """All locations of a table or partition, registered or not: a killed INSERT or DROP PARTITION leaves a
        directory that may be registered (again) at any time."""
        locations = set(self._locations(table, partition))
        if not table.partition_keys:
            return locations
        return locations.union(self._below(table) if partition is None else [new_partition(table, partition).location])

    def _below(self, table: Table) -> Iterator[str]:
        """The directories below a table with partition names."""
        filesystem, path = fs.resolve(table.location)
        level = [path]
        for key in table.partition_keys:
            entries = (entry for parent in level for entry in filesystem.list(parent) if entry.is_dir)
            level = [e.path for e in entries if e.name.lower().startswith(f"{escape_path_name(key.name)}=")]
        yield from level

    def _state(self, table: Table, location: str, write_ids: ValidWriteIdList, txns: ValidTxnList) -> AcidState:
        filesystem, path = fs.resolve(location)
        return acid_state(filesystem, path, write_ids, txns, any_file_name=table.is_insert_only)

    def _forget_changes(self, table: Table, state: AcidState) -> None:
        """Make a note that no one will find what a state's obsolete files tell and what replaces them does not: a base,
        and in an insert-only table, whose rows do not tell who wrote them, a compacted delta."""
        replacing = [] if state.base is None else [state.base.name]
        if table.is_insert_only:
            replacing += [delta.name for delta in state.deltas]
        last = max((n.write_id if isinstance(n, BaseName) else _last_of_several(n) for n in replacing), default=0)
        if state.obsolete and last > 0:
            forget_changes(*fs.resolve(state.path), last)

    def _remove(self, location: str, paths: list[str], lock: CleanerLock) -> None:
        filesystem, _ = fs.resolve(location)
        for path in paths:
            lock.revalidate()
            logger.debug("removing %s", path)
            filesystem.delete(path)

    def _remove_staged(self, locations: Iterable[str], min_open: int, lock: CleanerLock) -> None:
        """Remove what transactions that have ended have not published."""
        for location in locations:
            filesystem, path = fs.resolve(location)
            self._remove(location, [e.path for e in filesystem.list(path) if was_staged(e.name, min_open)], lock)

    def sweep_staging(self) -> int:
        """Remove staging directories of dead writers; returns how many."""
        metastore, removed = self._context.metastore, 0
        min_open = metastore.min_open_txn()
        oldest = self._context.clock() - self._context.settings.value(STAGING_RETENTION)
        for database in metastore.list_databases():
            for name in metastore.list_tables(database):
                try:
                    removed += self._sweep_table(database, name, oldest, min_open)
                except Exception as e:
                    message = "staging directories of %s.%s could not be removed yet: %s"
                    logger.warning(message, database, name, e, exc_info=not isinstance(e, AcidError))
        return removed

    def _sweep_table(self, database: str, name: str, oldest: float, min_open: int) -> int:
        """Locks the table only if there is something to remove, which is rare."""
        table = self._current_table(database, name)
        if table is None or not any(
            self._stale_staging(place, oldest, min_open) for place in self._all_locations(table)
        ):
            return 0
        with CleanerLock(self._context, database, name) as lock:
            table = self._current_table(database, name) if lock.is_free() else None
            if table is None:
                return 0
            return sum(self._sweep(place, oldest, min_open, lock) for place in self._all_locations(table))

    def _all_locations(self, table: Table) -> set[str]:
        return {table.location, *self._locations(table, None)}

    def _sweep(self, location: str, oldest: float, min_open: int, lock: CleanerLock) -> int:
        stale = self._stale_staging(location, oldest, min_open)
        self._remove(location, stale, lock)
        return len(stale)

    def _stale_staging(self, location: str, oldest: float, min_open: int) -> list[str]:
        """Staging directories of transactions below ``min_open``, which have ended, and those without a write since
        ``oldest``, in seconds since 1970."""
        filesystem, path = fs.resolve(location)
        return [
            entry.path
            for entry in filesystem.list(path)
            if is_staged(entry.name)
            and (was_staged(entry.name, min_open) or newest_below(filesystem, entry) < oldest * 1e9)
        ]


def was_staged(name: str, min_open: int) -> bool:
    """Whether a directory is a staging directory of a transaction that has ended."""
    txn_id = staging_txn(name)
    return txn_id is not None and txn_id < min_open


def retention_of(settings: Settings) -> float:
    """How long files that a compaction has replaced are kept by the settings, in seconds."""
    delay = settings.value(CLEANER_RETENTION) if settings.value(CLEANER_DELAYED) else 0.0
    return max(delay, settings.value(CHANGES_RETENTION))


def changes_retention(table: Table) -> float:
    """How long files that a compaction has replaced are kept by a table's own property, in seconds.

    One that cannot be read keeps them for ever.
    """
    given = next((v for k, v in table.parameters.items() if k.lower() == CHANGES_RETENTION.name), None)
    if given is None:
        return 0.0
    try:
        return CHANGES_RETENTION.parse(given)
    except ValueError:
        logger.warning("%s of %s is no duration: %s", CHANGES_RETENTION.name, table.full_name, given)
        return math.inf


def keeps_all(table: Table) -> bool:
    """Whether a table is marked :data:`NO_CLEANUP`."""
    return is_marked(table.parameters, NO_CLEANUP)


def newest_below(filesystem: fs.FileSystem, entry: fs.FileStatus) -> int:
    """The time of the last write below a directory."""
    if not entry.is_dir:
        return entry.modified_ns
    return max([entry.modified_ns, *(newest_below(filesystem, below) for below in filesystem.list(entry.path))])


def _last_of_several(name: DeltaName) -> int:
    """The last write id of a delta of several; 0 for one of a single write id."""
    return name.max_write_id if name.min_write_id < name.max_write_id else 0
