"""The face of the embedded metastore: each call is one transaction of the database behind it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from acidsql.metastore.embedded import (
    catalog,
    cleaning,
    commit,
    components,
    dropped_places,
    locks,
    moves,
    places,
    renames,
    sqlite,
    statistics,
    timeouts,
    txns,
    write_ids,
)
from acidsql.metastore.embedded.compactions import EmbeddedCompactions
from acidsql.metastore.embedded.store import Store
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
    RowChange,
    Statistics,
    Table,
    TxnInfo,
    TxnType,
)
from acidsql.settings import MAX_OPEN_BATCH, MAX_OPEN_TXNS, METASTORE_BUSY, TXN_TIMEOUT, XLOCK_WRITE, Settings
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList

_NAMED_IN_FILES = frozenset({TxnType.COMPACTION, TxnType.REBALANCE_COMPACTION, TxnType.SOFT_DELETE})
"""Transactions whose ids stand in names of directories (``_v<txn>``): such an id must never be handed out again."""


def system_ms() -> int:
    """The clock: milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class EmbeddedMetastore(EmbeddedCompactions):
    """:class:`~acidsql.metastore.protocol.Metastore` in a SQLite file, for any number of threads and processes.

    What a method does and raises stands in the protocol. Besides that, each raises MetastoreError where the database
    cannot be read or written.

    Args:
        url: A SQLAlchemy URL of SQLite, or the path of the file.
        settings: Timeouts, limits and ``hive.txn.xlock.write`` are looked up at each call; the busy timeout once.
        warehouse: Location of the database ``default``, for a store that is made now.
        now_ms: The clock. All processes at one store should have about the same.

    Raises:
        MetastoreError: When the file cannot be opened, is no metastore, or is one of a newer version.
    """

    def __init__(self, url: str, settings: Settings, warehouse: str, now_ms: Callable[[], int] = system_ms) -> None:
        self._store = Store(sqlite.parse_url(url), settings.value(METASTORE_BUSY), warehouse=warehouse)
        self._settings = settings
        self._first_timeout = settings.value(TXN_TIMEOUT)
        self._now = now_ms

    def close(self) -> None:
        self._store.close()

    @property
    def version(self) -> None:
        return None

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities()

    @property
    def lock_pause(self) -> float:
        return 0.01

    @property
    def txn_timeout(self) -> float:
        return self._settings.value(TXN_TIMEOUT)

    @property
    def _timeout(self) -> int:
        """``hive.txn.timeout`` in milliseconds, as it was when the store was opened, or longer since.

        The session's heartbeats go by the one of the beginning (:class:`~acidsql.metastore.heartbeat.Heartbeats`).
        """
        return int(max(self.txn_timeout, self._first_timeout) * 1000)

    # --- catalog -----------------------------------------------------------------------------------------------------

    def create_database(self, database: Database) -> None:
        with self._store.write() as db:
            catalog.create_database(db, database)

    def get_database(self, name: str) -> Database:
        with self._store.read() as db:
            return catalog.get_database(db, name)

    def list_databases(self) -> list[str]:
        with self._store.read() as db:
            return catalog.list_databases(db)

    def drop_database(self, name: str) -> None:
        with self._store.write() as db:
            catalog.drop_database(db, name)

    def create_table(self, table: Table, *, holds_rows: bool = False, imported: Import | None = None) -> None:
        with self._store.write() as db:
            catalog.create_table(db, table)
            if imported is not None:
                txns.seed_txn_id(db, imported.max_txn, self._now())
                if imported.write_ids.high_watermark > 0:
                    write_ids.seed(db, imported.write_ids, now=self._now())
                catalog.add_partitions(db, imported.partitions)

    def discard_table(self, table: Table, txn_id: int) -> bool:
        with self._store.write() as db:
            is_the_same = catalog.find_table(db, table.database, table.name) == table
            if not is_the_same or components.is_used(db, table.database, table.name, txn_id):
                return False
            catalog.drop_table(db, table.database, table.name, keep_files=True)
            return True

    def get_table(self, database: str, name: str) -> Table:
        with self._store.read() as db:
            return catalog.get_table(db, database, name)

    def find_table(self, database: str, name: str) -> Table | None:
        with self._store.read() as db:
            return catalog.find_table(db, database, name)

    def list_tables(self, database: str) -> list[str]:
        with self._store.read() as db:
            return catalog.list_tables(db, database)

    def list_views(self, database: str) -> list[str]:
        with self._store.read() as db:
            return catalog.list_tables(db, database, views_only=True)

    def alter_table(
        self, table: Table, *, write_id: int | None = None, write_ids: ValidWriteIdList | None = None
    ) -> None:
        with self._store.write() as db:
            catalog.alter_table(db, table)

    def update_statistics(
        self, table: Table, write_id: int, write_ids: ValidWriteIdList, changes: Mapping[str, RowChange]
    ) -> None:
        """The number of rows is carried on where ANALYZE has counted it; nothing is exact any longer."""
        with self._store.read() as db:
            if not statistics.there_are(db, table, changes):
                return
        with self._store.write(durable=False) as db:
            statistics.count_on(db, table, changes)

    def set_statistics(
        self, table: Table, write_id: int, write_ids: ValidWriteIdList, found: Mapping[str, Statistics]
    ) -> None:
        with self._store.write() as db:
            statistics.keep(db, table, write_id, write_ids, found)

    def partition_parameters(
        self, database: str, table: str, names: Sequence[str] | None = None
    ) -> dict[str, Mapping[str, str]]:
        with self._store.read() as db:
            return statistics.partition_parameters(db, database, table, names)

    def column_statistics(self, table: Table, partition: str | None = None) -> list[ColumnStatistics]:
        with self._store.read() as db:
            return statistics.of_columns(db, table, partition or "")

    def drop_table(self, database: str, name: str, *, keep_files: bool = False) -> None:
        with self._store.write() as db:
            catalog.drop_table(db, database, name, keep_files=keep_files)

    def add_partitions(self, partitions: Sequence[Partition], *, holds_rows: bool = False) -> None:
        if partitions:
            with self._store.write() as db:
                catalog.add_partitions(db, partitions)

    def list_partitions(self, database: str, table: str, names: Sequence[str] | None = None) -> list[Partition]:
        with self._store.read() as db:
            return catalog.list_partitions(db, database, table, names)

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
        """Rename a table. Its files stay where they are: who calls moves them to the location that ``table`` has."""
        with self._store.write() as db:
            renames.rename_table(db, database, name, table, move)

    def rename_partition(
        self,
        name: str,
        partition: Partition,
        *,
        move: DirectoryMove | None = None,
        write_ids: ValidWriteIdList | None = None,
    ) -> None:
        """Rename a partition. Its files stay where they are: who calls moves them."""
        with self._store.write() as db:
            renames.rename_partition(db, name, partition, move)

    def forget_moves(self, table: Table) -> None:
        with self._store.write() as db:
            moves.forget(db, table.moves)

    def alter_partition(self, partition: Partition) -> None:
        with self._store.write() as db:
            renames.alter_partition(db, partition)

    def drop_partitions(self, database: str, table: str, names: Sequence[str]) -> None:
        with self._store.write() as db:
            catalog.drop_partitions(db, database, table, names)

    # --- directories of what was dropped -----------------------------------------------------------------------------

    def dropped_directories(self) -> list[DroppedDirectory]:
        with self._store.read() as db:
            return dropped_places.dropped(db)

    def set_aside(self, dropped: Sequence[DroppedDirectory]) -> None:
        with self._store.write() as db:
            dropped_places.set_aside(db, [d.id for d in dropped])

    def forget_dropped(self, dropped: Sequence[DroppedDirectory]) -> None:
        with self._store.write() as db:
            dropped_places.forget(db, [d.id for d in dropped])

    def has_owner(self, location: str) -> bool:
        with self._store.read() as db:
            return places.has_owner(db, location)

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._store.write():
            yield

    # --- transactions ------------------------------------------------------------------------------------------------

    def open_txns(
        self, count: int = 1, *, user: str, host: str, type: TxnType = TxnType.DEFAULT, agent_info: str = ""
    ) -> list[int]:
        limit = self._settings.value(MAX_OPEN_TXNS)
        count = min(count, self._settings.value(MAX_OPEN_BATCH))
        with self._store.write(durable=type in _NAMED_IN_FILES) as db:
            return txns.open_txns(
                db,
                count,
                user=user,
                host=host,
                type=type,
                agent_info=agent_info,
                limit=limit,
                now=self._now(),
                timeout=self._timeout,
            )

    def commit_txn(self, txn_id: int) -> None:
        with self._store.write() as db:
            exclusive_writes = self._settings.value(XLOCK_WRITE)
            conflict = commit.commit(db, txn_id, exclusive_writes=exclusive_writes, now=self._now())
        if conflict is not None:  # raised only here: the abort has to stay
            raise conflict

    def abort_txns(self, txn_ids: Sequence[int], reason: str = "") -> list[int]:
        with self._store.write() as db:
            return txns.abort(db, txn_ids, reason)

    def heartbeat(self, *, txn_id: int = 0, lock_id: int = 0) -> None:
        now = self._now()
        with self._store.write(durable=False) as db:
            if txn_id:
                txns.heartbeat(db, txn_id, now)
            if lock_id:
                locks.heartbeat(db, lock_id, now)

    def heartbeat_txns(self, txn_ids: Sequence[int]) -> tuple[list[int], list[int]]:
        with self._store.write(durable=False) as db:
            return txns.heartbeat_all(db, txn_ids, self._now())

    def show_txns(self) -> list[TxnInfo]:
        with self._store.read() as db:
            return txns.show_txns(db)

    def time_out_txns(self) -> list[int]:
        now = self._now()
        with self._store.write() as db:
            timeouts.release_silent_locks(db, now=now, timeout=self._timeout)
            return timeouts.abort_silent_txns(db, now=now, timeout=self._timeout)

    def clean_empty_aborted_txns(self) -> None:
        with self._store.write() as db:
            cleaning.forget_unwritten(db)
            txns.forget_empty(db, self._now())
            commit.prune_write_set(db)

    def seed_txn_id(self, txn_id: int) -> None:
        with self._store.write() as db:
            txns.seed_txn_id(db, txn_id, self._now())

    # --- snapshots and write ids -------------------------------------------------------------------------------------

    def get_valid_txns(self, current_txn: int = 0) -> ValidTxnList:
        with self._store.read() as db:
            return txns.valid_txns(db, current_txn)

    def get_valid_write_ids(self, tables: Sequence[str], valid_txns: ValidTxnList) -> list[ValidWriteIdList]:
        with self._store.read() as db:
            return [write_ids.valid_write_ids(db, table, valid_txns) for table in tables]

    def allocate_table_write_id(self, txn_id: int, database: str, table: str, *, reallocate: bool = False) -> int:
        with self._store.write() as db:
            return write_ids.allocate(db, txn_id, database, table, reallocate=reallocate)

    def seed_write_id(self, valid_write_ids: ValidWriteIdList) -> None:
        with self._store.write() as db:
            write_ids.seed(db, valid_write_ids, now=self._now())

    # --- what a transaction writes to --------------------------------------------------------------------------------

    def add_dynamic_partitions(
        self, txn_id: int, write_id: int, database: str, table: str, partitions: Sequence[str], operation: Operation
    ) -> None:
        with self._store.write(durable=False) as db:
            txns.require_open(db, txn_id)
            components.name_partitions(db, txn_id, write_id, database, table, partitions, operation)

    def get_latest_txn_in_conflict(self, txn_id: int) -> int | None:
        with self._store.read() as db:
            return commit.latest_conflict(db, txn_id)

    def completed_writes(self, database: str, table: str) -> list[CompletedWrite]:
        with self._store.read() as db:
            return components.completed_writes(db, database, table)

    def forget_txn_components(self, txn_id: int) -> None:
        with self._store.write() as db:
            if txns.is_aborted(db, txn_id):
                components.forget(db, txn_id)

    # --- locks -------------------------------------------------------------------------------------------------------

    def lock(self, request: LockRequest) -> LockResponse:
        with self._store.write(durable=False) as db:
            return locks.enqueue(db, request, now=self._now(), timeout=self._timeout)

    def check_lock(self, lock_id: int) -> LockResponse:
        with self._store.write(durable=False) as db:
            return locks.check(db, lock_id, now=self._now(), timeout=self._timeout)

    def unlock(self, lock_id: int) -> None:
        with self._store.write(durable=False) as db:
            locks.unlock(db, lock_id)

    def show_locks(
        self, database: str | None = None, table: str | None = None, partition: str | None = None
    ) -> list[LockInfo]:
        with self._store.read() as db:
            return locks.show_locks(db, database, table, partition)
