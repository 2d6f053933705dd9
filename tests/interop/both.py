"""The two engines on one table: a statement runs on one side, then both must read the same rows and row ids."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from acidsql.metastore.model import LockComponent, LockRequest, LockState, LockType, Operation
from acidsql.session import AcidSession
from tests.interop.values import DEFAULT_PARTITION, Field, loose, parse_fields
from tests.services.hiveserver2 import Hive

HIVE, ACIDSQL = "hive", "acidsql"
SIDES = (HIVE, ACIDSQL)
SHOWN = 12
"""So many differing cells are listed."""

Row = tuple[Any, ...]


class Disagreement(AssertionError):
    """The two engines read different things."""


@dataclass
class Tally:
    """What was exchanged in the whole run."""

    statements: Counter[str] = field(default_factory=Counter)
    """Statements that write or define, by the side that ran them."""
    queries: Counter[str] = field(default_factory=Counter)
    compared: int = 0
    """How often both sides' rows were laid side by side."""
    rows: int = 0
    cells: int = 0

    def lines(self) -> list[str]:
        """The report at the end of the run."""
        counts = [f"{side}: {self.statements[side]} statements, {self.queries[side]} queries" for side in SIDES]
        return [
            f"statements exchanged: {self.statements.total()} ({'; '.join(counts)})",
            f"compared after them: {self.compared} times, {self.rows} rows with their row ids, {self.cells} values",
        ]


class Both:
    """A connection to Hive and a session of acidsql over one database of one metastore."""

    def __init__(self, hive: Hive, acid: AcidSession, database: str, tally: Tally, *, first: int = 0) -> None:
        self.hive = hive
        self.acid = acid
        self.database = database
        self.tally = tally
        self.writes = 0
        self._names = first

    def run(self, side: str, text: str) -> None:
        """Run a statement that writes or defines."""
        self.wrote(side)
        if side == HIVE:
            self.hive.run(text)
        else:
            self.acid.sql(text).collect()

    def wrote(self, side: str, times: int = 1) -> None:
        """Count statements that were run past :meth:`run`."""
        self.tally.statements[side] += times
        self.writes += times

    def ask(self, side: str, text: str) -> list[Row]:
        """The rows of a query."""
        self.tally.queries[side] += 1
        rows = self.hive.run(text) or [] if side == HIVE else self.acid.sql(text).collect()
        return [tuple(r) for r in rows]

    def answer_alike(self, text: str) -> list[Row]:
        """Both sides' answer to a query, which must be the same apart from the order of its rows."""
        answers = [sorted(([loose(v) for v in r] for r in self.ask(side, text)), key=repr) for side in SIDES]
        if answers[0] != answers[1]:
            raise Disagreement(f"{text}\n  Hive:    {answers[0]}\n  acidsql: {answers[1]}")
        return [tuple(r) for r in answers[0]]

    def table(
        self,
        columns: str,
        keys: str = "",
        *,
        by: str,
        properties: str = "",
        buckets: str = "",
        insert_only: bool = False,
    ) -> SharedTable:
        """Make a table.

        Args:
            columns: The data columns, ``id int, v string``.
            keys: The partition keys, likewise.
            by: The side that makes it.
            properties: More table properties, ``'orc.compress'='SNAPPY'``.
            buckets: What stands behind CLUSTERED BY, ``(id) INTO 4 BUCKETS``.
            insert_only: Whether it is an insert-only table.
        """
        name = self.new_name()
        partitioned = f" PARTITIONED BY ({keys})" if keys else ""
        clustered = f" CLUSTERED BY {buckets}" if buckets else ""
        more = f", {properties}" if properties else ""
        if insert_only:
            more += ", 'transactional_properties'='insert_only'"
        self.run(
            by,
            f"CREATE TABLE {name} ({columns}){partitioned}{clustered} STORED AS ORC"
            f" TBLPROPERTIES ('transactional'='true'{more})",
        )
        return SharedTable(self, name, parse_fields(columns), parse_fields(keys), identified=not insert_only)

    def new_name(self) -> str:
        """A name for a table that nobody has yet."""
        self._names += 1
        return f"{self.database}.t{self._names}"


class SharedTable:
    """A table that both engines read and write. ``{t}`` in a statement is its name.

    One that is not ``identified`` has no row ids (insert-only): its rows are numbered here, by the order of values.
    """

    def __init__(
        self, both: Both, name: str, columns: Sequence[Field], keys: Sequence[Field], *, identified: bool = True
    ) -> None:
        self.both = both
        self.name = name
        self.identified = identified
        self.columns = tuple(columns)
        self.keys = tuple(keys)
        self._agreed: tuple[int, list[Row]] | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.columns + self.keys

    @property
    def directory(self) -> Path:
        """Where it stands on this machine."""
        database, _, name = self.name.partition(".")
        return Path(unquote(urlsplit(self.both.acid.metastore.get_table(database, name).location).path))

    def begun_write(self) -> tuple[int, int]:
        """A transaction that inserts and has not ended, on acidsql's side: its id, and its write id for this table."""
        store, (database, _, name) = self.both.acid.metastore, self.name.partition(".")
        [txn] = store.open_txns(user="somebody", host="somewhere")
        component = LockComponent(LockType.SHARED_READ, database, name, None, Operation.INSERT)
        assert store.lock(LockRequest((component,), txn, "somebody", "somewhere")).state is LockState.ACQUIRED
        return txn, store.allocate_table_write_id(txn, database, name)

    def text(self, statement: str) -> str:
        return statement.replace("{t}", self.name)

    def hive(self, *statements: str) -> SharedTable:
        """Run statements on Hive; both sides are compared after each."""
        return self._exchange(HIVE, statements)

    def acid(self, *statements: str) -> SharedTable:
        """Run statements on acidsql; both sides are compared after each."""
        return self._exchange(ACIDSQL, statements)

    def on(self, side: str, *statements: str) -> SharedTable:
        return self._exchange(side, statements)

    def _exchange(self, side: str, statements: Iterable[str]) -> SharedTable:
        for statement in statements:
            text = self.text(statement)
            self.both.run(side, text)
            try:
                self.agree(count_on=ACIDSQL if side == HIVE else HIVE)
            except Disagreement as e:
                raise Disagreement(f"after {text!r} on {side}:\n{e}") from None
        return self

    def read(self, side: str) -> list[Row]:
        """All rows as one side reads them: write id, bucket, row id, then the values in their one form."""
        if side == HIVE:
            head, values = "ROW__ID, ", [f.asked_of_hive() for f in self.fields]
        else:
            head = "ROW__ID.writeId AS w, ROW__ID.bucketId AS b, ROW__ID.rowId AS r, "
            values = [f.asked_of_acidsql() for f in self.fields]
        listed = ", ".join(f"{v} AS c{i}" for i, v in enumerate(values))
        rows = self.both.ask(side, f"SELECT {head if self.identified else ''}{listed} FROM {self.name}")
        if not self.identified:
            ordered = sorted((self._values(r) for r in rows), key=repr)
            return [(0, 0, number, *r) for number, r in enumerate(ordered)]
        if side == HIVE:
            rows = [(*_identity(r[0]), *r[1:]) for r in rows]
        return [(*map(int, r[:3]), *self._values(r[3:])) for r in rows]

    def _values(self, values: Sequence[Any]) -> list[Any]:
        normal = [f.normal(v) for f, v in zip(self.columns, values, strict=False)]
        keys = values[len(self.columns) :]
        # Hive shows the NULL of a string key by the name of its directory
        return normal + [None if v == DEFAULT_PARTITION else f.normal(v) for f, v in zip(self.keys, keys, strict=True)]

    def agree(self, count_on: str | None = None) -> list[Row]:
        """Compare both sides cell by cell, and count(*) with them; the values of all rows, sorted.

        Args:
            count_on: Ask only this side for count(*), which may come from its statistics.

        Raises:
            Disagreement: Which cells differ, which row ids are known to one side only.
        """
        if self._agreed is not None and self._agreed[0] == self.both.writes:
            return self._agreed[1]
        hive, acid = self.read(HIVE), self.read(ACIDSQL)
        problems = self.differences(hive, acid)
        for side in SIDES if count_on is None else (count_on,):
            [(count,)] = self.both.ask(side, f"SELECT count(*) FROM {self.name}")
            if count != len(hive):
                problems.append(f"count(*) on {side} is {count}, Hive reads {len(hive)} rows")
        tally = self.both.tally
        tally.compared += 1
        tally.rows += len(hive)
        tally.cells += len(hive) * len(self.fields)
        if problems:
            more = [f"… and {len(problems) - SHOWN} more"] if len(problems) > SHOWN else []
            raise Disagreement("\n".join([f"{self.name}:", *problems[:SHOWN], *more]))
        self._agreed = self.both.writes, sorted((r[3:] for r in hive), key=repr)
        return self._agreed[1]

    def differences(self, hive: Sequence[Row], acid: Sequence[Row]) -> list[str]:
        """What two readings of the table differ in, a line each."""
        problems = []
        sides = {}
        for side, rows in ((HIVE, hive), (ACIDSQL, acid)):
            sides[side] = {self._place(r): r for r in rows}
            if len(sides[side]) != len(rows):
                problems.append(f"{side} reads {len(rows)} rows with {len(sides[side])} different row ids")
        theirs, ours = sides[HIVE], sides[ACIDSQL]
        for place in sorted(theirs.keys() ^ ours.keys(), key=repr):
            side = HIVE if place in theirs else ACIDSQL
            problems.append(f"only {side} reads row {place}: {sides[side][place][3:]}")
        for place in sorted(theirs.keys() & ours.keys(), key=repr):
            cells = zip(self.fields, theirs[place][3:], ours[place][3:], strict=True)
            problems += [f"row {place}, {f.name}: Hive {a!r}, acidsql {b!r}" for f, a, b in cells if a != b]
        return problems

    def _place(self, row: Row) -> Row:
        """A row's identity: row ids are counted by partition."""
        return row[:3] + (row[-len(self.keys) :] if self.keys else ())

    def holds(self, *rows: Row) -> SharedTable:
        """Both sides read exactly these rows, whatever their order."""
        found = self.agree()
        expected = sorted((tuple(r) for r in rows), key=repr)
        if found != expected:
            raise Disagreement(f"{self.name} holds\n  {found}\nnot\n  {expected}")
        return self

    def answer_alike(self, query: str) -> list[Row]:
        """As :meth:`Both.answer_alike`."""
        return self.both.answer_alike(self.text(query))

    def partitions(self) -> list[str]:
        """Names of the partitions, the same on both sides."""
        listed = [sorted(r[0] for r in self.both.ask(side, f"SHOW PARTITIONS {self.name}")) for side in SIDES]
        if listed[0] != listed[1]:
            raise Disagreement(f"SHOW PARTITIONS {self.name}\n  Hive:    {listed[0]}\n  acidsql: {listed[1]}")
        return listed[0]


def _identity(text: str) -> tuple[int, int, int]:
    """``{"writeid":1,"bucketid":536870912,"rowid":0}`` as numbers."""
    found = json.loads(text)
    return found["writeid"], found["bucketid"], found["rowid"]
