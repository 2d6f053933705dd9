"""Statements that define databases, tables and views (CREATE, DROP, ALTER)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from acidsql.sql.statements.parts import (
    ColumnDef,
    ConstraintDef,
    Name,
    Number,
    PartitionSpec,
    Span,
    Statement,
    TableName,
    Text,
)


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
    """The conditions of table constraints ``[CONSTRAINT name] CHECK (…)``, without the parentheses."""
    constraints: tuple[ConstraintDef, ...] = ()
    """All table constraints; ``checks`` are the enforced conditions."""
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
    """``MSCK [REPAIR] TABLE t``: register existing partition directories."""

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
    """``ALTER TABLE t [PARTITION (…)] ADD COLUMNS (name type [COMMENT '…'], …) [CASCADE | RESTRICT]``."""

    table: TableName
    columns: tuple[ColumnDef, ...]
    partition: PartitionSpec | None = None
    cascade: Span | None = None
    """The word CASCADE."""


@dataclass(frozen=True)
class ReplaceColumns(Statement):
    """``ALTER TABLE t [PARTITION (…)] REPLACE COLUMNS (name type [COMMENT '…'], …) [CASCADE | RESTRICT]``."""

    table: TableName
    columns: tuple[ColumnDef, ...]
    partition: PartitionSpec | None = None
    cascade: Span | None = None
    """The word CASCADE."""


@dataclass(frozen=True)
class ChangeColumn(Statement):
    """Change of one column: Hive's CHANGE, and Spark's ALTER COLUMN and RENAME COLUMN.

    ``ALTER TABLE t [PARTITION (…)] CHANGE [COLUMN] old new type [constraint] [COMMENT '…'] [FIRST | AFTER c]
    [CASCADE | RESTRICT]``;
    ``ALTER TABLE t ALTER [COLUMN] c TYPE type``, ``… COMMENT '…'``, ``… SET NOT NULL``, ``… DROP NOT NULL``,
    ``… SET DEFAULT expr``, ``… DROP DEFAULT``, ``… FIRST``, ``… AFTER c``; ``ALTER TABLE t RENAME COLUMN old TO new``.
    Unchanged parts are None.
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
    constraints: tuple[ConstraintDef, ...] = ()
    """What Hive's CHANGE declares after the type, including ``not_null`` and ``default``."""
    partition: PartitionSpec | None = None
    cascade: Span | None = None


@dataclass(frozen=True)
class AddConstraint(Statement):
    """``ALTER TABLE t ADD CONSTRAINT name {CHECK (c) | PRIMARY KEY (a) | UNIQUE (a) | FOREIGN KEY …} [traits]``."""

    table: TableName
    constraint: ConstraintDef


@dataclass(frozen=True)
class DropConstraint(Statement):
    """``ALTER TABLE t DROP CONSTRAINT [IF EXISTS] name``."""

    table: TableName
    name: Name
    if_exists: bool = False


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
    """``ALTER TABLE t [PARTITION (…)] COMPACT 'type' …``: ``type`` is the user's text."""

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
class Concatenate(Statement):
    """``ALTER TABLE t [PARTITION (…)] CONCATENATE``: ``word`` is the position of the last word."""

    table: TableName
    partition: PartitionSpec | None
    word: Span


@dataclass(frozen=True)
class ExchangePartition(Statement):
    """``ALTER TABLE t EXCHANGE PARTITION (…) WITH TABLE source``: the partition comes from the source."""

    table: TableName
    partition: PartitionSpec
    source: TableName
