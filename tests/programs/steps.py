"""A step of a program, and the pieces that steps are made of."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tests.programs.tables import Column, Shape
from tests.programs.text import Piece, Sql, concat, fill, join, no_hive, piece
from tests.programs.values import KEY_TYPES, Value

T = TypeVar("T")
ALWAYS = "SELECT 1"


@dataclass(frozen=True)
class File:
    """An ORC file that the runner writes for LOAD DATA: its schema and rows as pyorc takes them."""

    schema: str
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Step:
    """A statement, and what it means.

    Attributes:
        kind: What the runner has to know of it.
        text: The statement, for acidsql and for Hive.
        oracle: The statements by which the oracle gets to the same rows.
        shape: The table after it.
        error: A query of the oracle, asked before: where it has a row, the statement must fail and change nothing.
        file: The file for LOAD DATA.
        partition: A query of the oracle, asked before: the partitions that the statement makes, also without rows.
        rows: A query of the oracle for the rows that the statement answers or makes elsewhere.
    """

    kind: str
    text: Sql
    shape: Shape
    oracle: tuple[str, ...] = ()
    error: str = ""
    file: File | None = None
    partition: str = ""
    rows: str = ""


class Drawing:
    """Draws the pieces of statements about a table. With ``hive`` every piece is one that Hive takes, too."""

    def __init__(self, chance: random.Random, shape: Shape, hive: bool) -> None:
        self.chance = chance
        self.shape = shape
        self.hive = hive

    def one(self, items: Sequence[T]) -> T:
        return self.chance.choice(items)

    def maybe(self, share: float = 0.5) -> bool:
        return self.chance.random() < share

    # --- values ------------------------------------------------------------------------------------------------------

    def value(self, column: Column, nulls: float = 0.15) -> Value:
        """A literal for a column."""
        if self.maybe(nulls):
            return column.type.null
        if column is self.shape.id:
            return Value(piece(str(number := self.chance.randrange(8))), number)
        return self.one(self._usable(column))

    def row(self, columns: Sequence[Column]) -> list[Sql]:
        """Literals for a new row. In a key of strings an empty one is NULL, as in Hive."""
        return [
            Sql("''", None, "NULL")
            if c in self.shape.keys and c.type.name == "string" and not self.hive and self.maybe(0.05)
            else self.value(c).text
            for c in columns
        ]

    def key_value(self, key: Column) -> Sql:
        """A key's value that is not NULL: NULL has no name in Hive's PARTITION clause."""
        return self.one(self._usable(key)).text

    def _usable(self, column: Column) -> list[Value]:
        return [v for v in column.type.values if not self.hive or v.text.hive is not None]

    # --- conditions --------------------------------------------------------------------------------------------------

    def condition(self, prefix: str = "", subqueries: bool = True) -> Sql:
        """A condition over the table's rows, whose columns are named with a prefix."""
        kinds = [self._of_id, self._of_k, self._of_v, self._of_payload, self._of_two]
        if subqueries and not self.hive and self.maybe(0.2):
            return self._subquery()
        return self.one(kinds)(prefix)

    def where(self, share: float = 0.85) -> Sql:
        """WHERE, or nothing."""
        return fill(" WHERE <c>", c=self.condition()) if self.maybe(share) else piece("")

    def _of_id(self, prefix: str) -> Sql:
        number = self.chance.randrange(8)
        texts = ["<i> = <n>", "<i> > <n>", "<i> <= <n>", "<i> IN (<n>, 0)", "<i> % 2 = 0", "<i> IS NULL", "<i> > 99"]
        return fill(self.one(texts), i=prefix + self.shape.id.name, n=str(number))

    def _of_k(self, prefix: str) -> Sql:
        k = self.shape.column(self.shape.k)
        texts = ["<k> = <a>", "<k> IN (<a>, <b>)", "<k> IS NULL", "<k> IS NOT NULL", "<k> <> <a>"]
        return fill(self.one(texts), k=prefix + k.name, a=self.key_value(k), b=self.key_value(k))

    def _of_v(self, prefix: str) -> Sql:
        texts = ["<v> LIKE 'a%' OR <v> IS NULL", "<v> = ''", "<v> IS NOT NULL", "<v> = <s>", "<v> <> <s>"]
        return fill(self.one(texts), v=prefix + self.shape.v.name, s=self.one(self.shape.v.type.values).text)

    def _of_payload(self, prefix: str) -> Sql:
        column = self.one(self.shape.payload)
        value = self.value(column, nulls=0)
        if not column.type.comparison or self.maybe(0.3):
            return piece(f"{prefix}{column.name} IS {self.one(['', 'NOT '])}NULL")
        operator = self.one(column.type.comparison)
        return fill(f"{prefix}{column.name} {operator} <v>", v=value.compared or value.text)

    def _of_two(self, prefix: str) -> Sql:
        return fill(f"(<a>) {self.one(['AND', 'OR'])} (<b>)", a=self._of_id(prefix), b=self._of_k(prefix))

    def _subquery(self) -> Sql:
        own, k = self.shape.id.name, self.shape.column(self.shape.k)
        texts = [
            f"{own} IN (SELECT max({own}) FROM {{t}})",
            f"{own} IN (SELECT s.id FROM {{s}} s WHERE s.v IS NOT NULL)",
            f"{own} NOT IN (SELECT s.id FROM {{s}} s WHERE s.id > 3)",
            f"EXISTS (SELECT 1 FROM {{t}} o WHERE o.{k.name} = <a>)",
            f"{own} > (SELECT min(s.id) FROM {{s}} s)",
        ]
        return no_hive(fill(self.one(texts), a=self.key_value(k)))

    # --- new values --------------------------------------------------------------------------------------------------

    def assignments(self, prefix: str = "", source: str = "") -> Sql:
        """``c = …, d = …``; ``prefix`` stands before the table's own columns, ``source`` is the alias of MERGE's."""
        columns = self.chance.sample(self.shape.settable, k=min(self.one([1, 1, 2, 3]), len(self.shape.settable)))
        return join(", ", [fill(f"{c.name} = <e>", e=self.expression(c, prefix, source)) for c in columns])

    def expression(self, column: Column, prefix: str, source: str) -> Sql:
        """A new value for a column."""
        shape, name = self.shape, prefix + column.name
        own_id = prefix + shape.id.name
        made: list[Piece] = [self.value(column).text, column.type.null.text]
        if column is shape.id:
            made += [f"{own_id} + 1", "0", f"{own_id} + 10"]
            if source:
                made += [f"{source}.id", f"{source}.id + 20"]
        elif column is shape.v:
            made += [concat(name, "'!'"), "'u'", f"CASE WHEN {own_id} > 2 THEN 'big' ELSE {name} END"]
            if source:
                made += [f"{source}.v", concat(name, f"{source}.v"), concat(f"{source}.v", "'?'")]
            elif not self.hive:
                made += [no_hive("(SELECT max(s.v) FROM {s} s)")]
            if not self.hive:
                made += [no_hive("DEFAULT")]
        return piece(self.one(made))

    # --- SELECT lists ------------------------------------------------------------------------------------------------

    def own_select(self, column: Column) -> Sql:
        """What a row of the table gives to a column of a new one."""
        shape, name = self.shape, column.name
        if column is shape.id:
            return piece(self.one([f"{name} + 1", f"{name} + 10", name]))
        if column is shape.v:
            return piece(self.one([concat(name, "'+'"), piece(name)]))
        return self.value(column).text if self.maybe(0.15) else piece(name)

    def source_select(self, column: Column, alias: str = "s") -> Sql:
        """What a row of the source table gives to a column."""
        shape = self.shape
        if column is shape.id:
            return piece(self.one([f"{alias}.id", f"{alias}.id + 3"]))
        if column is shape.v:
            return piece(f"{alias}.v")
        if column in shape.keys:
            return piece(f"{alias}.{'kl'[shape.keys.index(column)]}")
        if column.name == shape.k:
            return piece(f"{alias}.k") if column.type is KEY_TYPES["int"] else self.value(column).text
        return self.value(column).text

    # --- PARTITION ---------------------------------------------------------------------------------------------------

    def partition(self, *, partial: bool = False) -> tuple[Sql, dict[str, Sql]]:
        """A PARTITION clause for all keys (or the first of them), and the values in it."""
        keys = self.shape.keys[:1] if partial else self.shape.keys
        values = {k.name: self.key_value(k) for k in keys}
        listed = join(", ", [fill(f"{name} = <v>", v=value) for name, value in values.items()])
        return fill("PARTITION (<p>)", p=listed), values


def in_partition(values: Mapping[str, Sql], prefix: str = "") -> str:
    """The oracle's condition for the rows of a partition."""
    return " AND ".join(f"{prefix}{k} IS NOT DISTINCT FROM {v.oracle}" for k, v in values.items())
