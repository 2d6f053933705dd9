"""Changes of rows by their ids, written by workers of the user's in one transaction (Hive's ``MutatorClient``).

The client has the transaction, its locks and its snapshot. It makes a task for each worker; what the workers have
written it publishes, holds against the table, and commits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from types import TracebackType

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from acidsql import fs
from acidsql.commands.environment import Environment
from acidsql.commands.resolve.context import StartOver, StatementContext, in_conflict
from acidsql.commands.transaction.held import HeldTransactions
from acidsql.commands.transaction.locking import change_locks, upsert_lock
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.errors import (
    AcidError,
    InvalidValue,
    StorageError,
    TransactionError,
    UnsupportedError,
)
from acidsql.format.names import staging_txn
from acidsql.metastore.model import Operation, Table
from acidsql.plan.bucketing import bucket_number
from acidsql.plan.changes import key_column, value_column
from acidsql.plan.failures import failing
from acidsql.plan.job import writer_of
from acidsql.plan.nanoseconds import kept_timestamps, rejecting
from acidsql.plan.pruning import partition_rows
from acidsql.plan.scan import ROW_ID, ScanColumns, snapshot_frame
from acidsql.plan.snapshot import TableSnapshot, partition_names
from acidsql.plan.target import IDENTITY
from acidsql.plan.text import quote
from acidsql.plan.values import Zones, with_leaves
from acidsql.settings import NANOSECONDS, SNAPSHOT_RETRIES, XLOCK_MERGE_INSERT
from acidsql.sql.statements import TableName
from acidsql.streaming.published import Published
from acidsql.streaming.worker import MOST_TASKS, Key, MutationTask, MutationWorker, Written, signs
from acidsql.types import (
    LOCAL_TIMESTAMP,
    Array,
    Char,
    HiveType,
    Map,
    Primitive,
    Struct,
    Varchar,
    contains,
    parse_type,
    to_hive,
    to_spark,
)

BUFFER_ROWS = 100_000
_GIVEN, _RAW_KEY = "__acid_given", "__acid_raw_key_"
_PYTHONS_DAYS = "{0} IS NULL OR {0} BETWEEN DATE'0001-01-01' AND DATE'9999-12-31'"


@dataclass(frozen=True)
class _Open:
    """The transaction, and the table as it was when the locks were granted."""

    txn: WriteTransaction
    seen: TableSnapshot

    @property
    def table(self) -> Table:
        return self.seen.table


class Mutation:
    """One transaction whose rows workers write. Made by ``acid.mutation``.

    ::

        with acid.mutation("emp") as mutation:
            written = mutation.run(mutation.rows().where("salary < 3000"), change, tasks=2)
            mutation.commit(written)

    It holds the lock of an ``UPDATE`` of the whole table from the beginning to the end. A block that ends without
    :meth:`commit` aborts it, as an error of any method but :meth:`rows`, :meth:`sorted` and :meth:`bucketed` does.
    """

    def __init__(self, env: Environment, name: TableName, buffer_rows: int = BUFFER_ROWS) -> None:
        """It is to be begun (:meth:`begin`). Raises: InvalidValue when ``buffer_rows`` is no number above 0."""
        if isinstance(buffer_rows, bool) or not isinstance(buffer_rows, int) or buffer_rows < 1:
            raise InvalidValue(f"buffer_rows is a whole number above 0, not {buffer_rows!r}")
        self._env, self._buffer_rows = env, buffer_rows
        self._name = replace(name, database=env.database_of(name))
        self._lock = threading.RLock()
        self._held = HeldTransactions(env, self)
        self._tasks: tuple[MutationTask, ...] = ()
        self._open: _Open | None = None

    def begin(self) -> Mutation:
        """Begin the transaction, which waits for its lock; ``acid.mutation`` does that. Whoever closes it meanwhile
        waits, too.

        Raises:
            TableNotFound, NotTransactional: As ``UPDATE``.
            UnsupportedError: When times of the table cannot be handed to Python and back.
            LockTimeout: When the lock was not granted in time.
        """
        with self._lock:
            retries = self._env.settings.value(SNAPSHOT_RETRIES)
            for attempt in range(retries + 1):
                try:
                    self._open = self._begin()
                    break
                except StartOver:
                    if attempt == retries:
                        raise
            return self

    # --- what is there -----------------------------------------------------------------------------------------------

    @property
    def table(self) -> Table:
        """The table. Raises: TransactionError when the mutation is over."""
        return self._required().table

    def rows(self) -> DataFrame:
        """The rows of the table as the mutation sees them, with ``ROW__ID`` behind their columns.

        A ``timestamp`` is there as a ``timestamp_ntz``, the wall clock that is stored, so that Python's zone makes no
        difference. The frame can be read as long as the mutation is open. It fails at a row with a text that is not
        valid UTF-8, which Python would give back as another one, and at a timestamp with nanoseconds
        (``acidsql.timestamp.nanoseconds``).

        Raises:
            TransactionError: When the mutation is over.
        """
        with self._lock:
            now = self._required()
            utc = self._env.sessions.in_zone("UTC")
            frame = snapshot_frame(utc, now.seen, self._utc_zones, ScanColumns(row_id=True, raw_keys=_RAW_KEY))
            if self._env.settings.value(NANOSECONDS) != "truncate":
                row = {key_column(i): f"{_RAW_KEY}{i}" for i in range(len(now.table.partition_keys))}
                row |= {part: f"{ROW_ID}.{part}" for part in IDENTITY}
                checked = rejecting(utc.spark, now.seen, kept_timestamps(now.table, ()), frame, row)
                frame = frame if checked is None else checked
            columns = [(c.name, parse_type(c.type)) for c in now.table.all_columns]
            made = [f"{_handed_over(quote(name), type)} AS {quote(name)}" for name, type in columns]
            return self._env.catalyst.moved(frame.selectExpr(*made, ROW_ID))

    def sorted(self, frame: DataFrame) -> DataFrame:
        """Rows in the order that workers take them in, each partition and bucket file in one partition of Spark's.

        Args:
            frame: Rows with the partition keys and ``ROW__ID``.

        Returns:
            The same rows, in as many partitions of Spark's as there are tasks; where there are none, maybe in fewer.

        Raises:
            TransactionError: When the mutation is over, or has no tasks yet.
        """
        table = self._required().table
        if not self._tasks:
            raise TransactionError("The mutation has no tasks yet: tasks() says how many workers there are")
        # 0.0 and -0.0 are equal, and two partitions
        keys = [F.col(quote(k.name)).cast("string") for k in table.partition_keys]
        file = [*keys, F.expr(writer_of(f"{ROW_ID}.bucketId"))]
        spread = frame.repartition(len(self._tasks), *file)
        return spread.sortWithinPartitions(*file, ROW_ID)

    def bucketed(self, frame: DataFrame, column: str) -> DataFrame:
        """Rows with the number of the bucket that they belong to, which :meth:`MutationWorker.insert` is told.

        Args:
            frame: Rows with the bucketing columns.
            column: The name of a further column for the number.

        Raises:
            InvalidValue: When the table is not bucketed.
            TransactionError: When the mutation is over.
        """
        table, utc = self._required().table, self._env.sessions.in_zone("UTC")
        if not table.bucket_columns:
            raise InvalidValue(f"{table.full_name} is not bucketed")
        given, stored = [], []
        for i, one in enumerate(table.columns):
            type, name = parse_type(one.type), value_column(i)
            value = _naive(quote(one.name), type) if one.name in table.bucket_columns else "NULL"
            given.append(F.expr(value).alias(name))
            stored.append(f"CAST({name} AS {to_spark(type, plain_strings=True)}) AS {name}")
        named = utc.moved(frame.select(F.struct("*").alias(_GIVEN), *given)).selectExpr(_GIVEN, *stored)
        number = bucket_number(utc.spark, table, named)
        return self._env.catalyst.moved(named.select(f"{_GIVEN}.*", number.alias(column)))

    def tasks(self, count: int) -> tuple[MutationTask, ...]:
        """What each of the workers needs to know, once for the mutation.

        Args:
            count: How many workers there are, at most 2048.

        Raises:
            InvalidValue: When it is no such number.
            TransactionError: When the mutation is over, or has tasks already.
        """
        with self._lock:
            now = self._required()
            if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_TASKS:
                raise InvalidValue(f"A mutation has 1 to {MOST_TASKS} tasks, not {count!r}")
            if self._tasks:
                raise TransactionError("The mutation has its tasks already")
            with self._step(now.txn):
                made = MutationTask(
                    number=0,
                    count=count,
                    txn_id=now.txn.id,
                    write_id=now.txn.allocate_write_id(now.table),
                    table=now.table,
                    compression=self._env.compression_of(now.table),
                    zone=self._env.session_zone,
                    partitions=self._partitions(now),
                    buffer_rows=self._buffer_rows,
                )
            self._tasks = tuple(replace(made, number=number) for number in range(count))
            return self._tasks

    def run(
        self, frame: DataFrame, change: Callable[[MutationWorker, Iterable[Row]], object], tasks: int
    ) -> list[Written]:
        """Run a function in Spark's tasks, each with a worker and a part of some rows (:meth:`sorted`).

        Args:
            frame: Rows with the partition keys and ``ROW__ID``.
            change: What a task does: it gets its worker, which is closed for it, and its rows in their order.
            tasks: How many tasks there are.

        Returns:
            What they have written, for :meth:`commit`.

        Raises:
            As :meth:`tasks`, and whatever Spark raises where ``change`` fails: the mutation is still open, and may be
            run again with as many tasks.
        """
        made = self._tasks if len(self._tasks) == tasks else self.tasks(tasks)

        def work(number: int, rows: Iterable[Row]) -> Iterable[Written]:
            with made[number].open() as worker:
                if isinstance(change(worker, rows), Generator):
                    raise InvalidValue("The function of a task is a generator, of which nothing was run")
            yield worker.written

        written: list[Written] = self.sorted(frame).rdd.mapPartitionsWithIndex(work).collect()
        started = {one.task for one in written}  # of no rows Spark makes no tasks
        return [*written, *(one for task in made if task.number not in started for one in work(task.number, ()))]

    # --- the end -----------------------------------------------------------------------------------------------------

    def commit(self, written: Iterable[Written]) -> DataFrame:
        """Commit what the workers have written: all of it is visible when this returns.

        1. Publish the files, invisible before the commit.
        2. Count the rows that are hidden now: each row id that was named hides one.
        3. Hold the new rows against CHECK constraints, and against their buckets.
        4. Commit.

        Args:
            written: :attr:`MutationWorker.written` of each task, once.

        Returns:
            The row of counts.

        Raises:
            NoSuchRow: When a row id names no row, or was named twice.
            ConstraintViolation: When a new row does not meet a CHECK constraint.
            InvalidValue: When a new row is in the wrong bucket.
            WriteConflict: When others have replaced what it has written to or changed, unseen.
            TransactionError: When a task has handed in nothing, or twice; the mutation is over; others have ended it.
        """
        with self._lock:
            now = self._required()
            with self._step(now.txn), in_conflict():
                parts = self._all_of(now, list(written))
                self._publish(now, parts)
                published = Published(self._env, now.txn, now.seen, tuple(parts))
                published.check()
                now.txn.commit()
            self._open = None
            self._held.ended(now.txn)
            self._sweep(now)
            now.txn.committed()
            counts = published.counts
            return self._env.counts(updated=counts.updated, deleted=counts.deleted, inserted=counts.inserted)

    def abort(self) -> None:
        """Abort the transaction: nothing of it is there. Raises: TransactionError when the mutation is over."""
        with self._lock:
            self._roll_back(self._required().txn, AcidError("aborted by the client"))

    def close(self) -> None:
        """Abort the transaction if it is open. A mutation may be closed twice."""
        with self._lock:
            if self._open is not None:
                self._roll_back(self._open.txn, AcidError("the mutation was closed"))

    def __enter__(self) -> Mutation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _begin(self) -> _Open:
        env, opened = self._env, list[WriteTransaction]()
        self._held.open(1, opened)
        [txn] = opened
        with self._step(txn):
            table = env.changeable_table(self._name)
            _refuse_times(table)
            context = StatementContext(env)
            context.add(table)
            locks = change_locks(env, table, Operation.UPDATE, None, by_rows=False)
            txn.lock([*locks, upsert_lock(env, table)] if table.partition_keys else locks)
            context.revalidate(txn.snapshot)
            return _Open(txn, context.table_snapshot(table, context.partitions(table)))

    def _required(self) -> _Open:
        if self._open is None:
            raise TransactionError("The mutation is over")
        return self._open

    @property
    def _utc_zones(self) -> Zones:
        return replace(self._env.zones, session="UTC")

    def _partitions(self, now: _Open) -> dict[Key, str | None]:
        """The partitions by the values of their keys, as rows have them."""
        table, types = now.table, [parse_type(k.type) for k in now.table.partition_keys]
        places = [p.partition for p in now.seen.partitions if p.partition is not None]
        if not places:
            return {}
        rows = partition_rows(self._env.own_spark, table, places)
        for key, type in zip(table.partition_keys, types, strict=True):
            if to_hive(type) == "date":
                rows = rows.where(_PYTHONS_DAYS.format(quote(key.name)))  # those of other days have no rows in Python
        found: dict[Key, str | None] = {}
        for number, *values in rows.collect():
            known = signs(tuple(values), types)
            found[known] = None if known in found else partition_names(table, places[number])
        return found

    def _all_of(self, now: _Open, written: Sequence[Written]) -> list[Written]:
        if self._required() is not now:
            raise TransactionError("The mutation is over")
        by_task: dict[int, Written] = {}
        for one in written:
            if not isinstance(one, Written) or one.txn_id != now.txn.id:
                raise TransactionError("What was handed in was not written for this mutation")
            if one.task in by_task:
                raise TransactionError(f"Task {one.task} has handed in twice")
            by_task[one.task] = one
        missing = [task.number for task in self._tasks if task.number not in by_task]
        if missing:
            raise TransactionError(f"Task {missing[0]} of {len(self._tasks)} has handed in nothing")
        return list(by_task.values())

    def _publish(self, now: _Open, parts: Sequence[Written]) -> None:
        if not any(part.part.directories for part in parts):
            return
        staging = now.txn.stage(now.table)
        for one in parts:
            staging.take(one.part)
            for directory, _ in one.part.directories:
                if not staging.fs.exists(directory.path):
                    raise StorageError(f"What task {one.task} has written is not there: {directory.path}")
        as_changes = self._env.settings.value(XLOCK_MERGE_INSERT)
        now.txn.publish(now.table, staging, dynamic=True, as_changes=as_changes)

    def _sweep(self, now: _Open) -> None:
        """Remove what tasks have left that were opened more than once; the cleaner does so later, too."""
        try:
            filesystem, path = fs.resolve(now.table.location)
            for entry in filesystem.list(path):
                if staging_txn(entry.name) == now.txn.id:
                    filesystem.delete(entry.path)
        except AcidError:
            pass

    def _step(self, txn: WriteTransaction) -> AbstractContextManager[None]:
        return self._held.step(txn, self._roll_back)

    def _roll_back(self, txn: WriteTransaction, error: BaseException) -> TransactionError | None:
        now, self._open = self._open, None
        ended = self._held.roll_back(txn, error)
        if now is not None and txn.is_aborted:
            self._sweep(now)
        return ended


def _refuse_times(table: Table) -> None:
    """Raises: UnsupportedError for types whose values Python has in its own zone, or is not to compare."""
    for column in table.all_columns:
        if contains(parse_type(column.type), LOCAL_TIMESTAMP):
            raise UnsupportedError(f"{column.name} is a moment, which Python has in the zone of its own process")
    for key in table.partition_keys:
        if contains(parse_type(key.type), "timestamp"):
            raise UnsupportedError(f"Partition key {key.name} is a timestamp: its partitions cannot be told in Python")


def _naive(expression: str, type: HiveType) -> str:
    """Wall clocks without a zone; in UTC, where each is one."""

    def leaf(value: str, of: HiveType) -> str:
        return f"CAST({value} AS timestamp_ntz)" if of == Primitive("timestamp") else value

    return with_leaves(expression, type, leaf)


def _handed_over(value: str, type: HiveType) -> str:
    """A value as Python gets it, failing for one that it would give back as another one."""
    broken = _broken_text(value, type)
    if broken is None:
        return _naive(value, type)
    failure = failing("A text is not valid UTF-8: Python would get, and hand back, another one")
    return f"if({broken}, {failure}, {_naive(value, type)})"


def _broken_text(value: str, type: HiveType, depth: int = 0) -> str | None:
    """A condition that is true for a value with a text in it that is not valid UTF-8; None for types without texts."""
    if isinstance(type, Struct):
        made = [_broken_text(f"({value}).{quote(name)}", field, depth) for name, field in type.fields]
        return " OR ".join(f"({one})" for one in made if one is not None) or None
    if isinstance(type, Array):
        inside = _broken_text(f"e{depth}", type.element, depth + 1)
        return None if inside is None else f"exists({value}, e{depth} -> {inside})"
    if isinstance(type, Map):
        parts = (Array(type.key), f"map_keys({value})"), (Array(type.value), f"map_values({value})")
        found = [_broken_text(part, of, depth) for of, part in parts]
        return " OR ".join(f"({one})" for one in found if one is not None) or None
    is_text = isinstance(type, Char | Varchar) or type == Primitive("string")
    return f"NOT is_valid_utf8({value})" if is_text else None
