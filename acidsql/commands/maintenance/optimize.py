"""OPTIMIZE: an immediate major compaction of a table or of some of its partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from acidsql import fs
from acidsql.commands import query
from acidsql.commands.ddl.partitions import no_partition, partitions_by, partitions_with, spec_values
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.inspect.explained import Explained
from acidsql.commands.maintenance.compaction import explained_requests, wait_for_worker
from acidsql.commands.resolve.context import StatementContext
from acidsql.compactor.overrides import pool_of
from acidsql.compactor.plan import is_enough
from acidsql.compactor.version import VERSION
from acidsql.errors import AnalysisError, CompactionError
from acidsql.format.directory import AcidState, acid_state
from acidsql.format.names import BaseName
from acidsql.metastore.model import (
    CompactionRequest,
    CompactionResponse,
    CompactionState,
    CompactionType,
    Partition,
    Table,
)
from acidsql.plan.snapshot import partition_names
from acidsql.sql.statements import Optimize, TableName

_SIZES = pa.struct(
    {"min": pa.int64(), "max": pa.int64(), "avg": pa.float64(), "totalFiles": pa.int64(), "totalSize": pa.int64()}
)
_METRICS = pa.struct(
    {
        "numFilesAdded": pa.int64(),
        "numFilesRemoved": pa.int64(),
        "filesAdded": _SIZES,
        "filesRemoved": _SIZES,
        "partitionsOptimized": pa.int64(),
        "totalConsideredFiles": pa.int64(),
    }
)
COLUMNS: Mapping[str, pa.DataType] = {
    "path": pa.string(),
    "metrics": _METRICS,
    "partition": pa.string(),
    "compaction_id": pa.int64(),
    "state": pa.string(),
    "message": pa.string(),
}
"""``path`` and ``metrics`` are Delta's, with those of its metrics that apply."""

NOTHING = "Nothing to compact"

Files = Mapping[str, int]
"""Lengths in bytes by path."""


@dataclass(frozen=True)
class _Place:
    """A table without partition keys, or one partition."""

    table: Table
    partition: str | None
    location: str


class OptimizeCommand:
    """OPTIMIZE.

    1. Resolve the table; select the partitions by the PARTITION clause, and by a condition over partition keys.
    2. List each directory as a compactor does. If there is nothing to compact or remove, a row says so, and no request
       is made.
    3. Request a major compaction of each of the others, then wait for one after the other. If a request for the same
       target is already queued, wait for it; if it was of another type, request a major compaction afterwards.
    4. List the directories again, and report the files added and those no longer read.
    """

    def __init__(self, env: Environment, statement: Optimize, parameters: Mapping[str, Any], table: Table) -> None:
        self.env = env
        self.statement = statement
        self.parameters = parameters
        self.table = table

    def run(self) -> list[list[Any]]:
        """A row for each partition, or for the table."""
        before = query.at_snapshot(self.env, self._states)
        asked = [(place, state, self._ask(place) if _is_due(state) else None) for place, state in before]
        return [self._row(place, state, response) for place, state, response in asked]

    def explain(self, context: StatementContext) -> list[Explained]:
        """What :meth:`run` would request, and the result; nothing if nothing is due."""
        requests = [self._request(place) for place in self._places()]
        return [explained_requests(self.env, self.table, requests, context, requests_refused=False)]

    # --- which -------------------------------------------------------------------------------------------------------

    def _places(self) -> list[_Place]:
        table, s = self.table, self.statement
        if not table.partition_keys:
            for span in (s.partition.span if s.partition else None, s.where):
                if span is not None:
                    raise with_location(
                        span,
                        AnalysisError(f"{table.full_name} is not partitioned: OPTIMIZE applies to all of it"),
                    )
            return [_Place(table, None, table.location)]
        found = self._named() if s.partition is not None else self.env.metastore.list_partitions(*_names(table))
        return [_Place(table, partition_names(table, p), p.location) for p in self._where(found)]

    def _named(self) -> list[Partition]:
        spec = self.statement.partition
        assert spec is not None
        values = spec_values(self.env, self.table, spec, self.parameters)
        found = partitions_with(self.env, self.table, values)
        if not found:
            raise no_partition(spec, values)
        return list(found.values())

    def _where(self, partitions: Sequence[Partition]) -> list[Partition]:
        where, table = self.statement.where, self.table
        if where is None:
            return list(partitions)
        return partitions_by(self.env, table, partitions, where, self.parameters, "OPTIMIZE rewrites")

    # --- what --------------------------------------------------------------------------------------------------------

    def _states(
        self, context: StatementContext, places: Sequence[_Place] | None = None
    ) -> list[tuple[_Place, AcidState]]:
        """What a compactor sees now, by default everywhere; no cleaner removes files while they are listed."""
        self.table = self.env.metastore.get_table(*_names(self.table))
        context.add(self.table)
        any_name, found = self.table.is_insert_only, []
        with context.unchanged(self.table):
            write_ids, txns = context.write_ids(self.table).for_compaction(), context.snapshot.txns
            for place in self._places() if places is None else places:
                filesystem, path = fs.resolve(place.location)
                found.append((place, acid_state(filesystem, path, write_ids, txns, any_file_name=any_name)))
        return found

    def _ask(self, place: _Place) -> CompactionResponse:
        return self.env.metastore.compact(self._request(place))

    def _request(self, place: _Place) -> CompactionRequest:
        env = self.env
        pool = pool_of(self.table, env.metastore.get_database(self.table.database))
        request = CompactionRequest(*_names(self.table), place.partition, CompactionType.MAJOR, env.user, env.host)
        return replace(request, pool=pool, initiator_version=VERSION)

    def _row(self, place: _Place, before: AcidState, response: CompactionResponse | None) -> list[Any]:
        old = _files(before)
        if response is None:
            return self._told(place, None, None, NOTHING, old, {}, {})
        if not response.accepted and not response.state.is_under_way:
            return self._told(place, response.id, response.state, response.message, old, {}, {})
        span = self.statement.table.span
        found = wait_for_worker(self.env, response.id, span)
        if found.type is not CompactionType.MAJOR:  # a minor one was already queued
            return self._row(place, before, self._ask(place))
        if not (found.state.is_done or found.state is CompactionState.REFUSED):
            message = f"Compaction with id {found.id} finished with status: {found.state}: {found.error}"
            if place.partition is None or self.statement.partition is not None:
                raise with_location(span, CompactionError(message))
            return self._told(place, found.id, found.state, message, old, {}, {})
        [(_, after)] = query.at_snapshot(self.env, partial(self._states, places=[place]))
        new, left = _files(after, found.highest_write_id), _files(after)
        added = {path: size for path, size in new.items() if path not in old}
        removed = {path: size for path, size in old.items() if path not in left}
        return self._told(place, found.id, found.state, found.error, old, added, removed)

    def _told(
        self,
        place: _Place,
        id: int | None,
        state: CompactionState | None,
        message: str | None,
        old: Files,
        added: Files,
        gone: Files,
    ) -> list[Any]:
        metrics = {
            "numFilesAdded": len(added),
            "numFilesRemoved": len(gone),
            "filesAdded": _sizes(added.values()),
            "filesRemoved": _sizes(gone.values()),
            "partitionsOptimized": int(bool(added or gone)),
            "totalConsideredFiles": len(old),
        }
        return [place.location, metrics, place.partition, id, None if state is None else str(state), message]


def _is_due(state: AcidState) -> bool:
    return is_enough(state, CompactionType.MAJOR) or bool(state.obsolete or state.aborted)


def _names(table: Table) -> tuple[str, str]:
    return table.database, table.name


def _files(state: AcidState, highest: int | None = None) -> dict[str, int]:
    """The files that are read, optionally only those written up to a write id."""
    found = {f.path: f.length for f in state.originals}
    for directory in (*state.data_directories, *state.delete_deltas):
        name = directory.name
        last = name.write_id if isinstance(name, BaseName) else name.max_write_id
        if highest is None or last <= highest:
            found.update({f.path: f.length for f in directory.files})
    return found


def _sizes(lengths: Iterable[int]) -> dict[str, Any]:
    found = list(lengths)
    if not found:
        return {"min": None, "max": None, "avg": 0.0, "totalFiles": 0, "totalSize": 0}
    average = sum(found) / len(found)
    return {"min": min(found), "max": max(found), "avg": average, "totalFiles": len(found), "totalSize": sum(found)}


def own_table(env: Environment, name: TableName) -> Table | None:
    """The ACID table of this name; None if Spark (or Delta) has to run the statement.

    Raises:
        TableNotFound: When the table does not exist.
        AnalysisError: When it is a view, or not transactional and not in Spark's catalog (Hive 10286).
    """
    table = env.registered(name)
    if table is not None and table.is_transactional:
        return table
    if env.known_to_spark(name):
        return None
    if table is not None:
        raise with_location(
            name.span, AnalysisError(f"Compaction is not allowed on non-ACID table {table.full_name}", code=10286)
        )
    if env.database_of(name) in env.metastore.list_databases():
        env.get_table(name)
    return None


def optimize_command(env: Environment, statement: Optimize, parameters: Mapping[str, Any]) -> OptimizeCommand | None:
    """OPTIMIZE of an ACID table; None for a Spark table."""
    table = own_table(env, statement.table)
    return None if table is None else OptimizeCommand(env, statement, parameters, table)


def optimize(env: Environment, statement: Optimize, parameters: Mapping[str, Any]) -> DataFrame:
    """Run OPTIMIZE; a row for each partition."""
    command = optimize_command(env, statement, parameters)
    if command is None:
        return env.sql(statement.span.text, parameters)
    return env.frame(COLUMNS, command.run())
