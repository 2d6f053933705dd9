"""Read-only and session statements: queries and views over them, SHOW, DESCRIBE, USE, SET, ABORT."""

from __future__ import annotations

from dataclasses import dataclass

from acidsql.sql.statements.parts import Name, Number, PartitionSpec, Span, Statement, TableName, Text


@dataclass(frozen=True)
class Query(Statement):
    """A query (SELECT, WITH, VALUES, FROM …, TABLE …): run by Spark over snapshots of its ACID tables."""


@dataclass(frozen=True)
class Explain(Statement):
    """``EXPLAIN [EXTENDED | FORMATTED | COST | CODEGEN] statement``; ``mode`` is the word in upper case or empty."""

    mode: str
    inner: Statement


@dataclass(frozen=True)
class CreateTempView(Statement):
    """``CREATE [OR REPLACE] [GLOBAL] TEMP[ORARY] VIEW v [(cols)] AS query``: a Spark view over the current snapshot."""

    name: Name
    query: Span
    columns: tuple[Name, ...] | None = None
    or_replace: bool = False
    is_global: bool = False


@dataclass(frozen=True)
class Use(Statement):
    database: Name


@dataclass(frozen=True)
class Set(Statement):
    """``SET``, ``SET name``, ``SET name = value``."""

    name: str | None = None
    value: str | None = None


@dataclass(frozen=True)
class Reset(Statement):
    """``RESET``, ``RESET name``."""

    name: str | None = None


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
class StartTransaction(Statement):
    """``START TRANSACTION [READ ONLY | READ WRITE] [ISOLATION LEVEL SNAPSHOT]``."""

    is_read_only: bool = False


@dataclass(frozen=True)
class Commit(Statement):
    """``COMMIT [WORK]``."""


@dataclass(frozen=True)
class Rollback(Statement):
    """``ROLLBACK [WORK]``."""


@dataclass(frozen=True)
class SetAutocommit(Statement):
    """``SET AUTOCOMMIT TRUE | FALSE``."""

    value: bool


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
class DescribeHistory(Statement):
    """``DESCRIBE HISTORY t [LIMIT n]``."""

    table: TableName
    limit: int | None = None


@dataclass(frozen=True)
class DescribeDatabase(Statement):
    """``DESCRIBE (DATABASE | SCHEMA) [EXTENDED] db``."""

    name: Name
    extended: bool = False


@dataclass(frozen=True)
class Passthrough(Statement):
    """Anything else: passed to Spark unchanged.

    An unknown statement that names an ACID table can thus be refused with a clear error.

    Attributes:
        names: The words of the statement that may be names of tables.
        later: The part that is not supported for ACID tables, with its position.
        dynamic: The part whose tables are not known before it runs.
        identifiers: The expressions in ``IDENTIFIER(…)``.
    """

    names: tuple[TableName, ...] = ()
    later: Name | None = None
    dynamic: Name | None = None
    identifiers: tuple[Span, ...] = ()
