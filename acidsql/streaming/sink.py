"""Batches of Spark's streaming queries, written into a table exactly once.

Spark calls ``foreachBatch`` at least once for each batch: after a crash with the last one again, which may have been
committed. So the number of each batch is recorded in the transaction that writes its rows: in the table
:data:`BATCHES` of the same database, which is an ACID table as any other and works alike on every metastore. Each sink
has a partition of it, and locks that: of two queries that think they are the same one, the second one waits, and then
sees what the first one has written.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from pyspark.sql import DataFrame, SparkSession

from acidsql import fs
from acidsql.builders import insert_text
from acidsql.catalyst import QUERY_ID, is_same_session
from acidsql.commands.dml.truncate import hide_rows
from acidsql.commands.environment import Environment
from acidsql.commands.registry import run
from acidsql.commands.transaction.run import together
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.errors import InvalidValue, TransactionError
from acidsql.metastore.model import LockComponent, LockType, Operation
from acidsql.partition_names import DEFAULT_PARTITION, LONGEST_NAME, partition_name
from acidsql.plan.snapshot import partition_names
from acidsql.plan.text import quote
from acidsql.plan.views import Views
from acidsql.sql.parser import parse_table_name
from acidsql.streaming.keys import with_keys_as_stored
from acidsql.streaming.records import Rows
from acidsql.streaming.target import StreamTarget

logger = logging.getLogger(__name__)

BATCHES = "acidsql_batches"
"""The table with the batches of each sink: the query it came from, its number, and when (UTC). The newest row
counts; older ones are removed when a sink begins."""

SINK = "sink"
"""Its partition key: the names of the sinks."""

APPEND, MERGE, OVERWRITE = "append", "merge", "overwrite"


@dataclass(frozen=True)
class _Batch:
    """A batch: the id of its query, its number, and the table that it is for.

    ``table`` is the store's number of it, or its name; None in records of former versions.
    """

    query: str
    number: int
    table: str | None

    @staticmethod
    def recorded(text: str, number: int) -> _Batch:
        query, _, table = text.partition(" ")
        return _Batch(query, number, table or None)

    @property
    def origin(self) -> str:
        """Query and table as they are recorded."""
        return f"{self.query} {self.table}"


@dataclass(frozen=True)
class SinkCall:
    """A call that has written a batch: the session that Spark has made for the run of the query, and a hash of the plan
    of its rows."""

    batch: _Batch
    run: SparkSession
    rows: int

    def is_another_part(self, before: SinkCall) -> bool:
        """Whether it is no repetition of a call, but has other rows of the same batch."""
        return self.batch == before.batch and self.rows != before.rows and is_same_session(self.run, before.run)


class Sink:
    """Writes batches into a table; made by ``acid.sink``. Spark calls it with each batch and its number.

    A batch is passed over if it is the last one that was written under the sink's name, and comes from the same query
    (that is, from the same checkpoint). It may also be called by hand, with numbers that rise.
    """

    def __init__(
        self,
        env: Environment,
        calls: dict[str, SinkCall],
        table: str,
        *,
        mode: str = APPEND,
        keys: Sequence[str] = (),
        name: str | None = None,
    ) -> None:
        """``calls`` are the last ones of the session's sinks by their names; for the others
        see :meth:`acidsql.session.AcidSession.sink`."""
        if mode not in (APPEND, MERGE, OVERWRITE):
            raise InvalidValue(f"{mode!r} is no mode of a sink: append, merge or overwrite")
        if bool(keys) != (mode == MERGE) or isinstance(keys, str):
            raise InvalidValue("The mode merge takes the columns that name a row as keys, and no other mode does")
        parsed = parse_table_name(table)
        self._env, self._calls = env.beside(), calls
        self._mode, self._keys = mode, list(keys)
        self._database = env.database_of(parsed)  # whatever the current one will be
        self._table = table if parsed.database is not None else f"{quote(self._database)}.{quote(parsed.table)}"
        self._name = f"{self._database}.{parsed.table.lower()}" if name is None else name
        if not isinstance(self._name, str) or not self._name.strip() or self._name == DEFAULT_PARTITION:
            raise InvalidValue(f"{name!r} is no name of a sink")
        try:
            length = len(partition_name([SINK], [self._name]).encode())
        except UnicodeEncodeError:
            raise InvalidValue(f"{name!r} is no name of a sink: not valid Unicode") from None
        if length > LONGEST_NAME:
            raise InvalidValue(f"The name of a sink is part of a directory's name: {name!r} is too long")
        self._batches = f"{quote(self._database)}.{BATCHES}"
        self._is_ready = False
        self._last: tuple[_Batch, frozenset[str]] | None = None
        """The last batch, and the directories of the partition after it."""

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Write a batch, unless it has been written.

        Raises:
            TransactionError: When it is none that follows the last one: another query has written under the sink's
                name, or its checkpoint is older than the table.
        """
        if not self._is_ready:
            self._prepare()
            self._is_ready = True
        table = self._env.get_table(parse_table_name(self._table))
        batch = _Batch(self._query_of(frame), int(batch_id), str(table.id or table.full_name))
        call, before = SinkCall(batch, frame.sparkSession, frame.semanticHash()), self._calls.get(self._name)
        is_of_a_run = not is_same_session(frame.sparkSession, self._env.spark)
        if is_of_a_run and before is not None and call.is_another_part(before):
            raise TransactionError(
                f"Batch {batch.number} was written under the name {self._name} by this run of the query already, of"
                " other rows",
                hint="Of several sinks in one function each needs a name of its own.",
            )
        found = together(self._env, lambda txn, within: self._write(txn, within, frame, batch))
        self._last = batch, found
        if is_of_a_run:
            self._calls[self._name] = call

    def _query_of(self, frame: DataFrame) -> str:
        """The id of the streaming query that a batch is of; an empty one for a call by hand.

        Raises:
            TransactionError: When it is not known: in another thread than Spark's.
        """
        query = frame.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
        if not query and not is_same_session(frame.sparkSession, self._env.spark):
            raise TransactionError(
                f"The sink {self._name} was called in another thread than Spark's, which calls foreachBatch: of which"
                " query the batch is nobody tells there",
                hint="Call it in that thread, or wrap the function with pyspark.inheritable_thread_target. By hand it"
                " takes DataFrames of the session that acidsql is connected to.",
            )
        return query or ""

    def _prepare(self) -> None:
        """Make the table of batches, and the sink's partition, which is what it locks; forget all batches but one.

        Raises:
            NotTransactional: When the sink's table is none whose rows are written in the same transaction.
        """
        self._env.get_table(parse_table_name(self._table))
        run(
            self._env,
            f"CREATE TABLE IF NOT EXISTS {self._batches} (query string, batch bigint, committed timestamp)"
            " PARTITIONED BY (sink string) STORED AS ORC TBLPROPERTIES ('transactional'='true')",
        )
        run(self._env, f"ALTER TABLE {self._batches} ADD IF NOT EXISTS PARTITION (sink = :sink)", sink=self._name)
        newest = f"(SELECT max(ROW__ID.writeId) FROM {self._batches} WHERE sink = :sink)"
        older = f"DELETE FROM {self._batches} WHERE sink = :sink AND ROW__ID.writeId < {newest}"
        run(self._env, older, sink=self._name)

    def _write(self, txn: WriteTransaction, env: Environment, frame: DataFrame, batch: _Batch) -> frozenset[str]:
        """Write a batch; the names of the directories that the sink's partition has when it is committed."""
        table = self._env.metastore.find_table(self._database, BATCHES)
        if table is None:
            raise self._forgotten()
        partition = partition_name([SINK], [self._name])
        kind = LockType.EXCL_WRITE
        txn.lock([LockComponent(kind, table.database, table.name, partition, Operation.UPDATE)])
        places = self._env.metastore.list_partitions(table.database, table.name, [partition])
        if not places:
            raise self._forgotten()
        filesystem, path = fs.resolve(places[0].location)
        found = frozenset(entry.name for entry in filesystem.list(path))
        if self._is_written(env, batch, found):
            logger.info("batch %s of %s was written before", batch.number, self._name)
            return found
        target, staging = StreamTarget(self._env, table, {SINK: self._name}), txn.stage(table)
        to = txn.target(table)
        [rows], _ = target.read([(batch.origin, batch.number, datetime.now(timezone.utc).replace(tzinfo=None))], Rows())
        target.write(rows, to, staging)
        txn.publish(table, staging)
        self._apply(txn, env, frame)
        return found | {str(to.inserts)}

    def _forgotten(self) -> TransactionError:
        self._is_ready = False
        return TransactionError(
            f"What the sink {self._name} has written is not known any more: its partition is gone",
            hint="The next call begins anew.",
        )

    def _is_written(self, env: Environment, batch: _Batch, found: frozenset[str]) -> bool:
        """Whether a batch was written; the partition is locked.

        Args:
            env: The environment of the transaction.
            batch: The batch.
            found: The names of the partition's directories: where they are those that this sink has left, nobody has
                written since.
        """
        if self._last is not None and self._last[1] == found:
            last: _Batch | None = self._last[0]
        else:
            order = "ROW__ID.writeId DESC, batch DESC"  # of a partition that was overwritten all have one write id
            newest = f"SELECT query, batch FROM {self._batches} WHERE sink = :sink ORDER BY {order} LIMIT 1"
            found_rows = run(env, newest, sink=self._name).collect()
            last = next((_Batch.recorded(row.query, row.batch) for row in found_rows), None)
        if last is None:
            return False
        is_same = last.query == batch.query and last.table in (None, batch.table)
        if is_same and last.number <= batch.number:
            return last.number == batch.number
        if last.query == batch.query and not is_same:
            problem = "a sink of another table has written under it"
            hint = "Give each sink a name of its own."
        elif not is_same:
            problem = f"another query (its checkpoint has the id {last.query or 'of none'}) has written under it"
            hint = "Give the sink a name of its own; or delete its rows to let this query go on under the name."
        else:
            problem = f"batch {last.number} of the query is written already: the checkpoint is older than the table"
            hint = "Start from the checkpoint that belongs to the table."
        raise TransactionError(f"Batch {batch.number} cannot be written by the sink {self._name}: {problem}", hint=hint)

    def _apply(self, txn: WriteTransaction, env: Environment, frame: DataFrame) -> None:
        with Views(self._env.spark) as views:
            if self._mode == MERGE:
                run(env, self._merge_text(views.add(self._with_keys_as_stored(frame)), frame.columns))
                return
            view = views.add(frame)
            text, parameters = insert_text(
                self._table, view, overwrite=self._mode == OVERWRITE, partition={}, by_name=True
            )
            run(env, text, **parameters)
            if self._mode == OVERWRITE:
                self._hide_other_partitions(txn)

    def _hide_other_partitions(self, txn: WriteTransaction) -> None:
        """The rows of partitions that the batch has none for are none of the table's any more."""
        table = self._env.get_table(parse_table_name(self._table))
        if not table.partition_keys:
            return
        written = set(txn.stagings[-1].partitions)
        known = self._env.metastore.list_partitions(table.database, table.name)
        names = [partition_names(table, p) for p in known if p.exists or p.is_of(txn.id)]
        others = [name for name in names if name not in written]
        if others:
            hide_rows(self._env, txn, table, others, dynamic=True)

    def _with_keys_as_stored(self, frame: DataFrame) -> DataFrame:
        table = self._env.changeable_table(parse_table_name(self._table))
        given, own = {name.lower(): name for name in frame.columns}, {c.name for c in table.all_columns}
        keys = {key.lower(): given[key.lower()] for key in self._keys if key.lower() in given and key.lower() in own}
        return with_keys_as_stored(frame, table, keys)

    def _merge_text(self, view: str, columns: Sequence[str]) -> str:
        """The statement; columns that the rows lack keep their value, or get their DEFAULT."""
        on = " AND ".join(f"__acid_t.{quote(key)} <=> __acid_s.{quote(key)}" for key in self._keys)
        names, keys = [*map(quote, columns)], {key.lower() for key in self._keys}
        sets = [
            f"{name} = __acid_s.{name}"
            for name, column in zip(names, columns, strict=True)
            if column.lower() not in keys
        ]
        update = f"WHEN MATCHED THEN UPDATE SET {', '.join(sets)}" if sets else ""
        values = ", ".join(f"__acid_s.{name}" for name in names)
        clauses = f"{update} WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) VALUES ({values})"
        return f"MERGE INTO {self._table} AS __acid_t USING {quote(view)} AS __acid_s ON {on} {clauses}"
