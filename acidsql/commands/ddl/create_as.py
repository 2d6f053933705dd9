"""CREATE TABLE … AS query: creates the table with all its rows, or not at all."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from acidsql.catalyst import Plan
from acidsql.commands.ddl.create_table import CreateTableCommand
from acidsql.commands.ddl.created_directory import CreatedDirectory
from acidsql.commands.dml.columns import columns_of, warn_of_local_timestamps
from acidsql.commands.dml.insert_clause import InsertClause
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.inspect.explained import Explained
from acidsql.commands.resolve.binding import Binding
from acidsql.commands.resolve.context import StatementContext
from acidsql.commands.resolve.reads import read_locks
from acidsql.commands.transaction.run import in_transaction
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.compactor.dropped import remove_dropped
from acidsql.errors import AcidError, AlreadyExists, AnalysisError, ColumnNotFound
from acidsql.metastore.model import Column, LockComponent, LockType, Operation, Table
from acidsql.plan.target import RowCounts
from acidsql.plan.text import quote
from acidsql.sql.statements import CreateTable, Insert

logger = logging.getLogger(__name__)


class CreateTableAsCommand:
    """CREATE TABLE … AS query.

    1. Open a transaction; lock the new table's name EXCL_WRITE, its database and the tables read SHARED_READ.
    2. Take one snapshot; the query's columns become the table's, those that PARTITIONED BY names its keys.
    3. Check the declaration as CREATE TABLE does. Register the table, to be seen from the commit on; on a Hive
       Metastore, where others find it at once, only before step 5.
    4. Allocate a write id for the name, and write the rows into a staging directory at the location of the table, which
       no other statement writes to or removes.
    5. Publish by rename, commit: no row is visible before that.
    6. On failure, remove only what this statement created: its staging directory and published files, the registration
       unless another session uses the table by then, and the directory if this statement created it and no one else
       owns it. What another session registered under the name first is not touched. If the process is killed, the
       embedded store drops the table once the transaction has timed out, with its directory if this statement made it.
    """

    def __init__(self, env: Environment, statement: CreateTable, parameters: Mapping[str, Any]) -> None:
        assert statement.query is not None
        self.env = env
        self.statement = statement
        self.parameters = parameters
        self.query = statement.query
        self.database = env.database_of(statement.table)
        self.name = statement.table.table.lower()
        self._new: _New | None = None

    def run(self) -> RowCounts:
        """All phases; writes nothing if IF NOT EXISTS finds a table."""
        env, statement = self.env, self.statement
        if statement.if_not_exists and env.metastore.find_table(self.database, self.name) is not None:
            return RowCounts()
        env.require_database(self.database)
        try:
            written = in_transaction(env, self._run)
        except BaseException:
            if self._new is not None:  # only now: the transaction is aborted, and its staging directory removed
                self._new.take_back()
            raise
        if self._new is not None:
            warn_of_local_timestamps(self._new.table.columns)
        return written

    def _run(self, txn: WriteTransaction) -> RowCounts:
        if self._new is not None:  # it starts over
            self._new.take_back()
            self._new = None
        binding, analysed = self._query(StatementContext(self.env))
        txn.lock(self._locks(binding))
        binding.context.revalidate(txn.snapshot)
        frame = self.env.sessions.own.frame(binding.scanned(analysed))
        table = self._table(frame)
        if table is None:
            return RowCounts()
        self._new = _New(self.env, table, txn.id)
        return self._fill(self._new, frame, txn)

    def explain(self, context: StatementContext) -> list[Explained]:
        """What :meth:`run` would do."""
        env = self.env
        binding, analysed = self._query(context)
        frame = env.sessions.own.frame(binding.scanned(analysed))
        table = self._table(frame)
        if table is None:
            existing = env.metastore.get_table(self.database, self.name)
            return [Explained(existing, (), (), None, no_plan="the table already exists")]
        insert = self._insert(table)
        changes = insert.stored(_ordered(frame, table))
        writes = [f"{insert.directory}, in the new directory {table.location}"]
        return [Explained(table, self._locks(binding), binding.reads(analysed), changes.frame, writes=writes)]

    def _locks(self, binding: Binding) -> list[LockComponent]:
        return [
            LockComponent(LockType.SHARED_READ, self.database),
            LockComponent(LockType.EXCL_WRITE, self.database, self.name, None, Operation.INSERT),
            *read_locks(binding.tables),
        ]

    def _query(self, context: StatementContext) -> tuple[Binding, Plan]:
        """The query, resolved."""
        binding = Binding(context, self.parameters, self.query.text)
        return binding, binding.analysed(binding.query(self.query))

    def _insert(self, table: Table) -> InsertClause:
        insert = Insert(self.statement.span, self.statement.table, self.query)
        return InsertClause(self.env, insert, self.parameters, table)

    def _table(self, frame: DataFrame) -> Table | None:
        """The table defined by the query and the declaration."""
        columns, keys = self._columns(frame)
        prepared = CreateTableCommand(self.env, self.statement, columns, keys).prepare()
        if prepared is None:
            return None
        table, has_files = prepared
        if has_files:
            problem = AlreadyExists(f"Directory {table.location} is not empty: CREATE TABLE … AS needs an empty one")
            raise with_location(self.statement.table.span, problem)
        return table

    def _columns(self, frame: DataFrame) -> tuple[Sequence[Column], Sequence[Column]]:
        statement = self.statement
        if statement.columns:
            raise with_location(
                statement.columns[0].name.span, AnalysisError("The columns come from the query", code=10065)
            )
        try:
            columns = columns_of(frame.schema)
        except AcidError as e:
            raise with_location(self.query, e) from e
        by_name = {c.name: c for c in columns}
        keys = []
        for definition in statement.partition_keys:
            name = definition.name.text.lower()
            if name not in by_name:
                missing = ColumnNotFound(f"The query has no column {name} to partition by", code=10004)
                raise with_location(definition.name.span, missing)
            keys.append(by_name.pop(name))
        if not by_name:
            problem = AnalysisError("A table needs at least one column that is not a partition key", code=10217)
            raise with_location(statement.partition_keys[0].name.span, problem)
        return tuple(by_name.values()), tuple(keys)

    def _fill(self, new: _New, frame: DataFrame, txn: WriteTransaction) -> RowCounts:
        table = new.table
        command = self._insert(table)
        new.make_directory()
        staging = txn.stage(table)
        is_hidden = self.env.metastore.capabilities.hides_new_tables
        if is_hidden:  # if the process is killed, the store knows what is to be removed
            new.register()
        written = command.write(command.stored(_ordered(frame, table)).moved(self.env.writing), txn, staging)
        if not is_hidden:
            new.register()
        command.publish(txn, staging)
        return written


def _ordered(frame: DataFrame, table: Table) -> DataFrame:
    """The query's columns in the order of the table's."""
    return frame.toDF(*[c.lower() for c in frame.columns]).select(*[quote(c.name) for c in table.all_columns])


class _New:
    """What a statement has created of a new table, so that it can be undone. Never touches what others created."""

    def __init__(self, env: Environment, table: Table, txn_id: int) -> None:
        self._metastore = env.metastore
        self._txn_id = txn_id
        self.table = table
        self._directory = CreatedDirectory(env.metastore, table.location)
        self._registered = False

    def make_directory(self) -> None:
        self._directory.make()

    def register(self) -> None:
        self._metastore.create_table(self.table, at_commit=True, makes_directory=self._directory.is_own)
        self._registered = True
        self._directory.make()

    def take_back(self) -> None:
        """Remove it, unless its rows may have been committed after all, or another session uses it."""
        try:
            if self._registered:
                self._metastore.discard_table(self.table, self._txn_id)
                remove_dropped(self._metastore)
        except AcidError as e:
            logger.warning("what there is of the new table %s could not be removed yet: %s", self.table.full_name, e)
        self._directory.take_back()


def create_table_as(env: Environment, statement: CreateTable, parameters: Mapping[str, Any]) -> DataFrame:
    """Run CREATE TABLE … AS; the row of counts."""
    return env.counts(inserted=CreateTableAsCommand(env, statement, parameters).run().inserted)
