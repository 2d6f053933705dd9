"""The change feed: what was inserted and deleted between two write ids, as rows.

Each row in the files of a segment (:mod:`acidsql.plan.feed_history`) carries the write id that inserted it, and is
joined with the event that deleted it. So one pass over the files gives up to two changes for each row: its insert, if
that is of the segment, and its delete. Where the segment ends in an overwrite, rows that nothing deleted are deleted by
that one. Of files that are older than the segment only those are read that have deleted rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame

from acidsql.catalyst import Catalyst, Draft, rows_in_memory, union
from acidsql.errors import AnalysisError
from acidsql.format.directory import AcidDirectory, AcidState
from acidsql.format.names import DeltaName
from acidsql.metastore.model import Table
from acidsql.plan.deletes import DELETED_BY, Deletes, deletes_since
from acidsql.plan.feed_history import Segment, TableHistory
from acidsql.plan.scan import given_rows, row_columns
from acidsql.plan.text import quote
from acidsql.plan.values import Zones, with_char_types
from acidsql.types import parse_type, to_spark

CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = "_change_type", "_commit_version", "_commit_timestamp"
CHANGE_COLUMNS = ((CHANGE_TYPE, "string"), (COMMIT_VERSION, "bigint"), (COMMIT_TIMESTAMP, "timestamp"))
"""The columns that a change has behind those of its table, as Delta Lake calls them; ``_change_type`` is ``insert``,
``delete``, ``update_preimage`` or ``update_postimage``."""

TABLE_CHANGES = "table_changes"
"""The function of SQL for them."""

_INSERTS, _DELETES = "__acid_inserts", "__acid_deletes"
_VERSION, _AT = "__acid_version", "__acid_at"


def check_changes(table: Table, keys: Sequence[str]) -> None:
    """Check that changes of a table can be told.

    Raises:
        AnalysisError: When a column has the name of one of :data:`CHANGE_COLUMNS`, or a key is none of its columns.
    """
    names = [c.name for c in table.all_columns]
    for name, _ in CHANGE_COLUMNS:
        if name in names:
            raise AnalysisError(f"{table.full_name} has a column {name}: its changes would have two of that name")
    for key in keys:
        if key not in names:
            raise AnalysisError(f"{table.full_name} has no column {key}")


def changes_frame(own: Catalyst, history: TableHistory, zones: Zones) -> DataFrame:
    """The changes that a history tells.

    Returns:
        A lazy frame: the table's columns, then :data:`CHANGE_COLUMNS`; in no order.

    Raises:
        UnsupportedError: When they are of ACID version 1.
    """
    table = history.table
    parts = [part for segment in history.segments for part in _changes(own, segment, zones)]
    if not parts:
        return _nothing(own, table)
    rows = _timed(own, union(parts), history)
    keys = history.changes.keys
    return with_char_types((_with_updates(rows, keys) if keys else rows).frame(), table.all_columns)


def _changes(own: Catalyst, segment: Segment, zones: Zones) -> Iterator[Draft]:
    """The changes of a segment: the table's columns, ``_change_type`` and ``_commit_version``."""
    is_overwritten = segment.is_overwritten
    deletes = deletes_since(own, segment.snapshot, 0 if is_overwritten else segment.first)
    needed = segment if is_overwritten else _needed(segment, deletes)
    between = f"BETWEEN {segment.first}L AND {segment.last}L"
    deleted = "NULL" if deletes is None else DELETED_BY
    stayed = f"NOT (originalTransaction <=> {deleted})"  # of what one write inserts and deletes again nobody has heard
    inserts = f"if(originalTransaction {between} AND {stayed}, originalTransaction, NULL) AS {_INSERTS}"
    ended = f"if({deleted} {between} AND {stayed}, {deleted}, NULL)"
    if is_overwritten:
        ended = f"if({deleted} IS NULL, {segment.last + 1}L, {ended})"
    both = [f"struct('{kind}' AS t, {column} AS v)" for kind, column in (("insert", _INSERTS), ("delete", _DELETES))]
    told = f"inline(filter(array({', '.join(both)}), x -> x.v IS NOT NULL)) AS ({CHANGE_TYPE}, {COMMIT_VERSION})"
    names = [quote(c.name) for c in segment.snapshot.table.all_columns]
    for rows in given_rows(own, needed.snapshot, zones):
        joined = rows if deletes is None else deletes.told(rows)
        columns = [*row_columns(segment.snapshot.table), inserts, f"CAST({ended} AS bigint) AS {_DELETES}"]
        yield joined.select(*columns).select(*names, told)


def _needed(segment: Segment, deletes: Deletes | None) -> Segment:
    """The same segment without files that have none of its changes."""
    if deletes is not None and deletes.origins is None:
        return segment
    origins = deletes.origins if deletes is not None and deletes.origins is not None else frozenset()

    def is_needed(part: int, first: int, last: int) -> bool:
        return last >= segment.first or any(p == part and first <= w <= last for p, w in origins)

    def reduced(number: int, state: AcidState) -> AcidState:
        def wanted(directory: AcidDirectory) -> bool:
            name = directory.name
            if isinstance(name, DeltaName):
                return is_needed(number, name.min_write_id, name.max_write_id)
            return is_needed(number, 0, max(0, name.write_id))  # one of original files alone has no write id

        return replace(
            state,
            base=state.base if state.base is not None and wanted(state.base) else None,
            deltas=tuple(d for d in state.insert_deltas if wanted(d)),
            originals=state.originals if is_needed(number, 0, 0) else (),
        )

    parts = segment.snapshot.partitions
    kept = tuple(replace(part, state=reduced(number, part.state)) for number, part in enumerate(parts))
    return replace(segment, snapshot=replace(segment.snapshot, partitions=kept))


def _timed(own: Catalyst, rows: Draft, history: TableHistory) -> Draft:
    """With the time of the commit, as far as it is on record."""
    known = history.committed_at
    if not known:
        return rows.select("*", f"CAST(NULL AS timestamp) AS {COMMIT_TIMESTAMP}")
    times = pa.table({_VERSION: pa.array(known.keys(), pa.int64()), _AT: pa.array(known.values(), pa.int64())})
    small = Draft.of(own, rows_in_memory(own.spark, times)).broadcast()
    joined = rows.join(small, f"{COMMIT_VERSION} = {_VERSION}", "left")
    return joined.select(f"* EXCEPT ({_VERSION}, {_AT})", f"timestamp_seconds({_AT}) AS {COMMIT_TIMESTAMP}")


def _with_updates(rows: Draft, keys: Sequence[str]) -> Draft:
    """Changes with the rows before and after an update told as such: one row deleted and one inserted with the same
    key by the same write id."""
    by = ", ".join([COMMIT_VERSION, *map(quote, keys)])
    counts = {kind: f"count_if({CHANGE_TYPE} = '{kind}') OVER (PARTITION BY {by})" for kind in ("insert", "delete")}
    is_update = " AND ".join(f"{count} = 1" for count in counts.values())
    image = f"if({CHANGE_TYPE} = 'delete', 'update_preimage', 'update_postimage')"
    told = f"if({is_update}, {image}, {CHANGE_TYPE}) AS {CHANGE_TYPE}"
    names = [name for name, _ in CHANGE_COLUMNS]
    return rows.select(f"* EXCEPT ({', '.join(names)})", told, *names[1:])


def _nothing(own: Catalyst, table: Table) -> DataFrame:
    types = [(c.name, to_spark(parse_type(c.type), plain_strings=True)) for c in table.all_columns]
    made = [f"CAST(NULL AS {type}) AS {quote(name)}" for name, type in (*types, *CHANGE_COLUMNS)]
    return with_char_types(own.spark.sql(f"SELECT {', '.join(made)} WHERE false"), table.all_columns)
