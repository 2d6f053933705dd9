"""ALTER TABLE … COMPACT and SHOW COMPACTIONS."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands.ddl.partitions import one_partition, partitions_by
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.inspect.explained import Explained
from acidsql.commands.resolve.context import StatementContext
from acidsql.compactor.ordering import sort_items
from acidsql.compactor.overrides import pool_of, settings_of, table_of
from acidsql.compactor.preview import preview, standing
from acidsql.compactor.version import VERSION
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
    CompactionState,
    CompactionType,
    Partition,
    Table,
)
from acidsql.plan.snapshot import partition_names, row_type_of
from acidsql.settings import COMPACTION_WAIT, CONCATENATE_NO_WAIT
from acidsql.sql.statements import Compact, Concatenate, Span, Text

PAUSE_GROWTH = 1.5

_BY_USERS = (CompactionType.MAJOR, CompactionType.MINOR, CompactionType.REBALANCE)


class CompactCommand:
    """ALTER TABLE … COMPACT.

    1. Resolve the table and the partition: a partitioned table is compacted partition by partition. Without a
       PARTITION clause request all of them, or those selected by a condition over partition keys (Hive 3 requires a
       PARTITION clause; Hive 4 accepts a condition only for Iceberg tables).
    2. Check the clauses: what the metastore does not support is refused, never ignored.
    3. Add the requests to the metastore's queue, without lock or transaction: the worker has its own.
    4. AND WAIT: poll the states, with growing pauses, until the worker has finished. Ctrl-C and
       ``hive.compactor.wait.timeout`` end the waiting, not the compaction.
    """

    def __init__(self, env: Environment, statement: Compact, parameters: Mapping[str, Any]) -> None:
        self.env = env
        self.statement = statement
        self.parameters = parameters

    def run(self) -> list[str]:
        """Hive's result messages: one, or one for each partition."""
        table = self._table()
        type = self._type()
        partitions = self._partitions(table)
        self._check_clauses(table, type)
        asked = [(partition, self._ask(table, partition, type)) for partition in partitions]
        return [self._answer(table, partition, response) for partition, response in asked]

    def _request(self, table: Table, partition: str | None, type: CompactionType) -> CompactionRequest:
        s = self.statement
        return CompactionRequest(
            table.database,
            table.name,
            partition,
            type,
            self.env.user,
            self.env.host,
            s.properties,
            s.pool.value if s.pool else pool_of(table, self.env.metastore.get_database(table.database)),
            s.buckets.value if s.buckets else None,
            s.order_by.text if s.order_by else None,
            initiator_version=VERSION,
        )

    def _ask(self, table: Table, partition: str | None, type: CompactionType) -> CompactionResponse:
        try:
            return self.env.metastore.compact(self._request(table, partition, type))
        except AcidError as e:
            raise self._at_table(e) from e

    def explain(self, context: StatementContext) -> list[Explained]:
        """What :meth:`run` would request, and the result."""
        table = self._table()
        type = self._type()
        names = self._partitions(table)
        self._check_clauses(table, type)
        requests = [self._request(table, name, type) for name in names]
        return [explained_requests(self.env, table, requests, context)]

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
        type = next((t for t in _BY_USERS if t.name == given.value.upper()), None)
        if type is None:
            message = "Invalid compaction type, supported values are 'major', 'minor' and 'rebalance'"
            raise with_location(given.span, AnalysisError(message, code=10282))
        return type

    def _partitions(self, table: Table) -> Sequence[str | None]:
        """Names of the partitions to compact; None for a table without any."""
        spec = self.statement.partition
        if spec is None:
            if not table.partition_keys:
                return [None]
            if not self.env.metastore.capabilities.has_open_queue:
                message = "You must specify a partition to compact for partitioned tables"
                hint = f"SHOW PARTITIONS {table.full_name} lists them."
                raise self._at_table(AnalysisError(message, code=10283, hint=hint))
            known = self.env.metastore.list_partitions(table.database, table.name)
            if (where := self.statement.where) is not None:
                known = partitions_by(self.env, table, known, where, self.parameters, "a compaction takes")
            return [partition_names(table, p) for p in known]
        if len(spec.keys) < len(table.partition_keys):
            message = "Alter table partition type compact does not allow partial partition spec"
            raise with_location(spec.span, AnalysisError(message, code=10299))
        return [one_partition(self.env, table, spec, self.parameters)[0]]

    def _check_clauses(self, table: Table, type: CompactionType) -> None:
        s = self.statement
        if s.where is not None and not table.partition_keys:
            message = f"Compaction with filter is not allowed on non-Iceberg table {table.full_name}"
            raise with_location(
                s.where,
                UnsupportedError(message, code=10440, hint="It selects partitions, but the table is not partitioned."),
            )
        if s.where is not None and s.partition is not None:
            raise with_location(s.where, AnalysisError("PARTITION and a condition cannot be combined"))
        of_rebalance = {"CLUSTERED INTO": s.buckets.span if s.buckets else None, "ORDER BY": s.order_by}
        for words, span in of_rebalance.items():
            if span is not None and type is not CompactionType.REBALANCE:
                raise with_location(
                    span,
                    AnalysisError(
                        f"{words} is only allowed for a 'rebalance' compaction, not for '{type.name.lower()}'"
                    ),
                )
        self._check_version(type)
        try:
            settings_of(self.env.settings, table, s.properties)
            self.env.compression_of(table_of(table, s.properties))
        except AcidError as e:
            raise self._at_table(e) from e
        # Hive's worker may support other orders
        if s.order_by is not None and not self.env.metastore.capabilities.runs_compactor:
            try:
                sort_items(s.order_by.text, row_type_of(table), [key.name for key in table.partition_keys])
            except AcidError as e:
                raise with_location(s.order_by, e) from e

    def _check_version(self, type: CompactionType) -> None:
        if self.env.metastore.capabilities.has_open_queue:
            return
        s, version = self.statement, self.env.metastore.version
        new: dict[str, Span | None] = {
            "A 'rebalance' compaction": s.type.span if type is CompactionType.REBALANCE else None,
            "A pool": s.pool.span if s.pool else None,
        }
        for what, span in new.items():
            if span is not None:
                raise with_location(
                    span, UnsupportedError(f"{what} is not supported by this Hive Metastore, version {version}")
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
                    return message  # requests for the other partitions remain
                raise self._at_table(CompactionError(message, code=10432, sqlstate="42000"))
            return f"Compaction already enqueued with id {response.id}; State is {response.state}"
        if not self.statement.wait:
            return f"Compaction enqueued with id {response.id}"
        try:
            state = self._wait(response.id)
        except CompactionError as e:
            if partition is not None and self.statement.partition is None:
                return e.message  # those for the other partitions continue
            raise
        return f"Compaction with id {response.id} finished with status: {state}"

    def _wait(self, id: int) -> CompactionState:
        entry = wait_for_worker(self.env, id, self.statement.table.span)
        if entry.state.is_done:
            return entry.state
        why = f": {entry.error}" if entry.error else ""
        raise self._at_table(CompactionError(f"Compaction with id {id} finished with status: {entry.state}{why}"))

    def _at_table(self, error: AcidError) -> AcidError:
        return with_location(self.statement.table.span, error)


def explained_requests(
    env: Environment,
    table: Table,
    requests: Sequence[CompactionRequest],
    context: StatementContext,
    *,
    requests_refused: bool = True,
) -> Explained:
    """Preview of requests for a table, or for some of its partitions.

    Args:
        env: The session.
        table: The table.
        requests: The requests.
        snapshot: What is seen now.
        requests_refused: Whether a request is made even if it would be refused.
    """
    partitions: dict[str | None, Partition] = {}
    if table.partition_keys:
        wanted = [one.partition for one in requests if one.partition is not None]
        listed = env.metastore.list_partitions(table.database, table.name, wanted)
        partitions = {partition_names(table, one): one for one in listed}
    queue = env.metastore.show_compactions(CompactionFilter(database=table.database, table=table.name))
    with context.unchanged(table):
        write_ids = context.write_ids(table)
    writes, told, done = [], [], []
    for request in requests:
        name, in_the_way = request.partition, standing(queue, request.partition, write_ids)
        if in_the_way is not None:
            state, id = in_the_way.state, in_the_way.id
            message = f"not accepted: Compaction is already scheduled with state='{state}' and id={id}"
        else:
            seen = preview(
                env.compactor.context, request, table, partitions.get(name), write_ids, context.snapshot.txns
            )
            message = str(seen)
            done += [seen] if seen.problem is None else []
            if requests_refused or seen.problem is None:
                of = f" of {name}" if name is not None else ""
                writes.append(f"a request for a {request.type.name} compaction{of}")
        told.append(f"{name}: {message}" if name is not None else message)
    if len(requests) > 1:
        files, size = sum(one.files for one in done), sum(one.bytes for one in done)
        told.insert(0, f"{len(done)} of {len(requests)} partitions, {files} files, {size} bytes")
    by_acidsql = ", if a worker of acidsql takes it" if env.metastore.capabilities.runs_compactor else ""
    reason = "compactions do not run as part of the statement"
    return Explained(table, (), (), None, writes=writes, no_plan=reason, more=[(f"Compacts{by_acidsql}", told)])


def wait_for_worker(env: Environment, id: int, span: Span) -> CompactionInfo:
    """Wait until a worker has finished a request; a worker of this session runs it if there is no other.

    Args:
        env: The session.
        id: The request.
        span: The location of errors.

    Returns:
        The entry in its final state.

    Raises:
        CompactionError: When it is no longer listed, or takes longer than ``hive.compactor.wait.timeout``.
    """
    limit = env.settings.value(COMPACTION_WAIT)
    context = env.compactor.context
    deadline, pause = time.monotonic() + limit, context.limits.first_pause
    done_here = env.compactor.work_on(id)
    while True:
        if not done_here.is_set():
            done_here.wait(min(pause, max(deadline - time.monotonic(), 0.001)))
        entries = env.metastore.show_compactions(CompactionFilter(id=id))
        if not entries:
            raise with_location(span, CompactionError(f"Compaction with id {id} is no longer listed"))
        if not entries[0].state.is_under_way:
            return entries[0]
        if time.monotonic() >= deadline:
            message = f"Compaction with id {id} is still {entries[0].state} after {limit:g} seconds; it continues"
            hint = f"SHOW COMPACTIONS COMPACTIONID = {id} shows its state; {COMPACTION_WAIT.name} limits the wait."
            raise with_location(span, CompactionError(message, hint=hint))
        if done_here.is_set():  # another process runs it
            context.sleep(min(pause, max(deadline - time.monotonic(), 0.001)))
        pause = min(pause * PAUSE_GROWTH, context.limits.longest_pause)


def compact(env: Environment, statement: Compact, parameters: Mapping[str, Any]) -> DataFrame:
    """Run ALTER TABLE … COMPACT; Hive's result message, one per partition if none is named."""
    return env.strings(["message"], [[said] for said in CompactCommand(env, statement, parameters).run()])


def concatenate(env: Environment, statement: Concatenate, parameters: Mapping[str, Any]) -> DataFrame:
    """ALTER TABLE … CONCATENATE: for an ACID table a major compaction, which it waits for, as in Hive.

    Raises:
        UnsupportedError: For other tables.
    """
    name = statement.table
    if env.find_table(name) is None and env.known_to_spark(name):
        hint = f"INSERT OVERWRITE TABLE {name.table} SELECT * FROM … rewrites its files."
        raise with_location(
            statement.word, UnsupportedError("CONCATENATE is supported only for ACID tables", hint=hint)
        )
    major = Text("major", statement.word)
    wait = not env.settings.value(CONCATENATE_NO_WAIT)
    return compact(env, Compact(statement.span, name, major, statement.partition, wait=wait), parameters)
