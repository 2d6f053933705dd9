"""The statements that acidsql carries out itself, as frozen values.

An expression or a query of the user is never taken apart and printed again: it is a :class:`Span` of the source text.
Names are as the user wrote them, without back-quotes; whoever resolves them makes them lower case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


@dataclass(frozen=True)
class Span:
    """A piece of the statement's text: ``source[start:end]``."""

    source: str
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.source[self.start : self.end]


@dataclass(frozen=True)
class Name:
    """An identifier and its place."""

    text: str
    span: Span


@dataclass(frozen=True)
class Text:
    """A string literal: what it stands for, and its place."""

    value: str
    span: Span


@dataclass(frozen=True)
class Number:
    """A whole number and its place."""

    value: int
    span: Span


@dataclass(frozen=True)
class TableName:
    """``[database.]table`` and its place. A leading ``spark_catalog.`` stands in ``catalog``."""

    table: str
    database: str | None
    span: Span
    catalog: str | None = None


@dataclass(frozen=True)
class Default:
    """The word DEFAULT in place of an expression."""

    span: Span


@dataclass(frozen=True)
class ColumnDef:
    """A column of CREATE TABLE; ``type`` is the user's text of the type, empty for a partition key of a query's."""

    name: Name
    type: Span
    comment: str | None = None
    not_null: bool = False
    default: Span | None = None
    check: Span | None = None
    """The condition of CHECK (…), without the parentheses."""


@dataclass(frozen=True)
class PartitionSpec:
    """``PARTITION (p = 1, q)``: keys with their value's text, None for a dynamic one."""

    keys: tuple[tuple[Name, Span | None], ...]
    span: Span


@dataclass(frozen=True)
class Statement:
    """Base of all. ``span`` covers the whole statement."""

    span: Span


@dataclass(frozen=True)
class CreateDatabase(Statement):
    name: Name
    if_not_exists: bool = False
    comment: str | None = None
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DropDatabase(Statement):
    name: Name
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class CreateTable(Statement):
    """``CREATE [TRANSACTIONAL] [EXTERNAL] TABLE``. ``transactional`` is the keyword, not the property."""

    table: TableName
    columns: tuple[ColumnDef, ...] = ()
    partition_keys: tuple[ColumnDef, ...] = ()
    if_not_exists: bool = False
    transactional: bool = False
    external: bool = False
    comment: str | None = None
    stored_as: str | None = None
    using: str | None = None
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    clustered_by: tuple[Name, ...] = ()
    sorted_by: tuple[Name, ...] = ()
    num_buckets: int | None = None
    query: Span | None = None
    """CREATE TABLE … AS query."""
    checks: tuple[Span, ...] = ()
    """The conditions of ``[CONSTRAINT name] CHECK (…)`` beside the columns, without the parentheses."""
    like: TableName | None = None
    """CREATE TABLE … LIKE other."""


@dataclass(frozen=True)
class CreateView(Statement):
    """``CREATE [OR REPLACE] VIEW [IF NOT EXISTS] v [(column [COMMENT '…'], …)] [COMMENT '…'] AS query``.

    A view of the metastore, not one of the session (:class:`CreateTempView`).
    """

    view: TableName
    query: Span
    columns: tuple[tuple[Name, str | None], ...] | None = None
    or_replace: bool = False
    if_not_exists: bool = False
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DropView(Statement):
    """``DROP VIEW [IF EXISTS] v``."""

    view: TableName
    if_exists: bool = False


@dataclass(frozen=True)
class DropTable(Statement):
    table: TableName
    if_exists: bool = False
    purge: bool = False


@dataclass(frozen=True)
class RepairTable(Statement):
    """``MSCK [REPAIR] TABLE t``: register the partition directories that are there."""

    table: TableName


@dataclass(frozen=True)
class SetProperties(Statement):
    """``ALTER TABLE t SET TBLPROPERTIES ('key' = 'value', …)``."""

    table: TableName
    properties: tuple[tuple[Name, str], ...]


@dataclass(frozen=True)
class UnsetProperties(Statement):
    """``ALTER TABLE t UNSET TBLPROPERTIES [IF EXISTS] ('key', …)``."""

    table: TableName
    keys: tuple[Name, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class AddColumns(Statement):
    """``ALTER TABLE t ADD COLUMNS (name type [COMMENT '…'], …) [CASCADE | RESTRICT]``."""

    table: TableName
    columns: tuple[ColumnDef, ...]


@dataclass(frozen=True)
class ReplaceColumns(Statement):
    """``ALTER TABLE t REPLACE COLUMNS (name type [COMMENT '…'], …) [CASCADE | RESTRICT]``."""

    table: TableName
    columns: tuple[ColumnDef, ...]


@dataclass(frozen=True)
class ChangeColumn(Statement):
    """One column of a table becomes another: Hive's CHANGE, and Spark's ALTER COLUMN and RENAME COLUMN.

    ``ALTER TABLE t CHANGE [COLUMN] old new type [COMMENT '…'] [FIRST | AFTER c] [CASCADE | RESTRICT]``;
    ``ALTER TABLE t ALTER [COLUMN] c TYPE type``, ``… COMMENT '…'``, ``… SET NOT NULL``, ``… DROP NOT NULL``,
    ``… SET DEFAULT expr``, ``… DROP DEFAULT``, ``… FIRST``, ``… AFTER c``; ``ALTER TABLE t RENAME COLUMN old TO new``.
    What stays as it is is None.
    """

    table: TableName
    column: Name
    new_name: Name | None = None
    type: Span | None = None
    comment: str | None = None
    not_null: bool | None = None
    default: Span | None = None
    drop_default: bool = False
    first: bool = False
    after: Name | None = None


@dataclass(frozen=True)
class DropColumns(Statement):
    """``ALTER TABLE t DROP COLUMN[S] [IF EXISTS] (c, …)`` or ``DROP COLUMN c``."""

    table: TableName
    columns: tuple[Name, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class RenameTable(Statement):
    """``ALTER TABLE t RENAME TO u``."""

    table: TableName
    new_name: TableName


@dataclass(frozen=True)
class SetLocation(Statement):
    """``ALTER TABLE t [PARTITION (…)] SET LOCATION '…'``."""

    table: TableName
    location: Text
    partition: PartitionSpec | None = None


@dataclass(frozen=True)
class RenamePartition(Statement):
    """``ALTER TABLE t PARTITION (…) RENAME TO PARTITION (…)``."""

    table: TableName
    partition: PartitionSpec
    new_partition: PartitionSpec


@dataclass(frozen=True)
class NewPartition:
    """``PARTITION (p = 1) [LOCATION '…']``."""

    spec: PartitionSpec
    location: Text | None = None


@dataclass(frozen=True)
class AddPartitions(Statement):
    """``ALTER TABLE t ADD [IF NOT EXISTS] PARTITION (…) [LOCATION '…'] …``."""

    table: TableName
    partitions: tuple[NewPartition, ...]
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropPartitions(Statement):
    """``ALTER TABLE t DROP [IF EXISTS] PARTITION (…), … [PURGE]``."""

    table: TableName
    partitions: tuple[PartitionSpec, ...]
    if_exists: bool = False
    purge: bool = False


@dataclass(frozen=True)
class Compact(Statement):
    """``ALTER TABLE t [PARTITION (…)] COMPACT 'type' …``: ``type`` is the user's word for it."""

    table: TableName
    type: Text
    partition: PartitionSpec | None = None
    buckets: Number | None = None
    wait: bool = False
    pool: Text | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    order_by: Span | None = None
    """The whole clause, ``ORDER BY a DESC``."""
    where: Span | None = None
    """The condition."""


@dataclass(frozen=True)
class Truncate(Statement):
    """``TRUNCATE [TABLE] t [PARTITION (…)]``: a partial specification names all partitions that it fits."""

    table: TableName
    partition: PartitionSpec | None = None


@dataclass(frozen=True)
class LoadData(Statement):
    """``LOAD DATA [LOCAL] INPATH '…' [OVERWRITE] INTO TABLE t [PARTITION (…)]``."""

    path: Text
    table: TableName
    partition: PartitionSpec | None = None
    local: bool = False
    overwrite: bool = False


@dataclass(frozen=True)
class Analyze(Statement):
    """``ANALYZE TABLE t [PARTITION (…)] COMPUTE STATISTICS [NOSCAN | FOR COLUMNS c, … | FOR ALL COLUMNS]``."""

    table: TableName
    partition: PartitionSpec | None = None
    noscan: bool = False
    for_columns: tuple[Name, ...] | None = None
    """The columns; the empty tuple for all of them, None where the clause is not there."""


@dataclass(frozen=True)
class Use(Statement):
    database: Name


@dataclass(frozen=True)
class Set(Statement):
    """``SET``, ``SET name``, ``SET name = value``."""

    name: str | None = None
    value: str | None = None


@dataclass(frozen=True)
class ShowDatabases(Statement):
    like: str | None = None


@dataclass(frozen=True)
class ShowTables(Statement):
    database: Name | None = None
    like: str | None = None


@dataclass(frozen=True)
class ShowPartitions(Statement):
    table: TableName
    partition: PartitionSpec | None = None


@dataclass(frozen=True)
class ShowCreateTable(Statement):
    table: TableName


@dataclass(frozen=True)
class ShowColumns(Statement):
    """``SHOW COLUMNS (IN | FROM) t [(IN | FROM) db] [[LIKE] 'pattern']``."""

    table: TableName
    like: str | None = None


@dataclass(frozen=True)
class ShowProperties(Statement):
    """``SHOW TBLPROPERTIES t [('key')]``."""

    table: TableName
    key: Text | None = None


@dataclass(frozen=True)
class ShowViews(Statement):
    """``SHOW VIEWS [(IN | FROM) db] [[LIKE] 'pattern']``."""

    database: Name | None = None
    like: str | None = None


@dataclass(frozen=True)
class ShowTransactions(Statement):
    pass


@dataclass(frozen=True)
class ShowLocks(Statement):
    database: Name | None = None
    table: TableName | None = None
    partition: PartitionSpec | None = None
    extended: bool = False


@dataclass(frozen=True)
class SortKey:
    """A column of ORDER BY."""

    column: Name
    descending: bool = False


@dataclass(frozen=True)
class ShowCompactions(Statement):
    """``SHOW COMPACTIONS [COMPACTIONID = n | DATABASE db | t [PARTITION (…)]] …``."""

    id: int | None = None
    database: Name | None = None
    table: TableName | None = None
    partition: PartitionSpec | None = None
    pool: Text | None = None
    type: Text | None = None
    status: Text | None = None
    order_by: tuple[SortKey, ...] = ()
    limit: int | None = None


@dataclass(frozen=True)
class AbortTransactions(Statement):
    """``ABORT TRANSACTIONS id …``."""

    ids: tuple[Number, ...]


@dataclass(frozen=True)
class AbortCompactions(Statement):
    """``ABORT COMPACTIONS id …``."""

    ids: tuple[Number, ...]


@dataclass(frozen=True)
class Describe(Statement):
    """``DESCRIBE [TABLE] [FORMATTED | EXTENDED] t [PARTITION (…)] [column]``."""

    table: TableName
    formatted: bool = False
    partition: PartitionSpec | None = None
    column: Name | None = None


@dataclass(frozen=True)
class DescribeDatabase(Statement):
    """``DESCRIBE (DATABASE | SCHEMA) [EXTENDED] db``."""

    name: Name
    extended: bool = False


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
    """``UPDATE t [[AS] alias] SET c = expr, … [WHERE expr]``."""

    table: TableName
    assignments: tuple[Assignment, ...]
    alias: Name | None = None
    where: Span | None = None


@dataclass(frozen=True)
class Delete(Statement):
    """``DELETE FROM t [[AS] alias] [WHERE expr]``."""

    table: TableName
    alias: Name | None = None
    where: Span | None = None


@dataclass(frozen=True)
class MultiInsert(Statement):
    """``[WITH …] FROM source INSERT … SELECT … INSERT … SELECT …``.

    ``source`` is the whole ``FROM …`` clause; the ``query`` of each of the ``inserts`` is its SELECT without a FROM,
    so that ``source.text + query.text`` is a query of Spark's (``FROM s SELECT a WHERE b``).
    """

    source: Span
    inserts: tuple[Insert, ...]
    with_clause: Span | None = None


class Match(Enum):
    """Which rows a WHEN clause of MERGE is about."""

    MATCHED = "MATCHED"
    NOT_MATCHED = "NOT MATCHED"
    """Rows of the source without a partner in the target."""
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
    """What stands behind USING: a table or view by its name, or a query (``(SELECT …)``, ``(VALUES …)``).

    Exactly one of ``table`` and ``query`` is set. ``query`` is the text inside the parentheses (or ``VALUES (…), …``
    without them). ``columns`` are the names of ``AS s (a, b)``.
    """

    span: Span
    table: TableName | None = None
    query: Span | None = None
    alias: Name | None = None
    columns: tuple[Name, ...] | None = None


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
class Query(Statement):
    """A query (SELECT, WITH, VALUES, FROM …, TABLE …): answered by Spark over snapshots of its ACID tables."""


@dataclass(frozen=True)
class Explain(Statement):
    """``EXPLAIN [EXTENDED | FORMATTED | COST | CODEGEN] query``; ``mode`` is the word in upper case or empty."""

    mode: str
    inner: Statement


@dataclass(frozen=True)
class CreateTempView(Statement):
    """``CREATE [OR REPLACE] [GLOBAL] TEMP[ORARY] VIEW v [(cols)] AS query``: Spark's view over today's snapshot."""

    name: Name
    query: Span
    columns: tuple[Name, ...] | None = None
    or_replace: bool = False
    is_global: bool = False


@dataclass(frozen=True)
class Passthrough(Statement):
    """Anything else: handed to Spark as it stands.

    ``names`` are the words of the statement that may be table names, so that a statement that acidsql does not know but
    that names an ACID table can be refused instead of failing strangely. ``later`` says what of it a later version will
    carry out on ACID tables, and where that stands.
    """

    names: tuple[TableName, ...] = ()
    later: Name | None = None
