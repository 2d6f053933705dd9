"""Statements about rows: INSERT, UPDATE, DELETE, MERGE, LOAD DATA, TRUNCATE, ANALYZE."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from acidsql.sql.statements.parts import Default, Name, PartitionSpec, Span, Statement, TableName, Text


@dataclass(frozen=True)
class Insert(Statement):
    """``INSERT INTO|OVERWRITE [TABLE] t [PARTITION (…)] [(columns)] VALUES … | query | TABLE u``.

    ``rows`` is set for a plain VALUES list (each value a span, or DEFAULT); ``query`` covers the source text in every
    case, ``VALUES`` included, ``WITH`` clauses of a leading CTE too (``WITH c AS (…) INSERT INTO t SELECT …`` puts the
    WITH clause in ``with_clause``).
    """

    table: TableName
    query: Span
    overwrite: bool = False
    partition: PartitionSpec | None = None
    if_not_exists: bool = False
    columns: tuple[Name, ...] | None = None
    by_name: bool = False
    rows: tuple[tuple[Span | Default, ...], ...] | None = None
    with_clause: Span | None = None


@dataclass(frozen=True)
class Assignment:
    column: Name
    value: Span | Default


@dataclass(frozen=True)
class Update(Statement):
    """``[WITH …] UPDATE t [[AS] alias] SET c = expr, … [WHERE expr]``."""

    table: TableName
    assignments: tuple[Assignment, ...]
    alias: Name | None = None
    where: Span | None = None
    with_clause: Span | None = None


@dataclass(frozen=True)
class Delete(Statement):
    """``[WITH …] DELETE FROM t [[AS] alias] [WHERE expr]``."""

    table: TableName
    alias: Name | None = None
    where: Span | None = None
    with_clause: Span | None = None


@dataclass(frozen=True)
class MultiInsert(Statement):
    """``[WITH …] FROM source INSERT … SELECT … INSERT … SELECT …``.

    ``source`` is the whole ``FROM …`` clause; the ``query`` of each of the ``inserts`` is its SELECT without a FROM,
    so that ``source.text + query.text`` is a Spark query (``FROM s SELECT a WHERE b``).
    """

    source: Span
    inserts: tuple[Insert, ...]
    with_clause: Span | None = None


class Match(Enum):
    """The rows to which a WHEN clause of MERGE applies."""

    MATCHED = "MATCHED"
    NOT_MATCHED = "NOT MATCHED"
    """Source rows without a matching target row."""
    NOT_MATCHED_BY_SOURCE = "NOT MATCHED BY SOURCE"


@dataclass(frozen=True)
class MergeUpdate:
    """``UPDATE SET c = expr, …``; ``assignments`` is None for ``UPDATE SET *``."""

    assignments: tuple[Assignment, ...] | None


@dataclass(frozen=True)
class MergeDelete:
    """``DELETE``."""


@dataclass(frozen=True)
class MergeInsert:
    """``INSERT [(c, …)] VALUES (expr, …)``; ``values`` is None for ``INSERT *``."""

    columns: tuple[Name, ...] | None
    values: tuple[Span | Default, ...] | None


@dataclass(frozen=True)
class WhenClause:
    """``WHEN … [AND condition] THEN action``; ``span`` covers all of it."""

    match: Match
    condition: Span | None
    action: MergeUpdate | MergeDelete | MergeInsert
    span: Span


@dataclass(frozen=True)
class MergeSource:
    """The source after USING: a table or view by its name, or a query (``(SELECT …)``, ``(VALUES …)``).

    Exactly one of ``table`` and ``query`` is set. ``query`` is the text inside the parentheses (or ``VALUES (…), …``
    without them). ``columns`` are the names of ``AS s (a, b)``. ``version`` is the whole clause ``VERSION AS OF n``
    after a table.
    """

    span: Span
    table: TableName | None = None
    query: Span | None = None
    alias: Name | None = None
    columns: tuple[Name, ...] | None = None
    version: Span | None = None


@dataclass(frozen=True)
class Merge(Statement):
    """``[WITH …] MERGE [WITH SCHEMA EVOLUTION] INTO t [[AS] a] USING source ON condition WHEN … THEN … …``."""

    table: TableName
    source: MergeSource
    on: Span
    clauses: tuple[WhenClause, ...]
    alias: Name | None = None
    schema_evolution: bool = False
    with_clause: Span | None = None


@dataclass(frozen=True)
class Truncate(Statement):
    """``TRUNCATE [TABLE] t [PARTITION (…)]``: a partial specification selects all matching partitions."""

    table: TableName
    partition: PartitionSpec | None = None


@dataclass(frozen=True)
class LoadData(Statement):
    """``LOAD DATA [LOCAL] INPATH '…' [OVERWRITE] INTO TABLE t [PARTITION (…)] [INPUTFORMAT '…' SERDE '…']``."""

    path: Text
    table: TableName
    partition: PartitionSpec | None = None
    local: bool = False
    overwrite: bool = False
    input_format: Text | None = None
    """The name of a Hive class; given together with ``serde``."""
    serde: Text | None = None


@dataclass(frozen=True)
class Analyze(Statement):
    """``ANALYZE TABLE t [PARTITION (…)] COMPUTE STATISTICS [NOSCAN | FOR COLUMNS c, … | FOR ALL COLUMNS]``."""

    table: TableName
    partition: PartitionSpec | None = None
    noscan: bool = False
    for_columns: tuple[Name, ...] | None = None
    """The columns; the empty tuple for all of them, None without the clause."""
