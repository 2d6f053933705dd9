"""Random programs over all of the SQL and every kind of table, each statement run by Hive or by acidsql.

After each step both read the same rows and row ids, the rows are those of an oracle, DuckDB, and rows that the step
left alone have their row ids. Statements that Hive does not have are acidsql's. A failing program prints its seed;
``ACIDSQL_TEST_SEED`` runs that one.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from acidsql.errors import AcidError, CompactionError
from tests.interop.both import ACIDSQL, HIVE, SIDES, Both, Row, SharedTable
from tests.interop.conftest import Service
from tests.interop.values import parse_fields
from tests.programs.oracle import Oracle
from tests.programs.program import draw_program, draw_source
from tests.programs.statements import literal_rows
from tests.programs.steps import Drawing, Step
from tests.programs.tables import Kind, Shape, draw_shape, source_columns, type_list
from tests.services.hiveserver2 import HiveError
from tests.spark.hive_files import write_orc

STATEMENTS = 16
SEEDS = [int(os.environ["ACIDSQL_TEST_SEED"])] if "ACIDSQL_TEST_SEED" in os.environ else [4, 401]
seeds = pytest.mark.parametrize("seed", SEEDS)


class Run:
    """One program on a table of both."""

    def __init__(self, both: Both, folder: Path, seed: str, shape: Shape, compacts: bool) -> None:
        self.both = both
        self.folder = folder
        self.chance = random.Random(seed)
        self.compacts = compacts
        source = draw_source(self.chance, shape)
        self.oracle = Oracle(shape, source.oracle)
        self.source = both.table(type_list(source_columns(shape)), by=self.chance.choice(SIDES)).name
        both.run(ACIDSQL, source.acid.replace("{s}", self.source))
        self.table = self._converted(shape) if shape.kind is Kind.CONVERTED else self._made(shape)
        self.shape = shape
        self.done: list[str] = []

    def _made(self, shape: Shape) -> SharedTable:
        return self.both.table(
            type_list(shape.columns),
            type_list(shape.keys),
            by=self.chance.choice(SIDES),
            buckets=shape.clustering,
            insert_only=shape.insert_only,
        )

    def _converted(self, shape: Shape) -> SharedTable:
        """A table with Hive's files from before it was transactional."""
        name = self.both.new_name()
        columns = type_list(shape.columns)
        self.both.run(HIVE, f"CREATE EXTERNAL TABLE {name} ({columns}) STORED AS ORC")
        for _ in range(self.chance.randint(1, 2)):
            rows = literal_rows(Drawing(self.chance, shape, hive=True), shape.columns)
            self.both.run(HIVE, f"INSERT INTO {name} {rows.hive}")
            self.oracle.ask(f"INSERT INTO {{t}} {rows.oracle}")
        properties = "('EXTERNAL'='FALSE', 'transactional'='true')"
        self.both.run(self.chance.choice(SIDES), f"ALTER TABLE {name} SET TBLPROPERTIES {properties}")
        return SharedTable(self.both, name, parse_fields(columns), ())

    def _named(self, name: str, shape: Shape) -> SharedTable:
        columns, keys = parse_fields(type_list(shape.columns)), parse_fields(type_list(shape.keys))
        return SharedTable(self.both, name, columns, keys, identified=not shape.insert_only)

    # --- a step ------------------------------------------------------------------------------------------------------

    def step(self, step: Step) -> None:
        """Carry a step out on one side and by the oracle, and compare all three."""
        if step.kind == "version" or (step.kind == "compact" and not self._can_compact(step)):
            return
        side = self.chance.choice(SIDES) if step.text.hive is not None else ACIDSQL
        self.both.acid.sql(f"SET acidsql.write.driver.rows = {self.chance.choice([0, 20000])}")
        if step.shape.keys:
            self.oracle.set_partitions(self.table.partitions())
        new = self.both.new_name()
        text = self._statement(step, side, new)
        self.done.append(f"{side}: {text}")
        before = self._identities()
        if step.kind == "compact":
            self._compact(side, text)
            assert self._identities() == before
        elif self.oracle.must_fail(step):
            with pytest.raises((AcidError, PySparkException, HiveError)):
                self.both.run(side, text)
        elif step.kind == "create as":
            self.both.run(side, text)
            assert self._named(new, step.shape).agree() == self.oracle.rows(step.shape.fields, step.rows)
        else:
            gone = self.oracle.run(step)
            self.both.run(side, text)
            self.table = self._named(new if step.kind == "rename" else self.table.name, step.shape)
            if self.table.identified:
                assert len(before - self._identities()) == gone, "other rows have lost their row ids than were touched"
        assert self.table.agree() == self.oracle.rows(step.shape.fields)

    def _statement(self, step: Step, side: str, new: str) -> str:
        text = step.text.acid if side == ACIDSQL else step.text.hive
        assert text is not None
        if step.file is not None:
            path = self.folder / f"{len(self.done)}.orc"
            write_orc(path, step.file.schema, step.file.rows)
            text = text.replace("{file}", str(path))
        return text.replace("{t}", self.table.name).replace("{s}", self.source).replace("{new}", new)

    def _compact(self, side: str, text: str) -> None:
        """Too little to compact is no failure."""
        try:
            self.both.run(side, text)
        except (CompactionError, HiveError) as e:
            if "refused" not in str(e):
                raise

    def _can_compact(self, step: Step) -> bool:
        """Whether somebody compacts, and there is something to compact."""
        if not self.compacts or step.shape.insert_only:
            return False
        return not step.error or not self.oracle.must_fail(step)

    def _identities(self) -> set[Row]:
        keys = len(self.table.keys)
        return {(*r[:3], *r[len(r) - keys :]) for r in self.table.read(ACIDSQL)}


@pytest.fixture(scope="module")
def compacts(hive_service: Service, request: pytest.FixtureRequest) -> bool:
    """Whether Hive's compaction worker and cleaner run; they do, where Hive is the suite's own."""
    if hive_service.server is None:
        return False
    request.getfixturevalue("cleaner")
    return True


def _run(both: Both, folder: Path, kind: Kind, seed: int, compacts: bool) -> None:
    chance = random.Random(f"{seed} {kind.value}")
    shape = draw_shape(chance, kind, hive=True)
    run = Run(both, folder, f"{seed} {kind.value}", shape, compacts)
    try:
        for step in draw_program(chance, shape, STATEMENTS, hive=True):
            run.step(step)
    except Exception as e:
        told = "\n  ".join([shape.create("{t}"), *run.done])
        raise AssertionError(f"ACIDSQL_TEST_SEED={seed} {kind.value}\n  {told}\n{e}") from e


@seeds
def test_a_plain_table(both: Both, tmp_path: Path, compacts: bool, seed: int) -> None:
    _run(both, tmp_path, Kind.PLAIN, seed, compacts)


@seeds
def test_a_partitioned_table(both: Both, tmp_path: Path, compacts: bool, seed: int) -> None:
    _run(both, tmp_path, Kind.PARTITIONED, seed, compacts)


@seeds
def test_a_bucketed_table(both: Both, tmp_path: Path, compacts: bool, seed: int) -> None:
    _run(both, tmp_path, Kind.BUCKETED, seed, compacts)


@seeds
def test_a_partitioned_and_bucketed_table(both: Both, tmp_path: Path, compacts: bool, seed: int) -> None:
    _run(both, tmp_path, Kind.PARTITIONED_AND_BUCKETED, seed, compacts)


@seeds
def test_an_insert_only_table(both: Both, tmp_path: Path, compacts: bool, seed: int) -> None:
    _run(both, tmp_path, Kind.INSERT_ONLY, seed, compacts)


@seeds
def test_a_table_with_original_files(both: Both, tmp_path: Path, compacts: bool, seed: int) -> None:
    _run(both, tmp_path, Kind.CONVERTED, seed, compacts)
