"""The transaction of statements that write: locks, snapshot, write ids, publishing. :mod:`.run` opens and ends it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from acidsql import fs
from acidsql.commands.ddl.created_directory import created_directories
from acidsql.commands.environment import Environment
from acidsql.commands.resolve.before import SeenBefore
from acidsql.commands.resolve.context import SnapshotOutdated, StartOver, StatementSnapshot, essence
from acidsql.commands.transaction import outcome
from acidsql.commands.transaction.former_rows import refuse_former_rows
from acidsql.commands.transaction.held_locks import HeldLocks, excluding
from acidsql.commands.transaction.unseen import (
    require_all_seen,
    require_not_hidden,
    require_places_seen,
    require_rows_seen,
    snapshot_of,
)
from acidsql.compactor.dropped import free_places
from acidsql.compactor.rename_journal import finish_moves
from acidsql.errors import (
    NoSuchTransaction,
    StorageError,
    TransactionAborted,
    TransactionError,
    UnsupportedError,
)
from acidsql.format.bucket import MAX_STATEMENT_ID
from acidsql.format.unseen import Snapshot
from acidsql.interrupts import Deferred
from acidsql.metastore.model import (
    CHANGES,
    LockComponent,
    Operation,
    Partition,
    RowChange,
    Table,
    TableChanges,
)
from acidsql.metastore.waiting import wait_for_earlier_writers
from acidsql.plan.snapshot import new_partition, partition_names
from acidsql.plan.staging import Staging
from acidsql.plan.target import Target
from acidsql.row_set import RowSet
from acidsql.settings import SYNC, WRITE_CONFLICT_ROWS
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList


@dataclass(frozen=True)
class Savepoint:
    """How much a transaction had done before a statement."""

    stagings: int
    written: int
    overwritten: frozenset[tuple[str, str]]
    deleted: Mapping[str, RowSet | None]


@dataclass
class WriteTransaction:
    """A transaction that holds its locks. Its snapshot is taken after they were granted (rule 4)."""

    env: Environment
    id: int
    has_several_statements: bool = False
    """Whether it is one of a session: its snapshot is that of its first statement, and its statements are numbered."""
    stagings: list[Staging] = field(default_factory=list)
    _named: set[Staging] = field(default_factory=set)
    """Those whose partitions the store was told."""
    _named_in: set[str] = field(default_factory=set)
    """The tables of which it was told some."""
    is_aborted: bool = False
    """Whether the metastore has confirmed the abort."""
    may_be_committed: bool = False
    """Whether its commit was asked for, whatever came of it: what it has published is not to be removed before the
    metastore says that it is aborted."""
    is_committed: bool = False
    """Whether the store has answered that it is committed."""
    _txns: ValidTxnList | None = None
    _version: int | None = None
    """The latest version of a table before that snapshot."""
    _first_txns: ValidTxnList | None = None
    """The first snapshot, where there are several."""
    _write_ids: dict[str, int] = field(default_factory=dict)
    _has_waited_in: set[str] = field(default_factory=set)
    """The tables of which nobody has a lower write id open any more."""
    _allocated_before: frozenset[str] = frozenset()
    """The tables of which an earlier statement has allocated the write id."""
    _written: list[tuple[Table, tuple[str, ...], dict[str, RowChange]]] = field(default_factory=list)
    """What it has published: the table, the partitions, and how many rows; statistics of what is never committed would
    stay wrong."""
    _next_statement: int = 0
    _overwritten: frozenset[tuple[str, str]] = frozenset()
    """Tables and partitions in which a base hides all that it has written, and will write."""
    is_by_rows: bool = False
    """Whether a conflict may have been about rows."""
    _opened: float = field(default_factory=time.monotonic)
    _before: SeenBefore | None = None
    _deleted: dict[str, RowSet | None] = field(default_factory=dict)
    """The rows that it has deleted, by table; None where they do not tell all that it has replaced."""
    locks: HeldLocks = field(init=False)

    def __post_init__(self) -> None:
        self.locks = HeldLocks(self.env, self.id)

    def lock(self, components: Sequence[LockComponent], *, by_rows: bool = False) -> None:
        """Wait for locks. The snapshot is taken afterwards.

        In a transaction of several statements it is taken at once: what is looked up from here on, such as partitions,
        is not older than what is seen, whoever may insert meanwhile.

        Args:
            components: What is locked.
            by_rows: Whether what is changed is told by the rows that are deleted, where the session compares rows.

        Raises:
            LockTimeout: When they are not granted in time.
            StartOver: When another transaction has changed what is now locked, and the snapshot of an earlier statement
                does not see it. On a Hive Metastore also where the commit would find a conflict, or may: it compares
                others with the id of this transaction, and not with what it has seen.
        """
        if components:
            self._wait_for(components, by_rows)
        if self.has_several_statements:
            self._take_snapshot()

    def _wait_for(self, components: Sequence[LockComponent], by_rows: bool) -> None:
        env = self.env
        by_rows = by_rows and env.compares_rows
        self.is_by_rows |= by_rows
        if by_rows and self.locks.has_lost:
            components = [excluding(c) for c in components]
        for table in {f"{c.database}.{c.table}" for c in components if c.operation in CHANGES}:
            self._deleted[table] = self._deleted.get(table, RowSet()) if by_rows else None
        wanted = self.locks.missing(components)
        self.locks.wait_for(wanted)
        if not self.has_several_statements:
            self._txns = None  # an earlier statement's
        if env.metastore.capabilities.is_shared_with_hive:
            self._require_no_conflict_of_hives(components, wanted)
        elif self._first_txns is not None:
            told = () if self.locks.has_lost else [table for table, rows in self._deleted.items() if rows is not None]
            conflict = env.metastore.get_latest_txn_in_conflict(self.id, self._first_txns, by_rows=told)
            if conflict is not None:
                self.locks.were_outdated(wanted)
                raise SnapshotOutdated(f"The snapshot was outdated by transaction {conflict}")

    def _require_no_conflict_of_hives(
        self, components: Sequence[LockComponent], wanted: Sequence[LockComponent]
    ) -> None:
        metastore, seen = self.env.metastore, self._txns
        conflict = metastore.get_latest_txn_in_conflict(self.id, seen)
        if conflict is not None and seen is None and self.locks.shares:
            raise SnapshotOutdated(f"The commit would find a conflict with transaction {conflict}")
        if not any(c.operation in CHANGES for c in self.locks.components):
            return
        is_told = conflict is not None and (conflict > self.id or seen is not None)
        # a single statement that its commit might find in conflict with somebody later begins anew, later than him
        seen = self.valid_txns if self.has_several_statements else metastore.get_valid_txns(self.id)
        # what it has locked before cannot have been rebalanced since
        require_rows_seen(metastore, wanted, seen, is_told=is_told)
        held = [c for c in (self.locks.components if is_told else components) if c not in wanted]
        require_rows_seen(metastore, held, seen)

    def start_over(self, reason: str) -> NoReturn:
        """Raises: StartOver."""
        raise StartOver(reason, hint="Run it again.")

    def require_all_seen(self, table: Table) -> None:
        """As :func:`.unseen.require_all_seen`, for its snapshot.

        Where its lock has let others write, it keeps them out when it runs again: they might do so each time.
        """
        self.locks.excluded_next.add(table.full_name)
        require_all_seen(self.env.metastore, table, self.valid_txns)

    def require_places_seen(self, table: Table, names: Sequence[str]) -> None:
        """As :meth:`require_all_seen`, of partitions that are there."""
        found = self.env.metastore.list_partitions(table.database, table.name, list(names))
        self._require_seen_at(table, [p.location for p in found])

    def _require_seen_at(self, table: Table, locations: Sequence[str]) -> None:
        self.locks.excluded_next.add(table.full_name)
        require_places_seen(self.env.metastore, table, locations, self.valid_txns)

    @property
    def valid_txns(self) -> ValidTxnList:
        """The single snapshot of this statement.

        It is that of the moment: the statement may have waited, and a list that ended at its own id, as Hive's does,
        would have who has committed last, but none of those who have begun later and committed before.
        """
        return self._take_snapshot()

    def _take_snapshot(self) -> ValidTxnList:
        """It is taken once, for all statements of the transaction where it has several."""
        if self._txns is None:
            self._version = self.env.metastore.latest_version()
            self._txns = self.env.metastore.get_valid_txns().with_own(self.id)
            self._first_txns = self._first_txns or self._txns
        return self._txns

    @property
    def snapshot(self) -> StatementSnapshot:
        """The same, for a :class:`StatementContext`."""
        txns = self.valid_txns
        if self._version is None and self.has_several_statements and self._before is None:
            since = time.monotonic() - self._opened
            self._before = SeenBefore(lambda: self._started_ms() + int(since * 1000), self._committed)
        return StatementSnapshot(txns, self._version, dict(self._write_ids), self._before)

    def _started_ms(self) -> int:
        """When it was opened, by the clock of the store."""
        return next((one.started_ms for one in self.env.metastore.show_txns() if one.id == self.id), 0)

    def _committed(self, table: str) -> Snapshot:
        """What is committed to a table by now."""
        return snapshot_of(self.env.metastore, table, self.env.metastore.get_valid_txns())

    def revalidate(self, table: Table, partitions: Sequence[Partition] | None = None) -> None:
        """Check that a table that was resolved before the locks were granted is still the same.

        Its comment and most of its properties may differ: Hive keeps statistics in them and updates them at each write.

        Args:
            table: The table.
            partitions: Partitions that were resolved too: their locations must not have changed.

        Raises:
            TableNotFound: When it was dropped while this statement waited.
            TransactionError: When it was altered or recreated.
        """
        metastore = self.env.metastore
        now = finish_moves(metastore, metastore.get_table(table.database, table.name))
        same = essence(now) == essence(table)
        if same and partitions:
            names = [partition_names(table, p) for p in partitions]
            same = set(partitions) <= set(metastore.list_partitions(table.database, table.name, names))
        if not same:
            raise TransactionError(
                f"Table {table.full_name} was changed while this statement waited for its locks", hint="Run it again."
            )

    def target(self, table: Table, *, overwrite: bool = False, statements: int = 1, compression: str = "") -> Target:
        """Where a statement writes to a table.

        Args:
            table: The table.
            overwrite: Whether a base hides all that is there.
            statements: How many numbers of statements it needs: :attr:`Target.next` are the further ones.
            compression: How files are compressed; as the table's are, when left out.

        Raises:
            LockTimeout: When whom a base might hide has not ended in time.
            TransactionError: When the transaction has no numbers left.
        """
        if overwrite:
            self.exclude_writers(table)
        first = self._next_statement
        if first + statements > MAX_STATEMENT_ID + 1:
            raise TransactionError(
                f"A transaction has at most {MAX_STATEMENT_ID + 1} statements that write", hint="Commit it before."
            )
        self._next_statement += statements
        chosen = compression or self.env.compression_of(table)
        return Target(table, self.allocate_write_id(table), chosen, first, overwrite)

    def exclude_writers(self, table: Table) -> None:
        """Wait until all who have lower write ids in a table have ended: a base would hide what they are writing.

        Raises:
            Deadlock: When one of them waits for a lock of this transaction's, or for somebody who does.
            LockTimeout: When one is still open after ``acidsql.lock.timeout``.
        """
        env = self.env
        if table.full_name not in self._has_waited_in and self.locks.may_write_beside(table):
            wait_for_earlier_writers(env.metastore, env.settings, table, self.allocate_write_id(table), self.id)
            self._has_waited_in.add(table.full_name)

    def replaces_rows_of(self, table: Table) -> bool:
        """Whether a statement that replaces all rows deletes each of them: a base would hide what comes after it."""
        return self.has_several_statements and table.is_full_acid

    def allocate_write_id(self, table: Table) -> int:
        """The write id in a table; allocated after the snapshot, or deletes could miss rows (Hive's ``Driver``)."""
        if table.full_name not in self._write_ids:
            write_id = self.env.metastore.allocate_table_write_id(self.id, table.database, table.name)
            self._write_ids[table.full_name] = write_id
        return self._write_ids[table.full_name]

    def valid_write_ids(self, table: Table) -> ValidWriteIdList:
        """The write ids of a table that this statement's snapshot sees."""
        [write_ids] = self.env.metastore.get_valid_write_ids([table.full_name], self.valid_txns)
        return write_ids

    def invalidate_caches(self, table: Table) -> None:
        """Make other engines on a Hive Metastore notice added or dropped partitions.

        HiveServer2 caches a table's partitions by its valid write ids (HIVE-23949): without a new write id it does not
        see the change. No row is written under this write id.
        """
        if self.env.metastore.capabilities.is_shared_with_hive:
            self.allocate_write_id(table)

    def stage(self, table: Table) -> Staging:
        """A staging area, removed if the transaction does not commit.

        Raises:
            DirectoryGone: When the table's directory is away.
        """
        sync = self.env.settings.value(SYNC)
        staging = Staging(table, self.id, sync=sync)
        self.stagings.append(staging)
        return staging

    def _stagings_of(self, table: Table) -> list[Staging]:
        return [staging for staging in self.stagings if staging.table.full_name == table.full_name]

    def name_partitions(self, table: Table, staging: Staging, *, as_changes: bool = False) -> None:
        """Report the operation on each partition written to, where the locks could not name them.

        All of a statement are named before the first file is published. The store puts them in the place of the whole
        table: a partition that it is not told of is not cleaned when the transaction aborts, and what is published
        there would be seen one day. So those are named, too, that earlier statements have written to under a lock of
        the whole table. A partition with deleted or replaced rows counts as changed, whatever else was written; with
        ``as_changes`` each one does.
        """
        unnamed = [other for other in self._stagings_of(table) if other not in self._named]
        if staging not in unnamed:
            return
        self._named.update(unnamed)
        changed, names = set[str](), set[str]()
        for other in unnamed:
            names.update(other.partitions)
            for name, done in other.changes.items():
                if done.deleted or done.overwrites or (as_changes and other is staging):
                    changed.add(name)
        for operation, some in ((Operation.UPDATE, sorted(changed)), (Operation.INSERT, sorted(names - changed))):
            if some:
                self._named_in.add(table.full_name)
                write_id = self.allocate_write_id(table)
                self.env.metastore.add_dynamic_partitions(
                    self.id, write_id, table.database, table.name, some, operation
                )

    def publish(
        self,
        table: Table,
        staging: Staging,
        *,
        dynamic: bool = False,
        as_changes: bool = False,
    ) -> None:
        """Move the staged directories to the table or its partitions, registering new partitions.

        Args:
            table: The table.
            staging: The staging area.
            dynamic: Whether the locks could not name the partitions: see :meth:`name_partitions`.
            as_changes: As there.

        Raises:
            StartOver: When one was registered elsewhere meanwhile.
        """
        metastore, names = self.env.metastore, staging.partitions
        self._refuse_hidden(table, staging)
        known = metastore.list_partitions(table.database, table.name, names) if table.partition_keys else []
        locations = {partition_names(table, p): p.location for p in known}
        new = [new_partition(table, name) for name in names if name not in locations] if table.partition_keys else []
        made = [*new, *(p for p in known if not p.exists)]
        added = [p for p in made if not p.is_of(self.id)]
        if new:  # the remains of a killed DROP PARTITION must not reappear
            free_places(metastore, [p.location for p in new])
        if self._before is not None:
            self._before.require_places(table, names, known)
        if metastore.capabilities.tells_creators:
            refuse_former_rows(self.env, table, added)
        # once partitions are named, no lock stands for the whole table any more
        unnamed = dynamic or table.full_name in self._named_in or self.locks.are_of_unnamed(table)
        if table.partition_keys and unnamed:
            self.name_partitions(table, staging, as_changes=as_changes)
        places = locations if table.partition_keys else {"": table.location}
        if table.full_name in self._allocated_before:
            require_not_hidden(metastore, table, list(places.values()), self.allocate_write_id(table))
        if self.has_several_statements:
            # a base hides what the transaction has not seen, too
            hidden = [at for name, at in places.items() if name in names and staging.changes[name].overwrites]
            if hidden:
                self._require_seen_at(table, hidden)
        metastore.heartbeat(txn_id=self.id)  # a timed-out transaction must not publish: the cleaner may have run
        self._tell_rows(table, staging)
        try:
            staging.publish(locations)
        except (StorageError, FileNotFoundError):
            metastore.heartbeat(txn_id=self.id)  # the cleaner has removed what was staged
            raise
        metastore.heartbeat(txn_id=self.id)  # nor one suspended since: the cleaner ran before the files existed
        if not names:
            return
        self._written.append((table, tuple(names), dict(staging.changes)))
        staging.made = frozenset(partition_names(table, p) for p in made)
        if added:
            without_rows = [p.location for p in added if partition_names(table, p) in staging.without_rows]
            with created_directories(metastore, without_rows, of=table):
                metastore.add_partitions(added)
            staging.registered = {**staging.registered, **self.places(table, added)}

    def _tell_rows(self, table: Table, staging: Staging) -> None:
        """Keep which rows are deleted by what is staged, for the commit."""
        known = self._deleted.get(table.full_name)
        if known is None:
            return
        count = len(known) + sum(change.deleted for change in staging.changes.values())
        is_told = count <= self.env.settings.value(WRITE_CONFLICT_ROWS)
        self._deleted[table.full_name] = known | staging.deleted_rows() if is_told else None

    def _refuse_hidden(self, table: Table, staging: Staging) -> None:
        """Raises: UnsupportedError when a base of the same transaction would hide what is to be published."""
        if not self.has_several_statements:
            return
        for name in staging.partitions:
            if (table.full_name, name) in self._overwritten:
                place = f"Partition {name} of {table.full_name}" if name else f"Table {table.full_name}"
                raise UnsupportedError(
                    f"{place} is insert-only, and was overwritten in this transaction: nothing can be added to it",
                    hint="COMMIT before it, or write all rows with one statement.",
                )
        hidden = {(table.full_name, name) for name, done in staging.changes.items() if done.overwrites}
        self._overwritten |= hidden

    def places(self, table: Table, published: Sequence[Partition]) -> dict[str, str]:
        """Where partitions are registered which it has published as new ones, or added, by name: it must be where their
        files are.

        Another ADD PARTITION, which like this one and INSERT takes a shared lock, may have put one elsewhere meanwhile.

        Raises:
            StartOver: When they are not.
        """
        names = [partition_names(table, p) for p in published]
        known = {p.values: p.location for p in self.env.metastore.list_partitions(table.database, table.name, names)}
        places = {}
        for name, partition in zip(names, published, strict=True):
            found = known.get(partition.values)
            if found is None or fs.absolute(found) != fs.absolute(partition.location):
                self.start_over(f"Partition {name} of {table.full_name} was added at {found} meanwhile")
            places[name] = found
        return places

    def savepoint(self) -> Savepoint:
        """Where :meth:`undo` goes back to: a statement begins."""
        self._allocated_before = frozenset(self._write_ids)
        return Savepoint(len(self.stagings), len(self._written), self._overwritten, dict(self._deleted))

    def has_overwritten_since(self, point: Savepoint) -> bool:
        """Whether it has written a base since a savepoint."""
        return self._overwritten != point.overwritten

    def undo(self, point: Savepoint) -> bool:
        """Remove what was staged and published since a savepoint; locks stay.

        Returns:
            Whether all of it is gone: else the transaction must not be committed.
        """
        undone = self.stagings[point.stagings :]
        gone = [staging.discard() for staging in undone]
        self._overwritten = point.overwritten
        nothing = RowSet() if self.env.metastore.capabilities.compares_rows else None
        self._deleted = {table: point.deleted.get(table, nothing) for table in self._deleted}
        del self.stagings[point.stagings :], self._written[point.written :]
        for staging in undone:
            self._disown(staging)
        return all(gone)

    def _disown(self, undone: Staging) -> None:
        """Make what a statement has registered nobody's: the commit is that of the others."""
        table, metastore = undone.table, self.env.metastore
        kept = {name for staging in self._stagings_of(table) for name in staging.made}
        made = sorted(undone.made - kept)
        if made:
            with metastore.on_behalf_of(self.id):
                metastore.disown_partitions(table.database, table.name, made)

    def own_file(self, table: Table) -> str | None:
        """A data file that it has published in a table; None where it has published none."""
        published = (staging.published_file for staging in self._stagings_of(table))
        return next((file for file in published if file is not None), None)

    def has_stayed(self) -> bool:
        """Whether the tables that were published to, and their partitions, are still where they were.

        Once the transaction is ended, by itself or by others, it holds no locks: what was published may have gone with
        a directory to another name, and not be found where it is looked for.
        """
        metastore = self.env.metastore
        for staging in self.stagings:
            table = staging.table
            if not staging.is_published:
                continue
            now = metastore.find_table(table.database, table.name)
            if now is None or now.location != table.location:
                return False
            known = metastore.list_partitions(table.database, table.name, list(staging.registered))
            if {partition_names(table, p): p.location for p in known} != staging.registered:
                return False
        return True

    def commit(self) -> None:
        """Commit it in the metastore; statistics of what it has written to are outdated from then on.

        Raises:
            WriteConflict: When another transaction changed the same rows first.
            NoSuchTransaction, TransactionAborted: When others have ended it: it is refused, and nothing of it will be
                seen. After any other error that is not known.
        """
        metastore, shares = self.env.metastore, self.locks.shares
        if metastore.capabilities.is_shared_with_hive:
            require_rows_seen(metastore, shares, self.valid_txns)
            for staging in self.stagings:
                if staging.is_published:
                    table = staging.table
                    places = list(staging.registered.values()) if table.partition_keys else [table.location]
                    require_not_hidden(metastore, table, places, self.allocate_write_id(table))
        changes = [
            TableChanges(table, self.allocate_write_id(table), self.valid_write_ids(table), rows)
            for table, _, rows in self._written
        ]
        deleted = {table: rows for table, rows in self._deleted.items() if rows is not None}
        with Deferred():  # an interrupt finds either all of it, or nothing
            self.may_be_committed = True
            try:
                metastore.commit_txn(self.id, deleted, self._first_txns, bool(shares), changes)
            except (NoSuchTransaction, TransactionAborted):
                self.may_be_committed = False
                raise
            self.is_committed = True
            outcome.has_committed()

    def committed(self) -> None:
        """Notify the compactor of the commit."""
        for table, names, _ in self._written:
            self.env.compactor.wrote(table.database, table.name, names if table.partition_keys else (None,))
