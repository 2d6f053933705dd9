"""A connection that writes rows into one table, transaction by transaction, without Spark jobs.

The shape is that of Hive's Streaming API (``HiveStreamingConnection``). Rows are buffered as columns; what is buffered
becomes a delta of the transaction at the commit, or before it where it would take too much memory: each such part is a
statement of the transaction, with a directory of its own. Nothing of it is visible before the commit.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields, replace
from types import TracebackType
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame

from acidsql.commands.environment import Environment
from acidsql.commands.resolve.context import StartOver, in_conflict
from acidsql.commands.transaction.held import HeldTransactions
from acidsql.commands.transaction.locking import insert_lock
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.errors import (
    AcidError,
    AnalysisError,
    InvalidValue,
    NoSuchTransaction,
    TransactionAborted,
    TransactionError,
)
from acidsql.format.bucket import MAX_STATEMENT_ID
from acidsql.metastore.model import Table
from acidsql.partition_names import partition_name
from acidsql.plan.arrow import fetched
from acidsql.plan.failures import own_failures
from acidsql.plan.staging import Staging
from acidsql.settings import SNAPSHOT_RETRIES
from acidsql.sql.statements import TableName
from acidsql.streaming.bad_records import ERROR, BadRecords, KeptRecords
from acidsql.streaming.records import RecordReader, Rows
from acidsql.streaming.target import BadRecord, StreamTarget
from acidsql.streaming.values import BadValue

Records: TypeAlias = "Iterable[Any] | Mapping[str, Any] | pa.Table | pa.RecordBatch | DataFrame"


@dataclass(frozen=True)
class StreamOptions:
    """How a connection writes.

    Attributes:
        partition: Values of partition keys that all rows have; records have those of the others.
        dynamic: Whether records may have values of partition keys; otherwise ``partition`` gives all of them.
        reader: What a record is.
        bad_records: What happens to those that cannot be stored (:class:`BadRecords`).
        batch: How many transactions are opened by one call.
        buffer_bytes, buffer_rows: Rows that a transaction holds in memory: with more, :meth:`StreamingConnection.write`
            writes files before it returns, and whoever writes waits.
    """

    partition: Mapping[str, Any] = field(default_factory=dict)
    dynamic: bool = True
    reader: RecordReader = field(default_factory=Rows)
    bad_records: BadRecords = field(default_factory=lambda: BadRecords(ERROR))
    batch: int = 1
    buffer_bytes: int = 64 << 20
    buffer_rows: int = 1_000_000

    def __post_init__(self) -> None:
        for name in ("batch", "buffer_bytes", "buffer_rows"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidValue(f"{name} is a whole number above 0, not {value!r}")


@dataclass(frozen=True)
class Statistics:
    """What a connection has done so far.

    Attributes:
        committed, aborted: Transactions.
        rows: Rows of committed transactions; ``bytes`` their size as Arrow columns.
        bad: Bad records that committed transactions have left out.
        deltas: Directories of rows, one for each statement of a transaction.
        commit_seconds: Seconds that commits took, all together.
    """

    committed: int = 0
    aborted: int = 0
    rows: int = 0
    bytes: int = 0
    bad: int = 0
    deltas: int = 0
    commit_seconds: float = 0.0

    def __add__(self, other: Statistics) -> Statistics:
        names = [f.name for f in fields(self)]
        return Statistics(**{name: getattr(self, name) + getattr(other, name) for name in names})


@dataclass
class _Open:
    """The transaction that is open."""

    txn: WriteTransaction
    target: StreamTarget
    staging: Staging
    parts: list[pa.Table] = field(default_factory=list)
    """Rows that are in no file yet."""
    held_bytes: int = 0
    held_rows: int = 0
    bad: KeptRecords = field(default_factory=KeptRecords)
    """Bad records, where they are kept."""
    done: Statistics = field(default_factory=Statistics)
    """What it adds to the connection's statistics."""

    def is_full(self, options: StreamOptions) -> bool:
        """Whether it holds more rows than it may."""
        return self.held_bytes >= options.buffer_bytes or self.held_rows >= options.buffer_rows

    def hold(self, parts: Iterable[pa.Table]) -> None:
        """Take further rows."""
        for part in parts:
            self.parts.append(part)
            self.held_bytes += part.nbytes
            self.held_rows += part.num_rows

    def flush(self) -> None:
        """Write what is held as one more statement of the transaction."""
        if not self.parts:
            return
        rows = pa.concat_tables(self.parts)
        if self.done.deltas > MAX_STATEMENT_ID:
            raise TransactionError("The transaction has too many parts: commit more often, or let it hold more rows")
        self.target.write(rows, self.txn.target(self.target.table), self.staging)
        self.done += Statistics(rows=rows.num_rows, bytes=rows.nbytes, deltas=1)
        self.parts, self.held_bytes, self.held_rows = [], 0, 0


class StreamingConnection:
    """Writes rows into one table, transaction by transaction. Made by ``acid.streaming``.

    Any thread may call it; calls wait for each other, and a transaction belongs to the connection. To write to a table
    from several threads or processes at once, let each have a connection of its own.

    ::

        with acid.streaming("events") as stream:
            for batch in source:
                stream.begin()
                stream.write(batch)
                stream.commit()

    An error of :meth:`begin` or :meth:`commit`, or one of :meth:`write` that is no :class:`BadValue`, has ended the
    transaction: none of its rows are there.
    """

    def __init__(self, env: Environment, name: TableName, options: StreamOptions) -> None:
        self._env, self._options = env, options
        self._name = replace(name, database=env.database_of(name))  # whatever the current database will be
        self._given = {name.lower(): value for name, value in options.partition.items()}
        self._lock = threading.RLock()
        self._is_closed = False
        self._ready: list[WriteTransaction] = []
        """Transactions of the batch that are still to come."""
        self._open: _Open | None = None
        self._target: StreamTarget | None = None
        """That of the last transaction, for as long as the table stays as it is."""
        self._done = Statistics()
        self._held = HeldTransactions(env, self)

    @property
    def statistics(self) -> Statistics:
        """What it has done so far."""
        return self._done

    # --- transactions ------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Open a transaction; it waits for the lock that ``INSERT`` takes.

        Raises:
            TransactionError: When one is open.
            TableNotFound, NotTransactional: When the table is not there any more, or is no ACID table.
            LockTimeout: When the lock was not granted in time.
        """
        with self._lock:
            self._require_not_closed()
            if self._open is not None:
                raise TransactionError("A transaction is open already")
            for attempt in range(self._env.settings.value(SNAPSHOT_RETRIES) + 1):
                txn = self._next()
                try:
                    with self._step(txn):
                        target = self._locked(txn)
                        self._open = _Open(txn, target, txn.stage(target.table))
                    return
                except (StartOver, TransactionAborted, NoSuchTransaction):  # nothing was begun: others may end a batch
                    self._end_ready(AcidError("the batch was outdated"))
                    if attempt == self._env.settings.value(SNAPSHOT_RETRIES):
                        raise

    def write(self, records: Records) -> int:
        """Add rows to the open transaction. Nobody sees them before its commit.

        Args:
            records: Records for the connection's reader, or one of them; or Arrow columns, or a DataFrame, by their
                names, of which all rows are added or, if one is bad, none.

        Returns:
            How many rows were added.

        Raises:
            TransactionError: When no transaction is open, or the source of the records has ended it.
            BadValue: When one of them cannot be stored, and bad records are not left out: then none is added, and the
                transaction goes on.
        """
        with self._lock:
            now = self._required()
            if isinstance(records, DataFrame):
                with own_failures():
                    records = fetched(records)
            with self._step(now.txn, lets=BadValue):
                made, bad = self._read(now.target, records)
            if self._open is not now:  # whoever gave the records
                raise TransactionError("The transaction was ended while records were read for it: they are not written")
            policy = self._options.bad_records
            policy.check(bad)
            now.done += Statistics(bad=len(bad))
            if policy.are_kept:
                now.bad.add(bad)
            now.hold(made)
            if now.is_full(self._options):
                with self._step(now.txn):
                    now.flush()
            return sum(part.num_rows for part in made)

    def _read(self, target: StreamTarget, records: Any) -> tuple[list[pa.Table], list[BadRecord]]:
        if isinstance(records, pa.Table | pa.RecordBatch):
            return [target.of_arrow(records)], []
        return target.read([records] if isinstance(records, Mapping | str | bytes) else records, self._options.reader)

    def commit(self) -> None:
        """Commit the transaction: its rows are visible when this returns.

        Raises:
            WriteConflict: When others have replaced what it has written to or changed, unseen.
            TransactionError: When no transaction is open, or others have ended it.
        """
        with self._lock:
            now, started = self._required(), time.monotonic()
            with self._step(now.txn), in_conflict():
                now.flush()
                if now.done.rows:
                    table = now.target.table
                    now.txn.publish(table, now.staging, dynamic=self._is_dynamic(table))
                self._options.bad_records.write(now.bad, now.txn.id)
                now.txn.commit()
            self._open = None
            self._held.ended(now.txn)
            self._done += now.done + Statistics(committed=1, commit_seconds=time.monotonic() - started)
            now.txn.committed()

    def abort(self) -> None:
        """Abort the transaction: its rows are gone. Raises: TransactionError when none is open."""
        with self._lock:
            now = self._required()
            self._roll_back(now.txn, AcidError("aborted by the writer"))

    def close(self) -> None:
        """Abort the transaction that is open, if one is. A connection may be closed twice."""
        with self._lock:
            self._is_closed = True
            error = AcidError("the connection was closed")
            if self._open is not None:
                self._roll_back(self._open.txn, error)
            self._end_ready(error)

    def __enter__(self) -> StreamingConnection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _require_not_closed(self) -> None:
        if self._is_closed:
            raise TransactionError("The connection is closed")

    def _required(self) -> _Open:
        self._require_not_closed()
        if self._open is None:
            raise TransactionError("No transaction is open")
        return self._open

    def _next(self) -> WriteTransaction:
        """The next transaction, kept alive; of a batch all are opened at once."""
        if not self._ready:
            self._held.open(self._options.batch, self._ready)
        return self._ready.pop(0)

    def _end_ready(self, error: AcidError) -> None:
        """End the transactions of the batch that are still to come."""
        while self._ready:
            txn = self._ready.pop()
            self._held.roll_back(txn, error)

    def _locked(self, txn: WriteTransaction) -> StreamTarget:
        """The table, once the transaction has its lock: it stays as it is as long as it has."""
        table = self._env.get_table(self._name)
        name, is_dynamic = None, self._is_dynamic(table)
        if table.partition_keys and not is_dynamic:
            keys, static = [k.name for k in table.partition_keys], self._target_of(table).static
            name = partition_name(keys, [static[k] for k in keys])
        txn.lock([insert_lock(self._env, table, name, overwrite=False, dynamic=is_dynamic)])
        return self._target_of(self._env.get_table(self._name))

    def _target_of(self, table: Table) -> StreamTarget:
        """That of the last transaction, if the table is as it was."""
        if self._target is None or self._target.table != table:
            self._target = StreamTarget(self._env, table, self._static(table))
        return self._target

    def _is_dynamic(self, table: Table) -> bool:
        """Whether each row has the value of a partition key. Raises: AnalysisError where they may not."""
        missing = [k.name for k in table.partition_keys if k.name not in self._given]
        if missing and not self._options.dynamic:
            raise AnalysisError(f"Partition key {missing[0]} has no value", code=10044)
        return bool(missing)

    def _static(self, table: Table) -> dict[str, str | None]:
        """The texts of the keys that are given."""
        keys = {k.name: k for k in table.partition_keys}
        for name in self._given:
            if name not in keys:
                raise AnalysisError(f"{name} is not a partition key of {table.full_name}", code=10098)
        target = StreamTarget(self._env, table, {})
        return {name: target.key_text(keys[name], value) for name, value in self._given.items()}

    def _step(self, txn: WriteTransaction, *, lets: type[AcidError] | None = None) -> AbstractContextManager[None]:
        return self._held.step(txn, self._roll_back, lets=lets)

    def _roll_back(self, txn: WriteTransaction, error: BaseException) -> TransactionError | None:
        if self._open is not None and self._open.txn is txn:
            self._open = None
        self._done += Statistics(aborted=1)
        ended = self._held.roll_back(txn, error)
        if txn.is_aborted:
            self._options.bad_records.discard(txn.id)
        return ended
