"""The kinds of table that the programs are about."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from enum import Enum

from tests.programs.text import Sql, join, piece
from tests.programs.values import KEY_TYPES, TYPES, Type


class Kind(Enum):
    """What a table is like."""

    PLAIN = "plain"
    PARTITIONED = "partitioned"
    BUCKETED = "bucketed"
    PARTITIONED_AND_BUCKETED = "partitioned and bucketed"
    INSERT_ONLY = "insert-only"
    CONVERTED = "with original files"


@dataclass(frozen=True)
class Column:
    """A column or a partition key."""

    name: str
    type: Type


@dataclass(frozen=True)
class Shape:
    """A table's description; the first two columns are a number ``id`` and a string ``v``, whatever they are called.

    Attributes:
        k: Name of the column, or key, that conditions like to look at.
        buckets: The columns of CLUSTERED BY.
        default: Whether ``v`` has a DEFAULT, of :data:`DEFAULT`.
    """

    kind: Kind
    columns: tuple[Column, ...]
    keys: tuple[Column, ...]
    k: str = "k"
    buckets: tuple[str, ...] = ()
    bucket_count: int = 0
    bucketing_version: int = 2
    insert_only: bool = False
    default: bool = False

    @property
    def fields(self) -> tuple[Column, ...]:
        return self.columns + self.keys

    @property
    def id(self) -> Column:
        return self.columns[0]

    @property
    def v(self) -> Column:
        return self.columns[1]

    @property
    def payload(self) -> tuple[Column, ...]:
        """The columns that are neither id, v nor k."""
        return tuple(c for c in self.columns[2:] if c.name != self.k)

    @property
    def settable(self) -> tuple[Column, ...]:
        """What UPDATE may set."""
        return tuple(c for c in self.columns if c.name not in self.buckets)

    def column(self, name: str) -> Column:
        return next(c for c in self.fields if c.name == name)

    def with_column(self, old: Column, new: Column) -> Shape:
        """The table with a column changed."""
        k = new.name if old.name == self.k else self.k
        return replace(self, columns=tuple(new if c is old else c for c in self.columns), k=k)

    @property
    def names(self) -> Sql:
        """All columns, in a SELECT list."""
        return join(", ", [c.name for c in self.fields])

    def create(self, name: str, location: str = "") -> str:
        """The statement that makes the table, for acidsql."""
        default = f" DEFAULT '{DEFAULT}'" if self.default else ""
        columns = ", ".join(f"{c.name} {c.type.name}{default if c is self.v else ''}" for c in self.columns)
        text = f"CREATE TABLE {name} ({columns})"
        if self.keys:
            text += f" PARTITIONED BY ({', '.join(f'{k.name} {k.type.name}' for k in self.keys)})"
        if self.buckets:
            text += f" CLUSTERED BY {self.clustering}"
        text += " STORED AS ORC" + (f" LOCATION '{location}'" if location else "")
        properties = f"'bucketing_version'='{self.bucketing_version}'"
        if self.insert_only:
            properties += ", 'transactional_properties'='insert_only'"
        return f"{text} TBLPROPERTIES ('transactional'='true', {properties})"

    @property
    def clustering(self) -> str:
        """What stands behind CLUSTERED BY."""
        return f"({', '.join(self.buckets)}) INTO {self.bucket_count} BUCKETS" if self.buckets else ""

    def create_oracle(self, name: str) -> str:
        """The statement that makes the oracle's table."""
        default = f" DEFAULT '{DEFAULT}'" if self.default else ""
        listed = ", ".join(f"{c.name} {c.type.oracle}{default if c is self.v else ''}" for c in self.fields)
        return f"CREATE TABLE {name} ({listed})"


DEFAULT = "dflt"
"""The DEFAULT of the column v."""


def draw_shape(chance: random.Random, kind: Kind, *, hive: bool = False) -> Shape:
    """A table of a kind; with ``hive``, one that Hive's DDL is known to make alike."""
    payload = tuple(Column(f"c{i}", TYPES[chance.choice(sorted(TYPES))]) for i in (1, 2))
    columns: tuple[Column, ...] = (Column("id", TYPES["int"]), Column("v", TYPES["string"]))
    keys: tuple[Column, ...] = ()
    if kind in (Kind.PARTITIONED, Kind.PARTITIONED_AND_BUCKETED) or (
        kind is Kind.INSERT_ONLY and chance.random() < 0.5
    ):
        names = "kl"[: chance.choice([1, 2])]
        keys = tuple(Column(name, _few_values(chance, KEY_TYPES[chance.choice(sorted(KEY_TYPES))])) for name in names)
    else:
        columns += (Column("k", KEY_TYPES["int"]),)
    shape = Shape(kind, columns + payload, keys, insert_only=kind is Kind.INSERT_ONLY)
    if kind in (Kind.BUCKETED, Kind.PARTITIONED_AND_BUCKETED):
        choices = [("id",), ("v",), ("id", "v"), ("c1",), ("c1", "id")]
        shape = replace(
            shape,
            buckets=chance.choice(choices[:3] if hive else choices),
            bucket_count=chance.choice([1, 2, 3, 5]),
            bucketing_version=2 if hive else chance.choice([1, 2]),
        )
    is_new = kind is not Kind.CONVERTED and not hive
    return replace(shape, default=is_new and chance.random() < 0.5)


def _few_values(chance: random.Random, type: Type) -> Type:
    """So few that statements meet in their partitions."""
    return replace(type, values=tuple(chance.sample(type.values, 3)))


def source_columns(shape: Shape) -> tuple[Column, ...]:
    """The columns of the table that programs read from: id, v, k, and the second key where there is one."""
    return (Column("id", TYPES["int"]), Column("v", TYPES["string"]), *_keys(shape))


def _keys(shape: Shape) -> tuple[Column, ...]:
    return shape.keys or (Column("k", KEY_TYPES["int"]),)


def type_list(columns: tuple[Column, ...], oracle: bool = False) -> str:
    """``id int, v string``."""
    return join(", ", [piece(f"{c.name} {c.type.oracle if oracle else c.type.name}") for c in columns]).acid
