"""The session: text in, DataFrame out."""

from __future__ import annotations

import getpass
import os
import socket
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from acidsql import fs
from acidsql.builders import Expressions, MergeBuilder, Value, insert_text, require_used
from acidsql.catalyst import check, collect_garbage
from acidsql.commands.environment import Environment
from acidsql.commands.query import changes_frame, newest_version, table_frame
from acidsql.commands.registry import execute
from acidsql.compactor import Compactor, WorkerContext
from acidsql.errors import AcidError, InvalidValue
from acidsql.metastore import is_hive_metastore, open_metastore
from acidsql.metastore.heartbeat import Heartbeats
from acidsql.metastore.model import DEFAULT_DATABASE
from acidsql.metastore.protocol import Metastore
from acidsql.plan.feed_history import Changes
from acidsql.plan.views import Views
from acidsql.settings import Settings
from acidsql.sql.parser import parse_statement, parse_table_name, split_script, substitute
from acidsql.sql.statements import Statement
from acidsql.streaming.apply_changes import VALIDITY, ChangeApplier, options_of
from acidsql.streaming.bad_records import BadRecords
from acidsql.streaming.connection import StreamingConnection, StreamOptions
from acidsql.streaming.records import RecordReader, Rows
from acidsql.streaming.sink import Sink

STORE_NAME = "acidsql.db"
"""File of the embedded store inside the warehouse."""
DEFAULT_WAREHOUSE = "warehouse"


class AcidSession:
    """Hive full-ACID tables on a Spark session. Created by :func:`acidsql.connect`; a context manager; thread-safe.

    Attributes:
        spark: The Spark session.
    """

    def __init__(self, env: Environment, *, owns_spark: bool) -> None:
        self._env = env
        self._owns_spark = owns_spark
        self._closed = False
        self._close_lock = threading.Lock()
        self._streams: weakref.WeakSet[StreamingConnection] = weakref.WeakSet()

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
        return self._execute(parse_statement(_string(text, "the statement")), parameters)

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
        with self._env.catalyst.active():
            return table_frame(self._env, parse_table_name(_string(name, "the table's name")), version)

    def changes(self, table: str, first: int, last: int | None = None, *, keys: Sequence[str] = ()) -> DataFrame:
        """The changes of a table between two write ids, both included, as a lazy DataFrame; in no order.

        Each row that was inserted or deleted is one, with the table's columns and

        * ``_change_type``: ``insert`` or ``delete``; with ``keys`` ``update_preimage`` and ``update_postimage`` where
          one row with the same key was deleted and one inserted;
        * ``_commit_version``: the write id;
        * ``_commit_timestamp``: when it was committed, as far as the store has it on record; a Hive Metastore has not.

        Args:
            table: ``table`` or ``database.table``.
            first: The first write id; the one behind the newest is allowed, and has no changes.
            last: The last one; left out, the newest whose changes are final (:meth:`newest_version`).
            keys: Columns that name a row.

        Raises:
            InvalidValue: When there are no such write ids, or a transaction with one of them is open.
            SnapshotTooOld: When files that tell the changes were compacted or overwritten, and removed (Hive 10327);
                ``acidsql.changes.retention`` keeps them for a time.
            UnsupportedError: When the table is insert-only.
            TableNotFound, NotTransactional: As :meth:`sql`.
        """
        self._require_open()
        if isinstance(keys, str) or not all(isinstance(key, str) for key in keys):
            raise InvalidValue("Keys are a list of column names")
        for number in (first, last):
            if isinstance(number, bool) or not isinstance(number, int | None) or first is None:
                raise InvalidValue(f"{number!r} is no write id")
        with self._env.catalyst.active():
            name = parse_table_name(_string(table, "the table's name"))
            return changes_frame(self._env, name, Changes(first, last, tuple(keys)))

    def newest_version(self, table: str) -> int:
        """The newest write id of a table whose changes are final; 0 where nothing was written.

        Write ids are given in the order of the first writes of transactions, and not in that of their commits: as long
        as one is open, those after it are not final.

        Raises:
            TableNotFound, NotTransactional: As :meth:`sql`.
        """
        self._require_open()
        return newest_version(self._env, parse_table_name(_string(table, "the table's name")))

    def streaming(
        self,
        table: str,
        *,
        partition: Mapping[str, Any] | None = None,
        dynamic: bool = True,
        records: RecordReader | None = None,
        bad_records: str = "error",
        batch: int = 1,
        buffer_bytes: int = 64 << 20,
        buffer_rows: int = 1_000_000,
    ) -> StreamingConnection:
        """A connection that writes rows into a table as they arrive, without Spark jobs.

        Args:
            table: ``table`` or ``database.table``.
            partition: Values of partition keys that all rows have; records have those of the others.
            dynamic: Whether records may have values of partition keys; otherwise ``partition`` gives all of them.
            records: What a record is: :class:`~acidsql.streaming.Rows` (dicts and tuples), or a
                :class:`~acidsql.streaming.Delimited`, :class:`~acidsql.streaming.Json` or
                :class:`~acidsql.streaming.Regex`.
            bad_records: What happens to those that cannot be stored: ``error``, ``skip``, or a directory for them.
            batch: How many transactions are opened by one call of the metastore.
            buffer_bytes: Bytes that a transaction holds in memory before it writes a part of it; ``buffer_rows`` the
                same in rows.

        Raises:
            InvalidValue: When an argument is not valid.
        """
        self._require_open()
        options = StreamOptions(
            partition=partition or {},
            dynamic=dynamic,
            reader=records or Rows(),
            bad_records=BadRecords(bad_records),
            batch=batch,
            buffer_bytes=buffer_bytes,
            buffer_rows=buffer_rows,
        )
        stream = StreamingConnection(self._env, parse_table_name(_string(table, "the table's name")), options)
        self._streams.add(stream)
        return stream

    def sink(
        self,
        table: str,
        *,
        mode: str = "append",
        keys: Sequence[str] = (),
        name: str | None = None,
    ) -> Sink:
        """What writes the batches of a streaming query into a table, each exactly once: ``foreachBatch(acid.sink(…))``.

        Args:
            table: ``table`` or ``database.table``. Columns are matched by their names.
            mode: ``append``; ``merge``: rows with the same keys are replaced; ``overwrite``: each batch is the whole
                table (Spark's output mode ``complete``).
            keys: For ``merge``: columns that name a row.
            name: Under which the batches are counted (:class:`~acidsql.streaming.Sink`); that of the table when left
                out. Queries that write to one table need names of their own.

        Raises:
            InvalidValue: When an argument is not valid.
        """
        self._require_open()
        return Sink(self._env, self.sql, _string(table, "the table's name"), mode=mode, keys=keys, name=name)

    def apply_changes(
        self,
        table: str,
        changes: DataFrame,
        *,
        keys: Sequence[str],
        sequence_by: str,
        deletes: str | None = None,
        except_columns: Sequence[str] = (),
        scd_type: int = 1,
        validity: Sequence[str] = VALIDITY,
    ) -> DataFrame:
        """Apply a batch of changes of keyed rows, such as a CDC feed has them: out of order, twice, deletes first.

        Of type 1 the table has the newest state of each key. Of type 2 it has all of them: its columns ``valid_from``
        and ``valid_to``, of the sequence's type, say from which sequence on a row held and until which (NULL: it still
        does). What was applied is remembered in the table ``acidsql_applied_<table>``, beside it: changes that come
        again, or later than newer ones of their key, are passed over, or find their place.

        Args:
            table: ``table`` or ``database.table``.
            changes: The changes: columns of the table by their names, and what the expressions below need.
            keys: The columns that name a row; partition keys and bucketing columns of the table are among them.
            sequence_by: An expression over the changes that orders those of a key.
            deletes: A condition for changes that are deletes; without one none is.
            except_columns: Columns of the changes that are not written.
            scd_type: 1 or 2.
            validity: The names of those two columns of type 2.

        Returns:
            The row of counts.

        Raises:
            InvalidValue: When an argument is not valid; a key or a sequence is NULL; two changes of a key with one
                sequence differ.
            AnalysisError: When a column is missing, or what was remembered is of other keys.
            UnsupportedError: When the sequence cannot be stored. Also the errors of :meth:`sql`.
        """
        self._require_open()
        options = options_of(keys, sequence_by, deletes, except_columns, scd_type, validity)
        name = _string(table, "the table's name")
        return ChangeApplier(self._env, self.sql, name, changes, options).apply()

    def write_stream(
        self,
        frame: DataFrame,
        table: str,
        *,
        checkpoint: str,
        mode: str = "append",
        keys: Sequence[str] = (),
        name: str | None = None,
        trigger: Mapping[str, Any] | None = None,
    ) -> StreamingQuery:
        """Start a streaming query that writes a streaming DataFrame into a table, each row exactly once.

        Args:
            frame: The rows.
            table, mode, keys, name: As for :meth:`sink`.
            checkpoint: Where Spark keeps how far the query is; a query that is started again goes on from there.
            trigger: As of Spark's ``trigger()``: ``{"availableNow": True}`` or ``{"processingTime": "5 seconds"}``.

        Returns:
            The query, started. Raises the errors of :meth:`sink`.
        """
        sink = self.sink(table, mode=mode, keys=keys, name=name)
        output = "complete" if mode == "overwrite" else "update" if mode == "merge" else "append"
        writer = frame.writeStream.outputMode(output).option("checkpointLocation", checkpoint).foreachBatch(sink)
        return (writer if trigger is None else writer.trigger(**trigger)).start()

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
        with Views(self.spark) as views:
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
        return MergeBuilder(self.sql, self.spark, table, source, alias=alias, source_alias=source_alias)

    def script(self, script: str | os.PathLike[str], variables: Mapping[str, str] | None = None) -> Iterator[DataFrame]:
        """Run a ``;``-separated script lazily: each statement runs when its result is requested.

        Args:
            script: The path of a file (a ``PathLike``, or a one-line text that names an existing file), or the text.
            variables: Values of ``${name}`` and ``${hivevar:name}``.

        Yields:
            The DataFrame of each statement.
        """
        self._require_open()
        text = _script_text(script)
        for part in split_script(text):
            try:
                yield self.sql(substitute(part.text, dict(variables or {})))
            except AcidError as e:
                if e.line is not None and part.line > 1:
                    e.line += part.line - 1
                raise

    def close(self) -> None:
        """Close streaming connections, stop the compactor, end the readers' transactions, release the store.

        Spark is stopped if :func:`acidsql.connect` started it.
        """
        with self._close_lock:
            if self._closed:
                return
            self._closed = True
        for stream in list(self._streams):
            stream.close()
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
        if self._closed:
            raise AcidError("The session is closed")
        context: Any = self.spark.sparkContext
        if context._jsc is None:
            raise AcidError("The session's Spark was stopped", hint="Connect again, to a new Spark session.")

    def _execute(self, statement: Statement, parameters: Mapping[str, Any]) -> DataFrame:
        return execute(self._env, statement, parameters)


def _string(value: Any, what: str) -> str:
    """What must be a string, if it is one."""
    if not isinstance(value, str):
        raise InvalidValue(f"{type(value).__name__} is not {what}: a string is expected")
    return value


def _script_text(script: str | os.PathLike[str]) -> str:
    if isinstance(script, os.PathLike):
        return Path(script).read_text(encoding="utf-8")
    if "\n" not in script and ";" not in script and os.path.isfile(script):
        return Path(script).read_text(encoding="utf-8")
    return script


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
