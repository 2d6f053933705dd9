"""The environment of commands: Spark session, metastore, settings, current database."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from acidsql.catalyst import ZONE, Catalyst, CurrentValues, InternalSessions, rows_in_memory
from acidsql.commands.error_location import with_location
from acidsql.commands.resolve.names import (
    AcidTable,
    Resolved,
    SparkTable,
    View,
    is_known_to_spark,
    resolve,
)
from acidsql.compactor import Compactor
from acidsql.errors import AnalysisError, DatabaseNotFound, NotTransactional, TableNotFound
from acidsql.interrupts import Deferred
from acidsql.metastore.heartbeat import Heartbeats
from acidsql.metastore.model import DEFAULT_DATABASE, Table
from acidsql.metastore.protocol import Metastore
from acidsql.plan.local import DriverLimit
from acidsql.plan.session_zone import SessionZone, session_zone
from acidsql.plan.target import compression_of
from acidsql.plan.values import Zones, zones_of
from acidsql.settings import DRIVER_WRITE_BYTES, DRIVER_WRITE_ROWS, ORC_COMPRESS, WRITE_CONFLICTS, Settings
from acidsql.sql.statements import TableName

if TYPE_CHECKING:
    from acidsql.commands.transaction.pin import OpenTransaction


@dataclass
class Environment:
    """The long-lived state of a session, or that of one of its statements (:meth:`of_statement`).

    Attributes:
        warehouse: Directory of the ``default`` database, as the user gave it.
        database: The current database; :meth:`use` changes it.
        database_in_spark: Whether Spark has it, too, where it is then the current one.
        transaction: The transaction that all statements belong to; None where each has its own.
        autocommit: Whether a statement outside of a transaction is one of its own; else it begins one.
        user, host, agent: Shown by SHOW TRANSACTIONS and SHOW LOCKS.
    """

    spark: SparkSession
    metastore: Metastore
    settings: Settings
    heartbeats: Heartbeats
    compactor: Compactor
    warehouse: str
    user: str
    host: str
    agent: str
    database: str = field(default=DEFAULT_DATABASE)
    database_in_spark: bool = field(default=True)
    transaction: OpenTransaction | None = field(default=None)
    autocommit: bool = field(default=True)
    _process: int = field(init=False, default_factory=os.getpid)
    _zones: dict[tuple[str, str | None], Zones] = field(init=False, default_factory=dict)

    _session: Environment | None = field(init=False, default=None)

    @property
    def is_of_this_process(self) -> bool:
        """Whether this process opened the session, and was not forked from the one that did."""
        return os.getpid() == self._process

    @property
    def session(self) -> Environment:
        """That of the session, whose transaction and current database are to be changed."""
        return self._session or self

    def of_statement(self) -> Environment:
        """The same for one statement: what other threads begin, end or choose meanwhile does not change it.

        The statement is a part of the transaction that is open now, or has one of its own.
        """
        made = copy(self)
        made._session, made.autocommit = self.session, True
        return made

    def beside(self) -> Environment:
        """As :meth:`of_statement`, for what does not belong to the session's transaction."""
        return self.within(None)

    def within(self, transaction: OpenTransaction | None) -> Environment:
        """As :meth:`of_statement`, for a part of another transaction."""
        made = self.of_statement()
        made.transaction = transaction
        return made

    @property
    def driver_limit(self) -> DriverLimit:
        """What the driver writes without a job."""
        settings = self.settings
        return DriverLimit(settings.value(DRIVER_WRITE_ROWS), settings.value(DRIVER_WRITE_BYTES))

    @property
    def compares_rows(self) -> bool:
        """Whether those who change different rows of a table do so side by side."""
        return self.settings.value(WRITE_CONFLICTS) == "row" and self.metastore.capabilities.compares_rows

    def compression_of(self, table: Table) -> str:
        """How files of a table are compressed. Errors as of :func:`acidsql.plan.target.compression_of`."""
        return compression_of(table, self.metastore.capabilities, self.settings.value(ORC_COMPRESS))

    @cached_property
    def sessions(self) -> InternalSessions:
        """The user's Spark session, and acidsql's internal ones."""
        return InternalSessions.of(self.spark)

    @property
    def catalyst(self) -> Catalyst:
        """Spark's parser and analyser in the user's session."""
        return self.sessions.user

    @property
    def own_spark(self) -> SparkSession:
        """The Spark session for what acidsql generates: its settings are known (:mod:`acidsql.catalyst.sessions`)."""
        return self.sessions.own.spark

    @property
    def zones(self) -> Zones:
        """The current time zones of session and files."""
        key = (self.spark.conf.get(ZONE) or "UTC", self.sessions.file_zone)
        if key not in self._zones:
            self._zones[key] = zones_of(self.spark, key[1])
        return self._zones[key]

    @property
    def session_zone(self) -> SessionZone:
        """The rules of the session's zone."""
        return session_zone(self.spark, self.zones.session)

    @property
    def writing(self) -> Catalyst:
        """The session for plans that write files, in the time zone of the files."""
        return self.sessions.in_zone(self.zones.jvm)

    def current_values(self) -> CurrentValues:
        """What is current now, for all plans of a statement."""
        return CurrentValues(self.catalyst, None if self.database_in_spark else self.database)

    def use(self, database: str) -> None:
        """Make a database the current one, in Spark, too, if it has one of that name."""
        in_spark = bool(self.spark.catalog.databaseExists(database))
        if in_spark:
            self.spark.catalog.setCurrentDatabase(database)
        for one in (self, self.session):
            one.database, one.database_in_spark = database, in_spark

    def database_of(self, name: TableName) -> str:
        """The database of a name, in lower case."""
        return (name.database or self.database).lower()

    def resolve(self, name: TableName) -> Resolved:
        """Resolve a name now (:mod:`acidsql.commands.resolve.names`)."""
        return resolve(self, name.table, name.database, name.catalog)

    def registered(self, name: TableName) -> Table | None:
        """The metastore's table (of any kind) or view of this name; None where a temporary Spark view shadows it."""
        resolved = resolve(self, name.table, name.database, name.catalog, ask_spark=False)
        if isinstance(resolved, AcidTable | View):
            return resolved.table
        return resolved.registered if isinstance(resolved, SparkTable) else None

    def find_table(self, name: TableName) -> Table | None:
        """The ACID table of this name; None where the name refers to something in Spark."""
        table = self.registered(name)
        return table if table is not None and table.is_transactional else None

    def get_table(self, name: TableName) -> Table:
        """The ACID table of this name.

        Raises:
            TableNotFound: When no table of that name exists (Hive 10001).
            AnalysisError: When it is a view (Hive 10402).
            NotTransactional: When it is a table that is not transactional (Hive 10297).
        """
        table = self.registered(name)
        if table is not None and table.is_transactional:
            return table
        if table is not None and table.is_view:
            raise with_location(name.span, AnalysisError("You cannot update or delete records in a view", code=10402))
        if table is not None or self.known_to_spark(name):
            error: TableNotFound | NotTransactional = NotTransactional(
                f"Attempt to do update or delete on table {name.table} that is not transactional",
                hint="Create an ACID table with TBLPROPERTIES('transactional'='true').",
            )
        else:
            error = TableNotFound(f"Table not found {self.database_of(name)}.{name.table.lower()}")
        raise with_location(name.span, error)

    def changeable_table(self, name: TableName) -> Table:
        """The full-ACID table whose rows a statement changes.

        Raises:
            NotTransactional: When it is insert-only (Hive 10414), and as :meth:`get_table`.
            TableNotFound: As :meth:`get_table`.
        """
        table = self.get_table(name)
        if table.is_insert_only:
            problem = f"Attempt to do update or delete on table {name.table} that is insert-only transactional"
            raise with_location(name.span, NotTransactional(problem, code=10414))
        return table

    def refuse_view(self, name: TableName) -> None:
        """Raises: AnalysisError for a view of the metastore, which cannot be inserted into (Hive 10090)."""
        table = self.registered(name)
        if table is not None and table.is_view:
            error = AnalysisError("A view cannot be used as target table for LOAD or INSERT", code=10090)
            raise with_location(name.span, error)

    def known_to_spark(self, name: TableName) -> bool:
        """Whether Spark itself has a table or view of that name."""
        if name.database is None and self.catalyst.is_temporary_view(name.table):
            return True
        return is_known_to_spark(self, name.table, name.database, name.catalog)

    def require_database(self, name: str) -> None:
        """Raises: DatabaseNotFound."""
        if name not in self.metastore.list_databases():
            raise DatabaseNotFound(f"Database does not exist: {name}")

    def sql(self, text: str, parameters: Mapping[str, Any]) -> DataFrame:
        """Run a text on Spark with named parameters."""
        if not parameters:
            return self.spark.sql(text)
        return self.spark.sql(text, args={name: self.catalyst.value(value) for name, value in parameters.items()})

    def frame(self, columns: Mapping[str, pa.DataType], rows: Iterable[Sequence[Any]]) -> DataFrame:
        """A small result as a DataFrame that needs no Spark job."""
        listed = [list(r) for r in rows]
        arrays = [pa.array([r[i] for r in listed], type=t) for i, t in enumerate(columns.values())]
        table = pa.table(arrays, names=list(columns))
        try:
            return self.spark.createDataFrame(table)
        except ValueError:  # spark.sql.execution.arrow.maxRecordsPerBatch without a limit, which PySpark does not know
            return self.catalyst.moved(rows_in_memory(self.own_spark, table))

    def strings(self, columns: Sequence[str], rows: Iterable[Sequence[str | None]]) -> DataFrame:
        """A small result with only string columns, as in Hive's SHOW commands."""
        return self.frame({c: pa.string() for c in columns}, rows)

    def nothing(self) -> DataFrame:
        """The empty result: no columns, no rows."""
        with Deferred():  # what comes before it has been done, and PySpark makes errors of its own of an interrupt
            return self.spark.range(0).select()

    def counts(self, *, updated: int = 0, deleted: int = 0, inserted: int = 0) -> DataFrame:
        """The one row that DML returns."""
        values = {
            "num_affected_rows": updated + deleted + inserted,
            "num_updated_rows": updated,
            "num_deleted_rows": deleted,
            "num_inserted_rows": inserted,
        }
        with Deferred():  # as above
            return self.frame({n: pa.int64() for n in values}, [list(values.values())])
