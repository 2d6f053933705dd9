"""Skipping what conditions rule out: whole files (:mod:`.ranges`), and parts of them by orc-core's search argument."""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.catalyst import Expression, InternalSessions, reader_options
from acidsql.metastore.model import Table
from acidsql.plan.relation import Relation, column_schema
from acidsql.plan.snapshot import TableSnapshot
from acidsql.types import parse_type, to_hive

MIN_BYTES = 4 << 20
MIN_FILES = 32
"""Planning a search costs milliseconds: snapshots with less and fewer are read whole."""

_SEARCHABLE = ("boolean", "tinyint", "smallint", "int", "bigint", "string", "date")
"""Types whose ORC statistics and Spark's literals surely mean the same: no padding, no NaN, no scale. Not each day can
be asked for (:mod:`acidsql.catalyst.push_down`)."""


@dataclass(frozen=True)
class Search:
    """Conditions that each row of a relation must meet to be of any use."""

    conditions: tuple[Expression, ...] = ()

    @property
    def text(self) -> str:
        """The conditions as Spark writes them, for EXPLAIN."""
        return " AND ".join(condition.sql() for condition in self.conditions)


def is_searched(snapshot: TableSnapshot) -> bool:
    """Whether conditions are looked for that rule out a part of a snapshot."""
    files = [file for part in snapshot.partitions for file in part.state.files]
    return len(files) >= MIN_FILES or sum(file.length for file in files) >= MIN_BYTES


def searchable_columns(table: Table) -> list[str]:
    """The columns that a search may use."""
    return [c.name for c in table.columns if to_hive(parse_type(c.type)) in _SEARCHABLE]


def search_of(relation: Relation) -> Search:
    """What the conditions that reach a relation rule out; nothing where it stands in the plan more than once."""
    if relation.conditions is None or len(relation.conditions) != 1:
        return Search()
    return Search(tuple(relation.conditions[0].over(searchable_columns(relation.table))))


def search_options(sessions: InternalSessions, table: Table, search: Search) -> dict[str, str]:
    """Options of Spark's ORC reader for a search; empty where nothing of it can be pushed."""
    if not search.conditions:
        return {}
    names = searchable_columns(table)
    columns = [c for c in table.columns if c.name in names]
    schema = column_schema(sessions.own, columns)
    return reader_options(sessions.own, schema, names, search.conditions, file_zone=sessions.file_zone)
