"""ALTER TABLE … COMPACT and SHOW COMPACTIONS."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands.binding import Snapshot
from acidsql.commands.environment import Environment
from acidsql.commands.explained import Explained, TargetRead
from acidsql.commands.partitions import one_partition, spec_values, whole_name
from acidsql.commands.places import at
from acidsql.compactor.ordering import sort_items
from acidsql.errors import (
    AcidError,
    AnalysisError,
    CompactionError,
    NotTransactional,
    UnsupportedError,
)
from acidsql.metastore.model import (
    CompactionFilter,
    CompactionInfo,
    CompactionRequest,
    CompactionResponse,
    CompactionType,
    Table,
)
from acidsql.partition_names import partition_name
from acidsql.plan.snapshot import partition_names, row_type_of
from acidsql.plan.views import Views
from acidsql.settings import COMPACTION_WAIT, CONCATENATE_NO_WAIT
from acidsql.sql.statements import Compact, Concatenate, PartitionSpec, ShowCompactions, Span, Text

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 5.0
PAUSE_GROWTH = 1.5

UNDER_WAY = ("initiated", "working")
DONE = ("ready for cleaning", "succeeded")
STATES = (*UNDER_WAY, *DONE, "failed", "did not initiate", "refused", "aborted")
"""Hive's words for the states of a compaction."""

_BY_USERS = (CompactionType.MAJOR, CompactionType.MINOR, CompactionType.REBALANCE)


class CompactCommand:
    """ALTER TABLE … COMPACT.

    1. Resolve the table and the partition: a partitioned table is compacted partition by partition, and without a
       PARTITION clause each of them is asked for (Hive 3 wants one named).
    2. Check the clauses: what the metastore cannot carry is refused, never dropped.
    3. Put the requests into the metastore's queue. There is no lock and no transaction: the worker has its own.
    4. AND WAIT: ask for the states, with growing pauses, until the worker is done. Ctrl-C and
       ``acidsql.compaction.wait.timeout`` end the waiting, not the compaction.
    """

    def __init__(self, env: Environment, statement: Compact, parameters: Mapping[str, Any]) -> None:
        self.env = env
        self.statement = statement
        self.parameters = parameters

    def run(self) -> list[str]:
        """Hive's sentences about what became of it: one, or one for each partition."""
        table = self._table()
        type = self._type()
        partitions = self._partitions(table)
        self._check_clauses(table, type)
        asked = [(partition, self._ask(table, partition, type)) for partition in partitions]
        return [self._answer(table, partition, response) for partition, response in asked]

    def _ask(self, table: Table, partition: str | None, type: CompactionType) -> CompactionResponse:
        s = self.statement
        request = CompactionRequest(
            table.database,
            table.name,
            partition,
            type,
            self.env.user,
            self.env.host,
            s.properties,
            s.pool.value if s.pool else None,
            s.buckets.value if s.buckets else None,
            s.order_by.text if s.order_by else None,
        )
        try:
            return self.env.metastore.compact(request)
        except AcidError as e:
            raise self._at_table(e) from e

    def explain(self, snapshot: Snapshot, views: Views) -> list[Explained]:
        """What :meth:`run` would ask for, and what there is to compact."""
        table = self._table()
        type = self._type()
        names = self._partitions(table)
        self._check_clauses(table, type)
        found = None
        if table.partition_keys:
            wanted = [name for name in names if name is not None]
            found = tuple(self.env.metastore.list_partitions(table.database, table.name, wanted))
        request = f"a request for a {type.name} compaction"
        writes = [f"{request} of {name}" if name is not None else request for name in names]
        reason = "the compactor works by itself"
        return [Explained(table, (), TargetRead(found), (), None, writes=writes, no_plan=reason)]

    # --- resolve -----------------------------------------------------------------------------------------------------

    def _table(self) -> Table:
        try:
            return self.env.get_table(self.statement.table)
        except NotTransactional as e:
            name = f"{self.env.database_of(self.statement.table)}.{self.statement.table.table.lower()}"
            error = AnalysisError(f"Compaction is not allowed on non-ACID table {name}", code=10286)
            raise self._at_table(error) from e

    def _type(self) -> CompactionType:
        given = self.statement.type
        found = next((t for t in _BY_USERS if t.name == given.value.upper()), None)
        if found is None:
            message = "Invalid compaction type, supported values are 'major', 'minor' and 'rebalance'"
            raise at(given.span, AnalysisError(message, code=10282))
        return found

    def _partitions(self, table: Table) -> Sequence[str | None]:
        """Names of the partitions to compact; None for a table without any."""
        spec = self.statement.partition
        if spec is None:
            if not table.partition_keys:
                return [None]
            if self._is_old:
                message = "You must specify a partition to compact for partitioned tables"
                hint = f"SHOW PARTITIONS {table.full_name} lists them."
                raise self._at_table(AnalysisError(message, code=10283, hint=hint))
            known = self.env.metastore.list_partitions(table.database, table.name)
            return [partition_names(table, p) for p in known]
        if len(spec.keys) < len(table.partition_keys):
            message = "Alter table partition type compact does not allow partial partition spec"
            raise at(spec.span, AnalysisError(message, code=10299))
        return [one_partition(self.env, table, spec, self.parameters)[0]]

    def _check_clauses(self, table: Table, type: CompactionType) -> None:
        s = self.statement
        if s.where is not None:
            message = f"Compaction with filter is not allowed on non-Iceberg table {table.full_name}"
            raise at(s.where, UnsupportedError(message, code=10440))
        of_rebalance = {"CLUSTERED INTO": s.buckets.span if s.buckets else None, "ORDER BY": s.order_by}
        for words, span in of_rebalance.items():
            if span is not None and type is not CompactionType.REBALANCE:
                raise at(
                    span, AnalysisError(f"{words} belongs to a 'rebalance' compaction, not to '{type.name.lower()}'")
                )
        self._check_version(type)
        if s.order_by is not None and self.env.metastore.version is None:  # Hive's worker may know how to order by more
            try:
                sort_items(s.order_by.text, row_type_of(table), [key.name for key in table.partition_keys])
            except AcidError as e:
                raise at(s.order_by, e) from e

    @property
    def _is_old(self) -> bool:
        """Whether the metastore is one of before Hive 4."""
        return (self.env.metastore.version or "").startswith(("1.", "2.", "3."))

    def _check_version(self, type: CompactionType) -> None:
        if not self._is_old:
            return
        s, version = self.statement, self.env.metastore.version
        new: dict[str, Span | None] = {
            "A 'rebalance' compaction": s.type.span if type is CompactionType.REBALANCE else None,
            "A pool": s.pool.span if s.pool else None,
        }
        for what, span in new.items():
            if span is not None:
                raise at(
                    span, UnsupportedError(f"{what} is not known to this Hive Metastore: it is of version {version}")
                )

    # --- answer ------------------------------------------------------------------------------------------------------

    def _answer(self, table: Table, partition: str | None, response: CompactionResponse) -> str:
        if not response.accepted:
            if response.message:
                of_partition = f" partition({partition})" if partition else ""
                message = (
                    f"Compaction request for {table.full_name}{of_partition} is refused, details: {response.message}"
                )
                if partition is not None and self.statement.partition is None:
                    return message  # the requests for the other partitions stand
                raise self._at_table(CompactionError(message, code=10432, sqlstate="42000"))
            return f"Compaction already enqueued with id {response.id}; State is {response.state}"
        if not self.statement.wait:
            return f"Compaction enqueued with id {response.id}"
        try:
            state = self._wait(response.id)
        except CompactionError as e:
            if partition is not None and self.statement.partition is None:
                return e.message  # those of the other partitions go on
            raise
        return f"Compaction with id {response.id} finished with status: {state}"

    def _wait(self, id: int) -> str:
        found = wait_for_worker(self.env, id, self.statement.table.span)
        if found.state in DONE:
            return found.state
        why = f": {found.error}" if found.error else ""
        raise self._at_table(CompactionError(f"Compaction with id {id} finished with status: {found.state}{why}"))

    def _at_table(self, error: AcidError) -> AcidError:
        return at(self.statement.table.span, error)


def wait_for_worker(env: Environment, id: int, span: Span) -> CompactionInfo:
    """Wait until a worker is done with a request: one of this session's, where no other may be there.

    Args:
        env: The session.
        id: The request.
        span: Where errors are marked.

    Returns:
        The entry, in whatever state it ended.

    Raises:
        CompactionError: When it is not listed any more, or takes longer than ``acidsql.compaction.wait.timeout``.
    """
    limit = env.settings.value(COMPACTION_WAIT)
    deadline, pause = time.monotonic() + limit, FIRST_PAUSE
    env.compactor.work_on(id)
    while True:
        found = env.metastore.show_compactions(CompactionFilter(id=id))
        if not found:
            raise at(span, CompactionError(f"Compaction with id {id} is not listed any more"))
        if found[0].state not in UNDER_WAY:
            return found[0]
        if time.monotonic() >= deadline:
            message = f"Compaction with id {id} is still {found[0].state} after {limit:g} seconds; it goes on"
            hint = f"SHOW COMPACTIONS COMPACTIONID = {id} tells its state; {COMPACTION_WAIT.name} bounds the wait."
            raise at(span, CompactionError(message, hint=hint))
        time.sleep(min(pause, max(deadline - time.monotonic(), 0.001)))
        pause = min(pause * PAUSE_GROWTH, LONGEST_PAUSE)


def compact(env: Environment, statement: Compact, parameters: Mapping[str, Any]) -> DataFrame:
    """Run ALTER TABLE … COMPACT; Hive's sentence, for each partition where none is named."""
    return env.strings(["message"], [[said] for said in CompactCommand(env, statement, parameters).run()])


def concatenate(env: Environment, statement: Concatenate, parameters: Mapping[str, Any]) -> DataFrame:
    """ALTER TABLE … CONCATENATE: of an ACID table a major compaction, for which it waits, as in Hive.

    Raises:
        UnsupportedError: For other tables.
    """
    name = statement.table
    if env.find_table(name) is None and env.known_to_spark(name):
        hint = f"INSERT OVERWRITE TABLE {name.table} SELECT * FROM … writes its files anew."
        raise at(statement.word, UnsupportedError("CONCATENATE is there for ACID tables only", hint=hint))
    major = Text("major", statement.word)
    wait = not env.settings.value(CONCATENATE_NO_WAIT)
    return compact(env, Compact(statement.span, name, major, statement.partition, wait=wait), parameters)


# --- SHOW COMPACTIONS ------------------------------------------------------------------------------------------------


def _host(name: str | None) -> str | None:
    """The host of ``host-id``: all up to the last dash."""
    return None if name is None else name.rpartition("-")[0] or name


def _id(name: str | None) -> str | None:
    return None if name is None else name.rpartition("-")[2]


def _started(one: CompactionInfo) -> int | None:
    """Hive counts from 0 where a request ended (was aborted) before a worker took it."""
    return one.started_ms if one.started_ms is not None or one.ended_ms is None else 0


def _duration(one: CompactionInfo) -> int | None:
    return None if one.ended_ms is None else one.ended_ms - (one.started_ms or 0)


COMPACTION_COLUMNS: Mapping[str, Callable[[CompactionInfo], str | int | None]] = {
    "compactionid": lambda c: c.id,
    "dbname": lambda c: c.database,
    "tabname": lambda c: c.table,
    "partname": lambda c: c.partition,
    "type": lambda c: c.type.name,
    "state": lambda c: c.state,
    "workerhost": lambda c: _host(c.worker),
    "workerid": lambda c: _id(c.worker),
    "enqueuetime": lambda c: c.enqueued_ms,
    "starttime": _started,
    "duration": _duration,
    "hadoopjobid": lambda c: c.job_id,
    "errormessage": lambda c: c.error,
    "initiatorhost": lambda c: _host(c.initiator),
    "initiatorid": lambda c: _id(c.initiator),
    "poolname": lambda c: c.pool or "default",
    "txnid": lambda c: c.txn_id,
    "nexttxnid": lambda c: c.next_txn_id,
    "committime": lambda c: c.committed_ms,
    "hightestwriteid": lambda c: c.highest_write_id,
}
"""The columns of Hive 4 (``ShowCompactionsDesc``, its spelling too) and where their values come from."""

_NOTHING = {"hadoopjobid": "None", "txnid": "0", "nexttxnid": "0", "committime": "0"}
"""What stands for a value that is not there, where it is not ``' --- '``."""


def show_compactions(env: Environment, statement: ShowCompactions, parameters: Mapping[str, Any]) -> DataFrame:
    """SHOW COMPACTIONS: Hive 4's columns, all strings, without the header row that Hive's shell adds.

    ORDER BY knows these columns: numbers are compared as numbers, and nulls come first (DESC: last), as in Spark.
    """
    found = env.metastore.show_compactions(_filter(env, statement, parameters))
    for key in reversed(statement.order_by):
        value = COMPACTION_COLUMNS.get(key.column.text.lower())
        if value is None:
            hint = f"The columns are {', '.join(COMPACTION_COLUMNS)}."
            raise at(key.column.span, AnalysisError(f"SHOW COMPACTIONS has no column {key.column.text}", hint=hint))
        found.sort(key=_sort_key(value), reverse=key.descending)
    rows = [[_text(name, value(c)) for name, value in COMPACTION_COLUMNS.items()] for c in found]
    return env.strings(list(COMPACTION_COLUMNS), rows if statement.limit is None else rows[: statement.limit])


def _sort_key(value: Callable[[CompactionInfo], str | int | None]) -> Callable[[CompactionInfo], tuple[bool, Any]]:
    def key(one: CompactionInfo) -> tuple[bool, Any]:
        found = value(one)
        return (False, 0) if found is None else (True, found)

    return key


def _text(column: str, value: str | int | None) -> str:
    return _NOTHING.get(column, " --- ") if value is None else str(value)


def _filter(env: Environment, statement: ShowCompactions, parameters: Mapping[str, Any]) -> CompactionFilter:
    database = statement.database.text.lower() if statement.database else None
    table = partition = type = state = None
    if statement.table is not None:
        database, table = env.database_of(statement.table), statement.table.table.lower()
        if statement.partition is not None:
            partition = _partition(env, database, table, statement.partition, parameters)
    if statement.type is not None:
        given = statement.type
        type = next((t for t in CompactionType if t.name == given.value.upper()), None)
        if type is None:
            raise at(given.span, AnalysisError(f"Unexpected compaction type {given.value}", sqlstate="08S01"))
    if statement.status is not None:
        state = statement.status.value.lower()
        if state not in STATES:
            error = AnalysisError(
                f"Unexpected compaction state {statement.status.value}",
                sqlstate="08S01",
                hint=f"The states are {', '.join(STATES)}.",
            )
            raise at(statement.status.span, error)
    return CompactionFilter(
        statement.id,
        database,
        table,
        partition,
        statement.pool.value if statement.pool else None,
        type,
        state,
        None if statement.order_by else statement.limit,
    )


def _partition(env: Environment, database: str, table: str, spec: PartitionSpec, parameters: Mapping[str, Any]) -> str:
    """The name of the partition; that of a table that is gone is taken as it is written."""
    known = env.metastore.find_table(database, table)
    if known is not None:
        return whole_name(known, spec, spec_values(env, known, spec, parameters))
    values = env.sql(f"SELECT {', '.join(v.text if v else 'NULL' for _, v in spec.keys)}", parameters).collect()[0]
    return partition_name([k.text for k, _ in spec.keys], [None if v is None else str(v) for v in values])
