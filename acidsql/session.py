"""The session: text in, DataFrame out."""

from __future__ import annotations

import getpass
import logging
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from acidsql import fs
from acidsql.builders import Expressions, MergeBuilder, Value, insert_text, require_used
from acidsql.catalyst import check, collect_garbage
from acidsql.commands.environment import Environment
from acidsql.commands.query import table_frame
from acidsql.commands.registry import execute
from acidsql.commands.transaction import control
from acidsql.commands.transaction.pin import OpenTransaction
from acidsql.commands.transaction.session_transaction import SessionTransaction
from acidsql.compactor import Compactor, WorkerContext
from acidsql.errors import AcidError, InvalidValue, TransactionError
from acidsql.interrupts import Deferred
from acidsql.metastore import is_hive_metastore, open_metastore
from acidsql.metastore.heartbeat import Heartbeats
from acidsql.metastore.model import DEFAULT_DATABASE
from acidsql.metastore.protocol import Metastore
from acidsql.plan.views import Views
from acidsql.settings import Settings
from acidsql.sql.parser import parse_statement, split_script, substitute
from acidsql.sql.statements import Statement
from acidsql.streaming.face import StreamingFace, string, table_name

logger = logging.getLogger(__name__)

STORE_NAME = "acidsql.db"
"""File of the embedded store inside the warehouse."""
DEFAULT_WAREHOUSE = "warehouse"


class AcidSession(StreamingFace):
    """Hive full-ACID tables on a Spark session. Created by :func:`acidsql.connect`; a context manager; thread-safe.

    Attributes:
        spark: The Spark session.
    """

    def __init__(self, env: Environment, *, owns_spark: bool) -> None:
        super().__init__(env)
        self._owns_spark = owns_spark
        self._closed = False
        self._close_lock = threading.Lock()

    @property
    def spark(self) -> SparkSession:
        return self._env.spark

    @property
    def metastore(self) -> Metastore:
        """The metastore, for operators and tests; its calls are Hive's."""
        return self._env.metastore

    @property
    def settings(self) -> Settings:
        """This session's settings."""
        return self._env.settings

    @property
    def compactor(self) -> Compactor:
        """The compactor of this session, with ``start()``, ``run_once()``, ``status()`` and ``stop()``."""
        return self._env.compactor

    @property
    def warehouse(self) -> str:
        """Directory of the ``default`` database."""
        return self._env.warehouse

    @property
    def database(self) -> str:
        """The current database."""
        return self._env.database

    def sql(self, text: str, /, **parameters: Any) -> DataFrame:
        """Run one statement.

        DML and DDL have finished when this returns. A query returns a lazy DataFrame over the current snapshot.

        Args:
            text: The statement; a trailing ``;`` is allowed.
            **parameters: Values of the named parameters ``:name`` in it.

        Returns:
            The rows; for DML one row ``num_affected_rows, num_updated_rows, num_deleted_rows, num_inserted_rows``.

        Raises:
            AcidError: For an error that acidsql detects, with the position in the statement; the statement then has no
                effect.
            InvalidValue: When ``text`` is no string.
            pyspark.errors.PySparkException: For an error that Spark detects in an expression or a query.
        """
        self._require_open()
        return self._execute(parse_statement(string(text, "the statement")), parameters)

    def table(self, name: str, *, version: int | None = None) -> DataFrame:
        """All rows of a table as a lazy DataFrame over the current snapshot.

        Args:
            name: ``table`` or ``database.table``, also of a view over ACID tables; other names are looked up in Spark.
            version: A write id of an ACID table: return the rows as of this write id.

        Raises:
            TableNotFound: When neither the metastore nor Spark has the table.
            InvalidValue: When the table has no such version, or ``name`` is no string.
            SnapshotTooOld: When files of that version no longer exist (Hive 10327).
        """
        self._require_open()
        env = control.environment_of_change(self._env)
        with env.catalyst.active():
            return table_frame(env, table_name(name), version)

    # --- DML without SQL text ----------------------------------------------------------------------------------------

    def insert(
        self,
        frame: DataFrame,
        table: str,
        *,
        overwrite: bool = False,
        partition: Mapping[str, Value] | None = None,
        by_name: bool = False,
    ) -> DataFrame:
        """Insert all rows of a DataFrame.

        Args:
            frame: The rows; columns in the order of the table, dynamic partition keys last.
            table: ``table`` or ``database.table``.
            overwrite: Replace the rows of the table, or of the partitions that get rows.
            partition: Values of static partition keys; a string is a value here, not an expression.
            by_name: Match columns by name instead; columns that the DataFrame lacks get their default.

        Returns:
            The row of counts. Raises the errors of :meth:`sql`.
        """
        self._require_open()
        with control.answering(self._env), Views(self.spark) as views:
            text, parameters = insert_text(
                table,
                views.add(frame),
                overwrite=overwrite,
                partition=partition or {},
                by_name=by_name,
            )
            return self.sql(text, **parameters)

    def update(
        self, table: str, set: Mapping[str, Value], condition: str | None = None, **parameters: Any
    ) -> DataFrame:
        """``UPDATE table SET … WHERE condition``; for the values of ``set`` see :mod:`acidsql.builders`.

        Raises:
            InvalidValue: Also for a parameter that no text uses: without a condition all rows are changed.
        """
        expressions = Expressions()
        where = f" WHERE {condition}" if condition is not None else ""
        text = f"UPDATE {table} SET {expressions.assignments(set)}{where}"
        require_used(text, parameters)
        return self.sql(text, **expressions.parameters, **parameters)

    def delete(self, table: str, condition: str | None = None, **parameters: Any) -> DataFrame:
        """``DELETE FROM table WHERE condition``. Raises: as :meth:`update`."""
        where = f" WHERE {condition}" if condition is not None else ""
        text = f"DELETE FROM {table}{where}"
        require_used(text, parameters)
        return self.sql(text, **parameters)

    def merge(
        self,
        table: str,
        source: str | DataFrame,
        *,
        alias: str | None = None,
        source_alias: str | None = None,
    ) -> MergeBuilder:
        """Build a MERGE: ``acid.merge("t", df).on("t.id = source.id").when_matched_delete().execute()``.

        Args:
            table: ``table`` or ``database.table``.
            source: A table name, a query in parentheses, or a DataFrame, which expressions refer to as ``source``.
            alias: The alias of the table in the expressions.
            source_alias: The alias of the source in the expressions.
        """
        self._require_open()
        answering = partial(control.answering, self._env)
        return MergeBuilder(
            self.sql, self.spark, table, source, alias=alias, source_alias=source_alias, answering=answering
        )

    @contextmanager
    def transaction(self, *, read_only: bool = False) -> Iterator[None]:
        """A block whose statements, of any thread of this session, are one transaction: all or nothing.

        They see one snapshot, that of the first of them, and what the ones before have written. The block commits at
        its end, and rolls back for an exception.

        Args:
            read_only: Whether statements that write are refused.

        Raises:
            TransactionError: When the session has a transaction already.
            WriteConflict: When another transaction has changed the same rows: run the block again.
            Deadlock: When another one waits for locks of this one, and this one for the other's.
        """
        self._require_open()
        txn: SessionTransaction | None = None
        has_ended = False
        try:
            with Deferred():
                txn = control.begin(self._env, is_read_only=read_only)
            yield
            if self._env.transaction is not txn:
                raise TransactionError("The transaction was ended within its block")
            has_ended = True
            control.end(self._env, txn, is_kept=True)
        except BaseException:
            if txn is not None:
                control.end(self._env, txn, is_kept=False)
                if not has_ended:
                    control.roll_back_what_is_open(self._env)  # one that was begun within the block in its place
            raise

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction of several statements is open."""
        return self._env.transaction is not None

    def _take_back(self, error: BaseException) -> None:
        """For whoever shows answers: in a transaction, the statement is undone whose answer could not be shown."""
        control.take_back(self._env, error)

    def script(
        self,
        script: str | os.PathLike[str],
        variables: Mapping[str, str] | None = None,
        *,
        keeps_transaction: bool = False,
    ) -> Iterator[DataFrame]:
        """Run a ``;``-separated script lazily: each statement runs when its result is requested.

        Args:
            script: The path of a file (a ``PathLike``, or a one-line text that names an existing file), or the text.
            variables: Values of ``${name}`` and ``${hivevar:name}``.
            keeps_transaction: Whether a transaction that it has begun and not ended stays open, as for the input of a
                shell.

        Yields:
            The DataFrame of each statement.

        Raises:
            TransactionError: When it ends, or fails, within a transaction that it has begun: that was rolled back.
        """
        before = self._env.transaction
        try:
            yield from self._statements(script, variables)
        except BaseException:
            if not keeps_transaction and self._rolls_back_after(before):
                logger.warning("the script failed within a transaction, which was rolled back")
            raise
        if not keeps_transaction and self._rolls_back_after(before):
            raise TransactionError("The script ended within a transaction, which was rolled back", hint="COMMIT it.")

    def _rolls_back_after(self, before: OpenTransaction | None) -> bool:
        """Roll back what was begun since; whether something was open."""
        return self._env.transaction is not before and control.roll_back_what_is_open(self._env)

    def _statements(self, script: str | os.PathLike[str], variables: Mapping[str, str] | None) -> Iterator[DataFrame]:
        self._require_open()
        text = _script_text(script)
        for part in split_script(text):
            try:
                yield self.sql(substitute(part.text, dict(variables or {})))
            except AcidError as e:
                if e.line is None or e.column is None:
                    e.locate(text, part.offset, part.offset + len(part.text))
                else:
                    e.column += part.column - 1 if e.line == 1 else 0
                    e.line += part.line - 1
                raise

    def close(self) -> None:
        """Close streaming connections, roll back an open transaction, stop the compactor, end readers' transactions,
        release the store.

        Spark is stopped if :func:`acidsql.connect` started it. In a process that was forked from the session's nothing
        happens: all that is still the other's.
        """
        if not self._env.is_of_this_process:
            return
        with self._close_lock:
            if self._closed:
                return
            self._closed = True
        self._env.metastore.hurry()
        self._close_streams()
        if control.roll_back_what_is_open(self._env):
            logger.warning("the session was closed within a transaction, which was rolled back")
        self._env.compactor.stop()
        self._env.heartbeats.close()
        self._env.metastore.close()
        if self._owns_spark:
            self.spark.stop()

    def __enter__(self) -> AcidSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _require_open(self) -> None:
        if not self._env.is_of_this_process:
            raise AcidError("The session belongs to the process that this one was forked from")
        if self._closed:
            raise AcidError("The session is closed")
        context: Any = self.spark.sparkContext
        if context._jsc is None:
            raise AcidError("The session's Spark was stopped", hint="Connect again, to a new Spark session.")

    def _execute(self, statement: Statement, parameters: Mapping[str, Any]) -> DataFrame:
        return execute(self._env, statement, parameters)


def _script_text(script: str | os.PathLike[str]) -> str:
    if isinstance(script, os.PathLike):
        return Path(script).read_text(encoding="utf-8-sig")
    if "\n" not in script and ";" not in script and os.path.isfile(script):
        return Path(script).read_text(encoding="utf-8-sig")
    return script.removeprefix("\ufeff")


def start_spark(
    warehouse: str | os.PathLike[str] | None = None,
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start a Spark session with the JVM in UTC, and without UI, progress bar and log lines between results.

    Args:
        warehouse: As for :func:`connect`; Spark's own tables go to ``spark`` below it.
        master: Spark's master URL, by default ``local[*]``.
        conf: Spark settings that override the defaults.
    """
    logging = Path(__file__).with_name("log4j2.properties").as_uri()
    own_tables = fs.join(fs.absolute(os.fspath(warehouse or DEFAULT_WAREHOUSE)), "spark")
    settings = {
        "spark.driver.extraJavaOptions": f"-Duser.timezone=UTC -Dlog4j2.configurationFile={logging}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": fs.spark_path(own_tables),
    }
    if master is None:
        settings |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": "4",
            "spark.log.level": "ERROR",
        }
    builder = SparkSession.builder.appName("acidsql").master(master or "local[*]")
    for name, value in (settings | dict(conf or {})).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def attach_files(spark: SparkSession) -> None:
    """Access all file systems that are not local through the Hadoop client of a Spark session."""
    fs.attach(spark._jvm, lambda: spark._jsparkSession.sessionState().newHadoopConf())


def open_store(
    warehouse: str | os.PathLike[str] | None, metastore: str | None, settings: Settings
) -> tuple[Metastore, str]:
    """Open the store as :func:`connect` does; also returns the directory of the ``default`` database.

    Raises:
        InvalidValue, MetastoreError, StorageError: As :func:`connect`.
        UnsupportedError: When the warehouse is not local and no Spark session can access it.
    """
    hive = is_hive_metastore(metastore)
    if hive and warehouse is not None:
        raise InvalidValue("A Hive Metastore defines its own warehouse: pass either metastore or warehouse")
    root = "" if hive else _own_warehouse(warehouse, metastore)
    store = open_metastore(metastore or fs.join(root, STORE_NAME), settings, warehouse=root)
    try:
        return store, root or store.get_database(DEFAULT_DATABASE).location
    except BaseException:
        store.close()
        raise


def _own_warehouse(warehouse: str | os.PathLike[str] | None, metastore: str | None) -> str:
    """The directory of the ``default`` database, created if it does not exist."""
    filesystem, root = fs.resolve(fs.qualify(os.fspath(warehouse or DEFAULT_WAREHOUSE)))
    if metastore is None and not fs.is_local(root):
        raise InvalidValue(
            f"The embedded store cannot be created in the warehouse {root}: SQLite needs a local disk",
            hint="Pass its location: metastore='/local/path/acidsql.db'.",
        )
    filesystem.mkdirs(root)
    return root


def connect(
    spark: SparkSession | None = None,
    *,
    warehouse: str | os.PathLike[str] | None = None,
    metastore: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> AcidSession:
    """Open a session.

    Args:
        spark: The Spark session to use; by default the active one, else a new local one.
        warehouse: Directory of the ``default`` database; other databases are in ``<name>.db`` below it. By default
            ``warehouse`` in the current directory. Any location that Spark accepts: ``hdfs://``, ``s3a://`` and similar
            require ``metastore`` too; without a scheme it is on ``fs.defaultFS``, which is the local disk unless
            Hadoop's configuration says otherwise. Omit it with a Hive Metastore, which defines its own warehouse.
        metastore: Where catalog and transactions are stored: ``thrift://host:9083`` for a Hive Metastore (several
            servers of one metastore separated by commas), or a SQLAlchemy URL (``sqlite:////path/file.db``). By default
            the file ``acidsql.db`` inside the warehouse.
        settings: Settings by name.

    Raises:
        StorageError: When the warehouse cannot be created or written.
        MetastoreError: When the store cannot be opened.
        InvalidValue: When a setting is unknown or its value is invalid.
    """
    parsed = Settings(settings)
    if is_hive_metastore(metastore) and warehouse is not None:  # before Spark is started
        raise InvalidValue("A Hive Metastore defines its own warehouse: pass either metastore or warehouse")
    active = SparkSession.getActiveSession() if spark is None else spark
    session = active or start_spark(warehouse)  # first: it gives access to all file systems that are not local
    try:
        check(session)
        attach_files(session)
        store, home = open_store(warehouse, metastore, parsed)
    except BaseException:
        if active is None:
            session.stop()
        raise
    user, host = getpass.getuser(), socket.gethostname()
    heartbeats = Heartbeats(store, store.txn_timeout, collect=lambda: collect_garbage(session))
    env = Environment(
        spark=session,
        metastore=store,
        settings=parsed,
        heartbeats=heartbeats,
        compactor=Compactor(WorkerContext(store, heartbeats, parsed, host, user, session)),
        warehouse=home,
        user=user,
        host=host,
        agent=f"acidsql-{os.getpid()}",
    )
    return AcidSession(env, owns_spark=active is None)
