"""What one statement sees: names, partitions, write ids and files, all looked up inside its transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

from acidsql import fs
from acidsql.catalyst import CurrentValues
from acidsql.commands.environment import Environment
from acidsql.commands.resolve.names import AcidTable, Missing, Resolved, SparkTable, View, resolve
from acidsql.compactor.rename_journal import finish_moves
from acidsql.errors import AcidError, InvalidValue, SnapshotTooOld, TableNotFound, TransactionError, WriteConflict
from acidsql.metastore.model import (
    BUCKETING_VERSION,
    TRANSACTIONAL,
    TRANSACTIONAL_PROPERTIES,
    CompactionFilter,
    CompactionState,
    CompactionType,
    Partition,
    Table,
)
from acidsql.metastore.protocol import Metastore
from acidsql.plan.feed_history import (
    Changes,
    PlaceHistory,
    TableHistory,
    place_history,
    range_of,
    require_changes,
    segments_of,
)
from acidsql.plan.history import require_history
from acidsql.plan.snapshot import PartitionState, Resolve, TableSnapshot, partition_names, take_snapshot
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList

if TYPE_CHECKING:
    from acidsql.commands.resolve.before import SeenBefore

T = TypeVar("T")

_LOOKS, _BETWEEN_LOOKS = 20, 0.1
"""How often changes are looked for again while a compaction runs, and seconds between two looks."""
_ESSENTIAL = (TRANSACTIONAL, TRANSACTIONAL_PROPERTIES, BUCKETING_VERSION, "external")


class StartOver(TransactionError):
    """What a statement was planned on changed before it had its locks or files: it restarts in a new transaction."""


class SnapshotOutdated(StartOver):
    """The snapshot does not see what others have committed, which the statement would have to see."""

    def as_conflict(self, *, is_over: bool = False) -> WriteConflict:
        """The same for whoever cannot run again by himself: what he has done before would be lost.

        Args:
            is_over: Whether it ends the transaction, as in a COMMIT.
        """
        return WriteConflict(
            f"{self.message}: the transaction cannot change what another one has changed since its snapshot",
            hint="Run it again." if is_over else "ROLLBACK, and run it again.",
        )


@contextmanager
def in_conflict() -> Iterator[None]:
    """Raises: WriteConflict instead of SnapshotOutdated."""
    try:
        yield
    except SnapshotOutdated as e:
        raise e.as_conflict() from e


class DefinitionChanged(StartOver):
    """Of a table or partition: whoever does that may do it many times in a row."""


def pause_before(attempt: int) -> None:
    """Let those who change definitions go first: not at once again and again, but after 0, 0.1, 0.3, 0.9 … seconds."""
    if attempt > 1:
        time.sleep(0.1 * 3 ** (attempt - 2))


def essence(table: Table) -> Table:
    """The parts of a table that a plan depends on, without the statistics that Hive keeps in its properties."""
    parameters = {k: v for k, v in table.parameters.items() if k.lower() in _ESSENTIAL}
    return replace(table, parameters=parameters, comment=None)


@dataclass(frozen=True)
class StatementSnapshot:
    """What a statement sees.

    Attributes:
        txns: The transactions.
        version: The latest version of any table, from before; None where the store does not count. A table of a later
            one was changed by others since then, and rows that they have written first are not seen: it does not fit.
        own: The write ids of the statement's transaction, from its earlier statements, by the tables' full names.
        before: What its earlier statements have seen, where the store does not count changes.
    """

    txns: ValidTxnList
    version: int | None = None
    own: Mapping[str, int] = field(default_factory=dict)
    before: SeenBefore | None = None


class StatementContext:
    """The names, partitions and files that one statement uses, each looked up once.

    A reader's context has a snapshot from the beginning: its transaction was opened first. A writer's is created
    once its transaction is open, to determine the locks; when it holds them it looks everything up again
    (:meth:`revalidate`), and only then takes its snapshot.

    While the transaction is open, no file that the snapshot needs is removed.
    """

    def __init__(
        self,
        env: Environment,
        snapshot: StatementSnapshot | None = None,
        *,
        resolve: Resolve = fs.resolve,
        own_file: Callable[[Table], str | None] = lambda table: None,
        now: CurrentValues | None = None,
    ) -> None:
        """
        Args:
            env: The session.
            snapshot: What it sees, if that is known already.
            resolve: Returns the file system of a location.
            own_file: A file that the transaction has written into a table: rows that are read outside of it, after its
                end, are there as long as that is.
            now: What is current, if that is known already.
        """
        self.own_file = own_file
        self._now = now
        self.env = env
        self._resolve = resolve
        self._snapshot = snapshot
        self._is_locked = False
        self._names: dict[tuple[str | None, str | None, str], Resolved] = {}
        self._records: dict[str, Table] = {}  # as the store had them when they were last looked up
        self._partitions: dict[str, tuple[Partition, ...]] = {}
        self._write_ids: dict[str, ValidWriteIdList] = {}
        self._added: dict[str, Table] = {}

    @cached_property
    def now(self) -> CurrentValues:
        """The current time and database of all plans of the statement."""
        return self._now or self.env.current_values()

    @property
    def snapshot(self) -> StatementSnapshot:
        """What the statement sees."""
        assert self._snapshot is not None, "the snapshot is taken after the locks"
        return self._snapshot

    def resolve(self, table: str, database: str | None = None, catalog: str | None = None) -> Resolved:
        """Resolve a name in this statement.

        Raises:
            TableNotFound: For a name alone that Spark would look for in a database that is not the current one.
            StartOver: When it is that of a table that was changed after the snapshot.
        """
        key = (catalog, database, table)
        if key not in self._names:
            self._names[key] = self._look_up(key)
        found, current = self._names[key], self.env.database
        if isinstance(found, Missing) and database is None and catalog is None and not self.env.database_in_spark:
            raise TableNotFound(
                f"Table not found {current}.{table}",
                hint=f"Spark has no database {current}: its own tables need their database's name in front.",
            )
        return found

    def _look_up(self, key: tuple[str | None, str | None, str]) -> Resolved:
        catalog, database, table = key
        found = resolve(self.env, table, database, catalog, ask_spark=False)
        if isinstance(found, AcidTable | View):
            self._looked_up(found.table)
        return found

    def _looked_up(self, table: Table) -> None:
        """Raises: StartOver."""
        latest = None if self._snapshot is None else self._snapshot.version
        if latest is not None and table.version > latest:
            raise DefinitionChanged(
                f"Table {table.full_name} was changed after the snapshot that it is read with", hint="Run it again."
            )
        if self._snapshot is not None and self._snapshot.before is not None:
            self._snapshot.before.require_table(table)
        self._records[table.full_name] = table

    @property
    def tables(self) -> list[Table]:
        """The tables and views that were looked up."""
        return list(self._records.values())

    def is_ours(self, table: str, database: str | None = None, catalog: str | None = None) -> bool:
        """Whether the metastore has a table (of any kind) or view of this name."""
        found = self.resolve(table, database, catalog)
        return isinstance(found, AcidTable | View | SparkTable)

    def add(self, table: Table) -> None:
        """Add a table that was looked up elsewhere to those that are revalidated. Raises: StartOver, as above."""
        self._looked_up(table)
        self._added[table.full_name] = table

    def partitions(self, table: Table) -> tuple[Partition, ...] | None:
        """The partitions of a table; None for one without partition keys. Raises: StartOver, as :meth:`resolve`."""
        if not table.partition_keys:
            return None
        if table.full_name not in self._partitions:
            listed = self.env.metastore.list_partitions(table.database, table.name)
            if self._snapshot is not None and self._snapshot.before is not None:
                self._snapshot.before.require_partitions(table, listed)
            counts = self._snapshot is not None and self._snapshot.version is not None
            if self._is_locked and counts:  # whoever adds a partition with rows, under a shared lock, changes the table
                now = self.env.metastore.find_table(table.database, table.name)
                if now is not None:
                    self._looked_up(now)
            seen = None if self._snapshot is None else self._snapshot.txns
            self._partitions[table.full_name] = tuple(p for p in listed if seen is None or p.is_seen(seen))
        return self._partitions[table.full_name]

    def revalidate(self, snapshot: StatementSnapshot) -> None:
        """Look everything up again, now that the locks are held, over this snapshot.

        Partitions may have been added or dropped: callers must select partitions again.

        Raises:
            StartOver: When a name resolves differently than before, or a table was changed since the snapshot.
        """
        self._snapshot, self._is_locked = snapshot, True
        listed = set(self._partitions)
        self._partitions.clear()
        for key, before in self._names.items():
            if not _same(before, self._look_up(key)):
                message = f"{key[-1]} was changed while this statement waited for its locks"
                raise DefinitionChanged(message, hint="Run it again.")
        metastore = self.env.metastore
        for name, known in self._added.items():
            found = metastore.find_table(known.database, known.name)
            now = None if found is None else finish_moves(metastore, found)
            if now is None or essence(now) != essence(known):
                message = f"Table {name} was changed while this statement waited for its locks"
                raise DefinitionChanged(message, hint="Run it again.")
            self._looked_up(now)
        if snapshot.before is not None:  # also where none is left that the statement would look at
            for table in self.tables:
                if table.full_name in listed:
                    self.partitions(table)

    def table_snapshot(
        self, table: Table, partitions: Sequence[Partition] | None, version: int | None = None
    ) -> TableSnapshot:
        """A table with the given partitions (None for a table without partition keys), as of a write id where given.

        Raises:
            InvalidValue: When the table has no such write id.
            SnapshotTooOld: When files that this needs no longer exist (Hive 10327).
            StartOver: As :meth:`unchanged`.
        """
        with self.unchanged(table, partitions):
            return self._table_snapshot(table, partitions, version)

    def _table_snapshot(
        self, table: Table, partitions: Sequence[Partition] | None, version: int | None
    ) -> TableSnapshot:
        valid = self.write_ids(table)
        if version is None:
            seen = take_snapshot(table, valid, self.snapshot.txns, partitions, resolve=self._resolve, is_pinned=True)
            if self.snapshot.before is not None:
                self.snapshot.before.require_files(seen, self.snapshot.own.get(table.full_name))
            return seen
        if self.snapshot.before is not None:
            self._table_snapshot(table, partitions, None)  # it says where files have gone
        if not 0 <= version <= valid.high_watermark:
            raise InvalidValue(
                f"Table {table.full_name} has no version {version}: its write ids go from 0 to {valid.high_watermark}"
            )
        try:
            seen = take_snapshot(table, valid.as_of(version), self.snapshot.txns, partitions, resolve=self._resolve)
        except SnapshotTooOld as e:
            if table.is_insert_only:  # its rows do not tell who wrote them
                raise
            try:
                seen = self._looking_again(table, lambda: self._before_compactions(table, partitions, version))
            except SnapshotTooOld:
                raise e from None
        completed = partial(self.env.metastore.completed_writes, table.database, table.name)
        require_history(seen, completed, resolve=self._resolve)
        return seen

    def _before_compactions(self, table: Table, partitions: Sequence[Partition] | None, version: int) -> TableSnapshot:
        """A table as of a write id, from the files that later compactions have replaced.

        Raises:
            SnapshotTooOld: When some may have been removed (Hive 10327).
        """
        found = self._place_histories(table, partitions, version + 1, version)
        parts = tuple(PartitionState(place.partition, state) for place in found for state in place.states.values())
        return TableSnapshot(table, self.write_ids(table).as_of(version), parts)

    def table_history(self, table: Table, partitions: Sequence[Partition] | None, changes: Changes) -> TableHistory:
        """What happened to a table, with the given partitions as above.

        Raises:
            InvalidValue: When the table has no such write ids, or one of them is open.
            SnapshotTooOld: When files that this needs may have been removed (Hive 10327).
            UnsupportedError: When the rows of the table do not tell who wrote them.
            StartOver: As :meth:`unchanged`.
        """
        return self._looking_again(table, lambda: self._table_history(table, partitions, changes))

    def _table_history(self, table: Table, partitions: Sequence[Partition] | None, changes: Changes) -> TableHistory:
        with self.unchanged(table, partitions):
            if self.snapshot.before is not None:
                self._table_snapshot(table, partitions, None)  # it says where files have gone
            valid = self.write_ids(table)
            first, last = range_of(table, changes, valid, self.snapshot.own.get(table.full_name))
            found = self._place_histories(table, partitions, first, last)
        records = self.env.metastore.completed_writes(table.database, table.name) or []
        committed_at = {w.write_id: w.committed_at for w in records if first <= w.write_id <= last}
        return TableHistory(table, changes, valid, segments_of(table, valid, found), committed_at)

    def _looking_again(self, table: Table, look: Callable[[], T]) -> T:
        """Look for what compactions have replaced, again while one runs: its base may be there already, while it has
        not told that yet. Raises: SnapshotTooOld."""
        for _ in range(_LOOKS):
            try:
                return look()
            except SnapshotTooOld:
                if not _is_being_compacted(self.env.metastore, table):
                    raise
            time.sleep(_BETWEEN_LOOKS)
        return look()

    def _place_histories(
        self, table: Table, partitions: Sequence[Partition] | None, first: int, last: int
    ) -> tuple[PlaceHistory, ...]:
        """What there is of the history of each directory. Raises: SnapshotTooOld where files may be missing."""
        places: list[tuple[str, Partition | None]] = [(table.location, None)]
        if partitions is not None:
            places = [(p.location, p) for p in partitions]
        valid = self.write_ids(table)
        seen = partial(place_history, write_ids=valid, txns=self.snapshot.txns, first=first, last=last)
        found = tuple(fs.side_by_side(lambda at: seen(*at, resolve=self._resolve), places, table.location))
        require_changes(table, found, first, last, _waiting(self.env.metastore, table))
        return found

    def write_ids(self, table: Table) -> ValidWriteIdList:
        """The write ids of a table that this snapshot sees, to be looked up while it is :meth:`unchanged`."""
        if table.full_name not in self._write_ids:
            [self._write_ids[table.full_name]] = self.env.metastore.get_valid_write_ids(
                [table.full_name], self.snapshot.txns
            )
        return self._write_ids[table.full_name]

    @contextmanager
    def unchanged(self, table: Table, partitions: Sequence[Partition] | None = None) -> Iterator[None]:
        """List a table's directories in this block: they are where they were, from the lookup to the block's end.

        Readers take no locks (where a writer holds them, nothing is checked), and a table may be renamed, dropped or
        made anew at any time. But its record in the store is changed before its directories are: where that is still
        the one that the statement looked up, nothing had gone when it was listed.

        Args:
            table: The table; a statement that adds columns to it has a record of its own.
            partitions: Those that are listed, as this statement has looked them up.

        Raises:
            StartOver: When the table, or the place of a partition, has changed: also in the place of the block's error,
                which is a consequence then.
        """
        try:
            yield
        except AcidError as e:
            self._require_same(table, partitions, e)
            raise
        self._require_same(table, partitions)

    def _require_same(
        self, table: Table, partitions: Sequence[Partition] | None, cause: AcidError | None = None
    ) -> None:
        if self._is_locked:
            return
        metastore, known = self.env.metastore, self._records.get(table.full_name, table)
        now = metastore.find_table(table.database, table.name)
        same = now is not None and now.version == known.version and essence(now) == essence(known)
        if same and partitions and not metastore.capabilities.versions_places:
            names = [partition_names(table, p) for p in partitions]
            same = set(partitions) <= set(metastore.list_partitions(table.database, table.name, names))
        if not same:
            message = f"Table {table.full_name} was changed, renamed, moved or dropped while the statement started"
            raise DefinitionChanged(message, hint="Run it again.") from cause


def _waiting(metastore: Metastore, table: Table) -> dict[str, set[int]] | None:
    """By partition, up to which write ids there are compactions whose cleaning is still to come, but for those that
    have given rows other ids. None where others clean, too."""
    if metastore.capabilities.is_shared_with_hive:
        return None
    waiting: dict[str, set[int]] = {}
    state = CompactionState.READY_FOR_CLEANING
    for entry in metastore.show_compactions(CompactionFilter(database=table.database, table=table.name, state=state)):
        if entry.type is not CompactionType.REBALANCE and entry.highest_write_id is not None:
            waiting.setdefault(entry.partition or "", set()).add(entry.highest_write_id)
    return waiting


def _is_being_compacted(metastore: Metastore, table: Table) -> bool:
    state = CompactionState.WORKING
    wanted = CompactionFilter(database=table.database, table=table.name, state=state)
    return not metastore.capabilities.is_shared_with_hive and bool(metastore.show_compactions(wanted))


def _same(before: Resolved, now: Resolved) -> bool:
    if isinstance(before, AcidTable) and isinstance(now, AcidTable):
        return essence(before.table) == essence(now.table)
    return before == now
