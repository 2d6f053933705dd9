"""The metastore protocol: Hive's calls, with Hive's names, whatever store stands behind them.

Implementations: :mod:`acidsql.metastore.embedded` (SQLAlchemy on SQLite) and :mod:`acidsql.metastore.hive` (Thrift to a
Hive Metastore). A call is one atomic step of the store; any number of threads and processes may call at once. Names of
databases, tables and columns are lower case here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from acidsql.metastore.compaction_protocol import Compactions
from acidsql.metastore.model import (
    Capabilities,
    ColumnStatistics,
    CompletedWrite,
    Database,
    DirectoryMove,
    DroppedDirectory,
    Import,
    LockInfo,
    LockRequest,
    LockResponse,
    Operation,
    Partition,
    Statistics,
    Table,
    TableChanges,
    TxnInfo,
    TxnType,
)
from acidsql.row_set import RowSet
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList


class Catalog(Protocol):
    """Databases, tables and partitions."""

    def create_database(self, database: Database) -> None:
        """Register a database.

        Raises:
            AlreadyExists: When there is one of its name; on the embedded store also when a table or partition has its
                files at its place, or within, or above it.
            AnalysisError: When its name is not valid (:func:`~acidsql.partition_names.check_database_name`).
        """
        ...

    def get_database(self, name: str) -> Database:
        """Raises: DatabaseNotFound."""
        ...

    def list_databases(self) -> list[str]: ...

    def drop_database(self, name: str) -> None:
        """Forget an empty database.

        Raises:
            DatabaseNotFound: When it does not exist.
            AnalysisError: When it still has tables (Hive 10226), or is ``default``.
        """
        ...

    def create_table(
        self,
        table: Table,
        *,
        holds_rows: bool = False,
        imported: Import | None = None,
        at_commit: bool = False,
        makes_directory: bool = False,
    ) -> None:
        """Register a table.

        Args:
            table: The table.
            holds_rows: Whether its directory may hold rows already; a store with statistics counts from 0 otherwise.
            imported: What its directory holds: write ids and transaction ids start above that, and its partitions are
                registered. The embedded store does all of it in one step. A Hive Metastore has no such step: the ids
                come before the table, the partitions after it.
            at_commit: Let only this thread see it until the transaction is committed on whose behalf it is created
                (:meth:`on_behalf_of`). If that ends otherwise, the table is dropped. A store without
                :attr:`Capabilities.hides_new_tables` shows it at once.
            makes_directory: With ``at_commit``: whether its directory was made for it, and is dropped with it; of one
                that was there before only the transaction's files are removed (:class:`WrittenBy`).

        Raises:
            DatabaseNotFound, AlreadyExists (on the embedded store also where the directory of a dropped table stands).
            TransactionError: When write ids of that name are in use already.
        """
        ...

    def discard_table(self, table: Table, txn_id: int) -> bool:
        """Remove a table whose statement has failed; its files stay. Where :attr:`Capabilities.hides_new_tables`, there
        is nothing to do: the table was dropped in the step that aborted its transaction.

        It is kept where it is a different table by now, or is in use: was written to, or is locked by others.

        Args:
            table: The table as it was registered.
            txn_id: The transaction of the statement that registered it.

        Returns:
            Whether it is gone.
        """
        ...

    def get_table(self, database: str, name: str) -> Table:
        """Raises: TableNotFound (also where the database does not exist)."""
        ...

    def find_table(self, database: str, name: str) -> Table | None: ...

    def list_tables(self, database: str) -> list[str]:
        """Raises: DatabaseNotFound."""
        ...

    def list_views(self, database: str) -> list[str]:
        """Those of :meth:`list_tables` that are views. Raises: DatabaseNotFound."""
        ...

    def latest_version(self) -> int | None:
        """The greatest version that a table has had so far; None where the store does not count up their changes.

        Names that are looked up after a snapshot was taken fit to it if no table among them has a greater one than this
        was before.
        """
        ...

    def alter_table(
        self, table: Table, *, write_id: int | None = None, write_ids: ValidWriteIdList | None = None
    ) -> None:
        """Replace columns, parameters, comment, location and constraints of a table, or the query of a view.

        Args:
            table: The table as it is to be. A constraint that has no name keeps the one that it has, or is given one.
            write_id: The write id of the transaction that alters it; an ALTER of Hive's takes one too.
            write_ids: What that transaction sees: a store that keeps statistics judges by both whether they still hold.

        Raises:
            TableNotFound: When it does not exist.
        """
        ...

    def set_statistics(
        self, table: Table, write_id: int, write_ids: ValidWriteIdList, found: Mapping[str, Statistics]
    ) -> None:
        """Store what ANALYZE found, replacing what is stored.

        Args:
            table: The table.
            write_id: The write id of the transaction that analysed it; an ANALYZE of Hive's takes one too.
            write_ids: What that transaction saw. Statistics are not kept as exact where rows that it did not see are
                on their way.
            found: By the name of a partition; by the empty name for the table as a whole.
        """
        ...

    def partition_parameters(
        self, database: str, table: str, names: Sequence[str] | None = None
    ) -> dict[str, Mapping[str, str]]:
        """Parameters of partitions by name; only of ``names`` where given. Raises: TableNotFound."""
        ...

    def column_statistics(self, table: Table, partition: str | None = None) -> list[ColumnStatistics]:
        """Statistics of columns of a table as a whole, or of one partition by its name; empty where there are none."""
        ...

    def drop_table(self, database: str, name: str, *, keep_files: bool = False) -> None:
        """Forget a table with its partitions, write ids, completed components and write sets.

        Args:
            keep_files: Leave the files of a managed table alone. A Hive Metastore removes them otherwise; the embedded
                store never touches files, but records the directories (:meth:`dropped_directories`).

        Raises:
            TableNotFound: When it does not exist.
        """
        ...

    def add_partitions(
        self, partitions: Sequence[Partition], *, with_rows: Sequence[Partition] = (), if_not_exists: bool = True
    ) -> None:
        """Register partitions, as those of the transaction that the thread works for until that is committed.

        One that is there, and that no transaction has committed (:attr:`.Partition.created_by`), stays where it is; it
        exists once any of those is committed that have made it.

        Args:
            partitions: The partitions.
            with_rows: Those whose places hold rows already; a store with statistics counts from 0 otherwise. They exist
                at once, as a new version of their table: older snapshots must not see those rows.
            if_not_exists: Whether those that exist, or that another transaction is making, are left where they are, and
                are no error.

        Raises:
            TableNotFound, AlreadyExists (then none is registered).
        """
        ...

    def disown_partitions(self, database: str, table: str, names: Sequence[str]) -> None:
        """Tell that the transaction that the thread works for has undone what it wrote to partitions.

        It is none of those any more that have made them (:attr:`.Partition.created_by`). Without effect where the store
        does not tell that (:attr:`Capabilities.tells_creators`).

        Raises:
            TableNotFound.
        """
        ...

    def list_partitions(self, database: str, table: str, names: Sequence[str] | None = None) -> list[Partition]:
        """Partitions ordered by name; only those of ``names`` (``p=1/q=even``) where given. Raises: TableNotFound."""
        ...

    def rename_table(
        self,
        database: str,
        name: str,
        table: Table,
        *,
        write_id: int | None = None,
        write_ids: ValidWriteIdList | None = None,
        move: DirectoryMove | None = None,
    ) -> None:
        """Give a table another name, also in another database; all that is known of the old one follows.

        That is its partitions, its write ids, locks, components and write sets (Hive's ``TxnHandler.onRename``).

        Args:
            database: Where it is.
            name: What it is called.
            table: How it is to be described. A Hive Metastore moves the files of a table that is at its usual place,
                and chooses the new place by itself; the embedded store takes the location that it is given, moves
                places of partitions along, and never touches files.
            write_id: The write id, in the old name, of the transaction that renames it.
            write_ids: What that transaction sees.
            move: How its directory follows: the embedded store keeps it, as one of :attr:`Table.moves`, until
                :meth:`forget_moves`. One that led to the place which the table leaves is forgotten in the same step.

        Raises:
            TableNotFound, DatabaseNotFound, AlreadyExists.
        """
        ...

    def rename_partition(
        self,
        name: str,
        partition: Partition,
        *,
        move: DirectoryMove | None = None,
        write_ids: ValidWriteIdList | None = None,
    ) -> None:
        """Give a partition other values. Files and location as for :meth:`rename_table`.

        Args:
            name: What it is called (``p=1/q=even``).
            partition: Its new values and location.
            move: How its directory follows, as for :meth:`rename_table`.
            write_ids: What the transaction sees that renames it.

        Raises:
            TableNotFound, PartitionNotFound, AlreadyExists.
        """
        ...

    def forget_moves(self, table: Table) -> None:
        """Forget :attr:`Table.moves` that are done; one that is not known any longer is no error."""
        ...

    def alter_partition(self, partition: Partition) -> None:
        """Give a partition another location. Raises: TableNotFound, PartitionNotFound."""
        ...

    def drop_partitions(self, database: str, table: str, names: Sequence[str]) -> None:
        """Forget partitions; their files as in :meth:`drop_table`. Raises: PartitionNotFound, and then drops none."""
        ...

    # Directories of what was dropped. A Hive Metastore removes them itself, and there are none.

    def dropped_directories(self) -> list[DroppedDirectory]:
        """The directories of dropped tables and partitions that may still be there, and of tables that were to be seen
        at a commit that has not come. Their places, and what is above and below, are not given to others before they
        are set aside."""
        ...

    def set_aside(self, dropped: Sequence[DroppedDirectory]) -> None:
        """Record that directories were moved away from their places."""
        ...

    def forget_dropped(self, dropped: Sequence[DroppedDirectory]) -> None:
        """Record that directories were removed."""
        ...

    def has_owner(self, location: str) -> bool:
        """Whether a directory is that of a database, table or partition.

        A Hive Metastore cannot be asked that, and answers True.
        """
        ...

    def was_used(self, location: str, within: str = "") -> bool:
        """Whether a table or partition that left it had files in a directory, or above or below it; only directories
        below ``within`` count.

        A Hive Metastore does not record that: the result is False.
        """
        ...

    def on_behalf_of(self, txn_id: int) -> AbstractContextManager[None]:
        """Have this thread change the catalog in a block only as long as a transaction is open: so that it holds its
        locks.

        A process that was suspended for longer than ``hive.txn.timeout`` holds none any more, and does not know. The
        embedded store checks it in the step that makes the change; a Hive Metastore cannot, and is asked just before.
        In the block databases, tables, partitions and statistics are not changed otherwise: there
        :class:`~acidsql.errors.TransactionAborted` or :class:`~acidsql.errors.NoSuchTransaction` is raised.
        :meth:`discard_table` and the journals are not concerned: they are there for transactions that have failed.
        """
        ...

    def alone(self) -> AbstractContextManager[None]:
        """Block all other changes of the store, for some milliseconds; reading goes on, also by the caller.

        On a Hive Metastore it does nothing: whatever needs it is done by the metastore itself there.
        """
        ...


class Transactions(Protocol):
    """Transactions, write ids, locks (``TxnStore`` in Hive)."""

    def open_txns(
        self, count: int = 1, *, user: str, host: str, type: TxnType = TxnType.DEFAULT, agent_info: str = ""
    ) -> list[int]:
        """Open transactions, ``hive.txn.max.open.batch`` at most; ids rise. Raises: TransactionError past
        ``hive.max.open.txns``."""
        ...

    def get_valid_txns(self, current_txn: int = 0) -> ValidTxnList:
        """The snapshot: committed transactions up to ``current_txn`` (all, for 0), and ``current_txn`` itself."""
        ...

    def get_valid_write_ids(self, tables: Sequence[str], valid_txns: ValidTxnList) -> list[ValidWriteIdList]:
        """One list per ``database.table``, in the order asked."""
        ...

    def allocate_table_write_id(self, txn_id: int, database: str, table: str, *, reallocate: bool = False) -> int:
        """The write id of a transaction in a table: one per (transaction, table), the same at each call.

        Args:
            reallocate: Give back the one that it had and take a new one (a retry on a fresh snapshot).

        Raises:
            NoSuchTransaction, TransactionAborted: When the transaction is not open.
            TransactionError: When it is read-only.
        """
        ...

    def lock(self, request: LockRequest) -> LockResponse:
        """Queue a request and grant it if nothing earlier is in its way.

        Components with an operation of a real transaction also go to TXN_COMPONENTS, as in Hive's ``enqueueLock``.

        Raises:
            NoSuchTransaction, TransactionAborted: When its transaction is not open.
        """
        ...

    def check_lock(self, lock_id: int) -> LockResponse:
        """Try a waiting request again; also counts as a heartbeat. Raises: NoSuchLock, TransactionAborted."""
        ...

    def unlock(self, lock_id: int, withdrawn: LockRequest | None = None) -> None:
        """Release a lock that belongs to no transaction, or a waiting one.

        Args:
            lock_id: The lock.
            withdrawn: The request that waits, of a transaction that goes on: it has changed nothing of what it asked
                for there, also where it has just been granted. A Hive Metastore keeps a granted one, and remembers what
                was asked for as changed all the same.

        Raises:
            NoSuchLock, TransactionError: When there is none, or a transaction holds it.
        """
        ...

    def heartbeat(self, *, txn_id: int = 0, lock_id: int = 0) -> None:
        """Send a heartbeat of the owner. Raises: NoSuchTransaction, TransactionAborted, NoSuchLock."""
        ...

    def heartbeat_txns(self, txn_ids: Sequence[int]) -> tuple[list[int], list[int]]:
        """Heartbeats of many transactions at once: (aborted ids, unknown ids)."""
        ...

    def add_dynamic_partitions(
        self, txn_id: int, write_id: int, database: str, table: str, partitions: Sequence[str], operation: Operation
    ) -> None:
        """Name the partitions that a dynamic-partition write really wrote to (Hive's call of that name)."""
        ...

    def get_latest_txn_in_conflict(
        self, txn_id: int, seen: ValidTxnList | None = None, *, by_rows: Collection[str] = ()
    ) -> int | None:
        """The latest transaction that committed a conflicting UPDATE/DELETE on what ``txn_id`` has locked for writing,
        at or after the start of ``txn_id`` (Hive's ``getLatestTxnIdInConflict``); None where there is none.

        Args:
            txn_id: The transaction.
            seen: What its snapshot sees: only transactions that it does not see are asked for. A Hive Metastore knows
                the latest one alone, whether it is seen or not: None may be the answer although there are others.
            by_rows: Tables (``database.table``) of which ``txn_id`` will tell at its commit which rows it deletes:
                others that have told theirs do not count there (:attr:`Capabilities.compares_rows`).
        """
        ...

    def commit_txn(
        self,
        txn_id: int,
        deleted: Mapping[str, RowSet] | None = None,
        seen: ValidTxnList | None = None,
        first_wins: bool = False,
        changes: Sequence[TableChanges] = (),
    ) -> None:
        """Commit: the one moment at which the transaction's writes become visible. Committing twice is no error.

        From then on queries must no longer be answered from the statistics of what it has changed. Numbers of rows are
        carried on: Hive 4's compactor takes them for exact again, whatever it was told.

        Args:
            txn_id: The transaction.
            deleted: The rows that it has deleted, by table (``database.table``), of tables in which it has replaced
                none otherwise (:attr:`Capabilities.compares_rows`). Two transactions that tell their rows of a table
                are in conflict there only where one row is in both sets.
            seen: What all its snapshots saw: it is in conflict with none of them. A Hive Metastore goes by their ids.
            first_wins: Whether it has changed rows under locks that let others do so (SHARED_WRITE): then conflicts are
                looked for, whatever ``hive.txn.xlock.write`` is by now. An embedded store knows it by the locks.
            changes: What it does to the rows of tables. A commit that is refused leaves their statistics as they were.

        Raises:
            WriteConflict: When another transaction committed a change of the same table or partition first; the
                transaction is then aborted (first committer wins).
            NoSuchTransaction, TransactionAborted: When it cannot be committed.
        """
        ...

    def abort_txns(self, txn_ids: Sequence[int], reason: str = "") -> list[int]:
        """Abort those that are open, release their locks and drop the tables that they were creating; the ids really
        aborted."""
        ...

    def show_txns(self) -> list[TxnInfo]:
        """Open and aborted transactions (an aborted one stays while it has components)."""
        ...

    def show_locks(
        self, database: str | None = None, table: str | None = None, partition: str | None = None
    ) -> list[LockInfo]: ...

    def circle_with_writers(self, txn_id: int, database: str, table: str, below: int) -> tuple[int, ...]:
        """Transactions that wait for each other, where one of them waits without asking for a lock for writers of a
        table that it has locked. An embedded store keeps that it does, for those who look from the others' side.

        Args:
            txn_id: The one that waits.
            database: Of the table.
            table: The table.
            below: It waits for those open transactions that have a lower write id than this one; 0: it does no more.

        Returns:
            The transactions, beginning with ``txn_id``; none where each can go on, or another one of them is ended.
        """
        ...

    def time_out_txns(self, *, spared: int = 0) -> list[int]:
        """Abort transactions, and release locks, whose heartbeats stopped ``hive.txn.timeout`` ago; the aborted ids.

        Args:
            spared: A transaction that lives: it is that of whoever asks.
        """
        ...

    def clean_empty_aborted_txns(self) -> None:
        """Forget ended transactions that left no components (Hive's ``cleanEmptyAbortedAndCommittedTxns``)."""
        ...

    def forget_txn_components(self, txn_id: int) -> None:
        """Drop the components of an aborted transaction whose files are gone. Nothing else may forget them (rule 5)."""
        ...

    def completed_writes(self, database: str, table: str) -> list[CompletedWrite] | None:
        """What committed transactions have written, by write id and partition.

        They are kept until a compaction over them is cleaned, as in Hive's COMPLETED_TXN_COMPONENTS. None where the
        store does not provide it.
        """
        ...

    def seed_write_id(self, valid_write_ids: ValidWriteIdList) -> None:
        """Start a table's write ids above those in files made elsewhere (Hive's ``seedWriteId`` and
        ``replTableWriteIdState``): ids up to the high watermark count as committed, its aborted and open ids as
        aborted.

        Raises:
            TransactionError: When the table has write ids already.
        """
        ...

    def seed_txn_id(self, txn_id: int) -> None:
        """Start transaction ids above ``txn_id``; what is below counts as committed (Hive's ``seedTxnId``)."""
        ...


class Metastore(Catalog, Transactions, Compactions, Protocol):
    """A catalog, its transactions and its queue of compactions, in one store."""

    @property
    def version(self) -> str | None:
        """Version of the Hive that the store belongs to (``4.0.1``), for messages; None for the embedded store."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What the store does itself."""
        ...

    @property
    def txn_timeout(self) -> float:
        """Seconds without a heartbeat after which the store considers a transaction's owner dead."""
        ...

    @property
    def lock_pauses(self) -> tuple[float, float]:
        """Seconds after which a lock that has to wait is asked for again: at first, and at most."""
        ...

    def hurry(self) -> None:
        """Wait only some seconds from now on for a server that is away: whoever uses the store is about to end."""
        ...

    def close(self) -> None: ...
