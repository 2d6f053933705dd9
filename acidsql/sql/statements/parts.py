"""Parts of statements: spans of the source text, names, columns, partition specifications."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """A span of the statement's text: ``source[start:end]``."""

    source: str
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.source[self.start : self.end]


@dataclass(frozen=True)
class Name:
    """An identifier and its position."""

    text: str
    span: Span


@dataclass(frozen=True)
class Text:
    """A string literal: its value and its position."""

    value: str
    span: Span


@dataclass(frozen=True)
class Number:
    """A whole number and its position."""

    value: int
    span: Span


@dataclass(frozen=True)
class TableName:
    """``[database.]table`` and its position. A leading ``spark_catalog.`` is in ``catalog``."""

    table: str
    database: str | None
    span: Span
    catalog: str | None = None


@dataclass(frozen=True)
class Default:
    """The keyword DEFAULT instead of an expression."""

    span: Span


@dataclass(frozen=True)
class ConstraintDef:
    """``[CONSTRAINT name] PRIMARY KEY (a, b) | UNIQUE (a) | FOREIGN KEY (a) REFERENCES t (b) | …``, and its traits.

    Attributes:
        kind: PRIMARY KEY, UNIQUE, FOREIGN KEY, NOT NULL, DEFAULT or CHECK.
        span: The whole constraint without the traits.
        name: Its name.
        columns: The columns; for a column constraint its column.
        expression: The condition of a CHECK, without the parentheses; the value of a DEFAULT.
        parent: The table that a FOREIGN KEY refers to.
        parent_columns: The columns of it.
        enabled: ENABLE or ENFORCED; False for DISABLE or NOT ENFORCED, None if not given.
        validate: VALIDATE; False for NOVALIDATE, None if not given.
        rely: RELY; False for NORELY, None if not given.
    """

    kind: str
    span: Span
    name: Name | None = None
    columns: tuple[Name, ...] = ()
    expression: Span | None = None
    parent: TableName | None = None
    parent_columns: tuple[Name, ...] = ()
    enabled: bool | None = None
    validate: bool | None = None
    rely: bool | None = None

    @property
    def given_name(self) -> str | None:
        """Its name as stored in the metastore, None if not given."""
        return self.name.text.lower() if self.name is not None else None

    @property
    def is_enforced(self) -> bool:
        """Whether it is enforced: NOT NULL, DEFAULT and CHECK unless disabled."""
        return self.kind in ("NOT NULL", "DEFAULT", "CHECK") and self.enabled is not False and not self.validate


@dataclass(frozen=True)
class ColumnDef:
    """A column of CREATE TABLE; ``type`` is the user's text, empty for a partition key of CREATE TABLE … AS."""

    name: Name
    type: Span
    comment: str | None = None
    not_null: bool = False
    default: Span | None = None
    check: Span | None = None
    """The condition of CHECK (…), without the parentheses."""
    constraints: tuple[ConstraintDef, ...] = ()
    """All constraints of the column; the fields above have the enforced ones."""

    def named(self, kind: str) -> str | None:
        """The given name of the enforced constraint of a kind."""
        return next((c.given_name for c in self.constraints if c.kind == kind and c.is_enforced), None)


@dataclass(frozen=True)
class PartitionSpec:
    """``PARTITION (p = 1, q)``: keys with their value's text, None for a dynamic one."""

    keys: tuple[tuple[Name, Span | None], ...]
    span: Span


@dataclass(frozen=True)
class Statement:
    """Base of all statements. ``span`` covers the whole statement."""

    span: Span
