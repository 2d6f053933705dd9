"""Databases, tables, partitions and their statistics."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from acidsql.valid_ids import ValidTxnList, ValidWriteIdList

DEFAULT_DATABASE = "default"

# --- kinds and properties of tables ----------------------------------------------------------------------------------

MANAGED_TABLE = "MANAGED_TABLE"
VIRTUAL_VIEW = "VIRTUAL_VIEW"

TRANSACTIONAL = "transactional"
TRANSACTIONAL_PROPERTIES = "transactional_properties"
INSERT_ONLY = "insert_only"
BUCKETING_VERSION = "bucketing_version"
"""``2`` is murmur hashing; ``1``, and no property, is that of Hive 1 and 2."""
COMMENT = "comment"
"""The property that is the table's comment, in Hive and in Spark."""
LAST_DDL = "transient_lastDdlTime"
"""Seconds since 1970."""
APPLIED = "acidsql.applied"
"""Property of a table: the name of the one that remembers which changes were applied to it."""

VIEW_SETTING = "view.sqlConfig."
"""Prefix of a view's properties that keep Spark's settings of its creation, as Spark stores those of its own views."""

VIEW_NAMESPACE = "view.catalogAndNamespace."
"""Prefix of those that keep the current catalog and database of its creation: ``numParts``, ``part.0``, ``part.1``."""

NUM_FILES, NUM_PARTITIONS, NUM_ROWS, TOTAL_SIZE = "numFiles", "numPartitions", "numRows", "totalSize"
STATS_ACCURATE = "COLUMN_STATS_ACCURATE"
"""The property that says which statistics Hive may answer queries from."""
STATISTICS = frozenset(
    {STATS_ACCURATE, NUM_FILES, NUM_PARTITIONS, NUM_ROWS, TOTAL_SIZE, "numFilesErasureCoded", "rawDataSize"}
)
"""Properties that are statistics: they describe these rows, not those of a table created LIKE this one."""

_MAX_DIGITS = 19


# --- catalog ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A column. ``type`` is a Hive type string in lower case (``decimal(10,2)``, ``struct<a:int>``)."""

    name: str
    type: str
    comment: str | None = None
    default: str | None = None
    """SQL text of the DEFAULT expression."""
    not_null: bool = False
    default_name: str | None = field(default=None, compare=False)
    """Name of the DEFAULT constraint: a store generates one for each constraint that has none."""
    not_null_name: str | None = field(default=None, compare=False)


class ConstraintKind(Enum):
    """What a constraint requires, in SQL's words."""

    PRIMARY_KEY = "PRIMARY KEY"
    UNIQUE = "UNIQUE"
    FOREIGN_KEY = "FOREIGN KEY"
    NOT_NULL = "NOT NULL"
    DEFAULT = "DEFAULT"
    CHECK = "CHECK"


@dataclass(frozen=True)
class Constraint:
    """A constraint of a table. One that is not enforced (``DISABLE NOVALIDATE``) informs planners and readers.

    Attributes:
        kind: What it requires.
        columns: Its columns, in their order; none for a CHECK.
        name: Its name; a store generates one where there is none.
        enforced: Whether new rows are checked against it.
        rely: Whether planners may rely on it (``RELY``).
        expression: The condition of a CHECK, the value of a DEFAULT.
        parent: The table that a FOREIGN KEY refers to, ``database.table``.
        parent_columns: The columns of it, in the order of ``columns``.
    """

    kind: ConstraintKind
    columns: tuple[str, ...] = ()
    name: str | None = field(default=None, compare=False)
    enforced: bool = False
    rely: bool = False
    expression: str | None = None
    parent: str | None = None
    parent_columns: tuple[str, ...] = ()

    @classmethod
    def enabled(
        cls, kind: ConstraintKind, expression: str | None = None, *, column: str | None = None, name: str | None = None
    ) -> Constraint:
        """A constraint that is enforced: a CHECK, or a NOT NULL or DEFAULT of a column."""
        columns = () if column is None else (column,)
        return cls(kind, columns, name, enforced=True, rely=True, expression=expression)


@dataclass(frozen=True)
class Database:
    name: str
    location: str
    comment: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DirectoryMove:
    """A directory that follows a rename: the store's own record, which no user can write.

    Attributes:
        source: Where it is, or was.
        target: Where it belongs: the place that the store has for the table, or for one of its partitions.
        id: Its number in the journal.
    """

    source: str
    target: str
    id: str


@dataclass(frozen=True)
class Table:
    """A table. ``columns`` are the data columns; partition keys are not among them."""

    database: str
    name: str
    location: str
    columns: tuple[Column, ...]
    partition_keys: tuple[Column, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    bucket_columns: tuple[str, ...] = ()
    num_buckets: int = -1
    table_type: str = MANAGED_TABLE
    owner: str = ""
    created_at: int = 0
    """Seconds since 1970."""
    view_text: str | None = None
    """The query of a view (``table_type`` :data:`VIRTUAL_VIEW`), its names complete."""
    view_original: str | None = None
    """The query of a view as the user wrote it."""
    table_constraints: tuple[Constraint, ...] = ()
    """All constraints except NOT NULL and DEFAULT that are enforced, which belong to their columns. Those that are not
    enforced come first: :meth:`constrained` keeps that order."""
    moves: tuple[DirectoryMove, ...] = ()
    """Directories of it that may still be on their way (:meth:`~acidsql.metastore.protocol.Metastore.rename_table`).
    Only the store sets it: a description that is handed to the store says nothing by it."""
    version: int = field(default=0, compare=False)
    """Which description of which table this is, as far as the store can tell: another one after each change of the
    table or of the places of its partitions, also where a change is undone; not of properties alone. Only the store
    sets it (:meth:`~acidsql.metastore.protocol.Catalog.latest_version`)."""
    id: int = field(default=0, compare=False)
    """The store's own number of the table, which a RENAME leaves as it is; 0 where it has none. Only the store sets
    it."""

    @property
    def checks(self) -> tuple[str, ...]:
        """Conditions of the CHECK constraints that are enforced, as SQL text."""
        return tuple(c.expression or "" for c in self.table_constraints if c.enforced)

    @property
    def informational(self) -> tuple[Constraint, ...]:
        """The constraints that are not enforced."""
        return tuple(c for c in self.table_constraints if not c.enforced)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """All constraints, those that are enforced last: NOT NULL, DEFAULT, CHECK."""
        make, columns = Constraint.enabled, self.all_columns
        not_null = (make(ConstraintKind.NOT_NULL, column=c.name, name=c.not_null_name) for c in columns if c.not_null)
        filled = (c for c in columns if c.default is not None)
        defaults = (make(ConstraintKind.DEFAULT, c.default, column=c.name, name=c.default_name) for c in filled)
        checks = (c for c in self.table_constraints if c.enforced)
        return (*self.informational, *not_null, *defaults, *checks)

    def constrained(self, constraints: Iterable[Constraint]) -> Table:
        """The table with these as its :attr:`table_constraints`."""
        return replace(self, table_constraints=tuple(sorted(constraints, key=lambda c: c.enforced)))

    @property
    def full_name(self) -> str:
        """``database.table``: the name under which write ids are counted."""
        return f"{self.database}.{self.name}"

    @property
    def all_columns(self) -> tuple[Column, ...]:
        """Data columns, then partition keys: the order of ``SELECT *``."""
        return self.columns + self.partition_keys

    @property
    def all_parameters(self) -> dict[str, str]:
        """The properties as Hive stores them: the comment is one of them."""
        return {**self.parameters, **({} if self.comment is None else {COMMENT: self.comment})}

    @property
    def shown_parameters(self) -> dict[str, str]:
        """The properties as users see them: what a view keeps of its creation is none."""
        hidden = (VIEW_SETTING, VIEW_NAMESPACE)
        return {k: v for k, v in self.all_parameters.items() if not (self.is_view and k.startswith(hidden))}

    @property
    def view_settings(self) -> dict[str, str]:
        """Settings of Spark under which a view was created; none of a view that Hive has created."""
        return {k[len(VIEW_SETTING) :]: v for k, v in self.parameters.items() if k.startswith(VIEW_SETTING)}

    @property
    def is_view(self) -> bool:
        return self.view_text is not None

    @property
    def is_transactional(self) -> bool:
        return self.parameters.get(TRANSACTIONAL, "").lower() == "true"

    @property
    def is_insert_only(self) -> bool:
        return self.is_transactional and self.parameters.get(TRANSACTIONAL_PROPERTIES, "").lower() == INSERT_ONLY

    @property
    def is_full_acid(self) -> bool:
        return self.is_transactional and not self.is_insert_only


@dataclass(frozen=True)
class Partition:
    """A partition. ``values``: the key values as text, in key order; NULL is ``partition_names.DEFAULT_PARTITION``."""

    database: str
    table: str
    values: tuple[str, ...]
    location: str
    created_at: int = field(default=0, compare=False)
    """Seconds since 1970, as a Hive Metastore has it."""
    created_by: frozenset[int] | None = field(default=None, compare=False)
    """The open transactions that have registered it or written to it, where none that has was ever committed: it is
    there only because others were undone, or are not committed yet. None for one that exists
    (:attr:`.Capabilities.tells_creators`)."""

    @property
    def exists(self) -> bool:
        """Whether anybody who has made it is committed; true wherever the store does not tell."""
        return self.created_by is None

    @property
    def is_undone(self) -> bool:
        """Whether all who have made it were undone."""
        return self.created_by is not None and not self.created_by

    def is_seen(self, txns: ValidTxnList) -> bool:
        """Whether a snapshot sees it: it exists, or a transaction whose writes are seen is one of those who have made
        it."""
        return self.created_by is None or any(txns.is_valid(txn_id) for txn_id in self.created_by)

    def is_of(self, txn_id: int) -> bool:
        """Whether an open transaction is one of those who have made it."""
        return self.created_by is not None and txn_id in self.created_by


class WrittenBy(NamedTuple):
    """Which files in a directory are meant: what a transaction has staged, and what has its write id in its name."""

    txn_id: int
    write_id: int | None


@dataclass(frozen=True)
class DroppedDirectory:
    """The directory of a dropped table or partition, which has not been removed yet.

    Or that of a table which was never finished: of one that was there before it only the table's files are removed.

    Attributes:
        location: Where it stood when it was dropped.
        token: A name that no other directory has: it is put aside under it, and then removed.
        is_aside: Whether it is known to have left its place. Whatever stands there then is somebody else's.
        made_by: Whose files are removed from a directory that stays; None where the directory goes.
    """

    location: str
    token: str
    is_aside: bool
    made_by: WrittenBy | None = None


@dataclass(frozen=True)
class Import:
    """What the directory of a table that is registered with its files holds.

    Attributes:
        write_ids: The write ids in the names there: those that count, and those that must not be seen.
        max_txn: The highest transaction id in a name there.
        partitions: The partitions that have a directory there.
    """

    write_ids: ValidWriteIdList
    max_txn: int = 0
    partitions: tuple[Partition, ...] = ()


@dataclass(frozen=True)
class ColumnStatistics:
    """What ANALYZE … FOR COLUMNS found of a column; None for what does not apply to its type.

    Attributes:
        low, high: The least and the greatest value, as text.
        distinct: How many values there are, approximately.
        average_length, max_length: Of strings in characters, of binary values in bytes.
    """

    column: str
    type: str
    nulls: int
    distinct: int | None = None
    low: str | None = None
    high: str | None = None
    average_length: float | None = None
    max_length: int | None = None
    trues: int | None = None
    falses: int | None = None


@dataclass(frozen=True)
class Statistics:
    """What ANALYZE found of a table, or of one partition.

    Attributes:
        parameters: ``numRows``, ``numFiles``, ``totalSize``: those that were found out.
        columns: Statistics of columns.
        exact: Whether the number of rows is that of the snapshot, counted.
    """

    parameters: Mapping[str, str]
    columns: tuple[ColumnStatistics, ...] = ()
    exact: bool = False


@dataclass(frozen=True)
class RowChange:
    """What a statement does to the rows of a table or partition."""

    inserted: int = 0
    deleted: int = 0
    overwrites: bool = False
    """The inserted rows replace all that were there."""

    def applied(self, rows: int) -> int:
        """How many rows there are after it, of so many before."""
        return (0 if self.overwrites else rows) + self.inserted - self.deleted


@dataclass(frozen=True)
class TableChanges:
    """What a transaction does to the rows of a table.

    Attributes:
        table: The table.
        write_id: The write id under which rows come or go.
        write_ids: What the transaction sees.
        rows: What it does, by the name of a registered partition; by the empty name for a table without keys.
    """

    table: Table
    write_id: int
    write_ids: ValidWriteIdList
    rows: Mapping[str, RowChange]


def set_row_count(parameters: dict[str, str], rows: int | None) -> None:
    """Record a number of rows in properties; none where it cannot be one, as after what a user has written there."""
    if rows is not None and rows >= 0:
        parameters[NUM_ROWS] = str(rows)
    else:
        parameters.pop(NUM_ROWS, None)


def row_count(parameters: Mapping[str, str]) -> int | None:
    """The number of rows that properties record; None where they record none: any user may write them."""
    text = parameters.get(NUM_ROWS, "")
    return int(text) if text.isdecimal() and len(text) < _MAX_DIGITS else None


def accurate_statistics(parameters: Mapping[str, str]) -> dict[str, object]:
    """What :data:`STATS_ACCURATE` says; nothing where it is not in Hive's form: any user may write it."""
    try:
        found = json.loads(parameters.get(STATS_ACCURATE) or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def is_marked(parameters: Mapping[str, str], name: str) -> bool:
    """Whether a property is ``true``; its name, in lower case here, may be in any letter case there."""
    return any(k.lower() == name and v.strip().lower() == "true" for k, v in parameters.items())
