"""What a session has for rows and changes that arrive all the time."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from acidsql.commands.changes import changes_frame, newest_version
from acidsql.commands.environment import Environment
from acidsql.commands.transaction import control
from acidsql.errors import InvalidValue, require_unicode
from acidsql.plan.feed_history import Changes
from acidsql.sql.parser import parse_table_name
from acidsql.sql.statements import TableName
from acidsql.streaming.apply_changes import VALIDITY, ChangeApplier, options_of
from acidsql.streaming.bad_records import BadRecords
from acidsql.streaming.connection import StreamingConnection, StreamOptions
from acidsql.streaming.follow import Follower, FollowOptions
from acidsql.streaming.mutation import BUFFER_ROWS, Mutation
from acidsql.streaming.records import RecordReader, Rows
from acidsql.streaming.sink import Sink, SinkCall


class StreamingFace(ABC):
    """The methods of :class:`acidsql.session.AcidSession` for streams."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._streams: weakref.WeakSet[StreamingConnection | Mutation] = weakref.WeakSet()
        self._sink_calls: dict[str, SinkCall] = {}

    @abstractmethod
    def sql(self, text: str, /, **parameters: Any) -> DataFrame:
        """Run one statement."""

    @abstractmethod
    def _require_open(self) -> None:
        """Raises: AcidError when the session is closed."""

    def _close_streams(self) -> None:
        for stream in list(self._streams):
            stream.close()

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
        names = _names(keys)
        for number in (first, last):
            if isinstance(number, bool) or not isinstance(number, int | None) or first is None:
                raise InvalidValue(f"{number!r} is no write id")
        env = control.environment_of_change(self._env)
        with env.catalyst.active():
            name = table_name(table)
            return changes_frame(env, name, Changes(first, last, names))

    def newest_version(self, table: str) -> int:
        """The newest write id of a table whose changes are final; 0 where nothing was written.

        Write ids are given in the order of the first writes of transactions, and not in that of their commits: as long
        as one is open, those after it are not final. In a transaction of the session it is that of its snapshot: what
        the transaction has written is not final either.

        Raises:
            TableNotFound, NotTransactional: As :meth:`sql`.
        """
        self._require_open()
        _, version = newest_version(control.environment_of_change(self._env), table_name(table))
        return version

    def read_stream(
        self,
        table: str,
        *,
        keys: Sequence[str] = (),
        first: int | None = None,
        max_versions: int | None = None,
        max_bytes: int | None = None,
    ) -> DataFrame:
        """The changes of a table as a streaming DataFrame, with the columns of :meth:`changes`.

        Each micro-batch has the changes of some further write ids. How far a query is, its checkpoint keeps.

        Args:
            table: ``table`` or ``database.table``.
            keys: Columns that name a row.
            first: The write id that a new query begins with; left out, it begins with all rows that are there, as
                inserts, in one batch. ``acid.newest_version(table) + 1`` gives only what is to come.
            max_versions: How many write ids a batch has at most.
            max_bytes: How many bytes of files a batch reads at most; one write id is told however large it is. Neither
                limit holds for the first rows, nor for Spark's trigger ``once``.

        Raises:
            InvalidValue, SnapshotTooOld, UnsupportedError, TableNotFound, NotTransactional: As :meth:`changes`. The
                query fails by these errors, too, and where the table was altered, or dropped and made anew.
        """
        self._require_open()
        options = FollowOptions(_names(keys), first, max_versions, max_bytes)
        with self._env.catalyst.active():
            return Follower(self._env.beside(), table_name(table), options).frame()

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
        stream = StreamingConnection(self._env.beside(), table_name(table), options)
        self._streams.add(stream)
        return stream

    def mutation(self, table: str, *, buffer_rows: int = BUFFER_ROWS) -> Mutation:
        """Begin a transaction in which workers, in any processes, insert, update and delete rows by their ids.

        Args:
            table: ``table`` or ``database.table``, a full-ACID table.
            buffer_rows: How many rows a worker holds in memory before it writes a part of them.

        Raises:
            InvalidValue: When an argument is not valid.
            UnsupportedError: When the table has moments, or timestamps as partition keys.
            LockTimeout: When the lock of an ``UPDATE`` was not granted in time.
            TableNotFound, NotTransactional: As :meth:`sql`.
        """
        self._require_open()
        made = Mutation(self._env.beside(), table_name(table), buffer_rows)
        self._streams.add(made)
        with self._env.catalyst.active():
            return made.begin()

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
        return Sink(self._env, self._sink_calls, _text(table), mode=mode, keys=keys, name=name)

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
        name = _text(table)
        env = control.environment_of_change(self._env)
        with control.answering(env):
            return ChangeApplier(env, name, changes, options).apply()

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


def _names(keys: Sequence[str] | str) -> tuple[str, ...]:
    if isinstance(keys, str) or not all(isinstance(key, str) for key in keys):
        raise InvalidValue("Keys are a list of column names")
    return tuple(keys)


def table_name(table: Any) -> TableName:
    """The name of a table. Raises: InvalidValue when it is no string."""
    return parse_table_name(_text(table))


def string(value: Any, what: str) -> str:
    """What must be a string. Raises: InvalidValue when it is none."""
    if not isinstance(value, str):
        raise InvalidValue(f"{type(value).__name__} is not {what}: a string is expected")
    require_unicode(value, what)
    return value


def _text(table: Any) -> str:
    return string(table, "the table's name")
