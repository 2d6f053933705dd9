"""CREATE TABLE … AS query: a table that is there with all its rows, or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from acidsql import fs
from acidsql.commands.binding import Snapshot, bind, find_sources, read_locks
from acidsql.commands.columns import columns_of, warn_of_local_timestamps
from acidsql.commands.create_table import CreateTableCommand
from acidsql.commands.environment import Environment
from acidsql.commands.insert import InsertCommand
from acidsql.commands.places import at
from acidsql.commands.transaction import WriteTransaction, write_transaction
from acidsql.errors import AcidError, AlreadyExists, AnalysisError, ColumnNotFound
from acidsql.metastore.model import Column, LockComponent, LockType, Operation, Table
from acidsql.plan.target import Written
from acidsql.plan.text import quote
from acidsql.plan.views import Views
from acidsql.sql.references import analyse_query
from acidsql.sql.statements import CreateTable, Insert


class CreateTableAsCommand:
    """CREATE TABLE … AS query.

    1. Open a transaction; lock the new table's name EXCL_WRITE, its database and the tables read SHARED_READ.
    2. Take one snapshot; the query's columns are the table's, those that PARTITIONED BY names are its keys.
    3. Check the declaration as CREATE TABLE does.
    4. Allocate a write id for the name, and write the rows into a staging directory at the place of the table.
    5. Register the table, publish by rename, commit: nobody sees a row of it before that.
    6. A failure takes back all of it: the registration, the rows, and the directory where it is new.
    """

    def __init__(self, env: Environment, statement: CreateTable, parameters: Mapping[str, Any]) -> None:
        assert statement.query is not None
        self.env = env
        self.statement = statement
        self.parameters = parameters
        self.query = statement.query
        self.references = analyse_query(statement.query)
        self.database = env.database_of(statement.table)
        self.name = statement.table.table.lower()

    def run(self) -> Written:
        """All phases; nothing is written where IF NOT EXISTS finds a table."""
        env, statement = self.env, self.statement
        if statement.if_not_exists and env.metastore.find_table(self.database, self.name) is not None:
            return Written()
        env.require_database(self.database)
        sources = find_sources(env, self.references, self.parameters)
        locks = [
            LockComponent(LockType.SHARED_READ, self.database),
            LockComponent(LockType.EXCL_WRITE, self.database, self.name, None, Operation.INSERT),
            *read_locks(sources),
        ]
        new: _New | None = None
        try:
            with write_transaction(env, locks) as txn, Views(env.spark) as views:
                raw = self.query.text
                if sources:
                    raw = bind(env, self.references, sources, Snapshot(env, txn.valid_txns), views)
                frame = env.sql(raw, self.parameters)
                table = self._table(frame)
                if table is None:
                    return Written()
                new = _New(env, table)
                written = self._fill(new, frame, txn)
        except BaseException:
            if new is not None:
                new.take_back()
            raise
        warn_of_local_timestamps(new.table.columns)
        return written

    def _table(self, frame: DataFrame) -> Table | None:
        """The table that the query and the declaration make."""
        columns, keys = self._columns(frame)
        prepared = CreateTableCommand(self.env, self.statement, columns, keys).prepare()
        if prepared is None:
            return None
        table, there = prepared
        if there:
            problem = AlreadyExists(
                f"Directory {table.location} is not empty: a table made AS a query needs one that is"
            )
            raise at(self.statement.table.span, problem)
        return table

    def _columns(self, frame: DataFrame) -> tuple[Sequence[Column], Sequence[Column]]:
        statement = self.statement
        if statement.columns:
            raise at(statement.columns[0].name.span, AnalysisError("The columns come from the query", code=10065))
        try:
            columns = columns_of(frame.schema)
        except AcidError as e:
            raise at(self.query, e) from e
        by_name = {c.name: c for c in columns}
        keys = []
        for definition in statement.partition_keys:
            name = definition.name.text.lower()
            if name not in by_name:
                missing = ColumnNotFound(f"The query has no column {name} to partition by", code=10004)
                raise at(definition.name.span, missing)
            keys.append(by_name.pop(name))
        if not by_name:
            problem = AnalysisError("A table needs a column that it is not partitioned by", code=10217)
            raise at(statement.partition_keys[0].name.span, problem)
        return tuple(by_name.values()), tuple(keys)

    def _fill(self, new: _New, frame: DataFrame, txn: WriteTransaction) -> Written:
        table = new.table
        insert = Insert(self.statement.span, self.statement.table, self.query)
        command = InsertCommand(self.env, insert, self.parameters, table)
        ordered = frame.toDF(*[c.lower() for c in frame.columns]).select(*[quote(c.name) for c in table.all_columns])
        staging = txn.stage(table)
        new.make_directory()
        written = command.write(command.stored(ordered), txn, staging)
        new.register()
        command.publish(txn, staging)
        return written


class _New:
    """What is there of a new table, so that it can be taken back."""

    def __init__(self, env: Environment, table: Table) -> None:
        self._env = env
        self.table = table
        self._fs, self._path = fs.resolve(table.location)
        self._made = not self._fs.exists(self._path)
        self._registered = False

    def make_directory(self) -> None:
        self._fs.mkdirs(self._path)

    def register(self) -> None:
        self._env.metastore.create_table(self.table)
        self._registered = True

    def take_back(self) -> None:
        """Remove it, unless its rows may have been committed after all: then they are the truth."""
        if self._registered:
            txns = self._env.metastore.get_valid_txns()
            [write_ids] = self._env.metastore.get_valid_write_ids([self.table.full_name], txns)
            if any(write_ids.is_valid(w) for w in range(1, write_ids.high_watermark + 1)):
                return
            self._env.metastore.drop_table(self.table.database, self.table.name, keep_files=True)
        if self._made:
            self._fs.delete(self._path)


def create_table_as(env: Environment, statement: CreateTable, parameters: Mapping[str, Any]) -> DataFrame:
    """Run it; the row of counts."""
    return env.counts(inserted=CreateTableAsCommand(env, statement, parameters).run().inserted)
