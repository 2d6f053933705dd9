"""The changes of a table as a streaming DataFrame: each micro-batch tells those of some further write ids.

An offset is the last write id whose changes were told. Write ids are final when a batch takes them
(:func:`acidsql.plan.feed_history.newest_final`), so a batch that Spark runs again has the same changes.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from acidsql.catalyst import streaming_frame
from acidsql.commands.changes import bytes_by_version, changes_frame, newest_version
from acidsql.commands.environment import Environment
from acidsql.commands.query import table_frame
from acidsql.errors import AcidError, InvalidValue, TransactionError
from acidsql.metastore.model import Table
from acidsql.plan.feed import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION
from acidsql.plan.feed_history import Changes
from acidsql.plan.text import literal
from acidsql.sql.statements import TableName


@dataclass(frozen=True)
class FollowOptions:
    """How a table is followed.

    Attributes:
        keys: Columns that name a row.
        first: The write id that is told first; None: first of all the rows that are there, as inserts.
        max_versions: How many write ids a batch has at most.
        max_bytes: How many bytes of files a batch reads; one write id is told however large it is.
    """

    keys: tuple[str, ...] = ()
    first: int | None = None
    max_versions: int | None = None
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        for name in ("first", "max_versions", "max_bytes"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InvalidValue(f"{name} is a whole number above 0, not {value!r}")


@dataclass(frozen=True)
class _Offset:
    """Up to where a query has told.

    Attributes:
        created_at: When the table was made: another one of its name has write ids of its own.
        version: The last write id that was told.
        first: The write id that was told first; None where the rows of ``version`` are told instead: in the first batch
            of a query that begins with them.
        table_id: The store's number of the table; 0 where it is not known.
    """

    created_at: int
    version: int
    first: int | None = None
    table_id: int = 0

    def __str__(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def parse(text: str) -> _Offset:
        """Raises: TransactionError when it is none."""
        try:
            found = _Offset(**json.loads(text))
            if isinstance(found.created_at, int) and isinstance(found.version, int):
                return found
        except (TypeError, ValueError):
            pass
        raise TransactionError(f"The checkpoint is none of a query over changes of a table: {text}")


class Follower:
    """A table's changes, batch by batch, for streaming queries; see :mod:`acidsql.catalyst.streams`."""

    def __init__(self, env: Environment, name: TableName, options: FollowOptions) -> None:
        """
        Raises:
            AnalysisError: When a key is none of the table's columns.
            UnsupportedError: When the table is insert-only.
            InvalidValue: When the table has no such first write id.
        """
        self._env, self._options = env, options
        self._name = replace(name, database=env.database_of(name))  # whatever the current database will be
        self._lock = threading.Lock()
        self._ends: dict[str, int] = {}
        """The last write id of queries that end with what was there when they began."""
        self._held: dict[str, DataFrame] = {}
        """The batch of each query: as long as it is here, nothing removes its files."""
        self._zones: dict[str, str] = {}
        """The time zone that each query was started in, which its session keeps."""
        self._running: set[str] = set()
        """Those that are past the batches of former runs."""
        table, newest = newest_version(env, self._name)
        if options.first is not None and options.first > newest + 1:
            raise InvalidValue(
                f"{table.full_name} has no write id {options.first}: its write ids go from 1 to {newest}"
            )
        # of no changes: those of the first write id may be gone, and the checkpoint of a query be far behind it
        told = changes_frame(env, self._name, Changes(newest + 1, None, options.keys)).schema
        self._schema = StructType([StructField(f.name, f.dataType, True, f.metadata) for f in told.fields])
        self._label = f"changes of {table.full_name}"

    def frame(self) -> DataFrame:
        """The changes as a streaming DataFrame."""
        return streaming_frame(self._env.spark, self, self._schema, self._label)

    # --- what Spark asks ---------------------------------------------------------------------------------------------

    def newest(self, query: str, start: str | None, *, is_limited: bool) -> str | None:
        """See :class:`acidsql.catalyst.streams.MicroBatches`.

        Raises:
            TransactionError: When the table is another one than that of the query's checkpoint.
        """
        table, version = newest_version(self._env, self._name)
        with self._lock:
            self._running.add(query)
            self._zones.setdefault(query, self._env.zones.session)
            version = min(version, self._ends.get(query, version))
        if start is None and self._options.first is None:
            return str(_Offset(table.created_at, version, table_id=table.id))
        told = self._told(start, table)
        if version < told.version:
            if query in self._ends:
                return start
            raise TransactionError(
                f"{table.full_name} has {version} write ids, the query has read up to {told.version}: the checkpoint"
                " belongs to another table, or to a later state of it",
                hint="Start the query with a new checkpoint.",
            )
        if version > told.version and is_limited:
            version = self._limited(told.version, version)
        return str(_Offset(table.created_at, version, told.first, table.id))

    def end_with_now(self, query: str) -> None:
        """See :class:`acidsql.catalyst.streams.MicroBatches`."""
        _, version = newest_version(self._env, self._name)
        with self._lock:
            self._ends[query] = version

    def rows(self, query: str, start: str | None, end: str) -> DataFrame:
        """See :class:`acidsql.catalyst.streams.MicroBatches`.

        Spark asks for the last batch of a former run, too, and does not read it if it was committed: its files may be
        gone. So an error of the first batch of a run is one of whoever reads its rows.

        Raises:
            SnapshotTooOld: When files that it needs were removed (Hive 10327).
            TransactionError: When the table has other columns than at the start of the query, or the session is in
                another time zone.
        """
        try:
            self._require_zone(query)
            made = self._batch(start, end)
        except AcidError as e:
            with self._lock:
                if query in self._running:
                    raise
            made = self._failing(e)
        with self._lock:
            self._held[query] = made
        return made

    def _require_zone(self, query: str) -> None:
        now = self._env.zones.session
        with self._lock:
            begun = self._zones.setdefault(query, now)
        if begun != now:
            raise TransactionError(
                f"The query was started in the time zone {begun}, and the session is in {now} now",
                hint="Start it again, or set the zone back.",
            )

    def _batch(self, start: str | None, end: str) -> DataFrame:
        last = _Offset.parse(end)
        _require_same(last, self._env.get_table(self._name))
        told = None if start is None else _Offset.parse(start)
        if told is None and last.first is None:
            made = self._rows_of(last.version)
        else:
            first = (last.first or 1) if told is None else told.version + 1
            made = self._changes(first, last.version)
        if _shape(made.schema) != _shape(self._schema):
            raise TransactionError(
                f"The columns of {self._name.table} were changed since the query was started",
                hint="Start it again: it goes on where it is.",
            )
        return made

    def _failing(self, error: AcidError) -> DataFrame:
        """A frame that nobody can read."""
        message = literal(f"{type(error).__name__}: {error}")
        columns = [F.expr(f"raise_error({message})").cast(f.dataType).alias(f.name) for f in self._schema.fields]
        return self._env.spark.range(1).select(*columns)

    def stop(self, query: str) -> None:
        """See :class:`acidsql.catalyst.streams.MicroBatches`."""
        with self._lock:
            self._held.pop(query, None)
            self._ends.pop(query, None)
            self._zones.pop(query, None)
            self._running.discard(query)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _told(self, start: str | None, table: Table) -> _Offset:
        if start is None:
            first = self._options.first or 1
            return _Offset(table.created_at, first - 1, first, table.id)
        told = _Offset.parse(start)
        _require_same(told, table)
        return told

    def _limited(self, told: int, version: int) -> int:
        """The last write id of a batch behind ``told``, by the limits."""
        if self._options.max_versions is not None:
            version = min(version, told + self._options.max_versions)
        if self._options.max_bytes is None or version == told + 1:
            return version
        found = bytes_by_version(self._env, self._name, Changes(told + 1, version))
        return _last_within(found, told, version, self._options.max_bytes)

    def _changes(self, first: int, last: int) -> DataFrame:
        if last < first:  # the first batch of a query that begins with what will come
            plan, _ = self._env.catalyst.leaf(self._schema.json())
            return self._env.catalyst.frame(plan)
        return changes_frame(self._env, self._name, Changes(first, last, self._options.keys))

    def _rows_of(self, version: int) -> DataFrame:
        """The rows of a write id as inserts."""
        told = {CHANGE_TYPE: F.lit("insert"), COMMIT_VERSION: F.lit(version).cast("bigint")}
        rows = table_frame(self._env, self._name, version)
        return rows.withColumns({**told, COMMIT_TIMESTAMP: F.lit(None).cast("timestamp")})


def _require_same(told: _Offset, table: Table) -> None:
    """Raises: TransactionError when a table is another one than that of an offset."""
    same_id = told.table_id == table.id or 0 in (told.table_id, table.id)
    if told.created_at != table.created_at or not same_id:
        raise TransactionError(
            f"{table.full_name} was made anew since the query was started, or renamed: it is another table",
            hint="Start the query with a new checkpoint.",
        )


def _last_within(bytes_of: Mapping[int, float], told: int, version: int, most: int) -> int:
    """The last write id up to which there are at most so many bytes; at least one that has some."""
    held = 0.0
    for write_id in range(told + 1, version + 1):
        size = bytes_of.get(write_id, 0.0)
        if held and held + size > most:
            return write_id - 1
        held += size
    return version


def _shape(schema: StructType) -> list[tuple[str, Any]]:
    return [(field.name, field.dataType) for field in schema.fields]
