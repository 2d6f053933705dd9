"""Random programs over all of the SQL and every kind of table give the rows of an oracle, DuckDB.

After each step: the same rows; row ids that are unique, and those of rows that the step left alone are what they were;
directories that Hive's rules accept; no transaction, lock or staged file. A statement that must fail changes nothing.

A program that fails is made shorter, as far as it still fails, and tells its seed: ``ACIDSQL_TEST_SEED`` runs that one
alone. ``make test-random`` runs many long ones, ``ACIDSQL_TEST_PROGRAMS`` of each kind.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from acidsql.errors import AcidError, CompactionError, SnapshotTooOld
from acidsql.metastore.model import TxnType
from acidsql.plan import search
from acidsql.session import AcidSession
from tests.oracle.choice import quick_and_long
from tests.programs.oracle import Oracle, Row, Senseless, fields_of
from tests.programs.program import draw_files, draw_program, draw_source
from tests.programs.steps import File, Step
from tests.programs.tables import Column, Kind, Shape, draw_shape, source_columns, type_list
from tests.programs.text import Sql
from tests.spark.hive_files import write_orc
from tests.spark.hive_rules import check_table
from tests.spark.tree import tree

GIVEN = os.environ.get("ACIDSQL_TEST_SEED")
SEEDS = [int(GIVEN)] if GIVEN else [1]
QUICK = [Kind.PARTITIONED_AND_BUCKETED, Kind.CONVERTED]
"""Kinds of tables in every run; the others are in ``make test-random``."""
FIRST = int(GIVEN) if GIVEN else random.SystemRandom().randrange(10**6)
MANY = 1 if GIVEN else int(os.environ.get("ACIDSQL_TEST_PROGRAMS", "30"))
SHORT, LONG = 8, 25
"""Steps of a program."""
REPLACING = ("overwrite", "truncate")
"""Steps after which an older version may be gone."""

Rows = dict[Row, Row]
"""Rows by partition and row id; those of an insert-only table by their number."""
_numbers = itertools.count()


class Run:
    """One program on a table of its own."""

    def __init__(self, acid: AcidSession, folder: Path, seed: str, shape: Shape) -> None:
        self.acid = acid
        self.folder = folder
        chance = random.Random(seed)
        self.table, self.source = self._new("t"), self._new("s")
        self.place = folder / "warehouse" / self.table
        files = draw_files(chance, shape) if shape.kind is Kind.CONVERTED else {}
        if files:
            self.place = folder / f"{self.table} of hive"
        source = draw_source(chance, shape)
        self.oracle = Oracle(shape, source.oracle)
        for path, (file, values) in files.items():
            self._write(self.place / path, file)
            self.oracle.ask(f"INSERT INTO {{t}} {values.oracle}")
        acid.sql(shape.create(self.table, str(self.place) if files else ""))
        acid.sql(f"CREATE TRANSACTIONAL TABLE {self.source} ({type_list(source_columns(shape))})")
        acid.sql(source.acid.replace("{s}", self.source))
        self.chance = chance
        self.versions: dict[int, list[Row]] = {}
        self.replaced: set[int] = set()
        self.rows = self._read(shape)

    def _new(self, letter: str) -> str:
        return f"{letter}{next(_numbers)}"

    @staticmethod
    def _write(path: Path, file: File) -> None:
        write_orc(path, file.schema, file.rows)

    def finish(self) -> None:
        self.acid.sql(f"DROP TABLE {self.table}")
        self.acid.sql(f"DROP TABLE {self.source}")

    # --- a step ------------------------------------------------------------------------------------------------------

    def step(self, step: Step) -> None:
        """Carry a step out on both sides, and compare."""
        self.chance = random.Random(step.text.acid)  # a shorter program does the same in its steps
        self.acid.sql(f"SET acidsql.write.driver.rows = {self.chance.choice([0, 1, 20000])}")
        if step.kind == "version":
            self._look_back(step)
        elif step.kind == "create as":
            self._create_as(step)
        elif self.oracle.must_fail(step):
            self._fail(step)
        elif step.kind == "compact":
            self._compact(step)
        else:
            self._change(step)
        self._nothing_left()

    def _statement(self, text: Sql, **names: str) -> str:
        given = text.acid.replace("{t}", self.table).replace("{s}", self.source)
        for name, value in names.items():
            given = given.replace(f"{{{name}}}", value)
        return given

    def _change(self, step: Step) -> None:
        gone = self.oracle.run(step)
        new, file = self._new("t"), self.folder / f"{next(_numbers)}.orc"
        if step.file is not None:
            self._write(file, step.file)
        counts = self.acid.sql(self._statement(step.text, new=new, file=str(file))).collect()
        if step.kind == "rename":
            self.table = new
            self.place = self.place if self.place.name.endswith("hive") else self.place.with_name(new)
        before, self.rows = self.rows, self._read(step.shape)
        assert sorted(self.rows.values(), key=repr) == self.oracle.rows(step.shape.fields)
        if counts:
            self._check_counts(step, tuple(counts[0]), gone, len(self.rows) - len(before))
        if not step.shape.insert_only:
            self._check_identities(step, before, gone)
        self._check_files(step.shape)
        self._remember(step)

    def _fail(self, step: Step) -> None:
        with pytest.raises((AcidError, PySparkException)):
            self.acid.sql(self._statement(step.text, new=self._new("t")))
        assert self._read(step.shape) == self.rows, "a statement that failed changed something"

    def _compact(self, step: Step) -> None:
        """Compacted and cleaned: rows and row ids stay. It is refused where there is nothing to put together."""
        with suppress(CompactionError):
            self.acid.sql(self._statement(step.text))
        assert self._read(step.shape) == self.rows
        self.acid.sql("SET hive.compactor.initiator.on = false")
        self.acid.compactor.run_once()
        assert self._read(step.shape) == self.rows
        self._check_files(step.shape)
        self.replaced |= set(self.versions)

    def _create_as(self, step: Step) -> None:
        name = self._new("t")
        self.acid.sql(self._statement(step.text, new=name))
        columns = fields_of(step.shape.fields)
        listed = ", ".join(f.asked_of_acidsql() for f in columns)
        found = [self._values(step.shape.fields, r) for r in self.acid.sql(f"SELECT {listed} FROM {name}").collect()]
        assert sorted(found, key=repr) == self.oracle.rows(step.shape.fields, step.rows)
        check_table(self.folder / "warehouse" / name)
        self.acid.sql(f"DROP TABLE {name}")

    # --- versions ----------------------------------------------------------------------------------------------------

    def _remember(self, step: Step) -> None:
        """The rows as of the last write id: VERSION AS OF shows them, with today's columns and partitions."""
        if step.kind in ("alter", "drop"):
            self.versions.clear()
        if step.kind in REPLACING:
            self.replaced |= set(self.versions)
        store = self.acid.metastore
        [ids] = store.get_valid_write_ids([f"default.{self.table}"], store.get_valid_txns())
        self.versions[ids.high_watermark] = list(self.rows.values())

    def _look_back(self, step: Step) -> None:
        if not self.versions:
            return
        version = self.chance.choice(sorted(self.versions))
        listed = ", ".join(f.asked_of_acidsql() for f in fields_of(step.shape.fields))
        try:
            frame = self.acid.sql(f"SELECT {listed} FROM {self.table} VERSION AS OF {version}")
        except SnapshotTooOld:
            assert version in self.replaced
            return
        found = [self._values(step.shape.fields, r) for r in frame.collect()]
        assert sorted(found, key=repr) == sorted(self.versions[version], key=repr)

    # --- what must hold ----------------------------------------------------------------------------------------------

    def _read(self, shape: Shape) -> Rows:
        values = ", ".join(f.asked_of_acidsql() for f in fields_of(shape.fields))
        if shape.insert_only:
            found = self.acid.sql(f"SELECT {values} FROM {self.table}").collect()
            return {(n,): v for n, v in enumerate(sorted((self._values(shape.fields, r) for r in found), key=repr))}
        identity = "ROW__ID.writeId, ROW__ID.bucketId, ROW__ID.rowId"
        rows = self.acid.sql(f"SELECT {identity}, {values} FROM {self.table}").collect()
        made: Rows = {}
        for row in rows:
            found_values = self._values(shape.fields, row[3:])
            place = (*row[:3], *found_values[len(shape.columns) :])
            assert place not in made, f"two rows have the row id {place}"
            made[place] = found_values
        self._check_buckets(shape, made)
        return made

    @staticmethod
    def _values(columns: Sequence[Column], row: Sequence[object]) -> Row:
        return tuple(f.normal(v) for f, v in zip(fields_of(columns), row, strict=True))

    @staticmethod
    def _check_buckets(shape: Shape, rows: Rows) -> None:
        """Rows that are alike in the columns of CLUSTERED BY have the same bucket."""
        at = [[c.name for c in shape.columns].index(name) for name in shape.buckets]
        buckets: dict[str, int] = {}
        for place, values in rows.items() if at else ():
            bucket = place[1] >> 16 & 4095
            assert bucket < shape.bucket_count
            assert buckets.setdefault(repr([values[i] for i in at]), bucket) == bucket

    @staticmethod
    def _check_counts(step: Step, counts: Sequence[int], gone: int, growth: int) -> None:
        """The answer: affected, updated, deleted, inserted."""
        assert counts[0] == sum(counts[1:])
        if step.kind in ("update", "delete", "merge"):
            assert counts[1] + counts[2] == gone
            assert counts[3] - counts[2] == growth
        else:
            assert counts[1:] == (0, 0, growth + gone)

    def _check_identities(self, step: Step, before: Rows, gone: int) -> None:
        """As many rows as the statement changed or removed lost their row id; others have theirs, and their values."""
        kept = before.keys() & self.rows.keys()
        assert len(kept) == len(before) - gone
        if step.kind != "alter":
            assert all(before[place] == self.rows[place] for place in kept)

    def _check_files(self, shape: Shape) -> None:
        check_table(self.place, insert_only=shape.insert_only)
        if shape.keys:
            assert len(self.acid.sql(f"SHOW PARTITIONS {self.table}").collect()) == self.oracle.partitions()

    def _nothing_left(self) -> None:
        store = self.acid.metastore
        assert [t for t in store.show_txns() if t.type is not TxnType.READ_ONLY] == []
        assert store.show_locks() == []
        hidden = [p for p in tree(self.place) if any(part.startswith((".", "_tmp")) for part in Path(p).parts)]
        assert hidden == []


# --- programs --------------------------------------------------------------------------------------------------------


def _problem(acid: AcidSession, folder: Path, seed: str, shape: Shape, program: Sequence[Step]) -> Exception | None:
    """What goes wrong in a program; None where nothing does, or where it makes no sense."""
    run = Run(acid, folder, seed, shape)
    try:
        for step in program:
            run.step(step)
    except Senseless:
        return None
    except (AssertionError, AcidError, PySparkException, OSError, pytest.fail.Exception) as e:
        return e
    run.finish()
    return None


def _shortest(fails: Callable[[Sequence[Step]], Exception | None], program: Sequence[Step]) -> Sequence[Step]:
    """The program without the steps that the failure does not need."""
    for number in reversed(range(len(program))):
        shorter = [*program[:number], *program[number + 1 :]]
        if shorter and fails(shorter) is not None:
            program = shorter
    return program


def _run(acid: AcidSession, folder: Path, kind: Kind, number: int, length: int) -> None:
    seed = f"{number} {kind.value}"
    chance = random.Random(seed)
    shape = draw_shape(chance, kind)
    program = draw_program(chance, shape, length)

    def fails(steps: Sequence[Step]) -> Exception | None:
        return _problem(acid, folder, seed, shape, steps)

    if (problem := fails(program)) is not None:
        shortest = _shortest(fails, program)
        told = "\n  ".join([shape.create("{t}"), *(s.text.acid for s in shortest)])
        raise AssertionError(f"ACIDSQL_TEST_SEED={number}, {kind.value}\n  {told}\n{problem}") from problem


def _search(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Every other program is run with the search in files that only large ones are worth."""
    if seed % 2:
        monkeypatch.setattr(search, "MIN_BYTES", 0)


@pytest.mark.parametrize("kind", quick_and_long(QUICK, [k for k in Kind if k not in QUICK]), ids=lambda k: k.value)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_program_gives_the_rows_of_the_oracle(
    acid: AcidSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Kind, seed: int
) -> None:
    _search(monkeypatch, seed)
    _run(acid, tmp_path, kind, seed, SHORT)


@pytest.mark.long
@pytest.mark.parametrize("kind", Kind, ids=lambda k: k.value)
@pytest.mark.parametrize("number", range(MANY))
def test_a_long_random_program_gives_the_rows_of_the_oracle(
    acid: AcidSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Kind, number: int
) -> None:
    _search(monkeypatch, FIRST + number)
    _run(acid, tmp_path, kind, FIRST + number, LONG)
