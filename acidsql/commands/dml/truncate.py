"""TRUNCATE TABLE."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands.ddl.alter import acid_table
from acidsql.commands.ddl.partitions import Values, no_partition, partitions_with, spec_values
from acidsql.commands.dml.delete_rows import stage_deletes
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.inspect.explained import Explained
from acidsql.commands.passed_on import refuse_in_transaction
from acidsql.commands.resolve.context import StatementContext
from acidsql.commands.resolve.reads import Read
from acidsql.commands.transaction.run import in_transaction
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.errors import AnalysisError
from acidsql.metastore.model import MANAGED_TABLE, LockComponent, LockType, Operation, Partition, Table
from acidsql.plan.snapshot import TableSnapshot, partition_names
from acidsql.plan.text import quote
from acidsql.plan.write import Writer
from acidsql.settings import LOCK_PARTITIONS
from acidsql.sql.statements import PartitionSpec, TableName, Truncate

NOT_MANAGED = 10146
NOT_PARTITIONED = 10148


def truncate(env: Environment, statement: Truncate, parameters: Mapping[str, Any]) -> DataFrame:
    """Run TRUNCATE [TABLE]; Spark runs it for tables that are not ACID."""
    command = truncate_command(env, statement, parameters)
    if command is None:
        refuse_in_transaction(env, statement.table)
        return env.sql(statement.span.text, parameters)
    if command.partitions != [] or env.transaction is not None:  # its snapshot may see one that has come by then
        command.run()
    return env.nothing()


def truncate_command(env: Environment, statement: Truncate, parameters: Mapping[str, Any]) -> TruncateCommand | None:
    """The command for the table or the named partitions; None for a Spark table.

    Raises:
        AnalysisError: When Hive does not allow truncating the table, or it has no such partition keys.
        PartitionNotFound: When the partition does not exist.
    """
    name, spec = statement.table, statement.partition
    table = acid_table(env, name)
    if table is None:
        refuse_not_managed(env, name)
        return None
    if spec is None:
        return TruncateCommand(env, table)
    values = _values(env, table, spec, parameters)
    return TruncateCommand(env, table, lambda: _named(env, table, spec, values))


def refuse_not_managed(env: Environment, name: TableName) -> None:
    """Raises: AnalysisError for a view or an external table (Hive 10146)."""
    table = env.registered(name)
    if table is None:
        is_refused = env.known_to_spark(name) and _is_external(env, name)
    elif table.table_type == MANAGED_TABLE:
        is_refused = False
    else:
        is_refused = table.is_view or table.parameters.get("external.table.purge", "").lower() != "true"
    if is_refused:
        message = f"Cannot truncate non-managed table {name.table}."
        raise with_location(name.span, AnalysisError(message, code=NOT_MANAGED))


def _is_external(env: Environment, name: TableName) -> bool:
    """Whether a Spark table is external."""
    parts = [p for p in (name.catalog, name.database, name.table) if p]
    return env.spark.catalog.getTable(".".join(quote(p) for p in parts)).tableType == "EXTERNAL"


def _values(env: Environment, table: Table, spec: PartitionSpec, parameters: Mapping[str, Any]) -> Values:
    """The values of the named keys."""
    if not table.partition_keys:
        message = f"Partition spec for non partitioned table {table.full_name}."
        raise with_location(spec.span, AnalysisError(message, code=NOT_PARTITIONED))
    return spec_values(env, table, spec, parameters)


def _named(env: Environment, table: Table, spec: PartitionSpec, values: Values) -> list[str]:
    """Names of the matching partitions; one with values for all keys must exist."""
    found = partitions_with(env, table, values)
    if not found and len(values) == len(table.partition_keys):
        raise no_partition(spec, values)
    return list(found)


class TruncateCommand:
    """TRUNCATE: hide all rows of a full-ACID or insert-only table, or of some of its partitions.

    1. Lock the table, or the partitions, EXCL_WRITE as Hive 4 does: UPDATE and DELETE wait, readers and INSERT do not.
       Look the partitions up again, and restart with a lock of the table if some were added.
    2. Allocate the write id, and wait until all writers with lower write ids have ended: the lock does not exclude
       INSERT (in Hive's lock matrix SHARED_READ and EXCL_WRITE are compatible), and the base would hide the rows of an
       INSERT that commits after this statement. Rows of a later INSERT are above the base. Then list the partitions:
       those that they have added are hidden, too, or half of an INSERT would be.
    3. Write a base without rows into a staging directory. Hive's own TRUNCATE writes a base that
       contains only ``_metadata_acid``, on which Hive 3.1 fails and which Trino ignores; a base with one empty file
       hides the old rows from every engine, as INSERT OVERWRITE with an empty result does. In a transaction of several
       statements it would hide what later ones insert: there each row is deleted.
    4. Publish by rename, and commit.

    Args:
        env: The environment.
        table: The table.
        find: Finds the names of the partitions; None: all that exist once the lock is granted.
    """

    def __init__(self, env: Environment, table: Table, find: Callable[[], Sequence[str]] | None = None) -> None:
        self.env = env
        self.table = table
        self._find = find
        self.partitions = None if find is None else find()

    def _names(self) -> Sequence[str] | None:
        return None if self._find is None else self._find()

    def _is_whole(self, names: Sequence[str] | None) -> bool:
        """Whether the whole table is locked although it has partitions."""
        few = names is not None and len(names) <= self.env.settings.value(LOCK_PARTITIONS)
        return bool(self.table.partition_keys) and not few

    def _locks(self, names: Sequence[str] | None) -> list[LockComponent]:
        table, whole = self.table, self._is_whole(names)
        return [
            LockComponent(LockType.EXCL_WRITE, table.database, table.name, name, Operation.UPDATE, whole)
            for name in ([None] if whole or names is None else names)
        ]

    def _known(self, names: Sequence[str] | None) -> tuple[Partition, ...] | None:
        """The existing ones of these partitions; None for a table without partition keys."""
        table = self.table
        if not table.partition_keys:
            return None
        return tuple(self.env.metastore.list_partitions(table.database, table.name, names))

    def run(self) -> None:
        """All phases.

        Raises:
            LockTimeout: When the locks were not granted in time, or an earlier writer has not ended.
            TransactionError: When the table was changed meanwhile.
        """
        locked = self.partitions

        def attempt(txn: WriteTransaction) -> None:
            nonlocal locked
            txn.lock(self._locks(locked))
            if not txn.has_several_statements:
                txn.exclude_writers(self.table)
            names = self._names()
            if locked is not None and names is not None:
                added = [name for name in names if name not in locked]
                if added and self._may_have_rows(txn, added):
                    locked = None  # the whole table next: others may add one each time
                    txn.start_over(f"Partitions of {self.table.full_name} were added while the statement waited")
                names = [name for name in names if name in locked]
            self._write(txn, names, whole=self._is_whole(locked))

        in_transaction(self.env, attempt)

    def _may_have_rows(self, txn: WriteTransaction, names: Sequence[str]) -> bool:
        """Whether some partitions have rows to hide: in a transaction of several statements, by its snapshot."""
        if not txn.has_several_statements:
            return True
        return any(not part.state.is_empty for part in self._seen(txn, self._known(names)).partitions)

    def _seen(self, txn: WriteTransaction, known: Sequence[Partition] | None) -> TableSnapshot:
        """The table, which is still that of the snapshot, with some partitions."""
        context = StatementContext(self.env)
        context.add(self.table)
        context.revalidate(txn.snapshot)
        return context.table_snapshot(self.table, known)

    def _existing(self, txn: WriteTransaction, known: tuple[Partition, ...] | None) -> tuple[Partition, ...] | None:
        """Those partitions that exist: what is there because others were undone does not by this."""
        return None if known is None else tuple(p for p in known if p.exists or p.is_of(txn.id))

    def _write(self, txn: WriteTransaction, names: Sequence[str] | None, *, whole: bool) -> None:
        """Steps 3 and 4."""
        table, known = self.table, self._known(names)
        txn.revalidate(table)
        known = self._existing(txn, known)
        if txn.has_several_statements:  # the table may be another one than that of the snapshot
            self._seen(txn, known)
        if known == ():
            return
        hide_rows(self.env, txn, table, _places(table, known), dynamic=whole)

    def explain(self, context: StatementContext) -> list[Explained]:
        """What :meth:`run` would do."""
        known = self._known(self.partitions)
        writes = [f"base without rows{f' in {place}' if place else ''}" for place in _places(self.table, known)]
        reason = "no row is read"
        read = Read(self.table, True, known, None, context.table_snapshot(self.table, known))
        return [Explained(self.table, self._locks(self.partitions), [read], None, writes=writes, no_plan=reason)]


def hide_rows(env: Environment, txn: WriteTransaction, table: Table, places: Sequence[str], *, dynamic: bool) -> None:
    """Publish a base without rows in some partitions; none else than INSERT may write there meanwhile.

    Args:
        env: The session.
        txn: The transaction: it has written nothing there.
        table: The table.
        places: Names of partitions; an empty one for a table without partition keys.
        dynamic: Whether its locks do not name them.

    Raises:
        LockTimeout: When an earlier writer has not ended in time.
    """
    if txn.replaces_rows_of(table):
        staged = stage_deletes(env, txn, table, places if table.partition_keys else None)
        if staged is not None:
            txn.publish(table, staged, dynamic=dynamic)
        return
    target = txn.target(table, overwrite=True)
    staging = txn.stage(table)
    writer = Writer(env.sessions.own, target, staging, env.driver_limit)
    for place in places:
        writer.write_nothing(place)
    txn.publish(table, staging, dynamic=dynamic)


def _places(table: Table, known: Sequence[Partition] | None) -> list[str]:
    return [""] if known is None else [partition_names(table, p) for p in known]
