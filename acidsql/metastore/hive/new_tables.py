"""What a new table needs of both the catalog and the transactions of a Hive Metastore, which has no step for both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from acidsql.errors import AlreadyExists
from acidsql.metastore.hive import translate
from acidsql.metastore.hive.alterations import HiveAlterations
from acidsql.metastore.hive.transactions import HiveTransactions
from acidsql.metastore.model import DroppedDirectory, Import, Table
from acidsql.valid_ids import ValidWriteIdList


class HiveNewTables(HiveAlterations, HiveTransactions):
    """Tables that are registered with their files, tables that are discarded, and directories of what was dropped."""

    def create_table(
        self,
        table: Table,
        *,
        holds_rows: bool = False,
        imported: Import | None = None,
        at_commit: bool = False,
        makes_directory: bool = False,
    ) -> None:
        """As the protocol says. Cut off between two of its calls, it can be run again.

        The ids come first: once the table is known, anybody may write to it, and the write ids of the names in its
        directory must not be handed out again. Its partitions come last: until then it has fewer rows (MSCK REPAIR
        TABLE registers them, too).
        """
        if imported is None:
            self._register(table, holds_rows=holds_rows)
            return
        self.get_database(table.database)
        if self.find_table(table.database, table.name) is not None:
            raise AlreadyExists(f"Table {table.full_name} already exists")
        if imported.max_txn:
            self.seed_txn_id(imported.max_txn)
        if imported.write_ids.high_watermark > 0 and not self._is_seeded(imported.write_ids):
            self.seed_write_id(imported.write_ids)
        self._register(table, holds_rows=True)
        if imported.partitions:
            self.add_partitions(imported.partitions, with_rows=imported.partitions)

    def _is_seeded(self, wanted: ValidWriteIdList) -> bool:
        """Whether the write ids are as they are to be: a try before this one was cut off after that."""
        [found] = self.get_valid_write_ids([wanted.table], self.get_valid_txns())
        same_end = found.high_watermark == wanted.high_watermark
        return same_end and sorted(found.exceptions) == sorted(wanted.exceptions)

    def discard_table(self, table: Table, txn_id: int) -> bool:
        found = self.find_table(table.database, table.name)
        if found is None or not self._is_registered(table) or found.location != translate.qualified(table.location):
            return False
        if any(lock.txn_id != txn_id for lock in self.show_locks(table.database, table.name)):
            return False
        [seen] = self.get_valid_write_ids([table.full_name], self.get_valid_txns())
        if any(seen.is_valid(write_id) for write_id in range(1, seen.high_watermark + 1)):
            return False
        self.drop_table(table.database, table.name, keep_files=True)
        return True

    # --- directories of what was dropped: the metastore removes them itself ------------------------------------------

    def dropped_directories(self) -> list[DroppedDirectory]:
        return []

    def set_aside(self, dropped: Sequence[DroppedDirectory]) -> None:
        """Nothing: there is none."""

    def forget_dropped(self, dropped: Sequence[DroppedDirectory]) -> None:
        """Nothing: there is none."""

    def has_owner(self, location: str) -> bool:
        """True: it may be."""
        return True

    def was_used(self, location: str, within: str = "") -> bool:
        """False: the metastore does not record it."""
        return False

    @contextmanager
    def alone(self) -> Iterator[None]:
        yield
